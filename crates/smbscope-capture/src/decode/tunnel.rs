//! Tunnels over IP: finds the start of the inner packet in the payload of an IP packet.
//!
//! Traffic of mirror ports and virtual networks arrives in these: VXLAN (RFC 7348) and its generic extension, GENEVE
//! (RFC 8926), GRE (RFC 2784, 2890, and PPTP's version, RFC 2637), ERSPAN I to III in GRE (draft-foschiano-erspan), IP
//! in IP (RFC 2003, 2473, 4213), EtherIP (RFC 3378), MPLS in IP, UDP and GRE (RFC 4023, 7510), GRE in UDP (RFC 8086),
//! L2TP (RFC 2661, 3931), GTP-U (3GPP TS 29.281), CAPWAP (RFC 5415), Teredo (RFC 4380), LISP (RFC 9300), TZSP and
//! redirected packets (WCCP). The IP authentication header (RFC 4302) is skipped as well.
//!
//! A UDP port belongs to the tunnel that the user declares, or else to the one it is registered for. VXLAN, GENEVE, GUE
//! and IP are also found on other ports, if their header is plausible and the headers of IP and TCP inside fit:
//! version, lengths and checksum.

use super::fields::{Enclosure, Fields, Stays, be16, read8, read16};
use super::ip::{self, IpPacket};
use super::link::{self, ETHERNET_HEADER, Peeled};
use super::tcp;
use smbscope_model::{SkippedProtocol, TunnelKind};

const IPV4: u8 = 4;
const UDP: u8 = 17;
const IPV6: u8 = 41;
const GRE: u8 = 47;
const ETHERIP: u8 = 97;
const L2TP: u8 = 115;
const MPLS: u8 = 137;

/// Tunnels with a UDP port of their own.
pub const TUNNEL_PORTS: &[(u16, TunnelKind)] = &[
    (1701, TunnelKind::L2tp),
    (2152, TunnelKind::GtpUser),
    (3544, TunnelKind::Teredo),
    (4341, TunnelKind::Lisp),
    (4754, TunnelKind::Gre),
    (4789, TunnelKind::Vxlan),
    (4790, TunnelKind::VxlanGeneric),
    (5247, TunnelKind::Capwap),
    (6081, TunnelKind::Geneve),
    (6635, TunnelKind::Mpls),
    // Linux, before the port was registered.
    (8472, TunnelKind::Vxlan),
    (37008, TunnelKind::Tzsp),
];

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
    if datagram.protocol != UDP {
        fields.pass(Enclosure::IpProtocol(datagram.protocol));
    }
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
            fields.pass(Enclosure::Gre(protocol));
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

/// Start of the payload of UDP.
const START: usize = 8;
/// Flag of VXLAN-GPE.
const NEXT_PROTOCOL: u8 = 0x04;

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
    let mut found = declared(source, port, fields).or_else(|| registered(port));
    if found.is_none() {
        if let Some(peeled) = by_content(data, length, port, fields) {
            return Some(peeled);
        }
        found = answering(source);
    }
    let Some((mut kind, port)) = found else {
        let is_quic = is_quic(data, fields);
        return Some(if is_quic { Peeled::Other(SkippedProtocol::QuicPort(service)) } else { unread });
    };
    if kind == TunnelKind::VxlanGeneric && data.get(START)? & NEXT_PROTOCOL == 0 {
        // Without a next protocol, it is an ordinary frame.
        kind = TunnelKind::Vxlan;
    }
    fields.pass(Enclosure::Udp(kind, port));
    Some(of_kind(kind, data, length, fields)?.unwrap_or(unread))
}

/// Returns the tunnel that the user declared for the port of either side.
fn declared<F: Fields>(source: u16, port: u16, fields: &F) -> Option<(TunnelKind, u16)> {
    [port, source].into_iter().find_map(|port| Some((fields.declared_tunnel(port)?, port)))
}

/// Returns the tunnel that the port of the receiver is registered for.
fn registered(port: u16) -> Option<(TunnelKind, u16)> {
    TUNNEL_PORTS.iter().find(|(known, _)| *known == port).map(|(port, kind)| (*kind, *port))
}

/// Returns the tunnel that answers from this port; the others are sent from any port.
fn answering(source: u16) -> Option<(TunnelKind, u16)> {
    let answers = |kind: TunnelKind| matches!(kind, TunnelKind::L2tp | TunnelKind::Capwap | TunnelKind::Teredo);
    registered(source).filter(|(kind, _)| answers(*kind))
}

