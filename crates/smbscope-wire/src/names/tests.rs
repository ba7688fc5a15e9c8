//! Tables use the specification's names, print unknown values as numbers and repeat no name.

use super::*;
use crate::{smb1, smb2};
use std::collections::HashSet;

#[test]
fn known_values_print_the_specifications_name_and_others_their_number() {
    // Expected: MS-CIFS 2.2.2.1 and 2.2.2.2, MS-SMB2 2.2.1.2 and 2.2.31, MS-FSCC 2.3 to 2.5.
    assert_eq!(smb1::Smb1Command::READ_ANDX.to_string(), "SMB_COM_READ_ANDX");
    assert_eq!(smb1::Smb1Command(0x15).to_string(), "0x15");
    assert_eq!(smb2::Smb2Command(0x0e).to_string(), "QUERY_DIRECTORY");
    assert_eq!(smb2::Smb2Command(0x14).to_string(), "0x0014");
    assert_eq!(Trans2(1).to_string(), "TRANS2_FIND_FIRST2");
    assert_eq!(Trans2(0x0f).to_string(), "0x000f");
    assert_eq!(NtTransact(4).to_string(), "NT_TRANSACT_NOTIFY_CHANGE");
    assert_eq!(Transaction(0x26).to_string(), "TRANS_TRANSACT_NMPIPE");
    assert_eq!(Fsctl(0x0011_c017).to_string(), "FSCTL_PIPE_TRANSCEIVE");
    assert_eq!(Fsctl(0x0014_0200).to_string(), "0x00140200");
    assert_eq!(InfoLevel::File(37).to_string(), "FileIdBothDirectoryInformation");
    assert_eq!(InfoLevel::from_wire(2, 3).to_string(), "FileFsSizeInformation");
    assert_eq!(InfoLevel::File(200).to_string(), "0x01/0xc8");
    assert_eq!(InfoLevel::from_wire(9, 1).to_string(), "0x09/0x01");
    assert_eq!(InfoLevel::from_wire(3, 0).to_string(), "SECURITY");
    assert_eq!(InfoLevel::from_wire(4, 0).to_string(), "QUOTA");
}

#[test]
fn names_keep_the_width_they_are_asked_for() {
    assert_eq!(
        format!("{:<8}|{:>8}|{:<6}|", smb2::Smb2Command::READ, smb2::Smb2Command::READ, smb1::Smb1Command(0x15)),
        "READ    |    READ|0x15  |"
    );
}

#[test]
fn short_names_are_those_of_the_1997_report() {
    // Expected: command column of the response time report in Swartz, "Adding Response Time Measurement of CIFS File
    // Server Performance to NetBench", 1997, appendix A and table 1.
    for (code, name) in [
        (0x10, "Check_Directory"),
        (0x04, "Close_File"),
        (0x06, "Delete_File"),
        (0x34, "Find_Close2"),
        (0x05, "Flush_File"),
        (0x08, "Get_File_Attributes"),
        (0x23, "Get_File_Attributes2"),
        (0x24, "Locking+X"),
        (0xa2, "NT_Create+X"),
        (0x2d, "Open+X"),
        (0x2e, "Read+X"),
        (0x07, "Rename_File"),
        (0x09, "Set_File_Attributes"),
        (0x22, "Set_File_Attributes2"),
        (0x32, "Transaction2"),
        (0x0b, "Write_Bytes"),
        (0x1d, "Write_Raw"),
        (0x2f, "Write+X"),
    ] {
        assert_eq!(smb1::Smb1Command(code).short_name(), Some(name));
    }
    assert_eq!(Trans2::QUERY_PATH_INFORMATION.short_name(), Some("Get_Path_Info"));
    assert_eq!(smb1::Smb1Command(0x15).short_name(), None);
}

#[test]
fn every_command_has_both_names_and_no_name_stands_for_two_values() {
    let smb1: Vec<_> = smb1::Smb1Command::KNOWN.iter().flat_map(|c| [c.name(), c.short_name()]).collect();
    assert!(smb1.iter().all(Option::is_some));
    assert_eq!(smb1.iter().collect::<HashSet<_>>().len(), smb1.len());
    assert_eq!(smb1.len(), 2 * 75);
    assert_eq!(smb2::Smb2Command::KNOWN.len(), 20);
}

#[test]
fn information_levels_survive_a_trip_over_the_wire() {
    for level in InfoLevel::KNOWN_FILE.iter().chain(InfoLevel::KNOWN_FILE_SYSTEM) {
        let (kind, class) = level.to_wire();
        assert_eq!(InfoLevel::from_wire(kind, class), *level);
        assert!(level.name().is_some_and(|name| name.starts_with("File")));
    }
}

#[test]
fn control_codes_ascend_so_that_the_table_is_easy_to_search_by_eye() {
    assert!(Fsctl::KNOWN.is_sorted());
}
