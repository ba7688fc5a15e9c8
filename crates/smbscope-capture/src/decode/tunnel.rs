//! Tunnels over IP: finds the start of the inner packet in the payload of an IP packet.
//!
//! Traffic of mirror ports and virtual networks arrives in these: VXLAN (RFC 7348) and its generic extension, GENEVE
//! (RFC 8926), GRE (RFC 2784, 2890, and PPTP's version, RFC 2637), ERSPAN I to III in GRE (draft-foschiano-erspan), IP
//! in IP (RFC 2003, 2473, 4213), EtherIP (RFC 3378), MPLS in IP, UDP and GRE (RFC 4023, 7510), GRE in UDP (RFC 8086),
//! L2TP (RFC 2661, 3931), GTP-U (3GPP TS 29.281), CAPWAP (RFC 5415), TZSP and redirected packets (WCCP). The IP
//! authentication header (RFC 4302) is skipped as well.
//!
//! VXLAN, GENEVE, GUE and IP are also found on other UDP ports, if their header is plausible and the headers of IP and
//! TCP inside fit: version, lengths and checksum.

use super::fields::{Fields, Stays, be16, read8, read16};
use super::ip::{self, IpPacket};
use super::link::{self, ETHERNET_HEADER, Peeled};
use super::tcp;
use smbscope_model::SkippedProtocol;

const IPV4: u8 = 4;
const UDP: u8 = 17;
const IPV6: u8 = 41;
const GRE: u8 = 47;
const ETHERIP: u8 = 97;
const L2TP: u8 = 115;
const MPLS: u8 = 137;

/// Tunnels with a UDP port of their own.
pub const TUNNEL_PORTS: &[(u16, &str)] = &[
    (L2TP_PORT, "L2TP"),
    (GTP_USER, "GTP-U"),
    (GRE_IN_UDP, "GRE in UDP"),
    (VXLAN, "VXLAN"),
    (VXLAN_GENERIC, "VXLAN-GPE"),
    (CAPWAP, "CAPWAP"),
    (GENEVE, "GENEVE"),
    (MPLS_IN_UDP, "MPLS in UDP"),
    (VXLAN_LINUX, "VXLAN"),
    (TZSP, "TZSP"),
];

const L2TP_PORT: u16 = 1701;
const GTP_USER: u16 = 2152;
const GRE_IN_UDP: u16 = 4754;
const VXLAN: u16 = 4789;
const VXLAN_LINUX: u16 = 8472;
const VXLAN_GENERIC: u16 = 4790;
const CAPWAP: u16 = 5247;
const GENEVE: u16 = 6081;
const MPLS_IN_UDP: u16 = 6635;
const TZSP: u16 = 37008;

const ERSPAN_I_II: u16 = 0x88be;
const ERSPAN_III: u16 = 0x22eb;
const PPP: u16 = 0x880b;
/// Packets that a router redirects to a cache (WCCP).
const WCCP: u16 = 0x883e;
const ERSPAN_VERSION: u8 = 0xf0;

/// GTP-U extensions, or TZSP fields; more: `malformed_packets`.
const MAX_OPTIONS: usize = 32;

/// Bytes after an inner packet: padding, a checksum, a timestamp.
const MAX_PADDING: usize = 64;

/// Returns true if a fragmented datagram must be reassembled to see its contents.
pub(super) fn is_tunnel(protocol: u8) -> bool {
    matches!(protocol, IPV4 | UDP | IPV6 | GRE | ETHERIP | L2TP | MPLS)
}

pub(super) fn peel<F: Fields>(datagram: &IpPacket<'_>, fields: &mut F) -> Peeled {
    let data = datagram.payload;
    let peeled = match datagram.protocol {
        IPV4 => Some(Peeled::Ip { offset: 0, version: Some(4) }),
        IPV6 => Some(Peeled::Ip { offset: 0, version: Some(6) }),
        GRE => gre(data, 0, fields),
        UDP => udp(data, datagram.payload_length as usize, fields),
        L2TP => l2tp_over_ip(data, fields),
        MPLS => Some(link::mpls(data, 0, fields)),
        // The version, 3, is in the upper four bits; the rest is zero.
        ETHERIP if read8(data, 0, 0xf0, fields).is_none_or(|byte| byte >> 4 == 3) => {
            Some(link::ethernet(data, 2, fields))
        }
        other => Some(Peeled::Other(SkippedProtocol::IpProtocol(other))),
    };
    peeled.unwrap_or(Peeled::Malformed)
}

