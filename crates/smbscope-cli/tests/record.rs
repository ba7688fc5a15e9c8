//! `smbscope record`: recordings made from captures, and their replay with `bench`.

use crate::common::{Said, bundled, directory, finish, table};
use smbscope_lab::{LabServer, LabServerSettings, available};
use smbscope_testkit::skip;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

fn smbscope(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    command.args(arguments).env_remove("NO_COLOR").env_remove("SMBSCOPE_PASSWORD").stdin(Stdio::null());
    command
}

fn record(arguments: &[&str]) -> Said {
    finish(smbscope(&[&["record"], arguments].concat()))
}

/// Returns the file commands of a capture, each with subcommand, status, offset, length and last path component.
fn commands(capture: &Path) -> Vec<Vec<String>> {
    let capture = capture.to_str().expect("the path is UTF-8");
    let said = finish(smbscope(&["analyze", "--format", "csv", "--quiet", capture]));
    assert_eq!(said.status, Some(0), "{}", said.err);
    let (header, mut rows) = table(&said.out);
    let at = |name: &str| header.iter().position(|column| column == name).expect("the column is there");
    let columns = ["command", "subcommand", "status", "offset", "length", "path"].map(at);
    let (first, id) = (at("request_first_ns"), at("message_id"));
    rows.sort_by_key(|row| (row[first].parse::<i64>().unwrap_or(0), row[id].parse::<u64>().unwrap_or(0)));
    let group = at("group");
    let not_on_files = ["IOCTL", "ECHO", "CHANGE_NOTIFY", "SMB_COM_ECHO"];
    let rows =
        rows.into_iter().filter(|row| row[group] != "Session" && !not_on_files.contains(&row[columns[0]].as_str()));
    let last = |path: &str| path.rsplit('\\').next().unwrap_or_default().to_owned();
    let cells = |row: Vec<String>| {
        let mut cells: Vec<String> = columns.iter().map(|column| row[*column].clone()).collect();
        cells[5] = last(&cells[5]);
        cells
    };
    rows.map(cells).collect()
}

#[test]
fn a_capture_of_smbclient_becomes_a_workload_that_bench_takes() {
    let folder = directory("record-bundled");
    let out = folder.join("app.toml").display().to_string();
    let capture = bundled("own/smbclient_SMB3_11.pcap.zst").display().to_string();
    let said = record(&["-o", &out, &capture]);
    assert_eq!(said.status, Some(0), "{}", said.err);
    assert!(said.err.contains(" commands recorded"), "{}", said.err);
    let text = std::fs::read_to_string(&out).expect("it was written");
    let steps = commands(Path::new(&capture)).len();
    let recorded = text.lines().find_map(|line| line.strip_prefix("commands = ")).expect("their number");
    let recorded: usize = recorded.parse().expect("a number");
    assert!(recorded > 0 && recorded <= steps, "{recorded} of {steps}");
    // The capture has only one episode.
    let whole = record(&["--episode", "1", "--name", "app", &capture]);
    assert_eq!((whole.status, whole.out == text), (Some(0), true), "{}", whole.err);
    let none = record(&["--episode", "2", &capture]);
    assert!(none.err.contains("--episode 2: there is only episode 1"), "{}", none.err);
    let bad = finish(smbscope(&["bench", "--workload", &out, "--think", "fast"]));
    assert_eq!(bad.status, Some(2), "{}", bad.err);
}

#[test]
fn names_of_an_anonymous_recording_are_not_those_of_the_capture() {
    let capture = bundled("own/smbclient_SMB3_11.pcap.zst");
    let said = record(&["--quiet", "--anonymize", capture.to_str().expect("UTF-8")]);
    assert_eq!(said.status, Some(0), "{}", said.err);
    // An anonymous recording keeps file extensions.
    let stem = |name: &str| name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_lowercase();
    let names: BTreeSet<String> =
        commands(&capture).iter().map(|row| stem(&row[5])).filter(|n| !n.is_empty()).collect();
    assert!(names.len() > 3, "{names:?}");
    let quoted = said.out.lines().filter_map(|line| line.split('"').nth(1).filter(|path| path.starts_with('\\')));
    let written: BTreeSet<String> = quoted.flat_map(|path| path.split('\\').map(stem)).collect();
    assert!(written.len() >= names.len(), "{written:?}");
    assert_eq!(written.intersection(&names).next(), None);
}

