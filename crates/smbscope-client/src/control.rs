//! Control codes that workloads can send (MS-SMB2 2.2.31, MS-FSCC 2.3), with the input that clients send with them.

use super::access;
use smbscope_model::Dialect;
use smbscope_wire::names::Fsctl;
use smbscope_wire::status::NtStatus;

#[derive(Debug, PartialEq, Eq)]
pub struct FsctlProfile {
    pub code: Fsctl,
    /// True if the code applies to an open file, false if it applies to the server.
    pub of_file: bool,
    /// Statuses that refuse the code without being a failure: the answers of a server that lacks the feature.
    pub refusals: &'static [NtStatus],
    pub(super) max_output: u32,
}

/// Answers to a code that the server or its file system doesn't support (MS-SMB2 3.3.5.15).
const UNKNOWN: [NtStatus; 2] = [NtStatus::INVALID_DEVICE_REQUEST, NtStatus::NOT_SUPPORTED];

/// Highest referral version that clients request (MS-DFSC 2.2.2).
const REFERRAL_LEVEL: u16 = 4;
const WHOLE_FILE: u64 = 1 << 40;

impl FsctlProfile {
    pub const ALL: [FsctlProfile; 7] = [
        FsctlProfile { code: Fsctl::CREATE_OR_GET_OBJECT_ID, of_file: true, refusals: &UNKNOWN, max_output: 64 },
        FsctlProfile {
            code: Fsctl::GET_REPARSE_POINT,
            of_file: true,
            refusals: &[NtStatus::NOT_A_REPARSE_POINT, UNKNOWN[0], UNKNOWN[1]],
            max_output: 16 << 10,
        },
        FsctlProfile { code: Fsctl::QUERY_ALLOCATED_RANGES, of_file: true, refusals: &UNKNOWN, max_output: 16 << 10 },
        FsctlProfile { code: Fsctl::SRV_REQUEST_RESUME_KEY, of_file: true, refusals: &UNKNOWN, max_output: 32 },
        FsctlProfile {
            code: Fsctl::DFS_GET_REFERRALS,
            of_file: false,
            // MS-SMB2 3.3.5.15.2 and MS-DFSC 3.2.5.1: no DFS, or no DFS link at this path.
            refusals: &[NtStatus::FS_DRIVER_REQUIRED, NtStatus::NOT_FOUND, UNKNOWN[0], UNKNOWN[1]],
            max_output: 8 << 10,
        },
        FsctlProfile {
            code: Fsctl::QUERY_NETWORK_INTERFACE_INFO,
            of_file: false,
            refusals: &UNKNOWN,
            max_output: 64 << 10,
        },
        FsctlProfile { code: Fsctl::VALIDATE_NEGOTIATE_INFO, of_file: false, refusals: &[], max_output: 24 },
    ];

    pub fn by_code(code: Fsctl) -> Option<&'static FsctlProfile> {
        const ALL: &[FsctlProfile] = &FsctlProfile::ALL;
        ALL.iter().find(|control| control.code == code)
    }

    pub fn access(&self) -> u32 {
        if self.code == Fsctl::QUERY_ALLOCATED_RANGES { access::READ_DATA } else { 0 }
    }

    /// Returns the reason if the dialect doesn't support the code.
    pub fn unsupported_in(&self, dialect: Dialect) -> Option<&'static str> {
        let smb2 = match dialect {
            Dialect::Smb2(dialect) => Some(dialect),
            _ => None,
        };
        match (self.code, smb2) {
            (_, None) if !self.of_file => Some("SMB1 sends control codes for open files only"),
            // 3.2.5.5: older dialects don't have it, and a 3.1.1 server drops the connection (3.3.5.15.12).
            (Fsctl::VALIDATE_NEGOTIATE_INFO, Some(dialect)) if !matches!(dialect, 0x0300 | 0x0302) => {
                Some("it belongs to 3.0 and 3.0.2")
            }
            (Fsctl::QUERY_NETWORK_INTERFACE_INFO, Some(..0x0300)) => Some("it belongs to 3.0 and later"),
            _ => None,
        }
    }

    pub(super) fn input(&self, host: &str, share: &str) -> Vec<u8> {
        match self.code {
            Fsctl::QUERY_ALLOCATED_RANGES => [0, WHOLE_FILE].iter().flat_map(|value| value.to_le_bytes()).collect(),
            Fsctl::DFS_GET_REFERRALS => {
                let path = format!("\\{host}\\{share}\0");
                let path = path.encode_utf16().flat_map(u16::to_le_bytes);
                REFERRAL_LEVEL.to_le_bytes().into_iter().chain(path).collect()
            }
            _ => Vec::new(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeConnectTarget {
    Own,
    Ipc,
}

impl TreeConnectTarget {
    pub(super) fn path(self, host: &str, share: &str) -> String {
        let share = match self {
            TreeConnectTarget::Own => share,
            TreeConnectTarget::Ipc => "IPC$",
        };
        format!(r"\\{host}\{share}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_refused_in_dialects_that_do_not_have_it() {
        let refused = |code, dialect| FsctlProfile::by_code(code).unwrap().unsupported_in(dialect).is_some();
        let smb2 = Dialect::Smb2;
        assert!(!refused(Fsctl::GET_REPARSE_POINT, Dialect::NtLm012));
        assert!(refused(Fsctl::DFS_GET_REFERRALS, Dialect::NtLm012));
        assert!(!refused(Fsctl::DFS_GET_REFERRALS, smb2(0x0202)));
        assert!(refused(Fsctl::VALIDATE_NEGOTIATE_INFO, smb2(0x0311)));
        assert!(!refused(Fsctl::VALIDATE_NEGOTIATE_INFO, smb2(0x0302)));
        assert!(refused(Fsctl::QUERY_NETWORK_INTERFACE_INFO, smb2(0x0210)));
    }

    #[test]
    fn a_referral_is_asked_for_by_a_path_that_begins_with_one_backslash() {
        let input = FsctlProfile::by_code(Fsctl::DFS_GET_REFERRALS).unwrap().input("h", "s");
        // MS-DFSC 2.2.2: MaxReferralLevel, then the null-terminated name in UTF-16.
        assert_eq!(input, b"\x04\0\\\0h\0\\\0s\0\0\0");
    }
}
