//! Exchanges grouped by fields: `--by client,share`.
//!
//! As long as there are no more than [`SLICES_MAX`] different keys, every slice is exact. Beyond that, those that waited
//! longest are kept: see `table` for how, and for what is guaranteed. Whatever is evicted is added up in one slice, so
//! that the slices always add up to all commands.
//!
//! The order of the exchanges decides which slices are evicted. So the slicer of a part of a capture sees all of that, in one
//! order, and the parts are merged in the order of their numbers ([`Parts`]); what the workers of a load client counted merges
//! with the same guarantees.

mod dimension;
mod parts;
mod table;

#[cfg(test)]
mod tests;

pub use dimension::{Dimension, Field, SharedSubstring, SliceFieldValue};
pub(crate) use parts::PartSlicers;
pub use table::{SLICES_KEPT, SLICES_MAX};

use crate::derived;
use crate::entity::EntityStatistics;
use crate::summary::DurationStatistics;
use smbscope_model::{Exchange, named};
use std::cmp::Reverse;
use table::SlicerTable;

/// Divides exchanges.
#[derive(Debug, Clone)]
pub struct Slicer {
    by: Vec<Dimension>,
    fields: Vec<Field>,
    table: SlicerTable,
    /// The key of the exchange at hand.
    key: Vec<SliceFieldValue>,
}

impl Slicer {
    /// Slices by these dimensions together.
    pub fn new(by: &[Dimension]) -> Slicer {
        Slicer::with_table(by, SlicerTable::new(SLICES_MAX, SLICES_KEPT))
    }

    fn with_table(by: &[Dimension], table: SlicerTable) -> Slicer {
        let mut fields: Vec<Field> = Vec::new();
        for field in by.iter().flat_map(|dimension| dimension.fields()) {
            if !fields.contains(field) {
                fields.push(*field);
            }
        }
        Slicer { by: by.to_vec(), fields, table, key: Vec::new() }
    }

    /// Counts an exchange in its slice.
    pub fn record(&mut self, exchange: &Exchange) {
        if derived::is_apart(exchange) {
            return;
        }
        self.key.clear();
        self.key.extend(self.fields.iter().map(|field| field.part(exchange)));
        self.table.record(&self.key, exchange);
    }

    /// Adds what another one counted, by the same dimensions.
    pub fn merge(&mut self, other: &Slicer) {
        self.table.merge(&other.table);
    }

    /// The finished slices, in this order.
    pub fn finish(&self, sort: SliceSortKey) -> DimensionBreakdown {
        let mut entries = self.table.finish();
        // What compares equal comes in the order of its keys.
        match sort {
            SliceSortKey::Key => entries.sort_by(|a, b| a.key.cmp(&b.key)),
            _ => entries
                .sort_by(|a, b| Reverse(sort.weight(a)).cmp(&Reverse(sort.weight(b))).then_with(|| a.key.cmp(&b.key))),
        }
        DimensionBreakdown {
            by: self.by.clone(),
            fields: self.fields.clone(),
            sort,
            entries,
            other: self.table.other(),
            missed_at_most_ns: self.table.floor(),
        }
    }
}

/// The finished slices.
#[derive(Debug, Clone, PartialEq)]
pub struct DimensionBreakdown {
    /// What they are divided by.
    pub by: Vec<Dimension>,
    /// What their keys consist of.
    pub fields: Vec<Field>,
    /// Their order.
    pub sort: SliceSortKey,
    /// Every slice that was kept.
    pub entries: Vec<SliceStatistics>,
    /// What was evicted, added up; its key is empty.
    pub other: Option<SliceStatistics>,
    /// A key without a slice of its own waited no longer than this in all: 0 as long as every key has one, and never
    /// more than a [`SLICES_KEPT`]th of the response time of all slices.
    pub missed_at_most_ns: i128,
}

/// One slice.
#[derive(Debug, Clone, PartialEq)]
pub struct SliceStatistics {
    /// What its exchanges have in common, by [`Slices::fields`].
    pub key: Vec<SliceFieldValue>,
    /// Counts, bytes and response time.
    pub figures: EntityStatistics,
    /// Service time.
    pub service_time: DurationStatistics,
    /// Response time of this key that [`Slices::other`] holds, because it was evicted before it came back: at most
    /// this. 0 where the slice has all of it.
    pub missed_at_most_ns: i128,
}

named! {
    /// What comes first.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum SliceSortKey {
        /// The most response time in total.
        #[default]
        ResponseTime = "response_time",
        /// The most service time in total.
        ServiceTime = "service_time",
        /// The most commands.
        Count = "count",
        /// The most error responses.
        Errors = "errors",
        /// The most bytes read and written.
        Bytes = "bytes",
        /// The longest mean response time.
        Mean = "mean",
        /// The longest median response time.
        P50 = "p50",
        /// The longest 95th percentile.
        P95 = "p95",
        /// The longest 99th percentile.
        P99 = "p99",
        /// The longest response time of a single command.
        Max = "max",
        /// The first key.
        Key = "key",
    }
}

impl SliceSortKey {
    /// What is compared; what is absent is least.
    fn weight(self, slice: &SliceStatistics) -> Option<i128> {
        let SliceStatistics { figures, service_time, .. } = slice;
        let EntityStatistics { response_time, .. } = figures;
        let time = match self {
            SliceSortKey::ResponseTime => return Some(response_time.sum_ns),
            SliceSortKey::ServiceTime => return Some(service_time.sum_ns),
            SliceSortKey::Count => return Some(figures.count.into()),
            SliceSortKey::Errors => return Some(figures.errors.into()),
            SliceSortKey::Bytes => return Some(i128::from(figures.bytes_read) + i128::from(figures.bytes_written)),
            SliceSortKey::Key => None,
            SliceSortKey::Mean => response_time.mean,
            SliceSortKey::P50 => response_time.p50,
            SliceSortKey::P95 => response_time.p95,
            SliceSortKey::P99 => response_time.p99,
            SliceSortKey::Max => response_time.max,
        };
        time.map(|time| time.0.into())
    }
}
