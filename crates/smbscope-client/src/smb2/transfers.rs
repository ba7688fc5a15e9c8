//! Bulk transfers, limited by credits (MS-SMB2 3.2.4.1.2): several commands per file, or several files with one each.

use crate::limits::Allowance;
use crate::sample::RequestDetails;
use crate::smb2::Smb2ClientSession;
use crate::smb2::connection::{Smb2Connection, Smb2Family, Smb2Reply};
use crate::smb2::files::reference;
use crate::transfers::{self, TransferCommands};
use crate::{ClientError, FileHandle, FileRange, Moved, OpenParameters, TransferDirection, WholeFile};
use smbscope_wire::smb2::FileReference;
use smbscope_wire::smb2::messages::{close, read, write};
use smbscope_wire::status::NtStatus;

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
        transfers::transfer_ranges(self, handle, ranges, (max, depth), direction).await
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
