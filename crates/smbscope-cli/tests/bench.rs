//! `smbscope bench` on private Samba servers (skipped without Samba) and on scripted servers that inject a fault at a
//! known moment.

use crate::common::{self, Said, said};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use smbscope_lab::{LabServer, LabServerSettings, ServerSigningPolicy, StateFolder, available};
use smbscope_testkit::server::{Fault, Flood, Script, ScriptedServer};
use smbscope_testkit::skip;
use smbscope_wire::smb2::Smb2Command as Smb2;
use smbscope_wire::status::NtStatus;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// One millisecond in nanoseconds.
const MS: i64 = 1_000_000;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    command.arg("bench").args(arguments).env_remove("NO_COLOR").env_remove("SMBSCOPE_PASSWORD");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn bench(arguments: &[&str]) -> Said {
    common::finish(command(arguments))
}

/// Parses the output of `--format json`.
fn document(said: &Said) -> Value {
    assert_eq!(said.status, Some(0), "{}", said.err);
    parsed(said)
}

fn parsed(said: &Said) -> Value {
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {}{}", said.out, said.err))
}

/// Starts a private server. Skips the test and returns `None` without Samba.
fn server(settings: LabServerSettings) -> Option<LabServer> {
    if let Err(why) = available() {
        skip::missing(why);
        return None;
    }
    match LabServer::start(&settings) {
        Ok(server) => Some(server),
        Err(error) => panic!("{error}"),
    }
}

fn url(server: &LabServer) -> String {
    format!("smb://{}@{}/{}", server.user(), server.address(), server.share())
}

/// Returns a `bench` command for a private server, with its password.
fn on(server: &LabServer, arguments: &[&str]) -> Command {
    let mut command = command(arguments);
    command.arg(url(server)).env("SMBSCOPE_PASSWORD", server.password());
    command
}

fn clean(server: &LabServer) -> Said {
    let mut command = command(&["clean"]);
    command.arg(url(server)).env("SMBSCOPE_PASSWORD", server.password());
    common::finish(command)
}

fn on_share(server: &LabServer) -> Vec<String> {
    let entries = std::fs::read_dir(server.share_folder()).expect("the share can be looked into");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

fn send(signal: Signal, pid: u32) {
    let pid = Pid::from_raw(pid as i32).expect("a process has a number");
    kill_process(pid, signal).expect("the process is there");
}

/// Returns the names in a folder, or none if it does not exist.
fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

/// Waits until a condition holds. Panics with the claim after 20 s.
fn becomes(what: &str, mut is: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
        sleep(Duration::from_millis(50));
    }
}

/// Returns the command lines of all processes that contain this text.
fn processes_with(text: &str) -> Vec<String> {
    let lines = std::fs::read_dir("/proc").expect("a system with /proc").filter_map(|entry| {
        let bytes = std::fs::read(entry.ok()?.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&bytes).replace('\0', " "))
    });
    lines.filter(|line| line.contains(text)).collect()
}

/// Starts a scripted server and returns the URL of its share.
fn scripted(script: Script) -> (ScriptedServer, String) {
    let server = ScriptedServer::start(script).expect("a port is free");
    let url = format!("smb://{}/share", server.address());
    (server, url)
}

fn conforms(document: &Value) {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/smbscope.bench-1.schema.json");
    let schema = std::fs::read(schema).expect("the schema is there");
    let schema = serde_json::from_slice(&schema).expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("the schema is one");
    let complaints: Vec<String> = validator.iter_errors(document).map(|error| error.to_string()).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// Returns the `response_time` (from the intended start) or `service_time` (from the actual start) of the first
/// operation.
fn operation<'a>(document: &'a Value, times: &str) -> &'a Value {
    &document["runs"][0]["workload_operations"][0][times]
}

/// Asserts that a load point ran commands and that none ended unexpectedly. If capturing is permitted, the capture must
/// contain exactly the client's commands.
fn is_whole(run: &Value) {
    assert!(run["operations"].as_u64() > Some(100), "{run}");
    let operations = run["workload_operations"].as_array().expect("operations");
    assert!(operations.iter().all(|operation| operation["unexpected"].as_object().is_some_and(|u| u.is_empty())));
    match run["capture"]["state"].as_str() {
        Some("made") => {
            let count = |key: &str| run["capture"][key].as_u64().expect("a count");
            let counts = ["client_commands", "wire_commands", "matched"].map(count);
            let lost = count("dropped_packets");
            assert!(lost > 0 || counts == [counts[0]; 3], "{counts:?}, {lost} packets lost");
            // The client can't be faster than the wire.
            assert!(run["total"]["difference"]["min"].as_i64() >= Some(0), "{}", run["total"]);
        }
        other => println!("no capture ({other:?}): {}", run["capture"]),
    }
}

