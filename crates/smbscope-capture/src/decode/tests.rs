//! Decodes packets built header by header from the RFCs.

use super::*;
use crate::segment::TcpFlags;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use smbscope_model::{
    CaptureId, PacketRef, SkippedPackets, SkippedProtocol, Stamp, Timestamp, TunnelKind, TunnelPort, TunnelPorts,
};
use smbscope_testkit::encapsulation::Encapsulation;
use smbscope_testkit::tunnel::in_tunnel;

const ETHERNET: u32 = 1;
const ROUTING: u8 = 43;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;
const IPV6_TYPE: [u8; 2] = [0x86, 0xdd];

fn packet(link_type: u32, data: &[u8], wire_length: usize, number: u64) -> Packet<'_> {
    let packet = PacketRef::new(CaptureId(0), number);
    let stamp = Stamp { time: Timestamp(number as i64 * 1_000), packet };
    Packet { stamp, link_type, data, wire_length: wire_length as u32, process: None }
}

/// Segment from port 49,152 to 445: sequence 0x01020304, acknowledgment 0x05060708, PSH and ACK, window 502.
fn tcp(options: &[u8], payload: &[u8]) -> Vec<u8> {
    let words = 5 + options.len() as u8 / 4;
    let fixed = [0xc0, 0, 0x01, 0xbd, 1, 2, 3, 4, 5, 6, 7, 8, words << 4, 0x18, 0x01, 0xf6, 0, 0, 0, 0];
    [&fixed, options, payload].concat()
}

/// Builds an IPv4 packet from 10.0.0.2 to 10.0.0.1 with identification 0x1234 and this fragment offset in bytes.
fn ipv4_part(payload: &[u8], offset: u16, more: bool) -> Vec<u8> {
    let total = (20 + payload.len() as u16).to_be_bytes();
    let fragment = ((offset / 8) | if more { 0x2000 } else { 0 }).to_be_bytes();
    let [t0, t1, f0, f1] = [total[0], total[1], fragment[0], fragment[1]];
    let header = [0x45, 0, t0, t1, 0x12, 0x34, f0, f1, 64, TCP, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1];
    [&header, payload].concat()
}

fn ipv4(payload: &[u8]) -> Vec<u8> {
    ipv4_part(payload, 0, false)
}

fn ipv6(next_header: u8, payload: &[u8]) -> Vec<u8> {
    let mut header = vec![0x60, 0, 0, 0];
    header.extend((payload.len() as u16).to_be_bytes());
    header.extend([next_header, 64]);
    header.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    header.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    [&header, payload].concat()
}

fn ethernet(ethertype: [u8; 2], payload: &[u8]) -> Vec<u8> {
    [&[2; 12], ethertype.as_slice(), payload].concat()
}

/// Source, destination, payload, its length on the wire, TSval, first and completing packet.
type Segment = (SocketAddr, SocketAddr, Vec<u8>, u32, Option<u32>, u64, u64);

struct Decoded {
    segment: Option<Segment>,
    quality: Quality,
}

/// Decodes packets, given as link type, bytes and length on the wire, and returns the result for the last.
fn decode_all(packets: &[(u32, &[u8], usize)]) -> Decoded {
    let (mut decoder, mut quality) = (Decoder::new(), Quality::default());
    let mut last = None;
    for (index, (link_type, data, wire_length)) in packets.iter().enumerate() {
        let packet = packet(*link_type, data, *wire_length, index as u64 + 1);
        last = decoder.decode(&packet, &mut quality).map(|segment| {
            assert_eq!((segment.sequence, segment.acknowledgment), (0x0102_0304, 0x0506_0708));
            assert_eq!((segment.flags, segment.window), (TcpFlags(TcpFlags::PSH | TcpFlags::ACK), 502));
            let (first, stamp) = (segment.first.packet.number(), segment.stamp.packet.number());
            let (payload, length) = (segment.payload.to_vec(), segment.payload_length);
            (segment.source, segment.destination, payload, length, segment.timestamp_value, first, stamp)
        });
    }
    decoder.finish(&mut quality);
    let unread = quality.malformed_packets + quality.headers_not_captured;
    assert_eq!(quality.packets, quality.tcp_packets + quality.not_tcp + unread);
    let skipped: u64 = decoder.skipped(usize::MAX).iter().map(|skipped| skipped.packets).sum();
    assert_eq!(skipped, quality.not_tcp, "every packet that is no TCP has a name");
    Decoded { segment: last, quality }
}

fn payload_of(link_type: u32, data: &[u8]) -> Option<Vec<u8>> {
    decode_all(&[(link_type, data, data.len())]).segment.map(|segment| segment.2)
}

