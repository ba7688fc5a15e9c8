//! Commands, subcommands and dialects under the specification's own names, and the operation groups of Swartz (1997,
//! table 1; *Attributes* and *Directory*: appendix A), extended to SMB1 and SMB2/3.

use crate::named;
use serde::{Deserialize, Serialize};
use smbscope_wire::names::{Fsctl, InfoLevel, NtTransact, Trans2, Transaction};
use smbscope_wire::{smb1, smb2};
use std::fmt;

/// SMB1 (MS-CIFS, MS-SMB) or SMB2/3 (MS-SMB2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Protocol {
    /// MS-CIFS and MS-SMB.
    #[serde(rename = "SMB1")]
    Smb1,
    /// MS-SMB2, dialects 2.0.2 to 3.1.1.
    #[serde(rename = "SMB2")]
    Smb2,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::Smb1 => "SMB1",
            Protocol::Smb2 => "SMB2",
        })
    }
}

/// Command code of either protocol. Unknown codes are legal and print as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Command {
    /// SMB_COM_* code (MS-CIFS 2.2.2.1).
    Smb1(smb1::Smb1Command),
    /// See MS-SMB2 2.2.1.
    Smb2(smb2::Smb2Command),
    /// Frame in an SMB2 TRANSFORM_HEADER, with unknown contents (MS-SMB2 2.2.41).
    EncryptedFrame,
}

impl Command {
    pub fn known() -> impl Iterator<Item = Command> {
        let smb1 = smb1::Smb1Command::KNOWN.iter().map(|command| Command::Smb1(*command));
        let smb2 = smb2::Smb2Command::KNOWN.iter().map(|command| Command::Smb2(*command));
        smb1.chain(smb2).chain([Command::EncryptedFrame])
    }

    pub fn protocol(self) -> Protocol {
        match self {
            Command::Smb1(_) => Protocol::Smb1,
            Command::Smb2(_) | Command::EncryptedFrame => Protocol::Smb2,
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Command::Smb1(command) => command.fmt(f),
            Command::Smb2(command) => command.fmt(f),
            Command::EncryptedFrame => f.write_str("ENCRYPTED"),
        }
    }
}

/// Refinement of a command that has several purposes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Subcommand {
    Trans2(Trans2),
    NtTransact(NtTransact),
    /// SMB_COM_TRANSACTION subcommand (named pipes, mailslots, RAP).
    Transaction(Transaction),
    /// SMB2 IOCTL or NT_TRANSACT_IOCTL control code.
    Fsctl(Fsctl),
    /// Information type and class of SMB2 QUERY_INFO, SET_INFO and QUERY_DIRECTORY.
    Info(InfoLevel),
    /// Commands after the first one of an AndX chain, padded with `NO_ANDX` (0xff).
    AndX([smb1::Smb1Command; 3]),
    /// Raw data block of SMB_COM_WRITE_RAW, to which the server need not respond: "async portion" in Swartz (1997).
    AsyncPortion,
    /// Oplock or lease break, which the server sends unprompted.
    ServerInitiated,
}

impl Subcommand {
    /// Returns every subcommand that has a name, without AndX chains, which are too many.
    pub fn known() -> impl Iterator<Item = Subcommand> {
        let trans2 = Trans2::KNOWN.iter().map(|code| Subcommand::Trans2(*code));
        let nt_transact = NtTransact::KNOWN.iter().map(|code| Subcommand::NtTransact(*code));
        let transaction = Transaction::KNOWN.iter().map(|code| Subcommand::Transaction(*code));
        let fsctl = Fsctl::KNOWN.iter().map(|code| Subcommand::Fsctl(*code));
        let levels = [InfoLevel::KNOWN_FILE, InfoLevel::KNOWN_FILE_SYSTEM, &[InfoLevel::SECURITY, InfoLevel::QUOTA]];
        let info = levels.into_iter().flatten().map(|level| Subcommand::Info(*level));
        let apart = [Subcommand::AsyncPortion, Subcommand::ServerInitiated];
        trans2.chain(nt_transact).chain(transaction).chain(fsctl).chain(info).chain(apart)
    }
}

