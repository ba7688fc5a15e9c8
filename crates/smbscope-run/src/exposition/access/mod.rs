//! Access to the metrics: TLS and passwords from the web configuration file of Prometheus exporters (exporter-toolkit,
//! `web-configuration.md`).

#[cfg(test)]
mod tests;

use crate::BenchError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::header::HeaderValue;
use saphyr::{LoadableYamlNode, Mapping, Yaml};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, InconsistentKeys, ServerConfig};
use zeroize::Zeroizing;

/// Bcrypt cost of a password's hash; higher ones are refused. At 14, a check takes about a second, and Prometheus waits
/// ten by default.
const COST_MAX: u32 = 14;

const TLS: &str = "tls_server_config";
const USERS: &str = "basic_auth_users";
const CERTIFICATE: &str = "cert_file";
const KEY: &str = "key_file";

/// Access rules that follow their files, as in Prometheus exporters: a new certificate or password needs no restart.
pub(super) struct FollowedAccess {
    file: Option<PathBuf>,
    current: Mutex<CurrentAccess>,
}

struct CurrentAccess {
    access: Arc<ScrapeAccess>,
    /// The files that were read, with their state at that time.
    files: Vec<(PathBuf, Option<FileState>)>,
    /// Error of the last attempt to read changed files.
    error: Option<String>,
}

/// Modification time and length of a file.
type FileState = (SystemTime, u64);

fn state(file: &Path) -> Option<FileState> {
    let metadata = std::fs::metadata(file).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

impl FollowedAccess {
    /// Reads the configuration file, its certificate and its key.
    pub(super) fn open(file: Option<&Path>) -> Result<FollowedAccess, BenchError> {
        let current = match file {
            Some(file) => CurrentAccess::read(file)?,
            None => CurrentAccess { access: Arc::default(), files: Vec::new(), error: None },
        };
        Ok(FollowedAccess { file: file.map(Path::to_owned), current: Mutex::new(current) })
    }

    /// Returns the rules. Files that have changed are read again; if that fails, the earlier rules stay.
    pub(super) fn current(&self) -> Arc<ScrapeAccess> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = current.error.is_some() || current.files.iter().any(|(file, before)| state(file) != *before);
        if let Some(file) = self.file.as_deref().filter(|_| is_new) {
            match CurrentAccess::read(file) {
                Ok(read) => {
                    tracing::info!(file = %file.display(), "the access to the metrics was read again");
                    *current = read;
                }
                Err(error) => {
                    let error = error.to_string();
                    if current.error.as_ref() != Some(&error) {
                        tracing::warn!("the access to the metrics stays as it was: {error}");
                    }
                    current.error = Some(error);
                }
            }
        }
        Arc::clone(&current.access)
    }
}

impl CurrentAccess {
    fn read(file: &Path) -> Result<CurrentAccess, BenchError> {
        // A change during the reading is then a later change.
        let config = (file.to_owned(), state(file));
        let settings = WebConfig::read(file)?;
        let mut files: Vec<_> = settings.files().map(|file| (file.to_owned(), state(file))).collect();
        files.push(config);
        Ok(CurrentAccess { access: Arc::new(ScrapeAccess::new(settings)?), files, error: None })
    }
}

/// Returns the directories of a configuration file, its certificate and its key. Renewed files appear in them.
pub fn directories_of(file: &Path) -> Vec<PathBuf> {
    let settings = WebConfig::read(file).ok();
    let files = settings.iter().flat_map(WebConfig::files).chain([file]);
    let behind = files.flat_map(|file| [Some(file.to_owned()), std::fs::canonicalize(file).ok()]).flatten();
    behind
        .filter_map(|file| Some(file.parent()?.to_owned()))
        .filter(|directory| !directory.as_os_str().is_empty())
        .collect()
}

/// Access rules of the metrics. By default, everyone may read them, without encryption.
#[derive(Default)]
pub(super) struct ScrapeAccess {
    pub(super) tls: Option<TlsAcceptor>,
    pub(super) passwords: Option<Passwords>,
}

impl ScrapeAccess {
    /// Reads the certificate and the key.
    ///
    /// # Errors
    /// A file can't be read, or the private key belongs to another certificate.
    fn new(settings: WebConfig) -> Result<ScrapeAccess, BenchError> {
        let tls = settings.tls.map(|(certificate, key)| acceptor(&certificate, &key));
        Ok(ScrapeAccess { tls: tls.transpose()?, passwords: settings.users.map(Passwords::new) })
    }
}