#[test]
fn every_link_type_leads_to_the_same_segment() {
    let v4 = ipv4(&tcp(&[], b"SMB"));
    let v6 = ipv6(TCP, &tcp(&[], b"SMB"));
    let mpls = [&[0, 0x01, 0, 64, 0, 0x02, 0x01, 64], v4.as_slice()].concat();
    let pppoe = |protocol: [u8; 2], ip: &[u8]| [&[0x11, 0, 0, 1, 0, 0], protocol.as_slice(), ip].concat();
    let cooked = [&[0, 0, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0, 8, 0], v4.as_slice()].concat();
    let cooked2 = [&[0x86, 0xdd, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0], v6.as_slice()].concat();
    for (link_type, data) in [
        (ETHERNET, ethernet([8, 0], &v4)),
        (ETHERNET, ethernet(IPV6_TYPE, &v6)),
        (ETHERNET, ethernet([0x81, 0], &[&[0, 42, 8, 0], v4.as_slice()].concat())),
        (ETHERNET, ethernet([0x88, 0xa8], &[&[0, 7, 0x81, 0, 0, 42, 0x86, 0xdd], v6.as_slice()].concat())),
        (ETHERNET, ethernet([0x91, 0], &[&[0, 7, 0x81, 0, 0, 42, 8, 0], v4.as_slice()].concat())),
        (ETHERNET, ethernet([0x88, 0x47], &mpls)),
        (ETHERNET, ethernet([0x88, 0x64], &pppoe([0, 0x21], &v4))),
        (ETHERNET, ethernet([0x88, 0x64], &pppoe([0, 0x57], &v6))),
        (113, cooked),
        (276, cooked2),
        (101, v4.clone()),
        (101, v6.clone()),
        (12, v4.clone()),
        (14, v6.clone()),
        (228, v4.clone()),
        (229, v6.clone()),
        (0, [&[2, 0, 0, 0], v4.as_slice()].concat()),
        (0, [&[0, 0, 0, 2], v4.as_slice()].concat()),
        (0, [&[30, 0, 0, 0], v6.as_slice()].concat()),
        (108, [&[0, 0, 0, 24], v6.as_slice()].concat()),
    ] {
        let decoded = decode_all(&[(link_type, &data, data.len())]);
        let (source, destination, payload, length, ..) =
            decoded.segment.unwrap_or_else(|| panic!("{link_type} {data:x?}"));
        let v4 = ("10.0.0.2:49152", "10.0.0.1:445");
        let v6 = ("[fd00::2]:49152", "[fd00::1]:445");
        let ends = if source.is_ipv4() { v4 } else { v6 };
        assert_eq!((source.to_string().as_str(), destination.to_string().as_str()), ends);
        assert_eq!((payload.as_slice(), length), (b"SMB".as_slice(), 3));
    }
}

/// All encapsulations, and all link types that are read.
fn encapsulations() -> Vec<Encapsulation> {
    let links = LINK_TYPES.iter().map(|(number, _)| Encapsulation::Link(*number));
    Encapsulation::ALL.into_iter().chain(links).collect()
}

#[test]
fn link_types_that_are_not_listed_are_named_and_not_read() {
    let frame = ethernet([8, 0], &ipv4(&tcp(&[], b"SMB")));
    for link_type in (0..400).filter(|number| !LINK_TYPES.iter().any(|(known, _)| known == number)) {
        let mut decoder = Decoder::new();
        let data = packet(link_type, &frame, frame.len(), 1);
        assert!(decoder.decode(&data, &mut Quality::default()).is_none(), "{link_type}");
        assert_eq!(decoder.skipped(1)[0].protocol, SkippedProtocol::LinkType(link_type));
    }
}

#[test]
fn every_tunnel_leads_to_the_segment_in_it() {
    let frames = [ethernet([8, 0], &ipv4(&tcp(&[], b"SMB"))), ethernet(IPV6_TYPE, &ipv6(TCP, &tcp(&[], b"SMB")))];
    for encapsulation in encapsulations() {
        for (frame, source) in frames.iter().zip(["10.0.0.2:49152", "[fd00::2]:49152"]) {
            if matches!((encapsulation, source.len()), (Encapsulation::Link(228), 15) | (Encapsulation::Link(229), 14))
            {
                continue;
            }
            let wrapped = encapsulation.wrap(frame, 0x0102);
            let packets: Vec<(u32, &[u8], usize)> =
                wrapped.iter().map(|data| (encapsulation.link_type(), data.as_slice(), data.len())).collect();
            let decoded = decode_all(&packets);
            let segment = decoded.segment.unwrap_or_else(|| panic!("{encapsulation:?}: {:x?}", wrapped[0]));
            assert_eq!((segment.0.to_string().as_str(), segment.2.as_slice()), (source, b"SMB".as_slice()));
            assert_eq!(decoded.quality.tcp_packets, wrapped.len() as u64, "{encapsulation:?}");
        }
    }
}

