//! Survey of a capture's record headers: number, time range and order of its packets.
//!
//! Packets are analysed in time order. The survey finds a way to do this without a table of packets: it splits the file
//! into runs of ascending timestamps, and decides whether a bounded window or a merge of the runs restores the order.

use super::clocks::{self, ClockCorrection, Descent, NEIGHBOURS, SortedRun, StepBack};
use super::format::CaptureParser;
use super::pcapng::Interfaces;
use super::stream::{self, ENDS_INSIDE, InputStream, RecordPoll};
use super::{PacketRecord, ParseStep, SkipReason};
use crate::prefetch::Warmer;
use smbscope_model::{ClockStep, Nanos};

/// Packets held to order a pipe; then: `packets_out_of_time_order`.
pub(super) const WINDOW_PACKETS: usize = 4096;
/// Bytes of these packets' records.
pub(super) const WINDOW_BYTES: usize = 16 << 20;
/// Ascending runs that are merged; more are ordered in a window. Merging up to this number beats buffering packets.
const FEW_RUNS: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReorderStrategy {
    Straight,
    Window,
    Merge,
    /// Nothing bounded restores the order; the window does what it can.
    BestEffort,
}

#[derive(Debug, Default)]
pub(super) struct Survey {
    pub(super) packets: u64,
    pub(super) first: Option<i64>,
    pub(super) last: Option<i64>,
    pub(super) descending: u64,
    /// Number of records that are not packets but that Wireshark numbers as packets.
    pub(super) numbered: u64,
    pub(super) unreadable: u64,
    pub(super) damage: Option<(String, u64, u64)>,
    pub(super) length: u64,
    pub(super) runs: Vec<SortedRun>,
    /// Places where time goes back; empty once there are too many to be clock steps.
    pub(super) descents: Vec<Descent>,
    pub(super) ticks: Ticks,
    recent: RecentOffsets,
    max_runs: usize,
    too_many_runs: bool,
    previous: i64,
    reach: WindowReach,
}

pub(super) struct UnreadCapture<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) format: CaptureParser,
    pub(super) start: usize,
}

/// Packets that show a coarse clock.
const TICKS_MIN: u64 = 16;
/// Smallest step of a clock that counts as coarse, in nanoseconds.
const COARSE_NS: i64 = 100_000;
/// A coarse clock gives at least one packet in this many the same timestamp as the packet before.
const SAME_TIME: u64 = 4;

#[derive(Debug)]
pub(super) struct Ticks {
    packets: u64,
    same: u64,
    smallest: i64,
}

impl Default for Ticks {
    fn default() -> Ticks {
        Ticks { packets: 0, same: 0, smallest: i64::MAX }
    }
}

impl Ticks {
    #[inline]
    fn passed(&mut self, time: i64) {
        self.packets += 1;
        if time == 0 {
            self.same += 1;
        } else if time < self.smallest {
            self.smallest = time;
        }
    }

    /// Returns the smallest step of a coarse clock, zero if it never advances; `None` if the clock is not coarse.
    pub(super) fn coarse(&self) -> Option<Nanos> {
        let is_told = self.packets >= TICKS_MIN && self.same * SAME_TIME >= self.packets;
        let step = Nanos(if self.smallest == i64::MAX { 0 } else { self.smallest });
        (is_told && self.smallest >= COARSE_NS).then_some(step)
    }
}

#[derive(Debug)]
struct RecentOffsets {
    offsets: [u64; NEIGHBOURS],
    count: usize,
}

impl Default for RecentOffsets {
    fn default() -> RecentOffsets {
        RecentOffsets { offsets: [0; NEIGHBOURS], count: 0 }
    }
}

impl RecentOffsets {
    #[inline]
    fn push(&mut self, offset: u64) {
        self.offsets[self.count % NEIGHBOURS] = offset;
        self.count += 1;
    }

    fn in_order(&self) -> Vec<u64> {
        let first = self.count.saturating_sub(NEIGHBOURS);
        (first..self.count).map(|index| self.offsets[index % NEIGHBOURS]).collect()
    }
}

/// Checks whether a reorder window would deliver every packet in order: no packet may be older than a packet already
/// released from a full window. The highest timestamp of these is sampled every half window.
#[derive(Debug)]
struct WindowReach {
    before_older_mark: i64,
    before_newer_mark: i64,
    packets_since_mark: usize,
    bytes_since_mark: usize,
    exceeded: bool,
}

impl Default for WindowReach {
    fn default() -> Self {
        WindowReach {
            before_older_mark: i64::MIN,
            before_newer_mark: i64::MIN,
            packets_since_mark: 0,
            bytes_since_mark: 0,
            exceeded: false,
        }
    }
}

impl WindowReach {
    #[inline]
    fn packet(&mut self, time: i64, length: usize, highest_so_far: i64) {
        let full = self.packets_since_mark >= WINDOW_PACKETS / 2
            || self.bytes_since_mark.saturating_add(length) > WINDOW_BYTES / 2;
        if full {
            self.before_older_mark = self.before_newer_mark;
            self.before_newer_mark = highest_so_far;
            self.packets_since_mark = 0;
            self.bytes_since_mark = 0;
        }
        self.packets_since_mark += 1;
        self.bytes_since_mark += length;
        self.exceeded |= time < self.before_older_mark;
    }
}

impl Survey {
    pub(super) fn new(max_runs: usize) -> Survey {
        Survey { max_runs, ..Survey::default() }
    }

