//! Scripted TCP connections: messages of client and server with their times, turned into packets.
//!
//! ```
//! use smbscope_testkit::{Conversation, smb2};
//! let packets = Conversation::new()
//!     .client_says(100, smb2::create(1, "a.txt"))
//!     .server_says(300, smb2::create_response(1, 7))
//!     .packets();
//! assert_eq!(packets.len(), 3 + 2, "the handshake, and one packet each");
//! ```
//!
//! Times are microseconds since [`EPOCH`]. The handshake takes place at 0, 10 and 20 µs, so the round trip between the
//! capture point and either side is 10 µs. Each further segment of a long message follows 10 µs after the previous one.
//! A packet acknowledges all data captured at least two latencies earlier.

use crate::packet::{EPOCH, Packet, Side};
use smbscope_capture::TcpFlags;
use smbscope_model::Timestamp;
use std::net::SocketAddr;

/// Range of a message in the stream of one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub side: Side,
    pub start: u64,
    pub end: u64,
}

impl Span {
    pub fn first_packet(&self, packets: &[Packet]) -> Option<usize> {
        packets.iter().position(|packet| packet.holds(self.side, self.start))
    }

    pub fn last_packet(&self, packets: &[Packet]) -> Option<usize> {
        packets.iter().position(|packet| packet.holds(self.side, self.end - 1))
    }

    /// Returns true if the packets contain every byte of the span, or its first `length` bytes if it is longer.
    pub fn is_captured(&self, packets: &[Packet], length: u64) -> bool {
        let mut at = self.start;
        let end = self.end.min(self.start + length);
        while at < end {
            let holder = packets.iter().filter(|packet| packet.holds(self.side, at)).map(Packet::end).max();
            let Some(next) = holder else { return false };
            at = next;
        }
        true
    }
}

#[derive(Debug, Clone)]
pub struct Conversation {
    ends: [SocketAddr; 2],
    initial: [u32; 2],
    segment_size: usize,
    pace_ns: i64,
    latency_ns: i64,
    events: Vec<Event>,
    said: [u64; 2],
    spans: Vec<Span>,
    windows: [u16; 2],
    window_scales: Option<[u8; 2]>,
}

#[derive(Debug, Clone)]
struct Event {
    time_ns: i64,
    side: Side,
    offset: u64,
    flags: u8,
    window: u16,
    payload: Vec<u8>,
}

impl Default for Conversation {
    fn default() -> Conversation {
        Conversation::new()
    }
}

/// Returns the message with a NetBIOS session service header.
pub fn framed(message: impl Into<Vec<u8>>) -> Vec<u8> {
    let message = message.into();
    let mut frame = (message.len() as u32).to_be_bytes().to_vec();
    frame.extend(message);
    frame
}

impl Conversation {
    /// Creates a connection with a handshake, from 10.0.0.1:50000 to 10.0.0.2:445.
    pub fn new() -> Conversation {
        Conversation::far(10)
    }

    /// Creates a connection with this round trip, in microseconds, between the capture point and the server.
    pub fn far(server_us: i64) -> Conversation {
        let answered = server_us * 1000;
        let mut conversation = Conversation::midstream();
        conversation.push(Side::Client, 0, TcpFlags::SYN, Vec::new());
        conversation.push(Side::Server, answered, TcpFlags::SYN | TcpFlags::ACK, Vec::new());
        conversation.push(Side::Client, answered + 10_000, TcpFlags::ACK, Vec::new());
        conversation
    }

    pub fn midstream() -> Conversation {
        Conversation {
            ends: [SocketAddr::from(([10, 0, 0, 1], 50_000)), SocketAddr::from(([10, 0, 0, 2], 445))],
            initial: [1000, 500_000],
            segment_size: 1460,
            pace_ns: 10_000,
            latency_ns: 0,
            events: Vec::new(),
            said: [0, 0],
            spans: Vec::new(),
            windows: [64_240, 64_240],
            window_scales: None,
        }
    }

    pub fn between(mut self, client: ([u8; 4], u16), server: ([u8; 4], u16)) -> Conversation {
        self.ends = [SocketAddr::from(client), SocketAddr::from(server)];
        self
    }

