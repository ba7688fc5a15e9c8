//! Captures built to exhaust their reader: connection floods, absurd lengths, endless options.

use smbscope_capture::TcpFlags;
use smbscope_capture::decode::Decoder;
use smbscope_capture::reader::{CaptureInput, CaptureSet};
use smbscope_capture::tcp::{FlowEnd, FlowTable, FlowView, Retransmission, StreamChunk, StreamGap, StreamSink};
use smbscope_model::{FlowDirection, Quality};
use smbscope_testkit::{Conversation, Packet, pcap};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

/// Counts flows: live ones, their maximum, and how they ended.
#[derive(Debug, Default)]
struct Census {
    live: usize,
    most: usize,
    opened: u64,
    evicted: u64,
    bytes: u64,
}

impl StreamSink for Census {
    type Flow = ();

    fn opened(&mut self, _: &FlowView) {
        self.opened += 1;
        self.live += 1;
        self.most = self.most.max(self.live);
    }

    fn data(&mut self, (): &mut (), _: &FlowView, _: FlowDirection, chunk: &StreamChunk<'_>) {
        self.bytes += chunk.length;
    }

    fn gap(&mut self, (): &mut (), _: &FlowView, _: FlowDirection, _: &StreamGap) {}

    fn retransmitted(&mut self, (): &mut (), _: &FlowView, _: FlowDirection, _: &Retransmission) {}

    fn closed(&mut self, (): (), _: &FlowView, end: FlowEnd) {
        self.live -= 1;
        self.evicted += u64::from(end.evicted);
    }
}

#[test]
fn a_flood_of_a_million_syns_keeps_the_table_at_its_bound() {
    const FLOOD: u32 = 1_000_000;
    let mut syn = Conversation::new().packets().remove(0);
    assert!(syn.flags.syn());
    const BUDGET: usize = 16 << 20;
    let mut table = FlowTable::within(Census::default(), BUDGET);
    for number in 0..FLOOD {
        syn.source = SocketAddr::from((Ipv4Addr::from(0x0b00_0000 + number), 40_000));
        syn.time.0 += 1_000;
        table.segment(&syn.segment(number as usize + 1));
    }
    let census = table.finish();
    assert_eq!((census.opened, census.live), (u64::from(FLOOD), 0));
    // A flow takes at least half a kilobyte, but not ten.
    assert!((BUDGET / 10_000..BUDGET / 512).contains(&census.most), "{} at once", census.most);
    // Flows missing from the table at the end were evicted and counted.
    let kept = census.opened - census.evicted;
    let most = census.most as u64;
    assert!(kept <= most && kept >= most / 8 * 6, "{kept} of {most} kept");
}

