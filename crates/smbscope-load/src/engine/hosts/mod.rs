//! Load generation on several hosts.
//!
//! Each host runs workers like this process does ([`LoadHost`]). The engine has a [`Host`] in place of a thread, which
//! forwards orders and returns the counts of the host's workers. Workers are numbered across all hosts, so that users
//! are divided and results merged as among threads. Messages are requests and answers in bytes; the transport is the
//! caller's.

mod clock;
mod link;
mod message;
mod served;

pub use link::{Fleet, Host, LoadWork, OnLostHost};
pub(crate) use link::{HostLink, begin};
pub use served::LoadHost;
#[cfg(test)]
pub(crate) use served::run_team;
