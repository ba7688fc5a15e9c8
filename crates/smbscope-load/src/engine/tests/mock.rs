//! A mock server whose response times and statuses a test determines. Its clock is the runtime's, so a simulated minute
//! takes no time.

use crate::engine::clocks::now;
use crate::engine::session::{Performed, ServerSession, SessionFactory, SessionIdentity};
use crate::workload::{Action, Expected, HandleSlot, Script, ScriptStep};
use smbscope_client::{ClientError, Sample, Samples};
use smbscope_model::{Command, CommandGroup, Dialect, Endpoints, ExchangeOutcome};
use smbscope_stats::Random;
use smbscope_wire::smb2;
use smbscope_wire::status::NtStatus;
use std::io;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Reaction to a command or a connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Answers after this time.
    After(Duration, NtStatus),
    /// Answers at this time, on the scale of [`Asked::at`].
    At(Duration, NtStatus),
    Break,
    Never,
}

pub(crate) fn after_ms(milliseconds: u64) -> Answer {
    Answer::After(Duration::from_millis(milliseconds), NtStatus::SUCCESS)
}

/// A command or connect, as the behaviour sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Time since the first command, or since the first connect if the behaviour handles connects.
    pub(crate) at: Duration,
    /// Number of earlier connections.
    pub(crate) connection: usize,
    /// Number of earlier commands on this connection; `None` for the connect.
    pub(crate) command: Option<u64>,
}

type Behaviour = dyn Fn(Asked) -> Answer + Send + Sync;

#[derive(Clone)]
pub(crate) struct MockServer {
    behaviour: Arc<Behaviour>,
    counts_connects: bool,
    wishes: Option<Duration>,
    epoch: Arc<OnceLock<Instant>>,
    connections: Arc<Mutex<usize>>,
    log: Arc<Mutex<Vec<(usize, String)>>>,
}

impl MockServer {
    /// Connects take no time; see [`MockServer::with_connects`] for others.
    pub(crate) fn new(commands: impl Fn(Asked) -> Answer + Send + Sync + 'static) -> MockServer {
        let behaviour = move |asked: Asked| if asked.command.is_some() { commands(asked) } else { after_ms(0) };
        MockServer { counts_connects: false, ..MockServer::with_connects(behaviour) }
    }

    /// The behaviour also handles connects.
    pub(crate) fn with_connects(behaviour: impl Fn(Asked) -> Answer + Send + Sync + 'static) -> MockServer {
        MockServer {
            behaviour: Arc::new(behaviour),
            counts_connects: true,
            wishes: None,
            epoch: Arc::default(),
            connections: Arc::default(),
            log: Arc::default(),
        }
    }

    /// Sends a request to each session that has been idle for this long.
    pub(crate) fn wishing(self, after: Duration) -> MockServer {
        MockServer { wishes: Some(after), ..self }
    }

    /// Every action, with the number of its connection.
    pub(crate) fn log(&self) -> Vec<(usize, String)> {
        self.log.lock().unwrap().clone()
    }

    /// Waits for an answer, possibly forever.
    async fn ask(&self, connection: usize, command: Option<u64>) -> Result<(Instant, Instant, NtStatus), ClientError> {
        let asked_at = now();
        let epoch = match command {
            None if !self.counts_connects => asked_at,
            _ => *self.epoch.get_or_init(|| asked_at),
        };
        let at = asked_at.saturating_duration_since(epoch);
        let (answered_at, status) = match (self.behaviour)(Asked { at, connection, command }) {
            Answer::After(time, status) => (asked_at + time, status),
            Answer::At(time, status) => ((epoch + time).max(asked_at), status),
            Answer::Break => {
                let error = io::Error::from(io::ErrorKind::ConnectionReset);
                return Err(ClientError::Connection { what: "reading the answer", error });
            }
            Answer::Never => std::future::pending().await,
        };
        tokio::time::sleep_until(answered_at.into()).await;
        Ok((asked_at, answered_at, status))
    }
}

impl SessionFactory for MockServer {
    type Session = MockSession;

    async fn connect(&self) -> Result<MockSession, ClientError> {
        let number = {
            let mut connections = self.connections.lock().unwrap();
            *connections += 1;
            *connections - 1
        };
        let (_, _, status) = self.ask(number, None).await?;
        if status.is_error() {
            return Err(ClientError::Refused { what: "the session".to_owned(), status, hint: "ask someone" });
        }
        Ok(MockSession { server: self.clone(), number, commands: 0, samples: Vec::new() })
    }
}

pub(crate) struct MockSession {
    server: MockServer,
    number: usize,
    commands: u64,
    samples: Samples,
}

impl MockSession {
    fn sample(&self, action: &Action<'_>, from: Instant, until: Instant, status: Option<NtStatus>) -> Sample {
        let (command, group) = match action {
            Action::Read { .. } => (smb2::Smb2Command::READ, CommandGroup::Read),
            Action::Write { .. } => (smb2::Smb2Command::WRITE, CommandGroup::Write),
            Action::Open { .. } => (smb2::Smb2Command::CREATE, CommandGroup::OpenClose),
            Action::Close(_) => (smb2::Smb2Command::CLOSE, CommandGroup::OpenClose),
            _ => (smb2::Smb2Command::ECHO, CommandGroup::Session),
        };
        Sample {
            command: Command::Smb2(command),
            subcommand: None,
            group,
            message_id: self.commands,
            session_id: self.number as u64,
            tree_id: 1,
            file_id: None,
            status,
            request_first: from,
            request_last: from,
            interim: None,
            response_first: until,
            response_last: until,
            request_bytes: 100,
            response_bytes: 100,
            offset: None,
            length: None,
            compounded: false,
            signed: false,
            encrypted: false,
            outcome: if status.is_some() { ExchangeOutcome::Complete } else { ExchangeOutcome::Unanswered },
        }
    }
}

