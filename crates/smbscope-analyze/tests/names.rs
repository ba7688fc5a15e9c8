//! Users, shares and paths, known from earlier messages.

use crate::common::truth::read_files;
use crate::common::{analyze, analyze_told};
use smbscope_model::Exchange;
use smbscope_testkit::conversation::together;
use smbscope_testkit::smb1::Part;
use smbscope_testkit::{Conversation, Packet, damage, smb1, smb2};

/// User, share and path of an exchange; `-` if unknown.
fn names(exchange: &Exchange) -> [&str; 3] {
    [&exchange.user, &exchange.share, &exchange.path].map(|name| name.as_deref().unwrap_or("-"))
}

/// A logon in two steps and a tree connect, until 60 µs.
fn logged_on() -> Conversation {
    Conversation::new()
        .client_says(30, smb2::session_setup_begin(1))
        .server_says(31, smb2::session_setup_response(1, 0x11).status(smb2::STATUS_MORE_PROCESSING))
        .client_says(32, smb2::session_setup(2, "DOM", "ann").session(0x11))
        .server_says(33, smb2::session_setup_response(2, 0x11))
        .client_says(34, smb2::tree_connect(3, "\\\\srv\\data"))
        .server_says(35, smb2::tree_connect_response(3, 1))
}

#[test]
fn a_session_names_its_user_a_tree_its_share_and_an_open_its_path() {
    let analysis = analyze_told(
        &logged_on()
            .client_says(100, smb2::create(4, "dir\\a.txt"))
            .server_says(110, smb2::create_response(4, 7))
            .client_says(120, smb2::read(5, 7, 0, 10))
            .server_says(130, smb2::read_response(5, &[0; 10]))
            .client_says(140, smb2::close(6, 7))
            .server_says(150, smb2::close_response(6)),
    );
    let found: Vec<_> =
        analysis.exchanges.iter().map(|exchange| (exchange.command.to_string(), names(exchange))).collect();
    let expected = [
        ("SESSION_SETUP", ["-", "-", "-"]),
        ("SESSION_SETUP", ["DOM\\ann", "-", "-"]),
        ("TREE_CONNECT", ["DOM\\ann", "data", "-"]),
        ("CREATE", ["DOM\\ann", "data", "dir\\a.txt"]),
        ("READ", ["DOM\\ann", "data", "dir\\a.txt"]),
        ("CLOSE", ["DOM\\ann", "data", "dir\\a.txt"]),
    ];
    assert_eq!(found, expected.map(|(command, names)| (command.to_owned(), names)));
    let connection = &analysis.connections[0];
    assert_eq!((connection.users.len(), connection.shares.len()), (1, 1));
}

#[test]
fn the_root_of_a_share_has_a_name() {
    let analysis = analyze_told(
        &Conversation::new().client_says(100, smb2::create(1, "")).server_says(200, smb2::create_response(1, 7)),
    );
    assert_eq!(analysis.only().path.as_deref(), Some("\\"));
}

#[test]
fn a_renamed_file_has_its_new_name_from_then_on() {
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, smb2::create(1, "old.txt"))
            .server_says(110, smb2::create_response(1, 7))
            .client_says(120, smb2::rename(2, 7, "new.txt"))
            .server_says(130, smb2::set_info_response(2))
            .client_says(140, smb2::close(3, 7))
            .server_says(150, smb2::close_response(3)),
    );
    let paths: Vec<_> = analysis.exchanges.iter().map(|exchange| exchange.path.as_deref()).collect();
    assert_eq!(paths, ["old.txt", "old.txt", "new.txt"].map(Some));
}

#[test]
fn a_file_that_was_closed_lends_its_id_to_another() {
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, smb2::create(1, "a"))
            .server_says(110, smb2::create_response(1, 7))
            .client_says(120, smb2::close(2, 7))
            .server_says(130, smb2::close_response(2))
            .client_says(140, smb2::read(3, 7, 0, 1))
            .server_says(150, smb2::read_response(3, &[0])),
    );
    assert_eq!(analysis.exchanges[2].path, None, "what was closed is no longer known by that id");
}

#[test]
fn a_failed_open_names_nothing() {
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, smb2::create(1, "a"))
            .server_says(110, smb2::error(smbscope_wire::smb2::Smb2Command::CREATE, 1, smb2::STATUS_NOT_FOUND))
            .client_says(140, smb2::read(3, 0, 0, 1))
            .server_says(150, smb2::read_response(3, &[0])),
    );
    assert_eq!(analysis.exchanges[1].path, None);
}

