//! Packets captured twice by mirror ports, data captured at two layers of one host, unseen port reuse and clock steps.

use super::*;

/// Sends 400 segments of ten bytes from the server, one per 8 µs, with an acknowledgment for every second one. A copy
/// of each packet follows 1.3 ms (some 240 packets) later.
fn mirrored(ids: bool) -> Recorder {
    let mut packets = Vec::new();
    let mut id = 100;
    let mut push = |at_us: i64, packet: SentPacket<'static>| {
        id += 1;
        let packet = SentPacket { ip_id: Some(if ids { id } else { 0 }), ..packet };
        packets.push(SentPacket { at_us, ..packet });
        packets.push(SentPacket { at_us: at_us + 1_300, ..packet });
    };
    push(0, SentPacket { flags: TcpFlags::SYN, ..client(0, 1000, 0, "") });
    push(40, SentPacket { flags: TcpFlags::SYN | TcpFlags::ACK, ..server(0, 5000, 1001, "") });
    push(80, client(0, 1001, 5001, ""));
    for segment in 0..400u32 {
        let at = 10_000 + i64::from(segment) * 8;
        push(at, server(0, 5001 + segment * 10, 1001, "0123456789"));
        if segment % 2 == 1 {
            push(at + 3, client(0, 1001, 5011 + segment * 10, ""));
        }
    }
    packets.sort_by_key(|packet| packet.at_us);
    let mut wire = Wire::new();
    for packet in packets {
        wire.send(packet);
    }
    wire.end()
}

#[test]
fn copies_that_come_hundreds_of_packets_later_are_no_retransmissions() {
    let recorder = mirrored(true);
    let quality = recorder.quality();
    assert_eq!(quality.smb_flow_packets, 2 * (3 + 400 + 200));
    assert_eq!((quality.duplicate_packets, quality.retransmitted_segments), (3 + 400 + 200, 0));
}

#[test]
fn copies_without_identification_are_known_by_how_far_apart_the_copies_of_the_syn_were() {
    // IPv6 has no identification.
    let recorder = mirrored(false);
    let quality = recorder.quality();
    assert_eq!((quality.duplicate_packets, quality.retransmitted_segments), (3 + 400 + 200, 0));
}

#[test]
fn a_retransmission_between_copies_is_one_still() {
    // The same bytes with the sender's next identification, 1.3 ms later.
    let mut wire = Wire::open();
    for (at, id) in [(1_000, 500), (2_300, 501), (3_600, 501)] {
        wire.send(SentPacket { ip_id: Some(id), ..server(at, 5001, 1001, "0123456789") });
    }
    let recorder = wire.end();
    let quality = recorder.quality();
    assert_eq!((quality.duplicate_packets, quality.retransmitted_segments), (1, 1));
}

#[test]
fn ports_used_again_without_a_syn_lose_no_packets() {
    // On Linux, initial sequence numbers grow with time (RFC 6528): both streams continue some 120 MB further on.
    for (client_jump, server_jump) in
        [(300_000_000u32, 200_000_000u32), (120_000_000, 4_000_000_000), (4_200_000_000, 90_000_000)]
    {
        let mut wire = Wire::open();
        wire.send(client(200, 1001, 5001, "ask"));
        wire.send(server(300, 5001, 1004, "yes"));
        let (at_client, at_server) = (1004u32.wrapping_add(client_jump), 5004u32.wrapping_add(server_jump));
        wire.send(client(20_000_000, at_client, at_server, ""));
        wire.send(client(20_000_100, at_client, at_server, "new"));
        wire.send(server(20_000_200, at_server, at_client.wrapping_add(3), "fine"));
        let recorder = wire.end();
        assert_eq!(recorder.flows.len(), 2, "{client_jump} {server_jump}");
        let lost: u64 = recorder.ends.iter().map(|end| end.quality.dropped_packets).sum();
        let answer = Event::Data('<', 0, "fine".into(), 8);
        assert!(recorder.flows[1].contains(&answer), "{:?}", recorder.flows);
        assert_eq!(lost, 0, "{client_jump} {server_jump}");
    }
}

#[test]
fn data_behind_a_fin_begins_another_connection() {
    let mut wire = Wire::open();
    wire.send(SentPacket { flags: TcpFlags::ACK | TcpFlags::FIN, ..client(200, 1001, 5001, "ask") });
    wire.send(client(300, 5_000, 9_000, "new"));
    assert_eq!(wire.end().flows.len(), 2);
}

