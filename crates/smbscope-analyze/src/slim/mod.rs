//! Slim captures: a copy with everything that the analysis reads, and nothing else.
//!
//! Every packet is kept with its time, its length on the wire and its headers. Of the payload, only the bytes that the
//! framers inspect remain: frame headers, and the message fields listed by [`smbscope_wire::kept`]. Everything else is
//! zeroed, and the bytes after the last one needed are cut off, as with a snap length.
//!
//! [`slim()`] writes one file; [`copy_to`] gives the packets to any writer. `packets` maps bytes to packets and
//! writes these in order, and `reduce` removes content.

mod packets;
mod reduce;

use crate::analyzer::SMB_PORTS;
use crate::content::{ContentReader, FrameContent, MAX_HEAD};
use crate::decryption::{FlowKeys, Keys};
use crate::flow::begins_connection;
use crate::foreign::FirstBytes;
use crate::frame::Frame;
use crate::framer::{Decided, Framer, Mark};
use crate::pseudonym::{Disguise, PseudonymKey};
use packets::{Numbering, Packets, PendingPacket, PendingPacketQueue};
use reduce::NameAnonymizer;
use smbscope_capture::decode::{Decoder, Outline, PacketContent};
use smbscope_capture::reader::CaptureSet;
use smbscope_capture::tcp::{FlowEnd, FlowTable, FlowView, Retransmission, StreamChunk, StreamGap, StreamSink};
use smbscope_capture::writer::{CaptureInterface, PacketBlock, PacketWriter, PcapngWriter};
use smbscope_capture::{Packet, TcpSegment};
use smbscope_crypto::key_ring::KeyRing;
use smbscope_model::decryption::DecryptedSessions;
use smbscope_model::{CaptureInfo, ClockStep, FlowDirection, MemoryBudget, Quality, Timestamp, TunnelPorts};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;

const COMMENT: &str = "Slim copy made by smbscope: packet headers and SMB headers are original, file content, passwords \
                       and all other payload were removed";
/// Program that a slim copy names as its maker.
pub const PROGRAM: &str = concat!("smbscope ", env!("CARGO_PKG_VERSION"));
const INTERVAL: u64 = 1 << 12;

const DECRYPTED: &str = "; encrypted messages were decrypted";
const HIDDEN: &str = "; names and addresses were replaced by a keyed hash";

#[derive(Debug, Clone, Default)]
pub struct SlimOptions {
    pub limits: MemoryBudget,
    /// Tunnels on UDP ports, as the user declares them.
    pub tunnels: TunnelPorts,
    pub anonymize: Option<Anonymize>,
    /// Decrypt messages with these keys.
    pub keys: Option<Arc<KeyRing>>,
}

