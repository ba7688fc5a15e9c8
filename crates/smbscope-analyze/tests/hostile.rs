//! Misleading traffic, as from an attacker, a broken stack or a test tool. There must be no false pair, work must be
//! bounded, and Quality must have the right counts.

use crate::common::{Analysis, analyze, analyze_told, times};
use smbscope_capture::TcpFlags;
use smbscope_model::ExchangeOutcome;
use smbscope_testkit::conversation::together;
use smbscope_testkit::{Conversation, Packet, framed, smb1, smb2};

/// Two reads and their responses at 100, 200, 300 and 400 µs: packets 3 to 6, following the handshake.
fn two_reads() -> Vec<Packet> {
    Conversation::new()
        .client_says(100, smb2::read(1, 7, 0, 100))
        .server_says(200, smb2::read_response(1, &[1; 100]))
        .client_says(300, smb2::read(2, 7, 100, 100))
        .server_says(400, smb2::read_response(2, &[2; 100]))
        .closes(500)
        .packets()
}

/// Inserts a forged packet after packet `after`.
fn with(packets: &[Packet], after: usize, forged: Packet) -> Vec<Packet> {
    let mut packets = packets.to_vec();
    let time = packets[after].time;
    packets.insert(after + 1, Packet { time, ip_id: forged.ip_id.wrapping_add(777), ..forged });
    packets
}

/// Asserts that both reads were timed with their own packets.
fn assert_two_reads(analysis: &Analysis) {
    assert_eq!(analysis.outcomes(), ["READ complete", "READ complete"]);
    assert_eq!(times(&analysis.exchanges[0]), [100, 100, 200, 200]);
    assert_eq!(times(&analysis.exchanges[1]), [300, 300, 400, 400]);
}

#[test]
fn of_overlapping_segments_with_different_bytes_the_first_copy_counts() {
    let packets = two_reads();
    // The first request again, with another message in the same bytes: a read of another offset.
    let mut other = framed(smb2::read(9, 7, 0x6666, 100));
    other.truncate(packets[3].payload.len());
    let forged = Packet { payload: other, ..packets[3].clone() };
    let analysis = analyze(&with(&packets, 3, forged));
    assert_two_reads(&analysis);
    assert_eq!((analysis.exchanges[0].message_id, analysis.exchanges[0].offset), (Some(1), Some(0)));
    assert_eq!(analysis.quality.retransmitted_segments, 1);
}

#[test]
fn a_segment_that_overlaps_in_part_adds_only_what_is_new() {
    // The second request arrives in a segment that begins 20 bytes early, with different bytes there.
    let mut packets = two_reads();
    let second = &mut packets[5];
    second.sequence = second.sequence.wrapping_sub(20);
    second.offset -= 20;
    second.payload.splice(0..0, [0xee; 20]);
    let analysis = analyze(&packets);
    assert_two_reads(&analysis);
    assert_eq!((analysis.quality.retransmitted_segments, analysis.quality.retransmitted_bytes), (1, 20));
}

#[test]
fn sequence_numbers_that_jump_are_no_data_of_the_connection() {
    let packets = two_reads();
    for jump in [0x2000_0000u32, 0x4000_0000, 0x7fff_ffff, 0x8000_0000, 0xc000_0000] {
        let forged = Packet { sequence: packets[4].sequence.wrapping_add(jump), ..packets[4].clone() };
        let analysis = analyze(&with(&packets, 4, forged));
        assert_two_reads(&analysis);
        let quality = &analysis.quality;
        assert_eq!(
            (quality.dropped_packets, quality.capture_gaps, quality.retransmitted_segments),
            (0, 0, 0),
            "{jump:x}"
        );
    }
}

#[test]
fn an_acknowledgment_of_what_was_never_sent_makes_no_gap_beyond_its_reach() {
    let packets = two_reads();
    let acknowledgment = packets[5].acknowledgment.wrapping_add(0x6000_0000);
    let forged = Packet { acknowledgment, payload: Vec::new(), ..packets[5].clone() };
    let analysis = analyze(&with(&packets, 4, forged));
    assert_two_reads(&analysis);
    assert_eq!(analysis.quality.dropped_bytes, 0);
}

#[test]
fn a_forged_end_of_the_connection_ends_no_exchange() {
    let packets = two_reads();
    for flags in [TcpFlags::RST, TcpFlags::RST | TcpFlags::ACK, TcpFlags::FIN | TcpFlags::ACK] {
        for side in [3, 4] {
            // The attacker guesses a sequence number in the window, but not the next one.
            let sequence = packets[side].sequence.wrapping_add(9_000);
            let forged = Packet { sequence, flags: TcpFlags(flags), payload: Vec::new(), ..packets[side].clone() };
            assert_two_reads(&analyze(&with(&packets, 4, forged)));
        }
    }
}

