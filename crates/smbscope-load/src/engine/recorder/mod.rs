//! Adds up what the users of one worker measured, without locks; those of all workers merge to what one would have.
//!
//! Commands are counted by `smbscope_stats`, as the exchanges that they are. What a capture knows nothing of is counted
//! here: operations, connects, failures, sessions, and the silences of the server.
//!
//! A command counts when its request went out in the measured part, an operation when its intended start lies there
//! (in a closed loop the two are the same). Each is put into the interval in which it began, as in the timeline of a
//! capture, so intervals add up to the totals, and what began in the measured part counts also where its end does not
//! lie in it: an answer that takes long is not lost because of that.

use super::exchanges::{Batch, Clock, Exchanges, Maker, Origin};
use super::jobs::Jobs;
use super::live_figures::{LiveFigures, LivePart};
use super::overload::{Overload, OverloadLimits};
use super::result::{Interval, Operation};
use super::session::{Performed, Queue};
use super::silences::Silences;
use crate::client::{Sample, Samples};
use smbscope_model::{Command, Nanos, Outcome, Timestamp};
use smbscope_stats::{Aggregator, Bin, Dimension, Intervals, Limit, Sort, Summary};
use smbscope_wire::status::NtStatus;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// Different reasons of failures; further ones are added up as [`OTHER_REASONS`].
const REASONS_MAX: usize = 64;
const OTHER_REASONS: &str = "other reasons";

/// Commands that wait to be counted: together they are counted in a third of the time, as what they are counted in is in
/// the processor's caches then. They hold up their worker for some microseconds.
const WAITING_MAX: usize = 32;

/// The measured part of a load point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) start: Instant,
    pub(crate) end: Instant,
    /// Length of intervals.
    pub(crate) interval: Duration,
}

impl Window {
    pub(crate) fn contains(&self, at: Instant) -> bool {
        self.start <= at && at < self.end
    }

    fn interval_of(&self, at: Instant) -> usize {
        (at.saturating_duration_since(self.start).as_nanos() / self.interval.as_nanos()) as usize
    }

    /// Where exchanges are counted: their intervals are those of the window. The plan bounds how many there are.
    fn aggregator(&self, clock: &Clock, by: &[Dimension]) -> Aggregator {
        let intervals = Intervals {
            origin: clock.timestamp(self.start),
            width: Nanos::from(self.interval),
            most: usize::MAX,
            percentiles: true,
        };
        Aggregator::of_one_share(intervals).sliced(by, Sort::ResponseTime)
    }
}

/// What is counted of a load point.
#[derive(Debug)]
pub(crate) struct Recorder {
    window: Window,
    clock: Clock,
    waiting: Vec<Sample>,
    /// To which actions they belong.
    batches: Vec<Batch>,
    maker: Maker,
    aggregator: Aggregator,
    /// What commands are divided by.
    by: Vec<Dimension>,
    operations: Vec<Counts>,
    cells: Vec<Cell>,
    connects: Summary,
    connect_commands: BTreeMap<Command, u64>,
    failures: BTreeMap<String, u64>,
    unanswered: u64,
    not_begun: u64,
    silences: Silences,
    pub(crate) jobs: Jobs,
    queue: Queue,
    overload: Option<Overload>,
    pub(crate) exchanges: Option<Exchanges>,
    pub(crate) live: LivePart,
}

/// Operations of one name.
#[derive(Debug, Clone, PartialEq)]
struct Counts {
    service: Summary,
    response: Option<Summary>,
    unexpected: BTreeMap<NtStatus, u64>,
}

/// What exchanges do not tell of an interval.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    bytes_read: u64,
    bytes_written: u64,
    /// Sessions made less sessions ended.
    sessions: i64,
}

/// An operation that was completed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Completed {
    /// Its name, as an index.
    pub(crate) operation: usize,
    /// When it should have begun.
    pub(crate) intended: Instant,
    /// First byte of its first request, and last byte of its last answer; absent where no command was sent.
    pub(crate) span: Option<(Instant, Instant)>,
    /// The first status that was not the expected one.
    pub(crate) unexpected: Option<NtStatus>,
}

impl Recorder {
    /// `open`: operations have intended starts.
    pub(crate) fn new(
        window: Window,
        clock: Clock,
        operations: usize,
        open: bool,
        exchanges: Option<Exchanges>,
    ) -> Recorder {
        let counts = Counts {
            service: Summary::new(Limit::ROW),
            response: open.then(|| Summary::new(Limit::ROW)),
            unexpected: BTreeMap::new(),
        };
        Recorder {
            window,
            clock,
            waiting: Vec::new(),
            batches: Vec::new(),
            maker: Maker::new(clock),
            aggregator: window.aggregator(&clock, &[]),
            by: Vec::new(),
            operations: vec![counts; operations],
            cells: Vec::new(),
            connects: Summary::new(Limit::ROW),
            connect_commands: BTreeMap::new(),
            failures: BTreeMap::new(),
            unanswered: 0,
            not_begun: 0,
            silences: Silences::new(window.start),
            jobs: Jobs::default(),
            queue: Queue::default(),
            overload: None,
            exchanges,
            live: LivePart::default(),
        }
    }

