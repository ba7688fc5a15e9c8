//! Reads and writes packets as pcap, and writes pcapng (draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng).

use crate::frame::Frame;
use crate::packet::Packet;
use smbscope_model::Timestamp;

pub const ETHERNET: u32 = 1;
pub const FILE_HEADER: usize = 24;
pub const RECORD_HEADER: usize = 16;
/// Little-endian, microseconds.
const MICROSECONDS: u32 = 0xa1b2_c3d4;
/// Little-endian, nanoseconds.
const NANOSECONDS: u32 = 0xa1b2_3c4d;

pub fn micros(packets: &[Packet]) -> Vec<u8> {
    file(MICROSECONDS, 1000, packets)
}

pub fn nanos(packets: &[Packet]) -> Vec<u8> {
    file(NANOSECONDS, 1, packets)
}

fn file(magic: u32, resolution_ns: i64, packets: &[Packet]) -> Vec<u8> {
    let mut bytes = header(magic, ETHERNET);
    for packet in packets {
        record(&mut bytes, resolution_ns, packet.time, &packet.ethernet(), packet.wire_length());
    }
    bytes
}

/// Reads the packets of a little-endian file up to the first unreadable one.
pub fn read(file: &[u8]) -> Vec<Frame> {
    let field = |at: usize| Some(u32::from_le_bytes(file.get(at..at + 4)?.try_into().ok()?));
    let resolution_ns = match field(0) {
        Some(NANOSECONDS) => 1,
        Some(MICROSECONDS) => 1000,
        _ => return Vec::new(),
    };
    let mut frames = Vec::new();
    let mut at = FILE_HEADER;
    while let (Some(seconds), Some(fraction), Some(captured), Some(wire)) =
        (field(at), field(at + 4), field(at + 8), field(at + 12))
    {
        at += RECORD_HEADER;
        let Some(data) = at.checked_add(captured as usize).and_then(|end| file.get(at..end)) else { break };
        at += data.len();
        let time = Timestamp(i64::from(seconds) * 1_000_000_000 + i64::from(fraction) * resolution_ns);
        frames.push(Frame { time, data: data.to_vec(), wire_length: wire.max(captured) as usize });
    }
    frames
}

/// Writes a file with nanosecond timestamps.
pub fn write<'a>(link_type: u32, frames: impl IntoIterator<Item = &'a Frame>) -> Vec<u8> {
    file_of(link_type, frames.into_iter().map(|frame| (frame.time, &frame.data[..], frame.wire_length)))
}

/// Writes a file with nanosecond timestamps from time, captured bytes and length on the wire of each packet.
pub fn file_of<'a>(link_type: u32, packets: impl Iterator<Item = (Timestamp, &'a [u8], usize)>) -> Vec<u8> {
    let mut bytes = header(NANOSECONDS, link_type);
    for (time, data, wire_length) in packets {
        record(&mut bytes, 1, time, data, wire_length);
    }
    bytes
}

fn header(magic: u32, link_type: u32) -> Vec<u8> {
    let mut bytes = magic.to_le_bytes().to_vec();
    bytes.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend(262_144u32.to_le_bytes());
    bytes.extend(link_type.to_le_bytes());
    bytes
}

fn record(bytes: &mut Vec<u8>, resolution_ns: i64, time: Timestamp, data: &[u8], wire_length: usize) {
    let seconds = time.0.div_euclid(1_000_000_000).clamp(0, u32::MAX.into()) as u32;
    let fraction = (time.0.rem_euclid(1_000_000_000) / resolution_ns) as u32;
    for field in [seconds, fraction, data.len() as u32, wire_length as u32] {
        bytes.extend(field.to_le_bytes());
    }
    bytes.extend(data);
}

/// Writes a pcapng file with nanosecond timestamps; `interface_of` selects the interface of each packet.
pub fn next_generation(packets: &[Packet], interface_of: &[usize]) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Byte-order magic, version 1.0, section of unknown length.
    block(&mut bytes, 0x0a0d_0d0a, &[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
    for _ in 0..=interface_of.iter().copied().max().unwrap_or(0) {
        // Ethernet, no snap length; if_tsresol (9) is 10^-9 s.
        block(&mut bytes, 1, &[1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
    }
    for (packet, interface) in packets.iter().zip(interface_of) {
        let frame = packet.ethernet();
        let time = packet.time.0 as u64;
        let fields =
            [*interface as u32, (time >> 32) as u32, time as u32, frame.len() as u32, packet.wire_length() as u32];
        let mut body: Vec<u8> = fields.into_iter().flat_map(u32::to_le_bytes).collect();
        body.extend(frame);
        body.resize(body.len().next_multiple_of(4), 0);
        block(&mut bytes, 6, &body);
    }
    bytes
}

fn block(bytes: &mut Vec<u8>, kind: u32, body: &[u8]) {
    let length = (12 + body.len() as u32).to_le_bytes();
    bytes.extend(kind.to_le_bytes());
    bytes.extend(length);
    bytes.extend(body);
    bytes.extend(length);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Conversation, damage};

    #[test]
    fn what_is_written_is_read_again_up_to_a_record_that_is_cut() {
        let packets = Conversation::new().client_says(100, [1; 3000]).server_says(200, [2; 70]).packets();
        let packets = damage::snap(&packets, 200);
        for (file, resolution_ns) in [(nanos(&packets), 1), (micros(&packets), 1000)] {
            let frames = read(&file);
            assert_eq!(frames.len(), packets.len());
            for (frame, packet) in frames.iter().zip(&packets) {
                let time = Timestamp(packet.time.0 / resolution_ns * resolution_ns);
                let expected = Frame { time, data: packet.ethernet(), wire_length: packet.wire_length() };
                assert_eq!(*frame, expected);
            }
            assert_eq!(read(&write(ETHERNET, &frames)), frames);
            assert_eq!(read(&file[..file.len() - 1]), frames[..frames.len() - 1]);
        }
    }
}
