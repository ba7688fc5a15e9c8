//! The pre-authentication integrity hash of SMB 3.1.1 (MS-SMB2 3.2.5.2 and 3.2.5.3): changing any message before the
//! keys exist changes the keys.

use sha2::{Digest, Sha512};

/// PreauthIntegrityHashValue of a connection, or of a session, which continues from a copy of the connection's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreauthHash([u8; 64]);

impl PreauthHash {
    pub fn new() -> PreauthHash {
        PreauthHash([0; 64])
    }

    /// Adds a whole message from its header on: NEGOTIATE both ways, then SESSION_SETUP both ways except for the
    /// response with STATUS_SUCCESS.
    pub fn update(&mut self, message: &[u8]) {
        self.0 = Sha512::new().chain_update(self.0).chain_update(message).finalize().into();
    }

    pub fn value(&self) -> &[u8; 64] {
        &self.0
    }
}

impl Default for PreauthHash {
    fn default() -> PreauthHash {
        PreauthHash::new()
    }
}

impl From<[u8; 64]> for PreauthHash {
    fn from(value: [u8; 64]) -> PreauthHash {
        PreauthHash(value)
    }
}
