//! Names and paths on the share, and the set of files that must exist before measurement starts.
//!
//! [`UserSeat`] gives each user a directory of its own. Paths of a workload are validated while parsing ([`below`]) and
//! prefixed with the directory of each user once, so that steps allocate no strings. [`CreatedPaths`] knows the names
//! that smbscope creates. Nothing else is ever removed: a server may show a link to another place as a directory, which
//! a client can't detect, but the names at its target differ.
//!
//! Path, size and content of a file in a [`FileSet`] follow from its number, so a set is neither listed nor stored and
//! may be large.

use super::draw::SizeDistribution;
use serde::{Deserialize, Serialize};
use smbscope_model::prose::shorten;
use smbscope_stats::Random;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserSeat {
    pub number: u32,
    pub of: u32,
    /// Seed of the run. A user's random draws depend only on it, the number and the workload.
    pub seed: u64,
    /// Working directory of all users on the share, without a leading or trailing backslash; never the root.
    pub directory: String,
}

impl UserSeat {
    pub fn own_directory(&self) -> String {
        own_directory(&self.directory, self.number)
    }
}

pub(crate) fn own_directory(directory: &str, number: u32) -> String {
    format!("{directory}\\user{:05}", u64::from(number) + 1)
}

/// Characters of a path in errors.
const PATH_SHOWN_MAX: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PathId(u32);

#[derive(Debug, Clone, Default)]
pub(super) struct PathInterner {
    names: Vec<Box<str>>,
    ids: HashMap<Box<str>, PathId>,
}

impl PathId {
    pub(super) fn number(self) -> u32 {
        self.0
    }
}

impl PathInterner {
    /// Returns the id of a path that [`below`] has validated.
    pub(super) fn intern(&mut self, relative: &str) -> PathId {
        if let Some(id) = self.ids.get(relative) {
            return *id;
        }
        let id = PathId(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
        self.names.push(relative.into());
        self.ids.insert(relative.into(), id);
        id
    }

    pub(super) fn made(&self) -> CreatedPaths {
        let is_name = |name: &&str| !name.contains(is_forbidden);
        CreatedPaths::new(self.names.iter().map(|name| &**name).filter(is_name))
    }

    pub(super) fn resolve(&self, seat: &UserSeat) -> UserPaths {
        let own = seat.own_directory();
        let bytes = self.names.iter().map(|name| own.len() + 1 + name.len()).sum();
        let mut paths = UserPaths {
            own: own.clone(),
            text: String::with_capacity(bytes),
            ends: Vec::with_capacity(self.names.len()),
        };
        for name in &self.names {
            paths.text.push_str(&own);
            if !name.is_empty() {
                paths.text.push('\\');
                paths.text.push_str(name);
            }
            paths.ends.push(paths.text.len());
        }
        paths
    }
}

#[derive(Debug)]
pub(super) struct UserPaths {
    own: String,
    text: String,
    ends: Vec<usize>,
}

impl UserPaths {
    pub(super) fn own(&self) -> &str {
        &self.own
    }

