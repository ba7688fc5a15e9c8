//! What a measurement is: users of a workload on a server, up a ramp, held against packet captures, kept in a run
//! directory and told as one document.
//!
//! ```no_run
//! # fn example(options: smbscope_bench::RunOptions) -> anyhow::Result<()> {
//! use smbscope_bench::Bench;
//! use std::sync::atomic::AtomicBool;
//!
//! let bench = Bench::open(options)?;
//! let outcome = bench.run(&mut (), &AtomicBool::new(false))?;
//! println!("{} load points", outcome.document.runs.len());
//! # Ok(())
//! # }
//! ```
//!
//! Nothing here prints, parses a command line or handles a signal. Who wants to see a run while it goes on implements
//! [`progress::Progress`].

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

pub mod files;
pub mod progress;

mod clean;
mod describe;
mod directory;
mod document;
mod environment;
mod keeper;
mod meter;
mod metrics;
mod names;
mod options;
mod prepare;
mod proof;
mod ramp;
mod run;
mod setup;
mod site;
mod sniffer;
mod target;
mod wire;

pub use clean::clean;
pub use directory::RUN;
pub use options::{Connect, Login, Passwords, RunOptions, Server};
pub use prepare::Interrupted;
pub use run::{Bench, Outcome};
pub use target::Target;

/// An error with its causes in one line. What a cause repeats is said once.
pub fn one_line(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(|cause| cause.to_string()) {
        match text.as_str() {
            "" => text = cause,
            said if said.contains(&cause) => {}
            _ => text += &format!(": {cause}"),
        }
    }
    text.replace("\r\n", " ").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_one_line_without_repetition() {
        let error = anyhow::anyhow!("no such\nfile").context("cannot open x: no such\nfile").context("no report");
        assert_eq!(one_line(&error), "no report: cannot open x: no such file");
    }
}
