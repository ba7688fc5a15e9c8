//! Statistics of a server: smbd's profile, its clients, and its emulated disk.
//!
//! The profile counts operations and sums up their time inside smbd from request to response, including waits for the
//! disk (`smbd profiling level = on`, smb.conf(5)).

use serde::{Deserialize, Serialize};
use smbscope_model::named;
use std::time::Duration;

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum SambaOperation {
        Create = "create",
        Close = "close",
        Read = "read",
        Write = "write",
        Flush = "flush",
        QueryInfo = "query_info",
        SetInfo = "set_info",
        QueryDirectory = "query_directory",
        Lock = "lock",
        Ioctl = "ioctl",
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SambaCount {
    pub count: u64,
    pub time: Duration,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SambaClients {
    pub sessions: u64,
    pub open_files: u64,
    pub locks: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmbstatusReading<T> {
    pub value: T,
    pub cpu: Duration,
}

/// Counted since the server's start, like Linux does (Documentation/admin-guide/iostats.rst).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageFigures {
    pub reads: u64,
    pub writes: u64,
    pub flushes: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub outstanding: u64,
    pub busy: Duration,
    pub weighted: Duration,
}
