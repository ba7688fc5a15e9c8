//! Slices in the JSON report and in load points.

use serde::de::{Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smbscope_model::Nanos;
use smbscope_stats::{DurationStatistics, Field, SliceFieldValue, SliceStatistics};
use std::fmt;

/// Most slices listed per load point. The rest is summed up in `other`.
const SLICES_LISTED: usize = 1_000;

/// Commands grouped by --by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SliceListing {
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::dimensions"))]
    pub(crate) by: Vec<String>,
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::sorts"))]
    pub(crate) sort: String,
    /// Upper bound of the total wait of a key without an entry. 0 while all keys have an entry, which holds up to
    /// 20,000 keys.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub(crate) missed_at_most_ns: i64,
    /// Slices in the order of `sort`. At most 1,000 per load point.
    pub(crate) entries: Vec<SliceEntry>,
    /// Sum of the slices that were evicted because of too many keys, or are not listed.
    pub(crate) other: Option<SliceFigures>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SliceEntry {
    /// Values of the dimensions. Null is unknown.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::slice_key"))]
    pub(crate) key: SliceEntryKey,
    /// Upper bound of this key's response time that is counted in `other`.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub(crate) missed_at_most_ns: i64,
    #[serde(flatten)]
    pub(crate) figures: SliceFigures,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SliceFigures {
    /// Number of commands.
    pub(crate) count: u64,
    /// Commands with a response time: complete ones of the headline groups.
    pub(crate) timed: u64,
    /// Error responses.
    pub(crate) errors: u64,
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
    /// Total response time.
    pub(crate) response_time_sum_ns: i64,
    /// Response times. Percentiles are exact up to 256 values and within 1.6% above. Null for a sum of several slices.
    pub(crate) response_time: DurationStatistics,
    /// Time from the last packet of the request to the first of the response, with the same precision.
    pub(crate) service_time: DurationStatistics,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SliceEntryKey(pub(crate) Vec<(Field, SliceEntryValue)>);

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum SliceEntryValue {
    Number(u64),
    Text(String),
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
                    key.push((field.ok_or_else(|| A::Error::custom(format!("{name} is not a field")))?, value));
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

    /// Keeps the first slices and sums up the rest. Limits the size of load points, each of which has slices of its
    /// own.
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

    /// Sums up slices. Percentiles can't be combined and stay None.
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

/// Formats a value for programs. Unknown is empty.
fn text(part: &SliceFieldValue) -> String {
    match part {
        SliceFieldValue::Address(address) => address.to_string(),
        SliceFieldValue::Socket(address) => address.to_string(),
        SliceFieldValue::Text(text) => text.to_string(),
        SliceFieldValue::Command(command) => command.to_string(),
        SliceFieldValue::Group(group) => group.to_string(),
        SliceFieldValue::Dialect(dialect) => dialect.to_string(),
        SliceFieldValue::Flow(flow) => flow.0.to_string(),
        SliceFieldValue::Ends(client, server) => format!("{client} > {server}"),
        SliceFieldValue::Status(status) => status.to_string(),
        SliceFieldValue::Size(least) => least.to_string(),
        SliceFieldValue::Unknown => String::new(),
    }
}
