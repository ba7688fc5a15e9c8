//! What users do: a [`Script`] for each of them, from a loadfile, a TOML file or one that is built in.
//!
//! A [`Workload`] is read once and shared by all users; a script holds no more than its user's place in it. Everything
//! that a user touches is below one directory of the share: see [`UserSeat`].

mod action;
mod builtin;
mod draw;
mod error;
mod file_set;
mod loadfile;
mod made;
mod netbench;
mod path;
mod recorded;
mod seat;
mod synthetic;
mod travel;

pub use action::{Action, Expected, HandleSlot, Script, ScriptStep};
pub use draw::SizeDistribution;
pub use error::{Location, WorkloadError};
pub use file_set::{FileSet, FileSetOwner};
pub use loadfile::{check_line, ranges_text};
pub use made::{CreatedPaths, Own};
pub use netbench::NetbenchLike;
pub use recorded::{RecordedWorkload, Recording};
pub use seat::UserSeat;
pub use travel::Travelling;

pub(crate) use made::NAMES_MAX;
pub(crate) use seat::own_directory;

use crate::bounded::{self, WORKLOAD_MAX, WORKLOAD_TABLE_MAX};
use loadfile::{Loadfile, LoadfileScript};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use smbscope_model::Dialect;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use synthetic::{Synthetic, SyntheticScript};

/// What users do. Cheap to clone: all clones share what was read.
#[derive(Debug, Clone)]
pub struct Workload {
    about: Arc<WorkloadMetadata>,
    kind: WorkloadKind,
    /// By what pauses were scaled.
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
    /// The text of a TOML file, by the name of the file in messages.
    toml: Option<(String, String)>,
}

#[derive(Debug, Clone)]
enum WorkloadKind {
    Loadfile(Arc<Loadfile>),
    Synthetic(Arc<Synthetic>),
}

/// The text that a workload is made from, and by what two of them are known to be the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadDefinition {
    /// SHA-256 of the text, in hexadecimal.
    pub sha256: String,
    /// The text itself; absent where it is longer than [`DEFINITION_MAX`].
    pub text: Option<String>,
}

/// Bytes of a definition that are kept as they are; tables fit, loadfiles mostly do not.
pub const DEFINITION_MAX: usize = 64 << 10;

impl WorkloadDefinition {
    fn new(text: &str) -> WorkloadDefinition {
        let sha256 = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
        WorkloadDefinition { sha256, text: (text.len() <= DEFINITION_MAX).then(|| text.to_owned()) }
    }
}

/// A file within its bound, by its name.
fn read(path: &Path) -> Result<(String, Vec<u8>), WorkloadError> {
    let name = path.display().to_string();
    match bounded::read(path, WORKLOAD_MAX) {
        Ok(bytes) => Ok((name, bytes)),
        Err(error) => Err(WorkloadError::Unreadable { path: name, error }),
    }
}

/// Operations that users begin at a rate, in an open loop, as those of FSCT do (`[scenarios]`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scenarios {
    /// How many each user begins a second.
    pub rate: f64,
    /// How late one may begin.
    pub late: Duration,
    /// How long one may take; any time where it is absent.
    pub budget: Option<Duration>,
}

/// Where a workload comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkloadSource {
    /// It is built in.
    BuiltIn,
    /// A file, by the name it was given by.
    File(String),
}

impl Workload {
    /// Names of those that are built in, with one line about each; the first is the default.
    pub fn built_in() -> Vec<(&'static str, String)> {
        builtin::all()
    }

    /// One that is built in.
    pub fn builtin(name: &str) -> Result<Workload, WorkloadError> {
        builtin::get(name)
    }

    /// The text of one that is built in, as a file to begin from: TOML, or a loadfile for dbench and smbtorture, too.
    pub fn builtin_text(name: &str) -> Option<String> {
        builtin::text(name)
    }

    /// A file: TOML or a loadfile, told by its extension, otherwise by its content.
    pub fn load(path: &Path) -> Result<Workload, WorkloadError> {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let (name, bytes) = read(path)?;
        let text = String::from_utf8_lossy(&bytes);
        if extension.eq_ignore_ascii_case("toml") || synthetic::looks_like_toml(&text) {
            return Workload::toml_file(name, &bytes);
        }
        let loadfile = Loadfile::parse(&name, &text)?;
        Ok(Workload::of_loadfile(stem(path), String::new(), WorkloadSource::File(name), &text, loadfile))
    }

    /// A loadfile of dbench or smbtorture, whatever it is called.
    pub fn loadfile(path: &Path) -> Result<Workload, WorkloadError> {
        let (name, bytes) = read(path)?;
        let text = String::from_utf8_lossy(&bytes);
        let loadfile = Loadfile::parse(&name, &text)?;
        Ok(Workload::of_loadfile(stem(path), String::new(), WorkloadSource::File(name), &text, loadfile))
    }

    /// The mix of operations of the NetBench Disk Mix, generated.
    pub fn netbench_like(settings: NetbenchLike) -> Result<Workload, WorkloadError> {
        builtin::netbench(settings)
    }

    fn toml_file(name: String, bytes: &[u8]) -> Result<Workload, WorkloadError> {
        let unreadable = |error| WorkloadError::Unreadable { path: name.clone(), error };
        let text = str::from_utf8(bytes).map_err(|_| unreadable(io::Error::other("it is not UTF-8")))?;
        if bytes.len() > WORKLOAD_TABLE_MAX && !recorded::is_one(text) {
            let most = WORKLOAD_TABLE_MAX >> 20;
            return Err(unreadable(io::Error::other(format!("a workload of more than {most} MiB is none"))));
        }
        Workload::toml(&name, text, WorkloadSource::File(name.clone()))
    }

