//! Segments in transit from the reading thread to a thread that follows flows.
//!
//! A batch stores packed headers (passing them between cores costs one transfer per cache line) and the locations of
//! payloads: in the memory-mapped file, or in the batch's own arena if they came from a stream or from IP reassembly.
//! Payloads that start a message are copied to the arena as well: the file's pages may have left the CPU caches by the
//! time they are read. [`SegmentBatch::by_connection`] visits one connection at a time, so that the state of each is
//! loaded into the CPU caches once per batch. Batches are reused, so no allocation happens per packet.

use crate::prefetch::{CACHE_LINE, prefetch};
use crate::reader::Backing;
use crate::segment::{OriginId, TcpFlags, TcpSegment, WindowScale};
use ahash::RandomState;
use smbscope_model::{CaptureId, PacketRef, Stamp, Timestamp};
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

const ARENA: u32 = u32::MAX;
/// Bytes of a mapped payload copied because it may start a message.
const COPIED_MAX: usize = 2048;

/// Prefetch distance, in segments, when a batch is read out of order. The best of the values measured.
const HEADERS_AHEAD: usize = 12;
const PAYLOADS_AHEAD: usize = 4;
/// Cache lines prefetched per payload; most messages are no longer than this.
const PAYLOAD_LINES: usize = 4;

#[derive(Default)]
pub struct SegmentBatch {
    segments: Vec<Packed>,
    connections: BatchConnections,
    base: (u64, u64),
    firsts: Vec<(usize, Stamp)>,
    duplicate_sacks: Vec<(usize, (u32, u32))>,
    arena: Vec<u8>,
    backings: Vec<Arc<Backing>>,
}

#[repr(align(64))]
struct Packed {
    time: i64,
    start: usize,
    /// Offset from the packet number of the batch's first segment; so is `ordinal`.
    number: i32,
    ordinal: i32,
    connection: u32,
    sequence: u32,
    acknowledgment: u32,
    payload_length: u32,
    length: u32,
    timestamp_value: u32,
    backing: u32,
    capture: u16,
    window: u16,
    ip_id: u16,
    flags: u8,
    has: u8,
    hops_left: u8,
    window_scale: u8,
    origin: OriginId,
}

const SCALE_ABSENT: u8 = 0xfe;
const SCALE_UNKNOWN: u8 = 0xff;

const FROM_SECOND: u8 = 1;
const TIMESTAMP_VALUE: u8 = 2;
const IP_ID: u8 = 4;
const OTHER_FIRST: u8 = 8;
const NAMES_LATER_BYTES: u8 = 16;
const DUPLICATE_SACK: u8 = 32;

impl Packed {
    #[inline]
    fn has(&self, bit: u8) -> bool {
        self.has & bit != 0
    }

    #[inline]
    fn scale(&self) -> WindowScale {
        match self.window_scale {
            SCALE_UNKNOWN => WindowScale::Unknown,
            SCALE_ABSENT => WindowScale::Absent,
            shift => WindowScale::Shift(shift),
        }
    }
}

#[derive(Default)]
struct BatchConnections {
    list: Vec<BatchConnection>,
    /// Open-addressing hash table of indexes into `list`, at least twice as long; [`VACANT`] marks a free slot.
    slots: Vec<u32>,
    /// Keyed, so that a crafted capture can't cause collisions.
    hash: RandomState,
}

struct BatchConnection {
    ends: EndpointPair,
    segments: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EndpointPair {
    /// IPv4 addresses use the first word only.
    addresses: [[u64; 2]; 2],
    ports: [u16; 2],
    are_v4: [bool; 2],
}

const VACANT: u32 = u32::MAX;
const FIRST_SLOTS: usize = 256;

impl EndpointPair {
    #[inline]
    fn from_segment(segment: &TcpSegment<'_>) -> (EndpointPair, bool) {
        let pack = |end: SocketAddr| match end.ip() {
            IpAddr::V4(address) => ([u64::from(address.to_bits()), 0], end.port(), true),
            IpAddr::V6(address) => ([(address.to_bits() >> 64) as u64, address.to_bits() as u64], end.port(), false),
        };
        let (source, destination) = (pack(segment.source), pack(segment.destination));
        let is_turned = destination < source;
        let (one, two) = if is_turned { (destination, source) } else { (source, destination) };
        (EndpointPair { addresses: [one.0, two.0], ports: [one.1, two.1], are_v4: [one.2, two.2] }, is_turned)
    }

