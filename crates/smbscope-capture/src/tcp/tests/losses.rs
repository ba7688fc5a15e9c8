//! Losses: gaps in the capture, needed and unneeded retransmissions, and outages.

use super::*;
use crate::tcp::StreamCounts;
use crate::tcp::limits::GRACE_PACKETS;
use smbscope_model::Outage;

#[test]
fn bytes_that_were_acknowledged_are_dropped_by_the_capture_after_the_grace() {
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "ab"));
    wire.send(client(210, 1005, 5001, "ef"));
    wire.send(server(300, 5001, 1007, ""));
    assert_eq!(wire.table.sink_mut().flows[0].len(), 1, "cd may still come");
    for step in 1..i64::from(GRACE_PACKETS) {
        wire.send(server(300 + step, 5001, 1007, ""));
    }
    assert_eq!(wire.table.sink_mut().flows[0].len(), 1, "one packet more is waited for");
    wire.send(server(400, 5001, 1007, ""));
    let expected =
        [Event::Data('>', 0, "ab".into(), 4), Event::Gap('>', 2, 2, true), Event::Data('>', 4, "ef".into(), 5)];
    assert_eq!(wire.table.sink_mut().flows[0], expected);
    let recorder = wire.end();
    let quality = recorder.quality();
    assert_eq!((quality.capture_gaps, quality.dropped_bytes, quality.dropped_packets), (1, 2, 1));
}

#[test]
fn bytes_that_nobody_acknowledged_are_waited_for_until_the_end() {
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "ab"));
    wire.send(client(210, 1005, 5001, "ef"));
    for step in 0..100 {
        wire.send(server(300 + step, 5001, 1003, ""));
    }
    assert_eq!(wire.table.sink_mut().flows[0].len(), 1);
    let recorder = wire.end();
    assert_eq!(recorder.text(), ">ab >[2 missing] >ef");
    let quality = recorder.quality();
    assert_eq!((quality.dropped_bytes, quality.missing_unacknowledged_bytes), (0, 2));
}

#[test]
fn a_gap_at_the_end_of_a_stream_is_found_by_its_acknowledgment() {
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "ab"));
    wire.send(server(300, 5001, 1009, ""));
    assert_eq!(wire.end().text(), ">ab >[6 dropped]");
}

#[test]
fn a_fin_is_no_dropped_byte() {
    let fin = TcpFlags::FIN | TcpFlags::ACK;
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "ab"));
    wire.send(SentPacket { flags: fin, ..client(210, 1003, 5001, "") });
    wire.send(SentPacket { flags: fin, ..server(220, 5001, 1004, "") });
    wire.send(client(230, 1004, 5002, ""));
    let recorder = wire.end();
    assert_eq!(recorder.text(), ">ab");
    assert_eq!((recorder.quality().dropped_bytes, recorder.ends[0].finished), (0, true));
}

#[test]
fn a_fin_that_was_not_captured_is_no_dropped_byte_either() {
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "ab"));
    wire.send(server(220, 5001, 1004, ""));
    assert_eq!(wire.end().text(), ">ab");
}

#[test]
fn a_packet_that_comes_after_its_bytes_were_given_up_is_late_and_no_retransmission() {
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "ab"));
    wire.send(client(210, 1005, 5001, "ef"));
    for step in 0..=i64::from(GRACE_PACKETS) {
        wire.send(server(300 + step, 5001, 1007, ""));
    }
    wire.send(client(500, 1003, 5001, "cd"));
    let recorder = wire.end();
    assert_eq!(recorder.text(), ">ab >[2 dropped] >ef");
    assert_eq!((recorder.quality().late_segments, recorder.quality().retransmitted_segments), (1, 0));
}

#[test]
fn dropped_packets_are_counted_by_the_senders_identification() {
    // Segments of ten bytes with consecutive identifications; three are missing. Their 30 bytes alone could have been a
    // single packet.
    let mut wire = Wire::open();
    for step in 0..20u32 {
        if !(12..15).contains(&step) {
            let ip_id = Some(200 + step as u16);
            wire.send(SentPacket { ip_id, ..client(200 + i64::from(step), 1001 + 10 * step, 5001, "0123456789") });
        }
    }
    wire.send(server(300, 5001, 1201, "x"));
    let recorder = wire.end();
    assert_eq!((recorder.quality().dropped_packets, recorder.quality().dropped_bytes), (3, 30));
}

#[test]
fn without_the_answer_to_the_syn_the_first_acknowledgment_says_where_data_begins() {
    // "lost!" was dropped; the client's first acknowledgment was 5001, so the server's first byte is missing.
    let mut wire = Wire::new();
    wire.send(SentPacket { flags: TcpFlags::SYN, ..client(0, 1000, 0, "") });
    wire.send(client(100, 1001, 5001, "ask"));
    wire.send(server(200, 5006, 1004, "rest"));
    wire.send(client(300, 1004, 5010, ""));
    assert_eq!(wire.end().text(), ">ask <[5 dropped] <rest");
}