#[derive(Debug, Clone)]
pub struct Anonymize {
    /// Captures made with the same key have the same pseudonyms.
    pub key: PseudonymKey,
    pub depth: bool,
    pub extensions: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SlimSummary {
    pub packets: u64,
    pub captured_bytes: u64,
    pub removed_bytes: u64,
    /// Packets written without payload because too many were waiting for bytes that the capture does not hold.
    pub undecided: u64,
    /// Packets whose number differs from that in their file, which is too far from time order.
    pub moved: u64,
    /// Sessions that the keys decrypted, or did not.
    pub decryption: DecryptedSessions,
}

/// Reads `set` to its end, or until its stop flag is set, and writes a slim copy to `out`.
pub fn slim(
    set: &mut CaptureSet,
    options: &SlimOptions,
    out: &mut dyn Write,
    observe: &mut dyn FnMut(&CaptureSet),
) -> io::Result<SlimSummary> {
    let numbering = match (set.captures().len(), set.quality().packets_reordered_by_time) {
        (1, 0) => Numbering::AsTheyCome,
        (1, _) => Numbering::Restored,
        _ => Numbering::Anew,
    };
    let mut writer = PcapngWriter::new(out, &options.comment(), PROGRAM)?;
    let summary = copy(set, options, numbering, &mut writer, observe)?;
    writer.finish()?;
    Ok(summary)
}

impl SlimOptions {
    /// Returns the comment of a slim copy, which names its content and the removed data.
    pub fn comment(&self) -> String {
        let (decrypted, hidden) = (self.keys.as_ref().map(|_| DECRYPTED), self.anonymize.as_ref().map(|_| HIDDEN));
        [Some(COMMENT), decrypted, hidden].into_iter().flatten().collect()
    }
}

/// Reads `set` to its end, or until its stop flag is set, and numbers the packets in time order.
///
/// # Errors
/// The writer failed.
pub fn copy_to(
    set: &mut CaptureSet,
    options: &SlimOptions,
    writer: &mut dyn PacketWriter,
    observe: &mut dyn FnMut(&CaptureSet),
) -> io::Result<SlimSummary> {
    copy(set, options, Numbering::Anew, writer, observe)
}

fn copy(
    set: &mut CaptureSet,
    options: &SlimOptions,
    numbering: Numbering,
    writer: &mut dyn PacketWriter,
    observe: &mut dyn FnMut(&CaptureSet),
) -> io::Result<SlimSummary> {
    let stop = set.stop_flag();
    let clocks = Clocks { steps: set.clock_steps() };
    let names = match &options.anonymize {
        None => NameAnonymizer::Kept,
        Some(Anonymize { key, depth, extensions }) => {
            let disguise = Disguise::new(key.clone(), *depth, *extensions).within(options.limits.names / 4);
            NameAnonymizer::Replaced(Box::new(disguise))
        }
    };
    // Slimming keeps no session names, so their budget serves waiting packets and pseudonyms.
    let window = PendingPacketQueue::new(numbering, options.limits.names / 4 * 3);
    let keys = options.keys.as_ref().map(|ring| Box::new(Keys::new(Arc::clone(ring))));
    let noting = Noting { packets: Packets::new(window, options.tunnels.clone()), names, keys, frames: Vec::new() };
    let mut slimmer = Slimmer {
        writer,
        decoder: Decoder::with_tunnels(options.tunnels.clone()),
        tunnels: options.tunnels.clone(),
        quality: Quality::default(),
        table: FlowTable::within(noting, options.limits.flows),
        clocks,
        summary: SlimSummary::default(),
    };
    while !stop.load(Ordering::Relaxed) && set.advance() {
        let Some(packet) = set.current_packet() else { break };
        let info = &set.captures()[usize::from(packet.stamp.packet.capture().0)];
        slimmer.take(&packet, info)?;
        if slimmer.summary.packets.is_multiple_of(INTERVAL) {
            observe(set);
        }
    }
    slimmer.finish()
}

/// Backward steps of a capture's clock. The reader shifts the times after a step; the copy restores the clock's times.
struct Clocks {
    steps: Vec<ClockStep>,
}

impl Clocks {
    fn original(&self, packet: &Packet<'_>) -> Timestamp {
        let place = packet.stamp.packet;
        let is_past = |step: &&ClockStep| {
            step.after.packet.capture() == place.capture() && step.after.packet.number() <= place.number()
        };
        match self.steps.iter().filter(is_past).max_by_key(|step| step.after.packet.number()) {
            Some(step) => Timestamp(packet.stamp.time.0 + (step.after.time - step.before.time).0),
            None => packet.stamp.time,
        }
    }
}

struct Slimmer<'o> {
    writer: &'o mut dyn PacketWriter,
    decoder: Decoder,
    tunnels: TunnelPorts,
    quality: Quality,
    table: FlowTable<Noting>,
    clocks: Clocks,
    summary: SlimSummary,
}