impl fmt::Display for Subcommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subcommand::Trans2(code) => code.fmt(f),
            Subcommand::NtTransact(code) => code.fmt(f),
            Subcommand::Transaction(code) => code.fmt(f),
            Subcommand::Fsctl(code) => code.fmt(f),
            Subcommand::Info(level) => level.fmt(f),
            Subcommand::AndX(chain) => {
                let mut separator = "";
                for command in chain.iter().take_while(|c| **c != smb1::Smb1Command::NO_ANDX) {
                    write!(f, "{separator}+ {command}")?;
                    separator = " ";
                }
                Ok(())
            }
            Subcommand::AsyncPortion => f.write_str("async portion"),
            Subcommand::ServerInitiated => f.write_str("server-initiated"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Dialect {
    /// `PC NETWORK PROGRAM 1.0` and its synonyms: the core protocol.
    Core,
    /// `MICROSOFT NETWORKS 1.03`: core plus.
    CorePlus,
    /// `LANMAN1.0`, `MICROSOFT NETWORKS 3.0`.
    Lanman1,
    /// `LM1.2X002`, `DOS LM1.2X002`.
    Lanman2,
    /// `LANMAN2.1`, `DOS LANMAN2.1`.
    Lanman21,
    /// `NT LM 0.12`, commonly called SMB1.
    NtLm012,
    OtherSmb1,
    /// SMB2/3 dialect revision, 0x0202 to 0x0311.
    Smb2(u16),
    /// Local folder in place of a share. Its calls count under the equivalent SMB2 commands.
    Local,
}

impl Dialect {
    /// `SMB 2.???`: SMB2 with a dialect yet to be negotiated (MS-SMB2 3.3.5.3.2).
    pub const SMB2_WILDCARD: Dialect = Dialect::Smb2(0x02ff);

    pub const KNOWN: [Dialect; 13] = [
        Dialect::Core,
        Dialect::CorePlus,
        Dialect::Lanman1,
        Dialect::Lanman2,
        Dialect::Lanman21,
        Dialect::NtLm012,
        Dialect::OtherSmb1,
        Dialect::Smb2(0x0202),
        Dialect::Smb2(0x0210),
        Dialect::Smb2(0x02ff),
        Dialect::Smb2(0x0300),
        Dialect::Smb2(0x0302),
        Dialect::Smb2(0x0311),
    ];

    pub fn protocol(self) -> Protocol {
        match self {
            Dialect::Smb2(_) | Dialect::Local => Protocol::Smb2,
            _ => Protocol::Smb1,
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Dialect::Core => "CORE",
            Dialect::CorePlus => "CORE PLUS",
            Dialect::Lanman1 => "LANMAN1.0",
            Dialect::Lanman2 => "LM1.2X002",
            Dialect::Lanman21 => "LANMAN2.1",
            Dialect::NtLm012 => "NT LM 0.12",
            Dialect::OtherSmb1 => "SMB1",
            Dialect::Smb2(0x0202) => "2.0.2",
            Dialect::Smb2(0x0210) => "2.1",
            Dialect::Smb2(0x02ff) => "2.x",
            Dialect::Smb2(0x0300) => "3.0",
            Dialect::Smb2(0x0302) => "3.0.2",
            Dialect::Smb2(0x0311) => "3.1.1",
            Dialect::Local => "local",
            Dialect::Smb2(other) => return write!(f, "0x{other:04x}"),
        })
    }
}

named! {
    /// Operation group of a command. `Attributes`, `Directory` and `Locking` together are the paper's *Other*.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "GroupName"))]
    pub enum CommandGroup {
        /// Create, open and close.
        #[serde(rename = "Open/Close")]
        OpenClose = "Open/Close",
        /// Metadata of files, volumes and security.
        Attributes = "Attributes",
        /// List, create, rename and delete.
        Directory = "Directory",
        /// Non-blocking byte-range locks.
        Locking = "Locking",
        /// Data from the server.
        Read = "Read",
        /// Data to the server, and flush.
        Write = "Write",
        /// Negotiate, session setup, tree connect, logoff, echo.
        Session = "Session",
        /// IOCTL and named-pipe transactions.
        Control = "Control",
        /// Expected waits: change notify, blocking locks, named-pipe reads, oplock breaks. Excluded from every
        /// headline figure.
        Waiting = "Waiting",
        /// Encrypted frames, whose command is unknown.
        Encrypted = "Encrypted",
    }
}

