//! Points in time and durations in nanoseconds.

use serde::{Deserialize, Serialize};
use std::fmt;
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
}
