//! Message protection: keys, signatures and encryption (MS-SMB2 3.1.4, MS-CIFS 3.1.4.1).
//!
//! The primitives are RustCrypto's; this module selects their input. Keyed state is prepared once per session, and no
//! message needs an allocation.

mod keys;
mod sealing;
mod signing;

#[cfg(test)]
mod tests;

pub use crate::crypto::keys::PreauthHash;
pub use crate::crypto::signing::Smb1Signer;
pub use keys::{CipherKey, SessionKeys, session_key_from};
pub use sealing::Sealer;
pub use signing::Signer;

use std::hint::black_box;

/// Compares authentication codes in constant time.
pub(crate) fn same(a: &[u8], b: &[u8]) -> bool {
    let difference = a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b));
    a.len() == b.len() && black_box(difference) == 0
}
