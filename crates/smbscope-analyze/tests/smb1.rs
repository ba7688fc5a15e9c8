//! SMB1 exchanges: recycled ids, AndX chains, and responses in several messages.

use crate::common::{Analysis, analyze, analyze_told, times, us};
use smbscope_model::{CommandGroup, Dialect, Exchange, ExchangeOutcome, FileId, Subcommand};
use smbscope_testkit::smb1::Part;
use smbscope_testkit::{Conversation, Packet, damage, smb1};
use smbscope_wire::names::Trans2;
use smbscope_wire::smb1::Smb1Command;

#[test]
fn an_andx_chain_is_one_exchange_named_by_its_first_command() {
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, smb1::session_setup(1, "DOM", "ann").and(smb1::tree_connect(1, "\\\\srv\\data")))
            .server_says(300, smb1::session_setup_response(1, 100).and(smb1::tree_connect_response(1, 1)).tid(1)),
    );
    let exchange = analysis.only();
    assert_eq!(
        (exchange.command.to_string().as_str(), times(exchange)),
        ("SMB_COM_SESSION_SETUP_ANDX", [100, 100, 300, 300])
    );
    let chain = [Smb1Command::TREE_CONNECT_ANDX, Smb1Command::NO_ANDX, Smb1Command::NO_ANDX];
    assert_eq!(exchange.subcommand, Some(Subcommand::AndX(chain)));
    assert_eq!((exchange.user.as_deref(), exchange.share.as_deref()), (Some("DOM\\ann"), Some("data")));
}

/// The classic false match: a client that always uses MID 1 reads at 1000 (Q1, R1) and at 2000 (Q2, R2).
fn two_reads_with_the_same_mid() -> Vec<Packet> {
    Conversation::new()
        .client_says(10, smb1::echo(1, 1, b"x"))
        .server_says(20, smb1::echo_response(1, 1, b"x"))
        .client_says(100, smb1::read_andx(1, 7, 1000, 50))
        .server_says(200, smb1::read_andx_response(1, &[1; 50]))
        .client_says(300, smb1::read_andx(1, 7, 2000, 50))
        .server_says(400, smb1::read_andx_response(1, &[2; 50]))
        .client_acks(500)
        .packets()
}

/// Indices of R1 and Q2: the handshake, an ECHO and Q1 come before.
const R1: usize = 6;
const Q2: usize = 7;

fn reads(analysis: &Analysis) -> Vec<(Option<u64>, ExchangeOutcome, [i64; 4])> {
    let reads = analysis.exchanges.iter().filter(|exchange| exchange.group == CommandGroup::Read);
    reads.map(|exchange| (exchange.offset, exchange.outcome, times(exchange))).collect()
}

#[test]
fn a_response_after_a_gap_that_can_hide_a_recycled_mid_is_refused() {
    // Q1 and R2 have the same PID, MID, TID and UID, and each is the only one of its kind in the capture.
    let analysis = analyze(&damage::without(&two_reads_with_the_same_mid(), &[R1, Q2]));
    let expected = [
        (Some(1000), ExchangeOutcome::ResponseNotCaptured, [100, 100, -1, -1]),
        (None, ExchangeOutcome::AmbiguousMatch, [-1, -1, 400, 400]),
    ];
    assert_eq!(reads(&analysis), expected);
    assert_eq!(analysis.quality.ambiguous_refused, 1);
}

#[test]
fn a_response_is_accepted_when_the_gap_hides_only_requests() {
    // Q2 is missing, but every byte of the server is there: R1 is R1.
    let analysis = analyze(&damage::without(&two_reads_with_the_same_mid(), &[Q2]));
    let expected = [
        (Some(1000), ExchangeOutcome::Complete, [100, 100, 200, 200]),
        (None, ExchangeOutcome::RequestNotCaptured, [-1, -1, 400, 400]),
    ];
    assert_eq!(reads(&analysis), expected);
}

#[test]
fn a_response_is_accepted_when_the_gap_hides_only_responses() {
    // R1 is missing, but every byte of the client is there: R2 answers the latest request with its ids.
    let analysis = analyze(&damage::without(&two_reads_with_the_same_mid(), &[R1]));
    let expected = [
        (Some(1000), ExchangeOutcome::ResponseNotCaptured, [100, 100, -1, -1]),
        (Some(2000), ExchangeOutcome::Complete, [300, 300, 400, 400]),
    ];
    assert_eq!(reads(&analysis), expected);
}

