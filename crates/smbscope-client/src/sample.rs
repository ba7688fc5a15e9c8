//! Results of a session: its negotiated parameters, and a sample of each command, timed at the socket.

use crate::transport::ReceiveTimes;
use crate::{Cipher, FileHandle, SigningAlgorithm};
use smbscope_model::{Command, CommandGroup, Dialect, ExchangeOutcome, FileId, Subcommand, groups};
use smbscope_wire::smb2::{self, FileReference};
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

/// Parameters of a request that its sample keeps.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RequestDetails {
    pub(crate) subcommand: Option<Subcommand>,
    pub(crate) file: Option<FileId>,
    pub(crate) offset: Option<u64>,
    pub(crate) length: Option<u32>,
    /// True for an expected wait, which has no time limit.
    pub(crate) waits: bool,
}

impl RequestDetails {
    pub(crate) fn subcommand(subcommand: Subcommand) -> RequestDetails {
        RequestDetails { subcommand: Some(subcommand), ..RequestDetails::default() }
    }

    pub(crate) fn file(file: impl Into<FileHandle>) -> RequestDetails {
        RequestDetails { file: Some(file.into().0), ..RequestDetails::default() }
    }

    pub(crate) fn range(file: impl Into<FileHandle>, offset: u64, length: u32) -> RequestDetails {
        RequestDetails { offset: Some(offset), length: Some(length), ..RequestDetails::file(file) }
    }

    pub(crate) fn with(self, subcommand: Subcommand) -> RequestDetails {
        RequestDetails { subcommand: Some(subcommand), ..self }
    }
}

impl From<u16> for FileHandle {
    fn from(fid: u16) -> FileHandle {
        FileHandle(FileId::Smb1(fid))
    }
}

impl From<FileReference> for FileHandle {
    fn from(FileReference { persistent, volatile }: FileReference) -> FileHandle {
        FileHandle(FileId::Smb2 { persistent, volatile })
    }
}

/// Ids in a message's header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeaderIds {
    pub(crate) message: u64,
    pub(crate) session: u64,
    pub(crate) tree: u32,
}

impl Sample {
    /// Creates the sample of an unanswered request with its times still to come.
    pub(crate) fn new(command: Command, about: RequestDetails, ids: HeaderIds, now: Instant) -> Sample {
        Sample {
            command,
            subcommand: about.subcommand,
            group: match command {
                Command::Smb1(command) => groups::smb1(command, about.subcommand, about.waits),
                Command::Smb2(command) => groups::smb2(command, about.subcommand, about.waits),
                Command::EncryptedFrame => CommandGroup::Encrypted,
            },
            message_id: ids.message,
            session_id: ids.session,
            tree_id: ids.tree,
            file_id: about.file,
            status: None,
            request_first: now,
            request_last: now,
            interim: None,
            response_first: now,
            response_last: now,
            request_bytes: 0,
            response_bytes: 0,
            offset: about.offset,
            length: about.length,
            compounded: false,
            signed: false,
            encrypted: false,
            outcome: ExchangeOutcome::Unanswered,
        }
    }

    /// Creates the sample of an oplock or lease break: the server's own message, without a request or a response time.
    pub(crate) fn of_break(
        command: Command,
        file: Option<FileId>,
        ids: HeaderIds,
        arrived: ReceiveTimes,
        bytes: usize,
    ) -> Sample {
        let about = RequestDetails { file, waits: true, ..RequestDetails::subcommand(Subcommand::ServerInitiated) };
        Sample {
            request_last: arrived.last,
            outcome: ExchangeOutcome::ServerInitiated,
            ..Sample::new(command, about, ids, arrived.first).received(arrived, bytes)
        }
    }

    pub(crate) fn received(self, arrived: ReceiveTimes, bytes: usize) -> Sample {
        let response_bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        Sample { response_first: arrived.first, response_last: arrived.last, response_bytes, ..self }
    }

    pub(crate) fn completed(self, arrived: ReceiveTimes, bytes: usize) -> Sample {
        Sample { outcome: ExchangeOutcome::Complete, ..self.received(arrived, bytes) }
    }

    /// Returns the sample of a request that gets no response any more.
    pub(crate) fn abandoned(self, now: Instant) -> Sample {
        Sample { response_first: now, response_last: now, ..self }
    }

    /// Returns the time from the first byte of the request to the last byte of the response. Returns `None` unless the
    /// sample is complete.
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
