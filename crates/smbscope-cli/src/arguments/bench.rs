//! Arguments of `smbscope bench`.

use super::one_of::{PossibleValueTable, one_of};
use super::{Arguments, ClusterArguments, ColorChoice, StorageArguments, dimension};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Subcommand, ValueEnum};
use smbscope_client::{Cipher, ClientSigningPolicy, Encryption, SigningAlgorithm, Transport};
use smbscope_load::engine::{Arrivals, Criterion, LOAD_POINTS_MAX, OnFailure, OnLostHost, Rates, Users};
use smbscope_model::Dialect;
use smbscope_model::units;
use smbscope_run::{ERRORS_ALLOWED_PERCENT, Exporter, Login, TargetUrl};
use smbscope_stats::Dimension;
use std::path::PathBuf;
use std::time::Duration;

/// The longest load point: as many seconds as the engine has room for.
const DURATION_MAX: Duration = Duration::from_secs(100_000);

/// Length of a load point where nobody says otherwise; with passes it ends with them, and this is the longest.
const DURATION: Duration = Duration::from_secs(10);
const DURATION_OF_PASSES: Duration = Duration::from_secs(3_600);

/// What goes before a load point where nobody says otherwise.
const WARMUP: Duration = Duration::from_secs(2);

/// What passes before a user whose session broke connects again.
const RECONNECT_DELAY: Duration = Duration::from_millis(500);

const SMB3: Dialect = Dialect::Smb2(0x0300);
const SMB311: Dialect = Dialect::Smb2(0x0311);

/// Arguments of `smbscope bench`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  smbscope bench                                     a private Samba server, 1 to 32 users
  smbscope bench smb://ann@files/projects --users 10..200:10 --duration 60s -o monday
  smbscope bench smb://ann@files/projects --loadfile /usr/share/dbench/client.txt --users 8
  smbscope bench smb://ann@files/projects --find-capacity 'p95(Read) < 20ms'
  smbscope bench clean smb://ann@files/projects

More options: smbscope bench --help. Exit status: 0 done, 1 a failed run or unusable input, 2 bad arguments."
)]
pub struct BenchArguments {
    /// Other things to do with a target.
    #[command(subcommand)]
    pub other: Option<BenchVerb>,

    /// Load this share: `smb://[user@]host[:port]/share[/dir]`, or a local folder: `file:DIR`.
    ///
    /// The same work on a local folder shows what the server and the network add. Without a target, bench starts a private Samba server for the run. It works in one directory of the share,
    /// smbscope-bench.
    #[arg(value_name = "TARGET")]
    pub target: Option<TargetUrl>,

    /// How to connect.
    #[command(flatten)]
    pub connect: ConnectArguments,

    /// Let each user do this workload: a built-in one by name, or a file (TOML, or a loadfile of dbench).
    #[arg(long, value_name = "NAME|FILE", default_value = "netbench-like", help_heading = "Load")]
    pub workload: String,

    /// Play a loadfile of dbench, such as /usr/share/dbench/client.txt, and check each expected status.
    #[arg(long, value_name = "FILE", conflicts_with = "workload", help_heading = "Load")]
    pub loadfile: Option<PathBuf>,

    /// Give a parameter of the workload another value: --set files=114. Can be given several times.
    #[arg(hide_short_help = true, long, value_name = "NAME=VALUE", value_parser = setting, conflicts_with = "loadfile", help_heading = "Load")]
    pub set: Vec<(String, String)>,

    /// Run load points with these numbers of users: 1,8,32 or 10..200:10.
    /// [default: 1,2,4,8,16,32; with --rate or --rates 32]
    #[arg(long, value_name = "USERS", help_heading = "Load")]
    pub users: Option<Users>,

    /// Measure each load point for this time. [default: 10s; with --passes at most 1h]
    #[arg(long, value_name = "DURATION", value_parser = units::time, help_heading = "Load")]
    pub duration: Option<Duration>,

    /// Warm up for this time before it, without measuring. [default: 2s; with --passes none]
    #[arg(long, value_name = "DURATION", value_parser = units::time, help_heading = "Load")]
    pub warmup: Option<Duration>,

    /// Open loop: begin N operations a second of all users together (500/s) when they are due, however long the
    /// server takes.
    ///
    /// Response times count from when operations were due. Without a rate, each user begins the next operation when
    /// the one before is done.
    #[arg(long, value_name = "N/s", value_parser = rate, conflicts_with_all = ["rate_per_user", "rates"], help_heading = "Load")]
    pub rate: Option<f64>,

