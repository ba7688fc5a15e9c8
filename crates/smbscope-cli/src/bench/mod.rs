//! `smbscope bench`: adds password prompt, launcher and load hosts to the options, runs a workload at increasing
//! numbers of users, shows progress, and prints the report. `smbscope launch`: measures repeated launches of a program,
//! and prints their report in the same way.
//!
//! Passwords come from a file, the environment or a prompt, never from an argument, which every user of the machine
//! could read.

mod dashboard;

use crate::arguments::{BenchArguments, BenchVerb, CleanArguments};
use crate::interrupt::{self, InterruptedError};
use crate::output::{self, Output};
use crate::terminal::say;
use crate::{BadArguments, entry, lab};
use anyhow::{Context, bail};
use clap::{Args, Command};
use dashboard::{Choice, ProgressDisplay};
use smbscope_client::Secret;
use smbscope_load::workload::Workload;
use smbscope_model::Nanos;
use smbscope_report::bench::{self, BenchDocument, BenchRunOutcome};
use smbscope_report::{clean, counted, html, listed, quoted, span};
use smbscope_run::launch::{LaunchObserver, Series, SeriesOptions};
use smbscope_run::options::{BenchFormat, BenchOptions, GivenOptions, LaunchOptions, OptionsError};
use smbscope_run::{Bench, BenchError, BenchOutcome, PASSWORD_VARIABLE, Passwords, RunOptions};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub(crate) fn run(arguments: &BenchArguments) -> anyhow::Result<()> {
    match &arguments.other {
        Some(BenchVerb::Clean(arguments)) => clean_up(arguments),
        Some(BenchVerb::Workloads(arguments)) => workloads(arguments.name.as_deref()),
        None => measure(&arguments.options, to_repeat(&arguments.given)),
    }
}

fn measure(arguments: &BenchOptions, command: Option<String>) -> anyhow::Result<()> {
    output::refuse_file_name(arguments.output.as_deref())?;
    let options = run_options(arguments.clone(), command)?;
    let mut output = Output::open(None, &options.sources)?;
    if arguments.format == BenchFormat::Html {
        output.refuse_terminal("HTML")?;
    }
    let bench = Bench::open(options)?;
    // Nothing needs cleanup before this point; from here on, signals end the run in order.
    let interrupted = Arc::new(AtomicBool::new(false));
    interrupt::any_end_sets(&interrupted);
    let mut display = ProgressDisplay::open(choice(arguments), bench.heading());
    let BenchOutcome { document, kept } = bench.run(&mut display, &interrupted).map_err(or_interrupted)?;
    drop(display);
    let text = bench::RampTextOptions {
        width: output.width(arguments.terminal.width),
        color: output.takes_color(arguments.terminal.color),
        detail: if arguments.full { bench::RampDetailLevel::One } else { bench::RampDetailLevel::Brief },
    };
    let printed = print(&document, arguments.format, &text, &mut output);
    output.settle(printed)?;
    kept?;
    how_it_ended(&document)
}

/// Fails if the run failed, or if a signal or a key ended it.
fn how_it_ended(document: &BenchDocument) -> anyhow::Result<()> {
    let has_failed = document.runs.iter().any(|run| matches!(run.ended, BenchRunOutcome::Failed { .. }));
    if !has_failed && document.runs.iter().any(|run| run.ended == BenchRunOutcome::Interrupted) {
        return Err(InterruptedError::said().into());
    }
    match document.failure() {
        Some(why) => bail!("the run failed: {why}"),
        None => Ok(()),
    }
}

fn or_interrupted(error: BenchError) -> anyhow::Error {
    match error {
        BenchError::Interrupted => {
            InterruptedError::with(format!("{error}, and `smbscope bench clean` removes it")).into()
        }
        error => error.into(),
    }
}

pub(crate) fn print(
    document: &BenchDocument,
    format: BenchFormat,
    text: &bench::RampTextOptions,
    output: &mut Output,
) -> io::Result<()> {
    match format {
        BenchFormat::Json => bench::write(document, output.writer())?,
        BenchFormat::Html => html::write_bench(document, output.writer())?,
        BenchFormat::Markdown => output.writer().write_all(bench::markdown(document, text.detail).as_bytes())?,
        BenchFormat::Text => output.writer().write_all(bench::render(document, text).as_bytes())?,
    }
    Ok(())
}

fn workloads(name: Option<&str>) -> anyhow::Result<()> {
    let text = match name {
        Some(name) => match Workload::builtin_text(name) {
            Some(text) => text,
            // The error lists the known names.
            None => return Ok(Workload::builtin(name).map(drop)?),
        },
        None => {
            let all = Workload::built_in().into_iter().map(|(name, about)| [name.to_owned(), about]);
            listed(&all.collect::<Vec<_>>())
        }
    };
    Output::stdout()?.print(&text)
}

