//! What a scripted server does: how it presents itself, and what goes wrong when.

use smbscope_model::Command;
use smbscope_wire::status::NtStatus;
use std::time::Duration;

/// How the server presents itself, and the rules by which its answers go wrong.
#[derive(Debug, Clone)]
pub struct Script {
    /// Where to listen; port 0 is any free one.
    pub address: std::net::SocketAddr,
    /// SMB2 dialects that it speaks; of those that a client offers it takes the highest.
    pub dialects: Vec<u16>,
    /// Whether it speaks SMB1 NT LM 0.12.
    pub smb1: bool,
    /// Bytes in every file.
    pub file_size: u64,
    /// Files in every directory.
    pub entries: usize,
    /// Largest read, write and metadata transaction.
    pub max_transfer: u32,
    /// SMB1: largest message that the server takes, except for large writes.
    pub smb1_buffer: u32,
    /// Credits granted at most with an answer; a client gets what it asks for up to that.
    pub credits: u16,
    /// SMB 3.1.1: answer offers of signing and encryption algorithms with a choice. Guests use neither.
    pub contexts: bool,
    /// Grant the oplock or lease that is asked for.
    pub oplocks: bool,
    /// Every directory holds directories instead of files, which hold directories, and so on.
    pub nested: bool,
    /// A listing begins again where it should end.
    pub looping: bool,
    /// Every session setup is answered with one more challenge.
    pub endless_login: bool,
    /// What goes wrong, in order; the first rule that applies to a command decides.
    pub rules: Vec<Rule>,
}

impl Default for Script {
    fn default() -> Script {
        Script {
            address: ([127, 0, 0, 1], 0).into(),
            dialects: vec![0x0202, 0x0210, 0x0300, 0x0302, 0x0311],
            smb1: true,
            file_size: 1 << 20,
            entries: 10,
            max_transfer: 1 << 20,
            smb1_buffer: 16_644,
            credits: 512,
            contexts: true,
            oplocks: false,
            nested: false,
            looping: false,
            endless_login: false,
            rules: Vec::new(),
        }
    }
}

impl Script {
    /// A server without faults.
    pub fn new() -> Script {
        Script::default()
    }

    /// With one more rule.
    pub fn rule(mut self, rule: Rule) -> Script {
        self.rules.push(rule);
        self
    }
}

/// A fault, and when it happens.
#[derive(Debug, Clone)]
pub struct Rule {
    pub(super) fault: Fault,
    pub(super) command: Option<Command>,
    pub(super) connection: Option<u64>,
    pub(super) each_connection: bool,
    pub(super) after: u64,
    pub(super) times: u64,
    pub(super) share: f64,
    pub(super) from: Duration,
    pub(super) until: Duration,
}

impl Rule {
    fn new(fault: Fault, command: Option<Command>) -> Rule {
        Rule {
            fault,
            command,
            connection: None,
            each_connection: false,
            after: 0,
            times: u64::MAX,
            share: 1.0,
            from: Duration::ZERO,
            until: Duration::MAX,
        }
    }

    /// Only on this connection, counted from 0 in the order in which they were accepted.
    pub fn connection(mut self, number: u64) -> Rule {
        self.connection = Some(number);
        self
    }

    /// Count commands of each connection by themselves; those of all connections together otherwise.
    pub fn each_connection(mut self) -> Rule {
        self.each_connection = true;
        self
    }

    /// Only after this many commands of the kind.
    pub fn after(mut self, commands: u64) -> Rule {
        self.after = commands;
        self
    }

    /// Only this often.
    pub fn times(mut self, times: u64) -> Rule {
        self.times = times;
        self
    }

    /// Only once.
    pub fn once(self) -> Rule {
        self.times(1)
    }

    /// Only to this share of the commands (0 to 1), spread evenly.
    pub fn share(mut self, share: f64) -> Rule {
        self.share = share;
        self
    }

