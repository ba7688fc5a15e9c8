//! Slices of exchanges that come in parts, so that several threads can count them with one result.

use super::{Dimension, DimensionBreakdown, SliceSortKey, Slicer};
use smbscope_model::Exchange;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// A slicer for each part of the exchanges.
#[derive(Debug, Clone)]
pub(crate) struct PartSlicers {
    by: Vec<Dimension>,
    /// By the number of the part.
    slicers: BTreeMap<usize, Slicer>,
    /// Which part the next exchange is of.
    at: usize,
}

impl PartSlicers {
    /// Slices by these dimensions together.
    pub(crate) fn new(by: &[Dimension]) -> PartSlicers {
        PartSlicers { by: by.to_vec(), slicers: BTreeMap::new(), at: 0 }
    }

    /// The exchanges that come now are of this part.
    pub(crate) fn turn_to(&mut self, part: usize) {
        self.at = part;
    }

    /// Counts an exchange in its slice.
    pub(crate) fn record(&mut self, exchange: &Exchange) {
        self.slicers.entry(self.at).or_insert_with(|| Slicer::new(&self.by)).record(exchange);
    }

    /// Adds what another one counted, by the same dimensions.
    pub(crate) fn merge(&mut self, other: PartSlicers) {
        for (part, theirs) in other.slicers {
            match self.slicers.entry(part) {
                Entry::Occupied(mut mine) => mine.get_mut().merge(&theirs),
                Entry::Vacant(place) => _ = place.insert(theirs),
            }
        }
    }

    /// The finished slices of all parts, in this order.
    pub(crate) fn finish(&self, sort: SliceSortKey) -> DimensionBreakdown {
        let mut slicers = self.slicers.values();
        // What has one part only, as a load client's, is not copied.
        let mut whole = slicers.next().map_or_else(|| Cow::Owned(Slicer::new(&self.by)), Cow::Borrowed);
        slicers.for_each(|slicer| whole.to_mut().merge(slicer));
        whole.finish(sort)
    }
}
