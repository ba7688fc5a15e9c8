//! Properties of an emulated link, and delay and bandwidth of one direction. Time is an argument.

use crate::LabServerSettings;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Maximum bytes in flight per direction of a connection; more stays with the sender.
const ROOM: usize = 16 << 20;
/// Time by which the link accepts bytes early, so that it is not idle while a thread wakes up.
const AHEAD: Duration = Duration::from_millis(1);
const PIECE_MAX: usize = 64 << 10;
/// Payload of an Ethernet frame.
const PIECE_MIN: usize = 1460;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate(u64);

impl Rate {
    pub(crate) fn from_bits(bits: u64) -> Rate {
        Rate((bits / 8).max(1))
    }

    fn time_for(self, bytes: usize) -> Duration {
        Duration::from_secs_f64(bytes as f64 / self.0 as f64)
    }
}

/// One direction of the link, shared by all connections: bytes pass one after the other.
#[derive(Debug)]
pub(crate) struct Carrier {
    rate: Rate,
    free_at: Option<Instant>,
}

impl Carrier {
    pub(crate) fn new(rate: Rate) -> Carrier {
        Carrier { rate, free_at: None }
    }

    /// Returns the time until which bytes stay with the sender, so that no connection queues more than its share.
    pub(crate) fn takes_at(&self, now: Instant) -> Instant {
        self.free_at.and_then(|free| free.checked_sub(AHEAD)).map_or(now, |time| time.max(now))
    }

    pub(crate) fn backlog(&self, now: Instant) -> Duration {
        self.free_at.map_or(Duration::ZERO, |free| free.saturating_duration_since(now))
    }

    pub(crate) fn time_for(&self, bytes: usize) -> Duration {
        self.rate.time_for(bytes)
    }

    /// Accepts bytes. Returns the time at which the last one has left.
    pub(crate) fn take(&mut self, now: Instant, bytes: usize) -> Instant {
        let start = self.free_at.map_or(now, |free| free.max(now));
        let end = start + self.rate.time_for(bytes);
        self.free_at = Some(end);
        end
    }

    /// Returns the bytes to accept at once: half a millisecond's worth, so that connections alternate.
    pub(crate) fn piece(&self) -> usize {
        ((self.rate.0 / 2000) as usize).clamp(PIECE_MIN, PIECE_MAX)
    }
}

#[derive(Debug)]
pub(crate) struct DelayLine {
    delay: Duration,
    pieces: VecDeque<DelayedChunk>,
    bytes: usize,
    end: Option<Instant>,
}

#[derive(Debug)]
struct DelayedChunk {
    due: Instant,
    data: Vec<u8>,
    done: usize,
}

impl DelayLine {
    pub(crate) fn new(delay: Duration) -> DelayLine {
        DelayLine { delay, pieces: VecDeque::new(), bytes: 0, end: None }
    }

    pub(crate) fn piece(carrier: Option<&Carrier>) -> usize {
        carrier.map_or(PIECE_MAX, Carrier::piece)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.end.is_none() && self.bytes < ROOM
    }

    pub(crate) fn push(&mut self, left: Instant, data: &[u8]) {
        self.bytes += data.len();
        self.pieces.push_back(DelayedChunk { due: left + self.delay, data: data.to_vec(), done: 0 });
    }

    pub(crate) fn finish(&mut self, now: Instant) {
        let last = self.pieces.back().map_or(now, |piece| piece.due);
        self.end.get_or_insert(last.max(now + self.delay));
    }

    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.pieces.front().map(|piece| piece.due).or(self.end)
    }

    pub(crate) fn arrived(&self, now: Instant) -> Option<&[u8]> {
        let piece = self.pieces.front().filter(|piece| piece.due <= now)?;
        piece.data.get(piece.done..)
    }

    pub(crate) fn delivered(&mut self, bytes: usize) {
        self.bytes -= bytes;
        if let Some(piece) = self.pieces.front_mut() {
            piece.done += bytes;
            if piece.done >= piece.data.len() {
                self.pieces.pop_front();
            }
        }
    }

    pub(crate) fn has_ended(&self, now: Instant) -> bool {
        self.pieces.is_empty() && self.end.is_some_and(|end| end <= now)
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LinkImpairments {
    pub(crate) delay: Duration,
    pub(crate) rate: Option<Rate>,
    /// Fraction of packets lost in each direction. A proxy can't lose any.
    pub(crate) loss: f64,
}

impl LinkImpairments {
    #[cfg(target_os = "linux")]
    pub(super) fn is_plain(&self) -> bool {
        *self == LinkImpairments { delay: Duration::ZERO, rate: None, loss: 0.0 }
    }

    pub(crate) fn from_settings(settings: &LabServerSettings) -> Option<LinkImpairments> {
        let LabServerSettings { delay, bandwidth, loss, .. } = settings;
        let is_slow = delay.is_some() || bandwidth.is_some() || loss.is_some();
        is_slow.then(|| LinkImpairments {
            delay: delay.unwrap_or_default(),
            rate: bandwidth.map(Rate::from_bits),
            loss: loss.unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn bytes_arrive_a_delay_after_they_left_in_their_order() {
        let start = Instant::now();
        let mut lane = DelayLine::new(5 * MS);
        lane.push(start, b"ab");
        lane.push(start + MS, b"c");
        assert_eq!(lane.next_due(), Some(start + 5 * MS));
        assert_eq!(lane.arrived(start + 4 * MS), None);
        assert_eq!(lane.arrived(start + 5 * MS), Some(&b"ab"[..]));
        lane.delivered(1);
        assert_eq!(lane.arrived(start + 5 * MS), Some(&b"b"[..]));
        lane.delivered(1);
        assert_eq!(lane.arrived(start + 5 * MS), None);
        assert_eq!(lane.arrived(start + 6 * MS), Some(&b"c"[..]));
    }

    #[test]
    fn the_end_arrives_after_everything_else() {
        let start = Instant::now();
        let mut lane = DelayLine::new(5 * MS);
        lane.push(start + 3 * MS, b"a");
        lane.finish(start);
        assert!(!lane.is_open());
        assert!(!lane.has_ended(start + 8 * MS), "a byte is in flight");
        lane.delivered(1);
        assert!(!lane.has_ended(start + 7 * MS) && lane.has_ended(start + 8 * MS));
    }

    #[test]
    fn a_link_carries_one_byte_after_the_other() {
        let start = Instant::now();
        let mut carrier = Carrier::new(Rate::from_bits(8_000_000));
        assert_eq!(carrier.take(start, 1000), start + MS);
        assert_eq!(carrier.take(start, 2000), start + 3 * MS);
        assert_eq!(carrier.takes_at(start), start + 3 * MS - AHEAD);
        assert_eq!(carrier.take(start + 10 * MS, 1000), start + 11 * MS);
    }

    #[test]
    fn a_sender_without_a_receiver_is_stopped() {
        let mut lane = DelayLine::new(MS);
        for _ in 0..ROOM / PIECE_MAX {
            assert!(lane.is_open());
            lane.push(Instant::now(), &[0; PIECE_MAX]);
        }
        assert!(!lane.is_open());
        lane.delivered(PIECE_MAX);
        assert!(lane.is_open());
    }
}