#[test]
fn after_a_dropped_open_the_path_stays_unknown() {
    let packets = Conversation::new()
        .client_says(100, smb2::create(1, "a"))
        .server_says(110, smb2::create_response(1, 7))
        .client_says(140, smb2::read(3, 7, 0, 1))
        .server_says(150, smb2::read_response(3, &[0]))
        .client_acks(200)
        .packets();
    let analysis = analyze(&damage::without(&packets, &[4]));
    assert_eq!(analysis.exchanges[1].path, None);
}

#[test]
fn channels_of_one_session_share_its_names() {
    let first = logged_on()
        .client_says(100, smb2::create(4, "a.txt"))
        .server_says(110, smb2::create_response(4, 7))
        .closes(5000);
    // The second channel binds to the session; its reads use the tree and the open of the first one.
    let second = Conversation::new()
        .ports(50_001, 445)
        .client_says(200, smb2::session_setup(1, "DOM", "ann").session(0x11))
        .server_says(210, smb2::session_setup_response(1, 0x11))
        .client_says(300, smb2::read(2, 7, 0, 10))
        .server_says(310, smb2::read_response(2, &[0; 10]))
        .closes(5000);
    let analysis = analyze(&together(&[first, second]));
    let read = analysis.exchanges.iter().find(|exchange| exchange.command.to_string() == "READ").unwrap();
    assert_eq!((read.endpoints.client.port(), names(read)), (50_001, ["DOM\\ann", "data", "a.txt"]));
}

#[test]
fn sessions_of_different_clients_keep_their_names_apart() {
    let told = |client: u8, user: &str| {
        let session = u64::from(client);
        Conversation::new()
            .between(([10, 0, 0, client], 50_000), ([10, 0, 0, 200], 445))
            .client_says(30, smb2::session_setup(2, "DOM", user).session(session))
            .server_says(33, smb2::session_setup_response(2, session))
            .client_says(100, smb2::echo(3).session(session))
            .server_says(110, smb2::echo_response(3).session(session))
    };
    let analysis = analyze(&together(&[told(1, "ann"), told(2, "bob")]));
    for exchange in &analysis.exchanges {
        let expected = if exchange.session_id == Some(1) { "DOM\\ann" } else { "DOM\\bob" };
        assert_eq!(exchange.user.as_deref(), Some(expected));
    }
}

#[test]
fn reads_from_a_named_pipe_are_waits() {
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(30, smb2::tree_connect(1, "\\\\srv\\IPC$"))
            .server_says(31, smb2::tree_connect_response(1, 9))
            .client_says(100, smb2::read(2, 7, 0, 10).tree(9))
            .server_says(110, smb2::read_response(2, &[0; 10]).tree(9)),
    );
    assert_eq!(analysis.exchanges[1].group, smbscope_model::CommandGroup::Waiting);
}

#[test]
fn smb1_names_come_from_uid_tid_and_fid() {
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(30, smb1::session_setup(1, "DOM", "ann"))
            .server_says(31, smb1::session_setup_response(1, 100))
            .client_says(32, smb1::tree_connect(2, "\\\\srv\\data"))
            .server_says(33, smb1::tree_connect_response(2, 1))
            .client_says(100, smb1::nt_create(3, "\\dir\\a.txt"))
            .server_says(110, smb1::nt_create_response(3, 7))
            .client_says(120, smb1::write_andx(4, 7, 512, b"abc"))
            .server_says(130, smb1::write_andx_response(4, 3))
            .client_says(140, smb1::close(5, 7))
            .server_says(150, smb1::close_response(5)),
    );
    let found: Vec<_> = analysis.exchanges.iter().map(names).collect();
    let file = ["DOM\\ann", "data", "\\dir\\a.txt"];
    assert_eq!(found, [["DOM\\ann", "-", "-"], ["DOM\\ann", "data", "-"], file, file, file]);
    assert_eq!((analysis.exchanges[3].offset, analysis.exchanges[3].length), (Some(512), Some(3)));
}

#[test]
fn a_fid_that_is_given_out_again_has_its_new_path() {
    let mut conversation = Conversation::new();
    for (step, name) in ["\\a", "\\b"].into_iter().enumerate() {
        let at = 100 + 100 * step as i64;
        conversation = conversation
            .client_says(at, smb1::nt_create(3, name))
            .server_says(at + 10, smb1::nt_create_response(3, 7))
            .client_says(at + 20, smb1::close(5, 7))
            .server_says(at + 30, smb1::close_response(5));
    }
    let analysis = analyze_told(&conversation);
    let paths: Vec<_> = analysis.exchanges.iter().map(|exchange| exchange.path.as_deref()).collect();
    assert_eq!(paths, ["\\a", "\\a", "\\b", "\\b"].map(Some));
}

