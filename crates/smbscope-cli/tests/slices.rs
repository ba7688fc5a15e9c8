//! Filters, slices and the timeline on bundled captures, compared with figures computed here from the complete exchange
//! table.

use crate::common::{Said, analyze, bundled, table};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const OFFICE: &str = "demo-smb311-office.pcap.zst";
const NETBENCH: &str = "demo-smb1-netbench.pcap.zst";

/// Row of the exchange table, by column.
type Row = BTreeMap<String, String>;

fn run(capture: &str, arguments: &[&str]) -> Said {
    let path = bundled(capture);
    let path = path.to_str().expect("the path is UTF-8");
    analyze(Path::new(env!("CARGO_TARGET_TMPDIR")), &[&[path], arguments].concat())
}

fn rows(capture: &str, arguments: &[&str]) -> Vec<Row> {
    let said = run(capture, &[&["--format", "csv"], arguments].concat());
    let (header, rows) = table(said.output());
    rows.into_iter().map(|row| header.iter().cloned().zip(row).collect()).collect()
}

fn report(capture: &str, arguments: &[&str]) -> Value {
    let said = run(capture, &[&["--format", "json"], arguments].concat());
    serde_json::from_str(said.output()).expect("the report is JSON")
}

fn number(row: &Row, column: &str) -> Option<i64> {
    row[column].parse().ok()
}

/// Returns true if the row is a command of its own.
fn is_command(row: &Row) -> bool {
    row["subcommand"] != "async portion" && row["outcome"] != "server_initiated"
}

/// Returns the response time that a slice adds up.
fn waited(row: &Row) -> Option<i64> {
    let headline = !["Waiting", "Encrypted"].contains(&row["group"].as_str());
    number(row, "response_time_ns").filter(|_| headline && row["outcome"] == "complete")
}

#[test]
fn a_filtered_table_holds_the_rows_for_which_the_expression_holds() {
    let first = report(OFFICE, &[])["totals"]["first_ns"].as_i64().expect("a time");
    type Holds = Box<dyn Fn(&Row) -> bool>;
    let cases: [(&str, Holds); 8] = [
        ("group == Read", Box::new(|row| row["group"] == "Read")),
        ("response_time > 1ms", Box::new(|row| number(row, "response_time_ns").is_some_and(|ns| ns > 1_000_000))),
        ("think_time == null", Box::new(|row| row["think_time_ns"].is_empty())),
        ("not think_time < 1ms", Box::new(|row| number(row, "think_time_ns").is_none_or(|ns| ns >= 1_000_000))),
        (
            "command in (CREATE, CLOSE) and path ~ *.docx",
            Box::new(|row| {
                ["CREATE", "CLOSE"].contains(&row["command"].as_str()) && row["path"].to_lowercase().ends_with(".docx")
            }),
        ),
        (
            "client == 10.99.0.12 or error",
            Box::new(|row| {
                // NTSTATUS values from 0xc0000000 are errors. The capture contains only these.
                let errors = ["NOT_FOUND", "DENIED", "NO_SUCH_FILE", "INVALID", "CANCELLED"];
                row["client"] == "10.99.0.12" || errors.iter().any(|part| row["status"].contains(part))
            }),
        ),
        (
            "request_last_packet >= 1000 && offset == null",
            Box::new(|row| number(row, "request_last_packet").is_some_and(|n| n >= 1_000) && row["offset"].is_empty()),
        ),
        (
            "time < 2.5s",
            Box::new(move |row| number(row, "request_first_ns").is_some_and(|ns| ns < first + 2_500_000_000)),
        ),
    ];
    let whole = rows(OFFICE, &[]);
    for (filter, holds) in cases {
        let expected: Vec<&Row> = whole.iter().filter(|row| holds(row)).collect();
        let found = rows(OFFICE, &["--filter", filter]);
        assert!(!expected.is_empty() && expected.len() < whole.len(), "{filter} tells nothing apart");
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{filter}");
    }
}

