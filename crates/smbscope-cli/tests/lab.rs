//! `smbscope lab` with real servers; each test is skipped without Samba.

use crate::common::{Said, finish, said};
use serde_json::Value;
use smbscope_lab::{Process, available};
use smbscope_testkit::{eventually, skip};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// `smbscope lab` with a separate state folder per test.
struct Lab(TempDir);

impl Lab {
    /// Skips the test and returns `None` if Samba can't be started.
    fn new() -> Option<Lab> {
        if let Err(why) = available() {
            skip::missing(why);
            return None;
        }
        Some(Lab(tempfile::tempdir().expect("a temporary directory can be made")))
    }

    /// Inserts `--state` directly after the verb, in front of any `--`.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_smbscope"));
        let (verb, rest) = arguments.split_first().expect("there is a verb");
        command.args(["lab", verb, "--state"]).arg(self.0.path()).args(rest).stdin(Stdio::null());
        command
    }

    fn say(&self, arguments: &[&str]) -> Said {
        finish(self.command(arguments))
    }

    /// Starts a command and waits until its server is up. Returns the server's status.
    fn spawn(&self, arguments: &[&str]) -> (Child, Value) {
        let child = self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.expect("the binary runs");
        let is_up = || self.servers().first().is_some_and(|server| server["port"].as_u64() > Some(0));
        assert!(eventually(is_up), "the server does not come up");
        (child, self.servers().remove(0))
    }

    fn servers(&self) -> Vec<Value> {
        let said = self.say(&["status", "--format", "json"]);
        serde_json::from_str(said.output()).expect("the list is JSON")
    }

    /// Counts the servers' folders. Lock files are not counted.
    fn folders(&self) -> usize {
        let entries = std::fs::read_dir(self.0.path()).expect("the folder is there");
        entries.filter(|entry| entry.as_ref().is_ok_and(|entry| entry.path().is_dir())).count()
    }
}

/// Returns true if the server's port is closed or its network has been removed.
fn is_closed(server: &Value) -> bool {
    match server["interface"].as_str().expect("a name") {
        "lo" => {
            let port = server["port"].as_u64().and_then(|port| u16::try_from(port).ok()).expect("a port");
            std::net::TcpStream::connect(("127.0.0.1", port)).is_err()
        }
        network => !Path::new("/sys/class/net").join(network).exists(),
    }
}

fn is_gone(pid: &Value) -> bool {
    Process::find(pid.as_u64().and_then(|pid| u32::try_from(pid).ok()).expect("a process id")).is_none()
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(status.expect("there is a kill").success());
}

#[test]
fn servers_go_up_are_listed_and_go_down() {
    let Some(lab) = Lab::new() else { return };
    assert!(lab.say(&["status"]).output().starts_with("no server runs in "));
    let up = lab.say(&["up", "--name", "a", "--max-dialect", "2.1", "--signing", "required"]);
    assert!(up.output().starts_with("a: Samba, SMB nt1 to 2.1\n"), "{}", up.out);
    let up = lab.say(&["up", "--name", "b", "--format", "json"]);
    let up: Value = serde_json::from_str(up.output()).expect("it is JSON");
    assert_eq!((&up["name"], &up["state"]), (&"b".into(), &"up".into()));

    let servers = lab.servers();
    assert_eq!(servers.iter().map(|server| server["name"].as_str()).collect::<Vec<_>>(), [Some("a"), Some("b")]);
    assert_ne!(servers[0]["port"], servers[1]["port"]);
    let pids = servers.iter().map(|server| server["pids"].as_array().expect("a list"));
    assert!(pids.zip(&servers).all(|(pids, server)| pids.contains(&server["pid"])), "{servers:?}");
    let password = std::fs::read_to_string(servers[0]["password_file"].as_str().expect("a path")).expect("it is there");
    assert!(!lab.say(&["status", "--format", "json"]).output().contains(password.trim()));
    let status = lab.say(&["status"]);
    let lines: Vec<&str> = status.output().lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[1].starts_with("a     nt1 to 2.1    ") && lines[1].ends_with(" signing required"), "{}", lines[1]);

    assert!(lab.say(&["up", "--name", "a"]).error(1).starts_with("a server named a runs already"));
    assert!(lab.say(&["down"]).error(1).starts_with("several servers run: name one of a, b"));
    assert!(lab.say(&["down", "c"]).error(1).starts_with("no server named c runs; these do: a, b"));
    assert_eq!(lab.say(&["down", "a"]).output(), "a: stopped\n");
    assert!(is_closed(&servers[0]) && is_gone(&servers[0]["pid"]) && is_gone(&servers[0]["owner"]));
    assert!(!is_closed(&servers[1]));
    assert_eq!(lab.say(&["down"]).output(), "b: stopped\n");
    assert_eq!(lab.folders(), 0);
    assert!(lab.say(&["down"]).error(1).starts_with("no server runs in "));
    assert_eq!(lab.say(&["down", "--all"]).output(), "");
}

