//! Servers of the tests' own, and a client that nobody here wrote.
#![allow(dead_code)] // Each test file uses its own part.

use smbscope_lab::{LabDialect, LabServer, LabServerSettings, Process, StateFolder, available};
use smbscope_testkit::skip;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// A server, or a line that says why the test is skipped.
pub(crate) fn server(settings: &LabServerSettings) -> Option<LabServer> {
    if let Err(why) = available() {
        skip::missing(why);
        return None;
    }
    Some(LabServer::start(settings).expect("Samba is there, and starts"))
}

/// A state folder of the test's own.
pub(crate) fn state() -> Option<(tempfile::TempDir, StateFolder)> {
    if let Err(why) = available() {
        skip::missing(why);
        return None;
    }
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let state = StateFolder::new(directory.path()).expect("the path is absolute");
    Some((directory, state))
}

/// Who logs in.
pub(crate) enum As<'a> {
    Guest,
    User(&'a str, &'a str),
}

/// What `smbclient` says to these commands; `None`, with a line, where there is no smbclient.
pub(crate) fn smbclient(
    server: &LabServer,
    share: &str,
    who: As<'_>,
    dialect: LabDialect,
    commands: &str,
) -> Option<Output> {
    let mut client = Command::new("smbclient");
    client.arg(format!("//{}/{share}", server.address().ip())).args(["-p", &server.port().to_string(), "-c", commands]);
    client.arg("-s").arg(server.folder().join("smb.conf")).args(["-m", dialect.samba_name()]);
    match who {
        As::Guest => client.arg("--no-pass"),
        As::User(user, password) => client.args(["--user", user]).env("PASSWD", password),
    };
    match client.output() {
        Ok(output) => Some(output),
        Err(_absent) => {
            skip::missing("smbclient is not installed");
            None
        }
    }
}

/// What it said, on whichever stream.
pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Waits until it is so; `false` if that takes longer than half a minute.
pub(crate) fn eventually(so: impl Fn() -> bool) -> bool {
    let patience = Instant::now() + Duration::from_secs(30);
    while !so() {
        if Instant::now() > patience {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

/// Whether one of these processes lives.
pub(crate) fn any_lives(pids: &[u32]) -> bool {
    pids.iter().any(|pid| Process::find(*pid).is_some())
}
