//! Assignment of packets to flows: port reuse, unrelated packets, handshakes out of order.

use super::*;

const SYN: u8 = TcpFlags::SYN;
const SYN_ACK: u8 = TcpFlags::SYN | TcpFlags::ACK;

#[test]
fn a_new_syn_on_the_same_ports_begins_a_new_flow() {
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "old"));
    wire.send(SentPacket { flags: SYN, ..client(900, 70_000, 0, "") });
    wire.send(SentPacket { flags: SYN_ACK, ..server(940, 90_000, 70_001, "") });
    wire.send(client(950, 70_001, 90_001, "new"));
    let recorder = wire.end();
    assert_eq!(recorder.flows.len(), 2);
    assert_eq!(recorder.flows[0], [Event::Data('>', 0, "old".into(), 4), Event::Closed]);
    assert_eq!(recorder.flows[1], [Event::Data('>', 0, "new".into(), 7), Event::Closed]);
}

#[test]
fn a_syn_sent_again_begins_no_new_flow() {
    let mut wire = Wire::new();
    wire.send(SentPacket { flags: SYN, ..client(0, 1000, 0, "") });
    wire.send(SentPacket { flags: SYN, ..client(1_000_000, 1000, 0, "") });
    wire.send(SentPacket { flags: SYN_ACK, ..server(1_000_040, 5000, 1001, "") });
    wire.send(client(1_000_100, 1001, 5001, "ask"));
    let recorder = wire.end();
    assert_eq!(recorder.text(), ">ask");
    assert_eq!(recorder.quality().retransmitted_segments, 1);
}

#[test]
fn an_answer_to_the_syn_that_was_overtaken_begins_no_new_flow() {
    let mut wire = Wire::new();
    wire.send(SentPacket { flags: SYN, ..client(0, 1000, 0, "") });
    wire.send(client(100, 1001, 5001, "ask"));
    wire.send(SentPacket { flags: SYN_ACK, ..server(40, 5000, 1001, "") });
    wire.send(server(300, 5001, 1004, "yes"));
    assert_eq!(wire.end().text(), ">ask <yes");
}

#[test]
fn a_later_acknowledgment_that_overtook_the_answer_to_the_syn_hides_no_data() {
    // The packet at 200 acknowledges "yes" before either "yes" or the SYN-ACK is captured.
    let mut wire = Wire::new();
    wire.send(SentPacket { flags: SYN, ..client(0, 1000, 0, "") });
    wire.send(client(200, 1004, 5004, "more"));
    wire.send(SentPacket { flags: SYN_ACK, ..server(201, 5000, 1001, "") });
    wire.send(client(202, 1001, 5001, "ask"));
    wire.send(server(203, 5001, 1004, "yes"));
    assert_eq!(wire.end().text(), ">ask <yes >more");
}

#[test]
fn a_syn_that_was_overtaken_by_its_data_begins_no_new_flow() {
    let mut wire = Wire::new();
    wire.send(client(100, 1001, 5001, "ask"));
    wire.send(SentPacket { flags: SYN, ..client(101, 1000, 0, "") });
    wire.send(server(300, 5001, 1004, "yes"));
    assert_eq!(wire.end().text(), ">ask <yes");
}

#[test]
fn a_forged_segment_far_away_is_ignored() {
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "ab"));
    wire.send(client(210, 1_000_001_001, 5001, "forged"));
    wire.send(client(220, 1003, 5001, "cd"));
    wire.send(server(300, 5001, 1005, "x"));
    let recorder = wire.end();
    assert_eq!(recorder.text(), ">ab >cd <x");
    assert_eq!(recorder.quality().dropped_bytes, 0);
}

#[test]
fn two_segments_far_away_that_agree_begin_a_new_flow() {
    // The ports were reused, and the capture dropped the handshake.
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "ab"));
    wire.send(client(210, 1_000_000_000, 9000, "lost"));
    wire.send(client(220, 1_000_000_004, 9000, "new"));
    let recorder = wire.end();
    assert_eq!(recorder.flows.len(), 2);
    assert_eq!(recorder.flows[1], [Event::Data('>', 0, "new".into(), 6), Event::Closed]);
    assert!(recorder.views[1].midstream && !recorder.views[0].midstream);
}

#[test]
fn a_late_copy_from_far_back_in_both_streams_begins_no_new_flow() {
    // 2 MB each way, then the first packet again with its own acknowledgment: no gap, no new flow.
    const PART: u32 = 40_000;
    let part = &"x".repeat(PART as usize);
    let mut wire = Wire::open();
    for number in 0..50 {
        let time = 200 + 10 * i64::from(number);
        wire.send(client(time, 1001 + PART * number, 5001 + PART * number, part));
        wire.send(server(time + 5, 5001 + PART * number, 1001 + PART * (number + 1), part));
    }
    wire.send(client(900, 1001, 5001, part));
    wire.send(client(910, 1001 + PART * 50, 5001 + PART * 50, "end"));
    let recorder = wire.end();
    assert_eq!((recorder.flows.len(), recorder.quality().retransmitted_segments), (1, 1));
    assert_eq!(recorder.quality().dropped_bytes, 0);
}

#[test]
fn two_forged_segments_that_do_not_agree_begin_none() {
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "ab"));
    wire.send(client(210, 1_000_000_000, 9000, "forged"));
    wire.send(client(220, 2_000_000_000, 9000, "forged"));
    wire.send(client(230, 1003, 5001, "cd"));
    assert_eq!(wire.end().text(), ">ab >cd");
}

#[test]
fn a_forged_acknowledgment_opens_no_hole() {
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "ab"));
    wire.send(server(210, 5001, 1_000_000_000, ""));
    wire.send(client(220, 1003, 5001, "cd"));
    let recorder = wire.end();
    assert_eq!(recorder.text(), ">ab >cd");
    assert_eq!(recorder.quality().dropped_bytes, 0);
}

#[test]
fn a_reset_ends_a_flow_and_is_counted() {
    let mut wire = Wire::open();
    wire.send(client(200, 1001, 5001, "ab"));
    wire.send(SentPacket { flags: TcpFlags::RST | TcpFlags::ACK, ..server(210, 5001, 1003, "") });
    let recorder = wire.end();
    assert!(recorder.ends[0].reset);
    assert_eq!(recorder.quality().reset_flows, 1);
}

#[test]
fn flows_are_told_apart_by_their_ports_and_end_in_the_order_of_their_first_packets() {
    let mut table = FlowTable::new(Recorder::default());
    for (ordinal, port) in [(1, 3000u16), (2, 1000), (3, 2000)] {
        let stamp = Stamp { time: Timestamp(port.into()), packet: PacketRef::default() };
        table.segment(&TcpSegment {
            ordinal,
            first: stamp,
            stamp,
            origin: Default::default(),
            source: SocketAddr::from((CLIENT.0, port)),
            destination: SocketAddr::from(SERVER),
            sequence: 1,
            acknowledgment: 1,
            flags: TcpFlags(TcpFlags::ACK),
            window: 100,
            window_scale: WindowScale::Unknown,
            timestamp_value: None,
            names_later_bytes: false,
            duplicate_sack: None,
            ip_id: None,
            hops_left: 64,
            payload: b"x",
            payload_length: 1,
        });
    }
    let recorder = table.finish();
    let ports: Vec<u16> = recorder.views.iter().map(|view| view.source.port()).collect();
    assert_eq!((ports, recorder.ends.len()), (vec![3000, 1000, 2000], 3));
    assert!(recorder.views.iter().all(|view| view.midstream));
}
