//! The slices of the JSON report and of a load point, read back by the same types.

use crate::slices::text;
use serde::de::{Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smbscope_model::Nanos;
use smbscope_stats::{DurationStatistics, Field, SliceFieldValue, SliceStatistics};
use std::fmt;

/// Slices of a load point that are listed; further ones are added up in `other`.
const SLICES_LISTED: usize = 1_000;

/// The commands divided by --by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SliceListing {
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::dimensions"))]
    pub(crate) by: Vec<String>,
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::sorts"))]
    pub(crate) sort: String,
    /// A key without an entry waited no longer than this in all; 0 as long as every key has one, which it has up to
    /// 20,000 keys.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub(crate) missed_at_most_ns: i64,
    /// In the order of `sort`; of a load point at most 1,000.
    pub(crate) entries: Vec<SliceEntry>,
    /// What was evicted because there were too many keys, and what is not listed, added up.
    pub(crate) other: Option<SliceFigures>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SliceEntry {
    /// What the commands have in common; null is unknown.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::slice_key"))]
    pub(crate) key: SliceEntryKey,
    /// Response time of this key that other holds: at most this.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub(crate) missed_at_most_ns: i64,
    #[serde(flatten)]
    pub(crate) figures: SliceFigures,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SliceFigures {
    /// Commands.
    pub(crate) count: u64,
    /// Commands that entered the response time: complete ones of the headline groups.
    pub(crate) timed: u64,
    /// Error responses.
    pub(crate) errors: u64,
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
    /// What was waited in all.
    pub(crate) response_time_sum_ns: i64,
    /// Percentiles are exact up to 256 values and within 1.6% above; null where several slices were added up.
    pub(crate) response_time: DurationStatistics,
    /// The same of the time from the last packet of the request to the first of the response.
    pub(crate) service_time: DurationStatistics,
}

/// An object with a value for each field.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SliceEntryKey(pub(crate) Vec<(Field, SliceEntryValue)>);

/// What the commands of a slice have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum SliceEntryValue {
    Number(u64),
    Text(String),
    /// The capture does not tell.
    Unknown,
}

impl SliceEntryValue {
    fn from_part(part: &SliceFieldValue) -> SliceEntryValue {
        match part {
            SliceFieldValue::Unknown => SliceEntryValue::Unknown,
            SliceFieldValue::Flow(flow) => SliceEntryValue::Number(flow.0),
            SliceFieldValue::Size(least) => SliceEntryValue::Number(*least),
            part => SliceEntryValue::Text(text(part)),
        }
    }
}

impl Serialize for SliceEntryKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut key = serializer.serialize_map(Some(self.0.len()))?;
        self.0.iter().try_for_each(|(field, value)| key.serialize_entry(field.name(), value))?;
        key.end()
    }
}

impl<'de> Deserialize<'de> for SliceEntryKey {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<SliceEntryKey, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = SliceEntryKey;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the fields of a slice")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SliceEntryKey, A::Error> {
                let mut key = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, SliceEntryValue>()? {
                    let field = Field::named(&name);
                    key.push((field.ok_or_else(|| A::Error::custom(format!("{name} is no field")))?, value));
                }
                Ok(SliceEntryKey(key))
            }
        }
        from.deserialize_map(Fields)
    }
}

impl SliceListing {
    pub(crate) fn new(slices: &smbscope_stats::DimensionBreakdown) -> SliceListing {
        let entry = |slice: &SliceStatistics| SliceEntry {
            key: SliceEntryKey(
                slices.fields.iter().copied().zip(slice.key.iter().map(SliceEntryValue::from_part)).collect(),
            ),
            missed_at_most_ns: Nanos::saturating(slice.missed_at_most_ns).0,
            figures: SliceFigures::new(slice),
        };
        SliceListing {
            by: slices.by.iter().map(|dimension| dimension.name().to_owned()).collect(),
            sort: slices.sort.name().to_owned(),
            missed_at_most_ns: Nanos::saturating(slices.missed_at_most_ns).0,
            entries: slices.entries.iter().map(entry).collect(),
            other: slices.other.as_ref().map(SliceFigures::new),
        }
    }

    /// The first of them, and the others added up: every load point has slices of its own.
    pub(crate) fn listed(mut self) -> SliceListing {
        let rest = self.entries.split_off(self.entries.len().min(SLICES_LISTED));
        if !rest.is_empty() {
            let rest = rest.iter().map(|entry| &entry.figures).chain(&self.other);
            self.other = Some(SliceFigures::sum(rest));
        }
        self
    }
}

impl SliceFigures {
    fn new(SliceStatistics { figures, service_time, .. }: &SliceStatistics) -> SliceFigures {
        SliceFigures {
            count: figures.count,
            timed: figures.timed,
            errors: figures.errors,
            bytes_read: figures.bytes_read,
            bytes_written: figures.bytes_written,
            response_time_sum_ns: Nanos::saturating(figures.response_time.sum_ns).0,
            response_time: figures.response_time,
            service_time: *service_time,
        }
    }

    /// What several slices did together; a percentile of them all does not follow from theirs.
    pub(crate) fn sum<'s>(slices: impl IntoIterator<Item = &'s SliceFigures>) -> SliceFigures {
        let mut all = slices.into_iter().fold(SliceFigures::default(), |mut all, one| {
            all.count = all.count.saturating_add(one.count);
            all.timed = all.timed.saturating_add(one.timed);
            all.errors = all.errors.saturating_add(one.errors);
            all.bytes_read = all.bytes_read.saturating_add(one.bytes_read);
            all.bytes_written = all.bytes_written.saturating_add(one.bytes_written);
            all.response_time_sum_ns = all.response_time_sum_ns.saturating_add(one.response_time_sum_ns);
            all.response_time.max = all.response_time.max.max(one.response_time.max);
            all
        });
        let mean =
            i64::try_from(all.timed).ok().filter(|timed| *timed > 0).map(|timed| all.response_time_sum_ns / timed);
        all.response_time =
            DurationStatistics { count: all.timed, mean: mean.map(smbscope_model::Nanos), ..all.response_time };
        all
    }
}
