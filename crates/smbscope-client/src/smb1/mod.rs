//! SMB1: NT LM 0.12 (MS-CIFS, MS-SMB).
//!
//! One command is outstanding at a time, as every server's MaxMpxCount allows, except in a queue of reads or writes; a watch of
//! a directory may wait beside them. Information is asked for at SMB1's own levels where there is one that means the same as the class, and passed
//! through otherwise; the bytes are those of the level.

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

/// Data bytes of a transaction's answer that are asked for at most.
const MAX_TRANSACT: u16 = 0x4000;

/// A connection, a session on it and a tree connect.
#[derive(Debug)]
pub struct Smb1ClientSession {
    connection: Smb1Connection,
    facts: SessionParameters,
    server: Smb1ServerParameters,
    options: Box<SessionOptions>,
    /// Ask for an oplock with every open of a file.
    oplocks: bool,
    /// Read and write in raw mode.
    raw: bool,
    /// The last read was answered in raw mode.
    raw_answer: bool,
    /// The path of the request, from the root of the share.
    path: String,
    /// Likewise, of requests with two.
    second_path: String,
    /// What several reads brought.
    gathered: Vec<u8>,
    /// Where a listing goes on.
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

    /// What was negotiated.
    pub fn facts(&self) -> &SessionParameters {
        &self.facts
    }

    /// The commands since the caller last emptied it.
    pub fn samples(&mut self) -> &mut Samples {
        &mut self.connection.samples
    }

    /// Waits until a point in time, and acknowledges oplock breaks that come in the meantime.
    pub async fn rest(&mut self, until: Instant) -> Result<(), ClientError> {
        self.connection.rest(until).await
    }

    /// Waits until there is something for [`Session::rest`] to do.
    pub(super) async fn disturbed(&self) -> io::Result<()> {
        self.connection.link.disturbed().await
    }

    /// Nothing but a round trip.
    pub async fn echo(&mut self) -> Result<(), ClientError> {
        const DATA: &[u8] = b"smbscope";
        self.connection.call(&Echo { echo_count: 1, data: DATA }, Smb1RequestDetails::default()).await?;
        let answer = EchoResponse::parse(self.connection.message()).map_err(malformed)?;
        if answer.data == DATA { Ok(()) } else { Err(ClientError::Protocol("an echo of something else".to_owned())) }
    }

    /// Disconnects from the share and logs off; the connection is closed with the session.
    pub async fn disconnect(&mut self) -> Result<(), ClientError> {
        self.connection.call(&TreeDisconnect {}, Smb1RequestDetails::default()).await?;
        self.connection.call(&LogoffAndx {}, Smb1RequestDetails::default()).await?;
        Ok(())
    }
}

/// SMB1's paths begin at the root of the share.
fn rooted<'a>(scratch: &'a mut String, path: &str) -> &'a str {
    scratch.clear();
    scratch.push('\\');
    scratch.push_str(path.strip_prefix('\\').unwrap_or(path));
    scratch
}

/// The FID of a handle; one of SMB2 names no open of this session.
fn fid_of(handle: FileHandle) -> u16 {
    match handle.0 {
        FileId::Smb1(fid) => fid,
        FileId::Smb2 { .. } => u16::MAX,
    }
}
