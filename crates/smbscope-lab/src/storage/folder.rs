//! Implements the FUSE operations on the underlying folder, each with one or two system calls.
//!
//! The kernel has checked permissions before (`default_permissions`), based on owner, mode and access control list of
//! each file. If root serves, these calls are root's: new files are therefore given to the caller.

use rustix::fs::{AtFlags, CWD, FallocateFlags, Gid, Mode, OFlags, RenameFlags, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirEntryExt, FileExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Mode bits for running a program with the rights of its owner and group, and for inheriting groups.
const SET_ID: u32 = 0o6000;
const SET_GROUP_ID: u32 = 0o2000;

/// Maximum length of an extended attribute's value, and of the list of names (xattr(7)).
const XATTR_BYTES_MAX: u32 = 65_536;

pub(super) type ErrnoResult<T> = Result<T, Errno>;

#[derive(Debug, Clone, Copy)]
pub(super) struct Caller {
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) umask: u32,
}

pub(super) struct FuseEntry {
    pub(super) number: u64,
    pub(super) metadata: Metadata,
}

#[derive(Debug)]
pub(super) struct FuseDirEntry {
    pub(super) number: u64,
    pub(super) kind: std::fs::FileType,
    pub(super) name: OsString,
}

#[derive(Debug)]
pub(super) struct Folder {
    inodes: Inodes,
    serves_others: bool,
}

