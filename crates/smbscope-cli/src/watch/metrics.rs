//! Metrics of `watch` for Prometheus.

use smbscope_capture::live::PacketDrops;
use smbscope_load::engine::ExchangeObserver;
use smbscope_model::{Exchange, FlowDirection};
use smbscope_report::Report;
use smbscope_run::analysis::live::LiveSecond;
use smbscope_run::exposition::{MetricsRecorder, MetricsRegistry};
use smbscope_stats::TimeSplit;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Servers whose retransmissions are counted.
const SERVERS_MAX: usize = 1_000;

pub(super) struct WatchMetrics {
    registry: MetricsRegistry,
    recorder: MetricsRecorder,
    /// Sums of all minutes.
    retransmitted: BTreeMap<SocketAddr, [u64; 2]>,
    time: TimeSplit,
    missing: u64,
}

impl WatchMetrics {
    pub(super) fn new(registry: MetricsRegistry) -> WatchMetrics {
        let recorder = registry.recorder();
        WatchMetrics { registry, recorder, retransmitted: BTreeMap::new(), time: TimeSplit::default(), missing: 0 }
    }

    pub(super) fn exchange(&mut self, exchange: &Exchange) {
        self.recorder.exchange(exchange);
    }

    pub(super) fn second(&mut self, second: &LiveSecond) {
        self.recorder.publish();
        self.registry.update(|figures| {
            figures.outstanding = second.groups.iter().map(|group| (group.group, group.outstanding)).collect();
            figures.last_packet = second.last_packet;
        });
    }

    /// Adds a minute. `dropped` are the packets that did not reach the capture since the start.
    pub(super) fn minute(&mut self, report: &Report, dropped: Option<PacketDrops>) {
        self.registry.add_answer(&report.explanation.answer);
        for connection in &report.connections {
            let server = connection.endpoints.server;
            if self.retransmitted.len() < SERVERS_MAX || self.retransmitted.contains_key(&server) {
                let sums = self.retransmitted.entry(server).or_default();
                sums[0] += connection.to_server.retransmitted;
                sums[1] += connection.to_client.retransmitted;
            }
        }
        self.time.add(&report.aggregate.splits.whole);
        self.missing += report.quality.dropped_packets;
        let directions = [FlowDirection::Forward, FlowDirection::Backward];
        self.registry.update(|figures| {
            figures.connections = Some(report.connections.len() as u64);
            let by_server = self.retransmitted.iter();
            figures.retransmitted = by_server
                .flat_map(|(server, sums)| directions.into_iter().zip(sums).map(|(way, sum)| (*server, way, *sum)))
                .collect();
            figures.time = Some(self.time);
            figures.dropped = dropped;
            figures.missing = Some(self.missing);
        });
    }
}
