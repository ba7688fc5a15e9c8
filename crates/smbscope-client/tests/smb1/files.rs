//! Opening, reading, writing, querying and locking.

use crate::smb1::support::{commands, connect, connect_any, file, guest, pattern, plain_samba, samba, status, user};
use smbscope_client::{
    ByteRangeLock, ClientError, ClientSession, ClientSigningPolicy, CreateDisposition, OpenParameters, SessionOptions,
    SetInfo, smb1,
};
use smbscope_lab::LabServerSettings;
use smbscope_model::{CommandGroup, Subcommand};
use smbscope_wire::names::{InfoLevel, Trans2};
use smbscope_wire::smb1::Smb1Command;
use smbscope_wire::status::NtStatus;

#[tokio::test]
async fn opens_say_what_they_did() {
    let Some(server) = plain_samba() else { return };
    let mut session = connect(&user(&server)).await;
    let open = |disposition| OpenParameters { disposition, ..file("a.dat") };
    let missing = session.open(&open(CreateDisposition::Open)).await;
    assert_eq!(status(missing), Some(NtStatus::OBJECT_NAME_NOT_FOUND));
    let created = session.open(&open(CreateDisposition::Create)).await.unwrap();
    assert_eq!((created.action, created.size), (2, 0));
    session.write(created.handle, 0, b"twelve bytes").await.unwrap();
    session.close(created.handle).await.unwrap();
    let again = session.open(&open(CreateDisposition::Create)).await;
    assert_eq!(status(again), Some(NtStatus::OBJECT_NAME_COLLISION));
    let opened = session.open(&open(CreateDisposition::Open)).await.unwrap();
    assert_eq!((opened.action, opened.size), (1, 12));
    session.close(opened.handle).await.unwrap();
    let overwritten = session.open(&open(CreateDisposition::OverwriteIf)).await.unwrap();
    assert_eq!((overwritten.action, overwritten.size), (3, 0));
    session.close(overwritten.handle).await.unwrap();
    assert_eq!(status(session.close(overwritten.handle).await), Some(NtStatus::INVALID_HANDLE));
    let root = OpenParameters { path: "", options: 1, access: 0x80, ..open(CreateDisposition::Open) };
    let root = session.open(&root).await.unwrap();
    assert_eq!(root.attributes & 0x10, 0x10);
}

#[tokio::test]
async fn files_are_opened_in_the_old_way_too() {
    let Some(server) = plain_samba() else { return };
    let mut session = connect(&user(&server)).await;
    // AccessMode: read and write, deny none. OpenMode: create a missing file, open an existing one.
    let created = session.open_andx("a.dat", 0x42, 0x11).await.unwrap();
    assert_eq!((created.action, created.size), (2, 0));
    session.write(created.handle, 0, b"twelve bytes").await.unwrap();
    session.close(created.handle).await.unwrap();
    let opened = session.open_andx("a.dat", 0x40, 0x01).await.unwrap();
    assert_eq!((opened.action, opened.size), (1, 12));
    assert_eq!(session.read(opened.handle, 0, 100).await.unwrap(), b"twelve bytes");
    session.close(opened.handle).await.unwrap();
    assert_eq!(status(session.open_andx("missing", 0x40, 0x01).await), Some(NtStatus::OBJECT_NAME_NOT_FOUND));
}

#[tokio::test]
async fn names_beyond_ascii_arrive_whole() {
    let Some(server) = plain_samba() else { return };
    let mut session = connect(&user(&server)).await;
    // A character outside the basic plane takes two UTF-16 units.
    let name = "größe \u{1f4c8}.txt";
    let opened = session.open(&file(name)).await.unwrap();
    session.close(opened.handle).await.unwrap();
    assert!(server.share_folder().join(name).exists());
}

