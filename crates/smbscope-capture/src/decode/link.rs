//! Link layers: locates the IP header in a packet. Link types are from the tcpdump.org registry.

use super::fields::{Enclosure, Fields, Layer, Stays, be16, read8, read16};
use super::pseudo_header;
use smbscope_model::SkippedProtocol;

/// Headers of capture systems around each other; more: `skipped`.
const MAX_PSEUDO_HEADERS: usize = 4;
/// Tags and labels before IP; more: `malformed_packets`.
const MAX_TAGS: usize = 16;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const ARP: u16 = 0x0806;
const VLAN: u16 = 0x8100;
const PROVIDER_BRIDGING: u16 = 0x88a8;
const OLD_QINQ: [u16; 3] = [0x9100, 0x9200, 0x9300];
const MPLS: [u16; 2] = [0x8847, 0x8848];
const PPPOE_SESSION: u16 = 0x8864;
/// Provider backbone bridging (IEEE 802.1ah): a service tag of four bytes, then the customer's frame.
const BACKBONE_SERVICE: u16 = 0x88e7;
/// Transparent Ethernet bridging (RFC 1701 and its successors): a whole frame.
const BRIDGED_ETHERNET: u16 = 0x6558;
/// VN-Tag (predecessor of IEEE 802.1BR, on Cisco fabric extenders): four bytes, then the next EtherType.
const VN_TAG: u16 = 0x8926;
/// Cisco metadata with a security group tag.
const CISCO_SGT: u16 = 0x8909;
/// IEEE 802.1AE; read without encryption.
const MACSEC: u16 = 0x88e5;
/// Network service header (RFC 8300).
const NSH: u16 = 0x894f;
const FABRIC_PATH: u16 = 0x8903;
/// RFC 6325.
const TRILL: u16 = 0x22f3;
/// Redundancy tag (IEC 62439-3).
const HSR: u16 = 0x892f;
/// IEEE 802.1BR.
const E_TAG: u16 = 0x893f;
/// Marvell switch tag with an EtherType.
const EDSA: u16 = 0xdada;
/// Timestamp of a tap aggregator.
const ARISTA: u16 = 0xd28b;
/// Replacement for the first byte of a hidden address in a pseudowire: must look like neither a control word nor IP.
const HIDDEN_ADDRESS: u8 = 0x10;
pub(super) const ETHERNET_HEADER: usize = 14;

