//! `smbscope.bench/1`, the document of a ramp: `run.json`, and the source of the text, the page and comparisons. Its schema is
//! `schema/smbscope.bench-1.schema.json`. Times are integers in nanoseconds; unknown values, and percentiles of too few values,
//! are `null`. Keys and entries have a fixed order.

use super::BenchRun;
use crate::Answer;
use crate::document::{self, DocumentKind, Generator, ParseError, write_indented_above};
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
}