#[test]
fn a_command_finds_its_server_and_its_status_is_passed_on() {
    let Some(lab) = Lab::new() else { return };
    let script = "echo $SMBSCOPE_LAB_URL; test -d $SMBSCOPE_LAB_SHARE_FOLDER && test -f $SMBSCOPE_LAB_CONF || exit 1
        test \"$(cat $SMBSCOPE_LAB_PASSWORD_FILE)\" = $SMBSCOPE_PASSWORD || exit 2; echo $SMBSCOPE_LAB_PORT; exit 7";
    let said = lab.say(&["run", "--delay", "1ms", "--", "sh", "-c", script]);
    let note = said.err.as_str();
    assert!(said.status == Some(7) && (note.is_empty() || note.contains("a proxy that ends TCP")), "{note}");
    let lines: Vec<&str> = said.out.lines().collect();
    let host = if note.is_empty() { "198.1" } else { "127.0.0.1:" };
    assert!(lines[0].starts_with(&format!("smb://bench@{host}")), "{}", lines[0]);
    assert!(lines[0].ends_with(&format!(":{}/share", lines[1])), "{}", lines[0]);
    assert_eq!(lab.folders(), 0);
    // As in a shell: 128 plus the number of SIGKILL.
    assert_eq!(lab.say(&["run", "--", "sh", "-c", "kill -9 $$"]).status, Some(137));
    assert!(lab.say(&["run", "--", "/no/such/command"]).error(1).starts_with("cannot run /no/such/command: "));
    assert_eq!(lab.folders(), 0);
}

#[test]
fn smbclient_logs_in_with_what_the_environment_says() {
    let Some(lab) = Lab::new() else { return };
    if Command::new("smbclient").arg("--version").output().is_err() {
        return skip::missing("smbclient is not installed");
    }
    let script = "echo works > $SMBSCOPE_LAB_SHARE_FOLDER/file
        PASSWD=$SMBSCOPE_PASSWORD exec smbclient //$SMBSCOPE_LAB_HOST/enc -p $SMBSCOPE_LAB_PORT -U $SMBSCOPE_LAB_USER \
        -s $SMBSCOPE_LAB_CONF -c 'get file -'";
    let said = lab.say(&["run", "--", "sh", "-c", script]);
    assert_eq!(said.status, Some(0), "{}", said.err);
    assert!(said.out.contains("works"), "{}", said.out);
}

#[test]
fn a_killed_run_leaves_neither_server_nor_command() {
    let Some(lab) = Lab::new() else { return };
    for name in ["KILL", "TERM"] {
        let (mut child, server) = lab.spawn(&["run", "--delay", "1ms", "--", "sh", "-c", "echo $$; exec sleep 1000"]);
        let mut line = String::new();
        let mut stdout = std::io::BufReader::new(child.stdout.take().expect("it is a pipe"));
        std::io::BufRead::read_line(&mut stdout, &mut line).expect("the command speaks");
        let sleep = Value::from(line.trim().parse::<u32>().expect("a process id"));
        assert!(!is_gone(&sleep) && !is_closed(&server));
        // The keeper learns of the command shortly after its start.
        std::thread::sleep(Duration::from_millis(200));
        signal(&child, name);
        child.wait().expect("it ends");
        for key in ["pid", "owner"] {
            assert!(eventually(|| is_gone(&server[key])), "{name}: {key} lives");
        }
        assert!(eventually(|| is_gone(&sleep)), "{name}: the command lives");
        assert!(is_closed(&server), "{name}");
        assert!(eventually(|| lab.folders() == 0), "{name}");
    }
}

