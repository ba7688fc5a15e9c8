//! Reads and writes with several commands outstanding (MS-SMB2 3.2.4.1.2: limited by credits).

use super::Smb2ClientSession;
use super::files::{data_of, io, reference};
use crate::limits::Allowance;
use crate::{ClientError, FileHandle, FileRange, Moved, TransferDirection};
use smbscope_wire::smb2::FileReference;
use smbscope_wire::smb2::messages::{read, write};

impl Smb2ClientSession {
    /// Reads or writes the ranges in order, with up to `depth` commands outstanding, as far as credits allow.
    pub async fn transfer_many(
        &mut self,
        handle: FileHandle,
        ranges: &[FileRange],
        depth: u32,
        direction: TransferDirection<'_>,
    ) -> Result<Moved, ClientError> {
        let file = reference(handle)?;
        let longest = ranges.iter().map(|range| range.length).max().unwrap_or(0);
        let max = match direction {
            TransferDirection::Read => self.largest(self.facts.max_read),
            TransferDirection::Write(data) => {
                self.largest(self.facts.max_write).min(u32::try_from(data.len()).unwrap_or(u32::MAX))
            }
        };
        let credits = &mut self.connection.credits;
        credits.want(u32::from(credits.charge(longest.min(max) as usize)).saturating_mul(depth));
        let mut rest = ranges.iter().flat_map(|range| range.cut(max)).peekable();
        let mut under_way: Vec<(u64, u32)> = Vec::with_capacity(depth as usize);
        let (mut moved, mut failed) = (Moved::default(), None);
        let allowance = Allowance::of_operation("a transfer", self.connection.timeout);
        loop {
            allowance.check()?;
            while failed.is_none()
                && under_way.len() < depth as usize
                && let Some(range) = rest.next_if(|range| self.has_room(range.length as usize, under_way.len()))
            {
                under_way.push((self.post_part(file, range, direction).await?, range.length));
                moved.outstanding = moved.outstanding.max(under_way.len() as u32);
            }
            if under_way.is_empty() {
                return failed.map_or(Ok(moved), Err);
            }
            let reply = self.connection.any_reply().await?;
            let Some(at) = under_way.iter().position(|(id, _)| *id == reply.header.message_id) else { continue };
            let (_, length) = under_way.swap_remove(at);
            let result = match reply.ok() {
                Err(error) => Err(error),
                Ok(reply) => match direction {
                    TransferDirection::Read => data_of(&self.connection, &reply, length).map(|data| data.len() as u64),
                    TransferDirection::Write(_) => self.written(&reply, length as usize).map(|()| length.into()),
                },
            };
            match result {
                Ok(bytes) => moved.bytes += bytes,
                Err(error) if error.is_fatal() => return Err(error),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
    }

    async fn post_part(
        &mut self,
        file: FileReference,
        range: FileRange,
        direction: TransferDirection<'_>,
    ) -> Result<u64, ClientError> {
        let FileRange { offset, length } = range;
        let about = io(file, offset, length);
        match direction {
            TransferDirection::Read => self.connection.post(&read::Request::new(file, offset, length), about).await,
            TransferDirection::Write(data) => {
                let data = data.get(..length as usize).unwrap_or_default();
                self.connection.post(&write::Request { file, offset, data }, about).await
            }
        }
    }
}
