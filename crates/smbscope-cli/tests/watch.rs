//! `smbscope watch`: the report at its end equals the report of `analyze`, and every minute has its own figures.

use crate::common::{Said, bundled, directory, finish, said, smbscope, write};
use serde_json::Value;
use smbscope_lab::{LabServer, LabServerSettings};
use smbscope_testkit::conversation::together;
use smbscope_testkit::packet::EPOCH;
use smbscope_testkit::{Conversation, Packet, eventually, pcap, skip, smb2};
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("it was written")).expect("JSON")
}

fn watch(directory: &Path, arguments: &[&str]) -> Said {
    finish(smbscope(directory, &[&["watch"], arguments].concat()))
}

fn minutes(said: &Said) -> Vec<Value> {
    assert_eq!(said.status, Some(0), "{}", said.err);
    said.out.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

/// The reference is `analyze`, whose figures are tested against tshark's.
#[test]
fn the_report_at_the_end_is_that_of_analyze() {
    let directory = directory("watch_report");
    for name in ["demo-slow-server", "demo-smb1-netbench", "demo-lossy-network", "own/smbclient_SMB3_11"] {
        let capture = bundled(&format!("{name}.pcap.zst"));
        let capture = capture.to_str().expect("UTF-8");
        let said = watch(&directory, &[capture, "--quiet", "-o", "watch.json"]);
        assert_eq!((said.status, said.err.as_str()), (Some(0), ""), "{name}");
        let said = finish(smbscope(&directory, &["analyze", "--quiet", capture, "-o", "analyze.json"]));
        assert_eq!(said.status, Some(0), "{}", said.err);
        let [watched, analyzed] = ["watch.json", "analyze.json"].map(|file| json(&directory.join(file)));
        assert!(watched["totals"]["commands"].as_u64().is_some_and(|count| count > 10), "{name}");
        assert_eq!(watched, analyzed, "{name}");
    }
}

/// A command every ten seconds for ten minutes, each answered after as many milliseconds as it has a minute, in µs.
fn ten_minutes() -> Vec<u8> {
    const MINUTE: i64 = 60_000_000;
    let mut conversation = Conversation::new();
    for second in (1..600).step_by(10) {
        let at = second * 1_000_000;
        let id = second as u64;
        conversation = conversation
            .client_says(at, smb2::read(id, 7, 0, 10))
            .server_says(at + (1 + at / MINUTE) * 1_000, smb2::read_response(id, &[0; 10]));
    }
    pcap::nanos(&conversation.packets())
}

#[test]
fn every_minute_has_its_own_commands_and_times() {
    let directory = directory("watch_minutes");
    write(&directory, "ten.pcap", ten_minutes());
    let said = watch(&directory, &["ten.pcap", "--format", "json", "-o", "whole.json"]);
    let minutes = minutes(&said);
    // The capture begins within a minute, and the last one is not over when it ends.
    assert!((10..=11).contains(&minutes.len()), "{}", minutes.len());
    let whole = json(&directory.join("whole.json"));
    let counted: u64 = minutes.iter().map(|minute| minute["commands"].as_u64().expect("a number")).sum();
    let all = whole["totals"]["commands"].as_u64().expect("a number");
    assert_eq!([all, counted], [60, 60]);
    for (index, minute) in minutes.iter().enumerate().take(9) {
        assert_eq!(minute["schema"], "smbscope.minute/1");
        let (from, to) = (minute["from_ns"].as_i64().expect("ns"), minute["to_ns"].as_i64().expect("ns"));
        assert!(index == 0 || to - from == 60_000_000_000, "{from} to {to}");
        let time = &minute["response_time"];
        // Minutes of the clock are not those since the first packet: a minute has commands of two of these.
        let [least, most] = ["min", "max"].map(|bound| time[bound].as_i64().expect("ns") / 1_000_000);
        assert!(least >= index as i64 && most <= index as i64 + 2 && least >= 1, "minute {index}: {time}");
    }
}

#[test]
fn what_is_outstanding_is_told_before_it_ends() {
    let directory = directory("watch_outstanding");
    let conversation = Conversation::new()
        .client_says(0, smb2::create(1, "a.txt"))
        .server_says(1_000, smb2::create_response(1, 7))
        .client_says(2_000_000, smb2::read(2, 7, 0, 10))
        // Two minutes later.
        .server_says(122_000_000, smb2::read_response(2, &[0; 10]))
        .client_says(190_000_000, smb2::read(3, 7, 0, 10))
        .server_says(190_001_000, smb2::read_response(3, &[0; 10]));
    write(&directory, "hang.pcap", pcap::nanos(&conversation.packets()));
    let minutes = minutes(&watch(&directory, &["hang.pcap", "--format", "json", "-o", "whole.json"]));
    let outstanding: Vec<u64> =
        minutes.iter().map(|minute| minute["outstanding"].as_u64().expect("a number")).collect();
    assert_eq!(outstanding.iter().max(), Some(&1), "{outstanding:?}");
    let waited = minutes.iter().filter_map(|minute| minute["oldest_outstanding_ns"].as_i64()).max();
    assert!(waited.is_some_and(|waited| waited > 50_000_000_000), "{waited:?}");
    let headlines: Vec<&str> = minutes.iter().filter_map(|minute| minute["headline"].as_str()).collect();
    assert!(!headlines.iter().all(|headline| headline.starts_with("Nothing is slow")), "{headlines:?}");
}

/// A week's dead connections would fill the memory. One that wakes again counts as one whose beginning was not captured.
#[test]
fn a_connection_that_is_silent_for_hours_ends() {
    const MINUTE: i64 = 60_000_000;
    let read = |conversation: Conversation, at: i64, id: u64| {
        conversation
            .client_says(at, smb2::read(id, 7, 0, 10))
            .server_says(at + 1_000, smb2::read_response(id, &[0; 10]))
    };
    let busy = (0..250)
        .fold(Conversation::new().ports(40_001, 445), |busy, minute| read(busy, minute * MINUTE, minute as u64));
    let silent = read(Conversation::new().ports(40_002, 445), 1_000_000, 1);
    let silent = read(silent, 240 * MINUTE, 2);
    let directory = directory("watch_silent");
    write(&directory, "silent.pcap", pcap::nanos(&together(&[busy, silent])));
    let said = watch(&directory, &["silent.pcap", "--quiet", "-o", "watch.json"]);
    assert_eq!((said.status, said.err.as_str()), (Some(0), ""));
    let watched = json(&directory.join("watch.json"));
    assert_eq!(watched["totals"]["commands"], 252);
    let connections = watched["connections"].as_array().expect("a list");
    let begun: Vec<_> = connections.iter().map(|connection| connection["midstream"].as_bool()).collect();
    assert_eq!(begun.iter().filter(|midstream| **midstream == Some(true)).count(), 1, "{begun:?}");
    assert_eq!(begun.len(), 3);
}

#[test]
fn a_growing_file_is_followed() {
    let directory = directory("watch_follow");
    let whole = ten_minutes();
    write(&directory, "growing.pcap", &whole[..whole.len() / 3]);
    let mut following =
        smbscope(&directory, &["watch", "--follow", "growing.pcap", "--duration", "3s", "-o", "out.json"]);
    let child = following.spawn().expect("it starts");
    let mut file = OpenOptions::new().append(true).open(directory.join("growing.pcap")).expect("it is there");
    // In the middle of a packet.
    for part in [&whole[whole.len() / 3..whole.len() / 2], &whole[whole.len() / 2..]] {
        std::thread::sleep(Duration::from_millis(300));
        file.write_all(part).expect("it is written");
    }
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(json(&directory.join("out.json"))["totals"]["commands"], 60);
}

/// An exporter whose server is busy for a quarter of the time, and a Prometheus on the same port. Returns its address.
fn counters_and_queries() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound").to_string();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.expect("a client");
            let mut lines = BufReader::new(stream.try_clone().expect("a handle")).lines().map_while(Result::ok);
            let first = lines.next().unwrap_or_default();
            while lines.next().is_some_and(|line| !line.is_empty()) {}
            let sample = r#"{"metric":{},"value":[1,"7.5"]}"#;
            let result = if first.contains("several") { format!("{sample},{sample}") } else { sample.to_owned() };
            let body = if first.starts_with("GET /metrics ") {
                let (idle, user) = (3 * number, number);
                format!(
                    "node_cpu_seconds_total{{mode=\"idle\"}} {idle}\nnode_cpu_seconds_total{{mode=\"user\"}} {user}\n"
                )
            } else {
                format!(r#"{{"status":"success","data":{{"resultType":"vector","result":[{result}]}}}}"#)
            };
            let length = body.len();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
            let _ = stream.write_all((head + &body).as_bytes());
        }
    });
    address
}

