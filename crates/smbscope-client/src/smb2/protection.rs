//! Protection of a session's messages: signatures (MS-SMB2 3.1.4.1, 3.1.5.1), encryption (3.1.4.3), and which of them
//! applies.

use crate::ClientError;
use crate::crypto::{Sealer, Signer};
use smbscope_model::Command;
use smbscope_wire::smb2::{Smb2Header, TransformHeader};
use smbscope_wire::status::NtStatus;
use std::ops::Range;

/// Protection of requests, required in responses too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProtectionLevel {
    Plain,
    Signed,
    /// Encrypted, without a signature.
    Sealed,
}

#[derive(Debug)]
pub(super) struct Protection {
    pub(super) signer: Option<Signer>,
    pub(super) sealer: Option<Sealer>,
    pub(super) mode: ProtectionLevel,
    /// True if the key of the response's signature follows from its content, so the session setup verifies it.
    pub(super) checked_later: bool,
}

impl Protection {
    pub(super) fn none() -> Protection {
        Protection { signer: None, sealer: None, mode: ProtectionLevel::Plain, checked_later: false }
    }

    pub(super) fn signing(&self) -> Option<&Signer> {
        self.signer.as_ref().filter(|_| self.mode == ProtectionLevel::Signed)
    }

    /// Decrypts a frame in place. Returns the range of its messages.
    pub(super) fn open(&self, frame: &mut [u8]) -> Option<Range<usize>> {
        let length = frame.len();
        self.sealer.as_ref()?.open(frame)?;
        Some(TransformHeader::LENGTH..length)
    }

    /// Fails if a response is less protected than required. `sealed` is true if its frame was decrypted.
    pub(super) fn check(&self, header: &Smb2Header, message: &[u8], sealed: bool) -> Result<(), ClientError> {
        if sealed || self.checked_later {
            return Ok(());
        }
        let command = Command::Smb2(header.command);
        if self.mode == ProtectionLevel::Sealed {
            return Err(ClientError::Protocol(format!("{command} was sent encrypted and answered in plain text")));
        }
        // 3.2.5.1.3: interim responses and unsolicited messages need no signature.
        if header.status == NtStatus::PENDING || header.message_id == u64::MAX {
            return Ok(());
        }
        match (&self.signer, header.is_signed()) {
            (Some(signer), true) if !signer.verify(message) => {
                Err(ClientError::Tampered { command, what: "signature" })
            }
            (_, false) if self.mode == ProtectionLevel::Signed => {
                Err(ClientError::Tampered { command, what: "signature, namely none" })
            }
            _ => Ok(()),
        }
    }
}
