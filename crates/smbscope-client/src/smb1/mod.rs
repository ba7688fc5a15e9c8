//! SMB1: NT LM 0.12 (MS-CIFS, MS-SMB).
//!
//! One command is outstanding at a time, which any server's MaxMpxCount allows, except in a queue of reads or writes; a
//! directory watch may wait at the same time. Information is in the encoding of SMB1's own level if one means the same
//! as the class, and of a pass-through level otherwise.

mod connection;
mod directory;
mod files;
mod setup;

use crate::connection::ResponseConsumer;
use crate::options::SessionOptions;
use crate::sample::{RequestDetails, Samples, SessionParameters};
use crate::{ClientError, FileHandle};
use connection::{Smb1Connection, malformed};
use setup::Smb1ServerParameters;
use smbscope_model::{FileId, Subcommand};
use smbscope_wire::fscc::{self, FileNotifyInformation};
use smbscope_wire::names::NtTransact;
use smbscope_wire::smb1::messages::{
    Echo, EchoResponse, LogoffAndx, NtTransactNotifyChange, NtTransactResponse, TreeDisconnect,
};
use smbscope_wire::status::NtStatus;
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
    watch: Option<u64>,
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
            watch: None,
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
        self.connection.forget_abandoned();
        self.connection.rest(until).await
    }

    pub(super) async fn disturbed(&self) -> io::Result<()> {
        self.connection.disturbed().await
    }

    pub async fn echo(&mut self) -> Result<(), ClientError> {
        const DATA: &[u8] = b"smbscope";
        let reply = self.connection.call(&Echo { echo_count: 1, data: DATA }, RequestDetails::default()).await?;
        let answer = EchoResponse::parse(self.connection.message(&reply)).map_err(malformed)?;
        if answer.data == DATA { Ok(()) } else { Err(ClientError::Protocol("an echo of something else".to_owned())) }
    }

    /// Disconnects from the share and logs off. Dropping the session closes the connection.
    pub async fn disconnect(&mut self) -> Result<(), ClientError> {
        self.connection.run(&TreeDisconnect {}, RequestDetails::default()).await?;
        self.connection.run(&LogoffAndx {}, RequestDetails::default()).await
    }
}

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

/// Maximum size of a response, enough for some hundred changes.
const MOST: u32 = 0x8000;

impl Smb1ClientSession {
    /// Starts a watch (MS-CIFS 2.2.7.4) for FILE_NOTIFY_CHANGE_* flags; `tree` adds subdirectories. One watch at a
    /// time.
    pub async fn watch(&mut self, handle: FileHandle, completion_filter: u32, tree: bool) -> Result<(), ClientError> {
        if self.watch.is_some() {
            return Err(ClientError::Unsupported("SMB1: one watch at a time".to_owned()));
        }
        if self.server.max_mpx_count < 2 {
            return Err(ClientError::Unsupported("the server takes one request at a time: it cannot watch".to_owned()));
        }
        let fid = fid_of(handle);
        let request = NtTransactNotifyChange { fid, completion_filter, watch_tree: tree, max_parameter_count: MOST };
        let subcommand = Subcommand::NtTransact(NtTransact::NOTIFY_CHANGE);
        let about = RequestDetails { waits: true, ..RequestDetails::file(fid).with(subcommand) };
        let id = self.connection.send(&request, about).await?;
        self.connection.answer_to(ResponseConsumer::Later);
        self.watch = Some(id);
        Ok(())
    }

    pub fn has_changes(&self) -> bool {
        self.watch.is_some_and(|id| self.connection.has_kept(id))
    }

    pub async fn changes(&mut self) -> Result<Vec<FileNotifyInformation>, ClientError> {
        let Some(id) = self.watch else {
            return Err(ClientError::Unsupported("nothing is watched".to_owned()));
        };
        let (reply, message) = self.connection.kept_reply(id).await?;
        self.watch = None;
        // Too many changes for the response, so none are listed.
        if reply.status == NtStatus::NOTIFY_ENUM_DIR {
            return Ok(Vec::new());
        }
        reply.ok()?;
        let answer = NtTransactResponse::parse(&message).map_err(malformed)?;
        Ok(fscc::changes(answer.0.parameters).collect())
    }

    /// Cancels the watch. [`Self::changes`] then returns STATUS_CANCELLED, or earlier changes.
    pub async fn cancel_watch(&mut self) -> Result<(), ClientError> {
        match self.watch {
            Some(id) if !self.connection.has_kept(id) => self.connection.cancel(id).await,
            _ => Ok(()),
        }
    }
}