/// Returns packets of a command in each of the next five seconds, all in one minute.
fn packets_of_now() -> Vec<Packet> {
    let since_epoch = || std::time::UNIX_EPOCH.elapsed().expect("a clock after 1970");
    // Not over the end of a minute.
    while since_epoch().as_secs() % 60 >= 50 {
        std::thread::sleep(Duration::from_millis(200));
    }
    let now = since_epoch().as_micros() as i64 - EPOCH.0 / 1_000;
    let mut conversation = Conversation::new();
    for second in 0..5 {
        let (at, id) = (now + second * 1_000_000, second as u64 + 1);
        conversation = conversation
            .client_says(at, smb2::read(id, 7, 0, 10))
            .server_says(at + 1_000, smb2::read_response(id, &[0; 10]));
    }
    // The handshake is not of this minute.
    conversation.packets().into_iter().skip(3).collect()
}

/// Commands of the next four seconds on standard input: their minute has the counters of these seconds.
#[test]
fn a_minute_has_the_counters_of_the_server_and_values_of_queries() {
    let directory = directory("watch_counters");
    let packets = packets_of_now();
    let address = counters_and_queries();
    let running = ["json", "text"].map(|format| {
        let report = format!("{format}.html");
        let mut arguments = vec!["watch", "-", "--format", format, "-o", &report, "--server-metrics", &address];
        arguments.extend(["--prometheus", &address, "--also", "load=one", "--also", "disk=several"]);
        let mut watching = smbscope(&directory, &arguments);
        let mut child = watching.stdin(Stdio::piped()).spawn().expect("it starts");
        let mut input = child.stdin.take().expect("a pipe");
        input.write_all(&pcap::nanos(&packets)).expect("it reads");
        (child, input)
    });
    std::thread::sleep(Duration::from_secs(5));
    let [minute, line] = running.map(|(child, input)| {
        drop(input);
        let said = said(child.wait_with_output().expect("it ends"));
        assert!(said.err.contains("warning: --also disk: the query returns 2 series: select one"), "{}", said.err);
        assert_eq!((said.status, said.out.lines().count()), (Some(0), 1), "{}", said.out);
        said.out
    });
    let minute: Value = serde_json::from_str(&minute).expect("JSON");
    let cpu = &minute["server"]["cpu"];
    assert_eq!((cpu["mean"].as_f64(), cpu["max"].as_f64()), (Some(25.0), Some(25.0)), "{minute}");
    assert_eq!(minute["server"]["source"], format!("http://{address}/metrics"));
    assert_eq!(minute["also"], serde_json::json!([{"name": "load", "mean": 7.5, "max": 7.5, "count": 1}]));
    assert!(line.contains(", server CPU 25% (max 25%), load 7.5 (max 7.5): "), "{line}");
}

