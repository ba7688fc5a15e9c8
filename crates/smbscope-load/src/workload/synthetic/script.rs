//! One user of a TOML workload: chooses an operation, performs its steps, thinks, and chooses the next.

use super::steps::Part;
use super::user::SyntheticUser;
use super::{OperationOrder, Synthetic};
use crate::workload::action::{Action, Expected, Script, ScriptStep};
use crate::workload::{Own, UserSeat};
use smbscope_stats::Random;
use std::sync::Arc;

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
