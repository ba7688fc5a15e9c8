//! The exchange table: a row per exchange, in several formats.
//!
//! The columns after `retransmitted` were added later. `capture` names the file of the request's first packet, and
//! `response_capture` the response's file if it is another one. Packet numbers in a file count from 1. Unknown values
//! are empty in CSV and null in Parquet.

mod batches;
mod columns;

pub use batches::{BATCH_ROWS, BATCH_TEXT_BYTES, ExchangeBatches};
pub use columns::{COLUMNS, ExchangeColumn, ExchangeColumnKind};
pub(crate) use columns::{CellText, Cells, ExchangeRow};

use crate::Filtered;
use smbscope_model::{CaptureInfo, Exchange, Quality, SkippedPackets};
use std::io;

pub trait ExchangeTable {
    /// Writes a row. `capture_names` are the file names by [`CaptureId`](smbscope_model::CaptureId).
    fn write(&mut self, exchange: &Exchange, exchange_id: u64, capture_names: &[String]) -> io::Result<()>;

    /// Writes all buffered rows and, if the format has room for it, the provenance.
    fn finish(self, provenance: &Provenance) -> io::Result<()>;
}

/// Origin of a table, known when all rows are written.
#[derive(Debug, Clone)]
pub struct Provenance<'a> {
    pub version: &'a str,
    /// Captures in the order of their [`CaptureId`](smbscope_model::CaptureId).
    pub captures: &'a [CaptureInfo],
    pub quality: &'a Quality,
    /// Packets other than TCP, by protocol.
    pub skipped: &'a [SkippedPackets],
    pub filter: Option<Filtered>,
}
