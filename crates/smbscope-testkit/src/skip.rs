//! Skips tests that need something the machine may lack: a server, a tool, a privilege.
//!
//! A skipped test prints a line that the test harness does not capture. So that nothing is skipped unnoticed, CI sets
//! `SMBSCOPE_MISSING=fail`, which turns the absence of anything that `make setup` installs into a failure.
//! `SMBSCOPE_SKIPPED=FILE` collects the lines; `make test` shows them at its end.

use std::fmt::Display;
use std::io::Write;

/// Reports that something installed by `make setup` is missing; fails with `SMBSCOPE_MISSING=fail`.
pub fn missing(what: impl Display) {
    let must_be_there = std::env::var_os("SMBSCOPE_MISSING").is_some_and(|value| value == "fail");
    assert!(!must_be_there, "SMBSCOPE_MISSING=fail, and this is missing: {what}");
    unable(what);
}

/// Reports that something is missing that `make setup` does not install: a privilege, a feature of the machine, an
/// optional program, a large file.
pub fn unable(why: impl Display) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let line = format!("skipped: {test}: {why}\n");
    // Written to stderr directly, because the harness captures the output of passing tests. Nothing may be reading it.
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(file) = std::env::var_os("SMBSCOPE_SKIPPED") {
        let opened = std::fs::OpenOptions::new().create(true).append(true).open(&file);
        let written = opened.and_then(|mut file| file.write_all(line.as_bytes()));
        written.unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
    }
}

/// Returns true if a program that `make setup` installs can be run; otherwise reports it with [`missing`].
pub fn has(program: &str) -> bool {
    runs(program) || {
        missing(format_args!("{program} is not installed"));
        false
    }
}

/// Returns true if an optional program can be run; otherwise reports it with [`unable`].
pub fn has_optional(program: &str) -> bool {
    runs(program) || {
        unable(format_args!("{program} is not installed"));
        false
    }
}

fn runs(program: &str) -> bool {
    std::process::Command::new(program).arg("--version").output().is_ok()
}
