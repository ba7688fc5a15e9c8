//! What the receiver's window does to the sender: closed, or filled as soon as it opens (RFC 9293 3.8.6).
//!
//! Only times in which the sender had more to send count. A closed window counts once the sender probes it, or sends soon after
//! it opens. For a window that is too small, one acknowledgment at a time is a sample: it allows data up to an edge, and a
//! sender that waits for it fills the window one trip from the capture point to the sender and back later, wherever
//! the capture point is. Then the time to the next acknowledgment that moves the edge was spent waiting for it, up to a round
//! trip. Without the scale of both SYNs (RFC 7323) an edge is not known, and nothing is sampled.

use crate::segment::{TcpSegment, WindowScale};
use smbscope_model::{Nanos, Timestamp};

/// A sender that waited for an open window uses it so soon, beside the trip to it and back.
const SOON: Nanos = Nanos(100_000_000);
/// With shorter round trips no window is too small, and samples would cost more than they tell.
const SAMPLED_ROUND_TRIP: Nanos = Nanos(1_000_000);
/// How late the edge may be reached beside the trip to the sender and back: this part of the whole round trip.
const LATE_PART: i64 = 8;
/// Bytes of a segment on the network at most: larger ones are cut by the card, and a sender that waits for a window leaves no
/// more of it than one segment.
const LARGEST_SEGMENT: u32 = 9_000;
/// The edge of no sample.
const NO_EDGE: u64 = u64::MAX;

/// Round trips of a flow, as known so far: from the capture point to the sender of a direction's data and back, and to
/// its receiver.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trips {
    pub(super) sender: Option<Nanos>,
    pub(super) receiver: Option<Nanos>,
}

impl Trips {
    fn whole(self) -> Option<Nanos> {
        Some(Nanos(self.sender?.0.saturating_add(self.receiver?.0)))
    }
}

/// The window of the receiver of one direction.
#[derive(Debug)]
pub(super) struct ReceiveWindow {
    /// What the receiver's SYN said.
    scale: WindowScale,
    /// Since when it is closed.
    closed_since: Option<Timestamp>,
    /// How long it was closed last, and until when; not counted yet.
    reopened: Option<(Nanos, Timestamp)>,
    /// The position that the sample allows, and when; no sample where that is [`NO_EDGE`].
    edge: u64,
    since: Timestamp,
    /// The sender has reached the edge of the sample.
    filled: bool,
    /// Bytes that it allowed beyond what was acknowledged.
    allowed: u32,
    counts: WindowCounts,
}

/// What was counted of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WindowCounts {
    /// Time in which the window was closed and the sender waited for it.
    pub closed: Nanos,
    /// Time in which the sender had filled the window and waited for an acknowledgment.
    pub limited: Nanos,
    /// The largest window that was filled like that, in bytes.
    pub filled: Option<u32>,
}

impl Default for ReceiveWindow {
    fn default() -> ReceiveWindow {
        ReceiveWindow {
            scale: WindowScale::Unknown,
            closed_since: None,
            reopened: None,
            edge: NO_EDGE,
            since: Timestamp(0),
            filled: false,
            allowed: 0,
            counts: WindowCounts::default(),
        }
    }
}

impl ReceiveWindow {
    /// The receiver's SYN.
    pub(super) fn offered(&mut self, scale: WindowScale) {
        self.scale = scale;
    }

    /// The receiver acknowledges everything before `position`, and says how much more it takes. `own_scale` is what the SYN
    /// of the data's sender said: one that does not scale keeps the other side from it.
    #[inline]
    pub(super) fn announced(&mut self, position: u64, segment: &TcpSegment<'_>, own_scale: WindowScale, trips: Trips) {
        if segment.window == 0 || self.closed_since.is_some() {
            self.opens_or_closes(segment);
        }
        let shift = match (self.scale, own_scale) {
            (WindowScale::Shift(shift), WindowScale::Shift(_)) => shift,
            (WindowScale::Unknown, _) | (_, WindowScale::Unknown) => return,
            _ => 0,
        };
        // A SYN has a window that is not scaled, and data comes later.
        if segment.flags.syn() {
            return;
        }
        let allowed = u32::from(segment.window) << shift;
        let edge = position + u64::from(allowed);
        if edge != self.edge {
            self.sample(edge, allowed, segment.stamp.time, trips);
        }
    }

    /// The edge of the window moved.
    #[inline]
    fn sample(&mut self, edge: u64, allowed: u32, time: Timestamp, trips: Trips) {
        if self.edge != NO_EDGE && !self.filled && time - self.since <= latest(trips) {
            return;
        }
        let Some(whole) = trips.whole().filter(|whole| *whole >= SAMPLED_ROUND_TRIP) else { return };
        if self.filled {
            let waited = (time - self.since).0.clamp(0, whole.0);
            self.counts.limited.0 = self.counts.limited.0.saturating_add(waited);
            self.counts.filled = self.counts.filled.max(Some(self.allowed));
        }
        (self.edge, self.since, self.filled, self.allowed) = (edge, time, false, allowed);
    }

    /// The sender has sent everything before `end`, in segments of at most `segment_size` bytes.
    #[inline]
    pub(super) fn sent(&mut self, end: u64, segment_size: u32, time: Timestamp, trips: Trips) {
        let left_over = u64::from(segment_size.min(LARGEST_SEGMENT));
        if end.saturating_add(left_over) > self.edge && !self.filled {
            self.reached(time, trips);
        }
        if self.reopened.is_some() {
            self.used(time, trips);
        }
        if self.closed_since.is_some() {
            self.probed(time);
        }
    }

    #[cold]
    fn reached(&mut self, time: Timestamp, trips: Trips) {
        self.filled = time - self.since <= latest(trips);
        if !self.filled {
            self.edge = NO_EDGE;
        }
    }

    #[cold]
    fn opens_or_closes(&mut self, segment: &TcpSegment<'_>) {
        let time = segment.stamp.time;
        match segment.window {
            0 => _ = self.closed_since.get_or_insert(time),
            _ => {
                self.reopened = self.closed_since.take().map(|since| (Nanos((time - since).0.max(0)), time));
            }
        }
    }

    /// The sender sends for the first time since the window opened.
    #[cold]
    fn used(&mut self, time: Timestamp, trips: Trips) {
        let Some((closed, until)) = self.reopened.take() else { return };
        if time - until <= Nanos(SOON.0.saturating_add(trips.sender.map_or(0, |trip| trip.0))) {
            self.counts.closed.0 = self.counts.closed.0.saturating_add(closed.0);
        }
    }

    /// The sender probes the window, which it does when it has more to send (RFC 9293 3.8.6.1).
    #[cold]
    pub(super) fn probed(&mut self, time: Timestamp) {
        if let Some(since) = self.closed_since.replace(time) {
            self.counts.closed.0 = self.counts.closed.0.saturating_add((time - since).0.max(0));
        }
    }

    /// Whether the receiver takes nothing.
    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        self.closed_since.is_some()
    }

    /// What the receiver's SYN said.
    #[inline]
    pub(super) fn scale(&self) -> WindowScale {
        self.scale
    }

    /// What was counted so far.
    pub(super) fn counts(&self) -> WindowCounts {
        self.counts
    }
}

/// How long after an acknowledgment the sender that waited for it reaches the edge, at the capture point.
fn latest(trips: Trips) -> Nanos {
    let (Some(sender), Some(whole)) = (trips.sender, trips.whole()) else { return Nanos(0) };
    Nanos(sender.0.saturating_add(whole.0 / LATE_PART))
}