    /// Open loop: begin N operations a second for each user (2/s), so that more users are more load.
    #[arg(hide_short_help = true, long, value_name = "N/s", value_parser = rate, conflicts_with = "rates", help_heading = "Load")]
    pub rate_per_user: Option<f64>,

    /// Open loop: run load points with these rates, in operations a second of all users: 500,1000,2000 or 100..1000:100.
    ///
    /// With --find-capacity the range to search.
    #[arg(long, value_name = "RATES", help_heading = "Load")]
    pub rates: Option<Rates>,

    /// Open loop: space operations evenly, or at random as many people do.
    #[arg(hide_short_help = true, long, value_parser = one_of(ARRIVALS), default_value = "constant", help_heading = "Load")]
    pub arrivals: Arrivals,

    /// Closed loop: add this think time between two operations of a user.
    ///
    /// Of a loadfile or recording, `recorded` keeps its pauses, `none` leaves them out, and `0.5x` halves them.
    #[arg(long, value_name = "DURATION", value_parser = think, conflicts_with_all = ["rate", "rate_per_user", "rates"], help_heading = "Load")]
    pub think: Option<Think>,

    /// Find the most users with whom a criterion holds, such as 'p95(Read) < 20ms' or
    /// 'p99(total) < 100ms and errors < 1%', in the range of --users; or the highest rate, in the range of --rates.
    #[arg(long, value_name = "CRITERION", help_heading = "Load")]
    pub find_capacity: Option<Criterion>,

    /// Skip the preparation and check of files: they are there.
    #[arg(hide_short_help = true, long, help_heading = "Load")]
    pub no_prepare: bool,

    /// Give each user N sessions, used in turn.
    #[arg(hide_short_help = true, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64), help_heading = "Load")]
    pub sessions_per_user: u16,

    /// Give each session N connections, used in turn (SMB 3 multichannel); a guest's session has one.
    #[arg(hide_short_help = true, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=32), help_heading = "Load")]
    pub connections_per_session: u16,

    /// Open at most N sessions a second.
    #[arg(hide_short_help = true, long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Load")]
    pub connect_rate: u32,

    /// Seed the random numbers: runs with the same seed do the same operations at the same offsets with the same sizes.
    #[arg(hide_short_help = true, long, value_name = "N", default_value_t = 1, help_heading = "Load")]
    pub seed: u64,

    /// Poll for responses instead of sleeping: each thread takes a whole processor, and response times exclude the time
    /// to wake up.
    ///
    /// For few users, on an otherwise idle machine.
    #[arg(hide_short_help = true, long, help_heading = "Load")]
    pub busy_poll: bool,

    /// Divide users among N threads. [default: half the cores]
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256), help_heading = "Load")]
    pub threads: Option<u16>,

    /// End a load point after N operations. [default: unlimited]
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "When to stop")]
    pub operations: Option<u64>,

    /// Measure N whole passes of each user at each load point: of a loadfile, or of a workload with order = "sequence";
    /// --duration is the longest a load point takes. [default: unlimited]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "When to stop")]
    pub passes: Option<u32>,

    /// End the run after N operations that did not end as expected.
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "When to stop")]
    pub stop_on_errors: Option<u64>,

    /// Treat the run as failed (exit status 1) if more than this percentage of the operations of a load point did not end
    /// as expected, broken sessions included; 100 allows any.
    #[arg(hide_short_help = true, long, value_name = "PERCENT", value_parser = percent, default_value_t = ERRORS_ALLOWED_PERCENT, help_heading = "When to stop")]
    pub max_errors: f64,

    /// When a user's session breaks, connect again or end the user.
    #[arg(hide_short_help = true, long, value_parser = one_of(ON_FAILURE), default_value = "reconnect", help_heading = "When to stop")]
    pub on_failure: OnFailure,

    /// Where users work.
    #[command(flatten)]
    pub cluster: ClusterArguments,

    /// When a load host of the cluster is lost, go on with the others or end the run.
    #[arg(hide_short_help = true, long, value_parser = one_of(ON_LOST_HOST), default_value = "continue", help_heading = "Cluster")]
    pub on_lost_host: OnLostHost,

    /// Capture packets at each load point, and compare the client's response times against the wire's.
    ///
    /// Needs tcpdump or dumpcap, and the right to capture.
    #[arg(long, help_heading = "Results")]
    pub capture: bool,

    /// Take the server's processor, memory, disk and network figures from this node_exporter or windows_exporter.
    ///
    /// Without it they are those of this machine, where the server is here too.
    #[arg(long, value_name = "URL", help_heading = "Results")]
    pub server_metrics: Option<Exporter>,

    /// What makes the storage of the private server slow.
    #[command(flatten)]
    pub storage: StorageArguments,

    /// Group the commands of each load point by these fields, separated by commas or repeated, as in `analyze`.
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = dimension(), help_heading = "Results")]
    pub by: Vec<Dimension>,

    /// Keep the run in this directory, a new one or that of an older run.
    #[arg(short, long, value_name = "RUNDIR", help_heading = "Results")]
    pub output: Option<PathBuf>,

    /// Print the report in this format.
    #[arg(long, value_enum, default_value_t = BenchFormat::Text, help_heading = "Results")]
    pub format: BenchFormat,

    /// Set the title of the report.
    #[arg(long, help_heading = "Results")]
    pub title: Option<String>,

    /// Use colour.
    #[arg(hide_short_help = true, long, value_enum, default_value_t = ColorChoice::Auto, help_heading = "Results")]
    pub color: ColorChoice,

    /// Write all tables of the text report: each group over the load, where time went, files, slowest commands, errors.
    #[arg(long, help_heading = "Results")]
    pub full: bool,

    /// Set the width of the text report in columns. [default: the terminal's]
    #[arg(hide_short_help = true, long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(60..=400), help_heading = "Results")]
    pub width: Option<u16>,

    /// Print plain progress lines, even on a terminal.
    #[arg(hide_short_help = true, long, help_heading = "Results")]
    pub plain: bool,

    /// Print no progress.
    #[arg(short, long, help_heading = "Results")]
    pub quiet: bool,
}

