//! Lists of a document as Arrow tables, with the columns derived from the document's published JSON schema.
//!
//! A column has the name of its key. A nested object becomes a column per key, with the object's name as a prefix:
//! `response_time_p95`. Lists stay lists. Timestamps are in UTC and, like durations, in nanoseconds. Null stays null.
//!
//! The same code converts all lists of all documents, so a key added to a schema becomes a column. Start reading at
//! [`table`]; `SchemaNode` maps schemas to Arrow types, and `column` converts values.

#[cfg(test)]
mod tests;

use arrow_array::{
    ArrayRef, BooleanArray, DurationNanosecondArray, Float64Array, Int64Array, ListArray, RecordBatch,
    RecordBatchOptions, StringArray, StructArray, TimestampNanosecondArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, Schema, TimeUnit};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, OnceLock};

#[derive(Debug, thiserror::Error)]
pub enum TableError {
    #[error("not a document of smbscope: its schema is {0:?}")]
    NoDocument(String),

    #[error("no table {name:?} in {schema}: it has {}", known.join(", "))]
    NoTable { name: String, schema: &'static str, known: Vec<String> },

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

macro_rules! kind {
    ($name:literal, $file:literal) => {
        DocumentSchema {
            name: $name,
            text: include_str!(concat!("../../../../schema/", $file)),
            shape: OnceLock::new(),
        }
    };
}

static KINDS: [DocumentSchema; 5] = [
    kind!("smbscope.report/1", "smbscope.report-1.schema.json"),
    kind!("smbscope.bench/1", "smbscope.bench-1.schema.json"),
    kind!("smbscope.compare/1", "smbscope.compare-1.schema.json"),
    kind!("smbscope.study/1", "smbscope.study-1.schema.json"),
    kind!("smbscope.prediction/1", "smbscope.prediction-1.schema.json"),
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

/// Keys of timestamps in nanoseconds since the Unix epoch.
const INSTANTS: [&str; 7] = ["first_ns", "last_ns", "start_ns", "end_ns", "time_ns", "started_ns", "request_first_ns"];
/// Keys of statistics and bounds of times, in nanoseconds. Integers with these keys are always times: other statistics
/// are floating-point.
const STATISTICS: [&str; 12] =
    ["min", "max", "mean", "stddev", "p50", "p90", "p95", "p99", "p999", "low", "best", "high"];
/// Lists within an object that are also tables under a short name.
const LIFTED: [(&str, [&str; 2]); 1] = [("causes", ["answer", "causes"])];
/// Maximum nesting depth. The published schemas reach 5.
const DEPTH_MAX: usize = 12;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SchemaNode {
    #[serde(rename = "type")]
    types: Option<Types>,
    #[serde(rename = "$ref")]
    reference: Option<String>,
    properties: SchemaProperties,
    items: Option<Box<OrAnything>>,
    #[serde(rename = "prefixItems")]
    tuple: Vec<SchemaNode>,
    #[serde(rename = "additionalProperties")]
    others: Option<Box<OrAnything>>,
    #[serde(rename = "anyOf")]
    any_of: Vec<SchemaNode>,
    #[serde(rename = "oneOf")]
    one_of: Vec<SchemaNode>,
    #[serde(rename = "$defs")]
    definitions: BTreeMap<String, SchemaNode>,
}

/// One type, or a type and null.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Types {
    One(String),
    Several(Vec<String>),
}

/// A schema, or a boolean that allows or forbids any value.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OrAnything {
    Anything(#[expect(dead_code, reason = "true and false are the same for a table")] bool),
    Shape(SchemaNode),
}

impl OrAnything {
    fn shape(&self) -> Option<&SchemaNode> {
        match self {
            OrAnything::Anything(_) => None,
            OrAnything::Shape(shape) => Some(shape),
        }
    }
}

#[derive(Debug, Default)]
struct SchemaProperties(Vec<(String, SchemaNode)>);

impl<'de> Deserialize<'de> for SchemaProperties {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<SchemaProperties, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = SchemaProperties;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of schemas")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<SchemaProperties, M::Error> {
                let mut all = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    all.push(entry);
                }
                Ok(SchemaProperties(all))
            }
        }
        from.deserialize_map(InOrder)
    }
}

type FlattenedColumn<'s> = (Vec<&'s str>, DataType);

impl SchemaNode {
    fn property(&self, name: &str) -> Option<&SchemaNode> {
        self.properties.0.iter().find(|(key, _)| key == name).map(|(_, shape)| shape)
    }

