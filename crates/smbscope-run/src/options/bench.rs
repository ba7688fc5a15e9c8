//! Options of `smbscope bench`.

use super::connect::{ConnectOptions, RequestOptions, SMB3};
use super::{
    ClusterOptions, CommandOptions, GivenOptions, MetricsOptions, PossibleValueTable, ServerMetricsOptions,
    StorageOptions, TerminalOptions, dimension, one_of,
};
use crate::files::Sources;
use crate::server::{Private, ServerUnderTest, TargetUrl};
use clap::{Args, ValueEnum};
use smbscope_lab::{LabServerSettings, Launcher};
use smbscope_load::engine::{
    Arrivals, Connects, Criterion, EngineError, ErrorLimit, LOAD_POINTS_MAX, LoadPointLimits, LoadSchedule, OnFailure,
    OnLostHost, OverloadLimits, RampPlan, Rates, Search, Users,
};
use smbscope_load::workload::{Scenarios, SessionsPerUser, Workload, WorkloadError};
use smbscope_model::units;
use smbscope_stats::Dimension;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum length of a load point, limited by the engine.
const DURATION_MAX: Duration = Duration::from_secs(100_000);

/// Default length of a load point. With --passes it ends with the passes, and this is the maximum.
const DURATION: Duration = Duration::from_secs(10);
const DURATION_OF_PASSES: Duration = Duration::from_secs(3_600);

/// Default warm-up before a load point.
const WARMUP: Duration = Duration::from_secs(2);

/// Delay before a user whose session broke reconnects.
const RECONNECT_DELAY: Duration = Duration::from_millis(500);

/// Maximum share of operations with an unexpected result, in percent.
pub(crate) const ERRORS_ALLOWED_PERCENT: f64 = 1.0;

/// Reason why a run can't begin.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// Options that contradict each other or the workload.
    #[error("{0}")]
    Conflict(String),

    #[error(transparent)]
    Workload(#[from] WorkloadError),
}

#[derive(Debug, Clone, Args)]
pub struct BenchOptions {
    /// Load this share, `smb://[user@]host[:port]/share[/dir]`, or local folder, `file:DIR`. [default: a private
    /// Samba server]
    ///
    /// All files are kept in one directory of the target, smbscope-bench. A local folder is the baseline that shows
    /// what the server and the network add.
    #[arg(value_name = "TARGET")]
    pub target: Option<TargetUrl>,

    #[command(flatten)]
    pub connect: ConnectOptions,

    #[command(flatten)]
    pub requests: RequestOptions,

    /// Run this workload: the name of a built-in one, or a file (TOML, or a dbench loadfile).
    #[arg(long, value_name = "NAME|FILE", default_value = "netbench-like", help_heading = "Load")]
    pub workload: String,

    /// Replay a dbench loadfile, such as /usr/share/dbench/client.txt, and check each expected status.
    #[arg(long, value_name = "FILE", conflicts_with = "workload", help_heading = "Load")]
    pub loadfile: Option<PathBuf>,

    /// Override a parameter of the workload: --set files=114. May be repeated.
    #[arg(hide_short_help = true, long, value_name = "NAME=VALUE", value_parser = setting, conflicts_with = "loadfile", help_heading = "Load")]
    pub set: Vec<(String, String)>,

    /// Run a load point for each of these numbers of users: 1,8,32 or 10..200:10. [default: 1,2,4,8,16,32; with
    /// --rate or --rates 32]
    ///
    /// A recording of several clients has as many users by default.
    #[arg(long, value_name = "USERS", help_heading = "Load")]
    pub users: Option<Users>,

    /// Measure each load point for this time. [default: 10s; with --passes at most 1h]
    #[arg(long, value_name = "DURATION", value_parser = units::time, help_heading = "Load")]
    pub duration: Option<Duration>,

    /// Warm up for this time before each load point, without measuring. [default: 2s; with --passes none]
    #[arg(long, value_name = "DURATION", value_parser = units::time, help_heading = "Load")]
    pub warmup: Option<Duration>,

    /// Start N operations per second in total (500/s), on schedule even if the server can't keep up (open loop).
    ///
    /// Response times count from the scheduled start. Without a rate, each user starts the next operation when the
    /// previous one has completed (closed loop).
    #[arg(long, value_name = "N/s", value_parser = rate, conflicts_with_all = ["rate_per_user", "rates"], help_heading = "Load")]
    pub rate: Option<f64>,

