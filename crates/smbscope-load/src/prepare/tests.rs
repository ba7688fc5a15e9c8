//! Preparation and cleanup on a share in memory, and the marker file.

use super::*;
use crate::workload::SizeDistribution;
use smbscope_client::{ClientError, ListingEntry};
use smbscope_model::Command;
use smbscope_wire::smb2;
use smbscope_wire::status::NtStatus;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

const HOUR: Duration = Duration::from_secs(3_600);

/// Two directories with five files of 100 to 200 bytes for each user.
fn files() -> FileSet {
    FileSet {
        own_directories: true,
        shared: false,
        directories: 2,
        nested: 0,
        files: 5,
        sizes: SizeDistribution::Uniform(100, 200),
        seed: 3,
    }
}

/// Names of a workload that creates these in addition.
fn made() -> CreatedPaths {
    CreatedPaths::new([r"own\left over"].into_iter())
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn prepare(memory: &Memory, files: &FileSet, users: u32) -> Result<Prepared, PrepareError> {
    let request =
        PrepareRequest { directory: "bench", workload: "w", files, users, sessions: 3, made: &made(), within: HOUR };
    run(job::prepare(memory, &request, &mut |_| {}))
}

fn clean(memory: &Memory) -> Result<CleanupResult, PrepareError> {
    run(job::clean(memory, "bench", 3, &mut |_| {}))
}

#[test]
fn every_user_gets_the_files_of_the_set_by_several_sessions() {
    let memory = Memory::default();
    let done = prepare(&memory, &files(), 4).unwrap();
    assert_eq!((done.made, done.found), (20, 0));
    assert_eq!(done.bytes_written, 4 * files().bytes());
    assert_eq!(memory.connections(), 3);
    let Some(Node::File(bytes)) = memory.get(r"bench\user00004\files\dir0001\file000003.dat") else {
        panic!("{:?}", memory.paths(""));
    };
    assert_eq!(bytes.len() as u64, files().size(3));
}

#[test]
fn no_two_files_have_the_same_content_and_none_can_be_compressed() {
    let memory = Memory::default();
    let set = FileSet { sizes: SizeDistribution::Fixed(4096), ..files() };
    prepare(&memory, &set, 2).unwrap();
    let contents: Vec<_> = memory
        .paths("bench\\user")
        .iter()
        .filter_map(|path| match memory.get(path) {
            Some(Node::File(bytes)) => Some(bytes),
            _ => None,
        })
        .collect();
    assert_eq!(contents.len(), 10);
    for (index, one) in contents.iter().enumerate() {
        assert!(contents[index + 1..].iter().all(|other| other != one));
        // 4,096 random bytes contain all 256 values except with a probability of 256 * (255/256)^4096, one in 36,000.
        let values: std::collections::HashSet<_> = one.iter().collect();
        assert!(values.len() > 250);
    }
}

#[test]
fn what_is_there_is_kept_and_more_users_get_theirs() {
    let memory = Memory::default();
    prepare(&memory, &files(), 2).unwrap();
    let before = memory.get(r"bench\user00001\files\dir0000\file000000.dat");
    let done = prepare(&memory, &files(), 3).unwrap();
    assert_eq!((done.found, done.made, done.removed), (10, 5, 0));
    assert_eq!(memory.get(r"bench\user00001\files\dir0000\file000000.dat"), before);
    // Fewer users need nothing, and the files of the others stay.
    assert_eq!(prepare(&memory, &files(), 1).unwrap().made, 0);
    assert_eq!(prepare(&memory, &files(), 3).unwrap(), Prepared { found: 15, ..Prepared::default() });
}

#[test]
fn what_was_lost_or_cut_is_made_again() {
    let memory = Memory::default();
    prepare(&memory, &files(), 1).unwrap();
    memory.remove(r"bench\user00001\files\dir0000\file000002.dat");
    memory.put(r"bench\user00001\files\dir0001\file000001.dat", Node::File(vec![0; 3]));
    let done = prepare(&memory, &files(), 1).unwrap();
    assert_eq!((done.found, done.made), (3, 2));
}

#[test]
fn a_preparation_that_broke_goes_on_where_it_ended() {
    let memory = Memory::default();
    // The marker and three files.
    memory.full_after(Some(4));
    let error = prepare(&memory, &files(), 2).unwrap_err().to_string();
    assert!(error.starts_with("cannot write bench\\user0000") && error.contains("STATUS_DISK_FULL"), "{error}");
    memory.full_after(None);
    let done = prepare(&memory, &files(), 2).unwrap();
    assert_eq!((done.found, done.made), (3, 7));
}

#[test]
fn another_set_replaces_the_one_that_was_there() {
    let memory = Memory::default();
    prepare(&memory, &files(), 2).unwrap();
    let done = prepare(&memory, &FileSet { seed: 4, ..files() }, 2).unwrap();
    // Ten files, and for each user two directories, their parent and the user's own.
    assert_eq!((done.found, done.made, done.removed), (0, 10, 18));
    let done = prepare(&memory, &FileSet::none(), 2).unwrap();
    assert_eq!(done.removed, 18);
    assert_eq!(memory.paths("bench\\"), [r"bench\smbscope-bench.toml"]);
}

#[test]
fn a_shared_set_is_made_once_and_users_still_get_directories() {
    let memory = Memory::default();
    let done = prepare(&memory, &FileSet { shared: true, ..files() }, 3).unwrap();
    assert_eq!(done.made, 5);
    assert!(memory.get(r"bench\shared\dir0000\file000000.dat").is_some());
    assert_eq!(memory.get(r"bench\user00003"), Some(Node::Directory));
}

#[test]
fn a_directory_with_anything_else_in_it_is_left_alone() {
    let memory = Memory::default();
    memory.put("bench", Node::Directory);
    memory.put(r"bench\thesis.doc", Node::File(vec![1]));
    for error in [prepare(&memory, &files(), 1).unwrap_err(), clean(&memory).unwrap_err()] {
        assert!(error.to_string().contains("was not made by smbscope"), "{error}");
    }
    memory.put(r"bench\smbscope-bench.toml", Node::File(b"made_by = \"somebody\"".to_vec()));
    assert!(matches!(clean(&memory), Err(PrepareError::NotOurs { .. })));
    assert_eq!(memory.paths("bench\\").len(), 2);
}

#[test]
fn an_empty_directory_is_taken_over() {
    let memory = Memory::default();
    memory.put("bench", Node::Directory);
    assert_eq!(prepare(&memory, &files(), 1).unwrap().made, 5);
}

#[test]
fn cleaning_removes_the_directory_and_nothing_beside_it() {
    let memory = Memory::default();
    memory.put("other", Node::Directory);
    memory.put(r"other\file", Node::File(vec![1]));
    prepare(&memory, &files(), 2).unwrap();
    memory.put(r"bench\user00001\own", Node::Directory);
    memory.put(r"bench\user00001\own\left over", Node::File(vec![1]));
    // Created by the preparation (18), left behind by a run (2), the marker and the directory.
    assert_eq!(clean(&memory).unwrap().removed, 22);
    assert_eq!(memory.paths(""), ["other", r"other\file"]);
    assert_eq!(clean(&memory).unwrap().removed, 0);
}

#[test]
fn what_a_preparation_that_broke_left_can_be_cleaned() {
    let memory = Memory::default();
    memory.full_after(Some(2));
    prepare(&memory, &files(), 2).unwrap_err();
    assert!(clean(&memory).unwrap().removed > 0);
    assert!(memory.paths("").is_empty());
}

#[test]
fn what_smbscope_did_not_make_stays_with_what_holds_it_and_cleaning_can_be_repeated() {
    let memory = Memory::default();
    prepare(&memory, &files(), 2).unwrap();
    // A listed directory may be a link to another one: nothing in it is touched, whatever its name.
    memory.put(r"bench\user00001\link", Node::Directory);
    memory.put(r"bench\user00001\link\file000000.dat", Node::File(vec![1]));
    memory.put(r"bench\user00001\files\point", Node::ReparsePoint);
    memory.put(r"bench\thesis.doc", Node::File(vec![1]));
    let cleaned = clean(&memory).unwrap();
    let mut left = cleaned.left.paths.clone();
    left.sort();
    assert_eq!(left, [r"bench\thesis.doc", r"bench\user00001\files\point", r"bench\user00001\link"]);
    assert_eq!(cleaned.left.count, 3);
    // Ten files, two directories of the first user and all four of the second.
    assert_eq!(cleaned.removed, 16);
    let there = [
        "bench",
        r"bench\smbscope-bench.toml",
        r"bench\thesis.doc",
        r"bench\user00001",
        r"bench\user00001\files",
        r"bench\user00001\files\point",
        r"bench\user00001\link",
        r"bench\user00001\link\file000000.dat",
    ];
    assert_eq!(memory.paths(""), there);
    for path in &there[2..] {
        if !matches!(path.rsplit('\\').next(), Some("user00001" | "files")) {
            memory.remove(path);
        }
    }
    assert_eq!(clean(&memory).unwrap().left, ForeignEntries::default());
    assert!(memory.paths("").is_empty(), "{:?}", memory.paths(""));
}

#[test]
fn a_set_is_replaced_without_touching_what_smbscope_did_not_make() {
    let memory = Memory::default();
    prepare(&memory, &files(), 1).unwrap();
    memory.put(r"bench\user00001\link", Node::Directory);
    memory.put(r"bench\user00001\link\precious", Node::File(vec![1]));
    assert_eq!(prepare(&memory, &FileSet { seed: 9, ..files() }, 1).unwrap().made, 5);
    assert!(memory.get(r"bench\user00001\link\precious").is_some());
}

#[test]
fn directories_nested_without_end_are_not_entered() {
    let memory = Memory::default();
    prepare(&memory, &files(), 1).unwrap();
    let mut path = r"bench\user00001".to_owned();
    for _ in 0..2_000 {
        path += r"\user00001";
        memory.put(&path, Node::Directory);
    }
    assert_eq!(clean(&memory).unwrap().left.count, 1);
    assert!(memory.get(&path).is_some());
}

#[test]
fn a_directory_that_only_seems_empty_keeps_its_marker() {
    // Samba reports the second status for a dangling link when it follows links out of the share.
    for status in [NtStatus::DIRECTORY_NOT_EMPTY, NtStatus::OBJECT_NAME_NOT_FOUND] {
        let memory = Memory::default();
        prepare(&memory, &files(), 1).unwrap();
        memory.put(r"bench\dangling", Node::Hidden(status));
        let left = clean(&memory).unwrap().left;
        assert_eq!(left.count, 1);
        assert!(left.paths[0].starts_with(r"bench\(something"), "{left:?}");
        assert!(memory.get(r"bench\smbscope-bench.toml").is_some());
        // Repeated cleanup, and another run in the directory.
        assert_eq!(clean(&memory).unwrap().left.count, 1);
        assert_eq!(prepare(&memory, &files(), 1).unwrap().made, 5);
        memory.remove(r"bench\dangling");
        // A hidden entry in a directory of the set.
        memory.put(r"bench\user00001\files\dir0001\dangling", Node::Hidden(status));
        assert_eq!(clean(&memory).unwrap().left.count, 1);
        memory.remove(r"bench\user00001\files\dir0001\dangling");
        assert_eq!(clean(&memory).unwrap().left.count, 0);
        assert!(memory.paths("").is_empty());
    }
}

#[test]
fn a_marker_that_was_interrupted_while_it_was_written_is_one() {
    let memory = Memory::default();
    prepare(&memory, &files(), 1).unwrap();
    let marker = memory.get(r"bench\smbscope-bench.toml").unwrap();
    memory.remove(r"bench\smbscope-bench.toml");
    memory.put(r"bench\smbscope-bench.toml.new", marker);
    assert_eq!(prepare(&memory, &files(), 1).unwrap().found, 5);
    assert_eq!(clean(&memory).unwrap().left.count, 0);
    assert!(memory.paths("").is_empty());
    // Interrupted just before the end: only an empty directory is left.
    memory.put("bench", Node::Directory);
    assert_eq!(clean(&memory).unwrap().removed, 1);
    assert!(memory.paths("").is_empty());
}

#[test]
fn the_root_of_the_share_and_paths_that_lead_out_are_no_directory_to_work_in() {
    assert_eq!(directory_below("").unwrap(), "smbscope-bench");
    assert_eq!(directory_below("/a/b/").unwrap(), r"a\b\smbscope-bench");
    assert!(directory_below("..").is_err());
    let memory = Memory::default();
    for directory in ["", "\\", r"..\x"] {
        let error = run(job::clean(&memory, directory, 1, &mut |_| {})).unwrap_err();
        assert!(matches!(error, PrepareError::Directory { .. }), "{error}");
    }
}

#[test]
fn progress_is_told_of_every_file_and_ends_at_its_goal() {
    let memory = Memory::default();
    let mut told = Vec::new();
    let request = PrepareRequest {
        directory: "bench",
        workload: "w",
        files: &files(),
        users: 2,
        sessions: 2,
        made: &made(),
        within: HOUR,
    };
    run(job::prepare(&memory, &request, &mut |progress| told.push(progress))).unwrap();
    assert_eq!(told.len(), 10);
    let last = told[9];
    assert_eq!((last.files, last.bytes), (last.of_files, last.of_bytes));
    assert_eq!(last.of_bytes, 2 * files().bytes());
}

/// A share in memory. Clones refer to the same share.
#[derive(Debug, Clone, Default)]
struct Memory(Rc<RefCell<State>>);

#[derive(Debug, Default)]
struct State {
    nodes: BTreeMap<String, Node>,
    connections: u32,
    /// Number of writes that succeed before the disk is full.
    writes_left: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    Directory,
    File(Vec<u8>),
    ReparsePoint,
    /// In no listing. Removing its directory fails with this status.
    Hidden(NtStatus),
}

impl Memory {
    fn put(&self, path: &str, node: Node) {
        self.0.borrow_mut().nodes.insert(path.to_owned(), node);
    }

    fn get(&self, path: &str) -> Option<Node> {
        self.0.borrow().nodes.get(path).cloned()
    }

    fn remove(&self, path: &str) {
        self.0.borrow_mut().nodes.remove(path);
    }

    /// Returns all paths with this prefix.
    fn paths(&self, prefix: &str) -> Vec<String> {
        self.0.borrow().nodes.keys().filter(|path| path.starts_with(prefix)).cloned().collect()
    }

    fn connections(&self) -> u32 {
        self.0.borrow().connections
    }

    fn full_after(&self, writes: Option<u32>) {
        self.0.borrow_mut().writes_left = writes;
    }

    fn parent_is_there(&self, path: &str) -> Result<(), ClientError> {
        match path.rsplit_once('\\') {
            Some((parent, _)) if self.get(parent) != Some(Node::Directory) => {
                Err(refused(NtStatus::OBJECT_PATH_NOT_FOUND))
            }
            _ => Ok(()),
        }
    }
}

fn refused(status: NtStatus) -> ClientError {
    ClientError::Status { command: Command::Smb2(smb2::Smb2Command::CREATE), status }
}

impl ShareConnector for Memory {
    type Share = Memory;

    async fn connect(&self) -> Result<Memory, ClientError> {
        self.0.borrow_mut().connections += 1;
        Ok(self.clone())
    }
}

impl ShareAccess for Memory {
    async fn list(&mut self, directory: &str) -> Result<Option<Vec<ListingEntry>>, ClientError> {
        // Yields to the other tasks, as a network round trip would.
        tokio::task::yield_now().await;
        if self.get(directory) != Some(Node::Directory) {
            return Ok(None);
        }
        let prefix = format!("{directory}\\");
        let is_listed =
            |path: &String| !path[prefix.len()..].contains('\\') && !matches!(self.get(path), Some(Node::Hidden(_)));
        let entries = self.paths(&prefix).into_iter().filter(is_listed);
        let entry = |path: String| {
            let (size, attributes) = match self.get(&path) {
                Some(Node::File(bytes)) => (bytes.len() as u64, 0x80),
                Some(Node::ReparsePoint) => (0, 0x410),
                _ => (0, 0x10),
            };
            ListingEntry { name: path[prefix.len()..].to_owned(), size, attributes }
        };
        Ok(Some(entries.map(entry).collect()))
    }

    async fn make_directory(&mut self, path: &str) -> Result<(), ClientError> {
        tokio::task::yield_now().await;
        self.parent_is_there(path)?;
        if self.get(path).is_none() {
            self.put(path, Node::Directory);
        }
        Ok(())
    }

    async fn read(&mut self, path: &str, _most: u32) -> Result<Option<Vec<u8>>, ClientError> {
        Ok(match self.get(path) {
            Some(Node::File(bytes)) => Some(bytes),
            _ => None,
        })
    }

    async fn write(&mut self, path: &str, content: FileContent<'_>) -> Result<(), ClientError> {
        tokio::task::yield_now().await;
        self.parent_is_there(path)?;
        if let Some(left) = &mut self.0.borrow_mut().writes_left {
            *left = left.checked_sub(1).ok_or_else(|| refused(NtStatus::DISK_FULL))?;
        }
        let bytes = match content {
            FileContent::Bytes(bytes) => bytes.to_vec(),
            FileContent::Random(size, mut random) => {
                let mut bytes = vec![0; size as usize];
                random.fill(&mut bytes);
                bytes
            }
        };
        self.put(path, Node::File(bytes));
        Ok(())
    }

    async fn rename(&mut self, from: &str, to: &str) -> Result<(), ClientError> {
        let node = self.get(from).ok_or_else(|| refused(NtStatus::OBJECT_NAME_NOT_FOUND))?;
        assert_eq!(self.get(to), None, "{to}");
        self.remove(from);
        self.put(to, node);
        Ok(())
    }

    async fn remove_file(&mut self, path: &str) -> Result<(), ClientError> {
        match self.get(path) {
            Some(Node::File(_)) => self.remove(path),
            None => return Err(refused(NtStatus::OBJECT_NAME_NOT_FOUND)),
            other => panic!("{path} is no file: {other:?}"),
        }
        Ok(())
    }

    async fn remove_directory(&mut self, path: &str) -> Result<(), ClientError> {
        assert_eq!(self.get(path), Some(Node::Directory), "{path}");
        if let Some(inside) = self.paths(&format!("{path}\\")).first() {
            let Some(Node::Hidden(status)) = self.get(inside) else {
                return Err(refused(NtStatus::DIRECTORY_NOT_EMPTY));
            };
            return Err(refused(status));
        }
        self.remove(path);
        Ok(())
    }

    async fn disconnect(&mut self) {}
}

#[test]
fn a_marker_is_read_as_it_was_written() {
    let sizes = [
        SizeDistribution::Fixed(4096),
        SizeDistribution::Uniform(1, 9),
        SizeDistribution::Weighted(vec![(1, 2), (u64::from(u32::MAX) + 1, 4)]),
    ];
    for sizes in sizes {
        let files =
            FileSet { own_directories: true, shared: false, directories: 2, nested: 0, files: 3, sizes, seed: 4 };
        let made = CreatedPaths::new(["a\"b\\c"].into_iter());
        let marker = Marker::new("a \"name\"", 5, &files, &made);
        assert_eq!(marker.made(), made);
        assert_eq!(Marker::parse(marker.to_text().as_bytes()), Some(marker));
    }
}

#[test]
fn another_file_of_the_same_name_is_no_marker() {
    assert_eq!(Marker::parse(b""), None);
    assert_eq!(Marker::parse(b"\xff\xfe"), None);
    let other = Marker { made_by: "x".to_owned(), ..Marker::new("w", 0, &FileSet::none(), &CreatedPaths::default()) };
    assert_eq!(Marker::parse(other.to_text().as_bytes()), None);
}
