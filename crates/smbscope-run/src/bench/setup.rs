//! The options of a run, and everything else that stays the same while it goes on.

use crate::BenchError;
use crate::bench::options::ERRORS_ALLOWED_PERCENT;
use crate::files::Sources;
use crate::metrics::Exporter;
use crate::server::{Connect, ServerUnderTest, Site};
use smbscope_client::SessionParameters;
use smbscope_load::engine::{Criterion, Fleet, Host, LoadWork, OnLostHost, RampPlan, Search};
use smbscope_load::workload::{Script, UserSeat, Workload};
use smbscope_model::Timestamp;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

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
        let RampPlan { users, sessions_per_user, .. } = &self.options.plan;
        users.most().saturating_mul(*sessions_per_user)
    }

    pub(crate) fn fleet(&mut self, cluster: Cluster) -> Result<Fleet, BenchError> {
        if self.site.options.folder.is_some() {
            let text = "a local folder exists on one machine only: name a share, or omit --cluster";
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

const PREPARE_TIMEOUT: Duration = Duration::from_secs(30 * 60);

#[derive(Debug)]
pub struct RunOptions {
    pub server: ServerUnderTest,
    pub connect: Connect,
    pub workload: Workload,
    pub plan: RampPlan,
    /// Criterion and range of a capacity search. `None` runs the load points of the plan.
    pub capacity: Option<(Criterion, Search)>,
    /// Time limit for creating the workload's files. `None` uses the files that are already there.
    pub prepare: Option<Duration>,
    /// Load hosts. `None` generates the load on this machine.
    pub cluster: Option<Cluster>,
    pub capture: bool,
    pub max_errors_percent: f64,
    /// Exporter that provides the server's metrics. `None` reads this machine's counters if the server runs here.
    pub server_metrics: Option<Exporter>,
    /// Run directory. `None` keeps no files.
    pub directory: Option<PathBuf>,
    /// Input files of the run, which its output must not overwrite.
    pub sources: Sources,
    pub title: Option<String>,
    /// Shell-quoted command line that started the run, without the options for load points, schedule and results. The
    /// report builds its suggested next commands from it.
    pub command: Option<String>,
}

impl RunOptions {
    /// Creates options with the default plan; the workload's files are created first.
    pub fn new(server: ServerUnderTest, connect: Connect, workload: Workload) -> RunOptions {
        RunOptions {
            server,
            connect,
            workload,
            plan: RampPlan::default(),
            capacity: None,
            prepare: Some(PREPARE_TIMEOUT),
            cluster: None,
            capture: false,
            max_errors_percent: ERRORS_ALLOWED_PERCENT,
            server_metrics: None,
            directory: None,
            sources: Sources::default(),
            title: None,
            command: None,
        }
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
