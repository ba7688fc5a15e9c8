//! Time during which the receiver's window limited the sender: closed, or full as soon as it opened (RFC 9293 §3.8.6).
//!
//! Only periods in which the sender had more to send count. A closed window counts once the sender probes it, or sends
//! soon after it opens. To detect a window that is too small, one acknowledgment at a time is taken as a sample. It
//! allows data up to an edge; a sender that is waiting for it reaches that edge one round trip between capture point
//! and sender later, wherever the capture point is. The time from then to the next acknowledgment that moves the edge
//! was spent waiting, up to one round trip. Without the scale options of both SYNs (RFC 7323) the edge is unknown and
//! no samples are taken.

use crate::segment::{TcpSegment, WindowScale};
use smbscope_model::{Nanos, Timestamp};

/// Maximum reaction time of a sender that waited for an open window, in addition to the round trip.
const SOON: Nanos = Nanos(100_000_000);
/// Minimum round trip for sampling: below it no window is too small, and sampling would cost more than it reveals.
const SAMPLED_ROUND_TRIP: Nanos = Nanos(1_000_000);
/// Tolerance for reaching the edge, in addition to the round trip to the sender: this fraction of the whole round trip.
const LATE_PART: i64 = 8;
/// Largest segment on the network in bytes. Larger ones are offload artefacts. A sender waiting for window space leaves
/// less than one segment of it unused.
const LARGEST_SEGMENT: u32 = 9_000;
/// Value of `edge` while there is no sample.
const NO_EDGE: u64 = u64::MAX;

/// Smallest round trips known so far: from the capture point to the sender of a direction's data and back, and to its
/// receiver and back.
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

#[derive(Debug)]
pub(super) struct ReceiveWindow {
    scale: WindowScale,
    /// Time at which the window closed, while it is closed.
    closed_since: Option<Timestamp>,
    /// Duration and end of the last closure, not counted yet.
    reopened: Option<(Nanos, Timestamp)>,
    /// Edge allowed by the current sample and the time of the sample; [`NO_EDGE`] if there is none.
    edge: u64,
    since: Timestamp,
    /// The sender has reached the sample's edge.
    filled: bool,
    /// Bytes the sample allowed beyond the acknowledged position.
    allowed: u32,
    counts: WindowCounts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WindowCounts {
    /// Time during which the window was closed and the sender waited for it.
    pub closed: Nanos,
    /// Time during which the sender had filled the window and waited for an acknowledgment.
    pub limited: Nanos,
    /// Largest window that was filled this way, in bytes.
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
    pub(super) fn offered(&mut self, scale: WindowScale) {
        self.scale = scale;
    }

    /// Handles an acknowledgment up to `position` and its window. `own_scale` comes from the SYN of the data's sender:
    /// unless both sides send the option, neither scales.
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
        // The window of a SYN is never scaled, and no data is outstanding yet.
        if segment.flags.syn() {
            return;
        }
        let allowed = u32::from(segment.window) << shift;
        let edge = position + u64::from(allowed);
        if edge != self.edge {
            self.sample(edge, allowed, segment.stamp.time, trips);
        }
    }

    /// Starts a new sample if the current one is done or expired.
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

    /// Handles data sent up to `end`, in segments of at most `segment_size` bytes.
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

    #[cold]
    fn used(&mut self, time: Timestamp, trips: Trips) {
        let Some((closed, until)) = self.reopened.take() else { return };
        if time - until <= Nanos(SOON.0.saturating_add(trips.sender.map_or(0, |trip| trip.0))) {
            self.counts.closed.0 = self.counts.closed.0.saturating_add(closed.0);
        }
    }

    /// Handles a window probe, which a sender with more data sends (RFC 9293 §3.8.6.1).
    #[cold]
    pub(super) fn probed(&mut self, time: Timestamp) {
        if let Some(since) = self.closed_since.replace(time) {
            self.counts.closed.0 = self.counts.closed.0.saturating_add((time - since).0.max(0));
        }
    }

    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        self.closed_since.is_some()
    }

    #[inline]
    pub(super) fn scale(&self) -> WindowScale {
        self.scale
    }

    pub(super) fn counts(&self) -> WindowCounts {
        self.counts
    }
}

/// Returns the longest time after an acknowledgment at which a sender that waited for it still reaches the edge, as
/// seen at the capture point.
fn latest(trips: Trips) -> Nanos {
    let (Some(sender), Some(whole)) = (trips.sender, trips.whole()) else { return Nanos(0) };
    Nanos(sender.0.saturating_add(whole.0 / LATE_PART))
}
