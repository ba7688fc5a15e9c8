//! Connection options.

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};
use smbscope_crypto::key_ring::session_line;
use smbscope_crypto::{Cipher, SessionKeys, SigningAlgorithm};
use smbscope_model::Dialect;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use zeroize::Zeroizing;

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
    /// Collects the keys of SMB 3 sessions. Not sent to load generators on other hosts.
    #[serde(skip)]
    pub key_log: Option<KeyLog>,
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
            key_log: None,
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

/// Sessions of a log of keys; the keys of later ones are dropped.
const LOGGED_KEYS_MAX: usize = 1 << 16;

/// Keys of sessions as lines of Wireshark's `smb2_seskey_list`, to decrypt a capture of them. Clones share their lines.
#[derive(Clone, Default)]
pub struct KeyLog(Arc<Mutex<Vec<Zeroizing<String>>>>);

impl KeyLog {
    pub(crate) fn add(&self, session_id: u64, session_key: &[u8], keys: &SessionKeys) {
        // Safe to use after a panic: the list only gains lines.
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() < LOGGED_KEYS_MAX {
            lines.push(session_line(session_id, session_key, keys));
        }
    }

    /// Returns all lines so far.
    pub fn text(&self) -> Zeroizing<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let length = lines.iter().map(|line| line.len()).sum();
        let mut text = Zeroizing::new(String::with_capacity(length));
        lines.iter().for_each(|line| text.push_str(line));
        text
    }
}

impl fmt::Debug for KeyLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyLog(secret)")
    }
}

/// A password. Its type keeps it out of logs and results, and clears its memory when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    pub fn new(text: String) -> Secret {
        Secret(Zeroizing::new(text))
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
        String::deserialize(deserializer).map(Secret::new)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}
