//! Reordering, retransmissions and duplicates: every byte is delivered once and in order.

use super::*;
use crate::tcp::limits::{GRACE_PACKETS, MAX_HELD_SEGMENTS};

#[test]
fn sequence_numbers_wrap() {
    let mut wire = Wire::new();
    wire.send(SentPacket { flags: TcpFlags::SYN, ..client(0, u32::MAX - 2, 0, "") });
    wire.send(SentPacket { flags: TcpFlags::SYN | TcpFlags::ACK, ..server(40, 5000, u32::MAX - 1, "") });
    // Data starts at 2³² − 2: "abcd" has the sequence numbers −2, −1, 0 and 1; "ef" starts at 2.
    wire.send(client(200, u32::MAX - 1, 5001, "abcd"));
    wire.send(client(210, 2, 5001, "ef"));
    wire.send(server(250, 5001, 4, "x"));
    let recorder = wire.end();
    assert_eq!(recorder.text(), ">abcd >ef <x");
    assert_eq!(recorder.quality().dropped_bytes + recorder.quality().retransmitted_segments, 0);
}

#[test]
fn more_than_four_gigabytes_pass_without_a_gap() {
    // Truncated segments of 1 MiB each: 5000 of them are 4.9 GiB, so sequence numbers wrap once.
    let mut wire = Wire::open();
    let mut sequence = 1001u32;
    for step in 0..5000 {
        wire.send(SentPacket { length: Some(1 << 20), ..client(200 + step, sequence, 5001, "m") });
        sequence = sequence.wrapping_add(1 << 20);
    }
    wire.send(server(6000, 5001, sequence, "done"));
    let recorder = wire.end();
    assert_eq!(recorder.events().len(), 5001);
    let Event::Data('>', position, ..) = recorder.events()[4999] else { panic!() };
    assert_eq!(position, 4999 << 20);
    assert_eq!(recorder.quality().capture_gaps, 0);
}

#[test]
fn a_late_segment_fills_its_hole() {
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "ab"));
    wire.send(SentPacket { ip_id: Some(140), ..client(210, 1005, 5001, "ef") });
    wire.send(SentPacket { ip_id: Some(139), ..client(220, 1003, 5001, "cd") });
    wire.send(server(300, 5001, 1007, "x"));
    let recorder = wire.end();
    assert_eq!(recorder.text(), ">ab >cd >ef <x");
    assert_eq!((recorder.quality().out_of_order_segments, recorder.quality().retransmissions_seen_once), (1, 0));
}

#[test]
fn a_segment_that_fills_a_hole_with_a_newer_identification_was_sent_again() {
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "ab"));
    wire.send(SentPacket { ip_id: Some(140), ..client(210, 1005, 5001, "ef") });
    wire.send(SentPacket { ip_id: Some(141), ..client(220, 1003, 5001, "cd") });
    let recorder = wire.end();
    assert_eq!(recorder.text(), ">ab >cd >ef");
    assert_eq!((recorder.quality().out_of_order_segments, recorder.quality().retransmissions_seen_once), (0, 1));
}

#[test]
fn a_response_waits_for_the_request_that_it_acknowledges() {
    let mut wire = Wire::open();
    wire.send(server(190, 5001, 1004, "yes"));
    wire.send(client(200, 1001, 5001, "ask"));
    let recorder = wire.end();
    assert_eq!(recorder.text(), ">ask <yes", "the capture reordered the two directions");
    assert_eq!(recorder.quality().dropped_bytes, 0, "an acknowledgment before its data loses nothing");
}

#[test]
fn a_hole_that_opens_behind_a_hole_is_filled_by_what_is_held() {
    // The second request (at 1004) comes first, then its response, the response to the first, and the first itself.
    let mut wire = Wire::open();
    wire.send(client(200, 1004, 5003, "Q2"));
    wire.send(server(210, 5003, 1006, "R2"));
    wire.send(server(220, 5001, 1004, "R1"));
    wire.send(client(230, 1001, 5001, "Q1."));
    let recorder = wire.end();
    assert_eq!(recorder.text(), ">Q1. <R1 >Q2 <R2");
    assert_eq!(recorder.quality().dropped_bytes, 0);
}

#[test]
fn a_retransmission_adds_no_bytes_and_is_dated_from_the_first_copy() {
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "abc"));
    wire.send(client(700, 1001, 5001, "abc"));
    let recorder = wire.end();
    let expected = [Event::Data('>', 0, "abc".into(), 4), Event::Again('>', 0, 3, Some(500))];
    assert_eq!(recorder.events(), expected);
    let quality = recorder.quality();
    assert_eq!((quality.retransmitted_segments, quality.retransmitted_bytes), (1, 3));
    assert_eq!(quality.spurious_retransmissions, 0, "nobody had acknowledged it");
}

#[test]
fn a_retransmission_of_acknowledged_bytes_is_spurious() {
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "abc"));
    wire.send(server(300, 5001, 1004, ""));
    wire.send(client(700, 1001, 5001, "abc"));
    assert_eq!(wire.end().quality().spurious_retransmissions, 1);
}

#[test]
fn a_partial_overlap_hands_on_only_what_is_new() {
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "abc"));
    wire.send(client(300, 1003, 5001, "cdef"));
    let recorder = wire.end();
    let expected = [
        Event::Data('>', 0, "abc".into(), 4),
        Event::Again('>', 2, 1, Some(100)),
        Event::Data('>', 3, "def".into(), 5),
    ];
    assert_eq!(recorder.events(), expected);
}

