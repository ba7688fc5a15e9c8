//! The published schemas match the document types.

use smbscope_report::schema::published;

#[test]
fn committed_schemas_are_what_the_types_say() {
    for schema in published() {
        let path = format!("{}/../../schema/{}", env!("CARGO_MANIFEST_DIR"), schema.file);
        let committed = std::fs::read_to_string(&path).expect("the schema is in the repository");
        assert!(
            committed == schema.text,
            "{} is not what the types say: run `make schemas` and `make web`",
            schema.file
        );
    }
}

#[test]
fn every_object_of_a_schema_is_closed() {
    for schema in published() {
        let root: serde_json::Value = serde_json::from_str(&schema.text).expect("the schema is JSON");
        let mut open = Vec::new();
        find_open(&root, "", &mut open);
        assert_eq!(open, Vec::<String>::new(), "{}", schema.file);
    }
}

/// Finds objects that allow additional keys, and objects that another schema closes before they add keys of their own.
fn find_open(node: &serde_json::Value, path: &str, open: &mut Vec<String>) {
    if let Some(keys) = node.as_object() {
        let named = keys.get("properties").is_some_and(serde_json::Value::is_object);
        // Alternatives among the keys of an object are closed together with the object.
        if keys.get("unevaluatedProperties") == Some(&false.into()) {
            return keys.iter().filter(|(key, _)| *key != "oneOf").for_each(|(key, value)| {
                find_open(value, &format!("{path}/{key}"), open);
            });
        }
        if named && (keys.get("additionalProperties") != Some(&false.into()) || keys.contains_key("$ref")) {
            open.push(path.to_owned());
        }
        keys.iter().for_each(|(key, value)| find_open(value, &format!("{path}/{key}"), open));
    } else if let Some(items) = node.as_array() {
        items.iter().enumerate().for_each(|(at, value)| find_open(value, &format!("{path}/{at}"), open));
    }
}
