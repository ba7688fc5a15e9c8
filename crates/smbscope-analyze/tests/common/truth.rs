//! Compares an analysis with the played script: exchanges that it must find, and false matches that it must never make.

use super::Analysis;
use proptest::prelude::*;
use proptest::test_runner::{FileFailurePersistence, RngSeed};
use smbscope_analyze::{Analyzer, AnalyzerOptions};
use smbscope_capture::decode::Decoder;
use smbscope_capture::reader::{CaptureInput, CaptureSet};
use smbscope_capture::tcp::FlowTable;
use smbscope_model::{Command, Exchange, ExchangeOutcome, PacketRef, Quality, Stamp};
use smbscope_testkit::packet::HEADERS;
use smbscope_testkit::script::{TrueExchange, response_tag};
use smbscope_testkit::{Packet, Span, damage, pcap};
use smbscope_wire::smb1::Smb1Command;
use std::io::Write;

/// Effects of network and capture that hide nothing: `(seed, resegment, coalesce, duplicate, reorder)`.
pub(crate) fn harmless() -> impl Strategy<Value = (u64, bool, bool, f64, f64)> {
    (any::<u64>(), any::<bool>(), any::<bool>(), 0.0..0.3f64, 0.0..0.5f64)
}

pub(crate) fn apply_harmless(
    packets: &[Packet],
    (seed, resegment, coalesce, duplicate, reorder): (u64, bool, bool, f64, f64),
) -> Vec<Packet> {
    let mut packets = packets.to_vec();
    if resegment {
        packets = damage::resegment(&packets, seed, 1 + seed % 1460);
    }
    if coalesce {
        packets = damage::coalesce(&packets, seed, 0.5);
    }
    // A handshake captured after the data is useless, so it stays in front.
    let (handshake, rest) = packets.split_at(3);
    packets = [handshake, &damage::reorder(rest, seed, reorder, 5)].concat();
    damage::duplicate(&packets, seed, duplicate)
}

pub(crate) fn stamp_at(packets: &[Packet], index: Option<usize>) -> Option<Stamp> {
    index.map(|index| packets[index].segment(index + 1).stamp)
}

/// Asserts that every true exchange is complete, with its own halves and packets.
pub(crate) fn assert_exactly(
    truth: &[TrueExchange],
    packets: &[Packet],
    analysis: &Analysis,
) -> Result<(), TestCaseError> {
    assert_ends(truth, packets, analysis, |span| span.last_packet(packets))
}

/// Like [`assert_exactly`], if the network lost packets: a half ends when all of it has arrived, that is, with the last
/// retransmission.
pub(crate) fn assert_exactly_with_losses(
    truth: &[TrueExchange],
    packets: &[Packet],
    analysis: &Analysis,
) -> Result<(), TestCaseError> {
    let late: Vec<usize> = damage::late(packets).collect();
    let overlaps = |index: usize, span: Span| {
        let packet = &packets[index];
        packet.side == span.side && packet.offset < span.end && span.start < packet.end()
    };
    assert_ends(truth, packets, analysis, |span| {
        let resent = late.iter().copied().filter(|index| overlaps(*index, span));
        resent.chain(span.last_packet(packets)).max()
    })
}

fn assert_ends(
    truth: &[TrueExchange],
    packets: &[Packet],
    analysis: &Analysis,
    end: impl Fn(Span) -> Option<usize>,
) -> Result<(), TestCaseError> {
    let mut found: Vec<&Exchange> = analysis.exchanges.iter().collect();
    found.sort_by_key(|exchange| response_tag(exchange));
    prop_assert_eq!(found.len(), truth.len(), "{:?}", analysis.outcomes());
    for (exchange, truth) in found.into_iter().zip(truth) {
        let last = end(truth.response);
        prop_assert_eq!(exchange.outcome, expected_outcome(truth, packets, last));
        prop_assert_eq!(response_tag(exchange), Some(truth.tag));
        prop_assert!(truth.has_request_of(exchange), "{:?} is not {:?}", exchange, truth);
        prop_assert_eq!(exchange.request.first, stamp_at(packets, truth.request.first_packet(packets)));
        prop_assert_eq!(exchange.request.last, stamp_at(packets, end(truth.request)));
        prop_assert_eq!(exchange.response.first, stamp_at(packets, truth.response.first_packet(packets)));
        prop_assert_eq!(exchange.response.last, stamp_at(packets, last));
        let interim = truth.interim.and_then(|interim| interim.first_packet(packets));
        prop_assert_eq!(exchange.interim, stamp_at(packets, interim));
    }
    Ok(())
}

/// Complete, unless the capture reordered packets so much that the response ends before the request begins.
fn expected_outcome(truth: &TrueExchange, packets: &[Packet], last: Option<usize>) -> ExchangeOutcome {
    let first = stamp_at(packets, truth.request.first_packet(packets)).map(|stamp| stamp.time);
    let last = stamp_at(packets, last).map(|stamp| stamp.time);
    if last < first { ExchangeOutcome::ClockStep } else { ExchangeOutcome::Complete }
}