#[test]
fn without_the_syn_its_answer_says_where_the_clients_data_begins() {
    let mut wire = Wire::new();
    wire.send(SentPacket { flags: TcpFlags::SYN | TcpFlags::ACK, ..server(40, 5000, 1001, "") });
    wire.send(client(200, 1004, 5001, "rest"));
    wire.send(server(300, 5001, 1008, ""));
    assert_eq!(wire.end().text(), ">[3 dropped] >rest");
}

#[test]
fn data_segments_that_were_never_acknowledged_are_counted() {
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "ab"));
    wire.send(server(220, 5001, 1003, ""));
    wire.send(client(230, 1003, 5001, "cd"));
    wire.send(client(240, 1005, 5001, "ef"));
    assert_eq!(wire.end().quality().unacknowledged_segments, 2);
}

#[test]
fn a_request_whose_only_copy_was_sent_again_ends_with_the_copy() {
    // The hole was not acknowledged when the copy arrived: the receiver waited for it as well.
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "ab"));
    wire.send(client(210, 1005, 5001, "ef"));
    wire.send(client(90_000, 1003, 5001, "cd"));
    let recorder = wire.end();
    assert_eq!(recorder.quality().retransmissions_seen_once, 1);
    assert_eq!(recorder.events()[1], Event::Data('>', 2, "cd".into(), 6));
}

#[test]
fn a_syn_that_turns_up_behind_a_gap_does_not_take_the_stream_back() {
    // Found by fuzzing: the bytes of the gap were expected and skipped a second time.
    let mut wire = Wire::new();
    wire.send(server(0, 5001, 1001, ""));
    wire.send(client(100, 1001, 5011, "x"));
    for step in 0..=i64::from(GRACE_PACKETS) {
        wire.send(client(200 + step, 1002, 5011, ""));
    }
    wire.send(SentPacket { flags: TcpFlags::SYN | TcpFlags::ACK, ..server(300, 5000, 1001, "") });
    wire.send(server(400, 5011, 1002, "y"));
    let recorder = wire.end();
    assert_eq!(recorder.text(), "<[10 dropped] >x <y");
    assert_eq!(recorder.quality().dropped_bytes, 10);
}

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
        wire.send(client(at_us, 1001, 5001, "abc"));
    }
    wire.send(server(1_800, 5001, 1004, ""));
    assert_eq!(of_client(wire), (0, 0, 1_500));
}

#[test]
fn two_losses_at_once_delay_the_stream_once() {
    // "abc" from 200 to 900 µs, "def" from 300 to 950 µs.
    let mut wire = Wire::open();
    for (at_us, sequence, text) in [(200, 1001, "abc"), (300, 1004, "def"), (900, 1001, "abc"), (950, 1004, "def")] {
        wire.send(client(at_us, sequence, 5001, text));
    }
    assert_eq!(of_client(wire), (0, 0, 750));
}

#[test]
fn a_segment_lost_before_the_capture_delays_from_the_hole_to_its_copy() {
    // "cd" is missing since 210 µs and comes 190 µs later, with a newer identification than "ef".
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "ab"));
    wire.send(SentPacket { ip_id: Some(140), ..client(210, 1005, 5001, "ef") });
    wire.send(SentPacket { ip_id: Some(141), ..client(400, 1003, 5001, "cd") });
    assert_eq!(of_client(wire), (1, 0, 190));
}

#[test]
fn a_segment_that_was_only_overtaken_is_no_loss() {
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "ab"));
    wire.send(SentPacket { ip_id: Some(140), ..client(210, 1005, 5001, "ef") });
    wire.send(SentPacket { ip_id: Some(139), ..client(400, 1003, 5001, "cd") });
    assert_eq!(of_client(wire), (0, 0, 0));
}

#[test]
fn a_copy_of_what_was_acknowledged_is_needless_and_delays_nothing() {
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "abc"));
    wire.send(server(300, 5001, 1004, ""));
    wire.send(client(700, 1001, 5001, "abc"));
    // The receiver reports it too; it must not count twice.
    wire.send(SentPacket { duplicate_sack: Some((1001, 1004)), ..server(800, 5001, 1004, "") });
    assert_eq!(of_client(wire), (0, 1, 0));
}

#[test]
fn a_copy_that_a_d_sack_reports_is_needless() {
    // The acknowledgment of the first copy crosses the second one; the D-SACK follows.
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "abc"));
    wire.send(client(700, 1001, 5001, "abc"));
    wire.send(server(710, 5001, 1004, ""));
    wire.send(SentPacket { duplicate_sack: Some((1001, 1004)), ..server(800, 5001, 1004, "") });
    assert_eq!(of_client(wire), (0, 1, 0));
}

#[test]
fn a_d_sack_of_one_byte_answers_a_keep_alive() {
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "abc"));
    wire.send(client(700, 1001, 5001, "abc"));
    wire.send(server(710, 5001, 1004, ""));
    wire.send(client(60_000_000, 1003, 5001, "c"));
    wire.send(SentPacket { duplicate_sack: Some((1003, 1004)), ..server(60_000_040, 5001, 1004, "") });
    assert_eq!(of_client(wire), (0, 0, 500));
}