    /// Start N operations per second for each user (2/s), so that the load grows with the number of users (open loop).
    #[arg(hide_short_help = true, long, value_name = "N/s", value_parser = rate, conflicts_with = "rates", help_heading = "Load")]
    pub rate_per_user: Option<f64>,

    /// Run a load point for each of these total rates per second: 500,1000,2000 or 100..1000:100 (open loop).
    ///
    /// --find-capacity searches this range.
    #[arg(long, value_name = "RATES", help_heading = "Load")]
    pub rates: Option<Rates>,

    /// Space the operations of an open loop evenly, or at random like independent users.
    #[arg(hide_short_help = true, long, value_parser = one_of(ARRIVALS), default_value = "constant", help_heading = "Load")]
    pub arrivals: Arrivals,

    /// Add this think time between two operations of a user (closed loop).
    ///
    /// For a loadfile or recording: `recorded` keeps its pauses, `none` omits them, `0.5x` halves them.
    #[arg(long, value_name = "DURATION", value_parser = think, conflicts_with_all = ["rate", "rate_per_user", "rates"], help_heading = "Load")]
    pub think: Option<Think>,

    /// Find the most users, or the highest of --rates, that meet a criterion such as 'p95(Read) < 20ms' or 'p99(total)
    /// < 100ms and errors < 1%'.
    #[arg(long, value_name = "CRITERION", help_heading = "Load")]
    pub find_capacity: Option<Criterion>,

    /// Skip preparing and checking the files of the workload.
    #[arg(hide_short_help = true, long, help_heading = "Load")]
    pub no_prepare: bool,

    /// Wait this long after preparing the files, so that the server has written them back. [default: 0s]
    #[arg(hide_short_help = true, long, value_name = "DURATION", value_parser = units::time, conflicts_with = "no_prepare", help_heading = "Load")]
    pub settle: Option<Duration>,

    /// Give each user N sessions, used in turn.
    #[arg(hide_short_help = true, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64), help_heading = "Load")]
    pub sessions_per_user: u16,

    /// Give each session N connections, used in turn (SMB 3 multichannel). Guest sessions have one.
    #[arg(hide_short_help = true, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=32), help_heading = "Load")]
    pub connections_per_session: u16,

    /// Open at most N sessions per second.
    #[arg(hide_short_help = true, long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Load")]
    pub connect_rate: u32,

    /// Seed the random numbers. Runs with the same seed perform the same operations with the same offsets and sizes.
    #[arg(hide_short_help = true, long, value_name = "N", default_value_t = 1, help_heading = "Load")]
    pub seed: u64,

    /// Poll for responses instead of sleeping: each thread uses a whole CPU, and response times exclude the wake-up
    /// time.
    ///
    /// For few users on an otherwise idle machine.
    #[arg(hide_short_help = true, long, help_heading = "Load")]
    pub busy_poll: bool,

