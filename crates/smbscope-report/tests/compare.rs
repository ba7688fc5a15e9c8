//! Comparisons: checked against their schema and hand-computed figures, with snapshots of the text.

use crate::common;
use serde_json::{Value, json};
use smbscope_model::{CommandGroup, Dialect, Exchange, ExchangeOutcome, Half, Nanos, Quality, Subcommand};
use smbscope_report::bench::{self, ServerLoad, ServerSeries};
use smbscope_report::compare::{
    self, ComparableDocument, ComparableReport, Compared, Comparison, ComparisonInput, Given, NoteKind, PointCell,
};
use smbscope_report::{Answer, Cause, Culprit, Judged, Report};
use smbscope_wire::names::Trans2;
use std::slice::from_ref;

fn input(name: &str, report: &Report) -> ComparisonInput {
    ComparisonInput {
        name: name.to_owned(),
        source: format!("{name}.pcap"),
        report: ComparableReport::from_report(report),
    }
}

fn compared(reports: &[(&str, Report)]) -> Comparison {
    let inputs: Vec<ComparisonInput> = reports.iter().map(|(name, report)| input(name, report)).collect();
    Comparison::new(None, &inputs)
}

fn document(comparison: &Comparison) -> Value {
    let mut text = Vec::new();
    compare::write(comparison, "0.0.0", &mut text).expect("writing to memory does not fail");
    serde_json::from_slice(&text).expect("the comparison is JSON")
}

fn problems(document: &Value) -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/smbscope.compare-1.schema.json");
    let schema = std::fs::read_to_string(path).expect("the schema is in the repository");
    let schema: Value = serde_json::from_str(&schema).expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema is valid");
    validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// Returns reads with these response times, one per second, on one connection.
fn reads(times: &[i64]) -> Vec<Exchange> {
    let read = |(at, time): (usize, &i64)| {
        common::exchange(common::smb2_command(8), CommandGroup::Read, common::START + at as i64 * 1_000_000_000, *time)
    };
    times.iter().enumerate().map(read).collect()
}

fn report(exchanges: &[Exchange]) -> Report {
    common::report(exchanges, vec![common::connection(1, Some(Dialect::Smb2(0x0311)))], Quality::default())
}

fn group<'a>(comparison: &'a Comparison, name: &str) -> &'a compare::ComparedGroup {
    comparison.groups.iter().find(|group| group.group == name).expect("the group")
}

#[test]
fn every_comparison_follows_the_schema() {
    let empty = common::report(&[], Vec::new(), Quality::default());
    let mut warned = common::office();
    warned.title = Some("a title".into());
    warned.warnings.push("a warning".into());
    warned.quality.encrypted_frames = 3;
    let both = compared(&[("office", common::office()), ("small", common::small())]);
    let all = compared(&[("small", common::small()), ("office", warned), ("empty", empty.clone())]);
    for comparison in [both, all, compared(&[("empty", empty), ("small", common::small())])] {
        assert_eq!(problems(&document(&comparison)), Vec::<String>::new());
    }
}

#[test]
fn columns_hold_what_a_page_draws_of_them() {
    let mut of_file = reads(&[1_000_000, 3_000_000]);
    of_file.iter_mut().for_each(|read| (read.share, read.path) = (Some("data".into()), Some("a.txt".into())));
    let comparison = compared(&[("a", report(&of_file)), ("b", report(&[]))]);
    let found = document(&comparison);
    let read = found["groups"].as_array().and_then(|all| all.iter().find(|group| group["group"] == "Read"));
    let read = read.expect("there are reads");
    assert_eq!(read["cumulative"], json!([[[1_000_000, 0.5], [3_000_000, 1.0]], []]));
    let began = |interval: &Value| interval["counts"].as_array().map_or(0, Vec::len);
    let intervals = found["columns"][0]["heatmap"]["bins"].as_array().expect("a heat map");
    assert_eq!(intervals.iter().map(began).sum::<usize>(), 2);
    assert_eq!(found["columns"][1]["heatmap"], Value::Null);
    let slowest = |column: usize| -> Vec<i64> {
        let listed = found["columns"][column]["slowest"].as_array().expect("a list");
        listed.iter().filter_map(|exchange| exchange["response_time_ns"].as_i64()).collect()
    };
    assert_eq!([slowest(0), slowest(1)], [vec![3_000_000, 1_000_000], vec![]]);
    let files = |column: usize| found["columns"][column]["files"].as_array().map(Vec::len);
    assert_eq!([files(0), files(1)], [Some(1), Some(0)]);
}

fn given(name: &str, content: ComparableDocument) -> Given {
    Given { name: name.to_owned(), runs: vec![(format!("runs/{name}"), content)] }
}

fn ramp(name: &str, document: bench::BenchDocument) -> Given {
    given(name, ComparableDocument::Ramp(Box::new(document)))
}

/// Returns the ramp with doubled response times, without its load point of 32 users.
fn slower() -> bench::BenchDocument {
    let mut slower = common::bench::ramp();
    slower.runs = [(1, 600, 840_000), (4, 2_050, 1_020_000), (16, 3_900, 2_900_000)]
        .map(|(users, per_second, typical)| common::bench::run(users, per_second, typical, false))
        .into();
    slower.warnings.clear();
    slower.completed()
}

