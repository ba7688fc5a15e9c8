//! Filter, slices and timeline in all formats, with figures added up by hand.

use crate::common;
use serde_json::{Value, json};
use smbscope_model::{CommandGroup, Exchange, Nanos, Quality};
use smbscope_report::csv::{self, CellStyle};
use smbscope_report::text::{ReportTextOptions, render};
use smbscope_report::{Filtered, Report, classic, json};
use smbscope_stats::{Aggregator, Census, Dimension, SliceSortKey, Slicer};

/// Returns exchanges of three clients: two reads of a document, one read of it, and one read of an unknown file.
fn exchanges() -> Vec<Exchange> {
    let read = |client, path: Option<&str>, second: i64, ns| {
        let start = common::START + second * 1_000_000_000;
        let mut read = common::exchange(common::smb2_command(8), CommandGroup::Read, start, ns);
        read.endpoints = common::endpoints(client);
        read.share = Some("home".into());
        read.path = path.map(Into::into);
        (read.length, read.response.bytes) = (Some(4_096), 4_180);
        read
    };
    vec![
        read(1, Some(r"docs\a.TXT"), 0, 5_000_000),
        read(1, Some(r"docs\a.txt"), 1, 15_000_000),
        read(2, Some(r"docs\old\b.txt"), 4, 10_000_000),
        read(3, None, 4, 2_000_000),
    ]
}

fn sliced(by: &[Dimension], sort: SliceSortKey) -> Report {
    let exchanges = exchanges();
    let mut report = common::report(&exchanges, Vec::new(), Quality::default());
    let mut slicer = Slicer::new(by);
    exchanges.iter().for_each(|exchange| slicer.record(exchange));
    report.aggregate.slices = Some(slicer.finish(sort));
    report
}

fn document(report: &Report) -> Value {
    let mut text = Vec::new();
    json::write(report, &mut text).expect("writing to memory does not fail");
    serde_json::from_slice(&text).expect("the report is JSON")
}

fn text(report: &Report, top: usize) -> String {
    render(report, &ReportTextOptions { top, ..ReportTextOptions::default() })
}

