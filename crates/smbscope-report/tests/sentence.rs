//! The sentence about the quality of a capture, for all kinds of damage. The comments derive the expected percentages.

use crate::common;
use smbscope_model::{CommandGroup, Exchange, ExchangeOutcome, Quality, SkippedPackets, SkippedProtocol};
use smbscope_report::Report;

/// Returns a report with this many exchanges per outcome.
fn report(outcomes: &[(ExchangeOutcome, usize)], quality: Quality) -> Report {
    let read = common::exchange(common::smb2_command(8), CommandGroup::Read, 0, 1_000);
    let of = |(outcome, count): &(ExchangeOutcome, usize)| vec![Exchange { outcome: *outcome, ..read.clone() }; *count];
    let exchanges: Vec<Exchange> = outcomes.iter().flat_map(of).collect();
    common::report(&exchanges, Vec::new(), quality)
}

fn sentence(outcomes: &[(ExchangeOutcome, usize)], quality: Quality) -> String {
    report(outcomes, quality).quality_sentence()
}

/// Returns the counters of a capture that lost packets.
fn lossy() -> Quality {
    Quality { dropped_packets: 9, capture_gaps: 8, ..Quality::default() }
}

#[test]
fn a_whole_capture() {
    assert_eq!(
        sentence(&[(ExchangeOutcome::Complete, 3)], Quality::default()),
        "All commands in the capture were timed."
    );
    // CANCEL and oplock breaks have no response.
    let outcomes = [
        (ExchangeOutcome::Complete, 3),
        (ExchangeOutcome::NoResponseByDesign, 1),
        (ExchangeOutcome::ServerInitiated, 2),
    ];
    assert_eq!(sentence(&outcomes, Quality::default()), "All commands in the capture were timed.");
    assert_eq!(sentence(&[], Quality::default()), "No SMB command was seen.");
}

#[test]
fn a_server_that_does_not_answer_is_no_damage() {
    let outcomes = [(ExchangeOutcome::Complete, 3), (ExchangeOutcome::Unanswered, 1)];
    let expected = "All commands in the capture were timed, but 1 had no response when the capture ended.";
    assert_eq!(sentence(&outcomes, Quality::default()), expected);
    let expected = "None of the commands in the capture was timed: 1 had no response when the capture ended.";
    assert_eq!(sentence(&[(ExchangeOutcome::Unanswered, 1)], Quality::default()), expected);
    let outcomes = [(ExchangeOutcome::Complete, 3), (ExchangeOutcome::Unanswered, 2), (ExchangeOutcome::IdReused, 1)];
    let expected = "All commands in the capture were timed, but 2 had no response when the capture ended and 1 had no \
                    response that is certain.";
    assert_eq!(sentence(&outcomes, Quality::default()), expected);
}

#[test]
fn packets_that_the_capture_lost() {
    // 90 timed; 5 requests and 4 responses without the other half: 9 of 99.
    let outcomes = [
        (ExchangeOutcome::Complete, 90),
        (ExchangeOutcome::ResponseNotCaptured, 5),
        (ExchangeOutcome::RequestNotCaptured, 4),
    ];
    let expected = "About 9.1% of commands were not timed: packets missing from the capture.";
    assert_eq!(sentence(&outcomes, lossy()), expected);
    // A burst of loss hid 60 commands: 69 of 159.
    let burst =
        |commands_unseen, commands_unseen_variance| Quality { commands_unseen, commands_unseen_variance, ..lossy() };
    let expected = "About 43.4% of commands were not timed: packets missing from the capture.";
    assert_eq!(sentence(&outcomes, burst(60, 0)), expected);
    // A standard error of 2: 54 to 66 are hidden (±3 standard errors), 63 of 153 to 75 of 165, each less than 10% from
    // 43.4%.
    assert_eq!(sentence(&outcomes, burst(60, 4)), expected);
    // A standard error of 15: 15 to 105 are hidden, 24 of 114 to 114 of 204.
    let expected = "An estimated 21.1 to 55.9% of commands were not timed: packets missing from the capture.";
    assert_eq!(sentence(&outcomes, burst(60, 225)), expected);
    // No command was seen in part: 10 of 100.
    let expected = "About 10.0% of commands were not timed: packets missing from the capture.";
    assert_eq!(sentence(&[(ExchangeOutcome::Complete, 90)], burst(10, 0)), expected);
    // 1 of 5,001.
    let outcomes = [(ExchangeOutcome::Complete, 5_000), (ExchangeOutcome::ResponseEndMissing, 1)];
    let expected = "Less than 0.1% of commands were not timed: packets missing from the capture.";
    assert_eq!(sentence(&outcomes, lossy()), expected);
    // Only one direction was captured.
    let expected = "No command was timed: packets missing from the capture.";
    assert_eq!(sentence(&[(ExchangeOutcome::ResponseNotCaptured, 7)], lossy()), expected);
}

