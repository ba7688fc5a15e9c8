//! Connection options.

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};
use smbscope_crypto::{Cipher, SigningAlgorithm};
use smbscope_model::Dialect;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SessionOptions {
    pub address: SocketAddr,
    /// Server name as given by the user, used in UNC paths and as the NetBIOS called name.
    pub host: String,
    pub share: String,
    /// Local folder used in place of a server. Only `timeout` applies then.
    pub folder: Option<PathBuf>,
    pub transport: Transport,
    /// Exact dialect. A server that selects another one is refused.
    pub dialect: Dialect,
    pub signing: ClientSigningPolicy,
    pub encryption: Encryption,
    /// The only signing algorithm to offer in SMB 3.1.1. `None` offers all.
    pub signing_algorithm: Option<SigningAlgorithm>,
    pub credentials: Credentials,
    /// Timeout of a command. Expected waits, such as change notify, have none.
    pub timeout: Duration,
    /// Credits to request: the maximum number of outstanding commands.
    pub credits: u16,
    /// Sends open, operation and close as one compound, if the dialect supports it.
    pub compound: bool,
    /// Reads and writes in raw mode (SMB1 READ_RAW, WRITE_RAW). Refused if the server, signing or oplocks prevent it.
    pub raw: bool,
    /// Requests a lease (2.1 and later) or an oplock (before) when opening a file.
    pub leases: bool,
}

impl SessionOptions {
    /// Returns the defaults: direct TCP, as a guest, SMB 3.1.1, with the protection that the server requires.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Transport {
    /// TCP with a length before each message (MS-SMB2 2.1), port 445.
    DirectTcp,
    /// NetBIOS session service (RFC 1002 4.3), port 139.
    NetBios,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClientSigningPolicy {
    /// Signs only what SMB 3.1.1 always requires (end of logon, tree connect); refuses servers that require more.
    Off,
    On,
    Required,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encryption {
    /// Encrypts only if the server or the share requires it.
    Off,
    /// Always encrypts, with this cipher (SMB 3.1.1) or with the strongest that both sides support.
    Required(Option<Cipher>),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Credentials {
    /// An NTLM token without a user.
    Anonymous,
    /// A user that the server doesn't know and maps to its guest account.
    Guest,
    Ntlm {
        domain: String,
        user: String,
        password: Secret,
    },
    Kerberos,
}

/// A password. Its type keeps it out of logs and results.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: String) -> Secret {
        Secret(text)
    }

    /// Returns the password, for key derivation and for programs that log on themselves.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

/// Serializes the password for load generators on other hosts. Text formats such as JSON and TOML are refused.
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
