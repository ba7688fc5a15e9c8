//! Calls on open files of a local folder: open, close, read, write, flush, lock, query and set; and operations on paths,
//! each made of an open, the operation and a close, as in an SMB2 client.

use super::system::{self, DirEntry, OpenOptions, Root};
use super::{LocalSession, TRANSFER_MAX};
use crate::file::{
    ByteRangeLock, CreateDisposition, FileHandle, FileRange, Info, ListingEntry, OpenParameters, OpenResult,
    ReadRetention, SetInfo, access, options,
};
use crate::limits::Listing;
use crate::local::{LocalCallDetails, LocalRefusal};
use crate::{ClientError, limits};
use smbscope_model::{FileId, Subcommand};
use smbscope_wire::fscc::Data;
use smbscope_wire::smb2::Smb2Command;
use smbscope_wire::status::NtStatus;
use std::fs::{File, FileTimes};
use std::io::{self, ErrorKind};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_NORMAL and FILE_ATTRIBUTE_REPARSE_POINT (MS-FSCC 2.6).
const DIRECTORY: u32 = 0x10;
const NORMAL: u32 = 0x80;
const REPARSE_POINT: u32 = 0x400;
/// CreateAction (MS-SMB2 2.2.14).
const OPENED: u32 = 1;
const CREATED: u32 = 2;
const OVERWRITTEN: u32 = 3;
/// 1 January 1970 as a FILETIME (MS-DTYP 2.3.3): 100 ns units since 1601.
const UNIX_EPOCH_FILETIME: u64 = 116_444_736_000_000_000;
const LOCK_PAUSE: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(super) struct LocalOpenFile {
    pub(super) file: File,
    pub(super) path: String,
    is_directory: bool,
    delete_on_close: bool,
}

impl LocalSession {
    pub async fn open(&mut self, open: &OpenParameters<'_>) -> Result<OpenResult, ClientError> {
        let path = local(open.path);
        let about = LocalCallDetails { path: Some(&path), ..LocalCallDetails::default() };
        let call = self.call(Smb2Command::CREATE, about, |session| {
            let (file, action) = open_in(&session.root, &path, open)?;
            let metadata = file.metadata()?;
            let is_directory = metadata.is_dir();
            match (is_directory, metadata.is_file()) {
                (true, _) if open.options & options::NON_DIRECTORY != 0 => Err(ErrorKind::IsADirectory),
                (false, true) if open.options & options::DIRECTORY != 0 => Err(ErrorKind::NotADirectory),
                // Opening a device or a pipe could block forever.
                (false, false) => Err(ErrorKind::PermissionDenied),
                _ => Ok(()),
            }?;
            let handle = FileHandle(FileId::Smb2 { persistent: 0, volatile: session.next });
            let delete_on_close = open.options & options::DELETE_ON_CLOSE != 0;
            session
                .open
                .insert(session.next, LocalOpenFile { file, path: path.clone(), is_directory, delete_on_close });
            session.next += 1;
            let attributes = if is_directory { DIRECTORY } else { NORMAL };
            io::Result::Ok(OpenResult { handle, size: metadata.len(), attributes, action })
        });
        call.await
    }

    /// Closes the file, and removes it if it is marked for deletion.
    pub async fn close(&mut self, handle: FileHandle) -> Result<(), ClientError> {
        self.call(Smb2Command::CLOSE, LocalCallDetails::file(handle), |session| {
            let open = session.open.remove(&number(handle)).ok_or(ErrorKind::InvalidInput)?;
            match (open.delete_on_close, open.is_directory) {
                (false, _) => Ok(()),
                (true, true) => session.root.remove_dir(&open.path),
                (true, false) => session.root.remove_file(&open.path),
            }
        })
        .await
    }

    pub async fn read(&mut self, handle: FileHandle, offset: u64, length: u32) -> Result<&[u8], ClientError> {
        self.read_in_parts(handle, offset, length, ReadRetention::All).await?;
        Ok(&self.data)
    }

    /// Reads in calls of at most 8 MiB into the same buffer. Returns the number of bytes.
    pub async fn skim(&mut self, handle: FileHandle, offset: u64, length: u32) -> Result<u64, ClientError> {
        self.read_in_parts(handle, offset, length, ReadRetention::Nothing).await
    }

