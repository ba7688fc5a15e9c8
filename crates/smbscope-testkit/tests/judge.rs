//! The judge of damaged captures finds deliberate errors. Packet numbers refer to the conversation in [`recording`].

use smbscope_analyze::{Analyzer, AnalyzerOptions};
use smbscope_capture::tcp::FlowTable;
use smbscope_model::{Exchange, ExchangeOutcome, PacketRef, Stamp};
use smbscope_testkit::damage::{duplicate, reorder, snap, without};
use smbscope_testkit::judge::{Counts, Judgement, Truth};
use smbscope_testkit::recording::{Kept, Recording};
use smbscope_testkit::{Conversation, framed, pcap, smb2};

/// Packets 1–3 are the handshake, 4–5 an exchange of one packet each, 6–9 one with a response of three packets.
fn recording() -> Recording {
    let conversation = Conversation::new()
        .segment_size(150)
        .client_sends(100, framed(smb2::echo(5)))
        .server_sends(200, framed(smb2::echo_response(5)))
        .client_sends(300, framed(smb2::read(6, 1, 0, 300)))
        .server_sends(400, framed(smb2::read_response(6, &[0; 300])));
    let file = tempfile::NamedTempFile::new().expect("there is room for a file");
    std::fs::write(file.path(), pcap::nanos(&conversation.packets())).expect("there is room for a file");
    Recording::read(file.path()).expect("it is a capture")
}

fn analyze(recording: &Recording, copy: &[Kept]) -> Vec<Exchange> {
    let mut exchanges = Vec::new();
    let mut flows = FlowTable::new(Analyzer::new(AnalyzerOptions::default(), |exchange| exchanges.push(exchange)));
    recording.segments(copy, |_, segment| flows.segment(segment));
    flows.finish().finish();
    exchanges
}

/// Judges the analysis of a copy after `falsify` has changed it.
fn judged(copy: impl Fn(&[Kept]) -> Vec<Kept>, falsify: impl Fn(&mut [Exchange])) -> Judgement {
    let recording = recording();
    let undamaged = recording.undamaged();
    let truth = Truth::new(&recording, &analyze(&recording, &undamaged));
    let copy = copy(&undamaged);
    let mut found = analyze(&recording, &copy);
    falsify(&mut found);
    truth.judge(&recording, &copy, &found, true)
}

fn unchanged(packets: &[Kept]) -> Vec<Kept> {
    packets.to_vec()
}

fn number(stamp: Option<Stamp>) -> u64 {
    stamp.map_or(0, |stamp| stamp.packet.number())
}

#[test]
fn an_undamaged_copy_is_right() {
    let expected = Counts { commands: 2, exchanges: 2, allowed: 2, right: 2, measured: 2, ..Counts::default() };
    assert_eq!(judged(unchanged, |_| ()).counts, expected);
}

#[test]
fn a_capture_with_a_hole_filled_late_is_known() {
    let recording = recording();
    let undamaged = recording.undamaged();
    assert!(!Truth::new(&recording, &analyze(&recording, &undamaged)).has_filled_holes());
    // The second of the response's three packets is lost and retransmitted after the third.
    let conversation = Conversation::new()
        .segment_size(150)
        .client_sends(300, framed(smb2::read(6, 1, 0, 300)))
        .server_sends(400, framed(smb2::read_response(6, &[0; 300])));
    let mut packets = conversation.packets();
    packets[5].time.0 += 200_000_000;
    packets[5].ip_id += 2;
    packets[5..].rotate_left(1);
    let file = tempfile::NamedTempFile::new().expect("there is room for a file");
    std::fs::write(file.path(), pcap::nanos(&packets)).expect("there is room for a file");
    let recording = Recording::read(file.path()).expect("it is a capture");
    let exchanges = analyze(&recording, &recording.undamaged());
    assert!(Truth::new(&recording, &exchanges).has_filled_holes(), "{exchanges:?}");
}

#[test]
fn a_request_with_the_response_of_another_is_false() {
    let verdict = judged(unchanged, |found| {
        let response = found[0].response;
        found[0].response = found[1].response;
        found[1].response = response;
    });
    assert_eq!((verdict.counts.false_pairs, verdict.counts.right, verdict.counts.missing()), (2, 0, 2));
    assert!(verdict.wrong.iter().all(|wrong| wrong.is_false_pair), "{:?}", verdict.wrong);
}

#[test]
fn an_end_from_another_packet_of_the_response_is_mistimed() {
    let verdict = judged(unchanged, |found| {
        assert_eq!((number(found[1].response.first), number(found[1].response.last)), (7, 9));
        found[1].response.last = found[1].response.first;
    });
    assert_eq!((verdict.counts.false_pairs, verdict.counts.mistimed), (0, 1));
}

#[test]
fn a_time_from_the_second_copy_is_mistimed() {
    // Every packet twice: the second exchange ends with packets 17 and 18.
    let verdict = judged(
        |packets| duplicate(packets, 1, 1.0),
        |found| {
            assert_eq!(number(found[1].response.last), 17);
            let last = found[1].response.last.as_mut().expect("it was captured");
            last.packet = PacketRef::new(last.packet.capture(), 18);
        },
    );
    assert_eq!((verdict.counts.false_pairs, verdict.counts.mistimed), (0, 1));
    assert_eq!(judged(|packets| duplicate(packets, 1, 1.0), |_| ()).counts.mistimed, 0);
}

#[test]
fn an_exchange_without_an_end_or_a_header_is_not_allowed() {
    let allowed = |dropped: &[usize]| judged(|packets| without(packets, dropped), |_| ()).counts.allowed;
    assert_eq!(allowed(&[]), 2);
    assert_eq!(allowed(&[7]), 2, "the middle of the response");
    for end in [5, 6, 8] {
        assert_eq!(allowed(&[end]), 1, "packet {} is an end of the second exchange", end + 1);
    }
    // 54 bytes of packet headers, 4 of the frame header, 32 up to the end of the message id.
    assert_eq!(judged(|packets| snap(packets, 90), |_| ()).counts.allowed, 2);
    assert_eq!(judged(|packets| snap(packets, 89), |_| ()).counts.allowed, 0);
}

#[test]
fn a_response_captured_before_its_request_is_not_allowed() {
    let counts = judged(
        |packets| {
            // Moves the request of the second exchange after its response.
            let mut order = packets.to_vec();
            order.swap(5, 8);
            order.iter().zip(packets).map(|(moved, place)| Kept { time: place.time, ..*moved }).collect()
        },
        |_| (),
    );
    assert_eq!((counts.counts.allowed, counts.counts.false_pairs), (1, 0));
}

#[test]
fn what_the_analysis_does_not_find_is_missing() {
    let verdict = judged(unchanged, |found| found[0].outcome = ExchangeOutcome::AmbiguousMatch);
    assert_eq!((verdict.counts.right, verdict.counts.missing()), (1, 1));
    assert!(verdict.missing[0].contains("paired, but not measured"), "{:?}", verdict.missing);
}

#[test]
fn reordered_packets_that_the_analysis_waits_for_are_right() {
    for seed in 0..200 {
        let verdict = judged(|packets| reorder(packets, seed, 0.3, 3), |_| ());
        assert_eq!(verdict.counts.false_pairs + verdict.counts.mistimed, 0, "seed {seed}: {:?}", verdict.wrong);
    }
}
