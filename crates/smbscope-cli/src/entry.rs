//! Entry point of the command line, for the binary and for the Python package that embeds it: how to start the program
//! again, and how to start load generators on other hosts. The binary itself can't start any; the package does so
//! through Ray.
//!
//! Starts the log on standard error, too: warnings by default, more with `-v` or `SMBSCOPE_LOG`.

use crate::terminal::{Priority, say_as};
use crate::{
    Arguments, BadArguments, CommandEnded, InterruptedError, LimitExceeded, exit, one_line, run, say, system, terminal,
};
use smbscope_load::engine::{Host, OnLostHost};
use smbscope_run::Cluster;
use smbscope_stats::filter::did_you_mean;
use std::ffi::OsString;
use std::fmt::{Debug, Write as _};
use std::path::Path;
use std::sync::OnceLock;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{ParseError, Targets};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::{Layer, registry};

/// Runs the command line and returns the exit status. `program` is the command and initial arguments that start it
/// again; if empty, the running executable. `hosts` starts load generators elsewhere, if the caller can. Help and
/// other output of clap ends the process.
pub fn main(
    program: Vec<OsString>,
    arguments: impl IntoIterator<Item = OsString>,
    hosts: Option<Box<HostSource>>,
) -> u8 {
    if let Some(hosts) = hosts {
        set_source(hosts);
    }
    set_program(program);
    system::in_window(arguments.into_iter().collect(), run_line)
}

fn run_line(words: Vec<OsString>) -> u8 {
    let line = std::iter::once(OsString::from("smbscope")).chain(words.iter().cloned());
    let arguments = Arguments::parse_line(line).unwrap_or_else(|error| exit(&error));
    if let Err(conflict) = arguments.check() {
        exit(&conflict);
    }
    if let Err(error) = start_log(arguments.verbose) {
        say(&error);
        return 2;
    }
    run(&arguments).map_or_else(|error| status(&error, &words), |()| 0)
}

/// Prints an error, unless that was done before, and returns the exit status.
fn status(error: &anyhow::Error, words: &[OsString]) -> u8 {
    if let Some(ended) = error.downcast_ref::<CommandEnded>() {
        return ended.status();
    }
    if let Some(interrupted) = error.downcast_ref::<InterruptedError>() {
        if interrupted.is_to_be_said() {
            say(&one_line(error));
        }
        return interrupted.status();
    }
    if let Some(exceeded) = error.downcast_ref::<LimitExceeded>() {
        exceeded.lines().iter().for_each(|line| say(line));
        return exceeded.status();
    }
    let text = one_line(error);
    let text = match nearest_file(&text, error, words) {
        Some(near) => format!("{text}; {near}"),
        None => text,
    };
    say_as(Priority::Error, &text);
    if are_arguments_bad(error) { 2 } else { 1 }
}

/// Number of names in a folder that are compared with a missing file's.
const NAMES_MAX: usize = 10_000;

/// Proposes the files of the same folder with the nearest names, if the error is about a file on the command line that
/// does not exist.
fn nearest_file(text: &str, error: &anyhow::Error, words: &[OsString]) -> Option<String> {
    let is_missing = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    error.chain().any(|cause| cause.downcast_ref().is_some_and(is_missing)).then_some(())?;
    let values = words.iter().filter_map(|word| word.to_str()).map(|word| match word.split_once('=') {
        Some((option, value)) if option.starts_with("--") => value,
        _ => word,
    });
    let missing = values.map(Path::new).find(|path| text.contains(&*path.to_string_lossy()) && !path.exists())?;
    let folder = missing.parent()?;
    let listed = if folder.as_os_str().is_empty() { Path::new(".") } else { folder }.read_dir().ok()?;
    let names = listed.take(NAMES_MAX).filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    // Names that differ in stem and extension are other files, however they begin.
    let stem = |name: &str| name.split('.').next().map(str::to_owned);
    let name = missing.file_name()?.to_str()?;
    let is_near = |found: &String| Path::new(found).extension() == missing.extension() || stem(found) == stem(name);
    let names: Vec<String> = names.filter(is_near).collect();
    did_you_mean(name, names.iter().map(String::as_str))
}

/// Returns true if the request was invalid, as opposed to failed.
fn are_arguments_bad(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<smbscope_lab::LabError>());
    error.is::<BadArguments>() || causes.any(|cause| matches!(cause, smbscope_lab::LabError::Settings(_)))
}

