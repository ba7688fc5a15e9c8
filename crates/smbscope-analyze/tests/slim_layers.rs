//! Anonymous slim copies: addresses and secrets in any layer of a packet, or outside of packets, are removed.

use memchr::memmem;
use smbscope_analyze::pipeline::{self, Sharding, Threading};
use smbscope_analyze::pseudonym::PseudonymKey;
use smbscope_analyze::slim::Anonymize;
use smbscope_analyze::{AnalyzerOptions, slim};
use smbscope_capture::reader::{CaptureInput, CaptureSet};
use smbscope_model::{Exchange, Timestamp};
use smbscope_testkit::encapsulation::Encapsulation;
use smbscope_testkit::{Conversation, Frame, pcap, smb2};

/// Stands for a key, an identifier or an option. These bytes occur in no header.
const SECRET: [u8; 8] = [0xa7, 0xb6, 0xc5, 0xd4, 0xe3, 0xf2, 0xa1, 0xb9];
/// Ethernet addresses of the hosts.
const MACS: [u8; 12] = [0xd0, 0xa7, 0xb6, 0xc5, 0xd4, 0xe3, 0xd0, 0xf2, 0xa1, 0xb9, 0xc8, 0xd7];
/// An IPv4 address outside of IP headers.
const ADDRESS: [u8; 4] = [203, 0, 113, 77];

/// A logon, and a file that is opened and read.
fn conversation() -> Conversation {
    Conversation::new()
        .client_says(0, smb2::negotiate(0, &[0x0302]))
        .server_says(100, smb2::negotiate_response(0, 0x0302))
        .client_says(200, smb2::session_setup(1, "CORP", "miller"))
        .server_says(300, smb2::session_setup_response(1, 7))
        .client_says(400, smb2::tree_connect(2, r"\\files\payroll").session(7))
        .server_says(500, smb2::tree_connect_response(2, 5).session(7))
        .client_says(600, smb2::create(3, r"2026\november.xlsx").session(7).tree(5))
        .server_says(700, smb2::create_response(3, 9).session(7).tree(5))
        .client_says(800, smb2::read(4, 9, 0, 4000).session(7).tree(5))
        .server_says(900, smb2::read_response(4, &[1; 4000]).session(7).tree(5))
}

/// Packets of the conversation with distinct Ethernet addresses.
fn frames() -> Vec<Frame> {
    let mut frames = pcap::read(&pcap::nanos(&conversation().packets()));
    frames.iter_mut().for_each(|frame| frame.data[..12].copy_from_slice(&MACS));
    frames
}

/// Applies `change` to each frame.
fn changed(link_type: u32, change: impl Fn(&[u8], usize) -> Vec<Vec<u8>>) -> Vec<u8> {
    let packets = frames().into_iter().enumerate().flat_map(|(index, frame)| {
        let time = frame.time;
        change(&frame.data, index).into_iter().map(move |data| Frame { time, wire_length: data.len(), data })
    });
    pcap::write(link_type, &packets.collect::<Vec<_>>())
}

fn opened(bytes: &[u8]) -> CaptureSet {
    let file = tempfile::NamedTempFile::new().expect("there is a directory for temporary files");
    std::fs::write(file.path(), bytes).expect("it is written");
    CaptureSet::open(&[CaptureInput::File(file.path().to_owned())]).expect("it begins as a capture")
}

fn anonymous(capture: &[u8]) -> Vec<u8> {
    let anonymize = Some(Anonymize { key: PseudonymKey::new([1; 32]), depth: true, extensions: true });
    let (mut set, mut copy) = (opened(capture), Vec::new());
    let options = slim::SlimOptions { anonymize, ..slim::SlimOptions::default() };
    slim::slim(&mut set, &options, &mut copy, &mut |_| ()).expect("memory takes all");
    copy
}

/// Returns exchanges without names, counters, and packets without TCP.
fn found(capture: &[u8]) -> (Vec<String>, String) {
    let mut exchanges = Vec::new();
    let mut sink = |exchange: &Exchange| {
        let times = (exchange.request, exchange.response, exchange.server_round_trip);
        exchanges.push(format!("{:?} {:?} {:?} {times:?}", exchange.command, exchange.status, exchange.outcome));
    };
    let sinks = std::slice::from_mut(&mut sink);
    let (mut set, options) = (opened(capture), AnalyzerOptions::default());
    let analysis =
        pipeline::run(&mut set, &options, Sharding::None, Threading::Inline, sinks, |_| ()).expect("it runs");
    let mut quality = analysis.quality.clone();
    (quality.captured_bytes, quality.snapped_packets, quality.longest_cut_packet) = (0, 0, 0);
    (exchanges, format!("{quality:?} {:?}", analysis.skipped))
}

