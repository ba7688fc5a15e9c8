//! Runs a script against a private server and returns the causes found in its capture.

use crate::common::{directory, finish};
use serde_json::Value;
use smbscope_diagnose::Catalogue;
use smbscope_lab::available;
use smbscope_testkit::skip;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// Shell functions for scripts: `captured COMMAND…` captures a command; `client COMMANDS` runs smbclient with
/// `$OPTIONS`; `load` runs `smbscope bench` with `$USERS` users (default 1) for `$TIME` (default 60 s); `files NUMBER
/// DIRECTORY NAME` and `file NAME BYTES` create files on the share.
const PRELUDE: &str = r#"set -u
    export PASSWD="$SMBSCOPE_PASSWORD"
    SHARE=share OPTIONS= CLIENT="smbclient -p $SMBSCOPE_LAB_PORT -U $SMBSCOPE_LAB_USER -s $SMBSCOPE_LAB_CONF"
    HERE="$SMBSCOPE_LAB_SHARE_FOLDER"
    captured() {
        tcpdump -i "$SMBSCOPE_LAB_INTERFACE" -U -Z root -B 65536 -w "$CAPTURE" "tcp port $SMBSCOPE_LAB_PORT" \
            2>"$CAPTURE.log" & tcpdump=$!
        until grep -qs 'listening on' "$CAPTURE.log"; do kill -0 $tcpdump || exit 9; sleep 0.05; done
        "$@" >"$CAPTURE.said" 2>&1
        sleep 1.5; kill -INT $tcpdump; wait $tcpdump
    }
    client() { $CLIENT "//$SMBSCOPE_LAB_HOST/$SHARE" $OPTIONS -c "$1"; }
    load() { "$SMBSCOPE" bench --quiet --plain --warmup 0s --duration "${TIME:-60s}" --users "${USERS:-1}" "$@" "$SMBSCOPE_LAB_URL"; }
    files() { mkdir -p "$HERE/$2"; (cd "$HERE/$2" && seq -f "$3%05g" 1 "$1" | xargs touch); chmod -R a+rwX "$HERE"; }
    file() { head -c "$2" /dev/urandom >"$HERE/$1"; chmod a+rw "$HERE/$1"; }
"#;

/// Thresholds under which every cost counts as slow, because scenes are short.
pub(crate) const EVERYTHING: &str = "wait=1ms,each=1us,share=1%";

/// Script and the lab options for its server.
pub(crate) struct Run<'a> {
    pub(crate) lab: &'a [&'a str],
    pub(crate) script: &'a str,
}

pub(crate) fn plain(script: &str) -> Run<'_> {
    Run { lab: &[], script }
}

pub(crate) fn on<'a>(lab: &'a [&'a str], script: &'a str) -> Run<'a> {
    Run { lab, script }
}

/// Returns the directory with the capture of a run.
pub(crate) fn directory_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("causes-{name}"))
}

/// Analyses a capture.
pub(crate) fn report(capture: &Path) -> Value {
    let mut analyze = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    analyze.args(["analyze", "-q", "--format", "json", "--slow", EVERYTHING]).arg(capture).stdin(Stdio::null());
    let said = finish(analyze);
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {}", said.err))
}

/// Returns the causes and notes of a report.
pub(crate) fn told(report: &Value) -> impl Iterator<Item = &Value> {
    ["causes", "notes"].into_iter().flat_map(|list| report["answer"][list].as_array().expect("a list"))
}

/// Returns the keys of the causes and notes without duplicates, in order.
pub(crate) fn hits(report: &Value) -> Vec<&str> {
    let mut hits = Vec::new();
    for cause in told(report) {
        let also = cause["also"].as_array().into_iter().flatten().filter_map(|title| key_of(title.as_str()?));
        for id in cause["id"].as_str().into_iter().chain(also) {
            if !hits.contains(&id) {
                hits.push(id);
            }
        }
    }
    hits
}

/// Looks up the key of a cause by its title.
pub(crate) fn key_of(title: &str) -> Option<&'static str> {
    static KEYS: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
        let catalogue = Catalogue::default();
        catalogue.entries().map(|(id, entry)| (entry.title.to_owned(), id.to_owned())).collect()
    });
    KEYS.iter().find(|(known, _)| known == title).map(|(_, id)| id.as_str())
}

/// Returns false, and skips the test, if Samba, smbclient or tcpdump is missing.
pub(crate) fn is_possible() -> bool {
    if let Err(why) = available() {
        skip::missing(why);
        return false;
    }
    ["smbclient", "tcpdump"].into_iter().all(skip::has)
}

impl Run<'_> {
    /// Runs the script and analyses its capture. Skips the test and returns `None` if capturing is not possible.
    pub(crate) fn report(&self, name: &str) -> Option<Value> {
        let folder = directory(&format!("causes-{name}"));
        let capture = folder.join("client.pcap");
        let mut command = Command::new(env!("CARGO_BIN_EXE_smbscope"));
        command.args(["lab", "run", "--state"]).arg(folder.join("lab")).args(self.lab);
        command.args(["--", "sh", "-c", &[PRELUDE, self.script].concat()]).stdin(Stdio::null());
        command.env("SMBSCOPE", env!("CARGO_BIN_EXE_smbscope")).env("CAPTURE", &capture);
        let said = finish(command);
        let read = |end: &str| std::fs::read_to_string(folder.join(format!("client.pcap.{end}"))).unwrap_or_default();
        // Without root, the link is a proxy that can't lose packets. A slow disk needs FUSE.
        let needs_root = ["proxy", "can't be lost", "(FUSE)"].iter().any(|reason| said.err.contains(reason));
        if said.status == Some(9) || needs_root {
            skip::unable(format_args!("{name}: {} {}", said.err.trim(), read("log")));
            return None;
        }
        assert_eq!(said.status, Some(0), "{name}: {}{}{}", said.err, said.out, read("said"));
        Some(report(&capture))
    }
}

/// Asserts that the positive run has the finding and the negative run does not.
pub(crate) fn provoked(id: &str, positive: &Run<'_>, negative: &Run<'_>) {
    if !is_possible() {
        return;
    }
    let Some(found) = positive.report(&format!("{id}-positive")) else { return };
    let Some(healthy) = negative.report(&format!("{id}-negative")) else { return };
    let sentence = |cause: &Value| format!("{}: {} {}", cause["id"], cause["sentence"], cause["cost"]);
    let sentences = |report: &Value| told(report).map(sentence).collect::<Vec<_>>().join("\n  ");
    println!("{id} | {} | {}", hits(&found).join(", "), hits(&healthy).join(", "));
    assert!(hits(&found).contains(&id), "not found; but:\n  {}", sentences(&found));
    assert!(!hits(&healthy).contains(&id), "found in a healthy load:\n  {}", sentences(&healthy));
    assert!(healthy["totals"]["commands"].as_u64() > Some(3), "nothing was captured of the healthy load");
    // Deletes the captures, which are large and only needed after a failure.
    for end in ["positive", "negative"] {
        let _empty = directory(&format!("causes-{id}-{end}"));
    }
}
