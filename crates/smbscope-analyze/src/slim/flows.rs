//! A flow table sink that records the bytes inspected by the analysis instead of extracting exchanges.

use super::packets::{Packets, PendingPacketQueue};
use super::reduce::{self, NameAnonymizer};
use crate::analyzer::SMB_PORTS;
use crate::content::{FrameContent, MAX_HEAD};
use crate::flow::{begins_connection, foreign_protocol};
use crate::frame::Frame;
use crate::framer::{Decided, Framer, Mark};
use smbscope_capture::tcp::{FlowEnd, FlowView, Retransmission, StreamChunk, StreamGap, StreamSink};
use smbscope_model::FlowDirection;
use std::borrow::Cow;
use std::collections::VecDeque;

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

pub(super) struct SlimFlow {
    lanes: [SlimDirection; 2],
    is_smb: bool,
}

pub(super) struct Noting {
    pub(super) packets: Packets,
    pub(super) names: NameAnonymizer,
    frames: Vec<Frame>,
}

impl Noting {
    pub(super) fn new(window: PendingPacketQueue, names: NameAnonymizer) -> Noting {
        Noting { packets: Packets::new(window), names, frames: Vec::new() }
    }

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
                Decided::Content { length: of_frame } => {
                    let read = lane.bytes(chunk, position, length);
                    let slim = reduce::payload(&read, of_frame, &mut self.names);
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
            framer: Framer::new(view.midstream, certain, true).marking(),
            pieces: VecDeque::new(),
            heard: false,
            kept_until: 0,
        };
        SlimFlow { lanes: [(); 2].map(lane), is_smb: false }
    }

    fn data(&mut self, flow: &mut SlimFlow, view: &FlowView, direction: FlowDirection, chunk: &StreamChunk<'_>) {
        let lane = &mut flow.lanes[direction.index()];
        if !view.begins[direction.index()] {
            lane.framer.may_miss_the_beginning(chunk.position);
        }
        lane.framer.data(chunk, &mut self.frames);
        self.note(lane, Some(chunk));
        if !std::mem::replace(&mut lane.heard, true) && foreign_protocol(chunk.bytes).is_some() {
            // Preserve only the first bytes, as many as identify the protocol.
            let tells = |length: &usize| foreign_protocol(&chunk.bytes[..*length]).is_some();
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
        lane.framer.gap(gap, &mut self.frames);
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
        flow.lanes.iter().map(of_lane).sum()
    }

    fn closed(&mut self, mut flow: SlimFlow, view: &FlowView, _: FlowEnd) {
        for lane in &mut flow.lanes {
            lane.framer.finish(&mut self.frames);
            self.note(lane, None);
            self.let_go(lane, u64::MAX);
        }
        self.frames.clear();
        self.packets.caught_up((view.source, view.destination));
    }
}
