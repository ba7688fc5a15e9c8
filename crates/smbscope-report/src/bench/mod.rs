//! Results of `smbscope bench`: a ramp of load points as one [`BenchDocument`], `smbscope.bench/1`. It is the
//! `run.json` of a run directory, and the source of the text, the page and comparisons.
//!
//! | module | output |
//! |---|---|
//! | [`write()`], [`BenchDocument::parse`] | `smbscope.bench/1` |
//! | [`render`] | the report for a terminal |
//! | [`files`] | the other files of a run directory |
//! | [`html::write_bench`](crate::html::write_bench) | a page with charts |
//!
//! The schema is `schema/smbscope.bench-1.schema.json`. Times are integers in nanoseconds; unknown values, and
//! percentiles of too few values, are `null`. Keys and entries have a fixed order.

mod answer;
pub mod files;
mod load_point;
mod measure;
mod text;
mod warnings;

pub use crate::document::{Generator, ParseError, schema_of};
pub use crate::names::OTHER;
pub(crate) use answer::{again, capture as capture_of};
pub use load_point::{
    BenchRun, BenchRunOutcome, Captured, ClientCpuEntry, ClientWireTimes, IntervalEntry, JobEntry, JobStatistics,
    LoadHostEntry, LoadPointBreakdown, LostHost, MeasuredCommand, MeasuredGroup, OperationEntry, OverloadEntry,
    QueueDepthEntry, RunCapture, ScheduleAdherence, ServerCapture, StallEntry,
};
pub use measure::{InsideSamba, overall_response_time};
pub(crate) use text::breakdown::{MeanAndMaximum, server_table};
pub use text::{RampDetailLevel, RampTextOptions, markdown, render};
pub(crate) use warnings::far_below_its_rate;

use crate::document::{DocumentKind, write_indented_above};
use crate::{Answer, document};
use serde::{Deserialize, Serialize};
use smbscope_model::{Nanos, Timestamp};
use std::collections::BTreeMap;
use std::io::{self, Write};

pub const SCHEMA: &str = "smbscope.bench/1";

const KIND: DocumentKind = DocumentKind { schema: SCHEMA, advice: "give the run.json that bench wrote" };

/// A ramp of runs against a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BenchDocument {
    /// Program and version that wrote the document.
    pub generator: Generator,
    /// Title from the command line.
    pub title: Option<String>,
    /// Peak throughput and what more load costs, the culprit of the load point shown in detail, and commands for a closer look.
    /// Each load point has an answer of its own.
    pub answer: Answer,
    /// Server and share under load.
    pub target: TargetEntry,
    /// Operations of the users.
    pub workload: WorkloadEntry,
    /// Load points, schedule and client options.
    pub settings: RampSettings,
    /// Start of the preparation of the first run.
    pub started_ns: Timestamp,
    /// Test environment by name: `system`, `kernel`, `processor`, `cores`, `memory`, `server` …
    pub environment: BTreeMap<String, String>,
    /// Load points in the order they ran.
    pub runs: Vec<BenchRun>,
    /// Highest load that meets the criterion. Null if no criterion was given.
    pub capacity: Option<CapacityEntry>,
    /// Area under the curve of mean response time over users (or rates), divided by their range; with one load point, its mean.
    /// In an open loop, response times count from the intended start.
    pub overall_response_time_ns: Option<Nanos>,
    /// Limits of the figures, one sentence each, the most serious first.
    pub warnings: Vec<String>,
    /// Command that started the ramp. Null if unknown.
    pub invocation: Option<Invocation>,
    /// Launched program. Null for a load.
    pub launch: Option<Launch>,
}

impl BenchDocument {
    pub(crate) fn heading(&self) -> String {
        match &self.title {
            Some(title) if self.launch.is_some() => format!("Launch: {title}"),
            Some(title) => format!("SMB load: {title}"),
            None if let Some(launch) = &self.launch => format!("Launch of {}", launch.program),
            None if self.target.is_local() => "Load on a local folder".to_owned(),
            None => format!("SMB load on {}", self.target.host),
        }
    }

