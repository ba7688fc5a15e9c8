//! Conversations of client and server, and their encoding for the stream targets.

use smbscope_fuzz::streams::{LOST, SERVER, SNAPPED, UNFRAMED, UNINFORMED};
use smbscope_testkit::{Conversation, Side, damage, smb1, smb2};

type Named = Vec<(String, Vec<u8>)>;

/// Returns conversations that cover all protocol features.
pub(crate) fn conversations() -> Vec<(&'static str, Conversation)> {
    vec![
        ("smb1_files", smb1_files()),
        ("smb1_raw", smb1_raw()),
        ("smb1_transactions", smb1_transactions()),
        ("smb2_files", smb2_files()),
        ("smb2_waiting", smb2_waiting()),
        ("smb2_compound", smb2_compound()),
        ("smb3_covered", smb3_covered()),
    ]
}

fn smb1_files() -> Conversation {
    let login = smb1::session_setup(2, "DOM", "user").and(smb1::tree_connect(2, "\\\\server\\share"));
    let logged_in = smb1::session_setup_response(2, 100).and(smb1::tree_connect_response(2, 1));
    Conversation::new()
        .client_says(100, smb1::negotiate(1, &["LANMAN1.0", "NT LM 0.12"]))
        .server_says(200, smb1::negotiate_response(1, 1))
        .client_says(300, login)
        .server_says(400, logged_in)
        .client_says(500, smb1::nt_create(3, "\\a.txt"))
        .server_says(600, smb1::nt_create_response(3, 7))
        .client_says(700, smb1::read_andx(4, 7, 0, 50))
        .server_says(800, smb1::read_andx_response(4, &[1; 50]))
        .client_says(900, smb1::write_andx(5, 7, 50, &[2; 60]))
        .server_says(1000, smb1::write_andx_response(5, 60))
        .client_says(1100, smb1::echo(6, 2, b"ping"))
        .server_says(1200, smb1::echo_response(6, 1, b"ping"))
        .server_says(1210, smb1::echo_response(6, 2, b"ping"))
        .server_says(1250, smb1::oplock_break(7).without_reply_bit())
        .client_says(1300, smb1::close(7, 7))
        .server_says(1400, smb1::close_response(7).status(0xc000_0022))
        .closes(1500)
}

fn smb1_raw() -> Conversation {
    Conversation::new()
        .client_says(100, smb1::negotiate(1, &["NT LM 0.12"]))
        .server_says(200, smb1::negotiate_response(1, 0))
        .client_says(300, smb1::read_raw(2, 7, 0, 40))
        .server_says(400, vec![3; 40])
        .client_says(500, smb1::write_raw(3, 7, 0, 30, true))
        .server_says(600, smb1::go_ahead(3))
        .client_says(700, vec![4; 30])
        .server_says(800, smb1::write_complete(3, 30))
        .client_says(900, smb1::write_raw(4, 7, 30, 20, false))
        .server_says(1000, smb1::go_ahead(4).without_reply_bit())
        .client_says(1100, vec![5; 20])
}

fn smb1_transactions() -> Conversation {
    let part = |total, here| smb1::Part { total, ..smb1::Part::whole(here) };
    Conversation::new()
        .client_says(100, smb1::query_path(1, "\\dir\\file"))
        .server_says(200, smb1::trans2_response(1, smb1::Part::whole(40)))
        .client_says(
            300,
            smb1::trans2(2, smbscope_wire::names::Trans2::SET_FILE_INFORMATION, &[7, 0, 1, 1, 0, 0], part(60, 30)),
        )
        .server_says(400, smb1::trans2_interim(2))
        .client_says(500, smb1::trans2_secondary(2, 6, part(60, 30)))
        .server_says(600, smb1::trans2_response(2, part(60, 30)))
        .server_says(610, smb1::trans2_response(2, part(60, 30)))
}

/// Negotiates, logs on to session 0x11 and connects to share and tree 1.
fn smb2_begun() -> Conversation {
    Conversation::new()
        .client_says(100, smb2::negotiate(0, &[0x0202, 0x0300, 0x0311]))
        .server_says(200, smb2::negotiate_response(0, 0x0311))
        .client_says(300, smb2::session_setup_begin(1))
        .server_says(400, smb2::session_setup_response(1, 0x11).status(smb2::STATUS_MORE_PROCESSING))
        .client_says(500, smb2::session_setup(2, "DOM", "user"))
        .server_says(600, smb2::session_setup_response(2, 0x11))
        .client_says(700, smb2::tree_connect(3, "\\\\server\\share"))
        .server_says(800, smb2::tree_connect_response(3, 1))
}

