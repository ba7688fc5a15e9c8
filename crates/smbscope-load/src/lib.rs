//! The load generator: users of a workload on an SMB server, with the response time of every command.
//!
//! [`client`] speaks SMB1 to SMB 3.1.1 and notes when each command went out and when its answer was there.
//! [`workload`] says what users do: a loadfile, a TOML file, or one of those built in. [`engine`] lets users do it,
//! by a schedule and up a ramp, and adds up what they waited for.

#![forbid(unsafe_code)]

pub mod bounded;
pub mod client;
pub mod engine;
pub mod prepare;
pub mod workload;