#[test]
fn ctrl_c_is_left_to_the_command() {
    let Some(lab) = Lab::new() else { return };
    let script = "trap 'echo caught; exit 3' INT; echo ready; while :; do sleep 0.05; done";
    let (mut child, _) = lab.spawn(&["run", "--", "sh", "-c", script]);
    let mut stdout = std::io::BufReader::new(child.stdout.take().expect("it is a pipe"));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut stdout, &mut line).expect("the command speaks");
    std::thread::sleep(Duration::from_millis(200));
    // A terminal sends SIGINT to both. The launcher must ignore it.
    signal(&child, "INT");
    assert!(child.try_wait().expect("it can be asked").is_none());
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let children = std::fs::read_to_string(children).expect("/proc is mounted");
    let keeper = lab.servers()[0]["owner"].to_string();
    let command = children.split_whitespace().find(|pid| *pid != keeper).expect("the command runs");
    assert!(Command::new("kill").args(["-INT", command]).status().expect("there is a kill").success());
    std::io::BufRead::read_line(&mut stdout, &mut line).expect("the command speaks");
    assert_eq!(line, "ready\ncaught\n");
    assert_eq!(said(child.wait_with_output().expect("it ends")).status, Some(3));
    assert_eq!(lab.folders(), 0);
}

#[test]
fn what_a_killed_keeper_left_is_removed_by_the_next_command() {
    let Some(lab) = Lab::new() else { return };
    lab.say(&["up"]).output();
    let server = lab.servers().remove(0);
    let owner = server["owner"].to_string();
    assert!(Command::new("kill").args(["-KILL", &owner]).status().expect("there is a kill").success());
    assert!(eventually(|| is_gone(&server["owner"])));
    assert!(!is_closed(&server), "Samba goes on");
    assert_eq!(lab.say(&["down", "lab"]).output(), "lab: its owner has ended; removed\n");
    assert!(is_closed(&server) && is_gone(&server["pid"]));
    assert_eq!(lab.folders(), 0);
}

/// Nothing serves the file system any more, so accesses to the mount fail.
#[test]
fn a_slow_disk_of_a_killed_keeper_is_unmounted_by_the_next_command() {
    let Some(lab) = Lab::new() else { return };
    let said = lab.say(&["up", "--storage-latency", "1ms", "--storage-iops", "500"]);
    if said.status != Some(0) && said.err.contains("(FUSE)") {
        return skip::unable(said.err.trim_end());
    }
    assert!(said.output().contains("storage with 1ms latency and 500 IOPS"), "{}", said.out);
    let state = lab.0.path().to_str().expect("the path is UTF-8");
    let mounts = || {
        let list = std::fs::read_to_string("/proc/self/mounts").expect("there is a list of mounts");
        list.lines().filter(|line| line.contains(state)).count()
    };
    assert_eq!(mounts(), 1);
    let server = lab.servers().remove(0);
    let owner = server["owner"].to_string();
    assert!(Command::new("kill").args(["-KILL", &owner]).status().expect("there is a kill").success());
    assert!(eventually(|| is_gone(&server["owner"])));
    assert!(std::fs::metadata(lab.0.path().join("lab/share")).is_err(), "nobody serves it any more");
    assert_eq!(lab.say(&["down", "lab"]).output(), "lab: its owner has ended; removed\n");
    assert_eq!((lab.folders(), mounts()), (0, 0));
}

#[test]
fn a_server_of_a_command_can_be_seen_and_not_be_taken_down() {
    let Some(lab) = Lab::new() else { return };
    let (mut child, server) = lab.spawn(&["run", "--", "sleep", "1000"]);
    let name = server["name"].as_str().expect("a name");
    assert!(lab.say(&["down", name]).error(1).contains(" belongs to process "));
    assert!(!is_closed(&server));
    std::thread::sleep(Duration::from_millis(200));
    signal(&child, "TERM");
    child.wait().expect("it ends");
    assert!(eventually(|| lab.folders() == 0));
}

