//! Several outstanding reads, writes or files, on a private Samba or a scripted server: every byte arrives at its
//! place, and each command has its own response time.

use crate::common::{DIALECTS, create, options, run, samba, user};
use smbscope_client::{
    ClientSession, ClientSigningPolicy, FileRange, Moved, Sample, SessionOptions, TransferDirection, WholeFile,
};
use smbscope_lab::LabServerSettings;
use smbscope_model::{Command, Dialect};
use smbscope_testkit::server::{Script, ScriptedServer};
use smbscope_wire::smb2::Smb2Command;
use smbscope_wire::status::NtStatus;

const BLOCK: u32 = 64 << 10;
const BLOCKS: u64 = 40;

/// Returns the maximum number of these commands outstanding at the same time.
fn most_outstanding(samples: &[Sample]) -> usize {
    let at = |sample: &Sample| {
        let begun = |other: &&Sample| other.request_first <= sample.request_first;
        samples.iter().filter(begun).filter(|other| other.response_last > sample.request_first).count()
    };
    samples.iter().map(at).max().unwrap_or(0)
}

/// From the last block to the first.
fn ranges() -> Vec<FileRange> {
    (0..BLOCKS).rev().map(|block| FileRange { offset: block * u64::from(BLOCK), length: BLOCK }).collect()
}

#[test]
fn blocks_are_outstanding_together_and_all_of_them_arrive() {
    let Some(server) = samba(&LabServerSettings::default()) else { return };
    let data: Vec<u8> = (0..BLOCK).map(|at| (at * 7 % 251) as u8).collect();
    let nt1 = SessionOptions { dialect: Dialect::NtLm012, ..options(&server, 0x0311) };
    for options in DIALECTS.map(|dialect| options(&server, dialect)).into_iter().chain([nt1]) {
        let dialect = options.dialect;
        // Samba's MaxMpxCount is 50 (`max mux`).
        let depth = 8;
        run(async {
            let mut session = ClientSession::connect(&options).await.unwrap();
            let file = session.open(&create("queue")).await.unwrap().handle;
            for direction in [TransferDirection::Write(&data), TransferDirection::Read] {
                session.samples().clear();
                let moved = session.transfer_many(file, &ranges(), depth, direction).await.unwrap();
                assert_eq!(moved, Moved { bytes: BLOCKS * u64::from(BLOCK), outstanding: depth }, "{dialect}");
                let samples = std::mem::take(session.samples());
                assert!(samples.len() >= BLOCKS as usize, "{dialect}: {}", samples.len());
                assert!(samples.iter().all(|sample| sample.response_time().is_some()), "{dialect}");
                assert_eq!(most_outstanding(&samples), depth as usize, "{dialect}");
            }
            session.close(file).await.unwrap();
            session.disconnect().await.unwrap();
        });
        let path = server.share_folder().join("queue");
        let found = std::fs::read(&path).unwrap();
        assert_eq!(found.len() as u64, BLOCKS * u64::from(BLOCK), "{dialect}");
        assert!(found.chunks(BLOCK as usize).all(|block| block == data), "{dialect}");
        std::fs::remove_file(path).unwrap();
    }
}

/// The server's own limit, signed: a response has the sequence number after its request's.
#[test]
fn smb1_has_no_more_outstanding_than_the_server_allows() {
    let settings = LabServerSettings { extra: vec!["max mux = 5".to_owned()], ..LabServerSettings::default() };
    let Some(server) = samba(&settings) else { return };
    let options = SessionOptions { credentials: user(&server), ..options(&server, 0x0311) };
    run(async {
        let mut session = ClientSession::connect(&SessionOptions {
            dialect: Dialect::NtLm012,
            signing: ClientSigningPolicy::Required,
            ..options
        })
        .await
        .unwrap();
        let file = session.open(&create("bounded")).await.unwrap().handle;
        let data = vec![7; BLOCK as usize];
        for direction in [TransferDirection::Write(&data), TransferDirection::Read] {
            session.samples().clear();
            let moved = session.transfer_many(file, &ranges(), 200, direction).await.unwrap();
            assert_eq!(moved, Moved { bytes: BLOCKS * u64::from(BLOCK), outstanding: 5 });
            assert_eq!(most_outstanding(&std::mem::take(session.samples())), 5);
        }
        session.disconnect().await.unwrap();
    });
}

#[test]
fn a_block_that_fails_fails_the_transfer_and_the_session_goes_on() {
    let Some(server) = samba(&LabServerSettings::default()) else { return };
    for dialect in [Dialect::Smb2(0x0311), Dialect::NtLm012] {
        let options = SessionOptions { dialect, ..options(&server, 0x0311) };
        run(short_file(options));
    }
}

