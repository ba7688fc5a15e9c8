//! A lane delivers the packets of a stream or a part of a file in time order, if necessary through a reorder window.

use super::capture::OpenCapture;
use super::clocks::{ClockCorrection, SortedRun};
use super::format::CaptureParser;
use super::pcapng::Interfaces;
use super::stream::{self, ENDS_INSIDE, InputStream, RecordPoll};
use super::survey::{Survey, WINDOW_BYTES, WINDOW_PACKETS};
use super::{ParseStep, SkipReason};
use crate::prefetch::Warmer;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) time: i64,
    pub(super) number: u64,
    pub(super) link_type: u32,
    pub(super) wire_length: u32,
    /// Offset in the file for [`PacketSource::Bytes`], in the window for [`PacketSource::Stream`].
    pub(super) data_start: usize,
    pub(super) data_length: usize,
    pub(super) record_length: usize,
    pub(super) process: u32,
}

pub(super) enum PacketPoll {
    Packet(Head),
    Idle,
    End,
}

pub(super) enum PacketSource {
    Bytes(MemorySource),
    Stream(Box<StreamSource>),
}

pub(super) struct MemorySource {
    position: usize,
    format: CaptureParser,
    next_number: u64,
    shift: i64,
    end_number: u64,
    sides: Option<Arc<ClockCorrection>>,
    warmer: Warmer,
}

impl MemorySource {
    pub(super) fn new(run: &SortedRun, end_number: u64, sides: Option<Arc<ClockCorrection>>) -> MemorySource {
        MemorySource {
            position: usize::try_from(run.position).unwrap_or(usize::MAX),
            format: run.format,
            next_number: run.number,
            shift: run.shift,
            end_number,
            sides,
            warmer: Warmer::default(),
        }
    }
}

pub(super) struct StreamSource {
    pub(super) stream: Option<InputStream>,
    pub(super) format: CaptureParser,
    pub(super) number: u64,
    pub(super) delivered: usize,
    pub(super) surveying: bool,
}

impl PacketSource {
    /// Returns the next packet in file order. Invalidates the bytes of the previous one.
    #[inline]
    pub(super) fn next(&mut self, capture: &mut OpenCapture, patience: Option<Duration>) -> PacketPoll {
        match self {
            PacketSource::Bytes(stretch) => {
                let (bytes, interfaces, survey) = capture.parts();
                stretch.next(bytes, interfaces, survey)
            }
            PacketSource::Stream(source) => source.next(capture, patience),
        }
    }

    #[inline]
    pub(super) fn data<'s>(&'s self, capture: &'s OpenCapture, head: &Head) -> &'s [u8] {
        let bytes = match self {
            PacketSource::Bytes(_) => capture.bytes(),
            PacketSource::Stream(source) => source.stream.as_ref().map(InputStream::window).unwrap_or_default(),
        };
        bytes.get(head.data_start..head.data_start + head.data_length).unwrap_or_default()
    }
}

impl MemorySource {
    #[inline(always)]
    pub(super) fn next(
        &mut self,
        bytes: &[u8],
        interfaces: &mut Interfaces,
        mut survey: Option<&mut Survey>,
    ) -> PacketPoll {
        while self.next_number < self.end_number {
            self.warmer.at(self.position, bytes);
            let window = bytes.get(self.position..).unwrap_or_default();
            match self.format.step(interfaces, window) {
                ParseStep::Packet(mut record, length) => {
                    record.time = record.time.saturating_add(self.shift);
                    if let Some(sides) = &self.sides {
                        sides.correct(&mut record, window);
                    }
                    if let Some(survey) = &mut survey {
                        survey.ordered_packet(record.time);
                    }
                    let head = Head {
                        time: record.time,
                        number: self.next_number,
                        link_type: record.link_type,
                        wire_length: record.wire_length,
                        data_start: self.position + record.data_start,
                        data_length: record.data_length,
                        record_length: length,
                        process: record.process,
                    };
                    self.position += length;
                    self.next_number += 1;
                    return PacketPoll::Packet(head);
                }
                ParseStep::Skip { length, what } => {
                    if let Some(survey) = &mut survey {
                        survey.passed(what);
                        if length > window.len() {
                            survey.damaged(ENDS_INSIDE.to_owned(), self.position as u64);
                        }
                    }
                    self.position = self.position.saturating_add(length);
                    self.next_number += u64::from(what == SkipReason::Numbered);
                }
                ParseStep::More(_) if window.is_empty() => break,
                ParseStep::More(_) => {
                    // If there was an earlier survey, it has reported this already.
                    if let Some(survey) = &mut survey {
                        survey.damaged(ENDS_INSIDE.to_owned(), self.position as u64);
                    }
                    break;
                }
                ParseStep::Stop(reason) => {
                    if let Some(survey) = &mut survey {
                        survey.damaged(reason, self.position as u64);
                    }
                    break;
                }
            }
        }
        PacketPoll::End
    }
}

