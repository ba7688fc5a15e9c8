use super::*;
use smbscope_load::workload::{Action, Script, UserSeat, Workload};
use smbscope_model::exchange::{CreatedFile, Details};
use smbscope_model::{Command, CommandGroup, Endpoints, FileId, FlowId, ResponseStatus, Subcommand};
use smbscope_testkit::exchange::{packet, read};
use smbscope_wire::names::Trans2;
use smbscope_wire::status::{DosError, NtStatus};
use smbscope_wire::{RequestDetail, smb1, smb2};

const MS: i64 = 1_000_000;

fn command(at: i64, command: smb2::Smb2Command, group: CommandGroup, file: u64) -> Exchange {
    Exchange {
        command: Command::Smb2(command),
        group,
        file_id: Some(FileId::Smb2 { persistent: 1, volatile: file }),
        status: Some(ResponseStatus::Nt(NtStatus::SUCCESS)),
        request: packet(at * MS),
        response: packet((at + 1) * MS),
        ..read(0, 0)
    }
}

fn open(at: i64, path: &str, file: u64) -> Exchange {
    let request = RequestDetail::Create {
        desired_access: 0x12_0089,
        share_access: 7,
        create_disposition: 1,
        create_options: 0x40,
        file_attributes: 0x80,
    };
    let created = Some(CreatedFile { action: 1, size: 1_000, attributes: 0x20 });
    Exchange {
        path: Some(path.into()),
        share: Some("data".into()),
        details: Some(Box::new(Details { request, created })),
        ..command(at, smb2::Smb2Command::CREATE, CommandGroup::OpenClose, file)
    }
}

fn reads(at: i64, file: u64, offset: u64, length: u64) -> Exchange {
    let (offset, length) = (Some(offset), Some(length));
    Exchange { offset, length, ..command(at, smb2::Smb2Command::READ, CommandGroup::Read, file) }
}

fn close(at: i64, file: u64) -> Exchange {
    command(at, smb2::Smb2Command::CLOSE, CommandGroup::OpenClose, file)
}

fn recorded(exchanges: &[Exchange], key: Option<PseudonymKey>) -> Result<Recording, RecordingError> {
    let mut recorder = WorkloadRecorder::default();
    exchanges.iter().for_each(|exchange| recorder.take(exchange));
    recorder.finish(&RecordingOptions { name: "app".to_owned(), from: "app.pcap".to_owned(), key })
}

#[test]
fn commands_are_lines_with_the_pauses_between_them_and_files_have_their_sizes() {
    let exchanges = [open(0, r"d\a.ini", 7), reads(11, 7, 0, 100), reads(12, 7, 100, 900), close(13, 7)];
    let recording = recorded(&exchanges, None).unwrap();
    // The open ends at 1 ms, and the read starts at 11 ms.
    let steps = "Create \"\\d\\a.ini\" 0x120089 0x7 1 0x40 0x80 1 SUCCESS\nSleep 10000 SUCCESS\nReadX 1 0 100 100 SUCCESS\n\
                 ReadX 1 100 900 900 SUCCESS\nClose 1 SUCCESS\n";
    assert_eq!(recording.recorded.clients[0].threads[0], steps);
    let files = "Mkdir \"\\d\" NT_STATUS_OK\nNTCreateX \"\\d\\a.ini\" 0x40 0x2 0 NT_STATUS_OK\n\
                 WriteX 0 0 1000 1000 NT_STATUS_OK\nClose 0 NT_STATUS_OK\n";
    assert_eq!(recording.recorded.clients[0].files, files);
    assert_eq!((recording.recorded.commands, recording.recorded.repeats), (4, true));
    assert_eq!(recording.recorded.not_replayed, Vec::<String>::new());
}

#[test]
fn a_recording_is_a_workload() {
    let recording = recorded(&[open(0, "a", 7), reads(11, 7, 0, 100), close(13, 7)], None).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.toml");
    std::fs::write(&path, recording.to_toml()).unwrap();
    let workload = Workload::load(&path).unwrap();
    let seat = UserSeat { number: 0, of: 1, seed: 1, directory: "bench".to_owned() };
    let mut script = workload.script(&seat);
    while script.sets_up() {
        script.next().unwrap();
    }
    assert!(matches!(
        script.next().unwrap().action,
        Action::Open { path: r"bench\user00001\a", access: 0x12_0089, .. }
    ));
}

