//! `smbscope compare`: input from captures and saved reports, results, and error messages.

use crate::common::{self, Said, analyze, bundled, contents, directory, finish, write};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const OFFICE: &str = "demo-smb311-office.pcap.zst";
const NETBENCH: &str = "demo-smb1-netbench.pcap.zst";
const DAMAGED: &str = "damaged/smb1_mux__drop10.pcap.zst";

fn path(name: &str) -> String {
    bundled(name).to_str().expect("the path is UTF-8").to_owned()
}

fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    command.current_dir(directory).arg("compare").args(arguments).env_remove("NO_COLOR").env("COLUMNS", "100");
    command
}

fn compare(directory: &Path, arguments: &[&str]) -> Said {
    finish(command(directory, arguments))
}

fn document(said: &Said) -> Value {
    serde_json::from_str(said.output()).expect("the comparison is JSON")
}

#[test]
fn a_capture_and_its_saved_report_compare_as_equal() {
    for capture in [OFFICE, NETBENCH, DAMAGED] {
        let directory = directory("compare_saved");
        analyze(&directory, &[&path(capture), "--format", "json", "-o", "saved.json"]).output();
        let found = document(&compare(&directory, &[&path(capture), "saved.json", "--format", "json"]));
        let mut cells = vec![&found["headline"]["cells"]];
        for table in ["groups", "commands"] {
            let rows = found[table].as_array().expect("an array");
            assert!(!rows.is_empty());
            cells.extend(rows.iter().map(|row| &row["cells"]));
        }
        for pair in cells {
            for (key, value) in pair[0].as_object().expect("a cell") {
                assert!(key == "ratios" || *value == pair[1][key], "{capture}: {key} of {pair}");
            }
            let ratios = pair[1]["ratios"].as_object().expect("ratios to the base");
            assert!(ratios.values().all(|ratio| ratio.is_null() || ratio["value"] == 1.0), "{capture}: {pair}");
        }
        let (mut base, mut saved) = (found["columns"][0].clone(), found["columns"][1].clone());
        for column in [&mut base, &mut saved] {
            let column = column.as_object_mut().expect("a column");
            column.retain(|key, _| !["name", "source"].contains(&key.as_str()));
            column["overview"].as_object_mut().expect("an overview").remove("ratios");
        }
        assert_eq!(base, saved, "{capture}");
    }
}

#[test]
fn json_of_real_captures_follows_the_schema() {
    let schema = include_str!("../../../schema/smbscope.compare-1.schema.json");
    let schema: Value = serde_json::from_str(schema).expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema is valid");
    let files = [OFFICE, NETBENCH, DAMAGED, "own/tso_SMB3_11.pcap.zst"].map(path);
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let said = compare(&directory("compare_schema"), &[&files[..], &["--format", "json", "--title", "x"]].concat());
    let found = document(&said);
    let problems: Vec<String> =
        validator.iter_errors(&found).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert_eq!(problems, Vec::<String>::new());
    let of = |key: &str| -> Vec<String> {
        let columns = found["columns"].as_array().expect("an array").iter();
        columns.map(|column| column[key].as_str().expect("text").to_owned()).collect()
    };
    assert_eq!(of("name"), ["demo-smb311-office", "demo-smb1-netbench", "smb1_mux__drop10", "tso_SMB3_11"]);
    assert_eq!(of("source"), files);
}