/// Load points of a closed loop where none are given: up to many users.
const USERS: &str = "1,2,4,8,16,32";
/// Users of an open loop where none are given: as many as carry a rate of some thousand a second.
const USERS_OF_A_RATE: u32 = 32;

impl BenchArguments {
    /// The load points, or the users of all of them where they differ in their rate.
    pub(crate) fn users(&self) -> Users {
        match &self.users {
            Some(users) => users.clone(),
            None if self.rate.is_some() || self.rates.is_some() => Users::one(USERS_OF_A_RATE),
            None => USERS.parse().unwrap_or_else(|_| Users::one(1)),
        }
    }

    /// Rates and users that together have no meaning.
    fn rate_conflict(&self) -> Option<&'static str> {
        let several_users = self.users().points().len() > 1;
        let several_rates = self.rates.as_ref().is_some_and(|rates| rates.points().len() > 1);
        let is_open = self.rate.is_some() || self.rate_per_user.is_some() || self.rates.is_some();
        if self.rate.is_some() && self.find_capacity.is_some() {
            Some(
                "--rate is the same load at any number of users: search with --rates 100..5000, or with --rate-per-user",
            )
        } else if self.rate.is_some() && several_users {
            Some("--rate is the same load at any number of users: give one number, or --rate-per-user, or --rates")
        } else if self.rates.is_some() && several_users {
            Some("--rates differ at one number of users: give --users one number")
        } else if self.rates.is_some() && self.find_capacity.is_some() && !several_rates {
            Some("--find-capacity searches between the lowest and the highest of --rates: give it a range")
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

    /// Length of the measured part of a load point; with passes the longest.
    pub(crate) fn duration(&self) -> Duration {
        self.duration.unwrap_or(if self.passes.is_some() { DURATION_OF_PASSES } else { DURATION })
    }

    /// What goes before it.
    pub(crate) fn warmup(&self) -> Duration {
        self.warmup.unwrap_or(if self.passes.is_some() { Duration::ZERO } else { WARMUP })
    }

    /// What clap can't see by itself.
    pub(super) fn check(&self) -> Result<(), clap::Error> {
        let connect = match &self.other {
            Some(BenchVerb::Clean(clean)) => &clean.connect,
            _ => &self.connect,
        };
        let conflict = if self.duration().is_zero() {
            "--duration has to be longer than nothing"
        } else if self.duration() > DURATION_MAX || self.warmup() > DURATION_MAX {
            "--duration and --warmup are at most 100000s, a day and some hours"
        } else if self.target.is_some() && self.storage.settings().is_slow() {
            "--storage-latency, --storage-iops and --storage-bandwidth are of a private server: leave TARGET out"
        } else if let Some(conflict) = self.rate_conflict() {
            conflict
        } else if self.find_capacity.is_none() && self.users().points().len() > LOAD_POINTS_MAX {
            "--users has more than 1000 load points; give the range a step: 10..5000:10"
        } else if self.connections_per_session > 1 && self.connect.dialect < SMB3 {
            "--connections-per-session needs SMB 3; choose --dialect 3.0 or later"
        } else if self.cluster.address.is_some() && self.capture {
            "--capture sees no packets of other hosts: leave --capture or --cluster out"
        } else if self.cluster.address.is_some() && !self.by.is_empty() {
            "--by depends on the order of all commands, which is not known over several hosts: leave --by or --cluster out"
        } else if let Some(conflict) = connect.conflict() {
            conflict
        } else {
            return Ok(());
        };
        let mut command = Arguments::command();
        command.build();
        let bench = command.find_subcommand_mut("bench").expect("there is a subcommand bench");
        Err(bench.error(ErrorKind::ArgumentConflict, conflict))
    }
}

/// `name=value`.
fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected a name and a value, such as files=114")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// Other things to do with a target.
#[derive(Debug, Subcommand)]
pub enum BenchVerb {
    /// Remove the directory that bench made on a share, and nothing else.
    Clean(CleanArguments),

