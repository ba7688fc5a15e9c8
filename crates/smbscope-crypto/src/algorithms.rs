//! Algorithms that client and server negotiate.

use serde::{Deserialize, Serialize};

/// Cipher IDs (MS-SMB2 2.2.3.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cipher {
    /// 0x0001, the only one of 3.0 and 3.0.2.
    Aes128Ccm,
    Aes128Gcm,
    Aes256Ccm,
    Aes256Gcm,
}

impl Cipher {
    const IDS: [(u16, Cipher); 4] =
        [(1, Cipher::Aes128Ccm), (2, Cipher::Aes128Gcm), (3, Cipher::Aes256Ccm), (4, Cipher::Aes256Gcm)];

    pub fn from_id(id: u16) -> Option<Cipher> {
        Cipher::IDS.iter().find(|(known, _)| *known == id).map(|(_, cipher)| *cipher)
    }
}

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
