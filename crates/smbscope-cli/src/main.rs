//! The `smbscope` binary: arguments in, exit status out.

use clap::Parser;
use smbscope_cli::{Arguments, run};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("smbscope: {error:#}");
            ExitCode::FAILURE
        }
    }
}
