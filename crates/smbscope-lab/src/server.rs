//! Public interface: starting, using and stopping a server.

use crate::command_for;
use crate::keeper::KeeperProcess;
use crate::running::Running;
use crate::state_folder::ServerRecord;
use crate::tools::Tools;
use crate::users::{self, Password, SystemAccounts};
use crate::{LabError, LabServerSettings, Process, StateFolder, settings};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Checks that Samba can be started here. The error is one line and says what to do.
pub fn available() -> Result<(), String> {
    Tools::find().and_then(|_| SystemAccounts::read()).map(drop).map_err(|error| error.to_string())
}

#[derive(Debug, Clone, Default)]
pub struct Launcher {
    state: StateFolder,
    name: Option<String>,
    keeper: Option<(OsString, Vec<OsString>)>,
}

impl Launcher {
    pub fn new() -> Launcher {
        Launcher::default()
    }

    pub fn state(self, state: StateFolder) -> Launcher {
        Launcher { state, ..self }
    }

    pub fn name(self, name: &str) -> Launcher {
        Launcher { name: Some(name.to_owned()), ..self }
    }

    /// Runs the server in a keeper process, started with this command, which has to call [`keep`](crate::keep). The
    /// keeper cleans up however this process ends. It also runs the slow link and the CPU load, so that they don't use
    /// this process's CPU time.
    pub fn kept_by(
        self,
        program: impl Into<OsString>,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Launcher {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Launcher { keeper: Some((program.into(), arguments)), ..self }
    }

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

    /// Starts a server that runs until [`StateFolder::stop`]. Requires a keeper.
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

#[derive(Debug)]
pub struct LabServer {
    hold: Hold,
}

#[derive(Debug)]
enum Hold {
    Own(Box<Running>),
    Keeper { keeper: KeeperProcess, record: Box<ServerRecord>, passwords: Vec<Password> },
}

impl LabServer {
    /// Starts a server within this process and waits until it answers. See [`Launcher`] for options.
    pub fn start(settings: &LabServerSettings) -> Result<LabServer, LabError> {
        Launcher::new().start(settings)
    }

    fn new(hold: Hold) -> LabServer {
        LabServer { hold }
    }

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

    /// IPv4. The same port is open on `::1` if the machine has IPv6 and the server is on the loopback interface.
    pub fn address(&self) -> SocketAddr {
        self.record().address()
    }

    pub fn port(&self) -> u16 {
        self.record().port
    }

    pub fn share(&self) -> &'static str {
        settings::SHARE
    }

    pub fn encrypted_share(&self) -> &'static str {
        settings::ENCRYPTED_SHARE
    }

    pub fn user(&self) -> &str {
        self.record().user()
    }

    pub fn password(&self) -> &str {
        self.passwords().first().map_or("", Password::reveal)
    }

    pub fn users(&self) -> impl Iterator<Item = (&str, &str)> {
        let users = self.record().users.iter().map(|user| user.name.as_str());
        users.zip(self.passwords().iter().map(Password::reveal))
    }

    pub fn folder(&self) -> &Path {
        &self.record().folder
    }

    pub fn share_folder(&self) -> &Path {
        &self.record().share_folder
    }

    pub fn pids(&self) -> Vec<u32> {
        self.record().pids()
    }

    pub fn cpu_time(&self) -> Duration {
        self.record().cpu_time()
    }

    pub fn scanner_cpu_time(&self) -> Option<Duration> {
        self.record().scanner_cpu_time()
    }

    /// Suspends the server and blocks for this time. Connections stay open, requests are not answered.
    pub fn stall(&self, time: Duration) {
        self.pause();
        std::thread::sleep(time);
        self.resume();
    }

    pub fn pause(&self) {
        self.record().signal(rustix::process::Signal::STOP);
    }

    pub fn resume(&self) {
        self.record().signal(rustix::process::Signal::CONT);
    }

    /// Kills Samba as in a crash. The folder stays until the value is dropped.
    pub fn kill(&self) {
        self.record().signal(rustix::process::Signal::KILL);
    }

    /// Ends a process, too, if this one dies without stopping the server. Requires a keeper.
    pub fn takes_along(&mut self, pid: u32) -> Result<(), LabError> {
        match (&mut self.hold, Process::find(pid)) {
            (Hold::Keeper { keeper, .. }, Some(process)) => keeper.takes_along(process),
            (Hold::Keeper { .. }, None) => Ok(()),
            (Hold::Own(_), _) => {
                let text = "a server without a process that takes care of it can't end others";
                Err(LabError::Settings(text.to_owned()))
            }
        }
    }

    pub fn stop(self) -> Result<(), LabError> {
        match self.hold {
            Hold::Own(running) => running.stop(),
            Hold::Keeper { keeper, .. } => keeper.stop(),
        }
    }
}