/// Describes exchanges that pair halves of different exchanges, or have a foreign timestamp.
///
/// The first packet of a half must hold its first byte. The last packet must hold any byte of it: if the capture
/// dropped a segment and later holds a needless second copy, no reader can know that the receiver did not wait for that
/// copy.
pub(crate) fn false_matches(truth: &[TrueExchange], packets: &[Packet], analysis: &Analysis) -> Vec<String> {
    let packet = |stamp: Stamp| &packets[stamp.packet.number() as usize - 1];
    let begins = |stamp: Option<Stamp>, span: Span| stamp.is_none_or(|it| packet(it).holds(span.side, span.start));
    let ends = |stamp: Option<Stamp>, span: Span| {
        let overlaps = |it: &Packet| it.side == span.side && it.offset < span.end && span.start < it.end();
        stamp.is_none_or(|it| overlaps(packet(it)))
    };
    let is_true = |exchange: &&Exchange| {
        let tag = response_tag(exchange);
        let Some(truth) = truth.iter().find(|truth| Some(truth.tag) == tag) else { return false };
        truth.has_request_of(exchange)
            && begins(exchange.request.first, truth.request)
            && ends(exchange.request.last, truth.request)
            && begins(exchange.response.first, truth.response)
            && ends(exchange.response.last, truth.response)
    };
    let wrong =
        analysis.exchanges.iter().filter(|exchange| exchange.is_complete()).filter(|exchange| !is_true(exchange));
    wrong.map(|exchange| format!("{exchange:?}\n")).collect()
}

/// Number of bytes that identify a message: frame header and SMB1 header, or the fixed part of the SMB2 header.
const IDENTIFYING: u64 = 4 + 36;

/// Returns true if the capture holds the first `length` bytes of a span, or all of it.
fn is_kept(span: Span, packets: &[Packet], length: u64) -> bool {
    let kept = |packet: &Packet| packet.payload.len().min(packet.snap.saturating_sub(HEADERS));
    let captured_end = |packet: &Packet| packet.offset + kept(packet) as u64;
    let end = span.end.min(span.start.saturating_add(length));
    let mut at = span.start;
    while at < end {
        let holders = packets.iter().filter(|packet| packet.holds(span.side, at));
        let Some(next) = holders.map(captured_end).max().filter(|next| *next > at) else { return false };
        at = next;
    }
    true
}

/// Returns true if the surviving packets identify and date both halves unambiguously: the first packet and the header
/// of the request, the header and the last packet of the response; all headers of a compound.
///
/// For SMB1, whose ids are recycled, nothing of the client may be missing between request and response, because it
/// could hide another request with the same ids. All parts of a transaction must be present.
pub(crate) fn can_be_found(exchange: &TrueExchange, packets: &[Packet]) -> bool {
    let Some(response) = exchange.response.first_packet(packets) else { return false };
    let second_of_compound = exchange.tag % 2 == 1;
    let needed = if second_of_compound { u64::MAX } else { IDENTIFYING };
    let named = is_kept(exchange.request, packets, needed)
        && is_kept(exchange.response, packets, needed)
        && exchange.response.last_packet(packets).is_some();
    let Command::Smb1(command) = exchange.command else { return named };
    // Client data begins at sequence number 1001.
    let seen_by_server = u64::from(packets[response].acknowledgment.wrapping_sub(1001));
    let until_response = Span { end: seen_by_server.max(exchange.request.end), ..exchange.request };
    let parts = command == Smb1Command::TRANSACTION2;
    named
        && until_response.is_captured(packets, u64::MAX >> 1)
        && (!parts || exchange.response.is_captured(packets, u64::MAX >> 1))
}

/// Reads captures from files like `smbscope analyze` does. Returns exchanges and counters.
pub(crate) fn read_files(files: &[&[Packet]]) -> (Vec<Exchange>, Quality) {
    read_contents(&files.iter().map(|packets| pcap::nanos(packets)).collect::<Vec<_>>())
}

pub(crate) fn read_contents(files: &[Vec<u8>]) -> (Vec<Exchange>, Quality) {
    let written: Vec<_> = files
        .iter()
        .map(|bytes| {
            let mut file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
            file.write_all(bytes).expect("and written");
            file
        })
        .collect();
    let inputs: Vec<CaptureInput> = written.iter().map(|file| CaptureInput::File(file.path().to_owned())).collect();
    let mut set = CaptureSet::open(&inputs).expect("a capture file can be read");
    let mut exchanges = Vec::new();
    let mut flows = FlowTable::new(Analyzer::new(AnalyzerOptions::default(), |exchange| exchanges.push(exchange)));
    let (mut decoder, mut quality) = (Decoder::new(), Quality::default());
    while let Some(packet) = set.next_packet().expect("to its end") {
        if let Some(segment) = decoder.decode(&packet, &mut quality) {
            flows.segment(&segment);
        }
    }
    decoder.finish(&mut quality);
    quality.merge(&flows.finish().finish().quality);
    quality.merge(set.quality());
    (exchanges, quality)
}

/// Replaces the packet numbers of an exchange.
pub(crate) fn renumber(exchange: &mut Exchange, number: impl Fn(PacketRef) -> PacketRef) {
    let (request, response) = (&mut exchange.request, &mut exchange.response);
    let stamps =
        [&mut request.first, &mut request.last, &mut exchange.interim, &mut response.first, &mut response.last];
    stamps.into_iter().flatten().for_each(|stamp| stamp.packet = number(stamp.packet));
}

/// Deterministic cases, so that failures are reproducible. `PROPTEST_RNG_SEED` and `PROPTEST_CASES` select others.
pub(crate) fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    let is_set = |name| std::env::var_os(name).is_some();
    ProptestConfig {
        cases: if is_set("PROPTEST_CASES") { default.cases } else { 512 },
        rng_seed: if is_set("PROPTEST_RNG_SEED") { default.rng_seed } else { RngSeed::Fixed(1997) },
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct("tests/properties.proptest-regressions"))),
        ..default
    }
}