#[test]
fn reads_that_were_outstanding_together_are_so_again() {
    // Four reads of 100 bytes, two of them outstanding from 3 to 6 ms, and one after them.
    let taking = |at: i64, until: i64, offset| Exchange {
        request: packet(at * MS),
        response: packet(until * MS),
        ..reads(at, 7, offset, 100)
    };
    let exchanges = [
        open(0, "a", 7),
        taking(2, 4, 0),
        taking(3, 5, 100),
        taking(4, 6, 200),
        taking(5, 7, 500),
        taking(7, 8, 0),
        close(9, 7),
    ];
    let recorded = recorded(&exchanges, None).unwrap().recorded;
    let lines: Vec<&str> = recorded.clients[0].threads[0].lines().filter(|line| !line.starts_with("Sleep")).collect();
    let expected = ["ReadQueue 1 2 \"0+100*3 500+100\" SUCCESS", "ReadX 1 0 100 100 SUCCESS", "Close 1 SUCCESS"];
    assert_eq!((&lines[1..], recorded.commands), (&expected[..], 7));
    assert_eq!(recorded.not_replayed, Vec::<String>::new());
}

fn on(flow: u64, client: &str, exchange: Exchange) -> Exchange {
    let endpoints = Endpoints { client: format!("{client}:50000").parse().unwrap(), ..exchange.endpoints };
    Exchange { flow: FlowId(flow), endpoints, ..exchange }
}

#[test]
fn each_client_is_a_user_with_its_own_files_and_begins_as_late_as_it_did() {
    let ann = |exchange| on(1, "10.0.0.1", exchange);
    let bob = |exchange| on(2, "10.0.0.2", exchange);
    let exchanges = [
        ann(open(100, "a", 7)),
        bob(open(140, "b", 7)),
        ann(reads(150, 7, 0, 100)),
        bob(close(160, 7)),
        ann(close(170, 7)),
    ];
    let recorded = recorded(&exchanges, None).unwrap().recorded;
    let threads: Vec<&[String]> = recorded.clients.iter().map(|client| &client.threads[..]).collect();
    // 49 ms pass from 101 to 150 ms, 19 from 151 to 170, 40 from the start of the recording to the second client.
    let of_ann = "Create \"\\a\" 0x120089 0x7 1 0x40 0x80 1 SUCCESS\nSleep 49000 SUCCESS\nReadX 1 0 100 100 SUCCESS\n\
                  Sleep 19000 SUCCESS\nClose 1 SUCCESS\n";
    let of_bob = "Sleep 40000 SUCCESS\nCreate \"\\b\" 0x120089 0x7 1 0x40 0x80 2 SUCCESS\nSleep 19000 SUCCESS\n\
                  Close 2 SUCCESS\n";
    assert_eq!(threads, [[of_ann], [of_bob]]);
    assert!(!recorded.clients[0].files.contains("\\b") && recorded.clients[1].files.contains("\\b"));
    assert_eq!((recorded.commands, recorded.not_replayed.len()), (5, 0));
}

#[test]
fn threads_of_a_client_run_beside_each_other_and_wait_for_each_other() {
    // A listing of 10 ms on the first connection, then two files at the same time on two connections.
    let first = |exchange| on(1, "10.0.0.1", exchange);
    let second = |exchange| on(2, "10.0.0.1", exchange);
    let long = |exchange: Exchange, ms| {
        let response = packet(exchange.request.first.unwrap().time.0 + ms * MS);
        Exchange { response, ..exchange }
    };
    let exchanges = [
        first(long(open(0, "list", 1), 10)),
        first(open(12, "a", 7)),
        second(open(13, "b", 7)),
        first(long(reads(14, 7, 0, 100), 6)),
        second(long(reads(15, 7, 0, 100), 9)),
        first(close(21, 7)),
        second(close(25, 7)),
    ];
    let recorded = recorded(&exchanges, None).unwrap().recorded;
    assert_eq!((recorded.clients.len(), recorded.commands, recorded.not_replayed.len()), (1, 7, 0));
    let threads = &recorded.clients[0].threads;
    // It begins 3 ms after the listing, as the first file 2 ms after.
    let expected = "Await 1 1 SUCCESS\nSleep 3000 SUCCESS\nCreate \"\\b\" 0x120089 0x7 1 0x40 0x80 3 SUCCESS\nSleep 1000 SUCCESS\n\
                    ReadX 3 0 100 100 SUCCESS\nSleep 1000 SUCCESS\nClose 3 SUCCESS\n";
    assert_eq!((threads.len(), threads[1].as_str()), (2, expected));
    // Which is a workload: with its own session for each thread.
    let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
    let text = Recording { name: "two".to_owned(), description: String::new(), recorded }.to_toml();
    std::fs::write(file.path(), text).unwrap();
    let workload = Workload::load(file.path()).unwrap();
    let sessions = workload.recorded_sessions().unwrap();
    assert_eq!((sessions.clients(), sessions.most()), (1, 2));
}

