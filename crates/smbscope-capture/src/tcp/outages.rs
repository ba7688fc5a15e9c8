//! Outages: periods in which one side retransmitted repeatedly and received nothing at all, because the path between
//! the capture point and the other side, or that side's host, was down.

use smbscope_model::{FlowDirection, Nanos, Outage, Timestamp};

/// Shortest outage; anything shorter is ordinary loss.
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

#[derive(Debug, Default)]
pub(super) struct Outages {
    /// By direction of the retransmitted data.
    silences: [Option<OutageCandidate>; 2],
    ended: Vec<Outage>,
}

impl Outages {
    /// Notes a retransmission of unacknowledged data at `position`. The other side has been silent since `from`.
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

    /// Returns true if neither side is waiting.
    pub(super) fn are_over(&self) -> bool {
        self.silences == [None, None]
    }

    /// Ends the flow. Returns the longest outages in time order.
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
