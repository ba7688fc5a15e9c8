//! `smbscope record`: what it makes of a capture, and that `bench` does the same again.

mod common;

use common::{Said, bundled, directory, finish, table};
use smbscope_lab::{Server, Settings, available};
use smbscope_testkit::skip;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn smbscope(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    command.args(arguments).env_remove("NO_COLOR").env_remove("SMBSCOPE_PASSWORD").stdin(Stdio::null());
    command
}

fn record(arguments: &[&str]) -> Said {
    finish(smbscope(&[&["record"], arguments].concat()))
}

/// The commands on files, each with its subcommand, status, offset, length and the last part of its path.
fn commands(capture: &Path) -> Vec<Vec<String>> {
    let capture = capture.to_str().expect("the path is UTF-8");
    let said = finish(smbscope(&["analyze", "--format", "csv", "--quiet", capture]));
    assert_eq!(said.status, Some(0), "{}", said.err);
    let (header, mut rows) = table(&said.out);
    let at = |name: &str| header.iter().position(|column| column == name).expect("the column is there");
    let columns = ["command", "subcommand", "status", "offset", "length", "path"].map(at);
    let (first, id) = (at("request_first_ns"), at("message_id"));
    rows.sort_by_key(|row| (row[first].parse::<i64>().unwrap_or(0), row[id].parse::<u64>().unwrap_or(0)));
    let on_files = ["CREATE", "CLOSE", "READ", "WRITE", "FLUSH", "QUERY_INFO", "SET_INFO", "QUERY_DIRECTORY", "LOCK"];
    let rows = rows.into_iter().filter(|row| on_files.contains(&row[columns[0]].as_str()));
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
    let bad = finish(smbscope(&["bench", "--workload", &out, "--think", "fast"]));
    assert_eq!(bad.status, Some(2), "{}", bad.err);
}

#[test]
fn names_of_an_anonymous_recording_are_not_those_of_the_capture() {
    let capture = bundled("own/smbclient_SMB3_11.pcap.zst");
    let said = record(&["--quiet", "--anonymise", capture.to_str().expect("UTF-8")]);
    assert_eq!(said.status, Some(0), "{}", said.err);
    // What stands behind the last dot of a name is kept.
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
fn a_capture_without_smb2_says_why_nothing_was_recorded() {
    let said = record(&["--quiet", bundled("own/smbclient_NT1.pcap.zst").to_str().expect("UTF-8")]);
    assert_eq!(said.status, Some(1));
    assert!(said.err.contains("no command in it can be replayed") && said.err.contains("only SMB2"), "{}", said.err);
}

/// Where the capture of the only load point is.
fn captured(run: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(run).expect("the run is kept");
    let mut paths = entries.map(|entry| entry.expect("an entry").path());
    paths.find(|path| path.extension().is_some_and(|extension| extension == "pcap"))
}

/// A pass of one user, captured.
fn pass(server: &Server, run: &Path, arguments: &[&str]) -> Option<PathBuf> {
    let run_name = run.display().to_string();
    let url = format!("smb://{}@{}/{}", server.user(), server.address(), server.share());
    let load = ["bench", "--users", "1", "--passes", "1", "--warmup", "0s", "--duration", "60s", "--quiet"];
    let mut command = smbscope(&[&load[..], &["--capture", "-o", &run_name], arguments, &[&url]].concat());
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
    let server = Server::start(&Settings::default()).unwrap_or_else(|error| panic!("{error}"));
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
        // What makes the files may be in the capture, in front of the work.
        let work = replayed.len().checked_sub(original.len()).map(|from| &replayed[from..]);
        assert_eq!(work, Some(&original[..]), "{workload:?}");
    }
}