#[test]
fn a_filtered_report_counts_the_chosen_and_judges_the_whole() {
    let filter = "command == SMB_COM_READ_ANDX and response_time > 200us";
    let (whole, part) = (report(NETBENCH, &[]), report(NETBENCH, &["--filter", filter]));
    let all = rows(NETBENCH, &[]);
    let chosen: Vec<&Row> = all
        .iter()
        .filter(|row| {
            row["command"] == "SMB_COM_READ_ANDX" && number(row, "response_time_ns").is_some_and(|n| n > 200_000)
        })
        .collect();
    assert_eq!(part["filter"], filter);
    assert_eq!(part["matched"], serde_json::json!({"exchanges": chosen.len(), "of": all.len()}));
    assert_eq!((&whole["filter"], &whole["matched"]), (&Value::Null, &Value::Null));
    assert_eq!(part["totals"]["commands"], chosen.len());
    let commands: Vec<&Value> = part["commands"].as_array().expect("an array").iter().map(|c| &c["command"]).collect();
    assert_eq!(commands, ["SMB_COM_READ_ANDX"]);
    assert_eq!(
        part["commands"][0]["response_time"]["min"],
        chosen.iter().filter_map(|row| waited(row)).min().expect("a time")
    );
    for whole_of in ["quality", "captures"] {
        assert_eq!(part[whole_of], whole[whole_of], "{whole_of}");
    }
    // The report still lists all connections. Only connections with matching exchanges have a time split, and its busy
    // time covers only the matches.
    let flows: BTreeSet<&str> = chosen.iter().map(|row| row["flow_id"].as_str()).collect();
    let mut elapsed = 0;
    let connections = |report: &Value| report["connections"].as_array().expect("an array").clone();
    for (mut found, expected) in connections(&part).into_iter().zip(connections(&whole)) {
        if flows.contains(found["flow_id"].to_string().as_str()) {
            let split = found["time_split"].take();
            elapsed += split["elapsed_ns"].as_i64().expect("a time");
            assert_eq!(split["elapsed_ns"], expected["time_split"]["elapsed_ns"]);
            assert!(split["busy_ns"].as_i64() < expected["time_split"]["busy_ns"].as_i64(), "{split}");
            found["time_split"] = expected["time_split"].clone();
        } else {
            assert_eq!(found["time_split"].take(), Value::Null);
            found["time_split"] = expected["time_split"].clone();
        }
        assert!(found == expected, "{} is not {}", found["flow_id"], expected["flow_id"]);
    }
    assert_eq!(part["time_split"]["elapsed_ns"], elapsed);
}

#[test]
fn a_damaged_capture_is_as_damaged_with_a_filter() {
    let damaged = "damaged/smb1_mux__drop10.pcap.zst";
    let (whole, part) = (report(damaged, &[]), report(damaged, &["--filter", "group == Locking"]));
    assert_eq!(part["quality"], whole["quality"]);
    assert_ne!(part["totals"]["untimed"], whole["totals"]["untimed"]);
    // The same holds for the text report, including the percentages in the warnings.
    let lines = |arguments: &[&str]| -> Vec<String> {
        let said = run(damaged, &[arguments, &["--full"]].concat());
        let is_about_quality = |line: &&str| line.contains("were not timed") || line.contains("of commands)");
        said.output().lines().filter(is_about_quality).map(str::to_owned).collect()
    };
    let whole = lines(&[]);
    assert!(whole.len() > 2, "{whole:?}");
    assert_eq!(lines(&["--filter", "group == Locking"]), whole);
}

#[test]
fn slices_add_up_what_their_rows_have() {
    for (capture, filter) in [(OFFICE, "message_id != null"), (NETBENCH, "group != Locking")] {
        let report = report(capture, &["--by", "client,command", "--by", "share", "--filter", filter]);
        let mut expected: BTreeMap<_, (u64, u64, i64, Option<i64>)> = BTreeMap::new();
        for row in rows(capture, &["--filter", filter]).iter().filter(|row| is_command(row)) {
            let key = (row["client"].clone(), row["command"].clone(), row["share"].clone());
            let sum = expected.entry(key).or_default();
            sum.0 += 1;
            if let Some(time) = waited(row) {
                sum.1 += 1;
                sum.2 += time;
                sum.3 = sum.3.max(Some(time));
            }
        }
        let entries = report["slices"]["entries"].as_array().expect("an array");
        let found: BTreeMap<_, _> = entries
            .iter()
            .map(|entry| {
                let part = |name: &str| entry["key"][name].as_str().unwrap_or_default().to_owned();
                let key = (part("client"), part("command"), part("share"));
                let count = |name: &str| entry[name].as_u64().expect("a count");
                let sum = entry["response_time_sum_ns"].as_i64().expect("a sum");
                (key, (count("count"), count("timed"), sum, entry["response_time"]["max"].as_i64()))
            })
            .collect();
        assert_eq!(found, expected, "{capture}");
        assert_eq!((entries.len(), &report["slices"]["other"]), (expected.len(), &Value::Null));
        let sums: Vec<i64> =
            entries.iter().map(|entry| entry["response_time_sum_ns"].as_i64().expect("a sum")).collect();
        assert!(sums.is_sorted_by(|a, b| a >= b), "not in order: {sums:?}");
    }
}

