//! A server that stalls in the middle of a message: detected only if nothing else explains the pause.
//!
//! Expected times are those of the conversations.

use crate::common::analyze;
use smbscope_model::{PacketRef, STANDSTILL_LEAST, Stamp, Standstill, Timestamp};
use smbscope_testkit::{Conversation, Packet, Side, micros, smb2};

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