#[test]
fn a_response_is_accepted_when_ids_are_not_used_again_within_the_gap() {
    // 50 MIDs in turn: 45 bytes of the client are missing, enough for one request, but a MID returns after 50.
    let mut conversation = Conversation::new();
    for step in 0..60u16 {
        let at = 100 + 200 * i64::from(step);
        let mid = step % 50 + 1;
        conversation =
            conversation.client_says(at, smb1::close(mid, step)).server_says(at + 100, smb1::close_response(mid));
    }
    // Two requests outstanding, A and B. The response to B and another request C with its response are dropped.
    let packets = conversation
        .client_says(20_000, smb1::close(11, 1000))
        .client_says(20_010, smb1::close(12, 1001))
        .server_says(20_100, smb1::close_response(12))
        .client_says(20_200, smb1::close(13, 1002))
        .server_says(20_300, smb1::close_response(13))
        .server_says(20_400, smb1::close_response(11))
        .client_acks(20_500)
        .packets();
    let last = packets.len() - 1;
    let (answer_to_b, c, answer_to_c) = (last - 4, last - 3, last - 2);
    let analysis = analyze(&damage::without(&packets, &[answer_to_b, c, answer_to_c]));
    let a = analysis.exchanges.iter().find(|exchange| exchange.file_id == Some(FileId::Smb1(1000))).unwrap();
    assert_eq!((a.outcome, times(a)), (ExchangeOutcome::Complete, [20_000, 20_000, 20_400, 20_400]));
}

#[test]
fn ids_that_have_not_repeated_yet_may_repeat_within_the_next_gap() {
    // A client that counted its MIDs up to 40 then uses 5 permanently, which could not be predicted.
    let mut conversation = Conversation::new();
    for mid in 1..=40 {
        let at = 100 + 200 * i64::from(mid);
        conversation =
            conversation.client_says(at, smb1::close(mid, mid)).server_says(at + 100, smb1::close_response(mid));
    }
    let packets = conversation
        .client_says(20_000, smb1::close(5, 1000))
        .server_says(20_100, smb1::close_response(5))
        .client_says(20_200, smb1::close(5, 1001))
        .server_says(20_300, smb1::close_response(5))
        .client_acks(20_400)
        .packets();
    let last = packets.len() - 1;
    // The capture begins in the middle, and lacks a response and the next request.
    let kept = damage::without(&packets[20..], &[last - 3 - 20, last - 2 - 20]);
    let analysis = analyze(&kept);
    let found = analysis.exchanges.iter().find(|exchange| exchange.file_id == Some(FileId::Smb1(1000))).unwrap();
    assert_eq!(found.outcome, ExchangeOutcome::ResponseNotCaptured);
    assert_eq!(analysis.quality.ambiguous_refused, 1);
}

#[test]
fn a_counter_of_mids_does_not_begin_again_within_a_short_gap() {
    // Like smbclient: MIDs count up, several requests are outstanding. A response and a request with its response are
    // lost.
    let mut conversation = Conversation::new();
    for mid in 1..=40 {
        let at = 100 + 200 * i64::from(mid);
        conversation =
            conversation.client_says(at, smb1::close(mid, mid)).server_says(at + 100, smb1::close_response(mid));
    }
    let packets = conversation
        .client_says(20_000, smb1::close(41, 41))
        .client_says(20_010, smb1::close(42, 42))
        .server_says(20_100, smb1::close_response(42))
        .client_says(20_200, smb1::close(43, 43))
        .server_says(20_300, smb1::close_response(43))
        .server_says(20_400, smb1::close_response(41))
        .client_acks(20_500)
        .packets();
    let last = packets.len() - 1;
    let analysis = analyze(&damage::without(&packets, &[last - 4, last - 3, last - 2]));
    let found = analysis.exchanges.iter().find(|exchange| exchange.file_id == Some(FileId::Smb1(41))).unwrap();
    assert_eq!((found.outcome, times(found)), (ExchangeOutcome::Complete, [20_000, 20_000, 20_400, 20_400]));
}

#[test]
fn a_request_whose_mid_is_used_again_was_not_answered() {
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, smb1::close(1, 7))
            .client_says(200, smb1::close(1, 8))
            .server_says(300, smb1::close_response(1)),
    );
    assert_eq!(analysis.outcomes(), ["SMB_COM_CLOSE id_reused", "SMB_COM_CLOSE complete"]);
    assert_eq!(analysis.quality.ids_reused, 1);
}

#[test]
fn responses_are_told_apart_by_process_tree_and_user() {
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, smb1::close(1, 7).pid(1))
            .client_says(110, smb1::close(1, 8).pid(2))
            .server_says(300, smb1::close_response(1).pid(2))
            .server_says(400, smb1::close_response(1).pid(1))
            .client_says(500, smb1::close(1, 9).tid(1))
            .server_says(600, smb1::close_response(1).tid(2))
            .closes(700),
    );
    let outcomes: Vec<_> = analysis.exchanges.iter().map(|exchange| (times(exchange)[3], exchange.outcome)).collect();
    let expected = [
        (400, ExchangeOutcome::Complete),
        (300, ExchangeOutcome::Complete),
        (-1, ExchangeOutcome::Unanswered),
        (600, ExchangeOutcome::RequestNotCaptured),
    ];
    assert_eq!(outcomes, expected, "another tree, another request");
}

