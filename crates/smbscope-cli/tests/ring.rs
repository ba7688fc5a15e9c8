//! `slim --ring` and directories of captures; `--from` and `--to`.

use crate::common::{Said, analyze, bundled, contents, directory, finish, smbscope as command, write};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const DEMO: &str = "demo-slow-server.pcap.zst";

fn smbscope(directory: &Path, zone: &str, arguments: &[&str]) -> Said {
    let mut command = command(directory, arguments);
    command.env("TZ", zone);
    finish(command)
}

/// Keeps a ring of the demo with several files, in a directory with other things.
fn ringed(test: &str) -> PathBuf {
    let directory = directory(test);
    let demo = bundled(DEMO);
    let demo = demo.to_str().expect("UTF-8");
    let said = finish(command(&directory, &["slim", demo, "--ring", "ring", "--size", "1MB"]));
    assert_eq!(said.status, Some(0), "{}", said.err);
    directory
}

fn ring_files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory.join("ring")).expect("a ring");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

/// Returns the report without the packet numbers and properties of files.
fn figures(said: &Said) -> Value {
    assert_eq!(said.status, Some(0), "{}", said.err);
    let report: Value = serde_json::from_str(&said.out).expect("JSON");
    let kept = ["totals", "commands", "groups", "shares", "files", "clients", "servers", "users", "caching"];
    kept.iter().map(|key| (key.to_string(), report[*key].clone())).collect::<serde_json::Map<_, _>>().into()
}

#[test]
fn the_report_on_a_ring_is_the_report_on_the_capture() {
    let directory = ringed("ring_report");
    assert!(ring_files(&directory).len() > 3, "{:?}", ring_files(&directory));
    write(&directory.join("ring"), "notes.txt", "no capture");
    write(&directory.join("ring"), "smbscope-20261127T140200Z.pcapng", "");
    fs::create_dir_all(directory.join("ring/nested")).expect("a directory");
    fs::copy(bundled(DEMO), directory.join("ring/nested/twice.pcap.zst")).expect("a copy");
    std::os::unix::fs::symlink(bundled(DEMO), directory.join("ring/twice.pcap.zst")).expect("a link");
    let report = |input: &str| figures(&analyze(&directory, &[input, "--format", "json", "--quiet"]));
    let demo = report(bundled(DEMO).to_str().expect("UTF-8"));
    assert!(demo["totals"] != Value::Null && demo["commands"] != Value::Null);
    assert_eq!(report("ring"), demo);
}

/// Returns the times of the requests in the exchange table, in ns.
fn request_times(said: &Said) -> Vec<i64> {
    assert_eq!(said.status, Some(0), "{}", said.err);
    let mut lines = said.out.lines();
    let columns: Vec<&str> = lines.next().expect("titles").split(',').collect();
    let place = columns.iter().position(|column| *column == "request_first_ns").expect("the column");
    let mut times: Vec<i64> =
        lines.filter_map(|line| line.split(',').nth(place)).filter_map(|time| time.parse().ok()).collect();
    times.sort_unstable();
    times
}

#[test]
fn from_and_to_choose_the_commands_between_them() {
    let directory = ringed("ring_stretch");
    let table = |zone: &str, more: &[&str]| {
        smbscope(&directory, zone, &[&["analyze", "ring", "--quiet", "--format", "csv"], more].concat())
    };
    let all = request_times(&table("UTC", &[]));
    let second = |time: i64| time.div_euclid(1_000_000_000);
    let (begin, end) = (second(all[0]) + 3, second(all[0]) + 7);
    let expected: Vec<i64> = all.iter().copied().filter(|time| (begin..end).contains(&second(*time))).collect();
    assert!(!expected.is_empty() && expected.len() < all.len());
    let clock = |time: i64, hours: i64| {
        let of_day = (time + hours * 3600).rem_euclid(86_400);
        format!("{:02}:{:02}:{:02}", of_day / 3600, of_day / 60 % 60, of_day % 60)
    };
    for (zone, hours) in [("UTC", 0), ("XXX-3", 3)] {
        let said = table(zone, &["--from", &clock(begin, hours), "--to", &clock(end, hours)]);
        assert_eq!(request_times(&said), expected, "{zone}");
    }
    let from = request_times(&table("UTC", &["--from", &clock(begin, 0)]));
    let to = request_times(&table("UTC", &["--to", &clock(begin, 0)]));
    assert_eq!([to, from].concat(), all);
    let said = table("UTC", &["--from", &clock(end, 0), "--to", &clock(begin, 0)]);
    assert!(said.error(1).contains(" is not before --to "), "{}", said.err);
    let said = table("UTC", &["--from", "2020-01-01T00:00", "--to", "2020-01-01T01:00"]);
    assert!(
        said.error(1).starts_with("--to 2020-01-01T01:00:00: no packets there; the captures cover "),
        "{}",
        said.err
    );
    assert_eq!(table("UTC", &["--from", "noon"]).status, Some(2));
    let said = smbscope(&directory, "UTC", &["analyze", "absent", "--from", "14:02"]);
    assert!(said.error(1).starts_with("cannot open absent: "), "{}", said.err);
    let report = smbscope(&directory, "UTC", &["analyze", "ring", "-q", "--from", &clock(begin, 0)]);
    assert!(report.output().contains(&format!("T{}Z", clock(begin, 0))), "{}", report.out);
}

#[test]
fn a_killed_ring_is_read_without_a_warning() {
    let directory = directory("ring_killed");
    let capture = contents(DEMO);
    // Whole records of at least two thirds of the packets; a pcap record has a header of 16 bytes.
    let (mut end, mut packets) = (24, 0);
    while end < capture.len() * 2 / 3 {
        end += 16 + u32::from_le_bytes(capture[end + 8..end + 12].try_into().expect("4 bytes")) as usize;
        packets += 1;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    command.current_dir(&directory).args(["slim", "-", "--ring", "ring", "--size", "1MB"]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    child.stdin.as_mut().expect("a pipe").write_all(&capture[..end]).expect("it reads");
    std::thread::sleep(Duration::from_millis(2_500));
    // SIGKILL
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let said = analyze(&directory, &["ring", "--format", "json", "--quiet"]);
    assert_eq!((said.status, said.err.as_str()), (Some(0), ""));
    let report: Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!(report["quality"]["truncated_captures"], 0);
    let read = report["quality"]["packets"].as_u64().expect("a number");
    // A message whose header has not arrived yet holds the packets after it back.
    assert!(read + 16 >= packets && read <= packets, "{read} of {packets}");
}

#[test]
fn no_ring_is_read_into_itself() {
    let directory = ringed("ring_itself");
    let before = ring_files(&directory);
    let said = finish(command(&directory, &["slim", "ring", "--ring", "ring"]));
    assert!(said.error(1).contains(": the input ring/smbscope-"), "{}", said.err);
    assert_eq!(ring_files(&directory), before);
    let said = finish(command(&directory, &["slim", "ring", "--ring", "other", "--size", "1kB"]));
    assert_eq!(said.status, Some(2));
}
