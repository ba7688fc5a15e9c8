//! Workloads: a [`Script`] of steps for each user, from a loadfile, a TOML file or a built-in definition.
//!
//! A [`Workload`] is parsed once and shared by all users; a script only holds its user's position. Everything that a
//! user touches is below one directory of the share: see [`UserSeat`]. Start reading with [`Action`] and [`Script`].

mod action;
mod draw;
mod loadfile;
mod netbench;
mod paths;
mod sources;
mod synthetic;
mod threads;

pub use action::{Action, Expected, HandleSlot, Script, ScriptStep};
pub use draw::SizeDistribution;
pub use loadfile::{check_line, ranges_text};
pub use netbench::NetbenchLike;
pub use paths::{CreatedPaths, FileSet, FileSetOwner, Own, UserSeat};
pub(crate) use paths::{NAMES_MAX, own_directory};
pub use sources::{RecordedWorkload, Recording, Travelling};
pub use synthetic::{STEPS, StepField, StepKind};
pub use threads::{PassPosition, RecordedClient, RecordedPool, SessionsPerUser, ThreadProgress};

use crate::bounded::{self, WORKLOAD_MAX, WORKLOAD_TABLE_MAX};
use loadfile::{Loadfile, LoadfileScript};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use smbscope_model::Dialect;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};
use synthetic::{Synthetic, SyntheticScript};

/// A parsed workload. Cheap to clone: all clones share the definition.
#[derive(Debug, Clone)]
pub struct Workload {
    about: Arc<WorkloadMetadata>,
    kind: WorkloadKind,
    thinking: Option<f64>,
}

#[derive(Debug)]
struct WorkloadMetadata {
    name: String,
    description: String,
    source: WorkloadSource,
    file_set: FileSet,
    definition: WorkloadDefinition,
    parameters: Vec<(String, String)>,
    /// File name for messages, and text of a TOML workload.
    toml: Option<(String, String)>,
}

#[derive(Debug, Clone)]
enum WorkloadKind {
    Loadfile(Arc<Loadfile>),
    Synthetic(Arc<Synthetic>),
}

/// Source text of a workload, and its hash to tell whether two workloads are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadDefinition {
    pub sha256: String,
    /// The text, or `None` if it is longer than [`DEFINITION_MAX`].
    pub text: Option<String>,
}

/// Bytes of a definition kept; of longer ones, the SHA-256. TOML files fit; loadfiles mostly do not.
pub const DEFINITION_MAX: usize = 64 << 10;

impl WorkloadDefinition {
    fn new(text: &str) -> WorkloadDefinition {
        let sha256 = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
        WorkloadDefinition { sha256, text: (text.len() <= DEFINITION_MAX).then(|| text.to_owned()) }
    }
}

fn read(path: &Path) -> Result<(String, Vec<u8>), WorkloadError> {
    let name = path.display().to_string();
    match bounded::read(path, WORKLOAD_MAX) {
        Ok(bytes) => Ok((name, bytes)),
        Err(error) => Err(WorkloadError::Unreadable { path: name, error }),
    }
}

/// Open-loop operations, started at a rate as in Microsoft's File Server Capacity Tool (`[scenarios]`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scenarios {
    /// Operations per second and user.
    pub rate: f64,
    /// Maximum delay of the start.
    pub late: Duration,
    pub budget: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkloadSource {
    BuiltIn,
    File(String),
}

impl Workload {
    /// Names and descriptions. The first is the default.
    pub fn built_in() -> Vec<(&'static str, String)> {
        sources::all_built_in()
    }

    pub fn builtin(name: &str) -> Result<Workload, WorkloadError> {
        sources::built_in(name)
    }

    /// Returns the source of a built-in workload as a starting point for a file: TOML, or a loadfile that dbench and
    /// smbtorture also accept.
    pub fn builtin_text(name: &str) -> Option<String> {
        sources::built_in_text(name)
    }