#[test]
fn the_identification_is_that_of_the_inner_packet() {
    // A packet that passes the capture point both plain and encapsulated must be recognised as the same packet.
    let frame = ethernet([8, 0], &ipv4(&tcp(&[], b"SMB")));
    for encapsulation in encapsulations().into_iter().filter(|link| *link != Encapsulation::Link(229)) {
        let (mut decoder, mut quality) = (Decoder::new(), Quality::default());
        for data in encapsulation.wrap(&frame, 77) {
            let packet = packet(encapsulation.link_type(), &data, data.len(), 1);
            let segment = decoder.decode(&packet, &mut quality);
            assert_eq!(segment.and_then(|segment| segment.ip_id), Some(0x1234), "{encapsulation:?}");
        }
    }
}

#[test]
fn a_tunnel_cut_at_any_length_is_counted_and_never_guessed() {
    let frame = ethernet([8, 0], &ipv4(&tcp(&[], b"SMB")));
    for encapsulation in encapsulations() {
        if encapsulation.is_found_by_content() || encapsulation == Encapsulation::Link(229) {
            continue;
        }
        for data in encapsulation.wrap(&frame, 77) {
            for captured in 0..data.len() - 3 - 4 {
                let decoded = decode_all(&[(encapsulation.link_type(), &data[..captured], data.len())]);
                assert!(decoded.segment.is_none(), "{encapsulation:?} {captured}");
                let quality = decoded.quality;
                assert_eq!(
                    (quality.headers_not_captured, quality.malformed_packets),
                    (1, 0),
                    "{encapsulation:?} {captured}"
                );
            }
        }
    }
}

#[test]
fn tunnels_are_followed_to_a_bounded_depth() {
    let mut packet = ipv4(&tcp(&[], b"SMB"));
    let mut seen = 0;
    for _ in 0..40 {
        seen += u64::from(payload_of(101, &packet).is_some());
        packet = ipv4(&packet);
        packet[9] = 4;
    }
    assert_eq!(seen, MAX_TUNNELS as u64 + 1);
    let (mut decoder, mut quality) = (Decoder::new(), Quality::default());
    decoder.decode(&self::packet(101, &packet, packet.len(), 1), &mut quality);
    assert_eq!(decoder.skipped(1)[0].protocol, SkippedProtocol::NestedTunnels);
}

#[test]
fn what_is_in_no_tunnel_is_named_by_its_port_or_protocol() {
    let carried = |protocol: u8, payload: &[u8]| {
        let mut data = ethernet([8, 0], &ipv4(payload));
        data[14 + 9] = protocol;
        data
    };
    let quic = carried(17, &[0xc3, 0x50, 1, 187, 0, 12, 0, 0, 1, 2, 3, 4]);
    let answer = carried(17, &[1, 187, 0xc3, 0x50, 0, 12, 0, 0, 1, 2, 3, 4]);
    let esp = carried(50, &[7; 40]);
    let arp = ethernet([8, 6], &[0; 28]);
    let (mut decoder, mut quality) = (Decoder::new(), Quality::default());
    for data in [&quic, &answer, &answer, &esp, &arp, &arp] {
        decoder.decode(&packet(ETHERNET, data, data.len(), 1), &mut quality);
    }
    let skipped: Vec<(String, u64)> =
        decoder.skipped(8).iter().map(|skipped| (skipped.protocol.to_string(), skipped.packets)).collect();
    let expected = [("UDP port 443 (QUIC)", 3), ("EtherType 0x0806 (ARP)", 2), ("IP protocol 50 (ESP, encrypted)", 1)];
    assert_eq!(skipped, expected.map(|(name, packets)| (name.to_owned(), packets)));
}

#[test]
fn other_protocols_are_counted_apart_from_damage() {
    let arp = ethernet([8, 6], &[0; 28]);
    let spanning_tree = ethernet([0, 38], &[0x42, 0x42, 3, 0, 0, 0, 0, 0]);
    let mut udp = ethernet([8, 0], &ipv4(&[0; 20]));
    udp[14 + 9] = 17;
    let bluetooth = [0; 64];
    let mut no_ip = ethernet([8, 0], &ipv4(&tcp(&[], b"")));
    no_ip[14] = 0x55;
    let runt = [2; 13];
    let packets: Vec<(u32, &[u8], usize)> = [
        (ETHERNET, arp.as_slice()),
        (ETHERNET, &spanning_tree),
        (ETHERNET, &udp),
        (201, &bluetooth),
        (ETHERNET, &no_ip),
        (ETHERNET, &runt),
    ]
    .map(|(link_type, data)| (link_type, data, data.len()))
    .into();
    let quality = decode_all(&packets).quality;
    assert_eq!((quality.not_tcp, quality.malformed_packets), (4, 2));

    let mut decoder = Decoder::new();
    for number in 1..3 {
        decoder.decode(&packet(201, &bluetooth, 64, number), &mut Quality::default());
    }
    let skipped = SkippedPackets { protocol: SkippedProtocol::LinkType(201), packets: 2 };
    assert_eq!(decoder.skipped(8), [skipped]);
}