    /// Distribute users over N threads. [default: half the cores]
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256), help_heading = "Load")]
    pub threads: Option<u16>,

    /// End each load point after N operations. [default: unlimited]
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Limits")]
    pub operations: Option<u64>,

    /// Measure N passes of each user through a loadfile or a workload in sequence, for at most --duration. [default:
    /// unlimited]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Limits")]
    pub passes: Option<u32>,

    /// End the run after N operations with an unexpected result. [default: unlimited]
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Limits")]
    pub stop_on_errors: Option<u64>,

    /// Fail the run (exit status 1) if more than this percentage of a load point's operations had an unexpected
    /// result, including broken sessions; 100 allows any.
    #[arg(hide_short_help = true, long, value_name = "PERCENT", value_parser = percent, default_value_t = ERRORS_ALLOWED_PERCENT, help_heading = "Limits")]
    pub max_errors: f64,

    /// Choose what happens when a user's session breaks: reconnect, or end the user.
    #[arg(hide_short_help = true, long, value_name = "ACTION", value_parser = one_of(ON_FAILURE), default_value = "reconnect", help_heading = "Limits")]
    pub on_failure: OnFailure,

    #[command(flatten)]
    pub cluster: ClusterOptions,

    /// Choose what happens when a load host of the cluster is lost: continue with the others, or end the run.
    #[arg(hide_short_help = true, long, value_name = "ACTION", value_parser = one_of(ON_LOST_HOST), default_value = "continue", help_heading = "Cluster")]
    pub on_lost_host: OnLostHost,

    /// Capture packets at each load point, and compare the client's response times with those on the wire.
    ///
    /// Requires tcpdump or dumpcap, and permission to capture. `--capture=both` also captures at the server's end of a
    /// lab server's link, for `analyze CLIENT SERVER`; it needs root and --output.
    #[arg(long, value_enum, value_name = "WHERE", num_args = 0..=1, require_equals = true, default_missing_value = "client", help_heading = "Results")]
    pub capture: Option<CapturePoints>,

    /// Keep the session keys of each capture next to it (`.keys`), to decrypt it with `analyze --keys` or Wireshark.
    ///
    /// Only the owner can read the file. For a private server and one of `smbscope lab`, keys are always kept. Load
    /// generators on other hosts keep none.
    #[arg(hide_short_help = true, long, requires = "capture", help_heading = "Results")]
    pub keep_keys: bool,

    #[command(flatten)]
    pub server_metrics: ServerMetricsOptions,

    #[command(flatten)]
    pub metrics: MetricsOptions,

    #[command(flatten)]
    pub storage: StorageOptions,

    /// Group the commands of each load point by these fields, as `analyze` does.
    #[arg(long, value_name = "FIELD,...", value_delimiter = ',', value_parser = dimension(), help_heading = "Results")]
    pub by: Vec<Dimension>,

    /// Keep the run in this directory, which is created or contains an older run.
    #[arg(short, long, value_name = "DIR", help_heading = "Results")]
    pub output: Option<PathBuf>,

    /// Print the report in this format.
    #[arg(long, value_enum, default_value_t = BenchFormat::Text, help_heading = "Results")]
    pub format: BenchFormat,

    /// Set the title of the report.
    #[arg(long, value_name = "TEXT", help_heading = "Results")]
    pub title: Option<String>,

    /// Print all tables of the text report: each group over the load, time split, files, slowest commands, errors.
    #[arg(long, help_heading = "Results")]
    pub full: bool,

    /// Print progress as plain lines, even on a terminal.
    #[arg(hide_short_help = true, long, help_heading = "Results")]
    pub plain: bool,

    #[command(flatten, next_help_heading = "Results")]
    pub terminal: TerminalOptions,
}

/// Default load points of a closed loop.
const USERS: &str = "1,2,4,8,16,32";
/// Default number of users of an open loop: enough for a rate of several thousand per second.
const USERS_OF_A_RATE: u32 = 32;

impl CommandOptions for BenchOptions {
    fn conflict(&self) -> Option<&'static str> {
        if self.duration().is_zero() {
            Some("--duration must be longer than 0s")
        } else if self.duration() > DURATION_MAX || self.warmup() > DURATION_MAX {
            Some("--duration and --warmup are at most 100000s, a day and some hours")
        } else if self.target.is_some() && self.storage.settings().is_slow() {
            Some("--storage-latency, --storage-iops and --storage-bandwidth require a private server: omit TARGET")
        } else if let Some(conflict) = self.rate_conflict() {
            Some(conflict)
        } else if self.find_capacity.is_none() && self.users().points().len() > LOAD_POINTS_MAX {
            Some("--users has more than 1000 load points; give the range a step: 10..5000:10")
        } else if self.connections_per_session > 1 && self.connect.dialect < SMB3 {
            Some("--connections-per-session needs SMB 3; choose --dialect 3.0 or later")
        } else if self.cluster.address.is_some() && self.capture.is_some() {
            Some("--capture sees no packets of other hosts: omit --capture or --cluster")
        } else if self.cluster.address.is_some() && self.metrics.metrics.is_some() {
            Some("--metrics counts commands of this machine only: omit --metrics or --cluster")
        } else if self.cluster.address.is_some() && !self.by.is_empty() {
            Some("--by depends on the order of all commands, which is unknown across hosts: omit --by or --cluster")
        } else {
            self.connect.conflict().or_else(|| self.requests.conflict(&self.connect))
        }
    }
}

impl Default for BenchOptions {
    fn default() -> BenchOptions {
        GivenOptions::default().parse().expect("no option is required")
    }
}

