//! Delayed acknowledgments, and windows that are closed or too small for the round trip.

use super::*;
use crate::tcp::WindowCounts;
use smbscope_model::Nanos;

const MS_IN_US: i64 = 1_000;

/// Sends a header of 4 bytes at 1 ms, and its acknowledgment and the message after it at these times.
fn header_first(acknowledged_us: i64, message_us: i64) -> Wire {
    let mut wire = Wire::open();
    wire.send(client(MS_IN_US, 1001, 5001, "head"));
    wire.send(server(acknowledged_us, 5001, 1005, ""));
    wire.send(client(message_us, 1005, 5001, "message"));
    wire
}

/// Returns the client's stalls and their total time in microseconds.
fn stalls(wire: Wire) -> (u64, i64) {
    let counts = wire.end().ends[0].counts[0];
    (counts.ack_stalls, counts.ack_stall.0 / 1_000)
}

#[test]
fn a_message_that_follows_a_delayed_acknowledgment_at_once_was_held_back_for_it() {
    assert_eq!(stalls(header_first(41 * MS_IN_US, 41 * MS_IN_US + 20)), (1, 40 * MS_IN_US + 20));
    assert_eq!(stalls(header_first(201 * MS_IN_US, 202 * MS_IN_US)), (1, 201 * MS_IN_US));
}

#[test]
fn acknowledgments_at_other_times_are_not_delayed_ones() {
    for acknowledged in [MS_IN_US + 50, 30 * MS_IN_US, 62 * MS_IN_US, 150 * MS_IN_US, 230 * MS_IN_US] {
        assert_eq!(stalls(header_first(acknowledged, acknowledged + 20)), (0, 0), "{acknowledged}");
    }
}

#[test]
fn acknowledgments_on_data_or_on_a_fin_are_not_delayed_ones() {
    let fin = TcpFlags::FIN | TcpFlags::ACK;
    for packet in
        [server(41 * MS_IN_US, 5001, 1005, "x"), SentPacket { flags: fin, ..server(41 * MS_IN_US, 5001, 1005, "") }]
    {
        let mut wire = Wire::open();
        wire.send(client(MS_IN_US, 1001, 5001, "head"));
        wire.send(packet);
        wire.send(client(41 * MS_IN_US + 20, 1005, 5001, "message"));
        assert_eq!(stalls(wire), (0, 0));
    }
}

#[test]
fn a_message_that_follows_later_was_not_held_back() {
    // The round trip between the capture point and the client takes 60 µs.
    assert_eq!(stalls(header_first(41 * MS_IN_US, 43 * MS_IN_US + 60)).0, 1);
    assert_eq!(stalls(header_first(41 * MS_IN_US, 43 * MS_IN_US + 61)).0, 0);
}

#[test]
fn a_message_that_answers_something_was_not_held_back() {
    let mut wire = Wire::open();
    wire.send(client(MS_IN_US, 1001, 5001, "head"));
    wire.send(server(41 * MS_IN_US, 5001, 1005, ""));
    wire.send(server(41 * MS_IN_US + 10, 5001, 1005, "answer"));
    wire.send(client(41 * MS_IN_US + 20, 1005, 5007, "next"));
    assert_eq!(stalls(wire), (0, 0));
}

#[test]
fn where_the_round_trip_is_long_nothing_is_known_of_delayed_acknowledgments() {
    // 25 ms between the capture point and the server; the client side takes no time.
    let mut wire = Wire::new();
    wire.send(SentPacket { flags: TcpFlags::SYN, ..client(0, 1000, 0, "") });
    wire.send(SentPacket { flags: TcpFlags::SYN | TcpFlags::ACK, ..server(25 * MS_IN_US, 5000, 1001, "") });
    wire.send(client(25 * MS_IN_US, 1001, 5001, ""));
    wire.send(client(100 * MS_IN_US, 1001, 5001, "head"));
    wire.send(server(150 * MS_IN_US, 5001, 1005, ""));
    wire.send(client(150 * MS_IN_US + 20, 1005, 5001, "message"));
    assert_eq!(stalls(wire), (0, 0));
}

const MS: i64 = 1_000_000;

/// Returns the counters of the client's receive window. The only flow starts with a packet from the client.
fn of_client(recorder: &Recorder) -> WindowCounts {
    recorder.ends[0].counts[FlowDirection::Backward.index()].window
}

/// 10 ms between the capture point and either side, i.e. round trips of 20 ms each.
fn far(scale: [WindowScale; 2]) -> Wire {
    let mut wire = Wire::new();
    let [of_client, of_server] = scale;
    wire.send(SentPacket { flags: TcpFlags::SYN, window_scale: of_client, ..client(0, 1000, 0, "") });
    let flags = TcpFlags::SYN | TcpFlags::ACK;
    wire.send(SentPacket { flags, window_scale: of_server, ..server(20_000, 5000, 1001, "") });
    wire.send(client(40_000, 1001, 5001, ""));
    wire
}

