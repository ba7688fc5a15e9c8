//! What the report of a capture says of commands, of a load point's: the client sees no packets, and knows no round trip.

use crate::json::slices::SliceListing;
use crate::json::{FileName, UserName, entries::EntityEntry, entries::GroupEntry, waits};
use serde::{Deserialize, Serialize};
use smbscope_stats::{Aggregate, Concurrency, HeatMap};

/// Files and users that are listed.
const ENTRIES_LISTED: usize = 100;

/// Slowest commands that are listed.
const SLOWEST_LISTED: usize = 20;

/// The commands of a load point, as the report of a capture has them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadPointBreakdown {
    /// By operation group; the entries add up, Other holds its parts.
    pub(crate) groups: Vec<GroupEntry>,
    pub(crate) heatmap: HeatMap,
    pub(crate) concurrency: Vec<Concurrency>,
    /// The slowest commands, slowest first, at most 20.
    pub(crate) slowest: Vec<waits::SlowExchange>,
    /// At most 100, those that were waited for longest; what is not listed is not added up.
    pub(crate) files: Vec<EntityEntry<FileName>>,
    /// At most 100, those that waited longest; what is not listed is not added up.
    pub(crate) users: Vec<EntityEntry<UserName>>,
    /// The commands divided by --by; null without it.
    pub(crate) slices: Option<SliceListing>,
}

impl LoadPointBreakdown {
    /// What was counted of a load point.
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
