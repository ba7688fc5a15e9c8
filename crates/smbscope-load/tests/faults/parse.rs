//! The response parsers on their own, with randomly changed and truncated bytes.

use crate::faults::support::server;
use proptest::prelude::*;
use smbscope_testkit::smb1::Part;
use smbscope_testkit::{framed, server::ScriptedServer};
use smbscope_testkit::{smb1 as say_smb1, smb2 as say};
use smbscope_wire::names::{InfoLevel, Trans2};
use smbscope_wire::smb1::messages as smb1;
use smbscope_wire::smb2::Smb2Header;
use smbscope_wire::smb2::messages::{
    change_notify, copy_chunk, create, error, ioctl, negotiate, network_interface, oplock_break, query_directory,
    query_info, read, session_setup, tree_connect, validate_negotiate, write,
};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::OnceLock;

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