#[test]
fn slices_are_the_same_for_any_number_of_threads() {
    for format in ["text", "json", "csv"] {
        let run = |threads| {
            let arguments = ["--by", "file,status", "--sort", "p95", "--format", format, "--threads", threads];
            run(NETBENCH, &arguments).output().to_owned()
        };
        let one = run("1");
        assert!(["2", "5"].iter().all(|threads| run(threads) == one), "{format}");
    }
}

#[test]
fn filtered_reports_are_the_same_for_any_number_of_threads() {
    let run =
        |threads| run(NETBENCH, &["--filter", "time > 1s and path ~ *1*", "--threads", threads]).output().to_owned();
    let one = run("1");
    assert!(["2", "5"].iter().all(|threads| run(threads) == one));
}

#[test]
fn slices_as_a_table_hold_what_json_holds() {
    let entries = report(OFFICE, &["--by", "directory"])["slices"]["entries"].clone();
    let table = rows(OFFICE, &["--by", "directory"]);
    let entries = entries.as_array().expect("an array");
    assert_eq!(entries.len(), table.len());
    for (entry, row) in entries.iter().zip(&table) {
        let shown = |value: &Value| match value {
            Value::Null => String::new(),
            Value::String(text) if text.is_empty() => "\\".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let columns = [
            ("share", &entry["key"]["share"]),
            ("directory", &entry["key"]["directory"]),
            ("count", &entry["count"]),
            ("bytes_read", &entry["bytes_read"]),
            ("response_time_sum_ns", &entry["response_time_sum_ns"]),
            ("response_time_p50_ns", &entry["response_time"]["p50"]),
            ("response_time_p95_ns", &entry["response_time"]["p95"]),
            ("service_time_max_ns", &entry["service_time"]["max"]),
            ("missed_at_most_ns", &entry["missed_at_most_ns"]),
        ];
        columns.iter().for_each(|(column, value)| assert_eq!(row[*column], shown(value), "{column}"));
    }
}

#[test]
fn bins_have_the_width_asked_for_and_hold_every_command() {
    let report = report(OFFICE, &["--interval", "250ms"]);
    let bins = report["timeline"]["bins"].as_array().expect("an array");
    assert_eq!(report["timeline"]["width_ns"], 250_000_000);
    assert!(bins.iter().all(|bin| bin["start_ns"].as_i64().expect("a time") % 250_000_000 == 0));
    let commands: u64 = bins.iter().map(|bin| bin["commands"].as_u64().expect("a count")).sum();
    assert_eq!(report["totals"]["commands"], commands);
    assert_eq!(report["warnings"], serde_json::json!([]));
}

#[test]
fn a_time_line_of_too_many_bins_is_coarser_and_says_so() {
    let report = report(NETBENCH, &["--interval", "1us"]);
    let width = report["timeline"]["width_ns"].as_u64().expect("a width");
    let bins = report["timeline"]["bins"].as_array().expect("an array").len();
    assert!(width > 1_000 && (width / 1_000).is_power_of_two() && bins <= 4_096, "{bins} bins of {width}");
    let warning = report["warnings"][0].as_str().expect("a warning");
    assert!(warning.ends_with(" wide: of 1.00 µs there would be more than 4096"), "{warning}");
}

#[test]
fn reports_with_slices_follow_the_schema() {
    let schema = include_str!("../../../schema/smbscope.report-1.schema.json");
    let schema: Value = serde_json::from_str(schema).expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema is valid");
    let every = "client,server,user,share,file,directory,extension,command,group,dialect,connection,status,size";
    for capture in [OFFICE, "own/smb1_raw.pcap.zst", "damaged/smb1_mux__drop10.pcap.zst"] {
        for by in every.split(',').chain([every]) {
            let report = report(capture, &["--by", by, "--sort", "max", "--filter", "time >= 0s"]);
            let problems: Vec<String> =
                validator.iter_errors(&report).map(|error| format!("{}: {error}", error.instance_path())).collect();
            assert_eq!(problems, Vec::<String>::new(), "{capture} by {by}");
        }
    }
}

#[test]
fn slices_and_time_line_fit_the_page() {
    for width in ["80", "100", "160"] {
        for by in ["connection", "file,client", "user,status,size"] {
            let said = run(OFFICE, &["--by", by, "--interval", "100ms", "--width", width]);
            let lines = said.output().lines().filter(|line| !line.contains(" smbscope analyze "));
            let widest = lines.map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(widest <= width.parse().expect("a number"), "{by}: {widest} > {width}");
        }
    }
}