/// Returns the ids of processes that read Samba's figures, of the server with this configuration.
fn samba_readers(conf: &Path) -> Vec<String> {
    let conf = conf.to_str().expect("UTF-8");
    let has = |pid: &str, file: &str, text: &str| {
        fs::read(format!("/proc/{pid}/{file}")).is_ok_and(|found| String::from_utf8_lossy(&found).contains(text))
    };
    let entries = fs::read_dir("/proc").expect("Linux").filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    entries.filter(|pid| has(pid, "cmdline", "read-samba") && has(pid, "environ", conf)).collect()
}

/// smbstatus runs outside the sandbox. The server has one session, which writes a file per second.
#[test]
fn a_minute_has_the_figures_of_samba_and_their_reader_ends_with_the_watch() {
    if let Err(why) = smbscope_lab::available() {
        return skip::missing(why);
    }
    let directory = directory("watch_samba");
    let server = LabServer::start(&LabServerSettings::default()).unwrap_or_else(|error| panic!("{error}"));
    let conf = server.folder().join("smb.conf");
    let mut client = Command::new("smbclient");
    client.arg(format!("//{}/{}", server.address().ip(), server.share())).args(["-p", &server.port().to_string()]);
    client.args(["--user", server.user()]).env("PASSWD", server.password()).current_dir(&directory);
    let client = client.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let Ok(mut client) = client else { return skip::missing("smbclient is not installed") };
    write(&directory, "file", "content");
    let packets = packets_of_now();
    let watching = || {
        let mut watch = smbscope(&directory, &["watch", "-", "--format", "json", "-o", "w.html", "--machine-metrics"]);
        let mut child = watch.env("SMB_CONF_PATH", &conf).stdin(Stdio::piped()).spawn().expect("it starts");
        let mut input = child.stdin.take().expect("a pipe");
        input.write_all(&pcap::nanos(&packets)).expect("it reads");
        (child, input)
    };
    let (child, input) = watching();
    let mut commands = client.stdin.take().expect("a pipe");
    for number in 0..5 {
        writeln!(commands, "put file {number}").expect("smbclient reads");
        std::thread::sleep(Duration::from_secs(1));
    }
    drop(input);
    let said = said(child.wait_with_output().expect("it ends"));
    assert_eq!((said.status, said.err.as_str(), said.out.lines().count()), (Some(0), "", 1), "{}", said.out);
    assert!(samba_readers(&conf).is_empty());
    let minute: Value = serde_json::from_str(&said.out).expect("JSON");
    let figure = |name: &str, what: &str| minute["server"][name][what].as_f64().unwrap_or(-1.0);
    assert_eq!(figure("samba_sessions", "max"), 1.0, "{minute}");
    assert!((0.2..5.0).contains(&figure("samba_write", "mean")), "{minute}");
    assert!((1e3..1e9).contains(&figure("samba_write_time", "mean")), "{minute}");

    let (mut child, _input) = watching();
    assert!(eventually(|| !samba_readers(&conf).is_empty()));
    child.kill().expect("it runs");
    let _status = child.wait();
    assert!(eventually(|| samba_readers(&conf).is_empty()));
    drop(commands);
    let _status = client.wait();
}

