//! A capture of a load point, read and held against what the client measured.

use crate::document::CaptureFacts;
use crate::sniffer::Taken;
use crate::wire::Wire;
use anyhow::Context;
use smbscope_analyze::Options;
use smbscope_analyze::pipeline::{self, Sharding, Sink, Threading};
use smbscope_capture::reader::{CaptureInfo, CaptureSet, Input};
use smbscope_model::{Connection, Exchange, Settled};
use smbscope_report::{CaptureEntry, Report};
use smbscope_stats::Aggregator;

/// What each exchange of the capture is looked at for: beside the client's, and for how far the capture can be trusted.
struct Both<'w> {
    wire: &'w mut Wire,
    aggregator: Aggregator,
}

impl Sink for Both<'_> {
    fn exchange(&mut self, exchange: &Exchange) {
        self.wire.record(exchange);
        self.aggregator.follow(exchange, true);
        self.aggregator.record(exchange);
    }

    fn settled(&mut self, settled: &Settled) {
        self.aggregator.settled(settled);
    }

    fn closed(&mut self, connection: &Connection) {
        self.aggregator.closed(connection);
    }
}

/// Puts the commands of a capture beside those of the client, and says how far it can be trusted. `port` is the
/// server's.
pub(crate) fn read(taken: &Taken, port: u16, wire: &mut Wire) -> anyhow::Result<CaptureFacts> {
    let name = taken.file.display().to_string();
    let mut set = CaptureSet::open(&[Input::File(taken.file.clone())])?;
    let options = Options { ports: vec![port], ..Options::default() };
    let mut sinks = [Both { wire, aggregator: Aggregator::new() }];
    let analysis = pipeline::run(&mut set, &options, Sharding::None, Threading::Inline, &mut sinks, |_| {})
        .map_err(|failure| anyhow::anyhow!("an analysis that takes nothing for granted failed: {failure:?}"))
        .with_context(|| format!("cannot read {name}"))?;
    let packets = analysis.quality.packets;
    let report = Report {
        title: None,
        captures: set.captures().iter().map(capture_entry).collect(),
        quality: analysis.quality,
        skipped: analysis.skipped,
        connections: analysis.connections,
        aggregate: sinks[0].aggregator.finish(),
        first: analysis.first,
        last: analysis.last,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        warnings: Vec::new(),
        filter: None,
        slices: None,
        interval: None,
        slow: smbscope_report::Thresholds::default(),
    };
    Ok(CaptureFacts {
        file: None,
        quality: report.quality_sentence(),
        packets,
        dropped_packets: taken.dropped.unwrap_or_default(),
    })
}

/// A capture as reports have it.
pub fn capture_entry(info: &CaptureInfo) -> CaptureEntry {
    CaptureEntry {
        name: info.name.clone(),
        format: info.format.to_owned(),
        compression: info.compression.map(str::to_owned),
        packets: info.packets,
        bytes: info.bytes,
        first: info.first,
        last: info.last,
        resolution_ns: info.resolution_ns,
        snap_length: info.snap_length,
        link_types: info.link_types.clone(),
        warnings: info.truncated.iter().chain(&info.warnings).cloned().collect(),
    }
}
