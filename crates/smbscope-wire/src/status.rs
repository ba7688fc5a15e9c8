//! Status codes: NTSTATUS (MS-ERREF 2.3) and the DOS error classes of SMB1 (MS-CIFS 2.2.2.4).

use std::fmt;

/// An NTSTATUS value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NtStatus(pub u32);

/// An SMB1 error class and code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DosError {
    /// SUCCESS, ERRDOS, ERRSRV, ERRHRD, ERRCMD.
    pub class: u8,
    /// The error within the class.
    pub code: u16,
}

impl NtStatus {
    /// STATUS_SUCCESS.
    pub const SUCCESS: NtStatus = NtStatus(0);
    /// STATUS_PENDING: an interim response.
    pub const PENDING: NtStatus = NtStatus(0x0000_0103);
    /// STATUS_CANCELLED.
    pub const CANCELLED: NtStatus = NtStatus(0xc000_0120);
    /// STATUS_MORE_PROCESSING_REQUIRED: authentication goes on.
    pub const MORE_PROCESSING_REQUIRED: NtStatus = NtStatus(0xc000_0016);

    /// Severity "error" (the two top bits set), except MORE_PROCESSING_REQUIRED, which is a step of a logon.
    pub fn is_error(self) -> bool {
        self.0 >> 30 == 3 && self != NtStatus::MORE_PROCESSING_REQUIRED
    }
}

impl fmt::Display for NtStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:08x}", self.0)
    }
}

impl fmt::Display for DosError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.class, self.code)
    }
}