#[test]
fn counters_of_the_present_do_not_fit_a_finished_capture() {
    let directory = directory("watch_counters_finished");
    write(&directory, "ten.pcap", ten_minutes());
    for source in [&["--server-metrics", "127.0.0.1:9100"][..], &["--machine-metrics"]] {
        let said = watch(&directory, &[&["ten.pcap"], source].concat());
        assert_eq!(said.status, Some(2));
        assert!(said.err.contains("the capture is from the past"), "{}", said.err);
    }
}

#[test]
fn the_ring_of_a_watch_holds_what_it_saw() {
    let directory = directory("watch_ring");
    let capture = bundled("demo-slow-server.pcap.zst");
    let said = watch(&directory, &[capture.to_str().expect("UTF-8"), "--ring", "ring", "--quiet", "-o", "watch.json"]);
    assert_eq!((said.status, said.err.as_str()), (Some(0), ""));
    let said = finish(smbscope(&directory, &["analyze", "--quiet", "ring", "-o", "ring.json"]));
    assert_eq!(said.status, Some(0), "{}", said.err);
    let [watched, kept] = ["watch.json", "ring.json"].map(|file| json(&directory.join(file)));
    for part in ["totals", "groups", "shares", "files", "clients"] {
        assert_eq!(watched[part], kept[part], "{part}");
    }
}

