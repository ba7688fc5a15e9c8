//! A TCP connection that plays its client's turns: handshake, segments, acknowledgments.
//!
//! A receiver acknowledges every second segment. A single segment is acknowledged by the receiver's next message, or
//! after the delay of RFC 9293 §3.8.6.3. Every sender has received everything that the capture contains so far.

use super::record::{Headers, Recorder};
use super::turn::{Client, Turns};
use super::{Segments, Settings};
use crate::packet::{EPOCH, Side};
use crate::random::Random;
use smbscope_capture::TcpFlags;
use std::io::{self, Write};
use std::net::Ipv4Addr;

/// Payload of a 1514-byte Ethernet frame with headers without options.
const MSS: usize = 1460;
/// Length of the timestamps option with padding.
const TIMESTAMPS: usize = 12;
/// Segments sent as one packet with segmentation offload.
const OFFLOADED: usize = 44;
/// Time per byte at 1 Gbit/s.
const NS_PER_BYTE: i64 = 8;
const ACK_DELAY_NS: i64 = 40_000_000;
/// Delay of a retransmission: a tail loss probe (RFC 8985 §7.2) on a fast network.
const RESENT_AFTER_NS: i64 = 3_000_000;
const SERVERS: u32 = 4;

pub(super) struct Flow {
    index: u32,
    ends: [(Ipv4Addr, u16); 2],
    next: [u32; 2],
    ip_ids: [u16; 2],
    /// Last TSval of each side.
    timestamps: [u32; 2],
    has_timestamps: bool,
    segment: usize,
    handshake: u8,
    turns: Turns,
    client: Box<dyn Client>,
    /// Share of retransmitted segments, and whether the next segment is a retransmission.
    resent: f64,
    is_again: bool,
    sent: usize,
    unacknowledged: u32,
    /// Side that acknowledges next, and the time at which the turns resume.
    acknowledges: Option<(Side, i64)>,
}

impl Flow {
    pub(super) fn new(index: u32, settings: &Settings, client: Box<dyn Client>, mut random: Random) -> Flow {
        let host = index / settings.flows_per_host.max(1);
        let [_, a, b, c] = (host + 1).to_be_bytes();
        let server = Ipv4Addr::new(10, 250, 0, 1 + (host % SERVERS) as u8);
        let mss = MSS - if client.has_timestamps() { TIMESTAMPS } else { 0 };
        let first = [random.bits() as u32, random.bits() as u32];
        Flow {
            index,
            ends: [(Ipv4Addr::new(10, a, b, c), 49_152 + (index % 16_000) as u16), (server, 445)],
            next: first,
            ip_ids: [random.bits() as u16, random.bits() as u16],
            timestamps: [0, 0],
            has_timestamps: client.has_timestamps(),
            segment: match settings.segments {
                Segments::Mtu => mss,
                Segments::Offload => mss * OFFLOADED,
            },
            handshake: 0,
            turns: Turns::new(settings.service_ns, settings.think_ns, random),
            client,
            resent: settings.resent,
            is_again: false,
            sent: 0,
            unacknowledged: 0,
            acknowledges: None,
        }
    }

    /// Sends the next packet. Returns the time at which the following one is due.
    pub(super) fn step<W: Write>(&mut self, now: i64, recorder: &mut Recorder<W>) -> io::Result<i64> {
        if self.handshake < 3 {
            return self.shake_hands(now, recorder);
        }
        if let Some((side, resume)) = self.acknowledges.take() {
            let headers = self.headers(now, side, TcpFlags::ACK);
            recorder.control(now, &headers)?;
            self.unacknowledged = 0;
            return Ok(resume);
        }
        let Some(turn) = self.turns.current() else { return Ok(now) };
        let (side, part) = (turn.side, turn.part);
        let (from, end) = (self.sent, turn.frame.length().min(self.sent + self.segment));
        let is_last = end == turn.frame.length();
        let flags = if is_last { TcpFlags::PSH | TcpFlags::ACK } else { TcpFlags::ACK };
        let mut headers = self.headers(now, side, flags);
        headers.followed = !is_last && self.unacknowledged == 0;
        if let Some(turn) = self.turns.current() {
            recorder.packet(now, &headers, &turn.frame, from..end)?;
        }
        let is_again = std::mem::take(&mut self.is_again);
        if is_again {
            recorder.sent_again();
        } else if is_last {
            // Counted with the first copy, because the file may end before the second.
            recorder.said(part);
        }
        if !is_again && self.resent > 0.0 && self.turns.random.chance(self.resent) {
            self.is_again = true;
            return Ok(now + RESENT_AFTER_NS);
        }
        let us = side.index();
        self.next[us] = self.next[us].wrapping_add((end - from) as u32);
        self.sent = end;
        self.unacknowledged += 1;
        let passed = now + ((end - from) as i64 + 78) * NS_PER_BYTE;
        let mut resume = passed;
        if is_last {
            self.turns.next();
            self.sent = 0;
            resume += self.plan();
        }
        // The other side's next message carries the acknowledgment.
        let is_answered = is_last && self.turns.current().is_some_and(|turn| turn.side != side);
        if is_answered && resume - now < ACK_DELAY_NS {
            self.unacknowledged = 0;
        } else if self.unacknowledged >= 2 {
            self.acknowledges = Some((side.other(), resume));
            return Ok(now + 1_000);
        } else if resume - now >= ACK_DELAY_NS {
            self.acknowledges = Some((side.other(), resume));
            return Ok(now + ACK_DELAY_NS);
        }
        Ok(resume)
    }

    /// Ensures that there are turns to play. Returns the wait before the next one.
    fn plan(&mut self) -> i64 {
        if self.turns.current().is_none() {
            self.client.act(&mut self.turns);
        }
        self.turns.current().map_or(0, |turn| turn.wait_ns)
    }

    fn shake_hands<W: Write>(&mut self, now: i64, recorder: &mut Recorder<W>) -> io::Result<i64> {
        let (side, flags) = match self.handshake {
            0 => (Side::Client, TcpFlags::SYN),
            1 => (Side::Server, TcpFlags::SYN | TcpFlags::ACK),
            _ => (Side::Client, TcpFlags::ACK),
        };
        if self.handshake == 0 {
            recorder.flow_begins();
        }
        let headers = self.headers(now, side, flags);
        recorder.control(now, &headers)?;
        self.handshake += 1;
        if flags & TcpFlags::SYN != 0 {
            self.next[side.index()] = self.next[side.index()].wrapping_add(1);
            return Ok(now + 100_000);
        }
        Ok(now + self.plan())
    }

    fn headers(&mut self, now: i64, side: Side, flags: u8) -> Headers {
        let (us, them) = (side.index(), side.other().index());
        self.ip_ids[us] = self.ip_ids[us].wrapping_add(1);
        // A millisecond clock with an arbitrary start.
        self.timestamps[us] = ((now - EPOCH.0) / 1_000_000) as u32 + 1 + self.index * 7;
        Headers {
            flow: self.index,
            followed: false,
            ends: [self.ends[us], self.ends[them]],
            sequence: self.next[us],
            acknowledgment: if flags & TcpFlags::ACK != 0 { self.next[them] } else { 0 },
            flags,
            ip_id: self.ip_ids[us],
            timestamps: self.has_timestamps.then_some([self.timestamps[us], self.timestamps[them]]),
        }
    }
}
