//! Reconstructs the files and directories that a recording opens without creating them, with the server's sizes.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

/// Bytes of a recorded file; longer ones are shortened. Sizes in a capture may be anything.
const RECORDED_FILE_MAX: u64 = 1 << 40;
/// Bytes of all recorded files.
const RECORDED_BYTES_MAX: u64 = 16 << 40;
/// Bytes of their paths; others are not created.
const RECORDED_PATHS_MAX: usize = 32 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InitialPathState {
    File {
        size: u64,
    },
    Directory,
    /// A file or directory, decided by later commands. An empty file if they don't tell.
    Something,
    Nothing,
}

/// Paths named by the recording. The first command that reveals a path's state decides.
#[derive(Debug, Default)]
pub(super) struct RecordedPaths {
    found: BTreeMap<String, (String, InitialPathState)>,
    bytes: usize,
    pub(super) left_out: u64,
    /// Latest rename by its new name in lower case: sequence number and old name in lower case.
    renamed: HashMap<String, (usize, String)>,
    renames: usize,
}

impl RecordedPaths {
    pub(super) fn find(&mut self, path: &str, found: InitialPathState) {
        let Some(path) = self.original(path) else { return };
        self.note(&path, found);
        let mut above = path.as_str();
        while let Some((parent, _)) = above.rsplit_once('\\') {
            if !self.note(parent, InitialPathState::Directory) {
                break;
            }
            above = parent;
        }
    }

    pub(super) fn misses(&mut self, path: &str) {
        if let Some(path) = self.original(path) {
            self.note(&path, InitialPathState::Nothing);
        }
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) {
        self.find(to, InitialPathState::Nothing);
        self.renames += 1;
        self.renamed.insert(to.to_lowercase(), (self.renames, from.to_lowercase()));
    }

    /// Returns true if the parent directories may not be known yet.
    fn note(&mut self, path: &str, found: InitialPathState) -> bool {
        if path.is_empty() {
            return false;
        }
        let key = path.to_lowercase();
        if let Some((_, known)) = self.found.get_mut(&key) {
            let is_told = *known == InitialPathState::Something && found != InitialPathState::Nothing;
            if is_told {
                *known = found;
            }
            return is_told || *known == InitialPathState::Nothing;
        }
        if self.bytes + 2 * path.len() > RECORDED_PATHS_MAX {
            self.left_out += 1;
            return false;
        }
        self.bytes += 2 * path.len();
        self.found.insert(key, (path.to_owned(), found));
        true
    }

    /// Returns the path's name before any rename. Returns `None` for the target of a rename, which is known already.
    fn original(&self, path: &str) -> Option<String> {
        if self.renamed.is_empty() {
            return Some(path.to_owned());
        }
        let lower = path.to_lowercase();
        let ends = lower.match_indices('\\').map(|(end, _)| end).chain([lower.len()]);
        let renamed = ends.filter_map(|end| Some((end, self.renamed.get(&lower[..end])?)));
        match renamed.max_by_key(|(_, (number, _))| *number) {
            None => Some(path.to_owned()),
            Some((end, _)) if end == lower.len() => None,
            Some((end, (_, from))) => Some(format!("{from}{}", &lower[end..])),
        }
    }

    /// Returns the lines that create everything: directories, parents first, then files with their contents.
    pub(super) fn lines(&self) -> String {
        /// Bytes per write, because lengths have 32 bits.
        const BLOCK: u64 = 1 << 30;
        let mut text = String::new();
        // Sorting puts a directory before its contents.
        for (path, found) in self.found.values() {
            if *found == InitialPathState::Directory {
                let _ = writeln!(text, "Mkdir \"\\{path}\" NT_STATUS_OK");
            }
        }
        for (handle, (path, _, size)) in self.sizes().enumerate() {
            let _ = writeln!(text, "NTCreateX \"\\{path}\" 0x40 0x2 {handle} NT_STATUS_OK");
            let mut offset = 0;
            while offset < size {
                let length = BLOCK.min(size - offset);
                let _ = writeln!(text, "WriteX {handle} {offset} {length} {length} NT_STATUS_OK");
                offset += length;
            }
            let _ = writeln!(text, "Close {handle} NT_STATUS_OK");
        }
        text
    }

    pub(super) fn shortened(&self) -> u64 {
        self.sizes().filter(|(_, told, made)| made < told).count() as u64
    }

    fn sizes(&self) -> impl Iterator<Item = (&str, u64, u64)> {
        let mut left = RECORDED_BYTES_MAX;
        self.found.values().filter_map(move |(path, found)| {
            let told = match found {
                InitialPathState::File { size } => *size,
                InitialPathState::Something => 0,
                InitialPathState::Directory | InitialPathState::Nothing => return None,
            };
            let made = told.min(RECORDED_FILE_MAX).min(left);
            left -= made;
            Some((path.as_str(), told, made))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_mention_of_a_path_decides_and_what_is_above_is_there() {
        let mut files = RecordedPaths::default();
        files.find(r"a\b\new.txt", InitialPathState::Nothing);
        files.find(r"A\B\NEW.txt", InitialPathState::File { size: 5 });
        files.find(r"a\old.txt", InitialPathState::File { size: 3 });
        files.misses(r"x\y");
        let expected = "Mkdir \"\\a\" NT_STATUS_OK\nMkdir \"\\a\\b\" NT_STATUS_OK\n\
                        NTCreateX \"\\a\\old.txt\" 0x40 0x2 0 NT_STATUS_OK\nWriteX 0 0 3 3 NT_STATUS_OK\n\
                        Close 0 NT_STATUS_OK\n";
        assert_eq!(files.lines(), expected);
    }

    #[test]
    fn sizes_and_names_that_no_server_has_are_cut() {
        let mut files = RecordedPaths::default();
        files.find("a", InitialPathState::File { size: u64::MAX });
        files.find("b", InitialPathState::File { size: 3 });
        assert_eq!((files.shortened(), files.lines().lines().count()), (1, 2 + 1_024 + 3));
        // A path of 32,000 levels has as many parent directories, 32,000 bytes long on average.
        let deep = "x\\".repeat(32_000);
        files.find(&deep, InitialPathState::Nothing);
        assert!(files.left_out > 0 && files.bytes <= RECORDED_PATHS_MAX, "{} bytes", files.bytes);
        assert!(files.lines().contains("\"\\b\""));
    }

    #[test]
    fn the_latest_rename_counts() {
        let mut files = RecordedPaths::default();
        files.rename("one", "dir");
        files.rename("two", "dir");
        assert_eq!(files.original(r"DIR\f").as_deref(), Some(r"two\f"));
        files.rename("three", r"dir\sub");
        assert_eq!(files.original(r"dir\sub\f").as_deref(), Some(r"three\f"));
        assert_eq!((files.original(r"dir\sub"), files.original("other").as_deref()), (None, Some("other")));
    }

    #[test]
    fn what_is_below_a_renamed_directory_was_below_its_old_name() {
        let mut files = RecordedPaths::default();
        files.find("old", InitialPathState::Directory);
        files.rename("old", "new");
        files.find(r"new\f", InitialPathState::File { size: 0 });
        files.find("new", InitialPathState::Directory);
        let expected =
            "Mkdir \"\\old\" NT_STATUS_OK\nNTCreateX \"\\old\\f\" 0x40 0x2 0 NT_STATUS_OK\nClose 0 NT_STATUS_OK\n";
        assert_eq!(files.lines(), expected);
    }
}