async fn short_file(options: SessionOptions) {
    let mut session = ClientSession::connect(&options).await.unwrap();
    let file = session.open(&create("short")).await.unwrap().handle;
    session.write(file, 0, &[1; 1000]).await.unwrap();
    // There is nothing to read past the end.
    let error = session.transfer_many(file, &ranges(), 8, TransferDirection::Read).await.unwrap_err();
    assert_eq!(error.status(), Some(NtStatus::END_OF_FILE), "{error}");
    assert_eq!(session.read(file, 0, 1000).await.unwrap(), [1; 1000]);
    session.disconnect().await.unwrap();
}

/// Counts the successful samples of a command.
fn successes(samples: &[Sample], command: Smb2Command) -> usize {
    let of = |sample: &&Sample| sample.command == Command::Smb2(command) && sample.status == Some(NtStatus::SUCCESS);
    samples.iter().filter(of).count()
}

fn whole(path: impl Into<String>, size: u64) -> WholeFile {
    WholeFile { path: path.into(), size }
}

#[test]
fn as_many_files_are_outstanding_as_are_to_be_read_at_once() {
    let server = ScriptedServer::start(Script { file_size: 4096, ..Script::new() }).unwrap();
    let files: Vec<WholeFile> = (0..40).map(|number| whole(format!("file{number}"), 4096)).collect();
    for at_once in [1, 5, 16] {
        run(async {
            let mut session =
                ClientSession::connect(&SessionOptions::new("localhost", server.address(), "share")).await.unwrap();
            session.samples().clear();
            let moved = session.read_whole_files(&files, 1024, at_once).await.unwrap();
            assert_eq!(moved, Moved { bytes: 40 * 4096, outstanding: at_once });
            let samples = std::mem::take(session.samples());
            assert_eq!(most_outstanding(&samples), at_once as usize);
            // Open, four reads and close for each.
            let count = |command| successes(&samples, command);
            let counts = [Smb2Command::CREATE, Smb2Command::READ, Smb2Command::CLOSE].map(count);
            assert_eq!((counts, samples.len()), ([40, 160, 40], 240));
            session.disconnect().await.unwrap();
        });
    }
}

#[test]
fn files_read_at_once_are_read_whole_in_every_dialect() {
    let Some(server) = samba(&LabServerSettings::default()) else { return };
    let folder = server.share_folder().join("tree");
    std::fs::create_dir(&folder).unwrap();
    // An empty file, one that ends on a block boundary, and sizes in between.
    let sizes: Vec<u64> = (0..30).map(|number| number * 7_001).chain([0, 65_536]).collect();
    let file = |(number, size): (usize, &u64)| {
        std::fs::write(folder.join(number.to_string()), vec![7; *size as usize]).unwrap();
        whole(format!("tree\\{number}"), *size)
    };
    let files: Vec<WholeFile> = sizes.iter().enumerate().map(file).collect();
    let nt1 = SessionOptions { dialect: Dialect::NtLm012, ..options(&server, 0x0311) };
    for options in DIALECTS.map(|dialect| options(&server, dialect)).into_iter().chain([nt1]) {
        let dialect = options.dialect;
        let together = if dialect == Dialect::NtLm012 { 1 } else { 8 };
        run(async {
            let mut session = ClientSession::connect(&SessionOptions { leases: true, ..options }).await.unwrap();
            let moved = session.read_whole_files(&files, 16 << 10, 8).await.unwrap();
            assert_eq!(moved, Moved { bytes: sizes.iter().sum(), outstanding: together }, "{dialect}");
            session.disconnect().await.unwrap();
        });
    }
}

#[test]
fn a_file_that_is_missing_fails_all_and_leaves_none_open() {
    let Some(server) = samba(&LabServerSettings::default()) else { return };
    std::fs::write(server.share_folder().join("there"), [7; 1000]).unwrap();
    let files: Vec<WholeFile> =
        (0..20).map(|number| whole(if number == 9 { "missing" } else { "there" }, 1000)).collect();
    run(async {
        let mut session = ClientSession::connect(&options(&server, 0x0311)).await.unwrap();
        session.samples().clear();
        let error = session.read_whole_files(&files, 1 << 20, 4).await.unwrap_err();
        assert_eq!(error.status(), Some(NtStatus::OBJECT_NAME_NOT_FOUND), "{error}");
        let samples = std::mem::take(session.samples());
        let [opened, closed] = [Smb2Command::CREATE, Smb2Command::CLOSE].map(|command| successes(&samples, command));
        assert!(opened == closed && (9..=13).contains(&opened), "{opened} opened, {closed} closed");
        // Fewer bytes than announced are not an error.
        let moved = session.read_whole_files(&[whole("there", 5000)], 400, 4).await.unwrap();
        assert_eq!(moved.bytes, 1000);
        session.disconnect().await.unwrap();
    });
}
