//! Commands (MS-SMB2 2.2.1.2): one table of their numbers and messages. The messages hold everything else.
//!
//! Only names and numbers are expanded here, below the messages, which use them. `dispatch` expands the rest.

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

pub(super) use with_commands;

macro_rules! numbers {
    ($($name:ident = $value:literal $(, $request:path $(, $response:path)?)?;)*) => {
        open_enum!(Smb2Command, "", "0x{:04x}" { $($name = $value;)* });
    };
}

with_commands!(numbers);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_of_the_specification_is_known() {
        assert_eq!(Smb2Command::KNOWN.len(), 20);
    }
}
