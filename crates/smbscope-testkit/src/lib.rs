//! For tests only: conversations told as a story, the damage that captures suffer, and the truth to compare with.
//!
//! [`Conversation`] turns what client and server say into TCP packets; [`smb1`] and [`smb2`] encode what they say;
//! [`damage`] does to packets what captures and networks do; [`script`] plays random conversations and knows which
//! response belongs to which request; [`pcap`] writes it all to a file, and [`encapsulation`] wraps a file's packets in
//! tunnels; [`frame`] changes the bytes of packets that a file holds. [`recording`] is a real capture to damage, and [`judge`] compares what an analysis finds in the damaged copy
//! with the truth. [`traffic`] writes large captures from a seed.
//! [`server`] answers real clients with what a script says, faults included. [`exchange`] makes exchanges for what comes
//! after the analysis. [`skip`] says what a test lacks.

#![forbid(unsafe_code)]

pub mod conversation;
pub mod damage;
pub mod encapsulation;
pub mod exchange;
pub mod frame;
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

pub use conversation::{Conversation, Span, framed};
pub use frame::Frame;
pub use packet::{Packet, Side, micros};
