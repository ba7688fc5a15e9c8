//! Captures from `traffic` match their stated counts: an analysis finds the same.

use smbscope_analyze::{Analyzer, AnalyzerOptions};
use smbscope_capture::decode::Decoder;
use smbscope_capture::reader::CaptureSet;
use smbscope_capture::tcp::FlowTable;
use smbscope_model::{Command, ExchangeOutcome, Quality};
use smbscope_testkit::traffic::{Damage, Limit, Mix, Segments, Settings, Truth, generate};
use smbscope_wire::smb2;
use std::collections::BTreeMap;
use std::io::Cursor;

const MIXES: [Mix; 4] = [Mix::NetBench, Mix::Office, Mix::Bulk, Mix::Site];

/// Results of an analysis: exchanges by command and outcome.
struct Found {
    exchanges: BTreeMap<(Command, ExchangeOutcome), u64>,
    quality: Quality,
    connections: u64,
}

impl Found {
    fn with(&self, outcome: ExchangeOutcome) -> BTreeMap<Command, u64> {
        let these = self.exchanges.iter().filter(|((_, of), _)| *of == outcome);
        these.map(|((command, _), count)| (*command, *count)).collect()
    }

    fn requests(&self) -> BTreeMap<Command, u64> {
        let mut requests = BTreeMap::new();
        for ((command, _), count) in &self.exchanges {
            *requests.entry(*command).or_default() += count;
        }
        requests
    }
}

fn write(settings: &Settings) -> (Vec<u8>, Truth) {
    let mut file = Vec::new();
    let truth = generate(settings, &mut file).expect("a Vec takes everything");
    (file, truth)
}

fn analyze(file: Vec<u8>) -> Found {
    let mut set = CaptureSet::from_reader("traffic", Box::new(Cursor::new(file))).expect("a capture");
    let (mut decoder, mut quality) = (Decoder::new(), Quality::default());
    let mut exchanges = BTreeMap::new();
    let count = |exchange: smbscope_model::Exchange| {
        *exchanges.entry((exchange.command, exchange.outcome)).or_default() += 1;
    };
    let mut flows = FlowTable::new(Analyzer::new(AnalyzerOptions::default(), count));
    while let Some(packet) = set.next_packet().expect("a whole capture") {
        if let Some(segment) = decoder.decode(&packet, &mut quality) {
            flows.segment(&segment);
        }
    }
    let outcome = flows.finish().finish();
    quality.merge(set.quality());
    quality.merge(&outcome.quality);
    Found { exchanges, quality, connections: outcome.connections.len() as u64 }
}

fn small(mix: Mix) -> Settings {
    Settings::new(mix, 20, Limit::Bytes(4_000_000))
}

#[test]
fn a_seed_gives_the_same_bytes_and_another_seed_others() {
    for mix in MIXES {
        let settings = Settings { damage: Damage { drop: 0.01, duplicate: 0.01, reorder: 0.01 }, ..small(mix) };
        let (file, truth) = write(&settings);
        assert_eq!(write(&settings), (file.clone(), truth));
        assert_ne!(write(&Settings { seed: 2, ..settings }).0, file);
    }
}

#[test]
fn analysis_finds_every_packet_request_and_response_that_was_written() {
    for mix in MIXES {
        for segments in [Segments::Mtu, Segments::Offload] {
            let (file, truth) = write(&Settings { segments, ..small(mix) });
            assert_eq!(file.len() as u64, truth.file_bytes);
            let found = analyze(file);
            let Quality { packets, wire_bytes, captured_bytes, pure_acks, interim_responses, .. } = found.quality;
            assert_eq!((packets, wire_bytes), (truth.packets, truth.wire_bytes), "{mix:?}");
            assert_eq!((captured_bytes, pure_acks), (truth.captured_bytes, truth.pure_acks), "{mix:?}");
            assert_eq!(interim_responses, truth.interim_responses);
            assert_eq!(found.connections, truth.flows);
            assert_eq!(found.with(ExchangeOutcome::Complete), truth.responses, "{mix:?} {segments:?}");
            // A request truncated by the end of the capture has no response, but its header may have been seen.
            let begun: u64 = found.requests().values().sum();
            let all = truth.all_requests()..=truth.all_requests() + truth.flows;
            assert!(all.contains(&begun), "{mix:?}: {begun} requests, {} written", truth.all_requests());
            assert_eq!(found.quality.dropped_packets, 0);
            assert_eq!(found.quality.retransmitted_segments, truth.resent_segments, "{mix:?}");
        }
    }
}

#[test]
fn most_packets_of_a_full_capture_with_data_fill_an_ethernet_frame() {
    for mix in MIXES {
        let (_, truth) = write(&small(mix));
        let mean = truth.wire_bytes / (truth.packets - truth.pure_acks);
        assert!((900..=1514).contains(&mean), "{mix:?}: {mean} bytes on average");
    }
}

#[test]
fn a_snapped_capture_shows_the_same_packets_and_every_command_with_a_whole_header() {
    for mix in [Mix::NetBench, Mix::Bulk] {
        let limit = Limit::Packets(8_000);
        let (full, full_truth) = write(&Settings { limit, ..small(mix) });
        let (snapped, truth) = write(&Settings { limit, snap: 128, ..small(mix) });
        assert!(snapped.len() < full.len() / 3 && truth.snapped_packets > truth.packets / 4);
        assert_eq!((truth.packets, truth.wire_bytes), (full_truth.packets, full_truth.wire_bytes));
        assert_eq!(truth.responses, full_truth.responses);
        let found = analyze(snapped);
        assert_eq!(found.quality.snapped_packets, truth.snapped_packets);
        assert_eq!(found.with(ExchangeOutcome::Complete), truth.responses);
    }
}

#[test]
fn damage_is_what_was_asked_for_and_only_ever_hides_exchanges() {
    for mix in MIXES {
        let damage = Damage { drop: 0.002, duplicate: 0.01, reorder: 0.02 };
        let (file, truth) = write(&Settings { damage, ..small(mix) });
        let near = |count: u64, share: f64| {
            let expected = truth.packets as f64 * share;
            (expected * 0.4..expected * 1.8).contains(&(count as f64))
        };
        assert!(near(truth.dropped_packets, 0.002) && near(truth.duplicated_packets, 0.01), "{truth:?}");
        assert!(near(truth.reordered_packets, 0.02 * 0.25), "{truth:?}");
        let found = analyze(file);
        assert!(found.quality.dropped_packets <= truth.dropped_packets, "{mix:?}");
        assert!(found.quality.duplicate_packets > 0 && found.quality.out_of_order_segments > 0);
        for (command, count) in found.with(ExchangeOutcome::Complete) {
            assert!(count <= truth.responses[&command], "{mix:?} {command}");
        }
        let complete: u64 = found.with(ExchangeOutcome::Complete).values().sum();
        assert!(complete * 100 >= truth.all_responses() * 80, "{mix:?}: {complete} of {}", truth.all_responses());
    }
}

#[test]
fn thousands_of_flows_are_open_at_once() {
    let settings = Settings::new(Mix::Office, 3_000, Limit::Bytes(12_000_000));
    let (file, truth) = write(&Settings { think_ns: 100_000_000, ..settings });
    assert_eq!(truth.flows, 3_000);
    // Some connections have sent nothing when the capture stops.
    assert_eq!(analyze(file).connections, truth.requests[&Command::Smb2(smb2::Smb2Command::NEGOTIATE)]);
}
