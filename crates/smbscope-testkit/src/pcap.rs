//! Packets as a pcap or pcapng file (draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng).

use crate::packet::Packet;
use smbscope_model::Timestamp;

/// LINKTYPE_ETHERNET.
const ETHERNET: u32 = 1;

/// A file with microsecond timestamps.
pub fn micros(packets: &[Packet]) -> Vec<u8> {
    file(0xa1b2_c3d4, 1000, packets)
}

/// A file with nanosecond timestamps.
pub fn nanos(packets: &[Packet]) -> Vec<u8> {
    file(0xa1b2_3c4d, 1, packets)
}

fn file(magic: u32, resolution_ns: i64, packets: &[Packet]) -> Vec<u8> {
    let mut bytes = header(magic, ETHERNET);
    for packet in packets {
        record(&mut bytes, resolution_ns, packet.time, &packet.ethernet(), packet.wire_length());
    }
    bytes
}

/// A file with nanosecond timestamps of packets given by time, captured bytes and length on the wire.
pub fn file_of<'a>(link_type: u32, packets: impl Iterator<Item = (Timestamp, &'a [u8], usize)>) -> Vec<u8> {
    let mut bytes = header(0xa1b2_3c4d, link_type);
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
    let seconds = time.0.div_euclid(1_000_000_000) as u32;
    let fraction = (time.0.rem_euclid(1_000_000_000) / resolution_ns) as u32;
    for field in [seconds, fraction, data.len() as u32, wire_length as u32] {
        bytes.extend(field.to_le_bytes());
    }
    bytes.extend(data);
}

/// A pcapng file with nanosecond timestamps, each packet on an interface of its own choice.
pub fn next_generation(packets: &[Packet], interface_of: &[usize]) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Byte order, version 1.0, a section of unknown length.
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
