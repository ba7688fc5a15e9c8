//! SMB1: NT LM 0.12 (MS-CIFS, MS-SMB): its session, set up by NEGOTIATE, SESSION_SETUP_ANDX and TREE_CONNECT_ANDX
//! (MS-CIFS 3.2.4.2, MS-SMB 3.2.4.2), and watches of directories.
//!
//! One command is outstanding at a time, which any server's MaxMpxCount allows, except in a queue of reads or writes; a
//! directory watch may wait at the same time. Information is in the encoding of SMB1's own level if one means the same
//! as the class, and of a pass-through level otherwise.

mod connection;
mod directory;
mod files;

use crate::auth::{Authenticator, SetupAnswer, check_keyless, must_sign, refused_logon, refused_tree, unsupported};
use crate::connection::ResponseConsumer;
use crate::file::TreeConnectTarget;
use crate::limits::SMB1_BUFFER_MIN;
use crate::options::SessionOptions;
use crate::sample::{RequestDetails, Samples, SessionParameters};
use crate::smb1::connection::{NO_TREE, Smb1Reply};
use crate::{ClientError, ClientSigningPolicy, Credentials, Encryption, FileHandle, SigningAlgorithm, auth};
use connection::{Smb1Connection, malformed};
use smbscope_crypto::Smb1Signer;
use smbscope_model::{Dialect, FileId, Subcommand};
use smbscope_wire::fscc::{self, FileNotifyInformation};
use smbscope_wire::names::NtTransact;
use smbscope_wire::smb1::flags2;
use smbscope_wire::smb1::messages::{
    Echo, EchoResponse, LogoffAndx, NT_LM_0_12, Negotiate, NegotiateResponse, NtLm012, NtTransactNotifyChange,
    NtTransactResponse, Security, SessionSetupAndx, SessionSetupAndxPlain, SessionSetupAndxPlainResponse,
    SessionSetupAndxResponse, TreeConnectAndx, TreeConnectAndxResponse, TreeDisconnect, WriteAndx, capabilities,
    security_mode,
};
use smbscope_wire::status::NtStatus;
use std::io;
use std::time::Instant;

const MAX_TRANSACT: u16 = 0x4000;
/// Largest message that the client accepts: the range of the field.
const MAX_BUFFER_SIZE: u16 = 0xffff;
/// Largest read or write if the server supports large ones. MS-SMB 2.2.4.5.2.1 limits buffers to 65,535 bytes, but
/// servers support a full 64 KiB, which workloads request.
const LARGE: u32 = 0x1_0000;
const CAPABILITIES: u32 = capabilities::UNICODE
    | capabilities::LARGE_FILES
    | capabilities::NT_SMBS
    | capabilities::STATUS32
    | capabilities::LEVEL_II_OPLOCKS
    | capabilities::NT_FIND
    | capabilities::LARGE_READX
    | capabilities::LARGE_WRITEX;
/// Maximum size of a response, enough for some hundred changes.
const MOST: u32 = 0x8000;
const NATIVE_OS: &str = "Unix";
const NATIVE_LAN_MAN: &str = "smbscope";

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

#[derive(Debug, Clone, Copy)]
struct Smb1ServerParameters {
    max_mpx_count: u16,
    max_buffer_size: u32,
    max_raw_size: u32,
    session_key: u32,
    capabilities: u32,
    extended_security: bool,
    sign: bool,
    signing_required: bool,
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

    pub async fn connect(options: &SessionOptions) -> Result<Smb1ClientSession, ClientError> {
        if options.dialect != Dialect::NtLm012 {
            return Err(ClientError::Unsupported(format!(
                "{}: NT LM 0.12 is the only supported dialect of SMB1",
                options.dialect
            )));
        }
        if options.encryption != Encryption::Off {
            let what = "SMB1 has no encryption: choose SMB 3.0 or later, or switch encryption off";
            return Err(ClientError::Unsupported(what.to_owned()));
        }
        let mut connection = Smb1Connection::open(options).await?;
        let server = negotiate(&mut connection, options).await?;
        let guest = if server.extended_security {
            log_on(&mut connection, &server, options).await?
        } else {
            log_on_plainly(&mut connection, &server, options).await?
        };
        connect_tree(&mut connection, options).await?;
        let signed = connection.dialect.signer.is_some();
        let (max_read, max_write) = match files::block(options, server.capabilities, server.max_raw_size, signed)? {
            Some(block) => (block, block),
            None => largest(&server, signed),
        };
        let facts = SessionParameters {
            local: connection.link.local(),
            peer: connection.link.peer(),
            dialect: Dialect::NtLm012,
            signing: connection.dialect.signer.is_some().then_some(SigningAlgorithm::Md5),
            cipher: None,
            max_read,
            max_write,
            max_transact: MAX_TRANSACT.into(),
            guest,
        };
        Ok(Smb1ClientSession::new(connection, facts, server, options))
    }

