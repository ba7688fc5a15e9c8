//! Bulk transfers. A queue has several reads or writes outstanding, below the server's MaxMpxCount (MS-CIFS 3.2.4.1.5).
//!
//! READ_RAW and WRITE_RAW (2.2.4.22, 2.2.4.25) move data in frames without a header, which only their position assigns
//! to a request. So nothing else may be outstanding, not even an oplock break.

use crate::limits::Allowance;
use crate::sample::RequestDetails;
use crate::smb1::connection::{Smb1Connection, malformed};
use crate::smb1::requests::OUTSTANDING_MAX;
use crate::smb1::{Smb1ClientSession, fid_of};
use crate::{ClientError, FileHandle, FileRange, Moved, SessionOptions, TransferDirection};
use smbscope_model::{Command, Subcommand};
use smbscope_wire::smb1::messages::{
    ReadAndx, ReadAndxResponse, ReadRaw, WriteAndx, WriteAndxResponse, WriteComplete, WriteRaw, capabilities,
};
use smbscope_wire::smb1::{self, Smb1Header};
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
        let about = RequestDetails::range(fid, offset, length);
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
            return Err(ClientError::Protocol("READ_ANDX returned more than requested".to_owned()));
        }
        if read == 0 && length > 0 {
            let command = Command::Smb1(smb1::Smb1Command::READ_ANDX);
            return Err(ClientError::Status { command, status: NtStatus::END_OF_FILE });
        }
        Ok(read as u64)
    }

    /// Fails unless everything was written: with several writes outstanding, the rest can't be resent in order.
    fn was_written(&self, length: u32) -> Result<u64, ClientError> {
        let written = WriteAndxResponse::parse(self.connection.message()).map_err(malformed)?.total();
        match written == length {
            true => Ok(length.into()),
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
    /// Reads data into [`Smb1Connection::message`]. Empty at the end of the file and after an error.
    pub(super) async fn read_raw(&mut self, fid: u16, offset: u64, max_count: u16) -> Result<u32, ClientError> {
        let request = ReadRaw::new(fid, offset, max_count);
        let pending = self.send(&request, RequestDetails::range(fid, offset, max_count.into())).await?;
        let arrived = self.receive_raw(&pending).await?;
        let refused = Smb1Header::parse(self.message()).filter(|header| {
            header.is_reply() && header.command == smb1::Smb1Command::READ_RAW && header.mid == pending.mid
        });
        let bytes = self.message().len();
        if let Some(header) = refused.filter(|header| !header.is_success()) {
            self.complete(&pending, &header, arrived, bytes);
            self.accept(&pending, &header)?;
        }
        if bytes > usize::from(max_count) {
            return Err(ClientError::Protocol("READ_RAW returned more than requested".to_owned()));
        }
        self.samples.push(pending.sample.completed(arrived, bytes));
        Ok(bytes as u32)
    }

    /// Writes a block and returns the number of bytes written. Keeps two samples, like the two parts in a capture: up
    /// to the server's "go ahead", and from the data to the final response.
    pub(super) async fn write_raw(&mut self, fid: u16, offset: u64, data: &[u8]) -> Result<u32, ClientError> {
        let about = RequestDetails::range(fid, offset, data.len() as u32);
        let request = WriteRaw::new(fid, offset, data.len() as u16);
        let pending = self.send(&request, about).await?;
        let ready = [smb1::Smb1Command::WRITE_RAW, smb1::Smb1Command::WRITE_COMPLETE];
        let header = self.answer(&pending, &ready).await?;
        if header.command != smb1::Smb1Command::WRITE_RAW {
            return Ok(WriteComplete::parse_as(self.message(), header.command).map_err(malformed)?.count.into());
        }
        let pending = self.send_raw(&pending, about.with(Subcommand::AsyncPortion), data).await?;
        let header = self.answer(&pending, &ready).await?;
        Ok(WriteComplete::parse_as(self.message(), header.command).map_err(malformed)?.count.into())
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
