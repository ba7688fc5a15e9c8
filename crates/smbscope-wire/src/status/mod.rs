//! Status codes: NTSTATUS (MS-ERREF 2.3) and the DOS error classes of SMB1 (MS-CIFS 2.2.2.4).

mod dos;
mod nt;

pub use dos::DosError;
pub use nt::NtStatus;

#[cfg(test)]
mod tests;