#[test]
fn ramps_are_compared_load_point_by_load_point() {
    let comparison = Comparison::of_all(None, &[ramp("fast", common::bench::ramp()), ramp("slow", slower())]);
    assert_eq!(problems(&document(&comparison)), Vec::<String>::new());
    let ramps = comparison.ramps.as_ref().expect("there are ramps");
    assert_eq!(ramps.points.iter().map(|point| point.users).collect::<Vec<_>>(), [1, 4, 16, 32]);
    let slow = ramps.points[0].total[1].as_ref().expect("both have one user");
    // 600 commands per second instead of 1,200; every time is doubled.
    assert_eq!((slow.per_second, slow.per_second_ratio.map(|ratio| ratio.value)), (Some(600.0), Some(0.5)));
    let p95 = slow.cell.ratios.as_ref().and_then(|ratios| ratios.p95).expect("both have a p95").value;
    assert!((1.9..2.1).contains(&p95), "{p95}");
    let read = ramps.points[1].groups.iter().find(|group| group.group == "Read").expect("there are reads");
    assert_eq!(read.cells[1].as_ref().and_then(|cell| cell.per_second), Some(615.0));
    // Read moves bytes read, and the total bytes read and written: 9,000 and 2,500 bytes per command.
    let bytes = |cell: &Option<PointCell>| cell.as_ref().and_then(|cell| cell.bytes_per_second);
    assert_eq!(
        (bytes(&read.cells[1]), bytes(&ramps.points[1].total[1])),
        (Some(2_050.0 * 9_000.0), Some(2_050.0 * 11_500.0))
    );
    let open = ramps.points[1].groups.iter().find(|group| group.group == "Open/Close").expect("there are opens");
    assert_eq!(bytes(&open.cells[1]), None);
    let of_base = slow.bytes_per_second_ratio.map(|ratio| ratio.value);
    assert_eq!((of_base, slow.spread.as_ref()), (Some(0.5), None));
    // Only one ramp has 32 users. The rest covers 16, the highest load of both.
    assert!(ramps.points[3].total[1].is_none());
    assert!(ramps.columns.iter().flatten().all(|ramp| ramp.users == 16));
    assert_eq!(comparison.columns[0].overview.commands, 78_000);
}

#[test]
fn what_was_asked_of_the_servers_in_another_way_is_said() {
    let notes = |second: bench::BenchDocument| -> Vec<String> {
        let comparison = Comparison::of_all(None, &[ramp("a", common::bench::ramp()), ramp("b", second)]);
        assert_eq!(problems(&document(&comparison)), Vec::<String>::new());
        let about = |note: &compare::ComparisonNote| note.column == 1 && note.kind == NoteKind::Mix;
        comparison.notes.into_iter().filter(about).map(|note| note.text).collect()
    };
    assert_eq!(notes(common::bench::ramp()), Vec::<String>::new());
    assert!(notes(slower())[0].starts_with("different load points from a"), "{:?}", notes(slower()));
    let mut open = common::bench::ramp();
    open.settings.schedule = bench::LoopModel::Open { rate: 500.0, per_user: false, random: false };
    let found = notes(open);
    assert!(found[0].contains("open loop, 500 operations/s, there") && found[0].contains("closed loop"), "{found:?}");
}

#[test]
fn commands_of_smb1_and_smb2_that_do_the_same_stand_in_one_row() {
    let of = |command, group, times: &[i64], subcommand| -> Vec<Exchange> {
        let one = |(at, time): (usize, &i64)| Exchange {
            subcommand,
            ..common::exchange(command, group, common::START + at as i64 * 1_000_000_000, *time)
        };
        times.iter().enumerate().map(one).collect()
    };
    let find_first = Some(Subcommand::Trans2(Trans2(1)));
    // READ_ANDX (0x2e), WRITE_RAW and WRITE_ANDX (0x1d, 0x2f), TRANSACTION2 (0x32), OPEN_PRINT_FILE (0xc0).
    let smb1 = [
        of(common::smb1_command(0x2e), CommandGroup::Read, &[1_000, 2_000, 3_000], None),
        of(common::smb1_command(0x1d), CommandGroup::Write, &[1_000], None),
        of(common::smb1_command(0x2f), CommandGroup::Write, &[2_000, 6_000], None),
        of(common::smb1_command(0x32), CommandGroup::Directory, &[4_000], find_first),
        of(common::smb1_command(0xc0), CommandGroup::OpenClose, &[4_000], None),
    ];
    // READ (8), WRITE (9), QUERY_DIRECTORY (14), LOCK (10).
    let smb2 = [
        of(common::smb2_command(8), CommandGroup::Read, &[2_000, 4_000, 9_000], None),
        of(common::smb2_command(9), CommandGroup::Write, &[6_000], None),
        of(common::smb2_command(14), CommandGroup::Directory, &[2_000], None),
        of(common::smb2_command(10), CommandGroup::Locking, &[2_000], None),
    ];
    let (old, new) = (report(&smb1.concat()), report(&smb2.concat()));
    let comparison = compared(&[("nt1", old.clone()), ("smb3", new.clone())]);
    assert_eq!(problems(&document(&comparison)), Vec::<String>::new());
    let found = |name: &str| comparison.commands.iter().find(|command| command.command == name);
    let read = found("READ").expect("a row for both");
    assert_eq!(read.members, Some(vec![vec!["SMB_COM_READ_ANDX".to_owned()], vec!["READ".to_owned()]]));
    let ratio = |command: &compare::ComparedCommand, of: fn(&compare::Ratios) -> Option<compare::Ratio>| {
        of(command.cells[1].as_ref()?.ratios.as_ref()?).map(|ratio| ratio.value)
    };
    // Medians 2 and 4 µs.
    assert_eq!(ratio(read, |ratios| ratios.p50), Some(2.0));
    let write = found("WRITE").expect("a row for both");
    let [Some(base), Some(_)] = write.cells.as_slice() else { panic!("{write:?}") };
    // 1, 2 and 6 µs in two commands: mean 3, maximum 6. Their medians can't be combined.
    let times = base.response_time;
    assert_eq!((base.count, times.mean, times.max, times.p50), (3, Some(Nanos(3_000)), Some(Nanos(6_000)), None));
    assert_eq!(ratio(write, |ratios| ratios.mean), Some(2.0));
    let listing = found("QUERY_DIRECTORY").expect("a row for both");
    assert_eq!(listing.members.as_ref().map(|members| members[0].clone()), Some(vec!["TRANS2_FIND_FIRST2".to_owned()]));
    assert_eq!(ratio(listing, |ratios| ratios.p50), Some(0.5));
    // All transactions are in that row. Commands without a pair have their own rows.
    assert!(
        ["SMB_COM_TRANSACTION2", "SMB_COM_READ_ANDX", "SMB_COM_WRITE_RAW"]
            .into_iter()
            .all(|name| found(name).is_none())
    );
    for name in ["SMB_COM_OPEN_PRINT_FILE", "LOCK"] {
        assert!(found(name).is_some_and(|command| command.members.is_none()), "{name}");
    }
    let text = compare::render(&comparison, 100, false);
    assert!(text.lines().any(|line| line == "READ = READ_ANDX"), "{text}");
    // If all columns use one protocol, no commands are combined.
    let same = compared(&[("a", old.clone()), ("b", old)]);
    assert!(same.commands.iter().all(|command| command.members.is_none()));
    assert!(same.commands.iter().any(|command| command.command == "SMB_COM_WRITE_RAW"));
}