    /// Only in this time since the start of the server, or since the rule was added to a running one.
    pub fn between(mut self, from: Duration, until: Duration) -> Rule {
        (self.from, self.until) = (from, until);
        self
    }
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fault {
    /// No answer on any connection leaves the server for this long; then all that were held do.
    Stall(Duration),
    /// The answer is late.
    Delay(Duration),
    /// The connection is reset (RST) instead of an answer.
    Reset,
    /// The connection is closed (FIN) instead of an answer.
    Close,
    /// No answer, to this and to whatever comes on the connection, which stays open.
    Silent,
    /// No answer to this command.
    Drop,
    /// This error and nothing else.
    Status(NtStatus),
    /// STATUS_PENDING at once (MS-SMB2 3.3.4.2), the answer this much later.
    Pending(Duration),
    /// The answer breaks the protocol.
    Malformed(Malformed),
    /// The server breaks the oplock of the last open before it answers (MS-SMB2 2.2.23.1).
    OplockBreak,
    /// The server breaks a lease before it answers (MS-SMB2 2.2.23.2).
    LeaseBreak,
    /// A NetBIOS keep-alive (RFC 1002 4.3.6) before the answer.
    KeepAlive,
    /// The answer arrives in pieces of so many bytes, with a pause after each.
    Dribble {
        /// Bytes of a piece.
        piece: usize,
        /// Time between pieces.
        pause: Duration,
    },
    /// The same message without end, as fast as the client takes it; nothing that the client sends is read any more.
    Flood {
        /// What is sent.
        of: Flood,
        /// The command is answered before.
        answered: bool,
    },
    /// A frame of 16 MiB is announced and arrives byte by byte, with a pause after each.
    Trickle(Duration),
}

/// What a server can send without end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flood {
    /// Breaks of the oplock of the last open.
    OplockBreak,
    /// Breaks of a lease that have to be acknowledged (SMB1: of the oplock).
    LeaseBreak,
    /// NetBIOS keep-alives.
    KeepAlive,
    /// Answers that are not the last one: STATUS_PENDING (SMB1: parts of a transaction that bring nothing).
    Unfinished,
    /// Answers to a request that was never made.
    Answers,
}

impl Fault {
    /// To every such command.
    pub fn on(self, command: impl Into<AnyCommand>) -> Rule {
        Rule::new(self, Some(command.into().0))
    }

    /// To whatever comes.
    pub fn always(self) -> Rule {
        Rule::new(self, None)
    }
}

/// A command of either protocol, so that rules read well.
#[derive(Debug, Clone, Copy)]
pub struct AnyCommand(Command);

impl From<Command> for AnyCommand {
    fn from(command: Command) -> AnyCommand {
        AnyCommand(command)
    }
}

impl From<smbscope_wire::smb1::Smb1Command> for AnyCommand {
    fn from(command: smbscope_wire::smb1::Smb1Command) -> AnyCommand {
        AnyCommand(Command::Smb1(command))
    }
}

impl From<smbscope_wire::smb2::Smb2Command> for AnyCommand {
    fn from(command: smbscope_wire::smb2::Smb2Command) -> AnyCommand {
        AnyCommand(Command::Smb2(command))
    }
}

/// How an answer breaks the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// The protocol id is not one of SMB.
    ProtocolId,
    /// The StructureSize of the body is 7 (SMB1: the word count is 99).
    StructureSize,
    /// Offsets in the body point behind the end of the message.
    OffsetBehindEnd,
    /// Lengths in the body reach behind the end of the message.
    LengthBehindEnd,
    /// The frame's header announces 16 MiB, which never come.
    FrameLength,
    /// The frame's type does not exist.
    FrameType,
    /// The message has only its first bytes, and its frame's header says so.
    Truncated(usize),
    /// The message has only its first bytes, though its frame's header says more; then the connection is closed.
    CutOff(usize),
    /// The message id (SMB1: MID) is another.
    MessageId,
    /// Another answer, to a request that was never made, goes ahead.
    WithoutRequest,
    /// The answer is sent twice.
    Twice,
    /// It answers another command.
    Command,
    /// It has no flag of a response.
    NotAResponse,
    /// It grants no credit (SMB1 has none: nothing changes).
    NoCredits,
    /// NextCommand points behind the end of the message (SMB1 has none: nothing changes).
    NextCommand,
    /// It is signed, wrongly.
    WrongSignature,
    /// It is encrypted, with a key that nobody has.
    Encrypted,
    /// READ brings so many bytes more than were asked for, and WRITE says that it wrote so many more.
    Longer(u16),
    /// Bytes changed at random, by a seed: 1 to 8 of them anywhere behind the frame's header.
    Random(u64),
}
