//! Link layers: locates the IP header in a packet. Link types are from the tcpdump.org registry.

use super::fields::{Fields, Stays};
use smbscope_model::SkippedProtocol;

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
/// Replacement for the first byte of a hidden address in a pseudowire: must look like neither a control word nor IP.
const HIDDEN_ADDRESS: u8 = 0x10;
pub(super) const ETHERNET_HEADER: usize = 14;

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

#[inline]
pub(super) fn peel<F: Fields>(link_type: u32, data: &[u8], fields: &mut F) -> Peeled {
    let peeled = match link_type {
        1 => Some(ethernet(data, 0, fields)),
        // Linux cooked capture v1 and v2.
        113 => read16(data, 14, fields).map(|protocol| protocols(data, 16, protocol, fields)),
        276 => read16(data, 0, fields).map(|protocol| protocols(data, 20, protocol, fields)),
        // Raw IP, including the numbers that some systems write into files.
        12 | 14 | 101 => Some(Peeled::Ip { offset: 0, version: None }),
        228 => Some(Peeled::Ip { offset: 0, version: Some(4) }),
        229 => Some(Peeled::Ip { offset: 0, version: Some(6) }),
        0 | 108 => loopback(data, fields),
        9 | 50 => Some(ppp(data, 0, fields)),
        other => Some(Peeled::Other(SkippedProtocol::LinkType(other))),
    };
    peeled.unwrap_or(Peeled::Malformed)
}

pub(super) fn be16(data: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(data.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

#[inline(always)]
pub(super) fn read16<F: Fields>(data: &[u8], at: usize, fields: &mut F) -> Option<u16> {
    fields.enter(data.get(at..at.checked_add(2)?), Stays::Whole);
    be16(data, at)
}

#[inline(always)]
pub(super) fn read8<F: Fields>(data: &[u8], at: usize, bits: u8, fields: &mut F) -> Option<u8> {
    let byte = data.get(at..at.checked_add(1)?)?;
    fields.enter(Some(byte), Stays::Bits(bits));
    byte.first().copied()
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
        let (next, length) = match kind {
            IPV4 => return Peeled::Ip { offset, version: Some(4) },
            IPV6 => return Peeled::Ip { offset, version: Some(6) },
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
                Some(header @ [0xaa, 0xaa, 0x03, 0, 0, 0, high, low]) => {
                    fields.enter(Some(header), Stays::Whole);
                    (Some(u16::from_be_bytes([*high, *low])), 8)
                }
                _ => match read8(data, offset, 0xff, fields) {
                    Some(service) => return Peeled::Other(SkippedProtocol::LogicalLink(service)),
                    None => return Peeled::Malformed,
                },
            },
            _ => return Peeled::Other(SkippedProtocol::EtherType(kind)),
        };
        let Some(next) = next else { return Peeled::Malformed };
        (kind, offset) = (next, offset + length);
    }
    Peeled::Malformed
}

/// Parses PPP (RFC 1661), with or without address and control fields, with a protocol field of one or two bytes.
pub(super) fn ppp<F: Fields>(data: &[u8], offset: usize, fields: &mut F) -> Peeled {
    let control = data.get(offset..offset + 2).filter(|control| *control == [0xff, 0x03]);
    fields.enter(control, Stays::Whole);
    let start = if control.is_some() { offset + 2 } else { offset };
    let (protocol, length) = match (data.get(start), be16(data, start)) {
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
fn is_ethernet(data: &[u8], at: usize) -> bool {
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

/// Parses BSD loopback: an address family in the byte order of the capturing host or in network order (LOOP).
fn loopback<F: Fields>(data: &[u8], fields: &mut F) -> Option<Peeled> {
    let family: [u8; 4] = data.get(..4)?.try_into().ok()?;
    fields.enter(data.get(..4), Stays::Whole);
    let is = |wanted: u32| u32::from_be_bytes(family) == wanted || u32::from_le_bytes(family) == wanted;
    Some(if is(2) {
        Peeled::Ip { offset: 4, version: Some(4) }
    } else if [10, 24, 28, 30].into_iter().any(is) {
        // AF_INET6 on Linux, NetBSD and OpenBSD, FreeBSD, Darwin.
        Peeled::Ip { offset: 4, version: Some(6) }
    } else {
        Peeled::Other(SkippedProtocol::AddressFamily(u32::from_be_bytes(family).min(u32::from_le_bytes(family))))
    })
}