#[test]
fn a_frame_longer_than_any_message_takes_no_memory_and_hides_nothing_else() {
    // Length 0xffffffff (4 GB) is invalid in both transports; the maximum is 16 MB less one byte.
    for (header, frames_lost) in [([0xff; 4], 1), ([0x00, 0xff, 0xff, 0xff], 1)] {
        let evil = Conversation::new()
            .client_says(100, smb2::echo(1))
            .server_says(200, smb2::echo_response(1))
            .client_sends(300, [&header[..], &[0xfe, b'S', b'M', b'B', 64, 0]].concat())
            .closes(900);
        let good = Conversation::new().ports(50_001, 445).initial_sequences(7, 9);
        let good = good.client_says(150, smb2::echo(1)).server_says(250, smb2::echo_response(1)).closes(800);
        let analysis = analyze(&smbscope_testkit::conversation::together(&[evil, good]));
        assert_eq!(analysis.outcomes(), ["ECHO complete", "ECHO complete"], "{header:?}");
        let quality = &analysis.quality;
        assert_eq!(quality.framing_lost + quality.headers_truncated, frames_lost, "{header:?}");
    }
}

#[test]
fn a_compound_that_points_backwards_or_at_itself_is_read_once() {
    // NextCommand of the first member: itself, into itself, before itself by wrapping, beyond the end.
    for next in [1u32, 8, 63, 0xffff_ffc0, 0xffff_ffff, 0x7fff_ffff] {
        let mut request: Vec<u8> = smb2::compound(&[smb2::echo(1), smb2::echo(2)]);
        request[20..24].copy_from_slice(&next.to_le_bytes());
        let analysis = analyze_told(
            &Conversation::new().client_says(100, request).server_says(200, smb2::echo_response(1)).closes(300),
        );
        assert_eq!(analysis.outcomes(), ["ECHO complete"], "{next:x}");
        assert_eq!((analysis.exchanges[0].message_id, times(&analysis.exchanges[0])), (Some(1), [100, 100, 200, 200]));
    }
}

#[test]
fn a_compound_of_more_members_than_are_read_is_cut() {
    let members: Vec<_> = (1..=300).map(smb2::echo).collect();
    let analysis =
        analyze_told(&Conversation::new().segment_size(60_000).client_says(100, smb2::compound(&members)).closes(300));
    // At most 256 members of a compound are parsed.
    assert_eq!(analysis.exchanges.len(), 256);
    assert!(analysis.exchanges.iter().all(|exchange| exchange.outcome == ExchangeOutcome::Unanswered));
}

#[test]
fn a_chain_of_andx_commands_that_loops_is_read_once() {
    let request: Vec<u8> = smb1::session_setup(1, "DOM", "ann").and(smb1::tree_connect(1, "\\\\s\\data")).into();
    // AndXOffset follows the header, the word count and AndXCommand: at itself, at the header, backwards.
    for offset in [32u16, 0, 4, 31, 33, 0xffff] {
        let mut request = request.clone();
        request[32 + 1 + 2..][..2].copy_from_slice(&offset.to_le_bytes());
        let analysis = analyze_told(
            &Conversation::new()
                .client_says(100, request)
                .server_says(200, smb1::session_setup_response(1, 5))
                .closes(300),
        );
        assert_eq!(analysis.outcomes(), ["SMB_COM_SESSION_SETUP_ANDX complete"], "{offset}");
    }
}

/// A compressed message (MS-SMB2 §2.2.42.1) with this original size and data.
fn compressed(original: u32, algorithm: u16, data: &[u8]) -> Vec<u8> {
    let mut frame = vec![0xfc, b'S', b'M', b'B'];
    frame.extend(original.to_le_bytes());
    frame.extend(algorithm.to_le_bytes());
    frame.extend([0, 0, 0, 0, 0, 0]);
    frame.extend(data);
    frame
}

#[test]
fn compression_bombs_are_counted_as_frames_that_cannot_be_read() {
    // LZNT1 chunks of one literal and the longest match, LZ77 with long matches, and a size of 4 GB each.
    let lznt1: Vec<u8> = std::iter::repeat_n([0x03, 0xb0, 0x02, 0x00, 0xff, 0x0f], 5_000).flatten().collect();
    for (algorithm, data) in [(1, lznt1), (2, vec![0xff; 20_000]), (3, vec![0x11; 20_000]), (5, vec![0xf0; 20_000])] {
        let analysis = analyze_told(
            &Conversation::new()
                .segment_size(60_000)
                .client_says(100, smb2::echo(1))
                .server_says(200, smb2::echo_response(1))
                .server_says(300, compressed(u32::MAX, algorithm, &data))
                .client_says(400, smb2::echo(2))
                .server_says(500, smb2::echo_response(2))
                .closes(600),
        );
        assert_eq!(analysis.outcomes(), ["ECHO complete", "ECHO complete"], "{algorithm}");
        let quality = &analysis.quality;
        assert_eq!((quality.compressed_frames, quality.compressed_frames_opaque), (1, 1), "{algorithm}");
    }
}

