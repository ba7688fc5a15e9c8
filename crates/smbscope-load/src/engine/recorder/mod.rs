//! Aggregates the measurements of one worker's users without locks. Merging the recorders of all workers yields the
//! same figures as a single one.
//!
//! `smbscope_stats` counts the commands as exchanges. Counted here is everything that a capture does not contain:
//! operations, connects, failures, sessions and server stalls.
//!
//! A command counts if its request was sent in the measured part, an operation if its intended start lies there (in a
//! closed loop they coincide). Both belong to the interval in which they started, as in the timeline of a capture, so
//! that intervals add up to the totals. The end may lie outside the measured part: slow responses are not lost.

use super::clocks::Clock;
use super::exchanges::{ActionBatch, CommandSource, ExchangeLog, Maker};
use super::hooks::{ExchangeObserver, LiveFigures, LivePart};
use super::result::{IntervalResult, JobSummary, OperationResult};
use super::schedule::{MeasurementWindow, OverloadLimits, OverloadTally};
use super::session::{CommandQueueDepth, Performed};
use super::silences::Silences;
use crate::workload::SessionsPerUser;
use serde::{Deserialize, Serialize};
use smbscope_client::{Sample, Samples};
use smbscope_model::{Command, ExchangeOutcome, Nanos, Timestamp};
use smbscope_stats::{Aggregator, Dimension, SliceSortKey, Summary, SummaryPrecision, TimelineBinning, TimelineCounts};
use smbscope_wire::status::NtStatus;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// Failure reasons; others count together. They count as [`OTHER_REASONS`].
const REASONS_MAX: usize = 64;
const OTHER_REASONS: &str = "other reasons";

/// Commands counted in one batch. Counting in batches takes a third of the time because the tables stay in the
/// processor's caches. A batch holds up its worker for some microseconds.
const WAITING_MAX: usize = 32;

#[derive(Debug)]
pub(crate) struct LoadPointRecorder {
    window: MeasurementWindow,
    clock: Clock,
    waiting: Vec<Sample>,
    batches: Vec<ActionBatch>,
    maker: Maker,
    by: Vec<Dimension>,
    counted: MergeableFigures,
    silences: Silences,
    observer: Option<Box<dyn ExchangeObserver>>,
    pub(crate) live: LivePart,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Completed {
    pub(crate) operation: usize,
    pub(crate) intended: Instant,
    /// First byte of its first request and last byte of its last response. `None` if no command was sent.
    pub(crate) span: Option<(Instant, Instant)>,
    pub(crate) unexpected: Option<NtStatus>,
}

impl LoadPointRecorder {
    pub(crate) fn new(
        window: MeasurementWindow,
        clock: Clock,
        operations: usize,
        open: bool,
        exchanges: Option<ExchangeLog>,
    ) -> LoadPointRecorder {
        let counts = OperationStats {
            service: Summary::new(SummaryPrecision::ROW),
            response: open.then(|| Summary::new(SummaryPrecision::ROW)),
            unexpected: BTreeMap::new(),
        };
        LoadPointRecorder {
            window,
            clock,
            waiting: Vec::new(),
            batches: Vec::new(),
            maker: Maker::new(clock),
            by: Vec::new(),
            counted: MergeableFigures {
                aggregator: aggregator(&window, &clock, &[]),
                operations: vec![counts; operations],
                cells: Vec::new(),
                connects: Summary::new(SummaryPrecision::ROW),
                connect_commands: BTreeMap::new(),
                failures: BTreeMap::new(),
                unanswered: 0,
                not_begun: 0,
                jobs: JobSummary::default(),
                queue: CommandQueueDepth::default(),
                overload: None,
                exchanges,
            },
            silences: Silences::new(window.start),
            observer: None,
            live: LivePart::default(),
        }
    }

    pub(crate) fn sliced(mut self, by: &[Dimension]) -> LoadPointRecorder {
        self.counted.aggregator = aggregator(&self.window, &self.clock, by);
        LoadPointRecorder { by: by.to_vec(), ..self }
    }

    pub(crate) fn limited(mut self, limits: Option<OverloadLimits>) -> LoadPointRecorder {
        self.counted.overload = limits.map(OverloadTally::new);
        self
    }

    pub(crate) fn observed(self, observer: Option<Box<dyn ExchangeObserver>>) -> LoadPointRecorder {
        LoadPointRecorder { observer, ..self }
    }

