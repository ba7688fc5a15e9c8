//! Times in which one side sent data again and again and heard nothing at all of the other: the path between the capture
//! point and that side was down, or its host was.

use smbscope_model::{FlowDirection, Nanos, Outage, Timestamp};

/// Shorter ones are ordinary losses.
const SHORTEST: Nanos = Nanos(1_000_000_000);
/// Retransmissions of the same data that make an outage.
const FEWEST_RETRIES: u32 = 2;
/// A sender with data outstanding doubles its timeout (RFC 6298 5.5). If it was silent for longer than this many times its
/// last wait before the other side was heard again, it had nothing outstanding: the capture missed the acknowledgment.
const LONGEST_BACKOFF: i64 = 3;
/// The first waits are short.
const LEAST_WAIT: i64 = 1_000_000_000;

/// A side that sends data again and hears nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OutageCandidate {
    from: Timestamp,
    /// The first of the bytes that are sent again.
    position: u64,
    retries: u32,
    last_retry: Timestamp,
    wait: Nanos,
}

/// The outages of a flow.
#[derive(Debug, Default)]
pub(super) struct Outages {
    /// By direction of the data that is sent again.
    silences: [Option<OutageCandidate>; 2],
    ended: Vec<Outage>,
}

impl Outages {
    /// Data from `position` on was sent again, unacknowledged. Nothing has come from the other side since `from`.
    pub(super) fn retried(&mut self, direction: FlowDirection, position: u64, from: Timestamp, time: Timestamp) {
        match &mut self.silences[direction.index()] {
            Some(silence) if position <= silence.position => {
                silence.position = position;
                silence.retries += 1;
                silence.wait = time - silence.last_retry;
                silence.last_retry = time;
            }
            // What follows in the same flight.
            Some(_) => {}
            none => *none = Some(OutageCandidate { from, position, retries: 1, last_retry: time, wait: time - from }),
        }
    }

    /// A packet came from the sender of this direction.
    pub(super) fn heard(&mut self, direction: FlowDirection, time: Timestamp) {
        self.end(direction.reverse(), time, true);
    }

    /// Whether the sender of neither direction waits.
    pub(super) fn are_over(&self) -> bool {
        self.silences == [None, None]
    }

    /// The flow is over. Returns the longest outages in the order of time.
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
