//! What a run is made from, and what its sessions do.

use crate::options::RunOptions;
use crate::site::Site;
use smbscope_load::client::Facts;
use smbscope_load::engine::Plan;
use smbscope_load::workload::{Script, Step, UserScript, UserSeat};
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
        let RunOptions { workload, plan, passes, .. } = &self.options;
        let directory = self.site.directory.clone();
        let script = workload.script(&UserSeat { number, of: self.sessions(), seed: plan.seed, directory });
        match *passes {
            Some(passes) => Box::new(Passes { script, passes }),
            None => Box::new(script),
        }
    }
}

/// A script that ends after some passes.
struct Passes {
    script: UserScript,
    passes: u32,
}

impl Script for Passes {
    fn operations(&self) -> &[String] {
        self.script.operations()
    }

    fn next(&mut self) -> Option<Step<'_>> {
        if self.script.passes() >= self.passes { None } else { self.script.next() }
    }

    fn restart(&mut self) {
        self.script.restart();
    }

    fn sets_up(&self) -> bool {
        self.script.sets_up()
    }

    fn passes(&self) -> u32 {
        self.script.passes()
    }
}

/// By the clock of the system.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(Nanos::from(since).0)
}
