//! Private, throw-away Samba servers with optional slow links, slow storage, CPU load and virus scanning.
//!
//! A [`LabServer`] runs as an ordinary process with its own folder, listens on a free port of the loopback interface,
//! and leaves neither processes nor files. The host's Samba is neither read nor changed. Start reading in `running`.
//!
//! ```no_run
//! use smbscope_lab::{LabServer, LabServerSettings};
//!
//! let server = LabServer::start(&LabServerSettings::default())?;
//! println!("smb://{}@{}/{}", server.user(), server.address(), server.share());
//! # Ok::<(), smbscope_lab::LabError>(())
//! ```

#![forbid(unsafe_code)]

mod antivirus;
mod busy;
mod config;
mod error;
mod keeper;
mod link;
mod mounts;
mod process;
mod running;
mod server;
mod settings;
mod state_folder;
mod storage;
mod tools;
mod trust;
mod users;
mod workplace;

pub use error::LabError;
pub use keeper::keep;
pub use link::LinkEmulation;
pub use mounts::unmount;
pub use process::{PASSWORD_VARIABLE, Process, command_for, is_abandoned, own_name};
pub use server::{LabServer, Launcher, available};
pub use settings::{
    Antivirus, LabDialect, LabServerSettings, LinkDirection, ServerSigningPolicy, Storage, parse_bandwidth,
    parse_delay, parse_iops, parse_loss, parse_size, parse_storage_bandwidth, parse_storage_latency,
};
pub use state_folder::{ServerRecord, StateFolder};
pub use storage::StorageFigures;
pub use tools::{SambaClients, SambaCount, SambaOperation, SambaStatus, SmbstatusReading, version};
pub use users::LabUser;
pub use workplace::Workplace;
