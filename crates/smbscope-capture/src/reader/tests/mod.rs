//! Tests over captures built byte by byte from the format specifications.

mod formats;
mod order;
mod streams;

use super::capture::{CaptureBudget, CaptureTrust};
use super::{CaptureError, CaptureInput, CaptureSet, FileSlices, SlicedFile};
use smbscope_model::{CaptureInfo, Quality};
use std::io::{self, Write};
use std::path::Path;
use tempfile::NamedTempFile;

/// Packet as seen by a test: capture, number, time, bytes, length on the wire.
type Read = (u16, u64, i64, Vec<u8>, u32);

struct Reading {
    packets: Vec<Read>,
    infos: Vec<CaptureInfo>,
    quality: Quality,
}

impl Reading {
    fn read(mut set: CaptureSet) -> Reading {
        let mut packets = Vec::new();
        while let Some(packet) = set.next_packet().unwrap() {
            let (number, capture) = (packet.stamp.packet.number(), packet.stamp.packet.capture().0);
            packets.push((capture, number, packet.stamp.time.0, packet.data.to_vec(), packet.wire_length));
        }
        assert!(set.next_packet().unwrap().is_none(), "the end stays the end");
        Reading { packets, infos: set.captures().to_vec(), quality: set.quality().clone() }
    }

    fn times(&self) -> Vec<i64> {
        self.packets.iter().map(|packet| packet.2).collect()
    }

    fn numbers(&self) -> Vec<u64> {
        self.packets.iter().map(|packet| packet.1).collect()
    }
}

fn file(bytes: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file
}

/// Reads the files twice, mapped and in slices, which must make no difference.
fn read_within(files: &[&[u8]], limits: CaptureBudget) -> Result<Reading, CaptureError> {
    let stored: Vec<NamedTempFile> = files.iter().map(|bytes| file(bytes)).collect();
    let paths: Vec<&Path> = stored.iter().map(NamedTempFile::path).collect();
    let inputs: Vec<CaptureInput> = paths.iter().map(|path| CaptureInput::File(path.to_path_buf())).collect();
    let slices = paths.iter().zip(files).map(|(path, bytes)| SlicesOfBytes::new(&path.display().to_string(), bytes));
    let sliced: Vec<CaptureInput> = slices.map(|file| CaptureInput::Sliced(SlicedFile::new(file))).collect();
    let mapped = CaptureSet::open_within(&inputs, limits, CaptureTrust::Nothing).map(Reading::read);
    let sliced = CaptureSet::open_within(&sliced, limits, CaptureTrust::Nothing).map(Reading::read);
    match (&mapped, &sliced) {
        (Ok(mapped), Ok(sliced)) => {
            assert_eq!(mapped.packets, sliced.packets);
            assert_eq!(mapped.infos, sliced.infos);
            assert_eq!(mapped.quality, sliced.quality);
        }
        (Err(mapped), Err(sliced)) => assert_eq!(mapped.to_string(), sliced.to_string()),
        (mapped, sliced) => panic!("{:?}, in slices {:?}", mapped.as_ref().err(), sliced.as_ref().err()),
    }
    mapped
}

/// A file that returns few bytes at once.
#[derive(Debug)]
struct SlicesOfBytes {
    name: String,
    bytes: Vec<u8>,
}

impl SlicesOfBytes {
    fn new(name: &str, bytes: &[u8]) -> SlicesOfBytes {
        SlicesOfBytes { name: name.to_owned(), bytes: bytes.to_vec() }
    }
}