impl BenchOptions {
    /// Returns the server to load: the target, or a private one.
    pub(crate) fn server(&self, launcher: Launcher) -> ServerUnderTest {
        match &self.target {
            Some(target) => ServerUnderTest::Named(target.clone()),
            None => {
                let settings = LabServerSettings { storage: self.storage.settings(), ..LabServerSettings::default() };
                ServerUnderTest::Private(Private { launcher, settings })
            }
        }
    }

    /// Returns the time limit for creating the workload's files. `None` uses the files that are already there.
    pub(crate) fn prepare_within(&self) -> Option<Duration> {
        (!self.no_prepare).then_some(self.connect.prepare_timeout)
    }

    /// Returns the load points, or the users of every load point if they differ in their rate.
    pub fn users(&self) -> Users {
        match &self.users {
            Some(users) => users.clone(),
            None if self.rate.is_some() || self.rates.is_some() => Users::one(USERS_OF_A_RATE),
            None => USERS.parse().unwrap_or_else(|_| Users::one(1)),
        }
    }

    /// Returns the load points of a workload. A recording of several clients has as many users unless told otherwise.
    fn users_of(&self, workload: &Workload) -> Users {
        match (&self.users, workload.recorded_sessions().map(SessionsPerUser::clients)) {
            (None, Some(clients @ 2..)) => Users::one(clients),
            _ => self.users(),
        }
    }

