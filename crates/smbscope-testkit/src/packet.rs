//! TCP packets for tests: their fields, their origin and their encoding.

use smbscope_capture::{TcpFlags, TcpSegment, WindowScale};
use smbscope_model::{CaptureId, PacketRef, Stamp, Timestamp};
use std::net::{IpAddr, SocketAddr};

/// Time zero of every conversation.
pub const EPOCH: Timestamp = Timestamp(1_700_000_000_000_000_000);
/// Length of the Ethernet, IPv4 and TCP headers without options.
pub const HEADERS: usize = 14 + 20 + 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    Client,
    Server,
}

impl Side {
    pub fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }

    pub fn index(self) -> usize {
        match self {
            Side::Client => 0,
            Side::Server => 1,
        }
    }
}

/// A packet of a capture under construction. Its number is its position in the list, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    pub origin: usize,
    pub time: Timestamp,
    pub side: Side,
    /// Offset of the payload in its sender's stream, from 0.
    pub offset: u64,
    pub source: SocketAddr,
    pub destination: SocketAddr,
    pub sequence: u32,
    pub acknowledgment: u32,
    pub flags: TcpFlags,
    pub window: u16,
    /// Window scale option, if it has one.
    pub window_scale: Option<u8>,
    pub ip_id: u16,
    pub payload: Vec<u8>,
    /// Maximum captured length in bytes, from the Ethernet header on.
    pub snap: usize,
}

impl Packet {
    pub fn end(&self) -> u64 {
        self.offset + self.payload.len() as u64
    }

    /// Returns true if the payload contains this byte of the side's stream.
    pub fn holds(&self, side: Side, offset: u64) -> bool {
        self.side == side && (self.offset..self.end()).contains(&offset)
    }

    /// Returns the length on the wire, from the Ethernet header on.
    pub fn wire_length(&self) -> usize {
        HEADERS + self.options().len() + self.payload.len()
    }

    fn options(&self) -> Vec<u8> {
        self.window_scale.map_or_else(Vec::new, |shift| vec![1, 3, 3, shift])
    }

    pub fn segment(&self, number: usize) -> TcpSegment<'_> {
        let packet = PacketRef::new(CaptureId(0), number as u64);
        let stamp = Stamp { time: self.time, packet };
        let captured = self.payload.len().min(self.snap.saturating_sub(HEADERS));
        TcpSegment {
            ordinal: number as u64,
            first: stamp,
            stamp,
            origin: Default::default(),
            source: self.source,
            destination: self.destination,
            sequence: self.sequence,
            acknowledgment: self.acknowledgment,
            flags: self.flags,
            window: self.window,
            window_scale: match (self.flags.syn(), self.window_scale) {
                (true, Some(shift)) => WindowScale::Shift(shift),
                (true, None) => WindowScale::Absent,
                _ => WindowScale::Unknown,
            },
            timestamp_value: None,
            names_later_bytes: false,
            duplicate_sack: None,
            ip_id: Some(self.ip_id),
            hops_left: 64,
            payload: &self.payload[..captured],
            payload_length: self.payload.len() as u32,
        }
    }

    /// Encodes the packet as an Ethernet frame, truncated to the snap length.
    pub fn ethernet(&self) -> Vec<u8> {
        let (IpAddr::V4(source), IpAddr::V4(destination)) = (self.source.ip(), self.destination.ip()) else {
            panic!("conversations are held over IPv4");
        };
        let mut tcp = Vec::with_capacity(20 + self.payload.len());
        tcp.extend(self.source.port().to_be_bytes());
        tcp.extend(self.destination.port().to_be_bytes());
        tcp.extend(self.sequence.to_be_bytes());
        tcp.extend(self.acknowledgment.to_be_bytes());
        let options = self.options();
        tcp.extend([(5 + options.len() as u8 / 4) << 4, self.flags.0]);
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(&options);
        tcp.extend(&self.payload);
        let pseudo = [&source.octets()[..], &destination.octets(), &[0, 6], &(tcp.len() as u16).to_be_bytes()];
        let sum = checksum(&[&pseudo.concat(), &tcp]);
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());

        let mut ip = vec![0x45, 0];
        ip.extend(((20 + tcp.len()) as u16).to_be_bytes());
        ip.extend(self.ip_id.to_be_bytes());
        ip.extend([0x40, 0, 64, 6, 0, 0]);
        ip.extend(source.octets());
        ip.extend(destination.octets());
        let sum = checksum(&[&ip]);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());

        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        frame.extend(ip);
        frame.extend(tcp);
        frame.truncate(self.snap);
        frame
    }
}

pub fn micros(stamp: Stamp) -> i64 {
    (stamp.time - EPOCH).0 / 1000
}

/// Internet checksum (RFC 1071); all parts but the last must have even length.
fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u32;
    for pair in parts.iter().flat_map(|part| part.chunks(2)) {
        sum += u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
