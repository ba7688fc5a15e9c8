//! `smbscope study` on a scripted server.

use crate::common::{self, Said, directory, said, write};
use serde_json::Value;
use smbscope_report::quoted;
use smbscope_testkit::server::{Script, ScriptedServer};
use std::collections::HashSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Two dialects with three short runs each.
const STUDY: &str = "
name = 'echoes'
question = 'How long does an echo take in each dialect?'
repetitions = 3
measures = ['mean(total)', 'commands']

[bench]
workload = 'echo'
users = 1
duration = '200ms'
warmup = '0s'
no-prepare = true

[[axis]]
bench.dialect = ['2.1', '3.1.1']
";

fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    command.current_dir(directory).arg("study").args(arguments).env_remove("NO_COLOR");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn study(directory: &Path, arguments: &[&str]) -> Said {
    common::finish(command(directory, arguments))
}

fn scripted() -> (ScriptedServer, String) {
    let server = ScriptedServer::start(Script::new()).expect("a port is free");
    let target = format!("here=smb://{}/share", server.address());
    (server, target)
}

fn document(directory: &Path) -> Value {
    let text = std::fs::read(directory.join("out/study.json")).expect("the study is kept");
    serde_json::from_slice(&text).expect("it is JSON")
}

/// Returns the finished runs of a study, or none if the study does not exist yet.
fn runs(directory: &Path) -> Vec<Value> {
    if !directory.join("out/study.json").is_file() {
        return Vec::new();
    }
    document(directory)["runs"].as_array().expect("there are runs").clone()
}

