//! Segments on their way from the thread that reads to one that follows flows.
//!
//! A batch keeps the segments' headers and knows where their payloads are: in the file, which stays mapped as long as
//! a batch needs it, or in an arena of the batch where they were on the way in a stream or were put together from
//! fragments. Headers are packed, since what one core writes and another reads costs by the cache line. Batches are
//! filled again after use, so nothing is allocated for a packet.
//!
//! A batch can be gone through connection by connection ([`Batch::by_connection`]): of thousands of connections, what is
//! kept of one then comes into the processor's caches once for all its segments in the batch.

use crate::reader::Backing;
use crate::segment::{TcpFlags, TcpSegment, WindowScale};
use ahash::RandomState;
use smbscope_model::{CaptureId, PacketRef, Stamp, Timestamp};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// Marks payloads that are in the arena.
const ARENA: u32 = u32::MAX;

/// Segments in the order in which they were read.
#[derive(Default)]
pub struct Batch {
    segments: Vec<Packed>,
    /// The first packets of segments that were put together from fragments, with the indexes of these.
    firsts: Vec<(usize, Stamp)>,
    arena: Vec<u8>,
    backings: Vec<Arc<Backing>>,
}

/// The fields of a segment, and where its payload is.
struct Packed {
    time: i64,
    number: u64,
    ordinal: u64,
    start: usize,
    /// Of the source and of the destination; one of IPv4 is in the first word.
    addresses: [[u64; 2]; 2],
    ports: [u16; 2],
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
    /// The shift, or one of the two below.
    window_scale: u8,
}

/// Values of [`Packed::window_scale`] that are no shift.
const SCALE_ABSENT: u8 = 0xfe;
const SCALE_UNKNOWN: u8 = 0xff;

/// Bits of [`Packed::has`].
const SOURCE_IS_V4: u8 = 1;
const DESTINATION_IS_V4: u8 = 2;
const TIMESTAMP_VALUE: u8 = 4;
const IP_ID: u8 = 8;
const OTHER_FIRST: u8 = 16;
const NAMES_LATER_BYTES: u8 = 32;

#[inline]
fn pack(address: IpAddr, v4: u8) -> ([u64; 2], u8) {
    match address {
        IpAddr::V4(address) => ([u64::from(address.to_bits()), 0], v4),
        IpAddr::V6(address) => ([(address.to_bits() >> 64) as u64, address.to_bits() as u64], 0),
    }
}

#[inline]
fn unpack([high, low]: [u64; 2], is_v4: bool) -> IpAddr {
    match is_v4 {
        true => IpAddr::V4(Ipv4Addr::from_bits(high as u32)),
        false => IpAddr::V6(Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low))),
    }
}

impl Packed {
    /// A segment whose payload is still to be placed.
    #[inline]
    fn of(segment: &TcpSegment<'_>) -> Packed {
        let (source, source_is_v4) = pack(segment.source.ip(), SOURCE_IS_V4);
        let (destination, destination_is_v4) = pack(segment.destination.ip(), DESTINATION_IS_V4);
        let timestamp_value = if segment.timestamp_value.is_some() { TIMESTAMP_VALUE } else { 0 };
        let ip_id = if segment.ip_id.is_some() { IP_ID } else { 0 };
        let other_first = if segment.first.packet != segment.stamp.packet { OTHER_FIRST } else { 0 };
        let names_later_bytes = if segment.names_later_bytes { NAMES_LATER_BYTES } else { 0 };
        Packed {
            time: segment.stamp.time.0,
            number: segment.stamp.packet.number,
            ordinal: segment.ordinal,
            start: 0,
            addresses: [source, destination],
            ports: [segment.source.port(), segment.destination.port()],
            sequence: segment.sequence,
            acknowledgment: segment.acknowledgment,
            payload_length: segment.payload_length,
            length: segment.payload.len() as u32,
            timestamp_value: segment.timestamp_value.unwrap_or(0),
            backing: ARENA,
            capture: segment.stamp.packet.capture.0,
            window: segment.window,
            ip_id: segment.ip_id.unwrap_or(0),
            flags: segment.flags.0,
            hops_left: segment.hops_left,
            window_scale: match segment.window_scale {
                WindowScale::Unknown => SCALE_UNKNOWN,
                WindowScale::Absent => SCALE_ABSENT,
                WindowScale::Shift(shift) => shift,
            },
            has: source_is_v4 | destination_is_v4 | timestamp_value | names_later_bytes | ip_id | other_first,
        }
    }

