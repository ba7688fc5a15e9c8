//! Operations on open files, bulk transfers, limited by credits (MS-SMB2 3.2.4.1.2), and control codes, such as
//! server-side copies (3.2.4.20.2).

use crate::connection::{Transfer, TransferCommands, TransferData, transfer_ranges};
use crate::file::{ByteRangeLock, Info, OpenParameters, OpenResult, ReadRetention, SetInfo, options};
use crate::limits::Allowance;
use crate::sample::RequestDetails;
use crate::smb2::connection::{Smb2Connection, Smb2Family, Smb2Reply};
use crate::smb2::grants::BYTES_PER_CREDIT;
use crate::smb2::{SessionOrigin, Smb2ClientSession, negotiate};
use crate::{ClientError, FileHandle, FileRange, FsctlProfile, Moved, TransferDirection, WholeFile, access};
use smbscope_model::{FileId, Subcommand};
use smbscope_wire::codec::List;
use smbscope_wire::names::Fsctl;
use smbscope_wire::smb2::messages::copy_chunk::{self, Copied, ResumeKey, SrvCopyChunk};
use smbscope_wire::smb2::messages::create_context::{CreateContext, CreateContextList};
use smbscope_wire::smb2::messages::lock::{self, flags as lock_flags};
use smbscope_wire::smb2::messages::network_interface::interfaces;
use smbscope_wire::smb2::messages::set_info::{self, Data};
use smbscope_wire::smb2::messages::{close, create, flush, ioctl, query_info, read, write};
use smbscope_wire::smb2::{FileReference, LockElement, NetworkInterfaceInfo};
use smbscope_wire::status::NtStatus;

/// Maximum response to QUERY_INFO: more than any class needs, and as much as one credit pays for.
const QUERY_BUFFER: u32 = 64 * 1024;

impl Smb2ClientSession {
    pub async fn open(&mut self, open: &OpenParameters<'_>) -> Result<OpenResult, ClientError> {
        let lease = self.caching(open).context(open.path);
        let request = self.create_request(open, lease.as_slice());
        let reply = self.connection.call(&request, RequestDetails::default()).await?.ok()?;
        self.opened(&reply)
    }

    pub async fn close(&mut self, handle: FileHandle) -> Result<(), ClientError> {
        let file = reference(handle)?;
        self.connection.dialect.breaks.closed(file);
        self.connection.run(&close::Request { flags: 0, file }, RequestDetails::file(file)).await
    }

    /// A read larger than the server allows takes several commands, outstanding together as far as credits allow.
    pub async fn read(&mut self, handle: FileHandle, offset: u64, length: u32) -> Result<&[u8], ClientError> {
        if length > self.largest(self.facts.max_read) {
            let end = self.read_in_parts(handle, offset, length, ReadRetention::All).await?;
            return Ok(self.data.get(..end as usize).unwrap_or_default());
        }
        self.read_in_one(handle, offset, length).await
    }

    pub async fn skim(&mut self, handle: FileHandle, offset: u64, length: u32) -> Result<u64, ClientError> {
        if length > self.largest(self.facts.max_read) {
            return Ok(self.read_in_parts(handle, offset, length, ReadRetention::Nothing).await?.into());
        }
        Ok(self.read_in_one(handle, offset, length).await?.len() as u64)
    }

    async fn read_in_one(&mut self, handle: FileHandle, offset: u64, length: u32) -> Result<&[u8], ClientError> {
        let id = self.post_read(handle, FileRange { offset, length }).await?;
        let reply = self.connection.reply(id).await?;
        self.data_read(&reply, length)
    }

    pub async fn write(&mut self, handle: FileHandle, offset: u64, data: &[u8]) -> Result<(), ClientError> {
        if data.len() <= self.largest(self.facts.max_write) as usize {
            let id = self.post_write(handle, offset, data).await?;
            let reply = self.connection.reply(id).await?;
            return self.check_written(&reply, data.len() as u32);
        }
        let part = self.part(self.facts.max_write) as usize;
        let parts = (0..data.len()).step_by(part).map(|start| FileRange {
            offset: offset.wrapping_add(start as u64),
            length: part.min(data.len() - start) as u32,
        });
        let data = TransferData::Whole(offset, data);
        let transfer = Transfer { what: "a write", handle, data, depth: usize::MAX, parts };
        transfer.run(self, |part, written| written.map(|_| part.length.into())).await.map(drop)
    }

