//! Responses that violate the protocol, by design or by randomly changed bytes: a clear error, in time, and never a
//! panic. The last part tests the parsers on their own, without a client.

use super::{DIALECTS, Step, assert_clear, is_smb1, life, options, run, server};
use proptest::prelude::*;
use smbscope_client::ClientError;
use smbscope_model::Dialect;
use smbscope_testkit::server::{Fault, Malformed, ScriptedServer};
use smbscope_testkit::smb1::Part;
use smbscope_testkit::{framed, smb1 as say_smb1, smb2 as say};
use smbscope_wire::names::{InfoLevel, Trans2};
use smbscope_wire::smb1::messages as smb1;
use smbscope_wire::smb2::Smb2Header;
use smbscope_wire::smb2::messages::{
    change_notify, copy_chunk, create, error, ioctl, negotiate, network_interface, oplock_break, query_directory,
    query_info, read, session_setup, tree_connect, validate_negotiate, write,
};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Mutex, OnceLock};
use std::thread;

/// Number of concurrent sessions.
const THREADS: usize = 8;

/// Runs a step on its own session for each case. Returns the outcomes.
fn outcomes(cases: &[(Dialect, Step, Malformed)]) -> Vec<(Dialect, Step, Malformed, Result<(), ClientError>)> {
    let next = Mutex::new(cases.iter());
    let done = Mutex::new(Vec::new());
    let work = || {
        loop {
            let case = next.lock().expect("nobody panics with it").next();
            let Some((dialect, step, how)) = case.copied() else { return };
            let opens_before = u64::from(step == Step::Open);
            let server = server([Fault::Malformed(how).on(step.command(dialect)).after(opens_before)]);
            let (result, _) = run(life(&options(&server, dialect), step));
            assert_eq!(server.counters().faults.min(1), 1, "{dialect:?} {step:?}: the command was never sent");
            done.lock().expect("nobody panics with it").push((dialect, step, how, result));
        }
    };
    thread::scope(|scope| (0..THREADS).for_each(|_| drop(scope.spawn(work))));
    done.into_inner().expect("nobody panicked with it")
}

fn cases(kinds: &[Malformed]) -> Vec<(Dialect, Step, Malformed)> {
    let mut cases = Vec::new();
    for dialect in DIALECTS {
        for step in Step::ALL {
            cases.extend(kinds.iter().map(|how| (dialect, step, *how)));
        }
    }
    cases
}