fn choice(arguments: &BenchOptions) -> Choice {
    match (arguments.terminal.progress.quiet, arguments.plain) {
        (true, _) => Choice::Quiet,
        (_, true) => Choice::Plain,
        _ => Choice::Auto,
    }
}

/// Removes the files that bench created on a share, and nothing else.
fn clean_up(arguments: &CleanArguments) -> anyhow::Result<()> {
    let options = &arguments.connect;
    let connect = options.connect(password_source(options.password_file.clone()));
    let cleaned = smbscope_run::clean(&arguments.target, &connect, options.prepare_timeout)?;
    match cleaned.removed {
        0 if cleaned.left.count > 0 => {}
        0 => say(&format!("there is nothing to remove at {}", arguments.target)),
        removed => say(&format!("removed {}", counted(removed, "file or directory", "files and directories"))),
    }
    let left = &cleaned.left;
    if left.count > 0 {
        let more = left.count - left.paths.len() as u64;
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        bail!(
            "left on the share files that smbscope did not make, and their directories: {}{more}; remove them \
             yourself, then run this again",
            left.paths.join(", ")
        );
    }
    Ok(())
}

/// `command` is the command line that started the run, for the report.
pub(crate) fn run_options(options: BenchOptions, command: Option<String>) -> anyhow::Result<RunOptions> {
    let cluster = options.cluster.address.as_deref();
    let cluster = cluster.map(|address| entry::hosts(address, options.cluster.slots, options.on_lost_host));
    let password = password_source(options.connect.password_file.clone());
    let run = RunOptions::new(options, lab::kept()?, password).map_err(|error| match error {
        OptionsError::Conflict(what) => anyhow::Error::from(BadArguments(what)),
        OptionsError::Workload(error) => error.into(),
    })?;
    Ok(RunOptions { cluster: cluster.transpose()?, command, ..run })
}

/// Options that suggested commands set themselves: load points, schedule and output.
const SAID_ANEW: [&str; 18] = [
    "users",
    "rate",
    "rate-per-user",
    "rates",
    "arrivals",
    "think",
    "find-capacity",
    "capture",
    "output",
    "format",
    "title",
    "color",
    "full",
    "width",
    "by",
    "target",
    "quiet",
    "plain",
];

/// Returns e.g. `smbscope bench smb://ann@files/projects --duration 1min`. `None` if an option is not UTF-8.
fn to_repeat(given: &GivenOptions) -> Option<String> {
    let mut words = vec!["smbscope".to_owned(), "bench".to_owned()];
    words.extend(values(given, "target")?);
    let command = BenchOptions::augment_args(Command::default().name("bench"));
    let options = command.get_arguments().filter_map(|option| Some((option.get_long()?, option)));
    for (name, option) in options.filter(|(name, _)| given.contains(name) && !SAID_ANEW.contains(name)) {
        match option.get_action().takes_values() {
            true => words.extend(values(given, name)?.into_iter().flat_map(|value| [format!("--{name}"), value])),
            false => words.push(format!("--{name}")),
        }
    }
    Some(words.join(" "))
}

fn values(given: &GivenOptions, name: &str) -> Option<Vec<String>> {
    given.values(name).iter().map(|value| value.to_str().map(quoted)).collect()
}

/// Maximum length of the first line of a password file. Windows accepts passwords of 256 characters.
const PASSWORD_LINE_MAX: u64 = 4 << 10;

/// Passwords by target, so that each is asked for once. A user may have different ones on different servers.
#[derive(Clone, Default)]
pub(crate) struct TypedPasswords(Arc<Mutex<HashMap<String, Secret>>>);

impl TypedPasswords {
    /// Returns a source that calls `ask` only for the first password of this target.
    pub(crate) fn once(&self, target: String, ask: Box<Passwords>) -> Box<Passwords> {
        let known = Arc::clone(&self.0);
        Box::new(move |user| {
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(password) = known.get(&target) {
                return Ok(password.clone());
            }
            let password = ask(user)?;
            known.insert(target.clone(), password.clone());
            Ok(password)
        })
    }
}

/// Returns a function that reads passwords.
pub(crate) fn password_source(file: Option<PathBuf>) -> Box<Passwords> {
    Box::new(move |user| Ok(read_password(user, file.as_deref())?))
}

/// Returns the password of `user`: the first line of the file, the variable, or a typed answer.
fn read_password(user: &str, file: Option<&Path>) -> anyhow::Result<Secret> {
    if let Some(file) = file {
        let name = file.display();
        let line = first_line_of(file).with_context(|| format!("cannot read the password file {name}"))?;
        if first_line(&line).is_empty() {
            bail!("the password file {name} begins with an empty line: write the password there");
        }
        return Ok(Secret::new(first_line(&line).to_owned()));
    }
    if let Some(password) = std::env::var_os(PASSWORD_VARIABLE) {
        let Ok(password) = password.into_string() else { bail!("{PASSWORD_VARIABLE} is not UTF-8") };
        return Ok(Secret::new(password));
    }
    if !std::io::stdin().is_terminal() {
        bail!("no password for {user}: set {PASSWORD_VARIABLE}, or name a file with --password-file");
    }
    let typed =
        rpassword::prompt_password(format!("Password of {}: ", clean(user))).context("cannot read the password")?;
    Ok(Secret::new(typed))
}

