//! What a run is made from, and what its sessions do.

use crate::options::RunOptions;
use crate::site::Site;
use smbscope_load::client::Facts;
use smbscope_load::engine::Plan;
use smbscope_load::workload::{Script, UserSeat};
use smbscope_model::{Nanos, Timestamp};
use std::time::{SystemTime, UNIX_EPOCH};

/// What a run is made from.
pub(crate) struct Setup {
    pub(crate) options: RunOptions,
    /// When it began to be prepared.
    pub(crate) started: Timestamp,
    pub(crate) site: Site,
    /// What was negotiated with the server.
    pub(crate) facts: Facts,
}

impl Setup {
    /// Sessions of all users of the largest load point.
    pub(crate) fn sessions(&self) -> u32 {
        let Plan { users, sessions_per_user, .. } = &self.options.plan;
        users.most().saturating_mul(*sessions_per_user)
    }

    /// What the session of that number does.
    pub(crate) fn script(&self, number: u32) -> Box<dyn Script> {
        let RunOptions { workload, plan, .. } = &self.options;
        let directory = self.site.directory.clone();
        Box::new(workload.script(&UserSeat { number, of: self.sessions(), seed: plan.seed, directory }))
    }
}

/// By the clock of the system.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(Nanos::from(since).0)
}
