//! The steps of TOML workloads, their fields, and the context in which a step is compiled: the files and handles that
//! are known there.
//!
//! A step is one [`StepKind`] constant: its manual entry, its fields, and a function that checks it ([`StepCompiler`])
//! and returns the actions that a user performs ([`SyntheticUser`]). Related steps share a file. [`STEPS`] makes them
//! known to the parser and to docs/workloads.md.

mod no_data;
mod path;
mod transfer;

use super::source::{ProblemWithHint, RawStep, TomlSource, size};
use super::user::{Choose, SyntheticUser};
use crate::workload::action::{Action, Expected, HandleSlot};
use crate::workload::paths::FileSet;
use crate::workload::{WorkloadError, suggest};
use serde::de::DeserializeOwned;
use smbscope_model::Dialect;
use smbscope_wire::status::NtStatus;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use toml::{Spanned, Value};

/// All steps, in the order of the manual.
pub const STEPS: &[StepKind] = &[
    no_data::OPEN,
    no_data::CLOSE,
    transfer::READ,
    transfer::WRITE,
    no_data::FLUSH,
    no_data::LOCK,
    no_data::UNLOCK,
    no_data::QUERY_OPEN,
    no_data::QUERY,
    no_data::QUERY_FILE_SYSTEM,
    no_data::SET_TIMES,
    no_data::SET_SIZE,
    path::LIST,
    path::REMOVE,
    path::DELETE,
    path::RENAME,
    path::MAKE_DIRECTORY,
    path::REMOVE_DIRECTORY,
    transfer::OPEN_READ_CLOSE,
    path::WALK,
    no_data::IOCTL,
    no_data::SESSION_SETUP,
    no_data::TREE_CONNECT,
    no_data::ECHO,
    no_data::THINK,
];

#[derive(Debug)]
pub struct StepKind {
    /// Value of `do`.
    pub name: &'static str,
    /// Manual entry, without a full stop.
    pub about: &'static str,
    /// Keys of its own.
    pub fields: &'static [StepField],
    pub(super) compile: Compile,
}

type Compile = fn(&mut StepCompiler<'_, '_>) -> Result<CompiledStep, WorkloadError>;

impl StepKind {
    const fn new(name: &'static str, about: &'static str, fields: &'static [StepField], compile: Compile) -> StepKind {
        StepKind { name, about, fields, compile }
    }
}

/// An action of a step, which may have several.
pub(super) struct Part<'u> {
    pub(super) action: Action<'u>,
    pub(super) is_last: bool,
    /// True if the action completes an operation, even if further ones of the step follow.
    pub(super) completes: bool,
}

pub(super) struct CompiledStep {
    perform: Box<dyn for<'u> Fn(&'u mut SyntheticUser) -> Part<'u> + Send + Sync>,
    pub(super) expected: Expected,
    pub(super) can_repeat: bool,
    pub(super) is_counted: bool,
    /// True if several commands can be outstanding.
    pub(super) is_queued: bool,
    limit: Option<DialectLimit>,
}

/// Returns name and reason if the dialect can't perform the step.
type DialectLimit = Box<dyn Fn(Dialect) -> Option<(String, &'static str)> + Send + Sync>;

/// Returns a step of one action.
fn act(action: impl for<'u> Fn(&'u mut SyntheticUser) -> Action<'u> + Send + Sync + 'static) -> CompiledStep {
    in_parts(move |user| Part { action: action(user), is_last: true, completes: true })
}

/// Returns a step of several actions, which keeps its position in [`SyntheticUser::progress`].
fn in_parts(perform: impl for<'u> Fn(&'u mut SyntheticUser) -> Part<'u> + Send + Sync + 'static) -> CompiledStep {
    CompiledStep {
        perform: Box::new(perform),
        expected: Expected::Success,
        can_repeat: true,
        is_counted: true,
        is_queued: false,
        limit: None,
    }
}

impl CompiledStep {
    pub(super) fn perform<'u>(&self, user: &'u mut SyntheticUser) -> Part<'u> {
        (self.perform)(user)
    }

    pub(super) fn unsupported_in(&self, dialect: Dialect) -> Option<(String, &'static str)> {
        self.limit.as_ref()?(dialect)
    }

    fn once(self) -> CompiledStep {
        CompiledStep { can_repeat: false, ..self }
    }

    /// Expects OBJECT_NAME_NOT_FOUND if the file is missing on purpose.
    fn finding(self, file: Choose) -> CompiledStep {
        let missing = Expected::Status(NtStatus::OBJECT_NAME_NOT_FOUND);
        CompiledStep { expected: if file == Choose::Missing { missing } else { self.expected }, ..self }
    }
}

