//! Vocabulary of smbscope: the types that all other crates share.
//!
//! Captures and the load generator produce [`Exchange`]s; statistics and reports consume them. [`exchange`] defines
//! the measured times, [`command`] the operation groups, [`quality`] the counters of what a capture could not show.
//! [`units`] parses and prints quantities, [`prose`] formats numbers and names for sentences.

pub mod caching;
pub mod capture;
pub mod command;
pub mod connect_attempts;
pub mod connection;
pub mod coverage;
pub mod exchange;
pub mod group;
pub mod groups;
pub mod ids;
pub mod limits;
mod named;
pub mod offers;
pub mod prose;
pub mod quality;
pub mod skipped;
pub mod time;
pub mod travel;
pub mod units;

pub use caching::GrantedCaching;
pub use capture::{CaptureClockOffset, CaptureInfo};
pub use command::{Command, Dialect, Protocol, Subcommand};
pub use connect_attempts::{ConnectAttempt, ConnectAttempts};
pub use connection::{ConnectionSummary, DirectionCounts, ForeignProtocol, ForeignReply, Outage, SeenTwice, Settled};
pub use coverage::{Coverage, UntimedShare};
pub use exchange::{
    CUT_NAME_MARK, Endpoints, Exchange, ExchangeOutcome, FileId, Half, ResponseStatus, STANDSTILL_LEAST, Standstill,
    TimeKind,
};
pub use group::CommandGroup;
pub use ids::{CaptureId, ClockStep, FlowDirection, FlowId, PacketRef, Role, Stamp};
pub use limits::MemoryBudget;
pub use offers::{Capabilities, ClientOffer, Offers, ServerOffer, SigningOffer};
pub use quality::Quality;
pub use skipped::{SkippedPackets, SkippedProtocol};
pub use time::{Nanos, Timestamp};
