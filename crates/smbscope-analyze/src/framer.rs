//! Splits the bytes of one direction into frames (NetBIOS session service, direct TCP), and recovers after gaps.
//!
//! Only the first bytes of a frame are parsed; they are copied only if a frame's header spans several segments.
//! [`crate::resync`] finds the next frame when the framing is lost. Start reading at [`Framer::data`].

use crate::content::{ContentReader, FrameContent, gather, last_reading};
use crate::frame::{Begin, Frame, Losses, OpenFrame, latest_resent, least, timely_acknowledgment};
use crate::resync::{self, Before, Misnamed, ResyncConfidence};
use crate::unseen::HiddenFrames;
use smbscope_capture::tcp::{StreamChunk, StreamGap};
use smbscope_model::{PacketRef, Quality, STANDSTILL_LEAST, Timestamp};
use smbscope_wire::nbss::{FrameHeader, FrameType, HEADER_LENGTH};

const SEARCHED_SEGMENTS: u32 = 64;
/// Bytes of a frame without SMB header. It is 17 bits of NetBIOS length, more than raw commands can carry.
const MAX_RAW: u32 = 0x1_ffff;

#[derive(Debug, Clone)]
enum FramerState {
    Boundary { header: [u8; HEADER_LENGTH], have: usize, begin: Option<Begin> },
    Inside(OpenFrame),
    Hunting,
    Ignoring,
}

#[derive(Debug, Clone, Copy, Default)]
struct FramerCounts {
    keep_alives: u64,
    session_packets: u64,
    framing_lost: u64,
    framing_found: u64,
    bytes_skipped: u64,
    unknown_frames: u64,
    framing_cut: u64,
}

/// A decision of the framer about bytes of its stream, which a slim capture has to preserve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) position: u64,
    pub(crate) length: u64,
    pub(crate) decided: Decided,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decided {
    Header,
    /// Part of the payload of a frame of this length, with the message as [`ContentReader::decrypted`] returns it.
    Content {
        length: u32,
        decrypted: Option<Vec<u8>>,
    },
    NoFrame,
    Presence,
}

