//! Recognises packets that were captured twice at a distance of many packets, as a mirror port does that sees both
//! ways: every packet comes again, a millisecond and some hundred packets later.
//!
//! The few packets that every direction remembers anyway tell the first such copy. From then on fingerprints of far
//! more packets are kept, eight bytes each, so that a flow without copies pays nothing.

use smbscope_model::{Nanos, Timestamp};

/// Fingerprints of a direction; a copy that comes after more packets than this counts as retransmission.
const MAX_FINGERPRINTS: usize = 4096;
/// Fingerprints that share a place; the oldest of them makes room.
const WAYS: usize = 8;
/// One tick of the time kept with a fingerprint, as a power of two: about a microsecond.
const TICK_BITS: u32 = 10;

/// What is kept of a packet.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    fingerprint: u32,
    /// In ticks, wrapping after more than an hour.
    time: u32,
}

/// Fingerprints that share a place: one line of the cache.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct Set([Entry; WAYS]);

/// Fingerprints of the newest packets of a direction.
#[derive(Debug)]
pub(super) struct Copies(Box<[Set]>);

impl Copies {
    pub(super) fn new() -> Copies {
        Copies(vec![Set::default(); MAX_FINGERPRINTS / WAYS].into_boxed_slice())
    }

    /// What they take.
    pub(super) fn footprint(&self) -> usize {
        self.0.len() * size_of::<Set>()
    }

    /// Whether a packet with these fields was seen within `window` before; remembers it otherwise.
    pub(super) fn is_copy(&mut self, fields: [u64; 3], time: Timestamp, window: Nanos) -> bool {
        let (Set(ways), entry) = self.place(fields, time);
        let recent = (window.0 >> TICK_BITS) as u32;
        let is_same =
            |known: &Entry| known.fingerprint == entry.fingerprint && entry.time.wrapping_sub(known.time) <= recent;
        if ways.iter().any(is_same) {
            return true;
        }
        remember(ways, entry);
        false
    }

    /// Remembers a packet that can't be a copy.
    pub(super) fn remember(&mut self, fields: [u64; 3], time: Timestamp) {
        let (Set(ways), entry) = self.place(fields, time);
        remember(ways, entry);
    }

    fn place(&mut self, fields: [u64; 3], time: Timestamp) -> (&mut Set, Entry) {
        let hash = fields.iter().fold(0x9e37_79b9_7f4a_7c15u64, |hash, field| {
            let mixed = (hash ^ field).wrapping_mul(0xff51_afd7_ed55_8ccd);
            mixed ^ mixed >> 32
        });
        // Zero stands for an empty place.
        let fingerprint = (hash >> 32) as u32 | 1;
        let sets = self.0.len();
        (&mut self.0[hash as usize % sets], Entry { fingerprint, time: (time.0 >> TICK_BITS) as u32 })
    }
}

/// Puts an entry in front; the oldest one goes.
fn remember(ways: &mut [Entry; WAYS], entry: Entry) {
    ways.copy_within(..WAYS - 1, 1);
    ways[0] = entry;
}
