//! From TCP segments to stream events: in-order data, gaps, retransmissions, end of flow (RFC 9293).
//!
//! Start with `table`, which finds the flow of a segment. `flow` orders both directions of a connection together, and
//! `stream` tracks the sequence space of one. While one direction has a hole, both wait until it is filled or skipped
//! as a gap, so that the [`StreamSink`] receives no response before its request.

mod buffers;
mod duplicates;
mod flow;
mod losses;
mod stream;
mod table;
mod waits;

#[cfg(test)]
mod tests;

pub use flow::limits;
pub use table::FlowTable;
pub use waits::WindowCounts;

use crate::segment::{OriginId, TcpSegment};
use smbscope_model::{ClockStep, FlowDirection, FlowId, Nanos, Outage, Quality, Stamp, Timestamp};
use std::net::SocketAddr;

#[derive(Debug, Clone, Copy)]
pub struct FlowView {
    /// Numbered by first packet.
    pub id: FlowId,
    pub source: SocketAddr,
    pub destination: SocketAddr,
    pub first: Stamp,
    /// The capture contains no SYN of this flow.
    pub midstream: bool,
    /// Direction of the initial SYN, if captured.
    pub opener: Option<FlowDirection>,
    /// For each direction, true if its SYN was captured, so that the first byte is known.
    pub begins: [bool; 2],
    /// Per direction: smallest round-trip time between the capture point and the receiver of its data.
    pub round_trip: [Option<Nanos>; 2],
    /// Per direction: position acknowledged as of the latest packet, whose data may not be delivered yet.
    pub acknowledged: [Option<u64>; 2],
    pub clock_step: Option<ClockStep>,
}

impl FlowView {
    pub fn ends(&self, direction: FlowDirection) -> (SocketAddr, SocketAddr) {
        match direction {
            FlowDirection::Forward => (self.source, self.destination),
            FlowDirection::Backward => (self.destination, self.source),
        }
    }

    /// Guesses the client's direction: servers nearly always have the lower port.
    pub fn client_by_port(&self) -> FlowDirection {
        match self.source.port() < self.destination.port() {
            true => FlowDirection::Backward,
            false => FlowDirection::Forward,
        }
    }
}

/// In-order bytes of a direction, each delivered exactly once.
#[derive(Debug, Clone, Copy)]
pub struct StreamChunk<'a> {
    pub position: u64,
    pub length: u64,
    pub bytes: &'a [u8],
    pub ordinal: u64,
    pub offset: u64,
    pub first: Stamp,
    pub stamp: Stamp,
    pub origin: OriginId,
    pub acknowledged: Option<u64>,
    /// The receiver had already acknowledged these bytes when the segment was captured: it may be a late copy, with a
    /// later acknowledgment number than its place in the stream implies.
    pub known_received: bool,
    /// The chunk starts at the beginning of a segment's payload, a likely frame boundary.
    pub at_segment_start: bool,
    /// Only a retransmission was captured, after later bytes: the receiver could not proceed until then.
    pub sent_again: bool,
    /// The receiver had closed its window since the previous chunk, so the sender had to wait.
    pub receiver_full: bool,
    /// The IP identifications show that other packets of the sender were lost or dropped since the previous chunk.
    pub others_missing: bool,
}

impl StreamChunk<'_> {
    pub fn end(&self) -> u64 {
        self.position + self.length
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GapCause {
    /// The receiver acknowledged them, so the capture dropped them.
    Capture,
    /// The capture contains no acknowledgment of them.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamGap {
    pub position: u64,
    pub length: u64,
    pub cause: GapCause,
    /// If the receiver's acknowledgments show that it was missing bytes here too: latest time at which it still was.
    /// The bytes were retransmitted, which the capture does not contain either.
    pub missed_until: Option<Timestamp>,
}

impl StreamGap {
    pub fn end(&self) -> u64 {
        self.position + self.length
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retransmission {
    pub position: u64,
    pub length: u64,
    pub stamp: Stamp,
    pub delay: Option<Nanos>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamCounts {
    pub packets: u64,
    /// SYNs, including retransmissions.
    pub syns: u64,
    pub bytes: u64,
    pub data_packets: u64,
    pub pure_acks: u64,
    pub retransmitted: u64,
    pub lost_before_capture: u64,
    /// Spurious retransmissions: the receiver had acknowledged the bytes or reported the duplicate in a D-SACK.
    pub needless: u64,
    /// Time during which losses stalled the stream; set at the end of the flow.
    pub resend_delay: Nanos,
    pub ack_stalls: u64,
    pub ack_stall: Nanos,
    pub dropped_bytes: u64,
    pub dropped_packets: u64,
    pub window: WindowCounts,
}

#[derive(Debug, Clone)]
pub struct FlowEnd {
    pub last: Stamp,
    pub finished: bool,
    pub reset: bool,
    pub evicted: bool,
    pub counts: [StreamCounts; 2],
    pub outages: Vec<Outage>,
    /// Initial sequence numbers per direction, where the SYN was captured.
    pub initial: [Option<u32>; 2],
    /// Times of the retransmitted data segments per direction, at most 65,536.
    pub resent: [Vec<Timestamp>; 2],
    pub quality: Quality,
}

pub trait StreamSink {
    type Flow;

    fn opened(&mut self, view: &FlowView) -> Self::Flow;
    fn data(&mut self, flow: &mut Self::Flow, view: &FlowView, direction: FlowDirection, chunk: &StreamChunk<'_>);
    fn gap(&mut self, flow: &mut Self::Flow, view: &FlowView, direction: FlowDirection, gap: &StreamGap);
    fn retransmitted(
        &mut self,
        flow: &mut Self::Flow,
        view: &FlowView,
        direction: FlowDirection,
        retransmission: &Retransmission,
    );
    /// Returns true if these bytes only occur at the start of a connection.
    fn begins_connection(&self, _: &[u8]) -> bool {
        false
    }
    /// Returns the approximate heap size of the flow's state in bytes. Called for many segments, so it has to be cheap.
    fn footprint(&self, _: &Self::Flow) -> usize {
        0
    }
    fn closed(&mut self, flow: Self::Flow, view: &FlowView, end: FlowEnd);
}

#[derive(Debug, Clone, Copy)]
struct Directed<'a> {
    direction: FlowDirection,
    segment: &'a TcpSegment<'a>,
}
