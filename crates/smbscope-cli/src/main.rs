//! The `smbscope` binary: arguments in, exit status out.

use clap::Parser;
use smbscope_cli::{Arguments, BadArguments, CommandEnded, Interrupted, LimitExceeded, exit, one_line, run, say};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::try_parse().unwrap_or_else(|error| exit(&error));
    if let Err(conflict) = arguments.check() {
        exit(&conflict);
    }
    run(&arguments).map_or_else(|error| status(&error), |()| ExitCode::SUCCESS)
}

/// Says what went wrong, unless that has been said, and how the process ends.
fn status(error: &anyhow::Error) -> ExitCode {
    if let Some(ended) = error.downcast_ref::<CommandEnded>() {
        return ExitCode::from(ended.status());
    }
    if let Some(interrupted) = error.downcast_ref::<Interrupted>() {
        if interrupted.is_to_be_said() {
            say(&one_line(error));
        }
        return ExitCode::from(interrupted.status());
    }
    say(&one_line(error));
    if let Some(exceeded) = error.downcast_ref::<LimitExceeded>() {
        return ExitCode::from(exceeded.status());
    }
    if are_arguments_bad(error) { ExitCode::from(2) } else { ExitCode::FAILURE }
}

/// Whether it was asked for what cannot be, as against what did not work.
fn are_arguments_bad(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<smbscope_lab::Error>());
    error.is::<BadArguments>() || causes.any(|cause| matches!(cause, smbscope_lab::Error::Settings(_)))
}
