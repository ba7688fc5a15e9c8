//! Aggregates of 802.11 (A-MSDU, IEEE 802.11 §9.3.2.2.2): several frames of one sender in one packet.

use crate::{Frame, pcap};

/// Link type of 802.11 without a radio header.
const WIFI: u32 = 105;

/// Joins up to `most` consecutive Ethernet frames of one sender. The packet has the time of the last one.
pub fn file_in_aggregates(file: &[u8], most: usize) -> Vec<u8> {
    let frames = pcap::read(file);
    let senders = frames.chunk_by(|one, other| one.data[26..30] == other.data[26..30]);
    let packets = senders.flat_map(|of_one| of_one.chunks(most)).map(aggregate);
    pcap::write(WIFI, &packets.collect::<Vec<_>>())
}

fn aggregate(frames: &[Frame]) -> Frame {
    // Data with quality of service, to the distribution system; three addresses; the bit that says aggregate.
    let mut data = [&[0x88, 1, 44, 0][..], &[2; 18], &[0x30, 0x12], &[0x80, 0]].concat();
    let start = data.len();
    for frame in frames {
        data.resize(start + (data.len() - start).next_multiple_of(4), 0);
        let inside = [&[0xaa, 0xaa, 3, 0, 0, 0][..], &frame.data[12..]].concat();
        data.extend(&frame.data[..12]);
        data.extend((inside.len() as u16).to_be_bytes());
        data.extend(inside);
    }
    let time = frames.last().map(|frame| frame.time).unwrap_or_default();
    Frame { time, wire_length: data.len(), data }
}
