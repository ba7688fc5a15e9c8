//! Framing: headers split anywhere, streams with gaps, data that looks like frames, truncated packets.

use crate::common::{self, analyze, analyze_told, times};
use smbscope_model::{Dialect, Exchange, ExchangeOutcome};
use smbscope_testkit::{Conversation, Packet, damage, framed, packet::HEADERS, pcap, smb1, smb2};

/// An open, a read of 3,000 bytes and a close, each answered after 100 µs. Packets 1 to 3 are the handshake; 4 and 5
/// open, 6 is the read request, 7 to 9 its response, 10 and 11 close, 12 acknowledges.
fn open_read_close() -> Vec<Packet> {
    Conversation::new()
        .client_says(100, smb2::create(1, "a.txt"))
        .server_says(200, smb2::create_response(1, 7))
        .client_says(300, smb2::read(2, 7, 0, 3000))
        .server_says(400, smb2::read_response(2, &[5; 3000]))
        .client_says(500, smb2::close(3, 7))
        .server_says(600, smb2::close_response(3))
        .client_acks(700)
        .packets()
}

#[test]
fn a_frame_may_be_split_at_every_byte() {
    let request = framed(smb2::create(1, "some name.txt"));
    for cut in 1..request.len() {
        let (head, tail) = request.split_at(cut);
        let analysis = analyze_told(
            &Conversation::new()
                .client_sends(100, head)
                .client_sends(200, tail)
                .server_says(300, smb2::create_response(1, 7)),
        );
        let exchange = analysis.only();
        assert_eq!((times(exchange), exchange.path.as_deref()), ([100, 200, 300, 300], Some("some name.txt")), "{cut}");
        assert_eq!(exchange.request.packets, 2, "{cut}");
    }
}

#[test]
fn a_frame_may_be_split_into_single_bytes() {
    let analysis = analyze_told(
        &Conversation::new()
            .segment_size(1)
            .client_says(100, smb2::create(1, "a"))
            .server_says(30_000, smb2::create_response(1, 7)),
    );
    let exchange = analysis.only();
    // 4 + 120 + 2 bytes, one every 10 µs; the response has 4 + 152.
    assert_eq!(times(exchange), [100, 100 + 125 * 10, 30_000, 30_000 + 155 * 10]);
    assert_eq!((exchange.path.as_deref(), exchange.request.packets), (Some("a"), 126));
}

#[test]
fn a_segment_may_hold_the_end_of_one_message_and_the_start_of_the_next() {
    let bytes = [framed(smb2::echo(1)), framed(smb2::create(2, "b"))].concat();
    for cut in 1..bytes.len() {
        let (first, second) = bytes.split_at(cut);
        let analysis = analyze_told(
            &Conversation::new()
                .client_sends(100, first)
                .client_sends(200, second)
                .server_says(300, smb2::echo_response(1))
                .server_says(400, smb2::create_response(2, 7)),
        );
        let [echo, create] = &analysis.exchanges[..] else { panic!("{cut}: {:?}", analysis.outcomes()) };
        let whole = framed(smb2::echo(1)).len();
        assert_eq!(times(echo), [100, if cut < whole { 200 } else { 100 }, 300, 300], "{cut}");
        assert_eq!(times(create), [if cut <= whole { 200 } else { 100 }, 200, 400, 400], "{cut}");
        assert_eq!(create.path.as_deref(), Some("b"), "{cut}");
    }
}

#[test]
fn a_capture_may_begin_in_the_middle_of_a_message() {
    // Only the last packet of the read's response was captured, and then a close.
    let packets = &open_read_close()[8..];
    let analysis = analyze(packets);
    assert_eq!(analysis.outcomes(), ["CLOSE complete"]);
    assert_eq!(times(analysis.only()), [500, 500, 600, 600]);
    let connection = &analysis.connections[0];
    assert!(connection.midstream && connection.dialect.is_none());
    assert_eq!(connection.endpoints.server.port(), 445, "requests come from the client");
}

#[test]
fn a_capture_that_begins_with_a_response_knows_who_is_who() {
    let packets = Conversation::midstream()
        .ports(50_000, 60_000)
        .server_says(50, smb2::echo_response(9))
        .client_says(100, smb2::echo(10))
        .server_says(200, smb2::echo_response(10))
        .packets();
    let analysis = analyze(&packets);
    assert_eq!(analysis.outcomes(), ["ECHO request_not_captured", "ECHO complete"]);
    assert_eq!(analysis.connections[0].endpoints.server.port(), 60_000);
}

