//! Adds up what the users of one worker measured, without locks; those of all workers merge to what one would have.
//!
//! A command counts when its request went out in the measured part, an operation when its intended start lies there
//! (in a closed loop the two are the same). Each is put into the interval in which it began, as in the timeline of a
//! capture, so intervals add up to the totals, and what began in the measured part counts also where its end does not
//! lie in it: an answer that takes long is not lost because of that.

use super::bins::Sparse;
use super::exchanges::{Clock, Exchanges, Origin};
use super::live_figures::LivePart;
use super::result::{Counted, Interval, Operation};
use super::session::Performed;
use super::silences::Silences;
use crate::client::{Sample, Samples};
use smbscope_model::{Command, Group, Nanos, Outcome, Subcommand};
use smbscope_stats::{Limit, Summary};
use smbscope_wire::status::NtStatus;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Different reasons of failures; further ones are added up as [`OTHER_REASONS`].
const REASONS_MAX: usize = 64;
const OTHER_REASONS: &str = "other reasons";

/// Severity "warning" (MS-ERREF 2.3): an answer such as STATUS_BUFFER_OVERFLOW.
const WARNING: u32 = 2;

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
}

type Key = (Command, Option<Subcommand>, Group);

/// What is counted of a load point.
#[derive(Debug)]
pub(crate) struct Recorder {
    window: Window,
    commands: Vec<(Key, Counted)>,
    operations: Vec<Counts>,
    cells: Vec<Cell>,
    connects: Summary,
    failures: BTreeMap<String, u64>,
    unanswered: u64,
    not_begun: u64,
    silences: Silences,
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

/// An interval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Cell {
    operations: u64,
    errors: u64,
    bytes_read: u64,
    bytes_written: u64,
    times: Sparse,
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
    pub(crate) fn new(window: Window, operations: usize, open: bool, exchanges: Option<Exchanges>) -> Recorder {
        let counts = Counts {
            service: Summary::new(Limit::ROW),
            response: open.then(|| Summary::new(Limit::ROW)),
            unexpected: BTreeMap::new(),
        };
        Recorder {
            window,
            commands: Vec::new(),
            operations: vec![counts; operations],
            cells: Vec::new(),
            connects: Summary::new(Limit::ROW),
            failures: BTreeMap::new(),
            unanswered: 0,
            not_begun: 0,
            silences: Silences::new(window.start),
            exchanges,
            live: LivePart::default(),
        }
    }

    pub(crate) fn window(&self) -> Window {
        self.window
    }

    /// When the measured part is, once that is known: before the first command.
    pub(crate) fn set_window(&mut self, window: Window) {
        self.window = window;
        self.silences = Silences::new(window.start);
    }

    /// Takes the commands of an action, empties their list, and says when the first began and the last ended. Breaks of
    /// oplocks that came in between are counted, and are no part of the action.
    pub(crate) fn take(
        &mut self,
        samples: &mut Samples,
        performed: Option<&Performed>,
        origin: Option<&Origin>,
    ) -> Option<(Instant, Instant)> {
        let mut span: Option<(Instant, Instant)> = None;
        for sample in samples.drain(..) {
            if !sample.is_servers_wish() {
                let (first, last) = span.unwrap_or((sample.request_first, sample.response_last));
                span = Some((first.min(sample.request_first), last.max(sample.response_last)));
            }
            self.command(&sample);
            if let (Some(exchanges), Some(origin)) = (&mut self.exchanges, origin)
                && self.window.contains(sample.request_first)
            {
                exchanges.add(&sample, origin);
            }
        }
        if let (Some(performed), Some((first, _))) = (performed, span) {
            self.live.moved(performed);
            if self.window.contains(first) {
                let cell = self.cell(first);
                cell.bytes_read += performed.bytes_read;
                cell.bytes_written += performed.bytes_written;
            }
        }
        span
    }

    fn command(&mut self, sample: &Sample) {
        let measured = self.window.contains(sample.request_first);
        let in_headline = sample.group.in_headline();
        let Some(time) = sample.response_time() else {
            if measured && sample.outcome == Outcome::Unanswered {
                self.unanswered += 1;
                if in_headline {
                    self.silences.unanswered(sample.request_first, sample.response_last.min(self.window.end));
                }
            }
            return;
        };
        if sample.request_first < self.window.end {
            self.silences.answered(sample.request_first, sample.response_last, in_headline);
        }
        let failed = sample.status.is_some_and(NtStatus::is_error);
        self.live.answered(sample.group, time, sample.status.filter(|_| failed));
        if !measured {
            return;
        }
        let counted = self.counted((sample.command, sample.subcommand, sample.group));
        counted.response_time.record(nanos(time));
        if let Some(status) = sample.status
            && (failed || status.0 >> 30 == WARNING)
        {
            *counted.errors.entry(status).or_default() += 1;
        }
        let cell = self.cell(sample.request_first);
        cell.operations += 1;
        cell.errors += u64::from(failed);
        if sample.group.in_headline() {
            cell.times.record(time);
        }
    }

