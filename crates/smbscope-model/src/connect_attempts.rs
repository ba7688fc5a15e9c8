//! TCP connections to an SMB server that never carried SMB: refused, unanswered, or closed again.

use crate::ids::Stamp;
use crate::time::{Nanos, Timestamp};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// Failed attempts of a client to connect to a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectAttempt {
    /// The client.
    pub client: IpAddr,
    /// The server.
    pub server: SocketAddr,
    /// TCP connections tried: one for each SYN with a sequence number of its own.
    pub attempts: u64,
    /// SYNs sent, retransmissions included.
    pub syns: u64,
    /// Attempts that the server, or a firewall in its name, answered with RST.
    pub refused: u64,
    /// Attempts without any answer.
    pub unanswered: u64,
    /// Connections that the server accepted and a side closed or reset before any SMB message.
    pub closed_without_data: u64,
    /// First SYN of the first attempt.
    pub first: Stamp,
    /// Last packet of all attempts.
    pub last: Timestamp,
    /// Longest time from the first SYN of an attempt to its last packet.
    pub longest_wait: Nanos,
}

impl ConnectAttempt {
    /// Pairs of client and server that are listed.
    pub const MAX_LISTED: usize = 64;

    /// Adds other attempts of the same client to connect to the same server.
    pub fn merge(&mut self, other: &ConnectAttempt) {
        self.attempts += other.attempts;
        self.syns += other.syns;
        self.refused += other.refused;
        self.unanswered += other.unanswered;
        self.closed_without_data += other.closed_without_data;
        if (other.first.time, other.first.packet) < (self.first.time, self.first.packet) {
            self.first = other.first;
        }
        self.last = self.last.max(other.last);
        self.longest_wait = self.longest_wait.max(other.longest_wait);
    }
}

/// All failed attempts to connect to an SMB server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectAttempts {
    /// At most [`ConnectAttempt::MAX_LISTED`], those with most attempts first.
    pub listed: Vec<ConnectAttempt>,
    /// Attempts that are not in the list because it was full.
    pub left_out: u64,
}

impl ConnectAttempts {
    /// Returns true if there were none.
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.left_out == 0
    }
}