fn gre<F: Fields>(data: &[u8], start: usize, fields: &mut F) -> Option<Peeled> {
    let flags = u16::from_be_bytes([read8(data, start, 0xf0, fields)?, read8(data, start + 1, 0x87, fields)?]);
    let protocol = read16(data, start + 2, fields)?;
    let word = |flag: u16| if flags & flag != 0 { 4 } else { 0 };
    const CHECKSUM: u16 = 0x8000;
    const ROUTING: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    // Only in PPTP's version.
    const ACKNOWLEDGMENT: u16 = 0x0080;
    let unread = Peeled::Other(SkippedProtocol::Gre(protocol));
    match flags & 7 {
        0 => {
            if flags & ROUTING != 0 {
                // Source routes (RFC 1701), which are never used.
                return Some(unread);
            }
            let offset = start + 4 + word(CHECKSUM) + word(KEY) + word(SEQUENCE);
            Some(match protocol {
                // A keep-alive, without payload.
                0 => unread,
                // Type I has no header of its own, and its GRE header has no sequence number.
                ERSPAN_I_II if flags & SEQUENCE == 0 => link::ethernet(data, offset, fields),
                ERSPAN_I_II => {
                    read8(data, offset, ERSPAN_VERSION, fields);
                    link::ethernet(data, offset + 8, fields)
                }
                ERSPAN_III => erspan_iii(data, offset, fields)?,
                PPP => link::ppp(data, offset, fields),
                WCCP => {
                    // Four bytes, which the first version lacks, begin with flags.
                    let is_second = read8(data, offset, 0xf0, fields)? >> 4 != 4;
                    Peeled::Ip { offset: if is_second { offset + 4 } else { offset }, version: None }
                }
                _ => match link::protocols(data, offset, protocol, fields) {
                    Peeled::Other(SkippedProtocol::EtherType(_)) => unread,
                    peeled => peeled,
                },
            })
        }
        1 if protocol == PPP => Some(link::ppp(data, start + 8 + word(SEQUENCE) + word(ACKNOWLEDGMENT), fields)),
        _ => Some(unread),
    }
}

/// Parses an ERSPAN type III header of 12 bytes, which says whether 8 more bytes precede the frame.
fn erspan_iii<F: Fields>(data: &[u8], start: usize, fields: &mut F) -> Option<Peeled> {
    read8(data, start, ERSPAN_VERSION, fields);
    let last = u16::from_be_bytes([read8(data, start + 10, 0x7c, fields)?, read8(data, start + 11, 1, fields)?]);
    let offset = start + 12 + if last & 1 != 0 { 8 } else { 0 };
    Some(match last >> 10 & 0x1f {
        2 => Peeled::Ip { offset, version: None },
        _ => link::ethernet(data, offset, fields),
    })
}