    pub(crate) fn empty(&self) -> LoadPointRecorder {
        LoadPointRecorder::new(self.window, self.clock, 0, false, None)
    }

    pub(crate) fn timestamp(&self, at: Instant) -> Timestamp {
        self.clock.timestamp(at)
    }

    pub(crate) fn window(&self) -> MeasurementWindow {
        self.window
    }

    /// Sets the measured part once it is known, before the first command.
    pub(crate) fn set_window(&mut self, window: MeasurementWindow) {
        self.count_waiting();
        self.window = window;
        self.counted.aggregator = aggregator(&window, &self.clock, &self.by);
        self.silences = Silences::new(window.start);
    }

    /// Takes the commands of an action. Returns when the first started and the last ended. Oplock breaks in between are
    /// counted but do not belong to the action.
    pub(crate) fn take(
        &mut self,
        samples: &mut Samples,
        performed: Option<&Performed>,
        origin: &mut CommandSource,
    ) -> Option<(Instant, Instant)> {
        let mut span: Option<(Instant, Instant)> = None;
        for sample in samples.iter() {
            if !sample.is_servers_wish() {
                let (first, last) = span.unwrap_or((sample.request_first, sample.response_last));
                span = Some((first.min(sample.request_first), last.max(sample.response_last)));
            }
        }
        if !samples.is_empty() {
            self.batches.push(origin.commands(samples));
            self.waiting.append(samples);
        }
        if self.waiting.len() >= WAITING_MAX {
            self.count_waiting();
        }
        if let (Some(performed), Some((first, _))) = (performed, span) {
            self.live.moved(performed);
            if self.window.contains(first) {
                self.counted.queue.add(performed.queue);
                let cell = self.cell(first);
                cell.bytes_read += performed.bytes_read;
                cell.bytes_written += performed.bytes_written;
            }
        }
        span
    }

    fn count_waiting(&mut self) {
        let (mut waiting, mut batches) = (std::mem::take(&mut self.waiting), std::mem::take(&mut self.batches));
        let mut next = waiting.iter();
        for batch in batches.drain(..) {
            let commands = batch.commands;
            self.maker.begin(batch);
            for sample in next.by_ref().take(commands) {
                self.command(sample);
                let exchange = self.maker.exchange(sample);
                if self.window.contains(sample.request_first) {
                    self.counted.aggregator.record(exchange);
                    if let Some(observer) = &mut self.observer {
                        observer.exchange(exchange);
                    }
                    if let Some(exchanges) = &mut self.counted.exchanges {
                        exchanges.add(exchange);
                    }
                }
            }
        }
        waiting.clear();
        (self.waiting, self.batches) = (waiting, batches);
    }

    fn command(&mut self, sample: &Sample) {
        let in_headline = sample.group.in_headline();
        if let Some(time) = sample.response_time() {
            if sample.request_first < self.window.end {
                self.silences.answered(sample.request_first, sample.response_last, in_headline);
            }
            self.live.answered(sample.group, time, sample.status.filter(|status| status.is_error()));
        } else if sample.outcome == ExchangeOutcome::Unanswered && self.window.contains(sample.request_first) {
            self.counted.unanswered += 1;
            if in_headline {
                self.silences.unanswered(sample.request_first, sample.response_last.min(self.window.end));
            }
        }
    }

    fn cell(&mut self, at: Instant) -> &mut IntervalTraffic {
        let i = self.window.interval_of(at);
        if i >= self.counted.cells.len() {
            self.counted.cells.resize(i + 1, IntervalTraffic::default());
        }
        &mut self.counted.cells[i]
    }

    /// Records a completed operation. Returns false if it is outside the measured part.
    pub(crate) fn completed(&mut self, completed: &Completed) -> bool {
        let Completed { operation, intended, span, unexpected } = *completed;
        let Some(counts) = self.counted.operations.get_mut(operation).filter(|_| self.window.contains(intended)) else {
            return false;
        };
        if let Some((first, last)) = span {
            if let Some(overload) = &mut self.counted.overload {
                overload.completed(intended, (first, last));
            }
            counts.service.record(Nanos::from(last.saturating_duration_since(first)));
            if let Some(response) = &mut counts.response {
                response.record(Nanos::from(last.saturating_duration_since(intended)));
            }
        }
        if let Some(status) = unexpected {
            *counts.unexpected.entry(status).or_default() += 1;
        }
        true
    }

