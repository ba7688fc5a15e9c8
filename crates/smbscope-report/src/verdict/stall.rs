//! Commands that were left waiting for long while others are answered fast.

use super::STALL;
use crate::Report;
use smbscope_model::{Exchange, Nanos, TimeKind, Timestamp};

/// How many medians a service time has to be longer than.
const MEDIANS: i64 = 100;

/// The time in which the server kept commands waiting.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stall<'a> {
    /// When the longest of them began.
    pub(super) start: Timestamp,
    /// How long it was.
    pub(super) length: Nanos,
    /// How many commands waited in it.
    pub(super) commands: u64,
    /// All of them together, each moment counted once.
    pub(super) total: Nanos,
    /// How many there were.
    pub(super) count: u64,
    /// The command that waited longest.
    pub(super) longest: &'a Exchange,
    /// A segment was sent again in it for most of its time.
    pub(super) resent: bool,
}

/// The longest, among the slowest exchanges of a report.
pub(super) fn longest(report: &Report) -> Option<Stall<'_>> {
    let median = report.aggregate.total.time(TimeKind::ServiceTime).p50;
    let least = Nanos(median.map_or(0, |median| median.0.saturating_mul(MEDIANS))).max(STALL);
    let mut waits: Vec<(Timestamp, Timestamp, &Exchange)> = report
        .aggregate
        .slowest
        .iter()
        .filter(|exchange| exchange.time(TimeKind::ServiceTime).is_some_and(|time| time >= least))
        .filter_map(|exchange| Some((exchange.request.last?.time, exchange.response.first?.time, exchange)))
        .collect();
    waits.sort_by_key(|(start, ..)| *start);
    // Waits that overlap are one stall.
    let mut stalls: Vec<(Timestamp, Timestamp, Vec<&Exchange>)> = Vec::new();
    for (start, end, exchange) in waits {
        match stalls.last_mut() {
            Some((_, last, exchanges)) if start < *last => {
                *last = (*last).max(end);
                exchanges.push(exchange);
            }
            _ => stalls.push((start, end, vec![exchange])),
        }
    }
    let total = stalls.iter().fold(0, |sum, (start, end, _)| sum + (*end - *start).0);
    let count = stalls.len() as u64;
    let (start, end, exchanges) = stalls.into_iter().max_by_key(|(start, end, _)| *end - *start)?;
    let longest = exchanges.iter().max_by_key(|exchange| exchange.time(TimeKind::ServiceTime))?;
    let length = end - start;
    let resent = longest.retransmission_delay.is_some_and(|delay| delay.0 * 2 > length.0);
    Some(Stall { start, length, commands: exchanges.len() as u64, total: Nanos(total), count, longest, resent })
}
