//! Breakdown of a load point's commands by group, file and user, in the form a capture report uses. The client sees no
//! packets, so round-trip times are missing.

use crate::json::slices::SliceListing;
use crate::json::{FileName, UserName, entries::EntityEntry, entries::GroupEntry, waits};
use serde::{Deserialize, Serialize};
use smbscope_stats::{Aggregate, Concurrency, HeatMap};

const ENTRIES_LISTED: usize = 100;

const SLOWEST_LISTED: usize = 20;

/// Commands of a load point, in the form of a capture report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadPointBreakdown {
    /// By operation group. The entries add up; `Other` is followed by its parts.
    pub(crate) groups: Vec<GroupEntry>,
    pub(crate) heatmap: HeatMap,
    pub(crate) concurrency: Vec<Concurrency>,
    /// The slowest commands, slowest first, at most 20.
    pub(crate) slowest: Vec<waits::SlowExchange>,
    /// Files with the longest response times in total, at most 100. The rest is not summed up.
    pub(crate) files: Vec<EntityEntry<FileName>>,
    /// Users with the longest response times in total, at most 100. The rest is not summed up.
    pub(crate) users: Vec<EntityEntry<UserName>>,
    /// Commands grouped by `--by`. Null without it.
    pub(crate) slices: Option<SliceListing>,
}

impl LoadPointBreakdown {
    pub fn new(aggregate: &Aggregate) -> LoadPointBreakdown {
        let slowest = aggregate.slowest.iter().take(SLOWEST_LISTED);
        LoadPointBreakdown {
            groups: GroupEntry::all(aggregate),
            heatmap: aggregate.heat_map.clone(),
            concurrency: aggregate.concurrency.clone(),
            slowest: slowest.map(|exchange| waits::SlowExchange::new(exchange, &[])).collect(),
            files: EntityEntry::table(&aggregate.files, ENTRIES_LISTED, FileName::new, FileName::other),
            users: EntityEntry::table(&aggregate.users, ENTRIES_LISTED, UserName::new, UserName::other),
            slices: aggregate.slices.as_ref().map(|slices| SliceListing::new(slices).listed()),
        }
    }
}
