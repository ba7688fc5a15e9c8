//! A lane delivers packets with ascending timestamps: a source that is in order, or one with a reorder window.

use super::capture::OpenCapture;
use super::source::{Head, MemorySource, PacketPoll, PacketSource};
use super::survey::{WINDOW_BYTES, WINDOW_PACKETS};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

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
    /// The source has gone idle, so the held packets are released.
    draining: bool,
    live: bool,
    current: Vec<u8>,
    spare: Vec<Vec<u8>>,
}

impl ReorderWindow {
    /// Creates a window. For a live source, it releases its packets when nothing arrives for a while.
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
    /// The packet to deliver next, or the one just delivered.
    head: Option<Head>,
    /// `head` has not been delivered yet.
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

    /// Puts back a packet taken through [`CaptureLane::straight`] but not delivered.
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