fn smb2_files() -> Conversation {
    smb2_begun()
        .client_says(1000, smb2::create(4, "dir\\a.txt").signed())
        .server_says(1100, smb2::create_response(4, 9))
        .client_says(1200, smb2::read(5, 9, 0, 40))
        .client_says(1210, smb2::write(6, 9, 40, &[6; 50]))
        .server_says(1300, smb2::write_response(6, 50))
        .server_says(1400, smb2::read_response(5, &[7; 40]))
        .client_says(1500, smb2::rename(7, 9, "b.txt"))
        .server_says(1600, smb2::set_info_response(7))
        .client_says(1700, smb2::create(8, "missing"))
        .server_says(1800, smb2::error(smbscope_wire::smb2::Smb2Command::CREATE, 8, smb2::STATUS_NOT_FOUND))
        .client_says(1900, smb2::close(9, 9))
        .server_says(2000, smb2::close_response(9))
        .client_says(2100, smb2::logoff(10))
        .closes(2200)
}

fn smb2_waiting() -> Conversation {
    let (lock, notify) = (smbscope_wire::smb2::Smb2Command::LOCK, smbscope_wire::smb2::Smb2Command::CHANGE_NOTIFY);
    smb2_begun()
        .client_says(1000, smb2::notify(4, 9))
        .server_says(1100, smb2::pending(notify, 4, 77))
        .client_says(1200, smb2::lock(5, 9, 0, 10, 2))
        .server_says(1300, smb2::pending(lock, 5, 78))
        .server_says(1400, smb2::lock_response(5).asynchronous(78))
        .client_says(1500, smb2::cancel(4).asynchronous(77))
        .server_says(1600, smb2::notify_response(4).asynchronous(77).status(smb2::STATUS_CANCELLED))
        .server_says(1700, smb2::oplock_break(9))
        .client_says(1800, smb2::echo(6))
        .server_says(1900, smb2::echo_response(6))
}

fn smb2_compound() -> Conversation {
    let asked =
        [smb2::create(4, "a"), smb2::read(5, smb2::RELATED, 0, 9).related(), smb2::close(6, smb2::RELATED).related()];
    let answered =
        [smb2::create_response(4, 3), smb2::read_response(5, &[8; 9]).related(), smb2::close_response(6).related()];
    smb2_begun()
        .client_says(1000, smb2::compound(&asked))
        .server_says(1100, smb2::compound(&answered))
        .client_says(1200, smb2::compound(&asked[..1]))
        .server_says(1300, smb2::compound(&answered[1..]))
}

/// Messages that are encrypted, and compressed with and without chaining.
fn smb3_covered() -> Conversation {
    let mut compressed = b"\xfcSMB".to_vec();
    compressed.extend([0, 0, 0, 0, 0, 0, 0, 0, 200, 0, 0, 0]);
    compressed.extend(Vec::from(smb2::read(4, 9, 0, 40)));
    let plain = Vec::from(smb2::write_response(5, 3));
    let mut chained = b"\xfcSMB".to_vec();
    chained.extend((plain.len() as u32 + 32).to_le_bytes());
    chained.extend([0, 0, 1, 0]);
    chained.extend((plain.len() as u32).to_le_bytes());
    chained.extend(&plain);
    chained.extend([4, 0, 0, 0, 8, 0, 0, 0, 0x41, 0, 0, 0, 32, 0, 0, 0]);
    smb2_begun()
        .client_says(1000, compressed)
        .server_says(1100, smb2::read_response(4, &[1; 40]))
        .client_says(1200, smb2::write(5, 9, 0, &[1; 3]))
        .server_says(1300, chained)
        .client_says(1400, smb2::encrypted(0x11, 120))
        .server_says(1500, smb2::encrypted(0x11, 90))
        .client_says(1600, smb2::encrypted(0x11, 120))
        .client_says(1700, smb2::encrypted(0x11, 120))
        .server_says(1800, smb2::encrypted(0x11, 60))
}

/// Returns the frames of a conversation in order: sender, index, bytes.
pub(crate) fn said(conversation: &Conversation) -> Vec<(Side, usize, Vec<u8>)> {
    let packets = conversation.packets();
    let streams = [Side::Client, Side::Server].map(|side| damage::said(&packets, side));
    let frames = conversation.spans().iter().enumerate();
    frames
        .map(|(index, span)| {
            let bytes = &streams[span.side.index()][span.start as usize..span.end as usize];
            (span.side, index, bytes.to_vec())
        })
        .collect()
}

/// Encodes a conversation for a stream target, with the segment size and the damage to each utterance.
fn input(conversation: &Conversation, piece: u8, damage: impl Fn(usize) -> u8) -> Vec<u8> {
    let mut bytes = vec![piece];
    for (side, index, frame) in said(conversation) {
        let how = damage(index);
        let said = if how & UNFRAMED != 0 { &frame[..] } else { &frame[4..] };
        // 1 ms since the previous utterance.
        bytes.push(how | 0x04 | if side == Side::Server { SERVER } else { 0 });
        bytes.extend((said.len() as u16).to_le_bytes());
        bytes.extend(said);
    }
    bytes
}