#[test]
fn a_ramp_on_a_private_server_is_whole_and_leaves_nothing_behind() {
    if let Err(why) = available() {
        skip::missing(why);
        return;
    }
    let folder = common::directory("bench-ramp");
    let kept = folder.join("run").display().to_string();
    let arguments = ["--users", "1,2", "--duration", "1s", "--warmup", "200ms", "--capture", "--quiet"];
    let said = bench(&[&arguments[..], &["--format", "json", "-o", &kept, "--by", "command"]].concat());
    let document = document(&said);
    conforms(&document);
    for run in document["runs"].as_array().expect("runs") {
        is_whole(run);
        // Each command belongs to exactly one slice.
        let slices = run["counted"]["slices"]["entries"].as_array().expect("slices");
        let counts = slices.iter().map(|slice| slice["count"].as_u64().expect("a count"));
        assert_eq!(Some(counts.sum()), run["operations"].as_u64());
    }
    // The second user connects; the first one stays connected. NTLM takes two legs (MS-NLMP 1.3.1.1).
    let connects = |command: &str| -> u64 {
        let runs = document["runs"].as_array().expect("runs").iter();
        runs.map(|run| run["connect_commands"][command].as_u64().unwrap_or(0)).sum()
    };
    assert_eq!(["NEGOTIATE", "SESSION_SETUP", "TREE_CONNECT"].map(connects), [2, 4, 2]);
    let next = common::commands(&document["answer"]["next"]);
    assert!(!next.is_empty() && next.len() <= 2, "{next:?}");
    next.iter().for_each(|command| common::is_a_command(command));
    let run = std::fs::read_to_string(folder.join("run/run.json")).expect("the run is kept");
    assert_eq!(serde_json::from_str::<Value>(&run).expect("it is JSON"), document);
    for name in ["intervals.parquet", "exchanges.parquet", "histograms.hgrm", "report.html"] {
        assert!(folder.join("run").join(name).metadata().is_ok_and(|file| file.len() > 0), "{name}");
    }
}

#[test]
fn every_connection_of_a_session_is_in_the_capture() {
    let Some(server) = server(LabServerSettings::default()) else { return };
    let load = ["--workload", "open-read-close", "--users", "2", "--duration", "1s", "--warmup", "200ms", "--quiet"];
    let more = ["--connections-per-session", "3", "--capture", "--format", "json"];
    let document = document(&common::finish(on(&server, &[&load[..], &more].concat())));
    conforms(&document);
    assert_eq!(document["settings"]["connections_per_session"], 3);
    is_whole(&document["runs"][0]);
    let refused = bench(&["--connections-per-session", "2", "--dialect", "2.1"]);
    assert_eq!(refused.status, Some(2));
    assert!(refused.err.contains("--connections-per-session needs SMB 3"), "{}", refused.err);
}

#[test]
fn blocks_of_raw_mode_are_in_the_capture_too() {
    // Samba disables raw mode when signing is available.
    let Some(server) = server(LabServerSettings { signing: ServerSigningPolicy::Off, ..LabServerSettings::default() })
    else {
        return;
    };
    let load = ["--users", "2", "--duration", "1s", "--warmup", "200ms", "--quiet", "--capture", "--format", "json"];
    let document = document(&common::finish(on(&server, &[&load[..], &["--dialect", "nt1", "--raw"]].concat())));
    conforms(&document);
    let run = &document["runs"][0];
    is_whole(run);
    if run["capture"]["state"] == "made" && run["capture"]["dropped_packets"] == 0 {
        // Neither side counts the second part of a WRITE_RAW as a command. There are hundreds of them.
        let count = |side: &str| run["total"][side]["count"].as_u64().expect("a count");
        assert!(count("client").abs_diff(count("wire")) <= 5, "{}", run["total"]);
    }
    let commands = run["commands"].as_array().expect("commands");
    for name in ["SMB_COM_READ_RAW", "SMB_COM_WRITE_RAW"] {
        let found = commands.iter().find(|command| command["command"] == name);
        assert!(found.is_some_and(|command| command["count"].as_u64() > Some(0)), "{name} in {commands:?}");
    }
}

#[test]
fn busy_polling_is_said_and_its_waiting_is_no_work() {
    let (_server, url) = scripted(Script::default());
    let load = ["--workload", "echo", "--no-prepare", "--users", "1", "--duration", "1s", "--warmup", "0s", "--quiet"];
    let document = document(&bench(&[&load[..], &["--busy-poll", "--format", "json", &url]].concat()));
    conforms(&document);
    assert_eq!(document["settings"]["busy_poll"], true);
    let cpu = &document["runs"][0]["client_cpu"];
    assert!(cpu["per_operation_ns"].is_null() && cpu["busiest_percent"].as_f64() < cpu["percent"].as_f64(), "{cpu}");
}

#[test]
fn a_stall_of_two_seconds_is_in_the_percentiles_of_an_open_loop() {
    // 200 operations/s for 6 s. The 400 that are due during the stall wait 1 s on average. The slowest 10% are 120 of
    // these 400, and each of them waits at least 1.4 s.
    let stall = Fault::Stall(Duration::from_secs(2)).on(Smb2::ECHO).after(300).once();
    let (_server, url) = scripted(Script::new().rule(stall));
    let load = ["--workload", "echo", "--users", "8", "--duration", "6s", "--warmup", "500ms", "--no-prepare", "-q"];
    let said = bench(&[&load[..], &["--rate", "200/s", "--format", "json", &url]].concat());
    let found = document(&said);
    let response = operation(&found, "response_time");
    let p90 = response["p90"].as_i64().expect("there are enough");
    assert!((1_100 * MS..1_700 * MS).contains(&p90), "{response}");
    // Only a few operations were outstanding during the stall, so the service times hardly show it.
    let service = operation(&found, "service_time");
    assert!(service["p90"].as_i64() < Some(100 * MS), "{service}");
    // The overall figure counts from the due time, and a warning names the stall.
    conforms(&found);
    let run = &found["runs"][0];
    assert_eq!(run["due"], *response, "one operation is all of them");
    assert_eq!(found["overall_response_time_ns"], response["mean"]);
    let stall = &run["stalls"][0];
    assert!((1_900 * MS..2_500 * MS).contains(&stall["duration_ns"].as_i64().unwrap_or(0)), "{}", run["stalls"]);
    let warnings = found["warnings"].to_string();
    assert!(warnings.contains("the server stalled: it answered nothing for"), "{warnings}");
}