#[test]
fn what_can_not_be_is_one_line() {
    let Some(lab) = Lab::new() else { return };
    for (arguments, status, start) in [
        (&["--smb-conf", "strickt sync = no"][..], 2, "Samba does not take a setting: Unknown parameter"),
        (&["--smb-conf", "nonsense"], 2, "the setting \"nonsense\" is not of the form NAME = VALUE"),
        (
            &["--min-dialect", "3.0", "--max-dialect", "2.1"],
            2,
            "the oldest dialect, 3.0, is newer than the newest one, 2.1",
        ),
        (&["--encryption", "required", "--max-dialect", "2.1"], 2, "encryption needs 3.0 or newer"),
        (&["--delay", "1ms", "--impaired-towards", "client"], 2, "impairing one direction needs packet loss or"),
        (&["--accounts", "60000"], 2, "60000 users need 60000 accounts"),
        (&["--share-folder", "/no/such/folder"], 1, "cannot share /no/such/folder: "),
        (&["--name", "a/b"], 2, "\"a/b\" is not a valid server name"),
    ] {
        let said = lab.say(&[&["up"], arguments].concat());
        assert!(said.error(status).starts_with(start), "{}", said.err);
    }
    for arguments in [
        &["--max-dialect", "4"][..],
        &["--delay", "5"],
        &["--delay-to-client", "5"],
        &["--loss", "1%", "--impaired-towards", "away"],
        &["--cpu-load", "101"],
        &["--disk", "1"],
        &["--storage-iops", "0"],
    ] {
        assert_eq!(lab.say(&[&["up"], arguments].concat()).status, Some(2), "{arguments:?}");
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = taken.local_addr().expect("it is bound").port().to_string();
    let said = lab.say(&["up", "--listen-port", &port]);
    assert!(said.error(1).starts_with(&format!("port {port} is taken")), "{}", said.err);
    assert!(!lab.0.path().exists() || lab.folders() == 0);
}

#[test]
fn a_given_folder_stays() {
    let Some(lab) = Lab::new() else { return };
    let files = tempfile::tempdir().expect("a temporary directory can be made");
    std::fs::write(files.path().join("mine"), "x").expect("a file can be written");
    let folder = files.path().to_str().expect("the path is UTF-8");
    let said = lab.say(&["run", "--share-folder", folder, "--", "sh", "-c", "cat $SMBSCOPE_LAB_SHARE_FOLDER/mine"]);
    assert_eq!(said.output(), "x");
    assert!(Path::new(folder).join("mine").exists());
}

/// Reads small files over the lab's link and returns the report on a capture at the client. Skips the test and returns
/// `None` if capturing is not possible.
fn captured(lab: &Lab, options: &[&str], commands: &str) -> Option<Value> {
    for tool in ["smbclient", "tcpdump"] {
        if Command::new(tool).arg("--version").output().is_err() {
            skip::missing(format_args!("{tool} is not installed"));
            return None;
        }
    }
    let capture = lab.0.path().join("client.pcap");
    let script = r#"echo 0123456789 >"$SMBSCOPE_LAB_SHARE_FOLDER/small"
        head -c 1000000 /dev/zero >"$SMBSCOPE_LAB_SHARE_FOLDER/large"
        tcpdump -i "$SMBSCOPE_LAB_INTERFACE" -U -Z root -w "$0" "tcp port $SMBSCOPE_LAB_PORT" 2>"$0.log" & capture=$!
        until grep -qs 'listening on' "$0.log"; do kill -0 $capture || exit 9; sleep 0.1; done
        PASSWD=$SMBSCOPE_PASSWORD smbclient "//$SMBSCOPE_LAB_HOST/share" -p "$SMBSCOPE_LAB_PORT" \
            -U "$SMBSCOPE_LAB_USER" -s "$SMBSCOPE_LAB_CONF" -c "$1" >/dev/null 2>&1 || exit 8
        sleep 1.5; kill -INT $capture; wait $capture"#;
    let run = [&["run"], options, &["--", "sh", "-c", script, capture.to_str().expect("UTF-8"), commands]].concat();
    let said = lab.say(&run);
    let log = std::fs::read_to_string(capture.with_extension("pcap.log")).unwrap_or_default();
    if said.status == Some(9) {
        skip::unable(format_args!("tcpdump can't capture here: {log}"));
        return None;
    }
    assert_eq!((said.status, said.err.as_str()), (Some(0), ""), "{log}");
    let mut analyze = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    analyze.args(["analyze", "-q", "--format", "json"]).arg(&capture).stdin(Stdio::null());
    let said = finish(analyze);
    Some(serde_json::from_str(said.output()).expect("the report is JSON"))
}

/// Skips the test and returns `None` if the lab can't have its own network.
fn lab_with_network() -> Option<Lab> {
    let lab = Lab::new()?;
    let said = lab.say(&["run", "--delay", "1ms", "--", "true"]);
    if said.err.is_empty() {
        return Some(lab);
    }
    skip::unable(said.err.trim());
    None
}

fn split(report: &Value, part: &str) -> f64 {
    report["time_split"][format!("{part}_ns")].as_f64().unwrap_or_else(|| panic!("no {part}")) / 1e6
}

/// Returns the commands (SMB2 command code and message id, [MS-SMB2] 2.2.1) of the requests in a capture, found by their
/// protocol id in any packet.
fn requests_in(file: &Path) -> std::collections::BTreeSet<(u16, u64)> {
    let bytes = std::fs::read(file).expect("a capture");
    let headers = bytes.windows(64).filter(|header| header.starts_with(b"\xfeSMB\x40\0") && header[16] & 1 == 0);
    headers
        .map(|header| {
            let command = u16::from_le_bytes([header[12], header[13]]);
            (command, u64::from_le_bytes(header[24..32].try_into().expect("eight bytes")))
        })
        .collect()
}

#[test]
fn a_command_is_captured_at_both_ends_even_if_it_fails() {
    let Some(lab) = lab_with_network() else { return };
    if ["smbclient", "tcpdump"].into_iter().any(|tool| Command::new(tool).arg("--version").output().is_err()) {
        skip::missing("smbclient or tcpdump is not installed");
        return;
    }
    let directory = lab.0.path().join("it's kept");
    let kept = directory.to_str().expect("UTF-8");
    let script = r#"PASSWD=$SMBSCOPE_PASSWORD smbclient "//$SMBSCOPE_LAB_HOST/share" -p "$SMBSCOPE_LAB_PORT" \
        -U "$SMBSCOPE_LAB_USER" -s "$SMBSCOPE_LAB_CONF" -c "ls;ls;ls" >/dev/null 2>&1 || exit 8; exit 5"#;
    let options = ["run", "--delay", "1ms", "--delay-to-client", "4ms", "--capture=both", "-o", kept];
    let said = lab.say(&[&options[..], &["--", "sh", "-c", script]].concat());
    let line = said.error(5);
    let files = ["client.pcap", "server.pcap"].map(|name| directory.join(name));
    let quoted = kept.replace('\'', r"'\''");
    let command = format!("captured; to read it: smbscope analyze '{quoted}/client.pcap' '{quoted}/server.pcap'");
    assert_eq!(line, command);
    let [client, server] = [0, 1].map(|at| requests_in(&files[at]));
    assert!(client.len() > 5 && client == server, "{client:?}, {server:?}");
    let keys = std::fs::read_to_string(directory.join("session.keys")).expect("keys");
    assert_eq!(keys.lines().count(), 1, "one session");
    let mut names: Vec<_> =
        std::fs::read_dir(&directory).expect("it is there").map(|it| it.expect("it").file_name()).collect();
    names.sort();
    assert_eq!(names, ["client.pcap", "server.pcap", "session.keys"]);
    assert_eq!(lab.folders(), 1, "only the captures stay");

    let mut analyze = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    analyze.args(["analyze", "-q", "--format", "json"]).args(&files).stdin(Stdio::null());
    let report: Value = serde_json::from_str(finish(analyze).output()).expect("the report is JSON");
    let between = &report["sides"]["segments"][0];
    // The shortest way there and back takes 5 ms, and more on a busy machine.
    let round_trip = between["round_trip_ns"].as_f64().expect("a time") / 1e6;
    assert!((4.9..20.0).contains(&round_trip), "{between}");
    assert_eq!((&between["only_from"], &between["only_to"]), (&0.into(), &0.into()), "{between}");
}

#[test]
fn a_capture_at_the_server_that_is_not_possible_is_refused_at_once() {
    let Some(lab) = Lab::new() else { return };
    let kept = lab.0.path().join("kept");
    let kept = kept.to_str().expect("UTF-8");
    let touched = lab.0.path().join("touched");
    let touch = ["-o", kept, "--", "touch", touched.to_str().expect("UTF-8")];
    let no_link = lab.say(&[&["run", "--capture", "both"], &touch[..]].concat());
    assert!(
        no_link.error(1).starts_with("--capture=both: it needs a link between client and server"),
        "{}",
        no_link.err
    );
    let no_directory = lab.say(&["run", "--capture=both", "--", "true"]);
    assert_eq!(no_directory.status, Some(2), "{}", no_directory.err);
    assert!(no_directory.err.contains("--output <DIR>"), "{}", no_directory.err);

    let bench = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_smbscope"));
        command.args(["bench", "-q", "--users", "1", "--capture=both"]).args(arguments).stdin(Stdio::null());
        command.env_remove("SMBSCOPE_LAB_FOLDER").env("SMBSCOPE_PASSWORD", "x");
        finish(command)
    };
    assert!(bench(&[]).error(2).starts_with("--capture=both keeps the captures of both ends"), "no directory");
    let private = bench(&["-o", kept]);
    assert!(
        private.error(1).starts_with("--capture=both: it needs a link between client and server"),
        "{}",
        private.err
    );
    let folder = bench(&["-o", kept, "file:/tmp"]);
    assert!(folder.error(1).contains("--capture needs packets"), "{}", folder.err);
    let cluster = bench(&["-o", kept, "--cluster", "local", "smb://127.0.0.1/x"]);
    assert_eq!(cluster.status, Some(2), "{}", cluster.err);
    assert!(cluster.err.contains("--capture sees no packets of other hosts"), "{}", cluster.err);
    // A server of another lab folder is not known to be one.
    let (mut child, server) = lab.spawn(&["run", "--guests", "--", "sleep", "1000"]);
    let url = format!("smb://127.0.0.1:{}/share", server["port"]);
    let unknown = bench(&["-o", kept, &url]);
    assert!(
        unknown.error(1).starts_with("--capture=both: it needs a lab server at the other end of a link"),
        "{}",
        unknown.err
    );
    signal(&child, "TERM");
    child.wait().expect("it ends");
    assert!(!touched.exists());
}

