//! Predictions compared with measurements: a job is captured on a link with a small delay, its duration at
//! larger delays is predicted, and the job is captured at these delays. The same with more users.

use crate::alone;
use crate::common::{directory, finish};
use crate::scene::{directory_of, is_possible, on};
use serde_json::Value;
use smbscope_testkit::skip;
use std::process::Command;

/// Jobs of the load generator: reading settings one at a time, a logon, a copy of small files.
const JOBS: [(&str, &str); 3] = [
    ("ini", "captured load --workload ini --set settings=120 --set read=4KiB --passes 1"),
    ("logon", "captured load --workload logon --set files=30 --set folders=3 --set bytes=600KB --passes 1"),
    ("copy", "captured load --workload copy-small --set files=30 --passes 1"),
];
/// One-way delay of the first capture, from which the others are predicted.
const LEAST: &str = "0.25ms";
const DELAYS: [&str; 3] = ["1ms", "5ms", "10ms"];
/// Number of attempts, because other load on the machine sometimes disturbs a capture.
const TRIES: usize = 3;

/// Returns the longest episode, which is the job.
fn job(report: &Value) -> &Value {
    let episodes = report["episodes"].as_array().expect("a list");
    let duration = |episode: &&Value| nanos(&episode["end_ns"]) - nanos(&episode["start_ns"]);
    episodes.iter().max_by_key(duration).expect("there is one")
}

fn nanos(value: &Value) -> i64 {
    value.as_i64().expect("nanoseconds")
}

/// Returns the shortest round trip between both ends. A busy machine delays some handshakes.
fn round_trip(report: &Value) -> i64 {
    let connections = report["connections"].as_array().expect("a list");
    let trips = connections.iter().filter_map(|connection| {
        Some(connection["server_round_trip_ns"].as_i64()? + connection["client_round_trip_ns"].as_i64().unwrap_or(0))
    });
    trips.min().expect("the handshake was captured")
}

/// Captures a job on the link with the smallest delay. Returns `None` if capturing is not possible.
fn captured(name: &str, script: &str) -> Option<Value> {
    on(&["--delay", LEAST], script).report(&format!("whatif-{name}"))
}

/// Returns the relative deviation of the prediction from the measurement, and true if the predicted range contains the
/// measurement. Returns `None` if capturing is not possible.
fn deviation(name: &str, script: &str, delay: &str, before: &Value) -> Option<(f64, bool)> {
    let first = format!("whatif-{name}");
    let measured = on(&["--delay", delay], script).report(&format!("{first}-{delay}"))?;
    let number = job(before)["number"].to_string();
    let scenario = format!("rtt={}us", round_trip(&measured) / 1_000);
    let mut predict = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    predict.args(["predict", "-q", "--format", "json", "--episode", &number, "--if", &scenario]);
    predict.arg(directory_of(&first).join("client.pcap"));
    let said = finish(predict);
    let predicted: Value = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {}", said.err));
    let predicted = &predicted["predictions"][0]["duration_ns"];
    let [low, predicted, high] = ["low", "best", "high"].map(|key| nanos(&predicted[key]));
    let took = nanos(&job(&measured)["end_ns"]) - nanos(&job(&measured)["start_ns"]);
    let [least, then, most, measured] = [low, predicted, high, took].map(|time| time as f64 / 1e9);
    println!("{name} | {scenario} | predicted {then:.3} s ({least:.3} to {most:.3} s) | measured {measured:.3} s");
    Some(((predicted - took) as f64 / took as f64, (low..=high).contains(&took)))
}

#[test]
fn a_job_takes_on_a_slower_link_what_was_predicted_within_a_tenth_and_within_the_range() {
    if !is_possible() {
        return;
    }
    let _guard = alone();
    for (name, script) in JOBS {
        let Some(mut before) = captured(name, script) else { return };
        for delay in DELAYS {
            let mut deviations = Vec::new();
            for attempt in 0..TRIES {
                let Some((deviation, is_inside)) = deviation(name, script, delay, &before) else { return };
                deviations.push((deviation, is_inside));
                if deviation.abs() <= 0.1 && is_inside {
                    break;
                }
                assert!(attempt + 1 < TRIES, "{name} with {delay}: {deviations:?}");
                let Some(again) = captured(name, script) else { return };
                before = again;
            }
        }
    }
}

/// Users who open, read and close a file, with 800 ms between.
const OFFICE: &str = "name = 'office'\nthink = { exponential = '800ms' }\n[files]\ncount = 50\nsize = '8KiB'\n\
                      [[operation]]\nname = 'read'\nsteps = [{ do = 'open_read_close', file = 'random', length = '8KiB' }]\n";
/// The queue that the prediction has to see: 50 reads per second, which 60 users would exceed.
const DISK: [&str; 4] = ["--storage-iops", "50", "--storage-latency", "25ms"];

/// Returns the mean response time of these users in ms. With `run`, keeps a capture there.
fn measured_users(workload: &str, users: u32, seconds: u32, run: Option<&str>) -> Option<f64> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    command.args(["bench", "-q", "--format", "json", "--warmup", "2s", "--workload", workload]).args(DISK);
    command.args(["--users", &users.to_string(), "--duration", &format!("{seconds}s")]);
    command.args(run.into_iter().flat_map(|run| ["--capture", "-o", run]));
    let said = finish(command);
    assert_eq!(said.status, Some(0), "{}", said.err);
    let document: Value = serde_json::from_str(&said.out).expect("JSON");
    let of_run = &document["runs"][0];
    if run.is_some() && of_run["capture"]["file"].is_null() {
        skip::unable(format_args!("nothing can be captured: {}", said.err));
        return None;
    }
    Some(nanos(&of_run["total"]["client"]["mean"]) as f64 / 1e6)
}

#[test]
fn four_times_as_many_users_wait_as_long_as_predicted() {
    if !is_possible() {
        return;
    }
    let _guard = alone();
    let folder = directory("whatif-users");
    let workload = folder.join("office.toml");
    std::fs::write(&workload, OFFICE).expect("the workload is written");
    let workload = workload.display().to_string();
    let mut tried = Vec::new();
    for attempt in 0..TRIES {
        let run = folder.join(attempt.to_string());
        if measured_users(&workload, 4, 30, Some(&run.display().to_string())).is_none() {
            return;
        }
        let mut predict = Command::new(env!("CARGO_BIN_EXE_smbscope"));
        predict.args(["predict", "-q", "--format", "json", "--users", "16", "--user-is", "connection"]);
        let files = std::fs::read_dir(&run).expect("the run is kept").map(|entry| entry.expect("an entry").path());
        predict.args(files.filter(|file| file.extension().is_some_and(|end| end == "pcap")));
        let said = finish(predict);
        let predicted: Value = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {}", said.err));
        let predicted = &predicted["users"][0]["response_time_ns"];
        let [low, best, high] = ["low", "best", "high"].map(|key| predicted[key].as_f64().unwrap_or(f64::NAN) / 1e6);
        let Some(measured) = measured_users(&workload, 16, 12, None) else { return };
        println!("16 users | predicted {best:.1} ms ({low:.1} to {high:.1} ms) | measured {measured:.1} ms");
        tried.push((low, measured, high));
        if (low..=high).contains(&measured) {
            return;
        }
    }
    panic!("not in the predicted range: {tried:?}");
}