#[test]
fn the_headline_and_the_first_table_of_an_open_loop_count_from_when_operations_were_due() {
    let stall = Fault::Stall(Duration::from_secs(2)).on(Smb2::ECHO).after(300).once();
    let (_server, url) = scripted(Script::new().rule(stall));
    let load = ["--workload", "echo", "--users", "8", "--duration", "6s", "--warmup", "500ms", "--no-prepare", "-q"];
    let said = bench(&[&load[..], &["--rate", "200/s", "--full", "--width", "140", &url]].concat());
    assert_eq!(said.status, Some(0), "{}", said.err);
    let headline = said.out.split("Warnings").next().unwrap_or_default().replace(char::is_whitespace, " ");
    // p95 of the waits is between 1 s and 2 s (see the calculation in the test above).
    let p95 = headline.split("p95 ").nth(1).unwrap_or_else(|| panic!("{headline}"));
    assert!(p95.starts_with("1.") && headline.contains("after they were due"), "{headline}");
    assert!(said.out.contains("Operations, since due"), "{}", said.out);
    assert!(said.out.contains("Stalls: commands were outstanding, and none was answered"), "{}", said.out);
}

#[test]
fn rates_without_meaning_are_refused_in_one_line_with_status_2() {
    for arguments in [
        &["--rate", "400/s", "--users", "1,2,4"][..],
        &["--rate", "400/s", "--find-capacity", "p95(total) < 20ms"],
        &["--rate", "400/s", "--rate-per-user", "2/s"],
        &["--rate", "400/s", "--rates", "100,200"],
        &["--rates", "100,200", "--users", "1,2"],
        &["--rates", "100", "--find-capacity", "p95(total) < 20ms"],
        &["--rates", "100,200", "--think", "1s"],
        &["--rates", "0"],
        &["--arrivals", "poisson"],
    ] {
        let said = bench(&[arguments, &["--no-prepare", "smb://127.0.0.1:1/share"]].concat());
        assert_eq!(said.status, Some(2), "{arguments:?}: {}", said.err);
        assert!(said.err.starts_with("smbscope: ") || said.err.starts_with("error: "), "{}", said.err);
    }
}

#[test]
fn what_a_workload_has_not_is_refused_in_one_line_with_status_2() {
    let folder = tempfile::tempdir().unwrap();
    let referrals = folder.path().join("referrals.toml");
    let steps = "steps = [{ do = \"ioctl\", code = \"DFS_GET_REFERRALS\" }]";
    std::fs::write(&referrals, format!("name = \"referrals\"\n[[operation]]\nname = \"o\"\n{steps}\n")).unwrap();
    let overload = "overload is a share of scenarios: it needs a workload with [scenarios], and no --think";
    for (arguments, expected) in [
        (&["--workload", "read", "--find-capacity", "overload < 1%"][..], overload),
        (&["--workload", "homefolders", "--think", "1s", "--find-capacity", "overload < 1%"], overload),
        (
            &["--workload", referrals.to_str().unwrap(), "--dialect", "nt1"],
            "the workload referrals sends FSCTL_DFS_GET_REFERRALS, which can't be done in NT LM 0.12",
        ),
    ] {
        let said = bench(&[arguments, &["--no-prepare", "smb://127.0.0.1:1/share"]].concat());
        assert_eq!(said.status, Some(2), "{arguments:?}: {}", said.err);
        assert!(said.err.contains(expected) && said.err.lines().count() == 1, "{}", said.err);
    }
}

#[test]
fn scenarios_begin_at_the_rate_of_their_workload() {
    let (_server, url) = scripted(Script::new());
    let folder = tempfile::tempdir().unwrap();
    let echoes = folder.path().join("echoes.toml");
    let scenarios = "[parameters]\nrate = \"5/s\"\n[scenarios]\nrate = \"$rate\"\n";
    let text = format!("name = \"echoes\"\n{scenarios}[[operation]]\nname = \"o\"\nsteps = [{{ do = \"echo\" }}]\n");
    std::fs::write(&echoes, text).unwrap();
    let load = ["--workload", echoes.to_str().unwrap(), "--users", "4", "--duration", "2s", "--warmup", "0s"];
    let run = |more: &[&str]| {
        let said = bench(&[&load[..], &["--no-prepare", "-q", "--format", "json"], more, &[&url]].concat());
        document(&said)["runs"][0].clone()
    };
    // Each of 4 users starts 5 operations/s for 2 s.
    let own = run(&[]);
    assert_eq!((&own["pace"]["rate"], &own["overload"]["scenarios"]), (&json!(20.0), &json!(40)), "{own}");
    let set = run(&["--set", "rate=10/s"]);
    assert_eq!((&set["pace"]["rate"], &set["overload"]["scenarios"]), (&json!(40.0), &json!(80)), "{set}");
    let given = run(&["--rate-per-user", "2/s"]);
    assert_eq!((&given["pace"]["rate"], &given["overload"]["scenarios"]), (&json!(8.0), &json!(16)), "{given}");
    let closed = run(&["--think", "100ms"]);
    assert_eq!((&closed["pace"]["loop"], &closed["overload"]), (&json!("closed"), &Value::Null), "{closed}");
}

#[test]
fn a_ramp_of_rates_and_one_of_users_with_a_rate_each_are_ramps_of_load() {
    let (_server, url) = scripted(Script::new());
    let load = ["--workload", "echo", "--duration", "1s", "--warmup", "0s", "--no-prepare", "-q", "--format", "json"];
    let rates = document(&bench(&[&load[..], &["--rates", "50,100", "--users", "4", &url]].concat()));
    conforms(&rates);
    let of = |found: &Value| -> Vec<(u64, f64)> {
        let runs = found["runs"].as_array().expect("runs");
        runs.iter().map(|run| (run["users"].as_u64().unwrap(), run["pace"]["rate"].as_f64().unwrap())).collect()
    };
    assert_eq!(of(&rates), [(4, 50.0), (4, 100.0)]);
    assert_eq!(rates["settings"]["rates"], serde_json::json!([50, 100]));
    let each = document(&bench(&[&load[..], &["--rate-per-user", "20/s", "--users", "2,4", &url]].concat()));
    conforms(&each);
    assert_eq!(of(&each), [(2, 40.0), (4, 80.0)]);
    let text = ["--workload", "echo", "--duration", "1s", "--warmup", "0s", "--no-prepare", "-q"];
    let said = bench(&[&text[..], &["--rates", "50,100", "--users", "4", &url]].concat());
    // A loaded machine may miss a few arrivals.
    let expected = " commands/s at 100/s, median ";
    assert!(said.out.contains(expected), "{}", said.out);
}