/// The answer of `analyze` for the packets saved is the reference for the cause that the command was told.
#[test]
fn a_cause_that_begins_is_told_once_and_its_minute_is_saved() {
    let directory = directory("watch_causes");
    let capture = bundled("demo-slow-server.pcap.zst");
    let capture = capture.to_str().expect("UTF-8");
    let command = if cfg!(windows) {
        "echo %SMBSCOPE_CAUSE%>>causes & echo %SMBSCOPE_SAVED%>>saved & findstr . >minute.json"
    } else {
        r#"echo "$SMBSCOPE_CAUSE">>causes; echo "$SMBSCOPE_SAVED">>saved; cat >minute.json; echo "it is told""#
    };
    let arguments =
        [capture, "--ring", "ring", "--on-cause", command, "--cause-cost", "1s", "--quiet", "-o", "watch.json"];
    let said = watch(&directory, &arguments);
    assert_eq!(said.status, Some(0), "{}", said.err);
    assert_eq!(said.err.trim(), if cfg!(windows) { "" } else { "smbscope: it is told" });
    let lines = |name: &str| {
        let text = fs::read_to_string(directory.join(name)).expect("the command wrote it");
        text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>()
    };
    let (causes, saved) = (lines("causes"), lines("saved"));
    assert_eq!((causes.len(), saved.len()), (1, 1), "{causes:?}");
    let told = json(&directory.join("minute.json"));
    assert_eq!(told["schema"], "smbscope.minute/1");
    assert_eq!(told, json(&directory.join(&saved[0]).join("minute.json")));
    let kept = format!("{}/capture.pcapng", saved[0]);
    let said = finish(smbscope(&directory, &["analyze", "--quiet", &kept, "-o", "saved.json"]));
    assert_eq!(said.status, Some(0), "{}", said.err);
    let named = &json(&directory.join("saved.json"))["answer"]["causes"][0]["id"];
    assert_eq!(Some(&*causes[0]), named.as_str());
    let ids = |name: &str| json(&directory.join(name))["answer"]["causes"].as_array().map(Vec::len);
    assert!(ids("watch.json").is_some_and(|count| count > 0));
    // A cause that costs less than wanted is neither told nor saved.
    let dear: Vec<&str> = arguments.iter().map(|word| if *word == "1s" { "1h" } else { word }).collect();
    fs::remove_dir_all(directory.join("ring")).expect("it is there");
    assert_eq!(watch(&directory, &dear).status, Some(0));
    assert_eq!(lines("causes").len(), 1);
    assert!(!directory.join("ring").join("saved").exists());
}

#[test]
fn a_command_that_fails_is_a_warning() {
    let directory = directory("watch_command_fails");
    let capture = bundled("demo-slow-server.pcap.zst");
    let capture = capture.to_str().expect("UTF-8");
    let said =
        watch(&directory, &[capture, "--on-cause", "exit 3", "--cause-cost", "1s", "--quiet", "-o", "watch.json"]);
    assert_eq!(said.status, Some(0), "{}", said.err);
    assert!(said.err.contains("warning: --on-cause exit 3: exit") && said.err.lines().count() == 1, "{}", said.err);
}

/// A ring that another process writes: the captures in a directory, those to come included.
#[test]
fn a_directory_of_captures_is_followed() {
    let directory = directory("watch_directory");
    fs::create_dir(directory.join("ring")).expect("made");
    let whole = ten_minutes();
    let packets = |part: &[u8]| [&whole[..24], part].concat();
    let (mut middle, mut count) = (24, 0);
    while count < 60 {
        // A packet's header has its captured length at byte 8.
        let length = whole[middle + 8..middle + 12].try_into().expect("four bytes");
        (middle, count) = (middle + 16 + u32::from_le_bytes(length) as usize, count + 1);
    }
    write(&directory, "ring/1.pcap", packets(&whole[24..middle]));
    let mut following = smbscope(&directory, &["watch", "ring", "--duration", "3s", "-o", "out.json", "--quiet"]);
    let child = following.spawn().expect("it starts");
    std::thread::sleep(Duration::from_millis(500));
    write(&directory, "ring/2.pcap", packets(&whole[middle..]));
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(json(&directory.join("out.json"))["totals"]["commands"], 60);
    let said = watch(&directory, &["ring", "--ring", "ring", "--duration", "1s"]);
    assert!(said.error(1).contains("it is also the directory of --ring"), "{}", said.err);
}

