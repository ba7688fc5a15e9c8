//! A lane delivers packets with ascending timestamps: a source that is in order, or one behind a reorder window.

use super::capture::OpenCapture;
use super::source::{Head, MemorySource, PacketPoll, PacketSource};
use super::survey::{WINDOW_BYTES, WINDOW_PACKETS};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

/// How long a packet of a live capture may wait for older ones when nothing else arrives.
const LIVE_HOLD: Duration = Duration::from_millis(100);
/// Packet buffers kept for reuse.
const SPARE_BUFFERS: usize = 64;

/// A packet in a reorder window. Its bytes are copied only where the source can't return to them.
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

/// Holds packets until enough later ones have been seen.
#[derive(Default)]
pub(super) struct ReorderWindow {
    held: BinaryHeap<Reverse<BufferedPacket>>,
    bytes: usize,
    ended: bool,
    /// When a live source was last found without anything new, or began to fill the window.
    waiting_since: Option<Instant>,
    /// The source has fallen silent: what is held goes out.
    draining: bool,
    live: bool,
    current: Vec<u8>,
    spare: Vec<Vec<u8>>,
}

impl ReorderWindow {
    /// A window over a source; a live one lets go of its packets when nothing arrives for a while.
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

    /// How long to wait for the source: without end while nothing is held.
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

/// Packets of one capture in time order.
pub(super) struct CaptureLane {
    pub(super) capture: usize,
    source: PacketSource,
    window: Option<Box<ReorderWindow>>,
    /// The packet that is delivered next, or was delivered last.
    head: Option<Head>,
    /// Whether `head` is still to be delivered.
    pub(super) loaded: bool,
}

impl CaptureLane {
    pub(super) fn new(capture: usize, source: PacketSource, window: Option<ReorderWindow>) -> CaptureLane {
        CaptureLane { capture, source, window: window.map(Box::new), head: None, loaded: false }
    }

    /// Loads the next packet; none at the end.
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

    /// The stretch that it goes straight through, when the packet at its front has been delivered.
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

    /// The packet that was taken from the stretch last is still to be delivered.
    pub(super) fn put_back(&mut self, head: Head) {
        self.head = Some(head);
        self.loaded = true;
    }

    /// The packet at the front.
    #[inline]
    pub(super) fn head(&self) -> Option<Head> {
        self.head
    }

    /// Its captured bytes.
    #[inline]
    pub(super) fn data<'l>(&'l self, capture: &'l OpenCapture, head: &Head) -> &'l [u8] {
        match (&self.window, &self.source) {
            (Some(window), PacketSource::Stream(_)) => &window.current,
            _ => self.source.data(capture, head),
        }
    }
}