    /// Loads a TOML file or a loadfile, recognised by extension or else by content.
    pub fn load(path: &Path) -> Result<Workload, WorkloadError> {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let (name, bytes) = read(path)?;
        let text = String::from_utf8_lossy(&bytes);
        if extension.eq_ignore_ascii_case("toml") || synthetic::looks_like_toml(&text) {
            return Workload::toml_file(name, &bytes);
        }
        Workload::loadfile_text(path, name, &text)
    }

    pub fn loadfile(path: &Path) -> Result<Workload, WorkloadError> {
        let (name, bytes) = read(path)?;
        Workload::loadfile_text(path, name, &String::from_utf8_lossy(&bytes))
    }

    fn loadfile_text(path: &Path, name: String, text: &str) -> Result<Workload, WorkloadError> {
        let loadfile = Loadfile::parse(&name, text)?;
        Ok(Workload::of_loadfile(stem(path), String::new(), WorkloadSource::File(name), text, loadfile))
    }

    pub fn netbench_like(settings: NetbenchLike) -> Result<Workload, WorkloadError> {
        sources::netbench(settings)
    }

    fn toml_file(name: String, bytes: &[u8]) -> Result<Workload, WorkloadError> {
        let unreadable = |error| WorkloadError::Unreadable { path: name.clone(), error };
        let text = str::from_utf8(bytes).map_err(|_| unreadable(io::Error::other("it is not UTF-8")))?;
        if bytes.len() > WORKLOAD_TABLE_MAX && !sources::is_recording(text) {
            let most = WORKLOAD_TABLE_MAX >> 20;
            return Err(unreadable(io::Error::other(format!("a TOML workload has no more than {most} MiB"))));
        }
        Workload::toml(&name, text, WorkloadSource::File(name.clone()))
    }

    fn toml(file: &str, text: &str, source: WorkloadSource) -> Result<Workload, WorkloadError> {
        if sources::is_recording(text) {
            return sources::parse_recording(file, text, source);
        }
        let synthetic::Parsed { name, description, synthetic } = synthetic::parse(file, text)?;
        let file_set = synthetic.file_set().clone();
        let (parameters, toml) = (synthetic::parameters(file, text)?, Some((file.to_owned(), text.to_owned())));
        let definition = WorkloadDefinition::new(text);
        let about = WorkloadMetadata { name, description, source, file_set, definition, parameters, toml };
        Ok(Workload { about: Arc::new(about), kind: WorkloadKind::Synthetic(Arc::new(synthetic)), thinking: None })
    }

    fn of_loadfile(
        name: String,
        description: String,
        source: WorkloadSource,
        text: &str,
        loadfile: Loadfile,
    ) -> Workload {
        let (definition, file_set, parameters) = (WorkloadDefinition::new(text), FileSet::none(), Vec::new());
        let about = WorkloadMetadata { name, description, source, file_set, definition, parameters, toml: None };
        Workload { about: Arc::new(about), kind: WorkloadKind::Loadfile(Arc::new(loadfile)), thinking: None }
    }

    /// Returns the workload with other values for the named parameters. Its definition changes accordingly.
    pub fn set(self, values: &[(String, String)]) -> Result<Workload, WorkloadError> {
        let Some((name, _)) = values.first() else { return Ok(self) };
        match &self.about.toml {
            Some((file, text)) => {
                Workload::toml(file, &synthetic::with_parameters(file, text, values)?, self.about.source.clone())
            }
            None => Err(WorkloadError::Parameter {
                what: format!("the workload has no parameter \"{name}\""),
                hint: "a loadfile has none".to_owned(),
            }),
        }
    }

    pub fn thinking(self, by: f64) -> Workload {
        match &self.kind {
            WorkloadKind::Loadfile(loadfile) => {
                Workload { kind: WorkloadKind::Loadfile(Arc::new(loadfile.thinking(by))), thinking: Some(by), ..self }
            }
            WorkloadKind::Synthetic(_) => self,
        }
    }

