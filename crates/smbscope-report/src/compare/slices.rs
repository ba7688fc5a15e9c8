//! Comparison of slices: the same user, file or other key in each column.

use super::ComparisonInput;
use super::cells::{ComparisonCell, with_ratios};
use crate::json::slices::{SliceEntryKey, SliceFigures};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Slices kept, longest total wait in any column first.
const SLICES_COMPARED: usize = 1_000;

/// Slices of all columns, grouped by the same dimensions.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ComparedSlices"))]
pub struct ComparedSlices {
    /// Dimensions.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::dimensions"))]
    pub(crate) by: Vec<String>,
    /// Slices by longest total wait in any column, at most 1,000.
    pub(crate) entries: Vec<ComparedSlice>,
    /// Number of slices not listed.
    pub(crate) left_out: u64,
}

/// Commands with the same key.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ComparedSlice"))]
pub struct ComparedSlice {
    /// Values of the dimensions; null is unknown.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::slice_key"))]
    pub(crate) key: SliceEntryKey,
    /// One cell per column. Null if the column does not have or list the slice.
    pub(crate) cells: Vec<Option<ComparisonCell>>,
}

pub(super) fn compare(inputs: &[ComparisonInput]) -> Option<ComparedSlices> {
    let all: Vec<_> = inputs.iter().map(|input| input.report.slices.as_ref()).collect::<Option<_>>()?;
    let by = &all.first()?.by;
    if all.iter().any(|slices| slices.by != *by) {
        return None;
    }
    let mut found: BTreeMap<&SliceEntryKey, Vec<Option<&SliceFigures>>> = BTreeMap::new();
    for (column, slices) in all.iter().enumerate() {
        for entry in &slices.entries {
            found.entry(&entry.key).or_insert_with(|| vec![None; all.len()])[column] = Some(&entry.figures);
        }
    }
    let mut found: Vec<_> = found.into_iter().collect();
    let longest =
        |figures: &[Option<&SliceFigures>]| figures.iter().flatten().map(|figures| figures.response_time_sum_ns).max();
    found.sort_by_key(|(_, figures)| Reverse(longest(figures)));
    let left_out = found.len().saturating_sub(SLICES_COMPARED) as u64;
    let entries = found.into_iter().take(SLICES_COMPARED).map(|(key, figures)| ComparedSlice {
        key: key.clone(),
        cells: with_ratios(figures.into_iter().map(|figures| figures.map(ComparisonCell::of_slice))),
    });
    Some(ComparedSlices { by: by.clone(), entries: entries.collect(), left_out })
}
