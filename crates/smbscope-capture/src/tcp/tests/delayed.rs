//! Delayed acknowledgments: who waited for them, and the round trips that they don't blur.

use super::*;
use smbscope_model::{Nanos, RoundTrips};

const MS: i64 = 1_000;

/// A header of 4 bytes at 1 ms; its acknowledgment and the message behind it at these times.
fn header_first(acknowledged_us: i64, message_us: i64) -> Wire {
    let mut wire = Wire::open();
    wire.tell(client(MS, 1001, 5001, "head"));
    wire.tell(server(acknowledged_us, 5001, 1005, ""));
    wire.tell(client(message_us, 1005, 5001, "message"));
    wire
}

/// Stalls of the client and their time in microseconds.
fn stalls(wire: Wire) -> (u64, i64) {
    let counts = wire.end().ends[0].counts[0];
    (counts.ack_stalls, counts.ack_stall.0 / 1_000)
}

#[test]
fn a_message_that_follows_a_delayed_acknowledgment_at_once_was_held_back_for_it() {
    assert_eq!(stalls(header_first(41 * MS, 41 * MS + 20)), (1, 40 * MS + 20));
    assert_eq!(stalls(header_first(201 * MS, 202 * MS)), (1, 201 * MS));
}

#[test]
fn acknowledgments_at_other_times_are_not_delayed_ones() {
    for acknowledged in [MS + 50, 30 * MS, 62 * MS, 150 * MS, 230 * MS] {
        assert_eq!(stalls(header_first(acknowledged, acknowledged + 20)), (0, 0), "{acknowledged}");
    }
}

#[test]
fn a_message_that_follows_later_was_not_held_back() {
    // The way from the capture point to the client and back takes 60 µs.
    assert_eq!(stalls(header_first(41 * MS, 43 * MS + 60)).0, 1);
    assert_eq!(stalls(header_first(41 * MS, 43 * MS + 61)).0, 0);
}

#[test]
fn a_message_that_answers_something_was_not_held_back() {
    let mut wire = Wire::open();
    wire.tell(client(MS, 1001, 5001, "head"));
    wire.tell(server(41 * MS, 5001, 1005, ""));
    wire.tell(server(41 * MS + 10, 5001, 1005, "answer"));
    wire.tell(client(41 * MS + 20, 1005, 5007, "next"));
    assert_eq!(stalls(wire), (0, 0));
}

#[test]
fn where_the_round_trip_is_long_nothing_is_known_of_delayed_acknowledgments() {
    // 25 ms from the capture point to the server and back; the other part is nothing.
    let mut wire = Wire::new();
    wire.tell(Told { flags: TcpFlags::SYN, ..client(0, 1000, 0, "") });
    wire.tell(Told { flags: TcpFlags::SYN | TcpFlags::ACK, ..server(25 * MS, 5000, 1001, "") });
    wire.tell(client(25 * MS, 1001, 5001, ""));
    wire.tell(client(100 * MS, 1001, 5001, "head"));
    wire.tell(server(150 * MS, 5001, 1005, ""));
    wire.tell(client(150 * MS + 20, 1005, 5001, "message"));
    assert_eq!(stalls(wire), (0, 0));
}

/// The round trips of what the client sent.
fn trips(wire: Wire) -> RoundTrips {
    wire.end().ends[0].round_trips[0]
}

#[test]
fn round_trips_are_those_of_the_handshake_and_of_two_full_segments_but_not_of_a_delayed_acknowledgment() {
    // The SYN is answered after 40 µs: one sample between 32 and 64 µs. 40 ms for a request are a delayed acknowledgment.
    let handshake = RoundTrips { samples: 1, p50: Nanos(48_000), p90: Nanos(48_000) };
    assert_eq!(trips(header_first(41 * MS, 50 * MS)), handshake);
    // Two segments of 1,460 bytes at 1 ms and 2 ms, acknowledged at 82 ms: 80 ms since the second one, between 65.536 ms and
    // twice as much.
    let mut wire = Wire::open();
    for (at_us, sequence) in [(MS, 1001), (2 * MS, 2461)] {
        wire.tell(Told { length: Some(1460), ..client(at_us, sequence, 5001, "full") });
    }
    wire.tell(server(82 * MS, 5001, 3921, ""));
    let RoundTrips { samples, p90, .. } = trips(wire);
    assert_eq!((samples, p90), (2, Nanos(65_536_000 * 3 / 2)));
}

#[test]
fn an_acknowledgment_on_data_counts_if_its_sender_was_sending_before() {
    // The server sends every 100 µs. A request passes at 1 ms and is acknowledged on data at 2 ms, behind much data.
    let busy = |from: i64| {
        let mut wire = Wire::open();
        wire.tell(client(MS, 1001, 5001, "ask"));
        for n in from..10 {
            wire.tell(server(MS + 100 * n, 5001 + n as u32, 1001, "x"));
        }
        wire.tell(server(2 * MS, 5011, 1004, "x"));
        trips(wire).samples
    };
    // One sample is the handshake's.
    assert_eq!(busy(1), 2);
    // A response to a request: nothing was sent between.
    let mut wire = Wire::open();
    wire.tell(client(MS, 1001, 5001, "ask"));
    wire.tell(server(2 * MS, 5001, 1004, "answer"));
    assert_eq!(trips(wire).samples, 1);
}