impl StreamSource {
    fn next(&mut self, capture: &mut OpenCapture, patience: Option<Duration>) -> PacketPoll {
        if self.stream.is_none() {
            // The survey has read this file before: if it can't be opened again, its remaining packets are lost.
            match capture.open_stream() {
                Ok(stream) => self.stream = Some(stream),
                Err(error) => {
                    capture.survey.damaged(format!("it cannot be read again ({error})"), 0);
                    return PacketPoll::End;
                }
            }
        }
        let Some(stream) = &mut self.stream else { return PacketPoll::End };
        stream.consume(std::mem::take(&mut self.delivered));
        loop {
            match stream::next_record(stream, &mut self.format, &mut capture.interfaces, patience) {
                RecordPoll::Packet(record, length) => {
                    if self.surveying {
                        capture.survey.packet(&record, length, stream.offset(), &self.format);
                    }
                    self.number += 1;
                    self.delivered = length;
                    return PacketPoll::Packet(Head {
                        time: record.time,
                        number: self.number,
                        link_type: record.link_type,
                        wire_length: record.wire_length,
                        data_start: record.data_start,
                        data_length: record.data_length,
                        record_length: length,
                        process: record.process,
                    });
                }
                RecordPoll::Passed(what) => {
                    self.number += u64::from(what == SkipReason::Numbered);
                    if self.surveying {
                        capture.survey.passed(what);
                    }
                }
                RecordPoll::Idle => return PacketPoll::Idle,
                RecordPoll::End(reason) => {
                    if self.surveying {
                        capture.survey.length = stream.input_bytes();
                        if let Some((reason, offset)) = reason {
                            capture.survey.damaged(reason, offset);
                        }
                    }
                    return PacketPoll::End;
                }
            }
        }
    }
}

/// Maximum time that a packet of an idle live capture is held for older ones.
const LIVE_HOLD: Duration = Duration::from_millis(100);
const SPARE_BUFFERS: usize = 64;

/// Packet in a reorder window. Its bytes are copied only if the source can't return to them.
struct BufferedPacket {
    head: Head,
    copy: Vec<u8>,
}

impl BufferedPacket {
    fn key(&self) -> (i64, u64) {
        (self.head.time, self.head.number)
    }
}

impl PartialEq for BufferedPacket {
    fn eq(&self, other: &BufferedPacket) -> bool {
        self.key() == other.key()
    }
}

impl Eq for BufferedPacket {}

impl PartialOrd for BufferedPacket {
    fn partial_cmp(&self, other: &BufferedPacket) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BufferedPacket {
    fn cmp(&self, other: &BufferedPacket) -> Ordering {
        self.key().cmp(&other.key())
    }
}

#[derive(Default)]
pub(super) struct ReorderWindow {
    held: BinaryHeap<Reverse<BufferedPacket>>,
    bytes: usize,
    ended: bool,
    /// Time at which a live source was last found idle or began to fill the window.
    waiting_since: Option<Instant>,
    draining: bool,
    live: bool,
    current: Vec<u8>,
    spare: Vec<Vec<u8>>,
}

impl ReorderWindow {
    pub(super) fn new(live: bool) -> ReorderWindow {
        ReorderWindow { live, ..ReorderWindow::default() }
    }