#[test]
fn a_workload_that_has_only_the_name_in_common_is_said_to_be_another() {
    let notes = |change: fn(&mut bench::BenchDocument)| -> Vec<String> {
        let mut other = common::bench::ramp();
        change(&mut other);
        let comparison = Comparison::of_all(None, &[ramp("a", common::bench::ramp()), ramp("b", other)]);
        comparison.notes.into_iter().filter(|note| note.kind == NoteKind::Mix).map(|note| note.text).collect()
    };
    let expected = "a different workload from a: both are called netbench-like, but their definitions differ";
    assert_eq!(notes(|other| other.workload.sha256 = Some("1".repeat(64))), [expected]);
    assert_eq!(notes(|other| other.workload.sha256 = None), Vec::<String>::new());
    assert!(notes(|other| other.workload.seed = Some(2))[0].starts_with("a different seed from a"));
}

#[test]
fn times_of_the_client_and_of_the_wire_are_told_apart() {
    let capture =
        || given("wire", ComparableDocument::Report(Box::new(ComparableReport::from_report(&common::office()))));
    let bench = || ramp("client", common::bench::ramp());
    let places = |given: &[Given]| -> Vec<(usize, String)> {
        let notes = Comparison::of_all(None, given).notes.into_iter();
        notes.filter(|note| note.kind == NoteKind::Place).map(|note| (note.column, note.text)).collect()
    };
    let found = places(&[capture(), bench()]);
    assert!(
        matches!(&found[..], [(1, text)] if text.starts_with("times measured inside the client, but on the wire in wire"))
    );
    let found = places(&[bench(), bench(), capture()]);
    assert!(
        matches!(&found[..], [(2, text)] if text.starts_with("times measured on the wire, but inside the client in client"))
    );
    assert!(places(&[capture(), capture()]).is_empty() && places(&[bench(), bench()]).is_empty());
}

#[test]
fn a_ramp_stands_beside_a_capture() {
    let report = ComparableDocument::Report(Box::new(ComparableReport::from_report(&common::office())));
    let comparison = Comparison::of_all(None, &[given("office", report), ramp("bench", common::bench::ramp())]);
    assert_eq!(problems(&document(&comparison)), Vec::<String>::new());
    let ramps = comparison.ramps.as_ref().expect("there is one");
    assert!(ramps.columns[0].is_none());
    // Without another ramp, the last load point is shown.
    assert_eq!(ramps.columns[1].as_ref().map(|ramp| ramp.users), Some(32));
    let read =
        comparison.commands.iter().find(|command| command.command == "READ" && !command.waiting).expect("both read");
    assert!(read.cells.iter().all(Option::is_some));
}

#[test]
fn a_ramp_without_load_points_is_compared_without_harm() {
    let comparison = Comparison::of_all(None, &[ramp("a", common::bench::nothing()), ramp("b", common::bench::ramp())]);
    assert_eq!(problems(&document(&comparison)), Vec::<String>::new());
    assert!(compare::render(&comparison, 80, false).contains("Nothing was measured."));
}

#[test]
fn ramps_have_a_table_for_all_groups_and_for_each() {
    let comparison = Comparison::of_all(None, &[ramp("fast", common::bench::ramp()), ramp("slow", slower())]);
    let text = compare::render(&comparison, 100, false);
    assert!(text.lines().all(|line| line.chars().count() <= 100));
    for start in
        ["Ramps", "All groups ", "Open/Close ", "Other: Attributes ", "1 user", "32 users", "  fast ", "  slow "]
    {
        assert!(text.lines().any(|line| line.starts_with(start)), "{start}:\n{text}");
    }
}

#[test]
fn mangled_comparisons_do_not_follow_the_schema() {
    let good = document(&compared(&[("a", common::office()), ("b", common::office())]));
    type Mangle = fn(&mut Value);
    let mangle: [(&str, Mangle); 8] = [
        ("another version", |d| d["schema"] = json!("smbscope.compare/2")),
        ("a key too many", |d| d["extra"] = json!(1)),
        ("one column", |d| drop(d["columns"].as_array_mut().map(|a| a.pop()))),
        ("a time in seconds", |d| d["groups"][0]["cells"][0]["response_time"]["mean"] = json!(0.005)),
        ("a ratio without its interval", |d| d["groups"][0]["cells"][1]["ratios"]["p50"] = json!({"value": 1.0})),
        ("a negative ratio", |d| d["groups"][0]["cells"][1]["ratios"]["p50"]["value"] = json!(-1)),
        ("an unknown group", |d| d["groups"][0]["group"] = json!("Misc")),
        ("an unknown kind of note", |d| d["notes"] = json!([{"kind": "gossip", "column": 0, "text": ""}])),
    ];
    for (what, mangle) in mangle {
        let mut bad = good.clone();
        mangle(&mut bad);
        assert_ne!(problems(&bad), Vec::<String>::new(), "{what}");
    }
}