    pub async fn flush(&mut self, handle: FileHandle) -> Result<(), ClientError> {
        let file = reference(handle)?;
        self.connection.run(&flush::Request { file }, RequestDetails::file(file)).await
    }

    pub async fn lock(&mut self, handle: FileHandle, range: ByteRangeLock) -> Result<(), ClientError> {
        let kind = if range.exclusive { lock_flags::EXCLUSIVE } else { lock_flags::SHARED };
        let flags = if range.wait { kind } else { kind | lock_flags::FAIL_IMMEDIATELY };
        self.lock_element(handle, LockElement { offset: range.offset, length: range.length, flags }).await
    }

    pub async fn unlock(&mut self, handle: FileHandle, offset: u64, length: u64) -> Result<(), ClientError> {
        self.lock_element(handle, LockElement { offset, length, flags: lock_flags::UNLOCK }).await
    }

    pub async fn query_file(&mut self, handle: FileHandle, info: Info) -> Result<&[u8], ClientError> {
        let file = reference(handle)?;
        self.query(file, info).await
    }

    pub async fn set_file(&mut self, handle: FileHandle, set: SetInfo<'_>) -> Result<(), ClientError> {
        let file = reference(handle)?;
        let data = Data::from(set);
        let about = RequestDetails::file(file).with(Subcommand::Info(data.level()));
        self.connection.run(&set_info::Request::new(file, data), about).await
    }

    pub(super) async fn query(&mut self, file: FileReference, info: Info) -> Result<&[u8], ClientError> {
        let request = self.query_request(file, info);
        let about = RequestDetails { subcommand: Some(Subcommand::Info(info)), ..RequestDetails::file(file) };
        let reply = self.connection.call(&request, about).await?.ok()?;
        let response = query_info::Response::parse(self.connection.message(&reply)).ok_or_else(|| reply.malformed())?;
        Ok(response.output)
    }

    pub(super) fn query_request(&self, file: FileReference, level: Info) -> query_info::Request {
        let output_buffer_length = QUERY_BUFFER.min(self.facts.max_transact);
        query_info::Request { file, level, additional_information: 0, output_buffer_length }
    }

    pub(super) fn create_request<'a>(
        &self,
        open: &OpenParameters<'a>,
        lease: &'a [CreateContext],
    ) -> create::Request<'a> {
        create::Request {
            name: open.path.into(),
            oplock_level: self.caching(open).oplock_level(),
            impersonation_level: create::IMPERSONATION,
            desired_access: open.access,
            file_attributes: open.attributes,
            share_access: open.share,
            create_disposition: open.disposition as u32,
            create_options: open.options,
            contexts: CreateContextList::List(lease),
        }
    }

    /// Returns the caching to request. Leases are for file data, so directories and attribute-only opens get none.
    pub(super) fn caching(&self, open: &OpenParameters<'_>) -> super::RequestedCaching {
        const DATA: u32 = access::READ_DATA
            | access::WRITE_DATA
            | access::APPEND_DATA
            | access::GENERIC_READ
            | access::GENERIC_WRITE
            | access::MAXIMUM_ALLOWED;
        let is_for_data = open.access & DATA != 0 && open.options & options::DIRECTORY == 0;
        if is_for_data { self.caching } else { super::RequestedCaching::None }
    }

    pub(super) fn opened(&mut self, reply: &Smb2Reply) -> Result<OpenResult, ClientError> {
        let message = self.connection.message(reply);
        let response = create::Response::parse(message).ok_or_else(|| reply.malformed())?;
        let opened = OpenResult {
            handle: response.file.into(),
            size: response.end_of_file,
            attributes: response.file_attributes,
            action: response.create_action,
        };
        let (file, oplock_level) = (response.file, response.oplock_level);
        self.connection.dialect.breaks.opened(file, oplock_level);
        Ok(opened)
    }

    async fn lock_element(&mut self, handle: FileHandle, element: LockElement) -> Result<(), ClientError> {
        let file = reference(handle)?;
        let about = RequestDetails {
            offset: Some(element.offset),
            length: u32::try_from(element.length).ok(),
            waits: element.waits(),
            ..RequestDetails::file(file)
        };
        self.connection.run(&lock::Request { file, locks: List::Values(&[element]) }, about).await
    }

    /// Joins several READs in `data` unless discarded. Returns the number of bytes up to the end of the file.
    async fn read_in_parts(
        &mut self,
        handle: FileHandle,
        offset: u64,
        length: u32,
        kept: ReadRetention,
    ) -> Result<u32, ClientError> {
        let mut data = std::mem::take(&mut self.data);
        data.clear();
        if kept == ReadRetention::All {
            data.resize(length as usize, 0);
        }
        let mut end = length;
        let parts = (FileRange { offset, length }).cut(self.part(self.facts.max_read));
        let transfer = Transfer { what: "a read", handle, data: TransferData::Read, depth: usize::MAX, parts };
        let take = |part: FileRange, read: Result<&[u8], ClientError>| {
            let start = part.offset.saturating_sub(offset) as u32;
            let read = match read {
                Err(error) if start > 0 && error.status() == Some(NtStatus::END_OF_FILE) => &[],
                read => read?,
            };
            if read.len() < part.length as usize {
                end = end.min(start + read.len() as u32);
            }
            if let Some(room) = data.get_mut(start as usize..start as usize + read.len()) {
                room.copy_from_slice(read);
            }
            Ok(read.len() as u64)
        };
        let result = transfer.run(self, take).await;
        self.data = data;
        result.map(|_| end)
    }

    pub(super) fn largest(&self, allowed: u32) -> u32 {
        u32::try_from(self.connection.dialect.credits.largest()).unwrap_or(u32::MAX).min(allowed)
    }

    /// Half of the size that the credits pay for, so that one part is outstanding while another is answered.
    fn part(&self, allowed: u32) -> u32 {
        let half = self.connection.dialect.credits.largest() / 2 / BYTES_PER_CREDIT * BYTES_PER_CREDIT;
        u32::try_from(half.max(BYTES_PER_CREDIT)).unwrap_or(u32::MAX).min(allowed)
    }
}

