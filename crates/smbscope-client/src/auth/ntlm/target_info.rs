//! AV_PAIRs: facts that server and client tell each other (MS-NLMP 2.2.2.1).

use super::message::utf16;
use smbscope_wire::bytes::{array_at, u16_at};

/// AvId.
mod id {
    pub(super) const EOL: u16 = 0;
    pub(super) const FLAGS: u16 = 6;
    pub(super) const TIMESTAMP: u16 = 7;
    pub(super) const TARGET_NAME: u16 = 9;
    pub(super) const CHANNEL_BINDINGS: u16 = 10;
}

/// MsvAvFlags: the AUTHENTICATE_MESSAGE has a MIC.
const FLAG_MIC: u32 = 0x0000_0002;

/// Pairs of a CHALLENGE_MESSAGE, without the terminator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TargetInfo<'a>(Vec<(u16, &'a [u8])>);

impl<'a> TargetInfo<'a> {
    /// Returns `None` if a pair is truncated. Empty information is valid, because every pair is optional.
    pub(super) fn parse(mut bytes: &'a [u8]) -> Option<TargetInfo<'a>> {
        let mut pairs = Vec::new();
        while !bytes.is_empty() {
            let (id, length) = (u16_at(bytes, 0)?, usize::from(u16_at(bytes, 2)?));
            let (value, rest) = bytes.get(4..)?.split_at_checked(length)?;
            if id == id::EOL {
                break;
            }
            pairs.push((id, value));
            bytes = rest;
        }
        Some(TargetInfo(pairs))
    }

    pub(super) fn timestamp(&self) -> Option<u64> {
        array_at(self.value(id::TIMESTAMP)?, 0).map(u64::from_le_bytes)
    }

    /// Returns the client's pairs: the server's, plus the MIC flag, empty channel bindings, and the server's name as
    /// the client knows it (MS-NLMP 3.1.5.1.2).
    pub(super) fn answer(&self, target_name: &str, has_mic: bool) -> Vec<u8> {
        let mut answer = Vec::new();
        let mut push = |id: u16, value: &[u8]| {
            answer.extend_from_slice(&id.to_le_bytes());
            answer.extend_from_slice(&u16::try_from(value.len()).unwrap_or_default().to_le_bytes());
            answer.extend_from_slice(value);
        };
        let ours = [id::FLAGS, id::CHANNEL_BINDINGS, id::TARGET_NAME];
        self.0.iter().filter(|(id, _)| !ours.contains(id)).for_each(|(id, value)| push(*id, value));
        let their_flags = self.value(id::FLAGS).and_then(|value| array_at(value, 0)).map_or(0, u32::from_le_bytes);
        let flags = their_flags | if has_mic { FLAG_MIC } else { 0 };
        if flags != 0 {
            push(id::FLAGS, &flags.to_le_bytes());
        }
        push(id::CHANNEL_BINDINGS, &[0; 16]);
        push(id::TARGET_NAME, &utf16(target_name));
        push(id::EOL, &[]);
        answer
    }

    fn value(&self, id: u16) -> Option<&'a [u8]> {
        self.0.iter().find(|pair| pair.0 == id).map(|pair| pair.1)
    }
}
