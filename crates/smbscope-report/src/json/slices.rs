//! The slices of the JSON report.

use crate::slices::text;
use crate::times::Times;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use smbscope_stats::{Field, Part, Slice};

#[derive(Serialize)]
pub(super) struct Slices<'a> {
    by: Vec<&'static str>,
    sort: &'static str,
    missed_at_most_ns: i64,
    entries: Vec<Entry<'a>>,
    other: Option<Figures>,
}

#[derive(Serialize)]
struct Entry<'a> {
    key: Key<'a>,
    missed_at_most_ns: i64,
    #[serde(flatten)]
    figures: Figures,
}

#[derive(Serialize)]
struct Figures {
    count: u64,
    timed: u64,
    errors: u64,
    bytes_read: u64,
    bytes_written: u64,
    response_time_sum_ns: i64,
    response_time: Times,
    service_time: Times,
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
        let entry = |slice: &'a Slice| Entry {
            key: Key(&slices.fields, &slice.key),
            missed_at_most_ns: nanos(slice.missed_at_most_ns),
            figures: Figures::of(slice),
        };
        Slices {
            by: slices.by.iter().map(|dimension| dimension.name()).collect(),
            sort: slices.sort.name(),
            missed_at_most_ns: nanos(slices.missed_at_most_ns),
            entries: slices.entries.iter().map(entry).collect(),
            other: slices.other.as_ref().map(Figures::of),
        }
    }
}

impl Figures {
    fn of(Slice { figures, service_time, .. }: &Slice) -> Figures {
        Figures {
            count: figures.count,
            timed: figures.timed,
            errors: figures.errors,
            bytes_read: figures.bytes_read,
            bytes_written: figures.bytes_written,
            response_time_sum_ns: nanos(figures.response_time.sum_ns),
            response_time: figures.response_time.into(),
            service_time: (*service_time).into(),
        }
    }
}

fn nanos(sum: i128) -> i64 {
    sum.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}
