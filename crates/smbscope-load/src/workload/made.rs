//! The names that smbscope creates in a benchmark directory. Nothing else is ever removed there: a server may show a
//! link to another place as a directory, which a client can't detect, but the names at its target differ.

use std::borrow::Cow;
use std::collections::BTreeSet;

/// Limit for the total length of all names of a workload, in bytes.
pub(crate) const NAMES_MAX: usize = 8 << 20;

/// Names that a workload creates in a user's directory, apart from those of file sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CreatedPaths {
    /// Lower case, because servers ignore case. Includes all parent directories.
    names: BTreeSet<Box<str>>,
    /// Total length in bytes. Beyond [`NAMES_MAX`] no names are added: each parent of a deep path counts as a name.
    bytes: usize,
}

impl CreatedPaths {
    /// Collects paths relative to a user's directory, with their parent directories.
    pub(crate) fn new<'a>(paths: impl Iterator<Item = &'a str>) -> CreatedPaths {
        let mut made = CreatedPaths::default();
        paths.for_each(|path| made.add(path));
        made
    }

    fn add(&mut self, path: &str) {
        let path = lower(path);
        let mut path = &*path;
        while !path.is_empty() && !self.is_too_large() && !self.names.contains(path) {
            self.bytes += path.len();
            self.names.insert(path.into());
            path = &path[..path.rfind('\\').unwrap_or(0)];
        }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }

    pub(crate) fn merged(&self, other: &CreatedPaths) -> CreatedPaths {
        let names: BTreeSet<Box<str>> = self.names.union(&other.names).cloned().collect();
        CreatedPaths { bytes: names.iter().map(|name| name.len()).sum(), names }
    }

    pub(crate) fn is_too_large(&self) -> bool {
        self.bytes > NAMES_MAX
    }

    /// Returns true if smbscope creates this path, given relative to the directory of all users.
    pub(crate) fn has(&self, path: &str) -> bool {
        let (first, rest) = path.split_once('\\').unwrap_or((path, ""));
        match first {
            "shared" => rest.is_empty() || is_of_set(rest),
            _ => is_numbered(first, "user", 5, "") && (rest.is_empty() || self.has_of_user(rest)),
        }
    }

    /// Returns true if smbscope creates this path, given relative to a user's directory.
    pub(crate) fn has_of_user(&self, path: &str) -> bool {
        let of = |directory| path.strip_prefix(directory).and_then(|rest: &str| rest.strip_prefix('\\'));
        if path == "files" || path == "new" {
            return true;
        }
        of("files").is_some_and(is_of_set)
            || of("new").is_some_and(|rest| is_numbered(rest, "file", 8, ".dat") || is_numbered(rest, "dir", 8, ""))
            || self.names.contains(&*lower(path))
    }
}

/// Decides which paths in one user's directory are smbscope's.
#[derive(Clone, Copy, PartialEq)]
pub struct Own<'a> {
    pub(crate) made: &'a CreatedPaths,
    pub(crate) directory: &'a str,
}

impl Own<'_> {
    /// Returns true if smbscope creates this path, given as the server sees it.
    pub(crate) fn has(&self, path: &str) -> bool {
        let below = path.strip_prefix(self.directory).and_then(|rest| rest.strip_prefix('\\'));
        below.is_some_and(|below| self.made.has_of_user(below))
    }
}

impl std::fmt::Debug for Own<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Own({:?})", self.directory)
    }
}

/// Returns true for `dir0001`, `dir0001\dir0002`, `dir0001\file000003.dat`: see [`FileSet`](super::FileSet).
fn is_of_set(path: &str) -> bool {
    let is_directory = |name| is_numbered(name, "dir", 4, "");
    match path.rsplit_once('\\') {
        None => is_directory(path),
        Some((directories, last)) => {
            directories.split('\\').all(is_directory) && (is_directory(last) || is_numbered(last, "file", 6, ".dat"))
        }
    }
}

/// Returns true if a name is a number of at least `digits` digits between two fixed strings.
fn is_numbered(name: &str, before: &str, digits: usize, after: &str) -> bool {
    let number = name.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
    number.is_some_and(|number| number.len() >= digits && number.bytes().all(|digit| digit.is_ascii_digit()))
}

fn lower(path: &str) -> Cow<'_, str> {
    if path.chars().any(char::is_uppercase) { Cow::Owned(path.to_lowercase()) } else { Cow::Borrowed(path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_sets_and_of_the_workload_are_made_and_no_others() {
        let made = CreatedPaths::new([r"~DMTMP\Word\a.doc"].into_iter());
        for path in [
            "shared",
            r"shared\dir0001\file000001.dat",
            "user00001",
            r"user00001\files\dir0000",
            r"user12345\files\dir0000\file123456.dat",
            r"user00001\files\dir0000\dir0001\dir0010\file123456.dat",
            r"user00001\files\dir0000\dir0001",
            r"user00001\new\file00000003.dat",
            r"user00001\new\dir00000003",
            r"user00001\~dmtmp",
            r"user00001\~DMTMP\WORD\A.DOC",
        ] {
            assert!(made.has(path), "{path}");
        }
        for path in [
            "",
            "user1",
            "user0000x",
            "other",
            r"shared\dir0001\other",
            r"shared\dir0001\file000001.dat\x",
            r"shared\files",
            r"shared\dir0001\link\dir0002",
            r"shared\dir0001\link\file000001.dat",
            r"shared\dir0001\file000001.dat\dir0001",
            r"user00001\link",
            r"user00001\files\link",
            r"user00001\user00001",
            r"user00001\new\x",
            r"user00001\~dmtmp\word\b.doc",
            r"user00001\new\dir00000003\x",
        ] {
            assert!(!made.has(path), "{path}");
        }
    }

    #[test]
    fn directories_of_a_deep_path_are_bounded_together() {
        // Half a million directories, whose names total 250 GB.
        let deep = vec!["a"; 500_000].join("\\");
        let made = CreatedPaths::new([deep.as_str()].into_iter());
        assert!(made.is_too_large() && made.names.len() < 10, "{}", made.names.len());
        let many: Vec<String> = (0..2_000_000).map(|number| format!("dir{number}")).collect();
        assert!(CreatedPaths::new(many.iter().map(String::as_str)).is_too_large());
        assert!(!CreatedPaths::new(many[..100_000].iter().map(String::as_str)).is_too_large());
    }

    #[test]
    fn what_is_not_below_the_own_directory_is_not_made() {
        let made = CreatedPaths::new(["a"].into_iter());
        let own = Own { made: &made, directory: r"bench\user00001" };
        assert!(own.has(r"bench\user00001\a") && own.has(r"bench\user00001\A"));
        assert!(!own.has(r"bench\user00001") && !own.has(r"bench\user00002\a") && !own.has("a"));
    }
}
