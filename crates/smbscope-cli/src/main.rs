//! The `smbscope` binary: arguments in, exit status out.

use clap::Parser;
use smbscope_cli::{Arguments, CommandEnded, one_line, run};
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
                ExitCode::FAILURE
            }
        },
    }
}
