//! SMB2 and SMB3: dialects 2.0.2 to 3.1.1 (MS-SMB2), exactly as requested.
//!
//! [`Smb2ClientSession`] is a connection with a session and a tree connect. Its operations are in `files` and `paths`;
//! they send requests of [`smbscope_wire::smb2::messages`] through `connection`, which numbers, signs and encrypts them.

mod breaks;
mod connection;
mod credits;
mod files;
mod negotiate;
mod paths;
mod setup;

use super::ClientError;
use super::file::TreeConnectTarget;
use super::options::SessionOptions;
use super::sample::Samples;
use crate::sample::{RequestDetails, SessionParameters};
use crate::smb2::connection::ProtectionLevel;
use crate::smb2::setup::SessionBinding;
use breaks::RequestedCaching;
use connection::Smb2Connection;
use negotiate::Smb2NegotiateResult;
use smbscope_crypto::SigningAlgorithm;
use smbscope_model::Dialect;
use smbscope_wire::smb2::FileReference;
use smbscope_wire::smb2::messages::negotiate::capabilities;
use smbscope_wire::smb2::messages::plain;
use std::io;
use std::time::Instant;

#[derive(Debug)]
pub struct Smb2ClientSession {
    connection: Smb2Connection,
    facts: SessionParameters,
    caching: RequestedCaching,
    compound: bool,
    root: Option<FileReference>,
    /// Response data that must outlive the connection's buffer, and input of server-side copies.
    data: Vec<u8>,
    watch: Option<u64>,
    channels: SessionBinding,
    origin: Box<SessionOrigin>,
}

#[derive(Debug)]
struct SessionOrigin {
    options: SessionOptions,
    negotiated: Smb2NegotiateResult,
}

impl Smb2ClientSession {
    pub async fn connect(options: &SessionOptions) -> Result<Smb2ClientSession, ClientError> {
        let mut connection = Smb2Connection::open(options).await?;
        let negotiated = negotiate::negotiate(&mut connection, options, None).await?;
        let established = setup::session(&mut connection, &negotiated, options).await?;
        setup::tree(&mut connection, &negotiated, options).await?;
        negotiate::validate(&mut connection, &negotiated).await?;
        let facts = facts(&connection, &negotiated, established.keys.is_none());
        let caching = caching(&negotiated, options);
        let channels = SessionBinding::of_first(&negotiated, established.keys);
        Ok(Smb2ClientSession {
            connection,
            facts,
            caching,
            compound: options.compound,
            root: None,
            data: Vec::new(),
            watch: None,
            channels,
            origin: Box::new(SessionOrigin { options: options.clone(), negotiated }),
        })
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
        self.connection.disturbed().await
    }

    pub async fn echo(&mut self) -> Result<(), ClientError> {
        self.connection.run(&plain::Echo {}, RequestDetails::default()).await
    }

    pub async fn reauthenticate(&mut self) -> Result<(), ClientError> {
        setup::reauthenticate(&mut self.connection, &self.origin.negotiated, &self.origin.options).await
    }

    pub async fn connect_again(&mut self, tree: TreeConnectTarget) -> Result<(), ClientError> {
        let SessionOrigin { options, negotiated } = &*self.origin;
        let path = tree.path(&options.host, &options.share);
        let connected = setup::call_tree(&mut self.connection, negotiated, &path).await?.ok()?;
        let tree_id = connected.header.tree_id.unwrap_or(0);
        self.connection.call_in_tree(tree_id, &plain::TreeDisconnect {}).await?.ok()?;
        Ok(())
    }

    /// A further channel only closes its connection: share and session belong to the first one.
    pub async fn disconnect(&mut self) -> Result<(), ClientError> {
        if self.channels.is_further() {
            self.connection.link.close().await;
            return Ok(());
        }
        if let Some(root) = self.root.take() {
            self.close(root.into()).await?;
        }
        self.connection.run(&plain::TreeDisconnect {}, RequestDetails::default()).await?;
        self.connection.dialect.tree_id = 0;
        self.connection.run(&plain::Logoff {}, RequestDetails::default()).await?;
        self.connection.dialect.session_id = 0;
        self.connection.link.close().await;
        Ok(())
    }
}

fn facts(connection: &Smb2Connection, negotiated: &Smb2NegotiateResult, guest: bool) -> SessionParameters {
    let mode = connection.dialect.protection.mode;
    let signing: Option<SigningAlgorithm> = (mode == ProtectionLevel::Signed).then_some(negotiated.signing_algorithm);
    SessionParameters {
        local: connection.link.local(),
        peer: connection.link.peer(),
        dialect: Dialect::Smb2(negotiated.dialect),
        signing,
        cipher: negotiated.cipher.filter(|_| mode == ProtectionLevel::Sealed),
        max_read: negotiated.max_read,
        max_write: negotiated.max_write,
        max_transact: negotiated.max_transact,
        guest,
    }
}

fn caching(negotiated: &Smb2NegotiateResult, options: &SessionOptions) -> RequestedCaching {
    let has_leases = negotiated.capabilities & capabilities::LEASING != 0;
    match (options.leases, negotiated.dialect) {
        (false, _) => RequestedCaching::None,
        (true, 0x0210) if has_leases => RequestedCaching::LeaseV1,
        (true, 0x0300..) if has_leases => RequestedCaching::LeaseV2,
        (true, _) => RequestedCaching::Oplock,
    }
}
