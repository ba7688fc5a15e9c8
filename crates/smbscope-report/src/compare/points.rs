//! Load points of several ramps with as many users: throughput and response time by group.

use super::cells::row_of;
use super::ramps::{row, row_of_group};
use super::{Cell, Ratio};
use crate::bench::{Document, Run};
use crate::json::entries::Row;
use serde::Serialize;
use std::collections::BTreeSet;

/// Load points of as many users.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadPoint {
    /// Users at the same time.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub users: u32,
    /// All groups of the headline. One for each column; null where it has no such load point.
    pub total: Vec<Option<PointCell>>,
    /// By group; *Other* is followed by its parts.
    pub groups: Vec<PointGroup>,
}

/// A group at a load point.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PointGroup {
    /// Its name.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::group"))]
    pub group: String,
    /// The group that it is a part of, and is counted in as well.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::part_of"))]
    pub part_of: Option<String>,
    /// One for each column; null where it has no such load point or group.
    pub cells: Vec<Option<PointCell>>,
}

/// What a ramp says of a group at a load point.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PointCell {
    /// Commands answered a second.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub per_second: Option<f64>,
    /// That as a multiple of the first ramp's.
    pub per_second_ratio: Option<Ratio>,
    /// Counts and times, with multiples of the first ramp's.
    #[serde(flatten)]
    pub cell: Cell,
}

pub(super) fn points(ramps: &[Option<&Document>]) -> Vec<LoadPoint> {
    let loads: BTreeSet<u32> =
        ramps.iter().flatten().flat_map(|document| &document.runs).map(|run| run.users).collect();
    let point = |users: u32| {
        // Where a load was run several times, the last one counts.
        let runs: Vec<Option<&Run>> = ramps
            .iter()
            .map(|document| document.and_then(|document| document.runs.iter().rev().find(|run| run.users == users)))
            .collect();
        let cells = |of: &dyn Fn(&Run) -> Option<Row>| -> Vec<Option<PointCell>> {
            let rows: Vec<Option<Row>> = runs.iter().map(|run| run.and_then(of)).collect();
            with_rates(row_of(rows.iter().map(Option::as_ref)), &runs)
        };
        let groups = crate::names::groups().map(|(name, part_of, _)| PointGroup {
            group: name.to_owned(),
            part_of: part_of.map(str::to_owned),
            cells: cells(&|run| run.group(name).map(|group| row_of_group(run, group))),
        });
        LoadPoint {
            users,
            total: cells(&|run| Some(row(run.headline().count, run.errors.clone(), run.headline()))),
            groups: groups.filter(|group| group.cells.iter().any(Option::is_some)).collect(),
        }
    };
    loads.into_iter().map(point).collect()
}

/// The cells with rates; multiples are of the first column's, as all are.
fn with_rates(cells: Vec<Option<Cell>>, runs: &[Option<&Run>]) -> Vec<Option<PointCell>> {
    let rates: Vec<Option<f64>> =
        cells.iter().zip(runs).map(|(cell, run)| Some(cell.as_ref()?.count as f64 / (*run)?.seconds()?)).collect();
    let base = rates.first().copied().flatten();
    let made = cells.into_iter().zip(&rates).enumerate().map(|(at, (cell, rate))| {
        let ratio = if at == 0 { None } else { Ratio::of(*rate, base) };
        Some(PointCell { per_second: *rate, per_second_ratio: ratio, cell: cell? })
    });
    made.collect()
}
