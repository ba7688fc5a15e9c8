//! Fields of a step, and the context in which it is compiled: the files and handles that are known there.

use super::source::{ProblemWithHint, RawStep, TomlSource, size};
use super::user::Choose;
use crate::workload::WorkloadError;
use crate::workload::action::HandleSlot;
use crate::workload::paths::FileSet;
use crate::workload::suggest;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::{Spanned, Value};

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

pub(super) const REQUIRED: &str = "required";
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

    pub(super) fn error_at(&self, span: Range<usize>, what: impl Into<String>, hint: &str) -> WorkloadError {
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

    pub(super) fn is_given(&self, field: &StepField) -> bool {
        self.step.get_ref().has(field.key)
    }

    /// Returns true if the step names the status that it expects.
    pub(super) fn expects_status(&self) -> bool {
        self.step.get_ref().has("expect")
    }

    /// Returns true if `[start]` opened the file.
    pub(super) fn is_always_open(&self, name: &str) -> bool {
        self.resources.always_open.contains_key(name)
    }

    pub(super) fn handle(&self, access: u32) -> Result<OpenHandle, WorkloadError> {
        self.named_handle(access).map(|(_, handle)| handle)
    }

    /// Finds the handle of a step and its name: the named one, or the only one open.
    pub(super) fn named_handle(&self, access: u32) -> Result<(String, OpenHandle), WorkloadError> {
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

    pub(super) fn free_slot(&mut self) -> HandleSlot {
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
    pub(super) fn makes_files(&mut self) {
        self.resources.makes = true;
    }

    pub(super) fn must_have_files(&self) -> Result<(), WorkloadError> {
        if self.resources.files.files > 0 {
            return Ok(());
        }
        let hint = "add [files] with count and size, or use file = \"new\"";
        Err(self.error("the workload has no files", hint))
    }

    pub(super) fn must_have_content(&self, file: Choose) -> Result<(), WorkloadError> {
        if matches!(file, Choose::New | Choose::Missing | Choose::Same) || self.resources.files.sizes.least() > 0 {
            return Ok(());
        }
        let hint = "give them a size above 0: there is nothing to read past the end";
        Err(self.error("the files of the set may be empty", hint))
    }

    pub(super) fn must_be_new(&self, file: Option<Choose>, what: &str) -> Result<(), WorkloadError> {
        if file == Some(Choose::New) {
            return Ok(());
        }
        let hint = "the files of the set stay as they are: choose file = \"new\" in a step before";
        Err(self.error(format!("there is no file that this step may {what}"), hint))
    }
}
