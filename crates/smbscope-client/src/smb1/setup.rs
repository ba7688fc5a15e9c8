//! Connection setup: NEGOTIATE, SESSION_SETUP_ANDX, TREE_CONNECT_ANDX (MS-CIFS 3.2.4.2, MS-SMB 3.2.4.2).

use super::super::auth::Authenticator;
use super::super::control::TreeConnectTarget;
use super::super::crypto::Smb1Signer;
use super::super::limits::SMB1_BUFFER_MIN;
use super::super::transport::FramedConnection;
use super::super::{
    ClientError, ClientSigningPolicy, Credentials, Encryption, SessionOptions, SessionParameters, SigningAlgorithm,
};
use super::connection::{NO_TREE, Smb1Connection, malformed};
use super::{MAX_TRANSACT, Smb1ClientSession};
use crate::sample::RequestDetails;
use crate::smb1::transfers;
use smbscope_model::Dialect;
use smbscope_wire::smb1::flags2;
use smbscope_wire::smb1::messages::{
    NT_LM_0_12, Negotiate, NegotiateResponse, NtLm012, Security, SessionSetupAndx, SessionSetupAndxPlain,
    SessionSetupAndxPlainResponse, SessionSetupAndxResponse, TreeConnectAndx, TreeConnectAndxResponse, TreeDisconnect,
    WriteAndx, capabilities, security_mode,
};
use smbscope_wire::status::NtStatus;

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
const NATIVE_OS: &str = "Unix";
const NATIVE_LAN_MAN: &str = "smbscope";

#[derive(Debug, Clone, Copy)]
pub(super) struct Smb1ServerParameters {
    pub(super) max_mpx_count: u16,
    max_buffer_size: u32,
    max_raw_size: u32,
    session_key: u32,
    pub(super) capabilities: u32,
    extended_security: bool,
    sign: bool,
    signing_required: bool,
}

impl Smb1ClientSession {
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
        let link = FramedConnection::connect(options).await?;
        let mut connection = Smb1Connection::new(link, options);
        let server = negotiate(&mut connection, options).await?;
        let guest = if server.extended_security {
            log_on(&mut connection, &server, options).await?
        } else {
            log_on_plainly(&mut connection, &server, options).await?
        };
        connect_tree(&mut connection, options).await?;
        let signed = connection.signer.is_some();
        let (max_read, max_write) = match transfers::block(options, server.capabilities, server.max_raw_size, signed)? {
            Some(block) => (block, block),
            None => largest(&server, signed),
        };
        let facts = SessionParameters {
            local: connection.link.local(),
            peer: connection.link.peer(),
            dialect: Dialect::NtLm012,
            signing: connection.signer.is_some().then_some(SigningAlgorithm::Md5),
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
        self.connection.call_in_tree(connected.tid, &TreeDisconnect {}).await.map(drop)
    }
}

async fn negotiate(
    connection: &mut Smb1Connection,
    options: &SessionOptions,
) -> Result<Smb1ServerParameters, ClientError> {
    if options.signing == ClientSigningPolicy::Required {
        connection.header.flags2 |= flags2::SECURITY_SIGNATURE | flags2::SECURITY_SIGNATURE_REQUIRED;
    }
    offer_dialect(connection).await?;
    let server = match NegotiateResponse::parse(connection.message()).map_err(malformed)? {
        NegotiateResponse::NtLm012(answer) => server_parameters(&answer, options)?,
        NegotiateResponse::NoDialect => {
            return Err(unsupported(options, "the server does not speak NT LM 0.12 (SMB1): choose a newer dialect"));
        }
    };
    adapt_flags(connection, &server);
    Ok(server)
}

