//! TOML workloads: weighted operations, each a list of steps, on a set of files.
//!
//! [`parse`] checks everything that can be checked without a server (open handles, chosen files, valid sizes), so that
//! scripts are infallible. `source.rs` has the structure of the file, `compile.rs` the part that a step sees, `steps`
//! the kinds of steps, each in one place, and `check.rs` validates all of it. `script.rs` and `user.rs` perform it.

mod check;
mod compile;
mod script;
mod source;
mod steps;
#[cfg(test)]
mod tests;
mod user;

pub(super) use check::{parameters, parse, with_parameters};
pub use compile::StepField;
pub(super) use script::SyntheticScript;
pub use steps::{STEPS, StepKind};

use super::draw::Times;
use super::paths::FileSet;
use super::{CreatedPaths, Scenarios};
use smbscope_model::Dialect;
use std::sync::Arc;
use steps::CompiledStep;

pub(super) struct Parsed {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) synthetic: Synthetic,
}

#[derive(Debug)]
pub(super) struct Synthetic {
    operations: Vec<String>,
    choices: Vec<(u64, Vec<SyntheticStep>)>,
    order: OperationOrder,
    start: Vec<SyntheticStep>,
    think: Times,
    scenarios: Option<Scenarios>,
    files: Arc<FileSet>,
    slots: u32,
    makes: bool,
    /// Always empty: TOML workloads only create numbered names.
    made: CreatedPaths,
    /// Makes the random numbers of different workloads independent.
    salt: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OperationOrder {
    Random,
    /// In file order, each N times in a row. The end of the list completes a pass.
    Sequence,
}

#[derive(Debug, Clone)]
struct SyntheticStep {
    compiled: Arc<CompiledStep>,
    operation: Option<usize>,
    completes: bool,
}

impl Synthetic {
    pub(super) fn operations(&self) -> &[String] {
        &self.operations
    }

    pub(super) fn file_set(&self) -> &FileSet {
        &self.files
    }

    pub(super) fn scenarios(&self) -> Option<Scenarios> {
        self.scenarios
    }

    /// Returns the first step that the dialect can't perform, and the reason.
    pub(super) fn unsupported_in(&self, dialect: Dialect) -> Option<(String, &'static str)> {
        let lines = self.choices.iter().flat_map(|(_, lines)| lines).chain(&self.start);
        lines.map(|line| &line.compiled).find_map(|step| step.unsupported_in(dialect))
    }

    pub(super) fn has_queues(&self) -> bool {
        self.choices.iter().flat_map(|(_, lines)| lines).any(|line| line.compiled.is_queued)
    }

    pub(super) fn has_end(&self) -> bool {
        self.order == OperationOrder::Sequence
    }
}

/// Returns true if a text looks like TOML rather than a loadfile: its first line with content is a table header or an
/// assignment.
pub(super) fn looks_like_toml(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.next().is_some_and(|line| {
        let key = line.split('=').next().unwrap_or(line).trim();
        line.starts_with('[') || (line.contains('=') && !key.contains([' ', '\t', '\\', '/']))
    })
}
