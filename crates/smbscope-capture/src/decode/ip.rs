//! IPv4 (RFC 791) and IPv6 (RFC 8200) headers.
//!
//! The length field determines the datagram; anything after it is padding. There are two exceptions. Zero (segmentation
//! offload, jumbograms) means all of the record. A length beyond the record is believed: slicing switches and capture
//! cards truncate packets and record the truncated length as the original one, whereas no host would have sent or
//! accepted such a packet.

use super::fields::{Fields, Stays};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(super) const TCP: u8 = 6;
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;
const MOBILITY: u8 = 135;
const HOST_IDENTITY: u8 = 139;
const SHIM6: u8 = 140;
/// Maximum number of extension headers; a longer chain is damage.
const MAX_EXTENSION_HEADERS: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FragmentInfo {
    pub(super) identification: u32,
    /// In bytes.
    pub(super) offset: u32,
    pub(super) more: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct IpPacket<'a> {
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    /// Protocol after the last extension header; for an IPv6 fragment, the next header in the fragment header.
    pub(super) protocol: u8,
    pub(super) hops_left: u8,
    pub(super) identification: Option<u16>,
    pub(super) fragment: Option<FragmentInfo>,
    pub(super) payload: &'a [u8],
    pub(super) payload_length: u32,
}

/// Parses the headers of a packet of `on_wire` bytes. Returns `None` if they are inconsistent or cut off. `version`
/// comes from the link layer, if that states it.
#[inline]
pub(super) fn parse<'a, F: Fields>(
    version: Option<u8>,
    data: &'a [u8],
    on_wire: u32,
    fields: &mut F,
) -> Option<IpPacket<'a>> {
    fields.enter(data.get(..1), Stays::Bits(0xf0));
    let in_header = data.first().map(|byte| byte >> 4);
    match (in_header, version) {
        (Some(4), None | Some(4)) => ipv4(data, on_wire, fields),
        (Some(6), None | Some(6)) => ipv6(data, on_wire, fields),
        _ => None,
    }
}