#[test]
fn bad_requests_are_refused_in_one_line() {
    let directory = directory("watch_refused");
    write(&directory, "capture.pcap", ten_minutes());
    write(&directory, "text.txt", "no capture");
    for (arguments, status, reason) in [
        (&[][..], 2, "required"),
        (&["-", "--follow"][..], 2, "standard input (-) is followed anyway"),
        (&["capture.pcap", "-o", "out.csv"][..], 2, "not the exchange table"),
        (&["capture.pcap", "-i", "lo"][..], 2, "cannot be used with"),
        (&["text.txt"][..], 1, "not a capture file"),
        (&["absent.pcap"][..], 1, "absent.pcap"),
        (&["capture.pcap", "-o", "capture.pcap", "--quiet"][..], 2, ".pcap is not the ending of a format"),
        (&["-i", "no-such-interface"][..], 1, "cannot capture on no-such-interface"),
    ] {
        let said = watch(&directory, arguments);
        assert_eq!(said.status, Some(status), "{arguments:?}: {}", said.err);
        assert!(said.err.contains(reason), "{arguments:?}: {}", said.err);
    }
    fs::rename(directory.join("capture.pcap"), directory.join("capture.html")).expect("renamed");
    let said = watch(&directory, &["capture.html", "-o", "capture.html"]);
    assert!(said.error(1).contains("it is the input"), "{}", said.err);
}

/// Returns a directory with the socket of a service manager, `notify`.
fn service_manager() -> (tempfile::TempDir, UnixDatagram) {
    let place = tempfile::tempdir().expect("a directory");
    let manager = UnixDatagram::bind(place.path().join("notify")).expect("a socket");
    manager.set_read_timeout(Some(Duration::from_secs(20))).expect("a time limit");
    (place, manager)
}

/// Allows a copy of a program to capture, and to change its user (capabilities(7), VFS_CAP_REVISION_2).
fn allow_to_capture(program: &Path) {
    const SETGID_SETUID_NET_ADMIN_NET_RAW: u32 = 1 << 6 | 1 << 7 | 1 << 12 | 1 << 13;
    let fields = [0x0200_0001, SETGID_SETUID_NET_ADMIN_NET_RAW, 0, 0, 0];
    let value: Vec<u8> = fields.iter().flat_map(|field: &u32| field.to_le_bytes()).collect();
    let set = rustix::fs::setxattr(program, "security.capability", &value, rustix::fs::XattrFlags::empty());
    set.expect("the file system knows capabilities");
}

/// A service manager starts a watch again that failed, so the end of the capture has to be a failure. The watch may not
/// capture by itself: without SECBIT_NOROOT, root's programs may do everything.
#[test]
fn a_watch_whose_capture_program_ends_fails() {
    if !rustix::process::geteuid().is_root() {
        return skip::unable("only root may capture on the loopback interface");
    }
    let directory = directory("watch_capture_ends");
    let tcpdump = ["/usr/bin/tcpdump", "/usr/sbin/tcpdump"].into_iter().find(|file| Path::new(file).exists());
    let Some(tcpdump) = tcpdump else { return skip::missing("tcpdump is not installed") };
    fs::copy(tcpdump, directory.join("tcpdump")).expect("it is copied");
    allow_to_capture(&directory.join("tcpdump"));
    let (place, manager) = service_manager();
    let mut watch = Command::new("/usr/bin/setpriv");
    watch.args(["--securebits", "+noroot", env!("CARGO_BIN_EXE_smbscope"), "watch", "-i", "lo", "--port", "1"]);
    watch.args(["--duration", "60s", "-o", "report.json"]).current_dir(&directory).env("PATH", &directory);
    watch.env("NOTIFY_SOCKET", place.path().join("notify")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = watch.spawn().expect("it starts");
    let is_ready = manager.recv(&mut [0; 64]).is_ok();
    let found = fs::read_to_string(format!("/proc/{id}/task/{id}/children", id = child.id())).unwrap_or_default();
    let ended = Command::new("kill").arg(found.trim()).status();
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(is_ready && ended.is_ok_and(|status| status.success()), "{found:?}: {said}");
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("tcpdump ended: "), "{said}");
}

