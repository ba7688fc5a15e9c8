//! Configuration of a scripted server: its properties, its faults with their conditions, and the selection of the rule
//! that applies to a command.

use smbscope_model::Command;
use smbscope_wire::status::NtStatus;
use std::collections::HashMap;
use std::time::{Duration, Instant};

#[derive(Debug, Clone)]
pub struct Script {
    /// Listen address; port 0 selects any free port.
    pub address: std::net::SocketAddr,
    /// Supported SMB2 dialects. The highest common one is chosen.
    pub dialects: Vec<u16>,
    /// Enables SMB1 NT LM 0.12.
    pub smb1: bool,
    pub file_size: u64,
    pub entries: usize,
    /// Maximum size in bytes of reads, writes and metadata transactions.
    pub max_transfer: u32,
    /// SMB1: maximum message size accepted, except for large writes.
    pub smb1_buffer: u32,
    /// Maximum number of credits granted per response; up to this, clients get what they request.
    pub credits: u16,
    /// SMB 3.1.1: select signing and encryption algorithms in negotiate contexts. Guests use neither.
    pub contexts: bool,
    pub oplocks: bool,
    /// Every directory contains directories instead of files, recursively.
    pub nested: bool,
    /// Directory listings restart instead of ending.
    pub looping: bool,
    /// Every session setup is answered with another challenge.
    pub endless_login: bool,
    /// Faults in order of priority: the first rule that applies to a command decides.
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
    pub fn new() -> Script {
        Script::default()
    }

