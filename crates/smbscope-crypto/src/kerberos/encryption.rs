//! Decryption with the encryption types of Windows and MIT: AES (RFC 3962, by picky-krb) and RC4 (RFC 4757).

use super::KerberosKey;
use crate::ntlm::hmac_md5;
use crate::same;
use picky_krb::crypto::CipherSuite;
use rc4::{KeyInit, Rc4, StreamCipher};
use zeroize::Zeroizing;

/// Encryption types (RFC 3961 8, RFC 4757 7).
const AES128: i32 = 17;
const AES256: i32 = 18;
const RC4: i32 = 23;

const RC4_CHECKSUM: usize = 16;
const RC4_CONFOUNDER: usize = 8;
/// Confounder and checksum of AES; shorter data holds no message.
const AES_LEAST: usize = 16 + 12;

/// Returns the message, or `None` if the key is wrong or the type unknown: the checksum proves it.
pub(super) fn decrypt(key: &KerberosKey, usage: i32, sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    match (key.etype, key.bytes.len()) {
        (AES128, 16) => aes(CipherSuite::Aes128CtsHmacSha196, &key.bytes, usage, sealed),
        (AES256, 32) => aes(CipherSuite::Aes256CtsHmacSha196, &key.bytes, usage, sealed),
        (RC4, 16) => rc4(key.bytes.as_slice().try_into().ok()?, usage, sealed),
        _ => None,
    }
}

fn aes(suite: CipherSuite, key: &[u8], usage: i32, sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let sealed = Some(sealed).filter(|sealed| sealed.len() > AES_LEAST)?;
    suite.cipher().decrypt(key, usage, sealed).ok().map(Zeroizing::new)
}

/// Decrypts RC4. Tickets, authenticators and answers have the same usage numbers as with other types (RFC 4757 3).
fn rc4(key: &[u8; 16], usage: i32, sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let (checksum, sealed) = sealed.split_at_checked(RC4_CHECKSUM)?;
    let of_usage = Zeroizing::new(hmac_md5(key, &[&usage.to_le_bytes()]));
    let of_message = Zeroizing::new(hmac_md5(&of_usage, &[checksum]));
    let mut message = Zeroizing::new(sealed.to_vec());
    Rc4::new_from_slice(&of_message[..]).ok()?.apply_keystream(&mut message);
    let is_right = message.len() > RC4_CONFOUNDER && same(&hmac_md5(&of_usage, &[&message]), checksum);
    is_right.then(|| Zeroizing::new(message[RC4_CONFOUNDER..].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_unknown_data_is_refused() {
        for etype in [AES128, AES256, RC4, 1, 3, -1] {
            for length in [0, 8, 16, 32] {
                let key = KerberosKey { etype, bytes: Zeroizing::new(vec![1; length]) };
                for sealed in 0..64 {
                    assert_eq!(decrypt(&key, 2, &vec![7; sealed]), None);
                }
            }
        }
    }
}
