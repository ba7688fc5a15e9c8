//! The steps of a user as data. The engine performs them on a session.

use super::Own;
use super::threads::{PassPosition, ThreadProgress};
use smbscope_client::{ByteRangeLock, CreateDisposition, FileRange, FsctlProfile, Info, TreeConnectTarget, WholeFile};
use smbscope_wire::names::Fsctl;
use smbscope_wire::status::NtStatus;
use std::time::Duration;

/// Index of an open file in a user's table; a loadfile calls it a handle. Scripts use few of them, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HandleSlot(pub u32);

/// One step. Paths are the server's, including the user's own directory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Action<'a> {
    /// Opens or creates a file in a slot. A handle still in the slot is closed first; there is one only if an open that
    /// should have failed succeeded.
    Open {
        slot: HandleSlot,
        path: &'a str,
        access: u32,
        share: u32,
        disposition: CreateDisposition,
        options: u32,
        /// FILE_ATTRIBUTE_* flags (MS-FSCC 2.6).
        attributes: u32,
    },
    Close(HandleSlot),
    Read {
        slot: HandleSlot,
        offset: u64,
        length: u32,
    },
    Write {
        slot: HandleSlot,
        offset: u64,
        length: u32,
    },
    /// Reads or writes ranges in order, with up to `depth` commands outstanding.
    Queue {
        slot: HandleSlot,
        ranges: &'a [FileRange],
        depth: u32,
        writes: bool,
    },
    /// Opens, reads and closes files in order, `at_once` of them concurrently, in reads of at most `block` bytes.
    ReadFiles {
        files: &'a [WholeFile],
        block: u32,
        at_once: u32,
    },
    Flush(HandleSlot),
    Lock(HandleSlot, ByteRangeLock),
    Unlock {
        slot: HandleSlot,
        offset: u64,
        length: u64,
    },
    QueryFile(HandleSlot, Info),
    QueryPath(&'a str, Info),
    QueryFileSystem(Info),
    /// Sets the times and attributes of an open file to zero, which means no change (MS-FSCC 2.4.7).
    SetBasic(HandleSlot),
    SetEnd(HandleSlot, u64),
    SetDelete(HandleSlot, bool),
    List {
        pattern: &'a str,
        info: Info,
        /// Maximum number of entries; 0 for all.
        most: usize,
    },
    RenameOpen {
        slot: HandleSlot,
        to: &'a str,
        replace: bool,
    },
    /// Lists the next entries of an open directory with a single command.
    ListOpen {
        slot: HandleSlot,
        /// Search pattern. The server evaluates it on the first call only.
        pattern: &'a str,
        class: u8,
        /// SMB2 QUERY_DIRECTORY flags (MS-SMB2 2.2.33).
        flags: u8,
    },
    RemoveFile(&'a str),
    Rename {
        from: &'a str,
        to: &'a str,
    },
    MakeDirectory(&'a str),
    RemoveDirectory(&'a str),
    /// Removes a directory and everything below it that smbscope creates. Succeeds if it does not exist.
    RemoveTree(&'a str, Own<'a>),
    OpenReadClose {
        path: &'a str,
        offset: u64,
        length: u32,
    },
    /// Sends a control code, for an open file or (without a slot) for the server.
    Control {
        control: &'static FsctlProfile,
        slot: Option<HandleSlot>,
    },
    /// Reauthenticates the session. Open files stay open.
    SessionSetup,
    TreeConnect(TreeConnectTarget),
    Echo,
    Think(Duration),
    /// Waits until another thread of the same recorded client has reached this position, or has failed.
    Await {
        thread: u32,
        position: PassPosition,
    },
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScriptStep<'a> {
    pub action: Action<'a>,
    /// Index into [`Script::operations`]. `None` for uncounted steps such as think time.
    pub operation: Option<usize>,
    pub expected: Expected,
    /// True for the last step of an operation. An operation's time runs from its first step to its last.
    pub completes: bool,
    pub line: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Expected {
    Success,
    /// This status. STATUS_SUCCESS stands for any status that is not an error.
    Status(NtStatus),
    /// Success, or one of the statuses with which servers refuse a control code that they do not support.
    SuccessOrRefusalOf(Fsctl),
    Failure,
    Anything,
}

impl Expected {
    pub fn is_met_by(self, status: NtStatus) -> bool {
        match self {
            Expected::Success | Expected::Status(NtStatus::SUCCESS) => !status.is_error(),
            Expected::Status(expected) => status == expected,
            Expected::SuccessOrRefusalOf(code) => {
                !status.is_error()
                    || FsctlProfile::by_code(code).is_some_and(|control| control.refusals.contains(&status))
            }
            Expected::Failure => status.is_error(),
            Expected::Anything => true,
        }
    }
}

pub trait Script {
    fn operations(&self) -> &[String];

    fn next(&mut self) -> Option<ScriptStep<'_>>;

    /// Starts over with an empty handle table, for a new session. A loadfile begins by removing its user's leftovers,
    /// so this is safe at any point.
    fn restart(&mut self);

    /// Returns true while the next step belongs to the one-time set-up: creating files, opening those that stay open.
    /// Measurement must not start before every user is past it.
    fn sets_up(&self) -> bool {
        false
    }

    /// Number of completed passes, or `None` for a workload without an end.
    fn passes(&self) -> Option<u32> {
        None
    }

    /// Progress of the threads that an [`Action::Await`] refers to. `None` for a script that never awaits another.
    fn progress(&self) -> Option<ThreadProgress> {
        None
    }

    /// Releases the scripts that await this one: its session was lost or could not be opened.
    fn abandon(&mut self) {}
}
