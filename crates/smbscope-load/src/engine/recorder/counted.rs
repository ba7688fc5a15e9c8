//! The mergeable part of a recorder: over the workers of a process, and in serialised form over hosts.

use crate::engine::exchanges::ExchangeLog;
use crate::engine::jobs::JobSummary;
use crate::engine::overload::OverloadTally;
use crate::engine::session::CommandQueueDepth;
use serde::{Deserialize, Serialize};
use smbscope_model::Command;
use smbscope_stats::{Aggregator, Summary};
use smbscope_wire::status::NtStatus;
use std::collections::BTreeMap;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct MergeableFigures {
    pub(super) aggregator: Aggregator,
    pub(super) operations: Vec<OperationStats>,
    pub(super) cells: Vec<IntervalTraffic>,
    pub(super) connects: Summary,
    pub(super) connect_commands: BTreeMap<Command, u64>,
    pub(super) failures: BTreeMap<String, u64>,
    pub(super) unanswered: u64,
    pub(super) not_begun: u64,
    pub(super) jobs: JobSummary,
    pub(super) queue: CommandQueueDepth,
    pub(super) overload: Option<OverloadTally>,
    pub(super) exchanges: Option<ExchangeLog>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct OperationStats {
    pub(super) service: Summary,
    pub(super) response: Option<Summary>,
    pub(super) unexpected: BTreeMap<NtStatus, u64>,
}

/// Figures of an interval that exchanges do not contain.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct IntervalTraffic {
    pub(super) bytes_read: u64,
    pub(super) bytes_written: u64,
    pub(super) sessions: i64,
}

#[derive(Debug, Clone)]
pub(crate) struct CommandTotals {
    pub(crate) commands: u64,
    pub(crate) errors: u64,
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
    pub(crate) times: Summary,
}

impl MergeableFigures {
    pub(super) fn sum(&self) -> CommandTotals {
        let kinds = || self.aggregator.kinds();
        CommandTotals {
            commands: kinds().map(|(_, counted)| counted.response_time.count()).sum(),
            errors: kinds().map(|(_, counted)| counted.errors.values().sum::<u64>()).sum(),
            bytes_read: self.cells.iter().map(|cell| cell.bytes_read).sum(),
            bytes_written: self.cells.iter().map(|cell| cell.bytes_written).sum(),
            times: self.aggregator.response_times(|(_, _, group)| group.in_headline()),
        }
    }

    pub(super) fn merge(&mut self, other: MergeableFigures) {
        self.aggregator.merge(other.aggregator);
        for (mine, theirs) in self.operations.iter_mut().zip(other.operations) {
            mine.service.merge(&theirs.service);
            if let (Some(mine), Some(theirs)) = (&mut mine.response, &theirs.response) {
                mine.merge(theirs);
            }
            add(&mut mine.unexpected, theirs.unexpected);
        }
        if self.cells.len() < other.cells.len() {
            self.cells.resize(other.cells.len(), IntervalTraffic::default());
        }
        for (mine, theirs) in self.cells.iter_mut().zip(&other.cells) {
            mine.bytes_read += theirs.bytes_read;
            mine.bytes_written += theirs.bytes_written;
            mine.sessions += theirs.sessions;
        }
        self.connects.merge(&other.connects);
        add(&mut self.connect_commands, other.connect_commands);
        add(&mut self.failures, other.failures);
        self.unanswered += other.unanswered;
        self.not_begun += other.not_begun;
        self.jobs.merge(other.jobs);
        self.queue.add(other.queue);
        if let (Some(mine), Some(theirs)) = (&mut self.overload, &other.overload) {
            mine.merge(theirs);
        }
        if let (Some(mine), Some(theirs)) = (&mut self.exchanges, other.exchanges) {
            mine.merge(theirs);
        }
    }
}

fn add<K: Ord>(mine: &mut BTreeMap<K, u64>, theirs: BTreeMap<K, u64>) {
    for (key, count) in theirs {
        *mine.entry(key).or_default() += count;
    }
}
