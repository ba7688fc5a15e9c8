//! `smbscope predict`: predictions of a bundled capture, and what can't be predicted.

use crate::common::{Said, bundled, directory, finish};
use serde_json::Value;
use smbscope_lab::available;
use smbscope_testkit::skip;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The office capture, whose connections begin in it.
const CAPTURE: &str = "demo-slow-server.pcap.zst";

fn predict(arguments: &[&str]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    command.args(["predict", "-q"]).args(arguments).arg(bundled(CAPTURE)).stdin(Stdio::null());
    finish(command)
}

fn document(arguments: &[&str]) -> Value {
    let said = predict(&[&["--format", "json"], arguments].concat());
    assert_eq!(said.status, Some(0), "{}", said.err);
    serde_json::from_str(&said.out).expect("JSON")
}

/// Returns the bounds and the best estimate of each change, in ns.
fn durations(document: &Value) -> Vec<[i64; 3]> {
    let predictions = document["predictions"].as_array().expect("a list");
    let of =
        |prediction: &Value| ["low", "best", "high"].map(|key| prediction["duration_ns"][key].as_i64().expect("ns"));
    predictions.iter().map(of).collect()
}

#[test]
fn each_change_has_a_range_around_its_best_estimate() {
    let found = document(&["--if", "server=0.5x", "--if", "server=1x", "--if", "rtt=20ms", "--if", "read=+10ms"]);
    assert_eq!((found["schema"].as_str(), found["episode"].as_u64()), (Some("smbscope.prediction/1"), None));
    let captured = found["captured_ns"].as_i64().expect("ns");
    let durations = durations(&found);
    assert!(durations.iter().all(|[low, best, high]| low <= best && best <= high), "{durations:?}");
    let [faster, same, farther, slower] = [0, 1, 2, 3].map(|at| durations[at][1]);
    // The replay may be off by 2%.
    assert!((same - captured).abs() * 50 <= captured, "{same} ns instead of {captured} ns");
    assert!(faster < same && same < farther && same < slower, "{durations:?}");
    let changes: Vec<&str> =
        found["predictions"].as_array().expect("a list").iter().filter_map(|one| one["change"].as_str()).collect();
    assert_eq!(changes, ["server=0.5x", "server=1x", "rtt=20ms", "read=+10ms"]);
}

#[test]
fn an_episode_is_a_part_of_the_capture() {
    let (whole, part) = (document(&["--if", "rtt=20ms"]), document(&["--episode", "1", "--if", "rtt=20ms"]));
    assert_eq!(part["episode"], 1);
    let commands = |found: &Value| found["commands"].as_u64().expect("a number");
    assert!(commands(&part) >= 10 && commands(&part) <= commands(&whole));
}

