//! Systems that refuse to start another thread or process for this user (`ulimit -u`).

use crate::common::{self, Said, bundled, contents, directory, said, write};
use smbscope_testkit::skip;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

const CAPTURE: &str = "demo-slow-server.pcap.zst";
const SAID: &str = "the system refused to start a thread (ulimit -u?): one thread did all the work, which takes longer";

/// Runs the binary with a limit on the user's threads, including its own. Skips the test and returns `None` if
/// prlimit(1) or setpriv(1) (util-linux) is missing. Root is exempt from the limit, so the test switches to another
/// user and copies the binary for it.
fn limited(place: &Path, threads: u32, arguments: &[&str]) -> Option<Said> {
    // The limit counts all of the user's processes, so only one test may run at a time.
    static ALONE: Mutex<()> = Mutex::new(());
    let _guard = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let binary = place.join("smbscope");
    // Copied by a separate process. If this process wrote the file, a child forked by another test could inherit the
    // open file, and executing the copy would fail (ETXTBSY).
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_smbscope")).arg(&binary).status().expect("cp runs");
    assert!(copied.success());
    let is_root = rustix::process::geteuid().is_root();
    let mut command = Command::new(if is_root { "setpriv" } else { "prlimit" });
    if is_root {
        command.args(["--reuid", "65533", "--clear-groups", "prlimit"]);
    }
    command.arg(format!("--nproc={threads}")).arg(binary).args(arguments).current_dir(place).stdin(Stdio::null());
    let output = command.output().ok();
    if output.is_none() {
        skip::unable("setpriv(1) or prlimit(1) is missing");
    }
    output.map(said)
}

/// Creates a folder with a capture that all users can enter.
fn place(test: &str) -> tempfile::TempDir {
    let place = tempfile::Builder::new().prefix(test).tempdir().expect("a temporary directory can be made");
    std::fs::set_permissions(place.path(), PermissionsExt::from_mode(0o755)).expect("it is ours");
    std::fs::copy(bundled(CAPTURE), place.path().join(CAPTURE)).expect("it can be copied");
    write(place.path(), "plain.pcap", contents(CAPTURE));
    place
}

#[test]
fn what_can_have_no_threads_does_all_the_work_on_one_and_says_so() {
    let place = place("threads-");
    let free = directory("threads-free");
    write(&free, "plain.pcap", contents(CAPTURE));
    let reports = ["json", "csv"].map(|format| common::analyze(&free, &["plain.pcap", "--format", format]).out);
    for threads in [1, 2] {
        for (format, report) in ["json", "csv"].iter().zip(&reports) {
            let arguments = ["analyze", "plain.pcap", "--format", format, "--threads", "4"];
            let Some(said) = limited(place.path(), threads, &arguments) else { return };
            assert_eq!(said.status, Some(0), "{}", said.err);
            assert_eq!(said.err.matches(SAID).count(), 1, "{}", said.err);
            assert_eq!(&said.out, report, "{format} with {threads}");
        }
        // A recording has one worker, and the main thread and the signal thread already reach the limit of two. A thread
        // that decompresses a capture could start instead of the signal thread and end before the worker starts.
        for arguments in
            [&["record", "plain.pcap", "--threads", "4"][..], &["compare", CAPTURE, "plain.pcap", "--threads", "4"]]
        {
            let Some(said) = limited(place.path(), threads, arguments) else { return };
            assert_eq!(said.status, Some(0), "{}", said.err);
            assert!(said.err.contains(SAID) && !said.out.is_empty(), "{arguments:?}: {}", said.err);
        }
    }
}

#[test]
fn a_load_without_threads_is_one_line_of_error() {
    let place = place("threads-");
    let arguments = ["bench", "--workload", "echo", "--no-prepare", "--duration", "1s", "-q", "file:."];
    let Some(said) = limited(place.path(), 1, &arguments) else { return };
    let error = said.error(1);
    assert!(error.contains("thread"), "{error}");
}