    /// Both ends, the smaller one first: the same for both directions.
    #[inline]
    fn connection(&self) -> [(u64, u64, u16, bool); 2] {
        let end = |index: usize, v4: u8| {
            let [high, low] = self.addresses[index];
            (high, low, self.ports[index], self.has(v4))
        };
        let (source, destination) = (end(0, SOURCE_IS_V4), end(1, DESTINATION_IS_V4));
        if source <= destination { [source, destination] } else { [destination, source] }
    }

    #[inline]
    fn has(&self, bit: u8) -> bool {
        self.has & bit != 0
    }

    #[inline]
    fn segment<'b>(&self, payload: &'b [u8], first: impl FnOnce() -> Option<Stamp>) -> TcpSegment<'b> {
        let packet = PacketRef { capture: CaptureId(self.capture), number: self.number };
        let stamp = Stamp { time: Timestamp(self.time), packet };
        let first = if self.has(OTHER_FIRST) { first().unwrap_or(stamp) } else { stamp };
        let [source, destination] = self.addresses;
        let [source_port, destination_port] = self.ports;
        TcpSegment {
            ordinal: self.ordinal,
            first,
            stamp,
            source: SocketAddr::new(unpack(source, self.has(SOURCE_IS_V4)), source_port),
            destination: SocketAddr::new(unpack(destination, self.has(DESTINATION_IS_V4)), destination_port),
            sequence: self.sequence,
            acknowledgment: self.acknowledgment,
            flags: TcpFlags(self.flags),
            window: self.window,
            window_scale: match self.window_scale {
                SCALE_UNKNOWN => WindowScale::Unknown,
                SCALE_ABSENT => WindowScale::Absent,
                shift => WindowScale::Shift(shift),
            },
            timestamp_value: self.has(TIMESTAMP_VALUE).then_some(self.timestamp_value),
            names_later_bytes: self.has(NAMES_LATER_BYTES),
            ip_id: self.has(IP_ID).then_some(self.ip_id),
            hops_left: self.hops_left,
            payload,
            payload_length: self.payload_length,
        }
    }
}

impl Batch {
    /// Adds a segment; its payload stays where it is if that is in `backing`.
    #[inline]
    pub fn push(&mut self, segment: &TcpSegment<'_>, backing: Option<&Arc<Backing>>) {
        let mut packed = Packed::of(segment);
        let length = segment.payload.len();
        let in_place = backing.and_then(|backing| {
            let start = (segment.payload.as_ptr() as usize).checked_sub(backing.as_ptr() as usize)?;
            (start.checked_add(length)? <= backing.len()).then_some((backing, start))
        });
        (packed.backing, packed.start) = match in_place {
            Some((backing, start)) => (self.backing(backing), start),
            None => {
                self.arena.extend_from_slice(segment.payload);
                (ARENA, self.arena.len() - length)
            }
        };
        if packed.has(OTHER_FIRST) {
            self.firsts.push((self.segments.len(), segment.first));
        }
        self.segments.push(packed);
    }

    /// How many segments there are.
    pub fn len(&self) -> usize {
        self.segments.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Bytes that were copied.
    pub fn copied_bytes(&self) -> usize {
        self.arena.len()
    }

    /// When the first one came.
    pub fn begins(&self) -> Option<Timestamp> {
        self.segments.first().map(|packed| Timestamp(packed.time))
    }

    /// The segments as they came.
    pub fn iter(&self) -> impl Iterator<Item = TcpSegment<'_>> {
        (0..self.segments.len()).map(|index| self.segment(index))
    }

    /// The segments of each connection as they came, those of the connection that comes first before all others.
    pub fn by_connection<'b>(&'b self, chains: &'b mut Chains) -> impl Iterator<Item = TcpSegment<'b>> {
        chains.link(&self.segments);
        chains.iter().map(|index| self.segment(index))
    }

