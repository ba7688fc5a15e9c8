//! Compares a session on a folder with the standard library's view of that folder.

use super::status_of;
use crate::file::{ByteRangeLock, CreateDisposition, Info, ListingEntry, OpenParameters, SetInfo, access, options};
use crate::{ClientError, ClientSession, FileHandle, SessionOptions};
use smbscope_model::{CommandGroup, Dialect};
use smbscope_wire::status::NtStatus;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use tempfile::TempDir;

const READ: u32 = access::READ_DATA;
const WRITE: u32 = access::WRITE_DATA;

async fn session(folder: &Path) -> ClientSession {
    let options =
        SessionOptions { folder: Some(folder.to_owned()), ..SessionOptions::new("", ([127, 0, 0, 1], 0).into(), "") };
    ClientSession::connect(&options).await.expect("the folder is there")
}

fn open(path: &str, access: u32, disposition: CreateDisposition) -> OpenParameters<'_> {
    OpenParameters { path, access, share: 7, disposition, options: options::NON_DIRECTORY, attributes: 0 }
}

async fn opened(session: &mut ClientSession, path: &str, access: u32, disposition: CreateDisposition) -> FileHandle {
    session.open(&open(path, access, disposition)).await.expect(path).handle
}

fn status<T>(result: Result<T, ClientError>) -> NtStatus {
    result.err().and_then(|error| error.status()).expect("a refusal")
}

#[tokio::test(flavor = "current_thread")]
async fn a_large_read_whose_bytes_nobody_wants_stays_in_one_buffer() {
    const SIZE: u32 = 20 << 20;
    let folder = TempDir::new().unwrap();
    fs::File::create(folder.path().join("sparse")).unwrap().set_len(SIZE.into()).unwrap();
    let mut session = session(folder.path()).await;
    let file = opened(&mut session, "sparse", READ, CreateDisposition::Open).await;
    assert_eq!(session.skim(file, 0, u32::MAX).await.unwrap(), u64::from(SIZE));
    assert_eq!(session.skim(file, 1 << 20, 10 << 20).await.unwrap(), 10 << 20);
    assert_eq!(status(session.skim(file, SIZE.into(), 1).await), NtStatus::END_OF_FILE);
    let came: Vec<u32> = session.samples().drain(..).map(|sample| sample.response_bytes >> 20).collect();
    assert_eq!(came, [0, 8, 8, 4, 8, 2, 0]);
    let ClientSession::Local(local) = &session else { panic!("a folder") };
    assert!(local.data.capacity() <= 8 << 20, "{}", local.data.capacity());
    assert_eq!(session.read(file, 0, u32::MAX).await.unwrap().len(), SIZE as usize);
}

#[tokio::test(flavor = "current_thread")]
async fn what_is_written_is_in_the_folder_and_each_call_has_a_sample() {
    let folder = TempDir::new().unwrap();
    let mut session = session(folder.path()).await;
    assert_eq!(session.facts().dialect, Dialect::Local);
    session.make_directory("a").await.unwrap();
    let file = opened(&mut session, "a\\b.txt", READ | WRITE, CreateDisposition::Create).await;
    session.write(file, 3, b"text").await.unwrap();
    session.set_file(file, SetInfo::EndOfFile(9)).await.unwrap();
    session.flush(file).await.unwrap();
    assert_eq!(session.read(file, 3, 100).await.unwrap(), b"text\0\0");
    assert_eq!(status(session.read(file, 9, 1).await.map(drop)), NtStatus::END_OF_FILE);
    session.close(file).await.unwrap();
    assert_eq!(fs::read(folder.path().join("a/b.txt")).unwrap(), b"\0\0\0text\0\0");

    let samples = session.samples();
    let seen: Vec<_> =
        samples.iter().map(|s| (s.command.to_string(), s.group, s.request_bytes, s.response_bytes)).collect();
    let expected = [
        ("CREATE", CommandGroup::OpenClose, 0, 0),
        ("CLOSE", CommandGroup::OpenClose, 0, 0),
        ("CREATE", CommandGroup::OpenClose, 0, 0),
        ("WRITE", CommandGroup::Write, 4, 0),
        ("SET_INFO", CommandGroup::Attributes, 0, 0),
        ("FLUSH", CommandGroup::Write, 0, 0),
        ("READ", CommandGroup::Read, 0, 6),
        ("READ", CommandGroup::Read, 0, 0),
        ("CLOSE", CommandGroup::OpenClose, 0, 0),
    ];
    assert_eq!(seen, expected.map(|(command, group, sent, came)| (command.to_owned(), group, sent, came)));
    assert!(samples.iter().all(|sample| sample.response_time().is_some_and(|time| !time.is_zero())));
}