    pub fn has_pauses(&self) -> bool {
        matches!(&self.kind, WorkloadKind::Loadfile(_))
    }

    pub fn parameters(&self) -> &[(String, String)] {
        &self.about.parameters
    }

    pub fn definition(&self) -> &WorkloadDefinition {
        &self.about.definition
    }

    pub fn name(&self) -> &str {
        &self.about.name
    }

    pub fn description(&self) -> &str {
        &self.about.description
    }

    pub fn source(&self) -> &WorkloadSource {
        &self.about.source
    }

    pub fn operations(&self) -> &[String] {
        match &self.kind {
            WorkloadKind::Loadfile(loadfile) => loadfile.operations(),
            WorkloadKind::Synthetic(synthetic) => synthetic.operations(),
        }
    }

    pub fn file_set(&self) -> &FileSet {
        &self.about.file_set
    }

    /// Names that users create in their own directories, apart from the file set. Cleanup removes them.
    pub fn made(&self) -> CreatedPaths {
        match &self.kind {
            WorkloadKind::Loadfile(loadfile) => loadfile.made().clone(),
            WorkloadKind::Synthetic(_) => CreatedPaths::default(),
        }
    }

    /// Bytes that a user writes during set-up, in addition to the file set.
    pub fn set_up_bytes(&self) -> u64 {
        match &self.kind {
            WorkloadKind::Loadfile(loadfile) => loadfile.set_up_bytes(),
            WorkloadKind::Synthetic(_) => 0,
        }
    }

    pub fn has_queues(&self) -> bool {
        match &self.kind {
            WorkloadKind::Loadfile(loadfile) => loadfile.has_queues(),
            WorkloadKind::Synthetic(synthetic) => synthetic.has_queues(),
        }
    }

    /// Returns the sessions of recorded clients, which users play in turn. `None` if all users need the same one session.
    pub fn recorded_sessions(&self) -> Option<&SessionsPerUser> {
        match &self.kind {
            WorkloadKind::Loadfile(loadfile) => loadfile.sessions().filter(|sessions| !sessions.is_one_for_all()),
            WorkloadKind::Synthetic(_) => None,
        }
    }

    pub fn has_end(&self) -> bool {
        match &self.kind {
            WorkloadKind::Loadfile(_) => true,
            WorkloadKind::Synthetic(synthetic) => synthetic.has_end(),
        }
    }

    /// Returns an error if some step is impossible in the dialect.
    pub fn check_dialect(&self, dialect: Dialect) -> Result<(), WorkloadError> {
        let unsupported = match &self.kind {
            WorkloadKind::Loadfile(loadfile) => loadfile.unsupported_in(dialect),
            WorkloadKind::Synthetic(synthetic) => synthetic.unsupported_in(dialect),
        };
        let Some((step, why)) = unsupported else { return Ok(()) };
        let what = format!("the workload {} sends {step}, which can't be done in {dialect}: {why}", self.name());
        Err(WorkloadError::Parameter { what, hint: "choose another --dialect".to_owned() })
    }

    /// Start rate and limits if the operations are scenarios.
    pub fn scenarios(&self) -> Option<Scenarios> {
        match &self.kind {
            WorkloadKind::Loadfile(_) => None,
            WorkloadKind::Synthetic(synthetic) => synthetic.scenarios(),
        }
    }

    /// Number of loadfile lines that can't be performed because the file never opens their handle.
    pub fn skipped_lines(&self) -> u32 {
        match &self.kind {
            WorkloadKind::Loadfile(loadfile) => loadfile.skipped(),
            WorkloadKind::Synthetic(_) => 0,
        }
    }

    pub fn shared_memory(&self) -> usize {
        match &self.kind {
            WorkloadKind::Loadfile(loadfile) => loadfile.memory(),
            WorkloadKind::Synthetic(_) => size_of::<Synthetic>(),
        }
    }

