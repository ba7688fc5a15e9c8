//! Encryption of messages (MS-SMB2 2.2.41, 3.1.4.3): AES-CCM and AES-GCM with a TRANSFORM_HEADER.

use crate::{Cipher, CipherKey};
use aes::{Aes128, Aes256};
use aes_gcm::aead::consts::{U11, U16};
use aes_gcm::aead::inout::InOutBuf;
use aes_gcm::{AeadInOut, Aes128Gcm, Aes256Gcm, KeyInit};
use ccm::Ccm;
use smbscope_wire::bytes::{array_at, u16_at, u32_at};
use smbscope_wire::smb2::{TRANSFORM_ID, TransformHeader};
use std::fmt;
use std::ops::Range;

mod field {
    use super::{Range, TransformHeader};

    pub(super) const SIGNATURE: Range<usize> = 4..20;
    pub(super) const NONCE: Range<usize> = 20..36;
    pub(super) const ORIGINAL_MESSAGE_SIZE: usize = 36;
    pub(super) const FLAGS: usize = 42;
    /// Additional authenticated data: the header after the signature.
    pub(super) const ASSOCIATED: Range<usize> = 20..TransformHeader::LENGTH;
}

/// Flags of 3.1.1 and EncryptionAlgorithm AES-128-CCM of 3.0 share the value 1.
const ENCRYPTED: u16 = 0x0001;

type Aes128Ccm = Ccm<Aes128, U16, U11>;
type Aes256Ccm = Ccm<Aes256, U16, U11>;

pub struct Sealer {
    encryption: Box<KeyedCipher>,
    decryption: Box<KeyedCipher>,
    /// Number of encrypted messages. It makes nonces unique per key.
    sealed: u64,
}

enum KeyedCipher {
    Aes128Ccm(Aes128Ccm),
    Aes128Gcm(Aes128Gcm),
    Aes256Ccm(Aes256Ccm),
    Aes256Gcm(Aes256Gcm),
}

impl Sealer {
    /// Prepares the keys. Returns `None` if a key has the wrong length for the cipher.
    pub fn new(cipher: Cipher, encryption_key: &CipherKey, decryption_key: &CipherKey) -> Option<Sealer> {
        Some(Sealer {
            encryption: Box::new(KeyedCipher::new(cipher, encryption_key)?),
            decryption: Box::new(KeyedCipher::new(cipher, decryption_key)?),
            sealed: 0,
        })
    }

    /// Returns the sealer of a further channel. Channels share keys, so the channel number makes their nonces distinct.
    pub fn of_channel(mut self, channel: u8) -> Sealer {
        self.sealed = u64::from(channel) << 56;
        self
    }

    /// Appends a TRANSFORM_HEADER and the encrypted message or compound, which must not be signed.
    pub fn seal(&mut self, session_id: u64, message: &[u8], out: &mut Vec<u8>) {
        self.sealed += 1;
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&self.sealed.to_le_bytes());
        self.seal_with(nonce, session_id, message, out);
    }

    /// Decrypts a frame with a TRANSFORM_HEADER in place. Returns `None` if it isn't one or was modified.
    pub fn open<'a>(&self, frame: &'a mut [u8]) -> Option<&'a mut [u8]> {
        let (header, message) = frame.split_at_mut_checked(TransformHeader::LENGTH)?;
        let is_whole = u32_at(header, field::ORIGINAL_MESSAGE_SIZE)? as usize == message.len();
        if !header.starts_with(&TRANSFORM_ID) || u16_at(header, field::FLAGS)? != ENCRYPTED || !is_whole {
            return None;
        }
        let nonce = array_at(header, field::NONCE.start)?;
        let signature = array_at(header, field::SIGNATURE.start)?;
        let associated = header.get(field::ASSOCIATED)?;
        self.decryption.decrypt(&nonce, associated, message, &signature).then_some(message)
    }

    /// Encrypts with the given nonce field of 16 bytes. CCM uses 11 of them, GCM 12.
    pub(crate) fn seal_with(&self, nonce: [u8; 16], session_id: u64, message: &[u8], out: &mut Vec<u8>) {
        let original_message_size = u32::try_from(message.len()).expect("a frame has less than 16 MiB");
        let start = out.len();
        out.extend_from_slice(&TRANSFORM_ID);
        out.extend_from_slice(&[0; 16]);
        out.extend_from_slice(&nonce);
        out.extend_from_slice(&original_message_size.to_le_bytes());
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&ENCRYPTED.to_le_bytes());
        out.extend_from_slice(&session_id.to_le_bytes());
        out.extend_from_slice(message);
        let (header, message) = out[start..].split_at_mut(TransformHeader::LENGTH);
        let signature = self.encryption.encrypt(&nonce, &header[field::ASSOCIATED], message);
        header[field::SIGNATURE].copy_from_slice(&signature);
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self.encryption {
            KeyedCipher::Aes128Ccm(_) => "Sealer(AES-128-CCM)",
            KeyedCipher::Aes128Gcm(_) => "Sealer(AES-128-GCM)",
            KeyedCipher::Aes256Ccm(_) => "Sealer(AES-256-CCM)",
            KeyedCipher::Aes256Gcm(_) => "Sealer(AES-256-GCM)",
        })
    }
}

macro_rules! each {
    ($keyed:expr, $nonce:expr, ($cipher:ident, $used:ident) => $call:expr) => {
        match $keyed {
            KeyedCipher::Aes128Ccm($cipher) => each!(@nonce 11, $nonce, $used => $call),
            KeyedCipher::Aes128Gcm($cipher) => each!(@nonce 12, $nonce, $used => $call),
            KeyedCipher::Aes256Ccm($cipher) => each!(@nonce 11, $nonce, $used => $call),
            KeyedCipher::Aes256Gcm($cipher) => each!(@nonce 12, $nonce, $used => $call),
        }
    };
    (@nonce $length:literal, $nonce:expr, $used:ident => $call:expr) => {{
        let $used = $nonce.first_chunk::<$length>().expect("the field has 16 bytes").into();
        $call
    }};
}

impl KeyedCipher {
    fn new(cipher: Cipher, key: &CipherKey) -> Option<KeyedCipher> {
        match (cipher, key) {
            (Cipher::Aes128Ccm, CipherKey::Bits128(key)) => Some(KeyedCipher::Aes128Ccm(Ccm::new(key.into()))),
            (Cipher::Aes128Gcm, CipherKey::Bits128(key)) => Some(KeyedCipher::Aes128Gcm(Aes128Gcm::new(key.into()))),
            (Cipher::Aes256Ccm, CipherKey::Bits256(key)) => Some(KeyedCipher::Aes256Ccm(Ccm::new(key.into()))),
            (Cipher::Aes256Gcm, CipherKey::Bits256(key)) => Some(KeyedCipher::Aes256Gcm(Aes256Gcm::new(key.into()))),
            _ => None,
        }
    }

    fn encrypt(&self, nonce: &[u8; 16], associated: &[u8], message: &mut [u8]) -> [u8; 16] {
        each!(self, nonce, (cipher, nonce) => {
            cipher.encrypt_inout_detached(nonce, associated, InOutBuf::from(message))
        })
        .expect("a frame has less than 16 MiB, which every nonce length allows")
        .into()
    }

    fn decrypt(&self, nonce: &[u8; 16], associated: &[u8], message: &mut [u8], tag: &[u8; 16]) -> bool {
        each!(self, nonce, (cipher, nonce) => {
            cipher.decrypt_inout_detached(nonce, associated, InOutBuf::from(message), tag.into())
        })
        .is_ok()
    }
}
