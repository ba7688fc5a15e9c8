//! Open, close, read, write, flush, lock (MS-CIFS 3.2.4.5 to 3.2.4.24), and bulk transfers. A queue has several reads or
//! writes outstanding, below the server's MaxMpxCount (3.2.4.1.5).
//!
//! READ_RAW and WRITE_RAW (2.2.4.22, 2.2.4.25) move data in frames without a header, which only their position assigns
//! to a request. So nothing else may be outstanding, not even an oplock break.

use super::connection::{OUTSTANDING_MAX, PID, Smb1Connection, Smb1Family, Smb1Reply, malformed};
use super::{Smb1ClientSession, fid_of, rooted};
use crate::connection::{TransferCommands, transfer_ranges};
use crate::file::{ByteRangeLock, FileHandle, OpenParameters, OpenResult, ReadRetention, options};
use crate::limits::Allowance;
use crate::sample::RequestDetails;
use crate::{ClientError, FileRange, Moved, SessionOptions, TransferDirection};
use smbscope_model::{Command, Subcommand};
use smbscope_wire::smb1::messages::{
    self, Close, Flush, LockingAndx, NtCreateAndx, NtCreateAndxResponse, OpenAndx, OpenAndxResponse, ReadAndx,
    ReadAndxResponse, ReadRaw, WriteAndx, WriteAndxResponse, WriteComplete, WriteRaw, capabilities, create_flags,
    lock_type, search_attributes,
};
use smbscope_wire::smb1::{Smb1Command, Smb1Header};
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
                let command = Command::Smb1(Smb1Command::READ_ANDX);
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

impl Smb1ClientSession {
    /// Returns how many commands of a transfer may be outstanding, or `None` if they go one by one: raw mode has no
    /// MIDs.
    pub(crate) fn queue_depth(&self, wanted: u32) -> Option<u32> {
        let watches = u16::from(self.watch.is_some());
        let allowed = u32::from(self.server.max_mpx_count.saturating_sub(watches)).min(OUTSTANDING_MAX as u32);
        let depth = wanted.min(allowed);
        (depth >= 2 && !self.raw_is_possible()).then_some(depth)
    }

    /// Reads or writes the ranges in order, with `depth` commands outstanding.
    pub(crate) async fn transfer_many(
        &mut self,
        handle: FileHandle,
        ranges: &[FileRange],
        depth: u32,
        direction: TransferDirection<'_>,
    ) -> Result<Moved, ClientError> {
        let max = direction.largest(self.facts.max_read, self.facts.max_write);
        self.connection.forget_abandoned();
        transfer_ranges(self, handle, ranges, (max, depth), direction).await
    }
}

impl TransferCommands for Smb1ClientSession {
    type Family = Smb1Family;

    fn connection(&mut self) -> &mut Smb1Connection {
        &mut self.connection
    }

    fn has_room(&self, _length: u32, _outstanding: usize) -> bool {
        true
    }

    async fn post_read(&mut self, handle: FileHandle, part: FileRange) -> Result<u64, ClientError> {
        let FileRange { offset, length } = part;
        let read = ReadAndx::new(fid_of(handle), offset, length);
        self.connection.post(&read, RequestDetails::range(handle, offset, length)).await
    }

    async fn post_write(&mut self, handle: FileHandle, offset: u64, data: &[u8]) -> Result<u64, ClientError> {
        let write = WriteAndx { fid: fid_of(handle), offset, write_mode: 0, padding: 1, data };
        self.connection.post(&write, RequestDetails::range(handle, offset, data.len() as u32)).await
    }

    /// Fails at and past the end of the file, where SMB1 succeeds with no bytes.
    fn data_read(&self, reply: &Smb1Reply, length: u32) -> Result<&[u8], ClientError> {
        self.connection.accept(reply)?;
        let data = ReadAndxResponse::parse(self.connection.message(reply)).map_err(malformed)?.data;
        if data.len() > length as usize {
            return Err(ClientError::Protocol("READ_ANDX returned more than requested".to_owned()));
        }
        if data.is_empty() && length > 0 {
            return Err(ClientError::Status { command: reply.command, status: NtStatus::END_OF_FILE });
        }
        Ok(data)
    }