impl Folder {
    pub(super) fn open(path: &Path) -> io::Result<Folder> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty())?;
        let serves_others = rustix::process::geteuid().is_root();
        Ok(Folder { inodes: Inodes::new(File::from(root))?, serves_others })
    }

    pub(super) fn lookup(&self, parent: u64, name: &OsStr) -> ErrnoResult<FuseEntry> {
        let above = self.inodes.get(parent)?;
        let file = at(&above, name)?;
        self.entry(file)
    }

    pub(super) fn forget(&self, number: u64, lookups: u64) {
        self.inodes.forget(number, lookups);
    }

    pub(super) fn metadata(&self, number: u64) -> ErrnoResult<Metadata> {
        self.inodes.get(number)?.metadata().map_err(errno)
    }

    pub(super) fn set_mode(&self, number: u64, mode: u32) -> ErrnoResult<()> {
        let file = self.inodes.get(number)?;
        std::fs::set_permissions(reopened(&file), Permissions::from_mode(mode & 0o7777)).map_err(errno)
    }

    pub(super) fn set_owner(&self, number: u64, uid: Option<u32>, gid: Option<u32>) -> ErrnoResult<()> {
        let file = self.inodes.get(number)?;
        let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
        rustix::fs::chownat(&*file, "", uid, gid, AtFlags::EMPTY_PATH)
    }

    pub(super) fn set_size(&self, number: u64, size: u64) -> ErrnoResult<()> {
        let file = self.open_file(number, false, true)?;
        file.set_len(size).map_err(errno)
    }

    pub(super) fn set_times(&self, number: u64, times: &Timestamps) -> ErrnoResult<()> {
        let file = self.inodes.get(number)?;
        rustix::fs::utimensat(CWD, reopened(&file), times, AtFlags::empty())
    }

    pub(super) fn link_target(&self, number: u64) -> ErrnoResult<Vec<u8>> {
        let file = self.inodes.get(number)?;
        rustix::fs::readlinkat(&*file, "", Vec::new()).map(|target| target.into_bytes())
    }

    pub(super) fn make_folder(&self, parent: u64, name: &OsStr, mode: u32, caller: Caller) -> ErrnoResult<FuseEntry> {
        let above = self.inodes.get(parent)?;
        rustix::fs::mkdirat(&*above, name, Mode::from_raw_mode(mode & 0o1777))?;
        let made = self.adopt(&above, name, caller)?;
        self.apply_mode(&above, &made, mode, caller)?;
        self.entry(made)
    }

    pub(super) fn make_link(&self, parent: u64, name: &OsStr, target: &Path, caller: Caller) -> ErrnoResult<FuseEntry> {
        let above = self.inodes.get(parent)?;
        rustix::fs::symlinkat(target, &*above, name)?;
        let made = self.adopt(&above, name, caller)?;
        self.entry(made)
    }

    pub(super) fn make_name(&self, number: u64, parent: u64, name: &OsStr) -> ErrnoResult<FuseEntry> {
        let (file, above) = (self.inodes.get(number)?, self.inodes.get(parent)?);
        rustix::fs::linkat(CWD, reopened(&file), &*above, name, AtFlags::SYMLINK_FOLLOW)?;
        self.entry(at(&above, name)?)
    }

    pub(super) fn remove(&self, parent: u64, name: &OsStr, flags: AtFlags) -> ErrnoResult<()> {
        rustix::fs::unlinkat(&*self.inodes.get(parent)?, name, flags)
    }

    pub(super) fn rename(&self, from: (u64, &OsStr), to: (u64, &OsStr), flags: u32) -> ErrnoResult<()> {
        let (old, new) = (self.inodes.get(from.0)?, self.inodes.get(to.0)?);
        rustix::fs::renameat_with(&*old, from.1, &*new, to.1, RenameFlags::from_bits_retain(flags))
    }

    pub(super) fn open_file(&self, number: u64, read: bool, write: bool) -> ErrnoResult<File> {
        let file = self.inodes.get(number)?;
        // Opening anything else may block or have side effects.
        if !file.metadata().map_err(errno)?.is_file() {
            return Err(Errno::OPNOTSUPP);
        }
        let opened = OpenOptions::new().read(read).write(write).open(reopened(&file)).map_err(errno)?;
        if write && self.serves_others {
            // The kernel clears these bits on writes, but not on root's.
            let mode = opened.metadata().map_err(errno)?.mode();
            if mode & SET_ID != 0 {
                opened.set_permissions(Permissions::from_mode(mode & 0o7777 & !SET_ID)).map_err(errno)?;
            }
        }
        Ok(opened)
    }

    /// Creates and opens a file. If another process has just created it, STALE makes the kernel look it up again.
    pub(super) fn create(
        &self,
        parent: u64,
        name: &OsStr,
        (read, mode, exclusive): (bool, u32, bool),
        caller: Caller,
    ) -> ErrnoResult<(FuseEntry, File)> {
        let above = self.inodes.get(parent)?;
        let access = if read { OFlags::RDWR } else { OFlags::WRONLY };
        let flags = access | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = match rustix::fs::openat(&*above, name, flags, Mode::from_raw_mode(mode & 0o777)) {
            Err(Errno::EXIST) if !exclusive => return Err(Errno::STALE),
            other => File::from(other?),
        };
        self.give(&made, &above, caller)?;
        self.apply_mode(&above, &made, mode, caller)?;
        let path = rustix::fs::open(reopened(&made), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        Ok((self.entry(File::from(path))?, made))
    }

    pub(super) fn list(&self, number: u64) -> ErrnoResult<Vec<FuseDirEntry>> {
        let folder = self.inodes.get(number)?;
        let own = folder.metadata().map_err(errno)?;
        let kind = own.file_type();
        // The parent's number is never requested by this name.
        let mut listed: Vec<FuseDirEntry> =
            [".", ".."].map(|name| FuseDirEntry { number, kind, name: name.into() }).into();
        for entry in std::fs::read_dir(reopened(&folder)).map_err(errno)? {
            let entry = entry.map_err(errno)?;
            let kind = entry.file_type().map_err(errno)?;
            listed.push(FuseDirEntry { number: entry.ino().max(ROOT + 1), kind, name: entry.file_name() });
        }
        Ok(listed)
    }

    pub(super) fn space(&self) -> ErrnoResult<rustix::fs::StatVfs> {
        rustix::fs::fstatvfs(&*self.inodes.get(ROOT)?)
    }

    pub(super) fn attribute(&self, number: u64, name: &OsStr, size: u32) -> ErrnoResult<Sized> {
        let file = self.inodes.get(number)?;
        sized(size, |buffer| match buffer {
            None => rustix::fs::getxattr_query(reopened(&file), name),
            Some(buffer) => rustix::fs::getxattr(reopened(&file), name, buffer),
        })
    }

    pub(super) fn attributes(&self, number: u64, size: u32) -> ErrnoResult<Sized> {
        let file = self.inodes.get(number)?;
        sized(size, |buffer| match buffer {
            None => rustix::fs::listxattr_query(reopened(&file)),
            Some(buffer) => rustix::fs::listxattr(reopened(&file), buffer),
        })
    }

    pub(super) fn set_attribute(&self, number: u64, name: &OsStr, value: &[u8], flags: i32) -> ErrnoResult<()> {
        let file = self.inodes.get(number)?;
        rustix::fs::setxattr(reopened(&file), name, value, XattrFlags::from_bits_retain(flags.cast_unsigned()))
    }

    pub(super) fn remove_attribute(&self, number: u64, name: &OsStr) -> ErrnoResult<()> {
        rustix::fs::removexattr(reopened(&*self.inodes.get(number)?), name)
    }

    fn entry(&self, file: File) -> ErrnoResult<FuseEntry> {
        let metadata = file.metadata().map_err(errno)?;
        Ok(FuseEntry { number: self.inodes.enter(file, &metadata), metadata })
    }

    /// Opens and gives away a new entry. Fails if another process has replaced it.
    fn adopt(&self, above: &File, name: &OsStr, caller: Caller) -> ErrnoResult<File> {
        let made = at(above, name)?;
        if self.serves_others {
            let metadata = made.metadata().map_err(errno)?;
            let is_new = metadata.uid() == rustix::process::geteuid().as_raw()
                && metadata.mode() & SET_ID & !SET_GROUP_ID == 0
                && (metadata.is_symlink() || (metadata.is_dir() && is_empty(&made)));
            if !is_new {
                return Err(Errno::STALE);
            }
            self.give(&made, above, caller)?;
        }
        Ok(made)
    }

    /// Gives a new file to the caller. A set-group-id parent determines its group.
    fn give(&self, made: &File, above: &File, caller: Caller) -> ErrnoResult<()> {
        if !self.serves_others {
            return Ok(());
        }
        let inherits = above.metadata().map_err(errno)?.mode() & SET_GROUP_ID != 0;
        let gid = (!inherits).then(|| Gid::from_raw(caller.gid));
        rustix::fs::chownat(made, "", Some(Uid::from_raw(caller.uid)), gid, AtFlags::EMPTY_PATH)
    }

    /// Subtracts the caller's umask, unless a default access control list of the parent replaces it (acl(5)).
    fn apply_mode(&self, above: &File, made: &File, mode: u32, caller: Caller) -> ErrnoResult<()> {
        if rustix::fs::getxattr_query(reopened(above), "system.posix_acl_default").is_ok() {
            return Ok(());
        }
        let inherited = made.metadata().map_err(errno)?.mode() & SET_GROUP_ID;
        let mode = (mode & 0o1777 & !caller.umask) | inherited;
        std::fs::set_permissions(reopened(made), Permissions::from_mode(mode)).map_err(errno)
    }
}

