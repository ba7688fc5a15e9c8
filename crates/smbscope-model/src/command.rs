//! Commands, subcommands and dialects under the specification's own names.

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
