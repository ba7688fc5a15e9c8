//! Bulk transfers. A queue has several reads or writes outstanding, below the server's MaxMpxCount (MS-CIFS 3.2.4.1.5).
//!
//! READ_RAW and WRITE_RAW (2.2.4.22, 2.2.4.25) move data in frames without a header, which only their position assigns
//! to a request. So nothing else may be outstanding, not even an oplock break.

use crate::sample::RequestDetails;
use crate::smb1::connection::{OUTSTANDING_MAX, Smb1Connection, Smb1Family, Smb1Reply, malformed};
use crate::smb1::{Smb1ClientSession, fid_of};
use crate::transfers::{self, TransferCommands};
use crate::{ClientError, FileHandle, FileRange, Moved, SessionOptions, TransferDirection};
use smbscope_model::Subcommand;
use smbscope_wire::smb1::messages::{
    ReadAndx, ReadAndxResponse, ReadRaw, WriteAndx, WriteAndxResponse, WriteComplete, WriteRaw, capabilities,
};
use smbscope_wire::smb1::{Smb1Command, Smb1Header};
use smbscope_wire::status::NtStatus;

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
        transfers::transfer_ranges(self, handle, ranges, (max, depth), direction).await
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