#[test]
fn a_hostile_server_ends_bench_and_clean_with_one_line_and_in_time() {
    let flood = |of, command| Fault::Flood { of, answered: false }.on(command);
    let scripts = [
        Script::new().rule(flood(Flood::OplockBreak, Smb2::TREE_CONNECT)),
        Script::new().rule(flood(Flood::LeaseBreak, Smb2::QUERY_DIRECTORY)),
        Script::new().rule(flood(Flood::KeepAlive, Smb2::NEGOTIATE)),
        Script { endless_login: true, ..Script::new() },
        Script { entries: usize::MAX, ..Script::new() },
        Script { entries: 500, looping: true, ..Script::new() },
        Script { max_transfer: 1, ..Script::new() },
        Script::new().rule(Fault::Trickle(Duration::from_millis(1)).on(Smb2::SESSION_SETUP)),
    ];
    for script in scripts {
        let what = format!("{script:?}");
        let (_server, url) = scripted(script);
        let begun = Instant::now();
        for arguments in [&["--timeout", "1s", "--users", "1", "-q"][..], &["clean", "--timeout", "1s"]] {
            let arguments = match arguments.split_first() {
                Some((&"clean", rest)) => [&["clean"], &[url.as_str()][..], rest].concat(),
                _ => [arguments, &[url.as_str()][..]].concat(),
            };
            let said = bench(&arguments);
            assert_eq!(said.status, Some(1), "{what}: {}{}", said.out, said.err);
            assert_eq!(said.err.trim_end().lines().count(), 1, "{what}: {}", said.err);
        }
        // Each listing may take up to two timeouts of 10 s.
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}: {:?}", begun.elapsed());
    }
}

#[test]
fn a_closed_loop_is_labelled_as_hiding_the_same_stall() {
    let stall = Fault::Stall(Duration::from_secs(2)).on(Smb2::ECHO).after(300).once();
    let (_server, url) = scripted(Script::new().rule(stall));
    let load = ["--workload", "echo", "--users", "8", "--duration", "4s", "--warmup", "0s", "--no-prepare", "-q"];
    let said = bench(&[&load[..], &["--format", "json", &url]].concat());
    let found = document(&said);
    let service = operation(&found, "service_time");
    assert!(service["p99"].as_i64() < Some(100 * MS), "{service}");
    assert!(service["max"].as_i64() >= Some(1_900 * MS), "{service}");
    let warnings = found["warnings"].to_string();
    assert!(warnings.contains("Closed loop") && warnings.contains("hides in the percentiles"), "{warnings}");
}

#[test]
fn a_storm_of_errors_is_counted_and_ends_the_run_where_asked() {
    let storm = || Fault::Status(NtStatus::INSUFFICIENT_RESOURCES).on(Smb2::ECHO).after(200).share(0.5);
    let load = ["--workload", "echo", "--duration", "1s", "--warmup", "0s", "--no-prepare", "-q", "--format", "json"];
    let (_server, url) = scripted(Script::new().rule(storm()));
    let goes_on = document(&bench(&[&load[..], &["--users", "2", "--max-errors", "100", &url]].concat()));
    let run = &goes_on["runs"][0];
    assert_eq!(run["ended"]["how"], "done");
    assert!(run["errors"]["STATUS_INSUFFICIENT_RESOURCES"].as_u64() > Some(10), "{}", run["errors"]);
    let (_server, url) = scripted(Script::new().rule(storm()));
    let options = ["--users", "2", "--stop-on-errors", "10", "--max-errors", "100", &url];
    let stops = document(&bench(&[&load[..], &options].concat()));
    let run = &stops["runs"][0];
    assert_eq!(run["ended"]["how"], "stopped", "{}", run["ended"]);
    assert!(run["operations"].as_u64() >= Some(200), "what was measured is kept");
}

#[test]
fn a_run_of_which_too_much_fails_is_a_failed_run_in_every_format() {
    let storm = || Fault::Status(NtStatus::INSUFFICIENT_RESOURCES).on(Smb2::ECHO).after(200).share(0.5);
    let load = ["--workload", "echo", "--users", "2", "--duration", "1s", "--warmup", "0s", "--no-prepare", "-q"];
    for format in ["text", "json", "html"] {
        let (_server, url) = scripted(Script::new().rule(storm()));
        let said = bench(&[&load[..], &["--format", format, &url]].concat());
        assert_eq!(said.status, Some(1), "{}", said.err);
        let out = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
        for reason in ["The run failed: ", " operations failed (", "mostly with STATUS_INSUFFICIENT_RESOURCES"] {
            assert!(out.contains(reason), "{format}: {reason}");
        }
        assert!(out.contains("--max-errors allows 1%"), "{format}");
        assert!(said.err.contains("the run failed: ") && said.err.lines().count() == 1, "{}", said.err);
    }
    // An expected error is not a failure. Here the same workload runs without errors.
    let (_server, url) = scripted(Script::new());
    let healthy = document(&bench(&[&load[..], &["--max-errors", "0", "--format", "json", &url]].concat()));
    assert_eq!(healthy["settings"]["max_errors_percent"], 0.0);
}

