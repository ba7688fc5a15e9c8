//! Signatures: of SMB2 messages (MS-SMB2 3.1.4.1) with HMAC-SHA256, AES-128-CMAC or AES-128-GMAC, and of SMB1 messages
//! (MS-CIFS 3.1.4.1, MS-SMB 3.1.4.1) with MD5 over key, sequence number and message.

use crate::same;
use aes::Aes128;
use aes::cipher::BlockCipherEncrypt;
use cmac::Cmac;
use ghash::GHash;
use ghash::universal_hash::UniversalHash;
use hmac::{Hmac, KeyInit, Mac};
use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::fmt;
use std::ops::Range;

/// Signing algorithms of SMB1 and of SMB2 (MS-SMB2 2.2.3.1.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SigningAlgorithm {
    /// MD5 over key and message: SMB1 (MS-CIFS 3.1.4.1).
    Md5,
    /// 0x0000: 2.0.2 and 2.1.
    HmacSha256,
    /// 0x0001: 3.0 and later.
    AesCmac,
    /// 0x0002: 3.1.1, if both sides offer it.
    AesGmac,
}

mod field {
    use super::Range;

    pub(super) const COMMAND: Range<usize> = 12..14;
    pub(super) const FLAGS: Range<usize> = 16..20;
    pub(super) const MESSAGE_ID: Range<usize> = 24..32;
    pub(super) const SIGNATURE: Range<usize> = 48..64;
}

const CANCEL: u16 = 0x000c;
const FLAGS_SERVER_TO_REDIR: u32 = 0x0000_0001;

const HEADER: usize = 64;

#[derive(Clone)]
pub struct Signer(Box<KeyedMac>);

#[derive(Clone)]
enum KeyedMac {
    HmacSha256(Hmac<Sha256>),
    AesCmac(Cmac<Aes128>),
    AesGmac { cipher: Aes128, hash: GHash },
}

impl Signer {
    /// # Panics
    /// If `algorithm` is [`SigningAlgorithm::Md5`], which only SMB1 uses: see [`super::Smb1Signer`].
    pub fn new(algorithm: SigningAlgorithm, key: &[u8; 16]) -> Signer {
        Signer(Box::new(match algorithm {
            SigningAlgorithm::Md5 => unreachable!("SMB2 never negotiates the signatures of SMB1"),
            SigningAlgorithm::HmacSha256 => {
                KeyedMac::HmacSha256(Hmac::new_from_slice(key).expect("HMAC takes keys of any length"))
            }
            SigningAlgorithm::AesCmac => KeyedMac::AesCmac(Cmac::new(key.into())),
            SigningAlgorithm::AesGmac => {
                let cipher = Aes128::new(key.into());
                let mut subkey = Default::default();
                cipher.encrypt_block(&mut subkey);
                KeyedMac::AesGmac { cipher, hash: GHash::new(&subkey) }
            }
        }))
    }

    /// Signs one message of a compound, from its header to the end of its padding; the caller must have set
    /// SMB2_FLAGS_SIGNED. Panics if the message has no header.
    pub fn sign(&self, message: &mut [u8]) {
        let signature = self.signature(message).expect("a message has a header");
        message[field::SIGNATURE].copy_from_slice(&signature);
    }

    pub fn verify(&self, message: &[u8]) -> bool {
        let signature = self.signature(message).zip(message.get(field::SIGNATURE));
        signature.is_some_and(|(right, there)| same(&right, there))
    }

    fn signature(&self, message: &[u8]) -> Option<[u8; 16]> {
        let (header, body) = message.split_first_chunk::<HEADER>()?;
        let mut header = *header;
        header[field::SIGNATURE].fill(0);
        Some(match &*self.0 {
            KeyedMac::HmacSha256(mac) => {
                let code: [u8; 32] = mac.clone().chain_update(header).chain_update(body).finalize().into_bytes().into();
                *code.first_chunk().expect("32 bytes are more than 16")
            }
            KeyedMac::AesCmac(mac) => {
                mac.clone().chain_update(header).chain_update(body).finalize().into_bytes().into()
            }
            KeyedMac::AesGmac { cipher, hash } => gmac(cipher, hash.clone(), &gmac_nonce(&header), &header, body),
        })
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &*self.0 {
            KeyedMac::HmacSha256(_) => "Signer(HMAC-SHA256)",
            KeyedMac::AesCmac(_) => "Signer(AES-128-CMAC)",
            KeyedMac::AesGmac { .. } => "Signer(AES-128-GMAC)",
        })
    }
}

