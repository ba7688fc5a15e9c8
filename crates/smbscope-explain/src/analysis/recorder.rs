//! Filters exchanges, then adds them to tables and slices.

use super::AnalysisOptions;
use serde::{Deserialize, Serialize};
use smbscope_analyze::pipeline::Sink;
use smbscope_diagnose::Collector;
use smbscope_diagnose::whatif::{COMMANDS_MAX, TimeSample};
use smbscope_model::{CommandGroup, ConnectionSummary, Exchange, FlowId, Settled, Timestamp};
use smbscope_report::Filtered;
use smbscope_stats::filter::{Filter, Matcher};
use smbscope_stats::sides::PointSightings;
use smbscope_stats::{Aggregator, Census, beside};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

pub(super) struct Chooser<'f> {
    filter: Option<(&'f Filter, Matcher<'f>)>,
    start: Arc<OnceLock<Timestamp>>,
    matched: u64,
    /// Filled only with a filter. Otherwise the tables cover all exchanges.
    census: Census,
}

impl<'f> Chooser<'f> {
    pub(super) fn new(filter: Option<&'f Filter>, names: &[String], start: Arc<OnceLock<Timestamp>>) -> Chooser<'f> {
        let filter = filter.map(|filter| (filter, filter.matcher(names)));
        Chooser { filter, start, matched: 0, census: Census::default() }
    }

    pub(super) fn chooses(&mut self, exchange: &Exchange) -> bool {
        let Some((_, matcher)) = &mut self.filter else { return true };
        self.census.record(exchange);
        let start = self.start.get().copied().unwrap_or_default();
        let chosen = matcher.matches(exchange, start);
        self.matched += u64::from(chosen);
        chosen
    }

    pub(super) fn filtered(&self) -> Option<Filtered> {
        let (filter, _) = self.filter.as_ref()?;
        Some(Filtered { expression: filter.to_string(), matched: self.matched, whole: self.census.clone() })
    }
}

#[derive(Debug, Clone, Default)]
struct Waterfall {
    commands: BTreeMap<(Timestamp, FlowId, u64, u64), Exchange>,
    /// Keeps a sample if there are too many commands. Otherwise the first ones are kept.
    sample: Option<TimeSample>,
}

impl Waterfall {
    fn new(options: &AnalysisOptions) -> Option<Waterfall> {
        let sample = options.sampled.then(TimeSample::default);
        options.waterfall.then(|| Waterfall { sample, ..Waterfall::default() })
    }

    fn add(&mut self, exchange: Exchange) {
        let (Some(first), Some(last)) = (exchange.request.first, exchange.response.last) else { return };
        if self.sample.is_some_and(|sample| !sample.holds(first.time)) {
            return;
        }
        // The members of a compound share their packets.
        let key = (first.time, exchange.flow, last.packet.number(), exchange.message_id.unwrap_or(0));
        self.commands.insert(key, exchange);
        match self.sample {
            None if self.commands.len() > COMMANDS_MAX => drop(self.commands.pop_last()),
            Some(sample) if self.commands.len() > COMMANDS_MAX => self.reduce_to(sample.half()),
            _ => {}
        }
    }

    fn reduce_to(&mut self, sample: TimeSample) {
        self.sample = Some(sample);
        self.commands.retain(|(time, ..), _| sample.holds(*time));
    }

    fn merge(&mut self, other: Waterfall) {
        if let Some(sample) =
            other.sample.filter(|sample| self.sample.is_some_and(|mine| mine.every() < sample.every()))
        {
            self.reduce_to(sample);
        }
        other.commands.into_values().for_each(|exchange| self.add(exchange));
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AggregatedExchanges {
    pub filtered: Option<Filtered>,
    pub aggregator: Aggregator,
    /// `None` if neither findings nor episodes are wanted.
    pub collector: Option<Collector>,
    /// Not serialized, because a single process analyses an episode.
    #[serde(skip)]
    waterfall: Option<Waterfall>,
    /// Not serialized, because a single process compares captures.
    #[serde(skip)]
    pub(super) sightings: Option<PointSightings>,
}

impl AggregatedExchanges {
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
            mine.merge(theirs);
        }
        if let (Some(mine), Some(theirs)) = (&mut self.sightings, other.sightings) {
            mine.merge(theirs);
        }
    }

    /// Adds a command that is still outstanding, for a report of its wait so far.
    pub(super) fn add_outstanding(&mut self, exchange: &Exchange) {
        self.aggregator.record(exchange);
        if let Some(collector) = &mut self.collector {
            collector.exchange(exchange);
        }
    }

    pub(super) fn waterfall(&self) -> (Vec<Exchange>, TimeSample) {
        let kept = |waterfall: &Waterfall| {
            (waterfall.commands.values().cloned().collect(), waterfall.sample.unwrap_or_default())
        };
        self.waterfall.as_ref().map(kept).unwrap_or_default()
    }
}

pub(super) struct AnalysisRecorder<'f> {
    chooser: Chooser<'f>,
    recorded: AggregatedExchanges,
}

impl<'f> AnalysisRecorder<'f> {
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
                collector: (!options.no_findings).then(Collector::default),
                waterfall: Waterfall::new(options),
                sightings: options.sightings.then(PointSightings::default),
            },
        }
    }

    /// Takes the tables since the last call. For options without slices, filter and interval.
    pub(super) fn take_part(&mut self, open: &[ConnectionSummary]) -> AggregatedExchanges {
        AggregatedExchanges {
            filtered: None,
            aggregator: self.recorded.aggregator.take_part(open),
            collector: self.recorded.collector.as_mut().map(Collector::take_part),
            waterfall: None,
            sightings: None,
        }
    }

    pub(super) fn finish(self) -> AggregatedExchanges {
        AggregatedExchanges { filtered: self.chooser.filtered(), ..self.recorded }
    }
}

impl Sink for AnalysisRecorder<'_> {
    fn turn_to(&mut self, shard: usize) {
        self.recorded.aggregator.turn_to(shard);
    }

    fn exchange(&mut self, exchange: &Exchange) {
        if let Some(sightings) = &mut self.recorded.sightings {
            sightings.record(exchange);
        }
        let chosen = self.chooser.chooses(exchange);
        // The time breakdown covers whole connections, filtered or not.
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
