//! TOML workloads: weighted operations, each a list of steps, on a set of files.
//!
//! [`parse`] checks everything that can be checked without a server (open handles, chosen files, valid sizes), so that
//! scripts are infallible. `source.rs` has the structure of the file, `steps` the kinds of steps, each in one place, and
//! the part of the file that a step sees, and `check.rs` validates all of it. [`SyntheticScript`] and `user.rs` perform
//! it.

mod check;
mod source;
mod steps;
#[cfg(test)]
mod tests;
mod user;

pub(super) use check::{parameters, parse, with_parameters};
pub use steps::{STEPS, StepField, StepKind};

use self::steps::{CompiledStep, Part};
use self::user::SyntheticUser;
use super::action::{Action, Expected, Script, ScriptStep};
use super::draw::Times;
use super::paths::FileSet;
use super::{CreatedPaths, Own, Scenarios, UserSeat};
use smbscope_model::Dialect;
use smbscope_stats::Random;
use std::sync::Arc;

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

#[derive(Debug)]
pub(in crate::workload) struct SyntheticScript {
    synthetic: Arc<Synthetic>,
    position: ScriptPosition,
    user: SyntheticUser,
}

#[derive(Debug)]
struct ScriptPosition {
    next: SyntheticPhase,
    /// In a sequence: current operation, and number of consecutive runs completed.
    choice: usize,
    round: u64,
    passes: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SyntheticPhase {
    Empty,
    Make,
    Start(usize),
    Choose,
    Operation { choice: usize, step: usize },
    Think,
}

impl SyntheticScript {
    pub(in crate::workload) fn new(synthetic: Arc<Synthetic>, seat: &UserSeat) -> SyntheticScript {
        let position = ScriptPosition { next: SyntheticPhase::first(&synthetic), choice: 0, round: 0, passes: 0 };
        SyntheticScript { position, user: SyntheticUser::new(&synthetic, seat), synthetic }
    }
}

impl Script for SyntheticScript {
    fn operations(&self) -> &[String] {
        self.synthetic.operations()
    }

    fn next(&mut self) -> Option<ScriptStep<'_>> {
        let SyntheticScript { synthetic, position, user } = self;
        let phase = match position.next {
            SyntheticPhase::Choose => {
                user.file = None;
                position.choose(&mut user.random, synthetic)
            }
            next => next,
        };
        let step = match phase {
            SyntheticPhase::Start(step) => &synthetic.start[step],
            SyntheticPhase::Operation { choice, step } => &synthetic.choices[choice].1[step],
            _ => {
                position.next = position.after(phase, synthetic);
                return Some(uncounted(phase, synthetic, user));
            }
        };
        let Part { action, is_last, completes } = step.compiled.perform(user);
        position.next = if is_last { position.after(phase, synthetic) } else { phase };
        // The last part completes an operation only if the whole step does.
        let completes = if is_last { step.completes } else { completes };
        Some(ScriptStep { action, operation: step.operation, expected: step.compiled.expected, completes, line: None })
    }

    fn restart(&mut self) {
        let passes = self.position.passes;
        self.position = ScriptPosition { next: SyntheticPhase::first(&self.synthetic), choice: 0, round: 0, passes };
        (self.user.file, self.user.progress) = (None, Default::default());
    }

    fn sets_up(&self) -> bool {
        matches!(self.position.next, SyntheticPhase::Empty | SyntheticPhase::Make | SyntheticPhase::Start(_))
    }

    fn passes(&self) -> Option<u32> {
        self.synthetic.has_end().then_some(self.position.passes)
    }
}

impl SyntheticPhase {
    fn first(synthetic: &Synthetic) -> SyntheticPhase {
        match synthetic.makes {
            true => SyntheticPhase::Empty,
            false => SyntheticPhase::start(synthetic, 0),
        }
    }

    fn start(synthetic: &Synthetic, step: usize) -> SyntheticPhase {
        if step < synthetic.start.len() { SyntheticPhase::Start(step) } else { SyntheticPhase::Choose }
    }
}

/// Returns the action of a phase without steps.
fn uncounted<'u>(phase: SyntheticPhase, synthetic: &'u Synthetic, user: &'u mut SyntheticUser) -> ScriptStep<'u> {
    let (action, expected) = match phase {
        SyntheticPhase::Empty => {
            let directory = user.own.strip_suffix("\\new").unwrap_or(&user.own);
            (Action::RemoveTree(&user.own, Own { made: &synthetic.made, directory }), Expected::Anything)
        }
        SyntheticPhase::Make => (Action::MakeDirectory(&user.own), Expected::Success),
        _ => (Action::Think(synthetic.think.draw(&mut user.random)), Expected::Anything),
    };
    ScriptStep { action, operation: None, expected, completes: false, line: None }
}

impl ScriptPosition {
    fn after(&mut self, phase: SyntheticPhase, synthetic: &Synthetic) -> SyntheticPhase {
        match phase {
            SyntheticPhase::Empty => SyntheticPhase::Make,
            SyntheticPhase::Make => SyntheticPhase::start(synthetic, 0),
            SyntheticPhase::Start(step) => SyntheticPhase::start(synthetic, step + 1),
            SyntheticPhase::Operation { choice, step } if step + 1 < synthetic.choices[choice].1.len() => {
                SyntheticPhase::Operation { choice, step: step + 1 }
            }
            SyntheticPhase::Operation { choice, .. } => {
                self.performed(choice, synthetic);
                if synthetic.think.is_zero() { SyntheticPhase::Choose } else { SyntheticPhase::Think }
            }
            SyntheticPhase::Think | SyntheticPhase::Choose => SyntheticPhase::Choose,
        }
    }

    /// Advances a sequence when the last step of an operation is handed out.
    fn performed(&mut self, choice: usize, synthetic: &Synthetic) {
        if synthetic.order == OperationOrder::Random {
            return;
        }
        self.round += 1;
        if self.round >= synthetic.choices[choice].0 {
            (self.round, self.choice) = (0, choice + 1);
        }
        if self.choice == synthetic.choices.len() {
            self.choice = 0;
            self.passes += 1;
        }
    }

    fn choose(&self, random: &mut Random, synthetic: &Synthetic) -> SyntheticPhase {
        if synthetic.order == OperationOrder::Sequence {
            return SyntheticPhase::Operation { choice: self.choice, step: 0 };
        }
        let total = synthetic.choices.last().map_or(0, |(sum, _)| *sum);
        let drawn = random.below(total);
        let choice = synthetic.choices.partition_point(|(sum, _)| *sum <= drawn);
        SyntheticPhase::Operation { choice, step: 0 }
    }
}