#[test]
fn a_message_id_that_is_used_again_while_it_is_outstanding_makes_one_pair_at_most() {
    // Both requests were received before the response was sent: the older one gives way.
    let again = Conversation::new()
        .client_says(100, smb2::read(5, 7, 0, 10))
        .client_says(200, smb2::read(5, 7, 10, 10))
        .server_says(300, smb2::read_response(5, &[1; 10]))
        .server_says(400, smb2::read_response(5, &[1; 10]))
        .closes(500);
    let analysis = analyze_told(&again);
    assert_eq!(analysis.outcomes(), ["READ id_reused", "READ complete", "READ request_not_captured"]);
    assert_eq!((analysis.quality.ids_reused, analysis.quality.responses_without_request), (1, 1));
    // A response sent before the second request arrived does not answer the second.
    let packets = Conversation::new()
        .latency_ns(60_000)
        .client_says(100, smb2::read(5, 7, 0, 10))
        .client_says(300, smb2::read(5, 7, 10, 10))
        .server_says(350, smb2::read_response(5, &[1; 10]))
        .closes(900)
        .packets();
    let analysis = analyze(&packets);
    assert!(analysis.exchanges.iter().all(|exchange| !exchange.is_complete()), "{:?}", analysis.outcomes());
    assert_eq!(analysis.quality.causality_refused, 1);
}

#[test]
fn sides_that_speak_for_each_other_are_not_paired() {
    // The server sends requests and the client answers them, in the middle of a proper exchange.
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, smb2::echo(1))
            .server_says(200, smb2::echo_response(1))
            .server_says(300, smb2::echo(2))
            .client_says(400, smb2::echo_response(2))
            .closes(500),
    );
    assert_eq!(analysis.outcomes(), ["ECHO complete"]);
    assert_eq!(analysis.quality.malformed_messages, 2);
}

// Every table is bounded, and evictions are counted.

/// Frames of many messages, as one range of the client's stream.
fn many(messages: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    messages.flat_map(framed).collect()
}

#[test]
fn outstanding_smb2_requests_are_bounded() {
    let requests = many((1..=8192 + 100).map(|id| smb2::echo(id).into()));
    let analysis = analyze_told(&Conversation::new().segment_size(60_000).client_sends(100, requests).closes(90_000));
    let evicted: Vec<_> = analysis.exchanges.iter().filter(|it| it.outcome == ExchangeOutcome::Evicted).collect();
    assert_eq!((evicted.len(), analysis.quality.evicted_requests), (100, 100));
    assert!(evicted.iter().all(|exchange| exchange.message_id <= Some(100)), "the oldest go first");
    assert_eq!(analysis.exchanges.len(), 8192 + 100, "each eviction is reported");
}

#[test]
fn outstanding_smb1_requests_are_bounded() {
    let requests = many((0..4096 + 100).map(|step: u16| smb1::close(step, step).into()));
    let analysis = analyze_told(&Conversation::new().segment_size(60_000).client_sends(100, requests).closes(90_000));
    assert_eq!((analysis.quality.evicted_requests, analysis.exchanges.len()), (100, 4096 + 100));
}

#[test]
fn outstanding_encrypted_frames_are_bounded() {
    let requests = many((0..512 + 100).map(|_| smb2::encrypted(1, 100)));
    let analysis = analyze_told(&Conversation::new().segment_size(60_000).client_sends(100, requests).closes(90_000));
    assert_eq!((analysis.quality.evicted_requests, analysis.exchanges.len()), (100, 512 + 100));
}

#[test]
fn remembered_paths_are_bounded() {
    let opens = 16_384 + 50;
    let requests = |from: u64| many((from..(from + 1000).min(opens)).map(|id| smb2::create(id, "a").into()));
    let responses = |from: u64| many((from..(from + 1000).min(opens)).map(|id| smb2::create_response(id, id).into()));
    let mut conversation = Conversation::new().segment_size(60_000);
    for step in 0..opens.div_ceil(1000) {
        let at = 1000 + 1000 * step as i64;
        conversation =
            conversation.client_sends(at, requests(1000 * step)).server_sends(at + 500, responses(1000 * step));
    }
    let analysis = analyze_told(&conversation);
    assert_eq!(analysis.exchanges.iter().filter(|exchange| exchange.is_complete()).count(), opens as usize);
    assert_eq!(analysis.quality.evicted_names, 50);
}

#[test]
fn names_in_the_summaries_of_connections_are_bounded() {
    // A share name of 2,000 bytes on each of 1,100 connections: 2 MiB hold 1,048 of them.
    let connection = |port: u16| {
        let share = format!(r"\\server\{port:02000}");
        Conversation::new()
            .ports(port, 445)
            .client_says(100, smb2::tree_connect(1, &share))
            .server_says(200, smb2::tree_connect_response(1, 7))
            .closes(300)
    };
    let conversations: Vec<Conversation> = (10_000..11_100).map(connection).collect();
    let analysis = analyze(&together(&conversations));
    let named = analysis.connections.iter().filter(|connection| !connection.shares.is_empty()).count();
    assert_eq!((analysis.connections.len(), named), (1_100, 1_048));
    assert_eq!(analysis.quality.evicted_names, 52);
}