    /// List the built-in workloads, or print one as a file to begin from.
    Workloads(WorkloadsArguments),
}

/// Arguments of `smbscope bench clean`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  smbscope bench clean smb://ann@files/projects")]
pub struct CleanArguments {
    /// Target of the runs: `smb://[user@]host[:port]/share[/dir]` or `file:DIR`.
    #[arg(value_name = "TARGET")]
    pub target: TargetUrl,

    /// How to connect.
    #[command(flatten)]
    pub connect: ConnectArguments,
}

/// How users think.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Think {
    /// For this time between two operations.
    Between(Duration),
    /// As the workload has it, so many times as long.
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

/// Arguments of `smbscope bench workloads`.
#[derive(Debug, Args)]
pub struct WorkloadsArguments {
    /// Print this workload.
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
}

/// How to connect, and as whom.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
pub struct ConnectArguments {
    /// Dialect to negotiate.
    #[arg(long, value_parser = one_of(DIALECTS), default_value = "3.1.1")]
    pub dialect: Dialect,

    /// Sign messages never, where the server requires it, or always.
    #[arg(long, value_parser = one_of(SIGNING), default_value = "on")]
    pub signing: ClientSigningPolicy,

    /// Offer only this signing algorithm with SMB 3.1.1.
    #[arg(hide_short_help = true, long, value_parser = one_of(SIGNING_ALGORITHMS))]
    pub signing_algorithm: Option<SigningAlgorithm>,

    /// Encrypt messages, with this cipher.
    #[arg(long, value_parser = one_of(ENCRYPTION), default_value = "off")]
    pub encryption: Encryption,

    /// Use direct TCP (port 445), or a NetBIOS session (port 139).
    #[arg(hide_short_help = true, long, value_parser = one_of(TRANSPORTS), default_value = "tcp")]
    pub transport: Transport,

    /// Log in with these credentials.
    #[arg(long, value_parser = one_of(LOGINS), default_value = "password")]
    pub login: Login,

    /// Read the password from the first line of this file; otherwise SMBSCOPE_PASSWORD, or a prompt.
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,

    /// Wait this long for the response to a command.
    #[arg(hide_short_help = true, long, value_name = "DURATION", default_value = "30s", value_parser = units::time)]
    pub timeout: Duration,

    /// Abort the preparation or removal of files after this time.
    #[arg(hide_short_help = true, long, value_name = "DURATION", default_value = "30min", value_parser = units::time)]
    pub prepare_timeout: Duration,

    /// Send related commands as one compound where the dialect can.
    #[arg(hide_short_help = true, long)]
    pub compound: bool,

    /// SMB1: read and write in raw mode, as NetBench's clients did.
    #[arg(hide_short_help = true, long, conflicts_with = "leases")]
    pub raw: bool,

    /// Request a lease or an oplock with every open.
    #[arg(hide_short_help = true, long)]
    pub leases: bool,
}

impl ConnectArguments {
    /// What would be ignored, or refused only by the server.
    fn conflict(&self) -> Option<&'static str> {
        let (encrypted, algorithm) = (self.encryption != Encryption::Off, self.signing_algorithm.is_some());
        let later_cipher =
            encrypted && !matches!(self.encryption, Encryption::Required(None | Some(Cipher::Aes128Ccm)));
        if encrypted && self.dialect < SMB3 {
            Some("--encryption needs SMB 3; choose --dialect 3.0 or later")
        } else if later_cipher && self.dialect < SMB311 {
            Some("this cipher needs --dialect 3.1.1; SMB 3.0 and 3.0.2 have aes-128-ccm alone")
        } else if algorithm && self.dialect < SMB311 {
            Some("--signing-algorithm needs --dialect 3.1.1; every older dialect has one way of signing")
        } else if algorithm && self.signing == ClientSigningPolicy::Off {
            Some("--signing off leaves nothing for --signing-algorithm to do; leave one of them out")
        } else if self.raw && self.dialect != Dialect::NtLm012 {
            Some("--raw is of SMB1; choose --dialect nt1")
        } else if self.raw && self.signing == ClientSigningPolicy::Required {
            Some("what has no header has no signature: leave --raw or --signing required out")
        } else if self.timeout.is_zero() {
            Some("--timeout has to be longer than nothing")
        } else if self.prepare_timeout.is_zero() {
            Some("--prepare-timeout has to be longer than nothing")
        } else {
            None
        }
    }
}

