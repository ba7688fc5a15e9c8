//! Open, close, read, write, flush, lock (MS-CIFS 3.2.4.5 to 3.2.4.24).

use super::connection::{PID, malformed};
use super::{Smb1ClientSession, fid_of, rooted};
use crate::ClientError;
use crate::file::{ByteRangeLock, FileHandle, OpenParameters, OpenResult, ReadRetention, options};
use crate::limits::Allowance;
use crate::sample::RequestDetails;
use smbscope_model::Command;
use smbscope_wire::smb1;
use smbscope_wire::smb1::messages::{
    self, Close, Flush, LockingAndx, NtCreateAndx, NtCreateAndxResponse, OpenAndx, OpenAndxResponse, ReadAndx,
    ReadAndxResponse, WriteAndx, WriteAndxResponse, create_flags, lock_type, search_attributes,
};
use smbscope_wire::status::NtStatus;

/// A short read of at least this many bytes may be a server's own limit rather than the end of the file.
const SERVERS_OWN_LIMIT: u32 = 0xf000;

impl Smb1ClientSession {
    pub async fn open(&mut self, open: &OpenParameters<'_>) -> Result<OpenResult, ClientError> {
        let oplock = self.oplocks && open.options & options::DIRECTORY == 0;
        let create = NtCreateAndx {
            flags: if oplock { create_flags::REQUEST_OPLOCK | create_flags::REQUEST_OPBATCH } else { 0 },
            desired_access: open.access,
            allocation_size: 0,
            ext_file_attributes: open.attributes,
            share_access: open.share,
            create_disposition: open.disposition as u32,
            create_options: open.options,
            impersonation_level: messages::IMPERSONATE,
            name: rooted(&mut self.path, open.path).into(),
        };
        let reply = self.connection.call(&create, RequestDetails::default()).await?;
        let opened = NtCreateAndxResponse::parse(self.connection.message(&reply)).map_err(malformed)?;
        Ok(OpenResult {
            handle: self.opened(opened.fid),
            size: opened.end_of_file,
            attributes: opened.ext_file_attributes,
            action: opened.create_action,
        })
    }

    /// Opens a file like clients before NT_CREATE_ANDX. AccessMode and OpenMode are defined in MS-CIFS 2.2.4.41.1.
    pub async fn open_andx(&mut self, path: &str, access_mode: u16, open_mode: u16) -> Result<OpenResult, ClientError> {
        let open = OpenAndx {
            flags: 0,
            access_mode,
            search_attributes: search_attributes::HIDDEN | search_attributes::SYSTEM,
            file_attributes: 0,
            open_mode,
            allocation_size: 0,
            name: rooted(&mut self.path, path).into(),
        };
        let reply = self.connection.call(&open, RequestDetails::default()).await?;
        let opened = OpenAndxResponse::parse(self.connection.message(&reply)).map_err(malformed)?;
        Ok(OpenResult {
            handle: self.opened(opened.fid),
            size: opened.file_data_size.into(),
            attributes: opened.file_attributes.into(),
            action: u32::from(opened.open_results & 3),
        })
    }

    fn opened(&mut self, fid: u16) -> FileHandle {
        let handle = FileHandle::from(fid);
        if let Some(sample) = self.connection.samples.last_mut() {
            sample.file_id = Some(handle.0);
        }
        handle
    }

    pub async fn close(&mut self, handle: FileHandle) -> Result<(), ClientError> {
        let fid = fid_of(handle);
        self.connection.run(&Close::new(fid), RequestDetails::file(fid)).await
    }

    /// Reads. At and past the end of the file, SMB1 succeeds with no bytes: this returns STATUS_END_OF_FILE, like SMB2,
    /// while the sample keeps the server's status.
    pub async fn read(&mut self, handle: FileHandle, offset: u64, length: u32) -> Result<&[u8], ClientError> {
        self.read_in_parts(handle, offset, length, ReadRetention::All).await?;
        if self.gathered.is_empty() { self.data() } else { Ok(&self.gathered) }
    }

    pub async fn skim(&mut self, handle: FileHandle, offset: u64, length: u32) -> Result<u64, ClientError> {
        Ok(self.read_in_parts(handle, offset, length, ReadRetention::Nothing).await?.into())
    }

    /// Joins the data of several commands in `gathered`, unless discarded. A single command leaves it empty.
    async fn read_in_parts(
        &mut self,
        handle: FileHandle,
        offset: u64,
        length: u32,
        kept: ReadRetention,
    ) -> Result<u32, ClientError> {
        let fid = fid_of(handle);
        self.gathered.clear();
        let mut total = 0;
        let mut allowance = None;
        loop {
            let rest = length - total;
            let asked = rest.min(self.facts.max_read);
            let read = self.read_once(fid, offset.saturating_add(total.into()), asked).await?;
            let is_last = read == rest || read == 0 || (read < asked && read < SERVERS_OWN_LIMIT);
            if total == 0 && read == 0 && length > 0 {
                let command = Command::Smb1(smb1::Smb1Command::READ_ANDX);
                return Err(ClientError::Status { command, status: NtStatus::END_OF_FILE });
            }
            if kept == ReadRetention::All && !(total == 0 && is_last) {
                let mut gathered = std::mem::take(&mut self.gathered);
                gathered.extend_from_slice(self.data()?);
                self.gathered = gathered;
            }
            total += read;
            if is_last {
                return Ok(total);
            }
            let timeout = self.connection.timeout;
            allowance.get_or_insert_with(|| Allowance::of_operation("a read", timeout)).check()?;
        }
    }

