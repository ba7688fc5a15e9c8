//! Points in time and durations, both in nanoseconds.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Sub;
use std::time::Duration;

/// A point in time as a capture gives it: nanoseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

/// A duration in nanoseconds. Negative only where a capture's clock stepped backwards.
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
    /// A sum of many durations; one that does not fit is the longest there is.
    pub fn saturating(ns: i128) -> Nanos {
        Nanos(ns.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
    }

    /// The duration in seconds, for display and for statistics that need a real number.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl fmt::Display for Nanos {
    /// Three significant digits and the unit that reads best: `842 ns`, `1.43 ms`, `12.0 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let magnitude = self.0.unsigned_abs();
        // What would be rounded to 1000 of a unit is 1.00 of the next.
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

/// How the published schemas describe times: where they stand, without a type of their own.
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
    fn what_rounds_to_a_thousand_has_the_next_unit() {
        let shown: Vec<String> = [999_499, 999_500, 999_499_999, 999_500_000].map(|n| Nanos(n).to_string()).into();
        assert_eq!(shown, ["999 µs", "1.00 ms", "999 ms", "1.00 s"]);
    }
}