#[test]
fn frames_of_80211_without_readable_data_are_counted_by_kind() {
    let frame = |control: [u8; 2], fragment: u8| {
        let addresses = [2; 18];
        [&control[..], &[0, 0], &addresses, &[fragment, 0], &[0xdd; 40]].concat()
    };
    // A beacon, an acknowledgment, data without data, encrypted data, and two fragments.
    let frames = [
        frame([0x80, 0], 0),
        frame([0xd4, 0], 0),
        frame([0x48, 1], 0),
        frame([0x08, 0x41], 0),
        frame([0x08, 0x05], 0),
        frame([0x08, 0x01], 3),
    ];
    let names = ["management", "control", "without data", "encrypted", "fragment", "fragment"];
    for (data, name) in frames.iter().zip(names) {
        let (mut decoder, mut quality) = (Decoder::new(), Quality::default());
        assert!(decoder.decode(&packet(105, data, data.len(), 1), &mut quality).is_none());
        assert_eq!(decoder.skipped(1)[0].protocol.name(), Some(name));
        assert_eq!((quality.not_tcp, quality.malformed_packets), (1, 0));
    }
}

#[test]
fn a_frame_with_a_bad_checksum_is_damaged() {
    let good = [
        &[0, 0, 9, 0, 2, 0, 0, 0, 0x10][..],
        &Encapsulation::Link(105).wrap(&ethernet([8, 0], &ipv4(&tcp(&[], b"SMB"))), 1)[0],
    ]
    .concat();
    let bad = [&good[..8], &[0x50], &good[9..]].concat();
    assert_eq!(payload_of(127, &good), Some(b"SMB".to_vec()));
    assert_eq!(decode_all(&[(127, &bad, bad.len())]).quality.malformed_packets, 1);
}

#[test]
fn tunnels_on_ports_of_nobody_need_headers_that_fit() {
    let frame = ethernet([8, 0], &ipv4(&tcp(&[], b"SMB")));
    for encapsulation in encapsulations().into_iter().filter(|tunnel| tunnel.is_found_by_content()) {
        let whole = encapsulation.wrap(&frame, 7).remove(0);
        assert_eq!(payload_of(ETHERNET, &whole), Some(b"SMB".to_vec()), "{encapsulation:?}");
        // Inside the tunnel: version and length of the header, total length, protocol, checksum, TCP header length.
        let ip = whole.len() - 43;
        for (at, value) in [(0, 0x41), (3, 99), (3, 39), (9, 17), (11, 1), (32, 0x10)] {
            let mut damaged = whole.clone();
            damaged[ip + at] = value;
            let (mut decoder, mut quality) = (Decoder::new(), Quality::default());
            decoder.decode(&packet(ETHERNET, &damaged, damaged.len(), 1), &mut quality);
            assert_eq!(quality.not_tcp, 1, "{encapsulation:?} with {value} at {at}");
        }
    }
}

#[test]
fn a_jumbogram_has_the_length_of_its_option() {
    // RFC 2675 §2: payload length zero, and an option of type 0xc2 in a hop-by-hop header.
    let segment = tcp(&[], b"SMB");
    let length = 8 + segment.len() as u32;
    let option = [&[TCP, 0, 0xc2, 4][..], &length.to_be_bytes()].concat();
    let mut packet = ipv6(0, &[&option, segment.as_slice()].concat());
    packet[4..6].fill(0);
    // The option excludes bytes of a trailer.
    packet.extend([9; 4]);
    assert_eq!(payload_of(229, &packet), Some(b"SMB".to_vec()));
}

#[test]
fn ethernet_padding_is_no_payload() {
    let mut data = ethernet([8, 0], &ipv4(&tcp(&[], b"")));
    data.resize(60, 0);
    assert_eq!(payload_of(ETHERNET, &data), Some(Vec::new()));
}