/// The share is full, so every set-up would fail in the same way.
#[test]
fn a_set_up_that_the_server_refuses_ends_the_run_at_once() {
    let place = common::directory("bench-set-up");
    let files = "NTCreateX \"\\a\" 0x40 0x2 0 NT_STATUS_OK\nWriteX 0 0 100 100 NT_STATUS_OK\nClose 0 NT_STATUS_OK\n";
    let steps = "Create \"\\a\" 0x12019f 0x7 1 0x40 0x0 1 SUCCESS\nClose 1 SUCCESS\n";
    let text = format!(
        "name = 'full'\n[recorded]\ncommands = 2\nrepeats = true\n[[recorded.clients]]\nfiles = '''\n{files}'''\n\
         threads = ['''\n{steps}''']\n"
    );
    common::write(&place, "full.toml", text);
    let workload = place.join("full.toml").display().to_string();
    let full = Fault::Status(NtStatus::DISK_FULL).on(Smb2::WRITE);
    let (_server, url) = scripted(Script::new().rule(full));
    let begun = Instant::now();
    let load = ["--workload", &workload, "--users", "3", "--duration", "60s", "-q", "--format", "json"];
    let said = bench(&[&load[..], &["--no-prepare", &url]].concat());
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert_eq!(said.status, Some(1), "{}", said.err);
    assert!(said.err.contains("the run failed: setting up, line 2: STATUS_DISK_FULL"), "{}", said.err);
    assert_eq!(parsed(&said)["answer"]["headline"], "The run failed: setting up, line 2: STATUS_DISK_FULL.");
}

#[test]
fn a_connection_that_is_reset_is_counted_and_made_anew() {
    let reset = Fault::Reset.on(Smb2::ECHO).after(100).once();
    let (server, url) = scripted(Script::new().rule(reset));
    let load = ["--workload", "echo", "--users", "1", "--duration", "2s", "--warmup", "0s", "--no-prepare", "-q"];
    let found = document(&bench(&[&load[..], &["--format", "json", &url]].concat()));
    let run = &found["runs"][0];
    assert_eq!((run["ended"]["how"].as_str(), run["unanswered"].as_u64()), (Some("done"), Some(1)), "{run}");
    assert!(run["operations"].as_u64() > Some(101), "it went on: {}", run["operations"]);
    // One connection to probe the server, one that was reset, and one that replaced it.
    assert_eq!(server.counters().connections, 3);
}

#[test]
fn a_server_that_stops_answering_ends_the_run_with_the_reason() {
    let silent = Fault::Silent.on(Smb2::ECHO).after(100);
    let (_server, url) = scripted(Script::new().rule(silent));
    let load = ["--workload", "echo", "--users", "1", "--duration", "20s", "--warmup", "0s", "--no-prepare", "-q"];
    let options = ["--timeout", "500ms", "--on-failure", "end", "--format", "json", &url];
    let said = bench(&[&load[..], &options[..]].concat());
    assert_eq!(said.status, Some(1));
    assert!(said.err.contains("no answer to ECHO after 500 ms"), "{}", said.err);
    let run = &parsed(&said)["runs"][0];
    assert_eq!((run["ended"]["how"].as_str(), run["operations"].as_u64()), (Some("failed"), Some(100)), "{run}");
}

#[test]
fn a_server_that_is_killed_ends_the_run_and_what_was_measured_is_kept() {
    let Some(server) = server(LabServerSettings::default()) else { return };
    let load = ["--workload", "echo", "--users", "2", "--duration", "60s", "--warmup", "0s", "-q", "--format", "json"];
    let child = on(&server, &[&load[..], &["--on-failure", "end"]].concat()).spawn().expect("the binary runs");
    sleep(Duration::from_secs(3));
    server.kill();
    let said = said(child.wait_with_output().expect("it ends"));
    assert_eq!(said.status, Some(1), "{}", said.err);
    let run = &parsed(&said)["runs"][0];
    assert_eq!(run["ended"]["how"], "failed", "{run}");
    assert!(run["operations"].as_u64() > Some(100), "{run}");
}

#[test]
fn ctrl_c_ends_the_load_point_and_keeps_its_results() {
    a_signal_ends_the_load_point_and_keeps_its_results(&[Signal::INT]);
}

#[test]
fn sigterm_does_the_same_also_where_it_comes_twice_as_from_timeout() {
    a_signal_ends_the_load_point_and_keeps_its_results(&[Signal::TERM, Signal::TERM]);
}

#[test]
fn the_end_of_the_terminal_does_the_same() {
    a_signal_ends_the_load_point_and_keeps_its_results(&[Signal::HUP]);
}