#[tokio::test]
async fn large_reads_and_writes_are_as_few_commands_as_allowed() {
    let Some(server) = plain_samba() else { return };
    for (options, commands_each) in
        // 200,000 bytes in parts of 64 KiB or, signed, of 16 KiB.
        [(user(&server), 4), (SessionOptions { signing: ClientSigningPolicy::Required, ..user(&server) }, 13)]
    {
        let mut session = connect(&options).await;
        let data = pattern(200_000);
        let opened = session.open(&file("large.dat")).await.unwrap();
        commands(&mut session);
        session.write(opened.handle, 0x1_0000_0000, &data).await.unwrap();
        assert_eq!(commands(&mut session), vec![Smb1Command::WRITE_ANDX; commands_each]);
        assert_eq!(session.read(opened.handle, 0x1_0000_0000, 200_000).await.unwrap(), data);
        let samples: Vec<_> = session.samples().drain(..).collect();
        assert_eq!(samples.len(), commands_each);
        assert_eq!(samples[1].offset, Some(0x1_0000_0000 + u64::from(session.facts().max_read)));
        assert!(samples.iter().all(|sample| sample.group == CommandGroup::Read));
        session.close(opened.handle).await.unwrap();
        session.remove_file("large.dat").await.unwrap();
    }
}

#[tokio::test]
async fn raw_mode_moves_data_without_headers() {
    // Samba offers raw mode only without signing.
    let settings =
        LabServerSettings { signing: smbscope_lab::ServerSigningPolicy::Off, ..LabServerSettings::default() };
    let Some(server) = samba(&settings) else { return };
    let raw = SessionOptions { raw: true, signing: ClientSigningPolicy::Off, ..user(&server) };
    let mut session = connect(&raw).await;
    let opened = session.open(&file("raw.dat")).await.unwrap();
    let data = pattern(200_000);
    commands(&mut session);
    session.write(opened.handle, 3, &data).await.unwrap();
    // Four blocks of at most 65,024 bytes, each in two parts: the announcement and the data.
    let samples: Vec<_> = session.samples().drain(..).collect();
    assert_eq!(samples.len(), 8);
    for pair in samples.chunks(2) {
        assert!(pair.iter().all(|part| part.command == smbscope_model::Command::Smb1(Smb1Command::WRITE_RAW)));
        assert!(pair.iter().all(|part| part.status == Some(NtStatus::SUCCESS) && part.group == CommandGroup::Write));
        assert_eq!((pair[0].subcommand, pair[1].subcommand), (None, Some(Subcommand::AsyncPortion)));
        assert_eq!(pair[0].message_id, pair[1].message_id);
        assert!(pair[0].response_last <= pair[1].request_first && Some(pair[1].request_bytes) == pair[1].length);
    }
    assert_eq!(std::fs::read(server.share_folder().join("raw.dat")).unwrap()[3..], data);
    assert_eq!(session.read(opened.handle, 3, 200_000).await.unwrap(), data);
    let samples: Vec<_> = session.samples().drain(..).collect();
    assert_eq!(samples.iter().map(|sample| sample.response_bytes).sum::<u32>(), 200_000);
    assert!(samples.iter().all(|read| read.command == smbscope_model::Command::Smb1(Smb1Command::READ_RAW)));
    // An empty response is ambiguous; the READ_ANDX after it isn't.
    assert_eq!(status(session.read(opened.handle, 300_000, 10).await), Some(NtStatus::END_OF_FILE));
    assert_eq!(commands(&mut session), [Smb1Command::READ_RAW, Smb1Command::READ_ANDX]);
    let other = session.open(&OpenParameters { access: 0x0012_0089, ..file("raw.dat") }).await.unwrap();
    assert_eq!(status(session.write(other.handle, 0, b"not mine").await), Some(NtStatus::ACCESS_DENIED));
    session.close(other.handle).await.unwrap();
    session.close(opened.handle).await.unwrap();
    session.disconnect().await.unwrap();

    let Some(can_sign) = plain_samba() else { return };
    let refused = smb1::Smb1ClientSession::connect(&SessionOptions { raw: true, ..user(&can_sign) }).await.unwrap_err();
    assert!(refused.to_string().contains("the server has no raw mode"), "{refused}");
}

