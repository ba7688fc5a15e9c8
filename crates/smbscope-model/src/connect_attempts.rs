//! TCP connections to an SMB server that never carried SMB: refused, unanswered, or closed again.

use crate::ids::Stamp;
use crate::time::{Nanos, Timestamp};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// Failed attempts of a client to connect to a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectAttempt {
    pub client: IpAddr,
    pub server: SocketAddr,
    /// Number of connection attempts: SYNs with distinct sequence numbers.
    pub attempts: u64,
    /// SYNs, including retransmissions.
    pub syns: u64,
    /// Attempts that the server, or a firewall in between, answered with RST.
    pub refused: u64,
    pub unanswered: u64,
    /// Connections accepted by the server and closed or reset by either side before any SMB message.
    pub closed_without_data: u64,
    /// First SYN of the first attempt.
    pub first: Stamp,
    /// Last packet of all attempts.
    pub last: Timestamp,
    /// Longest time from the first SYN of an attempt to its last packet.
    pub longest_wait: Nanos,
}

impl ConnectAttempt {
    /// Upper limit of listed client-server pairs.
    pub const MAX_LISTED: usize = 64;

    /// Adds attempts of the same client-server pair.
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

/// All failed attempts to connect to SMB servers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectAttempts {
    /// At most [`ConnectAttempt::MAX_LISTED`], most attempts first.
    pub listed: Vec<ConnectAttempt>,
    /// Attempts omitted because the list was full.
    pub left_out: u64,
}

impl ConnectAttempts {
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.left_out == 0
    }
}
