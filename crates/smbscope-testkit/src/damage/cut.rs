//! Damage to capture files.

use crate::packet::Packet;
use crate::pcap::{FILE_HEADER, RECORD_HEADER};
use smbscope_model::Timestamp;

pub fn move_apart(packets: &[Packet]) -> Vec<Packet> {
    let mut packets = packets.to_vec();
    for index in 1..packets.len() {
        packets[index].time = packets[index].time.max(Timestamp(packets[index - 1].time.0 + 1));
    }
    packets
}

/// Returns the number of packets that survive truncating a pcap file to this length, and true if a record is split.
pub fn surviving(packets: &[Packet], length: usize) -> (usize, bool) {
    let mut at = FILE_HEADER;
    for (index, packet) in packets.iter().enumerate() {
        let end = at + RECORD_HEADER + packet.ethernet().len();
        if end > length {
            return (index, length > at);
        }
        at = end;
    }
    (packets.len(), false)
}
