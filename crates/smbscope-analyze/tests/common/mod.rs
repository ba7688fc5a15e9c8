//! Runs analyses on packets and files.
#![allow(dead_code)] // Each test file uses its own part.

pub(crate) mod ciphertext;
pub(crate) mod truth;

use smbscope_analyze::{Analyzer, AnalyzerOptions, AnalyzerOutcome};
use smbscope_capture::decode::Decoder;
use smbscope_capture::reader::{CaptureInput, CaptureSet};
use smbscope_capture::tcp::FlowTable;
use smbscope_model::{ConnectionSummary, Exchange, Quality, Stamp, TimeKind};
use smbscope_testkit::{Conversation, Packet, Side, micros};
use std::path::{Path, PathBuf};

pub(crate) struct Analysis {
    pub(crate) exchanges: Vec<Exchange>,
    pub(crate) quality: Quality,
    pub(crate) connections: Vec<ConnectionSummary>,
}

/// Analyses packets as the first file of a capture.
pub(crate) fn analyze(packets: &[Packet]) -> Analysis {
    analyze_ports(packets, &[])
}

/// Analyses the flows of some ports only.
pub(crate) fn analyze_ports(packets: &[Packet], ports: &[u16]) -> Analysis {
    let mut exchanges = Vec::new();
    let options = AnalyzerOptions { ports: ports.to_vec(), ..AnalyzerOptions::default() };
    let mut flows = FlowTable::new(Analyzer::new(options, |exchange| exchanges.push(exchange)));
    for (index, packet) in packets.iter().enumerate() {
        flows.segment(&packet.segment(index + 1));
    }
    let AnalyzerOutcome { quality, connections, .. } = flows.finish().finish();
    exchanges.sort_by_key(|exchange| {
        let first = exchange.request.first.or(exchange.response.first).expect("one half was seen");
        (exchange.flow, first.packet.number(), exchange.message_id, exchange.outcome)
    });
    Analysis { exchanges, quality, connections }
}

/// A capture of `tests/data`.
pub(crate) fn bundled(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data").join(name)
}

/// Reads the exchanges of a capture file. `keep` selects packets by number.
pub(crate) fn read_exchanges(file: &Path, mut keep: impl FnMut(u64) -> bool) -> Vec<Exchange> {
    let mut set = CaptureSet::open(&[CaptureInput::File(file.to_owned())]).expect("a capture that can be read");
    let mut exchanges = Vec::new();
    let mut flows = FlowTable::new(Analyzer::new(AnalyzerOptions::default(), |exchange| exchanges.push(exchange)));
    let (mut decoder, mut quality) = (Decoder::new(), Quality::default());
    while let Some(packet) = set.next_packet().expect("to its end") {
        if let Some(segment) = decoder.decode(&packet, &mut quality)
            && keep(packet.stamp.packet.number())
        {
            flows.segment(&segment);
        }
    }
    drop(flows.finish());
    exchanges
}

pub(crate) fn read_connections(file: &Path) -> Vec<ConnectionSummary> {
    let mut set = CaptureSet::open(&[CaptureInput::File(file.to_owned())]).expect("a capture that can be read");
    let mut flows = FlowTable::new(Analyzer::new(AnalyzerOptions::default(), |_| {}));
    let (mut decoder, mut quality) = (Decoder::new(), Quality::default());
    while let Some(packet) = set.next_packet().expect("to its end") {
        if let Some(segment) = decoder.decode(&packet, &mut quality) {
            flows.segment(&segment);
        }
    }
    flows.finish().finish().connections
}

/// Returns sender and presence of data for each packet of a capture of one connection.
pub(crate) fn read_packets(file: &Path) -> Vec<(Side, bool)> {
    let mut set = CaptureSet::open(&[CaptureInput::File(file.to_owned())]).expect("a capture that can be read");
    let (mut decoder, mut quality) = (Decoder::new(), Quality::default());
    let mut packets = Vec::new();
    while let Some(packet) = set.next_packet().expect("to its end") {
        let segment = decoder.decode(&packet, &mut quality);
        packets.push(segment.map_or((Side::Client, false), |segment| {
            let side = if segment.source.port() == 445 { Side::Server } else { Side::Client };
            (side, segment.payload_length > 0)
        }));
    }
    packets
}

/// Analyses an undamaged conversation.
pub(crate) fn analyze_told(conversation: &Conversation) -> Analysis {
    analyze(&conversation.packets())
}

impl Analysis {
    pub(crate) fn only(&self) -> &Exchange {
        let [exchange] = &self.exchanges[..] else { panic!("one exchange expected: {:#?}", self.exchanges) };
        exchange
    }

    pub(crate) fn outcomes(&self) -> Vec<String> {
        self.exchanges.iter().map(|exchange| format!("{} {}", exchange.command, exchange.outcome)).collect()
    }
}

/// The four timestamps in microseconds since the conversation's time zero; -1 if not captured.
pub(crate) fn times(exchange: &Exchange) -> [i64; 4] {
    [exchange.request.first, exchange.request.last, exchange.response.first, exchange.response.last].map(us)
}

/// Microseconds since the conversation's time zero.
pub(crate) fn us(stamp: Option<Stamp>) -> i64 {
    stamp.map_or(-1, micros)
}

pub(crate) fn duration_us(exchange: &Exchange, kind: TimeKind) -> Option<i64> {
    exchange.time(kind).map(|time| time.0 / 1000)
}
