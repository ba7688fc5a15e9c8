//! Which files and directories a recording finds, as its commands show: what is opened and was not made before must be
//! there, with the size that the server told.

use std::collections::BTreeMap;
use std::fmt::Write;

/// What is at a path before the recording begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    File {
        size: u64,
    },
    Directory,
    /// A file or a directory: what is said of it later tells which, and how long; else it is an empty file.
    Something,
    Nothing,
}

/// The paths that the recording names; the first mention of a path that says what is there decides.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// By the path in lower case: the path and what is there.
    found: BTreeMap<String, (String, Found)>,
    /// New and old names, in lower case, in the order of the renames.
    renamed: Vec<(String, String)>,
}

impl Files {
    /// Something is found, or found missing, at a path; the directories above are there.
    pub(super) fn find(&mut self, path: &str, found: Found) {
        let Some(path) = self.original(path) else { return };
        self.note(&path, found);
        let mut above = path.as_str();
        while let Some((parent, _)) = above.rsplit_once('\\') {
            self.note(parent, Found::Directory);
            above = parent;
        }
    }

    /// Nothing is there, and perhaps not even its directory.
    pub(super) fn misses(&mut self, path: &str) {
        if let Some(path) = self.original(path) {
            self.note(&path, Found::Nothing);
        }
    }

    /// What was at a path is at another one from now on.
    pub(super) fn rename(&mut self, from: &str, to: &str) {
        self.find(to, Found::Nothing);
        self.renamed.push((to.to_lowercase(), from.to_lowercase()));
    }

    fn note(&mut self, path: &str, found: Found) {
        if !path.is_empty() {
            let known = self.found.entry(path.to_lowercase()).or_insert_with(|| (path.to_owned(), found));
            if known.1 == Found::Something && found != Found::Nothing {
                known.1 = found;
            }
        }
    }

    /// The name that a path had at first; none where what is there was renamed to it, and so is known.
    fn original(&self, path: &str) -> Option<String> {
        let lower = path.to_lowercase();
        for (to, from) in self.renamed.iter().rev() {
            if lower == *to {
                return None;
            }
            if let Some(below) = lower.strip_prefix(to.as_str()).filter(|below| below.starts_with('\\')) {
                return Some(format!("{from}{below}"));
            }
        }
        Some(path.to_owned())
    }

    /// The lines that make them: directories, those above first, and files with their bytes.
    pub(super) fn lines(&self) -> String {
        /// Bytes of a write: a length has 32 bits.
        const BLOCK: u64 = 1 << 30;
        let mut text = String::new();
        // A directory stands before what is in it: its path is the shorter one with the same beginning.
        for (path, found) in self.found.values() {
            if *found == Found::Directory {
                let _ = writeln!(text, "Mkdir \"\\{path}\" NT_STATUS_OK");
            }
        }
        for (handle, (path, size)) in self.sizes().enumerate() {
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

    fn sizes(&self) -> impl Iterator<Item = (&str, u64)> {
        self.found.values().filter_map(|(path, found)| match found {
            Found::File { size } => Some((path.as_str(), *size)),
            Found::Something => Some((path.as_str(), 0)),
            Found::Directory | Found::Nothing => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_mention_of_a_path_decides_and_what_is_above_is_there() {
        let mut files = Files::default();
        files.find(r"a\b\new.txt", Found::Nothing);
        files.find(r"A\B\NEW.txt", Found::File { size: 5 });
        files.find(r"a\old.txt", Found::File { size: 3 });
        files.misses(r"x\y");
        let expected = "Mkdir \"\\a\" NT_STATUS_OK\nMkdir \"\\a\\b\" NT_STATUS_OK\n\
                        NTCreateX \"\\a\\old.txt\" 0x40 0x2 0 NT_STATUS_OK\nWriteX 0 0 3 3 NT_STATUS_OK\n\
                        Close 0 NT_STATUS_OK\n";
        assert_eq!(files.lines(), expected);
    }

    #[test]
    fn what_is_below_a_renamed_directory_was_below_its_old_name() {
        let mut files = Files::default();
        files.find("old", Found::Directory);
        files.rename("old", "new");
        files.find(r"new\f", Found::File { size: 0 });
        files.find("new", Found::Directory);
        let expected =
            "Mkdir \"\\old\" NT_STATUS_OK\nNTCreateX \"\\old\\f\" 0x40 0x2 0 NT_STATUS_OK\nClose 0 NT_STATUS_OK\n";
        assert_eq!(files.lines(), expected);
    }
}
