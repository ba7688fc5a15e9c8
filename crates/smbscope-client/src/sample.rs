//! Results of a session: its negotiated parameters, and a sample of each command, timed at the socket.

use crate::{Cipher, SigningAlgorithm};
use smbscope_model::{Command, CommandGroup, Dialect, ExchangeOutcome, FileId, Subcommand};
use smbscope_wire::smb2;
use smbscope_wire::status::NtStatus;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// A command and its response. The four times are those of an exchange (first and last byte of request and response),
/// as close to the wire as a process can measure: before and after handing the request to the kernel, and when the
/// kernel returned the first and the last bytes of the response.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    pub command: Command,
    pub subcommand: Option<Subcommand>,
    pub group: CommandGroup,
    /// SMB2 MessageId or SMB1 MID.
    pub message_id: u64,
    /// SMB2 SessionId or SMB1 UID.
    pub session_id: u64,
    /// SMB2 TreeId or SMB1 TID.
    pub tree_id: u32,
    pub file_id: Option<FileId>,
    /// Status of the final response. `None` if there was no response.
    pub status: Option<NtStatus>,
    /// Just before the first byte was handed to the kernel.
    pub request_first: Instant,
    /// Just after the last byte was handed to the kernel.
    pub request_last: Instant,
    /// Arrival of the first interim response.
    pub interim: Option<Instant>,
    /// Arrival of the first bytes of the response.
    pub response_first: Instant,
    /// Arrival of the last bytes of the response.
    pub response_last: Instant,
    /// Size of the SMB message without framing.
    pub request_bytes: u32,
    pub response_bytes: u32,
    pub offset: Option<u64>,
    /// Requested length of reads, writes and locks.
    pub length: Option<u32>,
    /// True if the command shares its frame, and so its times, with other members of a compound.
    pub compounded: bool,
    pub signed: bool,
    pub encrypted: bool,
    /// [`ExchangeOutcome::Complete`], [`ExchangeOutcome::Unanswered`] if the connection ended first,
    /// [`ExchangeOutcome::NoResponseByDesign`], or [`ExchangeOutcome::ServerInitiated`].
    pub outcome: ExchangeOutcome,
}

impl Sample {
    /// Returns the time from the first byte of the request to the last byte of the response. Returns `None` unless the
    /// sample is complete.
    pub fn response_time(&self) -> Option<Duration> {
        let complete = self.outcome == ExchangeOutcome::Complete;
        complete.then(|| self.response_last.saturating_duration_since(self.request_first))
    }

    /// Returns true for an oplock or lease break and its acknowledgement, which the server initiates rather than the
    /// user.
    pub fn is_servers_wish(&self) -> bool {
        self.outcome == ExchangeOutcome::ServerInitiated
            || self.command == Command::Smb2(smb2::Smb2Command::OPLOCK_BREAK)
            || self.subcommand == Some(Subcommand::ServerInitiated)
    }
}

pub type Samples = Vec<Sample>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionParameters {
    pub local: SocketAddr,
    pub peer: SocketAddr,
    pub dialect: Dialect,
    /// `None` if messages are not signed.
    pub signing: Option<SigningAlgorithm>,
    /// `None` if messages are not encrypted.
    pub cipher: Option<Cipher>,
    /// Maximum read size in bytes.
    pub max_read: u32,
    /// Maximum write size in bytes.
    pub max_write: u32,
    pub max_transact: u32,
    pub guest: bool,
}