    /// Returns the names of a document's tables: keys with a list of objects or an object, each followed by its lists
    /// with a short name.
    fn tables(&self) -> impl Iterator<Item = &str> {
        self.properties.0.iter().filter(|(_, shape)| self.has_columns(shape)).flat_map(|(key, _)| {
            let lifted = LIFTED.iter().filter(move |(_, [object, _])| object == key).map(|(name, _)| *name);
            std::iter::once(key.as_str()).chain(lifted)
        })
    }

    /// Returns the keys that lead to a table, from its short name or by splitting a dotted name.
    fn keys_of<'n>(&self, name: &'n str) -> Vec<&'n str> {
        let lifted = LIFTED.iter().find(|(lifted, [object, _])| *lifted == name && self.property(object).is_some());
        lifted.map_or_else(|| name.split('.').collect(), |(_, keys)| keys.to_vec())
    }

    /// Returns true if the value is an object with known keys, or a list of such objects.
    fn has_columns(&self, shape: &SchemaNode) -> bool {
        self.properties_of(self.entry(shape)).next().is_some()
    }

    fn columns<'s>(&'s self, shape: &'s SchemaNode) -> Vec<FlattenedColumn<'s>> {
        let mut columns = Vec::new();
        self.add_columns(self.entry(shape), &mut Vec::new(), &mut columns);
        columns
    }

    fn add_columns<'s>(
        &'s self,
        shape: &'s SchemaNode,
        path: &mut Vec<&'s str>,
        columns: &mut Vec<FlattenedColumn<'s>>,
    ) {
        for (key, shape) in self.properties_of(shape) {
            path.push(key);
            let nested = self.resolved(shape);
            match self.properties_of(nested).next().is_some() && path.len() < DEPTH_MAX {
                true => self.add_columns(nested, path, columns),
                false => columns.push((path.clone(), self.data_type(key, shape, path.len()))),
            }
            path.pop();
        }
    }

    /// Returns the schema of a list's entries, or the schema itself if it isn't a list.
    fn entry<'s>(&'s self, shape: &'s SchemaNode) -> &'s SchemaNode {
        let shape = self.resolved(shape);
        let items = shape.items.as_ref().and_then(|items| items.shape());
        items.map_or(shape, |items| self.resolved(items))
    }

    /// Follows references, and the only alternative to null.
    fn resolved<'s>(&'s self, shape: &'s SchemaNode) -> &'s SchemaNode {
        let mut shape = shape;
        for _ in 0..DEPTH_MAX {
            let named = shape.reference.as_deref().and_then(|name| name.strip_prefix("#/$defs/"));
            let mut alternatives = shape.any_of.iter().filter(|shape| shape.kind() != Some("null"));
            shape = match (named.and_then(|name| self.definitions.get(name)), alternatives.next()) {
                (Some(named), _) => named,
                (None, Some(only)) if alternatives.next().is_none() => only,
                _ => return shape,
            };
        }
        shape
    }

    /// Returns the keys of an object, including those of all its alternatives (`oneOf`), each key once.
    fn properties_of<'s>(&'s self, shape: &'s SchemaNode) -> impl Iterator<Item = (&'s str, &'s SchemaNode)> {
        let own = shape.properties.0.iter();
        let others = shape.one_of.iter().flat_map(|other| self.resolved(other).properties.0.iter());
        let mut seen = BTreeSet::new();
        own.chain(others).map(|(key, shape)| (key.as_str(), shape)).filter(move |(key, _)| seen.insert(*key))
    }

    fn kind(&self) -> Option<&str> {
        match self.types.as_ref()? {
            Types::One(only) => Some(only),
            Types::Several(all) => all.iter().map(String::as_str).find(|kind| *kind != "null").or(Some("null")),
        }
    }

    /// Returns the common type of a tuple's members, or text if there is none.
    fn tuple_type(&self) -> DataType {
        let are =
            |kinds: &[&str]| self.tuple.iter().all(|member| member.kind().is_some_and(|kind| kinds.contains(&kind)));
        match (are(&["integer"]), are(&["integer", "number"])) {
            (true, _) => DataType::Int64,
            (false, true) => DataType::Float64,
            (false, false) => DataType::Utf8,
        }
    }

    fn data_type(&self, key: &str, shape: &SchemaNode, depth: usize) -> DataType {
        let shape = self.resolved(shape);
        let nested = |shape: Option<&SchemaNode>| match shape.filter(|_| depth < DEPTH_MAX) {
            Some(shape) => self.data_type(key, shape, depth + 1),
            None => DataType::Utf8,
        };
        match shape.kind() {
            Some("integer") => integer_type(key),
            Some("number") => DataType::Float64,
            Some("boolean") => DataType::Boolean,
            Some("array") if !shape.tuple.is_empty() => list_type(shape.tuple_type()),
            Some("array") => list_type(nested(shape.items.as_ref().and_then(|items| items.shape()))),
            _ if self.properties_of(shape).next().is_some() => {
                let field = |(key, shape)| Field::new(key, self.data_type(key, shape, depth + 1), true);
                DataType::Struct(self.properties_of(shape).map(field).collect())
            }
            Some("object") => list_type(entry_type(nested(shape.others.as_ref().and_then(|others| others.shape())))),
            _ => DataType::Utf8,
        }
    }
}

