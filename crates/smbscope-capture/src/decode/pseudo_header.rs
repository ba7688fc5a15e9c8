//! Headers that capture systems put before a packet: PKTAP, NFLOG, enc, pflog, PPI, ERF, ipnet, Juniper. Link types are
//! from the tcpdump.org registry.

use super::fields::{Fields, Layer, Stays, read8, read16};
use smbscope_model::SkippedProtocol;

/// Attributes of an NFLOG header, or extension headers of ERF; more: `malformed_packets`.
const MAX_ATTRIBUTES: usize = 32;
/// Bytes of a PKTAP header. Its fields take 156.
const MAX_PKTAP: usize = 1024;

fn array<const N: usize>(data: &[u8], at: usize) -> Option<[u8; N]> {
    data.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn read_array<const N: usize, F: Fields>(data: &[u8], at: usize, fields: &mut F) -> Option<[u8; N]> {
    let field = array(data, at)?;
    fields.enter(data.get(at..at + N), Stays::Whole);
    Some(field)
}

/// Parses an address family in the byte order of the capturing host or in network order (LOOP), at the beginning of a
/// header of `length` bytes: BSD loopback, or enc, which adds an index and flags.
pub(super) fn loopback<F: Fields>(data: &[u8], at: usize, length: usize, fields: &mut F) -> Option<(Layer, usize)> {
    let family: [u8; 4] = read_array(data, at, fields)?;
    let family = u32::from_be_bytes(family).min(u32::from_le_bytes(family));
    Some((family_layer(family), at + length))
}

fn family_layer(family: u32) -> Layer {
    match family {
        2 => Layer::Ip(Some(4)),
        // AF_INET6 on Linux, NetBSD and OpenBSD, Solaris, FreeBSD, Darwin.
        10 | 24 | 26 | 28 | 30 => Layer::Ip(Some(6)),
        other => Layer::Skipped(SkippedProtocol::AddressFamily(other)),
    }
}

/// Parses a pflog header: its length without padding, and the address family.
pub(super) fn pflog<F: Fields>(data: &[u8], at: usize, fields: &mut F) -> Option<(Layer, usize)> {
    let (length, family) = (read8(data, at, 0xff, fields)?, read8(data, at + 1, 0xff, fields)?);
    // Length, family, action and reason precede the name of the interface, 16 bytes.
    (length >= 20).then(|| (family_layer(family.into()), at + usize::from(length).next_multiple_of(4)))
}

/// Parses an ipnet header of Solaris: version, family; 24 bytes.
pub(super) fn ipnet<F: Fields>(data: &[u8], at: usize, fields: &mut F) -> Option<(Layer, usize)> {
    read8(data, at + 1, 0xff, fields).map(|family| (family_layer(family.into()), at + 24))
}

/// Parses a PKTAP header of macOS: its length, a record type and the link type of the packet, then the interface and
/// the process. Byte order is the capturing host's.
pub(super) fn pktap<F: Fields>(link_type: u32, data: &[u8], at: usize, fields: &mut F) -> Option<(Layer, usize)> {
    const PACKET: u32 = 1;
    let words = [read_array(data, at, fields)?, read_array(data, at + 4, fields)?, read_array(data, at + 8, fields)?];
    let words = match u32::from_le_bytes(words[0]) as usize <= MAX_PKTAP {
        true => words.map(u32::from_le_bytes),
        false => words.map(u32::from_be_bytes),
    };
    let [length, record, inner] = words;
    let is_header = (12..=MAX_PKTAP).contains(&(length as usize));
    if is_header && record == PACKET {
        let header = data.get(at..at + length as usize).unwrap_or_default();
        note_process(header, u32::from_le_bytes(array(header, 0)?) == length, fields);
    }
    match (is_header, record, link_type) {
        (true, PACKET, _) => Some((Layer::Link(inner), at + length as usize)),
        // Private use by another system, or a record without a packet.
        (false, _, 149) | (true, ..) => Some((Layer::Skipped(SkippedProtocol::LinkType(link_type)), at)),
        (false, ..) => None,
    }
}

/// Notes the process on whose behalf a packet was sent or received, or else the owner of the socket (`pth_epid`,
/// `pth_ecomm`, `pth_pid`, `pth_comm` of XNU's pktap.h).
fn note_process<F: Fields>(header: &[u8], is_little_endian: bool, fields: &mut F) {
    const OWNER: (usize, usize) = (52, 56);
    const EFFECTIVE: (usize, usize) = (84, 88);
    const NAME: usize = 17;
    for (id_at, name_at) in [EFFECTIVE, OWNER] {
        let (Some(id), Some(name)) = (array(header, id_at), header.get(name_at..name_at + NAME)) else { continue };
        let id = if is_little_endian { u32::from_le_bytes(id) } else { u32::from_be_bytes(id) };
        // Minus one stands for an unknown process.
        let is_known = id != 0 && id != u32::MAX;
        if is_known || name[0] != 0 {
            return fields.note_process(is_known.then_some(id), name);
        }
    }
}

/// Parses a PPI header: version, flags, length and link type, little-endian.
pub(super) fn ppi<F: Fields>(data: &[u8], at: usize, fields: &mut F) -> Option<(Layer, usize)> {
    let length = u16::from_le_bytes(read_array(data, at + 2, fields)?);
    let link_type = u32::from_le_bytes(read_array(data, at + 4, fields)?);
    (length >= 8).then(|| (Layer::Link(link_type), at + usize::from(length)))
}

/// Parses an NFLOG header: family, version and resource, then attributes in the byte order of the capturing host. One
/// attribute is the packet.
pub(super) fn nflog<F: Fields>(data: &[u8], at: usize, fields: &mut F) -> Option<(Layer, usize)> {
    const PAYLOAD: u16 = 9;
    let family = read8(data, at, 0xff, fields)?;
    let mut place = at + 4;
    let first: [u8; 2] = array(data, place)?;
    let is_little_endian = u16::from_le_bytes(first) <= u16::from_be_bytes(first);
    let number = |field: [u8; 2]| if is_little_endian { u16::from_le_bytes(field) } else { u16::from_be_bytes(field) };
    for _ in 0..MAX_ATTRIBUTES {
        let length = usize::from(number(read_array(data, place, fields)?));
        let kind = number(read_array(data, place + 2, fields)?);
        if length < 4 {
            return None;
        }
        if kind & 0x7fff == PAYLOAD {
            let layer = if matches!(family, 2 | 10) { family_layer(family.into()) } else { Layer::Ip(None) };
            return Some((layer, place + 4));
        }
        place += length.next_multiple_of(4);
    }
    None
}

/// Header of an ERF record (Endace, "ERF Types Reference Guide").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ErfHeader {
    /// Link type of the packet; absent in records without one.
    pub(crate) link_type: Option<u32>,
    /// Bytes before the packet.
    pub(crate) length: usize,
    /// Length of the record, and of the packet on the wire.
    pub(crate) record_length: u16,
    pub(crate) wire_length: u16,
}

