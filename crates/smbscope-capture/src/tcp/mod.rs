//! TCP segments → stream events: data in order, gaps, retransmissions, the end (RFC 9293).
//!
//! `table` finds the flow of a segment, `flow` puts its two directions in order together, and `stream` keeps
//! the sequence space of one direction. What reaches the [`StreamSink`] is in the order in which the two ends can
//! have seen it: where a direction has a hole, both directions wait until it is filled or skipped as a gap, so that a
//! response is never handed on before the request that it answers.

mod copies;
mod counts;
mod flow;
mod held;
mod layers;
mod outages;
mod resent;
mod ring;
mod round_trip;
mod stalls;
mod stream;
mod table;
mod window;

#[cfg(test)]
mod tests;

pub use flow::limits;
pub use table::FlowTable;
pub use window::WindowCounts;

use crate::segment::TcpSegment;
use smbscope_model::{ClockStep, FlowDirection, FlowId, Nanos, Outage, Quality, Stamp, Timestamp};
use std::net::SocketAddr;

/// What is known about a flow while its data is handed on.
#[derive(Debug, Clone, Copy)]
pub struct FlowView {
    /// Its number, by first packet.
    pub id: FlowId,
    /// Sender of the first packet.
    pub source: SocketAddr,
    /// Receiver of the first packet.
    pub destination: SocketAddr,
    /// First packet.
    pub first: Stamp,
    /// Whether the capture holds no SYN of it.
    pub midstream: bool,
    /// Direction of the SYN, when it was seen: the side that opened the connection.
    pub opener: Option<FlowDirection>,
    /// Whether the SYN of each direction was captured, so that its first byte is known.
    pub begins: [bool; 2],
    /// Smallest round trip from the capture point to the receiver of each direction's data and back.
    pub round_trip: [Option<Nanos>; 2],
    /// Up to which position the receiver of each direction has acknowledged it: as of the latest packet, of which the data
    /// may not be handed on yet.
    pub acknowledged: [Option<u64>; 2],
    /// Where the clock of the capture stepped forward last.
    pub clock_step: Option<ClockStep>,
}

impl FlowView {
    /// The two ends as sender and receiver of a direction.
    pub fn ends(&self, direction: FlowDirection) -> (SocketAddr, SocketAddr) {
        match direction {
            FlowDirection::Forward => (self.source, self.destination),
            FlowDirection::Backward => (self.destination, self.source),
        }
    }

    /// Direction of the client, guessed: servers have the lower port, nearly always.
    pub fn client_by_port(&self) -> FlowDirection {
        match self.source.port() < self.destination.port() {
            true => FlowDirection::Backward,
            false => FlowDirection::Forward,
        }
    }
}

/// Bytes of a direction, in order, none of them handed on before.
#[derive(Debug, Clone, Copy)]
pub struct StreamChunk<'a> {
    /// Position of the first byte in the direction's stream.
    pub position: u64,
    /// Length on the wire.
    pub length: u64,
    /// The captured part, from the first byte on; shorter than `length` where the snap length cut it.
    pub bytes: &'a [u8],
    /// The number of the packet that completed the segment: see [`TcpSegment::ordinal`].
    pub ordinal: u64,
    /// Where in the payload of its segment the chunk begins.
    pub offset: u64,
    /// The packet that began the segment (differs from `stamp` for IP fragments).
    pub first: Stamp,
    /// The packet that completed the segment.
    pub stamp: Stamp,
    /// Up to which position of the other direction's stream the segment acknowledges.
    pub acknowledged: Option<u64>,
    /// The receiver had acknowledged these bytes before: this may be a copy that was sent later than its place in the
    /// stream, with an acknowledgment of that time.
    pub known_received: bool,
    /// The chunk begins where its segment's payload begins: a likely place for a frame to begin.
    pub at_segment_start: bool,
    /// Only a copy that was sent again was captured, after bytes that follow: whoever waited for these bytes waited
    /// until then.
    pub sent_again: bool,
    /// The receiver had closed its window since the chunk before: the sender had to wait for it.
    pub receiver_full: bool,
    /// The sender had sent other packets since the chunk before, by their numbers, that were not captured: lost on the
    /// way to the capture point, or dropped there.
    pub others_missing: bool,
}

impl StreamChunk<'_> {
    /// Position after the last byte.
    pub fn end(&self) -> u64 {
        self.position + self.length
    }
}

