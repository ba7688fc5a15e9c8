//! The `smbscope.compare/1` document, as described by `schema/smbscope.compare-1.schema.json`.

use super::Comparison;
use crate::document::Generator;
use crate::json::escaped::write_indented;
use serde::Serialize;
use std::io::{self, Write};

pub const SCHEMA: &str = "smbscope.compare/1";

/// Output of `smbscope compare --format json`: captures, saved reports and ramps side by side. Times are integers in
/// nanoseconds, timestamps count from the Unix epoch. Null is unknown or, for a statistic, based on too few values.
/// Cells are in the order of `columns`. The first column is the baseline, and ratios are relative to it.
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

/// Writes the comparison as indented JSON and a newline. `version` is the version of smbscope.
pub fn write(comparison: &Comparison, version: &str, out: impl Write) -> io::Result<()> {
    write_indented(&ComparisonEnvelope::new(comparison, version), out)
}