fn conforms(document: &Value) {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/smbscope.study-1.schema.json");
    let schema = serde_json::from_slice(&std::fs::read(schema).expect("the schema is there")).expect("it is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema is one");
    let complaints: Vec<String> = validator.iter_errors(document).map(|error| error.to_string()).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn a_study_runs_every_variant_as_often_as_asked_and_shows_the_factors() {
    let (place, (_server, target)) = (directory("study-whole"), scripted());
    write(&place, "echoes.toml", STUDY);
    let done = study(&place, &["echoes.toml", "--target", &target, "-o", "out"]);
    assert_eq!(done.status, Some(0), "{}", done.err);
    // The answer comes first.
    assert!(done.out.starts_with("mean(total), 1 user: dialect 3.1.1 against dialect 2.1, "), "{}", done.out);
    for line in [
        "Study      echoes",
        "Question   How long does an echo take",
        "mean(total), 1 user",
        "dialect 2.1",
        "dialect 3.1.1",
        "2 variants × 3 repetitions, 6 runs",
    ] {
        assert!(done.out.contains(line), "{line}: {}", done.out);
    }
    assert!(done.err.contains("run 6 of 6: dialect "), "{}", done.err);
    let kept = document(&place);
    conforms(&kept);
    let runs = kept["runs"].as_array().expect("there are runs");
    let directories: HashSet<&str> = runs.iter().filter_map(|run| run["directory"].as_str()).collect();
    assert_eq!((runs.len(), directories.len()), (6, 6));
    assert!(directories.iter().all(|run| place.join("out").join(run).join("run.json").is_file()));
    // The page contains the same document.
    let page = std::fs::read_to_string(place.join("out/study.html")).expect("the page is kept");
    let (_, rest) = page.split_once(r#"id="smbscope-data">"#).expect("it has a document");
    let embedded: Value = serde_json::from_str(rest.split("</script").next().expect("it ends")).expect("it is JSON");
    assert_eq!(embedded, kept);
    assert!(page.contains("<title>SMB study: echoes</title>"));
    assert_eq!(
        kept["command"],
        format!("smbscope study echoes.toml --target {} --repetitions 3 -o out", quoted(&target))
    );
    // Three repetitions give a range but no interval.
    let factor = &kept["results"][1]["factor"];
    assert!(factor["range"].is_array() && factor["interval"].is_null(), "{factor}");
    // All runs are finished, so the server is not contacted again.
    let again = study(&place, &["echoes.toml", "--target", &target, "-o", "out", "-q", "--format", "json"]);
    assert_eq!(serde_json::from_str::<Value>(again.output()).expect("it is JSON"), kept);
}

/// Kills the study at various moments, as a power cut would: during a run, and while results are written between runs.
#[test]
fn a_killed_study_goes_on_and_repeats_or_loses_no_finished_run() {
    let (place, (_server, target)) = (directory("study-killed"), scripted());
    write(&place, "echoes.toml", STUDY);
    let arguments = ["echoes.toml", "--target", &target, "-o", "out", "--repetitions", "10"];
    let mut finished = Vec::new();
    for milliseconds in [30, 130, 230, 330] {
        let mut child =
            command(&place, &arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
        let runs = loop {
            let runs = runs(&place);
            if runs.len() > finished.len() {
                break runs;
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        assert_eq!(runs[..finished.len()], finished, "finished runs stay as they are");
        std::thread::sleep(Duration::from_millis(milliseconds));
        child.kill().expect("it is there");
        child.wait().expect("it ends");
        finished = self::runs(&place);
    }
    assert!((1..20).contains(&finished.len()), "{} runs", finished.len());
    let done = study(&place, &arguments);
    assert_eq!(done.status, Some(0), "{}", done.err);
    let kept = document(&place);
    conforms(&kept);
    let runs = kept["runs"].as_array().expect("there are runs");
    assert_eq!((runs.len(), &runs[..finished.len()]), (20, &finished[..]));
    let directories: HashSet<&str> = runs.iter().filter_map(|run| run["directory"].as_str()).collect();
    assert_eq!(directories.len(), 20);
    // At least six runs of each variant, enough for an interval.
    assert!(kept["results"][1]["factor"]["interval"].is_array(), "{}", kept["results"][1]);
}

#[test]
fn an_interrupt_ends_the_study_after_what_is_finished() {
    let (place, (_server, target)) = (directory("study-interrupted"), scripted());
    write(&place, "echoes.toml", STUDY.replace("200ms", "30s"));
    let child = command(&place, &["echoes.toml", "--target", &target, "-o", "out"]).spawn().expect("it runs");
    std::thread::sleep(Duration::from_secs(2));
    let begun = Instant::now();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(child.id() as i32).expect("it is there"),
        rustix::process::Signal::INT,
    )
    .expect("it takes signals");
    let said = said(child.wait_with_output().expect("it ends"));
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_eq!(said.status, Some(130), "{}", said.err);
    assert!(said.err.contains("interrupted after 0 of 6 runs; run the same command to resume"), "{}", said.err);
    assert_eq!(document(&place)["runs"], Value::Array(Vec::new()));
}

#[test]
fn mistakes_are_told_in_one_line_before_anything_is_run() {
    let place = directory("study-mistakes");
    let refused = |text: &str, arguments: &[&str], status| -> String {
        write(&place, "wrong.toml", text);
        let said = study(&place, &[&["wrong.toml", "-o", "out"], arguments].concat());
        assert!(!place.join("out").exists(), "{}", said.err);
        said.error(status).to_owned()
    };
    let other = |from: &str, to: &str| STUDY.replace(from, to);
    for (text, expected) in [
        (other("bench.dialect", "bench.dialekt"), "unexpected argument '--dialekt' found"),
        (other("'3.1.1']", "'3.1.2']"), "dialect 3.1.2: invalid value '3.1.2' for '--dialect"),
        (other("'echo'", "'ecko'"), "no workload is called \"ecko\""),
        (other("users = 1", "users = 0"), "--users"),
        (other("[[axis]]", "[lab]\nspeed = 3\n[[axis]]"), "unexpected argument '--speed'"),
    ] {
        let error = refused(&text, &[], 2);
        assert!(error.starts_with("wrong.toml: ") && error.contains(expected), "{error}");
    }
    let error = refused(&other("name = 'echoes'", "nmae = 'x'"), &[], 1);
    assert!(error.starts_with("wrong.toml:2:1: unknown field `nmae`"), "{error}");
    let error =
        refused(&other("[[axis]]", "[[axis]]\nlab.cpu-load = [0, 50]\n[[axis]]"), &["--target", "smb://a/s"], 2);
    assert!(error.contains("cpu-load applies to a private server only, but the target is smb://a/s"), "{error}");
    assert!(refused(STUDY, &["--target", "a/s"], 2).contains("--target a/s: expected smb://"));
    let missing = study(&place, &["none.toml", "-o", "out"]);
    assert!(missing.error(1).starts_with("cannot read none.toml: No such file"), "{}", missing.err);
}

/// A study from another source contains commands in several places, and tries to hide one of them.
#[test]
fn commands_of_a_file_are_listed_and_run_only_where_that_is_allowed() {
    let (place, (_server, target)) = (directory("study-commands"), scripted());
    let setting = "name = 'echo'\n[[axis.setting]]\nname = 'x'\nbefore = ['test -z \"$SMBSCOPE_PASSWORD\"', 'touch ran']\nafter = ['touch ended']\n";
    write(&place, "own.toml", STUDY.replace("bench.dialect = ['2.1', '3.1.1']", setting));
    let dry = study(&place, &["own.toml", "--dry-run"]);
    let listing = dry.output();
    for line in ["before  test -z", "before  touch ran", "after   touch ended"] {
        assert!(listing.contains(line), "{line}: {listing}");
    }
    let arguments = ["own.toml", "--target", &target, "-o", "out", "--repetitions", "1", "-q"];
    let refused = study(&place, &arguments);
    let error = refused.error(2);
    assert!(error.contains("own.toml runs commands of its own") && error.contains("--allow-commands"), "{error}");
    assert!(!place.join("ran").exists() && !place.join("out").exists());
    let mut allowed = command(&place, &[&arguments[..], &["--allow-commands"]].concat());
    let allowed = common::finish({
        allowed.env("SMBSCOPE_PASSWORD", "secret");
        allowed
    });
    assert_eq!(allowed.status, Some(0), "{}", allowed.err);
    assert!(place.join("ran").exists() && place.join("ended").exists());

    let hidden =
        "name = 'x'\n[launch]\n'before=touch hidden;' = ['#']\ncommand = ['true']\n[[axis]]\nlaunch.linger = ['0s']\n";
    write(&place, "hidden.toml", hidden);
    assert!(study(&place, &["hidden.toml", "--dry-run"]).output().contains("before  touch hidden;"));
    assert_eq!(study(&place, &["hidden.toml", "-o", "other"]).status, Some(2));
    let samba = STUDY.replace("[[axis]]", "[lab]\nsmb-conf = ['root preexec = touch /nowhere/x']\n[[axis]]");
    write(&place, "samba.toml", samba);
    assert!(study(&place, &["samba.toml", "-o", "other"]).error(2).contains("root preexec"));
    assert!(!place.join("hidden").exists() && !place.join("other").exists());
}

/// The error rate is above the limit for a load.
#[test]
fn a_run_of_which_too_much_fails_is_unfit() {
    use smbscope_testkit::server::Fault;
    use smbscope_wire::{smb2::Smb2Command as Smb2, status::NtStatus};
    let place = directory("study-errors");
    write(&place, "echoes.toml", STUDY);
    let storm = Fault::Status(NtStatus::INSUFFICIENT_RESOURCES).on(Smb2::ECHO).share(0.5);
    let server = ScriptedServer::start(Script::new().rule(storm)).expect("a port is free");
    let target = format!("smb://{}/share", server.address());
    let said = study(&place, &["echoes.toml", "--target", &target, "-o", "out", "--repetitions", "1"]);
    assert_eq!(said.status, Some(1), "{}", said.err);
    assert!(said.err.contains("operations failed (") && said.err.contains("2 of 2 runs failed"), "{}", said.err);
}

#[test]
fn a_server_that_is_not_there_fails_its_runs_and_not_the_others() {
    let (place, (_server, target)) = (directory("study-unreachable"), scripted());
    write(&place, "echoes.toml", STUDY);
    let nowhere = "gone=smb://127.0.0.1:1/share";
    let arguments = ["echoes.toml", "--target", &target, "--target", nowhere, "-o", "out", "--repetitions", "1"];
    let said = study(&place, &arguments);
    assert_eq!(said.status, Some(1), "{}", said.err);
    assert!(said.err.contains("gone, dialect 2.1 failed: "), "{}", said.err);
    assert!(said.err.trim_end().ends_with("2 of 4 runs failed; run the same command to retry them"), "{}", said.err);
    let runs = document(&place)["runs"].clone();
    let failed: Vec<bool> = runs.as_array().expect("runs").iter().map(|run| run["failed"].is_string()).collect();
    assert!(place.join("out/study.html").is_file());
    assert_eq!((failed.len(), failed.iter().filter(|failed| **failed).count()), (4, 2));
}

#[test]
fn a_dry_run_lists_the_runs_as_command_lines() {
    let place = directory("study-dry");
    write(&place, "echoes.toml", STUDY);
    let listed = study(&place, &["echoes.toml", "-o", "out", "--dry-run"]);
    assert_eq!(listed.output().lines().count(), 6);
    assert!(listed.out.contains("01-dialect-2.1/1    smbscope bench --dialect 2.1 --duration 200ms"), "{}", listed.out);
    assert!(!place.join("out").exists());
}

#[test]
fn help_of_study() {
    let place = directory("study-help");
    insta::assert_snapshot!("help_of_study", study(&place, &["--help"]).output());
}

/// Dry-runs all shipped studies, in full and with `--quick`. Each must be listed in docs/studies.md.
#[test]
fn shipped_studies_are_ones() {
    let place = directory("study-shipped");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).expect("the studies are there") {
        let file = entry.expect("an entry").path();
        let file = file.to_str().expect("a name");
        let runs = |form: &[&str]| {
            let listed = study(&place, &[&[file, "--dry-run"], form].concat());
            listed.output().lines().count()
        };
        assert!(runs(&["--quick"]) <= runs(&[]), "{file}");
        names.push(Path::new(file).file_name().expect("a name").to_string_lossy().into_owned());
    }
    let page = std::fs::read_to_string(folder.join("../docs/studies.md")).expect("the page is there");
    let missing: Vec<&String> = names.iter().filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty() && names.len() >= 8, "{missing:?} of {names:?} are not on docs/studies.md");
}

/// Both studies run briefly on the same server, so their ratio is 1 within the noise of 200 ms runs. Three repetitions
/// give no interval.
#[test]
fn studies_are_compared_variant_by_variant() {
    let (place, (_server, target)) = (directory("study-beside"), scripted());
    write(&place, "echoes.toml", STUDY);
    write(&place, "other.toml", STUDY.replace("['2.1', '3.1.1']", "['2.1', '3.0']"));
    for (file, out) in [("echoes.toml", "old"), ("other.toml", "new")] {
        let done = study(&place, &[file, "--target", &target, "-o", out]);
        assert_eq!(done.status, Some(0), "{}", done.err);
    }
    let compare = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_smbscope"));
        command.current_dir(&place).arg("compare").args(arguments).env_remove("NO_COLOR");
        common::finish(command)
    };
    let text = compare(&["old", "new"]);
    assert_eq!(text.status, Some(0), "{}", text.err);
    for line in [
        "Study      old beside new",
        "old and new were made from different files.",
        "old has no dialect 3.0.",
        "new has no dialect 3.1.1.",
        "dialect 2.1, old",
        "dialect 2.1, new",
    ] {
        assert!(text.out.contains(line), "{line}: {}", text.out);
    }
    let json = compare(&["--format", "json", "--title", "both", "old", "new"]);
    let json: Value = serde_json::from_str(&json.out).expect("it is JSON");
    conforms(&json);
    assert_eq!((json["name"].as_str(), json["studies"].as_array().map(Vec::len)), (Some("both"), Some(2)));
    let names: Vec<&str> =
        json["variants"].as_array().expect("a list").iter().filter_map(|variant| variant["name"].as_str()).collect();
    assert_eq!(names, ["dialect 2.1, old", "dialect 2.1, new", "dialect 3.1.1, old", "dialect 3.0, new"]);
    assert_eq!(json["runs"].as_array().map(Vec::len), Some(12));
    let factors: Vec<(u64, &Value)> = json["results"]
        .as_array()
        .expect("rows")
        .iter()
        .filter(|row| row["factor"].is_object())
        .map(|row| (row["variant"].as_u64().expect("an index"), &row["factor"]))
        .collect();
    // Each of the two measures compares the only variant that both studies have, unless its runs are left out because
    // the machine is busy.
    let left_out = json["unfit"].as_array().is_some_and(|all| all.iter().any(|point| point["left_out"] == true));
    let compared: Vec<u64> = factors.iter().map(|(variant, _)| *variant).collect();
    assert!(compared == [1, 1] || left_out, "{compared:?}: {}", json["unfit"]);
    for (_, factor) in factors {
        let ratio = factor["ratio"].as_f64().expect("there are values");
        assert!((0.1..10.0).contains(&ratio) && factor["interval"].is_null(), "{factor}");
    }
    // Compared with a run, each variant is a separate side.
    let new: Value =
        serde_json::from_slice(&std::fs::read(place.join("new/study.json")).expect("it is kept")).expect("JSON");
    let run = format!("new/{}", new["runs"][0]["directory"].as_str().expect("a directory"));
    let mixed = compare(&["--format", "json", "old", &run]);
    assert_eq!(mixed.status, Some(0), "{}", mixed.err);
    let mixed: Value = serde_json::from_str(&mixed.out).expect("it is JSON");
    assert_eq!(mixed["columns"].as_array().map(Vec::len), Some(3), "{}", mixed["columns"]);
    let refused = compare(&["--fail-if", "p95(total) > 2x", "old", "new"]);
    assert!(
        refused.err.contains("--fail-if is for runs and captures: name the directories of variants"),
        "{}",
        refused.err
    );
}