#[test]
fn a_watch_whose_interface_disappears_fails() {
    if !rustix::process::geteuid().is_root() {
        return skip::unable("only root may make interfaces");
    }
    let directory = directory("watch_interface_ends");
    let name = format!("sw{}", std::process::id());
    let ip = |arguments: &[&str]| Command::new("ip").args(arguments).status().is_ok_and(|status| status.success());
    let far = format!("{name}f");
    if !ip(&["link", "add", &name, "type", "veth", "peer", "name", &far]) {
        return skip::missing("iproute2 is not installed, or the kernel has no veth");
    }
    assert!(ip(&["link", "set", &name, "up"]) && ip(&["link", "set", &far, "up"]));
    let (place, manager) = service_manager();
    let mut watch = smbscope(&directory, &["watch", "-i", &name, "--duration", "60s", "-o", "report.json"]);
    watch.env("NOTIFY_SOCKET", place.path().join("notify"));
    let child = watch.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let is_ready = manager.recv(&mut [0; 64]).is_ok();
    // A link that goes down may come up again.
    assert!(ip(&["link", "set", &name, "down"]));
    std::thread::sleep(Duration::from_millis(500));
    assert!(ip(&["link", "set", &name, "up"]));
    std::thread::sleep(Duration::from_millis(500));
    let is_removed = ip(&["link", "del", &name]);
    let removed = std::time::Instant::now();
    let said = said(child.wait_with_output().expect("it ends"));
    assert!(is_ready && is_removed && removed.elapsed() < Duration::from_secs(20), "{}", said.err);
    assert_eq!(said.status, Some(1), "{}", said.err);
    assert!(said.err.contains("the capture ended: The interface disappeared"), "{}", said.err);
}