#[tokio::test]
async fn what_was_written_is_on_the_disk_and_what_is_on_the_disk_is_read() {
    let Some(server) = plain_samba() else { return };
    let mut session = connect(&user(&server)).await;
    let opened = session.open(&file("a.dat")).await.unwrap();
    let data = pattern(70_000);
    session.write(opened.handle, 0, &data).await.unwrap();
    session.flush(opened.handle).await.unwrap();
    assert_eq!(std::fs::read(server.share_folder().join("a.dat")).unwrap(), data);
    assert_eq!(session.read(opened.handle, 69_990, 100).await.unwrap(), &data[69_990..]);
    commands(&mut session);
    assert_eq!(status(session.read(opened.handle, 70_000, 100).await), Some(NtStatus::END_OF_FILE));
    // SMB1 has no status for the end of a file: the server answered with success.
    assert_eq!(session.samples()[0].status, Some(NtStatus::SUCCESS));
    session.write(opened.handle, 5, b"").await.unwrap();
    assert_eq!(session.read(opened.handle, 0, 0).await.unwrap(), b"");
    session.close(opened.handle).await.unwrap();
    let mut session = ClientSession::Smb1(Box::new(session));
    assert_eq!(session.open_read_close("a.dat", 10, 20).await.unwrap(), 20);
    assert_eq!(status(session.open_read_close("a.dat", 70_000, 20).await), Some(NtStatus::END_OF_FILE));
    // The file is closed even though the read failed.
    let last = session.samples().last().unwrap().command;
    assert_eq!(last, smbscope_model::Command::Smb1(Smb1Command::CLOSE));
}

#[tokio::test]
async fn information_comes_at_native_levels_and_passed_through() {
    let Some(server) = plain_samba() else { return };
    let mut session = connect(&user(&server)).await;
    let opened = session.open(&file("a.dat")).await.unwrap();
    session.write(opened.handle, 0, &[1; 1000]).await.unwrap();
    // EndOfFile: MS-CIFS 2.2.8.3.7 (standard), 2.2.8.3.11 (all), MS-FSCC 2.4.29 (network open).
    for (info, at) in [
        (InfoLevel::FILE_STANDARD_INFORMATION, 8),
        (InfoLevel::FILE_ALL_INFORMATION, 48),
        (InfoLevel::FILE_NETWORK_OPEN_INFORMATION, 40),
    ] {
        let expected = 1000u64.to_le_bytes();
        assert_eq!(session.query_file(opened.handle, info).await.unwrap()[at..at + 8], expected, "{info} of the open");
        assert_eq!(session.query_path("a.dat", info).await.unwrap()[at..at + 8], expected, "{info} of the path");
    }
    for (info, least) in [
        (InfoLevel::FILE_BASIC_INFORMATION, 36),
        (InfoLevel::FILE_EA_INFORMATION, 4),
        (InfoLevel::FILE_NAME_INFORMATION, 4),
        (InfoLevel::FILE_INTERNAL_INFORMATION, 8),
        (InfoLevel::FILE_STREAM_INFORMATION, 24),
    ] {
        assert!(session.query_file(opened.handle, info).await.unwrap().len() >= least, "{info}");
    }
    for (info, least) in [
        (InfoLevel::FILE_FS_VOLUME_INFORMATION, 18),
        (InfoLevel::FILE_FS_SIZE_INFORMATION, 24),
        (InfoLevel::FILE_FS_DEVICE_INFORMATION, 8),
        (InfoLevel::FILE_FS_ATTRIBUTE_INFORMATION, 12),
        (InfoLevel::FILE_FS_FULL_SIZE_INFORMATION, 32),
    ] {
        assert!(session.query_file_system(info).await.unwrap().len() >= least, "{info}");
    }
    let last = session.samples().last().copied().unwrap();
    assert_eq!(last.subcommand, Some(Subcommand::Trans2(Trans2::QUERY_FS_INFORMATION)));
    assert_eq!(last.group, CommandGroup::Attributes);
    let missing = session.query_path("missing", InfoLevel::FILE_BASIC_INFORMATION).await.map(drop);
    assert_eq!(status(missing), Some(NtStatus::OBJECT_NAME_NOT_FOUND));
    let wrong = session.query_file_system(InfoLevel::FILE_BASIC_INFORMATION).await.map(drop);
    assert!(matches!(wrong, Err(ClientError::Unsupported(_))));
}

