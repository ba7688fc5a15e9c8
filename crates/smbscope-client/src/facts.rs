//! What a session came to.

use super::{Cipher, SigningAlgorithm};
use smbscope_model::Dialect;
use std::net::SocketAddr;

/// What was negotiated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionParameters {
    /// Our end of the connection.
    pub local: SocketAddr,
    /// The server's end.
    pub peer: SocketAddr,
    /// The dialect.
    pub dialect: Dialect,
    /// How messages are signed; absent when they are not.
    pub signing: Option<SigningAlgorithm>,
    /// How messages are encrypted; absent when they are not.
    pub cipher: Option<Cipher>,
    /// Largest read in bytes.
    pub max_read: u32,
    /// Largest write in bytes.
    pub max_write: u32,
    /// Largest metadata transaction in bytes.
    pub max_transact: u32,
    /// The server took the user for a guest.
    pub guest: bool,
}
