//! Cost of losses: [`Stalls`] finds bytes that reached the receiver late, [`Resent`] counts retransmissions and the
//! time that the stream waited for them, [`Outages`] are periods without any reply.
//!
//! A receiver misses bytes if its acknowledgments stay at one position although later bytes arrived (RFC 5681 §2), or
//! if they carry SACK blocks for later bytes (RFC 2018). A D-SACK (RFC 2883) arrives one round trip after the copy that
//! it reports as unneeded, so the latest retransmissions are remembered. In an outage, one side retransmits and
//! receives nothing at all.

use super::buffers::Ring;
use crate::segment::TcpSegment;
use smbscope_model::{FlowDirection, Nanos, Outage, Timestamp};
use std::collections::VecDeque;

/// Late ranges remembered per direction.
const RECENT_STALLS: usize = 32;

#[derive(Debug, Clone, Copy)]
struct AckStall {
    from: u64,
    to: u64,
    until: Timestamp,
}

/// Periods in which the acknowledgments of one direction did not advance.
#[derive(Debug, Clone, Default)]
pub(super) struct Stalls {
    missing: Option<u64>,
    ended: Ring<AckStall, RECENT_STALLS>,
    /// Window of the last acknowledgment, to recognise window updates, which repeat the position as well.
    window: u16,
}

impl Stalls {
    #[inline]
    pub(super) fn footprint(&self) -> usize {
        self.ended.footprint()
    }

    #[inline]
    pub(super) fn moved_on(&mut self, position: u64, segment: &TcpSegment<'_>) {
        self.window = segment.window;
        if self.missing.is_some() || segment.names_later_bytes {
            self.end(position, segment);
        }
    }

    #[cold]
    fn end(&mut self, position: u64, segment: &TcpSegment<'_>) {
        if let Some(from) = self.missing.take() {
            self.ended.push(AckStall { from, to: position, until: segment.stamp.time });
        }
        self.missing = segment.names_later_bytes.then_some(position);
    }

    /// Handles an acknowledgment that did not advance. `sent_more` is true if later data had been sent.
    #[inline(never)]
    pub(super) fn stayed(&mut self, position: u64, sent_more: bool, segment: &TcpSegment<'_>) {
        let same_window = std::mem::replace(&mut self.window, segment.window) == segment.window;
        let only_repeats = segment.payload_length == 0 && !segment.flags.syn() && !segment.flags.fin() && same_window;
        if segment.names_later_bytes || (only_repeats && sent_more) {
            self.missing = Some(position);
        }
    }

    /// Returns the time when the receiver certainly had all of `start..end` after missing some; `i64::MAX` if not yet.
    pub(super) fn missed_until(&self, start: u64, end: u64) -> Option<Timestamp> {
        let missing = self.missing.filter(|from| *from < end).map(|_| Timestamp(i64::MAX));
        let late = self.ended.iter().filter(|stall| stall.from < end && start < stall.to);
        missing.max(late.map(|stall| stall.until).max())
    }
}

