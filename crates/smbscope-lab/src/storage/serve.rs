//! FUSE file system (Documentation/filesystems/fuse): forwards the kernel's requests, data through the disk's queue.

use super::device::DiskRequest;
use super::folder::{self, Caller, ErrnoResult, Folder, FuseDirEntry, FuseEntry, Sized};
use super::queue::DiskQueue;
use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenAccMode, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request as Asked, TimeOrNow, WriteFlags,
};
use rustix::fs::{AtFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Lifetime of names and attributes in the kernel's cache. Only changes made outside the share can go unnoticed.
const REMEMBERED: Duration = Duration::from_secs(1);

/// Maximum read or write of the kernel. Linux is limited to 256 pages (`fs.fuse.max_pages_limit`).
const REQUEST_BYTES_MAX: u32 = 1 << 20;

const BACKGROUND_MAX: u16 = 1024;

const EXCLUSIVE: i32 = rustix::fs::OFlags::EXCL.bits().cast_signed();

#[derive(Debug)]
pub(super) struct FuseFileSystem {
    folder: Folder,
    queue: Arc<DiskQueue>,
    open: Mutex<FuseHandleTable>,
}

#[derive(Debug, Default)]
struct FuseHandleTable {
    handles: HashMap<u64, FuseHandle>,
    last: u64,
}

#[derive(Debug, Clone)]
enum FuseHandle {
    File(Arc<File>),
    /// Snapshot of a directory, taken when it was read from the start.
    Listing(Arc<Vec<FuseDirEntry>>),
}

impl FuseFileSystem {
    pub(super) fn new(folder: Folder, queue: Arc<DiskQueue>) -> FuseFileSystem {
        FuseFileSystem { folder, queue, open: Mutex::default() }
    }

    fn open(&self) -> MutexGuard<'_, FuseHandleTable> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, handle: FuseHandle) -> FileHandle {
        let mut open = self.open();
        open.last += 1;
        let number = open.last;
        open.handles.insert(number, handle);
        FileHandle(number)
    }

    fn file(&self, handle: FileHandle) -> ErrnoResult<Arc<File>> {
        match self.open().handles.get(&handle.0) {
            Some(FuseHandle::File(file)) => Ok(Arc::clone(file)),
            _ => Err(rustix::io::Errno::BADF),
        }
    }

    fn listing(&self, number: u64, handle: FileHandle, offset: u64) -> ErrnoResult<Arc<Vec<FuseDirEntry>>> {
        if offset > 0
            && let Some(FuseHandle::Listing(listing)) = self.open().handles.get(&handle.0)
        {
            return Ok(Arc::clone(listing));
        }
        let listing = Arc::new(self.folder.list(number)?);
        self.open().handles.insert(handle.0, FuseHandle::Listing(Arc::clone(&listing)));
        Ok(listing)
    }

    fn set(&self, number: u64, changes: AttributeChanges, handle: Option<FileHandle>) -> ErrnoResult<Metadata> {
        let AttributeChanges { mode, owner, size, times } = changes;
        if owner != (None, None) {
            self.folder.set_owner(number, owner.0, owner.1)?;
        }
        if let Some(mode) = mode {
            self.folder.set_mode(number, mode)?;
        }
        if let Some(size) = size {
            match handle.and_then(|handle| self.file(handle).ok()) {
                Some(file) if file.set_len(size).is_ok() => {}
                _ => self.folder.set_size(number, size)?,
            }
        }
        if times.0.is_some() || times.1.is_some() {
            let of = |time: Option<TimeOrNow>| time.map_or(Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT }, timespec);
            let times = Timestamps { last_access: of(times.0), last_modification: of(times.1) };
            self.folder.set_times(number, &times)?;
        }
        self.folder.metadata(number)
    }
}

struct AttributeChanges {
    mode: Option<u32>,
    owner: (Option<u32>, Option<u32>),
    size: Option<u64>,
    /// Of last access and modification.
    times: (Option<TimeOrNow>, Option<TimeOrNow>),
}