impl ServerSession for MockSession {
    async fn perform(&mut self, action: &Action<'_>) -> Result<Performed, ClientError> {
        self.server.log.lock().unwrap().push((self.number, format!("{action:?}")));
        let command = self.commands;
        self.commands += 1;
        match self.server.ask(self.number, Some(command)).await {
            Ok((from, until, status)) => {
                self.samples.push(self.sample(action, from, until, Some(status)));
                let moved = |length: u32| if status.is_error() { 0 } else { length.into() };
                Ok(match *action {
                    Action::Read { length, .. } => {
                        Performed { bytes_read: moved(length), ..Performed::with_status(status) }
                    }
                    Action::Write { length, .. } => {
                        Performed { bytes_written: moved(length), ..Performed::with_status(status) }
                    }
                    _ => Performed::with_status(status),
                })
            }
            Err(error) => {
                self.samples.push(self.sample(action, now(), now(), None));
                Err(error)
            }
        }
    }

    fn connection(&self) -> usize {
        0
    }

    fn samples(&mut self, _connection: usize) -> &mut Samples {
        &mut self.samples
    }

    async fn disturbed(&self) -> Result<(), ClientError> {
        let Some(every) = self.server.wishes else { return std::future::pending().await };
        tokio::time::sleep(every).await;
        Ok(())
    }

    async fn attend(&mut self) -> Result<(), ClientError> {
        let asked = (self.number, "attended".to_owned());
        self.server.log.lock().unwrap().push(asked);
        Ok(())
    }

    fn connections(&self) -> usize {
        1
    }

    fn identity(&self, _connection: usize) -> SessionIdentity {
        let client = format!("127.0.0.1:{}", 10_000 + self.number).parse().unwrap();
        let endpoints = Endpoints { client, server: "127.0.0.1:445".parse().unwrap() };
        let (user, share) = (Some("bench".into()), Some("share".into()));
        SessionIdentity { endpoints, dialect: Dialect::Smb2(0x0311), user, share }
    }

    async fn close_all(&mut self) -> Result<(), ClientError> {
        Ok(())
    }

    async fn disconnect(&mut self) -> Result<(), ClientError> {
        self.server.log.lock().unwrap().push((self.number, "disconnect".to_owned()));
        Ok(())
    }
}

/// Reads at random offsets, endlessly or for a number of operations.
pub(crate) struct Reads {
    names: Vec<String>,
    random: Random,
    left: Option<u64>,
    /// Commands per operation, and those left in the current one.
    commands: u32,
    pending: u32,
    /// Writes before the first operation, and those left.
    set_up: u32,
    writes: u32,
    /// Operations per pass (if passes end), operations done in the current one, and completed passes.
    pass: Option<u32>,
    done: u32,
    passes: u32,
}

impl Reads {
    pub(crate) fn new(seed: u64, number: u32) -> Reads {
        let random = Random::of_stream(seed, u64::from(number));
        let names = vec!["read".to_owned()];
        let (commands, pending, set_up, writes) = (1, 1, 0, 0);
        Reads { names, random, left: None, commands, pending, set_up, writes, pass: None, done: 0, passes: 0 }
    }

    pub(crate) fn in_passes_of(mut self, operations: u32) -> Reads {
        self.pass = Some(operations);
        self
    }

    pub(crate) fn only(mut self, operations: u64) -> Reads {
        self.left = Some(operations);
        self
    }

    pub(crate) fn after_writes(mut self, writes: u32) -> Reads {
        (self.set_up, self.writes) = (writes, writes);
        self
    }

    pub(crate) fn with_commands(mut self, commands: u32) -> Reads {
        (self.commands, self.pending) = (commands, commands);
        self
    }
}

impl Script for Reads {
    fn operations(&self) -> &[String] {
        &self.names
    }

    fn next(&mut self) -> Option<ScriptStep<'_>> {
        if self.sets_up() {
            self.writes -= 1;
            let action = Action::Write { slot: HandleSlot(0), offset: 0, length: 512 };
            let line = Some(self.set_up - self.writes);
            return Some(ScriptStep { action, operation: Some(0), expected: Expected::Success, completes: true, line });
        }
        if self.left == Some(0) {
            return None;
        }
        self.pending -= 1;
        let completes = self.pending == 0;
        if completes {
            self.pending = self.commands;
            self.left = self.left.map(|left| left - 1);
            self.done += 1;
            if self.pass == Some(self.done) {
                (self.done, self.passes) = (0, self.passes + 1);
            }
        }
        let offset = self.random.bits() % 1_000_000;
        let action = Action::Read { slot: HandleSlot(0), offset, length: 4096 };
        Some(ScriptStep { action, operation: Some(0), expected: Expected::Success, completes, line: None })
    }

    fn restart(&mut self) {
        self.pending = self.commands;
        self.writes = self.set_up;
        self.done = 0;
    }

    fn sets_up(&self) -> bool {
        self.writes > 0
    }

    fn passes(&self) -> Option<u32> {
        self.pass.map(|_| self.passes)
    }
}
