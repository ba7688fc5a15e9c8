//! NEGOTIATE with exactly one dialect (MS-SMB2 3.2.4.2.2, 3.2.5.2), and its validation once there are keys (3.2.5.5).

use super::connection::{Smb2Connection, Smb2Reply};
use crate::limits::TRANSFER_MIN;
use crate::sample::{RequestDetails, SessionParameters};
use crate::smb2::connection::ProtectionLevel;
use crate::{Cipher, ClientError, ClientSigningPolicy, Encryption, SessionOptions, SigningAlgorithm, Transport};
use smbscope_crypto::PreauthHash;
use smbscope_model::offers::{AES_CMAC, AES_GMAC, HMAC_SHA256};
use smbscope_model::{Command, Dialect, Subcommand};
use smbscope_wire::codec::List;
use smbscope_wire::names::Fsctl;
use smbscope_wire::smb2::messages::negotiate::{Request, Response, capabilities, security_mode};
use smbscope_wire::smb2::messages::negotiate_context::{NegotiateContextList, Offer};
use smbscope_wire::smb2::messages::{ioctl, validate_negotiate};
use smbscope_wire::smb2::{self, FileReference};

/// Ciphers (2.2.3.1.2) in the order that Windows clients offer them.
const CIPHERS: [(Cipher, u16); 4] = [
    (Cipher::Aes128Gcm, 0x0002),
    (Cipher::Aes128Ccm, 0x0001),
    (Cipher::Aes256Gcm, 0x0004),
    (Cipher::Aes256Ccm, 0x0003),
];
/// Signing algorithms (2.2.3.1.7), fastest first.
const SIGNING_ALGORITHMS: [(SigningAlgorithm, u16); 3] = [
    (SigningAlgorithm::AesGmac, AES_GMAC),
    (SigningAlgorithm::AesCmac, AES_CMAC),
    (SigningAlgorithm::HmacSha256, HMAC_SHA256),
];
const SHA_512: u16 = 1;
/// Payload limit of a NetBIOS frame, whose length has 17 bits, besides the message's fields.
const NETBIOS_PAYLOAD: u32 = 64 * 1024;

impl SessionParameters {
    /// Returns the id of the algorithm for signatures. `None` if messages are not signed, or with SMB1's.
    pub fn signing_id(&self) -> Option<u16> {
        SIGNING_ALGORITHMS.iter().find(|(known, _)| Some(*known) == self.signing).map(|(_, id)| *id)
    }
}

#[derive(Debug, Clone)]
pub(super) struct Smb2NegotiateResult {
    pub(super) dialect: u16,
    client_capabilities: u32,
    pub(super) client_guid: [u8; 16],
    pub(super) client_security_mode: u16,
    pub(super) capabilities: u32,
    server_guid: [u8; 16],
    security_mode: u16,
    pub(super) signing_algorithm: SigningAlgorithm,
    pub(super) cipher: Option<Cipher>,
    pub(super) max_transact: u32,
    pub(super) max_read: u32,
    pub(super) max_write: u32,
    pub(super) preauth: PreauthHash,
}

impl Smb2NegotiateResult {
    pub(super) fn is_3_1_1(&self) -> bool {
        self.dialect == 0x0311
    }

    pub(super) fn server_requires_signing(&self) -> bool {
        self.security_mode & security_mode::SIGNING_REQUIRED != 0
    }
}

struct Smb2ClientParameters {
    dialect: u16,
    capabilities: u32,
    guid: [u8; 16],
    security_mode: u16,
}

impl Smb2ClientParameters {
    fn new(options: &SessionOptions, guid: Option<[u8; 16]>) -> Result<Smb2ClientParameters, ClientError> {
        let dialect = dialect(options)?;
        let guid = match guid {
            Some(guid) => guid,
            None if dialect == 0x0202 => [0; 16],
            None => random()?,
        };
        let security_mode = match options.signing {
            ClientSigningPolicy::Required => security_mode::SIGNING_REQUIRED,
            ClientSigningPolicy::Off | ClientSigningPolicy::On => security_mode::SIGNING_ENABLED,
        };
        Ok(Smb2ClientParameters { dialect, capabilities: client_capabilities(dialect), guid, security_mode })
    }
}

fn client_capabilities(dialect: u16) -> u32 {
    if dialect < 0x0300 {
        return 0;
    }
    // 3.1.1 announces encryption in a context, but Samba checks the capability nevertheless.
    capabilities::LEASING | capabilities::LARGE_MTU | capabilities::MULTI_CHANNEL | capabilities::ENCRYPTION
}

/// Negotiates the requested dialect. For another channel of a session, `client_guid` is the first channel's.
pub(super) async fn negotiate(
    connection: &mut Smb2Connection,
    options: &SessionOptions,
    client_guid: Option<[u8; 16]>,
) -> Result<Smb2NegotiateResult, ClientError> {
    let client = Smb2ClientParameters::new(options, client_guid)?;
    let (reply, preauth) = exchange(connection, options, &client).await?;
    let response = Response::parse(connection.message(&reply)).ok_or_else(|| reply.malformed())?;
    let negotiated = accept(&response, options, &client, preauth)?;
    connection.dialect.has_credit_charge = negotiated.dialect >= 0x0210;
    connection.dialect.credits.multi = has_multi_credit(negotiated.dialect, negotiated.capabilities);
    Ok(negotiated)
}

