//! The options of a run, and everything else that stays the same while it goes on.

use crate::BenchError;
use crate::files::Sources;
use crate::options::{BenchOptions, OptionsError};
use crate::server::{Connect, Passwords, ServerUnderTest, Site};
use smbscope_client::SessionParameters;
use smbscope_lab::Launcher;
use smbscope_load::engine::{Criterion, Fleet, Host, LoadWork, OnLostHost, RampPlan, Search};
use smbscope_load::workload::{Script, UserSeat, Workload};
use smbscope_model::Timestamp;
use std::fmt;

pub(crate) struct Setup {
    pub(crate) options: RunOptions,
    pub(crate) started: Timestamp,
    pub(crate) site: Site,
    /// Names of the load hosts. Empty if the load is generated on this machine.
    pub(crate) hosts: Vec<String>,
    pub(crate) facts: SessionParameters,
}

impl Setup {
    pub(crate) fn sessions(&self) -> u32 {
        let RampPlan { users, sessions, .. } = &self.options.plan;
        sessions.of_users(users.most())
    }

    pub(crate) fn fleet(&mut self, cluster: Cluster) -> Result<Fleet, BenchError> {
        if self.site.options.folder.is_some() {
            let text = "a local folder exists on one machine only: name a share, or omit --cluster";
            return Err(BenchError::Unavailable(text.to_owned()));
        }
        if self.options.workload.recorded_sessions().is_some_and(|sessions| sessions.most() > 1) {
            let text =
                "the threads of a recorded client wait for each other, so they must run on one host: omit --cluster";
            return Err(BenchError::Unavailable(text.to_owned()));
        }
        let Cluster { hosts, on_lost } = cluster;
        let hosts = hosts().map_err(|why| BenchError::Unavailable(format!("no load hosts: {why}")))?;
        if self.site.lab.is_some()
            && let Some(host) = hosts.iter().find(|host| !host.is_here())
        {
            let text =
                format!("a private server can be reached from this machine only, and {} is another", host.name());
            return Err(BenchError::Unavailable(text + ": name a target"));
        }
        self.hosts = hosts.iter().map(|host| host.name().to_owned()).collect();
        let workload =
            self.options.workload.travelling().map_err(|error| BenchError::Unavailable(error.to_string()))?;
        let work = LoadWork { workload, of: self.sessions(), directory: self.site.directory.clone() };
        Ok(Fleet { hosts, on_lost, work })
    }

    pub(crate) fn script(&self, number: u32) -> Box<dyn Script> {
        let RunOptions { workload, plan, .. } = &self.options;
        let directory = self.site.directory.clone();
        Box::new(workload.script(&UserSeat { number, of: self.sessions(), seed: plan.seed, directory }))
    }
}

/// Options of `bench`, and what they stand for on this machine.
#[derive(Debug)]
pub struct RunOptions {
    pub bench: BenchOptions,
    pub server: ServerUnderTest,
    pub connect: Connect,
    pub workload: Workload,
    pub plan: RampPlan,
    /// Criterion and range of a capacity search. `None` runs the load points of the plan.
    pub capacity: Option<(Criterion, Search)>,
    /// Load hosts. `None` generates the load on this machine.
    pub cluster: Option<Cluster>,
    /// Input files of the run, which its output must not overwrite.
    pub sources: Sources,
    /// Shell-quoted command line that started the run, without the options for load points, schedule and results. The
    /// report builds its suggested next commands from it.
    pub command: Option<String>,
}

impl RunOptions {
    /// Reads the workload, and checks that the options fit it. `launcher` starts a private server if there is no
    /// target.
    pub fn new(bench: BenchOptions, launcher: Launcher, password: Box<Passwords>) -> Result<RunOptions, OptionsError> {
        let workload = bench.workload()?;
        bench.fits(&workload)?;
        let mut connect = bench.connect.connect(password);
        bench.requests.apply(&mut connect.options);
        Ok(RunOptions {
            server: bench.server(launcher),
            connect,
            plan: bench.plan(&workload),
            workload,
            capacity: bench.capacity(),
            cluster: None,
            sources: bench.sources(),
            command: None,
            bench,
        })
    }
}

pub struct Cluster {
    pub hosts: Box<Hosts>,
    pub on_lost: OnLostHost,
}

pub type Hosts = dyn FnOnce() -> Result<Vec<Host>, String> + Send + Sync;

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("on_lost", &self.on_lost).finish_non_exhaustive()
    }
}