impl Slimmer<'_> {
    fn take(&mut self, packet: &Packet<'_>, info: &CaptureInfo) -> io::Result<()> {
        self.summary.packets += 1;
        self.summary.captured_bytes += packet.data.len() as u64;
        let ordinal = self.summary.packets;
        let outline = Outline::parse(packet, &self.tunnels);
        let (headers, length) = outline.needed(packet, &self.tunnels);
        let mut pending = PendingPacket {
            record: PacketBlock {
                time: self.clocks.original(packet),
                interface: CaptureInterface {
                    link_type: packet.link_type,
                    snap_length: info.snap_length.unwrap_or(0),
                    resolution_ns: info.resolution_ns,
                },
                parts: [&[], &[]],
                wire_length: packet.wire_length,
            },
            number: packet.stamp.packet.number(),
            headers: reduce::headers(packet, headers, &self.tunnels, &mut self.table.sink_mut().names),
            payload: Vec::new(),
            captured: packet.data.len() - length,
            holders: 0,
        };
        pending.headers.resize(length, 0);
        let segment = self.decoder.decode(packet, &mut self.quality);
        let Noting { packets, names, .. } = self.table.sink_mut();
        packets.window.push(ordinal, pending);
        packets.window.hold(ordinal);
        let is_fragment = matches!(outline.kind, PacketContent::Fragment(_));
        if let PacketContent::Fragment(fragment) = outline.kind {
            let bytes = packet.data.get(fragment.place.clone()).unwrap_or_default();
            packets.fragment(ordinal, fragment, bytes);
            packets.put_together(ordinal, segment.as_ref().map(|segment| segment.payload_length), names);
        }
        if let Some(segment) = &segment {
            follow(&mut self.table, ordinal, segment);
        }
        let packets = &mut self.table.sink_mut().packets;
        if segment.is_some() && is_fragment {
            packets.let_go(ordinal);
        }
        packets.window.let_go(ordinal);
        packets.window.write(self.writer)
    }

    fn finish(self) -> io::Result<SlimSummary> {
        let Slimmer { writer, table, mut summary, .. } = self;
        let Noting { mut packets, keys, .. } = table.finish();
        packets.window.finish(writer)?;
        summary.undecided = packets.window.undecided;
        summary.moved = packets.window.moved;
        summary.removed_bytes = packets.window.removed;
        summary.decryption = keys.map(|keys| keys.sessions).unwrap_or_default();
        Ok(summary)
    }
}

fn follow(table: &mut FlowTable<Noting>, ordinal: u64, segment: &TcpSegment<'_>) {
    let ends = (segment.source, segment.destination);
    let is_held_back = table.follow(segment);
    let packets = &mut table.sink_mut().packets;
    if is_held_back && segment.payload_length > 0 {
        packets.hold_back(ends, ordinal);
    } else if !is_held_back {
        packets.caught_up(ends);
    }
}

/// Fills bytes at which no frame begins: not a valid first byte of a frame header.
const NO_FRAME: u8 = 0xff;

struct UnparsedChunk {
    position: u64,
    bytes: Vec<u8>,
    ordinal: u64,
    offset: u64,
}

struct SlimDirection {
    framer: Framer,
    pieces: VecDeque<UnparsedChunk>,
    heard: bool,
    /// Stream position after the last byte that is preserved as it is.
    kept_until: u64,
}

struct SlimFlow {
    lanes: [SlimDirection; 2],
    is_smb: bool,
    /// Allocated only if there are keys.
    keys: Option<Box<FlowKeys>>,
}

struct Noting {
    packets: Packets,
    names: NameAnonymizer,
    keys: Option<Box<Keys>>,
    frames: Vec<Frame>,
}

impl Noting {
    fn note(&mut self, lane: &mut SlimDirection, chunk: Option<&StreamChunk<'_>>) {
        for mark in lane.framer.take_marks() {
            let Mark { position, length, decided } = mark;
            match decided {
                Decided::Presence => self.each_part(lane, chunk, position, length, |packets, ordinal, offset, part| {
                    packets.show(ordinal, offset, part.len());
                }),
                Decided::NoFrame => {
                    let from = lane.kept_until.clamp(position, position + length);
                    self.keep(lane, chunk, from, &vec![NO_FRAME; (position + length - from) as usize]);
                }
                Decided::Header => {
                    let header = lane.bytes(chunk, position, length).into_owned();
                    self.keep(lane, chunk, position, &header);
                    lane.kept_until = lane.kept_until.max(position + length);
                }
                Decided::Content { length: of_frame, decrypted } => {
                    let read = lane.bytes(chunk, position, length);
                    let slim = match decrypted {
                        None => reduce::payload(&read, of_frame, &mut self.names),
                        Some(plain) => reduce::decrypted(&plain, &read, of_frame, &mut self.names),
                    };
                    self.keep(lane, chunk, position, &slim);
                    lane.kept_until = lane.kept_until.max(position + slim.len() as u64);
                }
            }
        }
    }

