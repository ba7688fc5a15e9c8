//! The `smbscope` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(smbscope_cli::main(Vec::new(), std::env::args_os().skip(1), None))
}
