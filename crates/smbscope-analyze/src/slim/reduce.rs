//! Reduces headers and the start of frame payloads to the fields that the analysis reads; replaces names and addresses.

use crate::content::{FrameContent, FrameParseResult, MAX_HEAD, MAX_RECOVERED, read_plain};
use crate::pseudonym::{Disguise, PseudonymKind};
use smbscope_capture::Packet;
use smbscope_capture::decode::Outline;
use smbscope_model::TunnelPorts;
use smbscope_wire::kept::{NameOf, RetainedRanges};
use smbscope_wire::{compression, smb1, smb2};
use std::net::IpAddr;

/// Length of the header of an unchained compressed message (MS-SMB2 §2.2.42.1), and offsets of its fields.
const COMPRESSION_HEADER: usize = 16;
const COMPRESSED_SIZE: usize = 4;
const COMPRESSION_OFFSET: usize = 12;

/// Slims `head`, the captured beginning of a payload of `length` bytes. The result is as long as the part that is read.
pub(super) fn payload(head: &[u8], length: u32, names: &mut NameAnonymizer) -> Vec<u8> {
    if head.starts_with(&smb2::COMPRESSION_ID) {
        return compressed(head, length, head.len().min(length as usize), names);
    }
    let is_cut = smb2::decrypted_part(head).is_some_and(|message| message.len() < head.len());
    let read = if is_cut { head } else { &head[..needed(head, length)] };
    let mut slim = vec![0; read.len()];
    match read.get(..4) {
        Some(id) if id == smb1::PROTOCOL_ID => of_smb1(read, &mut slim, names),
        Some(id) if id == smb2::PROTOCOL_ID => {
            let message = smb2::decrypted_part(read).unwrap_or(read).len();
            of_smb2(&read[..message], length as usize, &mut slim[..message], names);
            // The mark of a header that was cut.
            slim[message..].copy_from_slice(&read[message..]);
        }
        Some(id) if id == smb2::TRANSFORM_ID => {
            slim.copy_from_slice(read);
            let signature = smb2::TransformHeader::SIGNATURE;
            if !smb2::is_marked(read, signature.clone()) {
                slim[signature.start.min(read.len())..signature.end.min(read.len())].fill(0);
            }
        }
        _ => {}
    }
    slim
}

/// Slims a message in a TRANSFORM_HEADER that was decrypted to `plain`, or not at all. `sealed` is the captured part of
/// its frame's payload of `length` bytes.
///
/// The message takes the place of its TRANSFORM_HEADER, and zeros after it fill the frame. So sequence numbers and
/// lengths are as on the wire, and so are the packets in which a message begins and ends.
pub(super) fn decrypted(plain: &[u8], sealed: &[u8], length: u32, names: &mut NameAnonymizer) -> Vec<u8> {
    let signature = smb2::TransformHeader::SIGNATURE;
    if plain.is_empty() {
        let mut slim = sealed[..sealed.len().min(smb2::TransformHeader::LENGTH)].to_vec();
        match slim.get_mut(signature.clone()) {
            Some(place) => place.copy_from_slice(&smb2::DECRYPTED_MARK),
            // Too short for a mark: only the protocol of the message is known.
            None => slim = smb2::PROTOCOL_ID.to_vec(),
        }
        return slim;
    }
    let length = length.saturating_sub(smb2::TransformHeader::LENGTH as u32);
    let signature = smb2::Smb2Header::SIGNATURE;
    if plain.starts_with(&smb2::COMPRESSION_ID) {
        let mut slim = compressed(plain, length, sealed.len(), names);
        let place = slim.get_mut(COMPRESSION_HEADER + signature.start..COMPRESSION_HEADER + signature.end);
        place.into_iter().for_each(|place| place.copy_from_slice(&smb2::DECRYPTED_MARK));
        return slim;
    }
    let mut slim = payload(plain, length, names);
    match slim.get_mut(signature) {
        Some(place) => place.copy_from_slice(&smb2::DECRYPTED_MARK),
        None => slim.extend(smb2::DECRYPTED_MARK),
    }
    slim
}

