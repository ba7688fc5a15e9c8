//! Assumptions about the inputs, relaxed after each failed pass.

use super::{AnalysisError, AnalysisOptions};
use smbscope_analyze::pipeline::{RerunReason, Sharding};
use smbscope_capture::reader::{CaptureInput, CaptureSet};

/// Assumptions under which the inputs are read. If one proves wrong, the next pass does without it.
pub(super) struct AnalysisPass {
    in_order: bool,
    sharding: Sharding,
    /// Memory budget of decompressors, in bytes.
    memory: usize,
}

impl AnalysisPass {
    pub(super) fn first(inputs: &[CaptureInput], options: &AnalysisOptions) -> AnalysisPass {
        let memory = options.memory;
        match inputs.iter().all(CaptureInput::can_be_read_again) {
            true => AnalysisPass { in_order: true, sharding: Sharding::Connections, memory },
            false => AnalysisPass { in_order: false, sharding: Sharding::None, memory },
        }
    }

    pub(super) fn sharding(&self) -> Sharding {
        self.sharding
    }

    pub(super) fn open(&self, inputs: &[CaptureInput]) -> Result<CaptureSet, AnalysisError> {
        Ok(CaptureSet::open_with_memory(inputs, self.in_order, self.memory)?)
    }

    pub(super) fn learn(&mut self, failure: RerunReason) {
        match failure {
            RerunReason::OutOfOrder => self.in_order = false,
            RerunReason::Coupled => {
                self.sharding = match self.sharding {
                    Sharding::Connections => Sharding::Hosts,
                    Sharding::Hosts | Sharding::None => Sharding::None,
                }
            }
        }
    }
}
