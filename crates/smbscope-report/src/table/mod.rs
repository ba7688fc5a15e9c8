//! The exchange table: a row an exchange, in one of several formats.
//!
//! The columns up to `retransmitted` are those of DESIGN §5 in their order; the rest are additions. Packet numbers count
//! from 1 in the file named by `capture`, that of the request's first packet; `response_capture` names the response's
//! file where it is another one. What is unknown has no value: an empty field of CSV, a null of Parquet.

mod batches;
mod columns;

pub use batches::{BATCH_ROWS, BATCH_TEXT_BYTES, ExchangeBatches};
pub use columns::{COLUMNS, ExchangeColumn, ExchangeColumnKind};
pub(crate) use columns::{CellText, Cells, ExchangeRow};

use crate::Filtered;
use smbscope_model::{CaptureInfo, Exchange, Quality, SkippedPackets};
use std::io;

/// A table that is written row by row.
pub trait ExchangeTable {
    /// Writes a row. `capture_names` are the files by [`CaptureId`](smbscope_model::CaptureId).
    fn write(&mut self, exchange: &Exchange, exchange_id: u64, capture_names: &[String]) -> io::Result<()>;

    /// Writes what is still held back and, where the format has a place for it, what the table was made from.
    fn finish(self, provenance: &Provenance) -> io::Result<()>;
}

/// What a table was made from: known when all rows are written.
#[derive(Debug, Clone)]
pub struct Provenance<'a> {
    /// Version of smbscope.
    pub version: &'a str,
    /// The captures, in the order of their [`CaptureId`](smbscope_model::CaptureId).
    pub captures: &'a [CaptureInfo],
    /// What the captures could not show.
    pub quality: &'a Quality,
    /// Packets that are no TCP, by protocol.
    pub skipped: &'a [SkippedPackets],
    /// The filter that chose the rows.
    pub filter: Option<Filtered>,
}