    fn keep(&mut self, lane: &SlimDirection, chunk: Option<&StreamChunk<'_>>, position: u64, bytes: &[u8]) {
        self.each_part(lane, chunk, position, bytes.len() as u64, |packets, ordinal, offset, part| {
            packets.keep(ordinal, offset, &bytes[part]);
        });
    }

    fn each_part(
        &mut self,
        lane: &SlimDirection,
        chunk: Option<&StreamChunk<'_>>,
        position: u64,
        length: u64,
        mut enter: impl FnMut(&mut Packets, u64, usize, std::ops::Range<usize>),
    ) {
        let end = position + length;
        let newest = chunk.map(|chunk| (chunk.position, chunk.bytes.len(), chunk.ordinal, chunk.offset));
        let pieces = lane.pieces.iter().map(|piece| (piece.position, piece.bytes.len(), piece.ordinal, piece.offset));
        for (start, captured, ordinal, offset) in pieces.chain(newest) {
            let from = position.max(start);
            let until = end.min(start + captured as u64);
            if from < until {
                let part = (from - position) as usize..(until - position) as usize;
                enter(&mut self.packets, ordinal, (offset + from - start) as usize, part);
            }
        }
    }

    fn let_go(&mut self, lane: &mut SlimDirection, before: u64) {
        let is_past = |piece: &UnparsedChunk| piece.position + piece.bytes.len() as u64 <= before;
        while lane.pieces.front().is_some_and(is_past) {
            if let Some(piece) = lane.pieces.pop_front() {
                self.packets.let_go(piece.ordinal);
            }
        }
    }

    fn look_at_frames(&mut self, flow: &mut SlimFlow) {
        if !flow.is_smb && self.frames.iter().any(|frame| !matches!(frame.content, FrameContent::Raw)) {
            flow.is_smb = true;
            flow.lanes.iter_mut().for_each(|lane| lane.framer.make_certain());
        }
        self.frames.clear();
    }
}

impl SlimDirection {
    fn bytes<'c>(&self, chunk: Option<&StreamChunk<'c>>, position: u64, length: u64) -> Cow<'c, [u8]> {
        if let Some(chunk) = chunk.filter(|chunk| chunk.position <= position) {
            let start = usize::try_from(position - chunk.position).unwrap_or(usize::MAX).min(chunk.bytes.len());
            let end = start.saturating_add(length as usize).min(chunk.bytes.len());
            return Cow::Borrowed(&chunk.bytes[start..end]);
        }
        let end = position + length;
        let mut bytes = Vec::new();
        let pieces = self.pieces.iter().map(|piece| (piece.position, &piece.bytes[..]));
        for (start, part) in pieces.chain(chunk.map(|chunk| (chunk.position, chunk.bytes))) {
            let from = position.max(start);
            let until = end.min(start + part.len() as u64);
            // Bytes before a gap are parsed without those after it.
            if from < until && from == position + bytes.len() as u64 {
                bytes.extend_from_slice(&part[(from - start) as usize..(until - start) as usize]);
            }
        }
        Cow::Owned(bytes)
    }

    fn remember(&mut self, chunk: &StreamChunk<'_>, from: u64, packets: &mut Packets) {
        let skipped = from.saturating_sub(chunk.position);
        let start = usize::try_from(skipped).unwrap_or(usize::MAX).min(chunk.bytes.len());
        let bytes = &chunk.bytes[start..chunk.bytes.len().min(start.saturating_add(MAX_HEAD))];
        if !bytes.is_empty() {
            packets.hold(chunk.ordinal);
            self.pieces.push_back(UnparsedChunk {
                position: chunk.position + start as u64,
                bytes: bytes.to_vec(),
                ordinal: chunk.ordinal,
                offset: chunk.offset + start as u64,
            });
        }
    }
}