impl CommandGroup {
    /// Groups that the paper adds up as *Other*.
    pub const OTHER: [CommandGroup; 3] = [CommandGroup::Attributes, CommandGroup::Directory, CommandGroup::Locking];

    pub fn is_other(self) -> bool {
        CommandGroup::OTHER.contains(&self)
    }

    /// Returns true if the client was waiting for work of the server, so that headline figures include the group.
    pub fn in_headline(self) -> bool {
        !matches!(self, CommandGroup::Waiting | CommandGroup::Encrypted)
    }
}

/// SET_INFO classes that rename, delete or link (MS-FSCC 2.4), with their Ex forms.
const DIRECTORY_CLASSES: [u8; 6] = [10, 11, 13, 64, 65, 72];

/// Returns the group of an SMB2 command. `waits` marks an expected wait: a blocking lock or a named-pipe read.
pub fn smb2(command: smb2::Smb2Command, subcommand: Option<Subcommand>, waits: bool) -> CommandGroup {
    use smb2::Smb2Command;
    if waits {
        return CommandGroup::Waiting;
    }
    match command {
        Smb2Command::CREATE | Smb2Command::CLOSE => CommandGroup::OpenClose,
        Smb2Command::READ => CommandGroup::Read,
        Smb2Command::WRITE | Smb2Command::FLUSH => CommandGroup::Write,
        Smb2Command::LOCK => CommandGroup::Locking,
        Smb2Command::QUERY_DIRECTORY => CommandGroup::Directory,
        Smb2Command::QUERY_INFO => CommandGroup::Attributes,
        Smb2Command::SET_INFO => match subcommand {
            Some(Subcommand::Info(InfoLevel::File(class))) if DIRECTORY_CLASSES.contains(&class) => {
                CommandGroup::Directory
            }
            _ => CommandGroup::Attributes,
        },
        Smb2Command::CHANGE_NOTIFY | Smb2Command::OPLOCK_BREAK | Smb2Command::SERVER_TO_CLIENT_NOTIFICATION => {
            CommandGroup::Waiting
        }
        Smb2Command::IOCTL if subcommand == Some(Subcommand::Fsctl(Fsctl::PIPE_WAIT)) => CommandGroup::Waiting,
        Smb2Command::NEGOTIATE
        | Smb2Command::SESSION_SETUP
        | Smb2Command::LOGOFF
        | Smb2Command::TREE_CONNECT
        | Smb2Command::TREE_DISCONNECT
        | Smb2Command::ECHO => CommandGroup::Session,
        _ => CommandGroup::Control,
    }
}

/// Returns true if a command of [`CommandGroup::OpenClose`] opens a file rather than closing one.
pub fn opens(command: Command) -> bool {
    match command {
        Command::Smb2(command) => command == smb2::Smb2Command::CREATE,
        Command::Smb1(command) => command != smb1::Smb1Command::CLOSE,
        Command::EncryptedFrame => false,
    }
}

pub fn smb1(command: smb1::Smb1Command, subcommand: Option<Subcommand>, waits: bool) -> CommandGroup {
    use smb1::Smb1Command;
    if waits {
        return CommandGroup::Waiting;
    }
    match command {
        Smb1Command::TRANSACTION2 => match subcommand {
            Some(Subcommand::Trans2(subcommand)) => trans2(subcommand),
            _ => CommandGroup::Control,
        },
        Smb1Command::NT_TRANSACT => nt_transact(subcommand),
        Smb1Command::TRANSACTION => transaction(subcommand),
        _ => data_group(command).or_else(|| metadata_group(command)).unwrap_or(CommandGroup::Control),
    }
}