/// Asserts that the copy contains no planted bytes and the same exchanges as the original.
fn check(what: &str, capture: &[u8], is_read: bool) {
    let copy = anonymous(capture);
    let planted = [&SECRET[..4], &SECRET[4..], &MACS[1..6], &MACS[7..12], &ADDRESS];
    for secret in planted {
        let place = memmem::find(&copy, secret);
        assert_eq!(place, None, "{what}: {secret:02x?} is in the copy");
    }
    let (before, after) = (found(capture), found(&copy));
    assert_eq!(before, after, "{what}");
    assert_eq!(before.0.len(), if is_read { 5 } else { 0 }, "{what}: {:?}", before.1);
}

/// Inserts options of a fixed length into the TCP header.
fn with_tcp_options(frame: &[u8], options: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let header = usize::from(frame[46] >> 4) * 4;
    frame.splice(34 + header..34 + header, options.iter().copied());
    frame[46] += (options.len() as u8 / 4) << 4;
    let total = u16::from_be_bytes([frame[16], frame[17]]) + options.len() as u16;
    frame[16..18].copy_from_slice(&total.to_be_bytes());
    frame
}

/// An outer UDP packet over IPv4.
fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let length = |extra: usize| ((payload.len() + extra) as u16).to_be_bytes();
    let ports = [[0xc0, 1], port.to_be_bytes(), length(8), [SECRET[0], SECRET[1]]].concat();
    ipv4(17, &[ports.as_slice(), payload].concat())
}

fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let total = ((20 + payload.len()) as u16).to_be_bytes();
    let header = [0x45, 0, total[0], total[1], 0, 9, 0, 0, 61, protocol, 0, 0, 192, 0, 2, 1, 203, 0, 113, 77];
    ethernet(0x0800, &[&header, payload].concat())
}

/// IPv6 between two addresses that contain [`ADDRESS`] (as with NAT64).
fn ipv6(next_header: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u16).to_be_bytes();
    let mut packet = vec![0x60, 0x0b, 0xb6, 0xc5, length[0], length[1], next_header, 61];
    for last in [1, 2] {
        packet.extend([0, 0x64, 0xff, 0x9b, 0, 0, 0, last, 0, 0, 0, 0]);
        packet.extend(ADDRESS);
    }
    ethernet(0x86dd, &[packet.as_slice(), payload].concat())
}

fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    [&MACS[..], &kind.to_be_bytes(), payload].concat()
}

#[test]
fn no_address_of_ethernet_stays_in_any_tunnel() {
    for encapsulation in Encapsulation::ALL {
        let capture = changed(encapsulation.link_type(), |frame, index| encapsulation.wrap(frame, index as u32));
        check(&format!("{encapsulation:?}"), &capture, true);
        // Values of the constructed tunnel headers: a key, a checksum, an option, an authentication field.
        let copy = anonymous(&capture);
        for built_in in [&[0xab, 0xcd][..], &[0x12, 0x34], &[9, 9, 9, 9], &[0x5a; 12], &[2, 0, 0, 0, 9, 2]] {
            let times = |bytes: &[u8]| memmem::find_iter(bytes, built_in).count();
            assert!(times(&copy) < 5, "{encapsulation:?}: {built_in:02x?}, {} times", times(&copy));
        }
    }
}

