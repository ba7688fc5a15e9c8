//! Outcomes of all commands in the capture, regardless of the filter. The quality of the capture is based on them.

use crate::Report;
use smbscope_model::{CommandGroup, ExchangeOutcome};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandOutcomes {
    pub(crate) count: u64,
    pub(crate) untimed: u64,
    pub(crate) encrypted: u64,
    outcomes: Vec<(ExchangeOutcome, u64)>,
}

impl CommandOutcomes {
    pub(crate) fn new(report: &Report) -> CommandOutcomes {
        if let Some(filtered) = &report.filter {
            let census = &filtered.whole;
            return CommandOutcomes {
                count: census.commands(),
                untimed: census.untimed(),
                encrypted: census.encrypted,
                outcomes: census.outcomes().collect(),
            };
        }
        let aggregate = &report.aggregate;
        let encrypted = aggregate.groups.iter().find(|row| row.group == CommandGroup::Encrypted);
        CommandOutcomes {
            count: aggregate.count,
            untimed: aggregate.untimed,
            encrypted: encrypted.map_or(0, |found| found.row.count),
            outcomes: aggregate.outcomes.clone(),
        }
    }

    pub(crate) fn ended(&self, wanted: ExchangeOutcome) -> u64 {
        self.outcomes.iter().find(|(outcome, _)| *outcome == wanted).map_or(0, |(_, count)| *count)
    }
}
