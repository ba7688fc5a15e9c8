//! A packet of a capture file as bytes that can be edited in place: Ethernet, IPv4, TCP, payload. [`pcap`](crate::pcap)
//! reads and writes files of them.

use crate::damage::Captured;
use smbscope_model::Timestamp;
use std::ops::Range;

/// Offset of the IPv4 header.
const IP: usize = 14;
/// Longest payload that [`Frame::set_payload`] accepts; an IP packet holds little more.
const PAYLOAD_MAX: usize = 60_000;
pub const SEQUENCE: usize = 4;
pub const ACKNOWLEDGMENT: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub time: Timestamp,
    /// Captured bytes from the Ethernet header on.
    pub data: Vec<u8>,
    pub wire_length: usize,
}

impl Captured for Frame {
    fn time(&self) -> Timestamp {
        self.time
    }

    fn captured_at(&self, time: Timestamp) -> Frame {
        Frame { time, ..self.clone() }
    }

    fn snapped(&self, length: usize) -> Frame {
        let data = self.data[..length.min(self.data.len())].to_vec();
        Frame { data, ..*self }
    }
}

impl Frame {
    /// Returns the offset of the TCP header in an Ethernet frame of IPv4.
    fn tcp(&self) -> Option<usize> {
        let is_tcp = self.data.get(12..14)? == [8, 0] && *self.data.get(IP + 9)? == 6;
        let at = IP + 4 * usize::from(self.data.get(IP)? & 0x0f);
        (is_tcp && at >= IP + 20 && self.data.len() >= at + 20).then_some(at)
    }

    fn payload_range(&self) -> Range<usize> {
        let Some(tcp) = self.tcp() else { return 0..0 };
        let start = tcp + 4 * usize::from(self.data[tcp + 12] >> 4);
        if start < self.data.len() { start..self.data.len() } else { 0..0 }
    }

    pub fn payload(&self) -> &[u8] {
        &self.data[self.payload_range()]
    }

    pub fn payload_mut(&mut self) -> &mut [u8] {
        let range = self.payload_range();
        &mut self.data[range]
    }

    /// Replaces a non-empty payload and adjusts the lengths.
    pub fn set_payload(&mut self, payload: &[u8]) {
        let range = self.payload_range();
        if range.is_empty() {
            return;
        }
        self.data.truncate(range.start);
        self.data.extend(&payload[..payload.len().min(PAYLOAD_MAX)]);
        let total = (self.data.len() - IP) as u16;
        self.data[IP + 2..IP + 4].copy_from_slice(&total.to_be_bytes());
        self.wire_length = self.data.len();
    }

    /// Adds to the field at [`SEQUENCE`] or [`ACKNOWLEDGMENT`].
    pub fn shift(&mut self, number: usize, by: u32) {
        let Some(tcp) = self.tcp() else { return };
        let field: &mut [u8; 4] = (&mut self.data[tcp + number..tcp + number + 4]).try_into().expect("four bytes");
        *field = u32::from_be_bytes(*field).wrapping_add(by).to_be_bytes();
    }

    pub fn flags(&self) -> u8 {
        self.tcp().map_or(0, |tcp| self.data[tcp + 13])
    }

    pub fn set_flags(&mut self, flags: u8) {
        if let Some(tcp) = self.tcp() {
            self.data[tcp + 13] = flags;
        }
    }

    /// Returns the ports of sender and receiver, or zeros without TCP.
    pub fn ports(&self) -> (u16, u16) {
        let port = |at: usize| u16::from_be_bytes([self.data[at], self.data[at + 1]]);
        self.tcp().map_or((0, 0), |tcp| (port(tcp), port(tcp + 2)))
    }

    /// Returns addresses and ports of sender and receiver, which identify one direction of a flow.
    pub fn direction(&self) -> Option<[u8; 12]> {
        let tcp = self.tcp()?;
        let mut key = [0; 12];
        key[..8].copy_from_slice(&self.data[IP + 12..IP + 20]);
        key[8..].copy_from_slice(&self.data[tcp..tcp + 4]);
        Some(key)
    }
}