#[test]
fn a_total_length_of_zero_stands_for_the_whole_record() {
    let mut v4 = ipv4(&tcp(&[], &[7; 100]));
    v4[2..4].fill(0);
    assert_eq!(payload_of(101, &v4), Some(vec![7; 100]));
    let mut v6 = ipv6(TCP, &tcp(&[], &[7; 100]));
    v6[4..6].fill(0);
    assert_eq!(payload_of(101, &v6), Some(vec![7; 100]));
    // Also truncated by the snap length: the record states the original length.
    let decoded = decode_all(&[(101, &v4[..50], v4.len())]);
    let (.., payload, length, _, _, _) = decoded.segment.unwrap();
    assert_eq!((payload, length), (vec![7; 10], 100));
}

#[test]
fn a_cut_packet_keeps_its_payload_length_whatever_the_record_says() {
    let whole = ethernet([8, 0], &ipv4(&tcp(&[], &[7; 1_000])));
    for original in [whole.len(), 128] {
        let decoded = decode_all(&[(ETHERNET, &whole[..128], original)]);
        let (.., payload, length, _, _, _) = decoded.segment.unwrap();
        assert_eq!((payload, length), (vec![7; 128 - 54], 1_000));
        assert_eq!(decoded.quality.snapped_packets, u64::from(original > 128));
    }
}

#[test]
fn a_tcp_header_needs_its_first_16_bytes() {
    let whole = ethernet([8, 0], &ipv4(&tcp(&[1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0], b"payload")));
    for (captured, seen) in [(34 + 15, false), (34 + 16, true), (34 + 24, true)] {
        let decoded = decode_all(&[(ETHERNET, &whole[..captured], whole.len())]);
        assert_eq!(decoded.segment.is_some(), seen, "{captured}");
        let quality = &decoded.quality;
        assert_eq!((quality.headers_not_captured, quality.malformed_packets), (u64::from(!seen), 0));
        if let Some((.., payload, length, timestamp, _, _)) = decoded.segment {
            assert_eq!((payload.len(), length, timestamp), (0, 7, None));
        }
    }
}

#[test]
fn the_timestamps_option_is_found_among_others() {
    let timestamps = [8, 10, 0, 1, 0xe2, 0x40, 0, 0, 0, 0];
    for (options, expected) in [
        ([[1, 1].as_slice(), &timestamps].concat(), Some(123_456)),
        ([[2, 4, 5, 0xb4, 4, 2].as_slice(), &timestamps].concat(), Some(123_456)),
        ([timestamps.as_slice(), &[0, 0]].concat(), Some(123_456)),
        ([[0, 0].as_slice(), &timestamps].concat(), None), // after the end of the options
        (vec![5, 0, 0, 0], None),                          // a length of zero
        (vec![8, 10, 0, 0], None),                         // longer than the header
    ] {
        let data = ipv4(&tcp(&options, b"x"));
        assert_eq!(decode_all(&[(101, &data, data.len())]).segment.unwrap().4, expected, "{options:?}");
    }
}

#[test]
fn a_block_behind_the_acknowledgment_tells_of_a_hole() {
    let block = |left: u32| [left.to_be_bytes(), (left + 9).to_be_bytes()].concat();
    let timestamps = [1, 1, 8, 10, 0, 1, 0xe2, 0x40, 0, 0, 0, 0];
    let acknowledged = 0x0506_0708u32;
    for (options, expected) in [
        ([[1, 1, 5, 10].as_slice(), &block(acknowledged + 50)].concat(), true),
        ([&timestamps, [1, 1, 5, 10].as_slice(), &block(acknowledged + 50)].concat(), true),
        // The D-SACK block comes first (RFC 2883); a block for a hole may follow.
        ([[1, 1, 5, 10].as_slice(), &block(acknowledged - 50)].concat(), false),
        ([[1, 1, 5, 18].as_slice(), &block(acknowledged - 50), &block(acknowledged + 50)].concat(), true),
        (vec![1, 1, 5, 10, 0xff, 0xff, 0xff, 0xff], false), // longer than the header
        (timestamps.to_vec(), false),
    ] {
        let segment = tcp(&options, b"");
        let header = TcpHeader::parse(&segment, segment.len() as u32, &mut ()).expect("a whole header");
        assert_eq!(header.names_later_bytes, expected, "{options:?}");
    }
}

#[test]
fn a_first_block_below_the_acknowledgment_or_inside_the_second_reports_a_duplicate() {
    let acknowledged = 0x0506_0708u32;
    let block =
        |left: u32, right: u32| [(acknowledged + left).to_be_bytes(), (acknowledged + right).to_be_bytes()].concat();
    let below = [acknowledged.wrapping_sub(90).to_be_bytes(), acknowledged.wrapping_sub(80).to_be_bytes()].concat();
    let reported = |blocks: &[&[u8]]| {
        let options = [[1, 1, 5, 2 + 8 * blocks.len() as u8].as_slice(), &blocks.concat()].concat();
        let segment = tcp(&options, b"");
        TcpHeader::parse(&segment, segment.len() as u32, &mut ()).expect("a whole header").duplicate_sack
    };
    // The examples of RFC 2883 §4.
    assert_eq!(reported(&[&below]), Some((acknowledged - 90, acknowledged - 80)));
    assert_eq!(reported(&[&block(20, 30), &block(10, 30)]), Some((acknowledged + 20, acknowledged + 30)));
    assert_eq!(reported(&[&block(20, 30), &block(40, 50)]), None);
    assert_eq!(reported(&[&block(20, 30)]), None);
    assert_eq!(reported(&[&block(30, 20), &block(10, 40)]), None, "it ends before it begins");
}