impl Mark {
    fn content(position: u64, read: &[u8], length: u32, decrypted: Option<&[u8]>) -> Mark {
        let decided = Decided::Content { length, decrypted: decrypted.map(<[u8]>::to_vec) };
        Mark { position, length: read.len() as u64, decided }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Framer {
    state: FramerState,
    head: Vec<u8>,
    synchronised: bool,
    searched: u32,
    certain: bool,
    speaks_smb2: bool,
    session: Option<u64>,
    trust: ResyncConfidence,
    pub(crate) message_packets: u64,
    last_message_packet: Option<PacketRef>,
    started: bool,
    counts: FramerCounts,
    pub(crate) losses: Losses,
    pub(crate) hidden: HiddenFrames,
    unread_since: Option<u64>,
    /// The last searched bytes with their packets, because a sender may write headers in segments of their own.
    tail: Vec<(Before, Begin)>,
    /// Decisions since the last [`Framer::take_marks`]. `None` if not recorded.
    marks: Option<Vec<Mark>>,
}

impl Framer {
    pub(crate) fn new(midstream: bool, certain: bool) -> Framer {
        let state = if midstream { FramerState::Hunting } else { BOUNDARY };
        Framer {
            state,
            head: Vec::new(),
            synchronised: false,
            searched: 0,
            certain,
            speaks_smb2: false,
            session: None,
            trust: ResyncConfidence::Sure,
            message_packets: 0,
            last_message_packet: None,
            started: false,
            counts: FramerCounts::default(),
            losses: Losses::default(),
            hidden: HiddenFrames::default(),
            unread_since: None,
            tail: Vec::new(),
            marks: None,
        }
    }

    pub(crate) fn marking(self) -> Framer {
        Framer { marks: Some(Vec::new()), ..self }
    }

    pub(crate) fn take_marks(&mut self) -> Vec<Mark> {
        self.marks.as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(crate) fn undecided_from(&self) -> Option<u64> {
        match &self.state {
            FramerState::Boundary { begin, .. } => begin.map(|begin| begin.position),
            FramerState::Inside(frame) if frame.content.is_none() => Some(frame.begin.position + HEADER_LENGTH as u64),
            FramerState::Hunting => self.tail.first().map(|(_, begin)| begin.position),
            _ => None,
        }
    }

    #[inline]
    fn mark(&mut self, position: u64, length: usize, decided: Decided) {
        if let Some(marks) = &mut self.marks {
            marks.push(Mark { position, length: length as u64, decided });
        }
    }

    pub(crate) fn count(&self, quality: &mut Quality) {
        let FramerCounts {
            keep_alives,
            session_packets,
            framing_lost,
            framing_found,
            bytes_skipped,
            unknown_frames,
            framing_cut,
        } = self.counts;
        quality.netbios_keep_alives += keep_alives;
        quality.netbios_session_packets += session_packets;
        quality.framing_lost += framing_lost;
        quality.framing_found += framing_found;
        quality.bytes_skipped += bytes_skipped;
        quality.unknown_frames += unknown_frames;
        quality.framing_cut += framing_cut;
    }

    #[inline]
    pub(crate) fn footprint(&self) -> usize {
        self.head.capacity() + self.tail.capacity() * size_of::<(Before, Begin)>()
    }

    pub(crate) fn make_certain(&mut self) {
        self.certain = true;
        if matches!(self.state, FramerState::Ignoring) {
            self.state = FramerState::Hunting;
        }
    }

    /// The stream continues at `position`, and its SYN was not captured, so messages may be hidden before.
    pub(crate) fn may_miss_the_beginning(&mut self, position: u64) {
        if !std::mem::replace(&mut self.started, true) {
            self.losses.begin(0);
            if !matches!(self.state, FramerState::Hunting) {
                self.losses.end(position);
            }
        }
    }

    pub(crate) fn open_frame_holds(&self, position: u64) -> bool {
        match &self.state {
            FramerState::Inside(frame) => (frame.begin.position..frame.end).contains(&position),
            _ => false,
        }
    }

    pub(crate) fn open_since(&self) -> Option<Timestamp> {
        match &self.state {
            FramerState::Inside(frame) => Some(frame.begin.stamp.time),
            FramerState::Boundary { begin, .. } => begin.as_ref().map(|begin| begin.stamp.time),
            _ => None,
        }
    }

    pub(crate) fn data(&mut self, chunk: &StreamChunk<'_>, reader: &mut ContentReader<'_>, frames: &mut Vec<Frame>) {
        self.losses.reach(chunk.end());
        let mut offset = 0u64;
        while offset < chunk.length {
            let captured = usize::try_from(offset).ok().and_then(|at| chunk.bytes.get(at..)).unwrap_or_default();
            offset += match &mut self.state {
                FramerState::Ignoring => return,
                FramerState::Hunting => match self.hunt(chunk, offset, captured) {
                    Some(skipped) => skipped,
                    None => return,
                },
                FramerState::Boundary { .. } => self.boundary(chunk, offset, captured, frames),
                FramerState::Inside(_) => self.inside(chunk, (offset, captured), reader, frames),
            };
        }
    }

    pub(crate) fn gap(&mut self, gap: &StreamGap, reader: &mut ContentReader<'_>, frames: &mut Vec<Frame>) {
        self.losses.reach(gap.end());
        self.tail.clear();
        match &mut self.state {
            FramerState::Hunting | FramerState::Ignoring => {}
            FramerState::Boundary { begin, .. } => {
                let start = begin.map_or(gap.position, |begin| begin.position);
                self.lose(start);
            }
            FramerState::Inside(_) => {
                self.read_what_is_there(reader);
                let FramerState::Inside(frame) = &mut self.state else { return };
                frame.interrupted = true;
                frame.missed_until = frame.missed_until.max(gap.missed_until);
                if gap.end() < frame.end {
                    return;
                }
                let end = frame.end;
                self.complete(false, frames);
                if gap.end() > end {
                    self.lose(end);
                }
            }
        }
    }

    pub(crate) fn finish(&mut self, reader: &mut ContentReader<'_>, frames: &mut Vec<Frame>) {
        if matches!(self.state, FramerState::Inside(_)) {
            self.read_what_is_there(reader);
            self.complete(false, frames);
        }
        if let Some(start) = self.unread_since.take() {
            self.hidden.end(self.losses.reached().saturating_sub(start));
        }
    }

    fn read_what_is_there(&mut self, reader: &mut ContentReader<'_>) {
        let FramerState::Inside(frame) = &mut self.state else { return };
        if frame.content.is_some() {
            return;
        }
        let length = frame.header.length;
        let position = frame.begin.position + HEADER_LENGTH as u64;
        let content = last_reading(&self.head, length, reader);
        if let Some(marks) = &mut self.marks {
            marks.push(Mark::content(position, &self.head, length, reader.decrypted(&self.head, &content)));
        }
        frame.content = Some(content);
    }

    fn lose(&mut self, position: u64) {
        self.state = FramerState::Hunting;
        self.tail.clear();
        self.losses.begin(position);
        self.unread_since.get_or_insert(position);
        if self.synchronised {
            self.counts.framing_lost += 1;
        }
    }

    fn hunt(&mut self, chunk: &StreamChunk<'_>, offset: u64, captured: &[u8]) -> Option<u64> {
        let at_segment_start = offset == 0 && chunk.at_segment_start;
        let left = chunk.length - offset;
        if self.hunt_behind_tail(chunk, offset, captured).is_some() {
            return Some(0);
        }
        match resync::find(captured, left, at_segment_start, self.session) {
            Some(found) => {
                if !self.synchronised && (self.searched > 0 || found.offset > 0) {
                    self.hidden.begins_unread = true;
                }
                self.counts.bytes_skipped += found.offset;
                self.found(chunk.position + offset + found.offset, found.trust);
                self.tail.clear();
                self.state = BOUNDARY;
                if self.marks.is_some() {
                    self.mark_confirmation(chunk.position + offset + found.offset, captured, found.offset);
                }
                Some(found.offset)
            }
            None => {
                self.searched = self.searched.saturating_add(1);
                if self.synchronised {
                    self.counts.bytes_skipped += left;
                } else if !self.certain && self.searched > SEARCHED_SEGMENTS {
                    self.state = FramerState::Ignoring;
                }
                self.keep_tail(chunk, offset, captured);
                None
            }
        }
    }

    fn found(&mut self, position: u64, trust: ResyncConfidence) {
        if self.synchronised {
            self.counts.framing_found += 1;
        }
        self.losses.end(position);
        if let Some(start) = self.unread_since.take() {
            self.hidden.stretch(position.saturating_sub(start));
        }
        self.trust = trust;
    }

    fn hunt_behind_tail(&mut self, chunk: &StreamChunk<'_>, offset: u64, captured: &[u8]) -> Option<()> {
        let before: Vec<Before> = self.tail.iter().map(|(before, _)| *before).collect();
        let left = chunk.length - offset;
        let straddling = resync::find_straddling(&before, captured, left, chunk.at_segment_start, self.session);
        let (have, trust) = straddling?;
        let tail = self.tail.split_off(before.len() - have);
        let mut begin = tail.first()?.1;
        let mut header = [0; HEADER_LENGTH];
        for (to, (before, of)) in header.iter_mut().zip(tail) {
            *to = before.byte;
            begin.packets += u32::from(of.packet != begin.packet);
            begin.packet = of.packet;
        }
        self.tail.clear();
        self.found(begin.position, trust);
        self.counts.bytes_skipped = self.counts.bytes_skipped.saturating_sub(have as u64);
        self.state = FramerState::Boundary { header, have, begin: Some(begin) };
        Some(())
    }

    fn keep_tail(&mut self, chunk: &StreamChunk<'_>, offset: u64, captured: &[u8]) {
        if captured.len() as u64 != chunk.length - offset {
            self.tail.clear();
            return;
        }
        let skipped = captured.len().saturating_sub(HEADER_LENGTH);
        for (at, byte) in captured.iter().enumerate().skip(skipped) {
            let starts_segment = at == 0 && offset == 0 && chunk.at_segment_start;
            let before = Before { byte: *byte, starts_segment };
            self.tail.push((before, Begin::new(chunk, chunk.position + offset + at as u64)));
        }
        self.tail.drain(..self.tail.len().saturating_sub(HEADER_LENGTH));
    }

    #[cold]
    fn mark_confirmation(&mut self, position: u64, captured: &[u8], skipped: u64) {
        let bytes = usize::try_from(skipped).ok().and_then(|at| captured.get(at..)).unwrap_or_default();
        let header = bytes.first_chunk().and_then(|header| FrameHeader::parse(*header));
        let length = HEADER_LENGTH + header.map_or(0, |header| header.length as usize);
        let behind = bytes.len().saturating_sub(length).min(resync::CONFIRMING);
        self.mark(position + length as u64, behind, Decided::Presence);
    }

    fn boundary(&mut self, chunk: &StreamChunk<'_>, offset: u64, captured: &[u8], frames: &mut Vec<Frame>) -> u64 {
        let FramerState::Boundary { header, have, begin } = &mut self.state else { return 0 };
        if captured.is_empty() {
            self.counts.framing_cut += u64::from(self.synchronised);
            self.lose(chunk.position + offset);
            return chunk.length - offset;
        }
        let begin = begin.get_or_insert_with(|| Begin::new(chunk, chunk.position + offset));
        begin.resent = latest_resent(begin.resent, chunk);
        begin.acknowledged = least(begin.acknowledged, chunk.acknowledged);
        if begin.packet != chunk.stamp.packet {
            begin.packet = chunk.stamp.packet;
            begin.packets += 1;
        }
        let taken = captured.len().min(HEADER_LENGTH - *have);
        header[*have..*have + taken].copy_from_slice(&captured[..taken]);
        *have += taken;
        if *have < HEADER_LENGTH {
            self.mark(chunk.position + offset, taken, Decided::Presence);
            return taken as u64;
        }
        let mut begin = *begin;
        let payload = captured.get(taken..).unwrap_or_default();
        let parsed = FrameHeader::parse(*header).filter(|header| {
            let message = header.frame_type == FrameType::Message;
            let known = payload.get(..4).is_none_or(resync::is_protocol_id);
            let synchronised = self.synchronised && self.trust == ResyncConfidence::Sure;
            let may_be_raw = synchronised && !self.speaks_smb2 && header.length <= MAX_RAW;
            !message || known || may_be_raw
        });
        let header = match parsed {
            Some(header) => header,
            None => match resync::misnamed(*header, payload, chunk.length - offset - taken as u64) {
                Some(Misnamed::Message(header)) if self.synchronised => {
                    if begin.packets > 1 {
                        // A window probe, with a byte of its own that the receiver dropped (RFC 9293 §3.8.6.1).
                        begin = Begin { stamp: chunk.first, acknowledged: chunk.acknowledged, packets: 1, ..begin };
                    }
                    header
                }
                Some(Misnamed::Other(length)) if self.synchronised => {
                    let is_message = header[0] == 0;
                    self.skip_unknown(begin.position, payload, length, is_message);
                    return taken as u64 + length;
                }
                _ => {
                    self.mark(begin.position, HEADER_LENGTH, Decided::NoFrame);
                    self.lose(begin.position);
                    return 0;
                }
            },
        };
        self.enter(chunk, header, begin, payload);
        if header.length == 0 {
            self.complete(true, frames);
        }
        taken as u64
    }

    fn skip_unknown(&mut self, position: u64, payload: &[u8], length: u64, is_message: bool) {
        let shown = usize::try_from(length).unwrap_or(usize::MAX).saturating_add(resync::CONFIRMING);
        let behind = position + HEADER_LENGTH as u64;
        self.mark(position, HEADER_LENGTH, Decided::Header);
        self.mark(behind, payload.len().min(shown), Decided::Presence);
        self.counts.unknown_frames += 1;
        if is_message {
            // Whatever its content, the type says that it is a message.
            self.losses.begin(position);
            self.losses.end(behind + length);
        }
        self.state = BOUNDARY;
    }

    fn enter(&mut self, chunk: &StreamChunk<'_>, header: FrameHeader, begin: Begin, payload: &[u8]) {
        self.mark(begin.position, HEADER_LENGTH, Decided::Header);
        // The id was inspected regardless of the frame's length.
        let is_id = payload.get(..4).is_some_and(resync::is_protocol_id);
        let id = if is_id { Decided::Header } else { Decided::Presence };
        self.mark(begin.position + HEADER_LENGTH as u64, payload.len().min(4), id);
        self.head.clear();
        self.state = FramerState::Inside(OpenFrame {
            header,
            end: begin.position + HEADER_LENGTH as u64 + u64::from(header.length),
            last: chunk.stamp,
            resent: begin.resent,
            interrupted: false,
            missed_until: None,
            pause: None,
            packets: begin.packets,
            last_packet: chunk.stamp.packet,
            acknowledged_last: timely_acknowledgment(chunk).max(begin.timely_acknowledgment),
            content: (header.frame_type != FrameType::Message || header.length == 0).then_some(FrameContent::Raw),
            wanted: 4,
            trust: std::mem::replace(&mut self.trust, ResyncConfidence::Sure),
            begin,
        });
    }

    fn inside(
        &mut self,
        chunk: &StreamChunk<'_>,
        (offset, captured): (u64, &[u8]),
        reader: &mut ContentReader<'_>,
        frames: &mut Vec<Frame>,
    ) -> u64 {
        let FramerState::Inside(frame) = &mut self.state else { return 0 };
        let position = chunk.position + offset;
        let taken = (frame.end - position).min(chunk.length - offset);
        if chunk.stamp.packet != frame.last_packet {
            frame.packets += 1;
            frame.last_packet = chunk.stamp.packet;
            if chunk.stamp.time - frame.last.time >= STANDSTILL_LEAST {
                frame.note_pause(chunk);
            }
            frame.interrupted = false;
        }
        frame.last = match frame.resent {
            Some(resent) if resent.time > chunk.stamp.time => resent,
            _ => chunk.stamp,
        };
        frame.resent = latest_resent(frame.resent, chunk);
        frame.begin.acknowledged = least(frame.begin.acknowledged, chunk.acknowledged);
        frame.acknowledged_last = frame.acknowledged_last.max(timely_acknowledgment(chunk));
        if frame.content.is_none() {
            let here = &captured[..captured.len().min(usize::try_from(taken).unwrap_or(usize::MAX))];
            let whole = here.len() as u64 == taken;
            let length = frame.header.length;
            frame.content = gather(&mut self.head, &mut frame.wanted, here, whole, length, reader);
            if let (Some(marks), Some(content)) = (&mut self.marks, &frame.content) {
                let begin = frame.begin.position + HEADER_LENGTH as u64;
                let read = if position == begin { here } else { &self.head };
                marks.push(Mark::content(begin, read, length, reader.decrypted(read, content)));
            }
        }
        if position + taken < frame.end {
            return taken;
        }
        self.read_what_is_there(reader);
        let FramerState::Inside(frame) = &mut self.state else { return taken };
        let rest = usize::try_from(taken).ok().and_then(|taken| captured.get(taken..)).unwrap_or_default();
        let is_sure = frame.trust == ResyncConfidence::Sure;
        let (start, end) = (frame.begin.position, frame.end);
        if rest.len() >= resync::CONFIRMING {
            frame.trust = ResyncConfidence::Sure;
        }
        if !is_sure {
            let confirms = resync::may_follow(rest);
            let decided = if confirms { Decided::Presence } else { Decided::NoFrame };
            self.mark(end, rest.len().min(resync::CONFIRMING), decided);
            if !confirms {
                self.lose(start);
                return taken;
            }
        }
        self.complete(true, frames);
        taken
    }

    fn complete(&mut self, whole: bool, frames: &mut Vec<Frame>) {
        let FramerState::Inside(frame) = std::mem::replace(&mut self.state, BOUNDARY) else { return };
        let content = frame.content.unwrap_or(FrameContent::Raw);
        if matches!(content, FrameContent::Cut | FrameContent::Opaque | FrameContent::Smb2 { cut: true, .. }) {
            self.losses.begin(frame.begin.position);
            self.losses.end(frame.end);
        }
        match content {
            FrameContent::Smb2 { ref members, .. } => {
                self.speaks_smb2 = true;
                let sealed = members.first().filter(|member| member.decrypted);
                self.session =
                    sealed.and_then(|member| member.header.session_id).filter(|id| *id != 0).or(self.session);
            }
            FrameContent::Opaque => self.speaks_smb2 = true,
            FrameContent::Encrypted { session_id, .. } => {
                self.speaks_smb2 = true;
                self.session = session_id.or(self.session);
            }
            FrameContent::Smb1(_) => self.speaks_smb2 = false,
            FrameContent::Raw | FrameContent::Cut => {}
        }
        let is_message = !matches!(content, FrameContent::Raw) && frame.header.frame_type == FrameType::Message;
        let trust = frame.trust;
        let timely = frame.acknowledged_last;
        let frame = Frame {
            frame_type: frame.header.frame_type,
            start: frame.begin.position,
            end: frame.end,
            first: frame.begin.stamp,
            origin: frame.begin.origin,
            last: (whole && frame.missed_until.is_none_or(|until| until <= frame.last.time)).then_some(frame.last),
            resent: frame.resent,
            pause: frame.pause,
            packets: frame.packets,
            acknowledged_first: frame.begin.acknowledged,
            acknowledged_last: timely,
            content,
        };
        if trust == ResyncConfidence::Weak {
            // Don't report it: the other direction has continued, so that matching would be wrong.
            self.losses.begin(frame.start);
            self.losses.end(frame.end);
            self.trust = ResyncConfidence::Aligned;
            self.hidden.stretch(frame.end - frame.start);
            return;
        }
        self.hidden.frame(frame.end - frame.start);
        if frame.content.hides_messages() {
            self.hidden.cut(frame.end - frame.start, matches!(frame.content, FrameContent::Cut));
        }
        self.synchronised |= is_message;
        if is_message && self.last_message_packet != Some(frame.first.packet) {
            self.last_message_packet = Some(frame.first.packet);
            self.message_packets += 1;
        }
        match frame.frame_type {
            FrameType::Message => {}
            FrameType::KeepAlive => self.counts.keep_alives += 1,
            _ => self.counts.session_packets += 1,
        }
        frames.push(frame);
    }
}

const BOUNDARY: FramerState = FramerState::Boundary { header: [0; HEADER_LENGTH], have: 0, begin: None };
