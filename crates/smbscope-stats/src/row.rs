//! Rows of the command and group tables: counts, packets, statuses and times of a set of exchanges.

use crate::summary::{DurationStatistics, Summary, SummaryPrecision};
use serde::{Deserialize, Serialize};
use smbscope_model::{Exchange, ExchangeOutcome, Nanos, ResponseStatus, TimeKind};
use std::collections::BTreeMap;

/// Error statuses per row; the largest codes are combined.
pub const STATUSES_MAX: usize = 128;

#[derive(Debug, Clone, Copy)]
pub struct CommandTallyView<'a> {
    pub response_time: &'a Summary,
    pub errors: &'a BTreeMap<ResponseStatus, u64>,
}

/// Name of the sum of everything that is not listed.
pub const OTHER: &str = "(other)";

/// Counts and times of a set of exchanges.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "StatisticsEntry"))]
pub struct CommandStatistics {
    /// Number of exchanges, timed or not.
    pub count: u64,
    /// Exchanges with a response time.
    pub timed: u64,
    /// Error responses by status. `(other)` is the sum of the statuses not listed.
    pub errors: BTreeMap<String, u64>,
    /// Exchanges by outcome. Only values that occur.
    #[cfg_attr(feature = "schema", schemars(schema_with = "outcomes"))]
    pub outcomes: BTreeMap<String, u64>,
    /// Mean number of packets per exchange, request and response, over exchanges whose packets are all known.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub average_packets: Option<f64>,
    /// Packets of both halves of the exchanges in `packet_exchanges`.
    #[serde(skip)]
    pub packets: u64,
    #[serde(skip)]
    pub request_packets: u64,
    /// Exchanges whose packets are all known: complete ones, and messages without a response by design.
    #[serde(skip)]
    pub packet_exchanges: u64,
    /// Bytes of SMB requests.
    pub request_bytes: u64,
    /// Bytes of final SMB responses.
    pub response_bytes: u64,
    /// Response times by decade: below 1 µs, 10 µs, 100 µs, 1 ms, 10 ms, 100 ms, 1 s, 10 s, 100 s, and longer. Lower
    /// bounds are inclusive.
    pub distribution: Distribution,
    /// First packet of the request to last packet of the response.
    pub response_time: DurationStatistics,
    /// Last packet of the request to first packet of the response.
    pub service_time: DurationStatistics,
    /// Service time minus the round-trip time between capture point and server. Not measured if that is unknown.
    pub server_time: DurationStatistics,
    /// First to last packet of the request.
    pub request_transfer: DurationStatistics,
    /// First to last packet of the response.
    pub response_transfer: DurationStatistics,
    /// Last packet of the request to last packet of the response: Wireshark's service response time.
    pub srt: DurationStatistics,
    /// First to last copy of a retransmitted segment.
    pub retransmission_delay: DurationStatistics,
    /// Last packet of the previous response to first packet of the request, with nothing outstanding.
    pub think_time: DurationStatistics,
}

impl CommandStatistics {
    /// Returns the number of error responses.
    pub fn errors(&self) -> u64 {
        self.errors.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    pub fn untimed(&self) -> u64 {
        let by_design = [ExchangeOutcome::NoResponseByDesign, ExchangeOutcome::ServerInitiated];
        let by_design = by_design.iter().filter_map(|outcome| self.outcomes.get(outcome.name()));
        self.count - self.timed - by_design.sum::<u64>()
    }

    pub(crate) fn times_mut(&mut self) -> [&mut DurationStatistics; TimeKind::ALL.len()] {
        [
            &mut self.response_time,
            &mut self.service_time,
            &mut self.server_time,
            &mut self.request_transfer,
            &mut self.response_transfer,
            &mut self.srt,
            &mut self.retransmission_delay,
            &mut self.think_time,
        ]
    }
}

/// Returns the schema of counts by outcome.
#[cfg(feature = "schema")]
pub fn outcomes(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "propertyNames": { "enum": ExchangeOutcome::ALL.map(ExchangeOutcome::name) },
        "additionalProperties": { "type": "integer", "minimum": 1 },
    })
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CommandTally {
    count: u64,
    timed: u64,
    statuses: BTreeMap<ResponseStatus, u64>,
    other_statuses: u64,
    outcomes: [u64; ExchangeOutcome::ALL.len()],
    packets: u64,
    request_packets: u64,
    packet_exchanges: u64,
    request_bytes: u64,
    response_bytes: u64,
    distribution: Distribution,
    times: [Summary; TimeKind::ALL.len()],
}

