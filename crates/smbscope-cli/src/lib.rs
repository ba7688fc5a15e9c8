//! Commands of `smbscope`. [`run`] is the binary without its process, so that tests call the same code. Each command
//! has a module (`launch` is in `bench`); `arguments` defines the command line.

// A console of Windows can't be asked otherwise.
#![cfg_attr(not(windows), forbid(unsafe_code))]
// All terminal output goes through `terminal`, which sanitizes it.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod analyze;
mod arguments;
mod bench;
mod compare;
mod entry;
#[cfg(any(windows, test))]
mod explorer;
mod help;
mod interrupt;
#[cfg(test)]
mod keywords;
#[cfg(target_os = "linux")]
mod lab;
#[cfg(not(target_os = "linux"))]
#[path = "lab_elsewhere.rs"]
mod lab;
mod manual;
mod output;
mod predict;
mod record;
mod screen;
mod slim;
mod study;
#[cfg_attr(unix, path = "system/unix.rs")]
#[cfg_attr(windows, path = "system/windows.rs")]
mod system;
mod terminal;
mod watch;

pub use analyze::LimitExceeded;
pub use arguments::{Arguments, CompletionsArguments, HelpArguments, ManArguments, Verb};
pub use arguments::{BenchArguments, BenchVerb, CleanArguments, WorkloadsArguments};
pub use arguments::{
    DownArguments, LabArguments, LabFormat, LabVerb, RunArguments, StateArguments, StatusArguments, UpArguments,
};
pub use entry::{HostSource, main};
pub use interrupt::InterruptedError;
pub use terminal::{exit, say};

/// Contradictory arguments, detected only when the files they name are read.
#[derive(Debug)]
pub struct BadArguments(String);

impl std::fmt::Display for BadArguments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadArguments {}

/// The command of `lab run` failed; smbscope ends with the same status.
#[derive(Debug)]
pub struct CommandEnded(std::process::ExitStatus);

impl CommandEnded {
    /// Returns the exit code, or 128 plus the number of the signal, as shells do.
    pub fn status(&self) -> u8 {
        system::code(self.0).and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
    }
}

impl std::fmt::Display for CommandEnded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the command ended with {}", self.0)
    }
}

impl std::error::Error for CommandEnded {}

/// Formats an error with its causes as one line. Repetitions among the causes are omitted.
pub fn one_line(error: &anyhow::Error) -> String {
    readable_name(&smbscope_run::one_line(error.as_ref()))
}

/// Replaces `-`, the name of standard input in tables, by words.
fn readable_name(message: &str) -> String {
    message.strip_prefix("-: ").map_or(message.to_owned(), |rest| format!("standard input: {rest}"))
}

/// Runs a command. Errors are one line: what failed, where, and how to fix it.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    match &arguments.verb {
        Verb::Analyze(arguments) => analyze::run(arguments),
        Verb::Bench(arguments) => bench::run(arguments),
        Verb::Compare(arguments) => compare::run(arguments),
        Verb::Lab(arguments) => lab::run(arguments),
        Verb::Launch(arguments) => bench::launch(arguments),
        Verb::Predict(arguments) => predict::run(arguments),
        Verb::Record(arguments) => record::run(arguments),
        Verb::Slim(arguments) => slim::run(arguments),
        Verb::Watch(arguments) => watch::run(arguments),
        Verb::Study(arguments) => study::run(arguments),
        Verb::Help(arguments) => manual::help(arguments),
        Verb::Completions(arguments) => manual::completions(arguments),
        Verb::Man(arguments) => manual::run(arguments),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_input_has_a_name_in_messages() {
        assert_eq!(one_line(&anyhow::anyhow!("-: empty\nfile")), "standard input: empty file");
    }
}