    pub fn script(&self, seat: &UserSeat) -> UserScript {
        match &self.kind {
            WorkloadKind::Loadfile(loadfile) => {
                UserScript(Inner::Loadfile(LoadfileScript::new(Arc::clone(loadfile), seat)))
            }
            WorkloadKind::Synthetic(synthetic) => {
                UserScript(Inner::Synthetic(Box::new(SyntheticScript::new(Arc::clone(synthetic), seat))))
            }
        }
    }
}

#[derive(Debug)]
pub struct UserScript(Inner);

#[derive(Debug)]
enum Inner {
    Loadfile(LoadfileScript),
    Synthetic(Box<SyntheticScript>),
}

macro_rules! either {
    ($self:expr, $script:ident => $call:expr) => {
        match $self {
            UserScript(Inner::Loadfile($script)) => $call,
            UserScript(Inner::Synthetic($script)) => $call,
        }
    };
}

impl Script for UserScript {
    fn operations(&self) -> &[String] {
        either!(self, script => script.operations())
    }

    fn next(&mut self) -> Option<ScriptStep<'_>> {
        either!(self, script => script.next())
    }

    fn restart(&mut self) {
        either!(self, script => script.restart());
    }

    fn sets_up(&self) -> bool {
        either!(self, script => script.sets_up())
    }

    fn passes(&self) -> Option<u32> {
        either!(self, script => script.passes())
    }

    fn progress(&self) -> Option<ThreadProgress> {
        either!(self, script => script.progress())
    }

    fn abandon(&mut self) {
        either!(self, script => script.abandon());
    }
}

/// Validates a path relative to the root of a share and strips backslashes at both ends. Returns the problem as the
/// error.
pub fn relative_path(path: &str) -> Result<String, String> {
    paths::below(path, paths::Last::Name)
}

fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(|| path.display().to_string(), |stem| stem.to_string_lossy().into_owned())
}

#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    #[error("{path}: {error}")]
    Unreadable {
        path: String,
        #[source]
        error: io::Error,
    },

    #[error("{place}: {what}; {hint}")]
    Invalid { place: Location, what: String, hint: String },

    #[error("{what}; {hint}")]
    Parameter { what: String, hint: String },

    #[error("no workload is called \"{name}\"; {hint}")]
    Unknown { name: String, hint: String },
}

impl WorkloadError {
    fn invalid(place: Location, what: impl Into<String>, hint: impl Into<String>) -> WorkloadError {
        WorkloadError::Invalid { place, what: what.into(), hint: hint.into() }
    }
}

/// A position in a file, printed as compilers do: `file:line:column`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    pub file: String,
    /// Counted from 1.
    pub line: Option<u32>,
    /// In characters, counted from 1.
    pub column: Option<u32>,
}

impl Location {
    pub fn at(file: &str, text: &str, byte: usize) -> Location {
        let before = text.get(..byte).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        Location { file: file.to_owned(), line: u32::try_from(line).ok(), column: u32::try_from(column).ok() }
    }

    fn line(file: &str, line: u32) -> Location {
        Location { file: file.to_owned(), line: Some(line), column: None }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        for number in [self.line, self.column].into_iter().flatten() {
            write!(f, ":{number}")?;
        }
        Ok(())
    }
}

/// Returns `did you mean "x"?` for the nearest name, or the whole list if none is near.
fn suggest(given: &str, names: &[&str]) -> String {
    let near = names
        .iter()
        .map(|name| {
            // The first word is often all that is remembered of a name.
            let first = name.split('-').next().unwrap_or_default();
            let distance = |name: &str| strsim::damerau_levenshtein(&given.to_lowercase(), &name.to_lowercase());
            (distance(name).min(1 + distance(first)), name)
        })
        .min()
        .filter(|(distance, name)| *distance <= 2.max(name.len() / 3));
    match near {
        Some((_, name)) => format!("did you mean \"{name}\"? There are: {}", names.join(", ")),
        None => format!("there are: {}", names.join(", ")),
    }
}
