//! Captures of other links, from mirror ports and virtual networks: every packet of a file wrapped in a link layer or a
//! tunnel.
//!
//! The headers are built field by field from the specification of each variant. Values that a reader must not depend on (keys,
//! identifiers, sequence numbers, options) are set to something other than zero.

use crate::{Frame, pcap};

/// Link layer or tunnel around each packet. Unless stated otherwise, the outer packet is IPv4 from 192.0.2.1 to 192.0.2.2.
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
    /// Cisco metadata with a security group tag.
    Sgt,
    /// IEEE 802.1AE without encryption, with an explicit channel.
    Macsec,
    /// RFC 8300, in an Ethernet frame, around an Ethernet frame.
    NetworkService,
    /// Cisco FabricPath: a frame in a frame of a fabric.
    FabricPath,
    /// RFC 6325, with options.
    Trill,
    /// IEEE 802.1BR.
    PortExtension,
    /// IEC 62439-3 (HSR).
    Redundancy,
    /// Marvell switch tag with an EtherType.
    SwitchTag,
    /// Arista's timestamp of 48 bits.
    TapTimestamp,
    /// RFC 2661, with length, sequence and offset fields, around PPP.
    L2tp2,
    /// RFC 3931 over UDP, around Ethernet, with a cookie of 8 bytes.
    L2tp3,
    /// RFC 3931 over IP, without a cookie.
    L2tp3OverIp,
    /// WCCP of version 2 in GRE.
    Redirected,
    /// RFC 5415 around Ethernet.
    Capwap,
    /// RFC 5415 around IEEE 802.11.
    CapwapWifi,
    /// TZSP around IEEE 802.11.
    TzspWifi,
    /// RFC 7348 on an unregistered port.
    AnyPortVxlan,
    /// Generic extension of VXLAN on an unregistered port, around IP.
    AnyPortVxlanGeneric,
    /// RFC 8926 on an unregistered port, with options.
    AnyPortGeneve,
    /// draft-ietf-intarea-gue, version 0, with a field of four bytes.
    AnyPortGue,
    /// IP directly in UDP.
    FooOverUdp,
    /// IEEE 802.11 with quality of service and four addresses, decrypted by the hardware.
    WifiFourAddresses,
    /// IEEE 802.11: an aggregate of one frame, with a control field for high throughput, after an aligning radiotap.
    WifiAggregate,
    /// Link type of the tcpdump.org registry.
    Link(u32),
}

impl Encapsulation {
    pub const ALL: [Encapsulation; 53] = [
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
        Encapsulation::Sgt,
        Encapsulation::Macsec,
        Encapsulation::NetworkService,
        Encapsulation::FabricPath,
        Encapsulation::Trill,
        Encapsulation::PortExtension,
        Encapsulation::Redundancy,
        Encapsulation::SwitchTag,
        Encapsulation::TapTimestamp,
        Encapsulation::L2tp2,
        Encapsulation::L2tp3,
        Encapsulation::L2tp3OverIp,
        Encapsulation::Redirected,
        Encapsulation::Capwap,
        Encapsulation::CapwapWifi,
        Encapsulation::TzspWifi,
        Encapsulation::AnyPortVxlan,
        Encapsulation::AnyPortVxlanGeneric,
        Encapsulation::AnyPortGeneve,
        Encapsulation::AnyPortGue,
        Encapsulation::FooOverUdp,
        Encapsulation::WifiFourAddresses,
        Encapsulation::WifiAggregate,
        Encapsulation::Link(105),
        Encapsulation::Link(127),
        Encapsulation::Link(109),
        Encapsulation::Link(117),
        Encapsulation::Link(192),
        Encapsulation::Link(197),
        Encapsulation::Link(239),
        Encapsulation::Link(258),
    ];

    pub fn link_type(self) -> u32 {
        match self {
            Encapsulation::VxlanInCooked => 113,
            Encapsulation::VxlanInCooked2 => 276,
            Encapsulation::WifiFourAddresses => 105,
            Encapsulation::WifiAggregate => 127,
            Encapsulation::Link(number) => number,
            _ => 1,
        }
    }

    /// Returns true if the inner packet is in an IP packet, and false if only link layers precede it.
    pub fn is_tunnel(self) -> bool {
        use Encapsulation::*;
        let tags = [Sgt, Macsec, NetworkService, FabricPath, Trill, PortExtension, Redundancy, SwitchTag, TapTimestamp];
        let others =
            [Pseudowire, PseudowireWithoutControlWord, Backbone, Authenticated, WifiFourAddresses, WifiAggregate];
        !tags.contains(&self) && !others.contains(&self) && !matches!(self, Link(_))
    }

