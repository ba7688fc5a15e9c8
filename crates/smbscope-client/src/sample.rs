//! One command as the client saw it, with the times at the edge of the socket.

use smbscope_model::{Command, CommandGroup, ExchangeOutcome, FileId, Subcommand};
use smbscope_wire::smb2;
use smbscope_wire::status::NtStatus;
use std::time::{Duration, Instant};

/// A command and its answer. The four times are those of an exchange (first and last byte of request and response), as
/// near to the wire as a process gets: before and after handing the request to the system, and when the system handed
/// out the first and the last bytes of the response.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// The command.
    pub command: Command,
    /// What it was used for.
    pub subcommand: Option<Subcommand>,
    /// Where it is counted.
    pub group: CommandGroup,
    /// SMB2 MessageId or SMB1 MID.
    pub message_id: u64,
    /// SMB2 SessionId or SMB1 UID.
    pub session_id: u64,
    /// SMB2 TreeId or SMB1 TID.
    pub tree_id: u32,
    /// The open that it works on.
    pub file_id: Option<FileId>,
    /// Status of the final response; absent where none came.
    pub status: Option<NtStatus>,
    /// Just before the first byte of the request went to the system.
    pub request_first: Instant,
    /// Just after the last one did.
    pub request_last: Instant,
    /// When the first interim response was there.
    pub interim: Option<Instant>,
    /// When the first bytes of the response were there.
    pub response_first: Instant,
    /// When the last ones were.
    pub response_last: Instant,
    /// Bytes of the SMB message, without framing.
    pub request_bytes: u32,
    /// Bytes of the SMB message, without framing.
    pub response_bytes: u32,
    /// File offset of reads, writes and locks.
    pub offset: Option<u64>,
    /// Length asked for of reads, writes and locks.
    pub length: Option<u32>,
    /// Shares its frame, and so its times, with other members of a compound.
    pub compounded: bool,
    /// The request carried a signature.
    pub signed: bool,
    /// The request was encrypted.
    pub encrypted: bool,
    /// [`Outcome::Complete`], [`Outcome::Unanswered`] where the connection ended first, [`Outcome::NoResponseByDesign`], or
    /// [`Outcome::ServerInitiated`].
    pub outcome: ExchangeOutcome,
}

impl Sample {
    /// Request first to response last; of complete ones.
    pub fn response_time(&self) -> Option<Duration> {
        let complete = self.outcome == ExchangeOutcome::Complete;
        complete.then(|| self.response_last.saturating_duration_since(self.request_first))
    }

    /// A break of an oplock or lease, or its acknowledgement: what the server wants, and no part of what a user does.
    pub fn is_servers_wish(&self) -> bool {
        self.outcome == ExchangeOutcome::ServerInitiated
            || self.command == Command::Smb2(smb2::Smb2Command::OPLOCK_BREAK)
            || self.subcommand == Some(Subcommand::ServerInitiated)
    }
}

/// Commands since the samples were last taken: the user's task empties it after each operation.
pub type Samples = Vec<Sample>;