pub(super) enum Sized {
    Length(u32),
    Value(Vec<u8>),
}

fn sized(size: u32, mut call: impl FnMut(Option<&mut [u8]>) -> ErrnoResult<usize>) -> ErrnoResult<Sized> {
    if size == 0 {
        return Ok(Sized::Length(u32::try_from(call(None)?).map_err(|_| Errno::RANGE)?));
    }
    let mut value = vec![0; size.min(XATTR_BYTES_MAX) as usize];
    let length = call(Some(&mut value))?;
    value.truncate(length);
    Ok(Sized::Value(value))
}

pub(super) fn read(file: &File, offset: u64, size: u32) -> ErrnoResult<Vec<u8>> {
    let mut data = vec![0; size as usize];
    let mut filled = 0;
    while filled < data.len() {
        match file.read_at(&mut data[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(errno(error)),
        }
    }
    data.truncate(filled);
    Ok(data)
}

pub(super) fn write(file: &File, offset: u64, data: &[u8]) -> ErrnoResult<()> {
    file.write_all_at(data, offset).map_err(errno)
}

pub(super) fn flush(file: &File, data_only: bool) -> ErrnoResult<()> {
    if data_only { file.sync_data() } else { file.sync_all() }.map_err(errno)
}

pub(super) fn allocate(file: &File, mode: i32, offset: u64, length: u64) -> ErrnoResult<()> {
    rustix::fs::fallocate(file, FallocateFlags::from_bits_retain(mode.cast_unsigned()), offset, length)
}

fn at(folder: &File, name: &OsStr) -> ErrnoResult<File> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file: OwnedFd = rustix::fs::openat(folder, name, flags, Mode::empty())?;
    Ok(File::from(file))
}

/// Returns a path to an open file, for calls that don't accept `O_PATH` descriptors.
fn reopened(file: &File) -> OsString {
    OsString::from_vec(format!("/proc/self/fd/{}", file.as_raw_fd()).into_bytes())
}

fn is_empty(folder: &File) -> bool {
    std::fs::read_dir(reopened(folder)).is_ok_and(|mut entries| entries.next().is_none())
}

fn errno(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

pub(super) const ROOT: u64 = 1;

/// Lower bound of the numbers for files of other file systems mounted below the folder, whose own numbers may collide.
const FOREIGN: u64 = 1 << 63;

/// Files known to the kernel. Bounded by `RLIMIT_NOFILE`: beyond it, lookups fail until the kernel forgets files.
#[derive(Debug)]
pub(super) struct Inodes(Mutex<InodeTable>);

#[derive(Debug)]
struct InodeTable {
    nodes: HashMap<u64, FuseInode>,
    numbers: HashMap<DeviceInode, u64>,
    device: u64,
    foreign: u64,
}

type DeviceInode = (u64, u64);

#[derive(Debug)]
struct FuseInode {
    file: Arc<File>,
    identity: DeviceInode,
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
