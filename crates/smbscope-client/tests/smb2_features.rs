//! Features of SMB2 and SMB3 other than plain reads and writes, against Samba: large transfers, compounds, leases,
//! blocking locks, watches, server-side copies, channels, encrypted shares, and refusals.

use crate::common::{self, DIALECTS, create, options, reading, run, samba, smb2, user_options};
use smbscope_client::{
    ByteRangeLock, Cipher, ClientError, ClientSession, ClientSigningPolicy, CreateDisposition, Credentials, Encryption,
    Info, ListingEntry, OpenParameters, Sample, Secret, SessionOptions, Transport, create_options, smb2,
};
use smbscope_lab::{LabDialect, LabServer, LabServerSettings, ServerSigningPolicy as LabSigning};
use smbscope_model::{Command, CommandGroup, ExchangeOutcome, Subcommand};
use smbscope_wire::smb2::Smb2Command;
use smbscope_wire::smb2::messages::copy_chunk::SrvCopyChunk;
use smbscope_wire::status::NtStatus;
use std::process::{Command as Program, Stdio};
use std::time::{Duration, Instant};

/// Returns the samples of a command, oldest first.
fn of(samples: &[Sample], command: Smb2Command) -> Vec<Sample> {
    samples.iter().filter(|sample| sample.command == Command::Smb2(command)).copied().collect()
}

#[test]
fn what_is_larger_than_a_command_goes_in_several_at_once() {
    let Some(server) = samba(&LabServerSettings::default()) else { return };
    let data: Vec<u8> = (0..3_000_005u32).map(|n| (n % 251) as u8).collect();
    for (dialect, credits) in [(0x0202, 8), (0x0311, 8), (0x0311, 64)] {
        let options = SessionOptions { credits, ..options(&server, dialect) };
        run(async {
            let mut session = ClientSession::connect(&options).await.unwrap();
            let file = session.open(&create("large")).await.unwrap().handle;
            session.samples().clear();
            session.write(file, 0, &data).await.unwrap();
            assert!(std::fs::read(server.share_folder().join("large")).unwrap() == data);
            assert!(session.read(file, 0, 3_000_005).await.unwrap() == &data[..]);
            let tail = session.read(file, 2_000_000, 4_000_000).await.unwrap();
            assert!(tail == &data[2_000_000..], "the end of the file cuts the answer short");
            let samples = std::mem::take(session.samples());
            let (writes, reads) = (of(&samples, Smb2Command::WRITE), of(&samples, Smb2Command::READ));
            if dialect == 0x0202 {
                // 3,000,005 bytes in parts of 64 KiB.
                assert_eq!(writes.len(), 46);
            }
            if credits == 8 {
                let overlap = |pair: &[Sample]| pair[1].request_first < pair[0].response_last;
                assert!(reads.windows(2).any(overlap), "several are outstanding at once");
            }
            session.disconnect().await.unwrap();
        });
    }
}

#[test]
fn a_compound_is_one_round_trip_in_every_protection() {
    let Some(server) = samba(&LabServerSettings::default()) else { return };
    for dialect in DIALECTS {
        for encryption in common::encryptions(dialect) {
            for signing in [ClientSigningPolicy::Off, ClientSigningPolicy::Required] {
                let options = SessionOptions { signing, encryption, compound: true, ..user_options(&server, dialect) };
                run(async {
                    let mut session = ClientSession::connect(&options).await.unwrap();
                    let file = session.open(&create("compound")).await.unwrap().handle;
                    session.write(file, 0, b"0123456789").await.unwrap();
                    session.close(file).await.unwrap();
                    session.samples().clear();
                    assert_eq!(session.open_read_close("compound", 8, 100).await.unwrap(), 2);
                    let info = session.query_path("compound", Info::FILE_STANDARD_INFORMATION).await.unwrap();
                    assert_eq!(info[8..16], [10, 0, 0, 0, 0, 0, 0, 0], "EndOfFile, MS-FSCC 2.4.47");
                    session.remove_file("compound").await.unwrap();
                    let samples = std::mem::take(session.samples());
                    assert_eq!(samples.len(), 3 + 3 + 2);
                    assert!(samples.iter().all(|sample| sample.compounded && sample.status == Some(NtStatus::SUCCESS)));
                    assert_eq!(samples[0].request_first, samples[2].request_first, "one frame");
                    assert_eq!(samples[3].request_last, samples[5].request_last, "one frame");
                    let missing = session.open_read_close("compound", 0, 1).await.unwrap_err();
                    let create = Command::Smb2(Smb2Command::CREATE);
                    assert!(
                        matches!(missing, ClientError::Status { command, status: NtStatus::OBJECT_NAME_NOT_FOUND } if command == create),
                        "{missing}"
                    );
                    session.disconnect().await.unwrap();
                });
            }
        }
    }
}