    async fn read_in_parts(
        &mut self,
        handle: FileHandle,
        offset: u64,
        length: u32,
        kept: ReadRetention,
    ) -> Result<u64, ClientError> {
        self.data.clear();
        let mut total = 0;
        for FileRange { offset: at, length: part } in (FileRange { offset, length }).cut(TRANSFER_MAX) {
            if kept == ReadRetention::Nothing {
                self.data.clear();
            }
            match self.read_once(handle, at, part).await {
                Ok(read) => {
                    total += read as u64;
                    if read < part as usize {
                        break;
                    }
                }
                // After the first part, the end of the file is not an error.
                Err(_) if at > offset => break,
                Err(error) => return Err(error),
            }
        }
        Ok(total)
    }

    pub async fn write(&mut self, handle: FileHandle, offset: u64, data: &[u8]) -> Result<(), ClientError> {
        let mut at = offset;
        for part in data.chunks(TRANSFER_MAX as usize).chain(data.is_empty().then_some(data)) {
            let length = part.len() as u32;
            let about = LocalCallDetails {
                offset: Some(at),
                length: Some(length),
                written: length,
                ..LocalCallDetails::file(handle)
            };
            self.call(Smb2Command::WRITE, about, |session| system::write_all_at(session.file(handle)?, part, at))
                .await?;
            at = at.saturating_add(length.into());
        }
        Ok(())
    }

    pub async fn flush(&mut self, handle: FileHandle) -> Result<(), ClientError> {
        self.call(Smb2Command::FLUSH, LocalCallDetails::file(handle), |session| session.file(handle)?.sync_all()).await
    }

    pub async fn lock(&mut self, handle: FileHandle, range: ByteRangeLock) -> Result<(), ClientError> {
        let allowance = limits::Allowance::of_operation("a lock", self.timeout);
        let kind = if range.exclusive { Lock::Exclusive } else { Lock::Shared };
        loop {
            let taken = self.set_lock(handle, range.offset, range.length, kind).await;
            if taken.is_ok() || !range.wait {
                return taken;
            }
            allowance.check()?;
            tokio::time::sleep(LOCK_PAUSE).await;
        }
    }

    pub async fn unlock(&mut self, handle: FileHandle, offset: u64, length: u64) -> Result<(), ClientError> {
        self.set_lock(handle, offset, length, Lock::None).await
    }

    /// Queries the metadata of an open file, regardless of the class. Returns no bytes.
    pub async fn query_file(&mut self, handle: FileHandle, info: Info) -> Result<&[u8], ClientError> {
        let about = LocalCallDetails { subcommand: Some(Subcommand::Info(info)), ..LocalCallDetails::file(handle) };
        self.call(Smb2Command::QUERY_INFO, about, |session| match info {
            Info::FileSystem(_) => system::query_file_system(session.file(handle)?),
            _ => session.file(handle)?.metadata().map(drop),
        })
        .await?;
        Ok(&[])
    }

    pub async fn set_file(&mut self, handle: FileHandle, set: SetInfo<'_>) -> Result<(), ClientError> {
        let level = Data::from(set).level();
        let about = LocalCallDetails { subcommand: Some(Subcommand::Info(level)), ..LocalCallDetails::file(handle) };
        self.call(Smb2Command::SET_INFO, about, |session| match set {
            SetInfo::Basic { last_access, last_write, .. } => {
                let times =
                    [(last_access, FileTimes::set_accessed as fn(_, _) -> _), (last_write, FileTimes::set_modified)];
                let times = times.into_iter().filter(|(time, _)| *time != 0);
                let times = times.fold(FileTimes::new(), |times, (time, set)| set(times, system_time(time)));
                session.file(handle)?.set_times(times)
            }
            SetInfo::EndOfFile(size) => session.file(handle)?.set_len(size),
            SetInfo::Allocation(size) => system::allocate(session.file(handle)?, size),
            SetInfo::Delete(delete_on_close) => session.set_delete_on_close(handle, delete_on_close),
            SetInfo::Rename { path, replace } => session.rename_open(handle, &local(path), replace),
        })
        .await
    }