/// Starts load generators on the hosts of the cluster at an address, the given number on each.
pub type HostSource = dyn Fn(&str, u16) -> Result<Vec<Host>, String> + Send + Sync;

/// Set only if the caller can start load generators.
static SOURCE: OnceLock<Box<HostSource>> = OnceLock::new();

fn set_source(source: Box<HostSource>) {
    // Only the first call counts; the process has just one.
    let _ = SOURCE.set(source);
}

pub(crate) fn hosts(address: &str, slots: u16, on_lost: OnLostHost) -> Result<Cluster, BadArguments> {
    let Some(source) = SOURCE.get() else {
        let what = "--cluster needs the Python package: pip install 'smbscope[ray]', and give the option to the command that it \
                    installs";
        return Err(BadArguments(what.to_owned()));
    };
    let address = address.to_owned();
    Ok(Cluster { hosts: Box::new(move || source(&address, slots)), on_lost })
}

/// Command that starts this program, if it is not an executable of its own.
pub(crate) static PROGRAM: OnceLock<Vec<OsString>> = OnceLock::new();

/// Registers the command that starts this program. An empty one stands for the running executable.
fn set_program(program: Vec<OsString>) {
    if !program.is_empty() {
        let _ = PROGRAM.set(program);
    }
}

/// Environment variable with levels, for everything or by crate: `debug`, or `smbscope_lab=trace,info`.
const LOG_VARIABLE: &str = "SMBSCOPE_LOG";

/// Installs the log of the process: warnings, with one `-v` also information, with two everything. `SMBSCOPE_LOG`
/// overrides both. Does nothing if the process has a log, as programs that embed this one may. An invalid directive
/// is an error of one line.
fn start_log(verbosity: u8) -> Result<(), String> {
    if system::logs_to_journal() {
        terminal::show_priorities();
    }
    let directives = std::env::var(LOG_VARIABLE).unwrap_or_default();
    let filter = filter(&directives, verbosity).map_err(|error| format!("{LOG_VARIABLE}={directives}: {error}"))?;
    let _ = tracing::subscriber::set_global_default(registry().with(filter).with(StandardError));
    Ok(())
}

fn filter(directives: &str, verbosity: u8) -> Result<Targets, ParseError> {
    if !directives.is_empty() {
        return directives.parse();
    }
    let level = match verbosity {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        _ => LevelFilter::TRACE,
    };
    // Hides events of other libraries.
    Ok(Targets::new().with_target("smbscope", level))
}

/// Writes each event as one line: `smbscope: `, the message, then the fields as `name=value`.
struct StandardError;

impl<S: Subscriber> Layer<S> for StandardError {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut line = EventLine::default();
        event.record(&mut line);
        let priority = match *event.metadata().level() {
            Level::ERROR => Priority::Error,
            Level::WARN => Priority::Warning,
            Level::INFO => Priority::Info,
            Level::DEBUG | Level::TRACE => Priority::Debug,
        };
        terminal::say_as(priority, &format!("{}{}", line.message, line.fields));
    }
}

#[derive(Default)]
struct EventLine {
    message: String,
    fields: String,
}

impl Visit for EventLine {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let written = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
        written.expect("a string takes any text");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_knows_no_cluster_says_what_does() {
        let refused = hosts("auto", 1, OnLostHost::Continue).expect_err("nobody starts hosts here").to_string();
        assert!(refused.starts_with("--cluster needs the Python package: pip install 'smbscope[ray]'"), "{refused}");
    }

    #[test]
    fn each_v_shows_more() {
        let level = |verbosity| filter("", verbosity).map(|filter| filter.into_iter().next().map(|(_, level)| level));
        let levels = [0, 1, 2, 9].map(|verbosity| level(verbosity).unwrap_or_default());
        let expected = [LevelFilter::WARN, LevelFilter::INFO, LevelFilter::TRACE, LevelFilter::TRACE];
        assert_eq!(levels, expected.map(Some));
    }

    #[test]
    fn directives_overrule_v_and_have_to_be_levels() {
        let chosen = filter("smbscope_lab=debug,warn", 2).expect("two levels");
        assert!(chosen.would_enable("smbscope_lab::server", &tracing::Level::DEBUG));
        assert!(!chosen.would_enable("smbscope_run", &tracing::Level::INFO));
        assert!(filter("smbscope=loud", 0).is_err());
    }
}
