//! Statuses print by name, and errors are distinguished from warnings and logon steps.

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
fn warnings_and_steps_of_a_logon_are_no_errors() {
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
fn an_answer_cut_to_the_clients_buffer_is_no_dos_error() {
    assert!(!DosError { class: 1, code: 234 }.is_error());
    assert!(!DosError::SUCCESS.is_error());
    assert!(DosError { class: 1, code: 2 }.is_error());
}
