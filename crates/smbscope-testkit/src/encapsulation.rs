//! Captures from mirror ports and virtual networks: every packet of a file wrapped in a tunnel.
//!
//! The headers are built field by field from the RFC of each variant. Values that a reader must not depend on (keys,
//! identifiers, sequence numbers, options) are set to something other than zero.

use crate::{Frame, pcap};

/// Tunnel around each packet. Unless stated otherwise, the outer packet is IPv4 from 192.0.2.1 to 192.0.2.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encapsulation {
    /// RFC 7348.
    Vxlan,
    /// RFC 7348 over IPv6.
    VxlanOverIpv6,
    /// RFC 7348 with the default port of Linux, below a VLAN tag.
    VxlanOfLinux,
    /// Generic extension of VXLAN (draft-ietf-nvo3-vxlan-gpe), directly around IP.
    VxlanGeneric,
    /// VXLAN in outer fragments of up to 1,480 bytes.
    VxlanInFragments,
    /// RFC 8926, with eight bytes of options.
    Geneve,
    /// RFC 2784.
    Gre,
    /// RFC 2890: with checksum, key and sequence number.
    GreWithKey,
    /// GRE around an Ethernet frame.
    GreEthernet,
    /// draft-foschiano-erspan, type I.
    Erspan1,
    /// Type II.
    Erspan2,
    /// Type III with the optional subheader.
    Erspan3,
    /// RFC 2003 or 4213: in IPv4.
    IpInIpv4,
    /// RFC 2473: in IPv6.
    IpInIpv6,
    /// 3GPP TS 29.281, with a sequence number and an extension header.
    GtpUser,
    /// RFC 4448: Ethernet pseudowire with a control word.
    Pseudowire,
    /// RFC 4448 without a control word.
    PseudowireWithoutControlWord,
    /// IEEE 802.1ah.
    Backbone,
    /// RFC 4302 before the TCP header.
    Authenticated,
    VxlanInCooked,
    VxlanInCooked2,
    /// VXLAN in GRE around a frame, in IPv6 below a VLAN tag.
    Nested,
}

impl Encapsulation {
    pub const ALL: [Encapsulation; 22] = [
        Encapsulation::Vxlan,
        Encapsulation::VxlanOverIpv6,
        Encapsulation::VxlanOfLinux,
        Encapsulation::VxlanGeneric,
        Encapsulation::VxlanInFragments,
        Encapsulation::Geneve,
        Encapsulation::Gre,
        Encapsulation::GreWithKey,
        Encapsulation::GreEthernet,
        Encapsulation::Erspan1,
        Encapsulation::Erspan2,
        Encapsulation::Erspan3,
        Encapsulation::IpInIpv4,
        Encapsulation::IpInIpv6,
        Encapsulation::GtpUser,
        Encapsulation::Pseudowire,
        Encapsulation::PseudowireWithoutControlWord,
        Encapsulation::Backbone,
        Encapsulation::Authenticated,
        Encapsulation::VxlanInCooked,
        Encapsulation::VxlanInCooked2,
        Encapsulation::Nested,
    ];

    pub fn link_type(self) -> u32 {
        match self {
            Encapsulation::VxlanInCooked => 113,
            Encapsulation::VxlanInCooked2 => 276,
            _ => 1,
        }
    }

