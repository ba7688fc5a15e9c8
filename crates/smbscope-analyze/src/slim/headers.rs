//! Addresses in the headers of a packet: of its link, of IP, and of the packets in its tunnels.

use super::names::Names;
use smbscope_capture::Packet;
use smbscope_capture::decode::{Kind, Outline};
use std::ops::Range;

/// Ethernet addresses, and what must be in front of IP for there to be any.
const ETHERNET_ADDRESSES: Range<usize> = 0..12;
const ETHERNET_HEADER: usize = 14;
const VLAN_TAG: usize = 4;
/// Link types: Ethernet, Linux cooked capture, and its second version; where they have addresses.
const LINK_ADDRESSES: [(u32, Range<usize>); 3] = [(1, ETHERNET_ADDRESSES), (113, 6..14), (276, 12..20)];
/// Headers without options.
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const IPV4_CHECKSUM: usize = 10;
const TCP: u8 = 6;
const UDP: u8 = 17;
const TCP_CHECKSUM: usize = 16;
const UDP_CHECKSUM: usize = 6;
/// Extension headers of IPv6 whose options may hold addresses: hop-by-hop, routing, destination, mobility, host identity,
/// shim6.
const EXTENSIONS: [u8; 6] = [0, 43, 60, 135, 139, 140];

/// Hides the addresses in `headers`, which are the first bytes of `packet`.
pub(super) fn hide(headers: &mut [u8], packet: &Packet<'_>, outline: &Outline, names: &mut Names) {
    if !names.are_replaced() {
        return;
    }
    for (link_type, place) in LINK_ADDRESSES {
        if packet.link_type == link_type {
            let end = place.end.min(headers.len());
            headers[place.start.min(end)..end].fill(0);
        }
    }
    for (index, at) in outline.ip_headers.iter().enumerate() {
        if let Some(before) = index.checked_sub(1).and_then(|index| outline.ip_headers.get(index)) {
            hide_inner_ethernet(headers, packet, outline, *before + IPV4_HEADER, *at);
        }
        match headers.get(*at).map(|first| first >> 4) {
            Some(4) => hide_ipv4(headers, *at, names),
            Some(6) => hide_ipv6(headers, *at, names),
            _ => {}
        }
    }
}

/// The Ethernet addresses of a frame in a tunnel, in front of the IP header at `ip`, if there is such a frame.
fn hide_inner_ethernet(headers: &mut [u8], packet: &Packet<'_>, outline: &Outline, least: usize, ip: usize) {
    let mut kind = ip.saturating_sub(2);
    while kind >= least + VLAN_TAG && matches!(headers.get(kind - VLAN_TAG..kind - 2), Some([0x81, 0] | [0x88, 0xa8])) {
        kind -= VLAN_TAG;
    }
    let Some(start) = (kind + 2).checked_sub(ETHERNET_HEADER).filter(|start| *start >= least) else { return };
    let Some(place) = headers.get_mut(start..start + ETHERNET_ADDRESSES.end) else { return };
    let addresses = place.to_vec();
    place.fill(0);
    // It was not that: the header of a tunnel has these bytes.
    let data = &headers[..];
    let same = Outline::of(&Packet { data, ..*packet });
    let is_alike = same.ip_headers == outline.ip_headers && is_same_kind(&same.kind, &outline.kind);
    if !is_alike {
        headers[start..start + addresses.len()].copy_from_slice(&addresses);
    }
}

fn is_same_kind(one: &Kind, other: &Kind) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other)
}

fn hide_ipv4(headers: &mut [u8], at: usize, names: &mut Names) {
    let Some(header) = headers.get_mut(at..) else { return };
    let options = usize::from(header[0] & 0x0f) * 4;
    let end = options.min(header.len());
    if end < IPV4_HEADER {
        header[12.min(end)..end].fill(0);
        return;
    }
    names.address(&mut header[12..16]);
    names.address(&mut header[16..20]);
    header[IPV4_HEADER..end].fill(0);
    if end == options {
        header[IPV4_CHECKSUM..IPV4_CHECKSUM + 2].fill(0);
        let checksum = checksum(&header[..options]);
        header[IPV4_CHECKSUM..IPV4_CHECKSUM + 2].copy_from_slice(&checksum.to_be_bytes());
    }
    let fragment_offset = u16::from_be_bytes([header[6], header[7]]) & 0x1fff;
    if fragment_offset == 0 {
        clear_checksum(header[9], &mut header[end..]);
    }
}

fn hide_ipv6(headers: &mut [u8], at: usize, names: &mut Names) {
    let Some(header) = headers.get_mut(at..) else { return };
    if header.len() < IPV6_HEADER {
        header.iter_mut().skip(8).for_each(|byte| *byte = 0);
        return;
    }
    names.address(&mut header[8..24]);
    names.address(&mut header[24..40]);
    let (mut next, mut offset) = (header[6], IPV6_HEADER);
    while EXTENSIONS.contains(&next) && offset + 2 <= header.len() {
        let length = (usize::from(header[offset + 1]) + 1) * 8;
        next = header[offset];
        let end = (offset + length).min(header.len());
        header[offset + 2..end].fill(0);
        offset = end;
    }
    clear_checksum(next, &mut header[offset..]);
}

/// A checksum that covers addresses and payload would help to guess them.
fn clear_checksum(protocol: u8, header: &mut [u8]) {
    let at = match protocol {
        TCP => TCP_CHECKSUM,
        UDP => UDP_CHECKSUM,
        _ => return,
    };
    if let Some(checksum) = header.get_mut(at..at + 2) {
        checksum.fill(0);
    }
}

/// The checksum of a header whose own field is zero (RFC 1071).
fn checksum(header: &[u8]) -> u16 {
    let sum: u32 = header.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_a_header_fits_its_new_addresses() {
        // The example of the Wikipedia page on IPv4 header checksums: 45 00 00 73 … has the checksum b861.
        let header = [0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7];
        assert_eq!(checksum(&header), 0xb861);
    }
}