    /// Adds everything derived from the runs: answers, overall response time, and warnings, which go first.
    pub fn completed(mut self) -> BenchDocument {
        if let Some(launch) = &self.launch {
            self.answer = answer::of_launch(&self, launch);
            self.warnings = [warnings::of_launch(&self), self.warnings].concat();
            return self;
        }
        self.runs.iter_mut().for_each(|run| run.answer = answer::of_load_point(run));
        self.answer = answer::of_ramp(&self);
        self.overall_response_time_ns = overall_response_time(&self.runs, self.is_ramp_of_rates());
        let mut warnings = warnings::of_ramp(&self);
        warnings.append(&mut self.warnings);
        self.warnings = warnings;
        self
    }
}

/// Command that started a ramp.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Invocation {
    /// Command line, quoted for a shell, without load points, schedule, output options or password.
    pub command: String,
    /// Run directory. Null if the run was not kept.
    pub directory: Option<String>,
}

/// Server, share and protocol settings. Holds no password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TargetEntry {
    /// Host as given on the command line; `this machine` for a local folder.
    pub host: String,
    /// TCP port; 0 for a local folder.
    pub port: u16,
    /// Share name, or path of the local folder.
    pub share: String,
    /// Working directory on the share.
    pub directory: Option<String>,
    /// User name for logons. Null for guests and for several users.
    pub user: Option<String>,
    /// Negotiated dialect: `3.1.1`, `NT LM 0.12`; `local` for a local folder. Null if no run negotiated one.
    pub dialect: Option<String>,
    /// Requested signing: `off`, `on` or `required`.
    pub signing: String,
    /// Negotiated signing algorithm, such as `AES-128-CMAC`. Null if messages are not signed.
    pub signing_algorithm: Option<String>,
    /// Requested encryption: `off` or `required`.
    pub encryption: String,
    /// Negotiated cipher, such as `AES-128-GCM`. Null if messages are not encrypted.
    pub cipher: Option<String>,
}

impl TargetEntry {
    pub(crate) fn is_local(&self) -> bool {
        self.dialect.as_deref() == Some("local")
    }
}

/// Workload of the users.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkloadEntry {
    /// Name of the workload.
    pub name: String,
    /// File name. Null for a built-in workload.
    pub source: Option<String>,
    /// Parameter values by name.
    pub parameters: BTreeMap<String, String>,
    /// Seed of the random choices.
    pub seed: Option<u64>,
    /// Files prepared before the first run. Null if the workload needs none.
    pub file_set: Option<FileSetTotals>,
    /// SHA-256 of the definition, in hexadecimal.
    #[cfg_attr(feature = "schema", schemars(extend("pattern" = "^[0-9a-f]{64}$")))]
    pub sha256: Option<String>,
    /// Text of the definition, TOML or a loadfile. Null if longer than 64 KiB.
    pub definition: Option<String>,
}

/// Prepared files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileSetTotals {
    /// Number of files.
    pub files: u64,
    /// Total size.
    pub bytes: u64,
}

/// Load points, schedule and client options.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RampSettings {
    /// Closed or open loop.
    pub schedule: LoopModel,
    /// Requested load points in users; with `rates`, the number of users at every one.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<std::num::NonZeroU32>"))]
    pub users: Vec<u32>,
    /// Requested load points in operations per second of all users together. Empty if load points differ in users.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<std::num::NonZeroU32>"))]
    pub rates: Vec<u32>,
    /// Requested duration of each measurement.
    pub duration_ns: Nanos,
    /// Requested warm-up before it, not counted.
    pub warmup_ns: Nanos,
    /// Client threads.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub threads: u32,
    /// Sessions per user.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub sessions_per_user: u32,
    /// Connections per session; more than one is SMB 3 multichannel.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub connections_per_session: u32,
    /// The client polled its sockets instead of sleeping.
    pub busy_poll: bool,
    /// Limit for new sessions per second. Null if unlimited.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
    pub connects_per_second: Option<f64>,
    /// Passes of each user that end a load point. Null if its duration ends it.
    pub passes: Option<u32>,
    /// Percentage of failed operations above which the run fails. Null if it never does.
    pub max_errors_percent: Option<f64>,
    /// A packet capture was requested.
    pub capture: bool,
}