/// Headers between the link layer and IP.
pub const ETHER_TYPES: &[(u16, &str)] = &[
    (TRILL, "TRILL"),
    (BRIDGED_ETHERNET, "Ethernet in Ethernet"),
    (VLAN, "VLAN (802.1Q)"),
    (MPLS[0], "MPLS, also around Ethernet"),
    (MPLS[1], "MPLS"),
    (PPPOE_SESSION, "PPPoE session"),
    (PROVIDER_BRIDGING, "VLAN (802.1ad)"),
    (MACSEC, "MACsec without encryption"),
    (BACKBONE_SERVICE, "provider backbone bridging (802.1ah)"),
    (FABRIC_PATH, "Cisco FabricPath"),
    (CISCO_SGT, "Cisco metadata, security group tag"),
    (VN_TAG, "VN-Tag"),
    (HSR, "HSR"),
    (E_TAG, "E-Tag (802.1BR)"),
    (NSH, "network service header"),
    (OLD_QINQ[0], "QinQ"),
    (OLD_QINQ[1], "QinQ"),
    (OLD_QINQ[2], "QinQ"),
    (ARISTA, "Arista timestamp"),
    (EDSA, "Marvell switch tag"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peeled {
    /// IP header at the offset. The version comes from the outer layer; `None` means from the header itself.
    Ip {
        offset: usize,
        version: Option<u8>,
    },
    Other(SkippedProtocol),
    Malformed,
}

/// Link types that are read, with the name in the registry of tcpdump.org. Systems write 12 and 14 for raw IP, 11 for
/// RFC 1483, and 149 for PKTAP.
pub const LINK_TYPES: &[(u32, &str)] = &[
    (0, "BSD loopback"),
    (1, "Ethernet"),
    (6, "token ring"),
    (8, "SLIP"),
    (9, "PPP"),
    (10, "FDDI"),
    (11, "ATM with LLC (RFC 1483)"),
    (12, "raw IP"),
    (14, "raw IP"),
    (50, "PPP in HDLC framing"),
    (51, "PPPoE"),
    (100, "ATM with LLC (RFC 1483)"),
    (101, "raw IP"),
    (104, "Cisco HDLC"),
    (105, "802.11"),
    (106, "IP over ATM (RFC 2225)"),
    (107, "Frame Relay"),
    (108, "OpenBSD loopback"),
    (109, "OpenBSD enc"),
    (113, "Linux cooked"),
    (117, "pflog"),
    (119, "802.11 with Prism header"),
    (122, "IP over Fibre Channel (RFC 2625)"),
    (123, "SunATM"),
    (127, "802.11 with radiotap"),
    (138, "IP over IEEE 1394"),
    (149, "PKTAP on macOS (private use)"),
    (163, "802.11 with AVS header"),
    (166, "PPP with direction, pppd"),
    (178, "Juniper Ethernet"),
    (179, "Juniper PPP"),
    (180, "Juniper Frame Relay"),
    (181, "Juniper Cisco HDLC"),
    (192, "PPI"),
    (197, "Endace ERF"),
    (204, "PPP with direction"),
    (205, "Cisco HDLC with direction"),
    (206, "Frame Relay with direction"),
    (219, "MPLS"),
    (226, "Solaris ipnet"),
    (228, "IPv4"),
    (229, "IPv6"),
    (239, "Linux NFLOG"),
    (240, "netANALYZER"),
    (241, "netANALYZER with preamble"),
    (242, "IP over InfiniBand"),
    (258, "PKTAP"),
    (274, "Ethernet mPackets (802.3br)"),
    (276, "Linux cooked v2"),
    (281, "Ethernet with Broadcom switch tag"),
    (282, "Ethernet after Broadcom switch tag"),
    (284, "Ethernet with Marvell DSA tag"),
    (285, "Ethernet with Marvell EDSA tag"),
];

#[inline]
pub(super) fn peel<F: Fields>(link_type: u32, data: &[u8], fields: &mut F) -> Peeled {
    let peeled = match link_type {
        1 => Some(ethernet(data, 0, fields)),
        // Linux cooked capture v1 and v2.
        113 => {
            fields.pass(Enclosure::Link(link_type));
            read16(data, 14, fields).map(|protocol| protocols(data, 16, protocol, fields))
        }
        276 => {
            fields.pass(Enclosure::Link(link_type));
            read16(data, 0, fields).map(|protocol| protocols(data, 20, protocol, fields))
        }
        12 | 14 | 101 => Some(Peeled::Ip { offset: 0, version: None }),
        228 => Some(Peeled::Ip { offset: 0, version: Some(4) }),
        229 => Some(Peeled::Ip { offset: 0, version: Some(6) }),
        other => peel_at(other, data, 0, fields),
    };
    peeled.unwrap_or(Peeled::Malformed)
}

/// Peels a link type that is rare, contains another one, or begins at an offset.
#[cold]
pub(super) fn peel_at<F: Fields>(mut link_type: u32, data: &[u8], mut offset: usize, fields: &mut F) -> Option<Peeled> {
    for _ in 0..MAX_PSEUDO_HEADERS {
        let layer;
        if !matches!(link_type, 1 | 12 | 14 | 101 | 228 | 229) {
            fields.pass(Enclosure::Link(link_type));
        }
        (layer, offset) = inner(link_type, data, offset, fields)?;
        return Some(match layer {
            Layer::Link(1) | Layer::Ethernet => ethernet(data, offset, fields),
            Layer::Link(inner) => {
                link_type = inner;
                continue;
            }
            Layer::EtherType(kind) => protocols(data, offset, kind, fields),
            Layer::LogicalLink => protocols(data, offset, 0, fields),
            Layer::Ip(version) => Peeled::Ip { offset, version },
            Layer::Ppp => ppp(data, offset, fields),
            Layer::Mpls => mpls(data, offset, fields),
            Layer::Skipped(protocol) => Peeled::Other(protocol),
        });
    }
    Some(Peeled::Other(SkippedProtocol::NestedTunnels))
}

/// Returns the layer inside a link type and its offset. `None` if the header is cut off or damaged.
fn inner<F: Fields>(link_type: u32, data: &[u8], at: usize, fields: &mut F) -> Option<(Layer, usize)> {
    let ether_type = |place: usize, fields: &mut F| Some((Layer::EtherType(read16(data, place, fields)?), place + 2));
    Some(match link_type {
        0 | 108 => pseudo_header::loopback(data, at, 4, fields)?,
        // FDDI: frame control and addresses.
        10 => (Layer::LogicalLink, at + 13),
        6 => (Layer::LogicalLink, token_ring(data, at, fields)?),
        8 => (Layer::Ip(None), at + 16),
        9 | 50 => (Layer::Ppp, at),
        11 | 100 | 106 => (Layer::LogicalLink, at),
        12 | 14 | 101 => (Layer::Ip(None), at),
        51 => (Layer::EtherType(PPPOE_SESSION), at),
        104 => ether_type(at + 2, fields)?,
        205 => ether_type(at + 3, fields)?,
        105 => pseudo_header::wifi_frame(data, at, false, fields)?,
        107 => frame_relay(data, at, fields)?,
        206 => frame_relay(data, at + 1, fields)?,
        109 => pseudo_header::loopback(data, at, 12, fields)?,
        113 => ether_type(at + 14, fields)?,
        117 => pseudo_header::pflog(data, at, fields)?,
        119 | 163 => pseudo_header::prism_or_avs(data, at, fields)?,
        122 => (Layer::LogicalLink, at + 16),
        // The lower half of the first byte is 2 for LLC.
        123 => match read8(data, at, 0x0f, fields)? & 0x0f {
            2 => (Layer::LogicalLink, at + 4),
            _ => (Layer::Skipped(SkippedProtocol::LinkType(link_type)), at),
        },
        127 => pseudo_header::radiotap(data, at, fields)?,
        138 => ether_type(at + 16, fields)?,
        149 | 258 => pseudo_header::pktap(link_type, data, at, fields)?,
        // A direction, and a control byte of PPP in HDLC framing without its address byte.
        166 => (Layer::Ppp, at + 1 + usize::from(read8(data, at + 1, 0xff, fields)? == 3)),
        204 => (Layer::Ppp, at + 1),
        178..=181 => pseudo_header::juniper(link_type, data, at, fields)?,
        192 => pseudo_header::ppi(data, at, fields)?,
        197 => pseudo_header::erf(data, at, fields)?,
        219 => (Layer::Mpls, at),
        226 => pseudo_header::ipnet(data, at, fields)?,
        228 => (Layer::Ip(Some(4)), at),
        229 => (Layer::Ip(Some(6)), at),
        239 => pseudo_header::nflog(data, at, fields)?,
        240 => (Layer::Ethernet, at + 4),
        241 => (Layer::Ethernet, at + 12),
        // The header of RFC 4391, after 40 bytes with global addresses.
        242 => {
            let kind = read16(data, at + 40, fields)?;
            (Layer::EtherType(kind), at + 44)
        }
        // Seven bytes of preamble and a delimiter: of a whole frame, or of the start of a preemptable one.
        274 => match read8(data, at + 7, 0xff, fields)? {
            0xd5 | 0xe6 | 0x4c | 0x7f | 0xb3 => (Layer::Ethernet, at + 8),
            _ => (Layer::Skipped(SkippedProtocol::LinkType(link_type)), at),
        },
        276 => {
            let kind = read16(data, at, fields)?;
            (Layer::EtherType(kind), at + 20)
        }
        281 | 284 => ether_type(at + 16, fields)?,
        282 => (Layer::Ethernet, at + 4),
        285 => ether_type(at + 20, fields)?,
        other => (Layer::Skipped(SkippedProtocol::LinkType(other)), at),
    })
}

/// Returns the offset after the addresses and, if the source address has its first bit set, the source route.
fn token_ring<F: Fields>(data: &[u8], at: usize, fields: &mut F) -> Option<usize> {
    let is_routed = read8(data, at + 8, 0x80, fields)? & 0x80 != 0;
    let route = if is_routed { usize::from(read8(data, at + 14, 0x1f, fields)? & 0x1f) } else { 0 };
    Some(at + 14 + route)
}

/// Parses Frame Relay: an address of two to four bytes, then RFC 2427, or an EtherType (Cisco).
fn frame_relay<F: Fields>(data: &[u8], at: usize, fields: &mut F) -> Option<(Layer, usize)> {
    const UNNUMBERED: u8 = 3;
    let mut control = at + 1;
    // The last byte of the address has its lowest bit set.
    for byte in at..at + 4 {
        control = byte + 1;
        if read8(data, byte, 1, fields)? & 1 != 0 {
            break;
        }
    }
    if read8(data, control, 0xff, fields)? != UNNUMBERED {
        return Some((Layer::EtherType(read16(data, control, fields)?), control + 2));
    }
    let is_padded = read8(data, control + 1, 0xff, fields)? == 0;
    let kind_at = control + 1 + usize::from(is_padded);
    Some(match read8(data, kind_at, 0xff, fields)? {
        0xcc => (Layer::Ip(Some(4)), kind_at + 1),
        0x8e => (Layer::Ip(Some(6)), kind_at + 1),
        0xcf => (Layer::Ppp, kind_at + 1),
        // SNAP without the LLC header.
        0x80 => {
            fields.enter(data.get(kind_at + 1..kind_at + 4), Stays::Whole);
            let organization = data.get(kind_at + 1..kind_at + 4)?;
            let kind = read16(data, kind_at + 4, fields)?;
            snap(organization, kind, kind_at + 6)
        }
        _ => (Layer::Skipped(SkippedProtocol::LinkType(107)), at),
    })
}

/// Interprets a SNAP header: an EtherType, or a bridged frame (RFC 2684, 2427), possibly after two bytes of padding.
fn snap(organization: &[u8], kind: u16, at: usize) -> (Layer, usize) {
    match (organization, kind) {
        ([0, 0, 0] | [0, 0, 0xf8], kind) => (Layer::EtherType(kind), at),
        ([0, 0x80, 0xc2], 1 | 7) => (Layer::Ethernet, at),
        _ => (Layer::Skipped(SkippedProtocol::LogicalLink(0xaa)), at),
    }
}

#[inline]
pub(super) fn ethernet<F: Fields>(data: &[u8], offset: usize, fields: &mut F) -> Peeled {
    match read16(data, offset + ETHERNET_HEADER - 2, fields) {
        Some(kind) => protocols(data, offset + ETHERNET_HEADER, kind, fields),
        None => Peeled::Malformed,
    }
}

pub(super) fn protocols<F: Fields>(data: &[u8], mut offset: usize, mut kind: u16, fields: &mut F) -> Peeled {
    for _ in 0..MAX_TAGS {
        match kind {
            IPV4 => return Peeled::Ip { offset, version: Some(4) },
            IPV6 => return Peeled::Ip { offset, version: Some(6) },
            // A length, not an EtherType.
            ..0x0600 => {}
            tag => fields.pass(Enclosure::EtherType(tag)),
        }
        let (next, length) = match kind {
            VLAN | PROVIDER_BRIDGING => (read16(data, offset + 2, fields), 4),
            _ if OLD_QINQ.contains(&kind) => (read16(data, offset + 2, fields), 4),
            VN_TAG => (read16(data, offset + 4, fields), 6),
            BACKBONE_SERVICE => {
                let frame = 4 + ETHERNET_HEADER;
                (read16(data, offset + frame - 2, fields), frame)
            }
            BRIDGED_ETHERNET => (read16(data, offset + ETHERNET_HEADER - 2, fields), ETHERNET_HEADER),
            PPPOE_SESSION => {
                // Version, type, code and length, but not the session ID.
                fields.enter(data.get(offset..offset + 2), Stays::Whole);
                fields.enter(data.get(offset + 4..offset + 6), Stays::Whole);
                return ppp(data, offset + 6, fields);
            }
            _ if MPLS.contains(&kind) => return mpls(data, offset, fields),
            // A length, followed by IEEE 802.2: IP requires a SNAP header.
            ..0x0600 => match data.get(offset..offset + 8) {
                Some(header @ [0xaa, 0xaa, 0x03, organization @ .., high, low]) => {
                    fields.enter(Some(header), Stays::Whole);
                    match snap(organization, u16::from_be_bytes([*high, *low]), offset + 8) {
                        (Layer::EtherType(next), _) => (Some(next), 8),
                        (Layer::Ethernet, frame) => bridged(data, frame, offset, fields),
                        _ => return Peeled::Other(SkippedProtocol::LogicalLink(0xaa)),
                    }
                }
                _ => match read8(data, offset, 0xff, fields) {
                    // The rest of SNAP is cut off.
                    Some(0xaa) if data.len() < offset + 8 => return Peeled::Malformed,
                    Some(service) => return Peeled::Other(SkippedProtocol::LogicalLink(service)),
                    None => return Peeled::Malformed,
                },
            },
            _ => match tag(kind, data, offset, fields) {
                Some(Tag::EtherType(place)) => (read16(data, place, fields), place + 2 - offset),
                Some(Tag::Frame(place)) => {
                    (read16(data, place + ETHERNET_HEADER - 2, fields), place + ETHERNET_HEADER - offset)
                }
                Some(Tag::Is(next, place)) => (Some(next), place - offset),
                Some(Tag::Unknown) => return Peeled::Other(SkippedProtocol::EtherType(kind)),
                None => return Peeled::Malformed,
            },
        };
        let Some(next) = next else { return Peeled::Malformed };
        (kind, offset) = (next, offset + length);
    }
    Peeled::Malformed
}

/// Position of the layer inside a tag.
enum Tag {
    /// The EtherType is at this offset, followed by the payload.
    EtherType(usize),
    Frame(usize),
    /// The payload is at this offset and has this EtherType.
    Is(u16, usize),
    Unknown,
}

/// Parses tags of switches and data centres. `None` if the tag is cut off.
#[cold]
fn tag<F: Fields>(kind: u16, data: &[u8], offset: usize, fields: &mut F) -> Option<Tag> {
    Some(match kind {
        // Version, length in words, options.
        CISCO_SGT => Tag::EtherType(offset + 2 + 4 * usize::from(read8(data, offset + 1, 0x0f, fields)? & 0x0f)),
        MACSEC => {
            const EXPLICIT_CHANNEL: u8 = 0x20;
            const ENCRYPTED: u8 = 0x08;
            let control = read8(data, offset, EXPLICIT_CHANNEL | ENCRYPTED, fields)?;
            match (control & ENCRYPTED != 0, control & EXPLICIT_CHANNEL != 0) {
                (true, _) => Tag::Unknown,
                (false, channel) => Tag::EtherType(offset + if channel { 14 } else { 6 }),
            }
        }
        NSH => {
            let payload = offset + 4 * usize::from(read8(data, offset + 1, 0x3f, fields)? & 0x3f);
            match read8(data, offset + 3, 0xff, fields)? {
                _ if payload < offset + 8 => return None,
                1 => Tag::Is(IPV4, payload),
                2 => Tag::Is(IPV6, payload),
                3 => Tag::Frame(payload),
                4 => Tag::Is(NSH, payload),
                5 => Tag::Is(MPLS[0], payload),
                _ => Tag::Unknown,
            }
        }
        FABRIC_PATH => Tag::Frame(offset + 2),
        TRILL => {
            // Version, a flag, and five bits with the length of the options in words.
            let options = (read16(data, offset, fields)? >> 6) & 0x1f;
            Tag::Frame(offset + 6 + 4 * usize::from(options))
        }
        HSR => Tag::EtherType(offset + 4),
        E_TAG | EDSA => Tag::EtherType(offset + 6),
        // Subtype, version, and a timestamp of six or eight bytes.
        ARISTA => Tag::EtherType(offset + if read16(data, offset + 2, fields)? & 0x20 != 0 { 10 } else { 12 }),
        _ => Tag::Unknown,
    })
}

/// Reads the EtherType of a bridged frame at `frame`, or after two bytes of padding (RFC 2684), and its distance.
fn bridged<F: Fields>(data: &[u8], frame: usize, offset: usize, fields: &mut F) -> (Option<u16>, usize) {
    let is_padded = !is_ethernet(data, frame) && is_ethernet(data, frame + 2);
    if !is_padded && !is_ethernet(data, frame) && data.len() <= frame + 2 + ETHERNET_HEADER {
        // The bytes that would decide are cut off.
        return (None, 0);
    }
    let start = if is_padded { frame + 2 } else { frame } + ETHERNET_HEADER;
    (read16(data, start - 2, fields), start - offset)
}

/// Parses PPP (RFC 1661), with or without address and control fields, with a protocol field of one or two bytes.
pub(super) fn ppp<F: Fields>(data: &[u8], offset: usize, fields: &mut F) -> Peeled {
    let control = data.get(offset..offset + 2).filter(|control| *control == [0xff, 0x03]);
    fields.enter(control, Stays::Whole);
    let start = if control.is_some() { offset + 2 } else { offset };
    let (protocol, length) = match (data.get(start), be16(data, start)) {
        // An address without its control field.
        (Some(0xff), None) => return Peeled::Malformed,
        (Some(short), _) if short & 1 == 1 => (u16::from(*short), 1),
        (_, Some(protocol)) => (protocol, 2),
        _ => return Peeled::Malformed,
    };
    fields.enter(data.get(start..start + length), Stays::Whole);
    let offset = start + length;
    match protocol {
        0x0021 => Peeled::Ip { offset, version: Some(4) },
        0x0057 => Peeled::Ip { offset, version: Some(6) },
        0x0281 | 0x0283 => mpls(data, offset, fields),
        other => Peeled::Other(SkippedProtocol::Ppp(other)),
    }
}

/// Skips the label stack (RFC 3032). Only the contents reveal what follows: IP, by its version, or the Ethernet frame
/// of a pseudowire, with or without a control word (RFC 4385, first four bits zero).
pub(super) fn mpls<F: Fields>(data: &[u8], mut offset: usize, fields: &mut F) -> Peeled {
    for _ in 0..MAX_TAGS {
        let Some(entry) = data.get(offset..offset + 4) else { return Peeled::Malformed };
        offset += 4;
        fields.enter(entry.get(2..3), Stays::Bits(1));
        if entry[2] & 1 == 0 {
            continue;
        }
        // An Ethernet address may start like IP or like a control word, so the whole interpretation has to fit.
        let reading = match data.get(offset).map(|byte| byte >> 4) {
            Some(0) => [Some(offset + 4), Some(offset)].into_iter().flatten().find(|at| is_ethernet(data, *at)),
            Some(version @ (4 | 6)) if !is_ethernet(data, offset) => {
                return Peeled::Ip { offset, version: Some(version) };
            }
            Some(_) => Some(offset).filter(|at| is_ethernet(data, *at)),
            None => return Peeled::Malformed,
        };
        if reading == Some(offset) && data.get(offset).is_some_and(|byte| byte >> 4 != 0) {
            // The hidden address must not start like a control word.
            fields.enter(data.get(offset..offset + 1), Stays::As(HIDDEN_ADDRESS));
        }
        return match reading {
            Some(at) => ethernet(data, at, fields),
            // The bytes that would decide are cut off.
            None if data.len() <= offset + 4 + ETHERNET_HEADER => Peeled::Malformed,
            None => Peeled::Other(SkippedProtocol::Mpls),
        };
    }
    Peeled::Malformed
}

/// Returns true if the frame at `at` leads through VLAN tags only to ARP, or to IP of the matching version.
pub(super) fn is_ethernet(data: &[u8], at: usize) -> bool {
    let mut kind_at = at + ETHERNET_HEADER - 2;
    for _ in 0..MAX_TAGS {
        let version = data.get(kind_at + 2).map(|byte| byte >> 4);
        match be16(data, kind_at) {
            Some(VLAN | PROVIDER_BRIDGING) => kind_at += 4,
            Some(IPV4) => return version == Some(4),
            Some(IPV6) => return version == Some(6),
            kind => return kind == Some(ARP),
        }
    }
    false
}