#[test]
fn addresses_that_a_simple_hash_would_collide_are_found_at_once() {
    // Addresses and ports with equal sums and equal XORs. In a single bucket, 30,000 flows of three packets would take
    // 30,000 · 90,000 / 2 comparisons of two addresses: minutes, where a second is plenty.
    const FLOWS: u32 = 30_000;
    let began = Instant::now();
    let mut table = FlowTable::new(Census::default());
    let template = Conversation::new().client_sends(100, *b"12345").client_sends(200, *b"67890").packets();
    let packets: [&Packet; 3] = [&template[0], &template[3], &template[4]];
    for (round, packet) in packets.into_iter().enumerate() {
        for number in 0..FLOWS {
            let (high, low) = ((number >> 8) as u8, number as u8);
            let source = SocketAddr::from(([10, high, low, 1], 1_000 + number as u16));
            let destination = SocketAddr::from(([10, high, low, 2], 1_000 + number as u16));
            let packet = Packet { source, destination, ..packet.clone() };
            table.segment(&packet.segment((round as u32 * FLOWS + number) as usize + 1));
        }
    }
    let census = table.finish();
    assert_eq!((census.opened, census.evicted, census.bytes), (u64::from(FLOWS), 0, u64::from(FLOWS) * 10));
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

/// Reads a file with these bytes. Returns its packets, segments and counters.
fn read(bytes: &[u8]) -> (u64, u64, Quality) {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    file.write_all(bytes).expect("and written");
    let mut set =
        CaptureSet::open(&[CaptureInput::File(file.path().to_owned())]).expect("the file begins as a capture");
    let (mut decoder, mut quality) = (Decoder::new(), Quality::default());
    let mut segments = 0;
    while let Some(packet) = set.next_packet().expect("damage is no error") {
        segments += u64::from(decoder.decode(&packet, &mut quality).is_some());
    }
    quality.merge(set.quality());
    (quality.packets, segments, quality)
}

/// Builds a pcapng file of five packets; also returns the offset of its last block.
fn five_packets() -> (Vec<u8>, usize) {
    let packets = Conversation::new().client_sends(100, [1; 40]).server_sends(200, [2; 40]).packets();
    let bytes = pcap::next_generation(&packets, &[0; 5]);
    let last = u32::from_le_bytes(bytes[bytes.len() - 4..].try_into().expect("four bytes")) as usize;
    let begin = bytes.len() - last;
    (bytes, begin)
}

#[test]
fn a_block_with_an_absurd_length_ends_a_pcapng_file_there() {
    let (whole, last) = five_packets();
    assert_eq!(read(&whole).0, 5);
    // Block lengths: zero, less than the header, no multiple of four, more than is left, 4 GB.
    for length in [0u32, 4, 8, 11, 13, 0x7fff_fffc, 0xffff_fff0, u32::MAX] {
        let mut bytes = whole.clone();
        bytes[last + 4..last + 8].copy_from_slice(&length.to_le_bytes());
        let (packets, segments, quality) = read(&bytes);
        assert_eq!((packets, segments), (4, 4), "{length:x}");
        assert_eq!(quality.truncated_captures + quality.unreadable_records, 1, "{length:x}");
    }
}

#[test]
fn a_captured_length_beyond_its_block_costs_that_packet_at_most() {
    let (whole, last) = five_packets();
    for captured in [0x100u32, 0x7fff_ffff, u32::MAX] {
        let mut bytes = whole.clone();
        bytes[last + 20..last + 24].copy_from_slice(&captured.to_le_bytes());
        let (packets, _, quality) = read(&bytes);
        assert_eq!(packets.min(4), 4, "{captured:x}");
        assert_eq!(quality.truncated_captures + quality.unreadable_records, 1, "{captured:x}");
    }
}

#[test]
fn options_without_a_length_end_where_they_stand() {
    // An interface block whose options claim useless lengths: zero repeatedly, or past the end.
    let packets = Conversation::new().client_sends(100, [1; 40]).packets();
    for option in [[9u8, 0, 0, 0], [9, 0, 255, 255], [1, 0, 0, 0]] {
        let mut bytes = pcap::next_generation(&packets, &[0; 4]);
        // Section header of 28 bytes; then type, length, link type and snap length of the interface.
        bytes[28 + 16..28 + 20].copy_from_slice(&option);
        assert_eq!(read(&bytes).0, 4, "{option:?}");
    }
    // TCP options of length zero and one, which would not advance.
    for options in [[8u8, 0, 0, 0], [8, 1, 8, 1], [1, 1, 5, 0]] {
        let mut segments = 0;
        let mut packet = packets[3].clone();
        packet.payload.splice(0..0, options);
        let mut bytes = pcap::nanos(&[packet]);
        // The TCP data offset grows by one word: the first bytes of the payload become options.
        bytes[24 + 16 + 14 + 20 + 12] = 6 << 4;
        segments += read(&bytes).1;
        assert_eq!(segments, 1, "{options:?}");
    }
}

#[test]
fn forged_flags_are_all_survived() {
    let told = Conversation::new().client_sends(100, [1; 40]).server_sends(200, [2; 40]).packets();
    for flags in 0..=255u8 {
        let mut table = FlowTable::new(Census::default());
        for (index, packet) in told.iter().enumerate() {
            table.segment(&packet.segment(index + 1));
            let forged = Packet { flags: TcpFlags(flags), payload: Vec::new(), ..packet.clone() };
            table.segment(&forged.segment(index + 1));
        }
        let census = table.finish();
        assert_eq!(census.live, 0, "{flags:02x}");
    }
}
