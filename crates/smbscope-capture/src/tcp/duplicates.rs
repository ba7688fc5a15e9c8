//! Packets that were captured twice, and data that was captured at two layers of one host.
//!
//! A mirror port that sees both ways repeats every packet about a millisecond and some hundred packets later. The
//! packets that every direction remembers anyway reveal the first such copy. Only then does [`Copies`] keep
//! fingerprints of many more.
//!
//! [`Layers`] detects data captured before segmentation offload and again as packets, or after receive coalescing, as
//! in `pktmon` traces. The second layer repeats the first layer's bytes in order, with the same acknowledgment number
//! and timestamp option, within microseconds: faster than any sender retransmits (RFC 6298, RFC 6675). A record carries
//! the IP identification of its first packet, or none; a retransmission has a new one.

use super::buffers::Ring;
use crate::segment::TcpSegment;
use smbscope_model::{Nanos, Timestamp};

#[derive(Debug, Clone, Copy)]
pub(super) struct Sighting {
    pub(super) position: u64,
    pub(super) time: Timestamp,
    pub(super) payload_length: u32,
    acknowledgment: u32,
    /// Number of packets of the direction captured before it.
    pub(super) serial: u32,
    /// Zero if absent; see `has`.
    timestamp_value: u32,
    window: u16,
    /// Zero if absent; see `has`.
    ip_id: u16,
    flags: u8,
    has: u8,
}

const HAS_TIMESTAMP: u8 = 1;
const HAS_IP_ID: u8 = 2;

impl Sighting {
    #[inline]
    pub(super) fn new(position: u64, serial: u32, segment: &TcpSegment<'_>) -> Sighting {
        let timestamp = if segment.timestamp_value.is_some() { HAS_TIMESTAMP } else { 0 };
        let identified = if segment.ip_id.is_some() { HAS_IP_ID } else { 0 };
        Sighting {
            position,
            time: segment.stamp.time,
            payload_length: segment.payload_length,
            acknowledgment: segment.acknowledgment,
            serial,
            timestamp_value: segment.timestamp_value.unwrap_or(0),
            window: segment.window,
            ip_id: segment.ip_id.unwrap_or(0),
            flags: segment.flags.0,
            has: timestamp | identified,
        }
    }

    pub(super) fn ip_id(&self) -> Option<u16> {
        (self.has & HAS_IP_ID != 0).then_some(self.ip_id)
    }

    pub(super) fn end(&self) -> u64 {
        self.position + u64::from(self.payload_length)
    }

    pub(super) fn fields(&self) -> [u64; 3] {
        [
            self.position,
            u64::from(self.acknowledgment) << 32 | u64::from(self.payload_length),
            u64::from(self.timestamp_value) << 32
                | u64::from(self.ip_id) << 16
                | u64::from(self.window.rotate_left(5)) ^ u64::from(self.flags),
        ]
    }

    /// Returns true unless the IP identifications show that these are different packets. Zero means none.
    pub(super) fn may_share_id(&self, other: &Sighting) -> bool {
        let [one, other] = [self, other].map(|packet| packet.ip_id().filter(|id| *id != 0));
        one.is_none() || other.is_none() || one == other
    }

    /// Returns true if both were sent in the same state of the connection, within `ticks` of the timestamp option.
    pub(super) fn is_like(&self, later: &Sighting, ticks: u32) -> bool {
        self.acknowledgment == later.acknowledgment
            && later.timestamp_value.wrapping_sub(self.timestamp_value) <= ticks
            && (self.has ^ later.has) & HAS_TIMESTAMP == 0
    }

    pub(super) fn is_same_packet(&self, later: &Sighting, window: Nanos) -> bool {
        self.position == later.position
            && self.payload_length == later.payload_length
            && self.acknowledgment == later.acknowledgment
            && self.flags == later.flags
            && self.window == later.window
            && self.timestamp_value == later.timestamp_value
            && self.ip_id == later.ip_id
            && self.has == later.has
            && later.time - self.time <= window
    }
}