/// Headers before an SMB message: Ethernet, IPv4, TCP and frame header.
const HEADERS: usize = 14 + 20 + 20 + 4;

/// A path of 100 characters.
fn long_path() -> String {
    format!("projects\\{}", "0123456789".repeat(10))[..100].to_owned()
}

/// SMB2: opens and reads a path of 100 characters, and renames a file to it.
fn smb2_names() -> Vec<Packet> {
    logged_on()
        .client_says(100, smb2::create(4, &long_path()))
        .server_says(110, smb2::create_response(4, 7))
        .client_says(120, smb2::read(5, 7, 0, 10))
        .server_says(130, smb2::read_response(5, &[0; 10]))
        .client_says(140, smb2::rename(6, 7, &long_path()))
        .server_says(150, smb2::set_info_response(6))
        .packets()
}

/// SMB1: the same path in a create and in a transaction.
fn smb1_names() -> Vec<Packet> {
    Conversation::new()
        .client_says(32, smb1::tree_connect(1, "\\\\srv\\data"))
        .server_says(33, smb1::tree_connect_response(1, 1))
        .client_says(100, smb1::nt_create(2, &long_path()))
        .server_says(110, smb1::nt_create_response(2, 7))
        .client_says(120, smb1::query_path(3, &long_path()))
        .server_says(130, smb1::trans2_response(3, Part::whole(2)))
        .packets()
}

#[test]
fn of_a_path_that_the_snap_length_cut_the_beginning_is_kept_with_a_mark() {
    // MS-SMB2 §2.2.13: the name starts 120 bytes after the header; 40 of its characters are captured.
    let snap = HEADERS + 120 + 2 * 40;
    let (exchanges, quality) = read_files(&[&damage::snap(&smb2_names(), snap)]);
    let expected = format!("{}…", &long_path()[..40]);
    let paths: Vec<_> = exchanges[3..5].iter().map(|exchange| exchange.path.as_deref()).collect();
    assert_eq!(paths, [Some(&*expected); 2], "of the CREATE and of the READ behind it");
    assert_eq!(quality.names_cut, 2, "the path and the new one");
    // FILE_RENAME_INFORMATION_TYPE_2 has 20 bytes before its name, after 96 of SET_INFO: 4 bytes less than CREATE.
    assert_eq!(quality.snap_length_for_names(), Some((HEADERS + 120 + 2 * 100) as u64));
}

#[test]
fn the_snap_length_that_is_advised_keeps_every_name_and_none_below_it_does() {
    for (packets, least) in [(smb2_names(), HEADERS + 112), (smb1_names(), HEADERS + 100)] {
        let cut = |snap: usize| read_files(&[&damage::snap(&packets, snap)]).1;
        assert_eq!((cut(1500).names_cut, cut(1500).snap_length_for_names()), (0, None));
        let enough = (least..1500).find(|snap| cut(*snap).names_cut == 0).expect("a snap length that is enough");
        for snap in (least..enough).step_by(7) {
            let advised = cut(snap).snap_length_for_names().expect("an advice") as usize;
            assert!((enough..enough + 3).contains(&advised), "{snap}: {advised} advised, {enough} is enough");
        }
    }
}

#[test]
fn what_was_cut_off_before_its_first_letter_is_no_name() {
    for snap in HEADERS + 70..HEADERS + 120 {
        let (exchanges, quality) = read_files(&[&damage::snap(&smb2_names(), snap)]);
        assert!(exchanges.iter().all(|exchange| exchange.path.is_none()), "snap length {snap}");
        assert!(quality.names_cut >= 1, "snap length {snap}: {}", quality.names_cut);
        // The server's name must not be reported as a share.
        let shares: Vec<_> = exchanges.iter().filter_map(|exchange| exchange.share.as_deref()).collect();
        assert!(shares.iter().all(|share| "data…".starts_with(share.trim_end_matches('…'))), "{snap}: {shares:?}");
    }
}

#[test]
fn a_name_without_end_is_kept_as_far_as_names_are_kept() {
    let name = "é".repeat(20_000);
    let analysis = analyze_told(
        &logged_on()
            .segment_size(60_000)
            .client_says(100, smb2::create(4, &name))
            .server_says(110, smb2::create_response(4, 7)),
    );
    let path = analysis.exchanges[3].path.as_deref().expect("a path");
    // 4,096 bytes are 2,048 of these letters.
    assert_eq!(path, format!("{}…", "é".repeat(2048)));
    assert_eq!(analysis.quality.names_cut, 1);
}
