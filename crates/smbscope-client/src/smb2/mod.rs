//! SMB2 and SMB3: dialects 2.0.2 to 3.1.1 (MS-SMB2), exactly as requested.
//!
//! [`Smb2ClientSession`] is a connection with a session and a tree connect: SESSION_SETUP and TREE_CONNECT (3.2.4.2.3,
//! 3.2.4.2.4, 3.2.5.3, 3.2.5.5), the protection that follows from them, and further channels of a session (SMB 3
//! multichannel, 3.2.4.20.6). Its operations are in `files` and `paths`; they send requests of
//! [`smbscope_wire::smb2::messages`] through `connection`, which numbers, signs and encrypts them.

mod connection;
mod files;
mod grants;
mod negotiate;
mod paths;

use super::ClientError;
use super::file::TreeConnectTarget;
use super::options::SessionOptions;
use super::sample::Samples;
use crate::auth::{SetupAnswer, check_keyless, must_sign, refused_tree};
use crate::sample::{RequestDetails, SessionParameters};
use crate::smb2::connection::{Protection, ProtectionLevel, Smb2Reply};
use crate::smb2::grants::RequestedCaching;
use crate::{Cipher, Encryption, auth};
use connection::Smb2Connection;
use negotiate::Smb2NegotiateResult;
use smbscope_crypto::{PreauthHash, Sealer, SessionKeys, Signer, SigningAlgorithm};
use smbscope_model::{Command, Dialect};
use smbscope_wire::smb2::messages::negotiate::capabilities;
use smbscope_wire::smb2::messages::{plain, session_setup, tree_connect};
use smbscope_wire::smb2::{FileReference, Smb2Command, Smb2Header};
use smbscope_wire::status::NtStatus;
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

#[derive(Debug)]
struct SessionBinding {
    client_guid: [u8; 16],
    dialect: u16,
    cipher: Option<Cipher>,
    /// `None` for guests, anonymous users and further channels.
    keys: Option<Box<SessionKeys>>,
    count: u8,
    further: bool,
}

impl SessionBinding {
    fn of_first(negotiated: &Smb2NegotiateResult, keys: Option<SessionKeys>) -> SessionBinding {
        let Smb2NegotiateResult { client_guid, dialect, cipher, .. } = *negotiated;
        SessionBinding { client_guid, dialect, cipher, keys: keys.map(Box::new), count: 1, further: false }
    }

    fn further(first: &SessionBinding) -> SessionBinding {
        let SessionBinding { client_guid, dialect, cipher, .. } = *first;
        SessionBinding { client_guid, dialect, cipher, keys: None, count: 1, further: true }
    }

    fn is_further(&self) -> bool {
        self.further
    }
}