fn a_signal_ends_the_load_point_and_keeps_its_results(signals: &[Signal]) {
    let Some(server) = server(LabServerSettings::default()) else { return };
    let temporary = tempfile::tempdir().expect("a directory");
    let load = ["--users", "2,4", "--duration", "60s", "--warmup", "0s", "-q", "--format", "json"];
    // Under nohup(1), the tests ignore SIGHUP, and the program would inherit that.
    let asked = on(&server, &load);
    let mut command = Command::new("env");
    command.arg("--default-signal=HUP").arg(asked.get_program()).args(asked.get_args());
    command.envs(asked.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("TMPDIR", temporary.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("env(1) runs");
    sleep(Duration::from_secs(4));
    for signal in signals {
        send(*signal, child.id());
        sleep(Duration::from_millis(20));
    }
    let said = said(child.wait_with_output().expect("it ends"));
    assert_eq!(said.status, Some(130), "{}", said.err);
    let found = parsed(&said);
    assert_eq!(found["runs"].as_array().map(Vec::len), Some(1));
    assert_eq!(found["runs"][0]["ended"]["how"], "interrupted");
    assert!(found["runs"][0]["operations"].as_u64() > Some(100));
    assert!(names_in(temporary.path()).is_empty(), "{:?}", names_in(temporary.path()));
    assert_eq!(on_share(&server), ["smbscope-bench"]);
    assert_eq!(clean(&server).status, Some(0));
    assert!(on_share(&server).is_empty(), "{:?}", on_share(&server));
}

#[test]
fn arguments_that_contradict_each_other_are_named_before_anything_is_begun() {
    // Nothing listens on this port.
    let target = "smb://127.0.0.1:1/share";
    for (arguments, said) in [
        (&["--encryption", "aes-256-gcm", "--dialect", "3.0"][..], "needs --dialect 3.1.1"),
        (&["--signing-algorithm", "aes-gmac", "--dialect", "2.1"], "--signing-algorithm needs --dialect 3.1.1"),
        (&["--signing-algorithm", "aes-gmac", "--signing", "off"], "--signing off contradicts"),
        (&["--timeout", "0s"], "--timeout must be longer"),
        (&["--duration", "100001s"], "at most 100000s"),
        (&["--users", "1..5000"], "more than 1000 load points"),
        (&["--workload", "echo", "--passes", "2"], "echo has none"),
        (
            &["--workload", "echo", "--find-capacity", "p95(Raed) < 1ms"],
            "smbscope: the criterion, character 5: `Raed` is neither total",
        ),
    ] {
        let found = bench(&[arguments, &[target]].concat());
        assert_eq!((found.status, found.out.as_str()), (Some(2), ""), "{arguments:?}: {}", found.err);
        assert!(found.err.contains(said), "{arguments:?}: {}", found.err);
    }
    // A capacity search measures only a few points of its range, so the limit of 1000 load points does not apply.
    let found = bench(&["--users", "1..5000", "--find-capacity", "p95(total) < 1ms", target]);
    assert!(found.error(1).contains("no connection to 127.0.0.1:1"), "{}", found.err);
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let (_server, url) = scripted(Script::new().rule(Fault::Silent.on(Smb2::ECHO).after(100)));
    let load = ["--workload", "echo", "--users", "1", "--duration", "60s", "--warmup", "0s", "--no-prepare", "-q"];
    let child = command(&[&load[..], &[&url]].concat()).spawn().expect("the binary runs");
    sleep(Duration::from_secs(2));
    // The load point waits 10 s for the missing response.
    send(Signal::TERM, child.id());
    sleep(Duration::from_secs(1));
    let second = Instant::now();
    send(Signal::TERM, child.id());
    let said = said(child.wait_with_output().expect("it ends"));
    // Shell convention: 128 plus the signal number.
    assert_eq!((said.status, said.out.as_str()), (Some(143), ""), "{}", said.err);
    assert!(second.elapsed() < Duration::from_secs(4), "{:?}", second.elapsed());
}

/// Dashboard of a run in a terminal made by script(1). Its private server and files are below `folder`.
struct OnTerminal {
    folder: tempfile::TempDir,
    script: Child,
    pid: u32,
}

impl OnTerminal {
    /// Returns a few seconds into the first load point. Skips the test and returns `None` without Samba or script(1).
    fn begin() -> Option<OnTerminal> {
        let script = Command::new("script").arg("--version").stdout(Stdio::null()).status();
        if available().is_err() || !script.is_ok_and(|status| status.success()) {
            skip::unable("no Samba, or no script (util-linux) to make a terminal with");
            return None;
        }
        // The path must be short, because Samba creates sockets below it.
        let folder = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(folder.path().join("tmp")).expect("a directory");
        let bench = "bench --users 2 --duration 60s --warmup 0s -o run";
        let binary = env!("CARGO_BIN_EXE_smbscope");
        // The shell writes its own process id, which the program keeps after `exec`.
        let line = format!(
            "stty -a; sh -c 'echo $$ >pid; exec env --default-signal=HUP {binary} {bench}'; echo \"status $?\"; stty -a"
        );
        // The shell leads the session, so it must receive SIGHUP even if the tests run under nohup.
        let mut terminal = Command::new("env");
        terminal
            .args(["--default-signal=HUP", "script", "-qec", &line, "/dev/null"])
            .current_dir(folder.path())
            .env("TERM", "xterm");
        terminal.env("XDG_RUNTIME_DIR", folder.path()).env("TMPDIR", folder.path().join("tmp"));
        let script = terminal.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("script runs");
        sleep(Duration::from_secs(6));
        let pid = std::fs::read_to_string(folder.path().join("pid")).expect("it has begun");
        Some(OnTerminal { folder, script, pid: pid.trim().parse().expect("a number") })
    }

    /// Asserts that only the results are left.
    fn is_ended_in_order(folder: &Path) {
        let kept = std::fs::read(folder.join("run/run.json")).expect("the run is kept");
        let kept: Value = serde_json::from_slice(&kept).expect("it is JSON");
        assert_eq!(kept["runs"][0]["ended"]["how"], "interrupted");
        assert!(folder.join("run/report.html").is_file());
        assert!(names_in(&folder.join("tmp")).is_empty(), "{:?}", names_in(&folder.join("tmp")));
        let place = StateFolder::new(&folder.join("smbscope-lab")).expect("a place");
        let left: Vec<_> = names_in(place.path()).into_iter().filter(|name| place.path().join(name).is_dir()).collect();
        assert!(
            place.path().is_dir() && place.servers().is_ok_and(|servers| servers.is_empty()) && left.is_empty(),
            "{left:?}"
        );
    }
}

#[test]
fn sigterm_gives_the_terminal_back_and_leaves_no_server_and_no_file_behind() {
    let Some(OnTerminal { folder, script, pid }) = OnTerminal::begin() else { return };
    send(Signal::TERM, pid);
    let text = said(script.wait_with_output().expect("it ends")).out;
    let (entered, left) = (text.find("\u{1b}[?1049h"), text.rfind("\u{1b}[?1049l"));
    assert!(entered.is_some() && left > entered, "{text}");
    assert!(text.rfind("\u{1b}[?25h") > text.rfind("\u{1b}[?25l"), "the cursor is hidden: {text}");
    assert_eq!((text.matches("isig icanon").count(), text.contains("status 130")), (2, true), "{text}");
    OnTerminal::is_ended_in_order(folder.path());
}

#[test]
fn a_terminal_that_is_closed_ends_the_run_in_order() {
    let Some(OnTerminal { folder, mut script, pid }) = OnTerminal::begin() else { return };
    script.kill().expect("it is there");
    let _killed = script.wait();
    let begun = Instant::now();
    // The parent shell has exited too, so the process may remain as a zombie, whose command line is empty.
    while std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty()) {
        assert!(begun.elapsed() < Duration::from_secs(30), "it runs on without its terminal");
        sleep(Duration::from_millis(100));
    }
    OnTerminal::is_ended_in_order(folder.path());
}

#[test]
fn an_interrupt_while_files_are_made_ends_it_with_the_reason() {
    // 64 MiB at 1 MB/s takes about a minute.
    let bandwidth = Some(smbscope_lab::parse_bandwidth("8mbit").expect("a bandwidth"));
    let Some(server) = server(LabServerSettings { bandwidth, ..LabServerSettings::default() }) else { return };
    let child = on(&server, &["-q", "--workload", "read", "--users", "4"]).spawn().expect("the binary runs");
    becomes("files are made", || server.share_folder().join("smbscope-bench/user00001/files").exists());
    send(Signal::INT, child.id());
    let begun = Instant::now();
    let said = said(child.wait_with_output().expect("it ends"));
    assert!(said.error(130).contains("interrupted while the files"), "{}", said.err);
    assert!(begun.elapsed() < Duration::from_secs(10), "it took {:?}", begun.elapsed());
    // `bench clean` recognises the files made so far as smbscope's.
    let cleaned = clean(&server);
    assert_eq!(cleaned.status, Some(0), "{}", cleaned.err);
    assert!(on_share(&server).is_empty(), "{:?}", on_share(&server));
}

#[test]
fn a_capture_ends_with_a_program_that_is_killed_and_its_run_directory_serves_again() {
    let folder = common::directory("bench-killed");
    let kept = folder.join("run").display().to_string();
    let (_server, url) = scripted(Script::new());
    let load = ["--workload", "echo", "--users", "1", "--warmup", "0s", "--no-prepare", "--capture", "-o", &kept, &url];
    let begin = |duration: &str| command(&[&load[..], &["--duration", duration]].concat());
    let mut child = begin("60s").spawn().expect("the binary runs");
    // Name of the capture while it is being written.
    let is_capture = |name: &String| name.starts_with(".point-01-1-users.pcap.") && name.ends_with(".partial");
    let unfinished = || names_in(&folder.join("run")).into_iter().find(is_capture);
    let begun = Instant::now();
    while unfinished().is_none() && begun.elapsed() < Duration::from_secs(10) {
        sleep(Duration::from_millis(50));
    }
    let Some(name) = unfinished() else {
        child.kill().expect("it is there");
        let said = said(child.wait_with_output().expect("it ends"));
        skip::unable(format_args!("nothing can be captured: {}", said.err));
        return;
    };
    let capturing = || processes_with(&name);
    becomes("the capture begins", || !capturing().is_empty());
    child.kill().expect("it is there");
    child.wait().expect("it ends");
    becomes("the capture ends", || capturing().is_empty());
    let again = common::finish(begin("200ms"));
    assert_eq!(again.status, Some(0), "{}", again.err);
    let mut left = names_in(&folder.join("run"));
    left.sort();
    // A run shorter than a second has at most one sample of the server's metrics.
    left.retain(|name| name != "server.parquet");
    let all = [
        "exchanges.parquet",
        "histograms.hgrm",
        "intervals.parquet",
        "point-01-1-users.pcap",
        "report.html",
        "run.json",
    ];
    assert_eq!(left, all);
}

#[test]
fn an_earlier_run_stays_until_a_later_one_has_ended_with_results() {
    let folder = common::directory("bench-earlier");
    let run = folder.join("run");
    let kept = run.display().to_string();
    let load = ["--workload", "echo", "--warmup", "0s", "--no-prepare", "-q", "--format", "json", "-o", &kept];
    let (_server, url) = scripted(Script::new());
    let first = bench(&[&load[..], &["--users", "1", "--duration", "300ms", &url]].concat());
    assert_eq!(first.status, Some(0), "{}", first.err);
    let contents = || {
        let mut files: Vec<(String, Vec<u8>)> = names_in(&run)
            .into_iter()
            .map(|name| (name.clone(), std::fs::read(run.join(name)).expect("a file")))
            .collect();
        files.sort();
        files
    };
    let before = contents();
    // The server no longer answers, so nothing is measured.
    let (_server, silent) = scripted(Script::new().rule(Fault::Silent.on(Smb2::ECHO)));
    let options = ["--users", "1", "--duration", "1s", "--timeout", "300ms", "--on-failure", "end", &silent];
    let failed = bench(&[&load[..], &options].concat());
    assert_eq!(failed.status, Some(1), "{}", failed.err);
    assert!(contents() == before, "{:?}", names_in(&run));
    // Killed in its second load point.
    let mut killed =
        command(&[&load[..], &["--users", "1,2", "--duration", "2s", &url]].concat()).spawn().expect("it runs");
    becomes("the first load point is over", || names_in(&run).iter().any(|name| name.starts_with(".run.json.")));
    killed.kill().expect("it is there");
    killed.wait().expect("it ends");
    let here: Vec<_> = contents().into_iter().filter(|(name, _)| !name.starts_with('.')).collect();
    assert!(here == before);
    // The file size limit is 1024 bytes.
    let line = "ulimit -f 2; exec \"$S\" bench --workload echo --users 1 --duration 300ms --warmup 0s --no-prepare -q -o run \"$T\"";
    let mut full = Command::new("sh");
    full.args(["-c", line]).current_dir(&folder).env("S", env!("CARGO_BIN_EXE_smbscope")).env("T", &url);
    let full = common::finish(full);
    assert_eq!(full.status, Some(1), "{}", full.err);
    assert!(full.err.contains("cannot write") && full.err.contains("File too large"), "{}", full.err);
    assert!(contents() == before, "{:?}", names_in(&run));
    let last = bench(&[&load[..], &["--users", "2", "--duration", "300ms", &url]].concat());
    assert_eq!((last.status, parsed(&last)["runs"][0]["users"].as_u64()), (Some(0), Some(2)), "{}", last.err);
    let now = std::fs::read_to_string(run.join("run.json")).expect("a run");
    assert_eq!(serde_json::from_str::<Value>(&now).expect("JSON"), parsed(&last));
}

#[test]
fn what_keeps_a_run_from_beginning_is_one_line_that_says_what_to_do() {
    let Some(server) = server(LabServerSettings { read_only: true, ..LabServerSettings::default() }) else { return };
    let refused = |command: &mut Command| {
        let said = said(command.output().expect("the binary runs"));
        said.error(1).to_owned()
    };
    let load = ["-q", "--users", "1", "--duration", "1s"];
    let wrong = refused(on(&server, &load).env("SMBSCOPE_PASSWORD", "not-the-password"));
    assert!(wrong.contains("STATUS_LOGON_FAILURE") && !wrong.contains("not-the-password"), "{wrong}");
    let none = url(&server).replace("/share", "/nothing");
    let missing = refused(command(&[&load[..], &[&none]].concat()).env("SMBSCOPE_PASSWORD", server.password()));
    assert!(missing.contains("STATUS_BAD_NETWORK_NAME"), "{missing}");
    let unwritable = refused(&mut on(&server, &load));
    assert!(unwritable.contains("STATUS_ACCESS_DENIED") || unwritable.contains("WRITE_PROTECTED"), "{unwritable}");
    let silent = refused(&mut command(&["smb://ann@127.0.0.1:1/share"]));
    assert!(silent.contains("SMBSCOPE_PASSWORD"), "{silent}");
    let nobody = refused(&mut command(&["smb://127.0.0.1:1/share"]));
    assert!(nobody.contains("127.0.0.1"), "{nobody}");
    assert!(on_share(&server).is_empty());
}

#[test]
fn a_disk_that_is_full_is_counted_by_its_status() {
    if !rustix::process::geteuid().is_root() {
        skip::unable("a small disk needs root");
        return;
    }
    let Some(server) = server(LabServerSettings { disk: Some(16 << 20), ..LabServerSettings::default() }) else {
        return;
    };
    // Each user sets up more than 4 MB.
    let load = ["--users", "16", "--duration", "2s", "--warmup", "0s", "-q", "--format", "json"];
    let said = said(on(&server, &load).output().expect("the binary runs"));
    let text = format!("{}{}", said.out, said.err);
    assert!(text.contains("STATUS_DISK_FULL"), "{text}");
    assert_eq!(clean(&server).status, Some(0));
    assert!(on_share(&server).is_empty(), "{:?}", on_share(&server));
}

/// 20 settings, each opened, read and closed: 60 calls (`bench workloads ini`).
#[test]
fn a_local_folder_is_the_baseline_with_the_same_document() {
    let folder = tempfile::tempdir().expect("a folder");
    let target = format!("file:{}", folder.path().display());
    let load = ["--workload", "ini", "--set", "settings=20", "--users", "2", "--passes", "1", "-q", "--format", "json"];
    let document = document(&bench(&[&load[..], &[&target]].concat()));
    conforms(&document);
    let counts: Vec<_> = document["runs"][0]["commands"].as_array().expect("commands").iter().collect();
    let count = |name: &str| counts.iter().find(|c| c["command"] == name).map(|c| c["client"]["count"].as_u64());
    assert_eq!(["CREATE", "READ", "CLOSE"].map(count), [Some(Some(40)); 3], "{counts:?}");
    assert_eq!((&document["target"]["dialect"], &document["settings"]["threads"]), (&"local".into(), &2.into()));
    assert_eq!(names_in(folder.path()), ["smbscope-bench"]);
    let text = bench(&["-q", "--workload", "ini", "--set", "settings=20", "--users", "1", "--passes", "1", &target]);
    assert!(text.out.contains("none: calls on the file system") && !text.out.contains("--capture"), "{}", text.out);
    assert_eq!(bench(&["clean", &target]).status, Some(0));
    assert!(names_in(folder.path()).is_empty());
    for (options, why) in [
        (&["--capture"][..], "--capture needs packets"),
        (&["--encryption", "required"], "--encryption applies to SMB only"),
        (&["--leases"], "--leases applies to SMB only"),
    ] {
        let refused = bench(&[options, &["-q", "--users", "1", &target]].concat());
        assert!(refused.error(1).contains(why), "{}", refused.err);
    }
    assert!(bench(&["-q", "file:/nowhere/at all"]).error(1).contains("cannot use the folder /nowhere/at all"));
}