pub(super) fn reference(handle: FileHandle) -> Result<FileReference, ClientError> {
    match handle.0 {
        FileId::Smb2 { persistent, volatile } => Ok(FileReference { persistent, volatile }),
        FileId::Smb1(_) => Err(ClientError::Protocol("a file handle of an SMB1 session, used with SMB2".to_owned())),
    }
}

/// Room for the server's interfaces, of 152 bytes each.
const INTERFACES: u32 = 64 * 1024;

impl Smb2ClientSession {
    pub async fn resume_key(&mut self, source: FileHandle) -> Result<ResumeKey, ClientError> {
        let code = Fsctl::SRV_REQUEST_RESUME_KEY;
        let reply = self.ioctl(code, reference(source)?, &[], ResumeKey::OUTPUT).await?;
        let output = self.output(&reply)?;
        ResumeKey::parse(output).ok_or_else(|| reply.malformed())
    }

    /// Copies chunks on the server into an open file. Returns the number of bytes copied. Servers limit the chunks,
    /// often to 256 of 1 MiB; beyond that they return STATUS_INVALID_PARAMETER.
    pub async fn copy_chunks(
        &mut self,
        source: ResumeKey,
        target: FileHandle,
        chunks: &[SrvCopyChunk],
    ) -> Result<u32, ClientError> {
        let mut input = std::mem::take(&mut self.data);
        input.clear();
        copy_chunk::emit(source, chunks, &mut input);
        let result = self.ioctl(Fsctl::SRV_COPYCHUNK, reference(target)?, &input, Copied::OUTPUT).await;
        self.data = input;
        let reply = result?;
        let output = self.output(&reply)?;
        Ok(Copied::parse(output).ok_or_else(|| reply.malformed())?.total_bytes_written)
    }

    pub async fn network_interfaces(&mut self) -> Result<Vec<NetworkInterfaceInfo>, ClientError> {
        let max_output = INTERFACES.min(self.facts.max_transact);
        let reply = self.ioctl(Fsctl::QUERY_NETWORK_INTERFACE_INFO, FileReference::NONE, &[], max_output).await?;
        Ok(interfaces(self.output(&reply)?).collect())
    }

