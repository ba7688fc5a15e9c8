//! Read_Raw and Write_Raw: frames without an SMB header, matched by position.

use crate::common::{Analysis, analyze, analyze_told, times};
use smbscope_model::{ExchangeOutcome, FileId, Subcommand};
use smbscope_testkit::{Conversation, Packet, damage, smb1};

/// A connection that has carried SMB before: only there is data without a header accepted.
fn greeted() -> Conversation {
    Conversation::new()
        .client_says(30, smb1::negotiate(0, &["NT LM 0.12"]))
        .server_says(40, smb1::negotiate_response(0, 0))
}

#[test]
fn the_answer_to_read_raw_is_the_next_frame_of_the_server() {
    let analysis = analyze_told(
        &greeted()
            .client_says(100, smb1::read_raw(1, 7, 4096, 5000))
            .server_says_over(&[300, 400, 500, 600], [9; 5000]),
    );
    let exchange = &analysis.exchanges[1];
    assert_eq!((times(exchange), exchange.outcome), ([100, 100, 300, 600], ExchangeOutcome::Complete));
    assert_eq!((exchange.response.bytes, exchange.status), (5000, None));
    assert_eq!((exchange.offset, exchange.length), (Some(4096), Some(5000)));
}

#[test]
fn an_empty_answer_to_read_raw_is_an_answer() {
    let analysis =
        analyze_told(&greeted().client_says(100, smb1::read_raw(1, 7, 4096, 5000)).server_says(300, Vec::new()));
    assert_eq!(
        (times(&analysis.exchanges[1]), analysis.exchanges[1].outcome),
        ([100, 100, 300, 300], ExchangeOutcome::Complete)
    );
}

#[test]
fn read_raw_data_that_looks_like_smb_text_is_no_message() {
    let mut data = b"....SMB SMB SMB ".repeat(300);
    data[0..4].copy_from_slice(b"data");
    let analysis = analyze_told(
        &greeted()
            .client_says(100, smb1::read_raw(1, 7, 0, 4800))
            .server_says(300, data)
            .client_says(400, smb1::close(1, 7))
            .server_says(500, smb1::close_response(1)),
    );
    assert_eq!(analysis.outcomes()[1..], ["SMB_COM_READ_RAW complete", "SMB_COM_CLOSE complete"]);
}

#[test]
fn write_raw_has_a_synchronous_part_and_an_asynchronous_one() {
    let analysis = analyze_told(
        &greeted()
            .client_says(100, smb1::write_raw(1, 7, 4096, 3000, false))
            .server_says(300, smb1::go_ahead(1))
            .client_says_over(&[400, 500, 600], [9; 3000])
            .client_says(700, smb1::close(2, 7))
            .server_says(900, smb1::close_response(2)),
    );
    assert_eq!(
        analysis.outcomes()[1..],
        ["SMB_COM_WRITE_RAW complete", "SMB_COM_WRITE_RAW no_response_by_design", "SMB_COM_CLOSE complete"]
    );
    let [_, synchronous, asynchronous, _] = &analysis.exchanges[..] else { panic!() };
    assert_eq!(times(synchronous), [100, 100, 300, 300]);
    assert_eq!(times(asynchronous), [400, 600, -1, -1]);
    assert_eq!(asynchronous.subcommand, Some(Subcommand::AsyncPortion));
    assert_eq!((asynchronous.request.bytes, asynchronous.file_id), (3000, Some(FileId::Smb1(7))));
}

#[test]
fn in_write_through_mode_the_data_block_is_answered() {
    let analysis = analyze_told(
        &greeted()
            .client_says(100, smb1::write_raw(1, 7, 4096, 3000, true))
            .server_says(300, smb1::go_ahead(1))
            .client_says_over(&[400, 500], [9; 3000])
            .server_says(900, smb1::write_complete(1, 3000)),
    );
    let ends: Vec<_> = analysis.exchanges[1..].iter().map(times).collect();
    assert_eq!(ends, [[100, 100, 300, 300], [400, 500, 900, 900]]);
    assert_eq!(analysis.exchanges[2].outcome, ExchangeOutcome::Complete);
}