    /// The same with the commands divided by these dimensions.
    pub(crate) fn sliced(self, by: &[Dimension]) -> Recorder {
        let aggregator = self.window.aggregator(&self.clock, by);
        Recorder { by: by.to_vec(), aggregator, ..self }
    }

    /// The same with operations held against limits, where there are some.
    pub(crate) fn limited(self, limits: Option<OverloadLimits>) -> Recorder {
        Recorder { overload: limits.map(Overload::new), ..self }
    }

    /// One that has counted nothing, and keeps no exchanges.
    pub(crate) fn empty(&self) -> Recorder {
        Recorder::new(self.window, self.clock, 0, false, None)
    }

    /// By the clock of the system.
    pub(crate) fn timestamp(&self, at: Instant) -> Timestamp {
        self.clock.timestamp(at)
    }

    pub(crate) fn window(&self) -> Window {
        self.window
    }

    /// When the measured part is, once that is known: before the first command.
    pub(crate) fn set_window(&mut self, window: Window) {
        self.count_waiting();
        self.window = window;
        self.aggregator = window.aggregator(&self.clock, &self.by);
        self.silences = Silences::new(window.start);
    }

    /// Takes the commands of an action, empties their list, and says when the first began and the last ended. Breaks of
    /// oplocks that came in between are counted, and are no part of the action.
    pub(crate) fn take(
        &mut self,
        samples: &mut Samples,
        performed: Option<&Performed>,
        origin: &mut Origin,
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
                self.queue.add(performed.queue);
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
                    self.aggregator.record(exchange);
                    if let Some(exchanges) = &mut self.exchanges {
                        exchanges.add(exchange);
                    }
                }
            }
        }
        waiting.clear();
        (self.waiting, self.batches) = (waiting, batches);
    }

    /// Takes a command to what is counted here.
    fn command(&mut self, sample: &Sample) {
        let in_headline = sample.group.in_headline();
        if let Some(time) = sample.response_time() {
            if sample.request_first < self.window.end {
                self.silences.answered(sample.request_first, sample.response_last, in_headline);
            }
            self.live.answered(sample.group, time, sample.status.filter(|status| status.is_error()));
        } else if sample.outcome == Outcome::Unanswered && self.window.contains(sample.request_first) {
            self.unanswered += 1;
            if in_headline {
                self.silences.unanswered(sample.request_first, sample.response_last.min(self.window.end));
            }
        }
    }

    fn cell(&mut self, at: Instant) -> &mut Cell {
        let i = self.window.interval_of(at);
        if i >= self.cells.len() {
            self.cells.resize(i + 1, Cell::default());
        }
        &mut self.cells[i]
    }

    /// An operation was completed; whether it counted.
    pub(crate) fn completed(&mut self, completed: &Completed) -> bool {
        let Completed { operation, intended, span, unexpected } = *completed;
        let Some(counts) = self.operations.get_mut(operation).filter(|_| self.window.contains(intended)) else {
            return false;
        };
        if let Some((first, last)) = span {
            if let Some(overload) = &mut self.overload {
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

    /// A session can be used, after this time and these commands.
    pub(crate) fn connected(&mut self, at: Instant, took: Duration, commands: &[Command]) {
        self.connects.record(Nanos::from(took));
        for command in commands {
            *self.connect_commands.entry(*command).or_default() += 1;
        }
        self.sessions(at, 1);
    }

    /// Sessions that were made in an earlier load point.
    pub(crate) fn kept(&mut self, sessions: usize) {
        self.cell(self.window.start).sessions += sessions as i64;
    }

    /// Sessions were made, or broke; before the measured part they belong to its beginning.
    pub(crate) fn sessions(&mut self, at: Instant, change: i64) {
        self.live.sessions += change;
        let at = at.max(self.window.start);
        if at < self.window.end {
            self.cell(at).sessions += change;
        }
    }

    /// A session could not be made, or broke.
    pub(crate) fn failure(&mut self, reason: &str) {
        self.live.failures += 1;
        let known = self.failures.contains_key(reason) || self.failures.len() < REASONS_MAX;
        *self.failures.entry(if known { reason } else { OTHER_REASONS }.to_owned()).or_default() += 1;
    }

    /// A command that went out at this time was abandoned while it waited for its response.
    pub(crate) fn given_up(&mut self, since: Instant) {
        self.count_waiting();
        self.unanswered += 1;
        if let Some(overload) = &mut self.overload {
            overload.given_up(since, &self.window);
        }
        self.silences.unanswered(since, self.window.end);
    }

    /// Operations were due and did not begin.
    pub(crate) fn not_begun(&mut self, operations: u64) {
        self.not_begun += operations;
        if let Some(overload) = &mut self.overload {
            overload.not_begun(operations);
        }
    }

    /// Shows what was counted so far.
    pub(crate) fn publish(&mut self, live: &LiveFigures) {
        self.count_waiting();
        live.publish(&mut self.live);
    }

    /// The gaps between answers, of a load point that ended then.
    pub(crate) fn take_silences(&mut self, end: Instant) -> Silences {
        self.count_waiting();
        self.silences.end(end);
        std::mem::replace(&mut self.silences, Silences::new(end))
    }

    /// Adds what another worker counted.
    pub(crate) fn merge(&mut self, mut other: Recorder) {
        other.count_waiting();
        self.aggregator.merge(other.aggregator);
        for (mine, theirs) in self.operations.iter_mut().zip(other.operations) {
            mine.service.merge(&theirs.service);
            if let (Some(mine), Some(theirs)) = (&mut mine.response, &theirs.response) {
                mine.merge(theirs);
            }
            add(&mut mine.unexpected, theirs.unexpected);
        }
        if self.cells.len() < other.cells.len() {
            self.cells.resize(other.cells.len(), Cell::default());
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

    /// The figures, of a measured part that was as long as `duration`.
    pub(crate) fn finish(mut self, names: &[String], duration: Duration, sessions_per_user: u32) -> Figures {
        self.count_waiting();
        let intervals = self.intervals(duration, sessions_per_user);
        let mut due: Option<Summary> = None;
        for response in self.operations.iter().filter_map(|counts| counts.response.as_ref()) {
            due.get_or_insert_with(|| Summary::new(Limit::ROW)).merge(response);
        }
        let operations = self.operations.into_iter().zip(names).map(|(counts, name)| Operation {
            name: name.clone(),
            service: counts.service,
            response: counts.response,
            unexpected: counts.unexpected,
        });
        Figures {
            counted: self.aggregator,
            due,
            operations: operations.collect(),
            bytes_read: intervals.iter().map(|interval| interval.bytes_read).sum(),
            bytes_written: intervals.iter().map(|interval| interval.bytes_written).sum(),
            intervals,
            connects: self.connects,
            connect_commands: self.connect_commands,
            failures: self.failures,
            unanswered: self.unanswered,
            not_begun: self.not_begun,
            jobs: self.jobs,
            queue: self.queue,
            overload: self.overload,
        }
    }

    /// All intervals of the measured part, those too in which nothing began.
    fn intervals(&self, duration: Duration, sessions_per_user: u32) -> Vec<Interval> {
        let timeline = self.aggregator.timeline();
        let origin = self.clock.timestamp(self.window.start);
        let began: HashMap<usize, Bin> = timeline
            .bins
            .into_iter()
            .filter(|(_, bin)| bin.commands > 0)
            .map(|(start, bin)| (((start - origin).0 / timeline.width.0) as usize, bin))
            .collect();
        let lasted = duration.as_nanos().div_ceil(self.window.interval.as_nanos()) as usize;
        let last = began.keys().max().map_or(0, |last| last + 1);
        let mut sessions = 0;
        let interval = |at: usize| {
            let cell = self.cells.get(at).copied().unwrap_or_default();
            let bin = began.get(&at).copied().unwrap_or_default();
            sessions += cell.sessions;
            Interval {
                start: Timestamp(origin.0 + at as i64 * timeline.width.0),
                users: (sessions.max(0) / i64::from(sessions_per_user)) as u32,
                operations: bin.complete,
                errors: bin.errors,
                bytes_read: cell.bytes_read,
                bytes_written: cell.bytes_written,
                p50: bin.response_time_p50,
                p95: bin.response_time_p95,
                max: bin.response_time_max,
            }
        };
        (0..lasted.max(last).max(self.cells.len())).map(interval).collect()
    }
}

/// The part of a [`Run`](super::result::Run) that is counted.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) counted: Aggregator,
    pub(crate) due: Option<Summary>,
    pub(crate) operations: Vec<Operation>,
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
    pub(crate) intervals: Vec<Interval>,
    pub(crate) connects: Summary,
    pub(crate) connect_commands: BTreeMap<Command, u64>,
    pub(crate) failures: BTreeMap<String, u64>,
    pub(crate) unanswered: u64,
    pub(crate) not_begun: u64,
    pub(crate) jobs: Jobs,
    pub(crate) queue: Queue,
    pub(crate) overload: Option<Overload>,
}

/// Adds counts to counts.
fn add<K: Ord>(mine: &mut BTreeMap<K, u64>, theirs: BTreeMap<K, u64>) {
    for (key, count) in theirs {
        *mine.entry(key).or_default() += count;
    }
}

#[cfg(test)]
mod tests;
