//! Statistics over exchanges: exact and histogram summaries, and the tables of a report.
//!
//! [`Aggregator`] takes one [`Exchange`](smbscope_model::Exchange) after the other; aggregators of any partition of
//! the exchanges merge to the same result as one that saw them all. [`Aggregator::finish`] turns it into an
//! [`Aggregate`], the finished figures that reports print.

mod aggregate;
mod aggregator;
mod bounded;
mod census;
mod derived;
mod distribution;
mod entity;
pub mod filter;
mod row;
mod slices;
mod summary;
mod timeline;

#[cfg(test)]
mod testing;

pub use aggregate::{Aggregate, CommandRow, GroupRow, SubcommandRow};
pub use aggregator::{Aggregator, LEAVES_MAX};
pub use census::Census;
pub use distribution::{Decade, Distribution};
pub use entity::{ENTITIES_MAX, Entities, Entity, FileKey};
pub use row::{Row, STATUSES_MAX};
pub use slices::{Dimension, Field, HISTOGRAMS_MAX, Part, Piece, SLICES_KEPT, SLICES_MAX, Slice, Slicer, Slices, Sort};
pub use summary::{Figures, Limit, Summary};
pub use timeline::{BINS_MAX, Bin, Timeline};
