//! Commands (MS-SMB2 2.2.1.2): one table of their numbers and messages. The messages hold everything else.

use super::messages::*;
use super::view::{HEAD, RESPONSE_HEAD};
use super::{Smb2Header, Smb2Request, Smb2Response};
use crate::RequestDetail;
use crate::kept::RetainedRanges;
use crate::names::open_enum;
use serde::{Deserialize, Serialize};

/// Command code, printed as the specification's name without prefix (`QUERY_DIRECTORY`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Smb2Command(pub u16);

/// Calls a macro with all commands: name, number, request, response. Responses without content are omitted.
macro_rules! with_commands {
    ($callback:ident) => {
        $callback! {
            NEGOTIATE = 0x0000, negotiate::Request, negotiate::Response;
            SESSION_SETUP = 0x0001, session_setup::Request, session_setup::Response;
            LOGOFF = 0x0002, plain::Logoff;
            TREE_CONNECT = 0x0003, tree_connect::Request, tree_connect::Response;
            TREE_DISCONNECT = 0x0004, plain::TreeDisconnect;
            CREATE = 0x0005, create::Request, create::Response;
            CLOSE = 0x0006, close::Request, close::Response;
            FLUSH = 0x0007, flush::Request, flush::Response;
            READ = 0x0008, read::Request, read::Response;
            WRITE = 0x0009, write::Request, write::Response;
            LOCK = 0x000a, lock::Request, lock::Response;
            IOCTL = 0x000b, ioctl::Request, ioctl::Response;
            CANCEL = 0x000c, plain::Cancel;
            ECHO = 0x000d, plain::Echo;
            QUERY_DIRECTORY = 0x000e, query_directory::Request, query_directory::Response;
            CHANGE_NOTIFY = 0x000f, change_notify::Request, change_notify::Response;
            QUERY_INFO = 0x0010, query_info::Request, query_info::Response;
            SET_INFO = 0x0011, set_info::Request, set_info::Response;
            OPLOCK_BREAK = 0x0012, oplock_break::Acknowledgement, oplock_break::Notification;
            SERVER_TO_CLIENT_NOTIFICATION = 0x0013;
        }
    };
}

#[cfg(test)]
pub(super) use with_commands;

macro_rules! commands {
    ($($name:ident = $value:literal $(, $request:path $(, $response:path)?)?;)*) => {
        open_enum!(Smb2Command, "", "0x{:04x}" { $($name = $value;)* });

        impl Smb2Request {
            pub fn parse(command: Smb2Command, message: &[u8]) -> Smb2Request {
                match command {
                    $($(Smb2Command::$name => <$request>::view(message),)?)*
                    _ => None,
                }
                .unwrap_or(Smb2Request::Other)
            }

            /// Returns the number of bytes that [`Smb2Request::parse`] needs. `prefix` holds at least the header; the
            /// result may grow with it.
            pub fn needed(command: Smb2Command, prefix: &[u8]) -> usize {
                match command {
                    $($(Smb2Command::$name => <$request>::needed(prefix),)?)*
                    _ => HEAD,
                }
            }
        }

        /// Parses a request from its header on. Returns `None` if the command has no parameters or they are truncated.
        pub fn detail(command: Smb2Command, message: &[u8]) -> Option<RequestDetail> {
            match command {
                $($(Smb2Command::$name => <$request>::detail(message),)?)*
                _ => None,
            }
        }

        /// Returns the number of bytes that [`detail`] needs. `prefix` holds at least the fixed fields.
        pub fn detail_needed(command: Smb2Command, prefix: &[u8]) -> usize {
            match command {
                $($(Smb2Command::$name => <$request>::detail_needed(prefix),)?)*
                _ => 0,
            }
        }

        fn retain_request(command: Smb2Command, message: &[u8], kept: &mut RetainedRanges) -> Option<()> {
            match command {
                $($(Smb2Command::$name => <$request>::retain(message, kept),)?)*
                _ => None,
            }
        }

        impl Smb2Response {
            pub fn parse(command: Smb2Command, message: &[u8]) -> Smb2Response {
                if is_error(command, message) {
                    return Smb2Response::Other;
                }
                match command {
                    $($($(Smb2Command::$name => <$response>::view(message),)?)?)*
                    _ => None,
                }
                .unwrap_or(Smb2Response::Other)
            }

            /// Returns the number of bytes that [`Smb2Response::parse`] needs. `prefix` holds at least the header; the
            /// result may grow with it.
            pub fn needed(command: Smb2Command, prefix: &[u8]) -> usize {
                match command {
                    $($($(Smb2Command::$name => <$response>::needed(prefix),)?)?)*
                    _ => RESPONSE_HEAD,
                }
            }
        }

        fn retain_response(command: Smb2Command, message: &[u8], kept: &mut RetainedRanges) -> Option<()> {
            match command {
                $($($(Smb2Command::$name => <$response>::retain(message, kept),)?)?)*
                _ => None,
            }
        }
    };
}

with_commands!(commands);

/// Returns true for an error response, or a truncated one. SESSION_SETUP responses have the same StructureSize (2.2.2).
fn is_error(command: Smb2Command, message: &[u8]) -> bool {
    command != Smb2Command::SESSION_SETUP && error::Smb2ErrorResponse::is_error_response(message).unwrap_or(true)
}

/// Returns the ranges that [`Smb2Request`], [`Smb2Response`] and [`detail`] read.
pub fn kept(header: &Smb2Header, message: &[u8]) -> RetainedRanges {
    let mut kept = RetainedRanges::default();
    kept.field(0..Smb2Header::SIGNATURE.start);
    if !header.is_response() {
        let _ = retain_request(header.command, message, &mut kept);
    } else {
        // StructureSize, which identifies an error, and the fields next to it.
        kept.field(Smb2Header::LENGTH..RESPONSE_HEAD);
        if !is_error(header.command, message) {
            let _ = retain_response(header.command, message, &mut kept);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_of_the_specification_is_known() {
        assert_eq!(Smb2Command::KNOWN.len(), 20);
    }
}
