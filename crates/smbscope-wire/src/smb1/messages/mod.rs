//! SMB1 messages in both directions (MS-CIFS 2.2.4 to 2.2.6, MS-SMB 2.2.4).
//!
//! A message is a struct with the specification's fields. [`Smb1Message::emit`] appends it to a buffer,
//! [`Smb1MessageWriter`] an AndX chain. `parse` requires a complete message and borrows from it. Paths are relative to
//! the share and begin with a backslash.

mod files;
mod message;
mod read_write;
mod session;
pub mod trans2;
mod transaction;

#[cfg(test)]
mod tests;

pub use crate::codec::WireText;
pub use files::{
    CheckDirectory, Close, CreateDirectory, Delete, DeleteDirectory, FindClose2, Flush, IMPERSONATE, LockByteRange,
    LockingAndx, LockingAndxFields, LockingAndxRange, LockingAndxRequest, LockingAndxResponse, LogoffAndx, NtCancel,
    NtCreateAndx, NtCreateAndxResponse, OpenAndx, OpenAndxResponse, OpenResponse, QueryInformationDiskResponse,
    QueryInformationResponse, ReadBytes, ReadMpx, ReadMpxResponse, Rename, TreeDisconnect, WriteMpx, create_flags,
    lock_type,
};
pub use message::{Malformed, Smb1Message, Smb1MessageWriter};
pub use read_write::{
    ReadAndx, ReadAndxFields, ReadAndxResponse, ReadRaw, WriteAndx, WriteAndxFields, WriteAndxResponse, WriteComplete,
    WriteRaw,
};
pub use session::{
    EXTENDED_RESPONSE, Echo, EchoResponse, NT_LM_0_12, Negotiate, NegotiateResponse, NoDialect, NtLm012, NtLm012Fields,
    Security, SessionSetupAndx, SessionSetupAndxLanMan, SessionSetupAndxPlain, SessionSetupAndxPlainResponse,
    SessionSetupAndxResponse, TreeConnectAndx, TreeConnectAndxExtendedResponse, TreeConnectAndxResponse, capabilities,
    security_mode,
};
pub use transaction::{
    NtTransactFields, NtTransactIoctl, NtTransactNotifyChange, NtTransactResponse, NtTransactResponseFields,
    PipeFields, Transaction2, Transaction2Fields, Transaction2Response, Transaction2ResponseFields,
    Transaction2Secondary, Transaction2SecondaryFields, TransactionPart, TransactionReassembly,
};

use super::Smb1Command;
use message::View;

/// Checks a response that has no content beyond its status.
pub fn parse_empty(message: &[u8], command: Smb1Command) -> Result<(), Malformed> {
    View::parse(message, command).map(|_| ())
}

/// `SMB_FILE_ATTRIBUTES` of files that a search or a deletion includes besides ordinary files (MS-CIFS 2.2.1.2.4).
pub mod search_attributes {
    pub const HIDDEN: u16 = 0x0002;
    pub const SYSTEM: u16 = 0x0004;
    pub const DIRECTORY: u16 = 0x0010;
}

#[cfg(test)]
mod testing {
    //! Messages for the tests of single commands.

    use super::{Smb1Command, Smb1Message};
    use crate::smb1::{Smb1Header, flags, flags2};

    /// Returns the bytes of a request after its header, with strings in UTF-16.
    pub(super) fn emitted(request: &impl Smb1Message) -> Vec<u8> {
        let mut bytes = Vec::new();
        request.emit(&header(Smb1Command(0), 0), &mut bytes);
        bytes.split_off(Smb1Header::LENGTH)
    }

    pub(super) fn emitted_oem(request: &impl Smb1Message) -> Vec<u8> {
        let mut bytes = Vec::new();
        request.emit(&Smb1Header { flags2: 0, ..header(Smb1Command(0), 0) }, &mut bytes);
        bytes.split_off(Smb1Header::LENGTH)
    }

    /// Returns a successful response with UTF-16 strings: parameter words and data bytes, with their counts.
    pub(super) fn response(command: Smb1Command, words: &[u8], data: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        header(command, flags::REPLY).emit(&mut bytes);
        bytes.push(u8::try_from(words.len() / 2).unwrap());
        bytes.extend(words);
        bytes.extend((data.len() as u16).to_le_bytes());
        bytes.extend(data);
        bytes
    }

    pub(super) fn utf16(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    fn header(command: Smb1Command, flags: u8) -> Smb1Header {
        Smb1Header { command, status: 0, flags, flags2: flags2::UNICODE, tid: 0, pid: 0, uid: 0, mid: 0 }
    }
}
