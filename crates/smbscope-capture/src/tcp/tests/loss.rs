//! Cost of losses: needed and unneeded retransmissions, and the time that the stream waited.

use super::*;
use crate::tcp::StreamCounts;

/// Returns, for the client's data: segments lost before the capture, unneeded retransmissions, delay in microseconds.
fn of_client(wire: Wire) -> (u64, u64, i64) {
    let recorder = wire.end();
    let StreamCounts { lost_before_capture, needless, resend_delay, .. } = recorder.ends[0].counts[0];
    assert_eq!(recorder.ends[0].counts[1].resend_delay.0, 0);
    (lost_before_capture, needless, resend_delay.0 / 1_000)
}

#[test]
fn a_segment_captured_twice_delays_from_its_first_to_its_last_copy() {
    // Copies at 200, 700 and 1,700 µs.
    let mut wire = Wire::open();
    for at_us in [200, 700, 1_700] {
        wire.tell(client(at_us, 1001, 5001, "abc"));
    }
    wire.tell(server(1_800, 5001, 1004, ""));
    assert_eq!(of_client(wire), (0, 0, 1_500));
}

#[test]
fn two_losses_at_once_delay_the_stream_once() {
    // "abc" from 200 to 900 µs, "def" from 300 to 950 µs.
    let mut wire = Wire::open();
    for (at_us, sequence, text) in [(200, 1001, "abc"), (300, 1004, "def"), (900, 1001, "abc"), (950, 1004, "def")] {
        wire.tell(client(at_us, sequence, 5001, text));
    }
    assert_eq!(of_client(wire), (0, 0, 750));
}

#[test]
fn a_segment_lost_before_the_capture_delays_from_the_hole_to_its_copy() {
    // "cd" is missing since 210 µs and comes 190 µs later, with a newer identification than "ef".
    let mut wire = Wire::open();
    wire.tell(client(200, 1001, 5001, "ab"));
    wire.tell(Told { ip_id: Some(140), ..client(210, 1005, 5001, "ef") });
    wire.tell(Told { ip_id: Some(141), ..client(400, 1003, 5001, "cd") });
    assert_eq!(of_client(wire), (1, 0, 190));
}

#[test]
fn a_segment_that_was_only_overtaken_is_no_loss() {
    let mut wire = Wire::open();
    wire.tell(client(200, 1001, 5001, "ab"));
    wire.tell(Told { ip_id: Some(140), ..client(210, 1005, 5001, "ef") });
    wire.tell(Told { ip_id: Some(139), ..client(400, 1003, 5001, "cd") });
    assert_eq!(of_client(wire), (0, 0, 0));
}

#[test]
fn a_copy_of_what_was_acknowledged_is_needless_and_delays_nothing() {
    let mut wire = Wire::open();
    wire.tell(client(200, 1001, 5001, "abc"));
    wire.tell(server(300, 5001, 1004, ""));
    wire.tell(client(700, 1001, 5001, "abc"));
    // The receiver reports it too; it must not count twice.
    wire.tell(Told { duplicate_sack: Some((1001, 1004)), ..server(800, 5001, 1004, "") });
    assert_eq!(of_client(wire), (0, 1, 0));
}

#[test]
fn a_copy_that_a_d_sack_reports_is_needless() {
    // The acknowledgment of the first copy crosses the second one; the D-SACK follows.
    let mut wire = Wire::open();
    wire.tell(client(200, 1001, 5001, "abc"));
    wire.tell(client(700, 1001, 5001, "abc"));
    wire.tell(server(710, 5001, 1004, ""));
    wire.tell(Told { duplicate_sack: Some((1001, 1004)), ..server(800, 5001, 1004, "") });
    assert_eq!(of_client(wire), (0, 1, 0));
}

#[test]
fn a_d_sack_of_one_byte_answers_a_keep_alive() {
    let mut wire = Wire::open();
    wire.tell(client(200, 1001, 5001, "abc"));
    wire.tell(client(700, 1001, 5001, "abc"));
    wire.tell(server(710, 5001, 1004, ""));
    wire.tell(client(60_000_000, 1003, 5001, "c"));
    wire.tell(Told { duplicate_sack: Some((1003, 1004)), ..server(60_000_040, 5001, 1004, "") });
    assert_eq!(of_client(wire), (0, 0, 500));
}

#[test]
fn a_copy_that_the_receiver_had_shows_that_the_capture_dropped_the_first_one() {
    // "cd" is captured once, after "ef"; the server reports it as received twice.
    let mut wire = Wire::open();
    wire.tell(client(200, 1001, 5001, "ab"));
    wire.tell(Told { ip_id: Some(140), ..client(210, 1005, 5001, "ef") });
    wire.tell(Told { ip_id: Some(141), ..client(400, 1003, 5001, "cd") });
    wire.tell(Told { duplicate_sack: Some((1003, 1005)), ..server(500, 5001, 1007, "") });
    assert_eq!(of_client(wire), (0, 1, 0));
}
