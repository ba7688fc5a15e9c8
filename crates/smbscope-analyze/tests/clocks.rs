//! Captures with bad clocks: different clocks per direction, and coarse ones.
//!
//! Expected exchanges come from the same packets with true times.

use smbscope_analyze::AnalyzerOptions;
use smbscope_analyze::pipeline::{CaptureFindings, Sharding, Threading, run};
use smbscope_capture::reader::{CaptureInput, CaptureSet};
use smbscope_model::{CaptureClockOffset, Exchange, Nanos, TimeKind, Timestamp};
use smbscope_testkit::script::{Ids, Script};
use smbscope_testkit::{Packet, Side, pcap};
use std::io::Write;

fn analyze(
    packets: &[Packet],
    is_compressed: bool,
) -> (CaptureFindings, Vec<Exchange>, Option<CaptureClockOffset>, Option<Nanos>) {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    let bytes = pcap::nanos(packets);
    let bytes = if is_compressed { zstd::encode_all(bytes.as_slice(), 1).expect("memory takes it") } else { bytes };
    file.write_all(&bytes).expect("and written");
    let mut exchanges = Vec::new();
    let inputs = [CaptureInput::File(file.path().to_owned())];
    let mut set = CaptureSet::open_in_order(&inputs).expect("a capture");
    if set.captures()[0].clock_offset.is_none() {
        set = CaptureSet::open(&inputs).expect("a capture");
    }
    let mut sinks = [|exchange: &Exchange| exchanges.push(exchange.clone())];
    let way = (Sharding::None, Threading::Inline);
    let analysis = run(&mut set, &AnalyzerOptions::default(), way.0, way.1, &mut sinks, |_| {}).expect("one shard");
    let info = &set.captures()[0];
    (analysis, exchanges, info.clock_offset, info.coarse_clock)
}

/// Message id and response time of each exchange.
fn times(exchanges: &[Exchange]) -> Vec<(Option<u64>, Option<i64>)> {
    exchanges
        .iter()
        .map(|exchange| (exchange.message_id, exchange.time(TimeKind::ResponseTime).map(|time| time.0)))
        .collect()
}

fn shifted(packets: &[Packet], side: Side, by: i64) -> Vec<Packet> {
    let mut packets = packets.to_vec();
    packets.iter_mut().filter(|packet| packet.side == side).for_each(|packet| packet.time.0 += by);
    packets
}

#[test]
fn two_clocks_are_told_and_set_right_whatever_the_order_of_the_file() {
    for seed in 0..40 {
        let packets = Script::random(Ids::Smb2, 60, seed).play().packets;
        let (_, expected, none, _) = analyze(&packets, false);
        assert_eq!(none, None, "seed {seed}: one clock");
        for (side, by) in [(Side::Server, 1_300_000), (Side::Server, 37_000_000_000), (Side::Client, 40_000_000)] {
            for is_sorted in [false, true] {
                let mut late = shifted(&packets, side, by);
                if is_sorted {
                    late.sort_by_key(|packet| packet.time);
                }
                let how = format!("seed {seed}, {side:?} by {by}, sorted: {is_sorted}");
                let (analysis, found, offset, _) = analyze(&late, seed % 2 == 0);
                // An offset that contradicts no acknowledgment can't be detected.
                let Some(offset) = offset else {
                    assert!(by < 10_000_000, "{how}");
                    continue;
                };
                assert_eq!(offset.of_servers, side == Side::Server, "{how}");
                assert!((offset.low.0..=offset.high.0).contains(&by), "{how}: {offset:?}");
                let error = (offset.applied.0 - by).abs();
                let width = offset.high.0 - offset.low.0;
                assert!(error <= width, "{how}: {offset:?}");
                let (expected, found) = (times(&expected), times(&found));
                assert_eq!(expected.len(), found.len(), "{how}");
                for ((id, expected), (other, found)) in expected.iter().zip(&found) {
                    assert_eq!(id, other, "{how}");
                    let near = match (expected, found) {
                        (Some(expected), Some(found)) => (expected - found).abs() <= error,
                        (None, None) => true,
                        _ => false,
                    };
                    assert!(near, "{how}: id {id:?} took {expected:?}, found {found:?}, error {error}");
                }
                assert_eq!(analysis.quality.retransmitted_segments, 0, "{how}");
            }
        }
    }
}

#[test]
fn a_coarse_clock_is_told_by_its_smallest_step() {
    for seed in 0..20 {
        let mut packets = Script::random(Ids::Smb2, 60, seed).play().packets;
        assert_eq!(analyze(&packets, false).3, None, "seed {seed}");
        // Spread over seconds, with the clock step of Windows before version 8.
        let (first, step) = (packets[0].time.0, 15_625_000);
        for packet in &mut packets {
            packet.time = Timestamp((packet.time.0 - first) * 20 / step * step);
        }
        let coarse = analyze(&packets, false).3;
        assert!(coarse.is_none_or(|coarse| coarse.0 > 0 && coarse.0 % step == 0), "seed {seed}: {coarse:?}");
        packets.iter_mut().for_each(|packet| packet.time = Timestamp(7));
        assert_eq!(analyze(&packets, seed % 2 == 0).3, Some(Nanos(0)), "seed {seed}");
    }
}
