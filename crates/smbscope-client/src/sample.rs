//! Results of a session: its negotiated parameters, and a sample of each command, timed at the socket.

use crate::{Cipher, SigningAlgorithm};
use smbscope_model::{Command, CommandGroup, Dialect, ExchangeOutcome, FileId, Subcommand};
use smbscope_wire::smb2;
use smbscope_wire::status::NtStatus;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// A command and its response. The times are an exchange's, as close to the wire as a process can measure: before and
/// after handing the request to the kernel, and when the kernel returned the first and last response bytes.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    pub command: Command,
    pub subcommand: Option<Subcommand>,
    pub group: CommandGroup,
    pub message_id: u64,
    pub session_id: u64,
    pub tree_id: u32,
    pub file_id: Option<FileId>,
    pub status: Option<NtStatus>,
    /// Just before the first byte was handed to the kernel.
    pub request_first: Instant,
    pub request_last: Instant,
    pub interim: Option<Instant>,
    pub response_first: Instant,
    pub response_last: Instant,
    /// Size of the SMB message without framing.
    pub request_bytes: u32,
    pub response_bytes: u32,
    pub offset: Option<u64>,
    pub length: Option<u32>,
    /// True if the command shares its frame, and so its times, with other members of a compound.
    pub compounded: bool,
    pub signed: bool,
    pub encrypted: bool,
    /// `Complete`, `Unanswered` if the connection ended first, `NoResponseByDesign`, or `ServerInitiated`.
    pub outcome: ExchangeOutcome,
}

impl Sample {
    pub fn response_time(&self) -> Option<Duration> {
        let complete = self.outcome == ExchangeOutcome::Complete;
        complete.then(|| self.response_last.saturating_duration_since(self.request_first))
    }

    /// Returns true for an oplock or lease break and its acknowledgement.
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
    pub cipher: Option<Cipher>,
    pub max_read: u32,
    pub max_write: u32,
    pub max_transact: u32,
    pub guest: bool,
}
