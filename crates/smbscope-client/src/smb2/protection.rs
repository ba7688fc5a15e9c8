//! What keeps messages of a session from being read or changed: signatures (MS-SMB2 3.1.4.1, 3.1.5.1) and encryption
//! (3.1.4.3), and which of them is in force.

use crate::ClientError;
use crate::crypto::{Sealer, Signer};
use smbscope_model::Command;
use smbscope_wire::smb2::{Smb2Header, TransformHeader};
use smbscope_wire::status::NtStatus;
use std::ops::Range;

/// What requests carry, and answers must.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProtectionLevel {
    /// Neither.
    Plain,
    /// A signature.
    Signed,
    /// Encryption, which needs no signature.
    Sealed,
}

/// The keys of a session, and how they are used.
#[derive(Debug)]
pub(super) struct Protection {
    pub(super) signer: Option<Signer>,
    pub(super) sealer: Option<Sealer>,
    pub(super) mode: ProtectionLevel,
    /// Answers are signed with a key that only their content tells: whoever sets up the session checks them.
    pub(super) checked_later: bool,
}

impl Protection {
    /// Before there is a session.
    pub(super) fn none() -> Protection {
        Protection { signer: None, sealer: None, mode: ProtectionLevel::Plain, checked_later: false }
    }

    /// Who signs requests now.
    pub(super) fn signing(&self) -> Option<&Signer> {
        self.signer.as_ref().filter(|_| self.mode == ProtectionLevel::Signed)
    }

    /// Decrypts a frame in place; where its messages are then.
    pub(super) fn open(&self, frame: &mut [u8]) -> Option<Range<usize>> {
        let length = frame.len();
        self.sealer.as_ref()?.open(frame)?;
        Some(TransformHeader::LENGTH..length)
    }

    /// Whether an answer is as protected as it must be. `sealed` says that its frame was decrypted.
    pub(super) fn check(&self, header: &Smb2Header, message: &[u8], sealed: bool) -> Result<(), ClientError> {
        if sealed || self.checked_later {
            return Ok(());
        }
        let command = Command::Smb2(header.command);
        if self.mode == ProtectionLevel::Sealed {
            return Err(ClientError::Protocol(format!("{command} was sent encrypted and answered in plain text")));
        }
        // 3.2.5.1.3: neither interim responses nor what the server sends of its own accord need a signature.
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
