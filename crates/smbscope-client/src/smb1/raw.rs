//! READ_RAW and WRITE_RAW (MS-CIFS 2.2.4.22, 2.2.4.25): data in frames without a header, as in the days of NetBench.
//! Only its position tells which request such a frame belongs to, so nothing else may be outstanding, not even an
//! oplock break.

use super::super::{ClientError, SessionOptions};
use super::connection::{Smb1Connection, Smb1RequestDetails, malformed};
use smbscope_model::{ExchangeOutcome, Subcommand};
use smbscope_wire::smb1::messages::{ReadRaw, WriteComplete, WriteRaw, capabilities};
use smbscope_wire::smb1::{self, Smb1Header};

/// Largest block: the range of a 16-bit count, in whole sectors.
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
        "the server has no raw mode (some have none where they can sign)"
    } else if signed {
        "what has no header has no signature: raw mode needs a session without"
    } else if options.leases {
        "an oplock break could be taken for data: raw mode needs a session without oplocks"
    } else {
        return Ok(Some(max_raw_size.min(BLOCK_MAX)));
    };
    Err(ClientError::Unsupported(format!("{}: {why}", options.host)))
}

impl Smb1Connection {
    /// Reads a block into [`Smb1Connection::message`], which is all data. Empty at the end of the file and after an
    /// error.
    pub(super) async fn read_raw(&mut self, fid: u16, offset: u64, max_count: u16) -> Result<u32, ClientError> {
        let request = ReadRaw::new(fid, offset, max_count);
        let pending = self.send(&request, Smb1RequestDetails::range(fid, offset, max_count.into())).await?;
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
            return Err(ClientError::Protocol("READ_RAW brought more than was asked for".to_owned()));
        }
        // A frame without a header has no status.
        self.samples.push(pending.sample(ExchangeOutcome::Complete, None, arrived, bytes));
        Ok(bytes as u32)
    }

    /// Writes a block and returns the number of bytes written. Keeps two samples, like the two parts in a capture: up
    /// to the server's "go ahead", and from the data to the final response.
    pub(super) async fn write_raw(&mut self, fid: u16, offset: u64, data: &[u8]) -> Result<u32, ClientError> {
        let about = Smb1RequestDetails::range(fid, offset, data.len() as u32);
        let request = WriteRaw::new(fid, offset, data.len() as u16);
        let pending = self.send(&request, about).await?;
        let ready = [smb1::Smb1Command::WRITE_RAW, smb1::Smb1Command::WRITE_COMPLETE];
        let header = self.answer(&pending, &ready).await?;
        if header.command != smb1::Smb1Command::WRITE_RAW {
            return Ok(WriteComplete::parse_as(self.message(), header.command).map_err(malformed)?.count.into());
        }
        let block = Smb1RequestDetails { subcommand: Some(Subcommand::AsyncPortion), ..about };
        let pending = self.send_raw(&pending, block, data).await?;
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
