//! The sentence about capture quality at the top of a report, compared with the damage that was applied.
//!
//! Expected percentages come from the generated script. A command can be timed if the capture holds every byte of its
//! request and response, in this order.

use crate::common::{analyze, directory, write};
use smbscope_testkit::damage::Plan;
use smbscope_testkit::script::{Ids, Played, Script, TrueExchange};
use smbscope_testkit::{Packet, pcap};
use std::path::Path;

/// Number of commands, large enough for a stable percentage.
const STEPS: usize = 1_500;

fn played(ids: Ids, seed: u64) -> Played {
    Script::random(ids, STEPS, seed).play()
}

/// Analyses these packets and returns the quality sentence of the report.
fn sentence(directory: &Path, packets: &[Packet]) -> String {
    write(directory, "capture.pcap", pcap::nanos(packets));
    let said = analyze(directory, &["capture.pcap", "--format", "json"]);
    assert_eq!(said.status, Some(0), "{}", said.err);
    let json: serde_json::Value = serde_json::from_str(&said.out).expect("the report is JSON");
    let sentence = json["quality"]["sentence"].as_str().expect("there is a sentence").to_owned();
    // A page of 160 columns keeps the sentence on one line.
    let text = analyze(directory, &["capture.pcap", "--width", "160"]);
    assert!(text.output().lines().any(|line| line == sentence || line == format!("- {sentence}")), "{}", text.out);
    sentence
}

/// Splits `About 3.1% of commands were not timed …` into the number and the rest.
fn percent(sentence: &str) -> (f64, &str) {
    let parts = sentence.strip_prefix("About ").and_then(|rest| rest.split_once("% of commands were not timed"));
    let (number, rest) = parts.unwrap_or_else(|| panic!("no percentage in {sentence:?}"));
    (number.parse().unwrap_or_else(|_| panic!("no number in {sentence:?}")), rest)
}

/// Percentage of commands that can't be timed: a byte is missing and was not retransmitted, or the capture reordered
/// the packets so that the response ends before the request begins.
fn untimed(truth: &[TrueExchange], packets: &[Packet]) -> f64 {
    let all = u64::MAX >> 1;
    let time = |place: Option<usize>| place.map(|place| packets[place].time);
    let timed = |it: &&TrueExchange| {
        it.request.is_captured(packets, all)
            && it.response.is_captured(packets, all)
            && time(it.response.last_packet(packets)) >= time(it.request.first_packet(packets))
    };
    100.0 - 100.0 * truth.iter().filter(timed).count() as f64 / truth.len() as f64
}

#[test]
fn a_whole_capture_says_so() {
    let directory = directory("quality_whole");
    for ids in [Ids::Smb2, Ids::Smb1 { mids: 50 }] {
        let plan = Plan { lost: 0.02, resent: 0.02, duplicated: 0.05, ..Plan::default() };
        let packets = plan.apply(&played(ids, 1).packets).packets;
        assert_eq!(sentence(&directory, &packets), "All commands in the capture were timed.");
    }
}

#[test]
fn the_percentage_of_a_capture_with_drops_reordering_and_duplicates_is_that_of_the_truth() {
    let directory = directory("quality_drops");
    for (seed, dropped, ids) in [
        (1, 0.1, Ids::Smb2),
        (2, 0.1, Ids::Smb2),
        (3, 0.01, Ids::Smb2),
        (4, 0.1, Ids::Smb1 { mids: 50 }),
        (5, 0.02, Ids::Smb1 { mids: 50 }),
    ] {
        let Played { packets, truth } = played(ids, seed);
        let plan = Plan { seed, dropped, reordered: 0.02, duplicated: 0.02, ..Plan::default() };
        let packets = plan.apply(&packets).packets;
        let said = sentence(&directory, &packets);
        let (about, why) = percent(&said);
        let truth = untimed(&truth, &packets);
        println!("{ids:?}, {dropped} dropped: {said} In truth {truth:.1}%.");
        assert!(why.ends_with(": packets missing from the capture."), "{said}");
        // Tolerance: a request that lost its end but kept its header is still timed, and SMB1's multiplex ids leave
        // some matches ambiguous.
        assert!((about - truth).abs() < 0.2 * truth, "{said} In truth {truth:.1}%");
    }
}

#[test]
fn a_beginning_in_the_middle_is_named() {
    let directory = directory("quality_middle");
    let Played { packets, truth } = played(Ids::Smb2, 7);
    // Starts at a point with outstanding responses.
    let waiting = |from: &usize| {
        let seen = |it: &&TrueExchange| it.request.first_packet(&packets[*from..]).is_none();
        truth.iter().filter(seen).filter(|it| it.response.first_packet(&packets[*from..]).is_some()).count()
    };
    let from = (packets.len() / 2..).find(|from| waiting(from) >= 2).expect("some are outstanding");
    let said = sentence(&directory, &packets[from..]);
    assert!(said.ends_with(": the capture began in the middle of connections."), "{said}");
}

#[test]
fn an_end_in_the_middle_is_named() {
    let directory = directory("quality_end");
    let Played { packets, truth } = played(Ids::Smb2, 8);
    let long = |it: &&TrueExchange| it.response.last_packet(&packets) > it.response.first_packet(&packets);
    let cut = truth.iter().rev().find(long).and_then(|it| it.response.last_packet(&packets)).expect("a long response");
    let said = sentence(&directory, &packets[..cut]);
    assert!(said.ends_with(": the capture ended before their last packets."), "{said}");
    // The same sentence for a file truncated within that packet.
    let bytes = pcap::nanos(&packets[..=cut]);
    write(&directory, "cut.pcap", &bytes[..bytes.len() - 7]);
    let report = analyze(&directory, &["cut.pcap", "--width", "160"]);
    assert!(report.output().lines().any(|line| line == said), "{}", report.out);
}

#[test]
fn a_snap_length_is_named_when_it_is_too_short_and_only_then() {
    let directory = directory("quality_snap");
    let packets = played(Ids::Smb1 { mids: 50 }, 9).packets;
    let snapped = |length| Plan { snap: Some(length), ..Plan::default() }.apply(&packets).packets;
    assert_eq!(sentence(&directory, &snapped(128)), "All commands in the capture were timed.");
    // 54 bytes of packet headers, 4 of the NetBIOS frame, and 16 of the 32-byte SMB1 header.
    let said = sentence(&directory, &snapped(74));
    assert_eq!(said, "No command was timed: the snap length cut off their headers.");
}
