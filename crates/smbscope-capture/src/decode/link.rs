//! Link layers: where in the packet the IP header starts. Link types are those of the registry of tcpdump.org.

use smbscope_model::SkippedProtocol;

/// Tags and labels in front of an IP header that are followed; deeper nesting is damage.
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
/// VN-Tag (IEEE 802.1BR's predecessor, on Cisco fabric extenders): four bytes, then the next EtherType.
const VN_TAG: u16 = 0x8926;
/// Two addresses and an EtherType.
pub(super) const ETHERNET_HEADER: usize = 14;

/// What is left without the headers of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peeled {
    /// An IP header starts at the offset, of the version that the layer above says, or else the header itself.
    Ip { offset: usize, version: Option<u8> },
    /// Something that is not read.
    Other(SkippedProtocol),
    /// The header is cut off or contradicts itself.
    Malformed,
}

/// Finds the IP header.
#[inline]
pub(super) fn peel(link_type: u32, data: &[u8]) -> Peeled {
    let peeled = match link_type {
        1 => Some(ethernet(data, 0)),
        // Linux cooked capture v1 and v2.
        113 => be16(data, 14).map(|protocol| protocols(data, 16, protocol)),
        276 => be16(data, 0).map(|protocol| protocols(data, 20, protocol)),
        // Raw IP, also by the numbers that some systems write into files.
        12 | 14 | 101 => Some(Peeled::Ip { offset: 0, version: None }),
        228 => Some(Peeled::Ip { offset: 0, version: Some(4) }),
        229 => Some(Peeled::Ip { offset: 0, version: Some(6) }),
        0 | 108 => loopback(data),
        9 | 50 => Some(ppp(data, 0)),
        other => Some(Peeled::Other(SkippedProtocol::LinkType(other))),
    };
    peeled.unwrap_or(Peeled::Malformed)
}

pub(super) fn be16(data: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(data.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

/// The frame that starts at `offset`: Ethernet II, or IEEE 802.3 with a SNAP header.
#[inline]
pub(super) fn ethernet(data: &[u8], offset: usize) -> Peeled {
    match be16(data, offset + ETHERNET_HEADER - 2) {
        Some(kind) => protocols(data, offset + ETHERNET_HEADER, kind),
        None => Peeled::Malformed,
    }
}

/// Follows tags from one EtherType to the next.
pub(super) fn protocols(data: &[u8], mut offset: usize, mut kind: u16) -> Peeled {
    for _ in 0..MAX_TAGS {
        let (next, length) = match kind {
            IPV4 => return Peeled::Ip { offset, version: Some(4) },
            IPV6 => return Peeled::Ip { offset, version: Some(6) },
            VLAN | PROVIDER_BRIDGING => (be16(data, offset + 2), 4),
            _ if OLD_QINQ.contains(&kind) => (be16(data, offset + 2), 4),
            VN_TAG => (be16(data, offset + 4), 6),
            BACKBONE_SERVICE => {
                let frame = 4 + ETHERNET_HEADER;
                (be16(data, offset + frame - 2), frame)
            }
            BRIDGED_ETHERNET => (be16(data, offset + ETHERNET_HEADER - 2), ETHERNET_HEADER),
            PPPOE_SESSION => return ppp(data, offset + 6),
            _ if MPLS.contains(&kind) => return mpls(data, offset),
            // A length, and then IEEE 802.2: IP comes with a SNAP header only.
            ..0x0600 => match data.get(offset..offset + 8) {
                Some([0xaa, 0xaa, 0x03, 0, 0, 0, high, low]) => (Some(u16::from_be_bytes([*high, *low])), 8),
                _ => match data.get(offset) {
                    Some(service) => return Peeled::Other(SkippedProtocol::LogicalLink(*service)),
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

/// The PPP frame at `offset` (RFC 1661), with or without address and control field, the protocol in one byte or two.
pub(super) fn ppp(data: &[u8], offset: usize) -> Peeled {
    let start = if data.get(offset..offset + 2) == Some(&[0xff, 0x03]) { offset + 2 } else { offset };
    let (protocol, length) = match (data.get(start), be16(data, start)) {
        (Some(short), _) if short & 1 == 1 => (u16::from(*short), 1),
        (_, Some(protocol)) => (protocol, 2),
        _ => return Peeled::Malformed,
    };
    let offset = start + length;
    match protocol {
        0x0021 => Peeled::Ip { offset, version: Some(4) },
        0x0057 => Peeled::Ip { offset, version: Some(6) },
        0x0281 | 0x0283 => mpls(data, offset),
        other => Peeled::Other(SkippedProtocol::Ppp(other)),
    }
}

/// Passes the label stack (RFC 3032). What follows it only shows by itself: IP by its version, or the Ethernet frame of a
/// pseudowire, with a control word in front of it (RFC 4385, four bits zero) or without.
pub(super) fn mpls(data: &[u8], mut offset: usize) -> Peeled {
    for _ in 0..MAX_TAGS {
        let Some(entry) = data.get(offset..offset + 4) else { return Peeled::Malformed };
        offset += 4;
        if entry[2] & 1 == 0 {
            continue;
        }
        // Addresses of Ethernet may begin like IP or like a control word, so that all of the reading has to fit.
        let reading = match data.get(offset).map(|byte| byte >> 4) {
            Some(0) => [Some(offset + 4), Some(offset)].into_iter().flatten().find(|at| is_ethernet(data, *at)),
            Some(version @ (4 | 6)) if !is_ethernet(data, offset) => {
                return Peeled::Ip { offset, version: Some(version) };
            }
            Some(_) => Some(offset).filter(|at| is_ethernet(data, *at)),
            None => return Peeled::Malformed,
        };
        return match reading {
            Some(at) => ethernet(data, at),
            // What would tell is cut off.
            None if data.len() <= offset + 4 + ETHERNET_HEADER => Peeled::Malformed,
            None => Peeled::Other(SkippedProtocol::Mpls),
        };
    }
    Peeled::Malformed
}

/// Whether a frame at `at` leads over nothing but VLAN tags to IP, of the version that its header has, or to ARP.
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

/// BSD loopback: an address family in the byte order of the capturing host, or of the network (LOOP).
fn loopback(data: &[u8]) -> Option<Peeled> {
    let family: [u8; 4] = data.get(..4)?.try_into().ok()?;
    let is = |wanted: u32| u32::from_be_bytes(family) == wanted || u32::from_le_bytes(family) == wanted;
    Some(if is(2) {
        Peeled::Ip { offset: 4, version: Some(4) }
    } else if [10, 24, 28, 30].into_iter().any(is) {
        // AF_INET6 of Linux, NetBSD and OpenBSD, FreeBSD, Darwin.
        Peeled::Ip { offset: 4, version: Some(6) }
    } else {
        Peeled::Other(SkippedProtocol::AddressFamily(u32::from_be_bytes(family).min(u32::from_le_bytes(family))))
    })
}
