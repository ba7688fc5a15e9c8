//! What a walk over the record headers of a capture finds out: how many packets, when, and in which order.
//!
//! Packets are analysed in time order. A survey tells how to get there without a table of packets: the file falls
//! into runs of ascending timestamps, and either a bounded window or a merge of the runs puts it in order.

use super::clock::{self, NEIGHBOURS, StepBack};
use super::format::CaptureParser;
use super::pcapng::Interfaces;
use super::record::{PacketRecord, ParseStep, SkipReason};
use super::runs::{Descent, SortedRun};
use super::sides::ClockCorrection;
use super::stream::{self, ENDS_INSIDE, InputStream, RecordPoll};
use super::warm::Warmer;
use smbscope_model::{ClockStep, Nanos};

/// Packets that a reorder window holds, and bytes of their records.
pub(super) const WINDOW_PACKETS: usize = 4096;
pub(super) const WINDOW_BYTES: usize = 16 << 20;
/// With no more runs than this, merging them beats holding packets in a window.
const FEW_RUNS: usize = 1024;

/// How to read a capture so that its packets come in time order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReorderStrategy {
    /// They stand in order.
    Straight,
    /// A window of [`WINDOW_PACKETS`] puts them in order.
    Window,
    /// The runs are to be merged.
    Merge,
    /// Nothing bounded puts them in order; the window does what it can.
    BestEffort,
}

/// The findings.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub(super) packets: u64,
    pub(super) first: Option<i64>,
    pub(super) last: Option<i64>,
    /// Packets with a timestamp below that of a packet in front of them.
    pub(super) descending: u64,
    /// Records that are no packets but counted as such by Wireshark.
    pub(super) numbered: u64,
    /// Records skipped because they could not be read.
    pub(super) unreadable: u64,
    /// Why the walk ended before the end of the file: reason, packet number, offset.
    pub(super) damage: Option<(String, u64, u64)>,
    /// Offset of the end of what was read.
    pub(super) length: u64,
    pub(super) runs: Vec<SortedRun>,
    /// Where time goes back; none once there are more places than clock steps are looked for.
    pub(super) descents: Vec<Descent>,
    pub(super) ticks: Ticks,
    recent: RecentOffsets,
    max_runs: usize,
    too_many_runs: bool,
    previous: i64,
    reach: WindowReach,
}

/// Packets that a statement about the smallest step of a clock needs.
const TICKS_MIN: u64 = 16;
/// A clock is coarse whose smallest step is so long.
const COARSE_NS: i64 = 100_000;
/// And which gives one in so many packets the time of the packet before it.
const SAME_TIME: u64 = 4;

/// Steps of the clock from packet to packet.
#[derive(Debug)]
pub(super) struct Ticks {
    packets: u64,
    /// Packets with the timestamp of the packet before.
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

    /// The smallest step of a coarse clock: zero if it stands still.
    pub(super) fn coarse(&self) -> Option<Nanos> {
        let is_told = self.packets >= TICKS_MIN && self.same * SAME_TIME >= self.packets;
        let step = Nanos(if self.smallest == i64::MAX { 0 } else { self.smallest });
        (is_told && self.smallest >= COARSE_NS).then_some(step)
    }
}

/// Offsets of the newest packets.
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

