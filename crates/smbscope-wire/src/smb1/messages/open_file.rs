//! Commands of an open that have little more than its number: SMB_COM_CLOSE, SMB_COM_FLUSH, SMB_COM_FIND_CLOSE2 (MS-CIFS
//! 2.2.4.5, 2.2.4.6, 2.2.4.48); and those without any fields: SMB_COM_TREE_DISCONNECT, SMB_COM_LOGOFF_ANDX,
//! SMB_COM_NT_CANCEL (2.2.4.51, 2.2.4.54, 2.2.4.65). Where there is an answer, it is empty.

use super::message::message;

message! {
    /// Closes a file.
    Close: CLOSE, 3 {
        /// The open.
        fid: u16 = 0,
        /// UTIME; all ones leave it to the server.
        last_write_time: u32 = 2,
    }
}

impl Close {
    /// Of an open, with the time of last write left to the server.
    pub fn new(fid: u16) -> Close {
        Close { fid, last_write_time: u32::MAX }
    }
}

message! {
    /// Asks for what was written to be on disk.
    Flush: FLUSH, 1 {
        /// The open; 0xffff for all of the process.
        fid: u16 = 0,
    }
}

message! {
    /// Ends a listing before it is through.
    FindClose2: FIND_CLOSE2, 1 {
        /// The search.
        sid: u16 = 0,
    }
}

message! {
    /// Ends the tree connect that the header names.
    TreeDisconnect: TREE_DISCONNECT, 0 {}
}

message! {
    /// Ends the session that the header names.
    LogoffAndx: LOGOFF_ANDX, 2 {}
}

message! {
    /// Takes back the request that has the same TID, PID, UID and MID; it has no answer of its own.
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
