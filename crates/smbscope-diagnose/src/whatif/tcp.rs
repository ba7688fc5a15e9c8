//! TCP model of one direction: when bytes of a message leave and arrive under slow start, pacing and the window.
//!
//! RFC 5681 (slow start), RFC 6928 (initial window), RFC 2861 (restart after an idle timeout). Losses are not modelled.

use std::collections::VecDeque;

/// Payload of a full segment on Ethernet with timestamps.
pub(super) const SEGMENT: f64 = 1_448.0;
/// RFC 6928.
pub(super) const INITIAL_WINDOW: f64 = 10.0 * SEGMENT;
/// Approximate Linux default limit of the receive buffer (`tcp_rmem`). Windows scales its window up to 16 MB.
const WINDOW_MAX: f64 = 6e6;
/// Minimum retransmission timeout of Linux. An idle connection halves its window after each timeout.
const TIMEOUT_LEAST: i64 = 200_000_000;
const PIECES: f64 = 8.0;

#[derive(Debug, Clone, Copy)]
pub(super) struct Behavior {
    /// Bytes of a new connection's window.
    pub(super) initial: f64,
    /// Windows are open unless the capture shows that they can't be: on connections that began before it, and after idle
    /// times.
    pub(super) is_open: bool,
    pub(super) pacing: f64,
    /// Window growth per acknowledged byte: 1, or less if slow start ends early.
    pub(super) growth: f64,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TransferLimits {
    /// ns per byte: bandwidth of the path and of both hosts.
    pub(super) byte: f64,
    pub(super) trip: i64,
}

#[derive(Debug, Clone)]
pub(super) struct Sender {
    behavior: Behavior,
    window: f64,
    limit: f64,
    in_flight: VecDeque<(i64, f64)>,
    outstanding: f64,
    used: f64,
    sent: i64,
    free: i64,
}

impl Sender {
    /// Creates a sender. `filled` is a receive window that limited the connection in the capture.
    pub(super) fn new(behavior: Behavior, filled: Option<u32>, is_new: bool) -> Sender {
        let limit = filled.map_or(WINDOW_MAX, |filled| f64::from(filled).max(INITIAL_WINDOW));
        Sender {
            behavior,
            window: if behavior.is_open && !is_new { limit } else { behavior.initial.min(limit) },
            limit,
            in_flight: VecDeque::new(),
            outstanding: 0.0,
            used: 0.0,
            sent: i64::MIN,
            free: i64::MIN,
        }
    }

    pub(super) fn free(&self) -> i64 {
        self.free
    }

    pub(super) fn ends_at(&mut self, time: i64) {
        self.free = self.free.max(time);
        self.sent = self.sent.max(time);
    }

    pub(super) fn transfer(&mut self, ready: i64, bytes: u64, limits: TransferLimits) -> (i64, i64) {
        let first = ready.max(self.free);
        let mut now = first;
        self.acknowledge(now);
        self.restart(now, limits.trip);
        // The clock starts with the first packet, so only the others take time.
        let mut left = bytes as f64;
        let mut timed = (left - SEGMENT).max(0.0) / left.max(1.0);
        if bytes as f64 <= SEGMENT {
            timed = 0.0;
        }
        while left > 0.0 {
            let piece = left.min((self.window / PIECES).max(SEGMENT));
            while self.outstanding + piece > self.window {
                let Some((acked, bytes)) = self.in_flight.pop_front() else { break };
                now = now.max(acked);
                self.grow(bytes);
            }
            let paced = self.behavior.pacing * limits.trip as f64 / self.window;
            now = now.saturating_add((piece * timed * limits.byte.max(paced)) as i64);
            self.in_flight.push_back((now.saturating_add(limits.trip), piece));
            self.outstanding += piece;
            self.used = self.used.max(self.outstanding);
            left -= piece;
        }
        self.sent = now;
        self.free = now;
        (first, now)
    }

    fn acknowledge(&mut self, now: i64) {
        while let Some((_, bytes)) = self.in_flight.front().copied().filter(|(acked, _)| *acked <= now) {
            self.in_flight.pop_front();
            self.grow(bytes);
        }
        if self.in_flight.is_empty() {
            self.outstanding = 0.0;
            self.used = 0.0;
        }
    }

    /// Grows the window by the acknowledged bytes, unless less than half of it was in use.
    fn grow(&mut self, acknowledged: f64) {
        self.outstanding = (self.outstanding - acknowledged).max(0.0);
        if self.window < 2.0 * self.used {
            self.window = (self.window + acknowledged * self.behavior.growth).min(self.limit);
        }
    }

    fn restart(&mut self, now: i64, trip: i64) {
        if self.behavior.is_open || !self.in_flight.is_empty() || self.sent == i64::MIN {
            return;
        }
        let timeout = TIMEOUT_LEAST.saturating_add(trip);
        let halvings = now.saturating_sub(self.sent).max(0) / timeout;
        let least = INITIAL_WINDOW.min(self.limit);
        self.window = (self.window / 2f64.powi(halvings.min(64) as i32)).max(least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const PLAIN: Behavior = Behavior { initial: INITIAL_WINDOW, is_open: false, pacing: 0.0, growth: 1.0 };
    const OPEN: Behavior = Behavior { is_open: true, ..PLAIN };

    fn after(bytes: u64, sender: &mut Sender, ready: i64) -> i64 {
        let (first, last) = sender.transfer(ready * MS, bytes, TransferLimits { byte: 0.0, trip: 10 * MS });
        (last - first) / MS
    }

    #[test]
    fn a_window_doubles_each_round_trip() {
        // Windows of 10, 20, 40 and 80 segments carry 150: 200 segments need four acknowledged windows.
        let mut sender = Sender::new(PLAIN, None, true);
        assert_eq!(after(200 * 1_448, &mut sender, 0), 40);
        // By now the window exceeds 160 segments: no round trip is needed.
        assert_eq!(after(100 * 1_448, &mut sender, 60), 0);
        // Three timeouts of 210 ms leave an eighth of the window: 20 to 30 segments, so 100 need two more windows.
        assert_eq!(after(100 * 1_448, &mut sender, 60 + 3 * 210), 20);
    }

    #[test]
    fn a_filled_window_limits_each_round_trip() {
        // 65,536 bytes per round trip: 262,144 bytes leave in four windows, the first one at once.
        let mut sender = Sender::new(OPEN, Some(65_536), false);
        assert_eq!(after(262_144, &mut sender, 0), 30);
    }

    #[test]
    fn bandwidth_and_window_do_not_add_up() {
        // 289.6 kB at 100 ns per byte take 29 ms, while acknowledgments arrive.
        let mut sender = Sender::new(OPEN, None, false);
        let (first, last) = sender.transfer(0, 289_600, TransferLimits { byte: 100.0, trip: 10 * MS });
        assert_eq!(((last - first) / MS, sender.free() / MS), (28, 28));
    }
}
