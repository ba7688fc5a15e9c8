//! Where a program enters the command line: the binary, and the Python package, which carries it.

use crate::arguments::{Verb, parsed};
use crate::{
    Arguments, BadArguments, CommandEnded, HostSource, InterruptedError, LimitExceeded, analyze, cluster, exit,
    logging, one_line, run, say,
};
use clap::Parser as _;
use smbscope_run::analysis::{AnalysisOptions, CaptureInput};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;

/// How this program is started, where it is not a file of its own.
static PROGRAM: OnceLock<Vec<OsString>> = OnceLock::new();

/// Runs the command line, and returns the exit status. `program` starts it anew: a program and its first arguments; the
/// running file where it is empty. `hosts` starts load generators elsewhere, where the caller can. What clap prints, such as
/// help, ends the process.
pub fn main(
    program: Vec<OsString>,
    arguments: impl IntoIterator<Item = OsString>,
    hosts: Option<Box<HostSource>>,
) -> u8 {
    if let Some(hosts) = hosts {
        cluster::set_source(hosts);
    }
    if !program.is_empty() {
        // Only the first one counts: it is the same for the whole process.
        let _ = PROGRAM.set(program);
    }
    let line = std::iter::once(OsString::from("smbscope")).chain(arguments);
    let arguments = Arguments::try_parse_from(line).unwrap_or_else(|error| exit(&error));
    if let Err(conflict) = arguments.check() {
        exit(&conflict);
    }
    if let Err(error) = logging::start(arguments.verbose) {
        say(&error);
        return 2;
    }
    run(&arguments).map_or_else(|error| status(&error), |()| 0)
}

/// What the arguments of `analyze` ask for, of which inputs. The error is one line.
pub fn analysis(arguments: &[OsString]) -> Result<(Vec<CaptureInput>, AnalysisOptions), String> {
    let line = ["smbscope", "analyze"].map(OsString::from).into_iter().chain(arguments.iter().cloned());
    let asked = parsed(line).and_then(|verb| match verb {
        Verb::Analyze(arguments) => Ok((analyze::inputs(&arguments), analyze::options(&arguments)?)),
        _ => anyhow::bail!("the options are not those of analyze"),
    });
    asked.map_err(|error| one_line(&error))
}

/// The program that is started anew, and its first arguments.
pub(crate) fn program() -> std::io::Result<(PathBuf, Vec<OsString>)> {
    match PROGRAM.get().map(Vec::as_slice) {
        Some([program, first @ ..]) => Ok((program.into(), first.to_vec())),
        _ => Ok((std::env::current_exe()?, Vec::new())),
    }
}

/// Says what went wrong, unless that has been said, and how the process ends.
fn status(error: &anyhow::Error) -> u8 {
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
    say(&one_line(error));
    if are_arguments_bad(error) { 2 } else { 1 }
}

/// Whether it was asked for what cannot be, as against what did not work.
fn are_arguments_bad(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<smbscope_lab::LabError>());
    error.is::<BadArguments>() || causes.any(|cause| matches!(cause, smbscope_lab::LabError::Settings(_)))
}