/// Why the capture does not hold some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GapCause {
    /// The receiver acknowledged them: dropped by the capture.
    Capture,
    /// Nobody acknowledged them in the capture.
    Unknown,
}

/// Bytes of a direction that the capture does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamGap {
    /// Position of the first missing byte.
    pub position: u64,
    /// How many are missing.
    pub length: u64,
    /// Why.
    pub cause: GapCause,
    /// The receiver missed bytes here, too, as its acknowledgments say: until when at most. They were sent again, which
    /// the capture does not hold either.
    pub missed_until: Option<Timestamp>,
}

impl StreamGap {
    /// Position after the last missing byte.
    pub fn end(&self) -> u64 {
        self.position + self.length
    }
}

/// Bytes that were sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retransmission {
    /// Position of the first byte.
    pub position: u64,
    /// How many.
    pub length: u64,
    /// The packet that carried them again.
    pub stamp: Stamp,
    /// From the first copy, where it is remembered.
    pub delay: Option<Nanos>,
}

/// Counts of one direction that belong to TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamCounts {
    /// Packets.
    pub packets: u64,
    /// SYNs, with those that were sent again.
    pub syns: u64,
    /// Payload bytes, each counted once.
    pub bytes: u64,
    /// Packets with bytes that were not seen before.
    pub data_packets: u64,
    /// Segments that only acknowledge.
    pub pure_acks: u64,
    /// Segments that carry bytes sent before.
    pub retransmitted: u64,
    /// Segments of which the capture holds only the retransmission, as the first copy was lost before the capture point.
    pub lost_before_capture: u64,
    /// Retransmitted segments that the receiver had: it had acknowledged them, or reported them in a D-SACK.
    pub needless: u64,
    /// Time in which losses held up the stream; known at the end.
    pub resend_delay: Nanos,
    /// Times that the sender held data back until a delayed acknowledgment came.
    pub ack_stalls: u64,
    /// Time in which it did.
    pub ack_stall: Nanos,
    /// Bytes acknowledged but never captured.
    pub dropped_bytes: u64,
    /// Packets dropped by the capture, at least.
    pub dropped_packets: u64,
    /// What the receiver's window did to the sender.
    pub window: WindowCounts,
}

/// How a flow ended, and what was counted on the way.
#[derive(Debug, Clone)]
pub struct FlowEnd {
    /// The last packet.
    pub last: Stamp,
    /// Both sides sent FIN.
    pub finished: bool,
    /// A side sent RST.
    pub reset: bool,
    /// The table was full.
    pub evicted: bool,
    /// By direction.
    pub counts: [StreamCounts; 2],
    /// The longest times in which a side heard nothing of the other.
    pub outages: Vec<Outage>,
    /// Initial sequence numbers by direction, where the SYN was captured.
    pub initial: [Option<u32>; 2],
    /// The TCP part of Quality.
    pub quality: Quality,
}

/// Receives the events of every flow.
pub trait StreamSink {
    /// What the sink keeps for a flow.
    type Flow;

    /// A flow was seen for the first time.
    fn opened(&mut self, view: &FlowView) -> Self::Flow;
    /// Bytes in order.
    fn data(&mut self, flow: &mut Self::Flow, view: &FlowView, direction: FlowDirection, chunk: &StreamChunk<'_>);
    /// Bytes that will not come; the data after them follows.
    fn gap(&mut self, flow: &mut Self::Flow, view: &FlowView, direction: FlowDirection, gap: &StreamGap);
    /// Bytes that came again.
    fn retransmitted(
        &mut self,
        flow: &mut Self::Flow,
        view: &FlowView,
        direction: FlowDirection,
        retransmission: &Retransmission,
    );
    /// Whether these bytes only stand at the beginning of a connection.
    fn begins_connection(&self, _: &[u8]) -> bool {
        false
    }
    /// What the sink keeps for a flow beside [`StreamSink::Flow`] itself, in bytes, about. It is asked for each segment.
    fn footprint(&self, _: &Self::Flow) -> usize {
        0
    }
    /// The flow is over; nothing follows.
    fn closed(&mut self, flow: Self::Flow, view: &FlowView, end: FlowEnd);
}

/// A segment seen from its flow: which way it goes.
#[derive(Debug, Clone, Copy)]
struct Directed<'a> {
    direction: FlowDirection,
    segment: &'a TcpSegment<'a>,
}