/// 20 ms each way make a round trip of 40 ms for every command. Samba runs on this machine, under load from other
/// tests: the measured round trip is 40 to 60 ms, and the server takes less than half of the network time.
#[test]
fn a_delay_of_the_lab_is_the_networks_in_a_capture_at_the_client() {
    let Some(lab) = lab_with_network() else { return };
    let gets = ["get small /dev/null"; 10].join(";");
    let Some(report) = captured(&lab, &["--delay", "20ms"], &gets) else { return };
    let trip = |side: &str| report["connections"][0][format!("{side}_round_trip_ns")].as_f64().unwrap_or(0.0);
    let round_trip = (trip("server") + trip("client")) / 1e6;
    assert!((40.0..60.0).contains(&round_trip), "{round_trip} ms");
    let (network, server) = (split(&report, "network"), split(&report, "server") + split(&report, "server_or_network"));
    // 10 × open, read and close: at least 30 round trips.
    assert!(network >= 30.0 * 40.0 && server < network / 2.0, "network {network} ms, server {server} ms");
    assert_eq!(report["answer"]["culprit"], "network", "{}", report["answer"]["headline"]);
    assert_eq!(lab.folders(), 0);
}

/// 1,000,000 bytes at 8 Mbit/s take 1 s. Some commands wait for each other's transfers.
#[test]
fn bandwidth_of_the_lab_is_transfer_in_a_capture_at_the_client() {
    let Some(lab) = lab_with_network() else { return };
    let Some(report) = captured(&lab, &["--bandwidth", "8mbit"], "get large /dev/null") else { return };
    let transfer = split(&report, "response_transfer") + split(&report, "network");
    let server = split(&report, "server") + split(&report, "server_or_network");
    assert!(transfer >= 700.0 && server < transfer / 2.0, "transfer {transfer} ms, server {server} ms");
}