fn integer_type(key: &str) -> DataType {
    match key {
        _ if INSTANTS.contains(&key) => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
        _ if STATISTICS.contains(&key) || key.ends_with("_ns") => DataType::Duration(TimeUnit::Nanosecond),
        _ => DataType::Int64,
    }
}

fn list_type(of: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("item", of, true)))
}

/// Field names of the entries that an object with arbitrary keys is converted to.
const ENTRY: [&str; 2] = ["key", "value"];

fn entry_type(value: DataType) -> DataType {
    let [key, of] = ENTRY;
    DataType::Struct(Fields::from(vec![Field::new(key, DataType::Utf8, true), Field::new(of, value, true)]))
}

fn column(data_type: &DataType, values: &[Option<&Value>]) -> Result<ArrayRef, ArrowError> {
    let integers = || values.iter().map(|value| value.and_then(integer));
    Ok(match data_type {
        DataType::Int64 => Arc::new(integers().collect::<Int64Array>()),
        DataType::Duration(_) => Arc::new(integers().collect::<DurationNanosecondArray>()),
        DataType::Timestamp(_, zone) => {
            Arc::new(integers().collect::<TimestampNanosecondArray>().with_timezone_opt(zone.clone()))
        }
        DataType::Float64 => {
            Arc::new(values.iter().map(|value| value.and_then(Value::as_f64)).collect::<Float64Array>())
        }
        DataType::Boolean => {
            Arc::new(values.iter().map(|value| value.and_then(Value::as_bool)).collect::<BooleanArray>())
        }
        DataType::List(item) => list(item, values)?,
        DataType::Struct(fields) => structure(fields, values)?,
        _ => Arc::new(values.iter().map(|value| value.and_then(text)).collect::<StringArray>()),
    })
}

/// JSON counts may have 64 bits, but Arrow's integer only has 63: larger values saturate.
fn integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_u64().map(|_| i64::MAX))
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn list(item: &FieldRef, values: &[Option<&Value>]) -> Result<ArrayRef, ArrowError> {
    let lengths = values.iter().map(|value| match value {
        Some(Value::Array(items)) => items.len(),
        Some(Value::Object(entries)) => entries.len(),
        _ => 0,
    });
    let offsets = OffsetBuffer::from_lengths(lengths);
    let items = match item.data_type() {
        DataType::Struct(fields) if is_of_entries(fields) => entries(fields, values)?,
        of => {
            let lists = values.iter().filter_map(|value| value.and_then(Value::as_array));
            let items: Vec<Option<&Value>> =
                lists.flatten().map(|item| Some(item).filter(|item| !item.is_null())).collect();
            column(of, &items)?
        }
    };
    Ok(Arc::new(ListArray::try_new(Arc::clone(item), offsets, items, present(values))?))
}

fn is_of_entries(fields: &Fields) -> bool {
    fields.iter().map(|field| field.name().as_str()).eq(ENTRY)
}

fn entries(fields: &Fields, values: &[Option<&Value>]) -> Result<ArrayRef, ArrowError> {
    let all = || values.iter().filter_map(|value| value.and_then(Value::as_object)).flatten();
    let keys: StringArray = all().map(|(key, _)| Some(key.as_str())).collect();
    let values: Vec<Option<&Value>> = all().map(|(_, value)| Some(value)).collect();
    let columns: Vec<ArrayRef> = vec![Arc::new(keys), column(fields[1].data_type(), &values)?];
    Ok(Arc::new(StructArray::try_new(fields.clone(), columns, None)?))
}

fn structure(fields: &Fields, values: &[Option<&Value>]) -> Result<ArrayRef, ArrowError> {
    let columns: Result<Vec<ArrayRef>, ArrowError> = fields
        .iter()
        .map(|field| {
            let below: Vec<Option<&Value>> = values
                .iter()
                .map(|value| value.and_then(|value| value.get(field.name())).filter(|value| !value.is_null()))
                .collect();
            column(field.data_type(), &below)
        })
        .collect();
    Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), columns?, present(values), values.len())?))
}

fn present(values: &[Option<&Value>]) -> Option<NullBuffer> {
    Some(values.iter().map(|value| value.is_some_and(|value| !value.is_null())).collect())
}