    fn toml(file: &str, text: &str, source: WorkloadSource) -> Result<Workload, WorkloadError> {
        if recorded::is_one(text) {
            return recorded::parse(file, text, source);
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
        let (definition, parameters) = (WorkloadDefinition::new(text), Vec::new());
        let about = WorkloadMetadata {
            name,
            description,
            source,
            file_set: FileSet::none(),
            definition,
            parameters,
            toml: None,
        };
        Workload { about: Arc::new(about), kind: WorkloadKind::Loadfile(Arc::new(loadfile)), thinking: None }
    }

    /// The same with other values of its parameters, by name: its definition has them, too.
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

    /// The same with pauses of a loadfile or recording so many times as long: 0 leaves them out.
    pub fn thinking(self, by: f64) -> Workload {
        match &self.kind {
            WorkloadKind::Loadfile(loadfile) => {
                Workload { kind: WorkloadKind::Loadfile(Arc::new(loadfile.thinking(by))), thinking: Some(by), ..self }
            }
            WorkloadKind::Synthetic(_) => self,
        }
    }

    /// Whether pauses are lines of it, which can be scaled.
    pub fn has_pauses(&self) -> bool {
        matches!(&self.kind, WorkloadKind::Loadfile(_))
    }

    /// Names and values of its parameters.
    pub fn parameters(&self) -> &[(String, String)] {
        &self.about.parameters
    }

    /// What it is made from.
    pub fn definition(&self) -> &WorkloadDefinition {
        &self.about.definition
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.about.name
    }

    /// A line about it; may be empty.
    pub fn description(&self) -> &str {
        &self.about.description
    }

    /// Where it comes from.
    pub fn source(&self) -> &WorkloadSource {
        &self.about.source
    }

    /// Names of the operations that results list.
    pub fn operations(&self) -> &[String] {
        match &self.kind {
            WorkloadKind::Loadfile(loadfile) => loadfile.operations(),
            WorkloadKind::Synthetic(synthetic) => synthetic.operations(),
        }
    }

    /// What must be on the share before users begin.
    pub fn file_set(&self) -> &FileSet {
        &self.about.file_set
    }

    /// What users make below their own directories, beside the file set: it is removed when the share is cleaned.
    pub fn made(&self) -> CreatedPaths {
        match &self.kind {
            WorkloadKind::Loadfile(loadfile) => loadfile.made().clone(),
            WorkloadKind::Synthetic(_) => CreatedPaths::default(),
        }
    }

    /// Bytes that a user moves to set up, beyond the file set: what a loadfile writes before its work begins.
    pub fn set_up_bytes(&self) -> u64 {
        match &self.kind {
            WorkloadKind::Loadfile(loadfile) => loadfile.set_up_bytes(),
            WorkloadKind::Synthetic(_) => 0,
        }
    }

    /// Whether a user may have several commands outstanding on a connection.
    pub fn has_queues(&self) -> bool {
        match &self.kind {
            WorkloadKind::Loadfile(loadfile) => loadfile.has_queues(),
            WorkloadKind::Synthetic(synthetic) => synthetic.has_queues(),
        }
    }

    /// Whether there is an end, after which users begin again: a pass.
    pub fn has_end(&self) -> bool {
        match &self.kind {
            WorkloadKind::Loadfile(_) => true,
            WorkloadKind::Synthetic(synthetic) => synthetic.has_end(),
        }
    }

    /// Refuses a dialect in which a step of it can't be done.
    pub fn check_dialect(&self, dialect: Dialect) -> Result<(), WorkloadError> {
        let unsupported = match &self.kind {
            WorkloadKind::Loadfile(loadfile) => loadfile.unsupported_in(dialect),
            WorkloadKind::Synthetic(synthetic) => synthetic.unsupported_in(dialect),
        };
        let Some((step, why)) = unsupported else { return Ok(()) };
        let what = format!("the workload {} sends {step}, which can't be done in {dialect}: {why}", self.name());
        Err(WorkloadError::Parameter { what, hint: "choose another --dialect".to_owned() })
    }

    /// Whether its operations are scenarios, and how they begin.
    pub fn scenarios(&self) -> Option<Scenarios> {
        match &self.kind {
            WorkloadKind::Loadfile(_) => None,
            WorkloadKind::Synthetic(synthetic) => synthetic.scenarios(),
        }
    }

    /// Lines of a loadfile that cannot be performed, because the file itself never opens their handle.
    pub fn skipped_lines(&self) -> u32 {
        match &self.kind {
            WorkloadKind::Loadfile(loadfile) => loadfile.skipped(),
            WorkloadKind::Synthetic(_) => 0,
        }
    }

    /// Bytes of memory that all users share.
    pub fn shared_memory(&self) -> usize {
        match &self.kind {
            WorkloadKind::Loadfile(loadfile) => loadfile.memory(),
            WorkloadKind::Synthetic(_) => size_of::<Synthetic>(),
        }
    }

    /// What one user does.
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

/// What one user does.
#[derive(Debug)]
pub struct UserScript(Inner);

#[derive(Debug)]
enum Inner {
    Loadfile(LoadfileScript),
    Synthetic(Box<SyntheticScript>),
}

/// The same call on either kind.
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
}

/// A path below the root of a share, checked and without a backslash at either end; or what is wrong with it.
pub fn relative_path(path: &str) -> Result<String, String> {
    path::below(path, path::Last::Name)
}

/// The name of a file without what is around it.
fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(|| path.display().to_string(), |stem| stem.to_string_lossy().into_owned())
}
