//! Requests without a response: did the server's TCP receive them?
//!
//! Expected values follow from the acknowledgments in each conversation.

use crate::common::analyze;
use smbscope_model::{Exchange, ExchangeOutcome, Timestamp};
use smbscope_testkit::{Conversation, Packet, Side, smb2};

/// A request that is answered, and a read at 1,000 µs that is not.
fn read_without_response() -> Conversation {
    Conversation::new()
        .client_says(100, smb2::echo(1))
        .server_says(200, smb2::echo_response(1))
        .client_says(1_000, smb2::read(2, 7, 0, 3_000))
}

fn last(packets: &[Packet]) -> Exchange {
    let exchanges = analyze(packets).exchanges;
    assert_eq!(exchanges[0].acknowledged, None, "it was answered");
    exchanges[1].clone()
}

/// Repeats the last packet this many microseconds later.
fn again(packets: &mut Vec<Packet>, later_us: i64) {
    let last = packets.last().expect("there are packets").clone();
    let (time, ip_id) = (Timestamp(last.time.0 + later_us * 1_000), last.ip_id.wrapping_add(1));
    packets.push(Packet { time, ip_id, ..last });
}

#[test]
fn a_request_that_the_server_acknowledges_and_does_not_answer_has_reached_it() {
    let read = last(&read_without_response().server_acks(1_100).packets());
    assert_eq!((read.outcome, read.acknowledged), (ExchangeOutcome::Unanswered, Some(true)));
    assert_eq!(read.retransmitted, 0);
}

#[test]
fn a_request_that_nobody_acknowledges_is_told_from_one_that_reached_the_server_and_counts_its_copies() {
    // Retransmitted after 300, 600 and 1,200 ms: 2.1 s from the first copy to the last.
    let mut packets = read_without_response().packets();
    for later_us in [300_000, 600_000, 1_200_000] {
        again(&mut packets, later_us);
    }
    let read = last(&packets);
    assert_eq!((read.outcome, read.acknowledged), (ExchangeOutcome::Unanswered, Some(false)));
    assert_eq!(read.retransmitted, 3);
    assert_eq!(read.retransmission_delay.map(|delay| delay.0), Some(2_100_000_000));
}

#[test]
fn an_acknowledgment_of_a_part_of_a_request_is_none_of_the_request() {
    // A write of two segments; the server acknowledges only the first of them.
    let packets = Conversation::new()
        .client_says(100, smb2::echo(1))
        .server_says(200, smb2::echo_response(1))
        .client_says_over(&[1_000, 2_000], smb2::write(2, 7, 0, &[5; 2_000]))
        .server_acks(1_500)
        .packets();
    assert_eq!(last(&packets).acknowledged, Some(false));
}

#[test]
fn without_packets_of_the_server_it_is_not_known_what_it_has() {
    let mut packets = read_without_response().server_acks(1_100).packets();
    packets.retain(|packet| packet.side == Side::Client);
    let exchanges = analyze(&packets).exchanges;
    assert!(!exchanges.is_empty() && exchanges.iter().all(|exchange| exchange.acknowledged.is_none()), "{exchanges:?}");
}
