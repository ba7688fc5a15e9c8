//! What happens to capture files: their end is missing, their packets are spread over several.

use crate::packet::Packet;
use crate::pcap::{FILE_HEADER, RECORD_HEADER};
use smbscope_model::Timestamp;

/// The same packets, each at least a nanosecond later than the one before.
pub fn move_apart(packets: &[Packet]) -> Vec<Packet> {
    let mut packets = packets.to_vec();
    for index in 1..packets.len() {
        packets[index].time = packets[index].time.max(Timestamp(packets[index - 1].time.0 + 1));
    }
    packets
}

/// How many packets of a pcap file survive when it is cut to this many bytes, and whether a record is cut in two.
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
