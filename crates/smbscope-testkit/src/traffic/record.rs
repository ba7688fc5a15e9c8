//! Writes packets as pcap records (draft-ietf-opsawg-pcap), truncated at the snap length and damaged.

use super::turn::{Frame, Part};
use super::{Damage, Limit, Settings, Truth};
use crate::random::Random;
use smbscope_capture::TcpFlags;
use std::collections::HashMap;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::ops::Range;

const BUFFER: usize = 1 << 20;
/// Size of the random block that filler payload is taken from.
const NOISE: usize = 1 << 18;
/// Ethernet, IPv4, and TCP with the timestamps option.
const MAX_HEADERS: usize = 14 + 20 + 32;

#[derive(Debug, Clone, Copy)]
pub(super) struct Headers {
    pub(super) flow: u32,
    pub(super) followed: bool,
    pub(super) ends: [(Ipv4Addr, u16); 2],
    pub(super) sequence: u32,
    pub(super) acknowledgment: u32,
    pub(super) flags: u8,
    pub(super) ip_id: u16,
    pub(super) timestamps: Option<[u32; 2]>,
}

pub(super) struct Recorder<W: Write> {
    out: W,
    buffer: Vec<u8>,
    noise: Vec<u8>,
    snap: usize,
    damage: Damage,
    is_damaged: bool,
    random: Random,
    /// By flow: a record held back until the next one in its direction has been written.
    held: HashMap<u32, Vec<u8>>,
    truth: Truth,
}

impl<W: Write> Recorder<W> {
    pub(super) fn new(settings: &Settings, mut random: Random, out: W) -> io::Result<Recorder<W>> {
        let noise = (0..NOISE / 8).flat_map(|_| random.bits().to_le_bytes()).collect();
        let mut buffer = Vec::with_capacity(BUFFER + NOISE);
        buffer.extend(0xa1b2_c3d4u32.to_le_bytes());
        buffer.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        buffer.extend(settings.snap.to_le_bytes());
        buffer.extend(1u32.to_le_bytes());
        let truth = Truth { file_bytes: buffer.len() as u64, ..Truth::default() };
        Ok(Recorder {
            out,
            buffer,
            noise,
            snap: settings.snap as usize,
            damage: settings.damage,
            is_damaged: settings.damage != Damage::default(),
            random,
            held: HashMap::new(),
            truth,
        })
    }

    pub(super) fn is_full(&self, limit: Limit) -> bool {
        match limit {
            Limit::Bytes(bytes) => self.truth.file_bytes >= bytes,
            Limit::Packets(packets) => self.truth.packets >= packets,
        }
    }

    pub(super) fn sent_again(&mut self) {
        self.truth.resent_segments += 1;
    }

    pub(super) fn flow_begins(&mut self) {
        self.truth.flows += 1;
    }

    pub(super) fn said(&mut self, part: Part) {
        match part {
            Part::Requests(commands) => {
                for command in commands {
                    *self.truth.requests.entry(*command).or_default() += 1;
                }
            }
            Part::Responses(commands) => {
                for command in commands {
                    *self.truth.responses.entry(*command).or_default() += 1;
                }
            }
            Part::Interim => self.truth.interim_responses += 1,
        }
    }

    pub(super) fn control(&mut self, now_ns: i64, headers: &Headers) -> io::Result<()> {
        self.packet(now_ns, headers, &Frame { head: Vec::new(), filler: 0 }, 0..0)
    }