impl Default for CommandTally {
    fn default() -> CommandTally {
        CommandTally {
            count: 0,
            timed: 0,
            statuses: BTreeMap::new(),
            other_statuses: 0,
            outcomes: Default::default(),
            packets: 0,
            request_packets: 0,
            packet_exchanges: 0,
            request_bytes: 0,
            response_bytes: 0,
            distribution: Distribution::default(),
            times: std::array::from_fn(|_| Summary::new(SummaryPrecision::ROW)),
        }
    }
}

impl CommandTally {
    pub(crate) fn lean() -> CommandTally {
        let limit = |kind| match kind {
            TimeKind::ResponseTime | TimeKind::ServiceTime => SummaryPrecision::ROW,
            _ => SummaryPrecision::MOMENTS,
        };
        CommandTally { times: TimeKind::ALL.map(|kind| Summary::new(limit(kind))), ..CommandTally::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn counted(&self) -> CommandTallyView<'_> {
        CommandTallyView { response_time: &self.times[TimeKind::ResponseTime as usize], errors: &self.statuses }
    }

    pub(crate) fn cumulative(&self) -> Vec<(Nanos, f64)> {
        self.times[TimeKind::ResponseTime as usize].cumulative()
    }

    pub(crate) fn record(&mut self, exchange: &Exchange) {
        self.count += 1;
        self.outcomes[exchange.outcome as usize] += 1;
        self.request_bytes += exchange.request.bytes;
        self.response_bytes += exchange.response.bytes;
        if let Some(status) = exchange.status.filter(|status| status.is_error()) {
            self.add_status(status, 1);
        }
        let whole = matches!(
            exchange.outcome,
            ExchangeOutcome::Complete | ExchangeOutcome::NoResponseByDesign | ExchangeOutcome::ServerInitiated
        );
        let packets = u64::from(exchange.request.packets) + u64::from(exchange.response.packets);
        if whole && packets > 0 {
            self.packet_exchanges += 1;
            self.packets += packets;
            self.request_packets += u64::from(exchange.request.packets);
        }
        if exchange.is_complete() {
            self.timed += 1;
            for kind in TimeKind::ALL {
                if let Some(time) = exchange.time(kind) {
                    self.times[kind as usize].record(time);
                    if kind == TimeKind::ResponseTime {
                        self.distribution.record(time);
                    }
                }
            }
        }
    }

    pub(crate) fn merge(&mut self, other: &CommandTally) {
        self.count += other.count;
        self.timed += other.timed;
        self.other_statuses += other.other_statuses;
        for (status, count) in &other.statuses {
            self.add_status(*status, *count);
        }
        for (mine, theirs) in self.outcomes.iter_mut().zip(other.outcomes) {
            *mine += theirs;
        }
        self.packets += other.packets;
        self.request_packets += other.request_packets;
        self.packet_exchanges += other.packet_exchanges;
        self.request_bytes += other.request_bytes;
        self.response_bytes += other.response_bytes;
        self.distribution.merge(&other.distribution);
        for (mine, theirs) in self.times.iter_mut().zip(&other.times) {
            mine.merge(theirs);
        }
    }

    /// Keeps the smallest codes, whatever the order of arrival; [`crate::bounded`] explains why merges agree.
    fn add_status(&mut self, status: ResponseStatus, count: u64) {
        *self.statuses.entry(status).or_default() += count;
        if self.statuses.len() > STATUSES_MAX
            && let Some((_, evicted)) = self.statuses.pop_last()
        {
            self.other_statuses += evicted;
        }
    }

    pub(crate) fn outcomes(&self) -> impl Iterator<Item = (ExchangeOutcome, u64)> {
        ExchangeOutcome::ALL.into_iter().zip(self.outcomes).filter(|(_, count)| *count > 0)
    }

    pub(crate) fn finish(&self) -> CommandStatistics {
        let mut errors: BTreeMap<String, u64> = BTreeMap::new();
        for (status, count) in &self.statuses {
            *errors.entry(status.to_string()).or_default() += count;
        }
        if self.other_statuses > 0 {
            errors.insert(OTHER.to_owned(), self.other_statuses);
        }
        let exchanges = self.packet_exchanges;
        let mut row = CommandStatistics {
            count: self.count,
            timed: self.timed,
            errors,
            outcomes: self.outcomes().map(|(outcome, count)| (outcome.name().to_owned(), count)).collect(),
            average_packets: (exchanges > 0).then(|| self.packets as f64 / exchanges as f64),
            packets: self.packets,
            request_packets: self.request_packets,
            packet_exchanges: exchanges,
            request_bytes: self.request_bytes,
            response_bytes: self.response_bytes,
            distribution: self.distribution,
            ..CommandStatistics::default()
        };
        row.times_mut().into_iter().zip(&self.times).for_each(|(figures, summary)| *figures = summary.figures());
        row
    }
}

/// Counts of durations by decade, as in Swartz (1997), appendix A: below 1 µs, below 10 µs … below 100 s, and the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
#[serde(transparent)]
pub struct Distribution {
    counts: [u64; 10],
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decade {
    pub index: usize,
    pub below: Option<Nanos>,
    pub count: u64,
    pub percent: f64,
    pub cumulative_percent: f64,
}

impl Distribution {
    /// Upper edges of all decades but the last. A value on an edge belongs to the decade above it.
    pub const EDGES: [Nanos; 9] = [
        Nanos(1_000),
        Nanos(10_000),
        Nanos(100_000),
        Nanos(1_000_000),
        Nanos(10_000_000),
        Nanos(100_000_000),
        Nanos(1_000_000_000),
        Nanos(10_000_000_000),
        Nanos(100_000_000_000),
    ];

