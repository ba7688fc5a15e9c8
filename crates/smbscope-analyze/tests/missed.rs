//! Gaps in a message: either the capture lost a packet, or the network did, and the capture missed the retransmission.
//! The receiver's acknowledgments distinguish the two.
//!
//! Expected times are those of the conversations.

use crate::common::{analyze, times};
use smbscope_model::{ExchangeOutcome, Timestamp};
use smbscope_testkit::packet::EPOCH;
use smbscope_testkit::{Conversation, Packet, damage, smb2};

/// A read whose response arrives in four packets, one every 10 µs from 400 µs on. `acknowledged` are the times of
/// acknowledgments of everything so far; those at `repeated` are duplicates of the previous one.
fn read(acknowledged: &[i64], repeated: &[i64]) -> Vec<Packet> {
    let mut conversation = Conversation::new()
        .client_says(300, smb2::read(2, 7, 0, 5000))
        .server_says(400, smb2::read_response(2, &[5; 5000]));
    for at in acknowledged.iter().chain(repeated) {
        conversation = conversation.client_acks(*at);
    }
    let mut packets = conversation.packets();
    let from_client = |packet: &Packet| packet.source.port() == 50_000;
    for at in repeated {
        let place = place_of(&packets, *at);
        let before = packets[..place].iter().rposition(from_client).expect("the request");
        packets[place].acknowledgment = packets[before].acknowledgment;
    }
    packets
}

fn place_of(packets: &[Packet], at_us: i64) -> usize {
    let is_then = |packet: &Packet| (packet.time - EPOCH).0 == at_us * 1000;
    packets.iter().position(is_then).expect("a packet of that time")
}

/// The only exchange without the packet of this time.
fn without(packets: &[Packet], at_us: i64) -> ([i64; 4], ExchangeOutcome) {
    let analysis = analyze(&damage::without(packets, &[place_of(packets, at_us)]));
    assert_eq!(analysis.quality.capture_gaps, 1);
    (times(analysis.only()), analysis.only().outcome)
}

#[test]
fn a_hole_that_the_client_had_too_leaves_the_response_untimed() {
    // At 435 the client still lacks the second packet, which was retransmitted before 200,500.
    let packets = read(&[405, 200_500], &[435]);
    assert_eq!(without(&packets, 410), ([300, 300, 400, -1], ExchangeOutcome::ResponseEndMissing));
}

#[test]
fn a_hole_that_only_the_capture_has_keeps_the_time() {
    let packets = read(&[405, 435], &[]);
    assert_eq!(without(&packets, 410), ([300, 300, 400, 430], ExchangeOutcome::Complete));
    // An acknowledgment already in flight while the rest of the response passed proves nothing.
    let mut packets = read(&[432, 441], &[]);
    let (on_its_way, second) = (place_of(&packets, 432), place_of(&packets, 410));
    packets[on_its_way].acknowledgment = packets[second].sequence;
    assert_eq!(without(&packets, 410), ([300, 300, 400, 430], ExchangeOutcome::Complete));
}

#[test]
fn an_acknowledgment_that_opens_the_window_shows_no_hole() {
    let mut packets = read(&[405, 441], &[435]);
    let place = place_of(&packets, 435);
    packets[place].window += 1000;
    assert_eq!(without(&packets, 410), ([300, 300, 400, 430], ExchangeOutcome::Complete));
}

#[test]
fn a_hole_that_was_filled_before_the_last_packet_keeps_the_time() {
    let packets = read(&[405, 427, 441], &[425]);
    assert_eq!(without(&packets, 410), ([300, 300, 400, 430], ExchangeOutcome::Complete));
}

#[test]
fn what_was_sent_again_ends_a_response_though_its_acknowledgment_was_captured_first() {
    let ends = |acknowledged: i64| {
        let mut packets = read(&[405, acknowledged], &[435]);
        let mut again = packets.remove(place_of(&packets, 410));
        again.time = Timestamp(EPOCH.0 + 200_500_000);
        again.ip_id += 10;
        packets.push(again);
        packets.sort_by_key(|packet| packet.time);
        let analysis = analyze(&packets);
        times(analysis.only())[3]
    };
    assert_eq!((ends(200_510), ends(200_490)), (200_500, 200_500));
}

#[test]
fn a_hole_that_the_server_had_too_leaves_the_end_of_the_request_open() {
    let mut packets = Conversation::new()
        .client_says(300, smb2::write(1, 7, 0, &[0; 3000]))
        .server_acks(305)
        .server_acks(325)
        .server_says(200_400, smb2::write_response(1, 3000))
        .client_acks(200_500)
        .packets();
    let repeats = place_of(&packets, 325);
    packets[repeats].acknowledgment = packets[place_of(&packets, 305)].acknowledgment;
    assert_eq!(without(&packets, 310), ([300, -1, 200_400, 200_400], ExchangeOutcome::Complete));
}
