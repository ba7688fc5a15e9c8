//! Files with keys and passwords for the decryption of captures.

use crate::options::DecryptionOptions;
use smbscope_crypto::key_ring::{KeyFileError, KeyRing};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zeroize::Zeroizing;

/// Bytes of a file with keys, which is read as a whole: logs of Samba are large.
pub const KEY_FILE_MAX: u64 = 256 << 20;

#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    #[error("cannot read {}: {error}", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        error: io::Error,
    },

    #[error("{}: {error}", path.display())]
    Refused {
        path: PathBuf,
        #[source]
        error: KeyFileError,
    },
}

/// Reads the files of the options. Returns `None` if the options name no file and have no keys.
pub fn ring(options: &DecryptionOptions) -> Result<Option<Arc<KeyRing>>, KeysError> {
    if let Some(ring) = &options.ring {
        return Ok(Some(Arc::clone(ring)));
    }
    let mut ring = KeyRing::default();
    for path in &options.keys {
        let content = read(path)?;
        ring.add_keys(&content).map_err(|error| KeysError::Refused { path: path.clone(), error })?;
    }
    for path in &options.password_files {
        let content = read(path)?;
        ring.add_passwords(&content).map_err(|error| KeysError::Refused { path: path.clone(), error })?;
    }
    Ok((!ring.is_empty()).then(|| Arc::new(ring)))
}

/// Returns the keys in lines of Wireshark's `smb2_seskey_list`. `None` without any.
pub fn ring_of_lines(lines: &str) -> Option<Arc<KeyRing>> {
    let mut ring = KeyRing::default();
    ring.add_keys(lines.as_bytes()).ok()?;
    Some(Arc::new(ring))
}

pub fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, KeysError> {
    bounded(path, KEY_FILE_MAX).map_err(|error| KeysError::Unreadable { path: path.to_owned(), error })
}

/// Reads a whole file of at most this many bytes. Reserves the memory at once, because growing would leave copies.
pub(crate) fn bounded(path: &Path, most: u64) -> io::Result<Zeroizing<Vec<u8>>> {
    let file = File::open(path)?;
    let length = file.metadata()?.len().min(most) as usize;
    let mut content = Zeroizing::new(Vec::with_capacity(length + 1));
    file.take(most + 1).read_to_end(&mut content)?;
    if content.len() as u64 > most {
        let most = format!("it has more than {} MiB", most >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, most));
    }
    Ok(content)
}
