//! The comparison as one JSON object, `smbscope.compare/1`, described by `schema/smbscope.compare-1.schema.json`.

use super::Comparison;
use crate::document::Generator;
use crate::json::escaped::write_indented;
use serde::Serialize;
use std::io::{self, Write};

/// The value of the key `schema`.
pub const SCHEMA: &str = "smbscope.compare/1";

#[derive(Serialize)]
pub(crate) struct Document<'a> {
    schema: &'static str,
    generator: Generator,
    #[serde(flatten)]
    comparison: &'a Comparison,
}

impl<'a> Document<'a> {
    pub(crate) fn of(comparison: &'a Comparison, version: &str) -> Document<'a> {
        Document { schema: SCHEMA, generator: Generator::new(version), comparison }
    }
}

/// Writes the comparison, indented, with a line end after it. `version` is that of smbscope.
pub fn write(comparison: &Comparison, version: &str, out: impl Write) -> io::Result<()> {
    write_indented(&Document::of(comparison, version), out)
}
