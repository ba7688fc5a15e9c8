//! Hand-built SMB1 requests: chains, end of file, faults.

use crate::wire::Client;
use smbscope_testkit::server::{Fault, Script, ScriptedServer};
use smbscope_testkit::smb1;
use smbscope_wire::smb1::messages::ReadAndxFields;
use smbscope_wire::smb1::{Smb1Command, Smb1Header, blocks};
use smbscope_wire::status::NtStatus;

fn header(message: &[u8]) -> Smb1Header {
    Smb1Header::parse(message).expect("an SMB1 header")
}

#[test]
fn a_chain_is_answered_by_a_chain() {
    let server = ScriptedServer::start(Script::new()).unwrap();
    let mut client = Client::new(&server);
    let chain = smb1::session_setup(1, "", "somebody").and(smb1::tree_connect(1, r"\\server\share"));
    let answer = client.ask(chain);
    let commands: Vec<Smb1Command> = blocks(&header(&answer), &answer).map(|block| block.command).collect();
    assert_eq!(commands, [Smb1Command::SESSION_SETUP_ANDX, Smb1Command::TREE_CONNECT_ANDX]);
    assert_eq!(header(&answer).status, 0);
    assert_eq!((header(&answer).uid, header(&answer).tid), (100, 1));
}

#[test]
fn reads_end_with_the_file() {
    let server = ScriptedServer::start(Script { file_size: 70_000, ..Script::new() }).unwrap();
    let mut client = Client::new(&server);
    for (offset, length, expected) in [(0, 100, 100), (69_990, 100, 10), (80_000, 100, 0)] {
        let answer = client.ask(smb1::read_andx(1, 2, offset, length));
        let block = blocks(&header(&answer), &answer).next().unwrap();
        assert_eq!(
            (ReadAndxFields::data_length(block.words), ReadAndxFields::data_offset(block.words)),
            (Some(expected), Some(60))
        );
        assert_eq!(answer.len(), 60 + usize::from(expected));
    }
}

#[test]
fn a_refused_member_ends_its_chain() {
    let refused = Fault::Status(NtStatus::ACCESS_DENIED).on(Smb1Command::NT_CREATE_ANDX).once();
    let server = ScriptedServer::start(Script::new().rule(refused)).unwrap();
    let mut client = Client::new(&server);
    let answer = client.ask(smb1::nt_create(1, "a.txt"));
    assert_eq!(header(&answer).nt_status(), Some(NtStatus::ACCESS_DENIED));
    assert_eq!(answer.len(), 32 + 3, "no words and no data");
    assert_eq!(header(&client.ask(smb1::nt_create(2, "a.txt"))).status, 0);
}

#[test]
fn a_broken_oplock_is_a_request_of_the_server() {
    let server = ScriptedServer::start(Script::new().rule(Fault::OplockBreak.on(Smb1Command::ECHO))).unwrap();
    let mut client = Client::new(&server);
    let unasked = client.ask(smb1::echo(9, 1, b"x"));
    // MS-CIFS 3.2.5.42: LOCKING_ANDX with a MID of all ones and without reply bit.
    assert_eq!((header(&unasked).command, header(&unasked).mid), (Smb1Command::LOCKING_ANDX, 0xffff));
    assert!(!header(&unasked).is_reply());
    let answer = client.hear().unwrap();
    assert_eq!(header(&answer).mid, 9);
    assert!(answer.ends_with(b"x"));
}