/// Builds the nonce: MessageId, a bit for messages of the server, and a bit for CANCEL.
fn gmac_nonce(header: &[u8; HEADER]) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[..8].copy_from_slice(&header[field::MESSAGE_ID]);
    let flags = u32::from_le_bytes(header[field::FLAGS].try_into().expect("four bytes"));
    let command = u16::from_le_bytes(header[field::COMMAND].try_into().expect("two bytes"));
    nonce[8] = u8::from(flags & FLAGS_SERVER_TO_REDIR != 0) | u8::from(command == CANCEL) << 1;
    nonce
}

/// Computes GCM over associated data only (SP 800-38D 6.4 and 7.1), in two parts to avoid copying.
fn gmac(cipher: &Aes128, mut hash: GHash, nonce: &[u8; 12], header: &[u8; HEADER], body: &[u8]) -> [u8; 16] {
    hash.update_padded(header);
    hash.update_padded(body);
    let bits = 8 * (HEADER as u64 + body.len() as u64);
    let mut lengths = ghash::Block::default();
    lengths[..8].copy_from_slice(&bits.to_be_bytes());
    hash.update(&[lengths]);

    let mut counter = ghash::Block::default();
    counter[..12].copy_from_slice(nonce);
    counter[15] = 1;
    cipher.encrypt_block(&mut counter);

    let mut tag: [u8; 16] = hash.finalize().into();
    tag.iter_mut().zip(counter).for_each(|(tag, mask)| *tag ^= mask);
    tag
}

const SIGNATURE: std::ops::Range<usize> = smbscope_wire::smb1::Smb1Header::SIGNATURE;

/// Signs and verifies the messages of a connection. All its sessions share the key of the first, and requests and
/// responses share a sequence: a response has the number after its request's.
#[derive(Clone)]
pub struct Smb1Signer {
    keyed: Md5,
    next: u32,
}

impl Smb1Signer {
    /// Sequence number of the response that ends the session setup. Its request, number 0, could not be signed yet.
    pub const SESSION_SETUP_RESPONSE: u32 = 1;

    /// The next request is number 2, the first after the session setup.
    pub fn new(key: &[u8]) -> Smb1Signer {
        Smb1Signer { keyed: Md5::new().chain_update(key), next: Smb1Signer::SESSION_SETUP_RESPONSE + 1 }
    }

    /// Fills in the SecuritySignature of a request and returns the sequence number of its response. The caller must
    /// have set SMB_FLAGS2_SMB_SECURITY_SIGNATURE. Panics if the message has no header.
    pub fn sign(&mut self, message: &mut [u8]) -> u32 {
        let response = self.next.wrapping_add(1);
        self.fill_in(message);
        self.next = response.wrapping_add(1);
        response
    }

    /// Signs a request without a response: NT_CANCEL takes only one number. Panics if the message has no header.
    pub fn sign_without_response(&mut self, message: &mut [u8]) {
        self.fill_in(message);
        self.next = self.next.wrapping_add(1);
    }

    pub fn verify(&self, message: &[u8], sequence: u32) -> bool {
        let signature = self.signature(message, sequence).zip(message.get(SIGNATURE));
        signature.is_some_and(|(right, there)| same(&right, there))
    }

    fn fill_in(&self, message: &mut [u8]) {
        let signature = self.signature(message, self.next).expect("a message has a header");
        message[SIGNATURE].copy_from_slice(&signature);
    }

    fn signature(&self, message: &[u8], sequence: u32) -> Option<[u8; 8]> {
        let (header, body) = message.split_first_chunk::<{ SIGNATURE.end }>()?;
        let code: [u8; 16] = self
            .keyed
            .clone()
            .chain_update(&header[..SIGNATURE.start])
            .chain_update(u64::from(sequence).to_le_bytes())
            .chain_update(body)
            .finalize()
            .into();
        code.first_chunk().copied()
    }
}

impl fmt::Debug for Smb1Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Smb1Signer").field("next", &self.next).finish_non_exhaustive()
    }
}