    /// Counts a value. Negative values belong to the first decade.
    pub fn record(&mut self, value: Nanos) {
        self.counts[Distribution::EDGES.partition_point(|edge| *edge <= value)] += 1;
    }

    pub fn merge(&mut self, other: &Distribution) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts) {
            *mine = mine.saturating_add(theirs);
        }
    }

    pub fn counts(&self) -> [u64; 10] {
        self.counts
    }

    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the decades from the first to the last occupied one, including empty ones between them.
    pub fn decades(&self) -> Vec<Decade> {
        let total = self.total();
        let Some(first) = self.counts.iter().position(|count| *count > 0) else { return Vec::new() };
        let last = self.counts.iter().rposition(|count| *count > 0).unwrap_or(first);
        let mut seen = 0;
        (first..=last)
            .map(|index| {
                let count = self.counts[index];
                seen += count;
                Decade {
                    index,
                    below: Distribution::EDGES.get(index).copied(),
                    count,
                    percent: 100.0 * count as f64 / total as f64,
                    cumulative_percent: 100.0 * seen as f64 / total as f64,
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_model::Nanos;
    use smbscope_testkit::exchange::read;
    use smbscope_wire::status::NtStatus;

    #[test]
    fn kinds_and_outcomes_index_their_tables() {
        assert!(TimeKind::ALL.iter().enumerate().all(|(i, kind)| *kind as usize == i));
        assert!(ExchangeOutcome::ALL.iter().enumerate().all(|(i, outcome)| *outcome as usize == i));
    }

    #[test]
    fn only_complete_exchanges_enter_the_times() {
        let mut tally = CommandTally::default();
        tally.record(&read(0, 700_000));
        let mut lost = read(0, 900_000);
        lost.outcome = ExchangeOutcome::ResponseEndMissing;
        tally.record(&lost);
        let row = tally.finish();
        assert_eq!((row.count, row.timed, row.untimed()), (2, 1, 1));
        assert_eq!(row.response_time.max, Some(Nanos(700_000)));
        assert_eq!(row.outcomes, [("complete".to_owned(), 1), ("response_end_missing".to_owned(), 1)].into());
        assert_eq!(row.distribution.total(), 1);
    }

    #[test]
    fn messages_without_answer_by_design_count_their_packets_and_are_not_missed() {
        let mut tally = CommandTally::default();
        let mut cancel = read(0, 0);
        cancel.outcome = ExchangeOutcome::NoResponseByDesign;
        (cancel.request.packets, cancel.response.packets) = (3, 0);
        tally.record(&cancel);
        let row = tally.finish();
        assert_eq!((row.count, row.timed, row.untimed()), (1, 0, 0));
        assert_eq!(row.average_packets, Some(3.0));
        assert_eq!(row.response_time.count, 0);
    }

    #[test]
    fn error_statuses_are_bounded_and_counted() {
        let mut tally = CommandTally::default();
        for code in 0..STATUSES_MAX as u32 + 7 {
            let mut failed = read(0, 1_000);
            failed.status = Some(ResponseStatus::Nt(NtStatus(0xc000_0000 + code)));
            tally.record(&failed);
        }
        let row = tally.finish();
        // 0xc0000016 (MORE_PROCESSING_REQUIRED) is among the codes and is not an error: 135 − 1 errors, 128 listed.
        assert_eq!((row.errors(), row.errors.len() - 1, row.errors[OTHER]), (134, 128, 6));
    }

    fn distribution(values: &[i64]) -> Distribution {
        let mut distribution = Distribution::default();
        values.iter().for_each(|value| distribution.record(Nanos(*value)));
        distribution
    }

    #[test]
    fn a_value_on_an_edge_belongs_to_the_decade_above() {
        // Exactly 0.001 s is not "<0.001"; one nanosecond less is.
        assert_eq!(distribution(&[1_000_000]).counts(), [0, 0, 0, 0, 1, 0, 0, 0, 0, 0]);
        assert_eq!(distribution(&[999_999]).counts(), [0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn every_edge_separates_its_two_decades() {
        for (index, edge) in Distribution::EDGES.into_iter().enumerate() {
            let counts = distribution(&[edge.0 - 1, edge.0]).counts();
            assert_eq!((counts[index], counts[index + 1]), (1, 1), "edge {edge}");
        }
    }

    #[test]
    fn the_ends_are_open() {
        assert_eq!(distribution(&[i64::MIN, 0, i64::MAX]).counts(), [2, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn percentages_are_those_of_the_paper() {
        // Appendix A, Check_Directory: 4 + 155 + 76 = 235: 1.7%, 66.0%, 32.3%; cumulative 1.7, 67.7, 100.0.
        let mut values = vec![500_000; 4];
        values.extend(vec![5_000_000; 155]);
        values.extend(vec![50_000_000; 76]);
        let shown: Vec<String> = distribution(&values)
            .decades()
            .iter()
            .map(|d| format!("{} {:.1} {:.1}", d.count, d.percent, d.cumulative_percent))
            .collect();
        assert_eq!(shown, ["4 1.7 1.7", "155 66.0 67.7", "76 32.3 100.0"]);
    }

    #[test]
    fn empty_decades_inside_are_listed_and_outside_are_not() {
        let decades = distribution(&[5_000, 5_000_000]).decades();
        assert_eq!(decades.iter().map(|d| (d.index, d.count)).collect::<Vec<_>>(), [(1, 1), (2, 0), (3, 0), (4, 1)]);
        assert!(distribution(&[]).decades().is_empty());
    }
}