#[test]
fn ipv4_options_and_ipv6_extension_headers_are_passed() {
    let mut v4 = ipv4(&tcp(&[], b"SMB"));
    v4.splice(20..20, [1, 1, 1, 0]);
    v4[0] = 0x46;
    v4[3] += 4;
    assert_eq!(payload_of(101, &v4).as_deref(), Some(b"SMB".as_slice()));

    let authentication = [DESTINATION_OPTIONS, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let extensions = [
        [ROUTING, 0, 1, 4, 0, 0, 0, 0].as_slice(),
        &[AUTHENTICATION, 0, 4, 0, 0, 0, 0, 0],
        &authentication,
        &[TCP, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &tcp(&[], b"SMB"),
    ]
    .concat();
    assert_eq!(payload_of(101, &ipv6(0, &extensions)).as_deref(), Some(b"SMB".as_slice()));
    // An atomic fragment (RFC 6946) is complete.
    let atomic = [[TCP, 0, 0, 0, 0, 0, 0, 9].as_slice(), &tcp(&[], b"SMB")].concat();
    assert_eq!(payload_of(101, &ipv6(44, &atomic)).as_deref(), Some(b"SMB".as_slice()));
}

/// Splits a TCP segment into IPv4 fragments of 48 bytes, 48 bytes and the rest.
fn three_fragments() -> [Vec<u8>; 3] {
    let segment = tcp(&[], &(0..100).collect::<Vec<u8>>());
    [ipv4_part(&segment[..48], 0, true), ipv4_part(&segment[48..96], 48, true), ipv4_part(&segment[96..], 96, false)]
}

#[test]
fn fragments_in_any_order_make_one_segment() {
    let parts = three_fragments();
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]] {
        let packets = order.map(|part: usize| (101, parts[part].as_slice(), parts[part].len()));
        let decoded = decode_all(&packets);
        let (.., payload, length, _, first, stamp) = decoded.segment.unwrap();
        assert_eq!((payload, length), ((0..100).collect(), 100));
        assert_eq!((first, stamp), (1, 3), "the first fragment seen, and the completing one");
        let quality = decoded.quality;
        assert_eq!((quality.ip_fragments, quality.ip_datagrams_reassembled), (3, 1));
        assert_eq!(quality.ip_datagrams_incomplete, 0);
    }
}

#[test]
fn second_copies_of_fragments_do_no_harm_and_the_first_copy_counts() {
    let parts = three_fragments();
    let mut forged = parts[0].clone();
    forged[20 + 20..].fill(0xee);
    let order = [&parts[0], &parts[0], &forged, &parts[1], &parts[1], &parts[2]];
    let decoded = decode_all(&order.map(|part| (101, part.as_slice(), part.len())));
    assert_eq!(decoded.segment.unwrap().2, (0..100).collect::<Vec<u8>>());
    // The duplicate of the last fragment starts no new datagram.
    let order = [&parts[0], &parts[1], &parts[2], &parts[2]];
    let decoded = decode_all(&order.map(|part| (101, part.as_slice(), part.len())));
    assert!(decoded.segment.is_none());
    assert_eq!(decoded.quality.ip_datagrams_incomplete, 0);
}

#[test]
fn overlapping_fragments_keep_the_bytes_that_came_first() {
    let segment = tcp(&[], &(0..100).collect::<Vec<u8>>());
    let mut overlapping = ipv4_part(&segment[24..], 24, false);
    overlapping[20..44].fill(0xee);
    let parts = [ipv4_part(&segment[..48], 0, true), overlapping];
    let decoded = decode_all(&parts.each_ref().map(|part| (101, part.as_slice(), part.len())));
    assert_eq!(decoded.segment.unwrap().2, (0..100).collect::<Vec<u8>>());
}

#[test]
fn cut_fragments_leave_the_bytes_in_front_of_the_first_cut() {
    let parts = three_fragments();
    let decoded = decode_all(&[
        (101, &parts[0], parts[0].len()),
        (101, &parts[1][..30], parts[1].len()),
        (101, &parts[2], parts[2].len()),
    ]);
    let (.., payload, length, _, _, _) = decoded.segment.unwrap();
    assert_eq!((payload, length), ((0..28 + 10).collect(), 100));
}