#[test]
fn sambas_go_ahead_has_no_reply_bit() {
    let analysis = analyze_told(
        &greeted()
            .client_says(100, smb1::write_raw(1, 7, 4096, 3000, true))
            .server_says(300, smb1::go_ahead(1).without_reply_bit())
            .client_says_over(&[400, 500], [9; 3000])
            .server_says(900, smb1::write_complete(1, 3000)),
    );
    let ends: Vec<_> = analysis.exchanges[1..].iter().map(times).collect();
    assert_eq!(ends, [[100, 100, 300, 300], [400, 500, 900, 900]]);
}

#[test]
fn a_lost_go_ahead_leaves_the_synchronous_part_without_response() {
    let packets = greeted()
        .client_says(100, smb1::write_raw(1, 7, 4096, 1000, true))
        .server_says(300, smb1::go_ahead(1))
        .client_says(400, [9; 1000])
        .server_says(900, smb1::write_complete(1, 1000))
        .client_acks(1000)
        .packets();
    let analysis = analyze(&damage::without(&packets, &[6]));
    let ends: Vec<_> = analysis.exchanges[1..].iter().map(|exchange| (exchange.outcome, times(exchange))).collect();
    let expected =
        [(ExchangeOutcome::ResponseNotCaptured, [100, 100, -1, -1]), (ExchangeOutcome::Complete, [400, 400, 900, 900])];
    assert_eq!(ends, expected);
}

#[test]
fn the_answer_to_a_lost_block_is_not_taken_for_go_ahead() {
    let packets = greeted()
        .client_says(100, smb1::write_raw(1, 7, 4096, 1000, true))
        .server_says(300, smb1::go_ahead(1))
        .client_says(400, [9; 1000])
        .server_says(900, smb1::write_complete(1, 1000))
        .client_acks(1000)
        .packets();
    // Neither "go ahead" nor the block was captured.
    let analysis = analyze(&damage::without(&packets, &[6, 7]));
    assert!(
        analysis.exchanges[1..].iter().all(|exchange| exchange.outcome != ExchangeOutcome::Complete),
        "{:?}",
        analysis.outcomes()
    );
}

#[test]
fn read_raw_data_behind_a_gap_is_not_taken_for_the_answer() {
    let packets = greeted()
        .client_says(100, smb1::read_raw(1, 7, 0, 100))
        .server_says(200, [1; 100])
        .client_says(300, smb1::read_raw(1, 7, 100, 100))
        .server_says(400, [2; 100])
        .client_acks(500)
        .packets();
    // The first response and the second request are lost: the second response would fit the first request.
    let analysis = analyze(&damage::without(&packets, &[6, 7]));
    assert!(
        analysis.exchanges[1..].iter().all(|exchange| exchange.outcome != ExchangeOutcome::Complete),
        "{:?}",
        analysis.outcomes()
    );
}

/// Two blocks of a client that uses a single MID, in write-through mode. After five packets of greeting: request 5, "go
/// ahead" 6, block 7, response 8; the second ones start at 9.
fn two_blocks() -> Vec<Packet> {
    greeted()
        .client_says(100, smb1::write_raw(1, 7, 0, 1000, true))
        .server_says(200, smb1::go_ahead(1).without_reply_bit())
        .client_says(300, [9; 1000])
        .server_says(400, smb1::go_ahead(1))
        .client_says(500, smb1::write_raw(1, 7, 1000, 1000, true))
        .server_says(600, smb1::go_ahead(1).without_reply_bit())
        .client_says(700, [8; 1000])
        .server_says(800, smb1::go_ahead(1))
        .client_acks(900)
        .packets()
}

/// Offset, outcome and times of both portions of each Write_Raw.
fn raw_parts(analysis: &Analysis) -> Vec<(Option<u64>, ExchangeOutcome, [i64; 4])> {
    analysis.exchanges[1..].iter().map(|it| (it.offset, it.outcome, times(it))).collect()
}