fn be16(data: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(data.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn be32(data: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(data.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn captured(data: &[u8], at: usize, length: u32) -> &[u8] {
    let rest = data.get(at..).unwrap_or_default();
    &rest[..rest.len().min(length as usize)]
}

fn ipv4<'a, F: Fields>(data: &'a [u8], on_wire: u32, fields: &mut F) -> Option<IpPacket<'a>> {
    let header: &[u8; 20] = data.get(..20)?.try_into().ok()?;
    let header_length = usize::from(header[0] & 0x0f) * 4;
    if F::RECORDS {
        // Options are not entered. They become zeros, which mark the end of the option list.
        fields.enter(data.get(..6), Stays::Whole);
        fields.enter(data.get(6..7), Stays::Bits(0x7f));
        fields.enter(data.get(7..10), Stays::Whole);
        fields.enter(data.get(12..16), Stays::Address);
        fields.enter(data.get(16..20), Stays::Address);
        fields.enter(data.get(..header_length.max(20)), Stays::Checksummed);
    }
    let total = match u16::from_be_bytes([header[2], header[3]]) {
        0 => on_wire,
        total => u32::from(total),
    };
    if header_length < 20 || data.len() < header_length {
        return None;
    }
    let payload_length = total.checked_sub(u32::try_from(header_length).ok()?)?;
    let identification = u16::from_be_bytes([header[4], header[5]]);
    let flags_and_offset = u16::from_be_bytes([header[6], header[7]]);
    let (more, offset) = (flags_and_offset & 0x2000 != 0, u32::from(flags_and_offset & 0x1fff) * 8);
    let fragment =
        (more || offset > 0).then_some(FragmentInfo { identification: u32::from(identification), offset, more });
    let mut datagram = IpPacket {
        source: IpAddr::V4(Ipv4Addr::new(header[12], header[13], header[14], header[15])),
        destination: IpAddr::V4(Ipv4Addr::new(header[16], header[17], header[18], header[19])),
        protocol: header[9],
        hops_left: header[8],
        identification: Some(identification),
        fragment,
        payload: captured(data, header_length, payload_length),
        payload_length,
    };
    if datagram.protocol == AUTHENTICATION && fragment.is_none() {
        // The authentication header (RFC 4302) leaves the packet readable.
        let (protocol, skipped) = upper_layer(AUTHENTICATION, datagram.payload, payload_length, fields)?;
        datagram.protocol = protocol;
        datagram.payload = datagram.payload.get(skipped..)?;
        datagram.payload_length = payload_length.checked_sub(u32::try_from(skipped).ok()?)?;
    }
    Some(datagram)
}

fn ipv6<'a, F: Fields>(data: &'a [u8], on_wire: u32, fields: &mut F) -> Option<IpPacket<'a>> {
    let header: &[u8; 40] = data.get(..40)?.try_into().ok()?;
    if F::RECORDS {
        // Version and traffic class, but not the flow label, which some systems derive from addresses.
        fields.enter(data.get(..1), Stays::Whole);
        fields.enter(data.get(1..2), Stays::Bits(0xf0));
        fields.enter(data.get(4..8), Stays::Whole);
        fields.enter(data.get(8..24), Stays::Address);
        fields.enter(data.get(24..40), Stays::Address);
    }
    let length = match u16::from_be_bytes([header[4], header[5]]) {
        0 => on_wire.checked_sub(40)?,
        length => u32::from(length),
    };
    let address = |at: usize| {
        let octets: [u8; 16] = header.get(at..at + 16)?.try_into().ok()?;
        Some(IpAddr::V6(Ipv6Addr::from(octets)))
    };
    let payload = captured(data, 40, length);
    let (protocol, offset) = upper_layer(header[6], payload, length, fields)?;
    let mut datagram = IpPacket {
        source: address(8)?,
        destination: address(24)?,
        protocol,
        hops_left: header[7],
        identification: None,
        fragment: None,
        payload: payload.get(offset..)?,
        payload_length: length.checked_sub(u32::try_from(offset).ok()?)?,
    };
    if protocol == FRAGMENT {
        let next_header = *datagram.payload.first()?;
        let offset_and_flags = be16(datagram.payload, 2)?;
        let identification = be32(datagram.payload, 4)?;
        fields.enter(datagram.payload.get(..1), Stays::Whole);
        fields.enter(datagram.payload.get(2..3), Stays::Whole);
        fields.enter(datagram.payload.get(3..4), Stays::Bits(0xf9));
        fields.enter(datagram.payload.get(4..8), Stays::Whole);
        let (offset, more) = (u32::from(offset_and_flags & 0xfff8), offset_and_flags & 1 != 0);
        datagram.payload = datagram.payload.get(8..)?;
        datagram.payload_length = datagram.payload_length.checked_sub(8)?;
        datagram.protocol = next_header;
        if offset == 0 && !more {
            // An atomic fragment (RFC 6946) is complete; continue after its header.
            let (protocol, skipped) = upper_layer(next_header, datagram.payload, datagram.payload_length, fields)?;
            datagram.protocol = protocol;
            datagram.payload = datagram.payload.get(skipped..)?;
            datagram.payload_length = datagram.payload_length.checked_sub(u32::try_from(skipped).ok()?)?;
        } else {
            datagram.fragment = Some(FragmentInfo { identification, offset, more });
        }
    }
    Some(datagram)
}

/// Returns true if an IPv6 extension header of this kind may precede TCP after the fragment header.
pub(super) fn is_extension(next_header: u8) -> bool {
    matches!(
        next_header,
        HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | MOBILITY | HOST_IDENTITY | SHIM6 | AUTHENTICATION
    )
}

/// Skips IPv6 extension headers. Returns the protocol that follows, possibly [`FRAGMENT`], and its offset.
pub(super) fn upper_layer<F: Fields>(
    mut next_header: u8,
    payload: &[u8],
    length: u32,
    fields: &mut F,
) -> Option<(u8, usize)> {
    let mut offset = 0usize;
    for _ in 0..MAX_EXTENSION_HEADERS {
        let units = |at: usize| payload.get(at).copied().map(usize::from);
        let header_length = match next_header {
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | MOBILITY | HOST_IDENTITY | SHIM6 => {
                units(offset + 1)?.checked_add(1)? * 8
            }
            AUTHENTICATION => units(offset + 1)?.checked_add(2)? * 4,
            other => return Some((other, offset)),
        };
        // Next header, and the length of this one.
        fields.enter(payload.get(offset..offset + 2), Stays::Whole);
        next_header = *payload.get(offset)?;
        offset = offset.checked_add(header_length)?;
        if offset > payload.len() || offset > length as usize {
            return None;
        }
    }
    None
}