    #[inline]
    fn segment(&self, index: usize) -> TcpSegment<'_> {
        let packed = &self.segments[index];
        let bytes: &[u8] = match packed.backing {
            ARENA => &self.arena,
            backing => &self.backings[backing as usize],
        };
        let payload = &bytes[packed.start..packed.start + packed.length as usize];
        packed.segment(payload, || {
            let at = self.firsts.binary_search_by_key(&index, |(index, _)| *index).ok()?;
            Some(self.firsts[at].1)
        })
    }

    /// Empties the batch and keeps its room.
    pub fn clear(&mut self) {
        self.segments.clear();
        self.firsts.clear();
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

/// Which segments of a batch are of one connection: a list of indexes for each. Kept from batch to batch, so that nothing is
/// allocated.
#[derive(Default)]
pub struct Chains {
    /// The first and the last segment of each connection.
    ends: Vec<(u32, u32)>,
    /// The segment of the same connection behind each segment; itself where there is none.
    next: Vec<u32>,
    /// Places in `ends` by the hash of the connection; [`VACANT`] where there is none.
    slots: Vec<u32>,
    /// Whoever makes a capture does not know where its connections clash.
    hash: RandomState,
}

const VACANT: u32 = u32::MAX;

impl Chains {
    fn link(&mut self, segments: &[Packed]) {
        self.ends.clear();
        self.next.clear();
        self.slots.clear();
        self.slots.resize((segments.len() * 2).next_power_of_two(), VACANT);
        let mask = self.slots.len() - 1;
        for (index, packed) in segments.iter().enumerate() {
            let this = index as u32;
            self.next.push(this);
            let key = packed.connection();
            let mut slot = self.hash.hash_one(key) as usize & mask;
            // There are more slots than segments, so a vacant one turns up.
            loop {
                match self.slots[slot] {
                    VACANT => {
                        self.slots[slot] = self.ends.len() as u32;
                        self.ends.push((this, this));
                        break;
                    }
                    place if segments[self.ends[place as usize].0 as usize].connection() == key => {
                        let (_, last) = &mut self.ends[place as usize];
                        self.next[*last as usize] = this;
                        *last = this;
                        break;
                    }
                    _ => slot = (slot + 1) & mask,
                }
            }
        }
    }

    /// All segments, connection by connection.
    fn iter(&self) -> impl Iterator<Item = usize> {
        self.ends.iter().flat_map(|(first, _)| {
            let behind = |this: &u32| Some(self.next[*this as usize]).filter(|next| next != this);
            std::iter::successors(Some(*first), behind).map(|index| index as usize)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(number: u64) -> Stamp {
        Stamp { time: Timestamp(-5 + number as i64), packet: PacketRef { capture: CaptureId(3), number } }
    }

    fn plain() -> TcpSegment<'static> {
        TcpSegment {
            ordinal: 1 << 40,
            first: stamp(7),
            stamp: stamp(7),
            source: SocketAddr::from(([10, 1, 2, 3], 50_000)),
            destination: SocketAddr::from(([255, 0, 0, 1], 445)),
            sequence: u32::MAX,
            acknowledgment: 1,
            flags: TcpFlags(TcpFlags::ACK | TcpFlags::PSH),
            window: 65_535,
            window_scale: WindowScale::Shift(7),
            timestamp_value: Some(0),
            names_later_bytes: false,
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
            ip_id: Some(0),
            payload: b"",
            ..plain
        };
        let mixed = TcpSegment { destination: v6, window_scale: WindowScale::Absent, payload: b"three", ..plain };
        let segments = [plain, fragments, mixed, TcpSegment { first: stamp(1), ..plain }];
        let mut batch = Batch::default();
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
        // The address of IPv6 with the same bits is another one.
        let other = SocketAddr::from((Ipv6Addr::from([0, 0, 0, 0x0a00, 1, 0, 0, 0]), 445));
        let ends = [(one, server), (two, server), (server, one), (other, server), (one, server), (server, two)];
        let mut batch = Batch::default();
        for (number, (source, destination)) in (0..).zip(ends) {
            // Each second one was put together from fragments.
            let first = stamp(number + 100 * (number % 2));
            batch.push(&TcpSegment { source, destination, stamp: stamp(number), first, ..plain() }, None);
        }
        let mut chains = Chains::default();
        for _ in 0..2 {
            let out: Vec<(u64, u64)> = batch
                .by_connection(&mut chains)
                .map(|segment| (segment.stamp.packet.number, segment.first.packet.number))
                .collect();
            assert_eq!(out, [(0, 0), (2, 2), (4, 4), (1, 101), (5, 105), (3, 103)]);
        }
        batch.clear();
        assert_eq!(batch.by_connection(&mut chains).count(), 0);
    }

    #[test]
    fn a_packed_segment_is_smaller_than_a_segment() {
        assert!(size_of::<Packed>() * 5 < size_of::<TcpSegment<'_>>() * 4, "{} bytes", size_of::<Packed>());
    }
}