impl Filesystem for FuseFileSystem {
    fn init(&mut self, _asked: &Asked, config: &mut KernelConfig) -> io::Result<()> {
        // Optional: parallel operations in a directory, access control lists, and split large requests.
        for flag in [InitFlags::FUSE_PARALLEL_DIROPS, InitFlags::FUSE_POSIX_ACL, InitFlags::FUSE_ASYNC_DIO] {
            let _ = config.add_capabilities(flag);
        }
        let _ = config.set_max_write(REQUEST_BYTES_MAX);
        let _ = config.set_max_background(BACKGROUND_MAX);
        Ok(())
    }

    fn lookup(&self, _asked: &Asked, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        entry(self.folder.lookup(parent.0, name), reply);
    }

    fn forget(&self, _asked: &Asked, number: INodeNo, lookups: u64) {
        self.folder.forget(number.0, lookups);
    }

    fn getattr(&self, _asked: &Asked, number: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        attributes(number, self.folder.metadata(number.0), reply);
    }

    fn setattr(
        &self,
        _asked: &Asked,
        number: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _changed: Option<SystemTime>,
        handle: Option<FileHandle>,
        _created: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let changes = AttributeChanges { mode, owner: (uid, gid), size, times: (accessed, modified) };
        let done = self.set(number.0, changes, handle);
        attributes(number, done, reply);
    }

    fn readlink(&self, _asked: &Asked, number: INodeNo, reply: ReplyData) {
        data(self.folder.link_target(number.0), reply);
    }

    fn mkdir(&self, asked: &Asked, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        entry(self.folder.make_folder(parent.0, name, mode, caller(asked, umask)), reply);
    }

    fn unlink(&self, _asked: &Asked, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(self.folder.remove(parent.0, name, AtFlags::empty()), reply);
    }

    fn rmdir(&self, _asked: &Asked, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(self.folder.remove(parent.0, name, AtFlags::REMOVEDIR), reply);
    }

    fn symlink(&self, asked: &Asked, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        entry(self.folder.make_link(parent.0, name, target, caller(asked, 0)), reply);
    }

    fn rename(
        &self,
        _asked: &Asked,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        empty(self.folder.rename((parent.0, name), (new_parent.0, new_name), flags.bits()), reply);
    }

    fn link(&self, _asked: &Asked, number: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        entry(self.folder.make_name(number.0, parent.0, name), reply);
    }

