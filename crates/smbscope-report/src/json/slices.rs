//! The slices of the JSON report.

use crate::slices::text;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use smbscope_stats::Figures;
use smbscope_stats::{Field, Part, Slice};

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Slices<'a> {
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::dimensions"))]
    by: Vec<&'static str>,
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::sorts"))]
    sort: &'static str,
    /// A key without an entry waited no longer than this in all; 0 as long as every key has one, which it has up to
    /// 20,000 keys.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    missed_at_most_ns: i64,
    entries: Vec<SliceEntry<'a>>,
    /// What was evicted because there were too many keys, added up.
    other: Option<SliceFigures>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SliceEntry<'a> {
    /// What the commands have in common; null is unknown.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::slice_key"))]
    key: Key<'a>,
    /// Response time of this key that other holds: at most this.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    missed_at_most_ns: i64,
    #[serde(flatten)]
    figures: SliceFigures,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SliceFigures {
    /// Commands.
    count: u64,
    /// Commands that entered the response time: complete ones of the headline groups.
    timed: u64,
    /// Error responses.
    errors: u64,
    bytes_read: u64,
    bytes_written: u64,
    /// What was waited in all.
    response_time_sum_ns: i64,
    /// Percentiles are exact up to 256 values and within 1.6% above.
    response_time: Figures,
    /// The same of the time from the last packet of the request to the first of the response.
    service_time: Figures,
}

/// An object with a value for each field.
struct Key<'a>(&'a [Field], &'a [Part]);

impl Serialize for Key<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Key(fields, parts) = self;
        let mut key = serializer.serialize_map(Some(fields.len()))?;
        for (field, part) in fields.iter().zip(*parts) {
            match part {
                Part::Unknown => key.serialize_entry(field.name(), &None::<()>)?,
                Part::Flow(flow) => key.serialize_entry(field.name(), flow)?,
                Part::Size(least) => key.serialize_entry(field.name(), least)?,
                part => key.serialize_entry(field.name(), &text(part))?,
            }
        }
        key.end()
    }
}

impl<'a> Slices<'a> {
    pub(super) fn of(slices: &'a smbscope_stats::Slices) -> Slices<'a> {
        let entry = |slice: &'a Slice| SliceEntry {
            key: Key(&slices.fields, &slice.key),
            missed_at_most_ns: nanos(slice.missed_at_most_ns),
            figures: SliceFigures::of(slice),
        };
        Slices {
            by: slices.by.iter().map(|dimension| dimension.name()).collect(),
            sort: slices.sort.name(),
            missed_at_most_ns: nanos(slices.missed_at_most_ns),
            entries: slices.entries.iter().map(entry).collect(),
            other: slices.other.as_ref().map(SliceFigures::of),
        }
    }
}

impl SliceFigures {
    fn of(Slice { figures, service_time, .. }: &Slice) -> SliceFigures {
        SliceFigures {
            count: figures.count,
            timed: figures.timed,
            errors: figures.errors,
            bytes_read: figures.bytes_read,
            bytes_written: figures.bytes_written,
            response_time_sum_ns: nanos(figures.response_time.sum_ns),
            response_time: figures.response_time,
            service_time: *service_time,
        }
    }
}

fn nanos(sum: i128) -> i64 {
    sum.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}
