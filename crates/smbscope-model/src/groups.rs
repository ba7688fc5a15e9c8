//! Which group a command belongs to (Swartz 1997, table 1, and appendix A for what is *Attributes* and *Directory*).

use crate::command::{Command, Subcommand};
use crate::group::Group;
use smbscope_wire::names::{Fsctl, InfoLevel, NtTransact, Trans2, Transaction};
use smbscope_wire::{smb1, smb2};

/// Classes of SET_INFO that rename or delete: FileRenameInformation, FileDispositionInformation, their Ex forms, and
/// FileLinkInformation (MS-FSCC 2.4).
const DIRECTORY_CLASSES: [u8; 6] = [10, 11, 13, 64, 65, 72];

/// The group of an SMB2 command. `waits` says that the request is an expected wait (a blocking lock, a read
/// from a named pipe).
pub fn smb2(command: smb2::Command, subcommand: Option<Subcommand>, waits: bool) -> Group {
    use smb2::Command;
    if waits {
        return Group::Waiting;
    }
    match command {
        Command::CREATE | Command::CLOSE => Group::OpenClose,
        Command::READ => Group::Read,
        Command::WRITE | Command::FLUSH => Group::Write,
        Command::LOCK => Group::Locking,
        Command::QUERY_DIRECTORY => Group::Directory,
        Command::QUERY_INFO => Group::Attributes,
        Command::SET_INFO => match subcommand {
            Some(Subcommand::Info(InfoLevel::File(class))) if DIRECTORY_CLASSES.contains(&class) => Group::Directory,
            _ => Group::Attributes,
        },
        Command::CHANGE_NOTIFY | Command::OPLOCK_BREAK | Command::SERVER_TO_CLIENT_NOTIFICATION => Group::Waiting,
        Command::IOCTL if subcommand == Some(Subcommand::Fsctl(Fsctl::PIPE_WAIT)) => Group::Waiting,
        Command::NEGOTIATE
        | Command::SESSION_SETUP
        | Command::LOGOFF
        | Command::TREE_CONNECT
        | Command::TREE_DISCONNECT
        | Command::ECHO => Group::Session,
        _ => Group::Control,
    }
}

/// Whether a command of [`Group::OpenClose`] opens a file, rather than closing one.
pub fn opens(command: Command) -> bool {
    match command {
        Command::Smb2(command) => command == smb2::Command::CREATE,
        Command::Smb1(command) => command != smb1::Command::CLOSE,
        Command::EncryptedFrame => false,
    }
}

/// The group of an SMB1 command.
pub fn smb1(command: smb1::Command, subcommand: Option<Subcommand>, waits: bool) -> Group {
    use smb1::Command;
    if waits {
        return Group::Waiting;
    }
    match command {
        Command::OPEN
        | Command::CREATE
        | Command::CREATE_NEW
        | Command::CREATE_TEMPORARY
        | Command::OPEN_ANDX
        | Command::NT_CREATE_ANDX
        | Command::CLOSE => Group::OpenClose,
        Command::READ
        | Command::READ_RAW
        | Command::READ_MPX
        | Command::READ_ANDX
        | Command::LOCK_AND_READ
        | Command::READ_BULK => Group::Read,
        Command::WRITE
        | Command::WRITE_RAW
        | Command::WRITE_MPX
        | Command::WRITE_ANDX
        | Command::WRITE_AND_UNLOCK
        | Command::WRITE_AND_CLOSE
        | Command::WRITE_COMPLETE
        | Command::FLUSH => Group::Write,
        Command::LOCKING_ANDX | Command::LOCK_BYTE_RANGE | Command::UNLOCK_BYTE_RANGE => Group::Locking,
        Command::QUERY_INFORMATION
        | Command::SET_INFORMATION
        | Command::QUERY_INFORMATION2
        | Command::SET_INFORMATION2
        | Command::QUERY_INFORMATION_DISK
        | Command::SEEK => Group::Attributes,
        Command::CREATE_DIRECTORY
        | Command::DELETE_DIRECTORY
        | Command::CHECK_DIRECTORY
        | Command::DELETE
        | Command::RENAME
        | Command::NT_RENAME
        | Command::SEARCH
        | Command::FIND
        | Command::FIND_UNIQUE
        | Command::FIND_CLOSE
        | Command::FIND_CLOSE2 => Group::Directory,
        Command::TRANSACTION2 => match subcommand {
            Some(Subcommand::Trans2(subcommand)) => trans2(subcommand),
            _ => Group::Control,
        },
        Command::NT_TRANSACT => match subcommand {
            Some(Subcommand::NtTransact(NtTransact::CREATE)) => Group::OpenClose,
            Some(Subcommand::NtTransact(NtTransact::NOTIFY_CHANGE)) => Group::Waiting,
            Some(Subcommand::NtTransact(NtTransact::IOCTL) | Subcommand::Fsctl(_)) | None => Group::Control,
            Some(_) => Group::Attributes,
        },
        Command::TRANSACTION => match subcommand {
            Some(Subcommand::Transaction(
                Transaction::READ_NMPIPE | Transaction::RAW_READ_NMPIPE | Transaction::WAIT_NMPIPE,
            )) => Group::Waiting,
            _ => Group::Control,
        },
        Command::NEGOTIATE
        | Command::SESSION_SETUP_ANDX
        | Command::LOGOFF_ANDX
        | Command::TREE_CONNECT
        | Command::TREE_CONNECT_ANDX
        | Command::TREE_DISCONNECT
        | Command::PROCESS_EXIT
        | Command::ECHO => Group::Session,
        _ => Group::Control,
    }
}

fn trans2(subcommand: Trans2) -> Group {
    match subcommand {
        Trans2::OPEN2 => Group::OpenClose,
        Trans2::FIND_FIRST2 | Trans2::FIND_NEXT2 | Trans2::CREATE_DIRECTORY => Group::Directory,
        Trans2::QUERY_FS_INFORMATION
        | Trans2::SET_FS_INFORMATION
        | Trans2::QUERY_PATH_INFORMATION
        | Trans2::SET_PATH_INFORMATION
        | Trans2::QUERY_FILE_INFORMATION
        | Trans2::SET_FILE_INFORMATION => Group::Attributes,
        Trans2::FIND_NOTIFY_FIRST | Trans2::FIND_NOTIFY_NEXT => Group::Waiting,
        _ => Group::Control,
    }
}
