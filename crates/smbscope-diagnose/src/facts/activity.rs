//! Activity of clients and servers over time: who filled the link, when response times rose, when a server was silent;
//! and write streams that start fast and then slow down, as when a cache fills up or a disk throttles.
//!
//! A stream is a series of writes of a connection to one share without a pause. It is divided into fewer than
//! [`SLOTS_MAX`] slots of equal size in bytes. When they run out, pairs are merged.

use serde::{Deserialize, Deserializer, Serialize};
use smbscope_model::{Exchange, Nanos, Stamp, TimeKind, Timestamp};
use smbscope_stats::bins::{BinTable, BinValue};
use std::sync::Arc;

const PAIR_WIDTH: Nanos = Nanos(50_000_000);
const PAIR_BINS: usize = 256;
const BUSY_WIDTH: Nanos = Nanos(1_000_000);
const BUSY_BINS: usize = 1_024;
const SERVER_WIDTH: Nanos = Nanos(125_000_000);
const SERVER_BINS: usize = 2_048;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Traffic {
    pub(crate) down: u64,
    pub(crate) up: u64,
    /// Number of answered commands without data, and the sum of their service times in ns.
    pub(crate) light: u32,
    pub(crate) light_service: i64,
}

impl BinValue for Traffic {
    fn add(&mut self, other: &Traffic) {
        self.down += other.down;
        self.up += other.up;
        self.light = self.light.saturating_add(other.light);
        self.light_service = self.light_service.saturating_add(other.light_service);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct OutstandingTime(pub(crate) i64);

impl BinValue for OutstandingTime {
    fn add(&mut self, other: &OutstandingTime) {
        self.0 = self.0.saturating_add(other.0);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct ResponseCount(pub(crate) u64);

impl BinValue for ResponseCount {
    fn add(&mut self, other: &ResponseCount) {
        self.0 += other.0;
    }
}

macro_rules! over_time {
    ($name:ident, $bin:ty, $width:expr, $bins:expr, $doc:literal) => {
        #[doc = $doc]
        #[derive(Debug, Clone, Serialize)]
        #[serde(transparent)]
        pub(crate) struct $name(pub(crate) BinTable<$bin>);

        impl Default for $name {
            fn default() -> $name {
                $name(BinTable::new($width, $bins))
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<$name, D::Error> {
                BinTable::deserialize(from).map($name)
            }
        }

        impl $name {
            pub(crate) fn merge(&mut self, other: &$name) {
                self.0.merge(&other.0);
            }
        }
    };
}

over_time!(TrafficOverTime, Traffic, PAIR_WIDTH, PAIR_BINS, "Traffic of a client on a server over time.");
over_time!(
    BusyOverTime,
    OutstandingTime,
    BUSY_WIDTH,
    BUSY_BINS,
    "Time with a command of a client outstanding, over time."
);
over_time!(ResponsesOverTime, ResponseCount, SERVER_WIDTH, SERVER_BINS, "Responses of a server over time.");

impl TrafficOverTime {
    #[inline]
    pub(crate) fn record(&mut self, exchange: &Exchange, light_service: Option<Nanos>) {
        let (request, response) = (&exchange.request, &exchange.response);
        if let (Some(first), Some(last)) = (request.first, request.last) {
            self.carry(first.time, last.time, request.bytes, |bin, bytes| bin.up += bytes);
        }
        if let (Some(first), Some(last)) = (response.first, response.last) {
            self.carry(first.time, last.time, response.bytes, |bin, bytes| bin.down += bytes);
            if let Some(service) = light_service {
                let bin = self.0.at(first.time);
                bin.light = bin.light.saturating_add(1);
                bin.light_service = bin.light_service.saturating_add(service.0);
            }
        }
    }

    fn carry(&mut self, from: Timestamp, to: Timestamp, bytes: u64, add: impl Fn(&mut Traffic, u64)) {
        let length = (to - from).0;
        if length <= 0 {
            return add(self.0.at(to), bytes);
        }
        self.0.spread(from.0, to.0, |bin, part| {
            add(bin, (u128::from(bytes) * part as u128 / length as u128) as u64);
        });
    }
}

impl BusyOverTime {
    /// Returns the time with at least one command of the client outstanding. Exact while connections do not overlap
    /// within a bin, except that pauses shorter than a bin are overestimated by up to one bin each.
    pub(crate) fn union(&self) -> Nanos {
        let width = self.0.width().0;
        Nanos(self.0.finish().iter().map(|(_, busy)| busy.0.min(width)).fold(0, i64::saturating_add))
    }
}

/// Slots of a write without pause; then merged.
pub(crate) const SLOTS_MAX: usize = 32;
const SLOT_BYTES: u64 = 1 << 20;
/// A pause of this length ends the stream, as for episodes.
const PAUSE: Nanos = Nanos(2_000_000_000);
/// Minimum number of slots per phase: a single slow moment is not a phase.
const PHASE_SLOTS: usize = 4;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct WriteSlot {
    bytes: u64,
    writes: u64,
    response_time: i64,
    end: Timestamp,
}

impl WriteSlot {
    fn add(&mut self, later: &WriteSlot) {
        self.bytes = self.bytes.saturating_add(later.bytes);
        self.writes += later.writes;
        self.response_time = self.response_time.saturating_add(later.response_time);
        self.end = self.end.max(later.end);
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct WritePhase {
    pub(crate) bytes: u64,
    pub(crate) elapsed: Nanos,
    pub(crate) write_time: Nanos,
}

impl WritePhase {
    fn from_slots(slots: &[WriteSlot], start: Timestamp) -> WritePhase {
        let mut sum = WriteSlot::default();
        slots.iter().for_each(|slot| sum.add(slot));
        let elapsed = Nanos((sum.end - start).0.max(1));
        let write_time = Nanos(sum.response_time / i64::try_from(sum.writes.max(1)).unwrap_or(i64::MAX));
        WritePhase { bytes: sum.bytes, elapsed, write_time }
    }

    pub(crate) fn rate(&self) -> f64 {
        self.bytes as f64 * 1e9 / self.elapsed.0.max(1) as f64
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Slowdown {
    pub(crate) first: Stamp,
    pub(crate) path: Option<Arc<str>>,
    pub(crate) share: Option<Arc<str>>,
    pub(crate) fast: WritePhase,
    pub(crate) slow: WritePhase,
}

impl Slowdown {
    pub(crate) fn lost(&self) -> Nanos {
        let expected = self.slow.bytes as f64 * 1e9 / self.fast.rate().max(1.0);
        Nanos((self.slow.elapsed.0 as f64 - expected).max(0.0) as i64)
    }

    pub(crate) fn throughput_ratio(&self) -> f64 {
        self.fast.rate() / self.slow.rate().max(1.0)
    }

    pub(crate) fn time_ratio(&self) -> f64 {
        self.slow.write_time.0 as f64 / self.fast.write_time.0.max(1) as f64
    }

    pub(crate) fn worse(one: Option<Slowdown>, other: Option<Slowdown>) -> Option<Slowdown> {
        let rank = |slowdown: &Slowdown| {
            let first = (slowdown.first.time, slowdown.first.packet);
            (slowdown.lost(), std::cmp::Reverse(first))
        };
        match (one, other) {
            (Some(one), Some(other)) => Some(if rank(&one) >= rank(&other) { one } else { other }),
            (one, other) => one.or(other),
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct WriteStream {
    first: Stamp,
    path: Option<Arc<str>>,
    share: Option<Arc<str>>,
    slot_bytes: u64,
    slots: Vec<WriteSlot>,
    filling: WriteSlot,
}

impl WriteStream {
    pub(crate) fn begin(write: &Exchange) -> Option<WriteStream> {
        let mut stream = WriteStream {
            first: write.request.first?,
            path: write.path.clone(),
            share: write.share.clone(),
            slot_bytes: SLOT_BYTES,
            slots: Vec::with_capacity(SLOTS_MAX),
            filling: WriteSlot::default(),
        };
        stream.add(write);
        Some(stream)
    }

    pub(crate) fn takes(&mut self, write: &Exchange) -> bool {
        let Some(start) = write.request.first else { return true };
        let last = self.slots.last().map_or(self.first.time, |slot| slot.end).max(self.filling.end);
        if start.time - last > PAUSE || write.share != self.share {
            return false;
        }
        self.add(write);
        true
    }

    fn add(&mut self, write: &Exchange) {
        let (Some(bytes), Some(time), Some(end)) =
            (write.length, write.time(TimeKind::ResponseTime), write.response.last)
        else {
            return;
        };
        self.filling.add(&WriteSlot { bytes, writes: 1, response_time: time.0, end: end.time });
        if self.filling.bytes < self.slot_bytes {
            return;
        }
        self.slots.push(std::mem::take(&mut self.filling));
        if self.slots.len() == SLOTS_MAX {
            self.slot_bytes = self.slot_bytes.saturating_mul(2);
            for at in 0..SLOTS_MAX / 2 {
                let (mut slot, later) = (self.slots[2 * at], self.slots[2 * at + 1]);
                slot.add(&later);
                self.slots[at] = slot;
            }
            self.slots.truncate(SLOTS_MAX / 2);
        }
    }

    /// Returns the split with the largest drop in throughput, or `None` if the stream is too short for two phases.
    pub(crate) fn slowdown(&self) -> Option<Slowdown> {
        let last = self.slots.len().checked_sub(PHASE_SLOTS).filter(|last| *last >= PHASE_SLOTS)?;
        let divided = (PHASE_SLOTS..=last).map(|at| {
            let (fast, slow) = self.slots.split_at(at);
            let turn = fast.iter().map(|slot| slot.end).max().unwrap_or(self.first.time);
            Slowdown {
                first: self.first,
                path: self.path.clone(),
                share: self.share.clone(),
                fast: WritePhase::from_slots(fast, self.first.time),
                slow: WritePhase::from_slots(slow, turn),
            }
        });
        divided.max_by(|one, other| one.throughput_ratio().total_cmp(&other.throughput_ratio()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_testkit::exchange::read;

    const MS: i64 = 1_000_000;

    fn stream(times: impl IntoIterator<Item = i64>) -> WriteStream {
        let mut now = 0;
        let mut stream: Option<WriteStream> = None;
        for time in times {
            let mut write = read(now * MS, time * MS);
            write.length = Some(1 << 20);
            now += time;
            match &mut stream {
                Some(stream) => assert!(stream.takes(&write)),
                none => *none = WriteStream::begin(&write),
            }
        }
        stream.expect("there is a write")
    }

    #[test]
    fn the_moment_at_which_writes_become_slow_divides_the_stream() {
        // 12 writes of 10 ms, then 12 of 50 ms: 12 MiB in 0.12 s and 12 MiB in 0.6 s, where 0.12 s would do.
        let found = stream([10; 12].into_iter().chain([50; 12])).slowdown().expect("24 slots have two phases");
        let phase = |elapsed, write_time| WritePhase {
            bytes: 12 << 20,
            elapsed: Nanos(elapsed * MS),
            write_time: Nanos(write_time * MS),
        };
        assert_eq!((found.fast, found.slow), (phase(120, 10), phase(600, 50)));
        assert!((found.throughput_ratio() - 5.0).abs() < 1e-9 && (found.time_ratio() - 5.0).abs() < 1e-9);
        assert!((found.lost().0 - 480 * MS).abs() <= 1, "{:?}", found.lost());
    }

    #[test]
    fn a_stream_of_any_length_has_a_bound() {
        let long = stream([10; 500].into_iter().chain([50; 500]));
        assert!(long.slots.len() < SLOTS_MAX);
        let found = long.slowdown().expect("it has two phases");
        // Slots hold 32 MiB, which limits the accuracy of the turning point.
        assert!((468..=532).contains(&(found.fast.bytes >> 20)), "{found:?}");
        assert!(found.throughput_ratio() > 4.0, "{found:?}");
    }

    #[test]
    fn a_pause_and_another_share_begin_another_stream() {
        let mut known = stream([10; 8]);
        let mut write = read(80 * MS, MS);
        write.share = Some("other".into());
        assert!(!known.takes(&write));
        assert!(known.takes(&read(2_080 * MS, MS)));
        assert!(!known.takes(&read(4_082 * MS, MS)), "2.001 s later");
        assert_eq!(stream([10; 7]).slowdown(), None, "too short for two phases");
    }
}
