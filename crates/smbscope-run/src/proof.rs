//! Captures load points and compares each capture with the client's measurements.

use crate::document::{self, CaptureFacts, LoadPointCapture};
use crate::sniffer::{FinishedCapture, RunningCapture, SnapLength, Sniffer};
use crate::wire::Wire;
use crate::{BenchError, one_line};
use smbscope_analyze::AnalyzerOptions;
use smbscope_analyze::pipeline::{self, Sharding, Sink, Threading};
use smbscope_capture::reader::{CaptureInput, CaptureSet};
use smbscope_load::engine::ExchangeLog;
use smbscope_load::engine::result::LoadPointResult;
use smbscope_model::{ConnectionSummary, Exchange, Settled};
use smbscope_report::{Report, bench};
use smbscope_stats::Aggregator;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Captures each load point. A failure is reported with the load point and doesn't end the run.
pub(crate) struct Captures {
    /// `None` if no captures are wanted.
    sniffer: Option<Result<Sniffer, String>>,
    server: SocketAddr,
    under_way: Option<Result<RunningCapture, String>>,
    taken: Option<Result<FinishedCapture, String>>,
}

impl Captures {
    /// Captures the traffic with `server` if a snap length is given.
    pub(crate) fn new(server: SocketAddr, asked_for: Option<SnapLength>) -> Captures {
        Captures { sniffer: asked_for.map(|bytes| Sniffer::find(server, bytes)), server, under_way: None, taken: None }
    }

    pub(crate) fn why_not(&self) -> Option<&str> {
        self.sniffer.as_ref()?.as_ref().err().map(String::as_str)
    }

    pub(crate) fn begin(&mut self, file: impl FnOnce() -> Result<PathBuf, BenchError>) {
        self.under_way = self.sniffer.as_ref().map(|sniffer| {
            let sniffer = sniffer.as_ref().map_err(String::clone)?;
            file().map_err(|error| one_line(&error)).and_then(|file| sniffer.begin(&file))
        });
    }

    /// Stops the capture after the measured part.
    pub(crate) fn end(&mut self) {
        self.taken = self.under_way.take().map(|capture| capture.and_then(RunningCapture::end));
    }

    /// Returns the document's entry of the load point, with the results of its capture.
    pub(crate) fn held_against(
        &mut self,
        run: &LoadPointResult,
        exchanges: Option<&ExchangeLog>,
        name: String,
    ) -> bench::BenchRun {
        if self.taken.is_none() {
            // The load point ended before the measured part.
            self.end();
        }
        let taken = match self.taken.take() {
            None => return document::load_point(run, LoadPointCapture::NotAsked),
            Some(Err(why)) => return document::load_point(run, LoadPointCapture::Skipped(why)),
            Some(Ok(taken)) => taken,
        };
        // An incomplete list of commands is still matched one by one.
        let mut wire = Wire::new(run, exchanges.map(|exchanges| exchanges.list.as_slice()));
        match read(&taken, self.server.port(), &mut |exchange| wire.record(exchange)) {
            Ok(facts) => {
                document::load_point(run, LoadPointCapture::Made(&wire, CaptureFacts { file: Some(name), ..facts }))
            }
            Err(why) => document::load_point(run, LoadPointCapture::Skipped(why)),
        }
    }
}

struct ForwardingAggregator<'e> {
    each: &'e mut (dyn FnMut(&Exchange) + Send),
    aggregator: Aggregator,
}

impl Sink for ForwardingAggregator<'_> {
    fn exchange(&mut self, exchange: &Exchange) {
        (self.each)(exchange);
        self.aggregator.follow(exchange, true);
        self.aggregator.record(exchange);
    }

    fn settled(&mut self, settled: &Settled) {
        self.aggregator.settled(settled);
    }

    fn closed(&mut self, connection: &ConnectionSummary) {
        self.aggregator.closed(connection);
    }
}

/// Reads a capture and forwards its commands in order of their end. Returns the capture's quality and counts. `port` is
/// the server's.
pub(crate) fn read(
    taken: &FinishedCapture,
    port: u16,
    each: &mut (dyn FnMut(&Exchange) + Send),
) -> Result<CaptureFacts, String> {
    let name = taken.file.display().to_string();
    let mut set = CaptureSet::open(&[CaptureInput::File(taken.file.clone())]).map_err(|error| one_line(&error))?;
    let options = AnalyzerOptions { ports: vec![port], ..AnalyzerOptions::default() };
    let mut sinks = [ForwardingAggregator { each, aggregator: Aggregator::new() }];
    let analysis = pipeline::run(&mut set, &options, Sharding::None, Threading::Inline, &mut sinks, |_| {}).map_err(
        |failure| format!("cannot read {name}: an analysis that takes nothing for granted failed: {failure:?}"),
    )?;
    let packets = analysis.quality.packets;
    let report = Report {
        captures: set.captures().to_vec(),
        quality: analysis.quality,
        skipped: analysis.skipped,
        connections: analysis.connections,
        aggregate: sinks[0].aggregator.finish(),
        first: analysis.first,
        last: analysis.last,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..Report::default()
    };
    Ok(CaptureFacts {
        file: None,
        quality: report.quality_sentence(),
        packets,
        dropped_packets: taken.dropped.unwrap_or_default(),
    })
}
