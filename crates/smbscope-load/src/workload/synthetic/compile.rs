//! Compiles the steps of an operation, with the handles and files that are known at each of them.

use super::SyntheticStep;
use super::check::{Checker, MOST_STEPS};
use super::source::{KEYS_HINT, ProblemWithHint, RawStep, size};
use super::steps::{FILE, OF, STEPS, StepField};
use super::user::Choose;
use crate::workload::WorkloadError;
use crate::workload::action::{Expected, HandleSlot};
use crate::workload::error::suggest;
use serde::de::DeserializeOwned;
use smbscope_wire::status::NtStatus;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use toml::{Spanned, Value};

/// Commands or files at once of a step; more are refused.
const NUMBER_MAX: i64 = 256;

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

impl Checker<'_> {
    pub(super) fn step(
        &mut self,
        step: &Spanned<RawStep>,
        operation: Option<usize>,
        known: &mut StepContext,
        lines: &mut Vec<SyntheticStep>,
    ) -> Result<(), WorkloadError> {
        let (source, raw) = (self.source, step.get_ref());
        let Some(given) = source.value::<String>(raw, "do")? else {
            return Err(source.error(step.span(), "missing field `do`", KEYS_HINT));
        };
        let name = given.get_ref().as_str();
        let Some(kind) = STEPS.iter().find(|kind| kind.name == name) else {
            let names: Vec<&str> = STEPS.iter().map(|kind| kind.name).collect();
            return Err(source.error(given.span(), format!("there is no step \"{name}\""), suggest(name, &names)));
        };
        let keys: Vec<&str> = kind.fields.iter().map(|field| field.key).collect();
        if let Some((key, span)) = raw.foreign_key(&keys) {
            let hint = match keys.is_empty() {
                true => "remove it: this step has no keys of its own".to_owned(),
                false => suggest(key, &keys),
            };
            return Err(source.error(span, format!("a step \"{name}\" has no key \"{key}\""), hint));
        }
        let mut compiled = (kind.compile)(&mut StepCompiler { checker: self, known, step })?;
        if let Some(status) = source.value::<String>(raw, "expect")? {
            compiled.expected = expected(&status).ok_or_else(|| {
                let hint = "write it as the specification does: \"OBJECT_NAME_NOT_FOUND\"";
                source.error(status.span(), format!("\"{}\" is not a status", status.get_ref()), hint)
            })?;
        }
        let repeat = source.value(raw, "repeat")?;
        let repeat = repeat.map_or(Ok(1), |repeat| self.number(&repeat, "repeat", 1, MOST_STEPS as i64))?;
        if repeat > 1 && !compiled.can_repeat {
            let hint = "repeat the operation instead, or write the steps several times";
            return Err(source.error(step.span(), format!("a step \"{name}\" cannot be repeated"), hint));
        }
        let operation = operation.filter(|_| compiled.is_counted);
        let line = SyntheticStep { compiled: Arc::new(compiled), operation, completes: false };
        lines.extend(std::iter::repeat_n(line, repeat as usize));
        Ok(())
    }
}

fn expected(status: &Spanned<String>) -> Option<Expected> {
    let name = status.get_ref().trim_start_matches("NT_").trim_start_matches("STATUS_");
    let is_named = |known: &&NtStatus| known.name().is_some_and(|known| known == format!("STATUS_{name}"));
    NtStatus::KNOWN.iter().find(is_named).map(|status| Expected::Status(*status))
}

/// A step of a workload file, for the function that compiles its kind.
pub(super) struct StepCompiler<'c, 't> {
    checker: &'c mut Checker<'t>,
    pub(super) known: &'c mut StepContext,
    step: &'c Spanned<RawStep>,
}

impl StepCompiler<'_, '_> {
    pub(super) fn span(&self) -> Range<usize> {
        self.step.span()
    }

    pub(super) fn error(&self, what: impl Into<String>, hint: &str) -> WorkloadError {
        self.error_at(self.span(), what, hint)
    }

    pub(super) fn error_at(&self, span: Range<usize>, what: impl Into<String>, hint: &str) -> WorkloadError {
        self.checker.source.error(span, what, hint)
    }

    pub(super) fn value<T: DeserializeOwned>(&self, field: &StepField) -> Result<Option<Spanned<T>>, WorkloadError> {
        self.checker.source.value(self.step.get_ref(), field.key)
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
        self.checker.named(self.value(field)?.as_ref(), field.key, list)
    }

    /// Returns a number from 1, which is the default, to 256.
    pub(super) fn number(&self, field: &StepField) -> Result<u32, WorkloadError> {
        let number = self.value(field)?;
        let number = number.map_or(Ok(1), |number| self.checker.number(&number, field.key, 1, NUMBER_MAX))?;
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
        self.checker.always_open.contains_key(name)
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
        self.checker.slots = self.checker.slots.max(slot + 1);
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
        self.checker.makes = true;
    }

    pub(super) fn must_have_files(&self) -> Result<(), WorkloadError> {
        if self.checker.files.files > 0 {
            return Ok(());
        }
        let hint = "add [files] with count and size, or use file = \"new\"";
        Err(self.error("the workload has no files", hint))
    }

    pub(super) fn must_have_content(&self, file: Choose) -> Result<(), WorkloadError> {
        if matches!(file, Choose::New | Choose::Missing | Choose::Same) || self.checker.files.sizes.least() > 0 {
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
