//! Runs benchmarks against SMB servers: a workload's users, load point by load point, checked against packet captures
//! and stored as one document in a run directory.
//!
//! The other commands that need more than one crate are here as well: recording a workload ([`record`]), timing
//! application launches ([`launch`]) and studies ([`study`]). Capture analysis ([`analysis`]) is `smbscope-explain`.
//!
//! ```no_run
//! # fn example(options: smbscope_run::RunOptions) -> Result<(), smbscope_run::BenchError> {
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
//! This crate doesn't print, read the command line or handle signals. It declares the options of its commands
//! ([`options`]). To follow a run as it goes, implement
//! [`progress::BenchObserver`].

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod bench;
mod capture;
mod directory;
mod document;
mod environment;
mod error;
pub mod exposition;
pub mod files;
#[cfg(target_os = "linux")]
pub mod launch;
#[cfg(not(target_os = "linux"))]
#[path = "launch/elsewhere.rs"]
pub mod launch;
mod metrics;
pub mod options;
pub mod predict;
pub mod record;
pub mod ring;
mod server;
pub mod study;
pub mod watch;

pub use bench::progress;
pub use bench::setup::{Cluster, Hosts, RunOptions, clean};
pub use bench::{Bench, BenchOutcome};
pub use capture::LabCapture;
pub use directory::RUN;
pub use error::{BenchError, one_line};
pub use metrics::{
    CounterSource, Exporter, NamedQuery, PrometheusUrl, QueryFigure, SambaReader, ServerFigure, ServerFigures,
    ServerMinute, WatchedServer, busy_percent, read_samba,
};
pub use server::{Connect, Login, Passwords, Private, ServerUnderTest, ShareUrl, TargetUrl};
pub use smbscope_explain::{analysis, keys};
pub use smbscope_lab::PASSWORD_VARIABLE;
pub use smbscope_load::engine::{Host, LoadHost, OnLostHost};