#[test]
fn requests_before_the_capture_are_told_from_lost_ones() {
    // Two commands are outstanding at the beginning; the request of ECHO 12 is missing from the capture.
    let packets = Conversation::midstream()
        .server_says(50, smb2::echo_response(9))
        .client_says(100, smb2::echo(11))
        .server_says(150, smb2::echo_response(10))
        .server_says(200, smb2::echo_response(11))
        .client_says(300, smb2::echo(12))
        .server_says(400, smb2::echo_response(12))
        .client_says(500, smb2::echo(13))
        .server_says(600, smb2::echo_response(13))
        .packets();
    let lost = analyze(&damage::without(&packets, &[4]));
    let expected = ["request_not_captured", "complete", "request_not_captured", "request_not_captured", "complete"];
    assert_eq!(lost.outcomes(), expected.map(|outcome| format!("ECHO {outcome}")));
    assert_eq!((lost.quality.responses_without_request, lost.quality.requests_before_capture), (3, 2));
}

#[test]
fn a_gap_inside_a_body_keeps_the_exchange() {
    // The second of three packets of the read's response.
    let analysis = analyze(&damage::without(&open_read_close(), &[7]));
    assert_eq!(analysis.outcomes(), ["CREATE complete", "READ complete", "CLOSE complete"]);
    assert_eq!(times(&analysis.exchanges[1]), [300, 300, 400, 420]);
    assert_eq!((analysis.quality.dropped_bytes, analysis.quality.framing_lost), (1460, 0));
}

#[test]
fn a_gap_over_the_last_packet_of_a_response_leaves_its_end_open() {
    let analysis = analyze(&damage::without(&open_read_close(), &[8]));
    assert_eq!(analysis.outcomes(), ["CREATE complete", "READ response_end_missing", "CLOSE complete"]);
    assert_eq!(times(&analysis.exchanges[1]), [300, 300, 400, -1]);
    assert_eq!(analysis.quality.response_end_missing, 1);
}

#[test]
fn a_gap_over_the_last_packet_of_a_request_does_not_matter_to_the_response_time() {
    let packets = Conversation::new()
        .client_says(100, smb2::write(1, 7, 0, &[0; 3000]))
        .server_says(400, smb2::write_response(1, 3000))
        .packets();
    let analysis = analyze(&damage::without(&packets, &[5]));
    assert_eq!((times(analysis.only()), analysis.only().outcome), ([100, -1, 400, 400], ExchangeOutcome::Complete));
}

#[test]
fn a_gap_over_the_first_packet_of_a_response_loses_the_exchange() {
    let analysis = analyze(&damage::without(&open_read_close(), &[6]));
    assert_eq!(analysis.outcomes(), ["CREATE complete", "READ response_not_captured", "CLOSE complete"]);
}

/// A client that sends each frame header in a segment of its own, or with the end of the previous message.
fn headers_apart(requests: u64) -> Conversation {
    let mut conversation = Conversation::new();
    for id in 1..=requests {
        let request = framed(smb2::echo(id));
        let at = id as i64 * 1_000;
        let (header, message) = request.split_at(4);
        conversation = conversation.client_sends(at, header).client_sends(at + 10, message);
        conversation = conversation.server_says(at + 300, smb2::echo_response(id));
    }
    conversation.client_acks(requests as i64 * 1_000 + 400)
}

#[test]
fn a_lost_header_costs_one_message_where_headers_have_segments_of_their_own() {
    // Packets 1 to 3 are the handshake; then header, message and response for each request.
    let packets = headers_apart(20).packets();
    for lost in (6..60).step_by(3) {
        let analysis = analyze(&damage::without(&packets, &[lost]));
        let complete = analysis.exchanges.iter().filter(|exchange| exchange.is_complete()).count();
        assert_eq!(complete, 19, "without packet {}: {:?}", lost + 1, analysis.outcomes());
        assert_eq!((analysis.quality.framing_lost, analysis.quality.framing_found), (1, 1));
    }
}

#[test]
fn a_stream_that_begins_in_the_middle_is_read_where_headers_have_segments_of_their_own() {
    let packets = headers_apart(20).packets();
    for begin in 3..9 {
        let analysis = analyze(&packets[begin..]);
        let complete: Vec<&Exchange> = analysis.exchanges.iter().filter(|exchange| exchange.is_complete()).collect();
        assert!(complete.len() >= 18, "from packet {begin}: {:?}", analysis.outcomes());
        assert!(complete.iter().all(|exchange| exchange.request.packets == 2), "the header counts");
    }
}