const SHORTEST: Nanos = Nanos(1_000_000_000);
/// Fewest retransmissions of the same data that make an outage.
const FEWEST_RETRIES: u32 = 2;
/// A sender with outstanding data doubles its timeout (RFC 6298 §5.5). A sender that was silent for more than this many
/// times its last wait before the other side was heard again had nothing outstanding: the capture missed the
/// acknowledgment.
const LONGEST_BACKOFF: i64 = 3;
/// Lower bound for the last wait in this comparison, because the first waits are short.
const LEAST_WAIT: i64 = 1_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OutageCandidate {
    from: Timestamp,
    position: u64,
    retries: u32,
    last_retry: Timestamp,
    wait: Nanos,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Outages {
    silences: [Option<OutageCandidate>; 2],
    ended: Vec<Outage>,
}

impl Outages {
    pub(super) fn retried(&mut self, direction: FlowDirection, position: u64, from: Timestamp, time: Timestamp) {
        match &mut self.silences[direction.index()] {
            Some(silence) if position <= silence.position => {
                silence.position = position;
                silence.retries += 1;
                silence.wait = time - silence.last_retry;
                silence.last_retry = time;
            }
            // Retransmission of later data in the same flight.
            Some(_) => {}
            none => *none = Some(OutageCandidate { from, position, retries: 1, last_retry: time, wait: time - from }),
        }
    }

    pub(super) fn heard(&mut self, direction: FlowDirection, time: Timestamp) {
        self.end(direction.reverse(), time, true);
    }

    pub(super) fn are_over(&self) -> bool {
        self.silences == [None, None]
    }

    pub(super) fn finish(mut self, last: Timestamp) -> Vec<Outage> {
        FlowDirection::BOTH.into_iter().for_each(|direction| self.end(direction, last, false));
        self.ended.sort_by_key(|outage| (outage.from, outage.to));
        self.ended
    }

    fn end(&mut self, direction: FlowDirection, to: Timestamp, recovered: bool) {
        let Some(OutageCandidate { from, retries, last_retry, wait, .. }) = self.silences[direction.index()].take()
        else {
            return;
        };
        let retried_to_the_end = !recovered || (to - last_retry).0 / LONGEST_BACKOFF <= wait.0.max(LEAST_WAIT);
        if retries < FEWEST_RETRIES || to - from < SHORTEST || !retried_to_the_end {
            return;
        }
        self.ended.push(Outage { from, to, retries, recovered });
        if self.ended.len() > Outage::MAX_LISTED {
            self.ended.sort_by_key(|outage| (std::cmp::Reverse(outage.to - outage.from), outage.from));
            self.ended.pop();
        }
    }
}

/// Retransmissions that a D-SACK can still name.
const MAX_RESENT: usize = 64;
/// Retransmissions per direction whose time is kept, to compare captures at two points.
const MAX_TIMES: usize = 1 << 16;
/// Stalls that a later one can still overlap.
const MAX_DELAYS: usize = 64;

#[derive(Debug, Clone, Copy)]
pub(super) struct ResentSegment {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) since: Option<Timestamp>,
    pub(super) time: Timestamp,
    pub(super) seen_once: bool,
    pub(super) needless: bool,
    /// Position up to which D-SACKs have reported it: a large segment is reported in pieces.
    pub(super) reported_to: u64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Resent {
    recent: VecDeque<ResentSegment>,
    delays: VecDeque<(Timestamp, Timestamp)>,
    delayed: Nanos,
    times: Vec<Timestamp>,
}

impl Resent {
    pub(super) fn footprint(&self) -> usize {
        size_of::<Resent>()
            + self.recent.capacity() * size_of::<ResentSegment>()
            + self.delays.capacity() * size_of::<(Timestamp, Timestamp)>()
            + self.times.capacity() * size_of::<Timestamp>()
    }

    pub(super) fn push(&mut self, segment: ResentSegment) {
        if !segment.seen_once && self.times.len() < MAX_TIMES {
            self.times.push(segment.time);
        }
        if self.recent.len() == MAX_RESENT
            && let Some(oldest) = self.recent.pop_front()
        {
            self.add_delay(&oldest);
        }
        self.recent.push_back(segment);
    }

    /// Marks the newest unreported retransmission of these bytes as unneeded, and returns it.
    pub(super) fn reported_twice(&mut self, start: u64, end: u64) -> Option<ResentSegment> {
        let is_reported =
            |known: &&mut ResentSegment| known.reported_to <= start && known.start < end && start < known.end;
        let known = self.recent.iter_mut().rev().find(is_reported)?;
        known.reported_to = end;
        let was_known = std::mem::replace(&mut known.needless, true);
        (!was_known).then_some(*known)
    }

    /// Returns the times of the retransmissions with both copies captured.
    pub(super) fn take_times(&mut self) -> Vec<Timestamp> {
        std::mem::take(&mut self.times)
    }

    pub(super) fn delay(mut self) -> Nanos {
        while let Some(oldest) = self.recent.pop_front() {
            self.add_delay(&oldest);
        }
        self.delays.iter().fold(self.delayed, |sum, (from, to)| Nanos(sum.0.saturating_add((*to - *from).0)))
    }

    fn add_delay(&mut self, segment: &ResentSegment) {
        let Some(mut from) = segment.since.filter(|since| !segment.needless && *since < segment.time) else { return };
        let mut to = segment.time;
        let first = self.delays.partition_point(|(_, end)| *end < from);
        let behind = self.delays.partition_point(|(start, _)| *start <= to);
        for (start, end) in self.delays.drain(first..behind.max(first)) {
            (from, to) = (from.min(start), to.max(end));
        }
        self.delays.insert(first, (from, to));
        if self.delays.len() > MAX_DELAYS
            && let Some((from, to)) = self.delays.pop_front()
        {
            self.delayed = Nanos(self.delayed.0.saturating_add((to - from).0));
        }
    }
}

#[cfg(test)]
mod stalls_tests {
    use super::*;
    use crate::segment::{TcpFlags, WindowScale};
    use smbscope_model::{PacketRef, Stamp};
    use std::net::SocketAddr;

    fn at(time: i64, names_later_bytes: bool) -> TcpSegment<'static> {
        let stamp = Stamp { time: Timestamp(time), packet: PacketRef::default() };
        TcpSegment {
            ordinal: 0,
            first: stamp,
            stamp,
            origin: Default::default(),
            source: SocketAddr::from(([10, 0, 0, 1], 50_000)),
            destination: SocketAddr::from(([10, 0, 0, 2], 445)),
            sequence: 0,
            acknowledgment: 0,
            flags: TcpFlags(TcpFlags::ACK),
            window: 100,
            window_scale: WindowScale::Unknown,
            timestamp_value: None,
            names_later_bytes,
            duplicate_sack: None,
            ip_id: None,
            hops_left: 64,
            payload: &[],
            payload_length: 0,
        }
    }

    #[test]
    fn what_was_missing_is_known_until_more_is_acknowledged() {
        let mut stalls = Stalls::default();
        stalls.moved_on(10, &at(1, false));
        assert_eq!(stalls.missed_until(10, 20), None);
        stalls.stayed(10, false, &at(2, false));
        assert_eq!(stalls.missed_until(10, 20), None, "nothing more was sent: it answers a keep-alive");
        stalls.stayed(10, true, &at(3, false));
        assert_eq!(stalls.missed_until(10, 20), Some(Timestamp(i64::MAX)));
        stalls.moved_on(30, &at(4, false));
        assert_eq!(stalls.missed_until(10, 20), Some(Timestamp(4)));
        assert_eq!((stalls.missed_until(5, 10), stalls.missed_until(30, 40)), (None, None));
    }

    #[test]
    fn one_acknowledgment_that_names_later_bytes_is_enough() {
        let mut stalls = Stalls::default();
        stalls.moved_on(10, &at(1, true));
        stalls.moved_on(20, &at(2, true));
        stalls.moved_on(30, &at(3, false));
        assert_eq!(
            [10, 20, 30].map(|start| stalls.missed_until(start, start + 1)),
            [Some(Timestamp(2)), Some(Timestamp(3)), None]
        );
    }
}