async fn offer_dialect(connection: &mut Smb1Connection) -> Result<(), ClientError> {
    let said = connection.call(&Negotiate { dialects: &[NT_LM_0_12] }, RequestDetails::default()).await;
    said.map(drop).map_err(|error| match error {
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
    let server = Smb1ServerParameters {
        max_mpx_count: answer.max_mpx_count,
        max_buffer_size: answer.max_buffer_size,
        max_raw_size: answer.max_raw_size,
        session_key: answer.session_key,
        capabilities: answer.capabilities,
        extended_security: matches!(answer.security, Security::Extended { .. }),
        sign: must_sign(answer, options)?,
        signing_required: requires_signing(answer),
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

fn must_sign(answer: &NtLm012<'_>, options: &SessionOptions) -> Result<bool, ClientError> {
    let required = requires_signing(answer);
    let can_sign = required || answer.security_mode & security_mode::SIGNATURES_ENABLED != 0;
    match options.signing {
        ClientSigningPolicy::Off if required => {
            Err(unsupported(options, "the server requires signing, which is switched off here"))
        }
        ClientSigningPolicy::Required if !can_sign => {
            Err(unsupported(options, "the server cannot sign, and signing is required"))
        }
        ClientSigningPolicy::Off => Ok(false),
        ClientSigningPolicy::On => Ok(required),
        ClientSigningPolicy::Required => Ok(true),
    }
}

fn requires_signing(answer: &NtLm012<'_>) -> bool {
    answer.security_mode & security_mode::SIGNATURES_REQUIRED != 0
}

fn unsupported(options: &SessionOptions, what: &str) -> ClientError {
    ClientError::Unsupported(format!("{}: {what}", options.host))
}

fn adapt_flags(connection: &mut Smb1Connection, server: &Smb1ServerParameters) {
    if server.capabilities & capabilities::UNICODE == 0 {
        connection.header.flags2 &= !flags2::UNICODE;
    }
    if !server.extended_security {
        connection.header.flags2 &= !flags2::EXTENDED_SECURITY;
    }
    if server.sign {
        connection.header.flags2 |= flags2::SECURITY_SIGNATURE;
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
    let mut authenticator = Authenticator::new(&options.credentials, &options.host)?;
    let mut token = authenticator.first();
    // NTLM takes two legs; other mechanisms may take more.
    for _ in 0..8 {
        let setup = SessionSetupAndx {
            max_buffer_size: MAX_BUFFER_SIZE,
            max_mpx_count: server.max_mpx_count,
            vc_number: 1,
            session_key: server.session_key,
            capabilities: CAPABILITIES | capabilities::EXTENDED_SECURITY,
            blob: &token,
            native_os: NATIVE_OS.into(),
            native_lan_man: NATIVE_LAN_MAN.into(),
        };
        let said = connection.call(&setup, RequestDetails::default()).await;
        let header = said.map_err(|error| refused_logon(error, options))?;
        connection.header.uid = header.uid;
        let answer = SessionSetupAndxResponse::parse(connection.message()).map_err(malformed)?;
        if NtStatus(header.status) == NtStatus::MORE_PROCESSING_REQUIRED {
            token = authenticator.next(answer.blob)?;
            continue;
        }
        let guest = answer.action & 1 != 0;
        if !guest {
            authenticator.finish(answer.blob)?;
        }
        return Ok((authenticator, guest));
    }
    Err(ClientError::Protocol("the server keeps asking for security tokens".to_owned()))
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
            if !signer.verify(connection.message(), Smb1Signer::SESSION_SETUP_RESPONSE) {
                let command = smbscope_model::Command::Smb1(smbscope_wire::smb1::Smb1Command::SESSION_SETUP_ANDX);
                return Err(ClientError::Tampered { command, what: "signature" });
            }
            connection.signer = Some(signer);
        }
        None if options.signing == ClientSigningPolicy::Required || server.signing_required => {
            let what = "signing is required, and guests and anonymous users have no key to sign with: give a user";
            return Err(ClientError::Unsupported(format!("{}: {what}", options.host)));
        }
        _ => connection.header.flags2 &= !(flags2::SECURITY_SIGNATURE | flags2::SECURITY_SIGNATURE_REQUIRED),
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
            return Err(ClientError::Unsupported(format!("{}: {what}", options.host)));
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
    connection.header.uid = said.map_err(|error| refused_logon(error, options))?.uid;
    let action = SessionSetupAndxPlainResponse::parse(connection.message()).map_err(malformed)?.action;
    start_signing(connection, server, None, options)?;
    Ok(action & 1 != 0)
}

fn refused_logon(error: ClientError, options: &SessionOptions) -> ClientError {
    let Some(status) = error.status() else { return error };
    let who = match &options.credentials {
        Credentials::Ntlm { user, .. } => format!("log on to {} as {user}", options.host),
        Credentials::Guest => format!("log on to {} as a guest", options.host),
        Credentials::Anonymous => format!("log on to {} anonymously", options.host),
        Credentials::Kerberos => format!("log on to {} with Kerberos", options.host),
    };
    let hint = match status {
        NtStatus::LOGON_FAILURE | NtStatus::WRONG_PASSWORD | NtStatus::NO_SUCH_USER => {
            "the user name or the password is wrong, or guests are not allowed"
        }
        NtStatus::ACCESS_DENIED => {
            "the server allows neither guests nor anonymous users, or requires signing: give a user"
        }
        NtStatus::ACCOUNT_DISABLED => "the account is switched off",
        NtStatus::ACCOUNT_LOCKED_OUT => "the account is locked after too many wrong passwords: wait, or unlock it",
        NtStatus::PASSWORD_EXPIRED | NtStatus::PASSWORD_MUST_CHANGE => "the password must be changed first",
        _ => "see the server's log",
    };
    ClientError::Refused { what: who, status, hint }
}

async fn connect_tree(connection: &mut Smb1Connection, options: &SessionOptions) -> Result<(), ClientError> {
    let path = TreeConnectTarget::Own.path(&options.host, &options.share);
    let connect = TreeConnectAndx { flags: 0, password: &[0], path: path.as_str().into(), service: "?????".into() };
    let said = connection.call(&connect, RequestDetails::default()).await;
    let header = said.map_err(|error| refused_tree(error, options))?;
    TreeConnectAndxResponse::parse(connection.message()).map_err(malformed)?;
    connection.header.tid = header.tid;
    Ok(())
}

fn refused_tree(error: ClientError, options: &SessionOptions) -> ClientError {
    let Some(status) = error.status() else { return error };
    let hint = match status {
        NtStatus::BAD_NETWORK_NAME => "the server has no share of this name",
        NtStatus::ACCESS_DENIED => "access is denied, or the share requires encryption, which SMB1 lacks",
        _ => "see the server's log",
    };
    ClientError::Refused { what: format!("connect to share {}", options.share), status, hint }
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