    /// Wraps an Ethernet frame of IPv4 or IPv6 in one or more packets. `number` varies per-packet fields.
    pub fn wrap(self, frame: &[u8], number: u32) -> Vec<Vec<u8>> {
        let ip = &frame[14..];
        let is_v6 = ip[0] >> 4 == 6;
        let ip_type: u16 = if is_v6 { IPV6 } else { IPV4 };
        let id = number as u16;
        let whole = match self {
            Encapsulation::Vxlan => ethernet(IPV4, &ipv4(17, id, &vxlan(4789, frame))),
            Encapsulation::VxlanOverIpv6 => ethernet(IPV6, &ipv6(17, &vxlan(4789, frame))),
            Encapsulation::VxlanOfLinux => {
                let inside = ipv4(17, id, &vxlan(8472, frame));
                ethernet(0x8100, &[&[0, 42][..], &IPV4.to_be_bytes(), &inside].concat())
            }
            Encapsulation::VxlanGeneric => {
                // Flags I and P; next protocol 1 is IPv4, 2 is IPv6.
                let header = [0x0c, 0, 0, 1 + u8::from(is_v6), 0, 0x12, 0x34, 0];
                ethernet(IPV4, &ipv4(17, id, &udp(4790, &[&header, ip].concat())))
            }
            Encapsulation::VxlanInFragments => return fragments(id, &vxlan(4789, frame)),
            Encapsulation::Geneve => {
                let header = [2, 0, 0x65, 0x58, 0, 0x12, 0x34, 0, 1, 2, 3, 1, 9, 9, 9, 9];
                ethernet(IPV4, &ipv4(17, id, &udp(6081, &[&header, frame].concat())))
            }
            Encapsulation::Gre => ethernet(IPV4, &ipv4(47, id, &gre(0, ip_type, &[], ip))),
            Encapsulation::GreWithKey => {
                let words = [[0xab, 0xcd, 0, 0], [0, 0, 0, 7], number.to_be_bytes()].concat();
                ethernet(IPV4, &ipv4(47, id, &gre(0xb000, ip_type, &words, ip)))
            }
            Encapsulation::GreEthernet => ethernet(IPV4, &ipv4(47, id, &gre(0, 0x6558, &[], frame))),
            Encapsulation::Erspan1 => ethernet(IPV4, &ipv4(47, id, &gre(0, 0x88be, &[], frame))),
            Encapsulation::Erspan2 => {
                let words = [&number.to_be_bytes()[..], &[0x10, 42, 0, 7, 0, 0, 0, 1]].concat();
                ethernet(IPV4, &ipv4(47, id, &gre(0x1000, 0x88be, &words, frame)))
            }
            Encapsulation::Erspan3 => {
                let header = [0x20, 42, 0, 7, 1, 2, 3, 4, 0, 0, 0x80, 0x01];
                let words = [&number.to_be_bytes()[..], &header, &[3, 0, 0, 0, 0, 0, 0, 0]].concat();
                ethernet(IPV4, &ipv4(47, id, &gre(0x1000, 0x22eb, &words, frame)))
            }
            Encapsulation::IpInIpv4 => ethernet(IPV4, &ipv4(if is_v6 { 41 } else { 4 }, id, ip)),
            Encapsulation::IpInIpv6 => ethernet(IPV6, &ipv6(if is_v6 { 41 } else { 4 }, ip)),
            Encapsulation::GtpUser => {
                let length = (ip.len() as u16 + 8).to_be_bytes();
                // Version 1, flags E and S; an extension header of one word, a PDU session container.
                let start = [&[0x36, 255][..], &length, &[0, 0, 0, 9], &[id as u8, 0, 0, 0x85], &[1, 0, 9, 0]].concat();
                ethernet(IPV4, &ipv4(17, id, &udp(2152, &[start.as_slice(), ip].concat())))
            }
            Encapsulation::Pseudowire => {
                let control_word = [0, 0, (id >> 8) as u8, id as u8];
                ethernet(0x8847, &[&[0, 1, 0, 64, 0, 2, 1, 64][..], &control_word, frame].concat())
            }
            Encapsulation::PseudowireWithoutControlWord => {
                ethernet(0x8847, &[&[0, 1, 0, 64, 0, 2, 1, 64][..], frame].concat())
            }
            Encapsulation::Backbone => ethernet(0x88e7, &[&[0, 0x12, 0x34, 0x56][..], frame].concat()),
            Encapsulation::Authenticated => ethernet(ip_type, &authenticated(ip, number)),
            Encapsulation::VxlanInCooked => {
                let header = [0, 0, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0, 8, 0];
                [&header[..], &ipv4(17, id, &vxlan(4789, frame))].concat()
            }
            Encapsulation::VxlanInCooked2 => {
                let header = [8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0];
                [&header[..], &ipv4(17, id, &vxlan(4789, frame))].concat()
            }
            Encapsulation::Nested => {
                let vxlan = ethernet(IPV4, &ipv4(17, id, &vxlan(4789, frame)));
                let gre = ipv6(47, &gre(0x2000, 0x6558, &[0, 0, 0, 5], &vxlan));
                ethernet(0x8100, &[&[0, 42][..], &IPV6.to_be_bytes(), &gre].concat())
            }
        };
        vec![whole]
    }

