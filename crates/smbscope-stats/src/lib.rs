//! Statistics over exchanges: summaries, and the tables of a report.
//!
//! [`Aggregator`] takes one [`Exchange`](smbscope_model::Exchange) after another. Aggregators can share the exchanges
//! in any way: merged, they give the same result. [`Aggregator::finish`] computes an [`Aggregate`], which reports
//! print. Start reading in `aggregator`.

mod aggregate;
mod aggregator;
mod beside;
pub mod bins;
mod bounded;
mod caching;
pub mod derived;
mod entity;
pub mod filter;
mod measure;
mod random;
pub mod replication;
mod row;
pub mod sides;
mod slices;
mod split;
mod summary;
mod timeline;

pub use aggregate::{Aggregate, Census, CommandRow, GroupRow, GroupSum, SubcommandRow};
pub use aggregator::{Aggregator, CommandRowKey, LEAVES_MAX, SLOWEST_MAX, is_apart};
pub use beside::{beside, each_beside};
pub use bins::{Covered, STRETCHES_MAX};
pub use bounded::{BottomKTable, Slowest};
pub use caching::{CachingFigures, ClientRereads, FileRereads, GrantedOpens, RereadCounts};
pub use entity::{ENTITIES_MAX, Entities, EntityStatistics, FileKey};
pub use measure::{Measure, ServerFigure, TimeFigure};
pub use random::Random;
#[cfg(feature = "schema")]
pub use row::outcomes;
pub use row::{CommandStatistics, CommandTallyView, Decade, Distribution, OTHER, STATUSES_MAX};
pub use slices::{
    Dimension, DimensionBreakdown, Field, SLICES_KEPT, SLICES_MAX, SharedSubstring, SliceFieldValue, SliceSortKey,
    SliceStatistics, Slicer,
};
pub use split::{Splits, THINK_MAX, TimePart, TimeSplit};
pub use summary::{Beyond, DurationStatistics, Summary, SummaryPrecision};
pub use timeline::{
    BINS_MAX, BUCKETS_A_DECADE, BinnedTimeline, Concurrency, HeatMap, INTERVALS_MAX, TimelineBinning, TimelineCounts,
};