    pub(crate) fn connected(&mut self, at: Instant, took: Duration, commands: &[Command]) {
        self.counted.connects.record(Nanos::from(took));
        for command in commands {
            *self.counted.connect_commands.entry(*command).or_default() += 1;
        }
        self.sessions(at, 1);
    }

    pub(crate) fn kept(&mut self, sessions: usize) {
        self.cell(self.window.start).sessions += sessions as i64;
    }

    /// Counts connected or broken sessions. Those before the measured part belong to its beginning.
    pub(crate) fn sessions(&mut self, at: Instant, change: i64) {
        self.live.sessions += change;
        let at = at.max(self.window.start);
        if at < self.window.end {
            self.cell(at).sessions += change;
        }
    }

    pub(crate) fn failure(&mut self, reason: &str) {
        self.live.failures += 1;
        let known = self.counted.failures.contains_key(reason) || self.counted.failures.len() < REASONS_MAX;
        *self.counted.failures.entry(if known { reason } else { OTHER_REASONS }.to_owned()).or_default() += 1;
    }

    /// Counts a command that was abandoned without a response since `since`.
    pub(crate) fn given_up(&mut self, since: Instant) {
        self.count_waiting();
        self.counted.unanswered += 1;
        if let Some(overload) = &mut self.counted.overload {
            overload.given_up(since, &self.window);
        }
        self.silences.unanswered(since, self.window.end);
    }

    pub(crate) fn not_begun(&mut self, operations: u64) {
        self.counted.not_begun += operations;
        if let Some(overload) = &mut self.counted.overload {
            overload.not_begun(operations);
        }
    }

    pub(crate) fn publish(&mut self, live: &LiveFigures) {
        self.count_waiting();
        if let Some(observer) = &mut self.observer {
            observer.publish();
        }
        live.publish(&mut self.live);
    }

    /// Records a period in which the worker itself did not run.
    pub(crate) fn paused(&mut self, from: Instant, to: Instant) {
        self.silences.paused(from, to);
    }

    pub(crate) fn take_silences(&mut self, end: Instant) -> Silences {
        self.count_waiting();
        self.silences.end(end);
        std::mem::replace(&mut self.silences, Silences::new(end))
    }

    pub(crate) fn merge(&mut self, other: LoadPointRecorder) {
        self.add(other.into_counted());
    }

    pub(crate) fn add(&mut self, other: MergeableFigures) {
        self.counted.merge(other);
    }

    pub(crate) fn lost(&mut self, reason: &str, sessions: u64) {
        *self.counted.failures.entry(reason.to_owned()).or_default() += sessions;
    }

    pub(crate) fn of_host(
        window: MeasurementWindow,
        clock: Clock,
        counted: MergeableFigures,
        silences: Silences,
    ) -> LoadPointRecorder {
        LoadPointRecorder { counted, silences, ..LoadPointRecorder::new(window, clock, 0, false, None) }
    }

    pub(crate) fn sum(&mut self) -> CommandTotals {
        self.count_waiting();
        self.counted.sum()
    }

    pub(crate) fn into_counted(mut self) -> MergeableFigures {
        self.count_waiting();
        self.counted
    }

    pub(crate) fn jobs(&mut self) -> &mut JobSummary {
        &mut self.counted.jobs
    }

    pub(crate) fn take_exchanges(&mut self) -> Option<ExchangeLog> {
        self.counted.exchanges.take()
    }

    pub(crate) fn finish(
        mut self,
        names: &[String],
        duration: Duration,
        of_users: &SessionsPerUser,
    ) -> LoadPointFigures {
        self.count_waiting();
        let intervals = self.intervals(duration, of_users);
        let mut due: Option<Summary> = None;
        for response in self.counted.operations.iter().filter_map(|counts| counts.response.as_ref()) {
            due.get_or_insert_with(|| Summary::new(SummaryPrecision::ROW)).merge(response);
        }
        let operations = self.counted.operations.into_iter().zip(names).map(|(counts, name)| OperationResult {
            name: name.clone(),
            service: counts.service,
            response: counts.response,
            unexpected: counts.unexpected,
        });
        LoadPointFigures {
            counted: self.counted.aggregator,
            due,
            operations: operations.collect(),
            bytes_read: intervals.iter().map(|interval| interval.bytes_read).sum(),
            bytes_written: intervals.iter().map(|interval| interval.bytes_written).sum(),
            intervals,
            connects: self.counted.connects,
            connect_commands: self.counted.connect_commands,
            failures: self.counted.failures,
            unanswered: self.counted.unanswered,
            not_begun: self.counted.not_begun,
            jobs: self.counted.jobs,
            queue: self.counted.queue,
            overload: self.counted.overload,
        }
    }