    /// Returns an error message if users and rates contradict each other.
    fn rate_conflict(&self) -> Option<&'static str> {
        let several_users = self.users().points().len() > 1;
        let several_rates = self.rates.as_ref().is_some_and(|rates| rates.points().len() > 1);
        let is_open = self.rate.is_some() || self.rate_per_user.is_some() || self.rates.is_some();
        if self.rate.is_some() && self.find_capacity.is_some() {
            Some(
                "--rate sets the same load for any number of users: search with --rates 100..5000, or with --rate-per-user",
            )
        } else if self.rate.is_some() && several_users {
            Some(
                "--rate sets the same load for any number of users: give one number, or use --rate-per-user or --rates",
            )
        } else if self.rates.is_some() && several_users {
            Some("--rates requires a fixed number of users: give --users one number")
        } else if self.rates.is_some() && self.find_capacity.is_some() && !several_rates {
            Some("--find-capacity searches between the lowest and the highest of --rates: give a range")
        } else if self.rates.as_ref().is_some_and(|rates| rates.points().len() > LOAD_POINTS_MAX)
            && self.find_capacity.is_none()
        {
            Some("--rates has more than 1000 load points; give the range a step: 100..5000:100")
        } else if self.arrivals == Arrivals::Poisson && !is_open {
            Some("--arrivals needs --rate, --rate-per-user or --rates")
        } else {
            None
        }
    }

    /// Returns the length of the measured part of a load point; with --passes, its time limit.
    pub fn duration(&self) -> Duration {
        self.duration.unwrap_or(if self.passes.is_some() { DURATION_OF_PASSES } else { DURATION })
    }

    /// Returns the length of the warm-up.
    pub fn warmup(&self) -> Duration {
        self.warmup.unwrap_or(if self.passes.is_some() { Duration::ZERO } else { WARMUP })
    }

    /// Reads the workload.
    pub(crate) fn workload(&self) -> Result<Workload, OptionsError> {
        if let Some(file) = &self.loadfile {
            return self.thinking(Workload::loadfile(file)?);
        }
        let name = &self.workload;
        let file = Path::new(name);
        let is_file = file.is_file() || name.contains(['/', '.']);
        let workload = if is_file { Workload::load(file)? } else { Workload::builtin(name)? };
        self.thinking(workload.set(&self.set)?)
    }

    /// Scales the pauses of the workload.
    fn thinking(&self, workload: Workload) -> Result<Workload, OptionsError> {
        let Some(Think::Recorded(by)) = self.think else { return Ok(workload) };
        if !workload.has_pauses() {
            let name = workload.name();
            return Err(OptionsError::Conflict(format!(
                "{name} is neither a loadfile nor a recording, so --think has no pauses to scale: give a duration"
            )));
        }
        Ok(workload.thinking(by))
    }

    /// Rejects options that do not fit the workload, before anything is started.
    pub(crate) fn fits(&self, workload: &Workload) -> Result<(), OptionsError> {
        if let Some(criterion) = &self.find_capacity {
            criterion
                .check(workload.operations())
                .map_err(|error| OptionsError::Conflict(EngineError::from(error).to_string()))?;
            let has_scenarios = workload.scenarios().is_some() && self.schedule(workload).is_open();
            if criterion.needs_scenarios() && !has_scenarios {
                let what = "overload is a share of scenarios: it needs a workload with [scenarios], and no --think";
                return Err(OptionsError::Conflict(what.to_owned()));
            }
        }
        if self.capture == Some(CapturePoints::Both) && self.output.is_none() {
            let what = "--capture=both keeps the captures of both ends: name a directory for them with --output";
            return Err(OptionsError::Conflict(what.to_owned()));
        }
        if self.sessions_per_user > 1 && workload.recorded_sessions().is_some() {
            let what = "--sessions-per-user: the recording tells how many sessions each user has: omit the option";
            return Err(OptionsError::Conflict(what.to_owned()));
        }
        workload.check_dialect(self.connect.dialect).map_err(|error| OptionsError::Conflict(error.to_string()))?;
        if self.passes.is_some() && !workload.has_end() {
            let name = workload.name();
            return Err(OptionsError::Conflict(format!(
                "--passes needs a workload that has an end, and {name} has none: use --operations, or order = \"sequence\" in a TOML file"
            )));
        }
        Ok(())
    }

    /// Returns the input files of the run, which its output must not overwrite.
    pub(crate) fn sources(&self) -> Sources {
        let workload = Some(Path::new(&self.workload)).filter(|_| self.loadfile.is_none());
        let files = [
            workload,
            self.loadfile.as_deref(),
            self.connect.password_file.as_deref(),
            self.metrics.metrics_config.as_deref(),
        ];
        let mut sources = Sources::default();
        files.into_iter().flatten().filter(|file| !file.is_dir()).for_each(|file| sources.add(file));
        sources
    }

    /// Returns the settings of the ramp.
    pub(crate) fn plan(&self, workload: &Workload) -> RampPlan {
        let rates = self.rates.as_ref().map_or_else(Vec::new, |rates| rates.points().to_vec());
        let schedule = self.schedule(workload);
        let overload = workload.scenarios().filter(|_| schedule.is_open());
        // A search generates its own load points within the range.
        let (users, rates) = match (&self.find_capacity, rates.is_empty()) {
            (None, _) => (self.users_of(workload), rates),
            (Some(_), true) => (Users::range(self.search().first, self.search().most), rates),
            (Some(_), false) => (self.users(), vec![self.search().first, self.search().most]),
        };
        RampPlan {
            users,
            rates,
            sessions: match workload.recorded_sessions() {
                None => SessionsPerUser::same(self.sessions_per_user.into()),
                Some(recorded) => recorded.clone(),
            },
            connections_per_session: self.connections_per_session.into(),
            schedule,
            overload: overload.map(|Scenarios { late, budget, .. }| OverloadLimits { late, budget }),
            warmup: self.warmup(),
            duration: self.duration(),
            connects: Connects { rate: f64::from(self.connect_rate), ..Connects::default() },
            workers: self.threads.and_then(|threads| NonZeroUsize::new(threads.into())),
            seed: self.seed,
            on_failure: self.on_failure,
            limits: LoadPointLimits {
                passes: self.passes,
                operations: self.operations,
                errors: self.stop_on_errors.map(ErrorLimit::Count),
                ..LoadPointLimits::default()
            },
            busy_poll: self.busy_poll,
            exchanges: self.capture.is_some() || self.output.is_some(),
            by: self.by.clone(),
            ..RampPlan::default()
        }
    }

    /// Returns the schedule set by the options, or by the workload.
    fn schedule(&self, workload: &Workload) -> LoadSchedule {
        let arrivals = self.arrivals;
        let rates = self.rates.as_ref().and_then(|rates| rates.points().first());
        match (self.rate, self.rate_per_user, rates, workload.scenarios()) {
            (Some(rate), ..) => LoadSchedule::Open { rate, per_user: false, arrivals },
            (_, Some(rate), ..) => LoadSchedule::Open { rate, per_user: true, arrivals },
            (_, _, Some(rate), _) => LoadSchedule::Open { rate: f64::from(*rate), per_user: false, arrivals },
            (.., Some(Scenarios { rate, .. })) if self.think.is_none() => {
                LoadSchedule::Open { rate, per_user: true, arrivals }
            }
            _ => LoadSchedule::Closed {
                think: match self.think {
                    Some(Think::Between(think)) => think,
                    _ => Duration::ZERO,
                },
            },
        }
    }

    /// Returns the criterion and the range of a capacity search.
    pub(crate) fn capacity(&self) -> Option<(Criterion, Search)> {
        self.find_capacity.clone().map(|criterion| (criterion, self.search()))
    }

    /// Returns the search range, spanned by the given users or rates.
    fn search(&self) -> Search {
        let users = self.users();
        let points = self.rates.as_ref().map_or(users.points(), |rates| rates.points());
        let (first, most) = (points.iter().copied().min().unwrap_or(1), points.iter().copied().max().unwrap_or(1));
        Search { first, most, rates: self.rates.is_some(), ..Search::default() }
    }
}