#[test]
fn secrets_in_headers_of_links_and_tunnels_stay_behind() {
    let secret = &SECRET[..];
    let tag = [0xb6, 0xc5];
    type Wrap<'a> = (&'a str, u32, Box<dyn Fn(&[u8]) -> Vec<u8> + 'a>);
    let wraps: Vec<Wrap<'_>> = vec![
        ("VLAN", 1, Box::new(move |frame| ethernet(0x8100, &[&tag, &frame[12..]].concat()))),
        ("QinQ", 1, Box::new(move |frame| ethernet(0x88a8, &[&tag, &[0x81, 0], &tag, &frame[12..]].concat()))),
        ("VN-Tag", 1, Box::new(move |frame| ethernet(0x8926, &[&secret[..4], &frame[12..]].concat()))),
        (
            "PPPoE",
            1,
            Box::new(move |frame| ethernet(0x8864, &[&[0x11, 0], &tag[..], &[9, 9, 0, 0x21], &frame[14..]].concat())),
        ),
        ("SNAP", 1, Box::new(|frame| ethernet(0x05dc, &[&[0xaa, 0xaa, 3, 0, 0, 0], &frame[12..]].concat()))),
        (
            "MPLS",
            1,
            Box::new(move |frame| {
                ethernet(0x8847, &[&secret[..2], &[0xc4, 64], &secret[..2], &[0xd5, 64], &frame[14..]].concat())
            }),
        ),
        (
            "pseudowire",
            1,
            Box::new(move |frame| ethernet(0x8847, &[&secret[..2], &[0xc5, 64], &[0, 0, 0xa1, 0xb9], frame].concat())),
        ),
        (
            "pseudowire without control word",
            1,
            Box::new(move |frame| ethernet(0x8848, &[&secret[..2], &[0xc5, 64], frame].concat())),
        ),
        ("cooked", 113, Box::new(move |frame| [&[0, 0, 0, 1, 0, 8], secret, &frame[12..]].concat())),
        (
            "cooked 2",
            276,
            Box::new(move |frame| {
                [&frame[12..14], &[0, 0], &secret[..4], &[0, 1, 0, 8], secret, &frame[14..]].concat()
            }),
        ),
        (
            "GRE",
            1,
            Box::new(move |frame| {
                ipv4(47, &[&[0xb0, 0, 8, 0], &secret[4..], &secret[..4], &[0; 4], &frame[14..]].concat())
            }),
        ),
        (
            "ERSPAN II",
            1,
            Box::new(move |frame| {
                ipv4(47, &[&[0x10, 0, 0x88, 0xbe], &secret[4..], &[0x10, 7], &secret[..6], frame].concat())
            }),
        ),
        (
            "ERSPAN III",
            1,
            Box::new(move |frame| {
                let header = [&[0x20, 7], &secret[..6], &[0xa1, 0xb9, 0, 1], secret].concat();
                ipv4(47, &[&[0x10, 0, 0x22, 0xeb], &secret[4..], &header, frame].concat())
            }),
        ),
        ("VXLAN", 1, Box::new(move |frame| udp(4789, &[&[8], &secret[..7], frame].concat()))),
        (
            "GENEVE",
            1,
            Box::new(move |frame| {
                udp(6081, &[&[3, 0, 0x65, 0x58], &secret[..4], &[1, 2, 3, 2], secret, frame].concat())
            }),
        ),
        (
            "GTP",
            1,
            Box::new(move |frame| {
                udp(
                    2152,
                    &[
                        &[0x34, 255, 0, 9],
                        &secret[..4],
                        &[9, 9, 0, 0x85, 2, 0xd4, 0xe3, 0xf2, 0xa1, 0xb9, 0xd4, 0],
                        &frame[14..],
                    ]
                    .concat(),
                )
            }),
        ),
        // The sensor's address (tag 60), and the time of receipt.
        (
            "TZSP",
            1,
            Box::new(move |frame| {
                udp(37008, &[&[1, 0, 0, 1, 60, 6], &MACS[..6], &[13, 4], &secret[..4], &[0, 1], frame].concat())
            }),
        ),
        ("MPLS in UDP", 1, Box::new(move |frame| udp(6635, &[&secret[..2], &[0xc5, 64], &frame[14..]].concat()))),
        ("EtherIP", 1, Box::new(|frame| ipv4(97, &[&[0x3d, 0xe3], frame].concat()))),
        (
            "IPv6 with hop-by-hop, routing and destination options",
            1,
            Box::new(move |frame| {
                let extensions = [
                    [&[43, 1, 5, 12][..], secret, &secret[..4]],
                    [&[60, 1, 4, 1], secret, &ADDRESS],
                    [&[4, 1, 0xc9, 12], secret, &ADDRESS],
                ];
                ipv6(0, &[extensions.concat().concat(), frame[14..].to_vec()].concat())
            }),
        ),
        (
            "options and padding of IPv4",
            1,
            Box::new(move |frame| {
                let mut frame = frame.to_vec();
                // Record route (RFC 791 §3.1) with two addresses.
                frame.splice(34..34, [&[7, 11, 12], &ADDRESS[..], &SECRET[..4], &[0]].concat());
                frame[14] = 0x48;
                let total = u16::from_be_bytes([frame[16], frame[17]]) + 12;
                frame[16..18].copy_from_slice(&total.to_be_bytes());
                frame.extend(SECRET);
                frame
            }),
        ),
        (
            "authentication",
            1,
            Box::new(move |frame| {
                let header = [&[6, 4, 0, 0], secret, secret, &secret[..4]].concat();
                ipv4(51, &[&header, &frame[34..]].concat())
            }),
        ),
    ];
    for (what, link_type, wrap) in wraps {
        // With authentication, the tunnel has different endpoints from the rest of the conversation, the same in both
        // directions.
        let is_read = what != "authentication";
        let capture = changed(link_type, |frame, _| vec![wrap(frame)]);
        if is_read {
            check(what, &capture, true)
        } else {
            assert!(memmem::find(&anonymous(&capture), &SECRET[..4]).is_none())
        }
    }
}

