//! Listing, renaming, creating and removing.

use crate::smb1::support::{commands, connect, file, plain_samba, samba, status, user};
use smbscope_client::ClientError;
use smbscope_lab::LabServerSettings;
use smbscope_model::CommandGroup;
use smbscope_wire::names::InfoLevel;
use smbscope_wire::smb1::Smb1Command;
use smbscope_wire::status::NtStatus;
use std::collections::BTreeSet;
use std::fs;

/// Classes that SMB1 can list with.
const CLASSES: [InfoLevel; 6] = [
    InfoLevel::FILE_DIRECTORY_INFORMATION,
    InfoLevel::FILE_FULL_DIRECTORY_INFORMATION,
    InfoLevel::FILE_BOTH_DIRECTORY_INFORMATION,
    InfoLevel::FILE_NAMES_INFORMATION,
    InfoLevel::FILE_ID_BOTH_DIRECTORY_INFORMATION,
    InfoLevel::FILE_ID_FULL_DIRECTORY_INFORMATION,
];

/// Creates 300 files of growing size in `d`.
fn fill(folder: &std::path::Path) -> BTreeSet<String> {
    fs::create_dir(folder.join("d")).unwrap();
    let names: BTreeSet<String> = (0..300).map(|number| format!("a rather long name {number}.txt")).collect();
    for (size, name) in names.iter().enumerate() {
        fs::write(folder.join("d").join(name), vec![0; size]).unwrap();
    }
    names
}

#[tokio::test]
async fn three_hundred_files_come_in_pages_at_every_level() {
    let Some(server) = plain_samba() else { return };
    let names = fill(server.share_folder());
    let mut session = connect(&user(&server)).await;
    let mut entries = Vec::new();
    for class in CLASSES {
        commands(&mut session);
        let found = session.list("d\\*", class, 0, Some(&mut entries)).await.unwrap();
        assert_eq!((found, entries.len()), (302, 302), "{class}");
        let listed: BTreeSet<String> =
            entries.iter().map(|entry| entry.name.clone()).filter(|name| !name.starts_with('.')).collect();
        assert_eq!(listed, names, "{class}");
        if class != InfoLevel::FILE_NAMES_INFORMATION {
            let sizes: u64 = entries.iter().filter(|entry| !entry.is_directory()).map(|entry| entry.size).sum();
            assert_eq!(sizes, 299 * 300 / 2, "{class}");
        }
        let commands = commands(&mut session);
        // 16 KiB hold 302 entries in no class; the server ends the search itself.
        assert!(
            commands.len() >= 2 && commands.iter().all(|command| *command == Smb1Command::TRANSACTION2),
            "{commands:?}"
        );
    }
}

#[tokio::test]
async fn answers_of_several_messages_are_put_together() {
    // Samba splits transactions into messages of this size (smb.conf, max xmit).
    let Some(server) =
        samba(&LabServerSettings { extra: vec!["max xmit = 2000".to_owned()], ..LabServerSettings::default() })
    else {
        return;
    };
    let names = fill(server.share_folder());
    let mut session = connect(&user(&server)).await;
    session.samples().clear();
    let mut entries = Vec::new();
    session.list("d\\*", InfoLevel::FILE_BOTH_DIRECTORY_INFORMATION, 0, Some(&mut entries)).await.unwrap();
    let listed: BTreeSet<String> =
        entries.iter().map(|entry| entry.name.clone()).filter(|name| !name.starts_with('.')).collect();
    assert_eq!(listed, names);
    // A response has one sample, with more bytes than fit one message.
    assert!(session.samples()[0].response_bytes > 2000);
    assert!(session.samples().iter().all(|sample| sample.group == CommandGroup::Directory));
}

#[tokio::test]
async fn a_listing_stops_where_it_is_told_to_and_ends_the_search() {
    let Some(server) = plain_samba() else { return };
    fill(server.share_folder());
    let mut session = connect(&user(&server)).await;
    let mut entries = Vec::new();
    let info = InfoLevel::FILE_BOTH_DIRECTORY_INFORMATION;
    for most in [1, 10, 200] {
        commands(&mut session);
        assert_eq!(session.list("d\\*", info, most, Some(&mut entries)).await.unwrap(), most);
        assert_eq!(entries.len(), most);
        assert_eq!(commands(&mut session).last(), Some(&Smb1Command::FIND_CLOSE2));
    }
    // 29 and 290 to 299.
    assert_eq!(session.list("d\\*name 29*.txt", info, 0, None).await.unwrap(), 11);
    assert_eq!(session.list("d\\a rather long name 7.txt", info, 0, Some(&mut entries)).await.unwrap(), 1);
    assert_eq!(entries[0].name, "a rather long name 7.txt");
    let none = session.list("d\\nothing*", info, 0, None).await;
    assert_eq!(status(none), Some(NtStatus::NO_SUCH_FILE));
    let unknown = session.list("d\\*", InfoLevel::FILE_ID_EXTD_DIRECTORY_INFORMATION, 0, None).await;
    assert!(matches!(unknown, Err(ClientError::Unsupported(_))));
}

#[tokio::test]
async fn renaming_and_removing_change_what_is_there() {
    let Some(server) = plain_samba() else { return };
    let mut session = connect(&user(&server)).await;
    for name in ["a.dat", "b.dat"] {
        let opened = session.open(&file(name)).await.unwrap();
        session.close(opened.handle).await.unwrap();
    }
    assert_eq!(status(session.rename("a.dat", "b.dat").await), Some(NtStatus::OBJECT_NAME_COLLISION));
    session.rename("a.dat", "c.dat").await.unwrap();
    assert!(server.share_folder().join("c.dat").exists());
    assert_eq!(status(session.rename("a.dat", "d.dat").await), Some(NtStatus::OBJECT_NAME_NOT_FOUND));
    session.remove_file("c.dat").await.unwrap();
    assert_eq!(status(session.remove_file("c.dat").await), Some(NtStatus::OBJECT_NAME_NOT_FOUND));
}

#[tokio::test]
async fn directories_come_and_go() {
    let Some(server) = plain_samba() else { return };
    let mut session = connect(&user(&server)).await;
    session.make_directory("d").await.unwrap();
    session.check_directory("d").await.unwrap();
    assert_eq!(status(session.make_directory("d").await), Some(NtStatus::OBJECT_NAME_COLLISION));
    session.make_directory("d\\e").await.unwrap();
    assert_eq!(status(session.remove_directory("d").await), Some(NtStatus::DIRECTORY_NOT_EMPTY));
    session.rename("d\\e", "d\\f").await.unwrap();
    session.remove_directory("d\\f").await.unwrap();
    session.remove_directory("d").await.unwrap();
    assert_eq!(status(session.check_directory("d").await), Some(NtStatus::OBJECT_NAME_NOT_FOUND));
    assert!(session.samples().iter().skip(4).all(|sample| sample.group == CommandGroup::Directory));
}
