//! Commands that were left waiting for long while others are answered fast.

use super::STALL;
use super::judge::Whom;
use crate::Report;
use smbscope_model::{Exchange, FlowId, Group, Nanos, TimeKind, Timestamp};
use std::collections::BTreeMap;

/// How many medians a service time has to be longer than.
const MEDIANS: i64 = 100;

/// The time in which the server kept commands waiting.
#[derive(Debug, Clone)]
pub(super) struct Stall<'a> {
    /// When the longest of them began.
    pub(super) start: Timestamp,
    /// How long it was.
    pub(super) length: Nanos,
    /// How many commands waited in it.
    pub(super) commands: u64,
    /// The time of all connections in such waits, each moment of a connection counted once.
    pub(super) total: Nanos,
    /// How many there were.
    pub(super) count: u64,
    /// The command that waited longest.
    pub(super) longest: &'a Exchange,
    /// A segment was sent again in it for a good part of its time.
    pub(super) resent: bool,
}

/// When the server kept an exchange waiting, if it did for `least`: before its response, or during a transfer,
/// where it need not be longer than others, as nothing but the server accounts for it.
fn wait(exchange: &Exchange, least: Nanos) -> Option<(Timestamp, Timestamp)> {
    let service = exchange.time(TimeKind::ServiceTime).filter(|time| *time >= least);
    let standstill = exchange.standstill.filter(|standstill| standstill.length >= STALL);
    match standstill.filter(|standstill| Some(standstill.length) > service) {
        Some(standstill) => Some((standstill.from, standstill.end())),
        None => service.and(Some((exchange.request.last?.time, exchange.response.first?.time))),
    }
}

/// How long connections were in waits that are in the order of their beginnings, which active time is
/// compared with: it is a sum over connections too.
fn time_of_connections(waits: &[(Timestamp, Timestamp, &Exchange)]) -> Nanos {
    let mut ends: BTreeMap<FlowId, Timestamp> = BTreeMap::new();
    let mut total = 0;
    for (start, end, exchange) in waits {
        let covered = ends.entry(exchange.flow).or_insert(*start);
        total += (*end - (*covered).max(*start)).0.max(0);
        *covered = (*covered).max(*end);
    }
    Nanos(total)
}

/// The longest of somebody, among the slowest exchanges of a report. An encrypted frame may be a wait for changes.
pub(super) fn longest(report: &Report, whom: Whom) -> Option<Stall<'_>> {
    let median = report.aggregate.total.time(TimeKind::ServiceTime).p50;
    let usual = Nanos(median.map_or(0, |median| median.0.saturating_mul(MEDIANS))).max(STALL);
    // A group may take its time.
    let least = |exchange: &Exchange| usual.max(report.slow.p95(exchange.group).unwrap_or(usual));
    let mut waits: Vec<(Timestamp, Timestamp, &Exchange)> = report
        .aggregate
        .slowest
        .iter()
        .filter(|exchange| exchange.group != Group::Encrypted && whom.includes(exchange))
        .filter_map(|exchange| wait(exchange, least(exchange)).map(|(start, end)| (start, end, exchange)))
        .collect();
    waits.sort_by_key(|(start, ..)| *start);
    let total = time_of_connections(&waits);
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
    let count = stalls.len() as u64;
    let (start, end, exchanges) = stalls.into_iter().max_by_key(|(start, end, _)| *end - *start)?;
    let longest = exchanges.iter().max_by_key(|one| wait(one, least(one)).map(|(start, end)| end - start))?;
    let length = end - start;
    // A server that stands still acknowledges what it is sent all the same; what had to be sent again was lost, and with
    // it, often, the response, which the server sends again a time-out later.
    let resent = longest.retransmission_delay.is_some_and(|delay| delay.0 * 3 > length.0);
    Some(Stall { start, length, commands: exchanges.len() as u64, total, count, longest, resent })
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_model::{Stamp, Standstill};
    use smbscope_testkit::exchange;

    fn read(flow: u64, start: i64, service: i64) -> Exchange {
        Exchange { flow: FlowId(flow), ..exchange::read(start, service) }
    }

    #[test]
    fn waits_of_a_connection_count_once_and_those_of_others_beside_them() {
        let exchanges = [read(1, 0, 100), read(1, 20, 40), read(2, 30, 100), read(1, 50, 100)];
        let waits: Vec<(Timestamp, Timestamp, &Exchange)> = exchanges
            .iter()
            .filter_map(|exchange| Some((exchange.request.last?.time, exchange.response.first?.time, exchange)))
            .collect();
        // The first connection from 0 to 150, the second from 30 to 130.
        assert_eq!(time_of_connections(&waits), Nanos(150 + 100));
    }

    #[test]
    fn a_standstill_in_the_midst_of_a_response_is_a_wait_whatever_is_usual() {
        let usual = Nanos(STALL.0 * 100);
        let mut exchange = read(1, 0, 10);
        assert_eq!(wait(&exchange, usual), None);
        exchange.response.last = exchange.response.last.map(|stamp| Stamp { time: Timestamp(STALL.0 * 2), ..stamp });
        exchange.standstill = Some(Standstill { from: Timestamp(20), length: STALL });
        assert_eq!(wait(&exchange, usual), Some((Timestamp(20), Timestamp(20 + STALL.0))));
        exchange.standstill = Some(Standstill { from: Timestamp(20), length: STALL - Nanos(1) });
        assert_eq!(wait(&exchange, usual), None);
    }
}