impl fmt::Debug for CompiledStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompiledStep").field("expected", &self.expected).finish_non_exhaustive()
    }
}

/// Commands or files at once of a step; more are refused.
const NUMBER_MAX: i64 = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepField {
    pub key: &'static str,
    /// Values with a name. Without `default`, the first is the default.
    pub names: &'static [&'static str],
    /// Other values with their unit, and notes about the names.
    pub about: &'static str,
    pub default: &'static str,
}

impl StepField {
    pub(super) const fn new(key: &'static str, default: &'static str, about: &'static str) -> StepField {
        StepField { key, names: &[], about, default }
    }
}

const REQUIRED: &str = "required";
pub(super) const OF: StepField =
    StepField::new("of", "the only open file, otherwise `\"file\"`", "name of an open file");
pub(super) const FILE: StepField = StepField {
    key: "file",
    names: &names(&Choose::NAMED),
    about: "`\"next\"`: first to last, then again; `\"same\"`: the file of the step before; `\"new\"`: a unique name; \
            `\"missing\"`: a name that never exists",
    default: "`\"same\"`, in a first step `\"random\"`",
};

/// Returns the names of a list of named values.
pub(super) const fn names<T: Copy, const N: usize>(list: &[(&'static str, T); N]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut at = 0;
    while at < N {
        names[at] = list[at].0;
        at += 1;
    }
    names
}

#[derive(Debug, Clone, Copy)]
pub(super) struct OpenHandle {
    pub(super) slot: HandleSlot,
    pub(super) access: u32,
    pub(super) file: Choose,
}

/// Files and handles that are known at a step.
pub(super) struct StepContext {
    pub(super) open: BTreeMap<String, OpenHandle>,
    /// The file that a step calls "same".
    pub(super) file: Option<Choose>,
    /// True if there is a directory to remove.
    pub(super) directory: bool,
}

/// Files and handles that the steps of a workload use.
pub(super) struct StepResources {
    pub(super) files: FileSet,
    /// Number of files that a user has open at most.
    pub(super) slots: u32,
    /// Handles that `[start]` opens.
    pub(super) always_open: BTreeMap<String, OpenHandle>,
    /// True if users create files.
    pub(super) makes: bool,
}

/// A step of a workload file, for the function that compiles its kind.
pub(super) struct StepCompiler<'c, 't> {
    source: TomlSource<'t>,
    resources: &'c mut StepResources,
    pub(super) known: &'c mut StepContext,
    step: &'c Spanned<RawStep>,
}

impl<'c, 't> StepCompiler<'c, 't> {
    pub(super) fn new(
        source: TomlSource<'t>,
        resources: &'c mut StepResources,
        known: &'c mut StepContext,
        step: &'c Spanned<RawStep>,
    ) -> StepCompiler<'c, 't> {
        StepCompiler { source, resources, known, step }
    }

    pub(super) fn span(&self) -> Range<usize> {
        self.step.span()
    }

    pub(super) fn error(&self, what: impl Into<String>, hint: &str) -> WorkloadError {
        self.error_at(self.span(), what, hint)
    }

    fn error_at(&self, span: Range<usize>, what: impl Into<String>, hint: &str) -> WorkloadError {
        self.source.error(span, what, hint)
    }

    pub(super) fn value<T: DeserializeOwned>(&self, field: &StepField) -> Result<Option<Spanned<T>>, WorkloadError> {
        self.source.value(self.step.get_ref(), field.key)
    }

    pub(super) fn parsed<T>(
        &self,
        field: &StepField,
        parse: fn(&Value) -> Result<T, ProblemWithHint>,
    ) -> Result<Option<Spanned<T>>, WorkloadError> {
        let Some(value) = self.value::<Value>(field)? else { return Ok(None) };
        let (span, parsed) = (value.span(), parse(value.get_ref()));
        let parsed = parsed.map_err(|(what, hint)| self.error_at(span.clone(), what, &hint))?;
        Ok(Some(Spanned::new(span, parsed)))
    }

    pub(super) fn choice<T: Copy>(&self, field: &StepField, list: &[(&str, T)]) -> Result<T, WorkloadError> {
        self.source.named(self.value(field)?.as_ref(), field.key, list)
    }

    /// Returns a number from 1, which is the default, to 256.
    pub(super) fn number(&self, field: &StepField) -> Result<u32, WorkloadError> {
        let number = self.value(field)?;
        let number = number.map_or(Ok(1), |number| self.source.number(&number, field.key, 1, NUMBER_MAX))?;
        Ok(number as u32)
    }

    pub(super) fn bytes(&self, field: &StepField, usual: u64) -> Result<u64, WorkloadError> {
        Ok(self.parsed(field, size)?.map_or(usual, Spanned::into_inner))
    }

    fn is_given(&self, field: &StepField) -> bool {
        self.step.get_ref().has(field.key)
    }

    /// Returns true if the step names the status that it expects.
    fn expects_status(&self) -> bool {
        self.step.get_ref().has("expect")
    }

    /// Returns true if `[start]` opened the file.
    fn is_always_open(&self, name: &str) -> bool {
        self.resources.always_open.contains_key(name)
    }

    pub(super) fn handle(&self, access: u32) -> Result<OpenHandle, WorkloadError> {
        self.named_handle(access).map(|(_, handle)| handle)
    }

    /// Finds the handle of a step and its name: the named one, or the only one open.
    fn named_handle(&self, access: u32) -> Result<(String, OpenHandle), WorkloadError> {
        let open = &self.known.open;
        let name = match self.value::<String>(&OF)? {
            Some(name) => name.into_inner(),
            None if open.len() == 1 => open.keys().next().cloned().unwrap_or_default(),
            None => "file".to_owned(),
        };
        let Some(handle) = open.get(&name).copied() else {
            let names: Vec<&str> = open.keys().map(String::as_str).collect();
            let hint = match names.is_empty() {
                true => "open a file in a step before: { do = \"open\", file = \"random\" }".to_owned(),
                false => suggest(&name, &names),
            };
            return Err(self.error(format!("\"{name}\" is not open here"), &hint));
        };
        if handle.access & access != access {
            let hint = "open it with access = \"read\", \"write\" or \"both\"";
            return Err(self.error(format!("\"{name}\" was not opened for this"), hint));
        }
        Ok((name, handle))
    }

    fn free_slot(&mut self) -> HandleSlot {
        let taken: Vec<u32> = self.known.open.values().map(|open| open.slot.0).collect();
        let slot = (0..).find(|slot| !taken.contains(slot)).unwrap_or(0);
        self.resources.slots = self.resources.slots.max(slot + 1);
        HandleSlot(slot)
    }

    /// Chooses the file of a step.
    pub(super) fn file(&mut self) -> Result<Choose, WorkloadError> {
        let file = match self.known.file {
            Some(_) if !self.is_given(&FILE) => Choose::Same,
            _ => self.choice(&FILE, &Choose::NAMED)?,
        };
        match file {
            Choose::Random | Choose::Next => self.must_have_files()?,
            Choose::New | Choose::Missing => self.makes_files(),
            Choose::Same if self.known.file.is_none() => {
                let hint = "name one: file = \"random\", \"next\", \"new\" or \"missing\"";
                return Err(self.error("no step before has chosen a file", hint));
            }
            Choose::Same => {}
        }
        if !matches!(file, Choose::Same | Choose::Missing) {
            self.known.file = Some(file);
        }
        Ok(file)
    }

    /// Gives each user a directory for new files.
    fn makes_files(&mut self) {
        self.resources.makes = true;
    }

    fn must_have_files(&self) -> Result<(), WorkloadError> {
        if self.resources.files.files > 0 {
            return Ok(());
        }
        let hint = "add [files] with count and size, or use file = \"new\"";
        Err(self.error("the workload has no files", hint))
    }

    fn must_have_content(&self, file: Choose) -> Result<(), WorkloadError> {
        if matches!(file, Choose::New | Choose::Missing | Choose::Same) || self.resources.files.sizes.least() > 0 {
            return Ok(());
        }
        let hint = "give them a size above 0: there is nothing to read past the end";
        Err(self.error("the files of the set may be empty", hint))
    }

    fn must_be_new(&self, file: Option<Choose>, what: &str) -> Result<(), WorkloadError> {
        if file == Some(Choose::New) {
            return Ok(());
        }
        let hint = "the files of the set stay as they are: choose file = \"new\" in a step before";
        Err(self.error(format!("there is no file that this step may {what}"), hint))
    }
}
