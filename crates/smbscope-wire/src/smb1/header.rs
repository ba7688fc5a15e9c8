//! SMB1 message header (MS-CIFS 2.2.3.1).

use super::{PROTOCOL_ID, Smb1Command};
use crate::bytes::{u8_at, u16_at, u32_at};
use crate::status::{DosError, NtStatus};

pub mod flags {
    pub const CASE_INSENSITIVE: u8 = 0x08;
    pub const CANONICALIZED_PATHS: u8 = 0x10;
    pub const REPLY: u8 = 0x80;
}

pub mod flags2 {
    /// The client understands long names.
    pub const LONG_NAMES: u16 = 0x0001;
    /// The message is signed.
    pub const SECURITY_SIGNATURE: u16 = 0x0004;
    /// The client requires signatures (MS-SMB 2.2.3.1).
    pub const SECURITY_SIGNATURE_REQUIRED: u16 = 0x0010;
    /// Names in the message are long names.
    pub const IS_LONG_NAME: u16 = 0x0040;
    /// The client requests extended security (MS-SMB 2.2.3.1).
    pub const EXTENDED_SECURITY: u16 = 0x0800;
    /// Status is an NTSTATUS.
    pub const NT_STATUS: u16 = 0x4000;
    pub const UNICODE: u16 = 0x8000;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Smb1Header {
    pub command: Smb1Command,
    /// Raw field, decoded by [`Smb1Header::nt_status`] and [`Smb1Header::dos_error`].
    pub status: u32,
    pub flags: u8,
    pub flags2: u16,
    pub tid: u16,
    /// Low half of the process id, which servers of every age echo.
    pub pid: u16,
    pub uid: u16,
    pub mid: u16,
}

impl Smb1Header {
    pub const LENGTH: usize = 32;

    pub const STATUS: usize = 5;

    pub const TID: usize = 24;

    pub const UID: usize = 28;

    pub const SIGNATURE: std::ops::Range<usize> = 14..22;

    /// Parses a header from its protocol id on.
    pub fn parse(message: &[u8]) -> Option<Smb1Header> {
        if !message.starts_with(&PROTOCOL_ID) {
            return None;
        }
        Some(Smb1Header {
            mid: u16_at(message, 30)?,
            command: Smb1Command(u8_at(message, 4)?),
            status: u32_at(message, 5)?,
            flags: u8_at(message, 9)?,
            flags2: u16_at(message, 10)?,
            tid: u16_at(message, 24)?,
            pid: u16_at(message, 26)?,
            uid: u16_at(message, 28)?,
        })
    }

    /// Appends the header with zero PIDHigh and signature.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&PROTOCOL_ID);
        out.push(self.command.0);
        out.extend_from_slice(&self.status.to_le_bytes());
        out.push(self.flags);
        out.extend_from_slice(&self.flags2.to_le_bytes());
        out.extend_from_slice(&[0; 12]);
        for id in [self.tid, self.pid, self.uid, self.mid] {
            out.extend_from_slice(&id.to_le_bytes());
        }
    }

    /// Returns the reply bit. Servers forget to set it in the interim response to Write_Raw.
    pub fn is_reply(&self) -> bool {
        self.flags & flags::REPLY != 0
    }

    pub fn is_signed(&self) -> bool {
        self.flags2 & flags2::SECURITY_SIGNATURE != 0
    }

    pub fn is_unicode(&self) -> bool {
        self.flags2 & flags2::UNICODE != 0
    }

    /// Returns the status as NTSTATUS. `None` if the client did not ask for NTSTATUS.
    pub fn nt_status(&self) -> Option<NtStatus> {
        (self.flags2 & flags2::NT_STATUS != 0).then_some(NtStatus(self.status))
    }

    /// Returns the status as error class and code.
    pub fn dos_error(&self) -> DosError {
        let [class, _, low, high] = self.status.to_le_bytes();
        DosError { class, code: u16::from_le_bytes([low, high]) }
    }

    pub fn is_success(&self) -> bool {
        self.status == 0
    }

    /// Returns true if `message` looks like a header rather than data that happens to contain the protocol id.
    pub fn is_plausible(message: &[u8], length: usize) -> bool {
        let Some(header) = Smb1Header::parse(message) else { return false };
        let words = message.get(32).map_or(0, |count| 2 * usize::from(*count));
        header.command.name().is_some() && length >= Smb1Header::LENGTH + 3 && 35 + words <= length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A READ_ANDX response header, in the order of MS-CIFS 2.2.3.1.
    const BYTES: [u8; 32] = [
        0xff, b'S', b'M', b'B', 0x2e, 0x34, 0x00, 0x00, 0xc0, 0x98, 0x05, 0xc8, 0x01, 0x00, 1, 2, 3, 4, 5, 6, 7, 8, 0,
        0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
    ];

    #[test]
    fn fields_are_where_the_specification_puts_them() {
        let header = Smb1Header::parse(&BYTES).unwrap();
        assert_eq!((header.command, header.flags2), (Smb1Command(0x2e), 0xc805));
        assert_eq!((header.tid, header.pid, header.uid, header.mid), (0x2211, 0x4433, 0x6655, 0x8877));
        assert_eq!(header.nt_status(), Some(NtStatus(0xc000_0034)));
        assert!(header.is_reply() && header.is_unicode() && header.is_signed());
        assert_eq!(Smb1Header::parse(&BYTES[..31]), None);
    }

    #[test]
    fn what_is_emitted_is_read_back() {
        let header = Smb1Header::parse(&BYTES).unwrap();
        let mut bytes = Vec::new();
        header.emit(&mut bytes);
        let mut expected = BYTES;
        // PIDHigh and the signature are not kept.
        expected[12..22].fill(0);
        assert_eq!(bytes, expected);
        assert_eq!(Smb1Header::parse(&bytes), Some(header));
    }

    #[test]
    fn old_clients_get_class_and_code() {
        let mut bytes = BYTES;
        bytes[5..9].copy_from_slice(&[1, 0, 2, 0]);
        bytes[10..12].copy_from_slice(&[1, 0]);
        let header = Smb1Header::parse(&bytes).unwrap();
        assert_eq!(header.nt_status(), None);
        assert_eq!(header.dos_error(), DosError { class: 1, code: 2 });
    }
}