fn smb1(
    at: i64,
    command: smb1::Smb1Command,
    group: CommandGroup,
    file: Option<u16>,
    detail: Option<RequestDetail>,
) -> Exchange {
    Exchange {
        command: Command::Smb1(command),
        file_id: file.map(FileId::Smb1),
        share: Some("data".into()),
        details: Details::from_request(detail.as_ref()),
        ..self::command(at, smb2::Smb2Command::READ, group, 0)
    }
}

#[test]
fn commands_of_smb1_are_lines_of_a_loadfile() {
    let query = Exchange {
        subcommand: Some(Subcommand::Trans2(Trans2::QUERY_PATH_INFORMATION)),
        path: Some(r"\d\a.ini".into()),
        ..smb1(0, smb1::Smb1Command::TRANSACTION2, CommandGroup::Attributes, None, Some(RequestDetail::Level(0x101)))
    };
    let find = Exchange {
        subcommand: Some(Subcommand::Trans2(Trans2::FIND_FIRST2)),
        path: Some(r"\d\*.ini".into()),
        ..smb1(2, smb1::Smb1Command::TRANSACTION2, CommandGroup::Directory, None, Some(RequestDetail::Level(0x104)))
    };
    let mut opens = Exchange { command: Command::Smb1(smb1::Smb1Command::NT_CREATE_ANDX), ..open(4, r"\d\a.ini", 0) };
    opens.file_id = Some(FileId::Smb1(5));
    let read = |at, offset| Exchange {
        offset: Some(offset),
        length: Some(100),
        ..smb1(at, smb1::Smb1Command::READ_ANDX, CommandGroup::Read, Some(5), None)
    };
    let missing = Exchange {
        path: Some(r"\d\gone".into()),
        status: Some(ResponseStatus::Dos(DosError { class: 1, code: 2 })),
        ..smb1(9, smb1::Smb1Command::DELETE, CommandGroup::OpenClose, None, None)
    };
    let notify = Exchange {
        subcommand: Some(Subcommand::NtTransact(smbscope_wire::names::NtTransact::NOTIFY_CHANGE)),
        ..smb1(10, smb1::Smb1Command::NT_TRANSACT, CommandGroup::Waiting, None, None)
    };
    let close = smb1(11, smb1::Smb1Command::CLOSE, CommandGroup::OpenClose, Some(5), None);
    let recorded = recorded(&[query, find, opens, read(6, 0), read(7, 1_000), missing, notify, close], None).unwrap();
    let recorded = recorded.recorded;
    let lines: Vec<&str> = recorded.clients[0].threads[0].lines().filter(|line| !line.starts_with("Sleep")).collect();
    let expected = [
        r#"QUERY_PATH_INFORMATION "\d\a.ini" 257 SUCCESS"#,
        r#"FIND_FIRST "\d\*.ini" 260 0 0 SUCCESS"#,
        r#"Create "\d\a.ini" 0x120089 0x7 1 0x40 0x80 1 SUCCESS"#,
        "ReadX 1 0 100 100 SUCCESS",
        // The file has 1,000 bytes: SMB1 answers with success and no bytes.
        "ReadX 1 1000 100 0 NT_STATUS_OK",
        r#"Unlink "\d\gone" ERROR"#,
        "Close 1 SUCCESS",
    ];
    assert_eq!(lines, expected);
    // The later open reveals the size of the file that was queried.
    assert!(recorded.clients[0].files.contains("WriteX 0 0 1000 1000"), "{}", recorded.clients[0].files);
    assert_eq!(recorded.not_replayed, ["1 × SMB_COM_NT_TRANSACT: it waits for another client"]);
    assert!(recorded.repeats);
}

#[test]
fn what_cannot_be_replayed_is_listed_with_its_reason() {
    let mut encrypted = reads(5, 7, 0, 100);
    encrypted.command = Command::EncryptedFrame;
    let mut lost = reads(6, 7, 0, 100);
    lost.outcome = ExchangeOutcome::ResponseNotCaptured;
    let watch = command(2, smb2::Smb2Command::CHANGE_NOTIFY, CommandGroup::Waiting, 7);
    let exchanges = [open(0, "a", 7), watch, reads(3, 8, 0, 100), encrypted, lost, close(9, 7)];
    let recorded = recorded(&exchanges, None).unwrap().recorded;
    let expected = [
        "1 × CHANGE_NOTIFY: it waits for another client",
        "1 × READ of a file whose open is not replayed or not in the capture",
        "1 × encrypted: what it asks for can't be seen",
        "1 × incomplete in the capture (response_not_captured)",
    ];
    assert_eq!((recorded.commands, recorded.not_replayed), (2, expected.map(str::to_owned).to_vec()));
}

