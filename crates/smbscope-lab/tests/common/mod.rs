//! Private servers for tests, and Samba's client.
#![allow(dead_code)] // Each test file uses its own part.

use smbscope_lab::{LabDialect, LabServer, LabServerSettings, Process, StateFolder, available};
use smbscope_testkit::skip;
use std::process::{Command, Output};

/// Starts a server, or reports the test as skipped.
pub(crate) fn server(settings: &LabServerSettings) -> Option<LabServer> {
    if let Err(why) = available() {
        skip::missing(why);
        return None;
    }
    Some(LabServer::start(settings).expect("Samba is there, and starts"))
}

/// Returns a private state folder.
pub(crate) fn state() -> Option<(tempfile::TempDir, StateFolder)> {
    if let Err(why) = available() {
        skip::missing(why);
        return None;
    }
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let state = StateFolder::new(directory.path()).expect("the path is absolute");
    Some((directory, state))
}

pub(crate) enum As<'a> {
    Guest,
    User(&'a str, &'a str),
}

/// Runs `smbclient` commands. Returns `None`, after reporting a skip, if it is not installed.
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

/// Returns standard output and standard error.
pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Returns true if any of the processes is alive.
pub(crate) fn any_lives(pids: &[u32]) -> bool {
    pids.iter().any(|pid| Process::find(*pid).is_some())
}
