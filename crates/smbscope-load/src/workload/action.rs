//! The steps of a user, as data: the engine performs them on a session.

use super::Own;
use smbscope_client::{ByteRangeLock, CreateDisposition, FileRange, FsctlProfile, Info, TreeConnectTarget, WholeFile};
use smbscope_wire::names::Fsctl;
use smbscope_wire::status::NtStatus;
use std::time::Duration;

/// A place for an open file in a user's table: what a loadfile calls a handle. Scripts use few of them, from 0 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HandleSlot(pub u32);

/// Something to do. Paths are those that the server sees, the user's own directory included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Action<'a> {
    /// Opens or creates, into a slot. What the slot still holds is closed first: it is there only where an open was
    /// expected to fail, and did not.
    Open {
        /// Where the open file goes.
        slot: HandleSlot,
        /// What to open.
        path: &'a str,
        /// `client::access`
        access: u32,
        /// FILE_SHARE_*
        share: u32,
        /// What to do where the file exists, or does not.
        disposition: CreateDisposition,
        /// `client::create_options`
        options: u32,
        /// MS-FSCC 2.6
        attributes: u32,
    },
    /// Closes what is in the slot.
    Close(HandleSlot),
    /// Reads.
    Read {
        /// The open file.
        slot: HandleSlot,
        /// First byte.
        offset: u64,
        /// Bytes.
        length: u32,
    },
    /// Writes bytes of the engine's making.
    Write {
        /// The open file.
        slot: HandleSlot,
        /// First byte.
        offset: u64,
        /// Bytes.
        length: u32,
    },
    /// Reads or writes ranges with several commands outstanding.
    Queue {
        /// The open file.
        slot: HandleSlot,
        /// Which bytes, in this order.
        ranges: &'a [FileRange],
        /// How many commands.
        depth: u32,
        /// They are written.
        writes: bool,
    },
    /// Opens, reads and closes files, several at once.
    ReadFiles {
        /// Which, in this order.
        files: &'a [WholeFile],
        /// Bytes of a read at most.
        block: u32,
        /// How many files.
        at_once: u32,
    },
    /// Flushes.
    Flush(HandleSlot),
    /// Locks.
    Lock(HandleSlot, ByteRangeLock),
    /// Unlocks.
    Unlock {
        /// The open file.
        slot: HandleSlot,
        /// First byte.
        offset: u64,
        /// Bytes.
        length: u64,
    },
    /// Information about an open file.
    QueryFile(HandleSlot, Info),
    /// Information about a path.
    QueryPath(&'a str, Info),
    /// Information about the file system.
    QueryFileSystem(Info),
    /// Sets times and attributes of an open file to what they are (all zero: no change).
    SetBasic(HandleSlot),
    /// Sets the end of an open file.
    SetEnd(HandleSlot, u64),
    /// Marks an open file to be deleted with its close, or takes that back.
    SetDelete(HandleSlot, bool),
    /// Lists what matches the last part of a path.
    List {
        /// `dir\*`
        pattern: &'a str,
        /// Directory class.
        info: Info,
        /// Entries at most; 0 is all.
        most: usize,
    },
    /// Gives an open file another path.
    RenameOpen {
        /// The open file.
        slot: HandleSlot,
        /// New path.
        to: &'a str,
        /// A file that is there gives way.
        replace: bool,
    },
    /// Lists what is next of an open directory: a single command.
    ListOpen {
        /// The open directory.
        slot: HandleSlot,
        /// What names must match; looked at with the first one.
        pattern: &'a str,
        /// Directory class.
        class: u8,
        /// MS-SMB2 2.2.33
        flags: u8,
    },
    /// Removes a file.
    RemoveFile(&'a str),
    /// Renames.
    Rename {
        /// Old path.
        from: &'a str,
        /// New path.
        to: &'a str,
    },
    /// Makes a directory.
    MakeDirectory(&'a str),
    /// Removes an empty directory.
    RemoveDirectory(&'a str),
    /// Removes a directory with all in it that smbscope makes; there may be none.
    RemoveTree(&'a str, Own<'a>),
    /// Opens, reads and closes.
    OpenReadClose {
        /// The file.
        path: &'a str,
        /// First byte.
        offset: u64,
        /// Bytes.
        length: u32,
    },
    /// Sends a control code, about an open file or about the server.
    Control {
        /// Which.
        control: &'static FsctlProfile,
        /// The open file, where it is about one.
        slot: Option<HandleSlot>,
    },
    /// Authenticates again on the session; open files stay open.
    SessionSetup,
    /// Connects to a share once more, and disconnects from it.
    TreeConnect(TreeConnectTarget),
    /// A round trip.
    Echo,
    /// Nothing, for a time: the user thinks.
    Think(Duration),
}

/// An action, what it is called in the results, and what the server is expected to answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScriptStep<'a> {
    /// What to do.
    pub action: Action<'a>,
    /// The operation that it is counted as: an index into [`Script::operations`]. Absent for steps that are not
    /// counted, such as thinking.
    pub operation: Option<usize>,
    /// What the server is expected to answer.
    pub expected: Expected,
    /// The last step of an operation: an operation's time runs from its first step to its last.
    pub completes: bool,
    /// Where it comes from: the line of a loadfile, for messages.
    pub line: Option<u32>,
}

/// What the server is expected to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Expected {
    /// Anything that is no error.
    Success,
    /// This status; where it is STATUS_SUCCESS, anything that is no error.
    Status(NtStatus),
    /// Anything that is no error, or what any server says to this control code that has nothing of the kind.
    SuccessOrRefusalOf(Fsctl),
    /// Any error.
    Failure,
    /// It does not matter.
    Anything,
}

impl Expected {
    /// Whether this answer is the expected one.
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

/// The endless or finite sequence of steps of one user.
pub trait Script {
    /// Names of the operations, the same for every user of a workload.
    fn operations(&self) -> &[String];

    /// The next step; `None` when the user has done all there was to do.
    fn next(&mut self) -> Option<ScriptStep<'_>>;

    /// Starts over from the very beginning: for a new session, whose table of open files is empty. A loadfile begins by
    /// removing what its user left behind, so it can be started over at any point.
    fn restart(&mut self);

    /// Whether the next step still belongs to what a user does once before the work: making files, opening what stays
    /// open. Nothing is to be measured until every user is past it.
    fn sets_up(&self) -> bool {
        false
    }

    /// How often the user has been through the whole of a workload that has an end; absent where it has none.
    fn passes(&self) -> Option<u32> {
        None
    }
}
