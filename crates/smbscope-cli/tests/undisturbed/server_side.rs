//! Server metrics of a load point: the lab's disk and Samba's own counters. Each test is skipped without Samba.

use crate::common;
use serde_json::Value;
use smbscope_lab::available;
use smbscope_testkit::skip;
use std::process::Command;

/// Runs `bench` on a private server and returns the load point. Skips the test and returns `None` if that is not
/// possible.
fn point(options: &[&str]) -> Option<Value> {
    if let Err(why) = available() {
        skip::missing(why);
        return None;
    }
    let _guard = crate::alone();
    let mut command = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    command.args(["bench", "--warmup", "1s", "--duration", "5s", "--format", "json", "--quiet"]).args(options);
    let said = common::finish(command);
    if said.status != Some(0) && said.err.contains("(FUSE)") {
        skip::unable(said.err.trim_end());
        return None;
    }
    assert_eq!(said.status, Some(0), "{}", said.err);
    let document: Value = serde_json::from_str(&said.out).expect("it is JSON");
    assert_eq!(document["warnings"].to_string().matches("Samba does not tell").count(), 0, "{}", document["warnings"]);
    Some(document["runs"][0].clone())
}

/// Returns the mean and the maximum of a server metric.
fn metric(point: &Value, name: &str) -> (f64, f64) {
    let metrics = point["server"]["metrics"].as_array().expect("there is a server's side");
    let found = metrics.iter().find(|metric| metric["metric"] == name).unwrap_or_else(|| panic!("{name} is missing"));
    (found["mean"].as_f64().expect("a number"), found["max"].as_f64().expect("a number"))
}

/// Returns a figure of a command's response times at the client in nanoseconds, and the number of commands.
fn command(point: &Value, name: &str, figure: &str) -> (f64, f64) {
    let commands = point["commands"].as_array().expect("a list");
    let found = commands.iter().find(|command| command["command"] == name).expect("there are such commands");
    (found["client"][figure].as_f64().expect("a time"), found["count"].as_f64().expect("a number"))
}

/// Each read of a byte is one disk operation with a latency of 20 ms, limited to 50/s. Four users keep nearly four
/// operations outstanding, except while they open and close files. The service time within Samba is close to the
/// client's response time. A sample may span a few percent more than one second.
#[test]
fn slow_storage_is_what_clients_and_samba_wait_for() {
    let options =
        ["--storage-latency", "20ms", "--storage-iops", "50", "--workload", "open-read-close", "--users", "4"];
    let Some(point) = point(&options) else { return };
    let (fastest, reads) = command(&point, "READ", "min");
    assert!(fastest >= 20e6, "a read took {fastest} ns");
    let seconds = point["duration_ns"].as_f64().expect("a time") / 1e9;
    assert!(reads <= 50.0 * seconds + 4.0, "{reads} reads in {seconds} s");
    let (operations, _) = metric(&point, "disk_operations");
    assert!((40.0..=51.0).contains(&operations), "{operations} operations a second");
    let (queue, _) = metric(&point, "disk_queue");
    assert!((3.0..=4.0).contains(&queue), "{queue} outstanding");
    assert!(metric(&point, "disk_busiest").0 > 95.0);
    let (inside, outside) = (metric(&point, "samba_read_time").0, command(&point, "READ", "mean").0);
    assert!(inside >= 20e6 && inside <= 1.05 * outside && inside >= 0.8 * outside, "{inside} of {outside} ns");
    assert!(metric(&point, "samba_close_time").0 < 20e6);
}

/// Each user has one session. Samba's command rates must match the clients' counts, within the resolution of one-second
/// samples.
#[test]
fn samba_counts_the_sessions_and_commands_of_its_clients() {
    let Some(point) = point(&["--workload", "open-read-close", "--users", "3"]) else { return };
    assert_eq!(metric(&point, "samba_sessions").1, 3.0);
    let seconds = point["duration_ns"].as_f64().expect("a time") / 1e9;
    for (counted, name) in [("samba_create", "CREATE"), ("samba_read", "READ"), ("samba_close", "CLOSE")] {
        let (inside, _) = metric(&point, counted);
        let (mean, count) = command(&point, name, "mean");
        let ratio = inside / (count / seconds);
        assert!(
            (0.7..=1.4).contains(&ratio),
            "{name}: {inside} a second in Samba, {count} in {seconds} s in the client"
        );
        let (time, _) = metric(&point, &format!("{counted}_time"));
        assert!(time > 0.0 && time <= 1.1 * mean, "{name}: {time} ns in Samba, {mean} ns in the client");
    }
}
