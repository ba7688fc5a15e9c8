//! Lists of a document as Arrow tables, with the columns derived from the document's published JSON schema.
//!
//! A column has the name of its key. A nested object becomes a column per key, with the object's name as a prefix:
//! `response_time_p95`. Lists stay lists. Timestamps are in UTC and, like durations, in nanoseconds. Null stays null.
//!
//! The same code converts all lists of all documents, so a key added to a schema becomes a column. Start reading at
//! [`table`].

mod column;
mod shape;
#[cfg(test)]
mod tests;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, Field, Schema};
use column::column;
use serde_json::Value;
use shape::SchemaNode;
use std::sync::{Arc, OnceLock};

#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The document is of a kind without tables.
    #[error("no document of smbscope: its schema is {0:?}")]
    NoDocument(String),

    /// The document has no such list.
    #[error("no table {name:?} in {schema}: it has {}", known.join(", "))]
    NoTable { name: String, schema: &'static str, known: Vec<String> },

    /// The values don't form a table.
    #[error("the table {name:?} cannot be made: {error}")]
    Arrow {
        name: String,
        #[source]
        error: ArrowError,
    },
}

struct DocumentSchema {
    name: &'static str,
    text: &'static str,
    shape: OnceLock<SchemaNode>,
}

/// Embeds the published schema of a kind.
macro_rules! kind {
    ($name:literal, $file:literal) => {
        DocumentSchema {
            name: $name,
            text: include_str!(concat!("../../../../schema/", $file)),
            shape: OnceLock::new(),
        }
    };
}

static KINDS: [DocumentSchema; 4] = [
    kind!("smbscope.report/1", "smbscope.report-1.schema.json"),
    kind!("smbscope.bench/1", "smbscope.bench-1.schema.json"),
    kind!("smbscope.compare/1", "smbscope.compare-1.schema.json"),
    kind!("smbscope.study/1", "smbscope.study-1.schema.json"),
];

impl DocumentSchema {
    fn shape(&self) -> &SchemaNode {
        self.shape.get_or_init(|| serde_json::from_str(self.text).expect("published schemas are read by a test"))
    }
}

/// Converts a list of a document to a table with a row per entry, or an object to a table with one row. A dot selects a
/// list within an object: `timeline.bins`. `causes` is short for `answer.causes`.
pub fn table(document: &Value, name: &str) -> Result<RecordBatch, TableError> {
    let kind = kind_of(document)?;
    let root = kind.shape();
    let keys = root.keys_of(name);
    let shape = keys.iter().try_fold(root, |shape, key| root.resolved(shape).property(key));
    let Some(shape) = shape.filter(|shape| root.has_columns(shape)) else {
        let (name, known) = (name.to_owned(), root.tables().map(str::to_owned).collect());
        return Err(TableError::NoTable { name, schema: kind.name, known });
    };
    let rows: Vec<&Value> = match at(document, &keys) {
        Some(Value::Array(rows)) => rows.iter().collect(),
        Some(row @ Value::Object(_)) => vec![row],
        _ => Vec::new(),
    };
    batch(root, shape, &rows).map_err(|error| TableError::Arrow { name: name.to_owned(), error })
}

pub fn tables(document: &Value) -> Result<Vec<&'static str>, TableError> {
    Ok(kind_of(document)?.shape().tables().collect())
}

fn kind_of(document: &Value) -> Result<&'static DocumentSchema, TableError> {
    let schema = document.get("schema").and_then(Value::as_str).unwrap_or_default();
    KINDS.iter().find(|kind| kind.name == schema).ok_or_else(|| TableError::NoDocument(schema.to_owned()))
}

fn batch(root: &SchemaNode, shape: &SchemaNode, rows: &[&Value]) -> Result<RecordBatch, ArrowError> {
    let columns = root.columns(shape);
    let arrays: Result<Vec<ArrayRef>, ArrowError> = columns
        .iter()
        .map(|(path, data_type)| {
            let values: Vec<Option<&Value>> = rows.iter().map(|row| at(row, path)).collect();
            column(data_type, &values)
        })
        .collect();
    let field = |(path, data_type): (Vec<&str>, _)| Field::new(path.join("_"), data_type, true);
    let schema = Arc::new(Schema::new(columns.into_iter().map(field).collect::<Vec<_>>()));
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(schema, arrays?, &options)
}

fn at<'v>(row: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(row, |value, key| value.get(key)).filter(|value| !value.is_null())
}