/// Start of operations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "loop", rename_all = "lowercase")]
pub enum LoopModel {
    /// After the user's previous operation.
    Closed {
        /// Think time between two operations of a user.
        think_ns: Nanos,
    },
    /// At intended times, however long earlier operations take.
    Open {
        /// Operations per second, of all users together or of each. With `rates`, of the first load point.
        #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
        rate: f64,
        /// `rate` is per user.
        per_user: bool,
        /// Intended times are random and independent (Poisson) instead of evenly spaced.
        random: bool,
    },
}

/// Highest load that meets a criterion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapacityEntry {
    /// Criterion as given, such as `p95(Read) < 20ms`.
    pub criterion: String,
    /// Users at that load. Null if no load meets the criterion.
    pub users: Option<u32>,
    /// Operations per second at that load. Null if load points differ in users.
    pub rate: Option<u32>,
    /// Highest nearby load that met the criterion in all three tries. Null if unknown.
    pub always: Option<u32>,
    /// Lowest nearby load that met it in none of three tries. Null if unknown.
    pub never: Option<u32>,
    /// Loads in the order they were tried.
    pub tried: Vec<CapacityTrialEntry>,
}

/// A load tested against the criterion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapacityTrialEntry {
    /// Users.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub users: u32,
    /// Operations per second. Null if load points differ in users.
    pub rate: Option<u32>,
    /// Measured value as text, such as `18.3 ms`. Null for too few values.
    pub found: Option<String>,
    /// The criterion holds.
    pub holds: bool,
}

/// A program launched several times. Its launches are the jobs of the only load point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Launch {
    /// Program name without its path.
    pub program: String,
    /// Command and arguments. `{folder}` stands for the folder with the program's files, `{local}` for an empty one.
    pub command: Vec<String>,
    /// Condition that ended a launch: `a window with "Inbox"`.
    pub until: String,
    /// State of the caches at launch.
    pub caches: Caches,
    /// Program that mounted the share. Null if none was mounted.
    pub mounted_by: Option<String>,
}

/// State of the caches when a program is launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Caches {
    /// Filled by earlier launches, on client and server.
    Warm,
    /// Empty: file caches of this machine dropped, share mounted again.
    Cold,
}

impl Caches {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Caches::Warm => "warm",
            Caches::Cold => "cold",
        }
    }
}

/// Ramp of runs against a server, as `smbscope bench --format json` prints it and `run.json` holds it. Times are integers in
/// nanoseconds, timestamps count from the Unix epoch. Null is unknown or, for a statistic, based on too few values.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct BenchEnvelope<'a> {
    #[cfg_attr(feature = "schema", schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    #[serde(flatten)]
    document: &'a BenchDocument,
}

impl<'a> BenchEnvelope<'a> {
    pub(crate) fn new(document: &'a BenchDocument) -> BenchEnvelope<'a> {
        BenchEnvelope { schema: SCHEMA, document }
    }
}

/// Indented levels. The statistics of a load point are below them, with hundreds of numbers each.
const LEVELS: usize = 6;

pub fn write(document: &BenchDocument, out: impl Write) -> io::Result<()> {
    write_indented_above(LEVELS, &BenchEnvelope::new(document), out)
}

impl BenchDocument {
    pub fn is_ramp_of_rates(&self) -> bool {
        !self.settings.rates.is_empty()
    }

    pub(crate) fn load(&self, run: &BenchRun) -> u32 {
        run.load(self.is_ramp_of_rates()).round() as u32
    }

    /// Returns the load point to show in detail: at the capacity, or the last.
    pub(crate) fn shown(&self) -> Option<&BenchRun> {
        let capacity = self.capacity.as_ref();
        let load = capacity.and_then(|capacity| if self.is_ramp_of_rates() { capacity.rate } else { capacity.users });
        let found = self.runs.iter().rev().find(|run| Some(self.load(run)) == load);
        found.or(self.runs.last())
    }

    /// Formats the load of a run: `8 users`, `500/s`.
    pub fn load_name(&self, run: &BenchRun) -> String {
        load_name(run.users, run.rate().filter(|_| self.is_ramp_of_rates()))
    }

