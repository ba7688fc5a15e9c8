//! Reads and writes with several commands outstanding, below the server's MaxMpxCount (MS-CIFS 3.2.4.1.5).

use super::connection::{Smb1RequestDetails, malformed};
use super::multiplex::OUTSTANDING_MAX;
use super::{Smb1ClientSession, fid_of};
use crate::limits::Allowance;
use crate::{ClientError, FileHandle, FileRange, Moved, TransferDirection};
use smbscope_model::Command;
use smbscope_wire::smb1;
use smbscope_wire::smb1::messages::{ReadAndx, ReadAndxResponse, WriteAndx, WriteAndxResponse};
use smbscope_wire::status::NtStatus;

impl Smb1ClientSession {
    /// Reads or writes the ranges in order, with up to `depth` commands outstanding, as far as the server allows. Raw
    /// mode has no MIDs, so it transfers blocks one after the other.
    pub async fn transfer_many(
        &mut self,
        handle: FileHandle,
        ranges: &[FileRange],
        depth: u32,
        direction: TransferDirection<'_>,
    ) -> Result<Moved, ClientError> {
        let watches = u16::from(self.connection.watch.is_some());
        let allowed = u32::from(self.server.max_mpx_count.saturating_sub(watches)).min(OUTSTANDING_MAX as u32);
        let depth = depth.min(allowed);
        if depth < 2 || self.raw_is_possible() {
            return self.transfer_in_turn(handle, ranges, direction).await;
        }
        let fid = fid_of(handle);
        let max = match direction {
            TransferDirection::Read => self.facts.max_read,
            TransferDirection::Write(data) => self.facts.max_write.min(u32::try_from(data.len()).unwrap_or(u32::MAX)),
        };
        let mut rest = ranges.iter().flat_map(|range| range.cut(max));
        // By MID.
        let mut outstanding: Vec<(u16, u32)> = Vec::with_capacity(depth as usize);
        let (mut moved, mut failed) = (Moved::default(), None);
        let allowance = Allowance::of_operation("a transfer", self.connection.timeout);
        loop {
            allowance.check()?;
            while failed.is_none()
                && outstanding.len() < depth as usize
                && let Some(range) = rest.next()
            {
                outstanding.push((self.post_part(fid, range, direction).await?, range.length));
                moved.outstanding = moved.outstanding.max(outstanding.len() as u32);
            }
            if outstanding.is_empty() {
                return failed.map_or(Ok(moved), Err);
            }
            let (pending, header, arrived) = self.connection.any_answer().await?;
            let at = outstanding.iter().position(|(mid, _)| *mid == pending.mid);
            let (_, length) = outstanding.swap_remove(at.expect("whatever is posted is in both lists"));
            let bytes = self.connection.message().len();
            self.connection.complete(&pending, &header, arrived, bytes);
            let result = self.connection.accept(&pending, &header).and_then(|()| match direction {
                TransferDirection::Read => self.was_read(length),
                TransferDirection::Write(_) => self.was_written(length),
            });
            match result {
                Ok(bytes) => moved.bytes += bytes,
                Err(error) if error.is_fatal() => return Err(error),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
    }

    async fn post_part(
        &mut self,
        fid: u16,
        range: FileRange,
        direction: TransferDirection<'_>,
    ) -> Result<u16, ClientError> {
        let FileRange { offset, length } = range;
        let about = Smb1RequestDetails::range(fid, offset, length);
        match direction {
            TransferDirection::Read => self.connection.post(&ReadAndx::new(fid, offset, length), about).await,
            TransferDirection::Write(data) => {
                let data = data.get(..length as usize).unwrap_or_default();
                self.connection.post(&WriteAndx { fid, offset, write_mode: 0, padding: 1, data }, about).await
            }
        }
    }

    /// Returns the number of bytes read. At and past the end of the file that is none, which SMB2 reports as an error.
    fn was_read(&self, length: u32) -> Result<u64, ClientError> {
        let read = ReadAndxResponse::parse(self.connection.message()).map_err(malformed)?.data.len();
        if read > length as usize {
            return Err(ClientError::Protocol("READ_ANDX brought more than was asked for".to_owned()));
        }
        if read == 0 && length > 0 {
            let command = Command::Smb1(smb1::Smb1Command::READ_ANDX);
            return Err(ClientError::Status { command, status: NtStatus::END_OF_FILE });
        }
        Ok(read as u64)
    }

    /// Returns an error unless everything was written: with several writes outstanding, the rest can't be resent in
    /// order.
    fn was_written(&self, length: u32) -> Result<u64, ClientError> {
        let written = WriteAndxResponse::parse(self.connection.message()).map_err(malformed)?.total();
        match written == length {
            true => Ok(length.into()),
            false => Err(ClientError::Protocol(format!("a write of {length} bytes wrote {written}"))),
        }
    }
}
