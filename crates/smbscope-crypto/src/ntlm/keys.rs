//! NTLMv2 responses and keys (MS-NLMP 3.3.2, 3.4.4 and 3.4.5).

use super::message::{flags, utf16};
use hmac::{Hmac, KeyInit, Mac};
use md4::Md4;
use md5::{Digest, Md5};
use rc4::{Rc4, StreamCipher};

#[derive(Clone, PartialEq, Eq)]
pub struct NtlmResponses {
    pub nt: Vec<u8>,
    /// LmChallengeResponse, for servers that require one.
    pub lm: [u8; 24],
    /// SessionBaseKey, which equals the KeyExchangeKey in NTLMv2.
    pub session_base_key: [u8; 16],
}

/// NTOWFv2: hash of password, user and domain.
pub fn nt_owf_v2(password: &str, user: &str, domain: &str) -> [u8; 16] {
    let hash: [u8; 16] = Md4::digest(utf16(password)).into();
    hmac_md5(&hash, &[&utf16(&upper_case(user)), &utf16(domain)])
}

pub fn respond(
    response_key: &[u8; 16],
    server_challenge: &[u8; 8],
    client_challenge: &[u8; 8],
    time: u64,
    target_info: &[u8],
) -> NtlmResponses {
    let temp = temp(time, client_challenge, target_info);
    let nt_proof = hmac_md5(response_key, &[server_challenge, &temp]);
    let lm_proof = hmac_md5(response_key, &[server_challenge, client_challenge]);
    let mut lm = [0; 24];
    lm[..16].copy_from_slice(&lm_proof);
    lm[16..].copy_from_slice(client_challenge);
    NtlmResponses { nt: [&nt_proof[..], &temp].concat(), lm, session_base_key: hmac_md5(response_key, &[&nt_proof]) }
}

/// `temp`, called NTLMv2_CLIENT_CHALLENGE in 2.2.2.7.
fn temp(time: u64, client_challenge: &[u8; 8], target_info: &[u8]) -> Vec<u8> {
    let mut temp = vec![1, 1, 0, 0, 0, 0, 0, 0];
    temp.extend_from_slice(&time.to_le_bytes());
    temp.extend_from_slice(client_challenge);
    temp.extend_from_slice(&[0; 4]);
    temp.extend_from_slice(target_info);
    temp.extend_from_slice(&[0; 4]);
    temp
}

pub fn rc4_key(key: &[u8; 16], data: &[u8; 16]) -> [u8; 16] {
    let mut data = *data;
    rc4(key).apply_keystream(&mut data);
    data
}

pub fn hmac_md5(key: &[u8; 16], parts: &[&[u8]]) -> [u8; 16] {
    let mut mac = Hmac::<Md5>::new_from_slice(key).expect("HMAC takes keys of any length");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NtlmSender {
    Client,
    Server,
}

pub struct MessageSigner {
    signing_key: [u8; 16],
    /// Encrypts the checksums if keys are exchanged.
    sealing: Option<Rc4>,
    sequence: u32,
}

impl MessageSigner {
    pub fn new(exported_session_key: &[u8; 16], negotiated: u32, mode: NtlmSender) -> MessageSigner {
        let sealing = rc4(&sealing_key(exported_session_key, negotiated, mode));
        MessageSigner {
            signing_key: signing_key(exported_session_key, mode),
            sealing: (negotiated & flags::KEY_EXCHANGE != 0).then_some(sealing),
            sequence: 0,
        }
    }

    /// Returns the signature of the next message: version, checksum, sequence number.
    pub fn sign(&mut self, message: &[u8]) -> [u8; 16] {
        let number = self.sequence.to_le_bytes();
        self.sequence = self.sequence.wrapping_add(1);
        let mut signature = [0; 16];
        signature[0] = 1;
        signature[4..12].copy_from_slice(&hmac_md5(&self.signing_key, &[&number, message])[..8]);
        if let Some(sealing) = &mut self.sealing {
            sealing.apply_keystream(&mut signature[4..12]);
        }
        signature[12..].copy_from_slice(&number);
        signature
    }
}

/// SIGNKEY (3.4.5.2).
fn signing_key(exported_session_key: &[u8; 16], mode: NtlmSender) -> [u8; 16] {
    let magic: &[u8] = match mode {
        NtlmSender::Client => b"session key to client-to-server signing key magic constant\0",
        NtlmSender::Server => b"session key to server-to-client signing key magic constant\0",
    };
    Md5::new().chain_update(exported_session_key).chain_update(magic).finalize().into()
}

/// SEALKEY (3.4.5.3), from the negotiated number of key bytes.
fn sealing_key(exported_session_key: &[u8; 16], negotiated: u32, mode: NtlmSender) -> [u8; 16] {
    let used = if negotiated & flags::KEYS_OF_128 != 0 {
        16
    } else if negotiated & flags::KEYS_OF_56 != 0 {
        7
    } else {
        5
    };
    let magic: &[u8] = match mode {
        NtlmSender::Client => b"session key to client-to-server sealing key magic constant\0",
        NtlmSender::Server => b"session key to server-to-client sealing key magic constant\0",
    };
    Md5::new().chain_update(&exported_session_key[..used]).chain_update(magic).finalize().into()
}

fn rc4(key: &[u8; 16]) -> Rc4 {
    Rc4::new_from_slice(key).expect("RC4 takes keys of 16 bytes")
}

/// Converts character by character, as Windows does: a character without a single-character upper case (ß) stays.
fn upper_case(text: &str) -> String {
    text.chars()
        .map(|c| {
            let mut upper = c.to_uppercase();
            if upper.len() == 1 { upper.next().unwrap_or(c) } else { c }
        })
        .collect()
}
