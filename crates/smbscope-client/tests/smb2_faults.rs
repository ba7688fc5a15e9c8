//! The client with a faulty server: it reports the error, keeps its measurements, and neither panics nor hangs.

use crate::common::{self, options, reading, run, samba, user_options};
use smbscope_client::{ClientError, ClientSession, ClientSigningPolicy, Encryption, SessionOptions};
use smbscope_lab::LabServerSettings;
use smbscope_model::{Command, CommandGroup, Dialect, ExchangeOutcome, Subcommand};
use smbscope_testkit::server::{Fault, Malformed, Script, ScriptedServer};
use smbscope_wire::smb2;
use smbscope_wire::status::NtStatus;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const READ: Command = Command::Smb2(smb2::Smb2Command::READ);

/// Returns a server with faulty responses to READ, and options for it.
fn faulty(fault: Fault) -> (ScriptedServer, SessionOptions) {
    let server = ScriptedServer::start(Script::new().rule(fault.on(smb2::Smb2Command::READ))).unwrap();
    let mut options = SessionOptions::new("127.0.0.1", server.address(), "share");
    options.timeout = Duration::from_millis(300);
    (server, options)
}

/// Opens and reads a file. Returns the session and the result of the read.
async fn read(options: &SessionOptions) -> (ClientSession, Result<(), ClientError>) {
    let mut session = ClientSession::connect(options).await.unwrap();
    let file = session.open(&reading("a")).await.unwrap().handle;
    let result = session.read(file, 0, 10).await.map(|_| ());
    (session, result)
}

#[test]
fn a_reset_ends_the_session_and_leaves_the_read_unanswered() {
    for (fault, kind) in [(Fault::Reset, ErrorKind::ConnectionReset), (Fault::Close, ErrorKind::UnexpectedEof)] {
        let (_server, options) = faulty(fault);
        let (mut session, result) = run(read(&options));
        let error = result.unwrap_err();
        assert!(error.is_fatal());
        assert!(matches!(error, ClientError::Connection { ref error, .. } if error.kind() == kind), "{error:?}");
        let last = session.samples().last().unwrap();
        assert_eq!((last.command, last.outcome, last.status), (READ, ExchangeOutcome::Unanswered, None));
    }
}

#[test]
fn a_server_that_is_silent_is_given_up_in_time_with_a_cancel() {
    let (_server, options) = faulty(Fault::Silent);
    run(async {
        let began = Instant::now();
        let (mut session, result) = read(&options).await;
        assert!(matches!(result, Err(ClientError::TimedOut { command: READ, .. })), "{result:?}");
        assert!(began.elapsed() < Duration::from_secs(2));
        let samples = session.samples();
        let outcomes: Vec<_> = samples.iter().rev().take(2).map(|sample| (sample.command, sample.outcome)).collect();
        let cancel = Command::Smb2(smb2::Smb2Command::CANCEL);
        assert!(outcomes.contains(&(READ, ExchangeOutcome::Unanswered)), "{outcomes:?}");
        assert!(outcomes.contains(&(cancel, ExchangeOutcome::NoResponseByDesign)), "{outcomes:?}");
    });
}

#[test]
fn an_interim_response_is_noted_and_ends_nothing() {
    let (_server, options) = faulty(Fault::Pending(Duration::from_millis(50)));
    run(async {
        let (mut session, result) = read(&options).await;
        result.unwrap();
        let sample = *session.samples().last().unwrap();
        let interim = sample.interim.expect("STATUS_PENDING came first");
        assert!(sample.request_last <= interim && interim < sample.response_last);
        assert!(sample.response_time().unwrap() >= Duration::from_millis(50));
        assert_eq!(sample.status, Some(NtStatus::SUCCESS));
    });
}

#[test]
fn a_refused_command_leaves_the_session_usable() {
    let (_server, options) = faulty(Fault::Status(NtStatus::INSUFFICIENT_RESOURCES));
    run(async {
        let (mut session, result) = read(&options).await;
        let error = result.unwrap_err();
        assert_eq!((error.status(), error.is_fatal()), (Some(NtStatus::INSUFFICIENT_RESOURCES), false));
        session.echo().await.unwrap();
    });
}