#[test]
fn an_answer_that_came_an_hour_later_without_a_retransmission_shows_a_clock_step() {
    let hour = 3_600_000_000;
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "ask"));
    wire.send(server(hour + 300, 5001, 1004, "yes"));
    let recorder = wire.end();
    let step = recorder.views[0].clock_step.expect("a step");
    assert_eq!((step.before.packet.number(), step.after.packet.number()), (4, 5));
    assert_eq!(step.by().0, (hour + 100) * 1_000);
    // The request was acknowledged, so the client simply waited for an hour.
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "ask"));
    wire.send(server(240, 5001, 1004, ""));
    wire.send(server(hour + 300, 5001, 1004, "yes"));
    assert_eq!(wire.end().views[0].clock_step, None);
}

#[test]
fn reversed_segments_take_time_in_proportion() {
    // 30,000 segments of 100 bytes, last to first, took seconds with a linear search through the held segments.
    let mut wire = Wire::open();
    let start = std::time::Instant::now();
    let payload = "x".repeat(100);
    for segment in (0..30_000u32).rev() {
        wire.send(server(1_000 + i64::from(30_000 - segment), 5001 + segment * 100, 1001, &payload));
    }
    drop(wire.end());
    assert!(start.elapsed().as_secs_f64() < 1.5, "{:?}", start.elapsed());
}

/// Data of a client in large records, each followed after `lag_us` by its four packets, or preceded if `merged`.
fn twice(merged: bool, lag_us: i64) -> Recorder {
    let mut wire = Wire::open();
    let text = "0123456789".repeat(4);
    for record in 0..30u32 {
        let (at, begin) = (1_000 + i64::from(record) * 5_000, 1001 + record * 40);
        let parts = (0..4u32).map(|part| {
            let at = at + i64::from(part) + if merged { 0 } else { lag_us };
            SentPacket {
                ip_id: Some((100 + record * 4 + part) as u16),
                ..client(at, begin + part * 10, 5001, "0123456789")
            }
        });
        let whole =
            SentPacket { ip_id: Some(0), ..client(at + if merged { 3 + lag_us } else { 0 }, begin, 5001, &text) };
        let mut packets: Vec<SentPacket<'_>> = parts.chain([whole]).collect();
        packets.sort_by_key(|packet| packet.at_us);
        packets.into_iter().for_each(|packet| _ = wire.send(packet));
        wire.send(server(at + 1_000, 5001, begin + 40, ""));
    }
    wire.end()
}

#[test]
fn packets_of_an_offloaded_record_are_no_retransmissions() {
    let recorder = twice(false, 2);
    let quality = recorder.quality();
    assert_eq!((quality.copies_at_two_layers, quality.duplicate_packets), (120, 120));
    assert_eq!((quality.retransmitted_segments, quality.dropped_packets), (0, 0));
}

#[test]
fn a_record_that_merges_packets_is_no_retransmission() {
    let recorder = twice(true, 2);
    let quality = recorder.quality();
    assert_eq!((quality.copies_at_two_layers, quality.retransmitted_segments), (30, 0));
}

#[test]
fn what_comes_again_after_a_round_trip_is_a_retransmission() {
    for merged in [false, true] {
        let recorder = twice(merged, 400);
        let quality = recorder.quality();
        assert_eq!(quality.copies_at_two_layers, 0, "{merged}");
        assert!(quality.retransmitted_segments >= 30, "{merged}: {}", quality.retransmitted_segments);
    }
}

#[test]
fn a_part_that_is_sent_again_at_once_has_a_new_identification() {
    let mut wire = Wire::open();
    let text = "0123456789".repeat(4);
    wire.send(SentPacket { ip_id: Some(100), ..client(1_000, 1001, 5001, &text) });
    wire.send(SentPacket { ip_id: Some(101), ..client(1_002, 1001, 5001, "0123456789") });
    wire.send(SentPacket { ip_id: Some(102), ..client(1_004, 1011, 5001, "0123456789") });
    let recorder = wire.end();
    let quality = recorder.quality();
    assert_eq!((quality.copies_at_two_layers, quality.retransmitted_segments), (0, 2));
}
