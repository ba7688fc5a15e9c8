//! Long waits of a client for single requests, answered or not.

use super::refusals::RefusalReason;
use serde::{Deserialize, Serialize};
use smbscope_model::{
    Command, CommandGroup, Exchange, ExchangeOutcome, FlowId, Nanos, ResponseStatus, Stamp, Timestamp,
};
use std::sync::Arc;

/// Maximum number of waits kept for a client on a server; the longest ones stay.
pub(crate) const WAITS_MAX: usize = 64;
/// Shorter waits are not kept individually.
pub(crate) const WAIT_LEAST: Nanos = Nanos(100_000_000);

/// Request with a long response time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Wait {
    pub(crate) flow: FlowId,
    pub(crate) command: Command,
    pub(crate) group: CommandGroup,
    pub(crate) share: Option<Arc<str>>,
    pub(crate) path: Option<Arc<str>>,
    /// First packet of the request.
    pub(crate) from: Stamp,
    /// Last packet of the request.
    pub(crate) sent: Timestamp,
    /// First packet of the response.
    pub(crate) answered: Option<Timestamp>,
    /// Last packet of the response. Absent if the request was never answered.
    pub(crate) to: Option<Stamp>,
    /// True if the server's TCP acknowledged the request. Unknown if the capture does not show it.
    pub(crate) acknowledged: Option<bool>,
    /// Number of retransmitted segments of the request.
    pub(crate) retransmitted: u32,
    /// Offset and length of a LOCK.
    pub(crate) range: Option<(u64, u64)>,
    pub(crate) status: Option<ResponseStatus>,
}

impl Wait {
    /// Returns the exchange as a wait, or `None` if it was answered in less than [`WAIT_LEAST`].
    pub(crate) fn from_exchange(exchange: &Exchange) -> Option<Wait> {
        if exchange.is_subscription() {
            return None;
        }
        let from = exchange.request.first?;
        let to = match exchange.outcome {
            ExchangeOutcome::Complete => Some(exchange.response.last?),
            ExchangeOutcome::Unanswered => None,
            _ => return None,
        };
        if to.is_some_and(|to| to.time - from.time < WAIT_LEAST) {
            return None;
        }
        Some(Wait {
            flow: exchange.flow,
            command: exchange.command,
            group: exchange.group,
            share: exchange.share.clone(),
            path: exchange.path.clone(),
            from,
            sent: exchange.request.last.map_or(from.time, |stamp| stamp.time),
            answered: exchange.response.first.map(|stamp| stamp.time),
            to,
            acknowledged: exchange.acknowledged,
            retransmitted: exchange.retransmitted,
            range: exchange.offset.zip(exchange.length),
            status: exchange.status,
        })
    }

    pub(crate) fn failed(&self) -> bool {
        self.status.is_some_and(|status| status.is_error())
    }

    /// Returns true if another open or lock caused the refusal.
    pub(crate) fn is_conflict(&self) -> bool {
        RefusalReason::from_status(self.status) == Some(RefusalReason::Conflict)
    }

    /// Returns the duration in ns, `i64::MAX` if there was no response.
    fn length(&self) -> i64 {
        self.to.map_or(i64::MAX, |to| (to.time - self.from.time).0)
    }
}

/// Longest waits, in descending order.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Waits(Vec<Wait>);

impl Waits {
    pub(crate) fn add(&mut self, wait: Wait) {
        let rank = |wait: &Wait| (std::cmp::Reverse(wait.length()), wait.from.time, wait.from.packet, wait.flow);
        if self.0.len() == WAITS_MAX && self.0.last().is_some_and(|last| rank(last) <= rank(&wait)) {
            return;
        }
        let at = self.0.partition_point(|known| rank(known) <= rank(&wait));
        self.0.insert(at, wait);
        self.0.truncate(WAITS_MAX);
    }

    pub(crate) fn merge(&mut self, other: &Waits) {
        other.0.iter().for_each(|wait| self.add(wait.clone()));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Wait> {
        self.0.iter()
    }
}
