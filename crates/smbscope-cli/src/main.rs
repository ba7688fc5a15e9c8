//! The `smbscope` binary: arguments in, exit status out.

use clap::Parser;
use smbscope_cli::{Arguments, one_line, run};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Err(conflict) = arguments.check() {
        conflict.exit();
    }
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("smbscope: {}", one_line(&error));
            ExitCode::FAILURE
        }
    }
}
