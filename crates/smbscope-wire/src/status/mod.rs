//! Status codes: NTSTATUS (MS-ERREF 2.3) and the DOS error classes of SMB1 (MS-CIFS 2.2.2.4).

mod nt;

pub use nt::NtStatus;

use serde::{Deserialize, Serialize};
use std::fmt;

/// SMB1 error class and code, printed as `ERRDOS/ERRbadfile` (MS-CIFS 2.2.2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DosError {
    pub class: u8,
    pub code: u16,
}

impl DosError {
    pub const SUCCESS: DosError = DosError { class: 0x00, code: 0 };

    /// Returns true for any class except SUCCESS. Returns false for `ERRDOS/ERRmoredata` and
    /// `ERRDOS/ERR_NOTIFY_ENUM_DIR`: they report that the buffer was too small, which is a warning as in NTSTATUS.
    pub fn is_error(self) -> bool {
        self.class != 0x00 && !matches!((self.class, self.code), (0x01, 0x00ea | 0x03fe))
    }

    pub fn class_name(self) -> Option<&'static str> {
        match self.class {
            0x00 => Some("SUCCESS"),
            0x01 => Some("ERRDOS"),
            0x02 => Some("ERRSRV"),
            0x03 => Some("ERRHRD"),
            0xff => Some("ERRCMD"),
            _ => None,
        }
    }

    pub fn code_name(self) -> Option<&'static str> {
        match self.class {
            0x01 => err_dos(self.code),
            0x02 => err_srv(self.code),
            0x03 => err_hrd(self.code),
            _ => None,
        }
    }
}

impl fmt::Display for DosError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.class == 0 {
            return f.pad("SUCCESS");
        }
        let class = self.class_name().map_or_else(|| format!("0x{:02x}", self.class), str::to_owned);
        let code = self.code_name().map_or_else(|| format!("0x{:04x}", self.code), str::to_owned);
        f.pad(&format!("{class}/{code}"))
    }
}

macro_rules! codes {
    ($function:ident { $($code:literal $name:literal)* }) => {
        #[deny(unreachable_patterns)]
        fn $function(code: u16) -> Option<&'static str> {
            match code {
                $($code => Some($name),)*
                _ => None,
            }
        }
    };
}

codes!(err_dos {
    0x0001 "ERRbadfunc"
    0x0002 "ERRbadfile"
    0x0003 "ERRbadpath"
    0x0004 "ERRnofids"
    0x0005 "ERRnoaccess"
    0x0006 "ERRbadfid"
    0x0007 "ERRbadmcb"
    0x0008 "ERRnomem"
    0x0009 "ERRbadmem"
    0x000a "ERRbadenv"
    0x000b "ERRbadformat"
    0x000c "ERRbadaccess"
    0x000d "ERRbaddata"
    0x000f "ERRbaddrive"
    0x0010 "ERRremcd"
    0x0011 "ERRdiffdevice"
    0x0012 "ERRnofiles"
    0x001f "ERRgeneral"
    0x0020 "ERRbadshare"
    0x0021 "ERRlock"
    0x0026 "ERReof"
    0x0032 "ERRunsup"
    0x0050 "ERRfilexists"
    0x0057 "ERRinvalidparam"
    0x0071 "ERROR_NO_MORE_SEARCH_HANDLES"
    0x007c "ERRunknownlevel"
    0x0083 "ERRinvalidseek"
    0x009e "ERROR_NOT_LOCKED"
    0x00ad "ERROR_CANCEL_VIOLATION"
    0x00ae "ERROR_ATOMIC_LOCKS_NOT_SUPPORTED"
    0x00e6 "ERRbadpipe"
    0x00e7 "ERRpipebusy"
    0x00e8 "ERRpipeclosing"
    0x00e9 "ERRnotconnected"
    0x00ea "ERRmoredata"
    0x00ff "ERRbadealist"
    0x010a "ERROR_CANNOT_COPY"
    0x0113 "ERROR_EAS_DIDNT_FIT"
    0x011a "ERROR_EAS_NOT_SUPPORTED"
    0x03e2 "ERROR_EA_ACCESS_DENIED"
    0x03fe "ERR_NOTIFY_ENUM_DIR"
});

codes!(err_srv {
    0x0001 "ERRerror"
    0x0002 "ERRbadpw"
    0x0003 "ERRbadpath"
    0x0004 "ERRaccess"
    0x0005 "ERRinvtid"
    0x0006 "ERRinvnetname"
    0x0007 "ERRinvdevice"
    0x0010 "ERRinvsess"
    0x0011 "ERRworking"
    0x0012 "ERRnotme"
    0x0016 "ERRbadcmd"
    0x0031 "ERRqfull"
    0x0032 "ERRqtoobig"
    0x0033 "ERRqeof"
    0x0034 "ERRinvpfid"
    0x0040 "ERRsmbcmd"
    0x0041 "ERRsrverror"
    0x0043 "ERRfilespecs"
    0x0045 "ERRbadpermits"
    0x0047 "ERRsetattrmode"
    0x0051 "ERRpaused"
    0x0052 "ERRmsgoff"
    0x0053 "ERRnoroom"
    0x0057 "ERRrmuns"
    0x0058 "ERRtimeout"
    0x0059 "ERRnoresource"
    0x005a "ERRtoomanyuids"
    0x005b "ERRbaduid"
    0x00e9 "ERRnotconnected"
    0x00fa "ERRusempx"
    0x00fb "ERRusestd"
    0x00fc "ERRcontmpx"
    0x08bf "ERRaccountExpired"
    0x08c0 "ERRbadClient"
    0x08c1 "ERRbadLogonTime"
    0x08c2 "ERRpasswordExpired"
    0xffff "ERRnosupport"
});

