//! Entry point of the command line, for the binary and for the Python package that embeds it.

use crate::{
    Arguments, BadArguments, CommandEnded, HostSource, InterruptedError, LimitExceeded, analyze, embedding, exit,
    logging, one_line, run, say,
};
use smbscope_run::analysis::{AnalysisOptions, CaptureInput};
use smbscope_run::options::GivenOptions;
use std::ffi::OsString;

/// Runs the command line and returns the exit status. `program` is the command and initial arguments that start it
/// again; if empty, the running executable. `hosts` starts load generators elsewhere, if the caller can. Help and
/// other output of clap ends the process.
pub fn main(
    program: Vec<OsString>,
    arguments: impl IntoIterator<Item = OsString>,
    hosts: Option<Box<HostSource>>,
) -> u8 {
    if let Some(hosts) = hosts {
        embedding::set_source(hosts);
    }
    embedding::set_program(program);
    let line = std::iter::once(OsString::from("smbscope")).chain(arguments);
    let arguments = Arguments::parse_line(line).unwrap_or_else(|error| exit(&error));
    if let Err(conflict) = arguments.check() {
        exit(&conflict);
    }
    if let Err(error) = logging::start(arguments.verbose) {
        say(&error);
        return 2;
    }
    run(&arguments).map_or_else(|error| status(&error), |()| 0)
}

/// Converts options of `analyze` and files into options of an analysis and inputs. The error is one line.
pub fn analysis(
    mut options: GivenOptions,
    files: Vec<OsString>,
) -> Result<(Vec<CaptureInput>, AnalysisOptions), String> {
    options.set("files", files);
    let arguments = options.parse()?;
    let options = analyze::options(&arguments).map_err(|error| one_line(&error))?;
    Ok((analyze::inputs(&arguments), options))
}

/// Prints an error, unless that was done before, and returns the exit status.
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

/// Returns true if the request was invalid, as opposed to failed.
fn are_arguments_bad(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<smbscope_lab::LabError>());
    error.is::<BadArguments>() || causes.any(|cause| matches!(cause, smbscope_lab::LabError::Settings(_)))
}