#[test]
fn figures_are_those_of_the_reports() {
    let directory = directory("compare_figures");
    let (office, netbench) = (path(OFFICE), path(NETBENCH));
    let found = document(&compare(&directory, &[&office, &netbench, "--format", "json"]));
    for (column, capture) in [office, netbench].iter().enumerate() {
        let report: Value = serde_json::from_str(analyze(&directory, &[capture, "--format", "json"]).output())
            .expect("the report is JSON");
        let overview = &found["columns"][column]["overview"];
        assert_eq!(overview["commands"], report["totals"]["commands"]);
        assert_eq!(overview["timed"], report["totals"]["outcomes"]["complete"]);
        assert_eq!(found["columns"][column]["quality"], report["quality"]["sentence"]);
        let bytes = |key: &str| -> u64 {
            let servers = report["servers"].as_array().expect("an array").iter();
            servers.map(|server| server[key].as_u64().expect("a count")).sum()
        };
        assert_eq!(overview["bytes_read"], bytes("bytes_read"));
        assert_eq!(overview["bytes_written"], bytes("bytes_written"));
        for command in report["commands"].as_array().expect("an array") {
            let waiting = command["groups"] == serde_json::json!(["Waiting"]);
            let key = |entry: &&Value| {
                entry["protocol"] == command["protocol"]
                    && entry["command"] == command["command"]
                    && entry["waiting"] == waiting
            };
            let entries = || found["commands"].as_array().expect("an array").iter();
            // A command may also be merged with its counterpart of the other protocol, under its SMB2 name.
            let alone = |entry: &&Value| {
                entry["members"][column] == serde_json::json!([command["command"]]) && entry["waiting"] == waiting
            };
            let Some(entry) = entries().find(key).or_else(|| entries().find(alone)) else {
                let members = |entry: &'_ Value| entry["members"][column].as_array().cloned().unwrap_or_default();
                let stands = |name: &Value| entries().any(|entry| members(entry).contains(name));
                let parts = command["subcommands"].as_array().expect("an array");
                let by_parts = !parts.is_empty() && parts.iter().all(|part| stands(&part["subcommand"]));
                assert!(stands(&command["command"]) || by_parts, "every command is in the union: {command}");
                continue;
            };
            let cell = &entry["cells"][column];
            for figure in ["mean", "p50", "p95", "p99", "max"] {
                assert_eq!(cell["response_time"][figure], command["response_time"][figure], "{command}");
            }
            assert_eq!((&cell["count"], &cell["timed"]), (&command["count"], &command["timed"]));
        }
    }
}

#[test]
fn names_are_those_asked_for_and_never_the_same() {
    let directory = directory("compare_names");
    let capture = path(OFFICE);
    let said = compare(&directory, &[&capture, &capture, "--name", "monday", "--format", "json"]);
    let found = document(&said);
    assert_eq!([&found["columns"][0]["name"], &found["columns"][1]["name"]], ["monday", "demo-smb311-office"]);
    let twice = document(&compare(&directory, &[&capture, &capture, "--format", "json"]));
    assert_eq!(twice["columns"][1]["name"], "demo-smb311-office-2");
}

#[test]
fn the_page_is_as_wide_as_asked_for_and_goes_where_asked_for() {
    let directory = directory("compare_output");
    let (office, netbench) = (path(OFFICE), path(NETBENCH));
    for width in ["80", "100"] {
        let said = compare(&directory, &[&office, &netbench, "--width", width, "--title", "two"]);
        assert!(said.output().starts_with("SMB response times compared: two\n"), "{}", said.out);
        // Commands are not wrapped, so that they can be pasted.
        let lines = said.out.lines().filter(|line| !line.contains(" smbscope "));
        let widest = lines.map(|line| line.chars().count()).max().unwrap_or(0);
        assert!(widest <= width.parse().expect("a number"), "{widest} > {width}");
    }
    let printed = compare(&directory, &[&office, &netbench]);
    assert_eq!(compare(&directory, &[&office, &netbench, "-o", "out.txt"]).output(), "");
    let written = std::fs::read_to_string(directory.join("out.txt")).expect("the file was written");
    assert_eq!(written, printed.output());
    assert!(!printed.out.contains('\u{1b}'));
    assert!(compare(&directory, &[&office, &netbench, "--color", "always"]).output().contains('\u{1b}'));
}

#[test]
fn a_capture_may_come_on_standard_input() {
    let directory = directory("compare_stdin");
    let mut piped = command(&directory, &["-", &path(DAMAGED), "--format", "json"]);
    let (reader, mut writer) = std::io::pipe().expect("a pipe can be made");
    piped.stdin(reader);
    let feeder = std::thread::spawn(move || std::io::Write::write_all(&mut writer, &contents(DAMAGED)));
    let found = document(&finish(piped));
    feeder.join().expect("the thread ends").expect("the program reads its input");
    assert_eq!(found["columns"][0]["name"], "standard input");
    assert_eq!(found["groups"][0]["cells"][1]["ratios"]["p50"]["value"], 1.0);
}

#[test]
fn what_next_is_a_command_on_the_capture_that_got_slower() {
    let directory = directory("compare_next");
    let (fast, slow) = (path(OFFICE), path("demo-slow-server.pcap.zst"));
    let found = document(&compare(&directory, &[&fast, &slow, "--format", "json"]));
    let next = common::commands(&found["answers"][0]["next"]);
    let both = format!("smbscope compare --by file {fast} {slow}");
    assert_eq!((next.len(), &next[1]), (2, &both));
    assert!(next[0].starts_with("smbscope analyze --filter 'command == "), "{}", next[0]);
    assert!(next[0].ends_with(&format!("' --by file {slow}")), "{}", next[0]);
    next.iter().for_each(|command| common::is_a_command(command));
    // No proposals for a capture compared with itself, or for a saved report, whose captures may have moved.
    analyze(&directory, &[&slow, "-o", "slow.json"]).output();
    for files in [[&slow, "slow.json"], [&fast, "slow.json"]] {
        let found = document(&compare(&directory, &[&files[..], &["--format", "json"]].concat()));
        assert_eq!(common::commands(&found["answers"][0]["next"]), Vec::<String>::new());
    }
}

