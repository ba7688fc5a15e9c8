//! Negotiated parameters of a session.

use super::{Cipher, SigningAlgorithm};
use smbscope_model::Dialect;
use std::net::SocketAddr;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionParameters {
    pub local: SocketAddr,
    pub peer: SocketAddr,
    pub dialect: Dialect,
    /// `None` if messages are not signed.
    pub signing: Option<SigningAlgorithm>,
    /// `None` if messages are not encrypted.
    pub cipher: Option<Cipher>,
    /// Maximum read size in bytes.
    pub max_read: u32,
    /// Maximum write size in bytes.
    pub max_write: u32,
    pub max_transact: u32,
    pub guest: bool,
}