impl ErfHeader {
    pub(crate) const LENGTH: usize = 16;

    /// Parses a header with its extensions. `None` if `data` is too short.
    pub(crate) fn parse(data: &[u8]) -> Option<ErfHeader> {
        ErfHeader::read(data, 0, &mut ())
    }

    fn read<F: Fields>(data: &[u8], at: usize, fields: &mut F) -> Option<ErfHeader> {
        const MORE: u8 = 0x80;
        let kind = read8(data, at + 8, 0xff, fields)?;
        let record_length = read16(data, at + 10, fields)?;
        let wire_length = read16(data, at + 14, fields)?;
        let mut length = ErfHeader::LENGTH;
        let mut extension = kind;
        for _ in 0..MAX_ATTRIBUTES {
            if extension & MORE == 0 {
                break;
            }
            extension = read8(data, at + length, MORE, fields)?;
            length += 8;
        }
        let link_type = match kind & !MORE {
            2 | 11 | 16 | 20 => {
                // An offset and a byte of padding.
                length += 2;
                Some(1)
            }
            // HDLC: Cisco's, or PPP.
            1 | 10 | 15 | 19 => match read8(data, at + length, 0xff, fields)? {
                0x0f | 0x8f => Some(104),
                _ => Some(50),
            },
            22 => Some(228),
            23 => Some(229),
            _ => None,
        };
        Some(ErfHeader { link_type, length, record_length, wire_length })
    }
}

pub(super) fn erf<F: Fields>(data: &[u8], at: usize, fields: &mut F) -> Option<(Layer, usize)> {
    let header = ErfHeader::read(data, at, fields)?;
    Some(match header.link_type {
        Some(link_type) => (Layer::Link(link_type), at + header.length),
        None => (Layer::Skipped(SkippedProtocol::LinkType(197)), at),
    })
}

/// Parses a header of Juniper routers: a magic number, flags and, if they say so, extensions. Packets without a link
/// layer have four bytes before IP instead.
pub(super) fn juniper<F: Fields>(link_type: u32, data: &[u8], at: usize, fields: &mut F) -> Option<(Layer, usize)> {
    const EXTENSIONS: u8 = 0x80;
    const WITHOUT_LINK_LAYER: u8 = 0x02;
    let magic: [u8; 3] = read_array(data, at, fields)?;
    let flags = read8(data, at + 3, EXTENSIONS | WITHOUT_LINK_LAYER, fields)?;
    if magic != *b"MGC" {
        return None;
    }
    let extensions = if flags & EXTENSIONS != 0 { 2 + usize::from(read16(data, at + 4, fields)?) } else { 0 };
    let start = at + 4 + extensions;
    Some(match (flags & WITHOUT_LINK_LAYER != 0, link_type) {
        (true, _) => (Layer::Ip(None), start + 4),
        (false, 178) => (Layer::Ethernet, start),
        (false, 179) => (Layer::Ppp, start),
        (false, 180) => (Layer::Link(107), start),
        (false, _) => (Layer::Link(104), start),
    })
}