    /// Authenticates again on the same session by its UID (MS-SMB 3.3.5.3). The share, open files and key stay.
    pub async fn reauthenticate(&mut self) -> Result<(), ClientError> {
        let (connection, server, options) = (&mut self.connection, &self.server, &self.options);
        if !server.extended_security {
            let what = "authenticating again on a session needs a server with extended security";
            return Err(ClientError::Unsupported(format!("SMB1: {what}")));
        }
        authenticate(connection, server, options).await.map(drop)
    }

    pub async fn connect_again(&mut self, tree: TreeConnectTarget) -> Result<(), ClientError> {
        let path = tree.path(&self.options.host, &self.options.share);
        let connect = TreeConnectAndx { flags: 0, password: &[0], path: path.as_str().into(), service: "?????".into() };
        let connected = self.connection.call_in_tree(NO_TREE, &connect).await?;
        self.connection.call_in_tree(connected.header.tid, &TreeDisconnect {}).await.map(drop)
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

async fn negotiate(
    connection: &mut Smb1Connection,
    options: &SessionOptions,
) -> Result<Smb1ServerParameters, ClientError> {
    if options.signing == ClientSigningPolicy::Required {
        connection.dialect.header.flags2 |= flags2::SECURITY_SIGNATURE | flags2::SECURITY_SIGNATURE_REQUIRED;
    }
    let reply = offer_dialect(connection).await?;
    let server = match NegotiateResponse::parse(connection.message(&reply)).map_err(malformed)? {
        NegotiateResponse::NtLm012(answer) => server_parameters(&answer, options)?,
        NegotiateResponse::NoDialect => {
            return Err(unsupported(options, "the server does not speak NT LM 0.12 (SMB1): choose a newer dialect"));
        }
    };
    adapt_flags(connection, &server);
    Ok(server)
}

async fn offer_dialect(connection: &mut Smb1Connection) -> Result<Smb1Reply, ClientError> {
    let said = connection.call(&Negotiate { dialects: &[NT_LM_0_12] }, RequestDetails::default()).await;
    said.map_err(|error| match error {
        ClientError::Connection { error, .. } => ClientError::Connection {
            what: "negotiating NT LM 0.12 (a server with SMB1 switched off may hang up here)",
            error,
        },
        other => other,
    })
}

fn server_parameters(answer: &NtLm012<'_>, options: &SessionOptions) -> Result<Smb1ServerParameters, ClientError> {
    if answer.security_mode & security_mode::USER == 0 {
        return Err(unsupported(options, "shares have passwords, and users do not log on (share-level security)"));
    }
    let signing_required = answer.security_mode & security_mode::SIGNATURES_REQUIRED != 0;
    let server = Smb1ServerParameters {
        max_mpx_count: answer.max_mpx_count,
        max_buffer_size: answer.max_buffer_size,
        max_raw_size: answer.max_raw_size,
        session_key: answer.session_key,
        capabilities: answer.capabilities,
        extended_security: matches!(answer.security, Security::Extended { .. }),
        sign: must_sign(options, signing_required, answer.security_mode & security_mode::SIGNATURES_ENABLED != 0)?,
        signing_required,
    };
    if server.max_buffer_size < SMB1_BUFFER_MIN {
        let size = server.max_buffer_size;
        let what = format!("the server accepts messages of at most {size} bytes, but {SMB1_BUFFER_MIN} are needed");
        return Err(unsupported(options, &what));
    }
    if !answer.can(capabilities::NT_SMBS | capabilities::STATUS32) {
        return Err(unsupported(options, "the server lacks the commands or the status codes of NT LM 0.12"));
    }
    Ok(server)
}

fn adapt_flags(connection: &mut Smb1Connection, server: &Smb1ServerParameters) {
    if server.capabilities & capabilities::UNICODE == 0 {
        connection.dialect.header.flags2 &= !flags2::UNICODE;
    }
    if !server.extended_security {
        connection.dialect.header.flags2 &= !flags2::EXTENDED_SECURITY;
    }
    if server.sign {
        connection.dialect.header.flags2 |= flags2::SECURITY_SIGNATURE;
    }
}

async fn log_on(
    connection: &mut Smb1Connection,
    server: &Smb1ServerParameters,
    options: &SessionOptions,
) -> Result<bool, ClientError> {
    let (authenticator, guest) = authenticate(connection, server, options).await?;
    // The whole key signs, even if Kerberos provides more than 16 bytes.
    let key = if guest { None } else { authenticator.full_session_key() };
    start_signing(connection, server, key, options)?;
    Ok(guest)
}

async fn authenticate(
    connection: &mut Smb1Connection,
    server: &Smb1ServerParameters,
    options: &SessionOptions,
) -> Result<(Authenticator, bool), ClientError> {
    let set_up = async |token: &[u8]| {
        let setup = SessionSetupAndx {
            max_buffer_size: MAX_BUFFER_SIZE,
            max_mpx_count: server.max_mpx_count,
            vc_number: 1,
            session_key: server.session_key,
            capabilities: CAPABILITIES | capabilities::EXTENDED_SECURITY,
            blob: token,
            native_os: NATIVE_OS.into(),
            native_lan_man: NATIVE_LAN_MAN.into(),
        };
        let reply = connection.call(&setup, RequestDetails::default()).await?;
        connection.dialect.header.uid = reply.header.uid;
        let answer = SessionSetupAndxResponse::parse(connection.message(&reply)).map_err(malformed)?;
        let is_interim = reply.status == NtStatus::MORE_PROCESSING_REQUIRED;
        Ok(SetupAnswer { is_interim, token: answer.blob.to_vec(), reply: answer.action & 1 != 0 })
    };
    let (mut authenticator, SetupAnswer { token, reply: guest, .. }) = auth::authenticate(options, set_up).await?;
    if !guest {
        authenticator.finish(&token)?;
    }
    Ok((authenticator, guest))
}

fn start_signing(
    connection: &mut Smb1Connection,
    server: &Smb1ServerParameters,
    key: Option<&[u8]>,
    options: &SessionOptions,
) -> Result<(), ClientError> {
    match key {
        Some(key) if server.sign => {
            let signer = Smb1Signer::new(key);
            if !signer.verify(connection.link.frame(), Smb1Signer::SESSION_SETUP_RESPONSE) {
                let command = smbscope_model::Command::Smb1(smbscope_wire::smb1::Smb1Command::SESSION_SETUP_ANDX);
                return Err(ClientError::Tampered { command, what: "signature" });
            }
            connection.dialect.signer = Some(signer);
        }
        key => {
            if key.is_none() {
                check_keyless(options, server.signing_required)?;
            }
            connection.dialect.header.flags2 &= !(flags2::SECURITY_SIGNATURE | flags2::SECURITY_SIGNATURE_REQUIRED);
        }
    }
    Ok(())
}

/// Logs on to a server without extended security. Returns true if the user is a guest.
async fn log_on_plainly(
    connection: &mut Smb1Connection,
    server: &Smb1ServerParameters,
    options: &SessionOptions,
) -> Result<bool, ClientError> {
    let account_name = match options.credentials {
        Credentials::Anonymous => "",
        Credentials::Guest => "Guest",
        Credentials::Ntlm { .. } | Credentials::Kerberos => {
            let what = "the server has no extended security: only guests and anonymous users can log on";
            return Err(unsupported(options, what));
        }
    };
    let setup = SessionSetupAndxPlain {
        max_buffer_size: MAX_BUFFER_SIZE,
        max_mpx_count: server.max_mpx_count,
        vc_number: 1,
        session_key: server.session_key,
        capabilities: CAPABILITIES,
        oem_password: &[0],
        unicode_password: &[],
        account_name: account_name.into(),
        primary_domain: "".into(),
        native_os: NATIVE_OS.into(),
        native_lan_man: NATIVE_LAN_MAN.into(),
    };
    let said = connection.call(&setup, RequestDetails::default()).await;
    let reply = said.map_err(|error| refused_logon(error, options))?;
    connection.dialect.header.uid = reply.header.uid;
    let action = SessionSetupAndxPlainResponse::parse(connection.message(&reply)).map_err(malformed)?.action;
    start_signing(connection, server, None, options)?;
    Ok(action & 1 != 0)
}

async fn connect_tree(connection: &mut Smb1Connection, options: &SessionOptions) -> Result<(), ClientError> {
    let path = TreeConnectTarget::Own.path(&options.host, &options.share);
    let connect = TreeConnectAndx { flags: 0, password: &[0], path: path.as_str().into(), service: "?????".into() };
    let said = connection.call(&connect, RequestDetails::default()).await;
    let reply = said.map_err(|error| refused_tree(error, options))?;
    TreeConnectAndxResponse::parse(connection.message(&reply)).map_err(malformed)?;
    connection.dialect.header.tid = reply.header.tid;
    Ok(())
}

/// Signed messages must fit the server's buffer in spite of large reads and writes (MS-SMB 2.2.4.5.2.1).
fn largest(server: &Smb1ServerParameters, signed: bool) -> (u32, u32) {
    let buffer = server.max_buffer_size.min(MAX_BUFFER_SIZE.into());
    let data = buffer.saturating_sub(WriteAndx::DATA_OFFSET.into()).max(1);
    let data = if data >= 4096 { data / 4096 * 4096 } else { data };
    let with = |capability| if !signed && server.capabilities & capability != 0 { LARGE } else { data };
    (with(capabilities::LARGE_READX), with(capabilities::LARGE_WRITEX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_signed_keeps_to_the_buffer_in_whole_pages() {
        // Samba's buffer of 16,644 bytes holds four pages and a header.
        let server = Smb1ServerParameters {
            max_mpx_count: 50,
            max_buffer_size: 16_644,
            max_raw_size: 65_536,
            session_key: 0,
            capabilities: capabilities::LARGE_READX,
            extended_security: true,
            sign: false,
            signing_required: false,
        };
        assert_eq!(largest(&server, false), (0x1_0000, 16_384));
        assert_eq!(largest(&server, true), (16_384, 16_384));
        assert_eq!(largest(&Smb1ServerParameters { max_buffer_size: 1024, ..server }, true), (960, 960));
    }
}
