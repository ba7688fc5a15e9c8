//! SMB1 messages in both directions (MS-CIFS 2.2.4 to 2.2.6, MS-SMB 2.2.4).
//!
//! A message is a struct with the specification's fields. [`Smb1Message::emit`] appends it to a buffer,
//! [`Smb1MessageWriter`] an AndX chain. `parse` requires a complete message and borrows from it. Paths are relative to
//! the share and begin with a backslash.

mod core;
mod delete;
mod directory;
mod echo;
mod locking_andx;
mod message;
mod negotiate;
mod nt_create_andx;
mod nt_transact;
mod open_andx;
mod open_file;
mod query_information;
mod read_andx;
mod read_raw;
mod rename;
mod session_setup_andx;
pub mod trans2;
mod transaction;
mod transaction2;
mod tree_connect_andx;
mod view;
mod write_andx;
mod write_raw;
mod writer;

#[cfg(test)]
mod tests;

pub use crate::codec::WireText;
pub use core::{LockByteRange, OpenResponse, ReadBytes, ReadMpx, ReadMpxResponse, WriteMpx};
pub use delete::Delete;
pub use directory::{CheckDirectory, CreateDirectory, DeleteDirectory};
pub use echo::{Echo, EchoResponse};
pub use locking_andx::{
    Fields as LockingAndxFields, LockingAndx, LockingAndxRange, LockingAndxRequest, LockingAndxResponse, lock_type,
};
pub use message::Smb1Message;
pub use negotiate::{
    Fields as NtLm012Fields, NT_LM_0_12, Negotiate, NegotiateResponse, NoDialect, NtLm012, Security, capabilities,
    security_mode,
};
pub use nt_create_andx::{IMPERSONATE, NtCreateAndx, NtCreateAndxResponse, create_flags};
pub use nt_transact::{
    Fields as NtTransactFields, NtTransactIoctl, NtTransactNotifyChange, NtTransactResponse,
    ResponseFields as NtTransactResponseFields,
};
pub use open_andx::{OpenAndx, OpenAndxResponse};
pub use open_file::{Close, FindClose2, Flush, LogoffAndx, NtCancel, TreeDisconnect};
pub use query_information::{QueryInformationDiskResponse, QueryInformationResponse};
pub use read_andx::{Fields as ReadAndxFields, ReadAndx, ReadAndxResponse};
pub use read_raw::ReadRaw;
pub use rename::Rename;
pub use session_setup_andx::{
    SessionSetupAndx, SessionSetupAndxLanMan, SessionSetupAndxPlain, SessionSetupAndxPlainResponse,
    SessionSetupAndxResponse,
};
pub use transaction::{TransactionPart, TransactionReassembly};
pub use transaction2::{
    Fields as Transaction2Fields, PipeFields, ResponseFields as Transaction2ResponseFields,
    SecondaryFields as Transaction2SecondaryFields, Transaction2, Transaction2Response, Transaction2Secondary,
};
pub use tree_connect_andx::{
    EXTENDED_RESPONSE, TreeConnectAndx, TreeConnectAndxExtendedResponse, TreeConnectAndxResponse,
};
pub use view::Malformed;
pub(super) use view::STRING;
pub use write_andx::{Fields as WriteAndxFields, WriteAndx, WriteAndxResponse};
pub use write_raw::{WriteComplete, WriteRaw};
pub use writer::Smb1MessageWriter;

use super::Smb1Command;
use view::View;

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

    /// Returns the bytes of a request after its header, with OEM strings.
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