#[test]
fn figures_and_ratios_are_those_computed_by_hand() {
    // Medians 2 and 3 µs, means 2 and 5 µs, maxima 3 and 9 µs, sums 6 and 15 µs.
    let before = report(&reads(&[1_000, 2_000, 3_000]));
    let after = report(&reads(&[3_000, 9_000, 3_000]));
    let comparison = compared(&[("before", before), ("after", after)]);
    let read = group(&comparison, "Read");
    let [Some(base), Some(other)] = read.cells.as_slice() else { panic!("{read:?}") };
    assert_eq!((base.response_time.sum, other.response_time.sum), (Some(Nanos(6_000)), Some(Nanos(15_000))));
    assert_eq!((base.ratios, other.response_time.p95), (None, None));
    let ratios = other.ratios.expect("the base has the group");
    let values = [ratios.count, ratios.p50, ratios.p95, ratios.mean, ratios.max, ratios.sum];
    let values = values.map(|ratio| ratio.map(|ratio| ratio.value));
    assert_eq!(values, [Some(1.0), Some(1.5), None, Some(2.5), Some(3.0), Some(2.5)]);
    assert_eq!(comparison.headline.cells, read.cells);
    assert_eq!(comparison.commands.len(), 1);
    assert_eq!((comparison.commands[0].command.as_str(), &comparison.commands[0].cells), ("READ", &read.cells));
    // From the first packet at 0 s to the last at 2 s plus 3 µs: three commands.
    let rate = comparison.columns[0].overview.commands_per_second.expect("time passed");
    assert!((rate - 3.0 / 2.000_003).abs() < 1e-9, "{rate}");
    let rates = comparison.columns[1].overview.ratios.as_ref().expect("not the base");
    assert_eq!(rates.commands_per_second.map(|ratio| ratio.value), Some(1.0));
}

#[test]
fn what_a_capture_does_not_have_is_absent_and_not_zero() {
    let other = common::exchange(common::smb2_command(9), CommandGroup::Write, common::START, 5_000);
    let comparison = compared(&[("reads", report(&reads(&[1_000]))), ("writes", report(&[other]))]);
    let [read, write] = [group(&comparison, "Read"), group(&comparison, "Write")];
    assert!(read.cells[0].is_some() && read.cells[1].is_none() && write.cells[0].is_none());
    assert_eq!(write.cells[1].as_ref().and_then(|cell| cell.ratios), None);
    // Longest total wait first.
    let commands: Vec<&str> = comparison.commands.iter().map(|command| command.command.as_str()).collect();
    assert_eq!(commands, ["WRITE", "READ"]);
    assert_eq!(document(&comparison)["groups"][0]["cells"][1], Value::Null);
}

#[test]
fn parts_follow_their_whole_and_are_marked() {
    let comparison = compared(&[("a", common::office()), ("b", common::small())]);
    let groups: Vec<(&str, Option<&str>)> =
        comparison.groups.iter().map(|group| (group.group.as_str(), group.part_of.as_deref())).collect();
    let expected = [
        ("Open/Close", None),
        ("Other", None),
        ("Attributes", Some("Other")),
        ("Directory", Some("Other")),
        ("Locking", Some("Other")),
        ("Read", None),
    ];
    assert_eq!(groups[..6], expected);
    let count = |name: &str, part_of: Option<&str>| -> u64 {
        let groups = comparison.groups.iter().filter(|group| group.part_of.as_deref() == part_of);
        groups
            .filter(|group| name.is_empty() || group.group == name)
            .flat_map(|group| &group.cells[0])
            .map(|c| c.count)
            .sum()
    };
    assert_eq!(count("Other", None), count("", Some("Other")));
    assert_eq!(count("", None), comparison.columns[0].overview.commands);
}

#[test]
fn weaknesses_are_named() {
    let few = report(&reads(&[1_000; 99]));
    let enough = report(&reads(&[1_000; 100]));
    let kinds = |comparison: &Comparison| -> Vec<(NoteKind, usize)> {
        comparison.notes.iter().map(|note| (note.kind, note.column)).collect()
    };
    assert_eq!(kinds(&compared(&[("a", enough.clone()), ("b", few)])), [(NoteKind::Few, 1)]);
    assert_eq!(kinds(&compared(&[("a", enough.clone()), ("b", enough.clone())])), []);

    // 100 reads, and enough writes that 10% of the commands, or slightly more, are in another group.
    let with_writes = |writes: usize| {
        let write = common::exchange(common::smb2_command(9), CommandGroup::Write, common::START, 1_000);
        report(&[reads(&[1_000; 900]), vec![write; writes]].concat())
    };
    assert_eq!(kinds(&compared(&[("a", enough.clone()), ("b", with_writes(100))])), []);
    let different = compared(&[("a", enough.clone()), ("b", with_writes(120))]);
    assert_eq!(kinds(&different), [(NoteKind::Mix, 1)]);
    // 120 of 1,020 are 11.8%.
    assert!(different.notes[0].text.contains("12% of the commands"), "{}", different.notes[0].text);

    let mut lost = reads(&[1_000; 200]);
    for read in lost.iter_mut().take(3) {
        (read.outcome, read.response) = (ExchangeOutcome::ResponseNotCaptured, Half::default());
    }
    let mut damaged = report(&lost);
    damaged.quality.encrypted_frames = 1;
    damaged.warnings.push("interrupted".to_owned());
    let expected = [(NoteKind::Damage, 0), (NoteKind::Encrypted, 0), (NoteKind::Warning, 0)];
    assert_eq!(kinds(&compared(&[("a", damaged), ("b", enough)])), expected);
}

#[test]
fn reports_on_other_choices_of_exchanges_are_told_apart() {
    let mut text = Vec::new();
    smbscope_report::json::write(&report(&reads(&[1_000; 100])), &mut text).expect("writing to memory does not fail");
    let input = |name: &str, filter: Value| {
        let mut saved: Value = serde_json::from_slice(&text).expect("the report is JSON");
        saved["filter"] = filter;
        let report = ComparableReport::parse(saved.to_string().as_bytes()).expect("a report");
        ComparisonInput { name: name.to_owned(), source: String::new(), report }
    };
    let (all, chosen) = (input("all", Value::Null), input("chosen", json!("command == READ")));
    let same = Comparison::new(None, &[chosen.clone(), chosen.clone()]);
    assert_eq!((same.notes.as_slice(), same.columns[1].filter.as_deref()), (&[][..], Some("command == READ")));
    let other = Comparison::new(None, &[all, chosen]);
    assert_eq!((other.notes[0].kind, other.notes[0].column), (NoteKind::Filter, 1));
    assert_eq!(other.notes[0].text, "about 'command == READ', and all about all exchanges");
    assert_eq!(problems(&document(&other)), Vec::<String>::new());
}

