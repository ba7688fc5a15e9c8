//! Bytes missing from the capture: what is reported about them, and when.

use super::*;
use crate::tcp::limits::GRACE_PACKETS;

#[test]
fn bytes_that_were_acknowledged_are_dropped_by_the_capture_after_the_grace() {
    let mut wire = Wire::open();
    wire.tell(client(200, 1001, 5001, "ab"));
    wire.tell(client(210, 1005, 5001, "ef"));
    wire.tell(server(300, 5001, 1007, ""));
    assert_eq!(wire.table.sink_mut().flows[0].len(), 1, "cd may still come");
    for step in 1..i64::from(GRACE_PACKETS) {
        wire.tell(server(300 + step, 5001, 1007, ""));
    }
    assert_eq!(wire.table.sink_mut().flows[0].len(), 1, "one packet more is waited for");
    wire.tell(server(400, 5001, 1007, ""));
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
    wire.tell(client(200, 1001, 5001, "ab"));
    wire.tell(client(210, 1005, 5001, "ef"));
    for step in 0..100 {
        wire.tell(server(300 + step, 5001, 1003, ""));
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
    wire.tell(client(200, 1001, 5001, "ab"));
    wire.tell(server(300, 5001, 1009, ""));
    assert_eq!(wire.end().text(), ">ab >[6 dropped]");
}

#[test]
fn a_fin_is_no_dropped_byte() {
    let fin = TcpFlags::FIN | TcpFlags::ACK;
    let mut wire = Wire::open();
    wire.tell(client(200, 1001, 5001, "ab"));
    wire.tell(Told { flags: fin, ..client(210, 1003, 5001, "") });
    wire.tell(Told { flags: fin, ..server(220, 5001, 1004, "") });
    wire.tell(client(230, 1004, 5002, ""));
    let recorder = wire.end();
    assert_eq!(recorder.text(), ">ab");
    assert_eq!((recorder.quality().dropped_bytes, recorder.ends[0].finished), (0, true));
}

#[test]
fn a_fin_that_was_not_captured_is_no_dropped_byte_either() {
    let mut wire = Wire::open();
    wire.tell(client(200, 1001, 5001, "ab"));
    wire.tell(server(220, 5001, 1004, ""));
    assert_eq!(wire.end().text(), ">ab");
}

#[test]
fn a_packet_that_comes_after_its_bytes_were_given_up_is_late_and_no_retransmission() {
    let mut wire = Wire::open();
    wire.tell(client(200, 1001, 5001, "ab"));
    wire.tell(client(210, 1005, 5001, "ef"));
    for step in 0..=i64::from(GRACE_PACKETS) {
        wire.tell(server(300 + step, 5001, 1007, ""));
    }
    wire.tell(client(500, 1003, 5001, "cd"));
    let recorder = wire.end();
    assert_eq!(recorder.text(), ">ab >[2 dropped] >ef");
    assert_eq!((recorder.quality().late_segments, recorder.quality().retransmitted_segments), (1, 0));
}

#[test]
fn dropped_packets_are_counted_by_the_senders_identification() {
    // Segments of ten bytes with consecutive identifications, of which three are missing. Their 30 bytes alone could
    // have been a single packet.
    let mut wire = Wire::open();
    for step in 0..20u32 {
        if !(12..15).contains(&step) {
            let ip_id = Some(200 + step as u16);
            wire.tell(Told { ip_id, ..client(200 + i64::from(step), 1001 + 10 * step, 5001, "0123456789") });
        }
    }
    wire.tell(server(300, 5001, 1201, "x"));
    let recorder = wire.end();
    assert_eq!((recorder.quality().dropped_packets, recorder.quality().dropped_bytes), (3, 30));
}

#[test]
fn without_the_answer_to_the_syn_the_first_acknowledgment_says_where_data_begins() {
    // "lost!" was dropped; the client's first acknowledgment was 5001, so the server's first byte is missing.
    let mut wire = Wire::new();
    wire.tell(Told { flags: TcpFlags::SYN, ..client(0, 1000, 0, "") });
    wire.tell(client(100, 1001, 5001, "ask"));
    wire.tell(server(200, 5006, 1004, "rest"));
    wire.tell(client(300, 1004, 5010, ""));
    assert_eq!(wire.end().text(), ">ask <[5 dropped] <rest");
}

#[test]
fn without_the_syn_its_answer_says_where_the_clients_data_begins() {
    let mut wire = Wire::new();
    wire.tell(Told { flags: TcpFlags::SYN | TcpFlags::ACK, ..server(40, 5000, 1001, "") });
    wire.tell(client(200, 1004, 5001, "rest"));
    wire.tell(server(300, 5001, 1008, ""));
    assert_eq!(wire.end().text(), ">[3 dropped] >rest");
}

#[test]
fn data_segments_that_were_never_acknowledged_are_counted() {
    let mut wire = Wire::open();
    wire.tell(client(200, 1001, 5001, "ab"));
    wire.tell(server(220, 5001, 1003, ""));
    wire.tell(client(230, 1003, 5001, "cd"));
    wire.tell(client(240, 1005, 5001, "ef"));
    assert_eq!(wire.end().quality().unacknowledged_segments, 2);
}

#[test]
fn a_request_whose_only_copy_was_sent_again_ends_with_the_copy() {
    // The hole was not acknowledged when the copy arrived: the receiver waited for it as well.
    let mut wire = Wire::open();
    wire.tell(client(200, 1001, 5001, "ab"));
    wire.tell(client(210, 1005, 5001, "ef"));
    wire.tell(client(90_000, 1003, 5001, "cd"));
    let recorder = wire.end();
    assert_eq!(recorder.quality().retransmissions_seen_once, 1);
    assert_eq!(recorder.events()[1], Event::Data('>', 2, "cd".into(), 6));
}

#[test]
fn a_syn_that_turns_up_behind_a_gap_does_not_take_the_stream_back() {
    // Found by fuzzing: the bytes of the gap were expected and skipped a second time.
    let mut wire = Wire::new();
    wire.tell(server(0, 5001, 1001, ""));
    wire.tell(client(100, 1001, 5011, "x"));
    for step in 0..=i64::from(GRACE_PACKETS) {
        wire.tell(client(200 + step, 1002, 5011, ""));
    }
    wire.tell(Told { flags: TcpFlags::SYN | TcpFlags::ACK, ..server(300, 5000, 1001, "") });
    wire.tell(server(400, 5011, 1002, "y"));
    let recorder = wire.end();
    assert_eq!(recorder.text(), "<[10 dropped] >x <y");
    assert_eq!(recorder.quality().dropped_bytes, 10);
}
