//! An SMB client made for measuring: it speaks every dialect exactly as told, does its own I/O in the task of its user,
//! and keeps a [`Sample`] of each command.
//!
//! [`Session`] is what a workload works with; behind it `smb1` and `smb2` put operations into commands. Both use `auth`
//! (SPNEGO, NTLMv2), `crypto` (signing, encryption, key derivation) and `transport` (TCP, NetBIOS session service).
//! `local` does the same on a folder of this machine.

pub mod auth;
mod control;
pub mod crypto;
mod error;
mod facts;
mod file;
mod foreign;
mod limits;
pub mod local;
mod netbios;
mod options;
mod sample;
mod session;
pub mod smb1;
pub mod smb2;
mod transport;

pub use control::{FsctlProfile, TreeConnectTarget};
pub use error::ClientError;
pub use facts::SessionParameters;
pub use file::{
    ByteRangeLock, CreateDisposition, FileHandle, FileRange, Info, ListingEntry, Moved, OpenParameters, OpenResult,
    SetInfo, TransferDirection, WholeFile, access, options as create_options,
};
pub use foreign::Foreign;
pub use options::{
    Cipher, ClientSigningPolicy, Credentials, Encryption, Secret, SessionOptions, SigningAlgorithm, Transport,
};
pub use sample::{Sample, Samples};
pub use session::ClientSession;
