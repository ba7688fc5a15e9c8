//! A share in memory.

use crate::prepare::share::{FileContent, ShareAccess, ShareConnector};
use smbscope_client::{ClientError, ListingEntry};
use smbscope_model::Command;
use smbscope_wire::smb2;
use smbscope_wire::status::NtStatus;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A share in memory. Clones refer to the same share.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory(Rc<RefCell<State>>);

#[derive(Debug, Default)]
struct State {
    nodes: BTreeMap<String, Node>,
    connections: u32,
    /// Number of writes that succeed before the disk is full.
    writes_left: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    Directory,
    File(Vec<u8>),
    ReparsePoint,
    /// In no listing. Removing its directory fails with this status.
    Hidden(NtStatus),
}

impl Memory {
    pub(super) fn put(&self, path: &str, node: Node) {
        self.0.borrow_mut().nodes.insert(path.to_owned(), node);
    }

    pub(super) fn get(&self, path: &str) -> Option<Node> {
        self.0.borrow().nodes.get(path).cloned()
    }

    pub(super) fn remove(&self, path: &str) {
        self.0.borrow_mut().nodes.remove(path);
    }

    /// Returns all paths with this prefix.
    pub(super) fn paths(&self, prefix: &str) -> Vec<String> {
        self.0.borrow().nodes.keys().filter(|path| path.starts_with(prefix)).cloned().collect()
    }

    pub(super) fn connections(&self) -> u32 {
        self.0.borrow().connections
    }

    pub(super) fn full_after(&self, writes: Option<u32>) {
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