    fn file(&self, handle: FileHandle) -> io::Result<&File> {
        Ok(&self.open.get(&number(handle)).ok_or(ErrorKind::InvalidInput)?.file)
    }

    async fn read_once(&mut self, handle: FileHandle, offset: u64, length: u32) -> Result<usize, ClientError> {
        let about = LocalCallDetails { offset: Some(offset), length: Some(length), ..LocalCallDetails::file(handle) };
        self.call(Smb2Command::READ, about, |session| {
            let mut data = std::mem::take(&mut session.data);
            let start = data.len();
            data.resize(start + length as usize, 0);
            let read = session.file(handle).and_then(|file| read_at_most(file, &mut data[start..], offset));
            data.truncate(start + read.as_ref().map_or(0, |read| *read));
            session.data = data;
            match read? {
                0 if length > 0 => Err(io::Error::from(ErrorKind::UnexpectedEof)),
                read => Ok(read),
            }
        })
        .await
    }

    /// Marks the file for deletion. Fails for a directory that isn't empty (MS-FSA 2.1.5.15.3).
    fn set_delete_on_close(&mut self, handle: FileHandle, delete_on_close: bool) -> io::Result<()> {
        let open = self.open.get_mut(&number(handle)).ok_or(ErrorKind::InvalidInput)?;
        if delete_on_close && open.is_directory && self.root.read_dir(&open.path)?.next().is_some() {
            return Err(ErrorKind::DirectoryNotEmpty.into());
        }
        open.delete_on_close = delete_on_close;
        Ok(())
    }

    fn rename_open(&mut self, handle: FileHandle, to: &str, replace: bool) -> io::Result<()> {
        let open = self.open.get_mut(&number(handle)).ok_or(ErrorKind::InvalidInput)?;
        if !replace && self.root.symlink_metadata(to).is_ok() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        self.root.rename(&open.path, &self.root, to)?;
        to.clone_into(&mut open.path);
        Ok(())
    }