/// Parses `name=value`.
fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected a name and a value, such as files=114")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// Think time of users.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Think {
    /// Fixed time between two operations.
    Between(Duration),
    /// Pauses of the workload, scaled by this factor.
    Recorded(f64),
}

fn think(text: &str) -> Result<Think, String> {
    match text {
        "recorded" => Ok(Think::Recorded(1.0)),
        "none" => Ok(Think::Recorded(0.0)),
        _ => match text.strip_suffix('x') {
            Some(factor) => match factor.parse::<f64>() {
                Ok(factor) if (0.0..=1_000.0).contains(&factor) => Ok(Think::Recorded(factor)),
                _ => Err("expected a factor from 0x to 1000x".to_owned()),
            },
            None => units::time(text).map(Think::Between).map_err(|error| error.to_string()),
        },
    }
}

const ON_FAILURE: &PossibleValueTable<OnFailure> = &[
    ("reconnect", "Reconnect", OnFailure::Reconnect { delay: RECONNECT_DELAY }),
    ("end", "End the user; the run ends with the last one", OnFailure::End),
];

const ON_LOST_HOST: &PossibleValueTable<OnLostHost> = &[
    (
        "continue",
        "Continue with the other hosts; later load points distribute all users over them",
        OnLostHost::Continue,
    ),
    ("stop", "End the run", OnLostHost::Stop),
];

const ARRIVALS: &PossibleValueTable<Arrivals> = &[
    ("constant", "At equal intervals", Arrivals::Constant),
    ("poisson", "At random (Poisson process)", Arrivals::Poisson),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BenchFormat {
    /// Report for a terminal.
    #[value(alias = "txt")]
    Text,
    /// Report in Markdown, for a ticket or a pull request.
    #[value(alias = "md")]
    Markdown,
    /// Report as a self-contained page with charts.
    Html,
    /// One object, `smbscope.bench/1`; times in nanoseconds.
    Json,
}

/// Points of the network at which packets are captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CapturePoints {
    /// At the client's interface.
    Client,
    /// At the client's interface and at the server's, at the other end of a lab server's link.
    Both,
}

/// Parses operations per second: 500/s, 30/min, or 500.
fn rate(text: &str) -> Result<f64, String> {
    let rate = units::rate(text)?;
    if rate > 0.0 { Ok(rate) } else { Err("expected a rate above 0, such as 500/s".to_owned()) }
}

/// Parses a percentage: 1, 0.5 or 5%.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse();
    number
        .ok()
        .filter(|percent| (0.0..=100.0).contains(percent))
        .ok_or_else(|| "expected 0 to 100, such as 5".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_is_0_to_100() {
        assert_eq!([percent("0"), percent("0.5"), percent("100%")], [Ok(0.0), Ok(0.5), Ok(100.0)]);
        assert!(["-1", "101", "NaN", "inf", "%", ""].into_iter().all(|text| percent(text).is_err()));
    }

    #[test]
    fn a_rate_is_a_number_a_second() {
        assert_eq!([rate("500/s"), rate("0.5"), rate("30/min")], [Ok(500.0), Ok(0.5), Ok(0.5)]);
        assert!(["0", "-1/s", "inf", "500/year", ""].into_iter().all(|text| rate(text).is_err()));
    }
}
