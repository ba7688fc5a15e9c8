//! Effects of the script's rules, seen by a client.

use crate::wire::{Client, header};
use smbscope_testkit::server::{Fault, Malformed, Script, ScriptedServer};
use smbscope_testkit::smb2::{self, RELATED};
use smbscope_wire::smb2::{Smb2Command, Smb2Response, flags};
use smbscope_wire::status::NtStatus;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

fn server(script: Script) -> ScriptedServer {
    ScriptedServer::start(script).expect("a free port")
}

#[test]
fn requests_of_one_write_are_all_answered_in_order() {
    let server = server(Script::new());
    let mut client = Client::logged_on(&server);
    client.say((4..104).map(smb2::echo));
    for id in 4..104 {
        assert_eq!(header(&client.hear().unwrap()).message_id, id);
    }
    assert_eq!(server.counters().count(Smb2Command::ECHO), 100);
    assert_eq!(server.counters().commands, 104);
}

#[test]
fn members_of_a_compound_share_the_open_and_the_frame() {
    let server = server(Script { file_size: 5, ..Script::new() });
    let mut client = Client::logged_on(&server);
    let answer = client.ask(smb2::compound(&[
        smb2::create(4, "a.txt"),
        smb2::read(5, RELATED, 0, 100).related(),
        smb2::close(6, RELATED).related(),
    ]));
    let create = header(&answer);
    let read = &answer[create.next_command as usize..];
    let close = &read[header(read).next_command as usize..];
    assert!(matches!(Smb2Response::parse(Smb2Command::CREATE, &answer), Smb2Response::Create(_)));
    // The file has five bytes (2.2.20: DataLength at offset 4 of the body).
    assert_eq!(read[68], 5);
    assert_eq!([create.message_id, header(read).message_id, header(close).message_id], [4, 5, 6]);
    assert_eq!(header(close).next_command, 0);
}

#[test]
fn a_failed_open_fails_the_rest_of_its_compound() {
    let missing = Fault::Status(NtStatus::OBJECT_NAME_NOT_FOUND).on(Smb2Command::CREATE).once();
    let server = server(Script::new().rule(missing));
    let mut client = Client::logged_on(&server);
    let members = [smb2::create(4, "a.txt"), smb2::close(5, RELATED).related()];
    let answer = client.ask(smb2::compound(&members));
    let close = &answer[header(&answer).next_command as usize..];
    // MS-SMB2 3.3.5.2.7.2: related operations fail with the status of the first.
    assert_eq!(header(&answer).status, NtStatus::OBJECT_NAME_NOT_FOUND);
    assert_eq!(header(close).status, NtStatus::OBJECT_NAME_NOT_FOUND);
    assert_eq!(header(&client.ask(smb2::create(6, "a.txt"))).status, NtStatus::SUCCESS);
}

#[test]
fn a_stall_holds_the_answers_of_every_connection_until_it_ends() {
    let server = server(Script::new());
    let (mut first, mut second) = (Client::logged_on(&server), Client::logged_on(&server));
    let time = Duration::from_millis(300);
    server.add(Fault::Stall(time).on(Smb2Command::ECHO).once());
    let start = Instant::now();
    first.say([smb2::echo(4)]);
    std::thread::sleep(Duration::from_millis(50));
    second.say([smb2::read(4, 2, 0, 1)]);
    second.hear().unwrap();
    assert!(start.elapsed() >= time);
    first.hear().unwrap();
    let start = Instant::now();
    first.ask(smb2::echo(5));
    assert!(start.elapsed() < time);
}

#[test]
fn a_storm_refuses_its_share_of_the_commands() {
    let storm = Fault::Status(NtStatus::INSUFFICIENT_RESOURCES).on(Smb2Command::READ).after(2).share(0.5);
    let server = server(Script::new().rule(storm));
    let mut client = Client::logged_on(&server);
    let refused = |answer: Vec<u8>| header(&answer).status == NtStatus::INSUFFICIENT_RESOURCES;
    let refusals: Vec<bool> = (4..10).map(|id| refused(client.ask(smb2::read(id, 2, 0, 1)))).collect();
    assert_eq!(refusals, [false, false, false, true, false, true]);
    assert_eq!(server.counters().faults, 2);
}

