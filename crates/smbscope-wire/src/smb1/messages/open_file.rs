//! Commands with only an identifier: SMB_COM_CLOSE, SMB_COM_FLUSH, SMB_COM_FIND_CLOSE2 (MS-CIFS 2.2.4.5, 2.2.4.6,
//! 2.2.4.48); and commands without fields: SMB_COM_TREE_DISCONNECT, SMB_COM_LOGOFF_ANDX, SMB_COM_NT_CANCEL (2.2.4.51,
//! 2.2.4.54, 2.2.4.65). Responses are empty.

use super::message::message;

message! {
    Close: CLOSE, 3 {
        fid: u16 = 0,
        /// UTIME; all ones leave it to the server.
        last_write_time: u32 = 2,
    }
}

impl Close {
    /// Creates a request that leaves the time of last write to the server.
    pub fn new(fid: u16) -> Close {
        Close { fid, last_write_time: u32::MAX }
    }
}

message! {
    Flush: FLUSH, 1 {
        /// 0xffff flushes all files of the process.
        fid: u16 = 0,
    }
}

message! {
    /// Ends a directory listing early.
    FindClose2: FIND_CLOSE2, 1 {
        sid: u16 = 0,
    }
}

message! {
    TreeDisconnect: TREE_DISCONNECT, 0 {}
}

message! {
    LogoffAndx: LOGOFF_ANDX, 2 {}
}

message! {
    /// Cancels the request with the same TID, PID, UID and MID. Has no response of its own.
    NtCancel: NT_CANCEL, 0 {}
}

#[cfg(test)]
mod tests {
    use super::super::testing::emitted;
    use super::*;

    #[test]
    fn words_are_where_the_specification_puts_them() {
        assert_eq!(emitted(&Close::new(0x1234)), [3, 0x34, 0x12, 0xff, 0xff, 0xff, 0xff, 0, 0]);
        assert_eq!(emitted(&Flush { fid: 0x1234 }), [1, 0x34, 0x12, 0, 0]);
        assert_eq!(emitted(&FindClose2 { sid: 0x1234 }), [1, 0x34, 0x12, 0, 0]);
        assert_eq!(emitted(&TreeDisconnect {}), [0, 0, 0]);
        assert_eq!(emitted(&LogoffAndx {}), [2, 0xff, 0, 0, 0, 0, 0]);
        assert_eq!(emitted(&NtCancel {}), [0, 0, 0]);
    }
}