/// Content of a configuration file.
#[derive(Debug, PartialEq)]
struct WebConfig {
    /// Files of the certificate chain and of the private key.
    tls: Option<(PathBuf, PathBuf)>,
    /// Hashes of passwords by user.
    users: Option<BTreeMap<String, String>>,
}

impl WebConfig {
    /// Reads a configuration file. Its file names are relative to it.
    ///
    /// # Errors
    /// The file can't be read, or a key is unknown or missing.
    fn read(file: &Path) -> Result<WebConfig, BenchError> {
        let text = std::fs::read_to_string(file).map_err(BenchError::file("read", file))?;
        let wrong = |why: String| BenchError::Unavailable(format!("{}: {why}", file.display()));
        let settings = WebConfig::parse(&text).map_err(wrong)?;
        let folder = file.parent().unwrap_or(Path::new(""));
        let tls = settings.tls.map(|(certificate, key)| (folder.join(certificate), folder.join(key)));
        Ok(WebConfig { tls, ..settings })
    }

    /// Returns the certificate and the key.
    fn files(&self) -> impl Iterator<Item = &Path> {
        self.tls.iter().flat_map(|(certificate, key)| [certificate.as_path(), key])
    }

    fn parse(text: &str) -> Result<WebConfig, String> {
        let documents = Yaml::load_from_str(text).map_err(|error| format!("not YAML: {error}"))?;
        let whole = match &documents[..] {
            [] => return Err(format!("set {TLS} or {USERS}")),
            [document] => mapping(document, "the file")?,
            _ => return Err("expected one YAML document".to_owned()),
        };
        let (mut tls, mut users) = (None, None);
        for (key, value) in whole {
            match key.as_str() {
                Some(TLS) => tls = Some(tls_files(mapping(value, TLS)?)?),
                Some(USERS) => users = Some(password_hashes(mapping(value, USERS)?)?),
                _ => return Err(unknown(key, "", &format!("{TLS} and {USERS}"))),
            }
        }
        match tls.is_none() && users.is_none() {
            true => Err(format!("set {TLS} or {USERS}")),
            false => Ok(WebConfig { tls, users }),
        }
    }
}

fn mapping<'a, 'text>(value: &'a Yaml<'text>, name: &str) -> Result<&'a Mapping<'text>, String> {
    value.as_mapping().ok_or_else(|| format!("{name} must be a mapping of keys to values"))
}

fn unknown(key: &Yaml<'_>, within: &str, supported: &str) -> String {
    let key = key.as_str().map_or_else(|| "a key that is not a string".to_owned(), str::to_owned);
    format!("{within}{key} is not supported: use {supported}")
}

fn tls_files(settings: &Mapping<'_>) -> Result<(PathBuf, PathBuf), String> {
    let (mut certificate, mut private_key) = (None, None);
    for (key, value) in settings {
        let file = match key.as_str() {
            Some(CERTIFICATE) => &mut certificate,
            Some(KEY) => &mut private_key,
            _ => return Err(unknown(key, &format!("{TLS}."), &format!("{CERTIFICATE} and {KEY}"))),
        };
        let name = value.as_str().filter(|name| !name.is_empty());
        *file = Some(PathBuf::from(name.ok_or_else(|| format!("{TLS}: expected a file name for each key"))?));
    }
    certificate.zip(private_key).ok_or_else(|| format!("{TLS} needs {CERTIFICATE} and {KEY}"))
}

fn password_hashes(settings: &Mapping<'_>) -> Result<BTreeMap<String, String>, String> {
    let hashes = settings.iter().map(|(user, hash)| {
        let user = user.as_str().ok_or_else(|| format!("{USERS}: a name must be a string; put it in quotes"))?;
        let hash = hash.as_str().unwrap_or_default();
        let parts = hash.parse::<bcrypt::HashParts>();
        let cost = parts.map_err(|_| format!("{USERS}: {user} has no bcrypt hash; `htpasswd -nB {user}` makes one"))?;
        match cost.get_cost() {
            4..=COST_MAX => Ok((user.to_owned(), hash.to_owned())),
            cost => Err(format!("{USERS}: the bcrypt cost of {user} is {cost}; use 4 to {COST_MAX}")),
        }
    });
    let hashes: BTreeMap<String, String> = hashes.collect::<Result<_, String>>()?;
    if hashes.is_empty() { Err(format!("{USERS} names no user")) } else { Ok(hashes) }
}

fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, BenchError> {
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|error| not_pem(certificate, "certificate", error))?;
    if chain.is_empty() {
        return Err(not_pem(certificate, "certificate", pem::Error::NoItemsFound));
    }
    let private_key =
        PrivateKeyDer::from_pem_file(key).map_err(|error| not_pem(key, "unencrypted private key", error))?;
    let refused = |error: rustls::Error| {
        let (certificate, key) = (certificate.display(), key.display());
        BenchError::Unavailable(match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                format!("the private key {key} does not belong to the certificate {certificate}")
            }
            error => format!("cannot use the certificate {certificate} with the private key {key}: {error}"),
        })
    };
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(refused)?;
    let config = builder.with_no_client_auth().with_single_cert(chain, private_key).map_err(refused)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn not_pem(file: &Path, what: &str, error: pem::Error) -> BenchError {
    match error {
        pem::Error::Io(error) => BenchError::file("read", file)(error),
        _ => BenchError::Unavailable(format!("{} has no {what} in PEM format", file.display())),
    }
}

/// Users who may scrape, with the hashes of their passwords.
pub(super) struct Passwords {
    users: BTreeMap<String, ScrapeUser>,
    /// One check at a time, so that wrong passwords occupy at most one core.
    checking: Arc<Semaphore>,
}

struct ScrapeUser {
    hash: String,
    /// SHA-256 of the password that was accepted last: bcrypt is too slow for every scrape.
    accepted: Mutex<Option<[u8; 32]>>,
}

impl ScrapeUser {
    fn has_accepted(&self, digest: &[u8; 32]) -> bool {
        let accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        accepted.is_some_and(|accepted| accepted.ct_eq(digest).into())
    }
}

impl Passwords {
    fn new(hashes: BTreeMap<String, String>) -> Passwords {
        let user = |hash| ScrapeUser { hash, accepted: Mutex::default() };
        let users = hashes.into_iter().map(|(name, hash)| (name, user(hash))).collect();
        Passwords { users, checking: Arc::new(Semaphore::new(1)) }
    }

    /// Checks an `Authorization` header (RFC 7617). Returns false if it is missing, or the user or password is wrong.
    pub(super) async fn accept(&self, header: Option<&HeaderValue>) -> bool {
        let Some((name, password)) = header.and_then(credentials) else { return false };
        let digest: [u8; 32] = Sha256::digest(&password).into();
        let user = self.users.get(&name);
        let is_known = || user.is_some_and(|user| user.has_accepted(&digest));
        if is_known() {
            return true;
        }
        let Ok(place) = Arc::clone(&self.checking).acquire_owned().await else { return false };
        // Another scrape may have been checked in the meantime.
        if is_known() {
            return true;
        }
        // An unknown name takes the time of a known one, so that names can't be found out.
        let Some(hash) = user.or(self.users.values().next()).map(|user| user.hash.clone()) else { return false };
        let check = move || {
            let is_right = bcrypt::verify(&*password, &hash).unwrap_or(false);
            // The scrape may have timed out; the next check waits for the end of this one anyway.
            drop(place);
            is_right
        };
        let is_right = tokio::task::spawn_blocking(check).await.unwrap_or(false);
        let accepted = user.filter(|_| is_right);
        if let Some(user) = accepted {
            *user.accepted.lock().unwrap_or_else(PoisonError::into_inner) = Some(digest);
        }
        accepted.is_some()
    }
}

/// Returns the name and the password of a header `Basic base64(name:password)`.
fn credentials(header: &HeaderValue) -> Option<(String, Zeroizing<Vec<u8>>)> {
    let (scheme, encoded) = header.to_str().ok()?.split_once(' ')?;
    let decoded =
        Zeroizing::new(STANDARD.decode(encoded.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?);
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    let name = std::str::from_utf8(&decoded[..colon]).ok()?.to_owned();
    Some((name, Zeroizing::new(decoded[colon + 1..].to_vec())))
}
