//! Several captures read as one: packets of all inputs in time order.

use super::capture::{
    Backing, CaptureBudget, CaptureSetState, CaptureTrust, OpenCapture, RELEASED_BYTES, WINDOW_LEAST,
};
use super::lane::{CaptureLane, Head, MemorySource, PacketPoll, PacketSource, ReorderWindow, StreamSource};
use super::survey::ReorderStrategy;
use super::{CaptureError, CaptureInput};
use crate::segment::Packet;
use smbscope_model::{CaptureId, CaptureInfo, ClockStep, PacketRef, Quality, Stamp, Timestamp};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Read;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

/// Merge order of packets: time, capture, position in the file.
type PacketMergeKey = (i64, usize, u64);

pub struct CaptureSet {
    captures: Vec<OpenCapture>,
    infos: Vec<CaptureInfo>,
    /// Lanes of all captures; `None` once a lane has delivered its last packet.
    lanes: Vec<Option<CaptureLane>>,
    /// Number of open lanes per capture: its bytes are released after the last.
    open_lanes: Vec<usize>,
    /// All lanes but the current one, by their next packet (by the first one if they have not started).
    waiting: BinaryHeap<Reverse<(PacketMergeKey, usize)>>,
    current: Option<usize>,
    quality: Quality,
    last_time: i64,
    resident: usize,
    trust: CaptureTrust,
    out_of_order: bool,
    stop: Arc<AtomicBool>,
    first: Arc<OnceLock<Timestamp>>,
}

impl CaptureSet {
    pub fn open(inputs: &[CaptureInput]) -> Result<CaptureSet, CaptureError> {
        CaptureSet::open_within(inputs, CaptureBudget::default(), CaptureTrust::Nothing)
    }

    /// Opens inputs without a survey and expects time order. If [`CaptureSet::is_out_of_order`] then returns true,
    /// everything read must be discarded, so the inputs must be readable again ([`CaptureInput::can_be_read_again`]).
    pub fn open_in_order(inputs: &[CaptureInput]) -> Result<CaptureSet, CaptureError> {
        CaptureSet::open_within(inputs, CaptureBudget::default(), CaptureTrust::Order)
    }

    /// `memory` limits the size of all decompressors' windows in bytes; what ordinary files need is always allowed.
    pub fn open_with_memory(
        inputs: &[CaptureInput],
        in_order: bool,
        memory: usize,
    ) -> Result<CaptureSet, CaptureError> {
        let window = (memory as u64 / inputs.len().max(1) as u64).max(WINDOW_LEAST);
        let trust = if in_order { CaptureTrust::Order } else { CaptureTrust::Nothing };
        CaptureSet::open_within(inputs, CaptureBudget { window, ..CaptureBudget::default() }, trust)
    }

    pub fn from_reader(name: &str, source: Box<dyn Read + Send>) -> Result<CaptureSet, CaptureError> {
        let shared = CaptureSetState::new(CaptureBudget::default(), CaptureTrust::Nothing);
        let capture = OpenCapture::open_live(name.to_owned(), source, &shared)?;
        Ok(CaptureSet::from_captures(vec![capture], CaptureTrust::Nothing, shared))
    }

    pub(super) fn open_within(
        inputs: &[CaptureInput],
        limits: CaptureBudget,
        trust: CaptureTrust,
    ) -> Result<CaptureSet, CaptureError> {
        if inputs.len() > usize::from(u16::MAX) {
            return Err(CaptureError::TooManyInputs { count: inputs.len() });
        }
        let mut shared = CaptureSetState::new(limits, trust);
        let mut captures = Vec::new();
        for input in inputs {
            captures.push(OpenCapture::open(input, &mut shared)?);
        }
        Ok(CaptureSet::from_captures(captures, trust, shared))
    }

    fn from_captures(mut captures: Vec<OpenCapture>, trust: CaptureTrust, shared: CaptureSetState) -> CaptureSet {
        // A rotated set may be given in any order. Inputs without a known first timestamp go last.
        captures.sort_by_key(|capture: &OpenCapture| (capture.survey.first.is_none(), capture.survey.first));
        let mut set = CaptureSet {
            infos: captures.iter().map(OpenCapture::info).collect(),
            open_lanes: vec![0; captures.len()],
            captures,
            lanes: Vec::new(),
            waiting: BinaryHeap::new(),
            current: None,
            quality: Quality::default(),
            last_time: i64::MIN,
            resident: 0,
            trust,
            out_of_order: false,
            stop: shared.stop,
            first: Arc::default(),
        };
        for index in 0..set.captures.len() {
            if !set.captures[index].surveys_while_reading {
                set.count(index);
            }
            set.add_lanes(index);
        }
        set
    }

