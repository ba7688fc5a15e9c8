//! Test support: scripted conversations, realistic damage to captures, and the truth to compare results with.
//!
//! - Synthetic captures: start with [`Conversation`], which turns messages of client and server into TCP packets.
//!   [`smb1`] and [`smb2`] encode the messages; [`script`] plays random conversations and knows the matching requests
//!   and responses; [`traffic`] writes large captures from a seed.
//! - Damage and encoding: [`damage`] applies effects of networks and captures; [`pcap`] writes files, [`encapsulation`]
//!   wraps their packets in tunnels, and [`frame`] edits them in place.
//! - Real captures: [`recording`] holds a capture to damage, and [`judge`] compares the analysis of the damaged copy
//!   with the truth.
//! - [`server`] answers real clients according to a script, faults included. [`exchange`] builds exchanges for tests of
//!   the code after the analysis. [`generated`] updates parts of files. [`skip`] reports missing prerequisites of a test, and
//!   [`eventually`] waits for other processes.

#![forbid(unsafe_code)]

pub mod aggregate;
pub mod conversation;
pub mod damage;
pub mod encapsulation;
pub mod exchange;
pub mod frame;
pub mod generated;
pub mod judge;
pub mod packet;
pub mod pcap;
pub mod random;
pub mod recording;
pub mod script;
pub mod server;
pub mod skip;
pub mod smb1;
pub mod smb2;
pub mod traffic;
pub mod tunnel;
mod wait;

pub use conversation::{Conversation, Span, framed};
pub use frame::Frame;
pub use packet::{Packet, Side, micros};
pub use wait::eventually;
