//! Bytes that did not reach their receiver, as its acknowledgments say: it stays at one position though later bytes
//! reached it (RFC 5681 section 2), or names these (RFC 2018).

use super::ring::Ring;
use crate::segment::TcpSegment;
use smbscope_model::Timestamp;

/// Stretches of a stream remembered that reached the receiver late.
const RECENT_STALLS: usize = 32;

/// A stretch that reached the receiver late: some of it, or all.
#[derive(Debug, Clone, Copy)]
struct AckStall {
    from: u64,
    to: u64,
    until: Timestamp,
}

/// Where the acknowledgments of one direction stood still.
#[derive(Debug, Default)]
pub(super) struct Stalls {
    /// What the receiver misses now.
    missing: Option<u64>,
    ended: Ring<AckStall, RECENT_STALLS>,
    /// Of the last acknowledgment: one that only opens the window repeats the position, too.
    window: u16,
}

impl Stalls {
    /// What the list takes.
    #[inline]
    pub(super) fn footprint(&self) -> usize {
        self.ended.footprint()
    }

    /// The receiver acknowledged everything before `position`, more than ever before.
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

    /// The receiver acknowledged no more than before; `sent_more` says that more had been sent.
    #[inline(never)]
    pub(super) fn stayed(&mut self, position: u64, sent_more: bool, segment: &TcpSegment<'_>) {
        let same_window = std::mem::replace(&mut self.window, segment.window) == segment.window;
        let only_repeats = segment.payload_length == 0 && !segment.flags.syn() && !segment.flags.fin() && same_window;
        if segment.names_later_bytes || (only_repeats && sent_more) {
            self.missing = Some(position);
        }
    }

    /// When the receiver had all of `start..end` for sure, where it missed bytes there; the end of time if never.
    pub(super) fn missed_until(&self, start: u64, end: u64) -> Option<Timestamp> {
        let missing = self.missing.filter(|from| *from < end).map(|_| Timestamp(i64::MAX));
        let late = self.ended.iter().filter(|stall| stall.from < end && start < stall.to);
        missing.max(late.map(|stall| stall.until).max())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::{TcpFlags, WindowScale};
    use smbscope_model::{PacketRef, Stamp};
    use std::net::SocketAddr;

    /// An acknowledgment without data.
    fn at(time: i64, names_later_bytes: bool) -> TcpSegment<'static> {
        let stamp = Stamp { time: Timestamp(time), packet: PacketRef::default() };
        TcpSegment {
            ordinal: 0,
            first: stamp,
            stamp,
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