impl FileSlices for SlicesOfBytes {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = self.bytes.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(buffer.len()).min(50_000);
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

fn read(bytes: &[u8]) -> Reading {
    read_within(&[bytes], CaptureBudget::default()).unwrap()
}

fn error(bytes: &[u8]) -> String {
    read_within(&[bytes], CaptureBudget::default()).err().unwrap().to_string()
}

/// Builds a pcap file with this magic; each packet is (seconds, fraction, bytes).
fn pcap(magic: u32, big_endian: bool, packets: &[(u32, u32, &[u8])]) -> Vec<u8> {
    let u32 = |value: u32| if big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
    let u16 = |value: u16| if big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut bytes = [u32(magic).as_slice(), &u16(2), &u16(4), &u32(0), &u32(0), &u32(262_144), &u32(1)].concat();
    for (seconds, fraction, data) in packets {
        let length = u32(data.len() as u32);
        bytes.extend([u32(*seconds), u32(*fraction), length, length].concat());
        if magic == 0xa1b2_cd34 {
            bytes.extend([0; 8]);
        }
        bytes.extend_from_slice(data);
    }
    bytes
}

/// Builds a little-endian microsecond pcap with one packet per time in microseconds, numbered in its bytes.
fn pcap_of_times(times: impl IntoIterator<Item = u32>, length: usize) -> Vec<u8> {
    let mut bytes = pcap(0xa1b2_c3d4, false, &[]);
    for (index, time) in times.into_iter().enumerate() {
        let mut data = vec![0; length.max(4)];
        data[..4].copy_from_slice(&(index as u32 + 1).to_le_bytes());
        let length = (data.len() as u32).to_le_bytes();
        let (seconds, fraction) = (time / 1_000_000, time % 1_000_000);
        bytes.extend([seconds.to_le_bytes(), fraction.to_le_bytes(), length, length].concat());
        bytes.extend(data);
    }
    bytes
}

#[derive(Clone, Copy)]
struct Blocks {
    big_endian: bool,
}

impl Blocks {
    fn u16(self, value: u16) -> [u8; 2] {
        if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn u32(self, value: u32) -> [u8; 4] {
        if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let padding = vec![0; body.len().next_multiple_of(4) - body.len()];
        let length = self.u32((12 + body.len() + padding.len()) as u32);
        [self.u32(kind).as_slice(), &length, body, &padding, &length].concat()
    }

    fn section(self) -> Vec<u8> {
        let version = [self.u16(1), self.u16(0)].concat();
        self.block(0x0a0d_0d0a, &[self.u32(0x1a2b_3c4d).as_slice(), &version, &[0xff; 8]].concat())
    }

    /// Builds an interface description with options (code, value).
    fn interface(self, link_type: u16, snap_length: u32, options: &[(u16, &[u8])]) -> Vec<u8> {
        let mut body = [self.u16(link_type).as_slice(), &[0; 2], &self.u32(snap_length)].concat();
        for (code, value) in options {
            body.extend(self.u16(*code));
            body.extend(self.u16(value.len() as u16));
            body.extend_from_slice(value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        body.extend([0; 4]);
        self.block(1, &body)
    }

    fn enhanced(self, interface: u32, ticks: u64, data: &[u8], original: u32) -> Vec<u8> {
        let fields = [interface, (ticks >> 32) as u32, ticks as u32, data.len() as u32, original];
        let mut body = fields.map(|field| self.u32(field)).concat();
        body.extend_from_slice(data);
        self.block(6, &body)
    }

    fn simple(self, data: &[u8]) -> Vec<u8> {
        self.block(3, &[self.u32(data.len() as u32).as_slice(), data].concat())
    }

    fn obsolete(self, interface: u16, ticks: u64, data: &[u8]) -> Vec<u8> {
        let mut body = [self.u16(interface), self.u16(0)].concat();
        let fields = [(ticks >> 32) as u32, ticks as u32, data.len() as u32, data.len() as u32];
        body.extend(fields.map(|field| self.u32(field)).concat());
        body.extend_from_slice(data);
        self.block(2, &body)
    }
}

const LITTLE: Blocks = Blocks { big_endian: false };
const BIG: Blocks = Blocks { big_endian: true };

/// Builds a snoop file (RFC 1761); each packet is (seconds, microseconds, bytes, original length).
fn snoop(packets: &[(u32, u32, &[u8], u32)]) -> Vec<u8> {
    let mut bytes = [b"snoop\0\0\0".as_slice(), &2u32.to_be_bytes(), &4u32.to_be_bytes()].concat();
    for (seconds, microseconds, data, original) in packets {
        let padded = data.len().next_multiple_of(4);
        let fields = [*original, data.len() as u32, 24 + padded as u32, 0, *seconds, *microseconds];
        bytes.extend(fields.map(u32::to_be_bytes).concat());
        bytes.extend_from_slice(data);
        bytes.resize(bytes.len() + padded - data.len(), 0);
    }
    bytes
}
