//! Link layers: where in the packet the IP header starts. Link types are those of the registry of tcpdump.org.

/// Tags and labels in front of an IP header that are followed; deeper nesting is damage.
const MAX_TAGS: usize = 16;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLAN: u16 = 0x8100;
const PROVIDER_BRIDGING: u16 = 0x88a8;
const OLD_QINQ: [u16; 3] = [0x9100, 0x9200, 0x9300];
const MPLS: [u16; 2] = [0x8847, 0x8848];
const PPPOE_SESSION: u16 = 0x8864;

/// What is left without the link header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peeled {
    /// An IP header starts at the offset, of the version that the link layer says, or else the header itself.
    Ip { offset: usize, version: Option<u8> },
    /// Another protocol.
    Other,
    /// The link header is cut off.
    Malformed,
    /// The link type is not read.
    Unsupported,
}

/// Finds the IP header.
#[inline]
pub(super) fn peel(link_type: u32, data: &[u8]) -> Peeled {
    let peeled = match link_type {
        1 => be16(data, 12).map(|kind| ethernet(data, 14, kind)),
        // Linux cooked capture v1 and v2.
        113 => be16(data, 14).map(|protocol| protocols(data, 16, protocol)),
        276 => be16(data, 0).map(|protocol| protocols(data, 20, protocol)),
        // Raw IP, also by the numbers that some systems write into files.
        12 | 14 | 101 => Some(Peeled::Ip { offset: 0, version: None }),
        228 => Some(Peeled::Ip { offset: 0, version: Some(4) }),
        229 => Some(Peeled::Ip { offset: 0, version: Some(6) }),
        0 | 108 => loopback(data),
        _ => Some(Peeled::Unsupported),
    };
    peeled.unwrap_or(Peeled::Malformed)
}

fn be16(data: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(data.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

/// Ethernet II, or IEEE 802.3 with a SNAP header.
fn ethernet(data: &[u8], offset: usize, kind: u16) -> Peeled {
    if kind >= 0x0600 {
        return protocols(data, offset, kind);
    }
    match data.get(offset..offset + 8) {
        Some([0xaa, 0xaa, 0x03, 0, 0, 0, high, low]) => protocols(data, offset + 8, u16::from_be_bytes([*high, *low])),
        _ => Peeled::Other,
    }
}

/// Follows tags from one EtherType to the next.
fn protocols(data: &[u8], mut offset: usize, mut kind: u16) -> Peeled {
    for _ in 0..MAX_TAGS {
        let next = match kind {
            IPV4 => return Peeled::Ip { offset, version: Some(4) },
            IPV6 => return Peeled::Ip { offset, version: Some(6) },
            VLAN | PROVIDER_BRIDGING => be16(data, offset + 2).map(|kind| (kind, offset + 4)),
            _ if OLD_QINQ.contains(&kind) => be16(data, offset + 2).map(|kind| (kind, offset + 4)),
            PPPOE_SESSION => match be16(data, offset + 6) {
                // PPP protocol numbers.
                Some(0x0021) => Some((IPV4, offset + 8)),
                Some(0x0057) => Some((IPV6, offset + 8)),
                Some(_) => return Peeled::Other,
                None => None,
            },
            _ if MPLS.contains(&kind) => return mpls(data, offset),
            _ => return Peeled::Other,
        };
        let Some(next) = next else { return Peeled::Malformed };
        (kind, offset) = next;
    }
    Peeled::Malformed
}

/// Passes the label stack (RFC 3032); what follows it only shows by its version.
fn mpls(data: &[u8], mut offset: usize) -> Peeled {
    for _ in 0..MAX_TAGS {
        let Some(entry) = data.get(offset..offset + 4) else { return Peeled::Malformed };
        offset += 4;
        if entry[2] & 1 == 1 {
            return match data.get(offset).map(|byte| byte >> 4) {
                Some(version @ (4 | 6)) => Peeled::Ip { offset, version: Some(version) },
                Some(_) => Peeled::Other,
                None => Peeled::Malformed,
            };
        }
    }
    Peeled::Malformed
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
        Peeled::Other
    })
}