#[test]
fn a_capture_of_encrypted_traffic_says_why_nothing_was_recorded() {
    let said = record(&["--quiet", bundled("encrypted/smbclient_SMB3_11_encrypt.pcap.zst").to_str().expect("UTF-8")]);
    assert_eq!(said.status, Some(1));
    assert!(said.err.contains("no command in it can be replayed") && said.err.contains("encrypted"), "{}", said.err);
}

#[test]
fn a_capture_of_smb1_becomes_a_workload_too() {
    let said = record(&[bundled("own/smbclient_NT1.pcap.zst").to_str().expect("UTF-8")]);
    assert_eq!(said.status, Some(0), "{}", said.err);
    assert!(said.err.contains("196 commands recorded"), "{}", said.err);
    // Several outstanding writes are recorded as a queue.
    assert!(said.out.contains("WriteQueue 2 7 \"0+130048*11 1430528+69472\" SUCCESS"), "{}", said.out);
}

/// Returns the connections in the report on a capture.
fn connections(capture: &Path) -> Vec<serde_json::Value> {
    let said = finish(smbscope(&["analyze", "--format", "json", "-q", capture.to_str().expect("UTF-8")]));
    let report: serde_json::Value = serde_json::from_str(&said.out).expect("it is JSON");
    report["connections"].as_array().expect("connections").clone()
}

/// Returns the path of the only capture in a run directory.
fn captured(run: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(run).expect("the run is kept");
    let mut paths = entries.map(|entry| entry.expect("an entry").path());
    paths.find(|path| path.extension().is_some_and(|extension| extension == "pcap"))
}

/// Runs one pass, of one user unless the arguments tell otherwise, and returns its capture. Skips the test and returns `None` if capturing is not possible.
fn pass(server: &LabServer, run: &Path, arguments: &[&str]) -> Option<PathBuf> {
    let run_name = run.display().to_string();
    let url = format!("smb://{}@{}/{}", server.user(), server.address(), server.share());
    let load = ["bench", "--passes", "1", "--warmup", "0s", "--duration", "60s", "--quiet"];
    let users: &[&str] = if arguments.contains(&"--users") { &[] } else { &["--users", "1"] };
    let mut command = smbscope(&[&load[..], users, &["--capture", "-o", &run_name], arguments, &[&url]].concat());
    command.env("SMBSCOPE_PASSWORD", server.password());
    let said = finish(command);
    assert_eq!(said.status, Some(0), "{}", said.err);
    let capture = captured(run);
    if capture.is_none() {
        skip::unable(format_args!("nothing can be captured: {}", said.err));
    }
    capture
}

#[test]
fn a_recording_does_the_same_commands_in_the_same_order_with_the_same_bytes() {
    if let Err(why) = available() {
        skip::missing(why);
        return;
    }
    let folder = directory("record-replay");
    let server = LabServer::start(&LabServerSettings::default()).unwrap_or_else(|error| panic!("{error}"));
    let workloads: [&[&str]; 2] = [
        &["--workload", "copy-small", "--set", "files=5"],
        &["--workload", "logon", "--set", "files=6", "--set", "folders=2", "--set", "bytes=60KB"],
    ];
    for (number, workload) in workloads.into_iter().enumerate() {
        let place = |name: &str| folder.join(format!("{name}{number}"));
        let Some(first) = pass(&server, &place("first"), workload) else { return };
        let recording = place("app").with_extension("toml").display().to_string();
        let said = record(&["-o", &recording, first.to_str().expect("UTF-8")]);
        assert_eq!(said.status, Some(0), "{}", said.err);
        assert!(!said.err.contains("not replayed"), "{}", said.err);
        let replay = ["--workload", &recording, "--think", "none"];
        let Some(second) = pass(&server, &place("second"), &replay) else { return };
        let (original, replayed) = (commands(&first), commands(&second));
        assert!(original.len() >= 20, "{original:?}");
        // The capture may begin with the commands that create the files.
        let work = replayed.len().checked_sub(original.len()).map(|from| &replayed[from..]);
        assert_eq!(work, Some(&original[..]), "{workload:?}");
    }
}

