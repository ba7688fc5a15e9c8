//! Private, throw-away Samba servers with optional slow links, slow storage, CPU load and virus scanning.
//!
//! A [`LabServer`] runs as an ordinary process with its own folder for configuration, accounts, logs and shared
//! files. It listens on a free port of the loopback interface and leaves neither processes nor files behind. The
//! host's Samba is neither read nor changed. Start reading in `running`.
//!
//! ```no_run
//! use smbscope_lab::{LabServer, LabServerSettings};
//!
//! let server = LabServer::start(&LabServerSettings::default())?;
//! println!("smb://{}@{}/{}", server.user(), server.address(), server.share());
//! # Ok::<(), smbscope_lab::LabError>(())
//! ```

#![forbid(unsafe_code)]

mod accounts;
mod antivirus;
mod busy;
mod child;
mod config;
mod disk;
mod error;
mod family;
mod keeper;
mod link;
mod mounts;
mod own_name;
mod port;
mod probe;
mod process;
mod record;
mod running;
mod server;
mod settings;
mod state_folder;
mod status;
mod storage;
mod tools;
mod trust;
mod units;
mod users;
mod workplace;

pub use child::{PASSWORD_VARIABLE, command_for};
pub use error::LabError;
pub use keeper::keep;
pub use link::LinkEmulation;
pub use mounts::unmount;
pub use own_name::{is_abandoned, own_name};
pub use process::Process;
pub use record::ServerRecord;
pub use server::{LabServer, Launcher};
pub use settings::{Antivirus, LabDialect, LabServerSettings, ServerSigningPolicy, Storage};
pub use state_folder::StateFolder;
pub use status::{SambaClients, SambaCount, SambaOperation, SambaStatus, SmbstatusReading};
pub use storage::StorageFigures;
pub use tools::{available, version};
pub use units::{
    parse_bandwidth, parse_delay, parse_iops, parse_loss, parse_size, parse_storage_bandwidth, parse_storage_latency,
};
pub use users::LabUser;
pub use workplace::Workplace;