/// Packets compared per direction; later copies count as retransmissions.
const MAX_FINGERPRINTS: usize = 3584;
/// Fingerprints per set; a new one replaces the oldest.
const WAYS: usize = 7;
/// Initial number of sets, as a power of two: most directions need no more.
const FIRST_SETS_BITS: u32 = 4;
/// Duration of one tick of the stored time, as a power of two in nanoseconds: about a microsecond.
const TICK_BITS: u32 = 10;
/// Identical packets with the same IP identification are duplicates within this time, the longest such window.
pub(super) const DUPLICATE_WINDOW_WITH_ID: Nanos = Nanos(1_000_000_000);
/// [`DUPLICATE_WINDOW_WITH_ID`] in ticks.
const LONGEST: u32 = (DUPLICATE_WINDOW_WITH_ID.0 >> TICK_BITS) as u32;

#[derive(Debug, Clone, Copy, Default)]
struct PacketFingerprint {
    /// Zero marks an empty entry.
    fingerprint: u32,
    /// In ticks; wraps after more than an hour.
    time: u32,
}

#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct Set {
    entries: [PacketFingerprint; WAYS],
    /// For each entry, the hash bits that select its set as the number of sets grows.
    above: [u8; WAYS],
}

impl Set {
    fn push(&mut self, entry: PacketFingerprint, above: u8) {
        self.entries.copy_within(..WAYS - 1, 1);
        self.above.copy_within(..WAYS - 1, 1);
        (self.entries[0], self.above[0]) = (entry, above);
    }

    fn half(&self, bit: u32, upper: bool) -> Set {
        let mut half = Set::default();
        let oldest_first = self.entries.iter().zip(self.above).rev();
        oldest_first
            .filter(|(_, above)| (above >> bit & 1 == 1) == upper)
            .for_each(|(entry, above)| half.push(*entry, above));
        half
    }
}

#[derive(Debug, Clone)]
pub(super) struct Copies(Box<[Set]>);

impl Copies {
    pub(super) fn new() -> Copies {
        Copies(vec![Set::default(); 1 << FIRST_SETS_BITS].into_boxed_slice())
    }

    pub(super) fn footprint(&self) -> usize {
        self.0.len() * size_of::<Set>()
    }

    /// Returns true if a packet with these fields was seen within the preceding `window`; otherwise remembers it.
    pub(super) fn is_copy(&mut self, fields: [u64; 3], time: Timestamp, window: Nanos) -> bool {
        let (hash, entry) = entry_of(fields, time);
        let recent = (window.0 >> TICK_BITS) as u32;
        let is_same =
            |known: &PacketFingerprint| known.fingerprint == entry.fingerprint && entry.since(known) <= recent;
        let is_known = self.set(hash).entries.iter().any(is_same);
        if !is_known {
            self.put(hash, entry);
        }
        is_known
    }

    pub(super) fn remember(&mut self, fields: [u64; 3], time: Timestamp) {
        let (hash, entry) = entry_of(fields, time);
        self.put(hash, entry);
    }

    fn set(&mut self, hash: u64) -> &mut Set {
        let sets = self.0.len();
        &mut self.0[hash as usize % sets]
    }

    fn put(&mut self, hash: u64, entry: PacketFingerprint) {
        let needs_oldest = |set: &Set| {
            let oldest = set.entries[WAYS - 1];
            oldest.fingerprint != 0 && entry.since(&oldest) <= LONGEST
        };
        while needs_oldest(self.set(hash)) && self.0.len() * WAYS < MAX_FINGERPRINTS {
            self.grow();
        }
        self.set(hash).push(entry, (hash >> FIRST_SETS_BITS) as u8);
    }

    #[cold]
    fn grow(&mut self) {
        let bit = self.0.len().ilog2() - FIRST_SETS_BITS;
        let halves = [false, true].into_iter().flat_map(|upper| self.0.iter().map(move |set| set.half(bit, upper)));
        self.0 = halves.collect();
    }
}

