//! `smbscope launch`: end of a launch, clean-up, and waiting time for a real server.

use crate::common::{Said, directory, finish, table, write};
use smbscope_lab::available;
use smbscope_testkit::skip;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Returns a command that keeps its temporary files in the test's folder.
fn smbscope(folder: &Path, arguments: &[&str]) -> Command {
    let temporary = folder.join("tmp");
    fs::create_dir_all(&temporary).expect("a folder can be made");
    let mut command = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    command.arg("launch").args(arguments).current_dir(folder).env("TMPDIR", temporary).env_remove("NO_COLOR");
    command.stdin(Stdio::null());
    command
}

fn launch(folder: &Path, arguments: &[&str]) -> Said {
    finish(smbscope(folder, arguments))
}

#[test]
fn the_password_of_the_share_is_not_handed_to_the_program() {
    let folder = directory("launch-password");
    let mut command = smbscope(&folder, &["--format", "json", "--", "sh", "-c", "test -z \"$SMBSCOPE_PASSWORD\""]);
    command.env("SMBSCOPE_PASSWORD", "secret");
    let said = finish(command);
    assert_eq!(said.status, Some(0), "{}", said.err);
}

fn left_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("tmp")).expect("the folder is there");
    entries.map(|entry| entry.expect("it can be read").path()).collect()
}

fn document(said: &Said) -> serde_json::Value {
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {} {}", said.out, said.err))
}

/// Returns elapsed and waited time of each launch in nanoseconds.
fn launches(document: &serde_json::Value) -> Vec<(i64, Option<i64>)> {
    let list = document["runs"][0]["jobs"]["list"].as_array().expect("launches");
    list.iter().map(|job| (job["elapsed_ns"].as_i64().expect("a time"), job["waited_ns"].as_i64())).collect()
}

#[test]
fn a_launch_ends_with_the_program_and_leaves_nothing() {
    let folder = directory("launch-exit");
    fs::create_dir(folder.join("content")).unwrap();
    write(&folder, "content/a", "text");
    let program = "test \"$(cat \"$1/a\")\" = text && test -z \"$(ls -A \"$2\")\" && sleep 0.05 && touch \"$2/b\"";
    let arguments = ["--repetitions", "3", "--content", "content", "--format", "json", "--"];
    let said = launch(&folder, &[&arguments[..], &["sh", "-c", program, "sh", "{folder}", "{local}"]].concat());
    assert_eq!(said.status, Some(0), "{}", said.err);
    let document = document(&said);
    let launches = launches(&document);
    assert_eq!(launches.len(), 3);
    // The program sleeps for 50 ms.
    assert!(launches.iter().all(|(elapsed, waited)| *elapsed >= 50_000_000 && *waited == Some(0)), "{launches:?}");
    assert_eq!(document["launch"]["program"], "sh");
    assert_eq!(left_in(&folder), Vec::<PathBuf>::new());
}

#[test]
fn warm_ups_are_launches_that_are_not_measured() {
    let folder = directory("launch-warmup");
    let program = "echo $SMBSCOPE_LAUNCH >> launches";
    for (warmup, started) in [("0", "1\n2\n"), ("3", "0\n0\n0\n1\n2\n")] {
        let given = ["--warmup-launches", warmup, "--repetitions", "2", "--format", "json", "--", "sh", "-c", program];
        let said = launch(&folder, &given);
        assert_eq!(launches(&document(&said)).len(), 2);
        assert_eq!(said.err.matches("warm-up: ").count(), warmup.parse::<usize>().unwrap(), "{}", said.err);
        assert_eq!(fs::read_to_string(folder.join("launches")).unwrap(), started);
        fs::remove_file(folder.join("launches")).unwrap();
    }
}

#[test]
fn launches_before_one_that_fails_are_kept() {
    let folder = directory("launch-fails");
    let program = "echo no such mailbox >&2; test $SMBSCOPE_LAUNCH -lt 3";
    let said = launch(&folder, &["-q", "-o", "out", "--repetitions", "5", "--", "sh", "-c", program]);
    assert_eq!(said.status, Some(1));
    assert!(said.err.contains("the program failed (exit status: 1): no such mailbox"), "{}", said.err);
    let run: serde_json::Value = serde_json::from_slice(&fs::read(folder.join("out/run.json")).unwrap()).unwrap();
    assert_eq!(launches(&run).len(), 2);
    assert_eq!(run["runs"][0]["ended"]["how"], "failed");
}