    /// Returns true if only the packet inside reveals the tunnel, so that a truncated one stays unknown.
    pub fn is_found_by_content(self) -> bool {
        use Encapsulation::*;
        matches!(self, AnyPortVxlan | AnyPortVxlanGeneric | AnyPortGeneve | AnyPortGue | FooOverUdp)
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
            Encapsulation::WifiFourAddresses => {
                // Data with quality of service; from and to the distribution system, protected.
                let vector = [1, 2, 3, 0x20, 5, 6, 7, 8];
                [&wifi(&[0x88, 0x43], true, &[0, 0])[..], &vector, &snap(ip_type), ip].concat()
            }
            Encapsulation::WifiAggregate => {
                // Two words of flags; after the second, a time, and flags that say that the payload is aligned.
                let radiotap =
                    [0, 0, 28, 0, 3, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0x20, 0, 0, 0];
                // An order bit, so that four bytes follow the control field: 30, and two of padding.
                let header = wifi(&[0x88, 0x81], false, &[0x80, 0, 0, 0, 0, 0, 0, 0]);
                let length = (8 + ip.len() as u16).to_be_bytes();
                let inner = [&frame[..12], &length, &snap(ip_type), ip].concat();
                [&radiotap[..], &header, &inner].concat()
            }
            Encapsulation::Link(link_type) => link(link_type, frame),
            other => other.wrap_in_tag_or_tunnel(frame, ip_type, id),
        };
        vec![whole]
    }

    fn wrap_in_tag_or_tunnel(self, frame: &[u8], ip_type: u16, id: u16) -> Vec<u8> {
        let (ip, kind) = (&frame[14..], ip_type.to_be_bytes());
        let inserted = |ether_type: u16, tag: &[u8]| ethernet(ether_type, &[tag, &kind, ip].concat());
        let in_udp = |port: u16, parts: &[&[u8]]| ethernet(IPV4, &ipv4(17, id, &udp(port, &parts.concat())));
        let ppp = [0xff, 0x03, 0, if ip_type == IPV6 { 0x57 } else { 0x21 }];
        match self {
            Encapsulation::Sgt => inserted(0x8909, &[1, 1, 0, 1, 0, 16]),
            Encapsulation::Macsec => inserted(0x88e5, &[0x20, 0, 0, 0, 0, id as u8, 2, 2, 2, 2, 2, 2, 0, 1]),
            // Two words, TTL 63; metadata of type 2, next protocol Ethernet.
            Encapsulation::NetworkService => {
                ethernet(0x894f, &[&[0x0f, 0xc2, 2, 3, 0, 0, 42, 255][..], frame].concat())
            }
            Encapsulation::FabricPath => ethernet(0x8903, &[&[0x04, 0x20][..], frame].concat()),
            // One word of options, 5 hops left.
            Encapsulation::Trill => ethernet(0x22f3, &[&[0, 0x45, 0, 1, 0, 2, 9, 9, 9, 9][..], frame].concat()),
            Encapsulation::PortExtension => inserted(0x893f, &[0, 1, 0, 2, 0, 0]),
            Encapsulation::Redundancy => inserted(0x892f, &[0, 60, 0, id as u8]),
            Encapsulation::SwitchTag => inserted(0xdada, &[0, 0, 0xc0, 1, 0, 1]),
            Encapsulation::TapTimestamp => inserted(0xd28b, &[0, 1, 0, 0x20, 1, 2, 3, 4, 5, 6]),
            Encapsulation::L2tp2 => {
                let length = (16 + ppp.len() as u16 + ip.len() as u16).to_be_bytes();
                // Flags L, S and O; version 2; an offset of two bytes.
                let header = [&[0x4a, 2][..], &length, &[0, 7, 0, 9, 0, 1, 0, 0, 0, 2, 5, 5], &ppp].concat();
                in_udp(1701, &[&header, ip])
            }
            Encapsulation::L2tp3 => in_udp(1701, &[&[0, 3, 0, 0, 0, 0, 0, 9], &[0xc7; 8], frame]),
            Encapsulation::L2tp3OverIp => ethernet(IPV4, &ipv4(115, id, &[&[0, 0, 0, 9][..], frame].concat())),
            Encapsulation::Redirected => {
                ethernet(IPV4, &ipv4(47, id, &gre(0, 0x883e, &[], &[&[0x80, 1, 0, 0][..], ip].concat())))
            }
            // A header of two words.
            Encapsulation::Capwap => in_udp(5247, &[&[0, 0x10, 0, 0, 0, 0, 0, 0], frame]),
            Encapsulation::CapwapWifi => {
                in_udp(5247, &[&[0, 0x10, 0x03, 0, 0, 0, 0, 0], &wifi(&[8, 2], false, &[]), &snap(ip_type), ip])
            }
            Encapsulation::TzspWifi => {
                in_udp(37_008, &[&[1, 0, 0, 18, 10, 1, 5, 1], &wifi(&[8, 1], false, &[]), &snap(ip_type), ip])
            }
            Encapsulation::AnyPortVxlan => ethernet(IPV4, &ipv4(17, id, &vxlan(10_800, frame))),
            Encapsulation::AnyPortVxlanGeneric => {
                in_udp(40_000, &[&[0x0c, 0, 0, if ip_type == IPV6 { 2 } else { 1 }, 0, 0x12, 0x34, 0], ip])
            }
            Encapsulation::AnyPortGeneve => {
                in_udp(6_082, &[&[2, 0, 0x65, 0x58, 0, 0x12, 0x34, 0, 1, 2, 3, 1, 9, 9, 9, 9], frame])
            }
            Encapsulation::AnyPortGue => {
                in_udp(40_001, &[&[1, if ip_type == IPV6 { 41 } else { 4 }, 0, 0x80, 1, 2, 3, 4], ip])
            }
            Encapsulation::FooOverUdp => in_udp(5_555, &[ip]),
            other => unreachable!("{other:?} is wrapped by its caller"),
        }
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

/// Wraps an Ethernet frame of IP in a packet of a link type.
fn link(link_type: u32, frame: &[u8]) -> Vec<u8> {
    let (addresses, kind, ip) = (&frame[..12], &frame[12..14], &frame[14..]);
    let is_v6 = ip[0] >> 4 == 6;
    let ip_type = if is_v6 { IPV6 } else { IPV4 };
    // AF_INET and FreeBSD's AF_INET6.
    let family = if is_v6 { 28 } else { 2 };
    let ppp = [0, if is_v6 { 0x57 } else { 0x21 }];
    let snap = snap(ip_type);
    // Q.922 address, control, protocol.
    let frame_relay = [&[0x18, 0x41, 3, if is_v6 { 0x8e } else { 0xcc }][..], ip].concat();
    let wifi = [&wifi(&[8, 1], false, &[])[..], &snap, ip].concat();
    let juniper = |inner: &[u8]| [b"MGC", &[0x81, 0, 4, 1, 2, 3, 4][..], inner].concat();
    let hdlc = [&[0x0f, 0][..], kind, ip].concat();
    match link_type {
        0 => [&[family, 0, 0, 0], ip].concat(),
        1 => frame.to_vec(),
        // A source route of four bytes.
        6 => [&[0x10, 0x40][..], &addresses[..6], &[0x82, 2, 2, 2, 2, 2, 4, 0x30, 0, 1], &snap, ip].concat(),
        8 => [&[0; 16][..], ip].concat(),
        9 | 50 => [&[0xff, 3][..], &ppp, ip].concat(),
        10 => [&[0x50][..], addresses, &snap, ip].concat(),
        11 | 100 | 106 => {
            // Bridged, with padding (RFC 2684 §5.2).
            [&[0xaa, 0xaa, 3, 0, 0x80, 0xc2, 0, 7, 0, 0][..], frame].concat()
        }
        12 | 14 | 101 | 228 | 229 => ip.to_vec(),
        51 => [&[0x11, 0, 0, 1, 0, 0][..], &ppp, ip].concat(),
        104 => hdlc,
        105 => wifi,
        107 => frame_relay,
        108 => [&[0, 0, 0, family], ip].concat(),
        109 => [&[family, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0][..], ip].concat(),
        113 => [&[0, 0, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0][..], kind, ip].concat(),
        117 => [&[97, family][..], &[7; 98], ip].concat(),
        119 => [&[0, 0, 0, 0x44, 0, 0, 0, 144][..], &[3; 136], &wifi].concat(),
        122 => [&[1; 16][..], &snap, ip].concat(),
        123 => [&[0x82, 0, 0, 32][..], &snap, ip].concat(),
        127 => [&[0, 0, 9, 0, 2, 0, 0, 0, 0x10][..], &wifi].concat(),
        138 => [&[1; 16][..], kind, ip].concat(),
        149 | 258 => {
            let header = [[108, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]].concat();
            [&header[..], b"en0", &[0; 93], frame].concat()
        }
        163 => [&[0x80, 0x21, 0x10, 1, 0, 0, 0, 64][..], &[3; 56], &wifi].concat(),
        166 => [&[1, 3][..], &ppp, ip].concat(),
        178 => juniper(frame),
        179 => juniper(&[&ppp, ip].concat()),
        180 => juniper(&frame_relay),
        181 => juniper(&hdlc),
        192 => [&[0, 0, 8, 0, 105, 0, 0, 0][..], &wifi].concat(),
        197 => {
            // Ethernet with an extension header.
            let [record, wire] = [16 + 8 + 2 + frame.len() as u16, frame.len() as u16].map(u16::to_be_bytes);
            let header = [&[1, 2, 3, 4, 0, 0, 0, 0x60, 0x82, 4][..], &record, &[0, 0], &wire].concat();
            [&header[..], &[5; 8], &[0, 0], frame].concat()
        }
        204 => [&[1, 0xff, 3][..], &ppp, ip].concat(),
        205 => [&[1][..], &hdlc].concat(),
        206 => [&[1][..], &frame_relay].concat(),
        219 => [&[0, 1, 1, 64][..], ip].concat(),
        226 => [&[2, if is_v6 { 26 } else { 2 }][..], &[1; 22], ip].concat(),
        239 => {
            let payload = (4 + ip.len() as u16).to_le_bytes();
            let header = [if is_v6 { 10 } else { 2 }, 0, 0, 1, 8, 0, 1, 0, 8, 0, 0, 0, 6, 0, 10, 0, b'x', 0, 0, 0];
            [&header[..], &payload, &[9, 0], ip].concat()
        }
        240 => [&[1; 4][..], frame].concat(),
        241 => [&[1; 4][..], &PREAMBLE, frame].concat(),
        242 => [&[1; 40][..], kind, &[0, 0], ip].concat(),
        274 => [&PREAMBLE[..], frame].concat(),
        276 => [kind, &[0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0], ip].concat(),
        281 | 284 => [addresses, &[0x40, 1, 0, 1], kind, ip].concat(),
        282 => [&[0x40, 1, 0, 1][..], frame].concat(),
        285 => [addresses, &[0xda, 0xda, 0, 0, 0x40, 1, 0, 1], kind, ip].concat(),
        other => panic!("link type {other} is not built"),
    }
}

const PREAMBLE: [u8; 8] = [0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xd5];

/// Builds the header of an 802.11 frame from the frame control, with three or four addresses. `more` is the control field
/// for quality of service with everything after it.
fn wifi(control: &[u8; 2], four: bool, more: &[u8]) -> Vec<u8> {
    let addresses = [[2, 0, 0, 0, 9, 1], [2, 0, 0, 0, 9, 2], [2, 0, 0, 0, 9, 3]].concat();
    let fourth: &[u8] = if four { &[2, 0, 0, 0, 9, 4] } else { &[] };
    [control, &[44, 0][..], &addresses, &[0x30, 0x12], fourth, more].concat()
}

fn snap(ether_type: u16) -> Vec<u8> {
    [&[0xaa, 0xaa, 3, 0, 0, 0][..], &ether_type.to_be_bytes()].concat()
}

pub(crate) const IPV4: u16 = 0x0800;
pub(crate) const IPV6: u16 = 0x86dd;

pub(crate) fn ethernet(kind: u16, payload: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 9, 2, 2, 0, 0, 0, 9, 1][..], &kind.to_be_bytes(), payload].concat()
}

fn ipv4_part(protocol: u8, id: u16, offset: usize, more: bool, payload: &[u8]) -> Vec<u8> {
    let total = ((20 + payload.len()) as u16).to_be_bytes();
    let place = ((offset / 8) as u16 | if more { 0x2000 } else { 0 }).to_be_bytes();
    let [id0, id1] = id.to_be_bytes();
    let header = [0x45, 0, total[0], total[1], id0, id1, place[0], place[1], 61, protocol, 0, 0];
    [&header[..], &[192, 0, 2, 1, 192, 0, 2, 2], payload].concat()
}

pub(crate) fn ipv4(protocol: u8, id: u16, payload: &[u8]) -> Vec<u8> {
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

pub(crate) fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let length = (8 + payload.len() as u16).to_be_bytes();
    [&[0xc0, 0x01][..], &port.to_be_bytes(), &length, &[0, 0], payload].concat()
}

fn vxlan(port: u16, frame: &[u8]) -> Vec<u8> {
    udp(port, &[&[8, 0, 0, 0, 0, 0x12, 0x34, 0], frame].concat())
}

pub(crate) fn gre(flags: u16, protocol: u16, words: &[u8], payload: &[u8]) -> Vec<u8> {
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