#[tokio::test(flavor = "current_thread")]
async fn refusals_are_those_of_a_server() {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("d")).unwrap();
    fs::write(folder.path().join("d/f"), "x").unwrap();
    let mut session = session(folder.path()).await;
    let mut refused = async |path: &str, disposition, create_options| {
        status(session.open(&OpenParameters { options: create_options, ..open(path, READ, disposition) }).await)
    };
    let (file, directory) = (options::NON_DIRECTORY, options::DIRECTORY);
    assert_eq!(refused("none", CreateDisposition::Open, file).await, NtStatus::OBJECT_NAME_NOT_FOUND);
    assert_eq!(refused("d\\none", CreateDisposition::Open, file).await, NtStatus::OBJECT_NAME_NOT_FOUND);
    assert_eq!(refused("none\\f", CreateDisposition::Open, file).await, NtStatus::OBJECT_PATH_NOT_FOUND);
    assert_eq!(refused("d\\f", CreateDisposition::Create, file).await, NtStatus::OBJECT_NAME_COLLISION);
    assert_eq!(refused("d", CreateDisposition::Open, file).await, NtStatus::FILE_IS_A_DIRECTORY);
    assert_eq!(refused("d\\f", CreateDisposition::Open, directory).await, NtStatus::NOT_A_DIRECTORY);
    assert_eq!(refused("d", CreateDisposition::Create, directory).await, NtStatus::OBJECT_NAME_COLLISION);
    assert_eq!(status(session.remove_directory("d").await), NtStatus::DIRECTORY_NOT_EMPTY);
    fs::write(folder.path().join("g"), "y").unwrap();
    assert_eq!(status(session.rename("g", "d\\f").await), NtStatus::OBJECT_NAME_COLLISION);
    assert_eq!(
        status(session.list("d\\*.txt", Info::FILE_BOTH_DIRECTORY_INFORMATION, 0, None).await),
        NtStatus::NO_SUCH_FILE
    );
}

#[tokio::test(flavor = "current_thread")]
async fn nothing_outside_the_folder_is_reached() {
    let outside = TempDir::new().unwrap();
    fs::write(outside.path().join("secret"), "s").unwrap();
    let folder = TempDir::new().unwrap();
    symlink(outside.path(), folder.path().join("link")).unwrap();
    symlink(outside.path().join("secret"), folder.path().join("file")).unwrap();
    let mut session = session(folder.path()).await;
    let up = format!("..\\{}\\secret", outside.path().file_name().unwrap().to_str().unwrap());
    for path in ["link\\secret", "file", up.as_str(), outside.path().join("secret").to_str().unwrap()] {
        status(session.open(&open(path, READ, CreateDisposition::Open)).await);
        status(session.open(&open(path, WRITE, CreateDisposition::OverwriteIf)).await);
        status(session.remove_file(path).await);
    }
    status(session.list("link\\*", Info::FILE_BOTH_DIRECTORY_INFORMATION, 0, None).await);
    assert_eq!(fs::read(outside.path().join("secret")).unwrap(), b"s");
    let mut entries: Vec<ListingEntry> = Vec::new();
    session.list("*", Info::FILE_BOTH_DIRECTORY_INFORMATION, 0, Some(&mut entries)).await.unwrap();
    assert!(entries.len() == 2 && entries.iter().all(|entry| !entry.is_directory()), "{entries:?}");
}

#[tokio::test(flavor = "current_thread")]
async fn a_pipe_in_the_place_of_a_file_makes_nobody_wait() {
    let folder = TempDir::new().unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, folder.path().join("pipe"), 0o600.into()).unwrap();
    let mut session = session(folder.path()).await;
    assert_eq!(status(session.open(&open("pipe", READ, CreateDisposition::Open)).await), NtStatus::ACCESS_DENIED);
}

#[tokio::test(flavor = "current_thread")]
async fn users_are_in_the_way_of_each_others_locks() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("f"), "locked").unwrap();
    let (mut one, mut other) = (session(folder.path()).await, session(folder.path()).await);
    let first = opened(&mut one, "f", READ | WRITE, CreateDisposition::Open).await;
    let second = opened(&mut other, "f", READ | WRITE, CreateDisposition::Open).await;
    let range = ByteRangeLock { offset: 1, length: 2, exclusive: true, wait: false };
    one.lock(first, range).await.unwrap();
    assert_eq!(status(other.lock(second, range).await), NtStatus::LOCK_NOT_GRANTED);
    other.lock(second, ByteRangeLock { offset: 3, ..range }).await.unwrap();
    one.unlock(first, 1, 2).await.unwrap();
    other.lock(second, range).await.unwrap();
}

#[tokio::test(flavor = "current_thread")]
async fn what_is_to_go_goes_when_it_is_closed() {
    let folder = TempDir::new().unwrap();
    let mut session = session(folder.path()).await;
    let open = OpenParameters {
        options: options::NON_DIRECTORY | options::DELETE_ON_CLOSE,
        ..open("f", READ | WRITE, CreateDisposition::OpenIf)
    };
    let opened = session.open(&open).await.unwrap();
    assert_eq!(opened.action, 2, "created");
    assert!(folder.path().join("f").exists());
    session.close(opened.handle).await.unwrap();
    assert!(!folder.path().join("f").exists());
}

#[tokio::test(flavor = "current_thread")]
async fn a_folder_that_is_not_there_is_named() {
    let options = SessionOptions {
        folder: Some("/nowhere/at all".into()),
        ..SessionOptions::new("", ([127, 0, 0, 1], 0).into(), "")
    };
    let error = ClientSession::connect(&options).await.expect_err("no folder").to_string();
    assert!(error.starts_with("cannot use the folder /nowhere/at all: "), "{error}");
}

/// Errno values of Linux (errno(3)).
#[test]
fn errors_of_the_system_are_answers_of_a_server() {
    for (errno, status) in [
        (2, NtStatus::OBJECT_NAME_NOT_FOUND),
        (13, NtStatus::ACCESS_DENIED),
        (17, NtStatus::OBJECT_NAME_COLLISION),
        (20, NtStatus::NOT_A_DIRECTORY),
        (21, NtStatus::FILE_IS_A_DIRECTORY),
        (28, NtStatus::DISK_FULL),
        (30, NtStatus::MEDIA_WRITE_PROTECTED),
        (39, NtStatus::DIRECTORY_NOT_EMPTY),
        (5, NtStatus::UNEXPECTED_IO_ERROR),
    ] {
        assert_eq!(status_of(&std::io::Error::from_raw_os_error(errno)), status, "errno {errno}");
    }
}
