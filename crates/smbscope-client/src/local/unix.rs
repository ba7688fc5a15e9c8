//! File system calls of Linux and other Unix systems. Links that lead outside the folder are not followed (`cap_std`).

use super::files::Lock;
use crate::file::{OpenParameters, options};
use cap_std::ambient_authority;
use cap_std::fs::OpenOptionsExt;
use rustix::fs::OFlags;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

pub(super) use cap_std::fs::{Dir as Root, DirEntry, OpenOptions};

pub(super) fn root(folder: &Path) -> io::Result<Root> {
    Root::open_ambient_dir(folder, ambient_authority())
}

/// Returns the options to open a file, with the flags that this system has for the parameters.
pub(super) fn how(open: &OpenParameters<'_>) -> OpenOptions {
    // NONBLOCK keeps a pipe in place of a file from blocking the open.
    let through = if open.options & options::WRITE_THROUGH != 0 { OFlags::DSYNC } else { OFlags::empty() };
    let mut how = OpenOptions::new();
    how.custom_flags((OFlags::NONBLOCK | through).bits() as i32);
    how
}

pub(super) fn open(root: &Root, path: &str, how: &OpenOptions) -> io::Result<File> {
    root.open_with(path, how).map(cap_std::fs::File::into_std)
}

pub(super) fn open_directory(root: &Root, path: &str) -> io::Result<File> {
    root.open(path).map(cap_std::fs::File::into_std)
}

pub(super) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    file.read_at(buffer, offset)
}

pub(super) fn write_all_at(file: &File, data: &[u8], offset: u64) -> io::Result<()> {
    file.write_all_at(data, offset)
}

pub(super) fn query_file_system(file: &File) -> io::Result<()> {
    Ok(rustix::fs::fstatvfs(file).map(drop)?)
}

/// Reserves space without changing the size of the file.
#[cfg(target_os = "linux")]
pub(super) fn allocate(file: &File, size: u64) -> io::Result<()> {
    Ok(rustix::fs::fallocate(file, rustix::fs::FallocateFlags::KEEP_SIZE, 0, size.max(1))?)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn allocate(_file: &File, _size: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Locks the open file description, so that users of one process block each other too (fcntl(2)).
#[cfg(target_os = "linux")]
pub(super) fn set_lock(file: &File, kind: Lock, offset: u64, length: u64) -> io::Result<()> {
    use nix::fcntl::{FcntlArg, fcntl};
    use nix::libc::{F_RDLCK, F_UNLCK, F_WRLCK, SEEK_SET, flock};
    let kind = match kind {
        Lock::Shared => F_RDLCK,
        Lock::Exclusive => F_WRLCK,
        Lock::None => F_UNLCK,
    };
    let signed = |value: u64| i64::try_from(value).map_err(|_| io::Error::from(io::ErrorKind::Unsupported));
    let lock = flock {
        l_type: kind as i16,
        l_whence: SEEK_SET as i16,
        l_start: signed(offset)?,
        l_len: signed(length)?,
        l_pid: 0,
    };
    Ok(fcntl(file, FcntlArg::F_OFD_SETLK(&lock)).map(drop)?)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn set_lock(_file: &File, _kind: Lock, _offset: u64, _length: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