#[test]
fn a_long_listing_comes_in_pages_and_can_be_cut() {
    let Some(server) = samba(&LabServerSettings::default()) else { return };
    let folder = server.share_folder().join("many");
    std::fs::create_dir(&folder).unwrap();
    for number in 0..2000 {
        std::fs::write(folder.join(format!("file-{number:04}.txt")), "").unwrap();
    }
    for dialect in DIALECTS {
        run(async {
            let mut session = ClientSession::connect(&options(&server, dialect)).await.unwrap();
            let class = Info::FILE_BOTH_DIRECTORY_INFORMATION;
            let mut entries: Vec<ListingEntry> = Vec::new();
            assert_eq!(session.list(r"many\*", class, 0, Some(&mut entries)).await.unwrap(), 2002);
            let mut names: Vec<_> = entries.iter().map(|entry| entry.name.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!((names.len(), names[0], names[2001]), (2002, ".", "file-1999.txt"));
            assert!(of(session.samples(), Smb2Command::QUERY_DIRECTORY).len() > 2);
            assert_eq!(session.list(r"many\file-*7.txt", Info::FILE_NAMES_INFORMATION, 0, None).await.unwrap(), 200);
            assert_eq!(session.list(r"many\*", class, 7, Some(&mut entries)).await.unwrap(), 7);
            assert_eq!(session.list(r"many\*", class, 1, None).await.unwrap(), 1);
            let none = session.list(r"many\x*", class, 0, None).await.unwrap_err();
            assert_eq!(none.status(), Some(NtStatus::NO_SUCH_FILE));
        });
    }
}

#[test]
fn an_oplock_or_lease_is_given_back_while_its_holder_rests() {
    let Some(server) = samba(&LabServerSettings::default()) else { return };
    for dialect in DIALECTS {
        run(async {
            let holder_options = SessionOptions { leases: true, ..options(&server, dialect) };
            let mut holder = ClientSession::connect(&holder_options).await.unwrap();
            let mut other = ClientSession::connect(&options(&server, dialect)).await.unwrap();
            let held = holder.open(&create("held")).await.unwrap().handle;
            let until = Instant::now() + Duration::from_secs(1);
            let began = Instant::now();
            let opening = async {
                let opened = other.open(&create("held")).await;
                (opened, began.elapsed())
            };
            let (rest, (opened, waited)) = tokio::join!(holder.rest(until), opening);
            rest.unwrap();
            opened.unwrap();
            // Samba waits 35 s for a missing acknowledgement.
            assert!(waited < Duration::from_millis(900), "dialect {dialect:04x}: {waited:?}");
            let breaks = of(holder.samples(), Smb2Command::OPLOCK_BREAK);
            assert!(breaks.iter().all(|sample| sample.group == CommandGroup::Waiting));
            assert_eq!(breaks[0].outcome, ExchangeOutcome::ServerInitiated);
            assert_eq!(breaks[0].subcommand, Some(Subcommand::ServerInitiated));
            assert_eq!((breaks[1].outcome, breaks[1].status), (ExchangeOutcome::Complete, Some(NtStatus::SUCCESS)));
            holder.close(held).await.unwrap();
        });
    }
}

#[test]
fn a_lock_that_waits_is_granted_when_it_is_free() {
    let Some(server) = samba(&LabServerSettings::default()) else { return };
    for dialect in DIALECTS {
        run(async {
            let mut first = ClientSession::connect(&options(&server, dialect)).await.unwrap();
            // Longer than the timeout of other commands.
            let second_options = SessionOptions { timeout: Duration::from_millis(150), ..options(&server, dialect) };
            let mut second = ClientSession::connect(&second_options).await.unwrap();
            let mine = first.open(&create("locked")).await.unwrap().handle;
            let theirs = second.open(&create("locked")).await.unwrap().handle;
            let range = ByteRangeLock { offset: 0, length: 10, exclusive: true, wait: true };
            first.lock(mine, range).await.unwrap();
            let unlocking = async {
                tokio::time::sleep(Duration::from_millis(300)).await;
                first.unlock(mine, 0, 10).await
            };
            let (locked, unlocked) = tokio::join!(second.lock(theirs, range), unlocking);
            unlocked.unwrap();
            locked.unwrap();
            let sample = *second.samples().last().unwrap();
            assert_eq!((sample.group, sample.status), (CommandGroup::Waiting, Some(NtStatus::SUCCESS)));
            assert!(sample.interim.is_some() && sample.response_time().unwrap() >= Duration::from_millis(290));
        });
    }
}

#[test]
fn a_watch_tells_of_changes_while_other_commands_go_on() {
    let Some(server) = samba(&LabServerSettings::default()) else { return };
    for dialect in DIALECTS {
        run(async {
            let mut session = ClientSession::connect(&options(&server, dialect)).await.unwrap();
            let directory = OpenParameters { path: "", options: create_options::DIRECTORY, ..reading("") };
            let root = session.open(&directory).await.unwrap().handle;
            // FILE_NOTIFY_CHANGE_FILE_NAME
            smb2(&mut session).watch(root, 1, false).await.unwrap();
            // Samba's notifyd learns of a request after smbd, and changes made before are not told.
            tokio::time::sleep(Duration::from_millis(200)).await;
            session.make_directory("elsewhere").await.unwrap();
            session.remove_directory("elsewhere").await.unwrap();
            let file = session.open(&create("new.txt")).await.unwrap().handle;
            session.close(file).await.unwrap();
            let changes = smb2(&mut session).changes().await.unwrap();
            assert_eq!((changes[0].action, changes[0].name.as_str()), (1, "new.txt"));
            smb2(&mut session).watch(root, 1, false).await.unwrap();
            smb2(&mut session).cancel_watch().await.unwrap();
            let cancelled = smb2(&mut session).changes().await.unwrap_err();
            assert_eq!(cancelled.status(), Some(NtStatus::CANCELLED));
            session.remove_file("new.txt").await.unwrap();
            let samples = of(session.samples(), Smb2Command::CHANGE_NOTIFY);
            assert_eq!(samples.len(), 2);
            assert!(samples.iter().all(|sample| sample.group == CommandGroup::Waiting));
            session.disconnect().await.unwrap();
        });
    }
}

#[test]
fn the_server_copies_and_tells_its_interfaces() {
    let Some(server) = samba(&LabServerSettings::default()) else { return };
    for dialect in DIALECTS {
        run(async {
            let connected = ClientSession::connect(&options(&server, dialect)).await.unwrap();
            let ClientSession::Smb2(mut session) = connected else { unreachable!() };
            let source = session.open(&create("from")).await.unwrap().handle;
            session.write(source, 0, b"0123456789").await.unwrap();
            let target = session.open(&create("to")).await.unwrap().handle;
            let key = session.resume_key(source).await.unwrap();
            let chunk = |source_offset, target_offset, length| SrvCopyChunk { source_offset, target_offset, length };
            let copied = session.copy_chunks(key, target, &[chunk(5, 0, 5), chunk(0, 5, 5)]).await.unwrap();
            assert_eq!(copied, 10);
            assert_eq!(std::fs::read(server.share_folder().join("to")).unwrap(), b"5678901234");
            let interfaces = session.network_interfaces().await;
            // Added in SMB 3, but Samba answers in older dialects too.
            if dialect >= 0x0300 {
                assert!(interfaces.unwrap().iter().any(|interface| interface.address.is_loopback()));
            }
        });
    }
}

#[test]
fn a_further_channel_works_with_the_files_of_the_first() {
    let Some(server) = samba(&LabServerSettings::default()) else { return };
    for dialect in [0x0300, 0x0302, 0x0311] {
        for encryption in common::encryptions(dialect) {
            for signing in [ClientSigningPolicy::On, ClientSigningPolicy::Required] {
                let options = SessionOptions { signing, encryption, ..user_options(&server, dialect) };
                run(async {
                    let connected = ClientSession::connect(&options).await.unwrap();
                    let ClientSession::Smb2(mut first) = connected else { unreachable!() };
                    let mut second = first.bind(&options).await.unwrap();
                    assert_eq!(second.facts().cipher, first.facts().cipher);
                    let file = first.open(&create("shared")).await.unwrap().handle;
                    second.write(file, 0, b"by the second").await.unwrap();
                    assert_eq!(first.read(file, 0, 100).await.unwrap(), b"by the second");
                    let (one, two) = tokio::join!(first.echo(), second.echo());
                    one.and(two).unwrap();
                    let id = |session: &mut smb2::Smb2ClientSession| session.samples().last().unwrap().session_id;
                    assert_eq!(id(&mut first), id(&mut second));
                    second.disconnect().await.unwrap();
                    first.close(file).await.unwrap();
                    first.disconnect().await.unwrap();
                });
            }
        }
    }
    let guest = options(&server, 0x0311);
    run(async {
        let ClientSession::Smb2(mut first) = ClientSession::connect(&guest).await.unwrap() else { unreachable!() };
        assert!(matches!(first.bind(&guest).await, Err(ClientError::Unsupported(_))));
    });
}

#[test]
fn an_encrypted_share_is_encrypted_without_being_asked_for() {
    let Some(server) = samba(&LabServerSettings::default()) else { return };
    for dialect in DIALECTS {
        let options = SessionOptions { share: server.encrypted_share().to_owned(), ..user_options(&server, dialect) };
        run(async {
            let connected = ClientSession::connect(&options).await;
            if dialect < 0x0300 {
                let error = connected.unwrap_err();
                assert_eq!(error.status(), Some(NtStatus::ACCESS_DENIED), "{error}");
                assert!(error.to_string().contains("encryption"), "{error}");
                return;
            }
            let mut session = connected.unwrap();
            assert!(session.facts().cipher.is_some());
            session.open_read_close("nothing", 0, 1).await.unwrap_err();
            assert!(session.samples().last().unwrap().encrypted);
            session.disconnect().await.unwrap();
        });
    }
}

#[test]
fn a_server_that_requires_signing_gets_it_or_is_refused() {
    let Some(server) = samba(&LabServerSettings { signing: LabSigning::Required, ..LabServerSettings::default() })
    else {
        return;
    };
    for dialect in DIALECTS {
        let signed = SessionOptions { signing: ClientSigningPolicy::On, ..user_options(&server, dialect) };
        let unsigned = SessionOptions { signing: ClientSigningPolicy::Off, ..signed.clone() };
        run(async {
            let mut session = ClientSession::connect(&signed).await.unwrap();
            assert!(session.facts().signing.is_some());
            session.echo().await.unwrap();
            let refused = ClientSession::connect(&unsigned).await.unwrap_err();
            assert!(
                matches!(refused, ClientError::Unsupported(ref text) if text.contains("requires signing")),
                "{refused}"
            );
        });
    }
}

#[test]
fn what_a_server_refuses_is_named_with_a_hint() {
    let Some(server) = samba(&LabServerSettings { max_dialect: LabDialect::Smb210, ..LabServerSettings::default() })
    else {
        return;
    };
    let refusal = |options: &SessionOptions| run(ClientSession::connect(options)).unwrap_err();
    let dialect = refusal(&options(&server, 0x0311));
    assert!(dialect.to_string().contains("3.1.1") && dialect.to_string().contains("--dialect"), "{dialect}");

    let password = Secret::new("wrong".to_owned());
    let user = server.user().to_owned();
    let credentials = Credentials::Ntlm { domain: String::new(), user, password };
    let logon = refusal(&SessionOptions { credentials, ..options(&server, 0x0210) });
    assert_eq!(logon.status(), Some(NtStatus::LOGON_FAILURE));
    assert!(logon.to_string().contains("password"), "{logon}");

    let share = refusal(&SessionOptions { share: "missing".to_owned(), ..options(&server, 0x0210) });
    assert_eq!(share.status(), Some(NtStatus::BAD_NETWORK_NAME));
    assert!(share.to_string().contains("missing"), "{share}");

    let encryption = Encryption::Required(Some(Cipher::Aes256Gcm));
    let cipher = refusal(&SessionOptions { encryption, ..user_options(&server, 0x0210) });
    assert!(matches!(cipher, ClientError::Unsupported(ref text) if text.contains("2.1")), "{cipher}");
}

#[test]
fn an_anonymous_session_is_one_without_keys() {
    let Some(server) = samba(&LabServerSettings::default()) else { return };
    for dialect in DIALECTS {
        let options = SessionOptions { credentials: Credentials::Anonymous, ..options(&server, dialect) };
        run(async {
            let mut session = ClientSession::connect(&options).await.unwrap();
            assert!(session.facts().guest);
            session.echo().await.unwrap();
            session.disconnect().await.unwrap();
        });
    }
}

#[test]
fn netbios_and_ipv6_lead_to_the_same_share() {
    let Some(server) = samba(&LabServerSettings::default()) else { return };
    for dialect in DIALECTS {
        let netbios = SessionOptions { transport: Transport::NetBios, ..options(&server, dialect) };
        let ipv6 = SessionOptions {
            address: (std::net::Ipv6Addr::LOCALHOST, server.port()).into(),
            ..options(&server, dialect)
        };
        for options in [netbios, ipv6] {
            if options.address.is_ipv6() && std::net::TcpStream::connect(options.address).is_err() {
                println!("skipped IPv6: nothing listens on {}", options.address);
                continue;
            }
            run(async {
                let mut session =
                    ClientSession::connect(&options).await.unwrap_or_else(|error| panic!("{options:?}: {error}"));
                let data = vec![5; 300_000];
                let file = session.open(&create("way")).await.unwrap().handle;
                session.write(file, 0, &data).await.unwrap();
                assert!(session.read(file, 0, 300_000).await.unwrap() == &data[..]);
                session.disconnect().await.unwrap();
            });
        }
    }
}

#[test]
fn tshark_finds_nothing_malformed_in_what_we_send() {
    let Some(server) = samba(&LabServerSettings::default()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("traffic.pcap");
    let Some(mut tcpdump) = capture(&server, &file) else { return };
    for dialect in DIALECTS {
        for compound in [false, true] {
            let options = SessionOptions { compound, leases: true, ..user_options(&server, dialect) };
            run(everything(&options));
        }
    }
    std::thread::sleep(Duration::from_millis(500));
    let _ = Program::new("kill").args(["-INT", &tcpdump.id().to_string()]).status();
    tcpdump.wait().unwrap();
    let port = format!("tcp.port=={},nbss", server.port());
    // Only our own messages count: tshark complains about the security buffer of Samba's NEGOTIATE.
    let wrong = "_ws.malformed || _ws.expert.severity == error || _ws.expert.group == \"Malformed\"";
    let filter = format!("tcp.dstport == {} && ({wrong})", server.port());
    let tshark = |filter: &str, fields: &[&str]| {
        let mut program = Program::new("tshark");
        program.arg("-r").arg(&file).args(["-d", &port, "-Y", filter]).args(fields);
        program.stderr(Stdio::null()).output().map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let Ok(requests) = tshark("smb2.flags.response == 0", &["-T", "fields", "-e", "smb2.cmd"]) else {
        smbscope_testkit::skip::unable("tshark is not installed");
        return;
    };
    let seen: std::collections::BTreeSet<&str> = requests.lines().flat_map(|line| line.split(',')).collect();
    for command in ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17"] {
        assert!(seen.contains(command), "command {command} is in the capture: {seen:?}");
    }
    assert_eq!(tshark(&filter, &[]).unwrap(), "");
}

/// Captures the loopback interface, if permitted.
fn capture(server: &LabServer, file: &std::path::Path) -> Option<std::process::Child> {
    let port = server.port().to_string();
    let mut program = Program::new("tcpdump");
    program.args(["-i", "lo", "-U", "-B", "16384", "-w"]).arg(file).args(["tcp", "port", &port]);
    let Ok(mut tcpdump) = program.stderr(Stdio::null()).spawn() else {
        smbscope_testkit::skip::missing("tcpdump is not installed");
        return None;
    };
    let patience = Instant::now() + Duration::from_secs(5);
    while Instant::now() < patience {
        // tcpdump writes the file's header once it is listening.
        if std::fs::metadata(file).is_ok_and(|file| file.len() >= 24) {
            return Some(tcpdump);
        }
        if tcpdump.try_wait().is_ok_and(|status| status.is_some()) {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    smbscope_testkit::skip::unable("capturing is not permitted");
    let _ = tcpdump.kill();
    let _ = tcpdump.wait();
    None
}

/// Sends every request that the client supports.
async fn everything(options: &SessionOptions) {
    let mut session = ClientSession::connect(options).await.unwrap();
    let _ = session.make_directory("all").await;
    let file = session.open(&create(r"all\a")).await.unwrap().handle;
    session.write(file, 0, &[1; 100]).await.unwrap();
    session.flush(file).await.unwrap();
    session.read(file, 0, 100).await.unwrap();
    session.lock(file, ByteRangeLock { offset: 0, length: 1, exclusive: false, wait: false }).await.unwrap();
    session.unlock(file, 0, 1).await.unwrap();
    session.query_file(file, Info::FILE_ALL_INFORMATION).await.unwrap();
    let basic =
        smbscope_client::SetInfo::Basic { creation: 0, last_access: 0, last_write: 0, change: 0, attributes: 0x20 };
    session.set_file(file, basic).await.unwrap();
    let key = smb2(&mut session).resume_key(file).await.unwrap();
    let chunk = SrvCopyChunk { source_offset: 0, target_offset: 200, length: 50 };
    smb2(&mut session).copy_chunks(key, file, &[chunk]).await.unwrap();
    let _ = smb2(&mut session).network_interfaces().await;
    session.close(file).await.unwrap();
    session.rename(r"all\a", r"all\b").await.unwrap();
    session.query_path(r"all\b", Info::FILE_NETWORK_OPEN_INFORMATION).await.unwrap();
    session.open_read_close(r"all\b", 0, 10).await.unwrap();
    session.query_file_system(Info::FILE_FS_VOLUME_INFORMATION).await.unwrap();
    session.list(r"all\*", Info::FILE_ID_FULL_DIRECTORY_INFORMATION, 0, None).await.unwrap();
    let directory =
        OpenParameters { options: create_options::DIRECTORY, disposition: CreateDisposition::Open, ..reading("all") };
    let root = session.open(&directory).await.unwrap().handle;
    smb2(&mut session).watch(root, 0x17, true).await.unwrap();
    smb2(&mut session).cancel_watch().await.unwrap();
    let _ = smb2(&mut session).changes().await;
    session.close(root).await.unwrap();
    session.remove_file(r"all\b").await.unwrap();
    session.remove_directory("all").await.unwrap();
    session.echo().await.unwrap();
    session.disconnect().await.unwrap();
}
