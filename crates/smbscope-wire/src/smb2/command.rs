//! SMB2 command codes (MS-SMB2 2.2.1.2).

use crate::names::open_enum;
use serde::{Deserialize, Serialize};

/// Command code, printed as the specification's name without prefix (`QUERY_DIRECTORY`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Smb2Command(pub u16);

open_enum!(Smb2Command, "", "0x{:04x}" {
    NEGOTIATE = 0x0000;
    SESSION_SETUP = 0x0001;
    LOGOFF = 0x0002;
    TREE_CONNECT = 0x0003;
    TREE_DISCONNECT = 0x0004;
    CREATE = 0x0005;
    CLOSE = 0x0006;
    FLUSH = 0x0007;
    READ = 0x0008;
    WRITE = 0x0009;
    LOCK = 0x000a;
    IOCTL = 0x000b;
    CANCEL = 0x000c;
    ECHO = 0x000d;
    QUERY_DIRECTORY = 0x000e;
    CHANGE_NOTIFY = 0x000f;
    QUERY_INFO = 0x0010;
    SET_INFO = 0x0011;
    OPLOCK_BREAK = 0x0012;
    SERVER_TO_CLIENT_NOTIFICATION = 0x0013;
});