    /// With several writes outstanding, the rest of one can't be resent in order.
    fn check_written(&self, reply: &Smb1Reply, length: u32) -> Result<(), ClientError> {
        self.connection.accept(reply)?;
        let written = WriteAndxResponse::parse(self.connection.message(reply)).map_err(malformed)?.total();
        match written == length {
            true => Ok(()),
            false => Err(ClientError::Protocol(format!("a write of {length} bytes wrote {written}"))),
        }
    }
}

/// Bytes of a raw block: a 16-bit count, in whole sectors.
const BLOCK_MAX: u32 = 0xfe00;

/// Returns the largest block for a server with these capabilities and MaxRawSize, or `None` if raw mode is not wanted.
pub(super) fn block(
    options: &SessionOptions,
    server: u32,
    max_raw_size: u32,
    signed: bool,
) -> Result<Option<u32>, ClientError> {
    let why = if !options.raw {
        return Ok(None);
    } else if server & capabilities::RAW_MODE == 0 || max_raw_size == 0 {
        "the server has no raw mode (some drop it if they can sign)"
    } else if signed {
        "raw messages have no header to sign: raw mode needs a session without signing"
    } else if options.leases {
        "an oplock break could be mistaken for data: raw mode needs a session without oplocks"
    } else {
        return Ok(Some(max_raw_size.min(BLOCK_MAX)));
    };
    Err(ClientError::Unsupported(format!("{}: {why}", options.host)))
}

impl Smb1Connection {
    /// Reads data into the frame. Empty at the end of the file and after an error.
    pub(super) async fn read_raw(&mut self, fid: u16, offset: u64, max_count: u16) -> Result<u32, ClientError> {
        let request = ReadRaw::new(fid, offset, max_count);
        let id = self.send(&request, RequestDetails::range(fid, offset, max_count.into())).await?;
        // The next frame is the response, because nothing else is outstanding.
        let arrived = self.receive(id, self.deadline(self.request(id))).await?;
        let bytes = self.link.frame().len();
        let refused = Smb1Header::parse(self.link.frame()).filter(|header| {
            let answers = header.is_reply() && header.command == Smb1Command::READ_RAW && u64::from(header.mid) == id;
            answers && !header.is_success()
        });
        if let Some(header) = refused {
            let reply = self.complete(0, (NtStatus(header.status), header), 0..bytes, arrived, bytes);
            return reply.map_or(Ok(()), |reply| self.accept(&reply)).map(|()| 0);
        }
        let pending = self.outstanding.pop();
        self.samples.extend(pending.map(|pending| pending.sample.completed(arrived, bytes)));
        if bytes > usize::from(max_count) {
            return Err(ClientError::Protocol("READ_RAW returned more than requested".to_owned()));
        }
        Ok(bytes as u32)
    }

    /// Writes a block and returns the number of bytes written. Keeps two samples, like the two parts in a capture: up
    /// to the server's "go ahead", and from the data to the final response.
    pub(super) async fn write_raw(&mut self, fid: u16, offset: u64, data: &[u8]) -> Result<u32, ClientError> {
        let about = RequestDetails::range(fid, offset, data.len() as u32);
        let id = self.send(&WriteRaw::new(fid, offset, data.len() as u16), about).await?;
        let mut reply = self.answer(id).await?;
        if reply.header.command == Smb1Command::WRITE_RAW {
            self.send_raw(id, about.with(Subcommand::AsyncPortion), data).await?;
            reply = self.answer(id).await?;
        }
        let written = WriteComplete::parse_as(self.message(&reply), reply.header.command).map_err(malformed)?;
        Ok(written.count.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_mode_is_refused_where_its_data_could_be_taken_for_something_else() {
        let mut options = SessionOptions::new("server", "127.0.0.1:445".parse().unwrap(), "share");
        let can = capabilities::RAW_MODE;
        assert_eq!(block(&options, can, 0x1_0000, false).unwrap(), None);
        options.raw = true;
        assert_eq!(block(&options, can, 0x1_0000, false).unwrap(), Some(BLOCK_MAX));
        assert_eq!(block(&options, can, 8192, false).unwrap(), Some(8192));
        assert!(block(&options, 0, 0x1_0000, false).is_err() && block(&options, can, 0, false).is_err());
        assert!(block(&options, can, 0x1_0000, true).is_err());
        options.leases = true;
        assert!(block(&options, can, 0x1_0000, false).is_err());
    }
}