#[test]
fn a_line_a_file_or_a_port_ends_a_launch_before_the_program_does() {
    let folder = directory("launch-until");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let before = ["-q", "--repetitions", "1", "--launch-timeout", "20s", "--linger", "0s", "--format", "json"];
    let run = |until: &[&str], program: &str| {
        let command = ["--", "sh", "-c", program, "sh", "{folder}", "{local}"];
        launch(&folder, &[&before[..], until, &command].concat())
    };
    for (until, program) in [
        (["--line", "ready"], "sleep 0.05; echo now ready; exec sleep 600"),
        (["--file", "{local}/up"], "sleep 0.05; touch \"$2/up\"; exec sleep 600"),
    ] {
        let said = run(&until, program);
        assert_eq!(said.status, Some(0), "{}", said.err);
        let [(elapsed, _)] = launches(&document(&said))[..] else { panic!("{}", said.out) };
        assert!((50_000_000..20_000_000_000).contains(&elapsed), "{elapsed}");
    }
    let said = run(&["--listen-port", &port], "exec sleep 600");
    assert!(said.error(1).contains("exists before the launch"), "{}", said.err);
    let said = run(&["--line", "never"], "echo other");
    assert!(said.err.contains("without a line with \"never\": other"), "{}", said.err);
    let said = launch(&folder, &["--", "no-such-program-at-all"]);
    assert!(said.err.contains("cannot start no-such-program-at-all: there is no such program"), "{}", said.err);
    assert_eq!(left_in(&folder), Vec::<PathBuf>::new());
}

#[test]
fn what_goes_together_badly_is_refused() {
    let folder = directory("launch-arguments");
    for (arguments, said) in [
        (&["--capture", "--", "true"][..], "--capture needs a server"),
        (&["--server", "files", "--", "true"], "--server needs a local folder"),
        (&["--line", "a", "--listen-port", "80", "--", "true"], "cannot be used with"),
        (&["--target", "lab", "--dialect", "nt1", "--mount", "rclone", "--", "true"], "rclone cannot speak SMB1"),
    ] {
        let found = launch(&folder, arguments);
        assert!(matches!(found.status, Some(1 | 2)) && found.err.contains(said), "{arguments:?}: {}", found.err);
    }
}

#[test]
fn a_window_ends_a_launch() {
    if !skip::has("Xvfb") || !skip::has("xmessage") {
        return;
    }
    let folder = directory("launch-window");
    let mut display = Command::new("Xvfb");
    display.args(["-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp", "-noreset"]);
    let mut display = display.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("Xvfb starts");
    let mut number = String::new();
    let stdout = display.stdout.take().expect("its output");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut number).expect("the display's number");
    let name = format!(":{}", number.trim());
    let mut command = smbscope(&folder, &["-q", "--repetitions", "2", "--launch-timeout", "30s", "--format", "json"]);
    command.args(["--window", "Inbox of Ann", "--", "sh", "-c"]);
    command.args(["sleep 0.1; exec xmessage -title 'Inbox of Ann' hello"]).env("DISPLAY", &name);
    let said = finish(command);
    let other = finish({
        let mut command = smbscope(&folder, &["-q", "--repetitions", "1", "--launch-timeout", "1s"]);
        command.args(["--window", "Inbox of Bob", "--", "xmessage", "-title", "Inbox of Ann", "hello"]);
        command.env("DISPLAY", &name);
        command
    });
    display.kill().and_then(|()| display.wait()).expect("Xvfb ends");
    assert_eq!(said.status, Some(0), "{}", said.err);
    let launches = launches(&document(&said));
    assert!(launches.len() == 2 && launches.iter().all(|(elapsed, _)| *elapsed >= 100_000_000), "{launches:?}");
    assert!(other.err.contains("no window with \"Inbox of Bob\" within 1s"), "{}", other.err);
}

