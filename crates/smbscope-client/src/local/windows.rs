//! File system calls of Windows, for folders of this machine and, by the system's redirector, of a server
//! (`\\server\share`). One open is one CreateFileW, so that a server gets the requests of any other program.
//!
//! Names can't reach anything outside the folder by themselves; links in it are followed.

#![allow(unsafe_code)]

use super::files::Lock;
use crate::file::{OpenParameters, access, options};
use std::fs::{self, File, Metadata};
use std::io;
use std::os::windows::fs::{FileExt, OpenOptionsExt};
use std::os::windows::io::AsRawHandle;
use std::path::{Component, Path, PathBuf};
use std::ptr;
use windows_sys::Win32::Foundation::{ERROR_LOCK_VIOLATION, HANDLE};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_ALLOCATION_INFO, FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_WRITE_THROUGH, FileAllocationInfo,
    GetVolumeInformationByHandleW, LOCKFILE_EXCLUSIVE_LOCK, LOCKFILE_FAIL_IMMEDIATELY, LockFileEx,
    SetFileInformationByHandle, UnlockFileEx,
};
use windows_sys::Win32::System::IO::OVERLAPPED;

pub(super) use std::fs::{DirEntry, OpenOptions};

/// A folder, as the system writes its path: with `\\?\`, which admits long paths and names of devices. Some redirectors
/// and RAM disks know no such path; the given one is used there.
#[derive(Debug)]
pub(super) struct Root(PathBuf);

pub(super) fn root(folder: &Path) -> io::Result<Root> {
    match folder.canonicalize() {
        Ok(found) if found.is_dir() => Ok(Root(found)),
        Ok(_) => Err(io::ErrorKind::NotADirectory.into()),
        Err(_) if folder.is_dir() => std::path::absolute(folder).map(Root),
        Err(error) => Err(error),
    }
}

impl Root {
    /// Returns the path of an entry. Fails for one that would leave the folder, or open another stream of a file.
    fn below(&self, path: &str) -> io::Result<PathBuf> {
        let mut whole = self.0.clone();
        for part in Path::new(path).components() {
            match part {
                Component::Normal(name) if !name.to_string_lossy().contains(':') => whole.push(name),
                Component::CurDir => {}
                _ => return Err(io::ErrorKind::InvalidFilename.into()),
            }
        }
        Ok(whole)
    }

    pub(super) fn is_dir(&self, path: &str) -> bool {
        self.below(path).is_ok_and(|path| path.is_dir())
    }

    pub(super) fn create_dir(&self, path: &str) -> io::Result<()> {
        fs::create_dir(self.below(path)?)
    }

    pub(super) fn remove_dir(&self, path: &str) -> io::Result<()> {
        fs::remove_dir(self.below(path)?)
    }

    pub(super) fn remove_file(&self, path: &str) -> io::Result<()> {
        fs::remove_file(self.below(path)?)
    }

    pub(super) fn read_dir(&self, path: &str) -> io::Result<fs::ReadDir> {
        fs::read_dir(self.below(path)?)
    }

    pub(super) fn symlink_metadata(&self, path: &str) -> io::Result<Metadata> {
        self.below(path)?.symlink_metadata()
    }

    pub(super) fn rename(&self, from: &str, to_root: &Root, to: &str) -> io::Result<()> {
        fs::rename(self.below(from)?, to_root.below(to)?)
    }
}

/// Returns the options to open a file, with the flags that this system has for the parameters.
pub(super) fn how(open: &OpenParameters<'_>) -> OpenOptions {
    let through = if open.options & options::WRITE_THROUGH != 0 { FILE_FLAG_WRITE_THROUGH } else { 0 };
    let mut how = OpenOptions::new();
    // Without this flag, directories can't be opened.
    how.custom_flags(FILE_FLAG_BACKUP_SEMANTICS | through);
    // Times can't be set through a file that is open for reading only.
    if open.access & access::WRITE_ATTRIBUTES != 0 {
        how.access_mode(open.access);
    }
    how
}

pub(super) fn open(root: &Root, path: &str, how: &OpenOptions) -> io::Result<File> {
    how.open(root.below(path)?)
}

pub(super) fn open_directory(root: &Root, path: &str) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(root.below(path)?)
}

pub(super) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    file.seek_read(buffer, offset)
}

pub(super) fn write_all_at(file: &File, mut data: &[u8], mut offset: u64) -> io::Result<()> {
    while !data.is_empty() {
        match file.seek_write(data, offset)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => (data, offset) = (&data[written..], offset + written as u64),
        }
    }
    Ok(())
}

fn handle(file: &File) -> HANDLE {
    file.as_raw_handle()
}

fn succeeded(result: i32) -> io::Result<()> {
    if result != 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

pub(super) fn query_file_system(file: &File) -> io::Result<()> {
    let (none, mut serial) = (ptr::null_mut(), 0u32);
    // SAFETY: the handle is open, `serial` can be written, and no other value is asked for.
    succeeded(unsafe {
        GetVolumeInformationByHandleW(handle(file), none, 0, &mut serial, none.cast(), none.cast(), none, 0)
    })
}

pub(super) fn allocate(file: &File, size: u64) -> io::Result<()> {
    let size = i64::try_from(size).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
    let wanted = FILE_ALLOCATION_INFO { AllocationSize: size };
    let length = size_of::<FILE_ALLOCATION_INFO>() as u32;
    // SAFETY: the handle is open, and `wanted` is of the class and length that are named.
    succeeded(unsafe {
        SetFileInformationByHandle(handle(file), FileAllocationInfo, ptr::from_ref(&wanted).cast(), length)
    })
}

pub(super) fn set_lock(file: &File, kind: Lock, offset: u64, length: u64) -> io::Result<()> {
    let [low, high] = [length as u32, (length >> 32) as u32];
    let mut place = OVERLAPPED::default();
    place.Anonymous.Anonymous.Offset = offset as u32;
    place.Anonymous.Anonymous.OffsetHigh = (offset >> 32) as u32;
    let exclusive = if matches!(kind, Lock::Exclusive) { LOCKFILE_EXCLUSIVE_LOCK } else { 0 };
    // SAFETY: the handle is open and not for overlapped input and output, so both calls end before they return.
    let result = unsafe {
        match kind {
            Lock::None => UnlockFileEx(handle(file), 0, low, high, &mut place),
            _ => LockFileEx(handle(file), LOCKFILE_FAIL_IMMEDIATELY | exclusive, 0, low, high, &mut place),
        }
    };
    succeeded(result).map_err(|error| match error.raw_os_error() {
        Some(code) if code as u32 == ERROR_LOCK_VIOLATION => io::ErrorKind::WouldBlock.into(),
        _ => error,
    })
}
