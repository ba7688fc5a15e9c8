//! What holds for every conversation and every damage.
//!
//! Expected values come from the script that was played: it knows which response belongs to which request, and which
//! bytes of the stream each of them has.

mod common;

use common::{Analysis, analyze};
use proptest::prelude::*;
use proptest::test_runner::{FileFailurePersistence, RngSeed};
use smbscope_analyze::{Analyzer, Options};
use smbscope_capture::TcpFlags;
use smbscope_capture::decode::Decoder;
use smbscope_capture::reader::{CaptureSet, Input};
use smbscope_capture::tcp::FlowTable;
use smbscope_model::{CaptureId, Command, Exchange, Outcome, PacketRef, Quality, Stamp};
use smbscope_testkit::script::{Ids, Played, Script, TrueExchange, response_tag, scripts};
use smbscope_testkit::smb1::Part;
use smbscope_testkit::{Conversation, Packet, Side, Span, damage, framed, pcap, smb1, smb2};
use smbscope_wire::smb1::Command as Smb1Command;
use std::io::Write;

/// What the network and the capture may do without hiding anything: `(seed, resegment, coalesce, duplicate, reorder)`.
fn harmless() -> impl Strategy<Value = (u64, bool, bool, f64, f64)> {
    (any::<u64>(), any::<bool>(), any::<bool>(), 0.0..0.3f64, 0.0..0.5f64)
}

fn apply_harmless(
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
    // A handshake that comes behind the data is as good as none: it stays in front.
    let (handshake, rest) = packets.split_at(3);
    packets = [handshake, &damage::reorder(rest, seed, reorder, 5)].concat();
    damage::duplicate(&packets, seed, duplicate)
}

/// The stamp of the packet that holds a byte first, as the analysis has to give it.
fn stamp_at(packets: &[Packet], index: Option<usize>) -> Option<Stamp> {
    index.map(|index| packets[index].segment(index + 1).stamp)
}

/// Every exchange of the truth is there, complete, with its own halves and their packets.
fn assert_exactly(truth: &[TrueExchange], packets: &[Packet], analysis: &Analysis) -> Result<(), TestCaseError> {
    let mut found: Vec<&Exchange> = analysis.exchanges.iter().collect();
    found.sort_by_key(|exchange| response_tag(exchange));
    prop_assert_eq!(found.len(), truth.len(), "{:?}", analysis.outcomes());
    for (exchange, truth) in found.into_iter().zip(truth) {
        prop_assert_eq!(exchange.outcome, expected_outcome(truth, packets));
        prop_assert_eq!(response_tag(exchange), Some(truth.tag));
        prop_assert!(truth.has_request_of(exchange), "{:?} is not {:?}", exchange, truth);
        prop_assert_eq!(exchange.request.first, stamp_at(packets, truth.request.first_packet(packets)));
        prop_assert_eq!(exchange.request.last, stamp_at(packets, truth.request.last_packet(packets)));
        prop_assert_eq!(exchange.response.first, stamp_at(packets, truth.response.first_packet(packets)));
        prop_assert_eq!(exchange.response.last, stamp_at(packets, truth.response.last_packet(packets)));
        let interim = truth.interim.and_then(|interim| interim.first_packet(packets));
        prop_assert_eq!(exchange.interim, stamp_at(packets, interim));
    }
    Ok(())
}

/// Complete, unless the capture reordered so much that the answer ends before the question begins.
fn expected_outcome(truth: &TrueExchange, packets: &[Packet]) -> Outcome {
    let first = stamp_at(packets, truth.request.first_packet(packets)).map(|stamp| stamp.time);
    let last = stamp_at(packets, truth.response.last_packet(packets)).map(|stamp| stamp.time);
    if last < first { Outcome::ClockStep } else { Outcome::Complete }
}