#[test]
fn an_echo_lasts_until_its_last_answer() {
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, smb1::echo(1, 3, b"hi"))
            .server_says(200, smb1::echo_response(1, 1, b"hi"))
            .server_says(300, smb1::echo_response(1, 2, b"hi"))
            .server_says(400, smb1::echo_response(1, 3, b"hi")),
    );
    assert_eq!((times(analysis.only()), analysis.only().response.packets), ([100, 100, 200, 400], 3));
}

#[test]
fn an_echo_without_its_last_answer_has_no_end() {
    let packets = Conversation::new()
        .client_says(100, smb1::echo(1, 2, b"hi"))
        .server_says(200, smb1::echo_response(1, 1, b"hi"))
        .server_says(300, smb1::echo_response(1, 2, b"hi"))
        .client_acks(400)
        .packets();
    let analysis = analyze(&damage::without(&packets, &[5]));
    assert_eq!(
        (times(analysis.only()), analysis.only().outcome),
        ([100, 100, 200, -1], ExchangeOutcome::ResponseEndMissing)
    );
}

#[test]
fn an_echo_without_its_first_answer_has_no_beginning_of_the_response() {
    let packets = Conversation::new()
        .client_says(100, smb1::echo(1, 3, b"hi"))
        .server_says(200, smb1::echo_response(1, 1, b"hi"))
        .server_says(300, smb1::echo_response(1, 2, b"hi"))
        .server_says(400, smb1::echo_response(1, 3, b"hi"))
        .client_acks(500)
        .packets();
    let analysis = analyze(&damage::without(&packets, &[4]));
    assert_eq!((times(analysis.only()), analysis.only().outcome), ([100, 100, -1, 400], ExchangeOutcome::Complete));
}

#[test]
fn an_echo_that_asks_for_no_answer_gets_none() {
    let analysis = analyze_told(&Conversation::new().client_says(100, smb1::echo(1, 0, b"hi")).closes(500));
    assert_eq!(analysis.only().outcome, ExchangeOutcome::NoResponseByDesign);
}

#[test]
fn a_transaction_is_answered_when_all_its_bytes_are_there() {
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, smb1::query_path(1, "\\a\\b"))
            .server_says(200, smb1::trans2_response(1, Part { total: 900, before: 0, here: 500 }))
            .server_says(400, smb1::trans2_response(1, Part { total: 900, before: 500, here: 400 })),
    );
    let exchange = analysis.only();
    assert_eq!((times(exchange), exchange.path.as_deref()), ([100, 100, 200, 400], Some("\\a\\b")));
    assert_eq!(exchange.subcommand, Some(Subcommand::Trans2(Trans2::QUERY_PATH_INFORMATION)));
    assert_eq!(exchange.group, CommandGroup::Attributes);
}

#[test]
fn secondary_requests_belong_to_their_transaction_and_go_ahead_is_interim() {
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(
                100,
                smb1::trans2(
                    1,
                    Trans2::SET_FILE_INFORMATION,
                    &[7, 0, 0, 0, 0, 0],
                    Part { total: 300, before: 0, here: 100 },
                ),
            )
            .server_says(200, smb1::trans2_interim(1))
            .client_says(300, smb1::trans2_secondary(1, 6, Part { total: 300, before: 100, here: 200 }))
            .server_says(500, smb1::trans2_response(1, Part::whole(2))),
    );
    let exchange = analysis.only();
    assert_eq!((times(exchange), us(exchange.interim)), ([100, 300, 500, 500], 200));
    assert_eq!((exchange.outcome, analysis.quality.interim_responses), (ExchangeOutcome::Complete, 1));
}