    pub(super) fn get(&self, id: PathId) -> &str {
        let index = id.0 as usize;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[index]]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Last {
    Name,
    /// May contain wildcards (MS-FSA 2.1.4.4: `*`, `?`, and the DOS wildcards `<`, `>`, `"`).
    Pattern,
}

/// Normalises a path: backslashes as separators, none at either end. Returns the reason as the error if it could leave
/// its directory or if no SMB server accepts it.
pub(super) fn below(path: &str, last: Last) -> Result<String, String> {
    let mut clean = String::with_capacity(path.len());
    let shown = || shorten(path, PATH_SHOWN_MAX);
    let mut parts = path.split(['\\', '/']).filter(|part| !part.is_empty()).peekable();
    while let Some(part) = parts.next() {
        if part == "." || part == ".." {
            return Err(format!(
                "the path {} has a part \"{part}\", which could lead out of the user's directory",
                shown()
            ));
        }
        let wild = last == Last::Pattern && parts.peek().is_none();
        if let Some(bad) = part.chars().find(|c| is_forbidden(*c) && !(wild && is_wildcard(*c))) {
            return Err(format!("the path {} has the character {bad:?}, which no name may have", shown()));
        }
        if !clean.is_empty() {
            clean.push('\\');
        }
        clean.push_str(part);
    }
    Ok(clean)
}

/// Characters that file names can't contain (MS-FSCC 2.1.5.2).
fn is_forbidden(c: char) -> bool {
    c < ' ' || matches!(c, '"' | '|' | '<' | '>' | '*' | '?' | ':')
}

fn is_wildcard(c: char) -> bool {
    matches!(c, '"' | '<' | '>' | '*' | '?')
}

/// Bytes of names that a workload creates; more are refused.
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSet {
    pub own_directories: bool,
    /// One set for all users instead of one each.
    pub shared: bool,
    /// Number of directories that the files are spread over; at least one if there are files.
    pub directories: u32,
    /// Subdirectories per directory in a tree with a single root; 0 if all directories are siblings.
    #[serde(default)]
    pub nested: u32,
    pub files: u32,
    pub sizes: SizeDistribution,
    pub seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSetOwner {
    All,
    User(u32),
}

impl FileSet {
    /// Returns an empty set: users only share the working directory.
    pub fn none() -> FileSet {
        FileSet {
            own_directories: false,
            shared: false,
            directories: 0,
            nested: 0,
            files: 0,
            sizes: SizeDistribution::Fixed(0),
            seed: 0,
        }
    }

    pub fn owner(&self, user: u32) -> FileSetOwner {
        if self.shared { FileSetOwner::All } else { FileSetOwner::User(user) }
    }

    /// Size of a file in bytes, the same in every user's set.
    pub fn size(&self, file: u32) -> u64 {
        self.sizes.draw(&mut SizeDistribution::of_file(self.seed, file))
    }

    pub fn bytes(&self) -> u64 {
        (0..self.files).map(|file| self.size(file)).sum()
    }

    /// Appends the root directory of a set, which is inside the working directory of all users.
    pub fn root(&self, path: &mut String, directory: &str, owner: FileSetOwner) {
        match owner {
            FileSetOwner::All => {
                path.push_str(directory);
                path.push_str("\\shared");
            }
            FileSetOwner::User(number) => {
                path.push_str(&own_directory(directory, number));
                path.push_str("\\files");
            }
        }
    }

    pub fn directory_name(&self, path: &mut String, number: u32) {
        if let Some(parent) = number.checked_sub(1).and_then(|before| before.checked_div(self.nested)) {
            self.directory_name(path, parent);
            path.push('\\');
        }
        let _ = write!(path, "dir{number:04}");
    }

    pub fn directory_of(&self, file: u32) -> u32 {
        file % self.directories.max(1)
    }

    pub fn file_name(&self, path: &mut String, file: u32) {
        self.directory_name(path, self.directory_of(file));
        let _ = write!(path, "\\file{file:06}.dat");
    }

    pub(crate) fn content(&self, owner: FileSetOwner, file: u32) -> Random {
        let owner = match owner {
            FileSetOwner::All => 0,
            FileSetOwner::User(number) => u64::from(number) + 1,
        };
        Random::new(&[self.seed, owner, u64::from(file), 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_whatever_their_separators() {
        assert_eq!(below(r"\clients\\client1\a.txt", Last::Name).unwrap(), r"clients\client1\a.txt");
        assert_eq!(below("/a/b/", Last::Name).unwrap(), r"a\b");
        assert_eq!(below(r"\", Last::Name).unwrap(), "");
        assert_eq!(below(r"a\<.JNK", Last::Pattern).unwrap(), r"a\<.JNK");
    }

    #[test]
    fn paths_that_lead_out_or_cannot_exist_are_refused() {
        for path in [r"..\x", r"a\..\..\x", r".\x", r"C:\x", r"a\x:stream", r"a*\b", "a\nb", "a|b"] {
            assert!(below(path, Last::Pattern).is_err(), "{path}");
        }
        assert!(below(r"a\*.tmp", Last::Name).is_err());
    }

    #[test]
    fn each_user_sees_the_same_names_below_an_own_directory() {
        let mut names = PathInterner::default();
        let (root, file) = (names.intern(""), names.intern(r"d\f"));
        assert_eq!(names.intern(r"d\f"), file);
        let seat = UserSeat { number: 6, of: 8, seed: 1, directory: "bench".to_owned() };
        let paths = names.resolve(&seat);
        assert_eq!(paths.get(root), r"bench\user00007");
        assert_eq!(paths.get(file), r"bench\user00007\d\f");
    }

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

    #[test]
    fn files_are_spread_over_the_directories_with_sizes_that_do_not_change() {
        let set = FileSet {
            own_directories: true,
            shared: false,
            directories: 3,
            nested: 0,
            files: 10,
            sizes: SizeDistribution::Uniform(1, 100),
            seed: 5,
        };
        let name = |file| {
            let mut path = String::new();
            set.root(&mut path, "bench", FileSetOwner::User(0));
            path.push('\\');
            set.file_name(&mut path, file);
            path
        };
        assert_eq!(name(0), r"bench\user00001\files\dir0000\file000000.dat");
        assert_eq!(name(4), r"bench\user00001\files\dir0001\file000004.dat");
        let nested = FileSet { nested: 2, directories: 7, ..set.clone() };
        let mut path = String::new();
        nested.file_name(&mut path, 12);
        assert_eq!(path, r"dir0000\dir0002\dir0005\file000012.dat");
        assert_eq!(set.size(4), set.clone().size(4));
        assert_eq!(set.bytes(), (0..10).map(|file| set.size(file)).sum::<u64>());
    }
}