#[test]
fn losses_that_cost_nothing() {
    let expected = "Packets are missing from the capture, but all commands in it were timed.";
    assert_eq!(sentence(&[(ExchangeOutcome::Complete, 3)], lossy()), expected);
}

#[test]
fn a_beginning_in_the_middle_is_not_called_a_loss() {
    // 2 of 40.
    let outcomes = [(ExchangeOutcome::Complete, 38), (ExchangeOutcome::RequestNotCaptured, 2)];
    let middle = Quality { midstream_flows: 3, responses_without_request: 2, ..Quality::default() };
    let expected = "About 5.0% of commands were not timed: the capture began in the middle of connections.";
    assert_eq!(sentence(&outcomes, middle.clone()), expected);
    // More gaps than connections that started before the capture.
    let both = Quality { midstream_flows: 3, responses_without_request: 2, ..lossy() };
    let expected = "About 5.0% of commands were not timed, mainly: packets missing from the capture.";
    assert_eq!(sentence(&outcomes, both), expected);
    // One connection began before the capture with three commands outstanding; the snap length cut off one more.
    let mostly = Quality { responses_without_request: 4, requests_before_capture: 3, ..middle };
    let mostly = Quality { snapped_packets: 9, framing_cut: 1, midstream_flows: 1, ..mostly };
    let expected = "About 5.0% of commands were not timed, mainly: the capture began in the middle of connections.";
    assert_eq!(sentence(&outcomes, mostly), expected);
    // Connections started before the capture, but no response lacks its request.
    let harmless = Quality { midstream_flows: 3, ..Quality::default() };
    assert_eq!(sentence(&[(ExchangeOutcome::Complete, 3)], harmless), "All commands in the capture were timed.");
}

#[test]
fn a_snap_length_that_is_too_short() {
    // Of 4 commands, the response's header is cut off and the request lacks its response: 4 of 40 commands, not 8.
    let outcomes = [(ExchangeOutcome::Complete, 36), (ExchangeOutcome::ResponseNotCaptured, 4)];
    let snapped = Quality { snapped_packets: 70, headers_truncated: 4, ..Quality::default() };
    let expected = "About 10.0% of commands were not timed: the snap length cut off their headers.";
    assert_eq!(sentence(&outcomes, snapped), expected);
    // Both headers of 10 commands are cut off, and 30 were timed.
    let snapped = Quality { snapped_packets: 70, headers_truncated: 20, ..Quality::default() };
    let expected = "About 25.0% of commands were not timed: the snap length cut off their headers.";
    assert_eq!(sentence(&[(ExchangeOutcome::Complete, 30)], snapped), expected);
}

#[test]
fn an_end_in_the_middle_of_a_response() {
    let outcomes = [(ExchangeOutcome::Complete, 19), (ExchangeOutcome::ResponseEndMissing, 1)];
    let ended = Quality { response_end_missing: 1, truncated_captures: 1, ..Quality::default() };
    let expected = "About 5.0% of commands were not timed: the capture ended before their last packets.";
    assert_eq!(sentence(&outcomes, ended), expected);
}