    pub async fn control(&mut self, control: &FsctlProfile, handle: Option<FileHandle>) -> Result<(), ClientError> {
        let SessionOrigin { options, negotiated } = &*self.origin;
        if control.code == Fsctl::VALIDATE_NEGOTIATE_INFO {
            if self.connection.dialect.protection.signer.is_none() {
                return Err(ClientError::Unsupported(format!(
                    "{} is signed, and a guest has no key for it",
                    control.code
                )));
            }
            return negotiate::validate(&mut self.connection, negotiated).await;
        }
        let file = handle.map_or(Ok(FileReference::NONE), reference)?;
        let input = control.input(&options.host, &options.share);
        let max_output = control.max_output.min(self.facts.max_transact);
        self.ioctl(control.code, file, &input, max_output).await.map(drop)
    }

    async fn ioctl(
        &mut self,
        code: Fsctl,
        file: FileReference,
        input: &[u8],
        max_output: u32,
    ) -> Result<Smb2Reply, ClientError> {
        let about = if file == FileReference::NONE { RequestDetails::default() } else { RequestDetails::file(file) };
        let about = about.with(Subcommand::Fsctl(code));
        self.connection.call(&ioctl::Request::new(code, file, input, max_output), about).await?.ok()
    }

    fn output(&self, reply: &Smb2Reply) -> Result<&[u8], ClientError> {
        let response = ioctl::Response::parse(self.connection.message(reply));
        response.map(|response| response.output).ok_or_else(|| reply.malformed())
    }
}

impl Smb2ClientSession {
    /// Reads or writes the ranges in order, with up to `depth` commands outstanding, as far as credits allow.
    pub(crate) async fn transfer_many(
        &mut self,
        handle: FileHandle,
        ranges: &[FileRange],
        depth: u32,
        direction: TransferDirection<'_>,
    ) -> Result<Moved, ClientError> {
        let longest = ranges.iter().map(|range| range.length).max().unwrap_or(0);
        let max = direction.largest(self.largest(self.facts.max_read), self.largest(self.facts.max_write));
        let credits = &mut self.connection.dialect.credits;
        credits.want(u32::from(credits.charge(longest.min(max) as usize)).saturating_mul(depth));
        transfer_ranges(self, handle, ranges, (max, depth), direction).await
    }
}

impl TransferCommands for Smb2ClientSession {
    type Family = Smb2Family;

    fn connection(&mut self) -> &mut Smb2Connection {
        &mut self.connection
    }

    /// The first command can always be sent, because it waits for credits.
    fn has_room(&self, length: u32, outstanding: usize) -> bool {
        let credits = &self.connection.dialect.credits;
        outstanding == 0 || credits.affords(credits.charge(length as usize).into())
    }

    async fn post_read(&mut self, handle: FileHandle, part: FileRange) -> Result<u64, ClientError> {
        let FileRange { offset, length } = part;
        let request = read::Request::new(reference(handle)?, offset, length);
        self.connection.post(&request, RequestDetails::range(handle, offset, length)).await
    }

    async fn post_write(&mut self, handle: FileHandle, offset: u64, data: &[u8]) -> Result<u64, ClientError> {
        let request = write::Request { file: reference(handle)?, offset, data };
        self.connection.post(&request, RequestDetails::range(handle, offset, data.len() as u32)).await
    }

    fn data_read(&self, reply: &Smb2Reply, length: u32) -> Result<&[u8], ClientError> {
        reply.check()?;
        let message = self.connection.message(reply);
        let data = read::Response::parse(message).ok_or_else(|| reply.malformed())?.data;
        match data.len() {
            more if more > length as usize => {
                Err(ClientError::Protocol(format!("its answer to READ has {more} bytes of {length} asked for")))
            }
            _ => Ok(data),
        }
    }

    fn check_written(&self, reply: &Smb2Reply, length: u32) -> Result<(), ClientError> {
        reply.check()?;
        let message = self.connection.message(reply);
        let response = write::Response::parse(message).ok_or_else(|| reply.malformed())?;
        match response.count {
            count if count == length => Ok(()),
            count if count > length => {
                Err(ClientError::Protocol(format!("its answer to WRITE says {count} bytes of {length}")))
            }
            // A short write: the disk became full. No other cause is known.
            _ => Err(ClientError::Status { command: reply.command, status: NtStatus::DISK_FULL }),
        }
    }
}

#[derive(Debug)]
struct WholeFileRead<'f> {
    file: &'f WholeFile,
    next: WholeFileStep,
    outstanding: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
enum WholeFileStep {
    Open,
    Read { file: FileReference, offset: u64, length: u32 },
    Close(FileReference),
}

