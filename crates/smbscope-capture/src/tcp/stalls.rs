//! Bytes that did not reach their receiver, judged by its acknowledgments: they stay at one position although later
//! bytes arrived (RFC 5681 §2), or carry SACK blocks for later bytes (RFC 2018).

use super::ring::Ring;
use crate::segment::TcpSegment;
use smbscope_model::Timestamp;

const RECENT_STALLS: usize = 32;

/// Range of the stream of which at least a part reached the receiver late.
#[derive(Debug, Clone, Copy)]
struct AckStall {
    from: u64,
    to: u64,
    until: Timestamp,
}

/// Periods in which the acknowledgments of one direction did not advance.
#[derive(Debug, Default)]
pub(super) struct Stalls {
    /// Start of the bytes the receiver is missing now.
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

    /// Returns the time by which the receiver certainly had all of `start..end`, if it was missing bytes there;
    /// `i64::MAX` if it still is.
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