/// Sends ten windows of 200 bytes, one every 40 ms from 100 ms on. The server's two segments arrive 20 ms (its round
/// trip) after the client's acknowledgment; the next acknowledgment follows 20 ms later.
fn ten_windows(wire: &mut Wire, window: u16, late_us: i64) {
    let data = "x".repeat(100);
    wire.send(SentPacket { window, ..client(100_000, 1001, 5001, "get") });
    for n in 0..10 {
        let (at, from) = (100_000 + i64::from(n) * 40_000, 5001 + n * 200);
        wire.send(server(at + 20_000 + late_us, from, 1004, &data));
        wire.send(server(at + 20_000 + late_us, from + 100, 1004, &data));
        wire.send(SentPacket { window, ..client(at + 40_000, 1004, from + 200, "") });
    }
}

#[test]
fn a_window_filled_one_trip_after_each_acknowledgment_limits_the_sender() {
    // 50 << 2 is 200 bytes. From the first acknowledgment at 100 ms to the last at 500 ms.
    let mut wire = far([WindowScale::Shift(2), WindowScale::Shift(7)]);
    ten_windows(&mut wire, 50, 0);
    let expected = WindowCounts { closed: Nanos(0), limited: Nanos(400 * MS), filled: Some(200) };
    assert_eq!(of_client(&wire.end()), expected);
}

#[test]
fn a_sender_that_takes_its_time_to_fill_a_window_is_not_limited_by_it() {
    // 6 ms later than the 20 ms round trip: more than an eighth of the whole round trip of 40 ms.
    let mut wire = far([WindowScale::Shift(2), WindowScale::Shift(7)]);
    ten_windows(&mut wire, 50, 6_000);
    assert_eq!(of_client(&wire.end()), WindowCounts::default());
    // The window has room for over 400 bytes.
    let mut wire = far([WindowScale::Shift(2), WindowScale::Shift(7)]);
    ten_windows(&mut wire, 101, 0);
    assert_eq!(of_client(&wire.end()), WindowCounts::default());
}

/// The client allows 60,000 bytes, and 45,000 arrive in one offloaded packet: room for more than one segment.
#[test]
fn a_packet_larger_than_segments_can_be_leaves_room_for_one_segment_only() {
    let sent = |bytes: u32| {
        let mut wire = far([WindowScale::Shift(4), WindowScale::Shift(7)]);
        wire.send(SentPacket { window: 3_750, ..client(100_000, 1001, 5001, "get") });
        wire.send(SentPacket { length: Some(bytes), ..server(120_000, 5001, 1004, "") });
        wire.send(SentPacket { window: 3_750, ..client(140_000, 1004, 5001 + bytes, "") });
        of_client(&wire.end())
    };
    assert_eq!(sent(45_000), WindowCounts::default());
    assert_eq!((sent(52_000).limited, sent(52_000).filled), (Nanos(40 * MS), Some(60_000)));
}

#[test]
fn without_both_scales_nothing_is_said_of_small_windows() {
    for scale in [[WindowScale::Unknown, WindowScale::Shift(7)], [WindowScale::Shift(2), WindowScale::Unknown]] {
        let mut wire = far(scale);
        ten_windows(&mut wire, 50, 0);
        assert_eq!(of_client(&wire.end()), WindowCounts::default(), "{scale:?}");
    }
    // A side that does not scale prevents the other from scaling: the window is a plain 200.
    let mut wire = far([WindowScale::Shift(2), WindowScale::Absent]);
    ten_windows(&mut wire, 200, 0);
    assert_eq!(of_client(&wire.end()).filled, Some(200));
}

#[test]
fn a_closed_window_counts_where_the_sender_waited_for_it() {
    let mut wire = Wire::open();
    wire.send(server(1_000, 5001, 1001, "abc"));
    wire.send(SentPacket { window: 0, ..client(2_000, 1001, 5004, "") });
    wire.send(client(52_000, 1001, 5004, ""));
    wire.send(server(53_000, 5004, 1001, "def"));
    // Closed and opened again, but the server has nothing to send for a second.
    wire.send(SentPacket { window: 0, ..client(60_000, 1001, 5007, "") });
    wire.send(client(100_000, 1001, 5007, ""));
    wire.send(server(1_100_000, 5007, 1001, "ghi"));
    assert_eq!(of_client(&wire.end()).closed, Nanos(50 * MS));
}

#[test]
fn a_closed_window_that_is_probed_is_waited_for() {
    let mut wire = Wire::open();
    wire.send(server(1_000, 5001, 1001, "abc"));
    wire.send(SentPacket { window: 0, ..client(2_000, 1001, 5004, "") });
    // Probes at 202 and 602 ms, with the sequence number before the next; then the connection ends.
    for at in [202_000, 602_000] {
        wire.send(server(at, 5003, 1001, ""));
        wire.send(SentPacket { window: 0, ..client(at + 50, 1001, 5004, "") });
    }
    assert_eq!(of_client(&wire.end()).closed, Nanos(600 * MS));
}