codes!(err_hrd {
    0x0013 "ERRnowrite"
    0x0014 "ERRbadunit"
    0x0015 "ERRnotready"
    0x0016 "ERRbadcmd"
    0x0017 "ERRdata"
    0x0018 "ERRbadreq"
    0x0019 "ERRseek"
    0x001a "ERRbadmedia"
    0x001b "ERRbadsector"
    0x001c "ERRnopaper"
    0x001d "ERRwrite"
    0x001e "ERRread"
    0x001f "ERRgeneral"
    0x0020 "ERRbadshare"
    0x0021 "ERRlock"
    0x0022 "ERRwrongdisk"
    0x0023 "ERRFCBUnavail"
    0x0024 "ERRsharebufexc"
    0x0027 "ERRdiskfull"
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_statuses_print_their_name_and_others_eight_digits() {
        // Expected: MS-ERREF 2.3.1.
        assert_eq!(NtStatus(0xc000_0034).to_string(), "STATUS_OBJECT_NAME_NOT_FOUND");
        assert_eq!(NtStatus(0).to_string(), "STATUS_SUCCESS");
        assert_eq!(NtStatus(0xc000_0abc).to_string(), "0xc0000abc");
    }

    #[test]
    fn constants_used_by_the_analyser_have_the_values_of_the_specification() {
        // Expected: MS-ERREF 2.3.1; MS-SMB2 3.2.4 and 3.3.5, where these statuses steer a client or server.
        for (status, value) in [
            (NtStatus::SUCCESS, 0x0000_0000),
            (NtStatus::PENDING, 0x0000_0103),
            (NtStatus::NOTIFY_CLEANUP, 0x0000_010b),
            (NtStatus::NOTIFY_ENUM_DIR, 0x0000_010c),
            (NtStatus::BUFFER_OVERFLOW, 0x8000_0005),
            (NtStatus::NO_MORE_FILES, 0x8000_0006),
            (NtStatus::STOPPED_ON_SYMLINK, 0x8000_002d),
            (NtStatus::NO_SUCH_FILE, 0xc000_000f),
            (NtStatus::END_OF_FILE, 0xc000_0011),
            (NtStatus::MORE_PROCESSING_REQUIRED, 0xc000_0016),
            (NtStatus::ACCESS_DENIED, 0xc000_0022),
            (NtStatus::OBJECT_NAME_NOT_FOUND, 0xc000_0034),
            (NtStatus::OBJECT_PATH_NOT_FOUND, 0xc000_003a),
            (NtStatus::SHARING_VIOLATION, 0xc000_0043),
            (NtStatus::FILE_LOCK_CONFLICT, 0xc000_0054),
            (NtStatus::LOCK_NOT_GRANTED, 0xc000_0055),
            (NtStatus::LOGON_FAILURE, 0xc000_006d),
            (NtStatus::INSUFFICIENT_RESOURCES, 0xc000_009a),
            (NtStatus::NETWORK_NAME_DELETED, 0xc000_00c9),
            (NtStatus::CANCELLED, 0xc000_0120),
            (NtStatus::USER_SESSION_DELETED, 0xc000_0203),
            (NtStatus::PATH_NOT_COVERED, 0xc000_0257),
            (NtStatus::NETWORK_SESSION_EXPIRED, 0xc000_035c),
        ] {
            assert_eq!(status.0, value, "{status}");
        }
    }

    #[test]
    fn the_table_is_in_order_of_value_and_long_enough() {
        assert!(NtStatus::KNOWN.is_sorted());
        assert!(NtStatus::KNOWN.len() > 600);
    }

    #[test]
    fn warnings_and_logon_steps_are_not_errors() {
        assert!(NtStatus::ACCESS_DENIED.is_error());
        assert!(!NtStatus::MORE_PROCESSING_REQUIRED.is_error());
        assert!(!NtStatus::BUFFER_OVERFLOW.is_error());
        assert!(!NtStatus::PENDING.is_error());
    }

    #[test]
    fn the_smb_servers_own_codes_are_errors_whatever_their_top_bits() {
        // Expected: MS-CIFS 2.2.2.4, where such a code is identical on the wire to an error class and code.
        assert!(NtStatus::SMB_BAD_TID.is_error());
        assert!(NtStatus::OS2_INVALID_LEVEL.is_error());
        assert!(NtStatus::SMB_NO_SUPPORT.is_error());
    }

    #[test]
    fn dos_errors_print_class_and_code_by_name() {
        // Expected: MS-CIFS 2.2.2.4.
        assert_eq!(DosError { class: 1, code: 2 }.to_string(), "ERRDOS/ERRbadfile");
        assert_eq!(DosError { class: 2, code: 91 }.to_string(), "ERRSRV/ERRbaduid");
        assert_eq!(DosError { class: 3, code: 39 }.to_string(), "ERRHRD/ERRdiskfull");
        assert_eq!(DosError { class: 0xff, code: 0 }.to_string(), "ERRCMD/0x0000");
        assert_eq!(DosError { class: 9, code: 1 }.to_string(), "0x09/0x0001");
        assert_eq!(DosError::SUCCESS.to_string(), "SUCCESS");
    }

    #[test]
    fn a_response_truncated_to_the_clients_buffer_is_not_a_dos_error() {
        assert!(!DosError { class: 1, code: 234 }.is_error());
        assert!(!DosError::SUCCESS.is_error());
        assert!(DosError { class: 1, code: 2 }.is_error());
    }
}