async fn exchange(
    connection: &mut Smb2Connection,
    options: &SessionOptions,
    client: &Smb2ClientParameters,
) -> Result<(Smb2Reply, PreauthHash), ClientError> {
    let reply = send(connection, options, client).await?;
    let mut preauth = PreauthHash::new();
    preauth.update(connection.sent());
    preauth.update(connection.message(&reply));
    if reply.status.is_error() {
        return Err(ClientError::Refused {
            what: format!("dialect {} with {}", options.dialect, options.address),
            status: reply.status,
            hint: "the server does not support this dialect; try another with --dialect",
        });
    }
    Ok((reply, preauth))
}

async fn send(
    connection: &mut Smb2Connection,
    options: &SessionOptions,
    client: &Smb2ClientParameters,
) -> Result<Smb2Reply, ClientError> {
    let offer = Offer {
        salt: &random::<32>()?,
        ciphers: &ids(&CIPHERS, wanted_cipher(options)),
        signing_algorithms: &ids(&SIGNING_ALGORITHMS, options.signing_algorithm),
        net_name: Some(&options.host),
    };
    let is_3_1_1 = client.dialect == 0x0311;
    let request = Request {
        security_mode: client.security_mode,
        capabilities: client.capabilities,
        client_guid: client.guid,
        dialects: List::Values(&[client.dialect]),
        contexts: if is_3_1_1 { NegotiateContextList::Offer(offer) } else { NegotiateContextList::default() },
    };
    connection.call(&request, RequestDetails::default()).await
}

fn accept(
    response: &Response<'_>,
    options: &SessionOptions,
    client: &Smb2ClientParameters,
    preauth: PreauthHash,
) -> Result<Smb2NegotiateResult, ClientError> {
    check_dialect(response, options, client)?;
    let signing_algorithm = signing_algorithm(response, options)?;
    let cipher = cipher(response);
    check_encryption(cipher, options)?;
    check_transfer_sizes(response)?;
    let usable = |size: u32| usable_size(size, has_multi_credit(response.dialect, response.capabilities), options);
    Ok(Smb2NegotiateResult {
        dialect: client.dialect,
        client_capabilities: client.capabilities,
        client_guid: client.guid,
        client_security_mode: client.security_mode,
        capabilities: response.capabilities,
        server_guid: response.server_guid,
        security_mode: response.security_mode,
        signing_algorithm,
        cipher,
        max_transact: usable(response.max_transact_size),
        max_read: usable(response.max_read_size),
        max_write: usable(response.max_write_size),
        preauth,
    })
}

fn check_dialect(
    response: &Response<'_>,
    options: &SessionOptions,
    client: &Smb2ClientParameters,
) -> Result<(), ClientError> {
    if response.dialect != client.dialect {
        let chosen = Dialect::Smb2(response.dialect);
        let reason = format!("dialect {} was requested, but the server chose {chosen}", options.dialect);
        return Err(ClientError::Unsupported(reason));
    }
    if response.dialect == 0x0311 && response.contexts.hash_algorithm() != Some(SHA_512) {
        return Err(ClientError::Protocol("no hash algorithm for the pre-authentication integrity".to_owned()));
    }
    Ok(())
}

fn signing_algorithm(response: &Response<'_>, options: &SessionOptions) -> Result<SigningAlgorithm, ClientError> {
    let chosen = match response.dialect {
        // 3.2.5.2: AES-CMAC if the response has no signing context.
        0x0311 => match response.contexts.signing_algorithm() {
            Some(id) => named(&SIGNING_ALGORITHMS, id),
            None => Some(SigningAlgorithm::AesCmac),
        }
        .filter(|chosen| options.signing_algorithm.is_none_or(|wanted| wanted == *chosen)),
        0x0300 | 0x0302 => Some(SigningAlgorithm::AesCmac),
        _ => Some(SigningAlgorithm::HmacSha256),
    };
    chosen.ok_or_else(|| {
        ClientError::Unsupported(format!("the server does not sign with {:?}", options.signing_algorithm))
    })
}

fn cipher(response: &Response<'_>) -> Option<Cipher> {
    match response.dialect {
        0x0311 => response.contexts.cipher().and_then(|id| named(&CIPHERS, id)),
        0x0300 | 0x0302 => {
            let can_encrypt = response.capabilities & capabilities::ENCRYPTION != 0;
            can_encrypt.then_some(Cipher::Aes128Ccm)
        }
        _ => None,
    }
}

fn check_encryption(cipher: Option<Cipher>, options: &SessionOptions) -> Result<(), ClientError> {
    let Encryption::Required(wanted) = options.encryption else { return Ok(()) };
    if cipher.is_some() && wanted.is_none_or(|wanted| Some(wanted) == cipher) {
        return Ok(());
    }
    let what = wanted.map_or_else(|| "encryption".to_owned(), |cipher| format!("the cipher {cipher:?}"));
    Err(ClientError::Unsupported(format!("the server does not support {what} with dialect {}", options.dialect)))
}