/// Reads only the first line: the file may be endless.
fn first_line_of(file: &Path) -> io::Result<String> {
    let mut line = String::new();
    BufReader::new(File::open(file)?.take(PASSWORD_LINE_MAX)).read_line(&mut line)?;
    if line.len() as u64 == PASSWORD_LINE_MAX && !line.ends_with('\n') {
        return Err(io::Error::other(format!("its first line has more than {PASSWORD_LINE_MAX} bytes")));
    }
    Ok(line)
}

/// Removes the line end. Blanks are part of the password.
fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Measures repeated launches of a program: `smbscope launch`.
pub(crate) fn launch(arguments: &LaunchOptions) -> anyhow::Result<()> {
    output::refuse_file_name(arguments.output.as_deref())?;
    let options = series_options(arguments.clone(), "smbscope launch".to_owned())?;
    let mut output = Output::open(None, &options.sources)?;
    if arguments.format == BenchFormat::Html {
        output.refuse_terminal("HTML")?;
    }
    let stop = Arc::new(AtomicBool::new(false));
    interrupt::any_end_sets(&stop);
    let series = Series::open(options)?;
    let mut observer = LaunchProgressPrinter { quiet: arguments.terminal.progress.quiet, of: arguments.repetitions };
    let BenchOutcome { document, kept } = series.run(&mut observer, &stop)?;
    let text = bench::RampTextOptions {
        width: output.width(arguments.terminal.width),
        color: output.takes_color(arguments.terminal.color),
        detail: if arguments.full { bench::RampDetailLevel::One } else { bench::RampDetailLevel::Brief },
    };
    let printed = print(&document, arguments.format, &text, &mut output);
    output.settle(printed)?;
    kept?;
    how_it_ended(&document)
}

/// Adds password prompt and launcher.
pub(crate) fn series_options(options: LaunchOptions, invocation: String) -> anyhow::Result<SeriesOptions> {
    let password = password_source(options.password_file.clone());
    let series = SeriesOptions::new(options, lab::kept()?, password)?;
    Ok(SeriesOptions { invocation: Some(invocation), ..series })
}

struct LaunchProgressPrinter {
    quiet: bool,
    of: u32,
}

impl LaunchObserver for LaunchProgressPrinter {
    fn launched(&mut self, number: u32, elapsed: Duration) {
        if self.quiet {
            return;
        }
        let took = span(Nanos::from(elapsed));
        say(&match number {
            0 => format!("warm-up: {took}, not counted"),
            number => format!("launch {number} of {}: {took}", self.of),
        });
    }

    fn note(&mut self, text: &str) {
        say(&format!("warning: {text}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::{Arguments, Verb};
    use std::ffi::OsString;

    fn command(line: &[&str]) -> Option<String> {
        match Arguments::parse_line(line.iter().map(OsString::from)).ok()?.verb {
            Verb::Bench(arguments) => to_repeat(&arguments.given),
            _ => None,
        }
    }

    #[test]
    fn a_line_is_given_again_without_load_points_and_results() {
        let line = [
            "smbscope",
            "bench",
            "smb://ann@files/my files",
            "--users=1,8",
            "--think",
            "5ms",
            "-o",
            "monday",
            "--duration",
            "1min",
            "--capture",
            "--loadfile",
            "it's.txt",
            "-q",
            "--by",
            "file",
        ];
        let expected = r"smbscope bench 'smb://ann@files/my files' --loadfile 'it'\''s.txt' --duration 1min";
        assert_eq!(command(&line).as_deref(), Some(expected));
        assert_eq!(command(&["smbscope", "bench"]).as_deref(), Some("smbscope bench"));
        assert_eq!(command(&["smbscope", "analyze", "x.pcap"]), None);
        assert_eq!(command(&["smbscope-tests", "--nocapture"]), None);
    }

    #[test]
    fn a_line_end_is_no_part_of_a_password_but_blanks_are() {
        assert_eq!(["a b \n", "a b \r\n", "a b "].map(first_line), ["a b "; 3]);
        assert_eq!(first_line(""), "");
    }

    #[test]
    fn no_more_than_a_line_is_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "secret\n".to_owned() + &"x".repeat(1 << 20)).unwrap();
        assert_eq!(first_line_of(file.path()).unwrap(), "secret\n");
        let endless = first_line_of(Path::new("/dev/zero")).unwrap_err().to_string();
        assert_eq!(endless, "its first line has more than 4096 bytes");
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = read_password("ann", Some(Path::new("/nonexistent/secret"))).expect_err("there is none");
        assert!(error.to_string().contains("/nonexistent/secret"), "{error}");
    }
}
