//! Vocabulary of smbscope: the types that all other crates share.
//!
//! Captures and the load generator produce [`Exchange`]s; statistics and reports consume them. [`exchange`] defines
//! the measured times, [`groups`] the commands and their groups, [`quality`] the counters of missing and damaged data.
//! [`units`] parses and prints quantities, [`prose`] formats numbers and names for sentences.

pub mod capture;
pub mod connection;
pub mod decryption;
pub mod exchange;
pub mod groups;
pub mod offers;
pub mod prose;
pub mod quality;
pub mod time;
pub mod travel;
pub mod tunnel;
pub mod units;

pub use capture::{CaptureClockOffset, CaptureInfo, EncapsulatedTraffic, SkippedPackets, SkippedProtocol};
pub use connection::{
    ConnectAttempt, ConnectAttempts, ConnectionProxy, ConnectionSummary, DirectionCounts, ForeignProtocol,
    ForeignReply, ForeignTraffic, Outage, ProxyProtocol, SeenTwice, Settled,
};
pub use exchange::{
    CUT_NAME_MARK, Endpoints, Exchange, ExchangeOutcome, FileId, GrantedCaching, Half, ResponseStatus,
    STANDSTILL_LEAST, Standstill, TimeKind,
};
pub use groups::{Command, CommandGroup, Dialect, Protocol, Subcommand};
pub use offers::{Capabilities, ClientOffer, Offers, ServerOffer, SigningOffer};
pub use quality::{Coverage, MemoryBudget, Quality, UntimedShare};
pub use time::{CaptureId, ClockStep, FlowDirection, FlowId, Nanos, PacketRef, Role, Stamp, Timestamp};
pub use tunnel::{TunnelKind, TunnelPort, TunnelPorts};

/// Declares an enumeration from values and their names, with `ALL`, `name` and `Display`.
#[macro_export]
macro_rules! named {
    (
        $(#[$meta:meta])*
        pub enum $type:ident {
            $( $(#[$value_meta:meta])* $value:ident = $name:literal, )*
        }
    ) => {
        $(#[$meta])*
        pub enum $type {
            $( $(#[$value_meta])* $value, )*
        }

        impl $type {
            pub const ALL: [$type; [$($name),*].len()] = [$($type::$value),*];

            /// Returns the name used in reports and on the command line.
            pub const fn name(self) -> &'static str {
                match self {
                    $($type::$value => $name,)*
                }
            }
        }

        impl ::std::fmt::Display for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}