/// Parses a tunnel of this kind. `Some(None)` if the packet is none, or carries something else.
fn of_kind<F: Fields>(kind: TunnelKind, data: &[u8], length: usize, fields: &mut F) -> Option<Option<Peeled>> {
    const FRAME: usize = START + 8;
    Some(match kind {
        // Flag for a valid network identifier.
        TunnelKind::Vxlan if read8(data, START, 0x08, fields)? & 0x08 == 0 => None,
        TunnelKind::Vxlan => Some(link::ethernet(data, FRAME, fields)),
        TunnelKind::VxlanGeneric => {
            // The flags that say so.
            read8(data, START, 0x0c, fields)?;
            match read8(data, START + 3, 0xff, fields)? {
                1 => Some(Peeled::Ip { offset: FRAME, version: Some(4) }),
                2 => Some(Peeled::Ip { offset: FRAME, version: Some(6) }),
                3 => Some(link::ethernet(data, FRAME, fields)),
                5 => Some(link::mpls(data, FRAME, fields)),
                _ => None,
            }
        }
        TunnelKind::Geneve if read8(data, START, 0xff, fields)? >> 6 != 0 => None,
        TunnelKind::Geneve => {
            let options = usize::from(data.get(START)? & 0x3f) * 4;
            let protocol = read16(data, START + 2, fields)?;
            match link::protocols(data, FRAME + options, protocol, fields) {
                Peeled::Other(SkippedProtocol::EtherType(_)) => None,
                peeled => Some(peeled),
            }
        }
        TunnelKind::Gue => gue(data, fields)?,
        TunnelKind::GtpUser => gtp_user(data, START, fields)?.map(|offset| Peeled::Ip { offset, version: None }),
        TunnelKind::Mpls => Some(link::mpls(data, START, fields)),
        TunnelKind::Gre => Some(gre(data, START, fields)?),
        TunnelKind::Tzsp => match tzsp(data, START, fields)? {
            Some((1, offset)) => Some(link::ethernet(data, offset, fields)),
            Some((link_type, offset)) => Some(link::peel_at(link_type, data, offset, fields)?),
            None => None,
        },
        TunnelKind::L2tp => l2tp(data, START, fields)?,
        TunnelKind::Capwap => capwap(data, START, fields)?,
        TunnelKind::Teredo => teredo(data, length, fields)?,
        // The identifiers of RFC 9300 precede the packet.
        TunnelKind::Lisp => Some(Peeled::Ip { offset: FRAME, version: None }),
        TunnelKind::Ip => Some(Peeled::Ip { offset: START, version: None }),
        TunnelKind::Ethernet => Some(link::ethernet(data, START, fields)),
    })
}

/// Parses GUE of version 0, with an IP protocol, or of version 1, which is IP without a header
/// (draft-ietf-intarea-gue). `Some(None)` for control messages and other protocols.
fn gue<F: Fields>(data: &[u8], fields: &mut F) -> Option<Option<Peeled>> {
    const CONTROL: u8 = 0x20;
    let first = read8(data, START, 0xff, fields)?;
    let offset = START + 4 + usize::from(first & 0x1f) * 4;
    Some(match first >> 6 {
        0 if first & CONTROL != 0 => None,
        0 => match read8(data, START + 1, 0xff, fields)? {
            IPV4 => Some(Peeled::Ip { offset, version: Some(4) }),
            IPV6 => Some(Peeled::Ip { offset, version: Some(6) }),
            MPLS => Some(link::mpls(data, offset, fields)),
            GRE => gre(data, offset, fields),
            ETHERIP => Some(link::ethernet(data, offset + 2, fields)),
            _ => None,
        },
        1 => Some(Peeled::Ip { offset: START, version: None }),
        _ => None,
    })
}

/// Parses Teredo (RFC 4380 §5.1.1): authentication and origin may precede the IPv6 packet. `Some(None)` for anything
/// else.
fn teredo<F: Fields>(data: &[u8], length: usize, fields: &mut F) -> Option<Option<Peeled>> {
    const AUTHENTICATION: u16 = 1;
    const ORIGIN: u16 = 0;
    const NEITHER: u8 = 2;
    let mut offset = START;
    for _ in 0..2 {
        let kind = be16(data, offset)?;
        match kind {
            ORIGIN | AUTHENTICATION => fields.enter(data.get(offset..offset + 2), Stays::Whole),
            // IPv6, whose flow label may reveal addresses.
            0x6000..=0x6fff => fields.enter(data.get(offset..offset + 1), Stays::Bits(0xf0)),
            // Something else.
            _ => fields.enter(data.get(offset + 1..offset + 2), Stays::As(NEITHER)),
        }
        match kind {
            AUTHENTICATION => {
                // Lengths of a client identifier and of a value, then a nonce and a confirmation.
                let (id, value) = (read8(data, offset + 2, 0xff, fields)?, read8(data, offset + 3, 0xff, fields)?);
                offset += 4 + usize::from(id) + usize::from(value) + 9;
            }
            ORIGIN => offset += 8,
            _ => break,
        }
    }
    // A bubble has no payload.
    if offset >= length {
        return Some(None);
    }
    Some((data.get(offset)? >> 4 == 6).then_some(Peeled::Ip { offset, version: Some(6) }))
}

