//! Whose the seconds are, on connections built by hand.

mod common;

use common::{START, connection, exchange, report, smb2_command};
use smbscope_model::{Exchange, Group, Nanos, Outcome, Quality, Timestamp};
use smbscope_report::{Verdict, Who};

const MS: i64 = 1_000_000;

/// Reads of 10 ms (2 of them the request, 6 the service, 2 the response), each so long after the one before.
fn reads(count: i64, pause_ms: i64) -> Vec<Exchange> {
    let period = (10 + pause_ms) * MS;
    (0..count).map(|n| exchange(smb2_command(8), Group::Read, START + n * period, 10 * MS)).collect()
}

fn with_round_trip(mut exchanges: Vec<Exchange>, round_trip: Option<i64>) -> Vec<Exchange> {
    exchanges.iter_mut().for_each(|exchange| exchange.server_round_trip = round_trip.map(Nanos));
    exchanges
}

/// The verdict on one connection that lasts from the first packet of these exchanges to the last.
fn verdict(exchanges: &[Exchange]) -> Verdict {
    let mut connection = connection(1, None);
    let last = exchanges.iter().filter_map(|exchange| exchange.response.last.or(exchange.request.last)).map(|s| s.time);
    connection.last = last.max().unwrap_or(Timestamp(START));
    report(exchanges, vec![connection], Quality::default()).verdict()
}

#[test]
fn the_server_has_most_of_the_time_in_which_commands_are_outstanding() {
    // 6 of 10 ms, less a round trip of 0.
    let verdict = verdict(&with_round_trip(reads(20, 5), Some(0)));
    assert_eq!(verdict.who, Who::Server);
    assert_eq!(verdict.headline, "It is the server: 60.0 % of the 200 ms spent waiting for answers went by in it.");
    // 19 pauses of 5 ms: 95 of 295 ms.
    let seconds =
        "Of 295 ms with work in hand, 40.7 % went by in the server, 32.2 % in the client, 27.1 % in transfers.";
    assert_eq!(verdict.sentences[0], seconds);
}

#[test]
fn round_trips_and_transfers_are_the_networks() {
    // 4 ms of transfers and 2 ms of round trip.
    let verdict = verdict(&with_round_trip(reads(20, 5), Some(2 * MS)));
    assert_eq!((verdict.who, verdict.headline.contains("60.0 % of the 200 ms")), (Who::Network, true), "{verdict:?}");
}

#[test]
fn a_client_that_thinks_for_three_fifths_of_the_time_is_the_answer() {
    // 15 ms of 25, but for the last read: 21 · 15 of 21 · 15 + 22 · 10 is 58.9 %; 40 · 15 of 40 · 15 + 41 · 10 59.4 %.
    assert_eq!(verdict(&with_round_trip(reads(41, 15), Some(0))).who, Who::Server);
    // 16 of 26: 61.5 %.
    assert_eq!(verdict(&with_round_trip(reads(41, 16), Some(0))).who, Who::Client);
}

#[test]
fn without_a_round_trip_there_is_no_answer_where_it_could_turn_it() {
    let verdict = verdict(&with_round_trip(reads(20, 5), None));
    assert_eq!(verdict.who, Who::Unknown);
    assert_eq!(verdict.headline, "It is the server or the network: the round trip between them is not known.");
}

#[test]
fn a_stall_is_named_though_the_client_thinks_for_longer() {
    let mut exchanges = with_round_trip(reads(21, 100), Some(0));
    // A read of 1.5 s, 0.9 s of it in the server, behind 20 pauses of 100 ms.
    let mut stalled = exchange(smb2_command(8), Group::Read, START + 21 * 110 * MS, 1_500 * MS);
    stalled.server_round_trip = Some(Nanos(0));
    stalled.path = Some("big.bin".into());
    exchanges.push(stalled);
    let verdict = verdict(&exchanges);
    assert_eq!(verdict.who, Who::Server);
    assert_eq!(verdict.headline, "It is the server: it kept 1 command waiting for 900 ms.");
    assert_eq!(
        verdict.sentences[0],
        "It began at 1997-08-11 09:30:02 UTC with a READ of big.bin (request packet 1, response packet 4)."
    );
}

#[test]
fn a_stall_in_which_a_segment_was_sent_again_is_the_networks() {
    let mut exchanges = with_round_trip(reads(21, 5), Some(0));
    let mut lost = exchange(smb2_command(8), Group::Read, START + 21 * 15 * MS, 1_500 * MS);
    (lost.server_round_trip, lost.retransmission_delay) = (Some(Nanos(0)), Some(Nanos(800 * MS)));
    lost.resent = lost.response.first.map(|stamp| stamp.time);
    exchanges.push(lost);
    let verdict = verdict(&exchanges);
    assert_eq!(verdict.who, Who::Network);
    assert_eq!(verdict.headline, "It is the network: 1 command waited 900 ms while lost packets were sent again.");
}

#[test]
fn what_the_capture_does_not_show_is_no_answer() {
    let mut unseen = reads(2, 8_000);
    unseen[0].response = Default::default();
    unseen[0].outcome = Outcome::ResponseNotCaptured;
    let verdict = verdict(&with_round_trip(unseen, Some(0)));
    assert_eq!(verdict.who, Who::Unknown);
    assert!(verdict.headline.starts_with("The capture does not tell: too many commands"), "{}", verdict.headline);
}