#[test]
fn the_same_packet_captured_twice_is_no_retransmission() {
    let mut wire = Wire::open();
    let packet = SentPacket { ip_id: Some(300), ..client(200, 1001, 5001, "abc") };
    wire.send(packet);
    wire.send(SentPacket { at_us: 201, ..packet });
    let recorder = wire.end();
    assert_eq!(recorder.text(), ">abc");
    assert_eq!((recorder.quality().duplicate_packets, recorder.quality().retransmitted_segments), (1, 0));
}

#[test]
fn a_pure_acknowledgment_captured_twice_is_a_duplicate_too() {
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "abc"));
    let packet = SentPacket { ip_id: Some(300), ..server(300, 5001, 1004, "") };
    wire.send(packet);
    wire.send(SentPacket { at_us: 301, ..packet });
    assert_eq!(wire.end().quality().duplicate_packets, 1);
}

#[test]
fn a_snapped_segment_is_no_gap() {
    let mut wire = Wire::open();
    wire.send(SentPacket { length: Some(1000), ..client(200, 1001, 5001, "head") });
    wire.send(client(210, 2001, 5001, "next"));
    wire.send(server(300, 5001, 2005, "x"));
    let recorder = wire.end();
    assert_eq!(recorder.text(), ">head >next <x");
    assert_eq!(recorder.quality().dropped_bytes, 0);
}

#[test]
fn a_keep_alive_is_counted_and_hands_on_nothing() {
    // RFC 9293 §3.8.4: the sequence number before the next one, with one byte of garbage or none.
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "abc"));
    wire.send(server(300, 5001, 1004, ""));
    wire.send(client(10_000_000, 1003, 5001, "c"));
    wire.send(client(20_000_000, 1003, 5001, ""));
    let recorder = wire.end();
    assert_eq!(recorder.text(), ">abc");
    assert_eq!((recorder.quality().keep_alives, recorder.quality().retransmitted_segments), (2, 0));
}

#[test]
fn a_closed_window_is_counted() {
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "abc"));
    wire.send(SentPacket { window: 0, ..server(300, 5001, 1004, "") });
    assert_eq!(wire.end().quality().zero_windows, 1);
}

#[test]
fn round_trips_come_from_the_handshake_and_from_acknowledgments() {
    // Handshake: 40 µs from SYN to SYN-ACK, 60 µs from SYN-ACK to ACK.
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "abc"));
    let view = wire.table.sink_mut().views[0];
    assert_eq!(view.round_trip.map(|trip| trip.map(|trip| trip.0)), [Some(40_000), Some(60_000)]);
    // 30 µs from data to its acknowledgment is less than 40.
    wire.send(server(230, 5001, 1004, "x"));
    let view = wire.end().views[0];
    assert_eq!(view.round_trip.map(|trip| trip.map(|trip| trip.0)), [Some(30_000), Some(60_000)]);
}

#[test]
fn a_retransmitted_segment_gives_no_round_trip() {
    // Karn's algorithm: 1 µs from the second copy to the acknowledgment, which may belong to either copy.
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "abc"));
    wire.send(client(700, 1001, 5001, "abc"));
    wire.send(server(701, 5001, 1004, ""));
    let view = wire.end().views[0];
    assert_eq!(view.round_trip[0].map(|trip| trip.0), Some(40_000));
}

#[test]
fn what_is_held_is_bounded_and_the_overflow_counted() {
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "a"));
    // Byte 1002 never arrives, and the server acknowledges nothing.
    for step in 0..=MAX_HELD_SEGMENTS as u32 {
        wire.send(client(300 + i64::from(step), 1003 + step, 5001, "x"));
    }
    let held = wire.table.sink_mut().flows[0].len();
    assert_eq!(held, 1 + 1 + MAX_HELD_SEGMENTS + 1, "the first byte, the gap, and all that was held");
    assert_eq!(wire.end().quality().reorder_buffer_overflows, 1);
}

#[test]
fn two_segments_that_wait_for_each_other_lose_nothing() {
    // Each acknowledges the other: one is a late copy with a newer acknowledgment.
    let mut wire = Wire::open();
    wire.send(server(300, 5001, 1004, "yes"));
    wire.send(client(900, 1001, 5004, "ask"));
    let recorder = wire.end();
    assert_eq!(recorder.text(), ">ask <yes");
    assert_eq!(recorder.quality().dropped_bytes, 0);
}

#[test]
fn the_last_byte_before_a_captured_fin_is_waited_for() {
    // "!" was overtaken by the FIN; the response acknowledges "!" but not the FIN.
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "ask"));
    wire.send(SentPacket { flags: TcpFlags::FIN | TcpFlags::ACK, ..client(210, 1005, 5001, "") });
    wire.send(server(220, 5001, 1005, "yes"));
    wire.send(client(230, 1004, 5001, "!"));
    assert_eq!(wire.end().text(), ">ask >! <yes");
}

#[test]
fn reordering_by_less_than_the_grace_loses_nothing() {
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "a"));
    for step in 0..GRACE_PACKETS - 1 {
        wire.send(server(300 + i64::from(step), 5001 + step, 1003, "x"));
    }
    wire.send(client(400, 1002, 5001, "b"));
    let recorder = wire.end();
    assert!(recorder.text().starts_with(">a >b <x"), "{}", recorder.text());
    assert_eq!(recorder.quality().dropped_bytes, 0);
}
