//! The load generator: users of a workload on an SMB server, with the response time of every command.
//!
//! [`workload`] defines what users do: a loadfile, a TOML file, or one of the built-in workloads. [`prepare`] puts the
//! files that it needs on the share. [`engine`] runs users on sessions of `smbscope-client`, by a schedule and up a ramp,
//! and adds up their response times.

#![forbid(unsafe_code)]

pub mod bounded;
pub mod engine;
pub mod prepare;
pub mod workload;