pub(super) const DIALECTS: &PossibleValueTable<Dialect> = &[
    ("nt1", "SMB1", Dialect::NtLm012),
    ("2.0.2", "SMB 2.0.2", Dialect::Smb2(0x0202)),
    ("2.1", "SMB 2.1", Dialect::Smb2(0x0210)),
    ("3.0", "SMB 3.0", Dialect::Smb2(0x0300)),
    ("3.0.2", "SMB 3.0.2", Dialect::Smb2(0x0302)),
    ("3.1.1", "SMB 3.1.1", Dialect::Smb2(0x0311)),
];

pub(super) const SIGNING: &PossibleValueTable<ClientSigningPolicy> = &[
    ("off", "Never", ClientSigningPolicy::Off),
    ("on", "Where the server requires it", ClientSigningPolicy::On),
    ("required", "Always", ClientSigningPolicy::Required),
];

/// The ways of signing of SMB 3.1.1.
const SIGNING_ALGORITHMS: &PossibleValueTable<SigningAlgorithm> = &[
    ("hmac-sha256", "HMAC-SHA256", SigningAlgorithm::HmacSha256),
    ("aes-cmac", "AES-128-CMAC", SigningAlgorithm::AesCmac),
    ("aes-gmac", "AES-128-GMAC", SigningAlgorithm::AesGmac),
];

pub(super) const ENCRYPTION: &PossibleValueTable<Encryption> = &[
    ("off", "Not unless the server requires it", Encryption::Off),
    ("required", "Strongest mutually supported cipher", Encryption::Required(None)),
    ("aes-128-ccm", "AES-128-CCM", Encryption::Required(Some(Cipher::Aes128Ccm))),
    ("aes-128-gcm", "AES-128-GCM", Encryption::Required(Some(Cipher::Aes128Gcm))),
    ("aes-256-ccm", "AES-256-CCM", Encryption::Required(Some(Cipher::Aes256Ccm))),
    ("aes-256-gcm", "AES-256-GCM", Encryption::Required(Some(Cipher::Aes256Gcm))),
];

const TRANSPORTS: &PossibleValueTable<Transport> =
    &[("tcp", "Direct TCP", Transport::DirectTcp), ("netbios", "NetBIOS session service", Transport::NetBios)];

const LOGINS: &PossibleValueTable<Login> = &[
    ("password", "The user of the target by password; a guest where the target names none", Login::Password),
    ("guest", "A guest", Login::Guest),
    ("anonymous", "Nobody", Login::Anonymous),
    ("kerberos", "Whoever the system has Kerberos tickets of", Login::Kerberos),
];

const ON_FAILURE: &PossibleValueTable<OnFailure> = &[
    ("reconnect", "Connect again", OnFailure::Reconnect { delay: RECONNECT_DELAY }),
    ("end", "End the user; the run ends with the last one", OnFailure::End),
];

const ON_LOST_HOST: &PossibleValueTable<OnLostHost> = &[
    ("continue", "The other hosts go on; later load points divide all users among them", OnLostHost::Continue),
    ("stop", "End the run", OnLostHost::Stop),
];

const ARRIVALS: &PossibleValueTable<Arrivals> = &[
    ("constant", "At equal distances", Arrivals::Constant),
    ("poisson", "At random (a Poisson process)", Arrivals::Poisson),
];

/// What to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BenchFormat {
    /// The report for a terminal.
    Text,
    /// The report as one page with pictures.
    Html,
    /// One object, `smbscope.bench/1`; times in nanoseconds.
    Json,
}

/// Operations a second: 500/s, 30/min, or 500.
fn rate(text: &str) -> Result<f64, String> {
    let rate = units::rate(text)?;
    if rate > 0.0 { Ok(rate) } else { Err("expected more than none, such as 500/s".to_owned()) }
}

/// A percentage: 1, 0.5 or 5%.
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
