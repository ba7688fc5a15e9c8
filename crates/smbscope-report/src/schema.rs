//! Published JSON Schemas, generated from the document types. `make schemas` writes them to `schema/`, and a test fails
//! if they are outdated.
//!
//! They describe documents as written: every key is present, and no others. The functions below add what the types
//! can't express, such as the possible values of names held as text.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use smbscope_model::SkippedProtocol;
use smbscope_stats::{Dimension, SliceSortKey};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    pub file: String,
    pub text: String,
}

pub fn published() -> Vec<Published> {
    vec![
        document::<crate::json::ReportDocument<'_>>(crate::json::SCHEMA, "smbscope report"),
        document::<crate::bench::BenchEnvelope<'_>>(crate::bench::SCHEMA, "smbscope bench"),
        document::<crate::compare::ComparisonEnvelope<'_>>(crate::compare::SCHEMA, "smbscope comparison"),
        document::<crate::study::StudyEnvelope<'_>>(crate::study::SCHEMA, "smbscope study"),
        document::<crate::prediction::PredictionDocument>(crate::prediction::SCHEMA, "smbscope prediction"),
    ]
}

fn document<T: JsonSchema>(schema: &str, title: &str) -> Published {
    let file = format!("{}.schema.json", schema.replace('/', "-"));
    let mut root = SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>();
    RecursiveTransform(exact).transform(&mut root);
    RecursiveTransform(flattened).transform(&mut root);
    root.insert("$id".to_owned(), format!("{}/schema/{file}", env!("CARGO_PKG_REPOSITORY")).into());
    root.insert("title".to_owned(), title.into());
    let mut text = serde_json::to_string_pretty(&Ordered(root.as_value())).expect("a schema has text for keys");
    text.push('\n');
    Published { file, text }
}

/// Adds rules for all documents: no additional keys, and ranges of numbers.
fn exact(schema: &mut Schema) {
    let Some(schema) = schema.as_object_mut() else { return };
    // Defaults and read-only keys only matter to our own parser, not to readers of the document.
    schema.remove("default");
    schema.remove("readOnly");
    if schema.contains_key("properties") {
        schema.entry("additionalProperties").or_insert(json!(false));
    }
    // Names are only counted if they occurred.
    if let Some(Value::Object(counts)) = schema.get_mut("additionalProperties")
        && counts.get("minimum") == Some(&json!(0))
    {
        counts.insert("minimum".to_owned(), json!(1));
    }
    // A time that is always known is a duration. One that may be null may be a difference, and so negative.
    if schema.remove("format").is_some_and(|format| format == "nanoseconds") && schema["type"] == "integer" {
        schema.entry("minimum").or_insert(json!(0));
    }
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ");
    }
}

/// Forbids additional keys for an object with alternatives, across the object and its alternatives.
fn flattened(schema: &mut Schema) {
    let Some(schema) = schema.as_object_mut() else { return };
    if !schema.contains_key("properties") {
        return;
    }
    let Some(Value::Array(alternatives)) = schema.get_mut("oneOf") else { return };
    alternatives.iter_mut().filter_map(Value::as_object_mut).for_each(|one| {
        one.remove("additionalProperties");
    });
    schema.remove("additionalProperties");
    schema.insert("unevaluatedProperties".to_owned(), json!(false));
}

/// A schema with its keys in reading order: description before parts, and parts in the order of the type's fields.
struct Ordered<'a>(&'a Value);

const FIRST: [&str; 10] = [
    "$schema",
    "$id",
    "title",
    "description",
    "type",
    "const",
    "properties",
    "required",
    "additionalProperties",
    "$ref",
];

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Array(items) => {
                let mut seq = serializer.serialize_seq(Some(items.len()))?;
                items.iter().try_for_each(|item| seq.serialize_element(&Ordered(item)))?;
                seq.end()
            }
            Value::Object(keys) => {
                let place = |key: &str| FIRST.iter().position(|first| *first == key).unwrap_or(FIRST.len());
                let mut names: Vec<&String> = keys.keys().collect();
                names.sort_by_key(|name| place(name));
                let mut map = serializer.serialize_map(Some(keys.len()))?;
                for name in names {
                    match (name.as_str(), &keys[name], keys.get("required")) {
                        ("properties", Value::Object(properties), Some(Value::Array(required))) => {
                            map.serialize_entry(name, &OrderedProperties { properties, required })?;
                        }
                        (_, value, _) => map.serialize_entry(name, &Ordered(value))?,
                    }
                }
                map.end()
            }
            value => value.serialize(serializer),
        }
    }
}