#[test]
fn a_break_between_two_commands_is_acknowledged_where_it_must_be() {
    // The scripted server doesn't wait for a lease acknowledgement. Samba does, in another test.
    let acknowledged = Some(ExchangeOutcome::Complete);
    for (fault, dialect, expected) in [(Fault::OplockBreak, 0x0202, acknowledged), (Fault::LeaseBreak, 0x0311, None)] {
        let script = Script { oplocks: true, ..Script::new() };
        let server = ScriptedServer::start(script.rule(fault.on(smb2::Smb2Command::READ).once())).unwrap();
        let mut options = SessionOptions::new("127.0.0.1", server.address(), "share");
        options.dialect = Dialect::Smb2(dialect);
        options.leases = true;
        run(async {
            let (mut session, result) = read(&options).await;
            result.unwrap();
            session.echo().await.unwrap();
            let breaks: Vec<_> =
                session.samples().iter().filter(|sample| sample.group == CommandGroup::Waiting).collect();
            assert_eq!(breaks[0].outcome, ExchangeOutcome::ServerInitiated, "{fault:?}");
            assert_eq!(breaks[0].subcommand, Some(Subcommand::ServerInitiated));
            let acknowledged = breaks.get(1).map(|sample| sample.outcome);
            assert_eq!(acknowledged, expected, "{fault:?}: the acknowledgement was answered");
        });
    }
}

#[test]
fn keep_alives_and_pieces_of_frames_do_no_harm() {
    let piece = Fault::Dribble { piece: 7, pause: Duration::from_millis(5) };
    for fault in [Fault::KeepAlive, piece] {
        let (_server, options) = faulty(fault);
        run(async {
            let (mut session, result) = read(&options).await;
            result.unwrap_or_else(|error| panic!("{fault:?}: {error}"));
            let sample = *session.samples().last().unwrap();
            if fault == piece {
                // On a busy machine, one read may return several pieces, but hardly all of them.
                assert!(sample.response_last - sample.response_first >= Duration::from_millis(5), "{sample:?}");
            }
        });
    }
}

#[test]
fn no_broken_answer_makes_the_client_panic_or_hang() {
    let mut broken = vec![
        Malformed::ProtocolId,
        Malformed::StructureSize,
        Malformed::OffsetBehindEnd,
        Malformed::LengthBehindEnd,
        Malformed::FrameLength,
        Malformed::FrameType,
        Malformed::Truncated(0),
        Malformed::Truncated(63),
        Malformed::Truncated(70),
        Malformed::CutOff(30),
        Malformed::MessageId,
        Malformed::WithoutRequest,
        Malformed::Command,
        Malformed::NotAResponse,
        Malformed::NextCommand,
        Malformed::Encrypted,
    ];
    // A duplicate response is noticed only while waiting for the next one.
    let twice = Malformed::Twice;
    broken.push(twice);
    for malformed in broken {
        let (_server, options) = faulty(Fault::Malformed(malformed));
        run(async {
            let began = Instant::now();
            let (mut session, result) = read(&options).await;
            let result = if malformed == twice { session.echo().await } else { result };
            let error = result.expect_err("a broken answer is no answer");
            assert!(error.is_fatal(), "{malformed:?}: {error}");
            assert!(began.elapsed() < Duration::from_secs(3), "{malformed:?}");
        });
    }
}

#[test]
fn a_server_that_grants_no_credits_is_named_and_not_waited_for() {
    let script = Script::new().rule(Fault::Malformed(Malformed::NoCredits).always());
    let server = ScriptedServer::start(script).unwrap();
    let options = SessionOptions::new("127.0.0.1", server.address(), "share");
    let error = run(ClientSession::connect(&options)).unwrap_err();
    assert!(matches!(error, ClientError::Protocol(ref text) if text.contains("credits")), "{error}");
}