#[test]
fn a_copy_that_the_receiver_had_shows_that_the_capture_dropped_the_first_one() {
    // "cd" is captured once, after "ef"; the server reports it as received twice.
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "ab"));
    wire.send(SentPacket { ip_id: Some(140), ..client(210, 1005, 5001, "ef") });
    wire.send(SentPacket { ip_id: Some(141), ..client(400, 1003, 5001, "cd") });
    wire.send(SentPacket { duplicate_sack: Some((1003, 1005)), ..server(500, 5001, 1007, "") });
    assert_eq!(of_client(wire), (0, 1, 0));
}

const SECOND: i64 = 1_000_000;

/// Builds a flow in which the client sends "abc" at 1 s and retransmits it at these times.
fn sent_again(at_us: &[i64]) -> Wire {
    let mut wire = Wire::open();
    wire.send(client(SECOND, 1001, 5001, "abc"));
    for at_us in at_us {
        wire.send(client(*at_us, 1001, 5001, "abc"));
    }
    wire
}

/// Returns start, end, retries and recovery of each outage; times in microseconds.
fn outages(wire: Wire) -> Vec<(i64, i64, u32, bool)> {
    let figures = |outage: &Outage| (outage.from.0 / 1_000, outage.to.0 / 1_000, outage.retries, outage.recovered);
    wire.end().ends[0].outages.iter().map(figures).collect()
}

#[test]
fn an_outage_lasts_from_the_first_copy_to_the_first_packet_that_passes_again() {
    let mut wire = sent_again(&[1_300_000, 1_900_000, 3_100_000]);
    wire.send(server(3_100_040, 5001, 1004, ""));
    wire.send(client(4 * SECOND, 1004, 5001, "def"));
    wire.send(server(4_000_040, 5001, 1007, ""));
    assert_eq!(outages(wire), [(SECOND, 3_100_040, 3, true)]);
}

#[test]
fn an_outage_begins_after_the_last_packet_of_the_other_side() {
    let mut wire = Wire::open();
    wire.send(client(SECOND, 1001, 5001, "abc"));
    wire.send(server(1_100_000, 5001, 1001, ""));
    wire.send(client(1_300_000, 1001, 5001, "abc"));
    wire.send(client(1_900_000, 1001, 5001, "abc"));
    wire.send(server(2_500_000, 5001, 1004, ""));
    assert_eq!(outages(wire), [(1_100_000, 2_500_000, 2, true)]);
}

#[test]
fn an_outage_that_nothing_ends_lasts_until_the_end_of_the_flow() {
    assert_eq!(outages(sent_again(&[1_300_000, 1_900_000, 3_100_000])), [(SECOND, 3_100_000, 3, false)]);
}

#[test]
fn one_retransmission_or_less_than_a_second_is_an_ordinary_loss() {
    let recovered = |at_us: &[i64], to: i64| {
        let mut wire = sent_again(at_us);
        wire.send(server(to, 5001, 1004, ""));
        outages(wire)
    };
    assert_eq!(recovered(&[2_500_000], 2_500_040), []);
    assert_eq!(recovered(&[1_200_000, 1_600_000], 1_999_999), []);
    assert_eq!(recovered(&[1_200_000, 1_600_000], 2_000_000), [(SECOND, 2_000_000, 2, true)]);
}

#[test]
fn a_sender_that_stopped_sending_again_had_an_acknowledgment_that_the_capture_missed() {
    let mut wire = sent_again(&[1_200_000, 1_600_000]);
    wire.send(server(60 * SECOND, 5001, 1004, "answer"));
    assert_eq!(outages(wire), []);
}

#[test]
fn without_the_other_direction_in_the_capture_nothing_is_said() {
    let mut wire = Wire::new();
    for at_us in [1, 2, 4, 8] {
        wire.send(client(at_us * SECOND, 1001, 5001, "abc"));
    }
    assert_eq!(outages(wire), []);
}

#[test]
fn the_longest_outages_are_kept() {
    // Eleven outages of 2 s and a last one of 3 s.
    let mut wire = Wire::open();
    for n in 0..12 {
        let (at, sequence) = ((10 + 10 * i64::from(n)) * SECOND, 1001 + 2 * n);
        for later in [0, SECOND / 2, SECOND + SECOND / 2] {
            wire.send(client(at + later, sequence, 5001, "xy"));
        }
        let length = if n == 11 { 3 } else { 2 };
        wire.send(server(at + length * SECOND, 5001, sequence + 2, ""));
    }
    let outages = outages(wire);
    assert_eq!(outages.len(), Outage::MAX_LISTED);
    let starts: Vec<i64> = outages.iter().map(|outage| outage.0 / SECOND).collect();
    assert_eq!(starts, [10, 20, 30, 40, 50, 60, 70, 120]);
}
