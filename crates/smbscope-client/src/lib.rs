//! An SMB client for measurements: it speaks exactly the requested dialect, does its I/O in the user's own task, and
//! keeps a [`Sample`] of each command.
//!
//! Workloads use [`ClientSession`]. Below it, [`smb1`] and [`smb2`] encode operations as commands and decode responses.
//! What both share: `connection` (outstanding requests, time limits, samples, queues of reads and writes),
//! [`auth`] (login, SPNEGO, NTLMv2) and `transport` (TCP, NetBIOS session service). [`local`] performs the same
//! operations on a local folder.

pub mod auth;
mod connection;
mod error;
mod file;
mod limits;
pub mod local;
mod options;
mod sample;
mod session;
pub mod smb1;
pub mod smb2;
mod transport;

pub use crate::error::Foreign;
pub use crate::sample::SessionParameters;
pub use error::ClientError;
pub use file::{
    ByteRangeLock, CreateDisposition, FileHandle, FileRange, FsctlProfile, Info, ListingEntry, Moved, OpenParameters,
    OpenResult, SetInfo, TransferDirection, TreeConnectTarget, WholeFile, access, options as create_options,
};
pub use options::{ClientSigningPolicy, Credentials, Encryption, KeyLog, Secret, SessionOptions, Transport};
pub use sample::{Sample, Samples};
pub use session::ClientSession;
pub use smbscope_crypto::{Cipher, SigningAlgorithm};
