//! SMB1: NT LM 0.12 (MS-CIFS, MS-SMB).
//!
//! One command is outstanding at a time, which any server's MaxMpxCount allows, except in a queue of reads or writes; a
//! directory watch may wait at the same time. Information is requested at SMB1's own level if there is one with the
//! same meaning as the class, and at a pass-through level otherwise; the returned bytes are in that level's encoding.

mod connection;
mod directory;
mod files;
mod information;
mod multiplex;
mod queue;
mod raw;
mod setup;
mod watch;

use super::facts::SessionParameters;
use super::options::SessionOptions;
use super::sample::Samples;
use super::{ClientError, FileHandle};
use connection::{Smb1Connection, Smb1RequestDetails, malformed};
use setup::Smb1ServerParameters;
use smbscope_model::FileId;
use smbscope_wire::smb1::messages::{Echo, EchoResponse, LogoffAndx, TreeDisconnect};
use std::io;
use std::time::Instant;

const MAX_TRANSACT: u16 = 0x4000;

#[derive(Debug)]
pub struct Smb1ClientSession {
    connection: Smb1Connection,
    facts: SessionParameters,
    server: Smb1ServerParameters,
    options: Box<SessionOptions>,
    oplocks: bool,
    raw: bool,
    raw_answer: bool,
    path: String,
    second_path: String,
    gathered: Vec<u8>,
    resume: Vec<u8>,
}

impl Smb1ClientSession {
    fn new(
        connection: Smb1Connection,
        facts: SessionParameters,
        server: Smb1ServerParameters,
        options: &SessionOptions,
    ) -> Smb1ClientSession {
        Smb1ClientSession {
            connection,
            facts,
            server,
            options: Box::new(options.clone()),
            oplocks: options.leases,
            raw: options.raw,
            raw_answer: false,
            path: String::new(),
            second_path: String::new(),
            gathered: Vec::new(),
            resume: Vec::new(),
        }
    }

    pub fn facts(&self) -> &SessionParameters {
        &self.facts
    }

    pub fn samples(&mut self) -> &mut Samples {
        &mut self.connection.samples
    }

    pub async fn rest(&mut self, until: Instant) -> Result<(), ClientError> {
        self.connection.rest(until).await
    }

    pub(super) async fn disturbed(&self) -> io::Result<()> {
        self.connection.link.disturbed().await
    }

    pub async fn echo(&mut self) -> Result<(), ClientError> {
        const DATA: &[u8] = b"smbscope";
        self.connection.call(&Echo { echo_count: 1, data: DATA }, Smb1RequestDetails::default()).await?;
        let answer = EchoResponse::parse(self.connection.message()).map_err(malformed)?;
        if answer.data == DATA { Ok(()) } else { Err(ClientError::Protocol("an echo of something else".to_owned())) }
    }

    /// Disconnects from the share and logs off. Dropping the session closes the connection.
    pub async fn disconnect(&mut self) -> Result<(), ClientError> {
        self.connection.call(&TreeDisconnect {}, Smb1RequestDetails::default()).await?;
        self.connection.call(&LogoffAndx {}, Smb1RequestDetails::default()).await?;
        Ok(())
    }
}

/// Adds the leading backslash of SMB1 paths.
fn rooted<'a>(scratch: &'a mut String, path: &str) -> &'a str {
    scratch.clear();
    scratch.push('\\');
    scratch.push_str(path.strip_prefix('\\').unwrap_or(path));
    scratch
}

/// Returns the FID of a handle. An SMB2 handle gives an invalid one.
fn fid_of(handle: FileHandle) -> u16 {
    match handle.0 {
        FileId::Smb1(fid) => fid,
        FileId::Smb2 { .. } => u16::MAX,
    }
}