/// Asserts that every case is a fatal error with a clear message.
fn assert_all_fail(cases: &[(Dialect, Step, Malformed)]) {
    let mut wrong = Vec::new();
    for (dialect, step, how, result) in outcomes(cases) {
        match result {
            Err(error) if error.is_fatal() => assert_clear(&error),
            other => wrong.push(format!("{dialect:?} {step:?} {how:?}: {other:?}")),
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn messages_that_are_none_are_errors() {
    assert_all_fail(&cases(&[
        Malformed::ProtocolId,
        Malformed::FrameType,
        Malformed::Command,
        Malformed::NotAResponse,
        Malformed::MessageId,
        Malformed::Encrypted,
    ]));
}

#[test]
fn messages_that_end_too_early_are_errors() {
    assert_all_fail(&cases(&[
        Malformed::Truncated(0),
        Malformed::Truncated(3),
        Malformed::Truncated(31),
        Malformed::CutOff(0),
        Malformed::CutOff(30),
        Malformed::FrameLength,
    ]));
}

#[test]
fn answers_without_their_body_are_errors() {
    let mut cases = cases(&[Malformed::StructureSize]);
    // A listing is long enough for 99 words, and the client reads nothing from the words themselves.
    cases.retain(|(dialect, step, _)| !(is_smb1(*dialect) && *step == Step::List));
    for dialect in DIALECTS.into_iter().filter(|dialect| !is_smb1(*dialect)) {
        for how in [Malformed::Truncated(63), Malformed::Truncated(64), Malformed::Truncated(65)] {
            cases.extend(Step::ALL.map(|step| (dialect, step, how)));
        }
    }
    assert_all_fail(&cases);
}

#[test]
fn offsets_and_lengths_behind_the_end_are_errors() {
    let mut cases = Vec::new();
    for how in [Malformed::OffsetBehindEnd, Malformed::LengthBehindEnd] {
        for dialect in DIALECTS {
            for step in [Step::Read, Step::Query, Step::QueryFileSystem, Step::List] {
                cases.push((dialect, step, how));
            }
            if !is_smb1(dialect) {
                cases.push((dialect, Step::SessionSetup, how));
                cases.push((dialect, Step::Negotiate, how));
            }
        }
    }
    assert_all_fail(&cases);
}

#[test]
fn what_a_client_may_ignore_hangs_it_no_more_than_it_breaks_it() {
    let kinds = [
        Malformed::WithoutRequest,
        Malformed::Twice,
        Malformed::NoCredits,
        Malformed::NextCommand,
        Malformed::WrongSignature,
    ];
    for (dialect, step, how, result) in outcomes(&cases(&kinds)) {
        if let Err(error) = result {
            assert_clear(&error);
            assert!(error.is_fatal(), "{dialect:?} {step:?} {how:?}: {error}");
            // A client that ignores it and waits for the right response would get that.
            assert!(!matches!(error, ClientError::TimedOut { .. }), "{dialect:?} {step:?} {how:?}: {error}");
        }
    }
}

/// Number of responses to change, per command.
const SEEDS: u64 = 12;

#[test]
fn no_change_of_a_good_answer_makes_a_client_panic_or_hang() {
    let mut cases = Vec::new();
    for (dialect, kind) in DIALECTS.into_iter().zip(0..) {
        for (step, number) in Step::ALL.into_iter().zip(0..) {
            let first = SEEDS * (number + Step::ALL.len() as u64 * kind);
            cases.extend((first..first + SEEDS).map(|seed| (dialect, step, Malformed::Random(seed))));
        }
    }
    let outcomes = outcomes(&cases);
    assert_eq!(outcomes.len(), cases.len());
    let errors: Vec<_> = outcomes.iter().filter_map(|(.., result)| result.as_ref().err()).collect();
    errors.iter().for_each(|error| assert_clear(error));
    // Headers and bodies are small, so most changes are noticed.
    assert!(errors.len() > cases.len() / 4, "{} errors in {} cases", errors.len(), cases.len());
}

/// Sends messages to the scripted server and returns the responses.
fn ask_all(messages: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let server: ScriptedServer = server([]);
    let mut stream = TcpStream::connect(server.address()).expect("the server listens");
    let ask = |message: Vec<u8>| {
        stream.write_all(&framed(message)).expect("the server reads");
        let mut header = [0; 4];
        stream.read_exact(&mut header).expect("an answer");
        let mut answer = vec![0; u32::from_be_bytes(header) as usize];
        stream.read_exact(&mut answer).expect("all of it");
        answer
    };
    messages.into_iter().map(ask).collect()
}

/// Valid responses to a request of each kind.
fn answers() -> &'static [Vec<u8>] {
    static ANSWERS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    ANSWERS.get_or_init(|| {
        let mut answers = ask_all(vec![
            say::negotiate(0, &[0x0210, 0x0311]).into(),
            say::session_setup_begin(1).into(),
            say::session_setup(2, "", "somebody").into(),
            say::tree_connect(3, r"\\server\share").into(),
            say::create(4, "a.txt").into(),
            say::read(5, 2, 0, 64).into(),
            say::write(6, 2, 0, b"data").into(),
            say::query_info(7, 2).into(),
            say::query_directory(8, 3, "*").into(),
            say::notify(9, 3).into(),
        ]);
        answers.push(say::oplock_break(2).into());
        answers
    })
}

fn smb1_answers() -> &'static [Vec<u8>] {
    static ANSWERS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    ANSWERS.get_or_init(|| {
        let mut answers = ask_all(vec![
            say_smb1::negotiate(0, &["NT LM 0.12"]).into(),
            say_smb1::session_setup(1, "", "somebody").into(),
            say_smb1::tree_connect(2, r"\\server\share").into(),
            say_smb1::nt_create(3, "a.txt").into(),
            say_smb1::read_andx(4, 2, 0, 64).into(),
            say_smb1::write_andx(5, 2, 0, b"data").into(),
            // SMB_QUERY_FILE_BASIC_INFO (MS-CIFS 2.2.2.3.3).
            say_smb1::trans2(6, Trans2::QUERY_PATH_INFORMATION, b"\x01\x01\0\0\0\0a.txt\0", Part::whole(0)).into(),
            say_smb1::echo(7, 1, b"data").into(),
            say_smb1::close(8, 2).into(),
        ]);
        answers.push(say_smb1::oplock_break(2).into());
        answers
    })
}

/// Parses a message as every type it could be, down to the last borrowed byte. Returns a count of what was found.
fn read_as_everything(message: &[u8]) -> usize {
    let mut seen = usize::from(Smb2Header::parse(message).is_some());
    if let Some(response) = negotiate::Response::parse(message) {
        let contexts = response.contexts;
        seen += response.security_buffer.len() + contexts.iter().count();
        seen += usize::from(contexts.cipher().or(contexts.signing_algorithm()).or(contexts.hash_algorithm()).is_some());
    }
    seen += session_setup::Response::parse(message).map_or(0, |response| 1 + response.token.len());
    seen += usize::from(tree_connect::Response::parse(message).is_some());
    if let Some(response) = create::Response::parse(message) {
        seen += 1 + usize::from(response.contexts.lease().is_some() || response.contexts.is_durable());
    }
    seen += read::Response::parse(message).map_or(0, |response| response.data.len());
    seen += usize::from(write::Response::parse(message).is_some());
    seen += ioctl::Response::parse(message).map_or(0, |response| read_as_output(response.output));
    seen += query_info::Response::parse(message).map_or(0, |response| 1 + read_as_output(response.output));
    seen += change_notify::Response::parse(message).map_or(0, |response| response.changes().count());
    if let Some(response) = query_directory::Response::parse(message) {
        for class in [1, 2, 3, 12, 37, 38] {
            let entries = response.entries(InfoLevel::File(class)).into_iter().flatten();
            seen += entries.map(|entry| entry.name_text().len()).sum::<usize>();
        }
    }
    if let Some(error) = error::Smb2ErrorResponse::parse(message) {
        seen += 1 + usize::from(error.needed().is_some() || error.symlink().is_some());
    }
    seen + usize::from(oplock_break::Notification::parse(message).is_some())
}

fn read_smb1_as_everything(message: &[u8]) -> usize {
    let mut seen = usize::from(smb1::NegotiateResponse::parse(message).is_ok());
    seen += smb1::SessionSetupAndxResponse::parse(message).map_or(0, |response| 1 + response.blob.len());
    seen += usize::from(smb1::SessionSetupAndxPlainResponse::parse(message).is_ok());
    seen += usize::from(smb1::TreeConnectAndxResponse::parse(message).is_ok());
    seen += usize::from(smb1::NtCreateAndxResponse::parse(message).is_ok());
    seen += usize::from(smb1::OpenAndxResponse::parse(message).is_ok());
    seen += smb1::ReadAndxResponse::parse(message).map_or(0, |response| response.data.len());
    seen += usize::from(smb1::WriteAndxResponse::parse(message).is_ok());
    seen += usize::from(smb1::EchoResponse::parse(message).is_ok());
    seen += usize::from(smb1::LockingAndxRequest::parse(message).is_some());
    seen += usize::from(smb1::parse_empty(message, smbscope_wire::smb1::Smb1Command::CLOSE).is_ok());
    seen += usize::from(smb1::NtTransactResponse::parse(message).is_ok());
    if let Ok(answer) = smb1::Transaction2Response::parse(message) {
        let mut assembly = smb1::TransactionReassembly::default();
        assembly.begin(usize::from(u16::MAX));
        seen += 1 + usize::from(assembly.add(smbscope_wire::smb1::Smb1Command::TRANSACTION2, &answer.0).is_ok());
    }
    seen
}

fn read_as_output(output: &[u8]) -> usize {
    let known = [
        copy_chunk::ResumeKey::parse(output).is_some(),
        copy_chunk::Copied::parse(output).is_some(),
        validate_negotiate::ValidateNegotiateResponse::parse(output).is_some(),
    ];
    known.into_iter().filter(|is| *is).count() + network_interface::interfaces(output).count()
}

#[test]
fn good_answers_are_read() {
    // The header alone counts as one.
    assert!(answers().iter().all(|answer| read_as_everything(answer) > 1));
    for (number, answer) in smb1_answers().iter().enumerate() {
        assert!(read_smb1_as_everything(answer) > 0, "answer {number}: {answer:02x?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn responses_with_changed_bytes_are_read_or_refused(
        of_smb1 in any::<bool>(),
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        kept in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let mut message = if of_smb1 { which.get(smb1_answers()) } else { which.get(answers()) }.clone();
        for (at, value) in changes {
            let at = at.index(message.len());
            message[at] = value;
        }
        if cut {
            message.truncate(kept.index(message.len()));
        }
        read_as_everything(&message);
        read_smb1_as_everything(&message);
    }

    #[test]
    fn bodies_of_random_bytes_are_read_or_refused(
        size in prop::sample::select(vec![9u8, 16, 17, 24, 44, 49, 60, 65, 89]),
        body in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut message = answers()[0][..Smb2Header::LENGTH].to_vec();
        message.extend([size, 0]);
        message.extend(body);
        read_as_everything(&message);
    }
}
