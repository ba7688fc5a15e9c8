//! Tests of stream reassembly (RFC 9293 and our own design), all through [`FlowTable`] with a recording sink.

mod duplicates;
mod losses;
mod order;
mod reuse;
mod waits;

use super::{FlowEnd, FlowTable, FlowView, Retransmission, StreamChunk, StreamGap, StreamSink};
use crate::segment::{TcpFlags, TcpSegment, WindowScale};
use smbscope_model::{CaptureId, FlowDirection, PacketRef, Quality, Stamp, Timestamp};
use std::net::SocketAddr;

const CLIENT: ([u8; 4], u16) = ([10, 0, 0, 1], 50_000);
const SERVER: ([u8; 4], u16) = ([10, 0, 0, 2], 445);

/// Event reported to the sink. Positions count from the first byte after the SYN.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Event {
    /// Direction (`>` from the client), position, bytes, packet number.
    Data(char, u64, String, u64),
    /// Direction, position, length, dropped by the capture.
    Gap(char, u64, u64, bool),
    /// Direction, position, length, delay in microseconds.
    Again(char, u64, u64, Option<i64>),
    Closed,
}

#[derive(Default)]
struct Recorder {
    flows: Vec<Vec<Event>>,
    views: Vec<FlowView>,
    ends: Vec<FlowEnd>,
}

struct Recorded {
    index: usize,
    origins: [Option<u64>; 2],
}

fn arrow(view: &FlowView, direction: FlowDirection) -> char {
    if view.ends(direction).0 == SocketAddr::from(CLIENT) { '>' } else { '<' }
}

impl Recorder {
    fn send(&mut self, flow: &Recorded, view: &FlowView, event: Event) {
        self.flows[flow.index].push(event);
        self.views[flow.index] = *view;
    }
}

impl StreamSink for Recorder {
    type Flow = Recorded;

    fn opened(&mut self, view: &FlowView) -> Recorded {
        self.flows.push(Vec::new());
        self.views.push(*view);
        Recorded { index: self.flows.len() - 1, origins: [None, None] }
    }

    fn data(&mut self, flow: &mut Recorded, view: &FlowView, direction: FlowDirection, chunk: &StreamChunk<'_>) {
        let origin = *flow.origins[direction.index()].get_or_insert(chunk.position);
        let text = String::from_utf8_lossy(chunk.bytes).into_owned();
        let event = Event::Data(arrow(view, direction), chunk.position - origin, text, chunk.stamp.packet.number());
        self.send(flow, view, event);
    }

    fn gap(&mut self, flow: &mut Recorded, view: &FlowView, direction: FlowDirection, gap: &StreamGap) {
        let origin = *flow.origins[direction.index()].get_or_insert(gap.position);
        let by_capture = gap.cause == super::GapCause::Capture;
        let event = Event::Gap(arrow(view, direction), gap.position - origin, gap.length, by_capture);
        self.send(flow, view, event);
    }

    fn retransmitted(
        &mut self,
        flow: &mut Recorded,
        view: &FlowView,
        direction: FlowDirection,
        retransmission: &Retransmission,
    ) {
        let origin = flow.origins[direction.index()].unwrap_or(retransmission.position);
        let delay = retransmission.delay.map(|delay| delay.0 / 1000);
        let position = retransmission.position.wrapping_sub(origin);
        let event = Event::Again(arrow(view, direction), position, retransmission.length, delay);
        self.send(flow, view, event);
    }

    fn closed(&mut self, flow: Recorded, view: &FlowView, end: FlowEnd) {
        self.send(&flow, view, Event::Closed);
        self.ends.push(end);
    }
}

/// A connection to send packets on. Initial sequence numbers are 1000 and 5000, so data starts at 1001 and 5001.
struct Wire {
    table: FlowTable<Recorder>,
    number: u64,
    ids: [u16; 2],
}

