//! The `smbscope` binary: arguments in, exit status out.

use clap::Parser;
use smbscope_cli::{Arguments, BadArguments, CommandEnded, one_line, run};
use std::io::{Write, stderr};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Err(conflict) = arguments.check() {
        conflict.exit();
    }
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => match error.downcast_ref::<CommandEnded>() {
            // It has said itself what there is to say.
            Some(ended) => ExitCode::from(ended.status()),
            None => {
                // The terminal may be gone, which is no reason to panic.
                let _said = writeln!(stderr(), "smbscope: {}", one_line(&error));
                if are_arguments_bad(&error) { ExitCode::from(2) } else { ExitCode::FAILURE }
            }
        },
    }
}

/// Whether it was asked for what cannot be, as against what did not work.
fn are_arguments_bad(error: &anyhow::Error) -> bool {
    let settings = error.downcast_ref::<smbscope_lab::Error>();
    error.is::<BadArguments>() || matches!(settings, Some(smbscope_lab::Error::Settings(_)))
}
