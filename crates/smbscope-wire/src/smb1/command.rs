//! SMB1 command codes (MS-CIFS 2.2.2.1, MS-SMB 2.2.2.1).

use crate::names::open_enum;
use serde::{Deserialize, Serialize};

/// SMB_COM_* code. [`Smb1Command::short_name`] returns the name in classic response-time reports (`Read+X`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Smb1Command(pub u8);

impl Smb1Command {
    /// Returns true if the parameters begin with AndX fields (MS-CIFS 2.2.3.4).
    pub fn is_andx(self) -> bool {
        matches!(
            self,
            Smb1Command::LOCKING_ANDX
                | Smb1Command::OPEN_ANDX
                | Smb1Command::READ_ANDX
                | Smb1Command::WRITE_ANDX
                | Smb1Command::SESSION_SETUP_ANDX
                | Smb1Command::LOGOFF_ANDX
                | Smb1Command::TREE_CONNECT_ANDX
                | Smb1Command::NT_CREATE_ANDX
        )
    }
}

open_enum!(Smb1Command, "SMB_COM_", "0x{:02x}" {
    CREATE_DIRECTORY = 0x00, "Create_Directory";
    DELETE_DIRECTORY = 0x01, "Delete_Directory";
    OPEN = 0x02, "Open_File";
    CREATE = 0x03, "Create_File";
    CLOSE = 0x04, "Close_File";
    FLUSH = 0x05, "Flush_File";
    DELETE = 0x06, "Delete_File";
    RENAME = 0x07, "Rename_File";
    QUERY_INFORMATION = 0x08, "Get_File_Attributes";
    SET_INFORMATION = 0x09, "Set_File_Attributes";
    READ = 0x0a, "Read_Bytes";
    WRITE = 0x0b, "Write_Bytes";
    LOCK_BYTE_RANGE = 0x0c, "Lock_Bytes";
    UNLOCK_BYTE_RANGE = 0x0d, "Unlock_Bytes";
    CREATE_TEMPORARY = 0x0e, "Create_Temporary_File";
    CREATE_NEW = 0x0f, "Create_New_File";
    CHECK_DIRECTORY = 0x10, "Check_Directory";
    PROCESS_EXIT = 0x11, "Process_Exit";
    SEEK = 0x12, "Seek_File";
    LOCK_AND_READ = 0x13, "Lock_and_Read";
    WRITE_AND_UNLOCK = 0x14, "Write_and_Unlock";
    READ_RAW = 0x1a, "Read_Raw";
    READ_MPX = 0x1b, "Read_Mpx";
    READ_MPX_SECONDARY = 0x1c, "Read_Mpx_Secondary";
    WRITE_RAW = 0x1d, "Write_Raw";
    WRITE_MPX = 0x1e, "Write_Mpx";
    WRITE_MPX_SECONDARY = 0x1f, "Write_Mpx_Secondary";
    WRITE_COMPLETE = 0x20, "Write_Complete";
    QUERY_SERVER = 0x21, "Query_Server";
    SET_INFORMATION2 = 0x22, "Set_File_Attributes2";
    QUERY_INFORMATION2 = 0x23, "Get_File_Attributes2";
    LOCKING_ANDX = 0x24, "Locking+X";
    TRANSACTION = 0x25, "Transaction";
    TRANSACTION_SECONDARY = 0x26, "Transaction_Secondary";
    IOCTL = 0x27, "IO_Control";
    IOCTL_SECONDARY = 0x28, "IO_Control_Secondary";
    COPY = 0x29, "Copy_File";
    MOVE = 0x2a, "Move_File";
    ECHO = 0x2b, "Echo";
    WRITE_AND_CLOSE = 0x2c, "Write_and_Close";
    OPEN_ANDX = 0x2d, "Open+X";
    READ_ANDX = 0x2e, "Read+X";
    WRITE_ANDX = 0x2f, "Write+X";
    NEW_FILE_SIZE = 0x30, "New_File_Size";
    CLOSE_AND_TREE_DISC = 0x31, "Close_and_Tree_Disconnect";
    TRANSACTION2 = 0x32, "Transaction2";
    TRANSACTION2_SECONDARY = 0x33, "Transaction2_Secondary";
    FIND_CLOSE2 = 0x34, "Find_Close2";
    FIND_NOTIFY_CLOSE = 0x35, "Find_Notify_Close";
    TREE_CONNECT = 0x70, "Tree_Connect";
    TREE_DISCONNECT = 0x71, "Tree_Disconnect";
    NEGOTIATE = 0x72, "Negotiate";
    SESSION_SETUP_ANDX = 0x73, "Session_Setup+X";
    LOGOFF_ANDX = 0x74, "Logoff+X";
    TREE_CONNECT_ANDX = 0x75, "Tree_Connect+X";
    SECURITY_PACKAGE_ANDX = 0x7e, "Security_Package+X";
    QUERY_INFORMATION_DISK = 0x80, "Get_Disk_Attributes";
    SEARCH = 0x81, "Search_Directory";
    FIND = 0x82, "Find";
    FIND_UNIQUE = 0x83, "Find_Unique";
    FIND_CLOSE = 0x84, "Find_Close";
    NT_TRANSACT = 0xa0, "NT_Transaction";
    NT_TRANSACT_SECONDARY = 0xa1, "NT_Transaction_Secondary";
    NT_CREATE_ANDX = 0xa2, "NT_Create+X";
    NT_CANCEL = 0xa4, "NT_Cancel";
    NT_RENAME = 0xa5, "NT_Rename";
    OPEN_PRINT_FILE = 0xc0, "Open_Print_File";
    WRITE_PRINT_FILE = 0xc1, "Write_Print_File";
    CLOSE_PRINT_FILE = 0xc2, "Close_Print_File";
    GET_PRINT_QUEUE = 0xc3, "Get_Print_Queue";
    READ_BULK = 0xd8, "Read_Bulk";
    WRITE_BULK = 0xd9, "Write_Bulk";
    WRITE_BULK_DATA = 0xda, "Write_Bulk_Data";
    INVALID = 0xfe, "Invalid";
    NO_ANDX_COMMAND = 0xff, "No_AndX_Command";
});

impl Smb1Command {
    /// End of an AndX chain.
    pub const NO_ANDX: Smb1Command = Smb1Command::NO_ANDX_COMMAND;
}