#[tokio::test]
async fn open_files_are_changed() {
    let Some(server) = plain_samba() else { return };
    let mut session = connect(&user(&server)).await;
    let on_disk = |name: &str| server.share_folder().join(name);
    let opened = session.open(&file("a.dat")).await.unwrap();
    session.set_file(opened.handle, SetInfo::EndOfFile(777)).await.unwrap();
    assert_eq!(on_disk("a.dat").metadata().unwrap().len(), 777);
    session.set_file(opened.handle, SetInfo::Allocation(4096)).await.unwrap();
    // 2001-09-09 01:46:40 UTC is 1,000,000,000 seconds after 1970; FILETIME counts 100 ns since 1601.
    let last_write = (1_000_000_000 + 11_644_473_600) * 10_000_000;
    let basic = SetInfo::Basic { creation: 0, last_access: 0, last_write, change: 0, attributes: 0 };
    session.set_file(opened.handle, basic).await.unwrap();
    let modified = on_disk("a.dat").metadata().unwrap().modified().unwrap();
    assert_eq!(modified.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs(), 1_000_000_000);
    session.set_file(opened.handle, SetInfo::Rename { path: "b.dat", replace: false }).await.unwrap();
    assert!(on_disk("b.dat").exists() && !on_disk("a.dat").exists());
    session.set_file(opened.handle, SetInfo::Delete(true)).await.unwrap();
    session.set_file(opened.handle, SetInfo::Delete(false)).await.unwrap();
    session.set_file(opened.handle, SetInfo::Delete(true)).await.unwrap();
    session.close(opened.handle).await.unwrap();
    assert!(!on_disk("b.dat").exists());
    std::fs::write(on_disk("c.dat"), b"there").unwrap();
    session.set_path("c.dat", basic).await.unwrap();
    let modified = on_disk("c.dat").metadata().unwrap().modified().unwrap();
    assert_eq!(modified.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs(), 1_000_000_000);
}

#[tokio::test]
async fn locks_keep_others_out_until_they_are_given_back() {
    let Some(server) = plain_samba() else { return };
    let (mut one, mut other) = (connect(&user(&server)).await, connect(&user(&server)).await);
    let here = one.open(&file("a.dat")).await.unwrap().handle;
    let there = other.open(&file("a.dat")).await.unwrap().handle;
    let range = |offset| ByteRangeLock { offset, length: 10, exclusive: true, wait: false };
    one.lock(here, range(1000)).await.unwrap();
    other.lock(there, range(0)).await.unwrap();
    assert_eq!(status(other.lock(there, range(1009)).await), Some(NtStatus::LOCK_NOT_GRANTED));
    // Samba answers FILE_LOCK_CONFLICT when the same lock is requested again.
    let again = status(other.lock(there, range(1009)).await).unwrap();
    assert!([NtStatus::LOCK_NOT_GRANTED, NtStatus::FILE_LOCK_CONFLICT].contains(&again), "{again}");
    assert_eq!(status(other.write(there, 1005, b"x").await), Some(NtStatus::FILE_LOCK_CONFLICT));
    one.unlock(here, 1000, 10).await.unwrap();
    other.lock(there, range(1009)).await.unwrap();
    // Ranges are 64-bit: nothing is locked 4 GiB further on.
    one.lock(here, range(0x1_0000_0000)).await.unwrap();
    let conflict = status(other.lock(there, range(0x1_0000_0009)).await).unwrap();
    assert!([NtStatus::LOCK_NOT_GRANTED, NtStatus::FILE_LOCK_CONFLICT].contains(&conflict), "{conflict}");
    let never_locked = one.unlock(here, 5, 5).await;
    assert_eq!(status(never_locked), Some(NtStatus::RANGE_NOT_LOCKED));
    assert_eq!(one.samples().last().unwrap().group, CommandGroup::Locking);
}

