//! What a user works on: a session of the SMB client, or in tests a mock of it with a time of its own.

use crate::workload::Action;
use serde::{Deserialize, Serialize};
use smbscope_client::{ClientError, Samples};
use smbscope_model::{Dialect, Endpoints};
use smbscope_wire::status::NtStatus;
use std::sync::Arc;

/// What an action came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Performed {
    /// The server's last word, or STATUS_INVALID_HANDLE where an action needs an open file that is not there.
    pub(crate) status: NtStatus,
    /// File data that came.
    pub(crate) bytes_read: u64,
    /// File data that went.
    pub(crate) bytes_written: u64,
    /// Files, and no directories, that were opened.
    pub(crate) files_opened: u32,
    /// Commands that should have been outstanding together, and that were; 0 where one was enough.
    pub(crate) queue: CommandQueueDepth,
}

/// Commands outstanding together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CommandQueueDepth {
    /// As many as the workload wants.
    pub asked: u32,
    /// The most there were.
    pub reached: u32,
}

impl CommandQueueDepth {
    /// The most of both.
    pub(crate) fn add(&mut self, other: CommandQueueDepth) {
        *self = CommandQueueDepth { asked: self.asked.max(other.asked), reached: self.reached.max(other.reached) };
    }
}

impl Performed {
    /// An answer without data.
    pub(crate) fn with_status(status: NtStatus) -> Performed {
        Performed { status, ..Performed::DONE }
    }

    /// An action that succeeded and moved no data.
    pub(crate) const DONE: Performed = Performed {
        status: NtStatus::SUCCESS,
        bytes_read: 0,
        bytes_written: 0,
        files_opened: 0,
        queue: CommandQueueDepth { asked: 0, reached: 0 },
    };
}

/// Who and where: what the exchanges of a session have in common.
#[derive(Debug, Clone)]
pub(crate) struct SessionIdentity {
    pub(crate) endpoints: Endpoints,
    pub(crate) dialect: Dialect,
    pub(crate) user: Option<Arc<str>>,
    pub(crate) share: Option<Arc<str>>,
}

/// Makes sessions, for all workers.
pub(crate) trait SessionFactory: Sync {
    type Session: ServerSession;

    /// Connects, until the session can be used.
    async fn connect(&self) -> Result<Self::Session, ClientError>;
}

/// A session on which actions are performed one after the other.
pub(crate) trait ServerSession {
    /// Performs an action other than thinking. A status is no error here, whatever it says; an error means that the
    /// session can be used no longer.
    async fn perform(&mut self, action: &Action<'_>) -> Result<Performed, ClientError>;

    /// The connection that the next action will be performed on, from 0.
    fn connection(&self) -> usize;

    /// Commands of a connection since the caller last emptied it.
    fn samples(&mut self, connection: usize) -> &mut Samples;

    /// How many connections there are.
    fn connections(&self) -> usize;

    /// Who and where.
    fn identity(&self, connection: usize) -> SessionIdentity;

    /// Waits until the server wants something, or a connection ends; may be dropped at any time.
    async fn disturbed(&self) -> Result<(), ClientError>;

    /// Does what the server wants: gives back oplocks and leases.
    async fn attend(&mut self) -> Result<(), ClientError>;

    /// Closes what actions left open.
    async fn close_all(&mut self) -> Result<(), ClientError>;

    /// Says goodbye.
    async fn disconnect(&mut self) -> Result<(), ClientError>;
}