fn udp<F: Fields>(data: &[u8], length: usize, fields: &mut F) -> Option<Peeled> {
    let (source, port) = (read16(data, 0, fields)?, read16(data, 2, fields)?);
    // Length.
    fields.enter(data.get(4..6), Stays::Whole);
    let is_named = |port: u16| SkippedProtocol::UdpPort(port).name().is_some();
    let service = match (is_named(source), is_named(port)) {
        (true, false) => source,
        (false, true) => port,
        _ => source.min(port),
    };
    let unread = Peeled::Other(SkippedProtocol::UdpPort(service));
    const START: usize = 8;
    Some(match port {
        // Flag for a valid network identifier.
        VXLAN | VXLAN_LINUX if read8(data, START, 0x08, fields)? & 0x08 != 0 => link::ethernet(data, START + 8, fields),
        VXLAN_GENERIC => match read8(data, START + 3, 0xff, fields)? {
            1 => Peeled::Ip { offset: START + 8, version: Some(4) },
            2 => Peeled::Ip { offset: START + 8, version: Some(6) },
            3 => link::ethernet(data, START + 8, fields),
            5 => link::mpls(data, START + 8, fields),
            _ => unread,
        },
        GENEVE if read8(data, START, 0xff, fields)? >> 6 == 0 => {
            let options = usize::from(data.get(START)? & 0x3f) * 4;
            let protocol = read16(data, START + 2, fields)?;
            match link::protocols(data, START + 8 + options, protocol, fields) {
                Peeled::Other(SkippedProtocol::EtherType(_)) => unread,
                peeled => peeled,
            }
        }
        GTP_USER => match gtp_user(data, START, fields)? {
            Some(offset) => Peeled::Ip { offset, version: None },
            None => unread,
        },
        MPLS_IN_UDP => link::mpls(data, START, fields),
        GRE_IN_UDP => gre(data, START, fields)?,
        TZSP => match tzsp(data, START, fields)? {
            Some((1, offset)) => link::ethernet(data, offset, fields),
            Some((link_type, offset)) => link::peel_at(link_type, data, offset, fields)?,
            None => unread,
        },
        L2TP_PORT => l2tp(data, START, fields)?.unwrap_or(unread),
        CAPWAP => capwap(data, START, fields)?.unwrap_or(unread),
        _ => by_content(data, length, fields).unwrap_or(unread),
    })
}

/// Finds tunnels on any port. `length` is the datagram's on the wire.
fn by_content<F: Fields>(data: &[u8], length: usize, fields: &mut F) -> Option<Peeled> {
    const START: usize = 8;
    let header = data.get(START..START + 8)?;
    let frame = START + 8;
    let options = usize::from(header[0] & 0x3f) * 4;
    let found = match *header {
        // VXLAN: a network identifier, and perhaps a group (draft-smith-vxlan-group-policy).
        [0x08, 0, 0, 0, _, _, _, 0] | [0x88, _, _, _, _, _, _, 0] if frame_holds_tcp(data, frame, length) => {
            link::ethernet(data, frame, fields)
        }
        // The generic extension, with the next protocol.
        [0x0c, 0, 0, 3, _, _, _, _] if frame_holds_tcp(data, frame, length) => link::ethernet(data, frame, fields),
        [0x0c, 0, 0, 1 | 2, _, _, _, _] if ip_holds_tcp(data, frame, length) => {
            Peeled::Ip { offset: frame, version: None }
        }
        // GENEVE: version 0, options, an EtherType.
        [0..=0x3f, 0 | 0x40 | 0x80, 0x65, 0x58, _, _, _, 0] if frame_holds_tcp(data, frame + options, length) => {
            link::ethernet(data, frame + options, fields)
        }
        [0..=0x3f, 0 | 0x40 | 0x80, 0x08, 0x00, _, _, _, 0] | [0..=0x3f, 0 | 0x40 | 0x80, 0x86, 0xdd, _, _, _, 0]
            if ip_holds_tcp(data, frame + options, length) =>
        {
            Peeled::Ip { offset: frame + options, version: None }
        }
        // GUE of version 0 (draft-ietf-intarea-gue): length of the options in words, IP protocol, flags.
        [0..=0x1f, IPV4 | IPV6, ..] => {
            let offset = START + 4 + usize::from(header[0]) * 4;
            if !ip_holds_tcp(data, offset, length) {
                return None;
            }
            Peeled::Ip { offset, version: None }
        }
        // IP without a header: GUE of version 1, or foo over UDP of Linux.
        [0x45..=0x4f | 0x60..=0x6f, ..] if ip_holds_tcp(data, START, length) => {
            Peeled::Ip { offset: START, version: None }
        }
        _ => return None,
    };
    // Not the network identifier.
    fields.enter(data.get(START..START + 4), Stays::Whole);
    Some(found)
}

