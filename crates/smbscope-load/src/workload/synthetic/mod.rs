//! Workloads of a TOML file: operations with weights, each a list of steps, on a set of files.
//!
//! [`parse`] checks everything that can be checked without a server, so that a script needs no error: handles that are
//! open, files that have been chosen, sizes that exist.

mod check;
mod parts;
mod raw;
mod script;
mod source;
#[cfg(test)]
mod tests;

pub(super) use check::{parameters, parse, with_parameters};
pub(super) use script::SyntheticScript;

use super::action::Expected;
use super::draw::{SizeDistribution, Times};
use super::file_set::FileSet;
use super::{CreatedPaths, Scenarios};
use smbscope_client::{CreateDisposition, FsctlProfile, Info, TreeConnectTarget};
use smbscope_model::Dialect;

/// What a file says.
pub(super) struct Parsed {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) synthetic: Synthetic,
}

/// A workload that was read, and checked.
#[derive(Debug)]
pub(super) struct Synthetic {
    operations: Vec<String>,
    /// Each with the sum of the weights up to it, or with how often it is performed in a row.
    choices: Vec<(u64, Vec<SyntheticStep>)>,
    order: OperationOrder,
    start: Vec<SyntheticStep>,
    think: Times,
    scenarios: Option<Scenarios>,
    files: FileSet,
    slots: u32,
    /// Users make files or directories of their own.
    makes: bool,
    /// Nothing beside the numbered names of every workload.
    made: CreatedPaths,
    /// Tells the random numbers of workloads apart.
    salt: u64,
}

/// FILE_SHARE_READ, FILE_SHARE_WRITE and FILE_SHARE_DELETE.
const SHARE_ALL: u32 = 0x7;

/// In which order users perform operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OperationOrder {
    /// Drawn by weight, without end.
    Random,
    /// In that of the file, each N times in a row; then a pass is over.
    Sequence,
}

/// A step.
#[derive(Debug, Clone)]
struct SyntheticStep {
    what: What,
    expected: Expected,
    /// Index into the operations; absent for what is not counted.
    operation: Option<usize>,
    completes: bool,
}

#[derive(Debug, Clone)]
enum What {
    Open {
        slot: u32,
        file: Choose,
        access: u32,
        disposition: CreateDisposition,
    },
    Close {
        slot: u32,
    },
    Read {
        slot: u32,
        at: At,
        length: TransferLength,
    },
    Write {
        slot: u32,
        at: At,
        length: TransferLength,
    },
    Flush {
        slot: u32,
    },
    Lock {
        slot: u32,
        offset: u64,
        length: u64,
        exclusive: bool,
    },
    Unlock {
        slot: u32,
        offset: u64,
        length: u64,
    },
    QueryFile {
        slot: u32,
        info: Info,
    },
    QueryPath {
        file: Choose,
        info: Info,
    },
    QueryFileSystem {
        info: Info,
    },
    SetBasic {
        slot: u32,
    },
    SetEnd {
        slot: u32,
        size: u64,
    },
    List {
        directory: Directory,
        pattern: String,
        info: Info,
    },
    Remove,
    Rename,
    MakeDirectory,
    RemoveDirectory,
    OpenReadClose {
        file: Choose,
        at: At,
        length: SizeDistribution,
    },
    /// Every directory of the set and every file in it, which is read in blocks; so many files at once.
    Walk {
        slot: u32,
        block: u64,
        parallel: u32,
    },
    Control {
        control: &'static FsctlProfile,
        /// Of a code that is about an open file.
        slot: Option<u32>,
    },
    SessionSetup,
    TreeConnect(TreeConnectTarget),
    Echo,
    Think(Times),
}

/// How much is read or written.
#[derive(Debug, Clone)]
enum TransferLength {
    /// In one step.
    Once(SizeDistribution),
    /// In blocks, with so many of them outstanding.
    Blocks { of: Total, block: u64, depth: u32 },
}

/// How much blocks come to.
#[derive(Debug, Clone)]
enum Total {
    /// As much as the file has.
    File,
    Bytes(SizeDistribution),
}

/// Which file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choose {
    /// Any of the set.
    Random,
    /// The next one of the set, from the first to the last and again.
    Next,
    /// The one that the step before worked with.
    Same,
    /// One that was never there, with a name of its own.
    New,
    /// A name that is never there.
    Missing,
}

/// Which directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Directory {
    /// Any of the set.
    Random,
    /// The one that the user makes files in.
    New,
}

/// Which bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Offset(u64),
    /// Any multiple of the length that the file has room for.
    Random,
    /// Behind the transfer before; from the beginning where the file has no more room.
    Sequential,
}

impl Synthetic {
    pub(super) fn operations(&self) -> &[String] {
        &self.operations
    }

    pub(super) fn file_set(&self) -> &FileSet {
        &self.files
    }

    pub(super) fn scenarios(&self) -> Option<Scenarios> {
        self.scenarios
    }

    /// What can't be done in a dialect: what it is, and why.
    pub(super) fn unsupported_in(&self, dialect: Dialect) -> Option<(String, &'static str)> {
        let lines = self.choices.iter().flat_map(|(_, lines)| lines).chain(&self.start);
        lines
            .filter_map(|line| match line.what {
                What::Control { control, .. } => Some(control),
                _ => None,
            })
            .find_map(|control| Some((control.code.to_string(), control.unsupported_in(dialect)?)))
    }

    /// Whether there is an end, after which users begin again.
    pub(super) fn has_queues(&self) -> bool {
        self.choices.iter().flat_map(|(_, lines)| lines).any(|line| match &line.what {
            What::Read { length, .. } | What::Write { length, .. } => {
                matches!(length, TransferLength::Blocks { depth: 2.., .. })
            }
            What::Walk { parallel, .. } => *parallel > 1,
            _ => false,
        })
    }

    pub(super) fn has_end(&self) -> bool {
        self.order == OperationOrder::Sequence
    }
}

/// Whether a text is rather a TOML file than a loadfile: its first line with content is a table or an assignment.
pub(super) fn looks_like_toml(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.next().is_some_and(|line| {
        let key = line.split('=').next().unwrap_or(line).trim();
        line.starts_with('[') || (line.contains('=') && !key.contains([' ', '\t', '\\', '/']))
    })
}
