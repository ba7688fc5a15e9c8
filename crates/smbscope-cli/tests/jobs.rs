//! Jobs of workloads with an end, on private Samba servers (skipped without Samba).

use crate::common::{self, Said};
use serde_json::Value;
use smbscope_lab::{LabServer, LabServerSettings, available};
use smbscope_testkit::skip;
use std::process::{Command, Stdio};

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    command.arg("bench").args(arguments).env_remove("NO_COLOR").env_remove("SMBSCOPE_PASSWORD");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts a private server and returns a function that runs `bench` on it. Skips the test and returns `None` without
/// Samba.
fn on_samba() -> Option<(LabServer, impl Fn(&[&str]) -> Said)> {
    if let Err(why) = available() {
        skip::missing(why);
        return None;
    }
    let server = LabServer::start(&LabServerSettings::default()).unwrap_or_else(|error| panic!("{error}"));
    let url = format!("smb://{}@{}/{}", server.user(), server.address(), server.share());
    let password = server.password().to_owned();
    let bench = move |arguments: &[&str]| {
        let mut command = command(arguments);
        command.arg(&url).env("SMBSCOPE_PASSWORD", &password);
        common::finish(command)
    };
    Some((server, bench))
}

fn document(said: &Said) -> Value {
    assert_eq!(said.status, Some(0), "{}", said.err);
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {}", said.out))
}

/// Asserts that no operation had an unexpected result.
fn as_expected(run: &Value) {
    let operations = run["workload_operations"].as_array().expect("operations");
    for operation in operations {
        assert_eq!(operation["unexpected"].as_object().map(serde_json::Map::len), Some(0), "{operation}");
    }
}

#[test]
fn every_load_point_measures_whole_passes_of_a_file_with_an_end() {
    let Some((_server, bench)) = on_samba() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("mine.toml");
    let text = r#"
        name = "mine"
        order = "sequence"
        [files]
        count = 20
        size = 1000
        [[operation]]
        name = "read"
        times = "files"
        steps = [{ do = "open", file = "next" }, { do = "read", length = 1000 }, { do = "think", time = "1ms" }, { do = "close" }]
        [[operation]]
        name = "echo"
        steps = [{ do = "echo" }]
    "#;
    std::fs::write(&file, text).expect("it is written");
    let file = file.to_str().expect("a name");
    let found = document(&bench(&["--workload", file, "--passes", "2", "--users", "1,2", "-q", "--format", "json"]));
    for (run, jobs) in found["runs"].as_array().expect("runs").iter().zip([2, 4]) {
        as_expected(run);
        let found = &run["jobs"];
        assert_eq!((found["elapsed"]["count"].as_u64(), found["unfinished"].as_u64()), (Some(jobs), Some(0)));
        assert_eq!(found["list"].as_array().map(Vec::len), Some(jobs as usize));
        // Each job opens, reads and closes 20 files, and sends an echo.
        assert_eq!(run["operations"].as_u64(), Some(jobs * 61));
        assert_eq!((found["files"].as_u64(), found["bytes_read"].as_u64()), (Some(jobs * 20), Some(jobs * 20_000)));
        for job in found["list"].as_array().expect("jobs") {
            let (elapsed, waited) = (job["elapsed_ns"].as_i64().unwrap(), job["waited_ns"].as_i64().unwrap());
            // Elapsed time includes 20 ms of think time; waited time does not.
            assert!(waited > 0 && elapsed - waited >= 20_000_000, "{job}");
        }
    }
    let text = bench(&["--workload", file, "--passes", "2", "--users", "1", "-q"]);
    let line = text.out.lines().skip_while(|line| !line.starts_with("Jobs")).nth(1).unwrap_or_default();
    assert!(line.starts_with("1 user") && line.contains(" 2 ") && line.ends_with('%'), "{}", text.out);
}

#[test]
fn a_pass_of_a_loadfile_is_a_job() {
    let Some((_server, bench)) = on_samba() else { return };
    let found = document(&bench(&["--passes", "1", "--users", "2", "-q", "--format", "json"]));
    let jobs = &found["runs"][0]["jobs"];
    assert_eq!((jobs["elapsed"]["count"].as_u64(), jobs["unfinished"].as_u64()), (Some(2), Some(0)));
    assert_eq!(found["runs"][0]["warmup_ns"], 0);
    assert!(jobs["files"].as_u64() > Some(1_000) && jobs["bytes_written"].as_u64() > Some(1_000_000), "{jobs}");
}

#[test]
fn parameters_are_set_on_the_command_line_and_kept_with_the_run() {
    let Some((_server, bench)) = on_samba() else { return };
    let load = ["--workload", "ini", "--set", "settings=5", "--set", "read=100", "--passes", "3", "--users", "1", "-q"];
    let found = document(&bench(&[&load[..], &["--format", "json"]].concat()));
    let workload = &found["workload"];
    assert_eq!(workload["parameters"], serde_json::json!({ "read": "100", "settings": "5", "size": "90KB" }));
    assert!(workload["definition"].as_str().is_some_and(|text| text.contains("settings = 5\n")), "{workload}");
    let run = &found["runs"][0];
    as_expected(run);
    assert_eq!(run["jobs"]["elapsed"]["count"], 3);
    // Each of 5 settings takes an open, a read of 100 bytes and a close.
    assert_eq!((run["operations"].as_u64(), run["bytes_read"].as_u64()), (Some(3 * 15), Some(3 * 500)));
    // The proposed command keeps the parameters.
    assert!(found["invocation"]["command"].as_str().is_some_and(|c| c.contains("--set 'settings=5'")), "{found}");
    let text = bench(&[&load[..], &["--full"]].concat());
    assert!(text.out.contains("settings=5"), "{}", text.out);
    for (arguments, said) in [
        (["--workload", "ini", "--set", "setings=5"], "the workload has no parameter \"setings\"; did you mean"),
        (["--workload", "ini", "--set", "settings=many"], "settings is a number, and not \"many\""),
        (["--workload", "netbench-like", "--set", "a=1"], "the workload has no parameter \"a\"; a loadfile has none"),
    ] {
        let found = bench(&arguments);
        assert!(found.status == Some(1) && found.err.contains(said), "{}", found.err);
    }
}
