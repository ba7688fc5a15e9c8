//! What is asked of a run.

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

/// How long it may take to make the workload's files where nobody says otherwise.
const PREPARE_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// Percentage of failed operations that a run may have where nobody says otherwise.
pub const ERRORS_ALLOWED_PERCENT: f64 = 1.0;

/// What is asked of a run.
#[derive(Debug)]
pub struct RunOptions {
    /// Whom the load is put on.
    pub server: ServerUnderTest,
    /// How users connect.
    pub connect: Connect,
    /// What users do.
    pub workload: Workload,
    /// How many, when and how long.
    pub plan: RampPlan,
    /// What must hold at the capacity, and where to look for it; absent where the load points are those of the plan.
    pub capacity: Option<(Criterion, Search)>,
    /// How long it may take to make the workload's files; absent where none are made.
    pub prepare: Option<Duration>,
    /// The hosts that users work on; absent where they work on this one.
    pub cluster: Option<Cluster>,
    /// Take a packet capture of each load point, and hold the client's times against it.
    pub capture: bool,
    /// Percentage of failed operations of a load point above which the run counts as failed.
    pub max_errors_percent: f64,
    /// Where the server's own metrics are; absent where they are this machine's, if the server is here.
    pub server_metrics: Option<Exporter>,
    /// Where the run is kept.
    pub directory: Option<PathBuf>,
    /// What the run is made from: none of it is written over.
    pub sources: Sources,
    /// Title of the report.
    pub title: Option<String>,
    /// The command line that asks for it, quoted for a shell, without load points, schedule and results: what the report
    /// proposes to do next is made from it.
    pub command: Option<String>,
}

impl RunOptions {
    /// What users of a workload do at a server, by the plan that is the default; its files are made first.
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

/// Hosts that users work on.
pub struct Cluster {
    /// Starts their load generators, when the server has answered.
    pub hosts: Box<Hosts>,
    /// What happens when one is lost.
    pub on_lost: OnLostHost,
}

/// Starts load generators; an error is one line.
pub type Hosts = dyn FnOnce() -> Result<Vec<Host>, String> + Send + Sync;

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("on_lost", &self.on_lost).finish_non_exhaustive()
    }
}

/// Whom the load is put on.
#[derive(Debug)]
pub enum ServerUnderTest {
    /// The server of a share, or a local folder.
    Named(TargetUrl),
    /// A private one, which is started for the time of the run.
    Private(Private),
}

/// A private server.
#[derive(Debug, Default)]
pub struct Private {
    /// Where, and who takes care of it.
    pub launcher: Launcher,
    /// How it is to be; it signs and lets guests in as the users need it.
    pub settings: LabServerSettings,
}

/// How users connect, and as whom.
pub struct Connect {
    /// Dialect, protection and so on; host, address, share and credentials are filled in.
    pub options: SessionOptions,
    /// Who connects.
    pub login: Login,
    /// Tells the password of a user that the target names, and is asked for no other.
    pub password: Box<Passwords>,
}

/// Tells the password of a user.
pub type Passwords = dyn Fn(&str) -> Result<Secret, Box<dyn std::error::Error + Send + Sync>> + Send + Sync;

impl Connect {
    /// With what a client does by itself.
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

/// Who connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Login {
    /// The user of the target by password; a guest where the target names none.
    Password,
    /// A guest.
    Guest,
    /// Nobody.
    Anonymous,
    /// Whoever the system has Kerberos tickets of.
    Kerberos,
}