#[test]
fn the_text_begins_with_the_greatest_effect() {
    let said = predict(&["--if", "server=0.9x", "--if", "rtt=100ms"]);
    let said = said.output();
    assert!(said.starts_with("With rtt=100ms, the "), "{said}");
    for part in ["as captured", "server=0.9x", "Taken for granted", "The round trip is "] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn what_cannot_be_predicted_is_one_line() {
    for (arguments, status, text) in [
        (&["--if", "speed=2x"][..], 2, "unknown change 'speed'"),
        (&["--if", "serve=2x"], 2, "did you mean server?"),
        (&["--if", "cache=lease"], 2, "did you mean cache=leases?"),
        (&["--if", "dialect=nt1"], 2, "expected 2.0.2, 2.1, 3.0, 3.0.2 or 3.1.1"),
        (&["--if", "dialect=2.0.2"], 1, "dialect=2.0.2 is older than the captured 3."),
        (&["--if", "signing=on"], 2, "expected signing=required"),
        (&["--if", "read=10ms"], 2, "such as +10ms"),
        (&[], 2, "<--if <CHANGE,...>|--users <USERS>>"),
        (&["--users", "0"], 2, "0 is too few"),
        (&["--if", "rtt=1ms", "--user-is", "client"], 2, "--users"),
        (&["--users", "10", "--user-is", "client"], 1, "has 1.0 on average (client address): if each connection"),
        (&["--users", "10", "--filter", "group == Session"], 1, "--users needs at least 200: capture for longer"),
        (&["--if", "rtt=1ms", "--episode", "999"], 1, "--episode 999"),
        (&["--if", "rtt=1ms", "--filter", "command == FLUSH and path == nowhere"], 1, "no command was answered"),
        (&["--if", "rtt=1ms", "-o", "report.csv"], 2, ".csv"),
        (&["--if", "rtt=1ms", "--target", "smb://h/s"], 2, "--prove"),
        (&["--if", "rtt=1ms", "--prove", "--target", "file:/tmp"], 2, "expected smb://"),
    ] {
        let said = predict(arguments);
        assert_eq!(said.status, Some(status), "{arguments:?}: {}", said.err);
        assert!(said.err.contains(text), "{arguments:?}: {}", said.err);
    }
}

#[test]
fn users_are_predicted_with_bounds_that_hold_the_captured_response_time() {
    let found = document(&["--users", "5..20:5", "--user-is", "connection"]);
    assert!(found["predictions"].is_null() && found["captured_ns"].is_null(), "{found}");
    let points = found["users"].as_array().expect("a list");
    let numbers: Vec<u64> = points.iter().filter_map(|point| point["users"].as_u64()).collect();
    assert_eq!(numbers, [5, 10, 15, 20]);
    let times = |key: &str| -> Vec<i64> {
        points.iter().map(|point| point["response_time_ns"][key].as_i64().expect("ns")).collect()
    };
    let [low, best, high] = ["low", "best", "high"].map(times);
    assert!([&low, &best, &high].iter().all(|times| times.is_sorted()), "{points:?}");
    assert!((0..4).all(|at| low[at] <= best[at] && best[at] <= high[at]), "{points:?}");
    // Little's law, from the document's own figures: commands/s × (think time + response time) is the number of users.
    let load = &found["load"];
    let float = |value: &Value| value.as_f64().expect("a number");
    let cycle = float(&load["think_time_ns"]) + float(&load["response_time_ns"]) / float(&load["outstanding_per_user"]);
    let users = float(&load["commands_per_s"]) * cycle / 1e9;
    assert!((users / float(&load["users"]) - 1.0).abs() < 0.01, "{users} users: {load}");
    let mix: f64 = load["mix"].as_object().expect("groups").values().map(float).sum();
    assert!((mix - 1.0).abs() < 1e-9, "{load}");
}

#[test]
fn the_text_of_users_begins_with_the_most_and_ends_with_assumptions() {
    let said = predict(&["--users", "5,20", "--user-is", "connection", "--if", "rtt=20ms"]);
    let said = said.output();
    let (changes, users) = said.split_once("With 20 users, a command takes ").expect("both are predicted");
    assert!(changes.starts_with("With rtt=20ms, the "), "{said}");
    for part in
        ["response time doubles at", "as captured", "Taken for granted", "commands queue for", "The link is left out"]
    {
        assert!(users.contains(part), "{part}: {said}");
    }
}

#[test]
fn a_page_has_the_document_with_its_headline() {
    let said = predict(&["--if", "rtt=100ms", "--format", "html"]);
    let said = said.output();
    let (_, rest) = said.split_once(r#"id="smbscope-data">"#).expect("the document");
    let (embedded, _) = rest.split_once("</script").expect("it ends");
    let document: Value = serde_json::from_str(embedded).expect("JSON");
    assert_eq!(document["schema"], "smbscope.prediction/1");
    assert!(document["headline"].as_str().is_some_and(|line| line.starts_with("With rtt=100ms, the ")), "{document}");
    assert!(said.contains("<title>SMB prediction: ") && said.contains(&format!("{CAPTURE}</title>")));
}

/// Captures a user who copies 12 small files. Returns `None` if that is not possible.
fn copies(name: &str) -> Option<PathBuf> {
    if let Err(why) = available() {
        skip::missing(why);
        return None;
    }
    let run = directory(name).join("run").display().to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    command.args(["bench", "-q", "--workload", "copy-small", "--set", "files=12", "--users", "1", "--passes", "1"]);
    command.args(["--capture", "-o", &run]).stdin(Stdio::null());
    let said = finish(command);
    assert_eq!(said.status, Some(0), "{}", said.err);
    let files = std::fs::read_dir(&run).expect("the run is kept").map(|entry| entry.expect("an entry").path());
    let capture = files.into_iter().find(|file| file.extension().is_some_and(|end| end == "pcap"));
    if capture.is_none() {
        skip::unable(format_args!("nothing can be captured: {}", said.err));
    }
    capture
}

/// Proves signatures on a server that is there already, where a longer round trip can't be made.
#[test]
fn a_prediction_is_proved_on_a_given_server() {
    let Some(capture) = copies("predict-prove-target") else { return };
    let script = r#"exec "$0" predict -q --format json --prove --repetitions 1 --if rtt=10ms --if signing=required \
                    --target "$SMBSCOPE_LAB_URL" --target-password-file "$SMBSCOPE_LAB_PASSWORD_FILE" "$1""#;
    let mut command = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    command.args(["lab", "run", "--", "sh", "-c", script, env!("CARGO_BIN_EXE_smbscope")]);
    command.arg(capture).stdin(Stdio::null());
    let said = finish(command);
    if said.err.contains("captured") {
        return skip::unable(said.err.trim());
    }
    assert_eq!(said.status, Some(0), "{}", said.err);
    let document: Value = serde_json::from_str(&said.out).expect("JSON");
    let proof = &document["proof"];
    assert!(proof["server"].as_str().is_some_and(|server| server.starts_with("smb://")), "{proof}");
    let [farther, signed] = [0, 1].map(|at| &proof["changes"][at]);
    assert_eq!((&farther["verdict"]["kind"], &farther["measured_ns"]), (&Value::from("not_made"), &Value::Null));
    assert!(farther["verdict"]["why"].as_str().is_some_and(|why| why.contains("--target")), "{proof}");
    assert!(signed["measured_ns"].is_object() && signed["predicted_ns"].is_object(), "{proof}");
    assert!(["holds", "misses"].contains(&signed["verdict"]["kind"].as_str().expect("a verdict")), "{proof}");
    assert!(document["headline"].as_str().is_some_and(|line| line.contains(" on smb://")), "{document}");
}

/// Proves a longer round trip, a slower server and signatures.
#[test]
fn a_prediction_is_proved_by_replays_in_the_lab() {
    let Some(capture) = copies("predict-prove") else { return };
    let mut command = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    command.args(["predict", "-q", "--format", "json", "--prove", "--repetitions", "1"]);
    command.args(["--if", "rtt=10ms", "--if", "server=0.5x", "--if", "server=4x", "--if", "signing=required"]);
    command.arg(capture).stdin(Stdio::null());
    let said = finish(command);
    if said.err.contains("proxy") || said.err.contains("captured") {
        return skip::unable(said.err.trim());
    }
    assert_eq!(said.status, Some(0), "{}", said.err);
    let document: Value = serde_json::from_str(&said.out).expect("JSON");
    let (proof, commands) = (&document["proof"], document["proof"]["commands"].as_i64().expect("a number"));
    // Each file is opened, read, closed, created elsewhere, written, closed and removed, one command after the other.
    assert!(commands >= 12 * 6, "{proof}");
    let [farther, faster, slower, signed] = [0, 1, 2, 3].map(|at| &proof["changes"][at]);
    let best = |measured: &Value| measured["best"].as_i64().expect("ns");
    let measured = best(&farther["measured_ns"]);
    let predicted = farther["predicted_ns"]["best"].as_i64().expect("ns");
    for duration in [measured, predicted] {
        assert!(duration >= commands * 10_000_000, "each command takes 10 ms: {proof}");
        assert!(duration <= commands * 20_000_000 + 5_000_000_000, "{proof}");
    }
    assert!(["holds", "misses"].contains(&farther["verdict"]["kind"].as_str().expect("a verdict")), "{proof}");
    assert_eq!((&faster["verdict"]["kind"], &faster["measured_ns"]), (&Value::from("not_made"), &Value::Null));
    // The server has at least a quarter of the time, so that four times of it are at least 1.75 times the whole.
    let before = best(&proof["as_captured_ns"]);
    assert!(4 * best(&slower["measured_ns"]) > 7 * before, "{proof}");
    assert!(signed["measured_ns"].is_object(), "{proof}");
    // Files that are created and removed can't be repeated.
    let passes = [farther, slower, signed].map(|change| change["measured_ns"]["passes"].as_u64());
    assert_eq!((&proof["repeated"], passes), (&Value::Null, [Some(1); 3]), "{proof}");
    // The replays as captured and with each change have the same commands.
    let listed = |commands: &Value| commands.as_array().map(|all| all.len() as i64);
    for replayed in [&proof["as_captured_commands"], &farther["commands"], &slower["commands"], &signed["commands"]] {
        assert_eq!(listed(replayed), Some(commands), "{proof}");
    }
}