    /// A workload has a handful of kinds of commands: looking through them is faster than a tree or a hash.
    fn counted(&mut self, key: Key) -> &mut Counted {
        let found = self.commands.iter().position(|(known, _)| *known == key);
        let i = found.unwrap_or_else(|| {
            let counted = Counted { response_time: Summary::new(Limit::ROW), errors: BTreeMap::new() };
            self.commands.push((key, counted));
            self.commands.len() - 1
        });
        &mut self.commands[i].1
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
            counts.service.record(nanos(last.saturating_duration_since(first)));
            if let Some(response) = &mut counts.response {
                response.record(nanos(last.saturating_duration_since(intended)));
            }
        }
        if let Some(status) = unexpected {
            *counts.unexpected.entry(status).or_default() += 1;
        }
        true
    }

    /// A session can be used, after this time.
    pub(crate) fn connected(&mut self, at: Instant, took: Duration) {
        self.connects.record(nanos(took));
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

    /// A command that went out at this time was given up while it waited for its answer.
    pub(crate) fn given_up(&mut self, since: Instant) {
        self.unanswered += 1;
        self.silences.unanswered(since, self.window.end);
    }

    /// Operations were due and did not begin.
    pub(crate) fn not_begun(&mut self, operations: u64) {
        self.not_begun += operations;
    }

    /// The gaps between answers, of a load point that ended then.
    pub(crate) fn take_silences(&mut self, end: Instant) -> Silences {
        self.silences.end(end);
        std::mem::replace(&mut self.silences, Silences::new(end))
    }

    /// Adds what another worker counted.
    pub(crate) fn merge(&mut self, other: Recorder) {
        for (key, counted) in other.commands {
            let mine = self.counted(key);
            mine.response_time.merge(&counted.response_time);
            add(&mut mine.errors, counted.errors);
        }
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
            mine.operations += theirs.operations;
            mine.errors += theirs.errors;
            mine.bytes_read += theirs.bytes_read;
            mine.bytes_written += theirs.bytes_written;
            mine.times.merge(&theirs.times);
            mine.sessions += theirs.sessions;
        }
        self.connects.merge(&other.connects);
        add(&mut self.failures, other.failures);
        self.unanswered += other.unanswered;
        self.not_begun += other.not_begun;
        if let (Some(mine), Some(theirs)) = (&mut self.exchanges, other.exchanges) {
            mine.merge(theirs);
        }
    }

    /// The figures, of a measured part that was as long as `duration`.
    pub(crate) fn finish(self, names: &[String], clock: &Clock, duration: Duration, sessions_per_user: u32) -> Figures {
        let mut groups: BTreeMap<Group, Summary> = BTreeMap::new();
        let mut total = Summary::new(Limit::ROW);
        for ((_, _, group), counted) in &self.commands {
            groups.entry(*group).or_insert_with(|| Summary::new(Limit::ROW)).merge(&counted.response_time);
            if group.in_headline() {
                total.merge(&counted.response_time);
            }
        }
        let lasted = duration.as_nanos().div_ceil(self.window.interval.as_nanos()) as usize;
        let mut cells = self.cells;
        cells.resize(cells.len().max(lasted), Cell::default());
        let mut sessions = 0;
        let mut start = self.window.start;
        let intervals: Vec<Interval> = cells
            .iter()
            .map(|cell| {
                sessions += cell.sessions;
                let began = start;
                start += self.window.interval;
                Interval {
                    start: clock.timestamp(began),
                    users: (sessions.max(0) / i64::from(sessions_per_user)) as u32,
                    operations: cell.operations,
                    errors: cell.errors,
                    bytes_read: cell.bytes_read,
                    bytes_written: cell.bytes_written,
                    p50: cell.times.p50(),
                    p95: cell.times.p95(),
                    max: cell.times.max(),
                }
            })
            .collect();
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
            commands: self.commands.into_iter().collect(),
            groups,
            total,
            due,
            operations: operations.collect(),
            bytes_read: intervals.iter().map(|interval| interval.bytes_read).sum(),
            bytes_written: intervals.iter().map(|interval| interval.bytes_written).sum(),
            intervals,
            connects: self.connects,
            failures: self.failures,
            unanswered: self.unanswered,
            not_begun: self.not_begun,
        }
    }
}

/// The part of a [`Run`](super::result::Run) that is counted.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) commands: BTreeMap<Key, Counted>,
    pub(crate) groups: BTreeMap<Group, Summary>,
    pub(crate) total: Summary,
    pub(crate) due: Option<Summary>,
    pub(crate) operations: Vec<Operation>,
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
    pub(crate) intervals: Vec<Interval>,
    pub(crate) connects: Summary,
    pub(crate) failures: BTreeMap<String, u64>,
    pub(crate) unanswered: u64,
    pub(crate) not_begun: u64,
}

fn nanos(time: Duration) -> Nanos {
    Nanos(time.as_nanos().min(i64::MAX as u128) as i64)
}

/// Adds counts to counts.
fn add<K: Ord>(mine: &mut BTreeMap<K, u64>, theirs: BTreeMap<K, u64>) {
    for (key, count) in theirs {
        *mine.entry(key).or_default() += count;
    }
}

#[cfg(test)]
mod tests;