#[cfg(test)]
mod resent_tests {
    use super::*;

    fn waited(from: i64, to: i64) -> ResentSegment {
        let (since, time) = (Some(Timestamp(from)), Timestamp(to));
        ResentSegment { start: 0, end: 10, since, time, seen_once: false, needless: false, reported_to: 0 }
    }

    fn delay(segments: &[ResentSegment]) -> i64 {
        let mut resent = Resent::default();
        segments.iter().for_each(|segment| resent.push(*segment));
        resent.delay().0
    }

    #[test]
    fn overlapping_delays_count_once() {
        assert_eq!(delay(&[waited(0, 10), waited(20, 30)]), 20);
        assert_eq!(delay(&[waited(0, 10), waited(5, 30)]), 30);
        assert_eq!(delay(&[waited(5, 10), waited(12, 14), waited(0, 30)]), 30);
        assert_eq!(delay(&[waited(0, 10), waited(10, 20), waited(40, 50), waited(15, 30)]), 40);
        assert_eq!(delay(&[waited(10, 10), waited(10, 5)]), 0);
    }

    #[test]
    fn delays_that_are_no_longer_listed_count() {
        let many: Vec<ResentSegment> = (0..1_000).map(|n| waited(n * 10, n * 10 + 3)).collect();
        assert_eq!(delay(&many), 3_000);
    }

    #[test]
    fn a_needless_copy_delays_nothing_and_is_reported_once() {
        let mut resent = Resent::default();
        resent.push(waited(0, 10));
        resent.push(waited(0, 30));
        let mut reported = |start, end| resent.reported_twice(start, end).map(|known| known.time.0);
        assert_eq!(reported(10, 20), None, "other bytes");
        assert_eq!([reported(0, 5), reported(5, 10)], [Some(30), None], "one copy in two pieces");
        assert_eq!([reported(0, 10), reported(0, 10)], [Some(10), None]);
        assert_eq!(resent.delay(), Nanos(0));
    }

    #[test]
    fn a_report_of_a_copy_that_is_known_as_needless_spares_the_one_before() {
        let mut resent = Resent::default();
        resent.push(waited(0, 10));
        resent.push(ResentSegment { needless: true, ..waited(0, 30) });
        assert!(resent.reported_twice(0, 10).is_none());
        assert_eq!(resent.delay(), Nanos(10));
    }
}
