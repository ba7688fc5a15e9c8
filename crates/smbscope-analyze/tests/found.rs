//! Captures that once caused a false match. `tests/data/README.md` states the correct results: they follow from the
//! packets removed from an undamaged capture, and from tshark's analysis of it.

use crate::common;
use smbscope_model::{Exchange, ExchangeOutcome, Quality, TimeKind};
use std::path::Path;

fn contents(name: &str) -> (Vec<Exchange>, Quality) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/found").join(name);
    common::truth::read_contents(&[std::fs::read(path).expect("the capture is there")])
}

/// Exchanges of a capture in `tests/data/found`, ordered by first packet.
fn exchanges(name: &str) -> Vec<Exchange> {
    let (mut exchanges, _) = contents(name);
    exchanges.sort_by_key(|exchange| {
        let first = exchange.request.first.or(exchange.response.first);
        (first.map(|stamp| stamp.packet), exchange.message_id)
    });
    exchanges
}

/// File numbers of the first packet of the request and the last packet of the response.
fn packets(exchange: &Exchange) -> [Option<u64>; 2] {
    [exchange.request.first, exchange.response.last].map(|stamp| stamp.map(|stamp| stamp.packet.number()))
}

fn from_packet(exchanges: &[Exchange], number: u64) -> Vec<(ExchangeOutcome, [Option<u64>; 2])> {
    let begins = |exchange: &&Exchange| packets(exchange)[0].or(packets(exchange)[1]) == Some(number);
    exchanges.iter().filter(begins).map(|exchange| (exchange.outcome, packets(exchange))).collect()
}

#[test]
fn the_answer_to_an_smb2_negotiate_is_not_taken_for_that_of_the_smb1_negotiate() {
    let found = exchanges("F1-negotiate.pcap.zst");
    assert_eq!(from_packet(&found, 4), [(ExchangeOutcome::ResponseNotCaptured, [Some(4), None])]);
    assert_eq!(from_packet(&found, 6), [(ExchangeOutcome::RequestNotCaptured, [None, Some(6)])]);
    assert_eq!(from_packet(&found, 7), [(ExchangeOutcome::Complete, [Some(7), Some(8)])]);
}

#[test]
fn ids_that_were_not_seen_twice_say_nothing_of_how_soon_they_come_again() {
    // Both requests of packet 1199 were answered in the gap after it; 1200 answers a later request.
    let found = exchanges("F4-smb1-mid.pcap.zst");
    let lost = (ExchangeOutcome::ResponseNotCaptured, [Some(1199), None]);
    assert_eq!(from_packet(&found, 1199), [lost, lost]);
    assert_eq!(from_packet(&found, 1200), [(ExchangeOutcome::AmbiguousMatch, [None, Some(1200)])]);
    let complete = |last| (ExchangeOutcome::Complete, [Some(1202), Some(last)]);
    assert_eq!(from_packet(&found, 1202), [complete(1203), complete(1204)]);
}

#[test]
fn a_transaction_with_secondary_requests_ends_with_its_final_response_at_any_snap_length() {
    for name in ["F5-ntt-full.pcap.zst", "F5-ntt-snap128.pcap.zst"] {
        let found = exchanges(name);
        let described: Vec<_> = found
            .iter()
            .map(|exchange| (packets(exchange), exchange.time(TimeKind::ResponseTime).map(|time| time.0 / 1000)))
            .collect();
        let expected = [(4, 5, 300), (6, 12, 9600), (13, 14, 300), (15, 21, 9600), (22, 23, 300), (24, 30, 9600)];
        assert_eq!(described, expected.map(|(first, last, us)| ([Some(first), Some(last)], Some(us))), "{name}");
        assert!(found.iter().all(Exchange::is_complete), "{name}");
    }
}

#[test]
fn the_next_go_ahead_is_not_taken_for_the_answer_to_a_block() {
    let found = exchanges("F6-writeraw.pcap.zst");
    assert_eq!(from_packet(&found, 20), [(ExchangeOutcome::ResponseNotCaptured, [Some(20), None])]);
    assert_eq!(from_packet(&found, 51), [(ExchangeOutcome::Complete, [Some(51), Some(52)])]);
    assert_eq!(from_packet(&found, 53), [(ExchangeOutcome::Complete, [Some(53), Some(81)])]);
}

#[test]
fn a_lost_frame_header_costs_one_command_where_headers_have_segments_of_their_own() {
    let (exchanges, quality) = contents("nbss_own_segment_1_lost.pcap.zst");
    let of = |outcome: ExchangeOutcome| exchanges.iter().filter(|exchange| exchange.outcome == outcome).count();
    assert_eq!(
        [of(ExchangeOutcome::Complete), of(ExchangeOutcome::RequestNotCaptured), exchanges.len()],
        [299, 1, 300]
    );
    assert_eq!([quality.framing_lost, quality.framing_found, quality.bytes_skipped], [1, 1, 68]);
}

#[test]
fn a_header_that_the_snap_length_cut_is_no_missing_packet() {
    let (_, quality) = contents("tso_snap256_smb1_nothing_dropped.pcap.zst");
    let Quality { capture_gaps, dropped_packets, framing_lost, framing_cut, .. } = quality;
    assert_eq!([capture_gaps, dropped_packets, framing_lost, framing_cut], [0, 0, 3, 3]);
}