fn needed(head: &[u8], length: u32) -> usize {
    let mut needed = 0;
    loop {
        match read_plain(&head[..needed], u64::from(length), false, true) {
            FrameParseResult::Needs(bytes) if bytes > needed && needed < head.len() => needed = bytes.min(head.len()),
            _ => return needed,
        }
    }
}

fn of_smb1(read: &[u8], slim: &mut [u8], names: &mut NameAnonymizer) {
    match smb1::Smb1Header::parse(read) {
        Some(header) => enter(&smb1::kept(&header, read), read, slim, names),
        None => slim.copy_from_slice(read),
    }
}

fn of_smb2(read: &[u8], length: usize, slim: &mut [u8], names: &mut NameAnonymizer) {
    let mut offset = 0;
    while let Some(member) = read.get(offset..).filter(|member| !member.is_empty()) {
        let Some(header) = smb2::Smb2Header::parse(member) else {
            // Either too short for a header, or another protocol: keep what identifies it.
            let stays = if member.len() < smb2::Smb2Header::LEAST { member.len() } else { smb2::PROTOCOL_ID.len() };
            if member.starts_with(&smb2::PROTOCOL_ID) {
                slim[offset..offset + stays].copy_from_slice(&member[..stays]);
            }
            return;
        };
        let next = header.next_command as usize;
        let end = if next == 0 { length } else { offset.saturating_add(next).min(length) };
        let bytes = &member[..member.len().min(end.saturating_sub(offset))];
        let fields = member.len().min(smb2::Smb2Header::SIGNATURE.start);
        slim[offset..offset + fields].copy_from_slice(&member[..fields]);
        if offset == 0 && smb2::is_marked(read, smb2::Smb2Header::SIGNATURE) {
            slim[smb2::Smb2Header::SIGNATURE].copy_from_slice(&smb2::DECRYPTED_MARK);
        }
        enter(&smb2::kept(&header, bytes), bytes, &mut slim[offset..offset + bytes.len()], names);
        if next < smb2::Smb2Header::LENGTH || end >= length {
            return;
        }
        offset = end;
    }
}

fn enter(kept: &RetainedRanges, message: &[u8], slim: &mut [u8], names: &mut NameAnonymizer) {
    for field in &kept.fields {
        let place = field.start.min(message.len())..field.end.min(message.len());
        if let (Some(field), Some(slim)) = (message.get(place.clone()), slim.get_mut(place)) {
            slim.copy_from_slice(field);
        }
    }
    for name in &kept.names {
        // Names can't begin inside a header.
        let start = name.range.start.max(smb1::Smb1Header::LENGTH).min(message.len());
        let place = start..name.range.end.clamp(start, message.len());
        slim[place.clone()].copy_from_slice(&message[place.clone()]);
        names.replace(name.of, name.unicode, &mut slim[place]);
    }
    for address in &kept.addresses {
        if let (Some(address), Some(slim)) = (message.get(address.clone()), slim.get_mut(address.clone())) {
            slim.copy_from_slice(address);
            names.address(slim);
        }
    }
}

/// Replaces a compressed message by one whose first bytes are plain, as far as they are read and fit into `room` bytes.
fn compressed(head: &[u8], length: u32, room: usize, names: &mut NameAnonymizer) -> Vec<u8> {
    let chained = compression::looks_chained(head);
    let original = compression::parse_as(head, chained).map(|frame| frame.original_len());
    let recovered = compression::recover_prefix(head, chained, MAX_RECOVERED);
    let is_read = matches!(
        read_plain(head, u64::from(length), true, true),
        FrameParseResult::Done(FrameContent::Smb2 { compressed: true, .. })
    );
    let (Ok(original), Ok(message), true) = (original, recovered, is_read) else {
        // The message can't be decompressed, nor can its header alone.
        let mut slim = head[..head.len().min(COMPRESSION_HEADER)].to_vec();
        if let Some(offset) = slim.get_mut(COMPRESSION_OFFSET..) {
            offset.fill(0);
        }
        return slim;
    };
    let message_length = u32::try_from(original).unwrap_or(u32::MAX);
    let room = room.min(MAX_HEAD).saturating_sub(COMPRESSION_HEADER);
    let mut plain = vec![0; needed(&message, message_length).min(room)];
    let read = plain.len();
    of_smb2(&message[..read], original, &mut plain, names);
    let mut slim = vec![0; COMPRESSION_HEADER];
    slim[..4].copy_from_slice(&smb2::COMPRESSION_ID);
    let behind = message_length.saturating_sub(read as u32);
    slim[COMPRESSED_SIZE..COMPRESSED_SIZE + 4].copy_from_slice(&behind.to_le_bytes());
    slim[COMPRESSION_OFFSET..].copy_from_slice(&(read as u32).to_le_bytes());
    slim.extend(plain);
    slim
}