    /// Repeats a raw read that returned nothing without raw mode, because an empty response is ambiguous.
    async fn read_once(&mut self, fid: u16, offset: u64, max_count: u32) -> Result<u32, ClientError> {
        self.raw_answer = self.raw_is_possible() && max_count > 0;
        if self.raw_answer {
            let read = self.connection.read_raw(fid, offset, max_count as u16).await?;
            if read > 0 {
                return Ok(read);
            }
            self.raw_answer = false;
        }
        let read = ReadAndx::new(fid, offset, max_count);
        self.connection.call(&read, RequestDetails::range(fid, offset, max_count)).await?;
        let length = u32::try_from(self.data()?.len()).unwrap_or(u32::MAX);
        if length > max_count {
            return Err(ClientError::Protocol("READ_ANDX returned more than requested".to_owned()));
        }
        Ok(length)
    }

    fn data(&self) -> Result<&[u8], ClientError> {
        let message = self.connection.link.frame();
        if self.raw_answer {
            return Ok(message);
        }
        Ok(ReadAndxResponse::parse(message).map_err(malformed)?.data)
    }

    /// Returns false while a watch is outstanding, because its response could be mistaken for data.
    pub(super) fn raw_is_possible(&self) -> bool {
        self.raw && self.watch.is_none()
    }

    pub async fn write(&mut self, handle: FileHandle, offset: u64, data: &[u8]) -> Result<(), ClientError> {
        let fid = fid_of(handle);
        let (mut offset, mut rest) = (offset, data);
        let mut allowance = None;
        loop {
            let part = &rest[..rest.len().min(self.facts.max_write as usize)];
            let written = self.write_once(fid, offset, part).await?;
            rest = rest
                .get(written as usize..)
                .filter(|_| written as usize <= part.len())
                .ok_or_else(|| ClientError::Protocol(format!("a write of {} bytes wrote {written}", part.len())))?;
            if rest.is_empty() {
                return Ok(());
            }
            if written == 0 {
                return Err(ClientError::Protocol("a write succeeded and wrote nothing".to_owned()));
            }
            offset = offset.saturating_add(written.into());
            let timeout = self.connection.timeout;
            allowance.get_or_insert_with(|| Allowance::of_operation("a write", timeout)).check()?;
        }
    }

    async fn write_once(&mut self, fid: u16, offset: u64, data: &[u8]) -> Result<u32, ClientError> {
        if self.raw_is_possible() && !data.is_empty() {
            return self.connection.write_raw(fid, offset, data).await;
        }
        let about = RequestDetails::range(fid, offset, data.len() as u32);
        let write = WriteAndx { fid, offset, write_mode: 0, padding: 1, data };
        let reply = self.connection.call(&write, about).await?;
        Ok(WriteAndxResponse::parse(self.connection.message(&reply)).map_err(malformed)?.total())
    }

    pub async fn flush(&mut self, handle: FileHandle) -> Result<(), ClientError> {
        let fid = fid_of(handle);
        self.connection.run(&Flush { fid }, RequestDetails::file(fid)).await
    }

    pub async fn lock(&mut self, handle: FileHandle, range: ByteRangeLock) -> Result<(), ClientError> {
        let fid = fid_of(handle);
        let shared = if range.exclusive { 0 } else { lock_type::SHARED_LOCK };
        let lock = LockingAndx {
            fid,
            type_of_lock: lock_type::LARGE_FILES | shared,
            new_oplock_level: 0,
            timeout: if range.wait { u32::MAX } else { 0 },
            unlocks: &[],
            locks: &[messages::LockingAndxRange { pid: PID, offset: range.offset, length: range.length }],
        };
        let about = RequestDetails { waits: range.wait, ..about_lock(fid, range.offset, range.length) };
        self.connection.run(&lock, about).await
    }

    pub async fn unlock(&mut self, handle: FileHandle, offset: u64, length: u64) -> Result<(), ClientError> {
        let fid = fid_of(handle);
        let unlock = LockingAndx {
            fid,
            type_of_lock: lock_type::LARGE_FILES,
            new_oplock_level: 0,
            timeout: 0,
            unlocks: &[messages::LockingAndxRange { pid: PID, offset, length }],
            locks: &[],
        };
        self.connection.run(&unlock, about_lock(fid, offset, length)).await
    }
}

fn about_lock(fid: u16, offset: u64, length: u64) -> RequestDetails {
    RequestDetails::range(fid, offset, u32::try_from(length).unwrap_or(u32::MAX))
}