/// The kernel can't filter by VLAN there, and the filter does without.
#[test]
fn all_interfaces_are_watched_at_once() {
    if !rustix::process::geteuid().is_root() {
        return skip::unable("only root may capture on all interfaces");
    }
    let directory = directory("watch_any");
    let packets = std::thread::spawn(|| {
        for _ in 0..80 {
            let _ = std::net::TcpStream::connect(("127.0.0.1", 1));
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let said = watch(&directory, &["-i", "any", "--port", "1", "--duration", "2s", "-o", "report.json", "--quiet"]);
    packets.join().expect("it ends");
    if said.err.contains("neither tcpdump nor dumpcap is installed") {
        return skip::missing("tcpdump is not installed");
    }
    assert!(!said.err.contains("cannot capture") && !said.err.contains("no packets"), "{}", said.err);
}

/// Loads a private server while it is watched. `$S` is smbscope.
const LOADED: &str = r#"
"$S" watch -i lo --port "$SMBSCOPE_LAB_PORT" --duration 12s --ring ring --quiet -o watch.json 2>watch.err &
sleep 3
cat /proc/$!/task/*/status >status.txt
"$S" bench --users 2 --warmup 500ms --duration 3s --quiet --format json "$SMBSCOPE_LAB_URL" >bench.json
wait $!"#;

/// Fields of proc(5). CAP_KILL reaches tcpdump, and CAP_DAC_OVERRIDE a directory of another user.
fn assert_all_threads_are_limited(status: &str) {
    let values = |field: &str| -> Vec<String> {
        let lines = status.lines().filter_map(|line| line.split_once(":\t"));
        lines.filter(|(name, _)| *name == field).map(|(_, value)| value.to_owned()).collect()
    };
    let capabilities = values("CapEff");
    assert!(capabilities.len() > 4, "{status}");
    for held in capabilities.iter().chain(&values("CapPrm")) {
        let held = u64::from_str_radix(held, 16).expect("a mask");
        assert_eq!(held & !(1 << 5 | 1 << 1), 0, "{held:x}");
    }
    assert!(values("CapBnd").iter().all(|held| held.trim_start_matches('0').is_empty()), "{status}");
    for (field, value) in [("NoNewPrivs", "1"), ("Seccomp", "2")] {
        assert_eq!(values(field), vec![value; capabilities.len()], "{field}");
    }
}

/// Three counts of the same commands: by the watch, by `analyze` of its ring, and by the load client.
#[test]
fn an_interface_is_watched_without_a_loss() {
    if let Err(why) = smbscope_lab::available() {
        return skip::missing(why);
    }
    if !rustix::process::geteuid().is_root() {
        return skip::unable("only root may capture on the loopback interface");
    }
    let directory = directory("watch_interface");
    let state = directory.join("state");
    let state = state.to_str().expect("UTF-8");
    let mut lab = smbscope(&directory, &["lab", "run", "--state", state, "--", "sh", "-c", LOADED]);
    lab.env("S", env!("CARGO_BIN_EXE_smbscope"));
    let said = finish(lab);
    let log = fs::read_to_string(directory.join("watch.err")).unwrap_or_default();
    if log.contains("neither tcpdump nor dumpcap is installed") {
        return skip::missing("tcpdump is not installed");
    }
    assert_eq!((said.status, log.as_str()), (Some(0), ""), "{}", said.err);
    assert_all_threads_are_limited(&fs::read_to_string(directory.join("status.txt")).expect("it was written"));
    let said = finish(smbscope(&directory, &["analyze", "--quiet", "ring", "-o", "ring.json"]));
    assert_eq!(said.status, Some(0), "{}", said.err);
    let [watched, kept, loaded] = ["watch.json", "ring.json", "bench.json"].map(|file| json(&directory.join(file)));
    assert_eq!(watched["quality"]["dropped_packets"], 0);
    for part in ["totals", "groups", "shares"] {
        assert_eq!(watched[part], kept[part], "{part}");
    }
    let commands = |report: &Value| report["totals"]["commands"].as_u64().expect("a number");
    let measured = loaded["runs"][0]["total"]["client"]["count"].as_u64().expect("a number");
    // The client also prepares files, warms up and clears away.
    assert!(measured > 100 && commands(&watched) > measured, "{} of {measured}", commands(&watched));
}

/// Messages of sd_notify(3). The ten minutes of the capture pass at once; then the watch waits for more.
#[test]
fn a_service_manager_is_told_how_it_goes() {
    let directory = directory("watch_service");
    write(&directory, "growing.pcap", ten_minutes());
    let (place, manager) = service_manager();
    let mut command =
        smbscope(&directory, &["watch", "--follow", "growing.pcap", "--duration", "2s", "-o", "out.json"]);
    command.env("NOTIFY_SOCKET", place.path().join("notify")).env("WATCHDOG_USEC", "400000").env_remove("WATCHDOG_PID");
    let child = command.spawn().expect("it starts");
    let mut told = Vec::new();
    while told.last().is_none_or(|last: &String| last != "STOPPING=1\n") {
        let mut message = [0; 4_096];
        let length = manager.recv(&mut message).expect("a message");
        told.push(String::from_utf8_lossy(&message[..length]).into_owned());
    }
    let said = said(child.wait_with_output().expect("it ends"));
    assert_eq!((said.status, said.err.as_str()), (Some(0), ""));
    assert_eq!(told[0], "READY=1\n");
    let statuses: String = told.iter().filter_map(|line| line.strip_prefix("STATUS=")).collect();
    assert!(statuses.lines().count() >= 9 && statuses == said.out, "{statuses}{}", said.out);
    // Every 200 ms, and at most a pulse of 100 ms later.
    let fed = told.iter().filter(|line| *line == "WATCHDOG=1\n").count();
    assert!((4..=10).contains(&fed), "{fed}: {told:?}");
}

#[test]
fn messages_have_priorities_in_the_journal_only() {
    let directory = directory("watch_journal");
    let first_line = |name: &str, is_journal: bool| {
        let log = fs::File::create(directory.join(name)).expect("a file");
        let found = log.metadata().expect("its inode");
        let mut command = smbscope(&directory, &["watch", "absent.pcap"]);
        let stream = format!("{}:{}", found.dev(), found.ino() + u64::from(!is_journal));
        command.stderr(log).env("JOURNAL_STREAM", stream).status().expect("it runs");
        fs::read_to_string(directory.join(name)).expect("it was written")
    };
    let plain = first_line("plain.log", false);
    assert!(plain.starts_with("smbscope: ") && plain.contains("absent.pcap"), "{plain}");
    assert_eq!(first_line("journal.log", true), format!("<3>{plain}"));
}
