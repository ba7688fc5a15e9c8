//! The options of a run, and everything else that stays the same while it goes on; and the workload's files, which are
//! created on the share before the first load point, and removed for all benchmarks on request.

use crate::BenchError;
use crate::bench::progress::{BenchObserver, Wish};
use crate::files::Sources;
use crate::options::{BenchOptions, OptionsError};
use crate::server::{Connect, Passwords, ServerUnderTest, Site, TargetUrl};
use smbscope_client::SessionParameters;
use smbscope_lab::Launcher;
use smbscope_load::engine::{Criterion, Fleet, Host, LoadWork, OnLostHost, RampPlan, Search};
use smbscope_load::prepare::{self, CleanupResult, PrepareRequest};
use smbscope_load::workload::{Script, UserSeat, Workload};
use smbscope_model::Timestamp;
use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Builder;

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

const SESSIONS: u32 = 4;
const REFRESH: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(100);

pub(super) fn create_files(
    setup: &Setup,
    within: Duration,
    watcher: &mut dyn BenchObserver,
    stop: &AtomicBool,
) -> Result<(), BenchError> {
    let workload = &setup.options.workload;
    let made = workload.made();
    let request = PrepareRequest {
        directory: &setup.site.directory,
        workload: workload.name(),
        files: workload.file_set(),
        made: &made,
        users: setup.sessions(),
        sessions: SESSIONS,
        within,
    };
    let watcher = RefCell::new(watcher);
    let mut told = Instant::now();
    let mut progress = |made: prepare::PrepareProgress| {
        if told.elapsed() >= REFRESH {
            told = Instant::now();
            watcher.borrow_mut().preparing(&made);
        }
    };
    let runtime =
        Builder::new_current_thread().enable_all().build().map_err(BenchError::system("runtime for the client"))?;
    let stopped = async {
        while !stop.load(Ordering::Relaxed) {
            tokio::time::sleep(LOOK).await;
            if watcher.borrow_mut().wait(Instant::now()) == Wish::Stop {
                break;
            }
        }
    };
    let prepared: Result<(), BenchError> = runtime.block_on(async {
        tokio::select! {
            prepared = prepare::prepare(&setup.site.options, &request, &mut progress) => Ok(prepared.map(drop)?),
            () = stopped => Err(BenchError::Interrupted),
        }
    });
    prepared?;
    settle(setup.options.bench.settle.unwrap_or_default(), &mut **watcher.borrow_mut(), stop)
}

fn settle(time: Duration, watcher: &mut dyn BenchObserver, stop: &AtomicBool) -> Result<(), BenchError> {
    let begun = Instant::now();
    while let left = time.saturating_sub(begun.elapsed())
        && !left.is_zero()
    {
        if stop.load(Ordering::Relaxed) || watcher.wait(Instant::now() + left.min(LOOK)) == Wish::Stop {
            return Err(BenchError::Interrupted);
        }
    }
    Ok(())
}

pub fn clean(target: &TargetUrl, connect: &Connect, within: Duration) -> Result<CleanupResult, BenchError> {
    let site = Site::named(target, connect)?;
    let runtime =
        Builder::new_current_thread().enable_all().build().map_err(BenchError::system("runtime for the client"))?;
    Ok(runtime.block_on(prepare::clean(&site.options, &site.directory, SESSIONS, within, &mut |_| {}))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settling_takes_its_time_unless_the_run_is_stopped() {
        let (begun, time) = (Instant::now(), Duration::from_millis(150));
        settle(time, &mut (), &AtomicBool::new(false)).unwrap();
        assert!(begun.elapsed() >= time);
        let stopped = settle(Duration::from_secs(3_600), &mut (), &AtomicBool::new(true));
        assert!(matches!(stopped, Err(BenchError::Interrupted)), "{stopped:?}");
    }
}