#[test]
fn ipv6_fragments_make_one_segment() {
    let segment = tcp(&[], &[9; 60]);
    let part = |offset: usize, end: usize, more: u16| {
        let field = (offset as u16 | more).to_be_bytes();
        ipv6(44, &[[TCP, 0, field[0], field[1], 0, 0, 0, 77].as_slice(), &segment[offset..end]].concat())
    };
    let parts = [part(0, 40, 1), part(40, 80, 0)];
    let decoded = decode_all(&parts.each_ref().map(|part| (101, part.as_slice(), part.len())));
    assert_eq!(decoded.segment.unwrap().2, [9; 60]);
}

#[test]
fn the_fragment_table_is_bounded_and_counts_what_it_gives_up() {
    let (mut decoder, mut quality) = (Decoder::new(), Quality::default());
    for identification in 0..1_000u16 {
        let mut part = three_fragments()[0].clone();
        part[4..6].copy_from_slice(&identification.to_be_bytes());
        decoder.decode(&packet(101, &part, part.len(), 1), &mut quality);
    }
    assert_eq!(quality.ip_datagrams_incomplete, 1_000 - 256);
    decoder.finish(&mut quality);
    assert_eq!(quality.ip_datagrams_incomplete, 1_000);
}

#[test]
fn ports_are_those_of_servers() {
    let mut decoder = Decoder::new();
    let smb = ipv4(&tcp(&[], b""));
    let mut web = smb.clone();
    web[20..24].copy_from_slice(&[0, 80, 0xc0, 1]);
    for data in [&smb, &web, &smb] {
        decoder.decode(&packet(101, data, data.len(), 1), &mut Quality::default());
    }
    assert_eq!(decoder.ports().collect::<Vec<_>>(), [(80, 1), (445, 2)]);
}

/// Checks that an anonymised copy of a packet, with only the fields that are read, is decoded like the packet.
fn parses_alike_without_the_rest(original: &Packet<'_>, tunnels: &TunnelPorts) -> Result<(), TestCaseError> {
    let outline = Outline::parse(original, tunnels);
    let (keep, length) = outline.needed(original, tunnels);
    let mut kept = Outline::understood(original, keep, tunnels).bytes;
    kept.resize(length, 0);
    let copy = packet(original.link_type, &kept, original.wire_length as usize, 1);
    match (&outline.kind, Outline::parse(&copy, tunnels).kind) {
        // The copy has none of the fragment's data.
        (PacketContent::Fragment(one), PacketContent::Fragment(other)) => {
            prop_assert_eq!(one, &Fragment { place: one.place.clone(), ..other });
        }
        (one, other) => prop_assert_eq!(one, &other),
    }
    let decode = |packet: &Packet<'_>| {
        let (mut decoder, mut quality) = (Decoder::with_tunnels(tunnels.clone()), Quality::default());
        let segment = decoder.decode(packet, &mut quality);
        let text = segment.map(|segment| format!("{:?}", TcpSegment { payload: &[], ..segment }));
        (text, decoder.skipped(9), quality.malformed_packets, quality.headers_not_captured, quality.tcp_packets)
    };
    prop_assert_eq!(decode(original), decode(&copy));
    Ok(())
}