    pub fn parse(text: &[u8]) -> Result<BenchDocument, ParseError> {
        document::parse(KIND, text)
    }
}

pub(crate) fn load_name(users: u32, rate: Option<f64>) -> String {
    match rate {
        Some(rate) => format!("{}/s", crate::format::thousands(rate.round() as u64)),
        None => crate::format::counted(users.into(), "user", "users"),
    }
}

/// Place of a server, of files, or of metrics on the client's machine.
pub const THIS_MACHINE: &str = "this machine";

/// Server metrics, sampled every second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerLoad {
    /// Source: `this machine`, or the URL of an exporter.
    pub source: String,
    /// Sample times. A sample covers the second before it.
    pub times_ns: Vec<Timestamp>,
    /// Metrics, each with one value per sample time.
    pub metrics: Vec<ServerSeries>,
}

/// A metric of the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerSeries {
    /// Name: `cpu`, `cpu_busiest`, `disk_queue`, `samba_read`, `samba_read_time` …
    pub metric: String,
    /// Unit: `percent`, `bytes/s`, `bytes`, `1/s`, `ns` or `count`.
    pub unit: String,
    /// Mean of the samples. For times (`ns`), the mean of all operations.
    pub mean: f64,
    /// Largest sample.
    pub max: f64,
    /// Value at each sample time. Null if missing.
    pub values: Vec<Option<f64>>,
}

impl ServerSeries {
    pub fn new(metric: &str, unit: &str, values: Vec<Option<f64>>) -> ServerSeries {
        let known: Vec<f64> = values.iter().flatten().copied().collect();
        ServerSeries {
            metric: metric.to_owned(),
            unit: unit.to_owned(),
            mean: known.iter().sum::<f64>() / known.len().max(1) as f64,
            max: known.iter().copied().fold(0.0, f64::max),
            values,
        }
    }
}

impl ServerLoad {
    /// Creates the metrics of a load point. The mean of a time is weighted by the operations of each second.
    pub fn new(source: String, times_ns: Vec<Timestamp>, mut metrics: Vec<ServerSeries>) -> ServerLoad {
        let weighted: Vec<Option<f64>> = metrics
            .iter()
            .map(|series| {
                let rate = series.metric.strip_suffix("_time")?;
                let rates = &metrics.iter().find(|other| other.metric == rate)?.values;
                let known = || series.values.iter().zip(rates).filter_map(|(time, rate)| Some(((*time)?, (*rate)?)));
                let count: f64 = known().map(|(_, rate)| rate).sum();
                (count > 0.0).then(|| known().map(|(time, rate)| time * rate).sum::<f64>() / count)
            })
            .collect();
        for (series, mean) in metrics.iter_mut().zip(weighted) {
            series.mean = mean.unwrap_or(series.mean);
        }
        ServerLoad { source, times_ns, metrics }
    }

    pub fn metric(&self, name: &str) -> Option<&ServerSeries> {
        self.metrics.iter().find(|series| series.metric == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_ramp_says_what_it_is() {
        let error = |text: &str| BenchDocument::parse(text.as_bytes()).expect_err("no ramp");
        assert!(matches!(error("{\"schema\": "), ParseError::NotJson(_)));
        assert_eq!(error("{}"), ParseError::AnotherKind(KIND, None));
        let other = error(r#"{"schema": "smbscope.report/1"}"#).to_string();
        assert_eq!(
            other,
            "its `schema` is \"smbscope.report/1\", and not \"smbscope.bench/1\": give the run.json that bench wrote"
        );
        assert!(matches!(error(r#"{"schema": "smbscope.bench/1"}"#), ParseError::NotAsDescribed(..)));
    }

    /// 1 read of 10 ms in the first second and 9 of 20 ms in the third: (10 + 180) / 10 = 19 ms, not 15 ms.
    #[test]
    fn a_mean_time_is_that_of_all_operations() {
        let rates = ServerSeries::new("samba_read", "1/s", vec![Some(1.0), None, Some(9.0)]);
        let times = ServerSeries::new("samba_read_time", "ns", vec![Some(10e6), None, Some(20e6)]);
        let load = ServerLoad::new(
            THIS_MACHINE.to_owned(),
            vec![Timestamp(1), Timestamp(2), Timestamp(3)],
            vec![rates, times],
        );
        let mean = |name: &str| load.metric(name).map(|series| series.mean);
        assert_eq!((mean("samba_read"), mean("samba_read_time")), (Some(5.0), Some(19e6)));
    }
}
