//! The comparison as one JSON object, `smbscope.compare/1`, described by `schema/smbscope.compare-1.schema.json`.

use super::Comparison;
use crate::document::Generator;
use crate::json::escaped::write_indented;
use serde::Serialize;
use std::io::{self, Write};

/// The value of the key `schema`.
pub const SCHEMA: &str = "smbscope.compare/1";

/// What `smbscope compare --format json` prints: captures, saved reports and ramps side by side. All times are integers
/// in nanoseconds, points in time since the Unix epoch; null is unknown or, for a statistic, not supported by enough
/// values. Cells stand in the order of `columns`; the first column is the base, and ratios are those of a column to it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ComparisonEnvelope<'a> {
    #[cfg_attr(feature = "schema", schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    generator: Generator,
    #[serde(flatten)]
    comparison: &'a Comparison,
}

impl<'a> ComparisonEnvelope<'a> {
    pub(crate) fn new(comparison: &'a Comparison, version: &str) -> ComparisonEnvelope<'a> {
        ComparisonEnvelope { schema: SCHEMA, generator: Generator::new(version), comparison }
    }
}

/// Writes the comparison, indented, with a line end after it. `version` is that of smbscope.
pub fn write(comparison: &Comparison, version: &str, out: impl Write) -> io::Result<()> {
    write_indented(&ComparisonEnvelope::new(comparison, version), out)
}