const IPV4_CHECKSUM: usize = 10;

/// Returns the first `length` bytes of a packet. If names are replaced, keeps only the fields that the decoder reads,
/// with replaced addresses, and drops TCP and UDP checksums, which would help to guess addresses.
pub(super) fn headers(
    packet: &Packet<'_>,
    length: usize,
    tunnels: &TunnelPorts,
    names: &mut NameAnonymizer,
) -> Vec<u8> {
    if !names.are_replaced() {
        return packet.data[..length].to_vec();
    }
    let mut headers = Outline::understood(packet, length, tunnels);
    headers.addresses.into_iter().for_each(|place| names.address(&mut headers.bytes[place]));
    for place in headers.ipv4_headers {
        let header = &mut headers.bytes[place];
        let checksum = checksum(header);
        header[IPV4_CHECKSUM..IPV4_CHECKSUM + 2].copy_from_slice(&checksum.to_be_bytes());
    }
    headers.bytes
}

fn checksum(header: &[u8]) -> u16 {
    let sum: u32 = header.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

pub(super) enum NameAnonymizer {
    Kept,
    Replaced(Box<Disguise>),
}

impl NameAnonymizer {
    pub(super) fn replace(&mut self, of: NameOf, unicode: bool, name: &mut [u8]) {
        let NameAnonymizer::Replaced(disguise) = self else { return };
        let mut units: Vec<u16> = match unicode {
            true => name.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]])).collect(),
            false => name.iter().map(|byte| u16::from(*byte)).collect(),
        };
        match of {
            NameOf::Path => disguise.path(&mut units),
            NameOf::Unc => disguise.unc(&mut units),
            NameOf::User => disguise.name(PseudonymKind::User, &mut units),
            NameOf::Domain => disguise.name(PseudonymKind::Domain, &mut units),
            NameOf::Host => disguise.name(PseudonymKind::Host, &mut units),
        }
        // An incomplete UTF-16 unit at the end becomes 0.
        name.fill(0);
        match unicode {
            true => name.chunks_exact_mut(2).zip(units).for_each(|(place, unit)| {
                place.copy_from_slice(&unit.to_le_bytes());
            }),
            false => name.iter_mut().zip(units).for_each(|(place, unit)| *place = unit.to_le_bytes()[0]),
        }
    }

    pub(super) fn address(&mut self, address: &mut [u8]) {
        let NameAnonymizer::Replaced(disguise) = self else { return };
        if let Ok(bytes) = <[u8; 4]>::try_from(&*address) {
            if let IpAddr::V4(other) = disguise.address(IpAddr::from(bytes)) {
                address.copy_from_slice(&other.octets());
            }
        } else if let Ok(bytes) = <[u8; 16]>::try_from(&*address) {
            if let IpAddr::V6(other) = disguise.address(IpAddr::from(bytes)) {
                address.copy_from_slice(&other.octets());
            }
        } else {
            // A truncated address would reveal the network.
            address.fill(0);
        }
    }

    pub(super) fn are_replaced(&self) -> bool {
        matches!(self, NameAnonymizer::Replaced(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_a_header_fits_its_new_addresses() {
        // Example from the Wikipedia page on IPv4 header checksums: 45 00 00 73 … has the checksum b861.
        let header = [0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7];
        assert_eq!(checksum(&header), 0xb861);
    }
}
