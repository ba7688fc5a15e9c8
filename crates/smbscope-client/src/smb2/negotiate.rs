//! NEGOTIATE with exactly one dialect (MS-SMB2 3.2.4.2.2, 3.2.5.2), and its validation once there are keys (3.2.5.5).

use super::connection::{Smb2Connection, Smb2RequestDetails};
use crate::crypto::PreauthHash;
use crate::limits::TRANSFER_MIN;
use crate::smb2::connection::ProtectionLevel;
use crate::{Cipher, ClientError, ClientSigningPolicy, Encryption, SessionOptions, SigningAlgorithm, Transport};
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
const SIGNING_ALGORITHMS: [(SigningAlgorithm, u16); 3] =
    [(SigningAlgorithm::AesGmac, 0x0002), (SigningAlgorithm::AesCmac, 0x0001), (SigningAlgorithm::HmacSha256, 0x0000)];
/// SHA-512, the only hash algorithm.
const SHA_512: u16 = 1;
/// Payload limit of a NetBIOS frame, whose length has 17 bits, besides the message's fields.
const NETBIOS_PAYLOAD: u32 = 64 * 1024;

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

/// Negotiates the requested dialect. For another channel of a session, `client_guid` is the first channel's.
pub(super) async fn negotiate(
    connection: &mut Smb2Connection,
    options: &SessionOptions,
    client_guid: Option<[u8; 16]>,
) -> Result<Smb2NegotiateResult, ClientError> {
    let dialect = dialect(options)?;
    let is_smb3 = dialect >= 0x0300;
    let client_capabilities = if is_smb3 {
        // 3.1.1 announces encryption in a context, but Samba checks the capability nevertheless.
        capabilities::LEASING | capabilities::LARGE_MTU | capabilities::MULTI_CHANNEL | capabilities::ENCRYPTION
    } else {
        0
    };
    let client_guid = match client_guid {
        Some(guid) => guid,
        None if dialect == 0x0202 => [0; 16],
        None => random()?,
    };
    let client_security_mode = match options.signing {
        ClientSigningPolicy::Required => security_mode::SIGNING_REQUIRED,
        ClientSigningPolicy::Off | ClientSigningPolicy::On => security_mode::SIGNING_ENABLED,
    };
    let ciphers = ids(&CIPHERS, wanted_cipher(options));
    let signing_algorithms = ids(&SIGNING_ALGORITHMS, options.signing_algorithm);
    let salt: [u8; 32] = random()?;
    let offer = Offer {
        salt: &salt,
        ciphers: &ciphers,
        signing_algorithms: &signing_algorithms,
        net_name: Some(&options.host),
    };
    let request = Request {
        security_mode: client_security_mode,
        capabilities: client_capabilities,
        client_guid,
        dialects: List::Values(&[dialect]),
        contexts: if dialect == 0x0311 { NegotiateContextList::Offer(offer) } else { NegotiateContextList::default() },
    };
    let reply = connection.call(&request, Smb2RequestDetails::default()).await?;
    let mut preauth = PreauthHash::new();
    preauth.update(connection.sent());
    let message = connection.message(&reply);
    preauth.update(message);
    if reply.status().is_error() {
        return Err(ClientError::Refused {
            what: format!("dialect {} with {}", options.dialect, options.address),
            status: reply.status(),
            hint: "the server does not support this dialect; try another with --dialect",
        });
    }
    let response = Response::parse(message).ok_or_else(|| reply.malformed())?;
    if response.dialect != dialect {
        let chosen = Dialect::Smb2(response.dialect);
        let reason = format!("dialect {} was requested, but the server chose {chosen}", options.dialect);
        return Err(ClientError::Unsupported(reason));
    }
    let (signing_algorithm, cipher) = match dialect {
        0x0311 => {
            if response.contexts.hash_algorithm() != Some(SHA_512) {
                return Err(ClientError::Protocol("no hash algorithm for the pre-authentication integrity".to_owned()));
            }
            // 3.2.5.2: AES-CMAC if the response has no signing context.
            let signing = match response.contexts.signing_algorithm() {
                Some(id) => named(&SIGNING_ALGORITHMS, id),
                None => Some(SigningAlgorithm::AesCmac),
            };
            (signing, response.contexts.cipher().and_then(|id| named(&CIPHERS, id)))
        }
        0x0300 | 0x0302 => {
            let can_encrypt = response.capabilities & capabilities::ENCRYPTION != 0;
            (Some(SigningAlgorithm::AesCmac), can_encrypt.then_some(Cipher::Aes128Ccm))
        }
        _ => (Some(SigningAlgorithm::HmacSha256), None),
    };
    let signing_algorithm = signing_algorithm
        .filter(|chosen| dialect != 0x0311 || options.signing_algorithm.is_none_or(|wanted| wanted == *chosen))
        .ok_or_else(|| {
            ClientError::Unsupported(format!("the server does not sign with {:?}", options.signing_algorithm))
        })?;
    if let Encryption::Required(wanted) = options.encryption
        && (cipher.is_none() || wanted.is_some_and(|wanted| Some(wanted) != cipher))
    {
        let what = wanted.map_or_else(|| "encryption".to_owned(), |cipher| format!("the cipher {cipher:?}"));
        return Err(ClientError::Unsupported(format!(
            "the server does not support {what} with dialect {}",
            options.dialect
        )));
    }
    let smallest = response.max_transact_size.min(response.max_read_size).min(response.max_write_size);
    if smallest < TRANSFER_MIN {
        let text = format!("the server allows transfers of at most {smallest} bytes, but {TRANSFER_MIN} are needed");
        return Err(ClientError::Unsupported(text));
    }
    let has_credit_charge = dialect >= 0x0210;
    let multi_credit = has_credit_charge && response.capabilities & capabilities::LARGE_MTU != 0;
    let most = |size: u32| {
        let single = if multi_credit { size } else { size.min(64 * 1024) };
        if options.transport == Transport::NetBios { single.min(NETBIOS_PAYLOAD) } else { single }.max(1)
    };
    let negotiated = Smb2NegotiateResult {
        dialect,
        client_capabilities,
        client_guid,
        client_security_mode,
        capabilities: response.capabilities,
        server_guid: response.server_guid,
        security_mode: response.security_mode,
        signing_algorithm,
        cipher,
        max_transact: most(response.max_transact_size),
        max_read: most(response.max_read_size),
        max_write: most(response.max_write_size),
        preauth,
    };
    connection.has_credit_charge = has_credit_charge;
    connection.credits.multi = multi_credit;
    Ok(negotiated)
}

/// Validates the negotiation in a signed message. 3.1.1 doesn't need it, dialects before 3.0 don't have it, and a guest
/// has no key.
pub(super) async fn validate(
    connection: &mut Smb2Connection,
    negotiated: &Smb2NegotiateResult,
) -> Result<(), ClientError> {
    if !matches!(negotiated.dialect, 0x0300 | 0x0302) || connection.protection.signer.is_none() {
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
    let about = Smb2RequestDetails { subcommand: Some(Subcommand::Fsctl(code)), ..Smb2RequestDetails::default() };
    // 3.2.5.5: signed even if nothing else is.
    let mode = connection.protection.mode;
    if mode == ProtectionLevel::Plain {
        connection.protection.mode = ProtectionLevel::Signed;
    }
    let reply = connection.call(&ioctl, about).await;
    connection.protection.mode = mode;
    let reply = reply?;
    if reply.status().is_error() {
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
