use super::*;
use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{DurationNanosecondType, Float64Type, Int64Type, TimestampNanosecondType};
use arrow_schema::{DataType, TimeUnit};
use serde_json::json;

fn report() -> Value {
    json!({
        "schema": "smbscope.report/1",
        "commands": [
            {
                "protocol": "SMB2", "command": "READ", "groups": ["Read"], "count": 3,
                "errors": {"STATUS_END_OF_FILE": 2},
                "response_time": {"count": 3, "p50": 1_500, "p95": null},
                "subcommands": [{"subcommand": "X", "count": 1, "response_time": {"max": 7}}],
            },
            {"protocol": "SMB2", "command": "CLOSE", "count": 1, "errors": {}, "subcommands": []},
        ],
        "episodes": [{"number": 1, "start_ns": 1_700_000_000_000_000_001_i64, "waited_ns": 5}],
        "answer": {
            "culprit": "server", "headline": "Server: slow.", "evidence": ["It was."],
            "causes": [{
                "id": "slow-storage", "subject": {"client": "10.0.0.7", "clients": 1, "share": null},
                "lost_ns": {"low": 1, "best": 2, "high": 3}, "active_ns": 9, "evidence": [{"packet": 17}],
            }],
        },
    })
}

#[test]
fn nested_keys_become_columns_with_their_types() {
    let commands = table(&report(), "commands").expect("a table");
    assert_eq!(commands.num_rows(), 2);
    let p50 = commands.column_by_name("response_time_p50").expect("a column");
    assert_eq!(p50.data_type(), &DataType::Duration(TimeUnit::Nanosecond));
    let p50 = p50.as_primitive::<DurationNanosecondType>();
    assert_eq!((p50.value(0), p50.is_null(1)), (1_500, true));
    // `count` is the only statistic that isn't a time.
    let count = commands.column_by_name("response_time_count").expect("a column").as_primitive::<Int64Type>();
    assert_eq!(count.value(0), 3);
    let names = commands.schema();
    assert_eq!(
        names.fields()[..3].iter().map(|field| field.name()).collect::<Vec<_>>(),
        ["protocol", "command", "groups"]
    );
}

#[test]
fn lists_and_objects_with_any_keys_stay_lists() {
    let commands = table(&report(), "commands").expect("a table");
    let errors = commands.column_by_name("errors").expect("a column").as_list::<i32>();
    assert_eq!((errors.value(0).len(), errors.value(1).len()), (1, 0));
    let first = errors.value(0);
    let entry = first.as_struct();
    assert_eq!(entry.column_by_name("key").expect("a field").as_string::<i32>().value(0), "STATUS_END_OF_FILE");
    assert_eq!(entry.column_by_name("value").expect("a field").as_primitive::<Int64Type>().value(0), 2);
    let parts = commands.column_by_name("subcommands").expect("a column").as_list::<i32>().value(0);
    let time = parts.as_struct().column_by_name("response_time").expect("a field").clone();
    let max = time.as_struct().column_by_name("max").expect("a field").clone();
    assert_eq!(max.as_primitive::<DurationNanosecondType>().value(0), 7);
}

#[test]
fn points_in_time_are_timestamps_and_spans_are_durations() {
    let episodes = table(&report(), "episodes").expect("a table");
    let start = episodes.column_by_name("start_ns").expect("a column");
    assert_eq!(start.data_type(), &DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())));
    assert_eq!(start.as_primitive::<TimestampNanosecondType>().value(0), 1_700_000_000_000_000_001);
    let waited = episodes.column_by_name("waited_ns").expect("a column");
    assert_eq!(waited.as_primitive::<DurationNanosecondType>().value(0), 5);
}

#[test]
fn an_object_is_a_table_with_one_row() {
    let answer = table(&report(), "answer").expect("a table");
    assert_eq!(answer.num_rows(), 1);
    let text = |name: &str| answer.column_by_name(name).expect("a column").as_string::<i32>().value(0).to_owned();
    assert_eq!((text("culprit"), text("headline")), ("server".to_owned(), "Server: slow.".to_owned()));
    let evidence = answer.column_by_name("evidence").expect("a column").as_list::<i32>().value(0);
    assert_eq!(evidence.as_string::<i32>().value(0), "It was.");
}

#[test]
fn the_causes_of_an_answer_are_a_table() {
    let causes = table(&report(), "causes").expect("a table");
    assert_eq!(causes, table(&report(), "answer.causes").expect("a table"));
    assert_eq!(causes.num_rows(), 1);
    let text = |name: &str| causes.column_by_name(name).expect("a column").as_string::<i32>().iter().next().flatten();
    assert_eq!(
        (text("id"), text("subject_client"), text("subject_share")),
        (Some("slow-storage"), Some("10.0.0.7"), None)
    );
    let best = causes.column_by_name("lost_ns_best").expect("a column");
    assert_eq!(best.data_type(), &DataType::Duration(TimeUnit::Nanosecond));
    assert_eq!(best.as_primitive::<DurationNanosecondType>().value(0), 2);
    let names = tables(&report()).expect("a document");
    let answer = names.iter().position(|name| *name == "answer").expect("a table");
    assert_eq!(names[answer + 1], "causes");
    let comparison = json!({ "schema": "smbscope.compare/1" });
    assert!(table(&comparison, "causes").is_err() && !tables(&comparison).expect("a document").contains(&"causes"));
}

#[test]
fn every_published_table_can_be_made_of_nothing() {
    for kind in &KINDS {
        let document = json!({ "schema": kind.name });
        let names = tables(&document).expect("a document");
        assert!(names.len() > 1, "{}: {names:?}", kind.name);
        for name in names {
            let table = table(&document, name).unwrap_or_else(|error| panic!("{}: {error}", kind.name));
            assert_eq!(table.num_rows(), 0);
            assert!(table.num_columns() > 0, "{name}");
            // Polars refuses a table with two columns of one name.
            let schema = table.schema();
            let columns: BTreeSet<&String> = schema.fields().iter().map(|field| field.name()).collect();
            assert_eq!(columns.len(), table.num_columns(), "{}: {name} has a column twice", kind.name);
        }
    }
}

#[test]
fn what_is_no_table_is_an_error_that_lists_the_tables() {
    let error = table(&report(), "warnings").expect_err("a list of texts").to_string();
    assert!(
        error.starts_with("no table \"warnings\" in smbscope.report/1: it has generator, matched, captures"),
        "{error}"
    );
    let error = table(&json!([1]), "commands").expect_err("no document").to_string();
    assert_eq!(error, "not a document of smbscope: its schema is \"\"");
}

#[test]
fn tuples_of_numbers_are_lists_of_numbers() {
    let document =
        json!({ "schema": "smbscope.report/1", "groups": [{ "group": "Read", "cumulative": [[298_000, 1.0]] }] });
    let groups = table(&document, "groups").expect("a table");
    let cumulative = groups.column_by_name("cumulative").expect("a column").as_list::<i32>().value(0);
    let pair = cumulative.as_list::<i32>().value(0);
    assert_eq!(pair.as_primitive::<Float64Type>().values(), &[298_000.0, 1.0]);
}

#[test]
fn a_list_within_an_object_is_named_with_a_dot() {
    let document =
        json!({ "schema": "smbscope.report/1", "timeline": { "bins": [{ "start_ns": 1 }, { "start_ns": 2 }] } });
    assert_eq!(table(&document, "timeline.bins").expect("a table").num_rows(), 2);
    assert_eq!(table(&document, "timeline").expect("a table").num_rows(), 1);
}