/// Returns true if a frame leads through VLAN tags to TCP over IP that fits the datagram.
fn frame_holds_tcp(data: &[u8], at: usize, length: usize) -> bool {
    let mut kind_at = at + ETHERNET_HEADER - 2;
    while kind_at < at + ETHERNET_HEADER + 8 {
        match be16(data, kind_at) {
            Some(0x8100 | 0x88a8) => kind_at += 4,
            Some(0x0800 | 0x86dd) => return ip_holds_tcp(data, kind_at + 2, length),
            _ => return false,
        }
    }
    false
}

/// Returns true if TCP over IP begins at this offset: version, lengths and checksum fit. A checksum may be missing.
fn ip_holds_tcp(data: &[u8], at: usize, length: usize) -> bool {
    let Some(rest) = data.get(at..) else { return false };
    let on_wire = length.saturating_sub(at);
    let field = |place: usize| be16(rest, place).map_or(0, usize::from);
    let (header, fits) = match rest.first() {
        Some(first @ 0x45..=0x4f) => {
            let header = usize::from(first & 0x0f) * 4;
            let total = field(2);
            // Hardware that segments a packet may leave its length zero.
            let whole = total == 0 || (header..=on_wire).contains(&total) && on_wire - total < MAX_PADDING;
            (header, whole && rest.get(9) == Some(&ip::TCP) && checksum_fits(rest.get(..header)))
        }
        Some(0x60..=0x6f) => {
            let total = field(4) + 40;
            let whole = total == 40 || total <= on_wire && on_wire - total < MAX_PADDING;
            (40, whole && rest.get(6) == Some(&ip::TCP))
        }
        _ => return false,
    };
    // A header of five words or more.
    fits && rest.get(header..header + tcp::NEEDED).is_some_and(|segment| segment[12] >> 4 >= 5)
}

fn checksum_fits(header: Option<&[u8]>) -> bool {
    let Some(header) = header else { return false };
    let sum: u32 = header.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    header[10..12] == [0, 0] || (sum & 0xffff) + (sum >> 16) == 0xffff || sum == 0xffff
}

/// Parses L2TP over UDP: version 2 around PPP, version 3 around anything. `Some(None)` for the control channel.
fn l2tp<F: Fields>(data: &[u8], start: usize, fields: &mut F) -> Option<Option<Peeled>> {
    const CONTROL: u16 = 0x8000;
    const LENGTH: u16 = 0x4000;
    const SEQUENCE: u16 = 0x0800;
    const OFFSET: u16 = 0x0200;
    let flags = read16(data, start, fields)?;
    let size = |flag: u16, bytes: usize| if flags & flag != 0 { bytes } else { 0 };
    if flags & CONTROL != 0 {
        return Some(None);
    }
    match flags & 0x0f {
        2 => {
            let mut offset = start + 2 + size(LENGTH, 2) + 4 + size(SEQUENCE, 4);
            if flags & OFFSET != 0 {
                offset += 2 + usize::from(read16(data, offset, fields)?);
            }
            Some(Some(link::ppp(data, offset, fields)))
        }
        3 => Some(l2tp_payload(data, start + 8, fields)),
        _ => Some(None),
    }
}

/// Parses L2TPv3 over IP. A session of zero is the control channel.
fn l2tp_over_ip<F: Fields>(data: &[u8], fields: &mut F) -> Option<Peeled> {
    let is_control = data.get(..4)? == [0; 4];
    fields.enter(data.get(3..4).filter(|_| !is_control), Stays::As(1));
    let payload = if is_control { None } else { l2tp_payload(data, 4, fields) };
    Some(payload.unwrap_or(Peeled::Other(SkippedProtocol::IpProtocol(L2TP))))
}

/// Finds the payload of an L2TPv3 session after its identifier. Only the peers know whether a cookie and a sequence
/// number precede it, and whether it is Ethernet.
fn l2tp_payload<F: Fields>(data: &[u8], start: usize, fields: &mut F) -> Option<Peeled> {
    let is_ppp = |at: usize| matches!(data.get(at..at + 4), Some([0xff, 0x03, 0, 0x21 | 0x57]));
    let places = [0, 4, 8, 12].map(|bytes| start + bytes);
    let found = places.into_iter().find_map(|at| match (link::is_ethernet(data, at), is_ppp(at)) {
        (true, _) => Some(link::ethernet(data, at, fields)),
        (false, true) => Some(link::ppp(data, at, fields)),
        (false, false) => None,
    });
    // The bytes that would decide are cut off.
    found.or((data.len() <= places[3] + ETHERNET_HEADER).then_some(Peeled::Malformed))
}

