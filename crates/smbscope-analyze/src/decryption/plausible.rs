//! Recognises a decrypted message by its content: the beginning of a message has no tag that proves it.

use smbscope_wire::bytes::{u16_at, u32_at, u64_at};
use smbscope_wire::smb2::{COMPRESSION_ID, PROTOCOL_ID, Smb2Header};

/// Fewest bytes that prove a key. With protocol id, structure size, command, flags and NextCommand, a wrong key passes
/// once in 2^80 messages.
pub(super) const LEAST: usize = 32;

const STRUCTURE_SIZE: u16 = 64;
/// Compression algorithms (MS-SMB2 §2.2.3.1.3).
const LAST_ALGORITHM: u16 = 5;
/// Length of the uncompressed message; frames have less than 16 MiB.
const LARGEST_MESSAGE: u32 = 1 << 24;

/// Returns true if the bytes begin a message of `length` bytes in the session. Accepts shorter beginnings, as long as
/// nothing in them contradicts.
pub(super) fn is_message(plain: &[u8], length: usize, session_id: u64) -> bool {
    if plain.starts_with(&COMPRESSION_ID) {
        let algorithm = u16_at(plain, 8).is_none_or(|algorithm| algorithm <= LAST_ALGORITHM);
        let chained = u16_at(plain, 10).is_none_or(|flags| flags <= 1);
        return algorithm && chained && u32_at(plain, 4).is_none_or(|size| (1..LARGEST_MESSAGE).contains(&size));
    }
    let is_header = plain.len() >= 6 && plain.starts_with(&PROTOCOL_ID) && u16_at(plain, 4) == Some(STRUCTURE_SIZE);
    is_header && is_plausible_header(plain, length) && is_of_session(plain, session_id)
}

fn is_plausible_header(plain: &[u8], length: usize) -> bool {
    plain.len() < Smb2Header::LEAST || Smb2Header::is_plausible(plain, length)
}

/// The server's breaks have no session id in the header inside (MS-SMB2 §2.2.23.2).
fn is_of_session(plain: &[u8], session_id: u64) -> bool {
    const MESSAGE_ID: usize = 24;
    const SESSION_ID: usize = 40;
    let is_unsolicited = u64_at(plain, MESSAGE_ID) == Some(u64::MAX);
    u64_at(plain, SESSION_ID).is_none_or(|id| id == session_id || id == 0 && is_unsolicited)
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_wire::smb2::Smb2Command;

    fn message(session_id: u64, message_id: u64) -> Vec<u8> {
        let header = Smb2Header { session_id: Some(session_id), message_id, ..Smb2Header::new(Smb2Command::ECHO) };
        let mut message = header.to_bytes().to_vec();
        message.extend([4, 0, 0, 0]);
        message
    }

    #[test]
    fn messages_of_the_session_and_breaks_are_accepted() {
        assert!(is_message(&message(7, 1), 68, 7));
        assert!(!is_message(&message(8, 1), 68, 7) && !is_message(&message(0, 1), 68, 7));
        assert!(is_message(&message(0, u64::MAX), 68, 7));
        assert!(is_message(&message(7, 1)[..LEAST], 68, 7), "the snap length cut the session id off");
    }

    #[test]
    fn random_bytes_are_refused() {
        let mut state = 1u64;
        for _ in 0..100_000 {
            let mut bytes = [0; 64];
            for byte in &mut bytes {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *byte = (state >> 56) as u8;
            }
            assert!(!is_message(&bytes, 64, 7));
            bytes[..6].copy_from_slice(&[0xfe, b'S', b'M', b'B', 64, 0]);
            assert!(!is_message(&bytes, 64, 7));
        }
    }
}