impl Smb2ClientSession {
    pub async fn connect(options: &SessionOptions) -> Result<Smb2ClientSession, ClientError> {
        let mut connection = Smb2Connection::open(options).await?;
        let negotiated = negotiate::negotiate(&mut connection, options, None).await?;
        let established = log_on(&mut connection, &negotiated, options).await?;
        connect_tree(&mut connection, &negotiated, options).await?;
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

    /// Opens another connection to the same session, with the same options or to another address of the server. It has
    /// the same share and handles, but its own samples. It ends with its own disconnect or the first channel's.
    pub async fn bind(&mut self, options: &SessionOptions) -> Result<Smb2ClientSession, ClientError> {
        let unsupported = |reason: &str| ClientError::Unsupported(reason.to_owned());
        if self.channels.dialect < 0x0300 {
            return Err(unsupported("several connections a session need SMB 3"));
        }
        let (Some(keys), Some(count)) = (&self.channels.keys, self.channels.count.checked_add(1)) else {
            return Err(unsupported("channels need a session of a user with a password, and 255 is the maximum"));
        };
        let mut connection = Smb2Connection::open(options).await?;
        let negotiated = negotiate::negotiate(&mut connection, options, Some(self.channels.client_guid)).await?;
        let same = negotiated.dialect == self.channels.dialect && negotiated.cipher == self.channels.cipher;
        if !same {
            return Err(unsupported("another channel must have the dialect and the cipher of the first one"));
        }
        let (session_id, channel) = (self.connection.dialect.session_id, self.channels.count);
        bind_channel(&mut connection, &negotiated, options, session_id, keys, channel).await?;
        self.channels.count = count;
        connection.dialect.protection.mode = self.connection.dialect.protection.mode;
        connection.dialect.tree_id = self.connection.dialect.tree_id;
        let facts = facts(&connection, &negotiated, false);
        Ok(Smb2ClientSession {
            connection,
            facts,
            caching: self.caching,
            compound: options.compound,
            root: None,
            data: Vec::new(),
            watch: None,
            channels: SessionBinding::further(&self.channels),
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
        reauthenticate(&mut self.connection, &self.origin.negotiated, &self.origin.options).await
    }

    pub async fn connect_again(&mut self, tree: TreeConnectTarget) -> Result<(), ClientError> {
        let SessionOrigin { options, negotiated } = &*self.origin;
        let path = tree.path(&options.host, &options.share);
        let connected = call_tree(&mut self.connection, negotiated, &path).await?.ok()?;
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

#[derive(Debug)]
struct Established {
    /// `None` for guests and anonymous users, who share no key with the server.
    keys: Option<SessionKeys>,
}

async fn log_on(
    connection: &mut Smb2Connection,
    negotiated: &Smb2NegotiateResult,
    options: &SessionOptions,
) -> Result<Established, ClientError> {
    let leg = authenticate(connection, negotiated, options, SetupSession::New).await?;
    let guest = leg.session_flags & (session_setup::Response::GUEST | session_setup::Response::NULL) != 0;
    let keys = leg.keys.filter(|_| !guest);
    let mut protection = Protection::none();
    match &keys {
        Some(keys) => {
            let signer = Signer::new(negotiated.signing_algorithm, &keys.signing);
            check_last_leg(&leg.reply, connection.message(&leg.reply), &signer, negotiated)?;
            protection.sealer =
                negotiated.cipher.and_then(|cipher| Sealer::new(cipher, &keys.encryption, &keys.decryption));
            protection.signer = Some(signer);
        }
        None => check_keyless(options, false)?,
    }
    let server_encrypts = leg.session_flags & session_setup::Response::ENCRYPT_DATA != 0;
    protection.mode = protection_level(&protection, server_encrypts, negotiated, options)?;
    connection.dialect.protection = protection;
    Ok(Established { keys })
}

/// Binds the connection to the session of another one (3.2.4.2.3.1, 3.2.5.3.3). Requests are signed with the session's
/// key until the channel has its own; encryption continues to use the session's keys.
async fn bind_channel(
    connection: &mut Smb2Connection,
    negotiated: &Smb2NegotiateResult,
    options: &SessionOptions,
    session_id: u64,
    session_keys: &SessionKeys,
    channel: u8,
) -> Result<(), ClientError> {
    let session_signer = Signer::new(negotiated.signing_algorithm, &session_keys.signing);
    connection.dialect.session_id = session_id;
    connection.dialect.protection.signer = Some(session_signer);
    connection.dialect.protection.mode = ProtectionLevel::Signed;
    connection.dialect.protection.checked_later = true;
    let leg = authenticate(connection, negotiated, options, SetupSession::OfAnotherConnection(session_id)).await?;
    let keys = leg.keys.ok_or_else(|| {
        ClientError::Unsupported("another channel needs a session of a user with a password".to_owned())
    })?;
    let signer = Signer::new(negotiated.signing_algorithm, &keys.signing);
    let message = connection.message(&leg.reply);
    if !leg.reply.header.is_signed() || !signer.verify(message) {
        let command = Command::Smb2(Smb2Command::SESSION_SETUP);
        return Err(ClientError::Tampered { command, what: "signature" });
    }
    let sealer = negotiated
        .cipher
        .and_then(|cipher| Sealer::new(cipher, &session_keys.encryption, &session_keys.decryption))
        .map(|sealer| sealer.of_channel(channel));
    connection.dialect.protection =
        Protection { signer: Some(signer), sealer, mode: ProtectionLevel::Signed, checked_later: false };
    Ok(())
}

/// Authenticates again, like a client whose ticket expired (3.2.4.2.3, 3.2.5.3.2). Keys, tree connects and opens stay.
async fn reauthenticate(
    connection: &mut Smb2Connection,
    negotiated: &Smb2NegotiateResult,
    options: &SessionOptions,
) -> Result<(), ClientError> {
    let session_id = connection.dialect.session_id;
    authenticate(connection, negotiated, options, SetupSession::OfThisConnection(session_id)).await.map(drop)
}

#[derive(Debug, Clone, Copy)]
enum SetupSession {
    New,
    OfAnotherConnection(u64),
    OfThisConnection(u64),
}

struct LastLeg {
    reply: Smb2Reply,
    session_flags: u16,
    keys: Option<SessionKeys>,
}

async fn authenticate(
    connection: &mut Smb2Connection,
    negotiated: &Smb2NegotiateResult,
    options: &SessionOptions,
    session: SetupSession,
) -> Result<LastLeg, ClientError> {
    let (known, flags) = match session {
        SetupSession::New => (None, 0),
        SetupSession::OfAnotherConnection(id) => (Some(id), session_setup::Request::BINDING),
        SetupSession::OfThisConnection(id) => (Some(id), 0),
    };
    let mut preauth = negotiated.preauth.clone();
    let set_up = async |token: &[u8]| {
        let request = session_setup::Request {
            flags,
            security_mode: negotiated.client_security_mode as u8,
            capabilities: 0,
            previous_session_id: 0,
            token,
        };
        let reply = connection.call(&request, RequestDetails::default()).await?;
        preauth.update(connection.sent());
        connection.dialect.session_id = known.or(reply.header.session_id).unwrap_or(0);
        let is_interim = reply.status == NtStatus::MORE_PROCESSING_REQUIRED;
        if !is_interim && reply.status != NtStatus::SUCCESS {
            return Err(ClientError::Status { command: reply.command, status: reply.status });
        }
        let message = connection.message(&reply);
        if is_interim {
            preauth.update(message);
        }
        let response = session_setup::Response::parse(message).ok_or_else(|| reply.malformed())?;
        let (token, session_flags) = (response.token.to_vec(), response.session_flags);
        Ok(SetupAnswer { is_interim, token, reply: (reply, session_flags) })
    };
    let (mut authenticator, last) = auth::authenticate(options, set_up).await?;
    authenticator.finish(&last.token)?;
    let keys = authenticator.full_session_key().map(|key| session_keys(key, negotiated, &preauth));
    let logged = options.key_log.as_ref().filter(|_| known.is_none() && negotiated.dialect >= 0x0300);
    if let (Some(log), Some(key), Some(keys)) = (logged, authenticator.full_session_key(), &keys) {
        log.add(connection.dialect.session_id, key, keys);
    }
    let (reply, session_flags) = last.reply;
    Ok(LastLeg { reply, session_flags, keys })
}

async fn call_tree(
    connection: &mut Smb2Connection,
    negotiated: &Smb2NegotiateResult,
    path: &str,
) -> Result<Smb2Reply, ClientError> {
    let request = tree_connect::Request { path: path.into() };
    // 3.2.4.1.1: 3.1.1 always signs it, which protects the messages before it from tampering.
    let mode = connection.dialect.protection.mode;
    if negotiated.is_3_1_1() && mode == ProtectionLevel::Plain && connection.dialect.protection.signer.is_some() {
        connection.dialect.protection.mode = ProtectionLevel::Signed;
    }
    let reply = connection.call_in_tree(0, &request).await;
    connection.dialect.protection.mode = mode;
    reply
}

async fn connect_tree(
    connection: &mut Smb2Connection,
    negotiated: &Smb2NegotiateResult,
    options: &SessionOptions,
) -> Result<(), ClientError> {
    let reply = call_tree(connection, negotiated, &TreeConnectTarget::Own.path(&options.host, &options.share)).await?;
    let reply = reply.ok().map_err(|error| refused_tree(error, options))?;
    connection.dialect.tree_id = reply.header.tree_id.unwrap_or(0);
    let response = tree_connect::Response::parse(connection.message(&reply)).ok_or_else(|| reply.malformed())?;
    if response.encrypts_data() {
        if connection.dialect.protection.sealer.is_none() {
            let reason = "the share requires encryption, which needs SMB 3 and a user with a password";
            return Err(ClientError::Unsupported(reason.to_owned()));
        }
        connection.dialect.protection.mode = ProtectionLevel::Sealed;
    }
    Ok(())
}

fn session_keys(session_key: &[u8], negotiated: &Smb2NegotiateResult, preauth: &PreauthHash) -> SessionKeys {
    match negotiated.dialect {
        0x0311 => SessionKeys::smb3_1_1(session_key, preauth, negotiated.cipher),
        0x0300 | 0x0302 => SessionKeys::smb3_0(session_key),
        _ => SessionKeys::smb2(session_key),
    }
}

/// Verifies the last response with the new key (3.2.5.3.1). 3.1.1 requires it: it proves the hash of earlier messages.
fn check_last_leg(
    reply: &Smb2Reply,
    message: &[u8],
    signer: &Signer,
    negotiated: &Smb2NegotiateResult,
) -> Result<(), ClientError> {
    let command = Command::Smb2(Smb2Command::SESSION_SETUP);
    let is_signed = Smb2Header::is_signed(&reply.header);
    if is_signed && !signer.verify(message) {
        return Err(ClientError::Tampered { command, what: "signature" });
    }
    if !is_signed && negotiated.is_3_1_1() {
        return Err(ClientError::Tampered { command, what: "signature, namely none" });
    }
    Ok(())
}

fn protection_level(
    protection: &Protection,
    server_encrypts: bool,
    negotiated: &Smb2NegotiateResult,
    options: &SessionOptions,
) -> Result<ProtectionLevel, ClientError> {
    if protection.signer.is_none() {
        return Ok(ProtectionLevel::Plain);
    }
    if server_encrypts || options.encryption != Encryption::Off {
        return match protection.sealer {
            Some(_) => Ok(ProtectionLevel::Sealed),
            None => {
                Err(ClientError::Unsupported("the server requires encryption, but no cipher was agreed on".to_owned()))
            }
        };
    }
    let signs = must_sign(options, negotiated.server_requires_signing(), true)?;
    Ok(if signs { ProtectionLevel::Signed } else { ProtectionLevel::Plain })
}