/// Properties in the order of the type's fields, which is the order of `required`.
struct OrderedProperties<'a> {
    properties: &'a Map<String, Value>,
    required: &'a [Value],
}

impl Serialize for OrderedProperties<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let place = |key: &str| self.required.iter().position(|required| required == key);
        let mut names: Vec<&String> = self.properties.keys().collect();
        names.sort_by_key(|name| place(name).unwrap_or(usize::MAX));
        serializer.collect_map(names.into_iter().map(|name| (name, Ordered(&self.properties[name]))))
    }
}

fn one_of<'a>(names: impl IntoIterator<Item = &'a str>) -> Schema {
    json_schema!({ "enum": names.into_iter().collect::<Vec<_>>() })
}

/// Returns the schema of group names, including `Other`, which the model does not have.
pub(crate) fn group(_: &mut SchemaGenerator) -> Schema {
    one_of(crate::names::groups().map(|(name, ..)| name))
}

pub(crate) fn part_of(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": [crate::bench::OTHER, null] })
}

pub(crate) fn ends(_: &mut SchemaGenerator) -> Schema {
    use smbscope_model::connection::ConnectionEnd::{Closed, Open, Reset};
    one_of([Open, Closed, Reset].map(|end| end.name()))
}

pub(crate) fn layers(_: &mut SchemaGenerator) -> Schema {
    use SkippedProtocol as P;
    let one_each = [
        P::LinkType(0),
        P::AddressFamily(0),
        P::EtherType(0),
        P::LogicalLink(0),
        P::Ppp(0),
        P::WifiFrame(0),
        P::Mpls,
        P::Gre(0),
        P::IpProtocol(0),
        P::UdpPort(0),
        P::NestedTunnels,
        P::Others,
    ];
    one_of(one_each.map(P::layer))
}

/// Returns the schema of pairs of a time and the fraction of commands that took no longer.
pub(crate) fn cumulative(_: &mut SchemaGenerator) -> Schema {
    let pair = json!([{ "type": "integer" }, { "type": "number", "minimum": 0, "maximum": 1 }]);
    json_schema!({
        "type": "array",
        "items": { "type": "array", "prefixItems": pair, "items": false, "minItems": 2 },
    })
}

pub(crate) fn cumulatives(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": cumulative(generator) })
}

pub(crate) fn dimensions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": one_of(Dimension::ALL.map(Dimension::name)), "minItems": 1 })
}

pub(crate) fn sorts(_: &mut SchemaGenerator) -> Schema {
    one_of(SliceSortKey::ALL.map(SliceSortKey::name))
}

pub(crate) fn slice_key(_: &mut SchemaGenerator) -> Schema {
    let known = || json!({ "type": "string" });
    let maybe = || json!({ "type": ["string", "null"] });
    let said = |mut schema: Value, description: &str| {
        schema["description"] = description.into();
        schema
    };
    let count = json!({ "type": "integer", "minimum": 0 });
    json_schema!({
        "type": "object",
        "properties": {
            "client": known(),
            "server": said(known(), "Address and port."),
            "user": maybe(),
            "process": said(maybe(), "Name and id; null if the capture names none."),
            "share": maybe(),
            "file": said(maybe(), "Path below the share."),
            "directory": said(maybe(), "Path below the share; empty is the share's root."),
            "extension": said(maybe(), "In lower case; empty if the name has none."),
            "command": known(),
            "group": known(),
            "dialect": maybe(),
            "flow_id": said(count.clone(), "As in connections."),
            "connection": said(known(), "Client and server."),
            "status": maybe(),
            "size": said(count, "Bytes moved: from this power of two on (0: none) to less than the next."),
        },
        "minProperties": 1,
        "additionalProperties": false,
    })
}