#[test]
fn samba_answers_a_block_as_it_says_go_ahead() {
    let expected = [
        (Some(0), ExchangeOutcome::Complete, [100, 100, 200, 200]),
        (Some(0), ExchangeOutcome::Complete, [300, 300, 400, 400]),
        (Some(1000), ExchangeOutcome::Complete, [500, 500, 600, 600]),
        (Some(1000), ExchangeOutcome::Complete, [700, 700, 800, 800]),
    ];
    assert_eq!(raw_parts(&analyze(&two_blocks())), expected);
}

#[test]
fn a_block_whose_answer_is_lost_does_not_take_the_next_go_ahead() {
    let expected = [
        (Some(0), ExchangeOutcome::Complete, [100, 100, 200, 200]),
        (Some(0), ExchangeOutcome::ResponseNotCaptured, [300, 300, -1, -1]),
        (Some(1000), ExchangeOutcome::Complete, [500, 500, 600, 600]),
        (Some(1000), ExchangeOutcome::Complete, [700, 700, 800, 800]),
    ];
    assert_eq!(raw_parts(&analyze(&damage::without(&two_blocks(), &[8]))), expected);
}

#[test]
fn nor_does_it_where_the_next_request_is_lost_as_well() {
    let analysis = analyze(&damage::without(&two_blocks(), &[8, 9]));
    let complete: Vec<_> = analysis.exchanges[1..].iter().filter(|it| it.is_complete()).map(times).collect();
    assert_eq!(complete, [[100, 100, 200, 200]], "{:?}", analysis.outcomes());
}

#[test]
fn a_block_behind_a_gap_is_not_that_of_the_request_before_it() {
    // Lost: the first block, its response, the second request and its "go ahead".
    let analysis = analyze(&damage::without(&two_blocks(), &[7, 8, 9, 10]));
    let expected = [(Some(0), ExchangeOutcome::Complete, [100, 100, 200, 200])];
    assert_eq!(raw_parts(&analysis)[..1], expected);
    assert!(analysis.exchanges[2..].iter().all(|it| !it.is_complete()), "{:?}", analysis.outcomes());
    assert!(analysis.exchanges.iter().all(|it| times(it)[0] != 700), "the block of 700 µs belongs to no request");
}

#[test]
fn a_go_ahead_without_reply_bit_at_the_beginning_makes_no_client_of_the_server() {
    // The capture begins with the first "go ahead".
    let analysis = analyze(&two_blocks()[6..]);
    assert!(analysis.exchanges.iter().all(|it| it.endpoints.server.port() == 445), "{:?}", analysis.exchanges);
    let complete: Vec<_> = analysis.exchanges.iter().filter(|it| it.is_complete()).map(times).collect();
    assert_eq!(complete, [[500, 500, 600, 600], [700, 700, 800, 800]]);
}

#[test]
fn a_lost_read_raw_is_counted_by_its_answer() {
    let packets = greeted()
        .client_says(100, smb1::read_raw(1, 7, 0, 5000))
        .server_says(300, [9; 5000])
        .client_says(400, smb1::read_raw(2, 7, 5000, 5000))
        .server_says(600, [8; 5000])
        .client_says(700, smb1::close(3, 7))
        .server_says(900, smb1::close_response(3))
        .packets();
    let requests: Vec<usize> =
        (0..packets.len()).filter(|at| packets[*at].payload.get(4..9) == Some(b"\xffSMB\x1a".as_slice())).collect();
    let analysis = analyze(&damage::without(&packets, &[requests[1]]));
    let expected = ["SMB_COM_READ_RAW complete", "SMB_COM_READ_RAW request_not_captured", "SMB_COM_CLOSE complete"];
    assert_eq!(analysis.outcomes()[1..], expected);
    assert_eq!((analysis.quality.responses_without_request, analysis.quality.unknown_frames), (1, 0));
}