/// Returns the lines from the one with this beginning up to the next empty line.
fn block(text: &str, beginning: &str) -> Vec<String> {
    let lines = text.lines().skip_while(|line| !line.starts_with(beginning));
    lines.take_while(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn json_has_a_key_and_figures_for_each_slice() {
    let document = document(&sliced(&[Dimension::Client, Dimension::Extension], SliceSortKey::ResponseTime));
    let slices = &document["slices"];
    assert_eq!((&slices["by"], &slices["sort"]), (&json!(["client", "extension"]), &json!("response_time")));
    let keys: Vec<&Value> = slices["entries"].as_array().expect("an array").iter().map(|entry| &entry["key"]).collect();
    let expected = [
        json!({"client": "192.168.1.1", "extension": "txt"}),
        json!({"client": "192.168.1.2", "extension": "txt"}),
        json!({"client": "192.168.1.3", "extension": null}),
    ];
    assert_eq!(keys, expected.iter().collect::<Vec<_>>());
    let first = &slices["entries"][0];
    // 5 and 15 ms, three fifths of it service time: 3 and 9 ms.
    assert_eq!(first["response_time_sum_ns"], 20_000_000);
    assert_eq!(
        (&first["response_time"]["p50"], &first["service_time"]["mean"]),
        (&json!(10_000_000), &json!(6_000_000))
    );
    assert_eq!(
        (&first["bytes_read"], &first["errors"], &first["missed_at_most_ns"]),
        (&json!(8_192), &json!(0), &json!(0))
    );
}

#[test]
fn a_table_has_a_row_a_slice_and_empty_fields_for_the_unknown() {
    let mut table = Vec::new();
    csv::write_slices(&sliced(&[Dimension::Directory], SliceSortKey::Key), CellStyle::default(), &mut table)
        .expect("memory takes everything");
    let mut reader = ::csv::Reader::from_reader(&table[..]);
    let header = reader.headers().expect("a header").clone();
    let column = |name: &str| header.iter().position(|column| column == name).expect("the column is there");
    let wanted =
        ["share", "directory", "count", "response_time_sum_ns", "response_time_max_ns", "is_other"].map(column);
    let rows: Vec<[String; 6]> =
        reader.records().map(|row| row.expect("a row")).map(|row| wanted.map(|i| row[i].to_owned())).collect();
    let expected = [
        ["home", "docs", "2", "20000000", "15000000", "false"],
        ["home", r"docs\old", "1", "10000000", "10000000", "false"],
        ["home", "", "1", "2000000", "2000000", "false"],
    ];
    assert_eq!(rows, expected.map(|row| row.map(str::to_owned)));
}

#[test]
fn the_text_lists_the_top_and_adds_up_the_rest() {
    let text = text(&sliced(&[Dimension::File], SliceSortKey::ResponseTime), 2);
    // 15 of 32 ms are 46.9%. The two others are client 1's first read and client 3's read, 5 and 2 ms.
    let expected = [
        r"By file             Count Total wait Share   Read Median Average p95 p99 Slowest Service",
        r"home\docs\a.txt         1 15.0 ms 46.9% 4.10 kB 15.0 ms  15.0 ms   -   -  15.0 ms  9.00 ms",
        r"home\docs\old\b.txt     1 10.0 ms 31.2% 4.10 kB 10.0 ms  10.0 ms   -   -  10.0 ms  6.00 ms",
        r"(2 others)              2 7.00 ms 21.9% 8.19 kB         3.50 ms            5.00 ms",
    ];
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let found: Vec<Vec<String>> = block(&text, "By file").iter().take(4).map(|line| words(line)).collect();
    assert_eq!(found, expected.map(words));
}

#[test]
fn the_time_line_has_a_line_a_bin_and_skips_what_is_empty() {
    let mut report = common::report(&[], Vec::new(), Quality::default());
    assert!(!text(&report, 20).contains("Time line"));
    let mut aggregator = Aggregator::with_interval(Nanos(1_000_000_000));
    exchanges().iter().for_each(|exchange| aggregator.record(exchange));
    report.aggregate = aggregator.finish();
    assert!(!text(&report, 20).contains("Time line"), "nobody asked for it");
    report.interval = Some(Nanos(1_000_000_000));
    let lines = block(&text(&report, 20), "Time line");
    let starts: Vec<&str> = lines.iter().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(starts[..2], ["Time", "Commands"]);
    assert_eq!(starts[2..], ["1997-08-11", "09:30:00", "09:30:01", "…", "09:30:04", "MB/s"]);
    assert_eq!(lines[5], "  … 2.00 s without a command");
    // Two reads of 10 and 2 ms, with 200 bytes up and 8,360 down: 0.00836 MB.
    let last: Vec<&str> = lines[6].split_whitespace().take(9).collect();
    assert_eq!(last, ["09:30:04", "2", "2.0", "0.00", "0.01", "6.00", "ms", "10.0", "ms"]);
    // 82 columns leave too little room for the heading of the bars, so they are omitted; 100 are enough.
    let bars = |width| {
        let rendered = render(&report, &ReportTextOptions { width, ..ReportTextOptions::default() });
        let lines = block(&rendered, "Time line");
        (lines[1].contains("Total wait"), lines.iter().any(|line| line.ends_with(['█', '▏'])))
    };
    assert_eq!([bars(80), bars(100)], [(false, false), (true, true)]);
}

#[test]
fn every_format_says_that_it_is_filtered() {
    let all = exchanges();
    let chosen = &all[..1];
    let mut whole = Census::default();
    all.iter().for_each(|exchange| whole.record(exchange));
    let mut report = common::report(chosen, Vec::new(), Quality::default());
    report.filter = Some(Filtered { expression: "response_time == 5ms".into(), matched: 1, whole });
    let note = "Filtered: 1 of 4 exchanges match response_time == 5ms";
    assert_eq!(text(&report, 20).lines().nth(1), Some(note));
    assert!(classic::render(&report).contains(note));
    let document = document(&report);
    assert_eq!(document["filter"], "response_time == 5ms");
    assert_eq!(document["matched"], json!({"exchanges": 1, "of": 4}));
}

#[test]
fn the_quality_of_a_filtered_report_is_that_of_the_whole() {
    let mut lost = exchanges();
    lost[3].outcome = smbscope_model::ExchangeOutcome::ResponseNotCaptured;
    let quality = Quality { dropped_packets: 1, capture_gaps: 1, responses_not_captured: 1, ..Default::default() };
    let whole = common::report(&lost, Vec::new(), quality.clone());
    let mut part = common::report(&lost[..1], Vec::new(), quality);
    let mut census = Census::default();
    lost.iter().for_each(|exchange| census.record(exchange));
    part.filter = Some(Filtered { expression: "signed".into(), matched: 1, whole: census });
    assert_eq!(part.quality_sentence(), whole.quality_sentence());
    // One of four.
    assert!(part.quality_sentence().starts_with("About 25.0% of commands"), "{}", part.quality_sentence());
}

#[test]
fn names_from_the_wire_cannot_steer_a_terminal_in_slices_and_filters() {
    let mut exchanges = exchanges();
    exchanges[0].path = Some("a\u{1b}[31m".into());
    let mut report = common::report(&exchanges, Vec::new(), Quality::default());
    let mut slicer = Slicer::new(&[Dimension::File]);
    exchanges.iter().for_each(|exchange| slicer.record(exchange));
    report.aggregate.slices = Some(slicer.finish(SliceSortKey::Key));
    report.filter = Some(Filtered { expression: "share == \u{1b}x".into(), matched: 4, whole: Census::default() });
    assert!(!text(&report, 20).contains('\u{1b}'));
}