    fn next(&mut self, source: &mut PacketSource, capture: &mut OpenCapture) -> Option<Head> {
        while !self.ended && !self.is_full() && !self.is_draining() {
            match source.next(capture, self.patience()) {
                PacketPoll::Packet(head) => self.hold(head, source, capture),
                PacketPoll::Idle => self.draining = true,
                PacketPoll::End => self.ended = true,
            }
        }
        let Reverse(held) = self.held.pop()?;
        self.bytes -= held.head.record_length;
        if self.held.is_empty() {
            self.draining = false;
            self.waiting_since = None;
        }
        let delivered = std::mem::replace(&mut self.current, held.copy);
        if self.spare.len() < SPARE_BUFFERS {
            self.spare.push(delivered);
        }
        Some(held.head)
    }

    fn is_full(&self) -> bool {
        self.held.len() > WINDOW_PACKETS || self.bytes > WINDOW_BYTES
    }

    fn is_draining(&self) -> bool {
        self.draining && !self.held.is_empty()
    }

    /// Returns the time limit for waiting on the source; `None` (no limit) while nothing is held.
    fn patience(&self) -> Option<Duration> {
        let since = self.waiting_since.filter(|_| self.live && !self.held.is_empty())?;
        Some(LIVE_HOLD.saturating_sub(since.elapsed()))
    }

    fn hold(&mut self, head: Head, source: &PacketSource, capture: &OpenCapture) {
        let mut copy = Vec::new();
        if matches!(source, PacketSource::Stream(_)) {
            copy = self.spare.pop().unwrap_or_default();
            copy.clear();
            copy.extend_from_slice(source.data(capture, &head));
        }
        if self.live && self.held.is_empty() {
            self.waiting_since = Some(Instant::now());
        }
        self.bytes += head.record_length;
        self.held.push(Reverse(BufferedPacket { head, copy }));
    }
}

pub(super) struct CaptureLane {
    pub(super) capture: usize,
    source: PacketSource,
    window: Option<Box<ReorderWindow>>,
    head: Option<Head>,
    pub(super) loaded: bool,
}

impl CaptureLane {
    pub(super) fn new(capture: usize, source: PacketSource, window: Option<ReorderWindow>) -> CaptureLane {
        CaptureLane { capture, source, window: window.map(Box::new), head: None, loaded: false }
    }

    #[inline]
    pub(super) fn load(&mut self, capture: &mut OpenCapture) -> Option<Head> {
        self.head = match &mut self.window {
            None => match self.source.next(capture, None) {
                PacketPoll::Packet(head) => Some(head),
                PacketPoll::Idle | PacketPoll::End => None,
            },
            Some(window) => window.next(&mut self.source, capture),
        };
        self.loaded = self.head.is_some();
        self.head
    }

    /// Returns the source for the fast path, if the lane has no window and its front packet has been delivered.
    #[inline]
    pub(super) fn straight(&mut self) -> Option<&mut MemorySource> {
        match (&self.window, self.loaded, &mut self.source) {
            (None, false, PacketSource::Bytes(stretch)) => {
                self.head = None;
                Some(stretch)
            }
            _ => None,
        }
    }

    pub(super) fn put_back(&mut self, head: Head) {
        self.head = Some(head);
        self.loaded = true;
    }

    #[inline]
    pub(super) fn head(&self) -> Option<Head> {
        self.head
    }

    #[inline]
    pub(super) fn data<'l>(&'l self, capture: &'l OpenCapture, head: &Head) -> &'l [u8] {
        match (&self.window, &self.source) {
            (Some(window), PacketSource::Stream(_)) => &window.current,
            _ => self.source.data(capture, head),
        }
    }
}