#[test]
fn framing_goes_on_at_a_header_that_is_split_at_any_byte() {
    for cut in 1..4 {
        let request = framed(smb2::echo(3));
        let (head, rest) = request.split_at(cut);
        let packets = Conversation::new()
            .client_says(100, smb2::echo(1))
            .server_says(200, smb2::echo_response(1))
            .client_says(1_100, smb2::echo(2))
            .server_says(1_200, smb2::echo_response(2))
            .client_sends(2_100, head)
            .client_sends(2_110, rest)
            .server_says(2_200, smb2::echo_response(3))
            .client_acks(2_300)
            .packets();
        let analysis = analyze(&damage::without(&packets, &[5]));
        let last = analysis.exchanges.last().expect("there are some");
        assert_eq!((last.is_complete(), times(last)), (true, [2_100, 2_110, 2_200, 2_200]), "{cut}");
    }
}

#[test]
fn a_gap_over_a_header_loses_the_framing_until_the_next_frame() {
    // The last packet of the read's response and the response to the close: the framing is recovered at the next ECHO.
    let packets = Conversation::new()
        .client_says(300, smb2::read(2, 7, 0, 3000))
        .server_says(400, smb2::read_response(2, &[5; 3000]))
        .client_says(500, smb2::close(3, 7))
        .server_says(600, smb2::close_response(3))
        .client_says(700, smb2::echo(4))
        .server_says(800, smb2::echo_response(4))
        .client_acks(900)
        .packets();
    let analysis = analyze(&damage::without(&packets, &[6, 8]));
    assert_eq!(analysis.outcomes(), ["READ response_end_missing", "CLOSE response_not_captured", "ECHO complete"]);
    assert_eq!((analysis.quality.framing_lost, analysis.quality.framing_found), (1, 1));
    assert_eq!(analysis.quality.bytes_skipped, 0, "the next frame begins with a segment");
}

#[test]
fn the_framing_is_found_again_in_the_middle_of_a_segment() {
    // A segment that begins with the end of a read's response and continues with two whole frames.
    let tail = framed(smb2::read_response(1, &[5; 3000]));
    let (head, tail) = tail.split_at(1000);
    let rest = [tail, &framed(smb2::echo_response(2)), &framed(smb2::echo_response(3))].concat();
    let packets = Conversation::new()
        .segment_size(4000)
        .client_says(30, smb2::echo(0))
        .server_says(40, smb2::echo_response(0))
        .client_says(100, smb2::read(1, 7, 0, 3000))
        .client_says(101, smb2::echo(2))
        .client_says(102, smb2::echo(3))
        .server_sends(200, head)
        .server_sends(210, rest)
        .client_acks(300)
        .packets();
    let head = packets.iter().position(|packet| packet.payload.len() == 1000).unwrap();
    let analysis = analyze(&damage::without(&packets, &[head]));
    let ends: Vec<_> = analysis.exchanges.iter().map(|exchange| (exchange.outcome, times(exchange)[3])).collect();
    let expected = [
        (ExchangeOutcome::Complete, 40),
        (ExchangeOutcome::ResponseNotCaptured, -1),
        (ExchangeOutcome::Complete, 210),
        (ExchangeOutcome::Complete, 210),
    ];
    assert_eq!(ends, expected);
}

#[test]
fn file_data_that_holds_captured_smb_makes_no_exchange() {
    // A pcap file of an SMB conversation is written to the server and read back. With and without drops, only the
    // commands that copy it may be found, never those inside it.
    let inner = Conversation::new()
        .client_says(100, smb2::create(1001, "inner.txt"))
        .server_says(200, smb2::create_response(1001, 99))
        .client_says(300, smb2::echo(1002))
        .server_says(400, smb2::echo_response(1002))
        .client_says(500, smb1::close(77, 5))
        .server_says(600, smb1::close_response(77));
    let file: Vec<u8> = std::iter::repeat_n(pcap::micros(&inner.packets()), 20).flatten().collect();
    let mut conversation = Conversation::new();
    for step in 0..10u64 {
        let at = 10_000 * (step as i64 + 1);
        conversation = conversation
            .client_says(at, smb2::write(2 * step + 1, 7, step, &file))
            .server_says(at + 4000, smb2::write_response(2 * step + 1, file.len() as u32))
            .client_says(at + 5000, smb2::read(2 * step + 2, 7, step, file.len() as u32))
            .server_says(at + 6000, smb2::read_response(2 * step + 2, &file));
    }
    let packets = conversation.client_acks(200_000).packets();
    for seed in 0..200 {
        let damaged = match seed {
            0 => packets.clone(),
            _ => damage::drop_bursts(&packets, seed, 0.02, 1 + (seed % 5) as usize),
        };
        for exchange in &analyze(&damaged).exchanges {
            let id = exchange.message_id.unwrap();
            assert!((1..=20).contains(&id), "seed {seed}: {exchange:?}");
            let expected = if id % 2 == 1 { "WRITE" } else { "READ" };
            assert_eq!(exchange.command.to_string(), expected, "seed {seed}");
        }
    }
}