/// The same work of smbclient: with SMB1, SMB 2.1 and SMB 3.1.1, unsigned and signed.
#[test]
fn negotiated_limits_and_capabilities_that_differ_stand_next_to_the_headline() {
    let directory = directory("compare_negotiated");
    let first_evidence = |files: &[&str]| {
        let found = document(&compare(&directory, &[files, &["--format", "json"]].concat()));
        found["answers"][0]["evidence"][0].as_str().expect("a sentence").to_owned()
    };
    let [smb1, smb2, smb3, signed] =
        ["NT1", "SMB2_10", "SMB3_11", "SMB3_11_sign"].map(|name| path(&format!("own/smbclient_{name}.pcap.zst")));
    let dialect = first_evidence(&[&smb1, &smb3]);
    assert!(dialect.starts_with("Negotiated: dialect NT LM 0.12 → 3.1.1"), "{dialect}");
    let newer = first_evidence(&[&smb2, &smb3]);
    assert!(newer.starts_with("Negotiated: dialect 2.1 → 3.1.1; ") && newer.contains("multichannel"), "{newer}");
    let signing = first_evidence(&[&smb3, &signed]);
    assert!(signing.starts_with("Negotiated: ") && signing.contains("signed messages 1.0% → 98.4%"), "{signing}");
    assert!(!signing.contains("dialect"), "{signing}");
    // A saved report has the same facts.
    analyze(&directory, &[&smb3, "--format", "json", "-o", "saved.json"]).output();
    assert_eq!(first_evidence(&["saved.json", &signed]), signing);
    let same = first_evidence(&["saved.json", &smb3]);
    assert!(!same.starts_with("Negotiated"), "{same}");
}

/// The same work by SMB1 and SMB 3.1.1. The expected figures are quotients of figures in the reports.
#[test]
fn what_the_work_takes_per_megabyte_file_and_client_stands_side_by_side() {
    let directory = directory("compare_effort");
    let captures = ["NT1", "SMB3_11"].map(|name| path(&format!("own/smbclient_{name}.pcap.zst")));
    let found = document(&compare(&directory, &[&captures[0], &captures[1], "--format", "json"]));
    let number = |value: &Value| value.as_f64().expect("a number");
    let mut per_unit = Vec::new();
    for (capture, column) in captures.iter().zip(found["columns"].as_array().expect("columns")) {
        let report = document(&analyze(&directory, &[capture, "--format", "json"]));
        let bytes =
            number(&report["totals"]["load"]["bytes_read"]) + number(&report["totals"]["load"]["bytes_written"]);
        let length = |list: &str| report[list].as_array().expect("a list").len() as f64;
        let overview = &column["overview"];
        let expected = [
            number(&report["totals"]["commands"]) * 1e6 / bytes,
            number(&report["time_split"]["round_trips"]) / length("files"),
            length("connections") / length("clients"),
        ];
        let shown = ["commands_per_megabyte", "round_trips_per_file", "connections_per_client"]
            .map(|figure| number(&overview[figure]));
        shown.iter().zip(expected).for_each(|(shown, expected)| assert!((shown - expected).abs() < 1e-9));
        per_unit.push(shown);
    }
    let ratios = &found["columns"][1]["overview"]["ratios"];
    let ratio = number(&ratios["round_trips_per_file"]["value"]);
    assert!((ratio - per_unit[1][1] / per_unit[0][1]).abs() < 1e-9, "{ratio}: {per_unit:?}");
    let said = compare(&directory, &[&captures[0], &captures[1]]);
    for line in ["Commands per MB", "Round trips per file", "Connections per client"] {
        assert!(said.output().contains(line), "{}", said.out);
    }
}

