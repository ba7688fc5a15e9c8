//! What is done with an exchange: the filter first, then the tables, then the slices.

use super::AnalysisOptions;
use serde::{Deserialize, Serialize};
use smbscope_analyze::pipeline::Sink;
use smbscope_diagnose::Collector;
use smbscope_diagnose::whatif::COMMANDS_MAX;
use smbscope_model::{CommandGroup, ConnectionSummary, Exchange, FlowId, Settled, Timestamp};
use smbscope_report::Filtered;
use smbscope_stats::filter::{Filter, Matcher};
use smbscope_stats::{Aggregator, Census, beside};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// Chooses exchanges and counts what it chose from.
pub(super) struct Chooser<'f> {
    filter: Option<(&'f Filter, Matcher<'f>)>,
    /// When the captures begin.
    start: Arc<OnceLock<Timestamp>>,
    matched: u64,
    /// Kept only where there is a filter; otherwise the tables hold all of it.
    census: Census,
}

impl<'f> Chooser<'f> {
    /// For captures with these names.
    pub(super) fn new(filter: Option<&'f Filter>, names: &[String], start: Arc<OnceLock<Timestamp>>) -> Chooser<'f> {
        let filter = filter.map(|filter| (filter, filter.matcher(names)));
        Chooser { filter, start, matched: 0, census: Census::default() }
    }

    /// Whether an exchange is to be looked at.
    pub(super) fn chooses(&mut self, exchange: &Exchange) -> bool {
        let Some((_, matcher)) = &mut self.filter else { return true };
        self.census.record(exchange);
        // There is no exchange without a packet.
        let start = self.start.get().copied().unwrap_or_default();
        let chosen = matcher.matches(exchange, start);
        self.matched += u64::from(chosen);
        chosen
    }

    /// What the report says of it.
    pub(super) fn filtered(&self) -> Option<Filtered> {
        let (filter, _) = self.filter.as_ref()?;
        Some(Filtered { expression: filter.to_string(), matched: self.matched, whole: self.census.clone() })
    }
}

/// The commands of an episode, the first ones, in the order of time.
#[derive(Debug, Default)]
struct Waterfall(BTreeMap<(Timestamp, FlowId, u64, u64), Exchange>);

impl Waterfall {
    fn add(&mut self, exchange: Exchange) {
        let (Some(first), Some(last)) = (exchange.request.first, exchange.response.last) else { return };
        // Members of a compound share their packets.
        let key = (first.time, exchange.flow, last.packet.number(), exchange.message_id.unwrap_or(0));
        self.0.insert(key, exchange);
        if self.0.len() > COMMANDS_MAX {
            self.0.pop_last();
        }
    }
}

/// What was counted of the exchanges.
#[derive(Debug, Serialize, Deserialize)]
pub struct AggregatedExchanges {
    /// What the filter chose; absent where there is none.
    pub filtered: Option<Filtered>,
    /// The statistics.
    pub aggregator: Aggregator,
    /// Absent where neither findings nor episodes are wanted.
    pub collector: Option<Collector>,
    /// Not serialized: an episode is looked at by one process.
    #[serde(skip)]
    waterfall: Option<Waterfall>,
}

impl AggregatedExchanges {
    /// Adds what was counted of other exchanges.
    pub fn merge(&mut self, other: AggregatedExchanges) {
        if let (Some(mine), Some(theirs)) = (&mut self.filtered, &other.filtered) {
            mine.matched += theirs.matched;
            mine.whole.merge(&theirs.whole);
        }
        let collect = || {
            if let (Some(mine), Some(theirs)) = (&mut self.collector, other.collector) {
                mine.merge(theirs);
            }
        };
        beside(collect, || self.aggregator.merge(other.aggregator));
        if let (Some(mine), Some(theirs)) = (&mut self.waterfall, other.waterfall) {
            theirs.0.into_values().for_each(|exchange| mine.add(exchange));
        }
    }

    /// The commands of an episode, the first ones, in the order of time.
    pub(super) fn waterfall(&self) -> Vec<Exchange> {
        self.waterfall.as_ref().map(|waterfall| waterfall.0.values().cloned().collect()).unwrap_or_default()
    }
}

/// Counts the exchanges of one thread.
pub(super) struct AnalysisRecorder<'f> {
    chooser: Chooser<'f>,
    recorded: AggregatedExchanges,
}

impl<'f> AnalysisRecorder<'f> {
    /// For captures with these names.
    pub(super) fn new(
        options: &'f AnalysisOptions,
        names: &[String],
        start: Arc<OnceLock<Timestamp>>,
    ) -> AnalysisRecorder<'f> {
        let aggregator = options.interval.map_or_else(Aggregator::new, Aggregator::with_interval);
        AnalysisRecorder {
            chooser: Chooser::new(options.filter.as_ref(), names, start),
            recorded: AggregatedExchanges {
                filtered: None,
                aggregator: aggregator.sliced(&options.by, options.sort),
                collector: options.findings.then(Collector::default),
                waterfall: options.waterfall.then(Waterfall::default),
            },
        }
    }

    /// What was counted.
    pub(super) fn finish(self) -> AggregatedExchanges {
        AggregatedExchanges { filtered: self.chooser.filtered(), ..self.recorded }
    }
}

impl Sink for AnalysisRecorder<'_> {
    fn turn_to(&mut self, shard: usize) {
        self.recorded.aggregator.turn_to(shard);
    }

    fn exchange(&mut self, exchange: &Exchange) {
        let chosen = self.chooser.chooses(exchange);
        // Time is that of whole connections.
        self.recorded.aggregator.follow(exchange, chosen);
        if chosen {
            self.recorded.aggregator.record(exchange);
            if let Some(collector) = &mut self.recorded.collector {
                collector.exchange(exchange);
            }
            let is_drawn = exchange.is_complete() && exchange.group != CommandGroup::Waiting;
            if let Some(waterfall) = self.recorded.waterfall.as_mut().filter(|_| is_drawn) {
                waterfall.add(exchange.clone());
            }
        }
    }

    fn settled(&mut self, settled: &Settled) {
        self.recorded.aggregator.settled(settled);
    }

    fn closed(&mut self, connection: &ConnectionSummary) {
        self.recorded.aggregator.closed(connection);
        if let Some(collector) = &mut self.recorded.collector {
            collector.closed(connection);
        }
    }
}
