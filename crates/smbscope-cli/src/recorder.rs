//! What is done with an exchange: the filter first, then the tables, then the slices.

use crate::arguments::AnalyzeArguments;
use smbscope_analyze::pipeline::Sink;
use smbscope_capture::reader::CaptureSet;
use smbscope_findings::Collector;
use smbscope_findings::whatif::COMMANDS_MAX;
use smbscope_model::{Connection, Exchange, FlowId, Group, Settled, Timestamp};
use smbscope_report::Filtered;
use smbscope_stats::filter::{Filter, Matcher};
use smbscope_stats::{Aggregator, Census};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// Chooses exchanges and counts what it chose from.
pub(crate) struct Chooser<'f> {
    filter: Option<(&'f Filter, Matcher<'f>)>,
    /// When the captures begin.
    start: Arc<OnceLock<Timestamp>>,
    matched: u64,
    /// Kept only where there is a filter; otherwise the tables hold all of it.
    census: Census,
}

impl<'f> Chooser<'f> {
    /// For the captures of a set.
    pub(crate) fn new(filter: Option<&'f Filter>, set: &CaptureSet) -> Chooser<'f> {
        let names: Vec<String> = set.captures().iter().map(|info| info.name.clone()).collect();
        let filter = filter.map(|filter| (filter, filter.matcher(&names)));
        Chooser { filter, start: set.first_packet(), matched: 0, census: Census::default() }
    }

    /// Whether an exchange is to be looked at.
    pub(crate) fn chooses(&mut self, exchange: &Exchange) -> bool {
        let Some((_, matcher)) = &mut self.filter else { return true };
        self.census.record(exchange);
        // There is no exchange without a packet.
        let start = self.start.get().copied().unwrap_or_default();
        let chosen = matcher.matches(exchange, start);
        self.matched += u64::from(chosen);
        chosen
    }

    fn merge(&mut self, other: &Chooser<'_>) {
        self.matched += other.matched;
        self.census.merge(&other.census);
    }

    /// What the report says of it.
    pub(crate) fn filtered(&self) -> Option<Filtered> {
        let (filter, _) = self.filter.as_ref()?;
        Some(Filtered { expression: filter.to_string(), matched: self.matched, whole: self.census.clone() })
    }
}

/// The commands of an episode, the first ones, in the order of time.
#[derive(Default)]
pub(crate) struct Waterfall(BTreeMap<(Timestamp, FlowId, u64, u64), Exchange>);

impl Waterfall {
    fn add(&mut self, exchange: Exchange) {
        let (Some(first), Some(last)) = (exchange.request.first, exchange.response.last) else { return };
        // Members of a compound share their packets.
        let key = (first.time, exchange.flow, last.packet.number, exchange.message_id.unwrap_or(0));
        self.0.insert(key, exchange);
        if self.0.len() > COMMANDS_MAX {
            self.0.pop_last();
        }
    }

    pub(crate) fn exchanges(&self) -> Vec<Exchange> {
        self.0.values().cloned().collect()
    }
}

/// Counts the exchanges of one thread.
pub(crate) struct Recorder<'f> {
    pub(crate) chooser: Chooser<'f>,
    /// With slices it sees every exchange in one order, so there is one thread for exchanges then.
    pub(crate) aggregator: Aggregator,
    /// Absent where neither findings nor episodes are wanted.
    pub(crate) collector: Option<Collector>,
    pub(crate) waterfall: Option<Waterfall>,
}

impl<'f> Recorder<'f> {
    pub(crate) fn new(arguments: &'f AnalyzeArguments, set: &CaptureSet) -> Recorder<'f> {
        let aggregator = arguments.interval.map_or_else(Aggregator::new, Aggregator::with_interval);
        Recorder {
            chooser: Chooser::new(arguments.filter.as_ref(), set),
            aggregator: aggregator.sliced(&arguments.by, arguments.sort),
            collector: (!arguments.no_findings).then(Collector::default),
            waterfall: arguments.waterfall.then(Waterfall::default),
        }
    }

    /// Adds what another thread counted.
    pub(crate) fn merge(&mut self, other: Recorder<'_>) {
        self.chooser.merge(&other.chooser);
        self.aggregator.merge(other.aggregator);
        if let (Some(mine), Some(theirs)) = (&mut self.collector, other.collector) {
            mine.merge(theirs);
        }
        if let (Some(mine), Some(theirs)) = (&mut self.waterfall, other.waterfall) {
            theirs.0.into_values().for_each(|exchange| mine.add(exchange));
        }
    }
}

impl Sink for Recorder<'_> {
    fn exchange(&mut self, exchange: &Exchange) {
        let chosen = self.chooser.chooses(exchange);
        // Time is that of whole connections.
        self.aggregator.follow(exchange, chosen);
        if chosen {
            self.aggregator.record(exchange);
            if let Some(collector) = &mut self.collector {
                collector.exchange(exchange);
            }
            let is_drawn = exchange.is_complete() && exchange.group != Group::Waiting;
            if let Some(waterfall) = self.waterfall.as_mut().filter(|_| is_drawn) {
                waterfall.add(exchange.clone());
            }
        }
    }

    fn settled(&mut self, settled: &Settled) {
        self.aggregator.settled(settled);
    }

    fn closed(&mut self, connection: &Connection) {
        self.aggregator.closed(connection);
        if let Some(collector) = &mut self.collector {
            collector.closed(connection);
        }
    }
}