/// Returns true if UDP carries a long header of QUIC (RFC 8999 §5.1, RFC 9000 §17.2): form, a known version, and
/// the length of an identifier.
fn is_quic<F: Fields>(data: &[u8], fields: &mut F) -> bool {
    const LONG_HEADER: u8 = 0xc0;
    const LONGEST_IDENTIFIER: u8 = 20;
    let Some([form, version @ .., identifier]) = data.get(START..START + 6) else { return false };
    let is_version = matches!(version, [0, 0, 0, 1] | [0x6b, 0x33, 0x43, 0xcf] | [0xff, 0, 0, _]);
    let is_quic = form & LONG_HEADER == LONG_HEADER && is_version && *identifier <= LONGEST_IDENTIFIER;
    fields.enter(data.get(START..START + 6).filter(|_| is_quic), Stays::Whole);
    is_quic
}

/// Finds tunnels on any port. `length` is the datagram's on the wire.
fn by_content<F: Fields>(data: &[u8], length: usize, port: u16, fields: &mut F) -> Option<Peeled> {
    let (kind, offset, is_frame) = recognised(data, length)?;
    // Not the network identifier.
    fields.enter(data.get(START..START + 4), Stays::Whole);
    fields.pass(Enclosure::Udp(kind, port));
    Some(match is_frame {
        true => link::ethernet(data, offset, fields),
        false => Peeled::Ip { offset, version: None },
    })
}

/// Returns the tunnel whose header fits, and the offset of a frame (true) or of IP (false) that holds TCP.
fn recognised(data: &[u8], length: usize) -> Option<(TunnelKind, usize, bool)> {
    const FRAME: usize = START + 8;
    let header = data.get(START..FRAME)?;
    let options = usize::from(header[0] & 0x3f) * 4;
    let (kind, offset, is_frame) = match *header {
        // A network identifier, and perhaps a group (draft-smith-vxlan-group-policy).
        [0x08, 0, 0, 0, _, _, _, 0] | [0x88, _, _, _, _, _, _, 0] => (TunnelKind::Vxlan, FRAME, true),
        // The next protocol.
        [0x0c, 0, 0, next @ 1..=3, _, _, _, _] => (TunnelKind::VxlanGeneric, FRAME, next == 3),
        // Version 0, options, an EtherType.
        [0..=0x3f, 0 | 0x40 | 0x80, 0x65, 0x58, _, _, _, 0] => (TunnelKind::Geneve, FRAME + options, true),
        [0..=0x3f, 0 | 0x40 | 0x80, 0x08, 0x00, _, _, _, 0] | [0..=0x3f, 0 | 0x40 | 0x80, 0x86, 0xdd, _, _, _, 0] => {
            (TunnelKind::Geneve, FRAME + options, false)
        }
        // Version 0 (draft-ietf-intarea-gue): length of the options in words, IP protocol, flags.
        [0..=0x1f, IPV4 | IPV6, ..] => (TunnelKind::Gue, START + 4 + usize::from(header[0]) * 4, false),
        // IP without a header: GUE of version 1, or foo over UDP of Linux.
        [0x45..=0x4f | 0x60..=0x6f, ..] => (TunnelKind::Ip, START, false),
        _ => return None,
    };
    let holds_tcp = if is_frame { frame_holds_tcp } else { ip_holds_tcp };
    holds_tcp(data, offset, length).then_some((kind, offset, is_frame))
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
/// Of a fragment, only the header of IP is read, as just one of them has the header of TCP.
fn ip_holds_tcp(data: &[u8], at: usize, length: usize) -> bool {
    let Some(rest) = data.get(at..) else { return false };
    let on_wire = length.saturating_sub(at);
    let field = |place: usize| be16(rest, place).map_or(0, usize::from);
    // Hardware that segments a packet may leave its length zero.
    let total = |stated: usize, before: usize| if stated == 0 { on_wire } else { before + stated };
    let (header, total, is_fragment, is_tcp) = match rest.first() {
        Some(first @ 0x45..=0x4f) => {
            let header = usize::from(first & 0x0f) * 4;
            let is_tcp = rest.get(9) == Some(&ip::TCP) && checksum_fits(rest.get(..header));
            (header, total(field(2), 0), field(6) & 0x3fff != 0, is_tcp)
        }
        Some(0x60..=0x6f) => (40, total(field(4), 40), false, rest.get(6) == Some(&ip::TCP)),
        _ => return false,
    };
    let fits = header <= total && total <= on_wire && on_wire - total < MAX_PADDING;
    let begins_tcp = || {
        let words = rest.get(header..header + tcp::NEEDED).map_or(0, |segment| usize::from(segment[12] >> 4));
        // A header of five words or more.
        words >= 5 && words * 4 <= total - header
    };
    is_tcp && fits && (is_fragment || begins_tcp())
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
