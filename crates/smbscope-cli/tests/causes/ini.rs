//! The INI file case: a client reads its settings one at a time, alone and next to users with think time.

use crate::causes::scene::{EVERYTHING, Run, directory_of, hits, is_possible, plain};
use crate::common::finish;
use smbscope_model::Nanos;
use smbscope_model::prose::span;
use smbscope_testkit::skip;
use std::process::Command;

/// 3,000 settings, each with its own open, read and close.
const SETTINGS: &str = "load --workload ini --set settings=3000 --set read=4KiB --passes 1";

/// Relay that connects from 127.0.0.7, which becomes the client's address in the capture.
const RELAY: &str = r#"python3 -c 'import os, socket, sys, threading
def pump(a, b):
    try:
        while data := a.recv(65536): b.sendall(data)
    finally: b.close()
listener = socket.create_server(("127.0.0.1", 0))
open(sys.argv[1], "w").write(str(listener.getsockname()[1]))
while True:
    one = listener.accept()[0]
    other = socket.create_connection(("127.0.0.1", int(os.environ["SMBSCOPE_LAB_PORT"])), source_address=("127.0.0.7", 0))
    for each in (one, other): each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for pair in ((one, other), (other, one)): threading.Thread(target=pump, args=pair, daemon=True).start()
' "$CAPTURE.relay" & relay=$!
until [ -s "$CAPTURE.relay" ]; do sleep 0.05; done
URL="smb://$SMBSCOPE_LAB_USER@127.0.0.1:$(cat "$CAPTURE.relay")/share"
"#;

/// Returns the first screen of the text report on a capture, with line breaks removed.
fn first_screen(name: &str) -> String {
    let capture = directory_of(name).join("client.pcap");
    let mut analyze = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    analyze.args(["analyze", "--quiet", "--slow", EVERYTHING]).arg(capture).env("COLUMNS", "100");
    let said = finish(analyze);
    assert_eq!(said.status, Some(0), "{}", said.err);
    let screen: Vec<&str> = said.out.lines().take(24).collect();
    screen.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Asserts that the first screen names the client, the file, the number of reads, the cost and the remedy.
fn is_the_headline(name: &str, run: &Run<'_>, client: &str) {
    let Some(report) = run.report(name) else { return };
    let first = &report["answer"]["causes"][0];
    assert_eq!(
        (first["id"].as_str(), first["subject"]["client"].as_str()),
        (Some("ini-pattern"), Some(client)),
        "{first}"
    );
    assert_eq!(hits(&report)[0], "ini-pattern");
    let path = first["subject"]["path"].as_str().expect("the file has a name");
    let file = path.rsplit('\\').next().expect("a path has a last part");
    let screen = first_screen(name);
    for part in [
        client,
        file,
        " 3,000 times in ",
        ", one at a time, 3 commands each",
        "Have the application read the file once",
    ] {
        assert!(screen.contains(part), "{part:?} is not on the first screen: {screen}");
    }
    // Lost time, formatted as in report sentences.
    let lost = Nanos(first["lost_ns"]["best"].as_i64().expect("it costs time"));
    let seconds = format!("lost {}", span(lost).replace('\u{a0}', " "));
    assert!(lost > Nanos(100_000_000) && screen.contains(&seconds), "{seconds:?} is not on the first screen: {screen}");
}

#[test]
fn settings_read_one_by_one_are_the_headline() {
    if is_possible() {
        is_the_headline("ini-alone", &plain(&format!("{SETTINGS}; captured {SETTINGS}")), "127.0.0.1");
    }
}

/// Six users open documents with a mean think time of 6 s.
#[test]
fn settings_read_one_by_one_are_the_headline_beside_users_who_think() {
    if !is_possible() || !skip::has("python3") {
        return;
    }
    let script = format!(
        r#"{RELAY}cat >"$CAPTURE.toml" <<'END'
name = "documents"
think = {{ exponential = "6s" }}
[files]
count = 20
size = "100KB"
[[operation]]
name = "read a document"
steps = [{{ do = "open_read_close", file = "random", length = 65536 }}]
END
        TIME=1s USERS=6; load --workload "$CAPTURE.toml"
        USERS=1 TIME=60s; mkdir "$HERE/settings"; chmod a+rwx "$HERE/settings"
        SMBSCOPE_LAB_URL="$URL/settings" {SETTINGS}
        beside() {{
            "$SMBSCOPE" bench --quiet --plain --warmup 0s --duration 12s --users 6 --workload "$CAPTURE.toml"                 "$SMBSCOPE_LAB_URL" & users=$!
            sleep 3
            SMBSCOPE_LAB_URL="$URL/settings" {SETTINGS}
            wait $users
        }}
        captured beside; kill $relay"#
    );
    is_the_headline("ini-beside", &plain(&script), "127.0.0.7");
}
