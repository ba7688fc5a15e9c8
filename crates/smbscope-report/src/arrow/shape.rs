//! Mapping of JSON schemas to Arrow types.

use arrow_schema::{DataType, Field, Fields, TimeUnit};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

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

/// The parts of a JSON schema that tables need.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SchemaNode {
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

/// Keys of an object, in order.
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

pub(super) type FlattenedColumn<'s> = (Vec<&'s str>, DataType);

impl SchemaNode {
    pub(super) fn property(&self, name: &str) -> Option<&SchemaNode> {
        self.properties.0.iter().find(|(key, _)| key == name).map(|(_, shape)| shape)
    }

    /// Returns the names of a document's tables: keys with a list of objects or an object, each followed by its lists
    /// with a short name.
    pub(super) fn tables(&self) -> impl Iterator<Item = &str> {
        self.properties.0.iter().filter(|(_, shape)| self.has_columns(shape)).flat_map(|(key, _)| {
            let lifted = LIFTED.iter().filter(move |(_, [object, _])| object == key).map(|(name, _)| *name);
            std::iter::once(key.as_str()).chain(lifted)
        })
    }

    /// Returns the keys that lead to a table, from its short name or by splitting a dotted name.
    pub(super) fn keys_of<'n>(&self, name: &'n str) -> Vec<&'n str> {
        let lifted = LIFTED.iter().find(|(lifted, [object, _])| *lifted == name && self.property(object).is_some());
        lifted.map_or_else(|| name.split('.').collect(), |(_, keys)| keys.to_vec())
    }

    /// Returns true if the value is an object with known keys, or a list of such objects.
    pub(super) fn has_columns(&self, shape: &SchemaNode) -> bool {
        self.properties_of(self.entry(shape)).next().is_some()
    }

    pub(super) fn columns<'s>(&'s self, shape: &'s SchemaNode) -> Vec<FlattenedColumn<'s>> {
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
    pub(super) fn resolved<'s>(&'s self, shape: &'s SchemaNode) -> &'s SchemaNode {
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

    /// Returns the keys of an object, including those of all its alternatives (`oneOf`).
    fn properties_of<'s>(&'s self, shape: &'s SchemaNode) -> impl Iterator<Item = (&'s str, &'s SchemaNode)> {
        let own = shape.properties.0.iter();
        let others = shape.one_of.iter().flat_map(|other| self.resolved(other).properties.0.iter());
        own.chain(others).map(|(key, shape)| (key.as_str(), shape))
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
            Some("integer") => integer(key),
            Some("number") => DataType::Float64,
            Some("boolean") => DataType::Boolean,
            Some("array") if !shape.tuple.is_empty() => list(shape.tuple_type()),
            Some("array") => list(nested(shape.items.as_ref().and_then(|items| items.shape()))),
            _ if self.properties_of(shape).next().is_some() => {
                let field = |(key, shape)| Field::new(key, self.data_type(key, shape, depth + 1), true);
                DataType::Struct(self.properties_of(shape).map(field).collect())
            }
            Some("object") => list(entries(nested(shape.others.as_ref().and_then(|others| others.shape())))),
            _ => DataType::Utf8,
        }
    }
}

fn integer(key: &str) -> DataType {
    match key {
        _ if INSTANTS.contains(&key) => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
        _ if STATISTICS.contains(&key) || key.ends_with("_ns") => DataType::Duration(TimeUnit::Nanosecond),
        _ => DataType::Int64,
    }
}

fn list(of: DataType) -> DataType {
    DataType::List(Arc::new(Field::new("item", of, true)))
}

/// Field names of the entries that an object with arbitrary keys is converted to.
pub(super) const ENTRY: [&str; 2] = ["key", "value"];

fn entries(value: DataType) -> DataType {
    let [key, of] = ENTRY;
    DataType::Struct(Fields::from(vec![Field::new(key, DataType::Utf8, true), Field::new(of, value, true)]))
}