/// 5% of about 200 segments. The probability of losing none is 0.95^200.
#[test]
fn loss_of_the_lab_is_retransmission_in_a_capture_at_the_client() {
    let Some(lab) = lab_with_network() else { return };
    let gets = ["get small /dev/null"; 40].join(";");
    let Some(report) = captured(&lab, &["--loss", "5%"], &gets) else { return };
    let again = |connection: &Value| {
        ["to_server", "to_client"].iter().filter_map(|side| connection[side]["retransmitted"].as_u64()).sum::<u64>()
    };
    let again: u64 = report["connections"].as_array().expect("a list").iter().map(again).sum();
    assert!(again > 0, "{}", report["connections"][0]);
}

/// setpriv(1) (util-linux) removes the capabilities for networks, as for root in a container or an ordinary user.
#[test]
fn a_proxy_is_called_one_at_the_start_and_in_the_report_of_the_run() {
    let Some(lab) = Lab::new() else { return };
    let smbscope = env!("CARGO_BIN_EXE_smbscope");
    let script = format!(
        "{smbscope} bench --users 1 --duration 1s --warmup 0s --plain --workload open-read-close $SMBSCOPE_LAB_URL"
    );
    let lab_run = lab.command(&["run", "--delay", "1ms", "--", "sh", "-c", &script]);
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-sys_admin,-net_admin", "--inh-caps=-sys_admin,-net_admin"]);
    command.arg(lab_run.get_program()).args(lab_run.get_args()).stdin(Stdio::null());
    if Command::new("setpriv")
        .args(["--bounding-set=-sys_admin", "true"])
        .output()
        .is_ok_and(|said| said.status.success())
    {
        let said = finish(command);
        assert!(
            said.err.contains("note: the lab's delay and bandwidth come from a proxy that ends TCP ("),
            "{}",
            said.err
        );
        let unwrapped = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(unwrapped.contains("Slow link: the lab's delay and bandwidth come from a proxy"), "{}", said.out);
    } else {
        skip::unable("setpriv(1) is missing, or this is not root");
    }
    let mut command = Command::new("setpriv");
    let lossy = lab.command(&["run", "--loss", "1%", "--", "true"]);
    command.args(["--bounding-set=-sys_admin,-net_admin", "--inh-caps=-sys_admin,-net_admin"]);
    command.arg(lossy.get_program()).args(lossy.get_args()).stdin(Stdio::null());
    if rustix::process::geteuid().is_root() && Command::new("setpriv").arg("--version").output().is_ok() {
        assert!(finish(command).error(1).starts_with("packets can't be lost on the way to this server: "));
    }
}