#[test]
fn a_reset_and_a_close_end_one_connection_only() {
    let script = Script::new().rule(Fault::Reset.on(Smb2Command::ECHO).connection(0));
    let server = server(script.rule(Fault::Close.on(Smb2Command::ECHO).connection(1)));
    let mut clients = [(); 3].map(|()| Client::logged_on(&server));
    clients.iter_mut().for_each(|client| client.say([smb2::echo(4)]));
    assert_eq!(clients[0].hear().unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(clients[1].hear().unwrap_err().kind(), ErrorKind::UnexpectedEof);
    assert_eq!(header(&clients[2].hear().unwrap()).command, Smb2Command::ECHO);
}

#[test]
fn a_silent_connection_stays_open_without_answers() {
    let server = server(Script::new().rule(Fault::Silent.on(Smb2Command::ECHO)));
    let mut client = Client::logged_on(&server);
    client.say([smb2::echo(4), smb2::close(5, 2)]);
    assert_eq!(client.hear().unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(server.counters().open, 1);
}

#[test]
fn a_pending_answer_follows_its_interim_response() {
    let server = server(Script::new().rule(Fault::Pending(Duration::from_millis(100)).on(Smb2Command::READ)));
    let mut client = Client::logged_on(&server);
    let start = Instant::now();
    let interim = client.ask(smb2::read(4, 2, 0, 1));
    assert_eq!((header(&interim).status, header(&interim).message_id), (NtStatus::PENDING, 4));
    let last = client.hear().unwrap();
    assert!(start.elapsed() >= Duration::from_millis(100));
    assert_eq!(header(&last).status, NtStatus::SUCCESS);
    assert_eq!(header(&last).async_id, header(&interim).async_id);
    assert_eq!(header(&last).flags, flags::SERVER_TO_REDIR | flags::ASYNC_COMMAND);
}

#[test]
fn a_pending_answer_can_be_cancelled() {
    let server = server(Script::new().rule(Fault::Pending(Duration::from_secs(60)).on(Smb2Command::LOCK)));
    let mut client = Client::logged_on(&server);
    client.ask(smb2::lock(4, 2, 0, 1, 2));
    let answer = client.ask(smb2::cancel(4));
    assert_eq!((header(&answer).status, header(&answer).message_id), (NtStatus::CANCELLED, 4));
}

#[test]
fn breaks_and_keep_alives_go_ahead_of_the_answer() {
    let script = Script::new().rule(Fault::OplockBreak.on(Smb2Command::ECHO).once());
    let script = script.rule(Fault::LeaseBreak.on(Smb2Command::FLUSH).once());
    let server = server(script.rule(Fault::KeepAlive.on(Smb2Command::CLOSE)));
    let mut client = Client::logged_on(&server);
    let unasked = client.ask(smb2::echo(4));
    // 2.2.23.1: 24 bytes, and a MessageId of all ones (3.3.4.6).
    assert_eq!((header(&unasked).command, header(&unasked).message_id), (Smb2Command::OPLOCK_BREAK, u64::MAX));
    assert_eq!((unasked.len(), unasked[64]), (64 + 24, 24));
    assert_eq!(header(&client.hear().unwrap()).command, Smb2Command::ECHO);
    client.say([smb2::close(5, 2)]);
    assert_eq!(client.hear_bytes::<4>(), [0x85, 0, 0, 0]);
    assert_eq!(header(&client.hear().unwrap()).command, Smb2Command::CLOSE);
}

#[test]
fn dribbled_answers_arrive_whole() {
    let pause = Duration::from_millis(2);
    let server = server(Script::new().rule(Fault::Dribble { piece: 7, pause }.on(Smb2Command::READ)));
    let mut client = Client::logged_on(&server);
    let start = Instant::now();
    let answer = client.ask(smb2::read(4, 2, 0, 100));
    // 64 + 16 + 100 bytes and four of the frame header in pieces of seven: 27 pieces, 26 pauses.
    assert!(start.elapsed() >= 26 * pause);
    assert_eq!(answer.len(), 64 + 16 + 100);
}

#[test]
fn malformed_answers_differ_from_good_ones_where_they_say() {
    let script = Script::new().rule(Fault::Malformed(Malformed::MessageId).on(Smb2Command::ECHO).once());
    let script = script.rule(Fault::Malformed(Malformed::StructureSize).on(Smb2Command::ECHO).after(1).once());
    let script = script.rule(Fault::Malformed(Malformed::WrongSignature).on(Smb2Command::ECHO).after(2).once());
    let script = script.rule(Fault::Malformed(Malformed::Truncated(66)).on(Smb2Command::ECHO).after(3).once());
    let server = server(script.rule(Fault::Malformed(Malformed::CutOff(20)).on(Smb2Command::ECHO).after(4)));
    let mut client = Client::logged_on(&server);
    assert_ne!(header(&client.ask(smb2::echo(4))).message_id, 4);
    assert_eq!(client.ask(smb2::echo(5))[64], 7);
    assert!(header(&client.ask(smb2::echo(6))).is_signed());
    assert_eq!(client.ask(smb2::echo(7)).len(), 66);
    client.say([smb2::echo(8)]);
    assert_eq!(client.hear().unwrap_err().kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn a_dropped_server_leaves_no_connection_and_no_listener() {
    let server = server(Script::new());
    let mut client = Client::logged_on(&server);
    let address = server.address();
    drop(server);
    assert!(client.hear().is_err());
    // The server of another test may have got this port for a moment.
    let refused = || {
        std::thread::sleep(std::time::Duration::from_millis(50));
        std::net::TcpStream::connect(address).is_err()
    };
    assert!((0..200).any(|_| refused()), "something listens on {address} still");
}