#[test]
fn slices_stand_side_by_side_whether_saved_or_not() {
    let directory = directory("compare_slices");
    let capture = path(OFFICE);
    analyze(&directory, &[&capture, "--by", "user", "-o", "by-user.json"]).output();
    let saved: Value = serde_json::from_slice(&std::fs::read(directory.join("by-user.json")).expect("it was saved"))
        .expect("the report is JSON");
    let found = document(&compare(&directory, &[&capture, "by-user.json", "--by", "user", "--format", "json"]));
    let (slices, saved) = (&found["slices"], saved["slices"]["entries"].as_array().expect("slices"));
    let entries = slices["entries"].as_array().expect("slices");
    assert_eq!((&slices["by"][0], &slices["left_out"], entries.len()), (&"user".into(), &0.into(), saved.len()));
    for (entry, saved) in entries.iter().zip(saved) {
        assert_eq!(entry["key"], saved["key"]);
        let [made, read] = [0, 1].map(|column| &entry["cells"][column]);
        assert_eq!([&made["count"], &read["count"]], [&saved["count"]; 2]);
        assert_eq!(read["response_time"]["sum"], saved["response_time_sum_ns"]);
        assert_eq!(read["ratios"]["sum"]["value"].as_f64(), made["response_time"]["sum"].as_i64().map(|_| 1.0));
    }
    let text = compare(&directory, &[&capture, "by-user.json", "--by", "user"]);
    assert!(text.output().contains("\nBy user "), "{}", text.output());
    let error = compare(&directory, &[&capture, "by-user.json", "--by", "file"]).error(1).to_owned();
    let expected =
        "by-user.json has no slices by file: give the capture, or a report or run that was made with --by file";
    assert_eq!(error, expected);
}