    async fn set_lock(&mut self, handle: FileHandle, offset: u64, length: u64, kind: Lock) -> Result<(), ClientError> {
        let about = LocalCallDetails {
            offset: Some(offset),
            length: u32::try_from(length).ok(),
            ..LocalCallDetails::file(handle)
        };
        self.call(Smb2Command::LOCK, about, |session| system::set_lock(session.file(handle)?, kind, offset, length))
            .await
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Lock {
    Shared,
    Exclusive,
    None,
}

fn local(path: &str) -> String {
    if path.is_empty() { ".".to_owned() } else { path.replace('\\', "/") }
}

fn number(handle: FileHandle) -> u64 {
    match handle.0 {
        FileId::Smb2 { volatile, .. } => volatile,
        FileId::Smb1(_) => 0,
    }
}

fn open_in(root: &Root, path: &str, open: &OpenParameters<'_>) -> io::Result<(File, u32)> {
    if open.options & options::DIRECTORY != 0 {
        let action = match open.disposition {
            CreateDisposition::Open => OPENED,
            CreateDisposition::OpenIf if root.is_dir(path) => OPENED,
            _ => root.create_dir(path).map(|()| CREATED)?,
        };
        return Ok((system::open_directory(root, path)?, action));
    }
    const WRITES: u32 = access::WRITE_DATA | access::APPEND_DATA | access::GENERIC_WRITE;
    const READS: u32 = access::READ_DATA | access::GENERIC_READ | access::MAXIMUM_ALLOWED;
    let makes = !matches!(open.disposition, CreateDisposition::Open);
    let writes = open.access & WRITES != 0 || makes;
    let mut how = system::how(open);
    how.read(open.access & READS != 0 || !writes).write(writes);
    let with = |how: &OpenOptions| system::open(root, path, how);
    let existing = |how: &mut OpenOptions, truncate: bool| with(how.truncate(truncate));
    let (overwrites, creates) = match open.disposition {
        CreateDisposition::Open => (false, false),
        CreateDisposition::Create => return Ok((with(how.create_new(true))?, CREATED)),
        CreateDisposition::OpenIf => (false, true),
        CreateDisposition::Overwrite => (true, false),
        CreateDisposition::OverwriteIf | CreateDisposition::Supersede => (true, true),
    };
    match existing(&mut how, overwrites) {
        Err(error) if error.kind() == ErrorKind::NotFound && creates => {
            Ok((with(how.truncate(false).create(true))?, CREATED))
        }
        opened => Ok((opened?, if overwrites { OVERWRITTEN } else { OPENED })),
    }
}

fn read_at_most(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match system::read_at(file, &mut buffer[filled..], offset.saturating_add(filled as u64)) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn system_time(filetime: u64) -> SystemTime {
    let since = filetime.saturating_sub(UNIX_EPOCH_FILETIME);
    UNIX_EPOCH + Duration::new(since / 10_000_000, (since % 10_000_000) as u32 * 100)
}

impl LocalSession {
    pub async fn query_path(&mut self, path: &str, info: Info) -> Result<&[u8], ClientError> {
        let handle = self.open(&OpenParameters::existing(path, access::READ_ATTRIBUTES, 0)).await?.handle;
        let queried = self.query_file(handle, info).await.map(drop);
        let closed = self.close(handle).await;
        queried.and(closed).map(|()| [].as_slice())
    }

    pub async fn query_file_system(&mut self, info: Info) -> Result<&[u8], ClientError> {
        self.query_path("", info).await
    }

    /// Lists the entries that match the last part of the path, at most `most` of them unless it is 0.
    pub async fn list(
        &mut self,
        pattern: &str,
        info: Info,
        most: usize,
        mut entries: Option<&mut Vec<ListingEntry>>,
    ) -> Result<usize, ClientError> {
        if let Some(entries) = &mut entries {
            entries.clear();
        }
        let (path, pattern) = pattern.rsplit_once('\\').unwrap_or(("", pattern));
        let open = OpenParameters::existing(path, access::READ_DATA | access::READ_ATTRIBUTES, options::DIRECTORY);
        let handle = self.open(&open).await?.handle;
        let about = LocalCallDetails { subcommand: Some(Subcommand::Info(info)), ..LocalCallDetails::file(handle) };
        let path = local(path);
        let mut found = Vec::new();
        let listed = self.call(Smb2Command::QUERY_DIRECTORY, about, |session| {
            for entry in session.root.read_dir(&path)? {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                if matches(pattern, &name) {
                    found.push(read(&entry, name)?);
                    if found.len() == most {
                        break;
                    }
                }
            }
            // A server's answer to a pattern without matches. "." matches every other pattern (MS-SMB2 3.3.5.18).
            if found.is_empty() && !matches(pattern, ".") {
                Err(LocalRefusal(NtStatus::NO_SUCH_FILE))
            } else {
                Ok(found.len())
            }
        });
        let listed = listed.await;
        let mut limit = Listing::new(0, None, self.timeout);
        let listed = listed.and_then(|count| {
            found.iter().try_for_each(|entry| limit.entry(entry.name.len()))?;
            if let Some(entries) = entries {
                *entries = found;
            }
            Ok(count)
        });
        let closed = self.close(handle).await;
        listed.and_then(|count| closed.map(|()| count))
    }
}

/// Reads an entry's metadata. An entry removed in the meantime has size 0.
fn read(entry: &DirEntry, name: String) -> io::Result<ListingEntry> {
    let metadata = match entry.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(ListingEntry { name, size: 0, attributes: NORMAL });
        }
        metadata => metadata?,
    };
    let attributes = match (metadata.is_dir(), metadata.is_symlink()) {
        (_, true) => REPARSE_POINT,
        (true, false) => DIRECTORY,
        (false, false) => NORMAL,
    };
    Ok(ListingEntry { name, size: metadata.len(), attributes })
}

/// Matches `*` and `?`; `*.*` matches every name (MS-FSA 2.1.4.4). Case-sensitive, like the file system.
fn matches(pattern: &str, name: &str) -> bool {
    pattern == "*.*" || wildmatch::WildMatch::new(pattern).matches(name)
}
