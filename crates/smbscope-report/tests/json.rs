//! The JSON report: checked against its schema and hand-computed figures.

use crate::common;
use serde_json::{Value, json};
use smbscope_model::{Dialect, Quality};
use smbscope_report::{Report, json};

fn document(report: &Report) -> Value {
    let mut text = Vec::new();
    json::write(report, &mut text).expect("writing to memory does not fail");
    serde_json::from_slice(&text).expect("the report is JSON")
}

fn schema() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/smbscope.report-1.schema.json");
    let text = std::fs::read_to_string(path).expect("the schema is in the repository");
    serde_json::from_str(&text).expect("the schema is JSON")
}

fn problems(document: &Value) -> Vec<String> {
    let validator = jsonschema::validator_for(&schema()).expect("the schema is valid");
    validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

fn command<'a>(document: &'a Value, name: &str) -> &'a Value {
    let commands = document["commands"].as_array().expect("an array");
    commands.iter().find(|entry| entry["command"] == name).expect("the command")
}

#[test]
fn every_report_follows_the_schema() {
    let mut with_everything = common::office();
    with_everything.title = Some("office".into());
    with_everything.captures[0].snap_length = Some(128);
    with_everything.captures[0].warnings.push("cut off".into());
    with_everything.warnings.push("a warning".into());
    with_everything.connections[0].users.push("CORP\\ann".into());
    let empty = common::report(&[], Vec::new(), Quality::default());
    for report in [common::small(), common::office(), with_everything, empty] {
        assert_eq!(problems(&document(&report)), Vec::<String>::new());
    }
}

#[test]
fn mangled_reports_do_not_follow_the_schema() {
    let good = document(&common::small());
    type Mangle = fn(&mut Value);
    let mangle: [(&str, Mangle); 10] = [
        ("another version", |d| d["schema"] = json!("smbscope.report/2")),
        ("a key too many", |d| d["extra"] = json!(1)),
        ("a key too few", |d| drop(d.as_object_mut().map(|o| o.remove("timeline")))),
        ("a time in seconds", |d| d["commands"][0]["response_time"]["mean"] = json!(0.005)),
        ("a statistic of another name", |d| d["commands"][0]["response_time"]["p98"] = json!(1)),
        ("a time of another name", |d| d["commands"][0]["wait_time"] = json!(1)),
        ("an unknown group", |d| d["groups"][0]["group"] = json!("Misc")),
        ("an unknown outcome", |d| d["totals"]["outcomes"]["vanished"] = json!(1)),
        ("nine decades", |d| drop(d["commands"][0]["distribution"].as_array_mut().map(|a| a.pop()))),
        ("an unknown counter", |d| d["quality"]["bad_luck"] = json!(0)),
    ];
    for (what, mangle) in mangle {
        let mut bad = good.clone();
        mangle(&mut bad);
        assert_ne!(problems(&bad), Vec::<String>::new(), "{what}");
    }
}

#[test]
fn whether_signing_is_required_is_not_guessed() {
    let connections = vec![common::connection(1, None), common::connection(2, Some(Dialect::NtLm012))];
    let document = document(&common::report(&[], connections, Quality::default()));
    assert_eq!(problems(&document), Vec::<String>::new());
    let required: Vec<_> = (0..2).map(|i| document["connections"][i]["signing_required"].clone()).collect();
    assert_eq!(required, [Value::Null, json!(false)]);
}

#[test]
fn figures_of_a_command_are_those_computed_by_hand() {
    let document = document(&common::small());
    let read = command(&document, "SMB_COM_READ_ANDX");
    // Timed: 320,000, 1,000,000, 7,240,000 and 9,999,999 ns. The end of a fifth read's response is missing.
    assert_eq!((&read["protocol"], &read["count"], &read["timed"]), (&json!("SMB1"), &json!(5), &json!(4)));
    assert_eq!(read["outcomes"], json!({"complete": 4, "response_end_missing": 1}));
    // Σ = 18,559,999, mean 4,639,999.75; deviations −4,319,999.75, −3,639,999.75, 2,600,000.25, 5,359,999.25: their
    // squares 18,662,397,840,000.06 + 13,249,598,180,000.06 + 6,760,001,300,000.06 + 28,729,591,960,000.56 add up to
    // 67,401,589,280,000.75; a third of it is 22,467,196,426,666.9, its root 4,739,957.4 ns. p50 = (1,000,000 +
    // 7,240,000) / 2. Four values are too few for higher percentiles.
    let expected = json!({
        "count": 4, "min": 320_000, "max": 9_999_999, "mean": 4_640_000, "stddev": 4_739_957,
        "p50": 4_120_000, "p90": null, "p95": null, "p99": null, "p999": null,
    });
    assert_eq!(read["response_time"], expected);
    // Request and response take a fifth each, so service time is 3/5 of 320,000 ns = 192,000 ns.
    assert_eq!(read["service_time"]["min"], 192_000);
    assert_eq!(read["request_transfer"]["min"], 64_000);
    // srt is 4/5: 256,000.
    assert_eq!(read["srt"]["min"], 256_000);
    assert_eq!((&read["server_time"]["count"], &read["server_time"]["min"]), (&json!(0), &Value::Null));
    // 2 + 2 + 2 + 5 = 11 packets in 4 exchanges.
    assert_eq!(read["average_packets"], 2.75);
    // 320 µs is below 1 ms. Exactly 1 ms, 7.24 ms and 9.999999 ms are below 10 ms.
    assert_eq!(read["distribution"], json!([0, 0, 0, 1, 3, 0, 0, 0, 0, 0]));
}

