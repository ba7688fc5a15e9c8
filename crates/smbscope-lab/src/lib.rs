//! Private, throw-away Samba servers with optional slow links, slow storage, CPU load and virus scanning.
//!
//! A [`LabServer`] runs as an ordinary process with its own folder, listens on a free port of the loopback interface,
//! and leaves neither processes nor files. The host's Samba is neither read nor changed. Start reading in `running`.
//!
//! Servers need Linux. On other systems `elsewhere` has the same operations, which fail with one line.
//!
//! ```no_run
//! use smbscope_lab::{LabServer, LabServerSettings};
//!
//! let server = LabServer::start(&LabServerSettings::default())?;
//! println!("smb://{}@{}/{}", server.user(), server.address(), server.share());
//! # Ok::<(), smbscope_lab::LabError>(())
//! ```

#![forbid(unsafe_code)]

mod child;
mod error;
mod settings;
mod statistics;

#[cfg(target_os = "linux")]
mod antivirus;
#[cfg(target_os = "linux")]
mod busy;
#[cfg(target_os = "linux")]
mod config;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod keeper;
#[cfg(target_os = "linux")]
mod link;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod running;
#[cfg(target_os = "linux")]
mod server;
#[cfg(target_os = "linux")]
mod state_folder;
#[cfg(target_os = "linux")]
mod storage;
#[cfg(target_os = "linux")]
mod tools;
#[cfg(target_os = "linux")]
mod trust;
#[cfg(target_os = "linux")]
mod users;
#[cfg(target_os = "linux")]
mod workplace;

pub use child::{PASSWORD_VARIABLE, command_for};
#[cfg(not(target_os = "linux"))]
pub use elsewhere::{LabServer, Launcher, SambaStatus, ServerRecord, StateFolder, Workplace, available, version};
pub use error::LabError;
#[cfg(target_os = "linux")]
pub use keeper::keep;
#[cfg(target_os = "linux")]
pub use mounts::unmount;
#[cfg(target_os = "linux")]
pub use process::{Process, is_abandoned, own_name};
#[cfg(target_os = "linux")]
pub use server::{LabServer, Launcher, available};
pub use settings::{
    Antivirus, LabDialect, LabServerSettings, LinkDirection, LinkEmulation, ServerSigningPolicy, Storage,
    parse_bandwidth, parse_delay, parse_iops, parse_loss, parse_server_time, parse_size, parse_storage_bandwidth,
    parse_storage_latency,
};
#[cfg(target_os = "linux")]
pub use state_folder::{ServerRecord, StateFolder};
pub use statistics::{SambaClients, SambaCount, SambaOperation, SmbstatusReading, StorageFigures};
#[cfg(target_os = "linux")]
pub use tools::{SambaStatus, version};
#[cfg(target_os = "linux")]
pub use users::LabUser;
#[cfg(target_os = "linux")]
pub use workplace::Workplace;