#[test]
fn a_file_that_says_anything_does_no_harm() {
    let mut text = Vec::new();
    smbscope_report::json::write(&common::office(), &mut text).expect("writing to memory does not fail");
    let good: Value = serde_json::from_slice(&text).expect("the report is JSON");
    /// Renamed groups and episode kinds would be rejected, and the schema limits these numbers.
    const KEPT: [&str; 13] = [
        "kind",
        "group",
        "groups",
        "protocol",
        "schema",
        "client_port",
        "server_port",
        "max_outstanding",
        "max_credits_granted",
        "max_asynchronous",
        "filled_window",
        "snap_length",
        "link_types",
    ];
    fn set_all(value: &mut Value, number: &Value) {
        match value {
            Value::Number(_) => *value = number.clone(),
            Value::Array(values) => values.iter_mut().for_each(|value| set_all(value, number)),
            Value::Object(values) => {
                let values = values.iter_mut().filter(|(key, _)| !KEPT.contains(&key.as_str()));
                values.for_each(|(_, value)| set_all(value, number));
            }
            Value::String(text) => text.push_str("\u{1b}[2J\n"),
            _ => {}
        }
    }
    for number in [json!(0), json!(i64::MAX)] {
        let mut odd = good.clone();
        set_all(&mut odd, &number);
        let report = ComparableReport::parse(odd.to_string().as_bytes()).expect("it is as the schema describes it");
        let input = ComparisonInput { name: "odd\u{1b}[2J".to_owned(), source: String::new(), report };
        let comparison = Comparison::new(Some("odd\u{1b}[2J".to_owned()), &[input.clone(), input]);
        let text = compare::render(&comparison, 100, false);
        assert!(!text.contains('\u{1b}'), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 130), "{text}");
    }
}

#[test]
fn text_of_two_and_of_four() {
    let named = |names: &[&str]| -> Comparison {
        let reports = [common::office(), common::small(), common::office(), common::small()];
        compared(&names.iter().copied().zip(reports).collect::<Vec<_>>())
    };
    insta::assert_snapshot!("two_at_100_columns", compare::render(&named(&["office", "f630"]), 100, false));
    let four = ["a server with a long name", "b", "another one with a long name", "d"];
    for width in [80, 100, 120] {
        let text = compare::render(&named(&four), width, false);
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(width), "{widest:?} > {width}\n{text}");
    }
    insta::assert_snapshot!("four_at_80_columns", compare::render(&named(&four), 80, false));
}

#[test]
fn names_that_begin_alike_stay_apart_on_the_page() {
    let long = ["file server, monday, before", "file server, monday, after"];
    let text = compare::render(&compared(&long.map(|name| (name, common::small()))), 100, false);
    let named = |start: &str| text.lines().filter(|line| line.trim_start().starts_with(start)).count();
    // The heading of the facts names both, starting with the first.
    let (first, second) = (named("1 file server"), named("2 file server"));
    assert!(second > 2 && first == second + 1, "{first} and {second} of\n{text}");
    let short = compare::render(&compared(&["before", "after"].map(|name| (name, common::small()))), 100, false);
    assert!(short.contains("\n  before ") && short.contains("\n  after "), "{short}");
}

#[test]
fn documents_of_a_version_to_come_are_refused_in_one_line() {
    let newer = |document: &[u8], from: &str, to: &str| String::from_utf8_lossy(document).replacen(from, to, 1);
    let mut report = Vec::new();
    smbscope_report::json::write(&common::small(), &mut report).expect("writing to memory does not fail");
    let report = newer(&report, "smbscope.report/1", "smbscope.report/2");
    let error = ComparableReport::parse(report.as_bytes()).expect_err("another version").to_string();
    assert_eq!(
        error,
        "its `schema` is \"smbscope.report/2\", and not \"smbscope.report/1\": give a report made with analyze --format json"
    );
    let mut ramp = Vec::new();
    bench::write(&common::bench::ramp(), &mut ramp).expect("writing to memory does not fail");
    let ramp = newer(&ramp, "smbscope.bench/1", "smbscope.bench/2");
    let error = bench::BenchDocument::parse(ramp.as_bytes()).expect_err("another version").to_string();
    assert_eq!(
        error,
        "its `schema` is \"smbscope.bench/2\", and not \"smbscope.bench/1\": give the run.json that bench wrote"
    );
}

#[test]
fn the_answer_says_what_got_slower_by_how_much_and_how_sure() {
    let report = |name: &str, length: i64| {
        let reads =
            (0..200).map(|n| common::exchange(common::smb2_command(8), CommandGroup::Read, n * 1_000_000_000, length));
        let closes = (0..200)
            .map(|n| common::exchange(common::smb2_command(6), CommandGroup::OpenClose, n * 1_000_000_000, 1_000_000));
        let exchanges: Vec<_> = reads.chain(closes).collect();
        let report = common::report(&exchanges, Vec::new(), Quality::default());
        ComparisonInput { name: name.into(), source: name.into(), report: ComparableReport::from_report(&report) }
    };
    let answer = |slower: i64| {
        let comparison = Comparison::new(None, &[report("before", 2_000_000), report("after", slower)]);
        let [Compared { answer, .. }] = comparison.answers.as_slice() else { panic!("one answer") };
        (answer.headline.replace('\u{a0}', " "), sentences_of(answer))
    };
    // 200 READs of 5 ms instead of 2 ms: 3 ms more each. The overall median is between the medians of CLOSE and READ.
    let (headline, sentences) = answer(5_000_000);
    let expected =
        "after was slower than before in these runs: p95 2.50 times slower (2.00 ms → 5.00 ms; 2.50 to 2.50)";
    assert!(headline.starts_with(expected), "{headline}");
    assert!(sentences.contains("READ 2.50 times (2.00 ms → 5.00 ms; 200 commands, 600 ms more)."), "{sentences}");
    assert!(!sentences.contains("CLOSE"), "{sentences}");
    assert!(sentences.starts_with("Longer on average in these runs: READ"), "{sentences}");
    assert!(
        sentences.ends_with("One run each says nothing about the next: repeat both, at least 5 times."),
        "{sentences}"
    );
    // 2.5% does not count as a change.
    let (headline, sentences) = answer(2_050_000);
    assert!(headline.starts_with("after was as fast as before within 5% in these runs: p95 1.02 times"), "{headline}");
    assert!(
        sentences.starts_with("No command with at least 10 times on both sides changed by more than 5%"),
        "{sentences}"
    );
}

