//! TOML workloads: weighted operations, each a list of steps, on a set of files.
//!
//! [`parse`] checks everything that can be checked without a server (open handles, chosen files, valid sizes), so that
//! scripts are infallible. `source.rs` has the structure of the file, `check` validates it, and `script.rs` performs
//! it.

mod check;
mod parts;
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

pub(super) struct Parsed {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) synthetic: Synthetic,
}

#[derive(Debug)]
pub(super) struct Synthetic {
    operations: Vec<String>,
    choices: Vec<(u64, Vec<SyntheticStep>)>,
    order: OperationOrder,
    start: Vec<SyntheticStep>,
    think: Times,
    scenarios: Option<Scenarios>,
    files: FileSet,
    slots: u32,
    makes: bool,
    /// Always empty: TOML workloads only create numbered names.
    made: CreatedPaths,
    /// Makes the random numbers of different workloads independent.
    salt: u64,
}

/// FILE_SHARE_READ, FILE_SHARE_WRITE and FILE_SHARE_DELETE.
const SHARE_ALL: u32 = 0x7;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OperationOrder {
    Random,
    /// In file order, each N times in a row. The end of the list completes a pass.
    Sequence,
}

#[derive(Debug, Clone)]
struct SyntheticStep {
    what: What,
    expected: Expected,
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
    /// Lists every directory of the set and reads every file in blocks, `parallel` files at a time.
    Walk {
        slot: u32,
        block: u64,
        parallel: u32,
    },
    Control {
        control: &'static FsctlProfile,
        slot: Option<u32>,
    },
    SessionSetup,
    TreeConnect(TreeConnectTarget),
    Echo,
    Think(Times),
}

#[derive(Debug, Clone)]
enum TransferLength {
    Once(SizeDistribution),
    Blocks { of: Total, block: u64, depth: u32 },
}

#[derive(Debug, Clone)]
enum Total {
    File,
    Bytes(SizeDistribution),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choose {
    Random,
    Next,
    Same,
    New,
    Missing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Directory {
    Random,
    New,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Offset(u64),
    /// A random multiple of the length within the file.
    Random,
    /// After the previous transfer, or from the beginning if the file has no room left.
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

    /// Returns the first step that the dialect can't perform, and the reason.
    pub(super) fn unsupported_in(&self, dialect: Dialect) -> Option<(String, &'static str)> {
        let lines = self.choices.iter().flat_map(|(_, lines)| lines).chain(&self.start);
        lines
            .filter_map(|line| match line.what {
                What::Control { control, .. } => Some(control),
                _ => None,
            })
            .find_map(|control| Some((control.code.to_string(), control.unsupported_in(dialect)?)))
    }

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

/// Returns true if a text looks like TOML rather than a loadfile: its first line with content is a table header or an
/// assignment.
pub(super) fn looks_like_toml(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.next().is_some_and(|line| {
        let key = line.split('=').next().unwrap_or(line).trim();
        line.starts_with('[') || (line.contains('=') && !key.contains([' ', '\t', '\\', '/']))
    })
}