/// Parses a CAPWAP data message (RFC 5415 §4.3). `Some(None)` for keep-alives, fragments and encrypted messages.
fn capwap<F: Fields>(data: &[u8], start: usize, fields: &mut F) -> Option<Option<Peeled>> {
    const NATIVE: u8 = 0x01;
    const FRAGMENT: u8 = 0x80;
    const KEEP_ALIVE: u8 = 0x08;
    let kind = read8(data, start, 0xff, fields)?;
    let length = usize::from(read8(data, start + 1, 0xf8, fields)? >> 3) * 4;
    let native = read8(data, start + 2, NATIVE, fields)? & NATIVE != 0;
    let flags = read8(data, start + 3, FRAGMENT | KEEP_ALIVE, fields)?;
    if kind != 0 || length < 8 || flags & (FRAGMENT | KEEP_ALIVE) != 0 {
        return Some(None);
    }
    match native {
        true => link::peel_at(105, data, start + length, fields).map(Some),
        false => Some(Some(link::ethernet(data, start + length, fields))),
    }
}

/// Returns the offset of the user packet in GTP-U (TS 29.281 §5.1); `Some(None)` for a signalling message.
fn gtp_user<F: Fields>(data: &[u8], start: usize, fields: &mut F) -> Option<Option<usize>> {
    let (flags, kind) = (read8(data, start, 0xf7, fields)?, read8(data, start + 1, 0xff, fields)?);
    // Length.
    fields.enter(data.get(start + 2..start + 4), Stays::Whole);
    // Version 1, GTP rather than GTP', message type G-PDU.
    if flags >> 4 != 3 || kind != 255 {
        return Some(None);
    }
    let mut offset = start + 8;
    if flags & 7 == 0 {
        return Some(Some(offset));
    }
    offset += 4;
    let mut next = if flags & 4 != 0 { read8(data, offset - 1, 0xff, fields)? } else { 0 };
    for _ in 0..MAX_OPTIONS {
        if next == 0 {
            return Some(Some(offset));
        }
        let length = usize::from(read8(data, offset, 0xff, fields)?) * 4;
        if length == 0 {
            return None;
        }
        offset += length;
        next = read8(data, offset - 1, 0xff, fields)?;
    }
    None
}

/// Returns link type and offset of the frame in TZSP version 1, after the tagged fields, which end with tag 1;
/// `Some(None)` if it contains another kind of frame or none.
fn tzsp<F: Fields>(data: &[u8], start: usize, fields: &mut F) -> Option<Option<(u32, usize)>> {
    let header = data.get(start..start + 4)?;
    fields.enter(Some(header), Stays::Whole);
    // Types: 0 received, 1 to be sent. Encapsulated protocols: Ethernet, and 802.11 with three kinds of headers.
    let link_type = match header {
        [1, 0 | 1, 0, 1] => 1,
        [1, 0 | 1, 0, 18] => 105,
        [1, 0 | 1, 0, 119] => 119,
        [1, 0 | 1, 0, 127] => 163,
        _ => return Some(None),
    };
    let mut offset = start + 4;
    for _ in 0..MAX_OPTIONS {
        match read8(data, offset, 0xff, fields)? {
            1 => return Some(Some((link_type, offset + 1))),
            0 => offset += 1,
            _ => offset += 2 + usize::from(read8(data, offset + 1, 0xff, fields)?),
        }
    }
    None
}

pub(super) fn inner<'a, F: Fields>(
    outer: &IpPacket<'a>,
    offset: usize,
    version: Option<u8>,
    fields: &mut F,
) -> Option<IpPacket<'a>> {
    let data = outer.payload.get(offset..)?;
    ip::parse(version, data, outer.payload_length.checked_sub(u32::try_from(offset).ok()?)?, fields)
}