/// The times of opens vary from 3 to 900 ms, more than any total can show through. All writes take 14 times as long.
#[test]
fn a_group_that_certainly_changed_is_the_headline_if_the_totals_are_not_certain() {
    let report = |name: &str, write: i64| {
        let second = |n: i64| n * 1_000_000_000;
        let opens = (0..1_200i64).map(|n| {
            let length = 3_000_000 + (n * 7_919 + n * n * 104_729).rem_euclid(897) * 1_000_000;
            common::exchange(common::smb2_command(5), CommandGroup::OpenClose, second(n / 3) + n % 3, length)
        });
        let writes = (0..800)
            .map(|n| common::exchange(common::smb2_command(9), CommandGroup::Write, second(n / 2) + 10 + n % 2, write));
        let exchanges: Vec<_> = opens.chain(writes).collect();
        let report = common::report(&exchanges, Vec::new(), Quality::default());
        ComparisonInput { name: name.into(), source: name.into(), report: ComparableReport::from_report(&report) }
    };
    let answer = |before: i64, after: i64| {
        let comparison = Comparison::new(None, &[report("before", before), report("after", after)]);
        (first_line(&comparison), comparison.answers[0].answer.culprit)
    };
    let (slower, culprit) = answer(200_000, 2_800_000);
    let expected = "after was slower than before in Write in these runs: median 14.0 times slower (200 µs → 2.80 ms; ";
    assert!(slower.starts_with(expected), "{slower}");
    assert!(slower.contains(". All groups together: p95 1.00 times ("), "{slower}");
    assert_eq!(culprit, Culprit::Capture);
    let (faster, culprit) = answer(2_800_000, 200_000);
    assert!(
        faster.starts_with("after was faster than before in Write in these runs: median 14.0 times faster"),
        "{faster}"
    );
    assert_eq!(culprit, Culprit::Nothing);
    // 10% is less than a headline of a group states.
    let (alike, _) = answer(200_000, 220_000);
    assert!(!alike.contains("in Write"), "{alike}");
}

/// Returns a ramp of one load point whose response times are `times` the example's.
fn run_of(times: f64, minute: i64) -> (String, ComparableDocument) {
    let mut ramp = common::bench::ramp();
    let typical = (1_000_000.0 * times) as i64;
    ramp.runs = vec![common::bench::run(4, 2_000, typical, false)];
    ramp.started_ns = smbscope_model::Timestamp(common::START + minute * 60_000_000_000);
    ramp.warnings.clear();
    (format!("runs/{minute}"), ComparableDocument::Ramp(Box::new(ramp.completed())))
}

/// Adds server metrics of one second.
fn with_cpu((source, content): (String, ComparableDocument), percent: f64) -> (String, ComparableDocument) {
    let ComparableDocument::Ramp(mut ramp) = content else { panic!("it is a ramp") };
    ramp.runs[0].server = Some(ServerLoad {
        source: "this machine".to_owned(),
        times_ns: vec![smbscope_model::Timestamp(0), smbscope_model::Timestamp(1)],
        metrics: vec![ServerSeries::new("cpu", "percent", vec![Some(percent), Some(percent + 10.0)])],
    });
    (source, ComparableDocument::Ramp(ramp))
}

#[test]
fn load_points_of_several_runs_say_from_where_to_where_they_go_and_what_they_cost_the_server() {
    let base = [(1.0, 20.0), (1.5, 30.0), (2.0, 40.0)];
    let base = base.iter().zip(0..).map(|((times, cpu), minute)| with_cpu(run_of(*times, minute), *cpu)).collect();
    let other = vec![run_of(3.0, 10)];
    let given = [Given { name: "a".into(), runs: base }, Given { name: "b".into(), runs: other }];
    let comparison = Comparison::of_all(None, &given);
    assert_eq!(problems(&document(&comparison)), Vec::<String>::new());
    let point = &comparison.ramps.as_ref().expect("there are ramps").points[0];
    let [Some(a), Some(b)] = point.total.as_slice() else { panic!("both have the load point") };
    let spread = a.spread.as_ref().expect("three runs");
    assert_eq!((spread.per_second, spread.bytes_per_second), (Some((2_000.0, 2_000.0)), Some((23e6, 23e6))));
    // The slowest run takes twice as long as the fastest. The typical one is between them.
    let (low, high) = spread.mean.expect("three means");
    let mean = a.cell.response_time.mean.expect("a mean");
    assert!((low.0 * 2 - high.0).abs() <= 2 && low < mean && mean < high, "{low} {mean} {high}");
    assert_eq!(b.spread, None);
    let [cpu] = point.server.as_slice() else { panic!("one metric") };
    let found = cpu.cells[0].expect("three runs looked");
    assert_eq!((cpu.metric.as_str(), found.mean, found.max), ("cpu", 35.0, 40.0));
    assert_eq!((found.mean_range, found.max_range), (Some((25.0, 45.0)), Some((30.0, 50.0))));
    assert_eq!(cpu.cells[1], None);
    let text = compare::render(&comparison, 100, false);
    let servers: Vec<&str> =
        text.lines().skip_while(|line| !line.starts_with("Servers")).take(4).map(str::trim).collect();
    assert!(servers[0].contains("Server CPU"), "{servers:?}");
    let figures: Vec<&str> = servers[2].split_whitespace().collect();
    assert_eq!((servers[1], figures), ("4 users", vec!["a", "35%", "40%"]), "{text}");
    // The other side has no server metrics.
    assert!(servers[3].starts_with("Means of a sample a second. Server CPU: all processors"), "{text}");
}