/// Returns false, and skips the test, if a tool for mounting a share is missing.
fn can_mount(mounter: &str) -> bool {
    if let Err(why) = available() {
        skip::missing(why);
        return false;
    }
    if !Path::new("/dev/fuse").exists() {
        skip::unable("there is no /dev/fuse");
        return false;
    }
    let helper = if mounter == "rclone" { "fusermount" } else { mounter };
    skip::has(mounter) && skip::has(helper) && skip::has("tcpdump")
}

/// Launches a program that reads 20 files of 10,000 bytes from a private server. Returns the folder with the results.
fn from_a_share(name: &str, [mounter, dialect, encryption]: [&str; 3], negotiated: &str) -> Option<PathBuf> {
    if !can_mount(mounter) {
        return None;
    }
    let folder = directory(&format!("launch-{name}"));
    fs::create_dir(folder.join("content")).unwrap();
    (0..20).for_each(|n| write(&folder, &format!("content/f{n}"), vec![b'x'; 10_000]));
    let mut command =
        smbscope(&folder, &["--target", "lab", "--dialect", dialect, "--mount", mounter, "--capture", "-o", "out"]);
    command.args(["--encryption", encryption]);
    command.args(["--content", "content", "--repetitions", "2", "--format", "json", "-q"]);
    command.args(["--before", "echo 1 > /proc/sys/vm/drop_caches 2>/dev/null || true"]);
    // At this point no file contains the password of the share any more.
    let program = "test $(cat \"$1\"/f* | wc -c) = 200000 && ls \"$TMPDIR\"/*/mount && ! ls \"$TMPDIR\"/*/mount/.smb/smbnetfs.conf";
    command.args(["--", "sh", "-c", program, "sh", "{folder}"]);
    let said = finish(command);
    if said.err.contains("did not mount the share") && said.err.contains("fuse") {
        skip::unable(&said.err);
        return None;
    }
    assert_eq!(said.status, Some(0), "{}", said.err);
    let document = document(&said);
    assert_eq!(document["target"]["dialect"], negotiated);
    let capture = &document["runs"][0]["capture"];
    if capture["state"] == "skipped" {
        skip::unable(capture);
        return None;
    }
    let launches = launches(&document);
    assert_eq!(launches.len(), 2);
    for (elapsed, waited) in launches {
        let waited = waited.expect("it was captured");
        assert!(waited > 0 && waited <= elapsed, "{waited} of {elapsed}");
    }
    // The mount may cache data of earlier reads, but still queries names.
    assert!(document["runs"][0]["operations"].as_u64() >= Some(2), "{}", document["runs"][0]["groups"]);
    assert!(folder.join("out/point-01-1-users.pcap").exists());
    assert_eq!(left_in(&folder), Vec::<PathBuf>::new());
    Some(folder.join("out"))
}

#[test]
fn what_a_program_waits_for_a_share_is_seen_over_smb_3() {
    from_a_share("rclone", ["rclone", "3.1.1", "off"], "3.1.1");
}

#[test]
fn an_encrypted_launch_is_timed_and_its_keys_stay_beside_its_capture() {
    let Some(results) = from_a_share("encrypted", ["smbnetfs", "3.1.1", "required"], "3.1.1") else { return };
    let keys = results.join("point-01-1-users.keys");
    let mode = fs::metadata(&keys).expect("there are keys").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut command = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    command.args(["analyze", "-q", "--format", "csv", "--keys"]).arg(keys).arg(results.join("point-01-1-users.pcap"));
    let (header, rows) = table(&finish(command).out);
    let at = |name: &str| header.iter().position(|column| column == name).expect("the column is there");
    let (path, encrypted) = (at("path"), at("encrypted"));
    assert!(
        rows.iter().any(|row| row[encrypted] == "true" && row[path].ends_with("f7")),
        "names of decrypted commands"
    );
}

#[test]
fn what_a_program_waits_for_a_share_is_seen_over_smb1() {
    if let Some(results) = from_a_share("smb1", ["smbnetfs", "nt1", "off"], "NT LM 0.12") {
        assert!(!results.join("point-01-1-users.keys").exists(), "SMB1 has no decryption keys");
    }
}

