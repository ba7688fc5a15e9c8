//! Transfer encoding of values between processes of the same version: magic, format, version, CRC-32, postcard.

use serde::Serialize;
use serde::de::DeserializeOwned;

const MAGIC: &[u8; 8] = b"smbspart";
/// Increment on every change of a transferred type.
const FORMAT: u16 = 5;
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Error for bytes that [`to_bytes`] of this version did not produce.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TravelError {
    #[error("not data from another smbscope process")]
    Foreign,
    #[error(
        "sent by smbscope {theirs}, while this is {VERSION}, format {FORMAT}: install the same version on all hosts"
    )]
    Version { theirs: String },
    #[error("damaged in transfer between processes: repeat the run")]
    Damaged,
}

pub fn to_bytes(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(FORMAT.to_le_bytes());
    bytes.push(VERSION.len() as u8);
    bytes.extend(VERSION.as_bytes());
    let checksum = bytes.len();
    bytes.extend([0; 4]);
    bytes = postcard::to_extend(value, bytes).expect("every value that travels has a length");
    let sum = crc32fast::hash(&bytes[checksum + 4..]);
    bytes[checksum..checksum + 4].copy_from_slice(&sum.to_le_bytes());
    bytes
}

pub fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, TravelError> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(TravelError::Foreign)?;
    let (format, rest) = rest.split_first_chunk().ok_or(TravelError::Damaged)?;
    let (length, rest) = rest.split_first().ok_or(TravelError::Damaged)?;
    let (version, rest) = rest.split_at_checked(usize::from(*length)).ok_or(TravelError::Damaged)?;
    let format = u16::from_le_bytes(*format);
    if format != FORMAT || version != VERSION.as_bytes() {
        return Err(TravelError::Version { theirs: format!("{}, format {format}", version.escape_ascii()) });
    }
    let (sum, value) = rest.split_first_chunk().ok_or(TravelError::Damaged)?;
    if crc32fast::hash(value) != u32::from_le_bytes(*sum) {
        return Err(TravelError::Damaged);
    }
    postcard::from_bytes(value).map_err(|_| TravelError::Damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_comes_out_as_it_went_in() {
        assert_eq!(from_bytes(&to_bytes(&("names", 7u64))), Ok(("names".to_owned(), 7u64)));
    }

    #[test]
    fn foreign_truncated_and_changed_bytes_are_errors() {
        let bytes = to_bytes(&vec![1u64; 100]);
        assert_eq!(from_bytes::<Vec<u64>>(b"\xd4\xc3\xb2\xa1 a capture"), Err(TravelError::Foreign));
        for length in 8..bytes.len() {
            assert_eq!(from_bytes::<Vec<u64>>(&bytes[..length]), Err(TravelError::Damaged), "{length} bytes");
        }
        let mut changed = bytes.clone();
        *changed.last_mut().expect("it has bytes") ^= 1;
        assert_eq!(from_bytes::<Vec<u64>>(&changed), Err(TravelError::Damaged));
    }

    #[test]
    fn another_version_is_named() {
        let mut bytes = to_bytes(&7u64);
        bytes[8] = 99;
        let error = from_bytes::<u64>(&bytes).expect_err("a format of the future").to_string();
        assert!(error.starts_with(&format!("sent by smbscope {VERSION}, format 99, while this is")), "{error}");
    }
}