impl StreamSink for Noting {
    type Flow = SlimFlow;

    fn opened(&mut self, view: &FlowView) -> SlimFlow {
        let certain = [view.source, view.destination].iter().any(|end| SMB_PORTS.contains(&end.port()));
        let lane = |()| SlimDirection {
            framer: Framer::new(view.midstream, certain).marking(),
            pieces: VecDeque::new(),
            heard: false,
            kept_until: 0,
        };
        SlimFlow { lanes: [(); 2].map(lane), is_smb: false, keys: self.keys.is_some().then(Box::default) }
    }

    fn data(&mut self, flow: &mut SlimFlow, view: &FlowView, direction: FlowDirection, chunk: &StreamChunk<'_>) {
        let lane = &mut flow.lanes[direction.index()];
        if !view.begins[direction.index()] {
            lane.framer.may_miss_the_beginning(chunk.position);
        }
        let mut reader = ContentReader::new(true, flow.keys.as_deref_mut(), self.keys.as_deref_mut(), direction);
        lane.framer.data(chunk, &mut reader, &mut self.frames);
        self.note(lane, Some(chunk));
        if !std::mem::replace(&mut lane.heard, true) && FirstBytes::parse(chunk.bytes, chunk.length).is_some() {
            // Preserve only the first bytes, as many as identify the protocol.
            let tells = |length: &usize| FirstBytes::parse(&chunk.bytes[..*length], chunk.length).is_some();
            let length = (0..=chunk.bytes.len()).find(tells).unwrap_or_default();
            self.keep(lane, Some(chunk), chunk.position, &chunk.bytes[..length]);
        }
        let undecided = lane.framer.undecided_from();
        self.let_go(lane, undecided.unwrap_or(u64::MAX));
        if let Some(from) = undecided {
            lane.remember(chunk, from, &mut self.packets);
        }
        self.look_at_frames(flow);
    }

    fn gap(&mut self, flow: &mut SlimFlow, _: &FlowView, direction: FlowDirection, gap: &StreamGap) {
        let lane = &mut flow.lanes[direction.index()];
        let mut reader = ContentReader::new(true, flow.keys.as_deref_mut(), self.keys.as_deref_mut(), direction);
        lane.framer.gap(gap, &mut reader, &mut self.frames);
        self.note(lane, None);
        self.let_go(lane, lane.framer.undecided_from().unwrap_or(u64::MAX));
        self.look_at_frames(flow);
    }

    fn retransmitted(&mut self, _: &mut SlimFlow, _: &FlowView, _: FlowDirection, _: &Retransmission) {}

    fn begins_connection(&self, bytes: &[u8]) -> bool {
        begins_connection(bytes)
    }

    fn footprint(&self, flow: &SlimFlow) -> usize {
        let of_lane = |lane: &SlimDirection| {
            let pieces = lane.pieces.iter().map(|piece| size_of::<UnparsedChunk>() + piece.bytes.capacity());
            lane.framer.footprint() + pieces.sum::<usize>()
        };
        flow.lanes.iter().map(of_lane).sum::<usize>() + flow.keys.as_ref().map_or(0, |keys| keys.footprint())
    }

    fn closed(&mut self, mut flow: SlimFlow, view: &FlowView, _: FlowEnd) {
        for (lane, direction) in flow.lanes.iter_mut().zip(FlowDirection::BOTH) {
            let mut reader = ContentReader::new(true, flow.keys.as_deref_mut(), self.keys.as_deref_mut(), direction);
            lane.framer.finish(&mut reader, &mut self.frames);
            self.note(lane, None);
            self.let_go(lane, u64::MAX);
        }
        self.frames.clear();
        self.packets.caught_up((view.source, view.destination));
    }
}