fn check_transfer_sizes(response: &Response<'_>) -> Result<(), ClientError> {
    let smallest = response.max_transact_size.min(response.max_read_size).min(response.max_write_size);
    if smallest < TRANSFER_MIN {
        let text = format!("the server allows transfers of at most {smallest} bytes, but {TRANSFER_MIN} are needed");
        return Err(ClientError::Unsupported(text));
    }
    Ok(())
}

fn has_multi_credit(dialect: u16, capabilities: u32) -> bool {
    dialect >= 0x0210 && capabilities & capabilities::LARGE_MTU != 0
}

/// Reduces a maximum size to a single credit and a NetBIOS frame where these limit it.
fn usable_size(size: u32, multi_credit: bool, options: &SessionOptions) -> u32 {
    let single = if multi_credit { size } else { size.min(64 * 1024) };
    if options.transport == Transport::NetBios { single.min(NETBIOS_PAYLOAD) } else { single }.max(1)
}

/// Validates the negotiation in a signed message. Only 3.0 and 3.0.2 need it, and guests have no key.
pub(super) async fn validate(
    connection: &mut Smb2Connection,
    negotiated: &Smb2NegotiateResult,
) -> Result<(), ClientError> {
    if !matches!(negotiated.dialect, 0x0300 | 0x0302) || connection.dialect.protection.signer.is_none() {
        return Ok(());
    }
    let request = validate_negotiate::ValidateNegotiateRequest {
        capabilities: negotiated.client_capabilities,
        guid: negotiated.client_guid,
        security_mode: negotiated.client_security_mode,
        dialects: List::Values(&[negotiated.dialect]),
    };
    let mut input = Vec::with_capacity(32);
    request.emit(&mut input);
    let code = Fsctl::VALIDATE_NEGOTIATE_INFO;
    let max_output = validate_negotiate::ValidateNegotiateResponse::LENGTH;
    let ioctl = ioctl::Request::new(code, FileReference::NONE, &input, max_output);
    let about = RequestDetails::subcommand(Subcommand::Fsctl(code));
    // 3.2.5.5: signed even if nothing else is.
    let mode = connection.dialect.protection.mode;
    if mode == ProtectionLevel::Plain {
        connection.dialect.protection.mode = ProtectionLevel::Signed;
    }
    let reply = connection.call(&ioctl, about).await;
    connection.dialect.protection.mode = mode;
    let reply = reply?;
    if reply.status.is_error() {
        // A server that doesn't know the code says so in a signed response, which proves as much.
        return Ok(());
    }
    let output = ioctl::Response::parse(connection.message(&reply)).ok_or_else(|| reply.malformed())?.output;
    let expected = validate_negotiate::ValidateNegotiateResponse {
        capabilities: negotiated.capabilities,
        guid: negotiated.server_guid,
        security_mode: negotiated.security_mode,
        dialect: negotiated.dialect,
    };
    match validate_negotiate::ValidateNegotiateResponse::parse(output) {
        Some(response) if response == expected => Ok(()),
        _ => Err(ClientError::Tampered {
            command: Command::Smb2(smb2::Smb2Command::NEGOTIATE),
            what: "content, as its validation shows",
        }),
    }
}

fn dialect(options: &SessionOptions) -> Result<u16, ClientError> {
    match options.dialect {
        Dialect::Smb2(dialect @ (0x0202 | 0x0210 | 0x0300 | 0x0302 | 0x0311)) => {
            let can_encrypt = match wanted_cipher(options) {
                None => options.encryption == Encryption::Off || dialect >= 0x0300,
                Some(Cipher::Aes128Ccm) => dialect >= 0x0300,
                Some(_) => dialect >= 0x0311,
            };
            if can_encrypt {
                Ok(dialect)
            } else {
                let what = wanted_cipher(options).map_or_else(|| "encryption".to_owned(), |c| format!("cipher {c:?}"));
                Err(ClientError::Unsupported(format!("dialect {} has no {what}", options.dialect)))
            }
        }
        other => Err(ClientError::Unsupported(format!("dialect {other} is not one of SMB2 and SMB3"))),
    }
}

fn wanted_cipher(options: &SessionOptions) -> Option<Cipher> {
    match options.encryption {
        Encryption::Required(cipher) => cipher,
        Encryption::Off => None,
    }
}

fn ids<T: Copy + PartialEq>(table: &[(T, u16)], wanted: Option<T>) -> Vec<u16> {
    let fits = |entry: &&(T, u16)| wanted.is_none_or(|wanted| entry.0 == wanted);
    table.iter().filter(fits).map(|entry| entry.1).collect()
}

fn named<T: Copy>(table: &[(T, u16)], id: u16) -> Option<T> {
    table.iter().find(|entry| entry.1 == id).map(|entry| entry.0)
}

fn random<const LENGTH: usize>() -> Result<[u8; LENGTH], ClientError> {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes).map_err(|error| ClientError::Unsupported(format!("random numbers: {error}")))?;
    Ok(bytes)
}
