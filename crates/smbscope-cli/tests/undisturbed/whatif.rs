//! Predictions compared with measurements: a job is captured on a link with a small delay, its duration at
//! larger delays is predicted, and the job is captured at these delays.

use crate::alone;
use crate::common::finish;
use crate::scene::{directory_of, is_possible, on};
use serde_json::Value;
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