/// Forged state folder that names a process of this test as the owner of a server, as an attacker would do to have
/// another user's process killed.
struct Forged {
    state: TempDir,
    victim: Child,
}

impl Forged {
    fn new() -> Forged {
        let state = tempfile::tempdir().expect("a temporary directory can be made");
        let victim = Command::new("sleep").arg("1000").spawn().expect("there is a sleep");
        let owner = Process::find(victim.id()).expect("it lives");
        let folder = state.path().join("lab");
        std::fs::create_dir(&folder).expect("it can be made");
        let record = serde_json::json!({
            "name": "lab", "folder": folder, "share_folder": folder, "owner": owner, "detached": true, "smbd": owner,
            "port": 1445, "started": 0, "users": [], "settings": {},
        });
        std::fs::write(folder.join("state.json"), record.to_string()).expect("it can be written");
        Forged { state, victim }
    }

    /// Asserts that all verbs refuse the folder with this message and that the process survives.
    fn is_refused(&mut self, state: &Path, verbs: &[&str], why: &str) {
        for verb in verbs {
            let mut command = Command::new(env!("CARGO_BIN_EXE_smbscope"));
            command.args(["lab", verb, "--state"]).arg(state).stdin(Stdio::null());
            let said = finish(command);
            assert!(said.error(1).contains(why), "{verb}: {}", said.err);
            assert!(self.victim.try_wait().expect("it can be asked").is_none(), "{verb} ended a process");
            assert!(self.state.path().join("lab/state.json").exists(), "{verb} removed what is not its own");
        }
    }
}

