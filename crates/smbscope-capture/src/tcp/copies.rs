//! Recognises packets that were captured twice at a distance of many packets, as a mirror port does that sees both
//! ways: every packet comes again, a millisecond and some hundred packets later.
//!
//! The few packets that every direction remembers anyway tell the first such copy. From then on fingerprints of far
//! more packets are kept, eight bytes each, so that a flow without copies pays nothing.

use smbscope_model::{Nanos, Timestamp};

/// Fingerprints of a direction; a copy that comes after more packets than this counts as retransmission.
const MAX_FINGERPRINTS: usize = 3584;
/// Fingerprints that share a place; the oldest of them makes room.
const WAYS: usize = 7;
/// Places at first, as a power of two: most directions need no more.
const FIRST_SETS_BITS: u32 = 4;
/// One tick of the time kept with a fingerprint, as a power of two: about a microsecond.
const TICK_BITS: u32 = 10;
/// Two packets alike with the same IP identification, which does not repeat so soon, are one captured twice up to this
/// distance. No other distance is longer.
pub(super) const DUPLICATE_WINDOW_WITH_ID: Nanos = Nanos(1_000_000_000);
/// The same in ticks.
const LONGEST: u32 = (DUPLICATE_WINDOW_WITH_ID.0 >> TICK_BITS) as u32;

/// What is kept of a packet.
#[derive(Debug, Clone, Copy, Default)]
struct PacketFingerprint {
    /// Zero stands for an empty place.
    fingerprint: u32,
    /// In ticks, wrapping after more than an hour.
    time: u32,
}

/// Fingerprints that share a place, the newest one first: one line of the cache.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct Set {
    entries: [PacketFingerprint; WAYS],
    /// Of the hash of each, the bits that choose a place once there are more of them.
    above: [u8; WAYS],
}

impl Set {
    fn push(&mut self, entry: PacketFingerprint, above: u8) {
        self.entries.copy_within(..WAYS - 1, 1);
        self.above.copy_within(..WAYS - 1, 1);
        (self.entries[0], self.above[0]) = (entry, above);
    }

    /// What belongs to one of the two that it becomes.
    fn half(&self, bit: u32, upper: bool) -> Set {
        let mut half = Set::default();
        let oldest_first = self.entries.iter().zip(self.above).rev();
        oldest_first
            .filter(|(_, above)| (above >> bit & 1 == 1) == upper)
            .for_each(|(entry, above)| half.push(*entry, above));
        half
    }
}

/// Fingerprints of the newest packets of a direction.
#[derive(Debug)]
pub(super) struct Copies(Box<[Set]>);

impl Copies {
    pub(super) fn new() -> Copies {
        Copies(vec![Set::default(); 1 << FIRST_SETS_BITS].into_boxed_slice())
    }

    /// What they take.
    pub(super) fn footprint(&self) -> usize {
        self.0.len() * size_of::<Set>()
    }

    /// Whether a packet with these fields was seen within `window` before; remembers it otherwise.
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

    /// Remembers a packet that can't be a copy.
    pub(super) fn remember(&mut self, fields: [u64; 3], time: Timestamp) {
        let (hash, entry) = entry_of(fields, time);
        self.put(hash, entry);
    }

    fn set(&mut self, hash: u64) -> &mut Set {
        let sets = self.0.len();
        &mut self.0[hash as usize % sets]
    }

    /// Puts an entry into its set. Where the oldest one there may still be needed, there is more room first.
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

    /// Makes two sets of each.
    #[cold]
    fn grow(&mut self) {
        let bit = self.0.len().ilog2() - FIRST_SETS_BITS;
        let halves = [false, true].into_iter().flat_map(|upper| self.0.iter().map(move |set| set.half(bit, upper)));
        self.0 = halves.collect();
    }
}

/// The hash of a packet, which chooses its set, and what is kept of it.
fn entry_of(fields: [u64; 3], time: Timestamp) -> (u64, PacketFingerprint) {
    let hash = fields.iter().fold(0x9e37_79b9_7f4a_7c15u64, |hash, field| {
        let mixed = (hash ^ field).wrapping_mul(0xff51_afd7_ed55_8ccd);
        mixed ^ mixed >> 32
    });
    let fingerprint = (hash >> 32) as u32 | 1;
    (hash, PacketFingerprint { fingerprint, time: (time.0 >> TICK_BITS) as u32 })
}

impl PacketFingerprint {
    /// Ticks since another packet.
    fn since(&self, earlier: &PacketFingerprint) -> u32 {
        self.time.wrapping_sub(earlier.time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What makes a packet recognisable.
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
        // A thousand packets in 0.8 seconds.
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
