//! How to connect, and as whom.

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};
use smbscope_model::Dialect;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Everything that a session is made from.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SessionOptions {
    /// Where the server listens.
    pub address: SocketAddr,
    /// The server's name as the user wrote it: in UNC paths, and the NetBIOS called name.
    pub host: String,
    /// The share to connect to.
    pub share: String,
    /// A folder of this machine in the place of the server and its share: of all the others, only `timeout` counts then.
    pub folder: Option<PathBuf>,
    /// How frames are carried.
    pub transport: Transport,
    /// The dialect to speak, exactly: a server that chooses another is refused.
    pub dialect: Dialect,
    /// Whether messages are signed.
    pub signing: ClientSigningPolicy,
    /// Whether messages are encrypted.
    pub encryption: Encryption,
    /// SMB 3.1.1: the only signing algorithm to offer; all of them otherwise.
    pub signing_algorithm: Option<SigningAlgorithm>,
    /// Who asks.
    pub credentials: Credentials,
    /// How long to wait for the answer to a command that is no expected wait.
    pub timeout: Duration,
    /// Credits to ask for: the most outstanding commands.
    pub credits: u16,
    /// Compound open, operation and close into one frame where the dialect can.
    pub compound: bool,
    /// SMB1: read and write in raw mode (READ_RAW, WRITE_RAW); refused where the server, signing or oplocks do not allow it.
    pub raw: bool,
    /// Ask for a lease (2.1 and later) or an oplock (before) with every open of a file.
    pub leases: bool,
}

impl SessionOptions {
    /// Direct TCP without protection of its own choice, as a guest; for a server and share.
    pub fn new(host: &str, address: SocketAddr, share: &str) -> SessionOptions {
        SessionOptions {
            address,
            host: host.to_owned(),
            share: share.to_owned(),
            folder: None,
            transport: Transport::DirectTcp,
            dialect: Dialect::Smb2(0x0311),
            signing: ClientSigningPolicy::On,
            encryption: Encryption::Off,
            signing_algorithm: None,
            credentials: Credentials::Guest,
            timeout: Duration::from_secs(30),
            credits: 64,
            compound: false,
            raw: false,
            leases: false,
        }
    }
}

/// How frames are carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Transport {
    /// TCP with a length before each message (MS-SMB2 2.1), port 445.
    DirectTcp,
    /// A NetBIOS session (RFC 1002 4.3), port 139.
    NetBios,
}

/// Whether messages are signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClientSigningPolicy {
    /// Not, and a server that requires it is refused. What SMB 3.1.1 signs in any case (the last leg of the session
    /// setup, the tree connect) stays signed.
    Off,
    /// Where the server requires it.
    On,
    /// Always.
    Required,
}

/// Whether messages are encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encryption {
    /// Not unless the server or the share requires it.
    Off,
    /// Always, with this cipher (SMB 3.1.1), or with the best that both sides can.
    Required(Option<Cipher>),
}

/// MS-SMB2 2.2.3.1.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cipher {
    /// 0x0001, the only one of 3.0 and 3.0.2.
    Aes128Ccm,
    /// 0x0002
    Aes128Gcm,
    /// 0x0003
    Aes256Ccm,
    /// 0x0004
    Aes256Gcm,
}

/// MS-SMB2 2.2.3.1.7, and what SMB1 does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SigningAlgorithm {
    /// MD5 over key and message: SMB1 (MS-CIFS 3.1.4.1).
    Md5,
    /// 0x0000: 2.0.2 and 2.1.
    HmacSha256,
    /// 0x0001: 3.0 and later.
    AesCmac,
    /// 0x0002: 3.1.1, where both sides offer it.
    AesGmac,
}

/// Who asks.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Credentials {
    /// Nobody: an NTLM token without a user.
    Anonymous,
    /// A user that the server does not know, and lets in as its guest.
    Guest,
    /// A user with a password, by NTLMv2.
    Ntlm {
        /// Domain; may be empty.
        domain: String,
        /// Account.
        user: String,
        /// Never printed.
        password: Secret,
    },
    /// Kerberos with the tickets that the system has.
    Kerberos,
}

/// A password: it has no way into a log or a result.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes it over.
    pub fn new(text: String) -> Secret {
        Secret(text)
    }

    /// For the key derivation, and for programs that log in themselves.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// For the load generators of other hosts. What people read has no place for it: JSON and TOML refuse it.
impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serializer.is_human_readable() {
            true => Err(ser::Error::custom("a password is written to no text")),
            false => serializer.serialize_str(&self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
        String::deserialize(deserializer).map(Secret)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}