proptest! {
    #[test]
    fn any_bytes_never_panic(
        packets in proptest::collection::vec(
            (proptest::sample::select(LINK_TYPES.iter().map(|(number, _)| *number).chain([999]).collect::<Vec<_>>()),
             proptest::collection::vec(any::<u8>(), 0..120), any::<u32>()), 0..8),
    ) {
        let (mut decoder, mut quality) = (Decoder::new(), Quality::default());
        for (link_type, data, wire_length) in &packets {
            let packet = packet(*link_type, data, *wire_length as usize, 1);
            if let Some(segment) = decoder.decode(&packet, &mut quality) {
                prop_assert!(segment.payload.len() as u64 <= u64::from(segment.payload_length));
            }
        }
        let unread = quality.malformed_packets + quality.headers_not_captured;
        prop_assert_eq!(quality.packets, quality.tcp_packets + quality.not_tcp + unread);
    }

    #[test]
    fn damaged_headers_never_panic(
        damage in proptest::collection::vec((0usize..200, any::<u8>()), 0..12), cut in 0usize..200, version in 0usize..3,
    ) {
        let segment = tcp(&[1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0], &[5; 40]);
        let mut data = match version {
            0 => ethernet([8, 0], &ipv4(&segment)),
            1 => ethernet(IPV6_TYPE, &ipv6(0, &[[TCP, 0, 1, 4, 0, 0, 0, 0].as_slice(), &segment].concat())),
            _ => ethernet([8, 0], &ipv4_part(&segment, 0, true)),
        };
        for (at, value) in damage {
            let length = data.len();
            data[at % length] = value;
        }
        let (mut decoder, mut quality) = (Decoder::new(), Quality::default());
        let captured = data.len().min(cut);
        for number in 1..4 {
            decoder.decode(&packet(ETHERNET, &data[..captured], data.len(), number), &mut quality);
        }
    }

    /// Fields kept in an anonymised copy: even for damaged headers, the copy parses like the packet.
    #[test]
    fn the_fields_that_are_read_read_alike_without_the_rest(
        encapsulation in proptest::sample::select(encapsulations()),
        options in proptest::collection::vec(any::<u8>(), 0..40), version in any::<bool>(),
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..6),
        cut in proptest::option::of(0usize..200),
    ) {
        let segment = tcp(&options[..options.len() / 4 * 4], &[5; 40]);
        let frame = if version { ethernet([8, 0], &ipv4(&segment)) } else { ethernet(IPV6_TYPE, &ipv6(TCP, &segment)) };
        let mut data = encapsulation.wrap(&frame, 7).remove(0);
        let headers = data.len() - 40;
        damage.iter().for_each(|(at, value)| data[at.index(headers)] = *value);
        let captured = &data[..cut.unwrap_or(usize::MAX).min(data.len())];
        let original = packet(encapsulation.link_type(), captured, data.len(), 1);
        parses_alike_without_the_rest(&original, &TunnelPorts::none())?;
    }

    /// Like the test above, for tunnels that only a declaration reveals.
    #[test]
    fn the_fields_of_declared_tunnels_read_alike_without_the_rest(
        kind in proptest::sample::select(TunnelKind::ALL.to_vec()), version in any::<bool>(),
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..6),
        cut in proptest::option::of(0usize..200),
    ) {
        let segment = tcp(&[], &[5; 40]);
        let frame = if version { ethernet([8, 0], &ipv4(&segment)) } else { ethernet(IPV6_TYPE, &ipv6(TCP, &segment)) };
        let mut data = in_tunnel(kind, 7_777, &frame);
        let headers = data.len() - 40;
        damage.iter().for_each(|(at, value)| data[at.index(headers)] = *value);
        let captured = &data[..cut.unwrap_or(usize::MAX).min(data.len())];
        let declared = TunnelPorts::new(&[TunnelPort { port: 7_777, kind }]);
        parses_alike_without_the_rest(&packet(ETHERNET, captured, data.len(), 1), &declared)?;
    }

    #[test]
    fn fragments_of_any_cut_and_order_give_the_whole(
        payload in proptest::collection::vec(any::<u8>(), 0..600),
        cuts in proptest::collection::btree_set(1u16..70, 0..10),
        seed in any::<u64>(),
    ) {
        let segment = tcp(&[], &payload);
        let inner = cuts.iter().map(|cut| usize::from(*cut) * 8).filter(|cut| *cut < segment.len());
        let bounds: Vec<usize> = [0].into_iter().chain(inner).chain([segment.len()]).collect();
        prop_assume!(bounds.len() > 2);
        let mut parts: Vec<Vec<u8>> = bounds.windows(2)
            .map(|pair| ipv4_part(&segment[pair[0]..pair[1]], pair[0] as u16, pair[1] < segment.len())).collect();
        let count = parts.len();
        for index in 0..count {
            parts.swap(index, (seed.rotate_left(index as u32 * 7) % count as u64) as usize);
        }
        let packets: Vec<(u32, &[u8], usize)> = parts.iter().map(|part| (101, part.as_slice(), part.len())).collect();
        prop_assert_eq!(decode_all(&packets).segment.map(|segment| segment.2), Some(payload));
    }
}

#[test]
fn protocols_that_are_too_many_are_added_up_and_no_packet_is_lost() {
    let mut skipped = SkippedProtocolCounts::new();
    for link_type in 0..2 * MAX_SKIPPED_PROTOCOLS as u32 {
        skipped.count(SkippedProtocol::LinkType(link_type));
    }
    skipped.count(SkippedProtocol::UdpPort(53));
    skipped.count(SkippedProtocol::UdpPort(53));
    let most = skipped.most(4);
    assert_eq!(most[0], SkippedPackets { protocol: SkippedProtocol::UdpPort(53), packets: 2 });
    assert_eq!((most.len(), most[4].protocol), (5, SkippedProtocol::Others));
    assert_eq!(most.iter().map(|skipped| skipped.packets).sum::<u64>(), 2 * MAX_SKIPPED_PROTOCOLS as u64 + 2);
}
