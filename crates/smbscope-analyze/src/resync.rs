//! Finds a frame in the middle of a stream: after a gap, after a truncated header, or at a mid-stream start.
//!
//! A candidate needs a frame header and an SMB header that agree, and it must be followed by the end of the segment or
//! by another frame. File data that happens to contain captured SMB traffic is rejected.

use memchr::memchr_iter;
use smbscope_wire::nbss::{FrameHeader, FrameType, HEADER_LENGTH};
use smbscope_wire::{smb1, smb2};

/// Number of bytes after a frame that confirm it: another frame header with a protocol id.
pub(crate) const CONFIRMING: usize = HEADER_LENGTH + 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResyncPoint {
    pub(crate) offset: u64,
    pub(crate) trust: ResyncConfidence,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResyncConfidence {
    /// Confirmed by the following bytes, or a whole segment.
    Sure,
    /// Begins with a segment; still to be confirmed by the end of a segment or by the following bytes.
    Aligned,
    /// Begins inside a segment, where data may contain captured SMB; only another frame after it confirms it.
    Weak,
}

pub(crate) fn is_protocol_id(id: &[u8]) -> bool {
    matches!(id, [0xfc..=0xff, b'S', b'M', b'B'])
}

/// Returns true if the bytes, possibly truncated, may begin a frame. No bytes are accepted.
pub(crate) fn may_follow(bytes: &[u8]) -> bool {
    let Some(header) = bytes.first_chunk::<HEADER_LENGTH>() else {
        return bytes.first().is_none_or(|byte| *byte == 0 || (0x81..=0x85).contains(byte));
    };
    let Some(header) = FrameHeader::parse(*header) else { return false };
    let id = &bytes[HEADER_LENGTH..bytes.len().min(HEADER_LENGTH + 4)];
    header.frame_type != FrameType::Message || id.len() < 4 || is_protocol_id(id)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Misnamed {
    /// A message; the received type byte was damaged.
    Message(FrameHeader),
    Other(u64),
}

/// Classifies a frame with an invalid header. `payload` is captured, in a segment with `length` more bytes.
pub(crate) fn misnamed(header: [u8; HEADER_LENGTH], payload: &[u8], length: u64) -> Option<Misnamed> {
    let frame = FrameHeader::parse([0, header[1], header[2], header[3]])?;
    if is_plausible_message(payload, frame.length as usize) {
        return Some(Misnamed::Message(frame));
    }
    let following = payload.get(frame.length as usize..)?;
    let ends_with_segment = following.is_empty() && u64::from(frame.length) == length && frame.length > 0;
    let confirmed = following.len() >= CONFIRMING && may_follow(following);
    (ends_with_segment || confirmed).then_some(Misnamed::Other(frame.length.into()))
}

/// Searches a segment of `length` bytes on the wire for a frame. `session` is the id of earlier encrypted frames.
pub(crate) fn find(captured: &[u8], length: u64, at_segment_start: bool, session: Option<u64>) -> Option<ResyncPoint> {
    if at_segment_start && let Some(found) = candidate(captured, 0, length, true, session) {
        return Some(found);
    }
    memchr_iter(b'S', captured)
        .filter_map(|letter| letter.checked_sub(HEADER_LENGTH + 1))
        .find_map(|offset| candidate(captured, offset, length, false, session))
}

fn candidate(
    captured: &[u8],
    offset: usize,
    length: u64,
    at_segment_start: bool,
    session: Option<u64>,
) -> Option<ResyncPoint> {
    let bytes = captured.get(offset..)?;
    let payload = bytes.get(HEADER_LENGTH..)?;
    let left = length.saturating_sub((offset + HEADER_LENGTH) as u64);
    let trust = trust(*bytes.first_chunk()?, payload, left, at_segment_start, session)?;
    Some(ResyncPoint { offset: offset as u64, trust })
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Before {
    pub(crate) byte: u8,
    pub(crate) starts_segment: bool,
}

/// Searches for a frame whose header begins in the last bytes before a segment. Returns the number of these bytes.
pub(crate) fn find_straddling(
    before: &[Before],
    captured: &[u8],
    length: u64,
    at_segment_start: bool,
    session: Option<u64>,
) -> Option<(usize, ResyncConfidence)> {
    (0..before.len()).find_map(|begin| {
        let here = HEADER_LENGTH.checked_sub(before.len() - begin)?;
        let mut header = [0; HEADER_LENGTH];
        header.iter_mut().zip(&before[begin..]).for_each(|(to, from)| *to = from.byte);
        header[HEADER_LENGTH - here..].copy_from_slice(captured.get(..here)?);
        // A sender that gives the header a segment of its own does the same for the message.
        let is_aligned = before[begin].starts_segment || (at_segment_start && here == 0);
        let trust = trust(header, &captured[here..], length.saturating_sub(here as u64), is_aligned, session)?;
        Some((before.len() - begin, trust))
    })
}

/// Returns `None` if this is not a frame. `payload` is the captured part after the header, in a segment that has
/// `length` more bytes; `at_segment_start` is true if the frame or its payload begins with a segment.
fn trust(
    header: [u8; HEADER_LENGTH],
    payload: &[u8],
    length: u64,
    at_segment_start: bool,
    session: Option<u64>,
) -> Option<ResyncConfidence> {
    let header = FrameHeader::parse(header)?;
    if header.frame_type != FrameType::Message || !is_plausible_message(payload, header.length as usize) {
        return None;
    }
    let end = u64::from(header.length);
    let unconfirmed = match at_segment_start {
        // A known session id in an encrypted stream is not a coincidence.
        _ if session.is_some() && encrypted_session(payload, header.length) == session => ResyncConfidence::Sure,
        true => ResyncConfidence::Aligned,
        false => ResyncConfidence::Weak,
    };
    let following = payload.get(header.length as usize..).unwrap_or_default();
    Some(match following.len() {
        _ if end == length && at_segment_start => ResyncConfidence::Sure,
        _ if end >= length => unconfirmed,
        // Truncated by the snap length: only the start of the segment speaks for it.
        0 if at_segment_start => ResyncConfidence::Sure,
        0 => return None,
        _ if !may_follow(following) => return None,
        CONFIRMING.. => ResyncConfidence::Sure,
        _ => unconfirmed,
    })
}

fn encrypted_session(payload: &[u8], length: u32) -> Option<u64> {
    if let Some(message) = smb2::decrypted_part(payload) {
        return smb2::Smb2Header::parse(message)?.session_id;
    }
    let header = smb2::TransformHeader::parse(payload)?;
    let inside = length.checked_sub(smb2::TransformHeader::LENGTH as u32);
    header.session_id.filter(|_| header.original_size == inside)
}

fn is_plausible_message(payload: &[u8], length: usize) -> bool {
    let here = &payload[..payload.len().min(length)];
    match here.get(..4) {
        Some(id) if id == smb1::PROTOCOL_ID => smb1::Smb1Header::is_plausible(here, length),
        Some(id) if id == smb2::PROTOCOL_ID => {
            length >= smb2::Smb2Header::LENGTH + 2 && smb2::Smb2Header::is_plausible(here, length)
        }
        Some(id) if id == smb2::TRANSFORM_ID => smb2::TransformHeader::parse(here).is_some_and(|header| {
            let inside = length.checked_sub(smb2::TransformHeader::LENGTH);
            header.original_size.is_none_or(|size| inside == Some(size as usize))
        }),
        Some(id) if id == smb2::COMPRESSION_ID => {
            // Chained and unchained headers both begin with the original size; algorithms end at 5.
            length >= 16 && here.get(8..10).is_some_and(|algorithm| algorithm[0] <= 5 && algorithm[1] == 0)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn echo_frame() -> Vec<u8> {
        let mut bytes = vec![0, 0, 0, 68, 0xfe, b'S', b'M', b'B', 64, 0];
        bytes.resize(4 + 12, 0);
        bytes.push(13);
        bytes.resize(4 + 64, 0);
        bytes.extend([4, 0, 0, 0]);
        bytes
    }

    #[test]
    fn a_frame_behind_other_data_is_found_but_not_trusted_yet() {
        let mut bytes = b"the tail of a read".to_vec();
        bytes.extend(echo_frame());
        let found = find(&bytes, bytes.len() as u64, true, None);
        assert_eq!(found, Some(ResyncPoint { offset: 18, trust: ResyncConfidence::Weak }));
    }

    #[test]
    fn captured_smb_inside_file_data_is_not_taken_for_a_frame() {
        let mut bytes = b"a capture file: ".to_vec();
        bytes.extend(echo_frame());
        bytes.extend(b"\x12\x34\x56\x78 and the next record");
        assert_eq!(find(&bytes, bytes.len() as u64, true, None), None);
    }

    #[test]
    fn two_frames_in_a_row_confirm_each_other() {
        let mut bytes = vec![7; 11];
        bytes.extend(echo_frame());
        bytes.extend(echo_frame());
        bytes.extend([0, 0]);
        let found = find(&bytes, 1460, false, None);
        assert_eq!(found, Some(ResyncPoint { offset: 11, trust: ResyncConfidence::Sure }));
    }

    #[test]
    fn a_message_behind_a_wrong_type_is_a_message() {
        let bytes = echo_frame();
        let frame = FrameHeader { frame_type: FrameType::Message, length: 68 };
        assert_eq!(misnamed([0x5a, 0, 0, 68], &bytes[4..], 68), Some(Misnamed::Message(frame)));
    }

    #[test]
    fn an_unknown_frame_is_passed_over_where_a_frame_follows() {
        let mut payload = b"what is this".to_vec();
        payload.extend(echo_frame());
        assert_eq!(misnamed([0x42, 0, 0, 12], &payload, 84), Some(Misnamed::Other(12)));
        assert_eq!(misnamed([0x42, 0, 0, 11], &payload, 84), None);
        assert_eq!(misnamed([0x42, 0, 0, 84], &payload, 84), Some(Misnamed::Other(84)), "it ends with its segment");
    }

    #[test]
    fn an_encrypted_frame_inside_a_segment_is_trusted_when_its_session_is_known() {
        // MS-SMB2 §2.2.41: OriginalMessageSize at 36, SessionId at 44.
        let mut bytes = vec![7; 5];
        bytes.extend([0, 0, 0, 52 + 80, 0xfd, b'S', b'M', b'B']);
        bytes.resize(5 + 4 + 36, 0);
        bytes.extend([80, 0, 0, 0, 0, 0, 1, 0, 9, 9, 9, 9, 9, 9, 9, 9]);
        bytes.resize(5 + 4 + 52 + 80, 0);
        let trust = |session| find(&bytes, bytes.len() as u64, false, session).unwrap().trust;
        assert_eq!(trust(Some(0x0909_0909_0909_0909)), ResyncConfidence::Sure);
        assert_eq!((trust(Some(1)), trust(None)), (ResyncConfidence::Weak, ResyncConfidence::Weak));
    }
}
