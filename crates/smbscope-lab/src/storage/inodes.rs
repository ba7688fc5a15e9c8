//! Files known to the kernel, each held open without access to its content (`O_PATH`, open(2)). A file thus keeps its
//! identity when it is renamed, replaced or removed, and no path from a client is ever followed.

use rustix::io::Errno;
use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Inode number of the shared folder.
pub(super) const ROOT: u64 = 1;

/// Lower bound of the numbers for files of other file systems mounted below the folder, whose own numbers may collide.
const FOREIGN: u64 = 1 << 63;

/// Table of the files known to the kernel. Bounded by `RLIMIT_NOFILE`: beyond it, lookups fail until the kernel
/// forgets files.
#[derive(Debug)]
pub(super) struct Inodes(Mutex<InodeTable>);

#[derive(Debug)]
struct InodeTable {
    nodes: HashMap<u64, FuseInode>,
    numbers: HashMap<DeviceInode, u64>,
    /// File system of the folder.
    device: u64,
    /// Last number given to a foreign file.
    foreign: u64,
}

/// File system and inode number.
type DeviceInode = (u64, u64);

#[derive(Debug)]
struct FuseInode {
    file: Arc<File>,
    identity: DeviceInode,
    /// Number of lookups minus those the kernel has forgotten.
    lookups: u64,
}

impl Inodes {
    pub(super) fn new(root: File) -> std::io::Result<Inodes> {
        let metadata = root.metadata()?;
        let identity = (metadata.dev(), metadata.ino());
        let node = FuseInode { file: Arc::new(root), identity, lookups: 1 };
        Ok(Inodes(Mutex::new(InodeTable {
            nodes: [(ROOT, node)].into(),
            numbers: [(identity, ROOT)].into(),
            device: identity.0,
            foreign: FOREIGN,
        })))
    }

    pub(super) fn get(&self, number: u64) -> Result<Arc<File>, Errno> {
        self.lock().nodes.get(&number).map(|node| Arc::clone(&node.file)).ok_or(Errno::STALE)
    }

    pub(super) fn enter(&self, file: File, metadata: &Metadata) -> u64 {
        let identity = (metadata.dev(), metadata.ino());
        let mut table = self.lock();
        let table = &mut *table;
        let number = *table.numbers.entry(identity).or_insert_with(|| {
            if identity.0 == table.device && (ROOT + 1..FOREIGN).contains(&identity.1) {
                return identity.1;
            }
            table.foreign += 1;
            table.foreign
        });
        let node = table.nodes.entry(number);
        node.or_insert_with(|| FuseInode { file: Arc::new(file), identity, lookups: 0 }).lookups += 1;
        number
    }

    /// Drops lookups; a file without any is removed.
    pub(super) fn forget(&self, number: u64, lookups: u64) {
        let mut table = self.lock();
        let Some(node) = table.nodes.get_mut(&number).filter(|_| number != ROOT) else { return };
        node.lookups = node.lookups.saturating_sub(lookups);
        if node.lookups == 0 {
            let identity = node.identity;
            table.nodes.remove(&number);
            table.numbers.remove(&identity);
        }
    }

    fn lock(&self) -> MutexGuard<'_, InodeTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_has_one_number_as_long_as_the_kernel_knows_it() {
        let folder = tempfile::tempdir().expect("a temporary directory can be made");
        let path = folder.path().join("file");
        fs::write(&path, "x").expect("it can be written");
        let inodes = Inodes::new(File::open(folder.path()).expect("it is there")).expect("it can be looked at");
        let enter = || {
            let file = File::open(&path).expect("it is there");
            let metadata = file.metadata().expect("it can be looked at");
            inodes.enter(file, &metadata)
        };
        let number = enter();
        assert_eq!((enter(), number != ROOT), (number, true));
        inodes.forget(number, 1);
        assert!(inodes.get(number).is_ok());
        inodes.forget(number, 1);
        assert_eq!(inodes.get(number).err(), Some(Errno::STALE));
        inodes.forget(ROOT, 1);
        assert!(inodes.get(ROOT).is_ok());
    }
}