impl WholeFileStep {
    fn at(file: FileReference, offset: u64, size: u64, block: u32) -> WholeFileStep {
        match u32::try_from(size.saturating_sub(offset)).unwrap_or(u32::MAX).min(block) {
            0 => WholeFileStep::Close(file),
            length => WholeFileStep::Read { file, offset, length },
        }
    }
}

impl Smb2ClientSession {
    /// Reads up to `at_once` files at a time. After a failure, starts no further file and closes those that are open.
    pub async fn read_whole_files(
        &mut self,
        files: &[WholeFile],
        block: u32,
        at_once: u32,
    ) -> Result<Moved, ClientError> {
        let block = block.min(self.largest(self.facts.max_read)).max(1);
        let credits = &mut self.connection.dialect.credits;
        credits.want(u32::from(credits.charge(block as usize)).saturating_mul(at_once));
        let mut rest = files.iter();
        let mut current: Vec<WholeFileRead<'_>> = Vec::with_capacity(at_once as usize);
        let (mut moved, mut failed) = (Moved::default(), None);
        let allowance = Allowance::of_operation("reading files", self.connection.timeout);
        loop {
            allowance.check()?;
            while failed.is_none()
                && current.len() < at_once as usize
                && let Some(file) = rest.next()
            {
                current.push(WholeFileRead { file, next: WholeFileStep::Open, outstanding: None });
            }
            let mut under_way = current.iter().filter(|file| file.outstanding.is_some()).count();
            for file in current.iter_mut().filter(|file| file.outstanding.is_none()) {
                let bytes = match file.next {
                    WholeFileStep::Read { length, .. } => length,
                    WholeFileStep::Open | WholeFileStep::Close(_) => 0,
                };
                if !self.has_room(bytes, under_way) {
                    break;
                }
                file.outstanding = Some(self.post_step(file.file, file.next).await?);
                under_way += 1;
            }
            if under_way == 0 {
                return failed.map_or(Ok(moved), Err);
            }
            moved.outstanding = moved.outstanding.max(under_way as u32);
            let reply = self.connection.any_reply().await?;
            let Some(at) = current.iter().position(|file| file.outstanding == Some(reply.id)) else {
                continue;
            };
            let WholeFileRead { file, next, .. } = current[at];
            let after = match self.after_step(file, next, block, reply, &mut moved) {
                Err(error) if error.is_fatal() => return Err(error),
                Err(error) => {
                    failed = failed.or(Some(error));
                    match next {
                        WholeFileStep::Read { file, .. } => Some(WholeFileStep::Close(file)),
                        WholeFileStep::Open | WholeFileStep::Close(_) => None,
                    }
                }
                Ok(after) => after,
            };
            match after {
                Some(next) => current[at] = WholeFileRead { file, next, outstanding: None },
                None => drop(current.swap_remove(at)),
            }
        }
    }

    async fn post_step(&mut self, file: &WholeFile, next: WholeFileStep) -> Result<u64, ClientError> {
        match next {
            WholeFileStep::Open => {
                let open = OpenParameters::reading(&file.path);
                let lease = self.caching(&open).context(open.path);
                let request = self.create_request(&open, lease.as_slice());
                self.connection.post(&request, RequestDetails::default()).await
            }
            WholeFileStep::Read { file, offset, length } => {
                self.post_read(file.into(), FileRange { offset, length }).await
            }
            WholeFileStep::Close(file) => {
                self.connection.dialect.breaks.closed(file);
                self.connection.post(&close::Request { flags: 0, file }, RequestDetails::file(file)).await
            }
        }
    }

    fn after_step(
        &mut self,
        file: &WholeFile,
        step: WholeFileStep,
        block: u32,
        reply: Smb2Reply,
        moved: &mut Moved,
    ) -> Result<Option<WholeFileStep>, ClientError> {
        let reply = reply.ok()?;
        Ok(match step {
            WholeFileStep::Open => {
                let opened = reference(self.opened(&reply)?.handle)?;
                Some(WholeFileStep::at(opened, 0, file.size, block))
            }
            WholeFileStep::Read { file: open, offset, length } => {
                let bytes = self.data_read(&reply, length)?.len() as u64;
                moved.bytes += bytes;
                let size = if bytes < u64::from(length) { 0 } else { file.size };
                Some(WholeFileStep::at(open, offset + bytes, size, block))
            }
            WholeFileStep::Close(_) => None,
        })
    }
}