#[test]
fn what_cannot_be_compared_is_said_in_one_line() {
    let directory = directory("compare_errors");
    let capture = path(DAMAGED);
    write(&directory, "other.json", r#"{"schema": "smbscope.compare/1"}"#);
    write(&directory, "torn.json", r#"{"schema": "smbscope.report/1", "#);
    write(&directory, "false.json", r#"{"schema": "smbscope.report/1"}"#);
    write(&directory, "notes.txt", "Dear diary, today the share was slow.");
    let error = |file: &str| compare(&directory, &[&capture, file, "-o", "out.txt"]).error(1).to_owned();
    let expected = "other.json: no report: its `schema` is \"smbscope.compare/1\", and not \"smbscope.report/1\": give \
                    a report made with analyze --format json";
    assert_eq!(error("other.json"), expected);
    assert!(error("torn.json").starts_with("torn.json: no report: not JSON, or cut off: "));
    assert!(error("false.json").starts_with("false.json: no report: does not match \"smbscope.report/1\": "));
    assert!(error("notes.txt").starts_with("notes.txt: not a capture file"));
    let absent = "cannot open nowhere.pcap: No such file or directory (os error 2)";
    write(&directory, "out.txt", "precious");
    assert_eq!(error("nowhere.pcap"), absent);
    assert_eq!(std::fs::read(directory.join("out.txt")).expect("it is still there"), b"precious");
    let own = compare(&directory, &[&capture, "false.json", "-o", "false.json"]);
    assert_eq!(own.error(1), "cannot write false.json: it is the input false.json; choose another name for the output");
}

#[test]
fn bad_arguments_have_exit_status_2() {
    let directory = directory("compare_arguments");
    let bad: [&[&str]; 9] = [
        &[],
        &["only-one.pcap"],
        &["a.pcap", "b.pcap", "--name", "a", "--name", "b", "--name", "c"],
        &["-", "-"],
        &["a.pcap", "b.pcap", "--format", "csv"],
        &["a.pcap", "vs"],
        &["a.pcap", "vs", "b.pcap", "vs"],
        &["a.pcap", "b.pcap", "--fail-if", "p95(Read) > 20ms"],
        &["a.pcap", "b.pcap", "--strict"],
    ];
    for arguments in bad {
        let said = compare(&directory, arguments);
        assert_eq!((said.status, said.out.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(said.err.starts_with("error: "), "{arguments:?}: {}", said.err);
    }
}

#[test]
fn what_is_wrong_with_a_capture_is_part_of_the_comparison() {
    let directory = directory("compare_warnings");
    let mut cut = contents(DAMAGED);
    cut.truncate(cut.len() - 7);
    write(&directory, "cut.pcap", &cut);
    let found = document(&compare(&directory, &["cut.pcap", &path(OFFICE), "--format", "json"]));
    let notes = found["notes"].as_array().expect("an array");
    let is_warning = |note: &&Value| note["kind"] == "warning" && note["column"] == 0;
    let text = notes.iter().find(is_warning).and_then(|note| note["text"].as_str()).expect("a warning");
    assert!(text.starts_with("cut.pcap: the file ends in the middle of a record"), "{text}");
}

/// Writes `bob.json` and `alice.json`, the reports on two users of a capture.
fn users(name: &str) -> std::path::PathBuf {
    let directory = directory(name);
    for user in ["bob", "alice"] {
        let (filter, out) = (format!("user == {user}"), format!("{user}.json"));
        analyze(&directory, &["--filter", &filter, "-o", &out, &path(OFFICE)]).output();
    }
    directory
}

#[test]
fn a_limit_ends_the_program_only_where_all_runs_show_it() {
    let directory = users("compare_limits");
    let limit = |files: &[&str], more: &[&str]| {
        let options = ["--format", "json", "-o", "out.json", "--fail-if", "p95(total) > 1.5x"];
        compare(&directory, &[files, &options[..], more].concat())
    };
    let (bob, alice) = (["bob.json"; 5], ["alice.json"; 5]);
    let repeated = [&bob[..], &["vs"], &alice[..], &["--name", "bob", "--name", "alice"]].concat();
    // 503 µs and 2.04 ms, five times each, without variation.
    let reason = "p95(total) > 1.5x: alice is 4.06 times bob (95% interval 4.06 to 4.06)";
    assert_eq!(limit(&repeated, &["--junit", "junit.xml"]).error(3), reason);
    assert!(directory.join("out.json").exists(), "the comparison is written all the same");
    let xml = std::fs::read_to_string(directory.join("junit.xml")).unwrap();
    assert!(
        xml.contains("<testsuites name=\"smbscope compare\" tests=\"1\" skipped=\"0\" failures=\"1\" errors=\"0\">"),
        "{xml}"
    );
    let escaped = reason.replace('>', "&gt;");
    assert!(xml.contains(&format!("<failure message=\"{escaped}\"")), "{xml}");

    // Only the headline has an interval within one run. A group needs several runs per side.
    let group = |more: &[&str]| {
        let options = ["bob.json", "alice.json", "-o", "out.json", "--fail-if", "p95(Write) > 1.5x"];
        compare(&directory, &[&options[..], more].concat())
    };
    let single = group(&["--junit", "junit.xml"]);
    assert_eq!(single.status, Some(0), "{}", single.err);
    let said = "(no interval: it needs 5 runs of each side); --strict judges the ratio alone";
    assert!(single.err.contains("p95(Write) > 1.5x is not shown: ") && single.err.contains(said), "{}", single.err);
    let xml = std::fs::read_to_string(directory.join("junit.xml")).unwrap();
    assert!(xml.contains("failures=\"0\"") && xml.contains("<skipped message="), "{xml}");
    let strict = group(&["--strict"]);
    assert!(strict.error(3).ends_with(" (no interval: --strict)"), "{}", strict.err);
    assert_eq!(limit(&["alice.json", "bob.json"], &["--strict"]).output(), "");
    // A limit that can't be evaluated fails.
    let missing = limit(&["alice.json", "bob.json"], &["--fail-if", "p95(Raed) > 2x"]);
    let error =
        "p95(Raed) cannot be compared between alice and bob: not in both, 0 there, or supported by too few commands";
    assert_eq!(missing.error(1), error);
}

#[test]
fn one_capture_against_one_other_is_judged_by_the_interval_within_them() {
    let directory = directory("compare_within");
    let (fast, slow) = (path(OFFICE), path("demo-slow-server.pcap.zst"));
    let limit = |condition: &str| {
        compare(&directory, &["-q", &fast, &slow, "-o", "out.json", "--junit", "junit.xml", "--fail-if", condition])
    };
    let said = limit("p95(total) > 1.2x");
    let error = said.error(3);
    assert!(error.starts_with("p95(total) > 1.2x: demo-slow-server is "), "{error}");
    assert!(error.contains(" (95% interval ") && error.ends_with(", within this run only)"), "{error}");
    // The interval is the one in the document.
    let page: Value = serde_json::from_slice(&std::fs::read(directory.join("out.json")).unwrap()).unwrap();
    assert!(page["headline"]["cells"][1]["ratios"]["p95"]["interval"]["low"].as_f64() > Some(1.2));
    let xml = std::fs::read_to_string(directory.join("junit.xml")).unwrap();
    assert!(xml.contains("failures=\"1\""), "{xml}");
    assert_eq!(limit("total.p95 > 1000x").output(), "");
    let same =
        compare(&directory, &[&fast, &slow, "-o", "x.txt", "--junit", "./x.txt", "--fail-if", "p95(total) > 2x"]);
    assert_eq!(same.error(2), "--junit ./x.txt is also the file of the report: name another file");
    assert!(!directory.join("x.txt").exists());
}

#[test]
fn help() {
    insta::assert_snapshot!("help_of_compare", compare(&directory("compare_help"), &["--help"]).output());
}