/// Stops the program that mounts the share, as one that hangs in a rename, and then renames a file there. Only the end of
/// the mount ends that rename.
#[test]
fn a_program_that_hangs_in_the_share_ends_with_its_mount() {
    if !can_mount("rclone") {
        return;
    }
    let folder = directory("launch-hangs");
    let stop = r#"touch "$1/a"; for file in /proc/[0-9]*/cmdline; do for word in $(tr '\0' ' ' <"$file" 2>/dev/null); do
        case "$word" in */mount/share) case "$1" in "$word"/*) pid=${file#/proc/}; kill -STOP "${pid%/cmdline}";; esac;; esac
        done; done; mv "$1/a" "$1/b""#;
    let mut command = smbscope(&folder, &["--target", "lab", "--mount", "rclone", "--launch-timeout", "2s", "-q"]);
    command.args(["--repetitions", "1", "--", "sh", "-c", stop, "sh", "{folder}"]);
    let begun = Instant::now();
    let said = finish(command);
    if said.err.contains("did not mount the share") && said.err.contains("fuse") {
        return skip::unable(&said.err);
    }
    assert_eq!(said.status, Some(1), "{}", said.err);
    assert!(said.err.contains("the program hung in the mounted share"), "{}", said.err);
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    assert!(!fs::read_to_string("/proc/self/mounts").unwrap().contains(&folder.display().to_string()));
}

/// Waits until a condition holds. Panics after 60 s.
fn within(what: &str, holds: &dyn Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what} did not come true");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A daemon leaves the program's process group, so it gets no signal at the end of the command.
#[test]
fn the_next_launch_removes_what_a_killed_one_left_and_nothing_else() {
    let folder = directory("launch-killed-local");
    fs::create_dir(folder.join("content")).unwrap();
    write(&folder, "content/secret", "text");
    fs::create_dir(folder.join("place")).unwrap();
    let program = "setsid sleep 600 & echo $! > pid.new && mv pid.new pid; exec sleep 600";
    let arguments = ["-q", "--content", "content", "--target", "file:place", "--", "sh", "-c", program];
    let mut child = smbscope(&folder, &arguments).stderr(Stdio::null()).spawn().expect("the binary runs");
    within("the launch", &|| folder.join("pid").exists());
    let daemon: u32 = fs::read_to_string(folder.join("pid")).unwrap().trim().parse().unwrap();
    child.kill().and_then(|()| child.wait()).expect("it is killed");
    let daemon = smbscope_lab::Process::find(daemon).expect("it has not been told");
    let in_place = || fs::read_dir(folder.join("place")).unwrap().count();
    assert_eq!((left_in(&folder).len(), in_place()), (1, 1));
    write(&folder, "tmp/of somebody else", "");
    write(&folder, "place/of somebody else", "");
    let said = launch(&folder, &["-q", "--content", "content", "--target", "file:place", "--", "true"]);
    assert_eq!(said.status, Some(0), "{}", said.err);
    assert!(said.err.contains("an earlier run was killed: what it left"), "{}", said.err);
    assert!(!daemon.lives());
    assert_eq!(left_in(&folder), [folder.join("tmp/of somebody else")]);
    assert_eq!((in_place(), folder.join("place/of somebody else").exists()), (1, true));
}

#[test]
fn a_killed_series_leaves_no_program_and_no_mount() {
    if !can_mount("rclone") {
        return;
    }
    let folder = directory("launch-killed");
    let mut command = smbscope(&folder, &["--target", "lab", "-q", "--"]);
    command.args(["sh", "-c", "echo $$ > pid.new && mv pid.new pid; exec sleep 600"]).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    let pid = folder.join("pid");
    within("the launch", &|| pid.exists() || smbscope_lab::Process::find(child.id()).is_none());
    if !pid.exists() {
        let output = child.wait_with_output().expect("it ended");
        return skip::unable(String::from_utf8_lossy(&output.stderr));
    }
    let program: u32 = fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
    let temporary = folder.join("tmp").display().to_string();
    let is_mounted = || fs::read_to_string("/proc/self/mounts").unwrap().contains(&temporary);
    assert!(is_mounted() && smbscope_lab::Process::find(program).is_some());
    child.kill().and_then(|()| child.wait()).expect("it is killed");
    within("the end of the program", &|| smbscope_lab::Process::find(program).is_none());
    within("the end of the mount", &|| !is_mounted());
    assert_eq!(launch(&folder, &["-q", "--", "true"]).status, Some(0));
    assert_eq!(left_in(&folder), Vec::<PathBuf>::new());
}