#[test]
fn a_snap_length_of_128_still_times_smb2() {
    // 128 bytes hold 74 of each payload: frame header, SMB2 header and six bytes of the body.
    let whole = analyze(&open_read_close());
    let snapped = analyze(&damage::snap(&open_read_close(), 128));
    assert_eq!(snapped.outcomes(), whole.outcomes());
    let all = |analysis: &common::Analysis| analysis.exchanges.iter().map(times).collect::<Vec<_>>();
    assert_eq!(all(&snapped), all(&whole));
    let names: Vec<_> = snapped.exchanges.iter().map(|exchange| exchange.path.as_deref()).collect();
    assert_eq!(names, [None, None, None], "a name that was cut off is no name");
}

#[test]
fn commands_of_a_compound_behind_the_snap_length_are_counted_as_cut() {
    let conversation = Conversation::new()
        .client_says(100, smb2::compound(&[smb2::echo(1), smb2::echo(2)]))
        .server_says(200, smb2::compound(&[smb2::echo_response(1), smb2::echo_response(2)]));
    // The first member takes 72 of the 74 bytes of each payload.
    let snapped = analyze(&damage::snap(&conversation.packets(), 128));
    assert_eq!(snapped.outcomes(), ["ECHO complete"]);
    assert_eq!(snapped.quality.headers_truncated, 2, "a request and a response, at least");
}

#[test]
fn every_snap_length_gives_true_times_or_none() {
    let whole = analyze(&open_read_close());
    for length in HEADERS..400 {
        let snapped = analyze(&damage::snap(&open_read_close(), length));
        for exchange in snapped.exchanges.iter().filter(|exchange| exchange.is_complete()) {
            let truth = whole.exchanges.iter().find(|truth| truth.message_id == exchange.message_id).unwrap();
            assert_eq!(times(exchange), times(truth), "{length}");
        }
        // The frame header and the first 32 bytes of the SMB2 header identify the command and its message id.
        if length >= HEADERS + 4 + 32 {
            assert_eq!(snapped.outcomes(), whole.outcomes(), "{length}");
        }
    }
}

#[test]
fn netbios_sessions_are_smb_too() {
    let request = [&[0x81, 0, 0, 68][..], &[0x20; 68]].concat();
    let analysis = analyze_told(
        &Conversation::new()
            .ports(1030, 139)
            .client_sends(30, request)
            .server_sends(40, [0x82, 0, 0, 0])
            .client_says(100, smb1::negotiate(0, &["NT LM 0.12"]))
            .server_says(200, smb1::negotiate_response(0, 0))
            .client_sends(300, [0x85, 0, 0, 0])
            .client_says(400, smb1::close(1, 7))
            .server_says(500, smb1::close_response(1)),
    );
    assert_eq!(analysis.outcomes(), ["SMB_COM_NEGOTIATE complete", "SMB_COM_CLOSE complete"]);
    assert_eq!(times(&analysis.exchanges[0]), [100, 100, 200, 200]);
    assert_eq!((analysis.quality.netbios_session_packets, analysis.quality.netbios_keep_alives), (2, 1));
    assert_eq!(analysis.connections[0].dialect, Some(Dialect::NtLm012));
}

#[test]
fn a_length_of_more_than_16_bits_is_one_frame() {
    // RFC 1002 §4.3.1: the lowest bit of the flags is bit 17 of the length; direct TCP has 24 bits.
    let data = vec![7; 100_000];
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, smb2::read(1, 7, 0, 100_000))
            .server_says(200, smb2::read_response(1, &data)),
    );
    let exchange = analysis.only();
    // 4 + 64 + 16 + 100,000 bytes in 69 segments, 10 µs apart.
    assert_eq!((times(exchange), exchange.response.packets), ([100, 100, 200, 200 + 68 * 10], 69));
}

#[test]
fn other_protocols_are_left_alone() {
    let analysis = analyze_told(
        &Conversation::new()
            .ports(50_000, 80)
            .client_sends(100, *b"GET / HTTP/1.1\r\nHost: SMB\r\n\r\n")
            .server_sends(200, *b"HTTP/1.1 200 OK\r\n\r\n\xffSMB is a protocol. \xfeSMB as well."),
    );
    assert!(analysis.exchanges.is_empty() && analysis.connections.is_empty());
    assert_eq!(analysis.quality.smb_flow_packets, 0);
}
