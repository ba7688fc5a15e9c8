//! Structures of files and directories (MS-FSCC) that both protocols carry.

mod directory;
mod notify;
mod set;

pub use directory::{DirectoryEntries, DirectoryEntry};
pub use notify::{FileNotifyInformation, changes};
pub use set::Data;