#[test]
fn options_of_tcp_that_are_not_read_become_no_operations() {
    let [a, b, c, d] = ADDRESS;
    let options: [(&str, Vec<u8>); 6] = [
        ("multipath TCP, ADD_ADDR (RFC 8684 3.4.1)", [&[30, 16, 0x30, 1, a, b, c, d], &SECRET[..]].concat()),
        ("MD5 signature (RFC 2385)", [&[19, 18], &SECRET[..], &SECRET[..], &[1, 1]].concat()),
        ("fast open (RFC 7413) and timestamps", [&[34, 10], &SECRET[..], &[8, 10, 0, 0, 1, 0, 0, 0, 2, 0]].concat()),
        ("unknown, behind the end", [&[254, 6], &SECRET[..4], &[0, 0], &SECRET[..4]].concat()),
        ("too long", [&[253, 40], &SECRET[..6]].concat()),
        ("SACK with half a block", [&[5, 14, 0, 0, 0, 1, 0, 0, 0, 2], &SECRET[..4], &[1, 1]].concat()),
    ];
    for (what, options) in options {
        assert_eq!(options.len() % 4, 0, "{what}");
        check(what, &changed(1, |frame, _| vec![with_tcp_options(frame, &options)]), true);
    }
}

#[test]
fn headers_that_fragments_split_are_hidden_too() {
    // The outer datagram in fragments of 16 bytes, so that addresses of both inner layers span several fragments.
    let capture = changed(1, |frame, index| {
        let whole = udp(4789, &[&[8, 0, 0, 0, 0xb6, 0xc5, 0xd4, 0], frame].concat());
        let pieces: Vec<&[u8]> = whole[34..].chunks(16).collect();
        let piece = |(at, piece): (usize, &&[u8])| {
            let mut fragment = [&whole[..34], piece].concat();
            fragment[16..18].copy_from_slice(&(20 + piece.len() as u16).to_be_bytes());
            fragment[18..20].copy_from_slice(&(index as u16).to_be_bytes());
            let more = if at + 1 < pieces.len() { 0x2000 } else { 0 };
            fragment[20..22].copy_from_slice(&((at * 2) as u16 | more).to_be_bytes());
            fragment
        };
        pieces.iter().enumerate().map(piece).collect()
    });
    check("tiny fragments", &capture, true);
}

#[test]
fn packets_that_are_not_read_keep_their_protocol_alone() {
    let secret = &SECRET[..];
    let packets: Vec<(&str, u32, Vec<u8>)> = vec![
        ("ARP", 1, ethernet(0x0806, &[&[0, 1, 8, 0, 6, 4, 0, 1], &MACS[..6], &ADDRESS, &MACS[6..], &ADDRESS].concat())),
        ("spanning tree", 1, [&MACS[..], &[0, 38, 0x42, 0x42, 3], secret].concat()),
        ("unknown EtherType", 1, ethernet(0x9abc, secret)),
        ("unknown link type", 147, [secret, &MACS].concat()),
        ("IPv4 with a header of two words", 1, [&MACS[..], &[8, 0, 0x42], secret, &ADDRESS, &ADDRESS].concat()),
        ("IPv4 cut in its addresses", 1, ipv4(6, secret)[..33].to_vec()),
        ("TCP header that is too short", 1, ipv4(6, &[&[1, 0xbd, 0xc0, 0], secret, &[0x10, 0x18], secret].concat())),
        ("IPv6 with an extension beyond its end", 1, ipv6(0, &[&[6, 200], secret].concat())),
        (
            "malformed ERSPAN III",
            1,
            ipv4(47, &[&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 0], secret, &[0x08, 1], secret, &MACS].concat()),
        ),
        ("GENEVE with options beyond its end", 1, udp(6081, &[&[0x3f, 0, 0x65, 0x58], secret, &MACS].concat())),
        ("TZSP without an end of its tags", 1, udp(37008, &[&[1, 0, 0, 1, 60, 200], &MACS[..]].concat())),
        ("802.1ah that is cut", 1, ethernet(0x88e7, &[&secret[..4], &MACS[..11]].concat())),
        (
            "pseudowire to no IP",
            1,
            ethernet(0x8847, &[&[0, 1, 1, 64, 0, 0, 0, 0], &MACS[..], &[0x88, 0xcc], secret].concat()),
        ),
        ("DNS", 1, udp(53, secret)),
        ("SCTP", 1, ipv4(132, &[secret, &ADDRESS].concat())),
        ("ICMP with a packet within", 1, ipv4(1, &[&[3, 1, 0, 0, 0, 0, 0, 0], &ipv4(6, secret)[14..]].concat())),
    ];
    for (what, link_type, data) in packets {
        let packet = Frame { time: Timestamp(1_700_000_000_000_000_000), wire_length: data.len(), data };
        let cut = Frame { wire_length: packet.wire_length + 60, ..packet.clone() };
        check(what, &pcap::write(link_type, &[packet]), false);
        check(&format!("{what}, cut"), &pcap::write(link_type, &[cut]), false);
    }
}

