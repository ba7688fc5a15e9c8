//! Everything that stays the same during a run.

use crate::BenchError;
use crate::options::{Cluster, RunOptions};
use crate::site::Site;
use smbscope_client::SessionParameters;
use smbscope_load::engine::{Fleet, LoadWork, RampPlan};
use smbscope_load::workload::{Script, UserSeat};
use smbscope_model::{Nanos, Timestamp};
use std::time::{SystemTime, UNIX_EPOCH};

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
            let text = "a local folder is that of one machine: name a share, or leave --cluster out";
            return Err(BenchError::Unavailable(text.to_owned()));
        }
        let Cluster { hosts, on_lost } = cluster;
        let hosts = hosts().map_err(|why| BenchError::Unavailable(format!("no load hosts: {why}")))?;
        if self.site.lab.is_some()
            && let Some(host) = hosts.iter().find(|host| !host.is_here())
        {
            let text = format!("a private server is reached from this machine alone, and {} is another", host.name());
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

pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(Nanos::from(since).0)
}