    /// Adds a packet. `format` is the parser's state after the record. Using it as the state before the record is fine:
    /// the two differ only in the time given to a next packet without a timestamp, and no run starts with one.
    #[inline]
    pub(super) fn packet(&mut self, record: &PacketRecord, length: usize, position: u64, format: &CaptureParser) {
        let time = record.time;
        self.packets += 1;
        let highest = self.last.unwrap_or(i64::MIN);
        if time < self.previous || self.packets == 1 {
            self.begin_run(time, position, format.before(length));
        }
        self.recent.push(position);
        if time >= self.previous && self.packets > 1 {
            self.ticks.passed(time - self.previous);
        }
        self.previous = time;
        self.descending += u64::from(time < highest);
        self.reach.packet(time, length, highest);
        if time > highest || self.packets == 1 {
            self.last = Some(time);
        }
        if self.first.is_none_or(|first| time < first) {
            self.first = Some(time);
        }
    }

    #[inline]
    pub(super) fn ordered_packet(&mut self, time: i64) {
        self.packets += 1;
        match self.last {
            Some(last) if time < last => self.descending += 1,
            Some(last) => {
                self.ticks.passed(time - last);
                self.last = Some(time);
            }
            None => (self.first, self.last) = (Some(time), Some(time)),
        }
    }

    fn begin_run(&mut self, time: i64, position: u64, format: CaptureParser) {
        if self.runs.len() < self.max_runs {
            if self.packets > 1 && self.runs.len() <= ClockStep::MAX_CLOCK_STEPS {
                let before = self.recent.in_order();
                self.descents.push(Descent { run: self.runs.len(), time_before: self.previous, before });
            }
            self.runs.push(SortedRun { position, number: self.packets + self.numbered, time, format, shift: 0 });
        } else {
            self.too_many_runs = true;
        }
    }

    /// Returns true if time goes back rarely enough for clock steps.
    pub(super) fn may_have_steps(&self) -> bool {
        (2..=ClockStep::MAX_CLOCK_STEPS + 1).contains(&self.runs.len()) && !self.too_many_runs
    }

    pub(super) fn settle_clock(&mut self, bytes: &[u8], interfaces: &Interfaces) -> Vec<StepBack> {
        let descents = std::mem::take(&mut self.descents);
        if !self.may_have_steps() {
            return Vec::new();
        }
        let steps = clocks::settle(bytes, interfaces, &mut self.runs, &descents);
        if steps.len() == descents.len() {
            self.descending = 0;
        }
        if let (Some(run), Some(last)) = (self.runs.last(), self.last.as_mut()) {
            *last = (*last).max(self.previous.saturating_add(run.shift));
        }
        steps
    }

    pub(super) fn plan(&self) -> ReorderStrategy {
        match (self.descending, self.reach.exceeded) {
            (0, _) if self.runs.len() < 2 => ReorderStrategy::Straight,
            (0, _) => ReorderStrategy::Merge,
            _ if !self.too_many_runs && self.runs.len() <= FEW_RUNS => ReorderStrategy::Merge,
            (_, false) => ReorderStrategy::Window,
            _ if !self.too_many_runs => ReorderStrategy::Merge,
            _ => ReorderStrategy::BestEffort,
        }
    }

    /// Returns the strategy for an input that can't be read from the middle.
    pub(super) fn plan_for_stream(&self) -> ReorderStrategy {
        match self.plan() {
            ReorderStrategy::Merge if !self.reach.exceeded => ReorderStrategy::Window,
            other => other,
        }
    }

    /// Surveys a whole file in memory. Calls `release` after each portion that has been read.
    pub(super) fn read_bytes(
        &mut self,
        file: UnreadCapture<'_>,
        interfaces: &mut Interfaces,
        sides: Option<&ClockCorrection>,
        mut release: impl FnMut(usize),
    ) {
        let UnreadCapture { bytes, mut format, start: mut position } = file;
        let mut warmer = Warmer::default();
        loop {
            let window = bytes.get(position..).unwrap_or_default();
            warmer.at(position, bytes);
            let (length, passed) = match format.step(interfaces, window) {
                ParseStep::Packet(mut record, length) => {
                    if let Some(sides) = sides {
                        sides.correct(&mut record, window);
                    }
                    self.packet(&record, length, position as u64, &format);
                    (length, None)
                }
                ParseStep::Skip { length, what } => (length, Some(what)),
                ParseStep::More(_) if window.is_empty() => break,
                ParseStep::More(_) => {
                    self.damaged(ENDS_INSIDE.to_owned(), position as u64);
                    break;
                }
                ParseStep::Stop(reason) => {
                    self.damaged(reason, position as u64);
                    break;
                }
            };
            if length > window.len() {
                self.damaged(ENDS_INSIDE.to_owned(), position as u64);
                break;
            }
            passed.into_iter().for_each(|what| self.passed(what));
            position += length;
            release(position);
        }
        self.length = position as u64;
    }

    pub(super) fn read_stream(
        &mut self,
        stream: &mut InputStream,
        mut format: CaptureParser,
        interfaces: &mut Interfaces,
    ) {
        loop {
            match stream::next_record(stream, &mut format, interfaces, None) {
                RecordPoll::Packet(record, length) => {
                    self.packet(&record, length, stream.offset(), &format);
                    stream.consume(length);
                }
                RecordPoll::Passed(what) => self.passed(what),
                RecordPoll::Idle => {}
                RecordPoll::End(reason) => {
                    if let Some((reason, offset)) = reason {
                        self.damaged(reason, offset);
                    }
                    self.length = stream.offset();
                    return;
                }
            }
        }
    }

    pub(super) fn passed(&mut self, what: SkipReason) {
        match what {
            SkipReason::Description => {}
            SkipReason::Numbered => self.numbered += 1,
            SkipReason::Unreadable => self.unreadable += 1,
        }
    }

    pub(super) fn damaged(&mut self, reason: String, offset: u64) {
        self.damage = Some((reason, self.packets + self.numbered + 1, offset));
    }
}