    /// Returns all intervals of the measured part, including those in which nothing started.
    fn intervals(&self, duration: Duration, of_users: &SessionsPerUser) -> Vec<IntervalResult> {
        let timeline = self.counted.aggregator.timeline();
        let origin = self.clock.timestamp(self.window.start);
        let began: HashMap<usize, TimelineCounts> = timeline
            .bins
            .into_iter()
            .filter(|(_, bin)| bin.commands > 0)
            .map(|(start, bin)| (((start - origin).0 / timeline.width.0) as usize, bin))
            .collect();
        let lasted = duration.as_nanos().div_ceil(self.window.interval.as_nanos()) as usize;
        let last = began.keys().max().map_or(0, |last| last + 1);
        let mut sessions = 0;
        let interval = |at: usize| {
            let cell = self.counted.cells.get(at).copied().unwrap_or_default();
            let bin = began.get(&at).copied().unwrap_or_default();
            sessions += cell.sessions;
            IntervalResult {
                start: Timestamp(origin.0 + at as i64 * timeline.width.0),
                users: of_users.users_with(u32::try_from(sessions.max(0)).unwrap_or(u32::MAX)),
                operations: bin.complete,
                errors: bin.errors,
                bytes_read: cell.bytes_read,
                bytes_written: cell.bytes_written,
                p50: bin.response_time_p50,
                p95: bin.response_time_p95,
                max: bin.response_time_max,
            }
        };
        (0..lasted.max(last).max(self.counted.cells.len())).map(interval).collect()
    }
}

#[derive(Debug)]
pub(crate) struct LoadPointFigures {
    pub(crate) counted: Aggregator,
    pub(crate) due: Option<Summary>,
    pub(crate) operations: Vec<OperationResult>,
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
    pub(crate) intervals: Vec<IntervalResult>,
    pub(crate) connects: Summary,
    pub(crate) connect_commands: BTreeMap<Command, u64>,
    pub(crate) failures: BTreeMap<String, u64>,
    pub(crate) unanswered: u64,
    pub(crate) not_begun: u64,
    pub(crate) jobs: JobSummary,
    pub(crate) queue: CommandQueueDepth,
    pub(crate) overload: Option<OverloadTally>,
}

/// Creates an aggregator with the intervals of the window. The plan limits their number.
fn aggregator(window: &MeasurementWindow, clock: &Clock, by: &[Dimension]) -> Aggregator {
    let intervals = TimelineBinning {
        origin: clock.timestamp(window.start),
        width: Nanos::from(window.interval),
        most: usize::MAX,
        percentiles: true,
    };
    Aggregator::of_one_share(intervals).sliced(by, SliceSortKey::ResponseTime)
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct MergeableFigures {
    aggregator: Aggregator,
    operations: Vec<OperationStats>,
    cells: Vec<IntervalTraffic>,
    connects: Summary,
    connect_commands: BTreeMap<Command, u64>,
    failures: BTreeMap<String, u64>,
    unanswered: u64,
    not_begun: u64,
    jobs: JobSummary,
    queue: CommandQueueDepth,
    overload: Option<OverloadTally>,
    exchanges: Option<ExchangeLog>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct OperationStats {
    service: Summary,
    response: Option<Summary>,
    unexpected: BTreeMap<NtStatus, u64>,
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct IntervalTraffic {
    bytes_read: u64,
    bytes_written: u64,
    sessions: i64,
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
    fn sum(&self) -> CommandTotals {
        let kinds = || self.aggregator.kinds();
        CommandTotals {
            commands: kinds().map(|(_, counted)| counted.response_time.count()).sum(),
            errors: kinds().map(|(_, counted)| counted.errors.values().sum::<u64>()).sum(),
            bytes_read: self.cells.iter().map(|cell| cell.bytes_read).sum(),
            bytes_written: self.cells.iter().map(|cell| cell.bytes_written).sum(),
            times: self.aggregator.response_times(|(_, _, group)| group.in_headline()),
        }
    }

    fn merge(&mut self, other: MergeableFigures) {
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

#[cfg(test)]
mod tests;