/// Tells whether a reorder window would deliver every packet in order. It does when no packet is older than any packet
/// that a full window has pushed out by then, which is one of those in front of the last window's worth of packets. The
/// highest timestamp there is kept at marks half a window apart.
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
    /// A survey that remembers at most `max_runs` runs; with none it only counts.
    pub(super) fn new(max_runs: usize) -> Survey {
        Survey { max_runs, ..Survey::default() }
    }

    /// Enters a packet. `format` is the parser's state behind its record: it differs from that in front of it only in
    /// the time that the next packet without a timestamp would get, and a run never starts with such a packet.
    #[inline]
    pub(super) fn packet(&mut self, record: &PacketRecord, length: usize, position: u64, format: &CaptureParser) {
        let time = record.time;
        self.packets += 1;
        let highest = self.last.unwrap_or(i64::MIN);
        if time < self.previous || self.packets == 1 {
            self.begin_run(time, position, format);
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

    /// Enters a packet of a file that is expected to be in order; once it is not, the survey has to be made.
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

    fn begin_run(&mut self, time: i64, position: u64, format: &CaptureParser) {
        if self.runs.len() < self.max_runs {
            if self.packets > 1 && self.runs.len() <= ClockStep::MAX_CLOCK_STEPS {
                let before = self.recent.in_order();
                self.descents.push(Descent { run: self.runs.len(), time_before: self.previous, before });
            }
            self.runs.push(SortedRun {
                position,
                number: self.packets + self.numbered,
                time,
                format: *format,
                shift: 0,
            });
        } else {
            self.too_many_runs = true;
        }
    }

    /// Whether so few places go back that the clock may have stepped there.
    pub(super) fn may_have_steps(&self) -> bool {
        (2..=ClockStep::MAX_CLOCK_STEPS + 1).contains(&self.runs.len()) && !self.too_many_runs
    }

    /// Looks for clock steps in a file that is in memory, and moves the times behind them.
    pub(super) fn settle_clock(&mut self, bytes: &[u8], interfaces: &Interfaces) -> Vec<StepBack> {
        let descents = std::mem::take(&mut self.descents);
        if !self.may_have_steps() {
            return Vec::new();
        }
        let steps = clock::settle(bytes, interfaces, &mut self.runs, &descents);
        if steps.len() == descents.len() {
            self.descending = 0;
        }
        if let (Some(run), Some(last)) = (self.runs.last(), self.last.as_mut()) {
            *last = (*last).max(self.previous + run.shift);
        }
        steps
    }

    /// How to read the capture.
    pub(super) fn plan(&self) -> ReorderStrategy {
        match (self.descending, self.reach.exceeded) {
            (0, _) if self.runs.len() < 2 => ReorderStrategy::Straight,
            // Only clock steps, which the runs tell.
            (0, _) => ReorderStrategy::Merge,
            _ if !self.too_many_runs && self.runs.len() <= FEW_RUNS => ReorderStrategy::Merge,
            (_, false) => ReorderStrategy::Window,
            _ if !self.too_many_runs => ReorderStrategy::Merge,
            _ => ReorderStrategy::BestEffort,
        }
    }

    /// How to read it when it can't be read from the middle.
    pub(super) fn plan_for_stream(&self) -> ReorderStrategy {
        match self.plan() {
            ReorderStrategy::Merge if !self.reach.exceeded => ReorderStrategy::Window,
            other => other,
        }
    }

    /// Walks over a whole file in memory. `release` is told after every stretch of the file that has been read.
    pub(super) fn of_bytes(
        &mut self,
        bytes: &[u8],
        mut format: CaptureParser,
        start: usize,
        interfaces: &mut Interfaces,
        sides: Option<&ClockCorrection>,
        mut release: impl FnMut(usize),
    ) {
        let mut position = start;
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

    /// Walks over a stream to its end.
    pub(super) fn of_stream(
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
                    if let Some(reason) = reason {
                        self.damaged(reason, stream.offset());
                    }
                    self.length = stream.offset();
                    return;
                }
            }
        }
    }

    /// Enters a record that was skipped.
    pub(super) fn passed(&mut self, what: SkipReason) {
        match what {
            SkipReason::Description => {}
            SkipReason::Numbered => self.numbered += 1,
            SkipReason::Unreadable => self.unreadable += 1,
        }
    }

    /// Notes why the file can't be read any further.
    pub(super) fn damaged(&mut self, reason: String, offset: u64) {
        self.damage = Some((reason, self.packets + self.numbered + 1, offset));
    }
}
