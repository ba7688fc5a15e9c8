//! Delayed acknowledgments, and senders that wait for them.

use super::*;

const MS: i64 = 1_000;

/// Sends a header of 4 bytes at 1 ms, and its acknowledgment and the message after it at these times.
fn header_first(acknowledged_us: i64, message_us: i64) -> Wire {
    let mut wire = Wire::open();
    wire.tell(client(MS, 1001, 5001, "head"));
    wire.tell(server(acknowledged_us, 5001, 1005, ""));
    wire.tell(client(message_us, 1005, 5001, "message"));
    wire
}

/// Returns the client's stalls and their total time in microseconds.
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
fn acknowledgments_on_data_or_on_a_fin_are_not_delayed_ones() {
    let fin = TcpFlags::FIN | TcpFlags::ACK;
    for told in [server(41 * MS, 5001, 1005, "x"), Told { flags: fin, ..server(41 * MS, 5001, 1005, "") }] {
        let mut wire = Wire::open();
        wire.tell(client(MS, 1001, 5001, "head"));
        wire.tell(told);
        wire.tell(client(41 * MS + 20, 1005, 5001, "message"));
        assert_eq!(stalls(wire), (0, 0));
    }
}

#[test]
fn a_message_that_follows_later_was_not_held_back() {
    // The round trip between the capture point and the client takes 60 µs.
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
    // 25 ms between the capture point and the server; the client side takes no time.
    let mut wire = Wire::new();
    wire.tell(Told { flags: TcpFlags::SYN, ..client(0, 1000, 0, "") });
    wire.tell(Told { flags: TcpFlags::SYN | TcpFlags::ACK, ..server(25 * MS, 5000, 1001, "") });
    wire.tell(client(25 * MS, 1001, 5001, ""));
    wire.tell(client(100 * MS, 1001, 5001, "head"));
    wire.tell(server(150 * MS, 5001, 1005, ""));
    wire.tell(client(150 * MS + 20, 1005, 5001, "message"));
    assert_eq!(stalls(wire), (0, 0));
}