#[test]
fn subcommands_and_the_async_portion_stand_below_their_command() {
    let document = document(&common::small());
    let transaction = command(&document, "SMB_COM_TRANSACTION2");
    let named = |part: &Value| (part["subcommand"].clone(), part["count"].clone());
    let parts: Vec<_> = transaction["subcommands"].as_array().expect("an array").iter().map(named).collect();
    assert_eq!(parts, [(json!("TRANS2_FIND_FIRST2"), json!(2)), (json!("TRANS2_FIND_NEXT2"), json!(1))]);
    let raw = command(&document, "SMB_COM_WRITE_RAW");
    assert_eq!((&raw["count"], &raw["subcommands"]), (&json!(1), &json!([])));
    let block = &raw["apart"][0];
    assert_eq!((&block["subcommand"], &block["average_packets"]), (&json!("async portion"), &json!(25.0)));
}

#[test]
fn groups_add_up_to_the_totals() {
    for report in [common::small(), common::office()] {
        let document = document(&report);
        let sum = |groups: &Value, key: &str, headline: bool| -> u64 {
            let groups = groups.as_array().expect("an array").iter();
            groups.filter(|g| !headline || g["headline"] == true).map(|g| g[key].as_u64().expect("a count")).sum()
        };
        let groups = &document["groups"];
        assert_eq!(document["totals"]["commands"], sum(groups, "count", false));
        assert_eq!(document["totals"]["headline"]["count"], sum(groups, "count", true));
        assert_eq!(document["totals"]["headline"]["timed"], sum(groups, "timed", true));
        let other = groups.as_array().and_then(|groups| groups.iter().find(|g| g["group"] == "Other"));
        let other = other.expect("both reports have Other");
        assert_eq!(other["count"], sum(&other["parts"], "count", true));
        let commands = document["commands"].as_array().expect("an array");
        let counted: u64 = commands.iter().map(|c| c["count"].as_u64().expect("a count")).sum();
        assert_eq!(document["totals"]["commands"], counted);
    }
}

#[test]
fn the_same_report_is_written_the_same() {
    assert_eq!(document(&common::office()).to_string(), document(&common::office()).to_string());
}

#[test]
fn a_figure_that_appears_twice_is_the_same_in_text_and_json() {
    let report = common::office();
    let document = document(&report);
    let load = &document["totals"]["load"];
    let options = smbscope_report::text::ReportTextOptions { full: true, ..Default::default() };
    let text = smbscope_report::text::render(&report, &options);
    // The office report has fewer than ten commands per second, which the sentence states with one decimal.
    let rate = load["commands_per_second"].as_f64().expect("time went by");
    assert!(text.contains(&format!("{rate:.1} commands/s")), "{rate}: {text}");
    let elapsed = report.aggregate.elapsed().expect("time went by").as_secs_f64();
    assert!((rate - report.aggregate.count as f64 / elapsed).abs() < 1e-9);
    // Errors of all commands: the sum over the rows of the table, including expected waits.
    let of_rows = |key: &str| -> u64 {
        let rows = document[key].as_array().expect("a list");
        rows.iter()
            .flat_map(|row| row["errors"].as_object())
            .flat_map(|errors| errors.values())
            .filter_map(|n| n.as_u64())
            .sum()
    };
    assert_eq!(load["errors"], of_rows("commands"));
    let of_clients = |key: &str| -> u64 {
        document["clients"].as_array().into_iter().flatten().filter_map(|client| client[key].as_u64()).sum()
    };
    assert_eq!(
        (load["errors"].as_u64(), load["bytes_read"].as_u64()),
        (Some(of_clients("errors")), Some(of_clients("bytes_read")))
    );
    let headline = report.explanation.answer.headline.replace('\u{a0}', " ");
    assert_eq!(document["answer"]["headline"], headline);
    assert!(text.replace('\n', " ").contains(&headline), "{text}");
}