fn entry_of(fields: [u64; 3], time: Timestamp) -> (u64, PacketFingerprint) {
    let hash = fields.iter().fold(0x9e37_79b9_7f4a_7c15u64, |hash, field| {
        let mixed = (hash ^ field).wrapping_mul(0xff51_afd7_ed55_8ccd);
        mixed ^ mixed >> 32
    });
    let fingerprint = (hash >> 32) as u32 | 1;
    (hash, PacketFingerprint { fingerprint, time: (time.0 >> TICK_BITS) as u32 })
}

impl PacketFingerprint {
    fn since(&self, earlier: &PacketFingerprint) -> u32 {
        self.time.wrapping_sub(earlier.time)
    }
}

/// Maximum delay of the second layer; longer once it is established, to allow for queueing in front of the card.
const FIRST_LAG: Nanos = Nanos(100_000);
const KNOWN_LAG: Nanos = Nanos(20_000_000);
/// Maximum difference of the timestamp options by then, in ticks of 1 ms (RFC 7323 §5.4).
const KNOWN_TICKS: u32 = 20;
/// Packets that establish a second layer of a host.
const KNOWN_MIN: u32 = 16;

#[derive(Debug, Clone, Default)]
pub(super) struct Layers {
    last: Option<(u64, Timestamp)>,
    pub(super) packets: u32,
}

impl Layers {
    pub(super) fn repeats<const N: usize>(&mut self, packet: &Sighting, recent: &Ring<Sighting, N>) -> bool {
        let lag = if self.packets >= KNOWN_MIN { KNOWN_LAG } else { FIRST_LAG };
        let follows = |(end, time): (u64, Timestamp)| end == packet.position && packet.time - time <= KNOWN_LAG;
        let goes_on = self.last.is_some_and(follows);
        let ticks = if goes_on { KNOWN_TICKS } else { 0 };
        let is_like = |known: &Sighting| known.is_like(packet, ticks);
        let any = |is: &dyn Fn(&Sighting) -> bool| recent.find(|known| is_like(known) && is(known)).is_some();
        let is_part = any(&|known| {
            let begins = known.position == packet.position && known.payload_length > packet.payload_length;
            let holds = known.position <= packet.position && packet.end() <= known.end();
            holds && (goes_on || begins && known.may_share_id(packet) && packet.time - known.time <= lag)
        });
        let is_merged = !is_part
            && any(&|known| {
                known.end() == packet.end() && known.position > packet.position && packet.time - known.time <= lag
            })
            && recent
                .find(|known| {
                    known.position == packet.position && known.end() < packet.end() && known.may_share_id(packet)
                })
                .is_some();
        if is_part || is_merged {
            self.last = Some((packet.end(), packet.time));
            self.packets = self.packets.saturating_add(1);
        }
        is_part || is_merged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(number: u64) -> [u64; 3] {
        [number * 1460, number, 7]
    }

    #[test]
    fn what_comes_again_within_the_window_is_a_copy_however_many_packets_lie_between() {
        let mut copies = Copies::new();
        let (window, apart) = (Nanos(1_000_000_000), 800_000);
        for number in 0..1_000 {
            assert!(!copies.is_copy(fields(number), Timestamp(number as i64 * apart), window), "{number}");
        }
        let missed = (0..1_000).filter(|number| !copies.is_copy(fields(*number), Timestamp(1_000 * apart), window));
        assert_eq!(missed.count(), 0);
        assert!(copies.footprint() <= 1 << 15);
    }

    #[test]
    fn a_slow_direction_takes_little() {
        let mut copies = Copies::new();
        for number in 0..100_000 {
            copies.remember(fields(number), Timestamp(number as i64 * 50_000_000));
        }
        assert!(copies.footprint() <= 4_096, "{} bytes", copies.footprint());
    }
}
