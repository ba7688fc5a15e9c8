//! A running server, for as long as the value lives.

use crate::child::command_for;
use crate::keeper::KeeperProcess;
use crate::record::ServerRecord;
use crate::running::Running;
use crate::users::{self, Password};
use crate::{LabError, LabServerSettings, Process, StateFolder, settings};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// How a server is to be started: where, under which name, and who takes care of it.
#[derive(Debug, Clone, Default)]
pub struct Launcher {
    state: StateFolder,
    name: Option<String>,
    keeper: Option<(OsString, Vec<OsString>)>,
}

impl Launcher {
    /// With its folder in the default place, under a name that nobody else has, and taken care of by this process.
    pub fn new() -> Launcher {
        Launcher::default()
    }

    /// With its folder in another place.
    pub fn state(self, state: StateFolder) -> Launcher {
        Launcher { state, ..self }
    }

    /// Under this name.
    pub fn name(self, name: &str) -> Launcher {
        Launcher { name: Some(name.to_owned()), ..self }
    }

    /// Taken care of by a process of its own, which is started with this command and has to call [`keep`]. It cleans up
    /// when this process ends, however that comes about, and does the work of a slow link and of a busy server, so
    /// that this process's own use of the processor says nothing about the server.
    ///
    /// [`keep`]: crate::keep
    pub fn kept_by(
        self,
        program: impl Into<OsString>,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Launcher {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Launcher { keeper: Some((program.into(), arguments)), ..self }
    }

    /// Starts a server that ends with the value, and returns when it answers.
    pub fn start(&self, settings: &LabServerSettings) -> Result<LabServer, LabError> {
        let name = self.name_or_unique();
        let Some(command) = self.command() else {
            return Running::start(&self.state, &name, settings, false)
                .map(|running| LabServer::new(Hold::Own(Box::new(running))));
        };
        let (keeper, record) = KeeperProcess::start(command, &self.state, &name, settings, false)?;
        let passwords = users::read(&record.folder)?;
        Ok(LabServer::new(Hold::Keeper { keeper, record: Box::new(record), passwords }))
    }

    /// Starts a server that stays until [`StateFolder::stop`]. It needs a keeper.
    pub fn detach(&self, settings: &LabServerSettings) -> Result<ServerRecord, LabError> {
        let command = self.command().ok_or_else(|| {
            LabError::Settings("a server that stays needs a process of its own to take care of it".to_owned())
        })?;
        let (keeper, record) = KeeperProcess::start(command, &self.state, &self.name_or_unique(), settings, true)?;
        keeper.leave()?;
        Ok(record)
    }

    fn name_or_unique(&self) -> String {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let unique = || format!("p{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        self.name.clone().unwrap_or_else(unique)
    }

    fn command(&self) -> Option<Command> {
        let (program, arguments) = self.keeper.as_ref()?;
        let mut command = command_for(program);
        command.args(arguments);
        Some(command)
    }
}

/// A private Samba server. It ends with the value, and everything of it is gone then.
#[derive(Debug)]
pub struct LabServer {
    hold: Hold,
}

/// Who takes care of it.
#[derive(Debug)]
enum Hold {
    /// This process.
    Own(Box<Running>),
    /// A process of its own.
    Keeper { keeper: KeeperProcess, record: Box<ServerRecord>, passwords: Vec<Password> },
}

impl LabServer {
    /// Starts a server, and returns when it answers. This process takes care of it; see [`Launcher`] for more.
    pub fn start(settings: &LabServerSettings) -> Result<LabServer, LabError> {
        Launcher::new().start(settings)
    }

    fn new(hold: Hold) -> LabServer {
        LabServer { hold }
    }

    /// What is known about it.
    pub fn record(&self) -> &ServerRecord {
        match &self.hold {
            Hold::Own(running) => &running.record,
            Hold::Keeper { record, .. } => record,
        }
    }

    fn passwords(&self) -> &[Password] {
        match &self.hold {
            Hold::Own(running) => &running.passwords,
            Hold::Keeper { passwords, .. } => passwords,
        }
    }

    /// Where clients connect to: IPv4, and the same port of `::1` where the machine has IPv6.
    pub fn address(&self) -> SocketAddr {
        self.record().address()
    }

    /// The port of [`Server::address`].
    pub fn port(&self) -> u16 {
        self.record().port
    }

    /// The share.
    pub fn share(&self) -> &'static str {
        settings::SHARE
    }

    /// The share of the same files that requires encryption.
    pub fn encrypted_share(&self) -> &'static str {
        settings::ENCRYPTED_SHARE
    }

    /// The first user.
    pub fn user(&self) -> &str {
        self.record().user()
    }

    /// The first user's password.
    pub fn password(&self) -> &str {
        self.passwords().first().map_or("", Password::reveal)
    }

    /// All users with their passwords.
    pub fn users(&self) -> impl Iterator<Item = (&str, &str)> {
        let users = self.record().users.iter().map(|user| user.name.as_str());
        users.zip(self.passwords().iter().map(Password::reveal))
    }

    /// The server's own folder: configuration, users, logs.
    pub fn folder(&self) -> &Path {
        &self.record().folder
    }

    /// The shared files, as the machine sees them.
    pub fn share_folder(&self) -> &Path {
        &self.record().share_folder
    }

    /// Samba's processes: the first one, one for each connection, and helpers.
    pub fn pids(&self) -> Vec<u32> {
        self.record().pids()
    }

    /// User and system time of Samba's processes so far, ended connections included.
    pub fn cpu_time(&self) -> Duration {
        self.record().cpu_time()
    }

    /// The same of the virus scanner.
    pub fn scanner_cpu_time(&self) -> Option<Duration> {
        self.record().scanner_cpu_time()
    }

    /// Makes the server stand still, and returns when it goes on: connections stay, and nothing is answered.
    pub fn stall(&self, time: Duration) {
        self.pause();
        std::thread::sleep(time);
        self.resume();
    }

    /// Makes the server stand still.
    pub fn pause(&self) {
        self.record().signal(rustix::process::Signal::STOP);
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.record().signal(rustix::process::Signal::CONT);
    }

    /// Kills Samba, as a crash would. The folder stays until the value goes.
    pub fn kill(&self) {
        self.record().signal(rustix::process::Signal::KILL);
    }

    /// A process that is to end when this one ends without ending the server: what works with the server has no use
    /// without it. Only a server with a keeper can do that.
    pub fn takes_along(&mut self, pid: u32) -> Result<(), LabError> {
        match (&mut self.hold, Process::find(pid)) {
            (Hold::Keeper { keeper, .. }, Some(process)) => keeper.takes_along(process),
            // It has ended already.
            (Hold::Keeper { .. }, None) => Ok(()),
            (Hold::Own(_), _) => {
                let text = "a server without a process that takes care of it can't end others";
                Err(LabError::Settings(text.to_owned()))
            }
        }
    }

    /// Ends the server and removes everything of it. Dropping the value does the same, without telling what failed.
    pub fn stop(self) -> Result<(), LabError> {
        match self.hold {
            Hold::Own(running) => running.stop(),
            Hold::Keeper { keeper, .. } => keeper.stop(),
        }
    }
}