    fn open(&self, _asked: &Asked, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let access = flags.acc_mode();
        let (read, write) = (access != OpenAccMode::O_WRONLY, access != OpenAccMode::O_RDONLY);
        match self.folder.open_file(number.0, read, write) {
            Ok(file) => reply.opened(self.add(FuseHandle::File(Arc::new(file))), past_the_page_cache()),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn create(
        &self,
        asked: &Asked,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let read = OpenFlags(flags).acc_mode() != OpenAccMode::O_WRONLY;
        let how = (read, mode, flags & EXCLUSIVE != 0);
        match self.folder.create(parent.0, name, how, caller(asked, umask)) {
            Ok((FuseEntry { number, metadata }, file)) => {
                let handle = self.add(FuseHandle::File(Arc::new(file)));
                let attributes = file_attributes(INodeNo(number), &metadata);
                reply.created(&REMEMBERED, &attributes, Generation(0), handle, past_the_page_cache());
            }
            Err(error) => reply.error(errno(error)),
        }
    }

    fn read(
        &self,
        _asked: &Asked,
        _number: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let arrived = Instant::now();
        let read = self.file(handle).and_then(|file| folder::read(&file, offset, size));
        let bytes = read.as_ref().map_or(0, Vec::len);
        self.queue.pass(arrived, DiskRequest::Read(bytes as u64), bytes, Box::new(move || data(read, reply)));
    }

    fn write(
        &self,
        _asked: &Asked,
        _number: INodeNo,
        handle: FileHandle,
        offset: u64,
        content: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let arrived = Instant::now();
        let written = self.file(handle).and_then(|file| folder::write(&file, offset, content));
        // The request fits into its buffer, which is smaller than 4 GiB.
        let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
        let answer = move || match written {
            Ok(()) => reply.written(length),
            Err(error) => reply.error(errno(error)),
        };
        self.queue.pass(arrived, DiskRequest::Write(length.into()), 0, Box::new(answer));
    }

    fn fsync(&self, _asked: &Asked, _number: INodeNo, handle: FileHandle, data_only: bool, reply: ReplyEmpty) {
        let arrived = Instant::now();
        let flushed = self.file(handle).and_then(|file| folder::flush(&file, data_only));
        self.queue.pass(arrived, DiskRequest::Flush, 0, Box::new(move || empty(flushed, reply)));
    }

    fn release(
        &self,
        _asked: &Asked,
        _number: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.open().handles.remove(&handle.0);
        reply.ok();
    }

    fn opendir(&self, _asked: &Asked, _number: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.opened(self.add(FuseHandle::Listing(Arc::default())), FopenFlags::empty());
    }

    fn readdir(&self, _asked: &Asked, number: INodeNo, handle: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        match self.listing(number.0, handle, offset) {
            Ok(listing) => {
                let rest = listing.iter().zip(1..).skip(usize::try_from(offset).unwrap_or(usize::MAX));
                for (listed, next) in rest {
                    if reply.add(INodeNo(listed.number), next, kind(listed.kind), &listed.name) {
                        break;
                    }
                }
                reply.ok();
            }
            Err(error) => reply.error(errno(error)),
        }
    }

    fn releasedir(&self, _asked: &Asked, _number: INodeNo, handle: FileHandle, _flags: OpenFlags, reply: ReplyEmpty) {
        self.open().handles.remove(&handle.0);
        reply.ok();
    }

    fn fsyncdir(&self, _asked: &Asked, _number: INodeNo, _handle: FileHandle, _data_only: bool, reply: ReplyEmpty) {
        self.queue.pass(Instant::now(), DiskRequest::Flush, 0, Box::new(move || reply.ok()));
    }

    fn statfs(&self, _asked: &Asked, _number: INodeNo, reply: ReplyStatfs) {
        match self.folder.space() {
            Ok(space) => {
                let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
                let (size, name, fragment) = (narrow(space.f_bsize), narrow(space.f_namemax), narrow(space.f_frsize));
                let (blocks, free, available) = (space.f_blocks, space.f_bfree, space.f_bavail);
                reply.statfs(blocks, free, available, space.f_files, space.f_ffree, size, name, fragment);
            }
            Err(error) => reply.error(errno(error)),
        }
    }

    fn setxattr(
        &self,
        _asked: &Asked,
        number: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        empty(self.folder.set_attribute(number.0, name, value, flags), reply);
    }

    fn getxattr(&self, _asked: &Asked, number: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        extended(self.folder.attribute(number.0, name, size), reply);
    }

    fn listxattr(&self, _asked: &Asked, number: INodeNo, size: u32, reply: ReplyXattr) {
        extended(self.folder.attributes(number.0, size), reply);
    }

    fn removexattr(&self, _asked: &Asked, number: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(self.folder.remove_attribute(number.0, name), reply);
    }

    fn fallocate(
        &self,
        _asked: &Asked,
        _number: INodeNo,
        handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        empty(self.file(handle).and_then(|file| folder::allocate(&file, mode, offset, length)), reply);
    }
}

/// Bypasses the page cache, and lets writes of several users overlap.
fn past_the_page_cache() -> FopenFlags {
    FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
}

fn caller(asked: &Asked, umask: u32) -> Caller {
    Caller { uid: asked.uid(), gid: asked.gid(), umask }
}

fn errno(error: rustix::io::Errno) -> Errno {
    Errno::from_i32(error.raw_os_error())
}

fn entry(done: ErrnoResult<FuseEntry>, reply: ReplyEntry) {
    match done {
        Ok(FuseEntry { number, metadata }) => {
            reply.entry(&REMEMBERED, &file_attributes(INodeNo(number), &metadata), Generation(0));
        }
        Err(error) => reply.error(errno(error)),
    }
}

fn attributes(number: INodeNo, done: ErrnoResult<Metadata>, reply: ReplyAttr) {
    match done {
        Ok(metadata) => reply.attr(&REMEMBERED, &file_attributes(number, &metadata)),
        Err(error) => reply.error(errno(error)),
    }
}

fn data(done: ErrnoResult<Vec<u8>>, reply: ReplyData) {
    match done {
        Ok(data) => reply.data(&data),
        Err(error) => reply.error(errno(error)),
    }
}

fn empty(done: ErrnoResult<()>, reply: ReplyEmpty) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(error)),
    }
}