/// The exchanges that pair the request of one with the response of another, or have a timestamp from elsewhere.
///
/// The first packet of a half must hold its first byte. The last packet must hold some byte of it: where the capture
/// dropped a segment and then holds a needless second copy of it, no reader can tell that nobody waited for the copy.
fn false_matches(truth: &[TrueExchange], packets: &[Packet], analysis: &Analysis) -> Vec<String> {
    let packet = |stamp: Stamp| &packets[stamp.packet.number as usize - 1];
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

/// Bytes of a message that say which one it is: frame header and SMB1 header, or the fixed part of the SMB2 header.
const IDENTIFYING: u64 = 4 + 36;

/// Whether what survived names both halves and dates them, and no id can be mistaken: the first packet and the header
/// of the request, the header and the last packet of the response.
///
/// For SMB1, whose ids recycle, nothing of the client may be missing between the request and the response, where
/// another request with its ids may hide; and of a transaction every part must be there.
fn can_be_found(exchange: &TrueExchange, packets: &[Packet]) -> bool {
    let Some(response) = exchange.response.first_packet(packets) else { return false };
    let named = exchange.request.is_captured(packets, IDENTIFYING)
        && exchange.response.is_captured(packets, IDENTIFYING)
        && exchange.response.last_packet(packets).is_some();
    let Command::Smb1(command) = exchange.command else { return named };
    // Client data begins at the sequence number 1001.
    let seen_by_server = u64::from(packets[response].acknowledgment.wrapping_sub(1001));
    let until_response = Span { end: seen_by_server.max(exchange.request.end), ..exchange.request };
    let parts = command == Smb1Command::TRANSACTION2;
    named
        && until_response.is_captured(packets, u64::MAX >> 1)
        && (!parts || exchange.response.is_captured(packets, u64::MAX >> 1))
}

/// Found and missed of those that can be found, under drops and other damage, by seed.
fn recall(ids: Ids, dropped: f64, burst: usize, seeds: std::ops::Range<u64>) -> (u64, u64) {
    let (mut found, mut missed) = (0, 0);
    for seed in seeds {
        let Played { packets, truth } = Script::random(ids, 80, seed).play();
        let packets = damage::retransmit(&packets, seed, 0.01, 20);
        let packets = damage::duplicate(&damage::reorder(&packets, seed, 0.01, 3), seed, 0.01);
        let packets = damage::drop_bursts(&packets, seed, dropped / burst as f64, burst);
        let analysis = analyze(&packets);
        assert_eq!(false_matches(&truth, &packets, &analysis), Vec::<String>::new(), "seed {seed}");
        for exchange in truth.iter().filter(|exchange| can_be_found(exchange, &packets)) {
            let is_it = |it: &&Exchange| response_tag(it) == Some(exchange.tag) && it.request.first.is_some();
            match analysis.exchanges.iter().find(is_it) {
                Some(it) if matches!(it.outcome, Outcome::Complete | Outcome::ClockStep) => found += 1,
                _ => missed += 1,
            }
        }
    }
    (found, missed)
}

#[test]
fn what_survives_is_found() {
    for ids in [Ids::Smb2, Ids::Smb1 { mids: 1 }, Ids::Smb1 { mids: 2 }, Ids::Smb1 { mids: 50 }] {
        let (mut found, mut missed) = (0, 0);
        for (dropped, burst) in [(0.01, 1), (0.1, 1), (0.1, 5), (0.3, 1), (0.3, 5)] {
            let (more_found, more_missed) = recall(ids, dropped, burst, 0..150);
            println!("{ids:?}, {dropped} dropped in bursts of {burst}: {more_found} found, {more_missed} missed");
            (found, missed) = (found + more_found, missed + more_missed);
        }
        assert!(100 * missed <= found + missed, "{ids:?}: {found} found, {missed} missed");
    }
}

/// Exchanges and counts of captures that are read from files, as `smbscope analyze` does.
fn read_files(files: &[&[Packet]]) -> (Vec<Exchange>, Quality) {
    let written: Vec<_> = files
        .iter()
        .map(|packets| {
            let mut file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
            file.write_all(&pcap::nanos(packets)).expect("and written");
            file
        })
        .collect();
    let inputs: Vec<Input> = written.iter().map(|file| Input::File(file.path().to_owned())).collect();
    let mut set = CaptureSet::open(&inputs).expect("a pcap file can be read");
    let mut exchanges = Vec::new();
    let mut flows = FlowTable::new(Analyzer::new(Options::default(), |exchange| exchanges.push(exchange)));
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

/// Numbers the packets of a second file after those of the first.
fn number_through(exchange: &mut Exchange, first: u64) {
    let (request, response) = (&mut exchange.request, &mut exchange.response);
    let stamps =
        [&mut request.first, &mut request.last, &mut exchange.interim, &mut response.first, &mut response.last];
    for stamp in stamps.into_iter().flatten().filter(|stamp| stamp.packet.capture == CaptureId(1)) {
        stamp.packet = PacketRef { capture: CaptureId(0), number: stamp.packet.number + first };
    }
}

/// Bytes that a hostile peer may send: anything, and messages with some bytes changed, cut or of a wrong length.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let messages: Vec<Vec<u8>> = vec![
        framed(smb2::negotiate(0, &[0x0202, 0x0311])),
        framed(smb2::negotiate_response(0, 0x0311)),
        framed(smb2::session_setup(1, "DOM", "ann")),
        framed(smb2::create(2, "a\\b.txt")),
        framed(smb2::compound(&[smb2::create_response(2, 7), smb2::close_response(3)])),
        framed(smb2::rename(4, 7, "new")),
        framed(smb2::read_response(5, &[0; 100])),
        framed(smb2::encrypted(7, 100)),
        framed([&[0xfc, b'S', b'M', b'B'][..], &[0; 60]].concat()),
        framed(smb1::negotiate(0, &["NT LM 0.12"])),
        framed(smb1::session_setup(1, "DOM", "ann").and(smb1::tree_connect(1, "\\\\s\\data"))),
        framed(smb1::nt_create(2, "\\a")),
        framed(smb1::trans2_response(3, Part { total: 900, before: 0, here: 100 })),
        framed(smb1::query_path(3, "\\a")),
        framed(smb1::read_raw(4, 7, 0, 100)),
        framed(smb1::write_raw(4, 7, 0, 100, true)),
        framed(smb1::echo(5, 3, b"hi")),
        vec![0x81, 0, 0, 68],
        vec![0x85, 0, 0, 0],
    ];
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    let mutated = (prop::sample::select(messages), changes, any::<prop::sample::Index>(), prop::bool::weighted(0.3));
    let mutated = mutated.prop_map(|(mut bytes, changes, end, cut)| {
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if cut {
            bytes.truncate(1 + end.index(bytes.len()));
        }
        bytes
    });
    prop_oneof![3 => mutated, 1 => prop::collection::vec(any::<u8>(), 1..300)]
}