    pub fn rule(mut self, rule: Rule) -> Script {
        self.rules.push(rule);
        self
    }
}

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

    /// Limits the rule to one connection, numbered from 0 in order of acceptance.
    pub fn connection(mut self, number: u64) -> Rule {
        self.connection = Some(number);
        self
    }

    /// Counts commands per connection instead of over all connections.
    pub fn each_connection(mut self) -> Rule {
        self.each_connection = true;
        self
    }

    /// Applies only after this many matching commands.
    pub fn after(mut self, commands: u64) -> Rule {
        self.after = commands;
        self
    }

    pub fn times(mut self, times: u64) -> Rule {
        self.times = times;
        self
    }

    pub fn once(self) -> Rule {
        self.times(1)
    }

    /// Applies to this share of the commands (0 to 1), evenly spread.
    pub fn share(mut self, share: f64) -> Rule {
        self.share = share;
        self
    }

    /// Applies only in this interval after the start of the server, or after the rule was added to a running one.
    pub fn between(mut self, from: Duration, until: Duration) -> Rule {
        (self.from, self.until) = (from, until);
        self
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fault {
    /// No connection gets a response for this long; then all held responses are sent.
    Stall(Duration),
    Delay(Duration),
    /// Resets the connection (RST) instead of responding.
    Reset,
    /// Closes the connection (FIN) instead of responding.
    Close,
    /// Never responds on this connection again, but keeps it open.
    Silent,
    Drop,
    Status(NtStatus),
    /// Sends STATUS_PENDING immediately (MS-SMB2 3.3.4.2) and the final response this much later.
    Pending(Duration),
    Malformed(Malformed),
    /// Breaks the oplock of the last open before responding (MS-SMB2 2.2.23.1).
    OplockBreak,
    /// Breaks a lease before responding (MS-SMB2 2.2.23.2).
    LeaseBreak,
    /// Sends a NetBIOS keep-alive (RFC 1002 §4.3.6) before the response.
    KeepAlive,
    /// Sends the response in pieces, with a pause after each.
    Dribble {
        piece: usize,
        pause: Duration,
    },
    /// Sends the same message endlessly, as fast as the client reads, and stops reading requests.
    Flood {
        of: Flood,
        answered: bool,
    },
    /// Announces a frame of 16 MiB and sends it byte by byte, with a pause after each.
    Trickle(Duration),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flood {
    OplockBreak,
    /// Breaks of a lease, to be acknowledged (SMB1: of the oplock).
    LeaseBreak,
    KeepAlive,
    /// Incomplete responses: STATUS_PENDING (SMB1: transaction parts without data).
    Unfinished,
    Answers,
}

impl Fault {
    pub fn on(self, command: impl Into<AnyCommand>) -> Rule {
        Rule::new(self, Some(command.into().0))
    }

    pub fn always(self) -> Rule {
        Rule::new(self, None)
    }
}

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    ProtocolId,
    /// StructureSize of 7 in the body (SMB1: word count of 99).
    StructureSize,
    /// Offsets in the body point beyond the end of the message.
    OffsetBehindEnd,
    /// Lengths in the body reach beyond the end of the message.
    LengthBehindEnd,
    /// The frame header announces 16 MiB, which never arrive.
    FrameLength,
    FrameType,
    /// Only this many bytes of the message, with a matching frame header.
    Truncated(usize),
    /// Only this many bytes of the message, although the frame header announces all; then the connection is closed.
    CutOff(usize),
    /// Wrong message id (SMB1: MID).
    MessageId,
    /// Preceded by another response without a request.
    WithoutRequest,
    /// Sent twice.
    Twice,
    Command,
    NotAResponse,
    /// No credits granted (no effect on SMB1).
    NoCredits,
    /// NextCommand points beyond the end of the message (no effect on SMB1).
    NextCommand,
    WrongSignature,
    /// Encrypted with an unknown key.
    Encrypted,
    /// READ returns this many bytes more than requested; WRITE reports this many more written.
    Longer(u16),
    /// Random changes from a seed: 1 to 8 bytes anywhere after the frame header.
    Random(u64),
}

#[derive(Debug)]
pub(super) struct Rules {
    running: Vec<Running>,
}

#[derive(Debug)]
struct Running {
    rule: Rule,
    since: Instant,
    /// Matching commands so far: in total (`None`), or by connection.
    seen: HashMap<Option<u64>, u64>,
    applied: HashMap<Option<u64>, u64>,
}

impl Rules {
    pub(super) fn new(rules: &[Rule], now: Instant) -> Rules {
        let mut all = Rules { running: Vec::new() };
        rules.iter().for_each(|rule| all.add(rule.clone(), now));
        all
    }

    pub(super) fn add(&mut self, rule: Rule, now: Instant) {
        self.running.push(Running { rule, since: now, seen: HashMap::new(), applied: HashMap::new() });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Returns the fault for this command. All rules count it; the first that applies decides.
    pub(super) fn decide(&mut self, command: Command, connection: u64, now: Instant) -> Option<Fault> {
        let mut decided = None;
        for running in &mut self.running {
            if running.counts(command, connection, now) && decided.is_none() {
                decided = running.apply(connection);
            }
        }
        decided
    }
}

impl Running {
    /// Counts the command if it matches. Returns true if the rule applies to it.
    fn counts(&mut self, command: Command, connection: u64, now: Instant) -> bool {
        let age = now.saturating_duration_since(self.since);
        let rule = &self.rule;
        if rule.command.is_some_and(|of| of != command)
            || rule.connection.is_some_and(|number| number != connection)
            || age < rule.from
            || age >= rule.until
        {
            return false;
        }
        let seen = self.seen.entry(self.rule.each_connection.then_some(connection)).or_default();
        *seen += 1;
        // Spreads the share evenly: the n-th command is included if n × share passes a whole number.
        let position = seen.checked_sub(self.rule.after + 1);
        position.is_some_and(|n| ((n + 1) as f64 * self.rule.share).floor() > (n as f64 * self.rule.share).floor())
    }

    fn apply(&mut self, connection: u64) -> Option<Fault> {
        let applied = self.applied.entry(self.rule.each_connection.then_some(connection)).or_default();
        if *applied >= self.rule.times {
            return None;
        }
        *applied += 1;
        Some(self.rule.fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_wire::smb2::Smb2Command as Smb2;

    const READ: Command = Command::Smb2(Smb2::READ);

    fn positions(rule: Rule, commands: u64) -> Vec<u64> {
        let now = Instant::now();
        let mut rules = Rules::new(&[rule], now);
        (0..commands).filter(|_| rules.decide(READ, 0, now).is_some()).collect()
    }

    #[test]
    fn rules_skip_and_stop_by_count() {
        assert_eq!(positions(Fault::Drop.on(Smb2::READ).after(2).times(3), 10), [2, 3, 4]);
        assert_eq!(positions(Fault::Drop.on(Smb2::WRITE), 10), [] as [u64; 0]);
    }

    #[test]
    fn shares_are_spread_evenly() {
        // Every fourth command.
        assert_eq!(positions(Fault::Drop.always().share(0.25), 12), [3, 7, 11]);
    }

    #[test]
    fn each_connection_has_its_own_count() {
        let now = Instant::now();
        let mut rules = Rules::new(&[Fault::Drop.on(Smb2::READ).once().each_connection()], now);
        let mut hit = |connection| rules.decide(READ, connection, now).is_some();
        assert_eq!([hit(0), hit(0), hit(1), hit(1)], [true, false, true, false]);
    }

    #[test]
    fn rules_hold_in_their_time_only() {
        let start = Instant::now();
        let (from, until) = (Duration::from_secs(1), Duration::from_secs(2));
        let mut rules = Rules::new(&[Fault::Drop.always().between(from, until)], start);
        let mut hit = |millis| rules.decide(READ, 0, start + Duration::from_millis(millis)).is_some();
        assert_eq!([hit(999), hit(1000), hit(1999), hit(2000)], [false, true, true, false]);
    }
}
