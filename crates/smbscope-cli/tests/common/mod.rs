//! Helpers that run the binary as a user does.
#![allow(dead_code)] // Each test file uses only some of the helpers.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Exit status and output of a run.
pub(crate) struct Said {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    /// Returns the single line of an error, without the program's name.
    pub(crate) fn error(&self, status: i32) -> &str {
        assert_eq!((self.status, self.out.as_str()), (Some(status), ""), "{}", self.err);
        let line = self.err.strip_prefix("smbscope: ").and_then(|line| line.strip_suffix('\n'));
        line.filter(|line| !line.contains('\n')).unwrap_or_else(|| panic!("not one line: {:?}", self.err))
    }

    /// Returns the output of a run that succeeded without messages.
    pub(crate) fn output(&self) -> &str {
        assert_eq!((self.status, self.err.as_str()), (Some(0), ""));
        &self.out
    }
}

/// Returns an `smbscope` command for this directory.
pub(crate) fn smbscope(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    command.current_dir(directory).args(arguments).env_remove("NO_COLOR");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns an `smbscope analyze` command for this directory.
pub(crate) fn command(directory: &Path, arguments: &[&str]) -> Command {
    smbscope(directory, &[&["analyze"], arguments].concat())
}

pub(crate) fn analyze(directory: &Path, arguments: &[&str]) -> Said {
    finish(command(directory, arguments))
}

/// Runs `smbscope analyze` with this standard input.
pub(crate) fn analyze_input(directory: &Path, arguments: &[&str], input: &[u8]) -> Said {
    let mut command = command(directory, arguments);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("the binary runs");
    let mut stdin = child.stdin.take().expect("standard input is a pipe");
    // The program may exit without reading all of its input.
    let _unread = stdin.write_all(input);
    drop(stdin);
    said(child.wait_with_output().expect("the binary ends"))
}

pub(crate) fn finish(mut command: Command) -> Said {
    said(command.output().expect("the binary runs"))
}

pub(crate) fn said(output: std::process::Output) -> Said {
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    Said { status: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// Creates an empty directory for a test.
pub(crate) fn directory(test: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _absent = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).expect("a temporary directory can be made");
    directory
}

pub(crate) fn write(directory: &Path, name: &str, bytes: impl AsRef<[u8]>) {
    std::fs::write(directory.join(name), bytes).expect("a temporary file can be written");
}

/// Returns the path of a bundled capture.
pub(crate) fn bundled(name: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data")).join(name)
}

/// Returns the decompressed contents of a bundled capture.
pub(crate) fn contents(name: &str) -> Vec<u8> {
    let file = std::fs::File::open(bundled(name)).expect("the capture is in the repository");
    zstd::decode_all(file).expect("the capture is whole")
}

/// Parses the exchange table into its header and rows.
pub(crate) fn table(text: &str) -> (Vec<String>, Vec<Vec<String>>) {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let cells = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect();
    let header = cells(reader.headers().expect("the table has a header"));
    let rows = reader.records().map(|record| cells(&record.expect("the table is CSV"))).collect();
    (header, rows)
}

/// Asserts that the program accepts a command that a report proposes, split as a shell would.
pub(crate) fn is_a_command(command: &str) {
    let divide = format!("set -- {command}; printf '%s\\n' \"$@\"");
    let words = std::process::Command::new("sh").args(["-c", &divide]).output().expect("there is a shell");
    let words = String::from_utf8(words.stdout).expect("it is text");
    let arguments = <smbscope_cli::Arguments as clap::Parser>::try_parse_from(words.lines());
    let arguments = arguments.unwrap_or_else(|error| panic!("{command}: {error}"));
    arguments.check().unwrap_or_else(|error| panic!("{command}: {error}"));
}

/// Returns the commands of a list in a report.
pub(crate) fn commands(next: &serde_json::Value) -> Vec<String> {
    let steps = next.as_array().expect("a list").iter();
    steps.map(|step| step["command"].as_str().expect("a text").to_owned()).collect()
}