    /// Writes a packet that carries a part of a frame.
    pub(super) fn packet(
        &mut self,
        now_ns: i64,
        headers: &Headers,
        frame: &Frame,
        part: Range<usize>,
    ) -> io::Result<()> {
        let start = self.buffer.len();
        let pure_ack = part.is_empty() && headers.flags == TcpFlags::ACK;
        self.encode(now_ns, headers, frame, part);
        if self.is_damaged {
            self.do_damage(start, headers, pure_ack);
        } else {
            self.count(start, pure_ack);
        }
        if self.buffer.len() >= BUFFER {
            self.out.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Ends the file. Records still held back are dropped and counted.
    pub(super) fn finish(mut self) -> io::Result<Truth> {
        self.truth.dropped_packets += self.held.len() as u64;
        self.out.write_all(&self.buffer)?;
        self.out.flush()?;
        Ok(self.truth)
    }

    fn encode(&mut self, now_ns: i64, headers: &Headers, frame: &Frame, part: Range<usize>) {
        let mut bytes = [0; MAX_HEADERS];
        let header_length = headers.encode(&mut bytes, part.len());
        let wire = header_length + part.len();
        let captured = wire.min(self.snap);
        let seconds = now_ns.div_euclid(1_000_000_000) as u32;
        let micros = (now_ns.rem_euclid(1_000_000_000) / 1000) as u32;
        for field in [seconds, micros, captured as u32, wire as u32] {
            self.buffer.extend_from_slice(&field.to_le_bytes());
        }
        self.buffer.extend_from_slice(&bytes[..header_length.min(captured)]);
        let mut left = captured.saturating_sub(header_length);
        if let Some(head) = frame.head.get(part.start..) {
            let head = &head[..head.len().min(left)];
            self.buffer.extend_from_slice(head);
            left -= head.len();
        }
        let from = (part.start.wrapping_mul(31) + headers.sequence as usize) % (NOISE - (1 << 16));
        self.buffer.extend_from_slice(&self.noise[from..from + left]);
    }

    fn count(&mut self, start: usize, pure_ack: bool) {
        let record = &self.buffer[start..];
        let captured = (record.len() - 16) as u64;
        let wire = u64::from(u32::from_le_bytes([record[12], record[13], record[14], record[15]]));
        self.truth.packets += 1;
        self.truth.file_bytes += record.len() as u64;
        self.truth.captured_bytes += captured;
        self.truth.wire_bytes += wire;
        self.truth.snapped_packets += u64::from(captured < wire);
        self.truth.pure_acks += u64::from(pure_ack);
    }

    /// Applies random damage to the record at the end of the buffer.
    fn do_damage(&mut self, start: usize, headers: &Headers, pure_ack: bool) {
        let behind = self.held.remove(&headers.flow);
        let mut time = [0; 8];
        time.copy_from_slice(&self.buffer[start..start + 8]);
        if self.random.chance(self.damage.drop) {
            self.truth.dropped_packets += 1;
            self.buffer.truncate(start);
        } else if headers.followed && behind.is_none() && self.random.chance(self.damage.reorder) {
            self.held.insert(headers.flow, self.buffer.split_off(start));
            return;
        } else {
            self.count(start, pure_ack);
            if self.random.chance(self.damage.duplicate) {
                let again = self.buffer.len();
                self.buffer.extend_from_within(start..);
                self.count(again, pure_ack);
                self.truth.duplicated_packets += 1;
            }
            self.truth.reordered_packets += u64::from(behind.is_some());
        }
        if let Some(mut record) = behind {
            let again = self.buffer.len();
            record[..8].copy_from_slice(&time);
            self.buffer.extend(record);
            self.count(again, false);
        }
    }
}

impl Headers {
    fn encode(&self, bytes: &mut [u8; MAX_HEADERS], payload: usize) -> usize {
        let [(source, source_port), (destination, destination_port)] = self.ends;
        let tcp_length = if self.timestamps.is_some() { 32 } else { 20 };
        bytes[0..2].copy_from_slice(&[2, 0]);
        bytes[2..6].copy_from_slice(&destination.octets());
        bytes[6..8].copy_from_slice(&[2, 0]);
        bytes[8..12].copy_from_slice(&source.octets());
        bytes[12..14].copy_from_slice(&[8, 0]);
        bytes[14] = 0x45;
        bytes[16..18].copy_from_slice(&((20 + tcp_length + payload) as u16).to_be_bytes());
        bytes[18..20].copy_from_slice(&self.ip_id.to_be_bytes());
        bytes[20..24].copy_from_slice(&[0x40, 0, 64, 6]);
        bytes[26..30].copy_from_slice(&source.octets());
        bytes[30..34].copy_from_slice(&destination.octets());
        let mut sum: u32 = bytes[14..34].chunks_exact(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
        sum = (sum & 0xffff) + (sum >> 16);
        sum = (sum & 0xffff) + (sum >> 16);
        bytes[24..26].copy_from_slice(&(!(sum as u16)).to_be_bytes());
        bytes[34..36].copy_from_slice(&source_port.to_be_bytes());
        bytes[36..38].copy_from_slice(&destination_port.to_be_bytes());
        bytes[38..42].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[42..46].copy_from_slice(&self.acknowledgment.to_be_bytes());
        bytes[46..48].copy_from_slice(&[(tcp_length as u8 / 4) << 4, self.flags]);
        bytes[48..50].copy_from_slice(&0xfaf0u16.to_be_bytes());
        if let Some([value, echo]) = self.timestamps {
            // RFC 7323, appendix A: two NOPs, kind 8, length 10.
            bytes[54..58].copy_from_slice(&[1, 1, 8, 10]);
            bytes[58..62].copy_from_slice(&value.to_be_bytes());
            bytes[62..66].copy_from_slice(&echo.to_be_bytes());
        }
        34 + tcp_length
    }
}
