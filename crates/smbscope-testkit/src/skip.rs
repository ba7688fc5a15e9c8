//! Tests that need what a machine may not have: a server, a tool, a right.
//!
//! A test that can't run says so in a line that the test harness does not keep back, and ends. That must not go unseen
//! where everything should be there: with `SMBSCOPE_MISSING=fail`, as in CI, what `make setup` installs has to be there,
//! and its absence is a failure. `SMBSCOPE_SKIPPED=FILE` collects the lines, which `make test` shows at its end.

use std::fmt::Display;
use std::io::Write;

/// The test lacks something that `make setup` installs; a failure where that was done for certain.
pub fn missing(what: impl Display) {
    let must_be_there = std::env::var_os("SMBSCOPE_MISSING").is_some_and(|value| value == "fail");
    assert!(!must_be_there, "SMBSCOPE_MISSING=fail, and this is missing: {what}");
    unable(what);
}

/// The test lacks what set-up does not install: a right, a feature of the machine, an optional program, a large file.
pub fn unable(why: impl Display) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let line = format!("skipped: {test}: {why}\n");
    // Past the test harness, which keeps what passing tests print. Nobody may be there to read it.
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(file) = std::env::var_os("SMBSCOPE_SKIPPED") {
        let opened = std::fs::OpenOptions::new().create(true).append(true).open(&file);
        let written = opened.and_then(|mut file| file.write_all(line.as_bytes()));
        written.unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
    }
}

/// Whether a program that `make setup` installs runs; says so where it does not.
pub fn has(program: &str) -> bool {
    runs(program) || {
        missing(format_args!("{program} is not installed"));
        false
    }
}

/// The same of a program that only some developers have.
pub fn has_optional(program: &str) -> bool {
    runs(program) || {
        unable(format_args!("{program} is not installed"));
        false
    }
}

fn runs(program: &str) -> bool {
    std::process::Command::new(program).arg("--version").output().is_ok()
}