impl Drop for Forged {
    fn drop(&mut self) {
        let _ended = self.victim.kill();
        let _status = self.victim.wait();
    }
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
}

const ALL_VERBS: [&str; 3] = ["status", "down", "up"];

#[test]
fn a_state_folder_that_others_can_write_to_is_not_believed() {
    let mut forged = Forged::new();
    let state = forged.state.path().to_owned();
    set_mode(&state, 0o1777);
    forged.is_refused(
        &state,
        if available().is_ok() { &ALL_VERBS } else { &ALL_VERBS[..2] },
        "can be written to by others",
    );
}

#[test]
fn a_link_to_a_state_folder_is_not_followed() {
    let mut forged = Forged::new();
    let links = tempfile::tempdir().expect("a temporary directory can be made");
    let link = links.path().join("state");
    std::os::unix::fs::symlink(forged.state.path(), &link).expect("a link can be made");
    forged.is_refused(&link, &ALL_VERBS[..2], "is a symbolic link");
}

#[test]
fn a_state_folder_of_another_user_is_not_believed() {
    let mut forged = Forged::new();
    let state = forged.state.path().to_owned();
    for path in [state.join("lab/state.json"), state.join("lab"), state.clone()] {
        // A different owner; only root can change it.
        if std::os::unix::fs::chown(&path, Some(1), Some(1)).is_err() {
            return skip::unable("only root can give folders away");
        }
    }
    forged.is_refused(
        &state,
        if available().is_ok() { &ALL_VERBS } else { &ALL_VERBS[..2] },
        "belongs to another user",
    );
}

#[test]
fn a_record_of_another_user_in_a_folder_of_ours_is_not_believed() {
    let mut forged = Forged::new();
    let state = forged.state.path().to_owned();
    if std::os::unix::fs::chown(state.join("lab/state.json"), Some(1), Some(1)).is_err() {
        return skip::unable("only root can give files away");
    }
    forged.is_refused(&state, &["down"], "no server runs in");
}

/// The record is ours and the process is alive, but it was not started to keep this server.
#[test]
fn a_process_that_keeps_no_server_is_not_ended() {
    let mut forged = Forged::new();
    let state = forged.state.path().to_owned();
    forged.is_refused(&state, &["down"], "does not own the server lab");
}

/// script(1) (util-linux) runs it in a terminal.
#[test]
fn the_password_is_shown_once_and_on_a_terminal_only() {
    let Some(lab) = Lab::new() else { return };
    let up = format!("{} lab up --state {}", env!("CARGO_BIN_EXE_smbscope"), lab.0.path().display());
    let Ok(shown) = Command::new("script").args(["-qec", &up, "/dev/null"]).stdin(Stdio::null()).output() else {
        return skip::unable("script(1) is not installed");
    };
    let server = lab.servers().remove(0);
    let password = std::fs::read_to_string(server["password_file"].as_str().expect("a path")).expect("it is there");
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains(&format!("password    {} (not shown again", password.trim())), "{shown}");
    assert!(!lab.say(&["status"]).output().contains(password.trim()));
    assert!(!lab.say(&["status", "--format", "json"]).output().contains(password.trim()));
    assert_eq!(lab.say(&["down"]).output(), "lab: stopped\n");
    assert!(!lab.say(&["up"]).output().contains("not shown again"));
    assert_eq!(lab.say(&["down"]).output(), "lab: stopped\n");
}

#[test]
fn a_keeper_is_not_started_by_hand() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    command.args(["lab", "keep"]).stdin(Stdio::null());
    assert!(finish(command).error(1).contains("not by hand"));
}

fn help(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    command.args(arguments).env("COLUMNS", "100");
    finish(command).output().to_owned()
}

#[test]
fn help_of_lab() {
    insta::assert_snapshot!(help(&["lab", "--help"]));
}

#[test]
fn help_of_lab_up() {
    insta::assert_snapshot!(help(&["lab", "up", "--help"]));
}

#[test]
fn help_of_lab_run() {
    insta::assert_snapshot!(help(&["lab", "run", "--help"]));
}