/// Compares runs that alternate, baseline first. Both runs of a pair share a disturbance.
fn alternating(count: usize, ratio: f64, noise: f64) -> Comparison {
    let mut random = smbscope_stats::Random::new(&[5]);
    let mut sides = [Vec::new(), Vec::new()];
    for block in 0..count as i64 {
        let drift = 1.0 + random.unit();
        for (side, factor) in [1.0, ratio].into_iter().enumerate() {
            let disturbed = factor * drift * (1.0 + noise * (random.unit() - 0.5));
            sides[side].push(run_of(disturbed, 2 * block + side as i64));
        }
    }
    let [base, other] = sides;
    Comparison::of_all(None, &[Given { name: "a".into(), runs: base }, Given { name: "b".into(), runs: other }])
}

/// Joins evidence and caveats.
fn sentences_of(answer: &Answer) -> String {
    let sentences: Vec<&str> = answer.evidence.iter().chain(&answer.caveats).map(String::as_str).collect();
    sentences.join(" ").replace('\u{a0}', " ")
}

#[test]
fn causes_that_came_or_went_are_told() {
    let cause = |id: &str, share: f64| {
        let mut cause = Cause::default();
        (cause.id, cause.culprit) = (id.to_owned(), Culprit::Server);
        (cause.sentence, cause.share) = (format!("The server did {id}."), Some(share));
        cause
    };
    let input = |name: &str, length: i64, causes: &[Cause]| {
        let reads =
            (0..200).map(|n| common::exchange(common::smb2_command(8), CommandGroup::Read, n * 1_000_000_000, length));
        let mut report = common::report(&reads.collect::<Vec<_>>(), Vec::new(), Quality::default());
        report.explanation.answer.causes = causes.to_vec();
        ComparisonInput { name: name.into(), source: name.into(), report: ComparableReport::from_report(&report) }
    };
    let answer = |before: &[Cause], after: &[Cause], slower: i64| {
        let comparison = Comparison::new(None, &[input("before", 2_000_000, before), input("after", slower, after)]);
        comparison.answers[0].answer.clone()
    };
    let [filter, storage] = [cause("filter-delay", 0.4), cause("slow-storage", 0.3)];
    let both = answer(from_ref(&filter), from_ref(&storage), 5_000_000);
    assert_eq!(both.culprit, Culprit::Server);
    assert_eq!(both.causes, [storage]);
    assert_eq!(both.evidence[0], "Not in before: Server: The server did slow-storage.");
    assert_eq!(both.evidence[1], "Not in after: Server: The server did filter-delay.");
    // A cause on both sides is reported if its share grew. If nothing got slower, there is no culprit.
    let grown = answer(from_ref(&filter), &[cause("filter-delay", 0.6)], 5_000_000);
    assert_eq!(grown.evidence[0], "More than in before: Server: The server did filter-delay.");
    let alike = answer(from_ref(&filter), from_ref(&filter), 5_000_000);
    assert_eq!((alike.culprit, alike.causes.len()), (Culprit::Capture, 0));
    assert_eq!(answer(&[], &[filter], 2_000_000).culprit, Culprit::Nothing);
}

fn first_line(comparison: &Comparison) -> String {
    comparison.answers[0].answer.headline.replace('\u{a0}', " ")
}

#[test]
fn repeated_runs_have_intervals_and_one_of_three_answers() {
    // Common drift by up to a factor of two, and 2% noise: only paired runs can show 10%.
    let slower = alternating(8, 1.1, 0.04);
    assert!(first_line(&slower).starts_with("b is slower than a: p95 1.1"), "{}", first_line(&slower));
    let ratio = slower.headline.cells[1].as_ref().and_then(|cell| cell.ratios?.p95).expect("a ratio");
    let interval = ratio.interval.expect("eight runs have one");
    assert!(interval.low > 1.05 && interval.high < 1.15, "{interval:?}");
    assert!(ratio.certainty.is_some_and(|certainty| certainty.shown && certainty.repetitions == 8));
    assert_eq!(slower.columns.iter().map(|column| column.runs).collect::<Vec<_>>(), [8, 8]);
    assert_eq!(slower.columns.len(), 2);
    assert!(slower.answers[0].answer.evidence[0].starts_with("Slower on average: "), "{:?}", slower.answers);

    let equal = alternating(8, 1.0, 0.04);
    assert!(first_line(&equal).starts_with("b and a are equal within 5%: p95 "), "{}", first_line(&equal));

    let undecided = alternating(6, 1.05, 0.6);
    let said = first_line(&undecided);
    assert!(said.starts_with("No difference between b and a that this data can show: p95 "), "{said}");
    let sure = sentences_of(&undecided.answers[0].answer);
    assert!(sure.contains("6 runs each, intervals of 95%. A difference of 1."), "{sure}");
    assert!(sure.contains(" would settle whether they differ by 5%."), "{sure}");
    assert!(!sure.contains("lower on average") && !sure.contains("aster on average"), "{sure}");

    for comparison in [slower, equal, undecided, alternating(3, 1.2, 0.1)] {
        assert_eq!(problems(&document(&comparison)), Vec::<String>::new());
    }
}

