//! A packet of a pcap file, as bytes: Ethernet, IPv4, TCP, payload.

use std::ops::Range;

/// Length of a pcap file header.
const FILE_HEADER: usize = 24;
/// Length of a record header.
const RECORD_HEADER: usize = 16;
/// Nanoseconds, little-endian: what is written.
const NANOSECONDS: u32 = 0xa1b2_3c4d;
/// Microseconds, little-endian: read as well.
const MICROSECONDS: u32 = 0xa1b2_c3d4;
/// Where the IPv4 header begins.
const IP: usize = 14;

/// A packet.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    /// Nanoseconds since 1970.
    pub(super) time: i64,
    /// From the Ethernet header on, as far as it was captured.
    pub(super) data: Vec<u8>,
    /// Bytes that were captured of more than there are here.
    pub(super) wire_length: usize,
}

/// The packets of a pcap file, up to the first that can't be read.
pub(super) fn read(file: &[u8]) -> Vec<Frame> {
    let resolution = match field(file, 0) {
        Some(NANOSECONDS) => 1,
        Some(MICROSECONDS) => 1000,
        _ => return Vec::new(),
    };
    let mut frames = Vec::new();
    let mut at = FILE_HEADER;
    while let (Some(seconds), Some(fraction), Some(captured), Some(wire)) =
        (field(file, at), field(file, at + 4), field(file, at + 8), field(file, at + 12))
    {
        at += RECORD_HEADER;
        let Some(data) = at.checked_add(captured as usize).and_then(|end| file.get(at..end)) else { break };
        at += data.len();
        let time = i64::from(seconds) * 1_000_000_000 + i64::from(fraction) * resolution;
        frames.push(Frame { time, data: data.to_vec(), wire_length: wire.max(captured) as usize });
    }
    frames
}

/// A pcap file of Ethernet with as many of the packets as fit into `room`.
pub(super) fn write(frames: &[Frame], room: usize) -> Vec<u8> {
    let mut file = Vec::new();
    for value in [NANOSECONDS, 0x0004_0002, 0, 0, 262_144, 1] {
        file.extend(value.to_le_bytes());
    }
    for frame in frames {
        if file.len() + RECORD_HEADER + frame.data.len() > room {
            break;
        }
        let seconds = frame.time.div_euclid(1_000_000_000).clamp(0, u32::MAX.into()) as u32;
        let fraction = frame.time.rem_euclid(1_000_000_000) as u32;
        for value in [seconds, fraction, frame.data.len() as u32, frame.wire_length as u32] {
            file.extend(value.to_le_bytes());
        }
        file.extend(&frame.data);
    }
    file.truncate(room);
    file
}

fn field(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

impl Frame {
    /// Where the TCP header begins, if it is one in IPv4 in Ethernet.
    fn tcp(&self) -> Option<usize> {
        let is_tcp = self.data.get(12..14)? == [8, 0] && *self.data.get(IP + 9)? == 6;
        let at = IP + 4 * usize::from(self.data.get(IP)? & 0x0f);
        (is_tcp && at >= IP + 20 && self.data.len() >= at + 20).then_some(at)
    }

    /// Where the payload lies; empty when there is none.
    fn payload_range(&self) -> Range<usize> {
        let Some(tcp) = self.tcp() else { return 0..0 };
        let start = tcp + 4 * usize::from(self.data[tcp + 12] >> 4);
        if start < self.data.len() { start..self.data.len() } else { 0..0 }
    }

    /// The captured payload.
    pub(super) fn payload(&self) -> &[u8] {
        &self.data[self.payload_range()]
    }

    /// The captured payload, to change it in place.
    pub(super) fn payload_mut(&mut self) -> &mut [u8] {
        let range = self.payload_range();
        &mut self.data[range]
    }

    /// Another payload; the lengths follow.
    pub(super) fn set_payload(&mut self, payload: &[u8]) {
        let range = self.payload_range();
        if range.is_empty() {
            return;
        }
        self.data.truncate(range.start);
        self.data.extend(&payload[..payload.len().min(60_000)]);
        let total = (self.data.len() - IP) as u16;
        self.data[IP + 2..IP + 4].copy_from_slice(&total.to_be_bytes());
        self.wire_length = self.data.len();
    }

    /// A number in the TCP header: 4 the sequence number, 8 the acknowledgment number.
    pub(super) fn number(&self, at: usize) -> Option<u32> {
        let tcp = self.tcp()?;
        Some(u32::from_be_bytes(self.data[tcp + at..tcp + at + 4].try_into().ok()?))
    }

    /// Changes a number in the TCP header.
    pub(super) fn set_number(&mut self, at: usize, value: u32) {
        if let Some(tcp) = self.tcp() {
            self.data[tcp + at..tcp + at + 4].copy_from_slice(&value.to_be_bytes());
        }
    }

    /// Changes the flags.
    pub(super) fn set_flags(&mut self, flags: u8) {
        if let Some(tcp) = self.tcp() {
            self.data[tcp + 13] = flags;
        }
    }

    /// Both ports and addresses, in the order of sender and receiver: one direction of one flow.
    pub(super) fn direction(&self) -> Option<[u8; 12]> {
        let tcp = self.tcp()?;
        let mut key = [0; 12];
        key[..8].copy_from_slice(&self.data[IP + 12..IP + 20]);
        key[8..].copy_from_slice(&self.data[tcp..tcp + 4]);
        Some(key)
    }

    /// Keeps no more than this many bytes, as a snap length does.
    pub(super) fn snap(&mut self, length: usize) {
        self.data.truncate(length);
    }
}