    /// Wraps each Ethernet frame of a little-endian pcap file. Packets must not be truncated; those without IP stay as
    /// they are.
    pub fn wrap_file(self, file: &[u8]) -> Vec<u8> {
        let wrap = |(frame, number): (Frame, u32)| {
            assert_eq!(frame.data.len(), frame.wire_length, "the packets are whole");
            let packets = self.wrap(&frame.data, number).into_iter();
            packets.map(move |data| Frame { time: frame.time, wire_length: data.len(), data })
        };
        pcap::write(self.link_type(), &pcap::read(file).into_iter().zip(1..).flat_map(wrap).collect::<Vec<_>>())
    }
}

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 9, 2, 2, 0, 0, 0, 9, 1][..], &kind.to_be_bytes(), payload].concat()
}

fn ipv4_part(protocol: u8, id: u16, offset: usize, more: bool, payload: &[u8]) -> Vec<u8> {
    let total = ((20 + payload.len()) as u16).to_be_bytes();
    let place = ((offset / 8) as u16 | if more { 0x2000 } else { 0 }).to_be_bytes();
    let [id0, id1] = id.to_be_bytes();
    let header = [0x45, 0, total[0], total[1], id0, id1, place[0], place[1], 61, protocol, 0, 0];
    [&header[..], &[192, 0, 2, 1, 192, 0, 2, 2], payload].concat()
}

fn ipv4(protocol: u8, id: u16, payload: &[u8]) -> Vec<u8> {
    ipv4_part(protocol, id, 0, false, payload)
}

fn ipv6(next_header: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([next_header, 61]);
    for last in [1, 2] {
        packet.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    packet.extend(payload);
    packet
}

fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let length = (8 + payload.len() as u16).to_be_bytes();
    [&[0xc0, 0x01][..], &port.to_be_bytes(), &length, &[0, 0], payload].concat()
}

fn vxlan(port: u16, frame: &[u8]) -> Vec<u8> {
    udp(port, &[&[8, 0, 0, 0, 0, 0x12, 0x34, 0], frame].concat())
}

fn gre(flags: u16, protocol: u16, words: &[u8], payload: &[u8]) -> Vec<u8> {
    [&flags.to_be_bytes()[..], &protocol.to_be_bytes(), words, payload].concat()
}

/// Splits the payload of an outer packet into fragments that fit Ethernet.
fn fragments(id: u16, payload: &[u8]) -> Vec<Vec<u8>> {
    const PIECE: usize = 1_480;
    let pieces = payload.chunks(PIECE).enumerate();
    pieces
        .map(|(index, piece)| {
            let offset = index * PIECE;
            ethernet(IPV4, &ipv4_part(17, id, offset, offset + piece.len() < payload.len(), piece))
        })
        .collect()
}

/// Inserts an authentication header of 24 bytes after the IP header.
fn authenticated(ip: &[u8], number: u32) -> Vec<u8> {
    let mut packet = ip.to_vec();
    let (protocol_at, length_at, header) = match ip[0] >> 4 {
        6 => (6, 4, 40),
        _ => (9, 2, usize::from(ip[0] & 15) * 4),
    };
    let length = u16::from_be_bytes([ip[length_at], ip[length_at + 1]]) + 24;
    packet[length_at..length_at + 2].copy_from_slice(&length.to_be_bytes());
    let next = std::mem::replace(&mut packet[protocol_at], 51);
    let [n0, n1, n2, n3] = number.to_be_bytes();
    let authentication = [&[next, 4, 0, 0, 0, 0, 1, 0, n0, n1, n2, n3][..], &[0x5a; 12]].concat();
    packet.splice(header..header, authentication);
    packet
}