    pub fn ports(self, client: u16, server: u16) -> Conversation {
        self.between(([10, 0, 0, 1], client), ([10, 0, 0, 2], server))
    }

    pub fn initial_sequences(mut self, client: u32, server: u32) -> Conversation {
        self.initial = [client, server];
        self
    }

    /// Sets the maximum payload of a packet in bytes. Default: 1460.
    pub fn segment_size(mut self, bytes: usize) -> Conversation {
        self.segment_size = bytes;
        self
    }

    /// Sets the time between the segments of a message. Default: 10 µs.
    pub fn pace_ns(mut self, pace: i64) -> Conversation {
        self.pace_ns = pace;
        self
    }

    /// Sets the time between the capture point and either end. Default: 0. A sender at `t` has received what passed the
    /// capture point before `t` − 2 × latency.
    pub fn latency_ns(mut self, latency: i64) -> Conversation {
        self.latency_ns = latency;
        self
    }

    pub fn client_says(self, at_us: i64, message: impl Into<Vec<u8>>) -> Conversation {
        self.says(Side::Client, at_us * 1000, framed(message))
    }

    pub fn server_says(self, at_us: i64, message: impl Into<Vec<u8>>) -> Conversation {
        self.says(Side::Server, at_us * 1000, framed(message))
    }

    pub fn client_says_over(self, at_us: &[i64], message: impl Into<Vec<u8>>) -> Conversation {
        self.says_over(Side::Client, at_us, framed(message))
    }

    pub fn server_says_over(self, at_us: &[i64], message: impl Into<Vec<u8>>) -> Conversation {
        self.says_over(Side::Server, at_us, framed(message))
    }

    pub fn client_sends(self, at_us: i64, bytes: impl Into<Vec<u8>>) -> Conversation {
        self.says(Side::Client, at_us * 1000, bytes.into())
    }

    pub fn server_sends(self, at_us: i64, bytes: impl Into<Vec<u8>>) -> Conversation {
        self.says(Side::Server, at_us * 1000, bytes.into())
    }

    pub fn client_acks(mut self, at_us: i64) -> Conversation {
        self.push(Side::Client, at_us * 1000, TcpFlags::ACK, Vec::new());
        self
    }

    pub fn server_acks(mut self, at_us: i64) -> Conversation {
        self.push(Side::Server, at_us * 1000, TcpFlags::ACK, Vec::new());
        self
    }

    pub fn closes(mut self, at_us: i64) -> Conversation {
        self.push(Side::Client, at_us * 1000, TcpFlags::FIN | TcpFlags::ACK, Vec::new());
        self.push(Side::Server, at_us * 1000 + 10_000, TcpFlags::FIN | TcpFlags::ACK, Vec::new());
        self.push(Side::Client, at_us * 1000 + 20_000, TcpFlags::ACK, Vec::new());
        self
    }

    pub fn window(mut self, side: Side, window: u16) -> Conversation {
        self.windows[side.index()] = window;
        self
    }

    /// Adds the window scale option with these shifts to both SYNs (RFC 7323 §2.2).
    pub fn window_scales(mut self, client: u8, server: u8) -> Conversation {
        self.window_scales = Some([client, server]);
        self
    }

    pub fn says(mut self, side: Side, at_ns: i64, bytes: Vec<u8>) -> Conversation {
        let start = self.said[side.index()];
        self.spans.push(Span { side, start, end: start + bytes.len() as u64 });
        let mut time = at_ns;
        for segment in bytes.chunks(self.segment_size) {
            self.push(side, time, TcpFlags::PSH | TcpFlags::ACK, segment.to_vec());
            time += self.pace_ns;
        }
        self
    }

    fn says_over(mut self, side: Side, at_us: &[i64], bytes: Vec<u8>) -> Conversation {
        let start = self.said[side.index()];
        self.spans.push(Span { side, start, end: start + bytes.len() as u64 });
        let size = bytes.len().div_ceil(at_us.len());
        for (at, segment) in at_us.iter().zip(bytes.chunks(size)) {
            self.push(side, at * 1000, TcpFlags::PSH | TcpFlags::ACK, segment.to_vec());
        }
        self
    }