#[test]
fn a_clock_that_steps_back() {
    let outcomes = [(ExchangeOutcome::Complete, 39), (ExchangeOutcome::ClockStep, 1)];
    let stepped = Quality { clock_steps: 1, ..Quality::default() };
    let expected = "About 2.5% of commands were not timed: the clock of the capture stepped.";
    assert_eq!(sentence(&outcomes, stepped), expected);
}

#[test]
fn encryption_is_no_damage() {
    let frame = Exchange {
        encrypted: true,
        ..common::exchange(smbscope_model::Command::EncryptedFrame, CommandGroup::Encrypted, 0, 1_000)
    };
    let quality = || Quality { encrypted_frames: 4, ..Quality::default() };
    let sealed = common::report(&[frame.clone(), frame.clone()], Vec::new(), quality());
    assert_eq!(sealed.quality_sentence(), "All encrypted frames in the capture were timed.");
    let unpaired = Exchange { outcome: ExchangeOutcome::NotPairable, ..frame.clone() };
    let read = common::exchange(common::smb2_command(8), CommandGroup::Read, 0, 1_000);
    let mixed = common::report(&[frame.clone(), unpaired.clone(), frame.clone(), read], Vec::new(), quality());
    let expected =
        "All commands and encrypted frames in the capture were timed, but 1 had no response that is certain.";
    assert_eq!(mixed.quality_sentence(), expected);
    let most = common::report(&[frame, unpaired.clone(), unpaired.clone(), unpaired], Vec::new(), quality());
    let expected = "1 of 4 encrypted frames were timed: 3 had no response that is certain.";
    assert_eq!(most.quality_sentence(), expected);
}

#[test]
fn every_form_of_the_report_says_it_at_the_top() {
    let report = report(&[(ExchangeOutcome::Complete, 3), (ExchangeOutcome::ResponseEndMissing, 1)], lossy());
    let expected = "About 25.0% of commands were not timed: packets missing from the capture.";
    let text = smbscope_report::text::render(&report, &smbscope_report::text::ReportTextOptions::default());
    assert_eq!(text.lines().nth(2), Some(expected), "{text}");
    let classic = smbscope_report::classic::render(&report);
    assert_eq!(classic.lines().nth(4), Some(expected), "{classic}");
    let mut json = Vec::new();
    smbscope_report::json::write(&report, &mut json).expect("writing to memory does not fail");
    let json: serde_json::Value = serde_json::from_slice(&json).expect("the report is JSON");
    assert_eq!(json["quality"]["sentence"], expected);
}

#[test]
fn packets_that_nobody_can_read_are_told_from_5_percent_on_and_from_1_percent_where_they_may_hide_smb() {
    let with = |protocol: SkippedProtocol, packets: u64| {
        let quality = Quality { packets: 1_000, not_tcp: packets, ..Quality::default() };
        let mut report = report(&[(ExchangeOutcome::Complete, 3)], quality);
        report.skipped = vec![SkippedPackets { protocol, packets }];
        report.quality_sentence()
    };
    let hsr = SkippedProtocol::EtherType(0x892f);
    assert_eq!(with(hsr, 49), "All commands in the capture were timed.");
    let expected = "All commands in the capture were timed. 50 of 1,000 packets were not read: EtherType 0x892f 50.";
    assert_eq!(with(hsr, 50), expected);
    assert!(with(SkippedProtocol::UdpPort(12_345), 50).ends_with("UDP port 12345 50."));
    // DNS can't hide SMB, a VPN can.
    assert_eq!(with(SkippedProtocol::UdpPort(53), 400), "All commands in the capture were timed.");
    assert!(with(SkippedProtocol::UdpPort(51_820), 10).contains("10 of 1,000 packets were not read"));
}