#[test]
fn no_snap_length_makes_an_interim_response_or_a_part_the_final_response() {
    // Headers take 58 bytes before the message, so 92 bytes leave its WordCount and a byte of its words.
    let set = Trans2::SET_FILE_INFORMATION;
    let packets = Conversation::new()
        .client_says(50, smb1::echo(9, 1, b"hi"))
        .server_says(60, smb1::echo_response(9, 1, b"hi"))
        .client_says(100, smb1::trans2(1, set, &[7, 0, 0, 0, 0, 0], Part { total: 300, before: 0, here: 100 }))
        .server_says(200, smb1::trans2_interim(1))
        .client_says(300, smb1::trans2_secondary(1, 6, Part { total: 300, before: 100, here: 200 }))
        .server_says(500, smb1::trans2_response(1, Part::whole(2)))
        .client_says(600, smb1::query_path(2, "\\a"))
        .server_says(700, smb1::trans2_response(2, Part { total: 1500, before: 0, here: 600 }))
        .server_says(800, smb1::trans2_response(2, Part { total: 1500, before: 600, here: 600 }))
        .server_says(900, smb1::trans2_response(2, Part { total: 1500, before: 1200, here: 300 }))
        .client_says(1000, smb1::close(3, 7))
        .server_says(1100, smb1::close_response(3))
        .packets();
    for snap in 92..200 {
        let analysis = analyze(&damage::snap(&packets, snap));
        let ends = [(1, 500), (2, 900)].map(|(mid, end)| {
            let complete = |it: &&Exchange| it.message_id == Some(mid) && it.is_complete();
            let found = analysis.exchanges.iter().find(complete).map(times);
            assert!(found.is_none_or(|times| times[3] == end), "snap length {snap}: {found:?}");
            found.is_some()
        });
        assert_eq!(ends, [snap >= 92; 2], "snap length {snap}: {:?}", analysis.outcomes());
    }
}

#[test]
fn an_echo_that_was_cut_off_before_its_count_may_have_more_answers() {
    let packets = Conversation::new()
        .client_says(100, smb1::echo(1, 3, b"hi"))
        .server_says(200, smb1::echo_response(1, 1, b"hi"))
        .server_says(300, smb1::echo_response(1, 2, b"hi"))
        .server_says(400, smb1::echo_response(1, 3, b"hi"))
        .client_acks(500)
        .packets();
    for snap in 90..120 {
        let analysis = analyze(&damage::snap(&packets, snap));
        for exchange in analysis.exchanges.iter().filter(|exchange| exchange.is_complete()) {
            assert_eq!(times(exchange)[3], 400, "snap length {snap}");
        }
    }
}

#[test]
fn parts_of_two_transactions_with_the_same_mid_make_no_answer() {
    // The second part of the first transaction and the request and the first part of the second one are lost: both
    // surviving parts have the same ids and add up to a whole response.
    let part = |before| Part { total: 200, before, here: 100 };
    let packets = Conversation::new()
        .client_says(100, smb1::query_path(1, "\\a"))
        .server_says(200, smb1::trans2_response(1, part(0)))
        .server_says(210, smb1::trans2_response(1, part(100)))
        .client_says(300, smb1::query_path(1, "\\b"))
        .server_says(400, smb1::trans2_response(1, part(0)))
        .server_says(410, smb1::trans2_response(1, part(100)))
        .client_acks(500)
        .packets();
    let analysis = analyze(&damage::without(&packets, &[5, 6, 7]));
    assert_eq!(
        analysis.outcomes(),
        ["SMB_COM_TRANSACTION2 response_end_missing", "SMB_COM_TRANSACTION2 ambiguous_match"]
    );
}

#[test]
fn the_second_part_of_an_answer_is_not_taken_for_the_first_of_another() {
    // The classic false match with transactions: only the second part of R1 is left.
    let part = |before| Part { total: 200, before, here: 100 };
    let packets = Conversation::new()
        .client_says(100, smb1::query_path(1, "\\a"))
        .server_says(200, smb1::trans2_response(1, part(0)))
        .server_says(210, smb1::trans2_response(1, part(100)))
        .client_says(300, smb1::query_path(1, "\\b"))
        .server_says(400, smb1::trans2_response(1, part(0)))
        .server_says(410, smb1::trans2_response(1, part(100)))
        .client_acks(500)
        .packets();
    let analysis = analyze(&damage::without(&packets, &[4, 6, 7]));
    assert!(
        analysis.exchanges.iter().all(|exchange| exchange.outcome != ExchangeOutcome::Complete),
        "{:?}",
        analysis.outcomes()
    );
}

#[test]
fn an_oplock_break_is_the_servers_own() {
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, smb1::close(1, 7))
            .server_says(150, smb1::oplock_break(7))
            .server_says(200, smb1::close_response(1)),
    );
    assert_eq!(analysis.outcomes(), ["SMB_COM_CLOSE complete", "SMB_COM_LOCKING_ANDX server_initiated"]);
    assert_eq!(times(&analysis.exchanges[1]), [-1, -1, 150, 150]);
}

#[test]
fn the_dialect_is_the_one_that_the_answer_points_to() {
    let dialects = ["PC NETWORK PROGRAM 1.0", "LANMAN1.0", "LM1.2X002", "NT LM 0.12"];
    for (index, expected) in [(0, Dialect::Core), (1, Dialect::Lanman1), (2, Dialect::Lanman2), (3, Dialect::NtLm012)] {
        let analysis = analyze_told(
            &Conversation::new()
                .client_says(100, smb1::negotiate(0, &dialects))
                .server_says(200, smb1::negotiate_response(0, index)),
        );
        assert_eq!(analysis.connections[0].dialect, Some(expected));
    }
}