    fn push(&mut self, side: Side, time_ns: i64, flags: u8, payload: Vec<u8>) {
        let offset = self.said[side.index()];
        self.said[side.index()] += payload.len() as u64;
        let window = self.windows[side.index()];
        self.events.push(Event { time_ns, side, offset, flags, window, payload });
    }

    /// Returns the time at which a message of this length that starts at `at_ns` has passed.
    pub fn passed_ns(&self, at_ns: i64, bytes: usize) -> i64 {
        at_ns + (bytes.div_ceil(self.segment_size) as i64 - 1).max(0) * self.pace_ns
    }

    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    pub fn packets(&self) -> Vec<Packet> {
        let mut events = self.events.clone();
        events.sort_by_key(|event| event.time_ns);
        let mut passed: [Vec<(i64, u64)>; 2] = [Vec::new(), Vec::new()];
        let mut packets = Vec::new();
        let mut ip_ids = [100u16, 40_000];
        for event in events {
            let (us, them) = (event.side.index(), event.side.other().index());
            let control = |flag: u8| u64::from(event.flags & flag != 0);
            // The SYN precedes offset 0.
            let sequence =
                self.initial[us].wrapping_add(event.offset as u32).wrapping_add(1 - control(TcpFlags::SYN) as u32);
            let end = event.offset + event.payload.len() as u64 + control(TcpFlags::FIN);
            let seen = passed[them].iter().rev().find(|(time, _)| *time <= event.time_ns - 2 * self.latency_ns);
            let received = seen.map_or(0, |(_, end)| *end);
            let acknowledgment = self.initial[them].wrapping_add(1).wrapping_add(received as u32);
            ip_ids[us] = ip_ids[us].wrapping_add(1);
            let highest = passed[us].last().map_or(0, |(_, end)| *end);
            passed[us].push((event.time_ns, end.max(highest)));
            packets.push(Packet {
                origin: packets.len(),
                time: Timestamp(EPOCH.0 + event.time_ns),
                side: event.side,
                offset: event.offset,
                source: self.ends[us],
                destination: self.ends[them],
                sequence,
                acknowledgment: if event.flags & TcpFlags::ACK != 0 { acknowledgment } else { 0 },
                flags: TcpFlags(event.flags),
                window: event.window,
                window_scale: self.window_scales.filter(|_| event.flags & TcpFlags::SYN != 0).map(|scales| scales[us]),
                ip_id: ip_ids[us],
                payload: event.payload,
                snap: usize::MAX,
            });
        }
        packets
    }
}

pub fn together(conversations: &[Conversation]) -> Vec<Packet> {
    let mut packets: Vec<Packet> = conversations.iter().flat_map(Conversation::packets).collect();
    packets.sort_by_key(|packet| packet.time);
    for (origin, packet) in packets.iter_mut().enumerate() {
        packet.origin = origin;
    }
    packets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_numbers_continue_and_acknowledge_the_other_side() {
        let packets = Conversation::new().client_sends(100, [1; 1500]).server_sends(200, [2; 3]).packets();
        let numbers: Vec<(u32, u32, usize)> =
            packets.iter().map(|packet| (packet.sequence, packet.acknowledgment, packet.payload.len())).collect();
        let expected = [
            (1000, 0, 0),
            (500_000, 1001, 0),
            (1001, 500_001, 0),
            (1001, 500_001, 1460),
            (2461, 500_001, 40),
            (500_001, 2501, 3),
        ];
        assert_eq!(numbers, expected);
    }

    #[test]
    fn latency_delays_what_a_side_has_seen() {
        let conversation = Conversation::midstream().latency_ns(50_000);
        let packets =
            conversation.client_sends(0, [1; 10]).server_sends(99, [2; 1]).server_sends(100, [2; 1]).packets();
        assert_eq!((packets[1].acknowledgment, packets[2].acknowledgment), (1001, 1011));
    }
}