/// Replays a recording in its own and in another dialect. Every response must match the recorded one.
#[test]
fn a_recording_is_replayed_in_the_same_and_in_another_dialect() {
    if let Err(why) = available() {
        skip::missing(why);
        return;
    }
    let folder = directory("record-dialects");
    let server = LabServer::start(&LabServerSettings::default()).unwrap_or_else(|error| panic!("{error}"));
    let workload = ["--workload", "logon", "--set", "files=6", "--set", "folders=2", "--set", "bytes=60KB"];
    for (recorded, replayed, is_same) in [("nt1", "nt1", true), ("nt1", "3.1.1", false), ("2.1", "3.1.1", true)] {
        let place = |name: &str| folder.join(format!("{name}-{recorded}-{replayed}"));
        let Some(first) = pass(&server, &place("first"), &[&workload[..], &["--dialect", recorded]].concat()) else {
            return;
        };
        let recording = place("app").with_extension("toml").display().to_string();
        let said = record(&["-o", &recording, first.to_str().expect("UTF-8")]);
        assert_eq!(said.status, Some(0), "{}", said.err);
        assert!(!said.err.contains("not replayed"), "{}", said.err);
        let replay = ["--workload", &recording, "--think", "none", "--dialect", replayed];
        let Some(second) = pass(&server, &place("second"), &replay) else { return };
        let document = std::fs::read_to_string(place("second").join("run.json")).expect("the run is kept");
        let document: serde_json::Value = serde_json::from_str(&document).expect("it is JSON");
        let operations = document["runs"][0]["workload_operations"].as_array().expect("operations");
        assert!(
            operations.iter().all(|one| one["unexpected"].as_object().is_none_or(|all| all.is_empty())),
            "{operations:?}"
        );
        let (original, again) = (commands(&first), commands(&second));
        assert!(original.len() >= 20, "{original:?}");
        let work = again.len().checked_sub(original.len()).map(|from| &again[from..]);
        assert!(!is_same || work == Some(&original[..]), "{recorded} and {replayed}: {original:#?} {again:#?}");
        let reads = |all: &[Vec<String>]| {
            let of = |row: &&Vec<String>| row[0].contains("READ") && row[2] == "STATUS_SUCCESS";
            all.iter().filter(of).map(|row| (row[3].clone(), row[4].clone(), row[5].clone())).collect::<Vec<_>>()
        };
        assert_eq!(reads(&original), reads(&again), "the same bytes are read of the same files in the same order");
    }
}

/// Downloads and uploads a file with four blocks outstanding.
const QUEUE: &str = r#"
name = "queue"
order = "sequence"
[files]
count = 1
size = "4MB"
[[operation]]
name = "download"
steps = [
  { do = "open", file = "next", access = "read" },
  { do = "read", length = "file", block = "64KiB", depth = 4 },
  { do = "close" },
]
[[operation]]
name = "upload"
steps = [
  { do = "open", file = "new", access = "write", mode = "create" },
  { do = "write", length = "4MB", block = "64KiB", depth = 4 },
  { do = "close" },
  { do = "remove", counts_as = "remove" },
]
"#;

/// Queued transfers are replayed with the same number of outstanding commands.
#[test]
fn a_queue_is_replayed_as_a_queue() {
    if let Err(why) = available() {
        skip::missing(why);
        return;
    }
    let folder = directory("record-queue");
    // The delay limits the packet rate. At full speed, a capture on a busy machine loses packets.
    let settings = LabServerSettings { delay: Some(Duration::from_millis(2)), ..LabServerSettings::default() };
    let server = LabServer::start(&settings).unwrap_or_else(|error| panic!("{error}"));
    let workload = folder.join("queue.toml");
    std::fs::write(&workload, QUEUE).expect("it can be written");
    let workload = ["--workload", workload.to_str().expect("UTF-8")];
    let Some(first) = pass(&server, &folder.join("first"), &workload) else { return };
    let recording = folder.join("app.toml").display().to_string();
    let said = record(&["-o", &recording, first.to_str().expect("UTF-8")]);
    assert_eq!(said.status, Some(0), "{}", said.err);
    let text = std::fs::read_to_string(&recording).expect("it was written");
    assert!(text.contains("\nReadQueue ") && text.contains("\nWriteQueue "), "{text}");
    let Some(second) = pass(&server, &folder.join("second"), &["--workload", &recording, "--think", "none"]) else {
        return;
    };
    let sorted = |capture: &Path| {
        let mut all: Vec<Vec<String>> = commands(capture).into_iter().filter(|row| !row[4].is_empty()).collect();
        all.sort();
        all
    };
    let (original, again) = (sorted(&first), sorted(&second));
    let missing: Vec<_> = original.iter().filter(|row| !again.contains(row)).collect();
    assert!(original.len() > 10 && missing.is_empty(), "{missing:#?}");
    let outstanding = |capture: &Path| {
        let connections = connections(capture);
        connections.iter().filter_map(|one| one["max_outstanding"].as_u64()).max()
    };
    assert_eq!(outstanding(&first), outstanding(&second));
}

