//! Tunnels over IP: finds the start of the inner packet in the payload of an IP packet.
//!
//! Traffic of mirror ports and virtual networks arrives in these: VXLAN (RFC 7348) and its generic extension, GENEVE
//! (RFC 8926), GRE (RFC 2784, 2890, and PPTP's version, RFC 2637), ERSPAN I to III in GRE (draft-foschiano-erspan), IP
//! in IP (RFC 2003, 2473, 4213), EtherIP (RFC 3378), MPLS in IP, UDP and GRE (RFC 4023, 7510), GRE in UDP (RFC 8086),
//! GTP-U (3GPP TS 29.281) and TZSP. The IP authentication header (RFC 4302) is skipped as well.

use super::fields::{Fields, Stays};
use super::ip::{self, IpPacket};
use super::link::{self, Peeled, read8, read16};
use smbscope_model::SkippedProtocol;

const IPV4: u8 = 4;
const UDP: u8 = 17;
const IPV6: u8 = 41;
const GRE: u8 = 47;
const ETHERIP: u8 = 97;
const MPLS: u8 = 137;

const GTP_USER: u16 = 2152;
const GRE_IN_UDP: u16 = 4754;
const VXLAN: u16 = 4789;
const VXLAN_LINUX: u16 = 8472;
const VXLAN_GENERIC: u16 = 4790;
const GENEVE: u16 = 6081;
const MPLS_IN_UDP: u16 = 6635;
const TZSP: u16 = 37008;

const ERSPAN_I_II: u16 = 0x88be;
const ERSPAN_III: u16 = 0x22eb;
const PPP: u16 = 0x880b;
const ERSPAN_VERSION: u8 = 0xf0;

/// GTP-U extensions, or TZSP fields; more: `malformed_packets`.
const MAX_OPTIONS: usize = 32;

/// Returns true if a fragmented datagram must be reassembled to see its contents.
pub(super) fn is_tunnel(protocol: u8) -> bool {
    matches!(protocol, IPV4 | UDP | IPV6 | GRE | ETHERIP | MPLS)
}

pub(super) fn peel<F: Fields>(datagram: &IpPacket<'_>, fields: &mut F) -> Peeled {
    let data = datagram.payload;
    let peeled = match datagram.protocol {
        IPV4 => Some(Peeled::Ip { offset: 0, version: Some(4) }),
        IPV6 => Some(Peeled::Ip { offset: 0, version: Some(6) }),
        GRE => gre(data, 0, fields),
        UDP => udp(data, fields),
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

fn udp<F: Fields>(data: &[u8], fields: &mut F) -> Option<Peeled> {
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
            Some(offset) => link::ethernet(data, offset, fields),
            None => unread,
        },
        _ => unread,
    })
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

/// Returns the offset of the Ethernet frame in TZSP version 1, after the tagged fields, which end with tag 1;
/// `Some(None)` if it contains another kind of frame or none.
fn tzsp<F: Fields>(data: &[u8], start: usize, fields: &mut F) -> Option<Option<usize>> {
    let header = data.get(start..start + 4)?;
    fields.enter(Some(header), Stays::Whole);
    // Types: 0 received, 1 to be sent. Encapsulated protocol 1: Ethernet.
    if header[0] != 1 || header[1] > 1 || header[2..] != [0, 1] {
        return Some(None);
    }
    let mut offset = start + 4;
    for _ in 0..MAX_OPTIONS {
        match read8(data, offset, 0xff, fields)? {
            1 => return Some(Some(offset + 1)),
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