fn inputs(prefix: &str) -> Named {
    let mut seeds = Vec::new();
    for (name, conversation) in conversations().into_iter().filter(|(name, _)| name.starts_with(prefix)) {
        seeds.push((name.to_owned(), input(&conversation, 40, |_| 0)));
        let damaged = input(&conversation, 255, |index| match index % 7 {
            3 => LOST,
            4 => UNFRAMED | UNINFORMED,
            5 => SNAPPED,
            _ => 0,
        });
        seeds.push((format!("{name}_damaged"), damaged));
    }
    seeds
}

pub(crate) fn smb1() -> Named {
    inputs("smb1")
}

pub(crate) fn smb2() -> Named {
    [inputs("smb2"), inputs("smb3")].concat()
}

/// Conversations of SMB2 in the session that the target has a key for, once for each cipher.
pub(crate) fn sealed() -> Named {
    const SESSION_ID: std::ops::Range<usize> = 40..48;
    let mut seeds = Vec::new();
    for (number, (name, bytes)) in (0u8..).zip(smb2()) {
        let mut seed = vec![number % 4];
        let (piece, mut rest) = bytes.split_at(1);
        seed.extend(piece);
        while let [how, low, high, behind @ ..] = rest {
            let length = usize::from(u16::from_le_bytes([*low, *high])).min(behind.len());
            let (message, others) = behind.split_at(length);
            let mut message = message.to_vec();
            if let Some(id) = message.get_mut(SESSION_ID) {
                id.fill(7);
            }
            seed.extend([*how, *low, *high]);
            seed.extend(message);
            rest = others;
        }
        seeds.push((name, seed));
    }
    seeds
}

/// Encodes steps of the `reassembly` target: kind, time, length, offset, acknowledgment.
fn steps(all: &[(u8, u8, u16, i16, i16)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (what, passed, length, offset, acknowledged) in all {
        bytes.extend([*what, *passed]);
        bytes.extend(length.to_le_bytes());
        bytes.extend(offset.to_le_bytes());
        bytes.extend(acknowledged.to_le_bytes());
    }
    bytes
}

/// Handshakes, data, gaps, duplicates and connection ends.
pub(crate) fn reassembly() -> Named {
    let (client, server) = (0, 8);
    let begun = [(5, 1, 0, 3, 0), (5 | 16 | server, 1, 0, 4, 0), (client, 1, 0, 0, 0)];
    let with = |more: &[(u8, u8, u16, i16, i16)]| steps(&[&begun, more].concat());
    vec![
        ("in_order".into(), with(&[(client, 1, 100, 0, 0), (server, 1, 300, 0, 0), (6, 1, 0, 0, 0), (14, 1, 0, 0, 0)])),
        ("midstream".into(), steps(&[(client, 1, 100, 0, 0), (server, 1, 300, 0, 0), (client, 2, 10, 0, 0)])),
        ("hole_filled".into(), with(&[(client, 1, 100, 0, 0), (3, 1, 50, 100, 0), (3, 1, 100, 0, 0), (8, 1, 9, 0, 0)])),
        (
            "hole_dropped".into(),
            with(&[(client, 1, 100, 0, 0), (3, 1, 50, 100, 0), (40, 1, 9, 0, 150), (8, 9, 9, 0, 0)]),
        ),
        ("sent_again".into(), with(&[(client, 1, 100, 0, 0), (3, 1, 60, -60, 0), (3, 1, 200, -100, 0)])),
        ("snapped".into(), with(&[(client | 16, 1, 100, 0, 0), (server | 16, 1, 300, 0, 0), (client, 1, 9, 0, 0)])),
        ("reset".into(), with(&[(client, 1, 100, 0, 0), (15, 1, 0, 0, 0), (client, 1, 100, 0, 0)])),
        ("used_again".into(), with(&[(client, 1, 100, 0, 0), (5, 1, 0, 900, 0), (29, 1, 0, 800, 0), (0, 1, 9, 0, 0)])),
        ("two_flows".into(), with(&[(64, 1, 100, 0, 0), (72, 1, 300, 0, 0), (client, 1, 9, 0, 0), (8, 1, 5, 0, 0)])),
        ("far_jump".into(), with(&[(client, 1, 100, 0, 0), (4, 1, 50, 0x4000, 0), (client, 1, 9, 0, 0)])),
        ("clock".into(), with(&[(128, 200, 100, 0, 0), (server | 128, 100, 300, 0, 0), (client, 1, 9, 0, 0)])),
    ]
}