#[test]
fn another_dialect_than_the_one_asked_for_is_refused() {
    let script = Script { dialects: vec![0x0210], ..Script::new() };
    let server = ScriptedServer::start(script).unwrap();
    let options = SessionOptions::new("127.0.0.1", server.address(), "share");
    let error = run(ClientSession::connect(&options)).unwrap_err().to_string();
    assert!(error.contains("3.1.1"), "{error}");
}

#[test]
fn a_server_that_nobody_listens_for_is_a_refused_connection() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = run(ClientSession::connect(&SessionOptions::new("127.0.0.1", address, "share"))).unwrap_err();
    assert!(
        matches!(error, ClientError::Unreachable { ref error, .. } if error.kind() == ErrorKind::ConnectionRefused)
    );
}

#[test]
fn a_killed_samba_ends_the_session() {
    let Some(server) = samba(&LabServerSettings::default()) else { return };
    run(async {
        let mut session = ClientSession::connect(&options(&server, 0x0311)).await.unwrap();
        server.kill();
        let error = session.echo().await.unwrap_err();
        assert!(matches!(error, ClientError::Connection { .. }), "{error}");
        let last = session.samples().last().unwrap();
        assert_eq!(last.outcome, ExchangeOutcome::Unanswered);
    });
}

#[test]
fn answers_that_were_changed_on_the_way_are_noticed() {
    let Some(server) = samba(&LabServerSettings::default()) else { return };
    for dialect in common::DIALECTS {
        for encryption in common::encryptions(dialect) {
            let (address, change) = changing_proxy(server.address());
            let signing = ClientSigningPolicy::Required;
            let options = SessionOptions { address, signing, encryption, ..user_options(&server, dialect) };
            run(async {
                let mut session = ClientSession::connect(&options).await.unwrap();
                session.echo().await.unwrap();
                change.store(true, Ordering::SeqCst);
                let error = session.echo().await.unwrap_err();
                let expected = if encryption == Encryption::Off { "signature" } else { "authentication tag" };
                assert!(
                    matches!(error, ClientError::Tampered { what, .. } if what == expected),
                    "{dialect:04x}: {error}"
                );
            });
        }
    }
}

#[test]
fn a_changed_negotiation_is_noticed_by_its_validation() {
    let Some(server) = samba(&LabServerSettings::default()) else { return };
    for dialect in [0x0300, 0x0302, 0x0311] {
        let (address, change) = changing_proxy(server.address());
        // The response itself is unprotected: 3.0 validates it once there are keys, 3.1.1 derives the keys from it.
        change.store(true, Ordering::SeqCst);
        let options = SessionOptions { address, ..user_options(&server, dialect) };
        let error = run(ClientSession::connect(&options)).unwrap_err();
        assert!(matches!(error, ClientError::Tampered { .. }), "{dialect:04x}: {error}");
    }
}

/// Returns a proxy to the server that can be told to flip the last bit of every response. If told at once, it
/// changes only the NEGOTIATE response, in a capability that this client doesn't use (persistent handles).
fn changing_proxy(server: SocketAddr) -> (SocketAddr, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let change = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&change);
    std::thread::spawn(move || {
        let mut client = listener.accept().unwrap().0;
        let mut upstream = TcpStream::connect(server).unwrap();
        let (mut from, mut to) = (client.try_clone().unwrap(), upstream.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut from, &mut to));
        let mut header = [0; 4];
        let at_once = told.load(Ordering::SeqCst);
        let mut first = true;
        while upstream.read_exact(&mut header).is_ok() {
            let mut frame = vec![0; u32::from_be_bytes(header) as usize];
            upstream.read_exact(&mut frame).unwrap();
            if std::mem::take(&mut first) && at_once {
                frame[88] ^= 0x10;
            } else if !at_once && told.load(Ordering::SeqCst) {
                *frame.last_mut().unwrap() ^= 1;
            }
            if client.write_all(&header).and_then(|()| client.write_all(&frame)).is_err() {
                return;
            }
        }
    });
    (address, change)
}
