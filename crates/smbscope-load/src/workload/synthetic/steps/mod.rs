//! The steps of TOML workloads.
//!
//! A step is one [`StepKind`] constant: its manual entry, its fields, and a function that checks it ([`StepCompiler`])
//! and returns the actions that a user performs ([`SyntheticUser`]). Related steps share a file. [`STEPS`] makes them
//! known to the parser and to docs/workloads.md.

mod handle;
mod path;
mod session;
mod transfer;

use super::compile::{StepCompiler, StepField};
use super::user::{Choose, SyntheticUser};
use crate::workload::WorkloadError;
use crate::workload::action::{Action, Expected};
use smbscope_model::Dialect;
use smbscope_wire::status::NtStatus;
use std::fmt;

/// All steps, in the order of the manual.
pub const STEPS: &[StepKind] = &[
    handle::OPEN,
    handle::CLOSE,
    transfer::READ,
    transfer::WRITE,
    handle::FLUSH,
    handle::LOCK,
    handle::UNLOCK,
    session::QUERY_OPEN,
    session::QUERY,
    session::QUERY_FILE_SYSTEM,
    handle::SET_TIMES,
    handle::SET_SIZE,
    path::LIST,
    path::REMOVE,
    path::DELETE,
    path::RENAME,
    path::MAKE_DIRECTORY,
    path::REMOVE_DIRECTORY,
    transfer::OPEN_READ_CLOSE,
    path::WALK,
    session::IOCTL,
    session::SESSION_SETUP,
    session::TREE_CONNECT,
    session::ECHO,
    session::THINK,
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