/// The fields of a packet that tests set; the rest has defaults.
#[derive(Clone, Copy)]
struct SentPacket<'a> {
    at_us: i64,
    from_client: bool,
    sequence: u32,
    acknowledgment: u32,
    flags: u8,
    payload: &'a [u8],
    length: Option<u32>,
    window: u16,
    window_scale: WindowScale,
    ip_id: Option<u16>,
    hops_left: u8,
    duplicate_sack: Option<(u32, u32)>,
}

fn client<'a>(at_us: i64, sequence: u32, acknowledgment: u32, payload: &'a str) -> SentPacket<'a> {
    SentPacket {
        at_us,
        from_client: true,
        sequence,
        acknowledgment,
        flags: TcpFlags::ACK,
        payload: payload.as_bytes(),
        length: None,
        window: 8192,
        window_scale: WindowScale::Unknown,
        ip_id: None,
        hops_left: 64,
        duplicate_sack: None,
    }
}

fn server<'a>(at_us: i64, sequence: u32, acknowledgment: u32, payload: &'a str) -> SentPacket<'a> {
    SentPacket { from_client: false, ..client(at_us, sequence, acknowledgment, payload) }
}

impl Wire {
    fn new() -> Wire {
        Wire { table: FlowTable::new(Recorder::default()), number: 0, ids: [100, 900] }
    }

    /// Starts with a handshake: SYN at 0, SYN-ACK at 40 and ACK at 100 µs.
    fn open() -> Wire {
        let mut wire = Wire::new();
        wire.send(SentPacket { flags: TcpFlags::SYN, ..client(0, 1000, 0, "") });
        wire.send(SentPacket { flags: TcpFlags::SYN | TcpFlags::ACK, ..server(40, 5000, 1001, "") });
        wire.send(client(100, 1001, 5001, ""));
        wire
    }

    /// Sends a packet with the next IP identification of its sender.
    fn send(&mut self, packet: SentPacket<'_>) -> &mut Wire {
        let next = &mut self.ids[usize::from(!packet.from_client)];
        *next += 1;
        let ip_id = packet.ip_id.unwrap_or(*next);
        self.number += 1;
        let reference = PacketRef::new(CaptureId(0), self.number);
        let stamp = Stamp { time: Timestamp(packet.at_us * 1000), packet: reference };
        let (client, server) = (SocketAddr::from(CLIENT), SocketAddr::from(SERVER));
        let (source, destination) = if packet.from_client { (client, server) } else { (server, client) };
        self.table.segment(&TcpSegment {
            ordinal: self.number,
            first: stamp,
            stamp,
            origin: Default::default(),
            source,
            destination,
            sequence: packet.sequence,
            acknowledgment: packet.acknowledgment,
            flags: TcpFlags(packet.flags),
            window: packet.window,
            window_scale: packet.window_scale,
            timestamp_value: None,
            names_later_bytes: false,
            duplicate_sack: packet.duplicate_sack,
            ip_id: Some(ip_id),
            hops_left: packet.hops_left,
            payload: packet.payload,
            payload_length: packet.length.unwrap_or(packet.payload.len() as u32),
        });
        self
    }

    fn end(self) -> Recorder {
        self.table.finish()
    }
}

impl Recorder {
    /// Returns the events of the only flow, without its end.
    fn events(&self) -> &[Event] {
        let [flow] = &self.flows[..] else { panic!("one flow expected: {:?}", self.flows) };
        let [events @ .., Event::Closed] = &flow[..] else { panic!("a flow ends: {flow:?}") };
        events
    }

    /// Returns the delivered data of both directions as text: `>abc <def`.
    fn text(&self) -> String {
        let mut text = String::new();
        for event in self.events() {
            match event {
                Event::Data(arrow, _, bytes, _) => text += &format!("{arrow}{bytes} "),
                Event::Gap(arrow, _, length, true) => text += &format!("{arrow}[{length} dropped] "),
                Event::Gap(arrow, _, length, false) => text += &format!("{arrow}[{length} missing] "),
                Event::Again(..) | Event::Closed => {}
            }
        }
        text.trim_end().to_owned()
    }

    fn quality(&self) -> &Quality {
        &self.ends[0].quality
    }
}
