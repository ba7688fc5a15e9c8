//! Options of a benchmark run.

use crate::files::Sources;
use crate::metrics::Exporter;
use crate::target::TargetUrl;
use smbscope_client::{Secret, SessionOptions};
use smbscope_lab::{LabServerSettings, Launcher};
use smbscope_load::engine::{Criterion, Host, OnLostHost, RampPlan, Search};
use smbscope_load::workload::Workload;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

const PREPARE_TIMEOUT: Duration = Duration::from_secs(30 * 60);

pub const ERRORS_ALLOWED_PERCENT: f64 = 1.0;

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
    /// Captures each load point and checks the client's times against the capture.
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

/// Starts the load generators. Its error is a single line.
pub type Hosts = dyn FnOnce() -> Result<Vec<Host>, String> + Send + Sync;

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("on_lost", &self.on_lost).finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub enum ServerUnderTest {
    Named(TargetUrl),
    /// A private Samba server that runs as long as the benchmark.
    Private(Private),
}

#[derive(Debug, Default)]
pub struct Private {
    pub launcher: Launcher,
    /// Server settings. Signing and guest access are adapted to the users' login.
    pub settings: LabServerSettings,
}

pub struct Connect {
    /// Host, address, share and credentials are filled in later.
    pub options: SessionOptions,
    pub login: Login,
    /// Provides the password of the user named in the target. Not called for any other user.
    pub password: Box<Passwords>,
}

pub type Passwords = dyn Fn(&str) -> Result<Secret, Box<dyn std::error::Error + Send + Sync>> + Send + Sync;

impl Connect {
    pub fn new(login: Login, password: Box<Passwords>) -> Connect {
        let nowhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        Connect { options: SessionOptions::new("", nowhere, ""), login, password }
    }
}

impl fmt::Debug for Connect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connect").field("options", &self.options).field("login", &self.login).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Login {
    /// The target's user with a password, or a guest if the target names no user.
    Password,
    Guest,
    Anonymous,
    /// The user of the Kerberos ticket cache.
    Kerberos,
}
