//! File and directory structures of MS-FSCC, common to both protocols.

mod directory;
mod notify;
mod set;

pub use directory::{DirectoryEntries, DirectoryEntry};
pub use notify::{FileNotifyInformation, changes};
pub use set::Data;
