//! The load generator: simulated users run a workload against an SMB server, and every command is timed.
//!
//! [`workload`] defines the users' steps: a loadfile, a TOML file or a built-in workload. [`prepare`] creates the files
//! that the workload needs on the share. [`engine`] runs the users over `smbscope-client` sessions, following a
//! schedule and a ramp, and aggregates their response times. Start reading at [`engine::run`].

#![forbid(unsafe_code)]

pub mod bounded;
pub mod engine;
pub mod prepare;
pub mod workload;
