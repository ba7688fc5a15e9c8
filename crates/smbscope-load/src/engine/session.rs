//! The interface between a user and its session: the SMB client or, in tests, a mock with simulated time.

use crate::workload::Action;
use serde::{Deserialize, Serialize};
use smbscope_client::{ClientError, Samples};
use smbscope_model::{Dialect, Endpoints};
use smbscope_wire::status::NtStatus;
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Performed {
    /// Final status of the server, or STATUS_INVALID_HANDLE if an action needs an open file that is missing.
    pub(crate) status: NtStatus,
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
    /// Number of files opened, without directories.
    pub(crate) files_opened: u32,
    /// Zero if the action needed only one command at a time.
    pub(crate) queue: CommandQueueDepth,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CommandQueueDepth {
    pub asked: u32,
    pub reached: u32,
}

impl CommandQueueDepth {
    pub(crate) fn add(&mut self, other: CommandQueueDepth) {
        *self = CommandQueueDepth { asked: self.asked.max(other.asked), reached: self.reached.max(other.reached) };
    }
}

impl Performed {
    pub(crate) fn with_status(status: NtStatus) -> Performed {
        Performed { status, ..Performed::DONE }
    }

    pub(crate) const DONE: Performed = Performed {
        status: NtStatus::SUCCESS,
        bytes_read: 0,
        bytes_written: 0,
        files_opened: 0,
        queue: CommandQueueDepth { asked: 0, reached: 0 },
    };
}

/// Fields that all exchanges of a session have in common.
#[derive(Debug, Clone)]
pub(crate) struct SessionIdentity {
    pub(crate) endpoints: Endpoints,
    pub(crate) dialect: Dialect,
    pub(crate) user: Option<Arc<str>>,
    pub(crate) share: Option<Arc<str>>,
}

pub(crate) trait SessionFactory: Sync {
    type Session: ServerSession;

    async fn connect(&self) -> Result<Self::Session, ClientError>;
}

pub(crate) trait ServerSession {
    /// Performs an action other than thinking. No status is an error here; an error means that the session is unusable.
    async fn perform(&mut self, action: &Action<'_>) -> Result<Performed, ClientError>;

    /// Index of the connection that will perform the next action.
    fn connection(&self) -> usize;

    /// Commands of a connection since the caller last emptied the list.
    fn samples(&mut self, connection: usize) -> &mut Samples;

    fn connections(&self) -> usize;

    fn identity(&self, connection: usize) -> SessionIdentity;

    /// Waits for a request from the server or the end of a connection. Cancel-safe.
    async fn disturbed(&self) -> Result<(), ClientError>;

    /// Handles the server's requests: acknowledges oplock and lease breaks.
    async fn attend(&mut self) -> Result<(), ClientError>;

    async fn close_all(&mut self) -> Result<(), ClientError>;

    async fn disconnect(&mut self) -> Result<(), ClientError>;
}