    /// Returns the next packet in time order. Ties are broken by capture, then by position in the file.
    #[inline]
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, CaptureError> {
        self.advance();
        Ok(self.current_packet())
    }

    #[inline]
    pub fn advance(&mut self) -> bool {
        loop {
            let Some(index) = self.current.take().or_else(|| self.waiting.pop().map(|Reverse((_, index))| index))
            else {
                return false;
            };
            let Some(head) = self.load(index) else { continue };
            let Some(lane) = &mut self.lanes[index] else { continue };
            if let Some(Reverse((first_waiting, _))) = self.waiting.peek() {
                let key = (head.time, lane.capture, head.number);
                if *first_waiting < key {
                    self.waiting.push(Reverse((key, index)));
                    continue;
                }
            }
            lane.loaded = false;
            self.current = Some(index);
            self.deliver(&head, index);
            return true;
        }
    }

    /// Fast path: delivers up to `limit` packets and returns their number. It applies while an in-memory file is read
    /// front to back and no other input has an earlier packet. If it returns 0, continue with [`CaptureSet::advance`].
    pub fn advance_straight(&mut self, limit: usize, mut take: impl FnMut(&Packet<'_>, &Arc<Backing>)) -> usize {
        let Some(index) = self.current else { return 0 };
        let others_begin = self.waiting.peek().map_or(i64::MAX, |Reverse(((time, ..), _))| *time);
        let Some(lane) = &mut self.lanes[index] else { return 0 };
        let id = lane.capture;
        let Some(backing) = self.captures[id].backing().map(Arc::clone) else { return 0 };
        let Some(stretch) = lane.straight() else { return 0 };
        let bytes: &[u8] = &backing;
        let capture = CaptureId(id as u16);
        let (interfaces, mut survey) = self.captures[id].tables();
        let (mut taken, mut length, mut last_time) = (0, 0, self.last_time);
        let mut not_yet = None;
        while taken < limit {
            let PacketPoll::Packet(head) = stretch.next(bytes, interfaces, survey.as_deref_mut()) else { break };
            if head.time >= others_begin {
                not_yet = Some(head);
                break;
            }
            if head.time < last_time {
                self.quality.packets_out_of_time_order += 1;
                self.out_of_order |= self.trust == CaptureTrust::Order;
            } else {
                last_time = head.time;
            }
            length += head.record_length;
            taken += 1;
            take(
                &Packet {
                    stamp: Stamp { time: Timestamp(head.time), packet: PacketRef::new(capture, head.number) },
                    link_type: head.link_type,
                    data: bytes.get(head.data_start..head.data_start + head.data_length).unwrap_or_default(),
                    wire_length: head.wire_length,
                    process: if head.process == 0 { None } else { interfaces.processes.get(head.process) },
                },
                &backing,
            );
        }
        if let Some(head) = not_yet {
            lane.put_back(head);
        }
        self.last_time = last_time;
        self.delivered(id, length);
        taken
    }

    /// Returns the backward clock steps. Later timestamps are shifted forward so that each step takes no time.
    pub fn clock_steps(&self) -> Vec<ClockStep> {
        let mut steps = Vec::new();
        for (index, capture) in self.captures.iter().enumerate() {
            let stamp = |(number, time): (u64, i64)| Stamp {
                time: Timestamp(time),
                packet: PacketRef::new(CaptureId(index as u16), number),
            };
            let of_capture = capture.clock_steps.iter();
            steps.extend(of_capture.map(|step| ClockStep { before: stamp(step.before), after: stamp(step.after) }));
        }
        steps
    }

    pub fn is_out_of_order(&self) -> bool {
        self.out_of_order
    }

    /// Fails if another process truncated a file while it was read: zeros took the place of bytes after the new end.
    pub fn refuse_cut_short(&self) -> Result<(), CaptureError> {
        match self.captures.iter().find(|capture| capture.was_cut_short()) {
            Some(capture) => Err(CaptureError::CutShort { name: capture.name.clone() }),
            None => Ok(()),
        }
    }

    /// Returns the inputs in the order of their first packets. Final once `next_packet` has returned `None`.
    pub fn captures(&self) -> &[CaptureInfo] {
        &self.infos
    }

    /// Bytes read, and the total if known; before decompression.
    pub fn progress(&self) -> (u64, Option<u64>) {
        let done = self.captures.iter().map(OpenCapture::done_bytes).sum();
        (done, self.captures.iter().map(OpenCapture::total_bytes).sum())
    }

    /// Final once `next_packet` has returned `None`.
    pub fn quality(&self) -> &Quality {
        &self.quality
    }

    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    pub fn first_packet(&self) -> Arc<OnceLock<Timestamp>> {
        Arc::clone(&self.first)
    }

    fn add_lanes(&mut self, index: usize) {
        let capture = &mut self.captures[index];
        let mut lanes = Vec::new();
        let window = matches!(capture.plan, ReorderStrategy::Window | ReorderStrategy::BestEffort)
            .then(|| ReorderWindow::new(capture.live));
        if capture.is_in_memory() {
            let sides = capture.sides.clone();
            let runs = std::mem::take(&mut capture.survey.runs);
            let ends = runs.iter().skip(1).map(|run| run.number).chain([u64::MAX]);
            let stretches = runs
                .iter()
                .zip(ends)
                .map(|(run, end)| (run, PacketSource::Bytes(MemorySource::new(run, end, sides.clone()))));
            let mut window = window;
            lanes.extend(stretches.map(|(run, source)| {
                let first = if window.is_some() { capture.survey.first.unwrap_or(run.time) } else { run.time };
                let first = first.saturating_add(run.shift);
                ((first, index, run.number), CaptureLane::new(index, source, window.take()))
            }));
        } else {
            let (format, live) = (capture.format, capture.live);
            let (surveying, number) = (capture.surveys_while_reading, capture.survey.numbered);
            let source = StreamSource { stream: None, format, number, delivered: 0, surveying };
            // A live input has no survey, so its first packet is requested before any other is delivered.
            let first = if live { i64::MIN } else { capture.survey.first.unwrap_or(i64::MIN) };
            lanes.push(((first, index, 0), CaptureLane::new(index, PacketSource::Stream(Box::new(source)), window)));
        }
        if lanes.is_empty() {
            capture.close();
        }
        self.open_lanes[index] = lanes.len();
        for (key, lane) in lanes {
            self.waiting.push(Reverse((key, self.lanes.len())));
            self.lanes.push(Some(lane));
        }
    }

    #[inline]
    fn load(&mut self, index: usize) -> Option<Head> {
        let lane = self.lanes[index].as_mut()?;
        if lane.loaded {
            return lane.head();
        }
        let capture_index = lane.capture;
        let head = lane.load(&mut self.captures[capture_index]);
        if head.is_none() {
            self.finish_lane(index, capture_index);
        }
        head
    }

    fn finish_lane(&mut self, index: usize, capture_index: usize) {
        self.lanes[index] = None;
        self.open_lanes[capture_index] -= 1;
        let capture = &mut self.captures[capture_index];
        if self.open_lanes[capture_index] == 0 {
            capture.close();
            self.infos[capture_index] = capture.info();
            if capture.surveys_while_reading {
                self.count(capture_index);
            }
        }
    }

    fn count(&mut self, index: usize) {
        let OpenCapture { survey, live, .. } = &self.captures[index];
        // Packets too late to be reordered have their own counter.
        let late = if *live { self.quality.packets_out_of_time_order } else { 0 };
        self.quality.packets_reordered_by_time += survey.descending.saturating_sub(late);
        self.quality.truncated_captures += u64::from(survey.damage.is_some());
        self.quality.unreadable_records += survey.unreadable;
    }

    #[inline]
    fn deliver(&mut self, head: &Head, index: usize) {
        self.first.get_or_init(|| Timestamp(head.time));
        if head.time < self.last_time {
            self.quality.packets_out_of_time_order += 1;
            self.out_of_order |= self.trust == CaptureTrust::Order;
        } else {
            self.last_time = head.time;
        }
        if let Some(lane) = &self.lanes[index] {
            self.delivered(lane.capture, head.record_length);
        }
    }

    #[inline]
    fn delivered(&mut self, capture: usize, length: usize) {
        self.captures[capture].delivered_bytes += length as u64;
        self.resident += length;
        if self.resident >= RELEASED_BYTES {
            self.resident = 0;
            self.captures.iter().for_each(OpenCapture::release_pages);
        }
    }

    #[inline]
    pub fn current_packet(&self) -> Option<Packet<'_>> {
        let lane = self.lanes.get(self.current?)?.as_ref()?;
        let head = lane.head()?;
        // `open` ensures that the number of captures fits.
        let capture = CaptureId(lane.capture as u16);
        Some(Packet {
            stamp: Stamp { time: Timestamp(head.time), packet: PacketRef::new(capture, head.number) },
            link_type: head.link_type,
            data: lane.data(&self.captures[lane.capture], &head),
            wire_length: head.wire_length,
            process: self.captures[lane.capture].interfaces.processes.get(head.process),
        })
    }

    #[inline]
    pub fn current_backing(&self) -> Option<&Arc<Backing>> {
        let lane = self.lanes.get(self.current?)?.as_ref()?;
        self.captures[lane.capture].backing()
    }
}
