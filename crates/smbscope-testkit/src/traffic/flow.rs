//! A TCP connection that plays the turns of its client: handshake, segments, acknowledgments.
//!
//! Who has received two segments acknowledges them; a single one is acknowledged by what its receiver says next, or
//! after the delay of RFC 9293 3.8.6.3. A sender has seen everything that passed the capture before.

use super::record::{Headers, Recorder};
use super::turn::{Client, Turns};
use super::{Segments, Settings};
use crate::packet::{EPOCH, Side};
use crate::random::Random;
use smbscope_capture::TcpFlags;
use std::io::{self, Write};
use std::net::Ipv4Addr;

/// Payload of an Ethernet frame of 1514 bytes behind headers without options.
const MSS: usize = 1460;
/// Of the timestamps option and its padding.
const TIMESTAMPS: usize = 12;
/// Segments that a network card cuts from one.
const OFFLOADED: usize = 44;
/// At 1 Gbit/s.
const NS_PER_BYTE: i64 = 8;
/// A single segment is acknowledged after this time.
const ACK_DELAY_NS: i64 = 40_000_000;
/// A segment is sent again after this time: a tail loss probe (RFC 8985 7.2) on a fast network.
const RESENT_AFTER_NS: i64 = 3_000_000;
/// Servers that the clients share.
const SERVERS: u32 = 4;

/// A connection.
pub(super) struct Flow {
    index: u32,
    ends: [(Ipv4Addr, u16); 2],
    /// The next sequence number of each side.
    next: [u32; 2],
    ip_ids: [u16; 2],
    /// The last TSval of each side.
    timestamps: [u32; 2],
    has_timestamps: bool,
    segment: usize,
    /// Packets of the handshake that have passed.
    handshake: u8,
    turns: Turns,
    client: Box<dyn Client>,
    /// The share of the segments that are sent again, and whether this one was sent before.
    resent: f64,
    is_again: bool,
    /// Bytes of the current turn that were sent.
    sent: usize,
    /// Segments that their receiver has not acknowledged.
    unacknowledged: u32,
    /// Who acknowledges next, and when the turns go on after that.
    acknowledges: Option<(Side, i64)>,
}

impl Flow {
    /// A connection that has not begun.
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

    /// Sends the next packet; returns when the one after it is due.
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
            // Now, as the file may end before the other copy.
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
        // The other side says something next, and acknowledges with it.
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

    /// Has turns to play; returns how long the next one waits.
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
        // A clock of milliseconds that does not begin at zero.
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