#[inline]
fn data_group(command: smb1::Smb1Command) -> Option<CommandGroup> {
    use smb1::Smb1Command;
    Some(match command {
        Smb1Command::OPEN
        | Smb1Command::CREATE
        | Smb1Command::CREATE_NEW
        | Smb1Command::CREATE_TEMPORARY
        | Smb1Command::OPEN_ANDX
        | Smb1Command::NT_CREATE_ANDX
        | Smb1Command::CLOSE => CommandGroup::OpenClose,
        Smb1Command::READ
        | Smb1Command::READ_RAW
        | Smb1Command::READ_MPX
        | Smb1Command::READ_ANDX
        | Smb1Command::LOCK_AND_READ
        | Smb1Command::READ_BULK => CommandGroup::Read,
        Smb1Command::WRITE
        | Smb1Command::WRITE_RAW
        | Smb1Command::WRITE_MPX
        | Smb1Command::WRITE_ANDX
        | Smb1Command::WRITE_AND_UNLOCK
        | Smb1Command::WRITE_AND_CLOSE
        | Smb1Command::WRITE_COMPLETE
        | Smb1Command::FLUSH => CommandGroup::Write,
        Smb1Command::LOCKING_ANDX | Smb1Command::LOCK_BYTE_RANGE | Smb1Command::UNLOCK_BYTE_RANGE => {
            CommandGroup::Locking
        }
        _ => return None,
    })
}

#[inline]
fn metadata_group(command: smb1::Smb1Command) -> Option<CommandGroup> {
    use smb1::Smb1Command;
    Some(match command {
        Smb1Command::QUERY_INFORMATION
        | Smb1Command::SET_INFORMATION
        | Smb1Command::QUERY_INFORMATION2
        | Smb1Command::SET_INFORMATION2
        | Smb1Command::QUERY_INFORMATION_DISK
        | Smb1Command::SEEK => CommandGroup::Attributes,
        Smb1Command::CREATE_DIRECTORY
        | Smb1Command::DELETE_DIRECTORY
        | Smb1Command::CHECK_DIRECTORY
        | Smb1Command::DELETE
        | Smb1Command::RENAME
        | Smb1Command::NT_RENAME
        | Smb1Command::SEARCH
        | Smb1Command::FIND
        | Smb1Command::FIND_UNIQUE
        | Smb1Command::FIND_CLOSE
        | Smb1Command::FIND_CLOSE2 => CommandGroup::Directory,
        Smb1Command::NEGOTIATE
        | Smb1Command::SESSION_SETUP_ANDX
        | Smb1Command::LOGOFF_ANDX
        | Smb1Command::TREE_CONNECT
        | Smb1Command::TREE_CONNECT_ANDX
        | Smb1Command::TREE_DISCONNECT
        | Smb1Command::PROCESS_EXIT
        | Smb1Command::ECHO => CommandGroup::Session,
        _ => return None,
    })
}

fn nt_transact(subcommand: Option<Subcommand>) -> CommandGroup {
    match subcommand {
        Some(Subcommand::NtTransact(NtTransact::CREATE)) => CommandGroup::OpenClose,
        Some(Subcommand::NtTransact(NtTransact::NOTIFY_CHANGE)) => CommandGroup::Waiting,
        Some(Subcommand::NtTransact(NtTransact::IOCTL) | Subcommand::Fsctl(_)) | None => CommandGroup::Control,
        Some(_) => CommandGroup::Attributes,
    }
}

fn transaction(subcommand: Option<Subcommand>) -> CommandGroup {
    match subcommand {
        Some(Subcommand::Transaction(
            Transaction::READ_NMPIPE | Transaction::RAW_READ_NMPIPE | Transaction::WAIT_NMPIPE,
        )) => CommandGroup::Waiting,
        _ => CommandGroup::Control,
    }
}

fn trans2(subcommand: Trans2) -> CommandGroup {
    match subcommand {
        Trans2::OPEN2 => CommandGroup::OpenClose,
        Trans2::FIND_FIRST2 | Trans2::FIND_NEXT2 | Trans2::CREATE_DIRECTORY => CommandGroup::Directory,
        Trans2::QUERY_FS_INFORMATION
        | Trans2::SET_FS_INFORMATION
        | Trans2::QUERY_PATH_INFORMATION
        | Trans2::SET_PATH_INFORMATION
        | Trans2::QUERY_FILE_INFORMATION
        | Trans2::SET_FILE_INFORMATION => CommandGroup::Attributes,
        Trans2::FIND_NOTIFY_FIRST | Trans2::FIND_NOTIFY_NEXT => CommandGroup::Waiting,
        _ => CommandGroup::Control,
    }
}
