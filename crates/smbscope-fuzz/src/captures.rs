//! Targets for capture files: every format, from a file and from a pipe, plain and compressed.

use smbscope_capture::CapturedProcess;
use smbscope_capture::reader::{CaptureInput, CaptureSet};
use smbscope_model::Quality;
use std::io::{Cursor, Write};

/// Maximum number of packets read, because a few compressed bytes can expand to very many.
const MAX_PACKETS: usize = 20_000;

/// pcap magic numbers: microseconds, nanoseconds and modified format, in both byte orders.
const PCAP_MAGICS: [[u8; 4]; 6] = [
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x34, 0xcd, 0xb2, 0xa1],
    [0xa1, 0xb2, 0xcd, 0x34],
];

pub fn pcap(data: &[u8]) {
    let known = PCAP_MAGICS.iter().any(|magic| data.starts_with(magic));
    let chosen = usize::from(data.first().copied().unwrap_or(0)) % PCAP_MAGICS.len();
    plain(&if known { data.to_vec() } else { begun(data, &PCAP_MAGICS[chosen]) });
}

pub fn pcapng(data: &[u8]) {
    plain(&begun(data, &[0x0a, 0x0d, 0x0d, 0x0a]));
}

/// Reads snoop. Other first bytes are replaced.
pub fn snoop(data: &[u8]) {
    plain(&begun(data, b"snoop\0\0\0"));
}

/// Reads Network Monitor: version 1, or version 2 if the first byte is odd. A pipe gives other packets than a file if
/// there are gaps between frames, so only the file is read.
pub fn netmon(data: &[u8]) {
    let is_second = data.first().is_some_and(|byte| byte & 1 != 0);
    let bytes = begun(data, if is_second { b"GMBU" } else { b"RTSS" });
    let opened = open(&bytes);
    if let Ok(set) = opened {
        let reading = Reading::read(set);
        let held: usize = reading.packets.iter().map(|packet| packet.data.len()).sum();
        assert!(held <= bytes.len(), "{held} bytes of packets in a file of {}", bytes.len());
    }
}

/// Reads ERF, after a record that is recognised.
pub fn erf(data: &[u8]) {
    let mut bytes = vec![0, 0, 0, 0, 0, 0xf1, 0x53, 0x65, 2, 4, 1, 8, 0, 0, 0, 246, 0, 0];
    bytes.resize(264, 0x45);
    bytes.extend(data);
    plain(&bytes);
}

/// Reads gzip, zstd, lz4 and xz, detected by content, and anything else.
pub fn compressed(data: &[u8]) {
    both_ways(data);
}

fn begun(data: &[u8], start: &[u8]) -> Vec<u8> {
    [start, data.get(start.len()..).unwrap_or_default()].concat()
}

/// Reads an uncompressed capture, whose packets can't be larger than the file.
fn plain(bytes: &[u8]) {
    if let Some(reading) = both_ways(bytes) {
        let held: usize = reading.packets.iter().map(|packet| packet.data.len()).sum();
        assert!(held <= bytes.len(), "{held} bytes of packets in a file of {}", bytes.len());
    }
}

/// Reads from a pipe and from a file, with equal results.
fn both_ways(bytes: &[u8]) -> Option<Reading> {
    let piped = CaptureSet::from_reader("x", Box::new(Cursor::new(bytes.to_vec())));
    let (piped, opened) = match (piped, open(bytes)) {
        (Ok(piped), Ok(opened)) => (piped, opened),
        (piped, opened) => {
            let (piped, opened) = (piped.err().map(|e| e.to_string()), opened.err().map(|e| e.to_string()));
            assert_eq!(piped.is_some(), opened.is_some(), "pipe: {piped:?}, file: {opened:?}");
            return None;
        }
    };
    let (piped, opened) = (Reading::read(piped), Reading::read(opened));
    if piped.whole && opened.whole {
        let same_order = piped.quality.packets_out_of_time_order == 0;
        assert!(!same_order || piped.packets == opened.packets, "a pipe gives other packets than a file");
        assert_eq!(piped.packets.len(), opened.packets.len(), "a pipe gives more or fewer packets than a file");
        assert_eq!(piped.quality.unreadable_records, opened.quality.unreadable_records);
    }
    Some(opened)
}

/// Opens a file with these bytes. It stays readable, because it is mapped or held open.
fn open(bytes: &[u8]) -> Result<CaptureSet, smbscope_capture::reader::CaptureError> {
    let mut file = tempfile::NamedTempFile::new().expect("there is a directory for temporary files");
    file.write_all(bytes).expect("the directory for temporary files has room");
    CaptureSet::open(&[CaptureInput::File(file.path().to_owned())])
}

#[derive(Debug, PartialEq, Eq)]
struct ReadPacket {
    number: u64,
    time: i64,
    link_type: u32,
    data: Vec<u8>,
    wire_length: u32,
    process: Option<CapturedProcess>,
}

struct Reading {
    packets: Vec<ReadPacket>,
    quality: Quality,
    whole: bool,
}

impl Reading {
    fn read(mut set: CaptureSet) -> Reading {
        let mut packets = Vec::new();
        let mut out_of_order = 0;
        let mut last = i64::MIN;
        let mut whole = false;
        while packets.len() < MAX_PACKETS {
            let Some(packet) = set.next_packet().expect("what opens can be read") else {
                whole = true;
                break;
            };
            assert!(packet.data.len() as u64 <= u64::from(packet.wire_length), "more captured than there was");
            out_of_order += u64::from(packet.stamp.time.0 < last);
            last = last.max(packet.stamp.time.0);
            packets.push(ReadPacket {
                number: packet.stamp.packet.number(),
                time: packet.stamp.time.0,
                link_type: packet.link_type,
                data: packet.data.to_vec(),
                wire_length: packet.wire_length,
                process: packet.process.cloned(),
            });
        }
        if whole {
            assert!(set.next_packet().expect("the end is no error").is_none(), "the end stays the end");
            let told: u64 = set.captures().iter().map(|info| info.packets).sum();
            assert_eq!(told, packets.len() as u64, "packets that were told of");
            assert_eq!(set.quality().packets_out_of_time_order, out_of_order, "packets that went back in time");
        }
        Reading { packets, quality: set.quality().clone(), whole }
    }
}
