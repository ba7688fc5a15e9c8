//! Each finding on two captures: one in which its pattern was provoked, and one of a similar load that is healthy. Wherever it
//! can be provoked, a real Samba and a real client do it; elsewhere the capture is built packet by packet.
//!
//! The tables of docs/findings.md say which is which, and with what result.

#[path = "../common/mod.rs"]
mod common;

mod built;
mod bundled;
mod client;
mod files;
mod ini;
mod network;
mod scene;
mod server;
mod tables;
mod whatif;