#[test]
fn what_differs_besides_the_servers_stands_first() {
    let mut other = common::bench::ramp();
    other.environment.insert("kernel".into(), "Linux 6.8".into());
    other.environment.insert("cores".into(), "4".into());
    other.target.dialect = Some("2.1".into());
    other.workload.sha256 = Some("0123456789abcdef".repeat(4));
    let text = |second: bench::BenchDocument| {
        let comparison = Comparison::of_all(None, &[ramp("a", common::bench::ramp()), ramp("b", second)]);
        assert_eq!(problems(&document(&comparison)), Vec::<String>::new());
        compare::render(&comparison, 500, false)
    };
    assert!(!text(common::bench::ramp()).contains("otherwise"));
    let text = text(other);
    let second = text.lines().skip(1).take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    assert!(second.starts_with("b was measured differently from a: cores 4 (there 2); "), "{second}");
    for fact in
        ["dialect 2.1 (there 3.1.1)", "kernel Linux 6.8 (there -)", "definition of the workload 01234567 (there "]
    {
        assert!(second.contains(fact), "{second}");
    }
    let mut newer = run_of(1.0, 2);
    let ComparableDocument::Ramp(document) = &mut newer.1 else { panic!("a ramp") };
    document.environment.insert("server".into(), "Samba 4.22".into());
    let given = [
        Given { name: "a".into(), runs: vec![run_of(1.0, 0), newer] },
        Given { name: "b".into(), runs: vec![run_of(1.0, 1), run_of(1.0, 3)] },
    ];
    let text = compare::render(&Comparison::of_all(None, &given), 500, false);
    assert!(text.contains("the runs of a are not alike: server Samba 4.17.12 and Samba 4.22."), "{text}");
}

#[test]
fn the_elapsed_time_of_jobs_is_compared_and_can_be_limited() {
    let run = |seconds: f64, minute: i64| {
        let (source, mut content) = run_of(1.0, minute);
        let ComparableDocument::Ramp(document) = &mut content else { panic!("a ramp") };
        let elapsed = Nanos((seconds * 1e9) as i64);
        document.runs[0].jobs = Some(bench::JobStatistics {
            elapsed: smbscope_stats::DurationStatistics { count: 1, mean: Some(elapsed), ..Default::default() },
            unfinished: 0,
            elapsed_sum_ns: elapsed,
            waited_sum_ns: Some(elapsed),
            files: 1,
            bytes_read: 0,
            bytes_written: 0,
            list: Vec::new(),
        });
        (source, content)
    };
    let side = |name: &str, seconds: f64, first: i64| Given {
        name: name.into(),
        runs: (0..6).map(|at| run(seconds * (1.0 + 0.01 * (at % 3) as f64), first + 2 * at)).collect(),
    };
    let given = [side("a", 10.0, 0), side("b", 12.0, 1)];
    let comparison = Comparison::of_all(None, &given);
    assert_eq!(problems(&document(&comparison)), Vec::<String>::new());
    let ratio = comparison.columns[1].overview.ratios.as_ref().and_then(|ratios| ratios.job_elapsed).expect("jobs");
    assert!((ratio.value - 1.2).abs() < 1e-6 && ratio.certainty.is_some_and(|certainty| certainty.shown), "{ratio:?}");
    let text = compare::render(&comparison, 100, false);
    assert!(text.lines().any(|line| line.starts_with("Job ") && line.contains("12.1 s  × 1.20")), "{text}");
    let exceeded = |limit: &str| {
        let judged = compare::judge(&[limit.parse().unwrap()], &given, &comparison, false).expect("both have jobs");
        judged.iter().map(|judged| judged.judged == Judged::Holds).collect::<Vec<_>>()
    };
    assert_eq!([exceeded("elapsed > 1.1x"), exceeded("elapsed > 1.3x")], [[true], [false]]);
}

#[test]
fn few_runs_have_a_range_and_no_claim() {
    let three = alternating(3, 2.0, 0.1);
    let said = first_line(&three);
    assert!(said.starts_with("b against a, 3 runs each, too few for an interval: p95 "), "{said}");
    assert!(said.contains("; range "), "{said}");
    let sure = sentences_of(&three.answers[0].answer);
    assert!(sure.contains("3 runs each: an interval needs 5."), "{sure}");
    assert!(!sure.contains("Slower on average"), "{sure}");
}

#[test]
fn runs_one_side_after_the_other_are_no_pairs() {
    let side = |name: &str, first: i64, times: f64| {
        let runs = (0..6).map(|at| run_of(times * (1.0 + 0.01 * at as f64), first + at)).collect();
        Given { name: name.into(), runs }
    };
    let p95 = |given: &[Given]| {
        let comparison = Comparison::of_all(None, given);
        comparison.headline.cells[1].as_ref().and_then(|cell| cell.ratios?.p95?.interval).expect("six have one")
    };
    // The same runs, one side after the other. In pairs they would have exactly the same ratio.
    let apart = p95(&[side("a", 0, 1.0), side("b", 100, 1.5)]);
    assert!(apart.high - apart.low > 0.02, "{apart:?}");
    let interleaved = |name: &str, first: i64, times: f64| {
        let runs = (0..6).map(|at| run_of(times * (1.0 + 0.01 * at as f64), first + 2 * at)).collect();
        Given { name: name.into(), runs }
    };
    let pairs = p95(&[interleaved("a", 0, 1.0), interleaved("b", 1, 1.5)]);
    assert!(pairs.high - pairs.low < 0.01, "{pairs:?}");
}

#[test]
fn repeated_runs_fit_80_and_120_columns() {
    let comparison = alternating(6, 1.3, 0.1);
    for width in [80, 120] {
        let text = compare::render(&comparison, width, false);
        let wide: Vec<&str> =
            text.lines().filter(|line| line.chars().count() > width && !line.starts_with("  again ")).collect();
        assert_eq!(wide, Vec::<&str>::new());
    }
    insta::assert_snapshot!("repeated_at_80_columns", compare::render(&comparison, 80, false));
    insta::assert_snapshot!("repeated_at_120_columns", compare::render(&comparison, 120, false));
}

#[test]
fn the_same_traffic_at_two_points_is_no_change() {
    let mut comparison = compared(&[("server", common::small()), ("client", common::office())]);
    comparison.say_same_traffic(1);
    let [Compared { column: 1, answer }] = comparison.answers.as_slice() else { panic!("one answer") };
    assert_eq!(answer.headline, "These are captures of the same traffic at two points, not of two runs.");
    assert!(answer.evidence[0].starts_with("client is nearer to the client"), "{:?}", answer.evidence);
    assert!(answer.causes.is_empty() && answer.caveats.is_empty());
    assert_eq!(problems(&document(&comparison)), Vec::<String>::new());
    let text = compare::render(&comparison, 100, false);
    assert!(!text.contains("slower") && !text.contains("faster"), "{text}");
}
