//! Headers that capture systems put before a packet: PKTAP, NFLOG, enc, pflog, PPI, ERF, ipnet, Juniper; and radio
//! headers, with the IEEE 802.11 frames after them. Link types are from the tcpdump.org registry.
//!
//! Only data frames that are readable lead to IP. Management, control and encrypted frames are counted.

use super::fields::{Fields, Layer, Stays, be16, read8, read16};
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

const WIFI_HEADER: usize = 24;
/// Addresses and length of a frame in an aggregate.
const FRAME_HEADER: usize = 14;
const FROM_AND_TO_DISTRIBUTION: u8 = 0x03;
const MORE_FRAGMENTS: u8 = 0x04;
const PROTECTED: u8 = 0x40;
const ORDER: u8 = 0x80;
/// Subtypes of data frames.
const WITHOUT_DATA: u8 = 0x04;
const QUALITY_OF_SERVICE: u8 = 0x08;
/// Aggregate of several frames, in the control field for quality of service.
const AGGREGATE: u8 = 0x80;
/// Initialisation vector that stays in frames that the hardware decrypted.
const VECTOR: usize = 8;
const SNAP: [u8; 3] = [0xaa, 0xaa, 0x03];
/// Words of flags in a radiotap header; more: `malformed_packets`.
const MAX_PRESENT: usize = 16;

/// Kinds of frames without readable data, numbered by [`SkippedProtocol::WifiFrame`].
const MANAGEMENT: u8 = 0;
const CONTROL: u8 = 1;
const EMPTY: u8 = 2;
const ENCRYPTED: u8 = 3;
const FRAGMENT: u8 = 4;
const EXTENSION: u8 = 5;

/// Parses a frame. `padded` if the driver aligned the payload to four bytes.
pub(super) fn wifi_frame<F: Fields>(data: &[u8], at: usize, padded: bool, fields: &mut F) -> Option<(Layer, usize)> {
    let (control, flags) = (read8(data, at, 0xff, fields)?, read8(data, at + 1, 0xff, fields)?);
    let skipped = |kind: u8| Some((Layer::Skipped(SkippedProtocol::WifiFrame(kind)), at));
    let subtype = control >> 4;
    match control >> 2 & 3 {
        _ if control & 3 != 0 => return None,
        0 => return skipped(MANAGEMENT),
        1 => return skipped(CONTROL),
        3 => return skipped(EXTENSION),
        _ if subtype & WITHOUT_DATA != 0 => return skipped(EMPTY),
        _ => {}
    }
    if flags & MORE_FRAGMENTS != 0 || read8(data, at + 22, 0x0f, fields)? & 0x0f != 0 {
        return skipped(FRAGMENT);
    }
    let mut length =
        if flags & FROM_AND_TO_DISTRIBUTION == FROM_AND_TO_DISTRIBUTION { WIFI_HEADER + 6 } else { WIFI_HEADER };
    let mut is_aggregate = false;
    if subtype & QUALITY_OF_SERVICE != 0 {
        is_aggregate = read8(data, at + length, AGGREGATE, fields)? & AGGREGATE != 0;
        length += if flags & ORDER != 0 { 6 } else { 2 };
    }
    if padded {
        length = length.next_multiple_of(4);
    }
    let mut body = at + length;
    if flags & PROTECTED != 0 {
        // The hardware may have decrypted the frame.
        let places = [body, body + VECTOR];
        for place in places {
            fields.enter(data.get(place..place + SNAP.len()), Stays::Whole);
        }
        let is_readable = |place: &usize| data.get(*place..).is_some_and(|rest| rest.starts_with(&SNAP));
        match places.into_iter().find(is_readable) {
            Some(place) => body = place,
            None => {
                data.get(body + VECTOR..body + VECTOR + SNAP.len())?;
                return skipped(ENCRYPTED);
            }
        }
    }
    if is_aggregate {
        fields.note_aggregate(body);
    }
    // The header of a frame in an aggregate has the layout of Ethernet with a length.
    Some((if is_aggregate { Layer::Ethernet } else { Layer::LogicalLink }, body))
}

/// Parses a radiotap header (radiotap.org). Its flags tell whether the payload is aligned.
pub(super) fn radiotap<F: Fields>(data: &[u8], at: usize, fields: &mut F) -> Option<(Layer, usize)> {
    const TIME: u8 = 1;
    const FLAGS: u8 = 2;
    const MORE: u8 = 0x80;
    const PADDED: u8 = 0x20;
    const BAD_CHECKSUM: u8 = 0x40;
    let length = usize::from(read_le16(data, at + 2, fields)?);
    let present = read8(data, at + 4, TIME | FLAGS, fields)?;
    let mut place = 4;
    for word in 0..MAX_PRESENT {
        place = 8 + 4 * word;
        if read8(data, at + place - 1, MORE, fields)? & MORE == 0 {
            break;
        }
    }
    if place > length || length < 8 {
        return None;
    }
    if present & TIME != 0 {
        place = place.next_multiple_of(8) + 8;
    }
    let flags = match present & FLAGS != 0 && place < length {
        true => read8(data, at + place, PADDED | BAD_CHECKSUM, fields)?,
        false => 0,
    };
    if flags & BAD_CHECKSUM != 0 {
        return None;
    }
    wifi_frame(data, at + length, flags & PADDED != 0, fields)
}

/// Parses a header of the Prism or AVS kind. Drivers write both under either link type.
pub(super) fn prism_or_avs<F: Fields>(data: &[u8], at: usize, fields: &mut F) -> Option<(Layer, usize)> {
    const AVS: [u8; 3] = [0x80, 0x21, 0x10];
    const PRISM: usize = 144;
    let start = data.get(at..at + 8)?;
    fields.enter(Some(start), Stays::Whole);
    let length = match start.starts_with(&AVS) {
        true => u32::from_be_bytes([start[4], start[5], start[6], start[7]]) as usize,
        false => PRISM,
    };
    if !(8..=1024).contains(&length) {
        return None;
    }
    wifi_frame(data, at + length, false, fields)
}

/// Returns the offset of the frame after this one of an aggregate. Frames are aligned to four bytes.
pub(super) fn next_in_aggregate(data: &[u8], at: usize) -> Option<usize> {
    let length = FRAME_HEADER + usize::from(be16(data, at.checked_add(12)?)?);
    let next = at.checked_add(length.next_multiple_of(4))?;
    // A check sum may follow the last frame.
    (data.len() >= next.checked_add(FRAME_HEADER)?).then_some(next)
}

fn read_le16<F: Fields>(data: &[u8], at: usize, fields: &mut F) -> Option<u16> {
    read16(data, at, fields).map(u16::swap_bytes)
}