#[tokio::test]
async fn shared_locks_share() {
    let Some(server) = plain_samba() else { return };
    let (mut one, mut other) = (connect(&user(&server)).await, connect(&user(&server)).await);
    let here = one.open(&file("a.dat")).await.unwrap().handle;
    let there = other.open(&file("a.dat")).await.unwrap().handle;
    let shared = ByteRangeLock { offset: 0, length: 1, exclusive: false, wait: false };
    one.lock(here, shared).await.unwrap();
    other.lock(there, shared).await.unwrap();
    let exclusive = other.lock(there, ByteRangeLock { exclusive: true, ..shared }).await;
    assert_eq!(status(exclusive), Some(NtStatus::LOCK_NOT_GRANTED));
}

#[tokio::test]
async fn a_share_that_cannot_be_written_says_so() {
    let Some(server) = samba(&LabServerSettings { read_only: true, ..LabServerSettings::default() }) else { return };
    let mut session = connect(&guest(&server)).await;
    let refused = status(session.open(&file("a.dat")).await).unwrap();
    assert_eq!(refused, NtStatus::ACCESS_DENIED);
    // The session stays usable.
    session.echo().await.unwrap();
}

#[tokio::test]
async fn operations_of_dbench_have_their_way_through_the_seam() {
    let Some(server) = plain_samba() else { return };
    let mut session = connect_any(&user(&server)).await;
    session.make_directory("c1").await.unwrap();
    let opened = session.open(&file("c1\\a.dat")).await.unwrap();
    session.write(opened.handle, 0, &[1; 5000]).await.unwrap();
    assert_eq!(session.read(opened.handle, 0, 5000).await.unwrap().len(), 5000);
    session.flush(opened.handle).await.unwrap();
    session.lock(opened.handle, ByteRangeLock { offset: 0, length: 1, exclusive: true, wait: false }).await.unwrap();
    session.unlock(opened.handle, 0, 1).await.unwrap();
    session.query_path("c1\\a.dat", InfoLevel::FILE_BASIC_INFORMATION).await.unwrap();
    session.query_file(opened.handle, InfoLevel::FILE_ALL_INFORMATION).await.unwrap();
    session.query_file_system(InfoLevel::FILE_FS_SIZE_INFORMATION).await.unwrap();
    session.set_file(opened.handle, SetInfo::EndOfFile(100)).await.unwrap();
    session.close(opened.handle).await.unwrap();
    let info = InfoLevel::FILE_BOTH_DIRECTORY_INFORMATION;
    assert_eq!(session.list("c1\\*", info, 0, None).await.unwrap(), 3);
    session.rename("c1\\a.dat", "c1\\b.dat").await.unwrap();
    session.remove_file("c1\\b.dat").await.unwrap();
    session.remove_directory("c1").await.unwrap();
    session.disconnect().await.unwrap();
}

#[tokio::test]
async fn answers_are_read_into_the_same_buffer_each_time() {
    let Some(server) = plain_samba() else { return };
    let mut session = smb1::Smb1ClientSession::connect(&user(&server)).await.unwrap();
    let opened = session.open(&file("a.dat")).await.unwrap();
    session.write(opened.handle, 0, &[1; 5000]).await.unwrap();
    let first = session.read(opened.handle, 0, 5000).await.unwrap().as_ptr();
    for _ in 0..10 {
        assert_eq!(session.read(opened.handle, 0, 5000).await.unwrap().as_ptr(), first);
    }
}