/// The same cases every time, so that a failure is somebody's doing; `PROPTEST_RNG_SEED` and `PROPTEST_CASES` try others.
fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    let is_set = |name| std::env::var_os(name).is_some();
    ProptestConfig {
        cases: if is_set("PROPTEST_CASES") { default.cases } else { 512 },
        rng_seed: if is_set("PROPTEST_RNG_SEED") { default.rng_seed } else { RngSeed::Fixed(1997) },
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct("tests/properties.proptest-regressions"))),
        ..default
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn segmentation_duplication_and_reordering_change_no_exchange(script in scripts(), harm in harmless()) {
        let Played { packets, truth } = script.play();
        let packets = apply_harmless(&packets, harm);
        assert_exactly(&truth, &packets, &analyze(&packets))?;
    }

    #[test]
    fn no_damage_makes_a_false_match(
        script in scripts(),
        seed in any::<u64>(),
        dropped in 0.01..0.3f64,
        burst in 1usize..6,
        others in (0.0..0.1f64, 0.0..0.1f64, 0.0..0.1f64, 0.0..0.1f64),
        harm in harmless(),
    ) {
        let Played { packets, truth } = script.play();
        let packets = damage::retransmit(&packets, seed, others.0, 30);
        let packets = damage::retransmit_in_part(&packets, seed + 1, others.1, 30);
        let packets = apply_harmless(&packets, (harm.0, harm.1, harm.2, others.2, others.3));
        let packets = damage::drop_bursts(&packets, seed, dropped / burst as f64, burst);
        let false_matches = false_matches(&truth, &packets, &analyze(&packets));
        prop_assert!(false_matches.is_empty(), "{}", false_matches.join("\n"));
    }

    #[test]
    fn two_files_are_as_good_as_one(
        script in scripts(),
        seed in any::<u64>(),
        dropped in prop_oneof![Just(0.0), 0.01..0.2f64],
        cut in 0.0..1.0f64,
    ) {
        let packets = damage::drop_some(&script.play().packets, seed, dropped);
        prop_assume!(packets.len() >= 2);
        let first = 1 + (cut * (packets.len() - 1) as f64) as usize;
        let (head, tail) = packets.split_at(first);
        let whole = read_files(&[packets.as_slice()]);
        let mut parts = read_files(&[head, tail]);
        for exchange in &mut parts.0 {
            number_through(exchange, first as u64);
        }
        prop_assert_eq!(parts, whole);
    }

    #[test]
    fn any_bytes_do_not_panic(stream in prop::collection::vec((any::<bool>(), noise()), 0..40), midstream in any::<bool>()) {
        let mut conversation = if midstream { Conversation::midstream() } else { Conversation::new() };
        for (step, (from_client, bytes)) in stream.into_iter().enumerate() {
            let side = if from_client { Side::Client } else { Side::Server };
            conversation = conversation.says(side, 100_000 * (step as i64 + 1), bytes);
        }
        let packets = conversation.packets();
        let analysis = analyze(&packets);
        let answers = analysis.exchanges.iter().filter(|exchange| exchange.is_complete());
        for exchange in answers {
            prop_assert!(exchange.request.first.is_some() && exchange.response.last.is_some());
        }
    }

    #[test]
    fn any_tcp_headers_do_not_panic(
        script in scripts(),
        forged in prop::collection::vec((any::<prop::sample::Index>(), any::<(u32, u32, u8, u16)>(), 0u8..4), 0..30),
    ) {
        let mut packets = script.play().packets;
        for (at, (sequence, acknowledgment, flags, window), what) in forged {
            let packet = at.get(&packets).clone();
            let forged = match what {
                0 => Packet { sequence, acknowledgment, flags: TcpFlags(flags), window, ..packet },
                1 => Packet { sequence: packet.sequence.wrapping_add(sequence % 4000), ..packet },
                2 => Packet { acknowledgment: packet.acknowledgment.wrapping_add(acknowledgment % 4000), ..packet },
                _ => Packet { flags: TcpFlags(flags), ..packet },
            };
            let place = at.index(packets.len());
            packets.insert(place, forged);
        }
        analyze(&packets);
    }
}
