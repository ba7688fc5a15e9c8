//! IEEE 802.11 frames, and the radio headers that capture systems put before them.
//!
//! Only data frames that are readable lead to IP. Management, control and encrypted frames are counted.

use super::fields::{Fields, Layer, Stays, be16, read8};
use smbscope_model::SkippedProtocol;

const HEADER: usize = 24;
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
pub(super) fn frame<F: Fields>(data: &[u8], at: usize, padded: bool, fields: &mut F) -> Option<(Layer, usize)> {
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
    let mut length = if flags & FROM_AND_TO_DISTRIBUTION == FROM_AND_TO_DISTRIBUTION { HEADER + 6 } else { HEADER };
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
    frame(data, at + length, flags & PADDED != 0, fields)
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
    frame(data, at + length, false, fields)
}

/// Returns the offset of the frame after this one of an aggregate. Frames are aligned to four bytes.
pub(super) fn next_in_aggregate(data: &[u8], at: usize) -> Option<usize> {
    let length = FRAME_HEADER + usize::from(be16(data, at.checked_add(12)?)?);
    let next = at.checked_add(length.next_multiple_of(4))?;
    // A check sum may follow the last frame.
    (data.len() >= next.checked_add(FRAME_HEADER)?).then_some(next)
}

fn read_le16<F: Fields>(data: &[u8], at: usize, fields: &mut F) -> Option<u16> {
    super::fields::read16(data, at, fields).map(u16::swap_bytes)
}