/// A pcapng block with padding.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut padded = body.to_vec();
    padded.resize(body.len().next_multiple_of(4), 0);
    let length = (12 + padded.len() as u32).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, &padded, &length].concat()
}

/// Options of a pcapng block with the end marker.
fn block_options(options: &[(u16, &[u8])]) -> Vec<u8> {
    let option = |(code, value): &(u16, &[u8])| {
        let mut bytes = [code.to_le_bytes(), (value.len() as u16).to_le_bytes()].concat();
        bytes.extend_from_slice(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    };
    options.iter().flat_map(option).chain([0; 4]).collect()
}

#[test]
fn comments_filters_names_keys_and_unknown_blocks_stay_behind() {
    let secret = &SECRET[..];
    let section = [&[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0][..], &[0xff; 8]].concat();
    // Comment, hardware, operating system, application; name, description, address, filter and hardware of the
    // interface.
    let of_section = block_options(&[(1, secret), (2, secret), (3, secret), (4, secret), (2988, secret)]);
    let of_interface = block_options(&[
        (2, secret),
        (3, secret),
        (4, secret),
        (6, &MACS[..6]),
        (9, &[9]),
        (11, secret),
        (12, secret),
        (15, secret),
    ]);
    let mut capture = block(0x0a0d_0d0a, &[section, of_section].concat());
    capture.extend(block(1, &[&[1, 0, 0, 0, 0, 0, 4, 0][..], &of_interface].concat()));
    // Name resolution, TLS keys, a systemd journal entry, a custom block, and an unknown one.
    capture.extend(block(4, &[&[1, 0, 12, 0][..], &ADDRESS, secret, &[0; 4]].concat()));
    capture.extend(block(10, &[&[0x4b, 0x53, 0x4c, 0x54, 8, 0, 0, 0][..], secret].concat()));
    capture.extend(block(9, secret));
    capture.extend(block(0x0000_0bad, &[&[1, 0, 0, 0], secret].concat()));
    capture.extend(block(0x7777_0001, secret));
    for frame in frames() {
        let time = frame.time.0 as u64;
        let length = frame.data.len() as u32;
        let fields = [0, (time >> 32) as u32, time as u32, length, length];
        let mut body: Vec<u8> = fields.into_iter().flat_map(u32::to_le_bytes).collect();
        body.extend(&frame.data);
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend(block_options(&[(1, secret), (3, secret), (5, secret), (6, &[0, 0, 0, 0])]));
        capture.extend(block(6, &body));
    }
    capture.extend(block(5, &[&[0; 12][..], &block_options(&[(1, secret)])].concat()));
    check("pcapng", &capture, true);
}

#[test]
fn names_of_a_netbios_session_and_other_protocols_stay_behind() {
    // RFC 1001 §14.1: a called and a calling name with half a byte per letter; here the letters are the secret.
    let names = [&[32][..], &SECRET.repeat(4), &[0, 32], &SECRET.repeat(4), &[0]].concat();
    let request = [&[0x81, 0, 0, names.len() as u8][..], &names].concat();
    let http = [b"GET /".as_slice(), &SECRET, b" HTTP/1.1\r\n"].concat();
    for (what, payload) in [("NetBIOS session request", request), ("HTTP", http)] {
        let said = pcap::nanos(&Conversation::new().client_sends(0, payload).packets());
        let copy = anonymous(&said);
        assert_eq!(memmem::find(&copy, &SECRET[..4]), None, "{what}");
    }
}