fn extended(done: ErrnoResult<Sized>, reply: ReplyXattr) {
    match done {
        Ok(Sized::Length(length)) => reply.size(length),
        Ok(Sized::Value(value)) => reply.data(&value),
        Err(error) => reply.error(errno(error)),
    }
}

fn file_attributes(number: INodeNo, metadata: &Metadata) -> FileAttr {
    let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    FileAttr {
        ino: number,
        size: metadata.size(),
        blocks: metadata.blocks(),
        atime: system_time(metadata.atime(), metadata.atime_nsec()),
        mtime: system_time(metadata.mtime(), metadata.mtime_nsec()),
        ctime: system_time(metadata.ctime(), metadata.ctime_nsec()),
        crtime: UNIX_EPOCH,
        kind: kind(metadata.file_type()),
        perm: (metadata.mode() & 0o7777) as u16,
        nlink: narrow(metadata.nlink()),
        uid: metadata.uid(),
        gid: metadata.gid(),
        rdev: narrow(metadata.rdev()),
        blksize: narrow(metadata.blksize()),
        flags: 0,
    }
}

fn kind(kind: std::fs::FileType) -> FileType {
    match kind {
        kind if kind.is_dir() => FileType::Directory,
        kind if kind.is_symlink() => FileType::Symlink,
        kind if kind.is_fifo() => FileType::NamedPipe,
        kind if kind.is_socket() => FileType::Socket,
        kind if kind.is_block_device() => FileType::BlockDevice,
        kind if kind.is_char_device() => FileType::CharDevice,
        _ => FileType::RegularFile,
    }
}

/// Converts seconds and nanoseconds since 1970. Nanoseconds count forward even before 1970.
fn system_time(seconds: i64, nanoseconds: i64) -> SystemTime {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let start = if seconds < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
    start.unwrap_or(UNIX_EPOCH) + Duration::from_nanos(nanoseconds.unsigned_abs())
}

fn timespec(time: TimeOrNow) -> Timespec {
    let time = match time {
        TimeOrNow::Now => return Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        TimeOrNow::SpecificTime(time) => time,
    };
    let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => Timespec { tv_sec: seconds(since), tv_nsec: since.subsec_nanos().into() },
        Err(before) => {
            let before = before.duration();
            let (extra, nanoseconds) = match before.subsec_nanos() {
                0 => (0, 0),
                some => (1, 1_000_000_000 - some),
            };
            Timespec { tv_sec: -seconds(before) - extra, tv_nsec: nanoseconds.into() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1.5 s before 1970 is second -2 plus 500,000,000 ns.
    #[test]
    fn times_before_1970_keep_their_nanoseconds() {
        for (seconds, nanoseconds) in [(0, 0), (1, 5), (-2, 500_000_000), (-1, 0), (1_700_000_000, 999_999_999)] {
            let time = timespec(TimeOrNow::SpecificTime(system_time(seconds, nanoseconds)));
            assert_eq!((time.tv_sec, time.tv_nsec), (seconds, nanoseconds));
        }
        assert_eq!(system_time(-2, 500_000_000), UNIX_EPOCH - Duration::from_millis(1_500));
    }
}
