//! Gaps and pauses in a message, and missing responses.
//!
//! After a gap, either the capture lost a packet, or the network did, and the capture missed the retransmission. The
//! receiver's acknowledgments distinguish the two.
//!
//! Expected times come from the conversations.

use crate::common::{analyze, times};
use smbscope_model::{Exchange, ExchangeOutcome, PacketRef, STANDSTILL_LEAST, Stamp, Standstill, Timestamp};
use smbscope_testkit::packet::EPOCH;
use smbscope_testkit::{Conversation, Packet, Side, damage, micros, smb2};

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

// A server that stalls in the middle of a message: detected only if nothing else explains the pause.

/// Microseconds since the conversation's time zero.
fn us(time: Timestamp) -> i64 {
    micros(Stamp { time, packet: PacketRef::default() })
}

/// Start and length of the only exchange's standstill in microseconds.
fn standstill(packets: &[Packet]) -> Option<(i64, i64)> {
    let analysis = analyze(packets);
    let Standstill { from, length } = analysis.only().standstill?;
    Some((us(from), length.0 / 1_000))
}

/// A read whose response arrives at four times; after the second of them the client may announce a window.
fn read_over(at_us: &[i64; 4], window: u16) -> Conversation {
    Conversation::new()
        .client_says(100, smb2::read(2, 7, 0, 3_000))
        .server_says_over(at_us, smb2::read_response(2, &[5; 3_000]))
        .window(Side::Client, window)
        .client_acks(at_us[1] + 10)
        .window(Side::Client, 64_240)
        .client_acks(at_us[2] - 10)
}

#[test]
fn a_response_that_breaks_off_stands_still_from_its_last_packet_on() {
    let packets = read_over(&[200, 210, 1_000_210, 1_000_220], 64_240).packets();
    assert_eq!(standstill(&packets), Some((210, 1_000_000)));
}

#[test]
fn a_pause_shorter_than_a_retransmission_time_out_is_no_standstill() {
    let least = STANDSTILL_LEAST.0 / 1_000;
    let packets = |pause: i64| read_over(&[200, 210, 210 + pause, 220 + pause], 64_240).packets();
    assert_eq!(standstill(&packets(least - 1)), None);
    assert_eq!(standstill(&packets(least)), Some((210, least)));
}

#[test]
fn a_client_that_has_no_room_for_a_response_makes_the_server_wait() {
    assert_eq!(standstill(&read_over(&[200, 210, 1_000_210, 1_000_220], 0).packets()), None);
}

#[test]
fn packets_that_the_capture_dropped_are_no_standstill() {
    let mut packets = read_over(&[200, 210, 1_000_210, 1_000_220], 64_240).packets();
    let third = packets.iter().position(|packet| us(packet.time) == 1_000_210).expect("the third of four");
    packets.remove(third);
    assert_eq!(standstill(&packets), None);
}

#[test]
fn a_request_stands_still_only_while_the_server_has_no_room_for_it() {
    let write = |window: u16| {
        Conversation::new()
            .client_says_over(&[100, 110, 1_000_110], smb2::write(2, 7, 0, &[5; 3_000]))
            .window(Side::Server, window)
            .server_acks(120)
            .window(Side::Server, 64_240)
            .server_acks(1_000_100)
            .server_says(1_000_200, smb2::write_response(2, 3_000))
            .packets()
    };
    assert_eq!(standstill(&write(0)), Some((110, 1_000_000)));
    // A client that takes its time.
    assert_eq!(standstill(&write(64_240)), None);
}

#[test]
fn packets_that_were_lost_on_their_way_to_the_capture_are_no_standstill() {
    // The server numbers its packets; two of them are missing in the pause: the third segment, and a first copy of it.
    let mut conversation = Conversation::new();
    for echo in 0u32..8 {
        let at = 1_000 * i64::from(echo);
        conversation = conversation
            .client_says(100 + at, smb2::read(10 + u64::from(echo), 7, 0, 100))
            .server_says(200 + at, smb2::read_response(10 + u64::from(echo), &[5; 100]));
    }
    let mut packets = conversation
        .client_says(20_100, smb2::read(2, 7, 0, 3_000))
        .server_says_over(&[20_200, 20_210, 1_020_210, 1_020_220], smb2::read_response(2, &[5; 3_000]))
        .packets();
    let longest = |packets: &[Packet]| analyze(packets).exchanges.iter().find_map(|exchange| exchange.standstill);
    assert_eq!(longest(&packets).map(|standstill| us(standstill.from)), Some(20_210));
    for packet in packets.iter_mut().filter(|packet| packet.side == Side::Server && us(packet.time) > 1_000_000) {
        packet.ip_id += 2;
    }
    assert_eq!(longest(&packets), None);
}

// Requests without a response: did the server's TCP receive them?
//
// Expected values follow from the acknowledgments in each conversation.

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