    #[inline]
    fn end(&self, index: usize) -> SocketAddr {
        let [high, low] = self.addresses[index];
        let address = match self.are_v4[index] {
            true => IpAddr::V4(Ipv4Addr::from_bits(high as u32)),
            false => IpAddr::V6(Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low))),
        };
        SocketAddr::new(address, self.ports[index])
    }
}

/// Hashes whole words, and as few as possible: this runs for every packet.
impl Hash for EndpointPair {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let EndpointPair { addresses: [[one, one_low], [two, two_low]], ports: [one_port, two_port], are_v4 } = *self;
        let ports = u64::from(one_port) << 16 | u64::from(two_port);
        if are_v4 == [true; 2] {
            state.write_u64(one << 32 | two);
            return state.write_u64(ports);
        }
        [one, one_low, two, two_low].into_iter().for_each(|word| state.write_u64(word));
        state.write_u64(ports | u64::from(are_v4[0]) << 32 | u64::from(are_v4[1]) << 33);
    }
}

impl BatchConnections {
    #[inline]
    fn count(&mut self, ends: EndpointPair) -> u32 {
        if self.slots.len() < self.list.len() * 2 + 2 {
            self.grow();
        }
        let (place, slot) = self.find(&ends);
        match place {
            Some(place) => {
                self.list[place as usize].segments += 1;
                place
            }
            None => {
                let place = self.list.len() as u32;
                self.slots[slot] = place;
                self.list.push(BatchConnection { ends, segments: 1 });
                place
            }
        }
    }

