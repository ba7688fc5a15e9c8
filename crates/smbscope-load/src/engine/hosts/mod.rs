//! Load from several hosts. Each runs workers as this process does ([`LoadHost`]); the engine has a [`Host`] in the place of a
//! thread, which passes on its orders and brings what the workers of the host counted. Workers are numbered over all hosts, so
//! that users are divided as among threads, and what comes out is merged as theirs.
//!
//! What passes between hosts is bytes: a request, an answer. Who carries them is not known here.

mod clock;
mod link;
mod message;
mod served;

pub use link::{Fleet, Host, LoadWork, OnLostHost};
pub(crate) use link::{HostLink, begin};
pub use served::LoadHost;
#[cfg(test)]
pub(crate) use served::run_team;
