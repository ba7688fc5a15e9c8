//! Slices of exchanges that come in parts, so that several threads can count them with one result.

use super::{Dimension, Slicer, Slices, Sort};
use smbscope_model::Exchange;

/// A slicer for each part of the exchanges.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    by: Vec<Dimension>,
    /// By the number of the part; absent where nothing was counted.
    slicers: Vec<Option<Slicer>>,
    /// Which part the next exchange is of.
    at: usize,
}

impl Parts {
    /// Slices by these dimensions together.
    pub(crate) fn new(by: &[Dimension]) -> Parts {
        Parts { by: by.to_vec(), slicers: Vec::new(), at: 0 }
    }

    /// The exchanges that come now are of this part.
    pub(crate) fn turn_to(&mut self, part: usize) {
        self.at = part;
    }

    /// Counts an exchange in its slice.
    pub(crate) fn record(&mut self, exchange: &Exchange) {
        if self.slicers.len() <= self.at {
            self.slicers.resize_with(self.at + 1, || None);
        }
        self.slicers[self.at].get_or_insert_with(|| Slicer::new(&self.by)).record(exchange);
    }

    /// Adds what another one counted, by the same dimensions.
    pub(crate) fn merge(&mut self, other: Parts) {
        if self.slicers.len() < other.slicers.len() {
            self.slicers.resize_with(other.slicers.len(), || None);
        }
        for (mine, theirs) in self.slicers.iter_mut().zip(other.slicers) {
            match (mine, theirs) {
                (Some(mine), Some(theirs)) => mine.merge(&theirs),
                (mine @ None, theirs) => *mine = theirs,
                (Some(_), None) => {}
            }
        }
    }

    /// The finished slices of all parts, in this order.
    pub(crate) fn finish(&self, sort: Sort) -> Slices {
        let mut slicers = self.slicers.iter().flatten();
        let Some(first) = slicers.next() else { return Slicer::new(&self.by).finish(sort) };
        let mut whole = first.clone();
        slicers.for_each(|slicer| whole.merge(slicer));
        whole.finish(sort)
    }
}
