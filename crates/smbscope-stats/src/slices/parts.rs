//! Slicers per part of a capture, so that several threads produce the same result as one.

use super::{Dimension, DimensionBreakdown, SliceSortKey, Slicer};
use smbscope_model::Exchange;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

#[derive(Debug, Clone)]
pub(crate) struct PartSlicers {
    by: Vec<Dimension>,
    slicers: BTreeMap<usize, Slicer>,
    at: usize,
}

impl PartSlicers {
    pub(crate) fn new(by: &[Dimension]) -> PartSlicers {
        PartSlicers { by: by.to_vec(), slicers: BTreeMap::new(), at: 0 }
    }

    pub(crate) fn turn_to(&mut self, part: usize) {
        self.at = part;
    }

    pub(crate) fn record(&mut self, exchange: &Exchange) {
        self.slicers.entry(self.at).or_insert_with(|| Slicer::new(&self.by)).record(exchange);
    }

    pub(crate) fn merge(&mut self, other: PartSlicers) {
        for (part, theirs) in other.slicers {
            match self.slicers.entry(part) {
                Entry::Occupied(mut mine) => mine.get_mut().merge(&theirs),
                Entry::Vacant(place) => _ = place.insert(theirs),
            }
        }
    }

    pub(crate) fn finish(&self, sort: SliceSortKey) -> DimensionBreakdown {
        let mut slicers = self.slicers.values();
        // Don't copy if there is only one part, as in a load client.
        let mut whole = slicers.next().map_or_else(|| Cow::Owned(Slicer::new(&self.by)), Cow::Borrowed);
        slicers.for_each(|slicer| whole.to_mut().merge(slicer));
        whole.finish(sort)
    }
}
