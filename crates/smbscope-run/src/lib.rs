//! What a measurement is: users of a workload on a server, up a ramp, held against packet captures, kept in a run
//! directory and told as one document.
//!
//! ```no_run
//! # fn example(options: smbscope_run::RunOptions) -> Result<(), smbscope_run::Error> {
//! use smbscope_run::Bench;
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

pub mod analysis;
pub mod files;
pub mod launch;
pub mod progress;
pub mod record;
pub mod study;

mod clean;
mod describe;
mod directory;
mod document;
mod environment;
mod error;
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
pub use error::{BenchError, one_line};
pub use metrics::Exporter;
pub use options::{
    Cluster, Connect, ERRORS_ALLOWED_PERCENT, Hosts, Login, Passwords, Private, RunOptions, ServerUnderTest,
};
pub use run::{Bench, BenchOutcome};
pub use smbscope_lab::PASSWORD_VARIABLE;
pub use smbscope_load::engine::{Host, LoadHost, OnLostHost};
pub use target::{ShareUrl, TargetUrl};
