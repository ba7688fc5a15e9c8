//! Detects packets captured twice many packets apart: a mirror port that sees both ways repeats every packet about a
//! millisecond and some hundred packets later.
//!
//! The few packets that every direction remembers anyway reveal the first such copy. Only then are fingerprints of many
//! more packets kept, eight bytes each, so that a flow without copies pays nothing.

use smbscope_model::{Nanos, Timestamp};

/// Maximum number of fingerprints per direction. A copy that arrives after more packets than this counts as a
/// retransmission.
const MAX_FINGERPRINTS: usize = 3584;
/// Fingerprints per set; a new one replaces the oldest.
const WAYS: usize = 7;
/// Initial number of sets, as a power of two: most directions need no more.
const FIRST_SETS_BITS: u32 = 4;
/// Duration of one tick of the stored time, as a power of two in nanoseconds: about a microsecond.
const TICK_BITS: u32 = 10;
/// Identical packets with the same IP identification, which does not repeat this soon, are duplicates if they are no
/// further apart than this. No other duplicate window is longer.
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

/// Fingerprints that share a hash slot, newest first, in one cache line.
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

    /// Returns the entries that go to the lower or upper half when the set is split.
    fn half(&self, bit: u32, upper: bool) -> Set {
        let mut half = Set::default();
        let oldest_first = self.entries.iter().zip(self.above).rev();
        oldest_first
            .filter(|(_, above)| (above >> bit & 1 == 1) == upper)
            .for_each(|(entry, above)| half.push(*entry, above));
        half
    }
}

#[derive(Debug)]
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

    /// Remembers a packet that is known not to be a copy.
    pub(super) fn remember(&mut self, fields: [u64; 3], time: Timestamp) {
        let (hash, entry) = entry_of(fields, time);
        self.put(hash, entry);
    }

    fn set(&mut self, hash: u64) -> &mut Set {
        let sets = self.0.len();
        &mut self.0[hash as usize % sets]
    }

    /// Adds an entry to its set. Grows first if the set's oldest entry may still be needed.
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

/// Returns the packet's hash, which selects its set, and the entry to store.
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
