//! Packets as a pcap file (draft-ietf-opsawg-pcap).

use crate::packet::Packet;

/// A file with microsecond timestamps.
pub fn micros(packets: &[Packet]) -> Vec<u8> {
    file(0xa1b2_c3d4, 1000, packets)
}

/// A file with nanosecond timestamps.
pub fn nanos(packets: &[Packet]) -> Vec<u8> {
    file(0xa1b2_3c4d, 1, packets)
}

fn file(magic: u32, resolution_ns: i64, packets: &[Packet]) -> Vec<u8> {
    let mut bytes = magic.to_le_bytes().to_vec();
    bytes.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend(262_144u32.to_le_bytes());
    bytes.extend(1u32.to_le_bytes());
    for packet in packets {
        let frame = packet.ethernet();
        let seconds = packet.time.0.div_euclid(1_000_000_000) as u32;
        let fraction = (packet.time.0.rem_euclid(1_000_000_000) / resolution_ns) as u32;
        for field in [seconds, fraction, frame.len() as u32, packet.wire_length() as u32] {
            bytes.extend(field.to_le_bytes());
        }
        bytes.extend(frame);
    }
    bytes
}
