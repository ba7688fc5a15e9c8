//! Subcommands of the three SMB1 transaction commands (MS-CIFS 2.2.2.2, MS-SMB 2.2.2.2).

use super::open_enum;
use serde::{Deserialize, Serialize};

/// SMB_COM_TRANSACTION2 subcommand (MS-CIFS 2.2.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Trans2(pub u16);

open_enum!(Trans2, "TRANS2_", "0x{:04x}" {
    OPEN2 = 0x0000, "Open2";
    FIND_FIRST2 = 0x0001, "Find_First2";
    FIND_NEXT2 = 0x0002, "Find_Next2";
    QUERY_FS_INFORMATION = 0x0003, "Get_FS_Info";
    SET_FS_INFORMATION = 0x0004, "Set_FS_Info";
    QUERY_PATH_INFORMATION = 0x0005, "Get_Path_Info";
    SET_PATH_INFORMATION = 0x0006, "Set_Path_Info";
    QUERY_FILE_INFORMATION = 0x0007, "Get_File_Info";
    SET_FILE_INFORMATION = 0x0008, "Set_File_Info";
    FSCTL = 0x0009, "FS_Control";
    IOCTL2 = 0x000a, "IO_Control2";
    FIND_NOTIFY_FIRST = 0x000b, "Find_Notify_First";
    FIND_NOTIFY_NEXT = 0x000c, "Find_Notify_Next";
    CREATE_DIRECTORY = 0x000d, "Create_Directory";
    SESSION_SETUP = 0x000e, "Session_Setup";
    GET_DFS_REFERRAL = 0x0010, "Get_DFS_Referral";
    REPORT_DFS_INCONSISTENCY = 0x0011, "Report_DFS_Inconsistency";
});

/// SMB_COM_NT_TRANSACT function (MS-CIFS 2.2.2.2; quotas and CREATE2 from MS-SMB 2.2.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NtTransact(pub u16);

open_enum!(NtTransact, "NT_TRANSACT_", "0x{:04x}" {
    CREATE = 0x0001, "Create";
    IOCTL = 0x0002, "IO_Control";
    SET_SECURITY_DESC = 0x0003, "Set_Security_Desc";
    NOTIFY_CHANGE = 0x0004, "Notify_Change";
    RENAME = 0x0005, "Rename";
    QUERY_SECURITY_DESC = 0x0006, "Get_Security_Desc";
    QUERY_QUOTA = 0x0007, "Get_Quota";
    SET_QUOTA = 0x0008, "Set_Quota";
    CREATE2 = 0x0009, "Create2";
});

/// SMB_COM_TRANSACTION subcommand (MS-CIFS 2.2.2.2).
///
/// Value 1 is ambiguous: it sets the state of a `\PIPE\` and writes to a `\MAILSLOT\`. [`Transaction::name`] returns
/// the former.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Transaction(pub u16);

open_enum!(Transaction, "TRANS_", "0x{:04x}" {
    SET_NMPIPE_STATE = 0x0001, "Set_Pipe_State";
    RAW_READ_NMPIPE = 0x0011, "Raw_Read_Pipe";
    QUERY_NMPIPE_STATE = 0x0021, "Get_Pipe_State";
    QUERY_NMPIPE_INFO = 0x0022, "Get_Pipe_Info";
    PEEK_NMPIPE = 0x0023, "Peek_Pipe";
    TRANSACT_NMPIPE = 0x0026, "Transact_Pipe";
    RAW_WRITE_NMPIPE = 0x0031, "Raw_Write_Pipe";
    READ_NMPIPE = 0x0036, "Read_Pipe";
    WRITE_NMPIPE = 0x0037, "Write_Pipe";
    WAIT_NMPIPE = 0x0053, "Wait_Pipe";
    CALL_NMPIPE = 0x0054, "Call_Pipe";
});
