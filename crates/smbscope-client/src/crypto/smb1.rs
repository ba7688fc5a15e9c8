//! Signatures of SMB1 messages (MS-CIFS 3.1.4.1, MS-SMB 3.1.4.1): MD5 over key, sequence number and message.

use super::same;
use md5::{Digest, Md5};
use std::fmt;

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

    /// Uses the key of the authentication, which with extended security is just the session key. The next request is
    /// number 2, the first after the session setup.
    pub fn new(key: &[u8]) -> Smb1Signer {
        Smb1Signer { keyed: Md5::new().chain_update(key), next: Smb1Signer::SESSION_SETUP_RESPONSE + 1 }
    }

    /// Fills in the SecuritySignature of a request and returns the sequence number of its response. The caller must
    /// have set SMB_FLAGS2_SMB_SECURITY_SIGNATURE.
    ///
    /// # Panics
    /// If the message is shorter than its header.
    pub fn sign(&mut self, message: &mut [u8]) -> u32 {
        let response = self.next.wrapping_add(1);
        self.fill_in(message);
        self.next = response.wrapping_add(1);
        response
    }

    /// Signs a request that has no response of its own: NT_CANCEL takes only one number.
    ///
    /// # Panics
    /// If the message is shorter than its header.
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