#[test]
fn a_file_that_is_changed_makes_a_recording_that_is_done_once() {
    let longer = Exchange {
        command: Command::Smb2(smb2::Smb2Command::WRITE),
        group: CommandGroup::Write,
        ..reads(2, 7, 990, 20)
    };
    let within = Exchange { offset: Some(0), ..longer.clone() };
    let repeats = |write| recorded(&[open(0, "a", 7), write, close(9, 7)], None).unwrap().recorded.repeats;
    assert_eq!([repeats(longer), repeats(within)], [false, true]);
}

#[test]
fn an_anonymous_recording_has_none_of_the_names() {
    let exchanges = [
        open(0, r"Customers\Miller\offer Miller.docx", 7),
        reads(3, 7, 0, 100),
        close(5, 7),
        open(6, r"Customers\Smith.pdf", 8),
        close(8, 8),
    ];
    let key = PseudonymKey::new([3; 32]);
    let text = recorded(&exchanges, Some(key)).unwrap().to_toml().to_lowercase();
    for name in ["customers", "miller", "offer", "smith"] {
        assert!(!text.contains(name), "{name} in {text}");
    }
    assert!(text.contains(".docx") && text.contains(".pdf"));
}

#[test]
fn a_capture_with_too_many_commands_is_refused() {
    let mut recorder = WorkloadRecorder::default();
    (0..=RECORDED_MAX).for_each(|_| recorder.take(&close(0, 7)));
    assert_eq!(recorder.finish(&RecordingOptions::default()).unwrap_err(), RecordingError::TooMany);
    assert_eq!(recorded(&[], None).unwrap_err(), RecordingError::Nothing(Vec::new()));
}

#[test]
fn the_first_mention_of_a_path_decides_and_what_is_above_is_there() {
    let mut files = RecordedPaths::default();
    files.find(r"a\b\new.txt", InitialPathState::Nothing);
    files.find(r"A\B\NEW.txt", InitialPathState::File { size: 5 });
    files.find(r"a\old.txt", InitialPathState::File { size: 3 });
    files.misses(r"x\y");
    let expected = "Mkdir \"\\a\" NT_STATUS_OK\nMkdir \"\\a\\b\" NT_STATUS_OK\n\
                    NTCreateX \"\\a\\old.txt\" 0x40 0x2 0 NT_STATUS_OK\nWriteX 0 0 3 3 NT_STATUS_OK\n\
                    Close 0 NT_STATUS_OK\n";
    assert_eq!(files.lines(), expected);
}

#[test]
fn sizes_and_names_that_no_server_has_are_cut() {
    let mut files = RecordedPaths::default();
    files.find("a", InitialPathState::File { size: u64::MAX });
    files.find("b", InitialPathState::File { size: 3 });
    assert_eq!((files.shortened(), files.lines().lines().count()), (1, 2 + 1_024 + 3));
    // A path of 32,000 levels has as many parent directories, 32,000 bytes long on average.
    let deep = "x\\".repeat(32_000);
    files.find(&deep, InitialPathState::Nothing);
    assert!(files.left_out > 0 && files.bytes <= RECORDED_PATHS_MAX, "{} bytes", files.bytes);
    assert!(files.lines().contains("\"\\b\""));
}

#[test]
fn the_latest_rename_counts() {
    let mut files = RecordedPaths::default();
    files.rename("one", "dir");
    files.rename("two", "dir");
    assert_eq!(files.original(r"DIR\f").as_deref(), Some(r"two\f"));
    files.rename("three", r"dir\sub");
    assert_eq!(files.original(r"dir\sub\f").as_deref(), Some(r"three\f"));
    assert_eq!((files.original(r"dir\sub"), files.original("other").as_deref()), (None, Some("other")));
}

#[test]
fn what_is_below_a_renamed_directory_was_below_its_old_name() {
    let mut files = RecordedPaths::default();
    files.find("old", InitialPathState::Directory);
    files.rename("old", "new");
    files.find(r"new\f", InitialPathState::File { size: 0 });
    files.find("new", InitialPathState::Directory);
    let expected =
        "Mkdir \"\\old\" NT_STATUS_OK\nNTCreateX \"\\old\\f\" 0x40 0x2 0 NT_STATUS_OK\nClose 0 NT_STATUS_OK\n";
    assert_eq!(files.lines(), expected);
}