/// Users at the same time become threads of their machine, and are at work at the same time again.
#[test]
fn what_happened_at_the_same_time_is_replayed_at_the_same_time() {
    if let Err(why) = available() {
        skip::missing(why);
        return;
    }
    let folder = directory("record-threads");
    let settings = LabServerSettings { delay: Some(Duration::from_millis(2)), ..LabServerSettings::default() };
    let server = LabServer::start(&settings).unwrap_or_else(|error| panic!("{error}"));
    let load = ["--users", "4", "--workload", "copy-small", "--set", "files=5", "--think", "3ms"];
    let Some(first) = pass(&server, &folder.join("first"), &load) else { return };
    let recording = folder.join("app.toml").display().to_string();
    let said = record(&["-o", &recording, first.to_str().expect("UTF-8")]);
    assert_eq!(said.status, Some(0), "{}", said.err);
    assert!(said.err.contains("of 1 client with 4 threads") && !said.err.contains("not replayed"), "{}", said.err);
    let Some(second) = pass(&server, &folder.join("second"), &["--users", "1", "--workload", &recording]) else {
        return;
    };
    let sorted = |capture: &Path| {
        let mut all = commands(capture);
        all.sort();
        all
    };
    // The replay also creates the files, before its measured part.
    let (original, mut again) = (sorted(&first), sorted(&second));
    let missing: Vec<_> = original
        .iter()
        .filter(|row| again.iter().position(|other| &other == row).map(|at| again.remove(at)).is_none())
        .collect();
    assert!(original.len() > 40 && missing.is_empty(), "{missing:#?}");
    assert_eq!(connections(&second).len(), connections(&first).len());
}

/// Runs each shipped recording on a private server. A few results (at most 0.5%) may differ, because launches over
/// several connections are not replayed completely.
#[test]
fn recordings_that_ship_do_what_was_recorded() {
    if let Err(why) = available() {
        return skip::missing(why);
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/recorded");
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let file = entry.expect("it can be read").path();
        names.insert(file.file_stem().expect("a name").to_string_lossy().into_owned());
        let text = std::fs::read_to_string(&file).expect("it is text");
        let recorded = text.lines().find_map(|line| line.strip_prefix("commands = ")).expect("their number");
        let recorded: u64 = recorded.parse().expect("a number");
        let path = file.to_str().expect("UTF-8");
        let mut command = smbscope(&["bench", "--workload", path, "--users", "1", "--passes", "1"]);
        command.args(["--think", "none", "--format", "json", "-q"]);
        let said = finish(command);
        assert_eq!(said.status, Some(0), "{path}: {}", said.err);
        let document: serde_json::Value = serde_json::from_str(&said.out).expect("it is JSON");
        let run = &document["runs"][0];
        let operations = run["workload_operations"].as_array().expect("operations");
        let count = |of: &str| operations.iter().map(|one| one["service_time"][of].as_u64().unwrap_or(0)).sum::<u64>();
        assert_eq!(count("count"), recorded, "{path}");
        let unexpected = operations.iter().filter_map(|one| one["unexpected"].as_object());
        let unexpected: u64 = unexpected.flat_map(|one| one.values()).filter_map(serde_json::Value::as_u64).sum();
        assert!(unexpected * 200 <= recorded, "{path}: {unexpected} of {recorded}");
    }
    assert_eq!(names, ["browser-start", "document-save", "git-status"].map(str::to_owned).into());
}
