//! Points in time, durations in nanoseconds, and the captures, packets and flows that times belong to.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::NonZeroU64;
use std::ops::Sub;
use std::time::Duration;

/// Capture timestamp in nanoseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

/// Duration in nanoseconds. Negative only if a capture's clock stepped back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub i64);

impl From<Duration> for Nanos {
    fn from(duration: Duration) -> Nanos {
        let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
        Nanos(seconds.saturating_mul(1_000_000_000).saturating_add(duration.subsec_nanos().into()))
    }
}

impl Sub for Timestamp {
    type Output = Nanos;

    fn sub(self, earlier: Timestamp) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Sub for Nanos {
    type Output = Nanos;

    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

impl Nanos {
    pub fn saturating(ns: i128) -> Nanos {
        Nanos(ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
    }

    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl fmt::Display for Nanos {
    /// Formats with three significant digits and the best unit: `842 ns`, `1.43 ms`, `12.0 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let magnitude = self.0.unsigned_abs();
        // A value that would round to 1000 gets the next unit: 1.00.
        let (divisor, unit) = match magnitude {
            0..1_000 => return write!(f, "{} ns", self.0),
            1_000..999_500 => (1e3, "µs"),
            999_500..999_500_000 => (1e6, "ms"),
            _ => (1e9, "s"),
        };
        let value = self.0 as f64 / divisor;
        let digits = match value.abs() {
            v if v < 9.995 => 2,
            v if v < 99.95 => 1,
            _ => 0,
        };
        write!(f, "{value:.digits$} {unit}")
    }
}

/// Describes times inline in the published schemas, without a definition of their own.
#[cfg(feature = "schema")]
mod schema {
    use super::{Nanos, Timestamp};
    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
    use std::borrow::Cow;

    macro_rules! integer {
        ($type:ident, $format:literal) => {
            impl JsonSchema for $type {
                fn schema_name() -> Cow<'static, str> {
                    stringify!($type).into()
                }

                fn inline_schema() -> bool {
                    true
                }

                fn json_schema(_: &mut SchemaGenerator) -> Schema {
                    json_schema!({ "type": "integer", "format": $format })
                }
            }
        };
    }

    integer!(Timestamp, "timestamp");
    integer!(Nanos, "nanoseconds");
}

/// Index of a capture file within one analysis, as in the report's `captures`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CaptureId(pub u16);

/// Packet, identified as in Wireshark by its number in its own file, from 1.
///
/// Every exchange holds several, so capture and number share one non-zero word, and `Option<PacketRef>` is no larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "PacketParts", into = "PacketParts")]
pub struct PacketRef(NonZeroU64);

/// Width of the number plus one. The record headers of a file with more packets would fill petabytes.
const NUMBER_BITS: u32 = 48;
const NUMBER_MASK: u64 = (1 << NUMBER_BITS) - 1;

impl PacketRef {
    /// Creates a reference. Numbers from 2⁴⁸ − 2 on are clamped.
    #[inline]
    pub fn new(capture: CaptureId, number: u64) -> PacketRef {
        let number = NonZeroU64::MIN.saturating_add(number.min(NUMBER_MASK - 1));
        PacketRef(number | u64::from(capture.0) << NUMBER_BITS)
    }

    #[inline]
    pub fn capture(self) -> CaptureId {
        CaptureId((self.0.get() >> NUMBER_BITS) as u16)
    }

    #[inline]
    pub fn number(self) -> u64 {
        (self.0.get() & NUMBER_MASK) - 1
    }
}

impl Default for PacketRef {
    fn default() -> PacketRef {
        PacketRef::new(CaptureId(0), 0)
    }
}

#[derive(Serialize, Deserialize)]
struct PacketParts {
    capture: CaptureId,
    number: u64,
}

impl From<PacketParts> for PacketRef {
    fn from(parts: PacketParts) -> PacketRef {
        PacketRef::new(parts.capture, parts.number)
    }
}

impl From<PacketRef> for PacketParts {
    fn from(packet: PacketRef) -> PacketParts {
        PacketParts { capture: packet.capture(), number: packet.number() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Stamp {
    pub time: Timestamp,
    pub packet: PacketRef,
}

/// Two consecutive packets between which the capture's clock stepped or the capture was paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockStep {
    pub before: Stamp,
    pub after: Stamp,
}

impl ClockStep {
    /// Clock steps listed; later ones are counted.
    pub const MAX_CLOCK_STEPS: usize = 16;

    /// Returns the size of the step; negative if the clock went back.
    pub fn by(&self) -> Nanos {
        self.after.time - self.before.time
    }

    /// Returns true if the interval between two packets of this capture spans the step.
    pub fn lies_between(&self, start: Stamp, end: Stamp) -> bool {
        let capture = self.after.packet.capture();
        let is_here = start.packet.capture() == capture && end.packet.capture() == capture;
        is_here
            && start.packet.number() <= self.before.packet.number()
            && end.packet.number() >= self.after.packet.number()
    }
}

/// TCP connection, by the number of its first packet. Packets of all captures are numbered from 1 in time order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FlowId(pub u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FlowDirection {
    Forward,
    Backward,
}

impl FlowDirection {
    pub const BOTH: [FlowDirection; 2] = [FlowDirection::Forward, FlowDirection::Backward];

    pub fn reverse(self) -> FlowDirection {
        match self {
            FlowDirection::Forward => FlowDirection::Backward,
            FlowDirection::Backward => FlowDirection::Forward,
        }
    }

    pub fn index(self) -> usize {
        match self {
            FlowDirection::Forward => 0,
            FlowDirection::Backward => 1,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Side that sends NEGOTIATE.
    Client,
    Server,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_print_three_digits_and_a_unit() {
        let shown: Vec<String> = [0, 842, 1_430, 14_300, 999_400, 1_430_000, 12_000_000_000, 99_960_000_000]
            .map(|n| Nanos(n).to_string())
            .into();
        assert_eq!(shown, ["0 ns", "842 ns", "1.43 µs", "14.3 µs", "999 µs", "1.43 ms", "12.0 s", "100 s"]);
    }

    #[test]
    fn values_that_round_to_a_thousand_get_the_next_unit() {
        let shown: Vec<String> = [999_499, 999_500, 999_499_999, 999_500_000].map(|n| Nanos(n).to_string()).into();
        assert_eq!(shown, ["999 µs", "1.00 ms", "999 ms", "1.00 s"]);
    }

    #[test]
    fn packets_keep_their_captures_and_numbers_and_come_in_their_order() {
        let numbers = [0, 1, u64::from(u32::MAX) + 7, NUMBER_MASK - 1];
        let packets: Vec<PacketRef> =
            [0, 1, u16::MAX].iter().flat_map(|at| numbers.map(|n| PacketRef::new(CaptureId(*at), n))).collect();
        assert!(packets.is_sorted_by(|one, other| one < other));
        let parts: Vec<(u16, u64)> = packets.iter().map(|packet| (packet.capture().0, packet.number())).collect();
        assert!([0, 1, u16::MAX].iter().flat_map(|at| numbers.map(|n| (*at, n))).eq(parts));
        assert_eq!(PacketRef::new(CaptureId(2), u64::MAX), PacketRef::new(CaptureId(2), NUMBER_MASK - 1));
        assert_eq!((size_of::<Option<PacketRef>>(), size_of::<Option<Stamp>>()), (8, 16));
    }

    #[test]
    fn a_packet_is_serialized_as_its_capture_and_its_number() {
        let packet = PacketRef::new(CaptureId(3), 17);
        let bytes = postcard::to_stdvec(&packet).expect("it fits");
        assert_eq!((bytes.as_slice(), postcard::from_bytes(&bytes)), ([3, 17].as_slice(), Ok(packet)));
    }
}
