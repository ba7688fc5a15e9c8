//! Activity of clients and servers over time: who filled the link, when response times rose, when a server was silent.

use serde::{Deserialize, Deserializer, Serialize};
use smbscope_model::{Exchange, Nanos, Timestamp};
use smbscope_stats::bins::{BinTable, BinValue};

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