    /// Returns the index of a connection, if it is known, and its slot or the slot to put it in.
    #[inline]
    fn find(&self, ends: &EndpointPair) -> (Option<u32>, usize) {
        let mask = self.slots.len() - 1;
        let mut slot = self.hash.hash_one(ends) as usize & mask;
        // Terminates because there are more slots than connections.
        loop {
            match self.slots[slot] {
                VACANT => return (None, slot),
                place if self.list[place as usize].ends == *ends => return (Some(place), slot),
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    #[cold]
    fn grow(&mut self) {
        let slots = (self.slots.len() * 2).max(FIRST_SLOTS);
        self.slots.clear();
        self.slots.resize(slots, VACANT);
        for place in 0..self.list.len() {
            let (_, slot) = self.find(&self.list[place].ends);
            self.slots[slot] = place as u32;
        }
    }

    fn clear(&mut self) {
        self.list.clear();
        self.slots.fill(VACANT);
    }
}

impl SegmentBatch {
    /// Returns true if offsets of packet number and ordinal from the batch's first segment fit in an `i32`.
    #[inline]
    pub fn fits(&self, segment: &TcpSegment<'_>) -> bool {
        self.is_empty() || self.since_base(segment).is_some()
    }

    #[inline]
    fn since_base(&self, segment: &TcpSegment<'_>) -> Option<(i32, i32)> {
        let (number, ordinal) = self.base;
        let since = |number: u64, base: u64| i32::try_from(number.wrapping_sub(base) as i64).ok();
        since(segment.stamp.packet.number(), number).zip(since(segment.ordinal, ordinal))
    }

    /// Adds a segment, which must fit. Copies the payload unless it lies in `backing` and does not start a message.
    #[inline]
    pub fn push(&mut self, segment: &TcpSegment<'_>, backing: Option<&Arc<Backing>>) {
        if self.is_empty() {
            self.base = (segment.stamp.packet.number(), segment.ordinal);
        }
        let (number, ordinal) = self.since_base(segment).expect("the caller ensures that the segment fits");
        let (backing, start) = self.place(segment.payload, backing);
        let (ends, is_turned) = EndpointPair::from_segment(segment);
        let other_first = segment.first.packet != segment.stamp.packet;
        if other_first {
            self.firsts.push((self.segments.len(), segment.first));
        }
        if let Some(block) = segment.duplicate_sack {
            self.duplicate_sacks.push((self.segments.len(), block));
        }
        let bit = |is: bool, bit: u8| if is { bit } else { 0 };
        self.segments.push(Packed {
            time: segment.stamp.time.0,
            start,
            number,
            ordinal,
            connection: self.connections.count(ends),
            sequence: segment.sequence,
            acknowledgment: segment.acknowledgment,
            payload_length: segment.payload_length,
            length: segment.payload.len() as u32,
            timestamp_value: segment.timestamp_value.unwrap_or(0),
            backing,
            capture: segment.stamp.packet.capture().0,
            window: segment.window,
            ip_id: segment.ip_id.unwrap_or(0),
            flags: segment.flags.0,
            has: bit(is_turned, FROM_SECOND)
                | bit(segment.timestamp_value.is_some(), TIMESTAMP_VALUE)
                | bit(segment.ip_id.is_some(), IP_ID)
                | bit(other_first, OTHER_FIRST)
                | bit(segment.names_later_bytes, NAMES_LATER_BYTES)
                | bit(segment.duplicate_sack.is_some(), DUPLICATE_SACK),
            hops_left: segment.hops_left,
            origin: segment.origin,
            window_scale: match segment.window_scale {
                WindowScale::Unknown => SCALE_UNKNOWN,
                WindowScale::Absent => SCALE_ABSENT,
                WindowScale::Shift(shift) => shift,
            },
        });
    }

    #[inline]
    fn place(&mut self, payload: &[u8], backing: Option<&Arc<Backing>>) -> (u32, usize) {
        let is_to_be_read = payload.len() <= COPIED_MAX && may_begin_message(payload);
        let in_place = backing.filter(|_| !is_to_be_read).and_then(|backing| {
            let start = (payload.as_ptr() as usize).checked_sub(backing.as_ptr() as usize)?;
            (start.checked_add(payload.len())? <= backing.len()).then_some((backing, start))
        });
        match in_place {
            Some((backing, start)) => (self.backing(backing), start),
            None => {
                self.arena.extend_from_slice(payload);
                (ARENA, self.arena.len() - payload.len())
            }
        }
    }

    pub fn len(&self) -> usize {
        self.segments.len()
    }

    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    pub fn connections(&self) -> usize {
        self.connections.list.len()
    }

    pub fn copied_bytes(&self) -> usize {
        self.arena.len()
    }

    pub fn begins(&self) -> Option<Timestamp> {
        self.segments.first().map(|packed| Timestamp(packed.time))
    }

    pub fn iter(&self) -> impl Iterator<Item = TcpSegment<'_>> {
        (0..self.segments.len()).map(|index| self.segment(index))
    }

    /// Returns the segments grouped by connection, in reading order within each.
    pub fn by_connection<'b>(&'b self, order: &'b mut BatchOrder) -> impl Iterator<Item = TcpSegment<'b>> {
        order.sort(self);
        let indexes = &order.indexes;
        let ahead = |at: usize| indexes.get(at).map(|index| &self.segments[*index as usize]);
        indexes.iter().enumerate().map(move |(at, index)| {
            ahead(at + HEADERS_AHEAD).into_iter().for_each(prefetch);
            ahead(at + PAYLOADS_AHEAD).into_iter().for_each(|segment| self.prefetch_payload(segment));
            self.segment(*index as usize)
        })
    }

    /// Prefetches arena payloads only: the file is read sequentially, which the processor's own prefetcher handles.
    #[inline]
    fn prefetch_payload(&self, segment: &Packed) {
        if segment.backing == ARENA {
            let payload = self.arena[segment.start..].iter().take(segment.length as usize);
            payload.step_by(CACHE_LINE).take(PAYLOAD_LINES).for_each(prefetch);
        }
    }

    #[inline]
    fn segment(&self, index: usize) -> TcpSegment<'_> {
        let packed = &self.segments[index];
        let bytes: &[u8] = match packed.backing {
            ARENA => &self.arena,
            backing => &self.backings[backing as usize],
        };
        let (number, ordinal) = self.base;
        let number = number.wrapping_add_signed(packed.number.into());
        let packet = PacketRef::new(CaptureId(packed.capture), number);
        let stamp = Stamp { time: Timestamp(packed.time), packet };
        let ends = &self.connections.list[packed.connection as usize].ends;
        let source = usize::from(packed.has(FROM_SECOND));
        TcpSegment {
            ordinal: ordinal.wrapping_add_signed(packed.ordinal.into()),
            first: if packed.has(OTHER_FIRST) { self.first(index).unwrap_or(stamp) } else { stamp },
            stamp,
            origin: packed.origin,
            source: ends.end(source),
            destination: ends.end(1 - source),
            sequence: packed.sequence,
            acknowledgment: packed.acknowledgment,
            flags: TcpFlags(packed.flags),
            window: packed.window,
            window_scale: packed.scale(),
            timestamp_value: packed.has(TIMESTAMP_VALUE).then_some(packed.timestamp_value),
            names_later_bytes: packed.has(NAMES_LATER_BYTES),
            duplicate_sack: if packed.has(DUPLICATE_SACK) { self.duplicate_sack(index) } else { None },
            ip_id: packed.has(IP_ID).then_some(packed.ip_id),
            hops_left: packed.hops_left,
            payload: &bytes[packed.start..packed.start + packed.length as usize],
            payload_length: packed.payload_length,
        }
    }

    #[cold]
    fn first(&self, index: usize) -> Option<Stamp> {
        let at = self.firsts.binary_search_by_key(&index, |(index, _)| *index).ok()?;
        Some(self.firsts[at].1)
    }

    #[cold]
    fn duplicate_sack(&self, index: usize) -> Option<(u32, u32)> {
        let at = self.duplicate_sacks.binary_search_by_key(&index, |(index, _)| *index).ok()?;
        Some(self.duplicate_sacks[at].1)
    }

    pub fn clear(&mut self) {
        self.segments.clear();
        self.connections.clear();
        self.firsts.clear();
        self.duplicate_sacks.clear();
        self.arena.clear();
        self.backings.clear();
    }

    #[inline]
    fn backing(&mut self, backing: &Arc<Backing>) -> u32 {
        if !self.backings.last().is_some_and(|last| Arc::ptr_eq(last, backing)) {
            self.backings.push(Arc::clone(backing));
        }
        (self.backings.len() - 1) as u32
    }
}

#[inline]
fn may_begin_message(payload: &[u8]) -> bool {
    matches!(payload, [0, _, _, _, 0xfc..=0xff, b'S', b'M', b'B', ..])
}

/// Order that groups a batch's segments by connection. Reused between batches to avoid allocation.
#[derive(Default)]
pub struct BatchOrder {
    indexes: Vec<u32>,
    next: Vec<u32>,
}

impl BatchOrder {
    fn sort(&mut self, batch: &SegmentBatch) {
        self.next.clear();
        self.next.extend(batch.connections.list.iter().scan(0, |sum, connection| {
            let begin = *sum;
            *sum += connection.segments;
            Some(begin)
        }));
        self.indexes.clear();
        self.indexes.resize(batch.len(), 0);
        for (index, packed) in (0..).zip(&batch.segments) {
            let next = &mut self.next[packed.connection as usize];
            self.indexes[*next as usize] = index;
            *next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(number: u64) -> Stamp {
        Stamp { time: Timestamp(-5 + number as i64), packet: PacketRef::new(CaptureId(3), number) }
    }

    fn plain() -> TcpSegment<'static> {
        TcpSegment {
            ordinal: 1 << 40,
            first: stamp(7),
            stamp: stamp(7),
            origin: OriginId(7),
            source: SocketAddr::from(([10, 1, 2, 3], 50_000)),
            destination: SocketAddr::from(([255, 0, 0, 1], 445)),
            sequence: u32::MAX,
            acknowledgment: 1,
            flags: TcpFlags(TcpFlags::ACK | TcpFlags::PSH),
            window: 65_535,
            window_scale: WindowScale::Shift(7),
            timestamp_value: Some(0),
            names_later_bytes: false,
            duplicate_sack: None,
            ip_id: None,
            hops_left: 63,
            payload: b"one",
            payload_length: 1_448,
        }
    }

    #[test]
    fn segments_come_out_as_they_went_in() {
        let v6 = SocketAddr::from(([0xfe80, 0, 0, 0, 1, 2, 3, 4], 445));
        let plain = plain();
        let fragments = TcpSegment {
            first: stamp(8),
            stamp: stamp(9),
            source: v6,
            window_scale: WindowScale::Unknown,
            timestamp_value: None,
            names_later_bytes: true,
            duplicate_sack: Some((u32::MAX, 3)),
            ip_id: Some(0),
            payload: b"",
            ..plain
        };
        let mixed = TcpSegment { destination: v6, window_scale: WindowScale::Absent, payload: b"three", ..plain };
        let segments = [plain, fragments, mixed, TcpSegment { first: stamp(1), ..plain }];
        let mut batch = SegmentBatch::default();
        for _ in 0..2 {
            batch.clear();
            segments.iter().for_each(|segment| batch.push(segment, None));
            let out: Vec<String> = batch.iter().map(|segment| format!("{segment:?}")).collect();
            assert_eq!(out, segments.map(|segment| format!("{segment:?}")));
        }
        assert_eq!((batch.len(), batch.copied_bytes()), (4, 11));
    }

    #[test]
    fn segments_of_a_connection_stay_in_order_and_come_together() {
        let [one, two, server] = [1, 2, 9].map(|last| SocketAddr::from(([10, 0, 0, last], 445)));
        // This IPv6 address has the same bits as the IPv4 address, but must not compare equal.
        let other = SocketAddr::from((Ipv6Addr::from([0, 0, 0, 0x0a00, 1, 0, 0, 0]), 445));
        let ends = [(one, server), (two, server), (server, one), (other, server), (one, server), (server, two)];
        let mut batch = SegmentBatch::default();
        for (number, (source, destination)) in (0..).zip(ends) {
            let first = stamp(number + 100 * (number % 2));
            batch.push(&TcpSegment { source, destination, stamp: stamp(number), first, ..plain() }, None);
        }
        let mut order = BatchOrder::default();
        for _ in 0..2 {
            let out: Vec<(u64, u64)> = batch
                .by_connection(&mut order)
                .map(|segment| (segment.stamp.packet.number(), segment.first.packet.number()))
                .collect();
            assert_eq!(out, [(0, 0), (2, 2), (4, 4), (1, 101), (5, 105), (3, 103)]);
        }
        batch.clear();
        assert_eq!(batch.by_connection(&mut order).count(), 0);
    }

    #[test]
    fn numbers_that_are_too_far_apart_do_not_share_a_batch() {
        let mut batch = SegmentBatch::default();
        let far = 1 << 40;
        batch.push(&TcpSegment { ordinal: far, stamp: stamp(far), first: stamp(far), ..plain() }, None);
        // Captures that are read together number their packets independently.
        let before = TcpSegment { ordinal: far + 1, stamp: stamp(far - 5), first: stamp(far - 5), ..plain() };
        assert!(batch.fits(&before));
        batch.push(&before, None);
        assert_eq!(batch.iter().map(|segment| segment.stamp.packet.number()).collect::<Vec<_>>(), [far, far - 5]);
        assert!(!batch.fits(&TcpSegment { stamp: stamp(1), ..plain() }));
        batch.clear();
        assert!(batch.fits(&TcpSegment { stamp: stamp(1), ..plain() }));
    }

    #[test]
    fn connections_find_their_places_however_many_they_are() {
        let mut batch = SegmentBatch::default();
        let server = SocketAddr::from(([10, 0, 0, 9], 445));
        for round in 0..3 {
            batch.clear();
            for client in (0..2_000u16).chain(0..2_000) {
                let source = SocketAddr::from(([10, 1, round, 1], 1 + client));
                batch.push(&TcpSegment { source, destination: server, ..plain() }, None);
            }
            let mut order = BatchOrder::default();
            let ports: Vec<u16> = batch.by_connection(&mut order).map(|segment| segment.source.port()).collect();
            assert!((1..=2_000).flat_map(|port| [port; 2]).eq(ports), "round {round}");
        }
    }

    #[test]
    fn a_packed_segment_is_one_line_of_the_cache() {
        assert_eq!(size_of::<Packed>(), 64);
    }
}
