//! SMB2 exchanges: completion, times, and outcomes.

use crate::common::{analyze, analyze_told, duration_us, times, us};
use smbscope_model::{CommandGroup, Dialect, ExchangeOutcome, FileId, ResponseStatus, Subcommand, TimeKind};
use smbscope_testkit::{Conversation, damage, framed, smb1, smb2};
use smbscope_wire::smb2::Smb2Command;

#[test]
fn a_straddling_exchange_has_four_timestamps_and_every_duration() {
    let analysis = analyze_told(
        &Conversation::new()
            .client_says_over(&[100, 200, 300], smb2::write(1, 7, 0, &[0; 200]))
            .server_says_over(&[500, 700], smb2::write_response(1, 200)),
    );
    let exchange = analysis.only();
    assert_eq!(times(exchange), [100, 300, 500, 700]);
    let durations = TimeKind::ALL.map(|kind| duration_us(exchange, kind));
    let expected = [
        Some(700 - 100),
        Some(500 - 300),
        // The handshake's round trip to the server is 10 µs.
        Some(500 - 300 - 10),
        Some(300 - 100),
        Some(700 - 500),
        Some(700 - 300),
        None,
        None,
    ];
    assert_eq!(durations, expected);
    assert_eq!((exchange.request.packets, exchange.response.packets), (3, 2));
    // Header 64, WRITE 48 and its data; header 64 and WRITE response 16.
    assert_eq!((exchange.request.bytes, exchange.response.bytes), (64 + 48 + 200, 64 + 16));
}

#[test]
fn packet_numbers_are_those_of_the_file() {
    // Packets 1 to 3 are the handshake.
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, smb2::write(1, 7, 0, &[0; 2000]))
            .server_says(500, smb2::write_response(1, 2000)),
    );
    let exchange = analysis.only();
    let stamps = [exchange.request.first, exchange.request.last, exchange.response.first, exchange.response.last];
    assert_eq!(stamps.map(|stamp| stamp.map(|stamp| stamp.packet.number())), [4, 5, 6, 6].map(Some));
}

#[test]
fn an_interim_response_ends_nothing() {
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, smb2::read(1, 7, 0, 4096))
            .server_says(200, smb2::pending(Smb2Command::READ, 1, 0x55))
            .server_says(900, smb2::read_response(1, &[0; 100]).asynchronous(0x55)),
    );
    let exchange = analysis.only();
    assert_eq!((times(exchange), us(exchange.interim)), ([100, 100, 900, 900], 200));
    assert_eq!((exchange.outcome, analysis.quality.interim_responses), (ExchangeOutcome::Complete, 1));
}

#[test]
fn an_async_id_alone_finds_no_request() {
    // The server reuses AsyncId 1. The final response to 5 and request 6 are lost.
    let packets = Conversation::new()
        .client_says(100, smb2::read(5, 7, 0, 4096))
        .server_says(200, smb2::pending(Smb2Command::READ, 5, 1))
        .server_says(300, smb2::read_response(5, &[0; 100]).asynchronous(1))
        .client_says(400, smb2::read(6, 7, 4096, 4096))
        .server_says(500, smb2::pending(Smb2Command::READ, 6, 1))
        .server_says(900, smb2::read_response(6, &[0; 100]).asynchronous(1))
        .client_acks(1000)
        .packets();
    let analysis = analyze(&damage::without(&packets, &[5, 6]));
    let found: Vec<_> = analysis.exchanges.iter().map(|exchange| (exchange.message_id, exchange.outcome)).collect();
    assert_eq!(
        found,
        [(Some(5), ExchangeOutcome::ResponseNotCaptured), (Some(6), ExchangeOutcome::RequestNotCaptured)]
    );
}

#[test]
fn a_response_with_another_async_id_than_the_interim_response_is_refused() {
    // MS-SMB2 §3.3.4.2, §3.3.4.4: the final response carries the AsyncId of the interim response.
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, smb2::read(5, 7, 0, 4096))
            .server_says(200, smb2::pending(Smb2Command::READ, 5, 0x55))
            .server_says(900, smb2::read_response(5, &[0; 100]).asynchronous(0x56))
            .closes(1000),
    );
    assert_eq!(analysis.outcomes(), ["READ unanswered", "READ request_not_captured"]);
    assert_eq!(analysis.quality.causality_refused, 1);
}

#[test]
fn a_cancelled_request_is_timed_from_itself() {
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, smb2::notify(5, 7))
            .server_says(200, smb2::pending(Smb2Command::CHANGE_NOTIFY, 5, 0x55))
            .client_says(5000, smb2::cancel(5).asynchronous(0x55))
            .server_says(5100, smb2::error(Smb2Command::CHANGE_NOTIFY, 5, smb2::STATUS_CANCELLED).asynchronous(0x55)),
    );
    assert_eq!(analysis.outcomes(), ["CHANGE_NOTIFY complete", "CANCEL no_response_by_design"]);
    assert_eq!(times(&analysis.exchanges[0]), [100, 100, 5100, 5100]);
    assert_eq!(analysis.exchanges[0].group, CommandGroup::Waiting);
}

#[test]
fn members_of_a_compound_share_the_timestamps_of_their_frames() {
    let requests = smb2::compound(&[
        smb2::create(1, "a.txt"),
        smb2::read(2, smb2::RELATED, 0, 100).related(),
        smb2::close(3, smb2::RELATED).related(),
    ]);
    let responses = smb2::compound(&[
        smb2::create_response(1, 7),
        smb2::read_response(2, &[1; 100]).related(),
        smb2::close_response(3).related(),
    ]);
    let analysis =
        analyze_told(&Conversation::new().client_says(100, requests).server_says_over(&[300, 400], responses));
    assert_eq!(analysis.outcomes(), ["CREATE complete", "READ complete", "CLOSE complete"]);
    for exchange in &analysis.exchanges {
        assert!(exchange.compounded);
        assert_eq!(times(exchange), [100, 100, 300, 400]);
        assert_eq!(exchange.path.as_deref(), Some("a.txt"), "related members work on what the first one opened");
        assert_eq!(exchange.file_id, Some(FileId::Smb2 { persistent: 0x100, volatile: 7 }));
    }
}

#[test]
fn members_of_a_compound_may_be_answered_one_by_one() {
    let requests = smb2::compound(&[smb2::echo(1), smb2::echo(2)]);
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, requests)
            .server_says(300, smb2::echo_response(1))
            .server_says(500, smb2::echo_response(2)),
    );
    let ends: Vec<_> = analysis.exchanges.iter().map(times).collect();
    assert_eq!(ends, [[100, 100, 300, 300], [100, 100, 500, 500]]);
}

#[test]
fn a_break_is_the_servers_own() {
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, smb2::echo(1))
            .server_says(150, smb2::oplock_break(7))
            .server_says(200, smb2::echo_response(1)),
    );
    assert_eq!(analysis.outcomes(), ["ECHO complete", "OPLOCK_BREAK server_initiated"]);
    let exchange = &analysis.exchanges[1];
    assert_eq!(exchange.subcommand, Some(Subcommand::ServerInitiated));
    assert_eq!((times(exchange), analysis.quality.server_breaks), ([-1, -1, 150, 150], 1));
}

#[test]
fn an_smb1_negotiate_may_be_answered_in_smb2() {
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, smb1::negotiate(0, &["NT LM 0.12", "SMB 2.???"]))
            .server_says(300, smb2::negotiate_response(0, 0x02ff))
            .client_says(400, smb2::negotiate(1, &[0x0210, 0x0300]))
            .server_says(450, smb2::negotiate_response(1, 0x0300)),
    );
    assert_eq!(analysis.outcomes(), ["SMB_COM_NEGOTIATE complete", "NEGOTIATE complete"]);
    assert_eq!(times(&analysis.exchanges[0]), [100, 100, 300, 300]);
    assert_eq!(analysis.connections[0].dialect, Some(Dialect::Smb2(0x0300)));
}

#[test]
fn only_message_id_0_answers_an_smb1_negotiate() {
    // MS-SMB2 §3.3.5.3.2: the response to the SMB1 NEGOTIATE has MessageId 0, the following SMB2 NEGOTIATE has 1. The
    // response at 300 µs and the request at 400 µs are lost.
    let packets = Conversation::new()
        .client_says(100, smb1::negotiate(0, &["NT LM 0.12", "SMB 2.???"]))
        .server_says(300, smb2::negotiate_response(0, 0x02ff))
        .client_says(400, smb2::negotiate(1, &[0x0210, 0x0300]))
        .server_says(450, smb2::negotiate_response(1, 0x0300))
        .client_acks(500)
        .packets();
    let analysis = analyze(&damage::without(&packets, &[4, 5]));
    assert_eq!(analysis.outcomes(), ["SMB_COM_NEGOTIATE response_not_captured", "NEGOTIATE request_not_captured"]);
}

#[test]
fn a_request_without_response_is_unanswered_when_the_servers_stream_is_whole() {
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, smb2::echo(1))
            .client_says(200, smb2::echo(2))
            .server_says(300, smb2::echo_response(2))
            .closes(400),
    );
    assert_eq!(analysis.outcomes(), ["ECHO unanswered", "ECHO complete"]);
    assert_eq!(analysis.quality.requests_unanswered, 1);
}

#[test]
fn a_dropped_response_is_no_unanswered_request() {
    let packets = Conversation::new()
        .client_says(100, smb2::echo(1))
        .server_says(150, smb2::echo_response(1))
        .client_says(200, smb2::echo(2))
        .server_says(300, smb2::echo_response(2))
        .client_acks(400)
        .packets();
    // Packet 5 is the first response.
    let analysis = analyze(&damage::without(&packets, &[4]));
    assert_eq!(analysis.outcomes(), ["ECHO response_not_captured", "ECHO complete"]);
    assert_eq!((analysis.quality.responses_not_captured, analysis.quality.requests_unanswered), (1, 0));
}

#[test]
fn a_dropped_request_leaves_a_response_without_request() {
    let packets = Conversation::new()
        .client_says(100, smb2::echo(1))
        .server_says(150, smb2::echo_response(1))
        .client_says(200, smb2::echo(2))
        .server_says(300, smb2::echo_response(2))
        .packets();
    let analysis = analyze(&damage::without(&packets, &[3]));
    assert_eq!(analysis.outcomes(), ["ECHO request_not_captured", "ECHO complete"]);
}

#[test]
fn a_response_of_another_command_is_refused() {
    let analysis = analyze_told(
        &Conversation::new().client_says(100, smb2::echo(1)).server_says(200, smb2::lock_response(1)).closes(300),
    );
    assert_eq!(analysis.outcomes(), ["ECHO unanswered", "LOCK request_not_captured"]);
    assert_eq!(analysis.quality.causality_refused, 1);
}

#[test]
fn a_response_that_the_server_sent_before_it_had_the_request_is_refused() {
    // The server acknowledges nothing of the request in its "response", so it can't be one.
    let mut packets =
        Conversation::new().client_says(100, smb2::echo(1)).server_says(200, smb2::echo_response(1)).packets();
    packets[4].acknowledgment = packets[3].sequence;
    let analysis = analyze(&packets);
    assert_eq!(analysis.outcomes(), ["ECHO unanswered", "ECHO request_not_captured"]);
    assert_eq!(analysis.quality.causality_refused, 1);
}

#[test]
fn a_response_that_begins_before_the_end_of_its_request_has_no_service_time() {
    let mut packets = Conversation::new()
        .client_says_over(&[100, 150], smb2::write(1, 7, 0, &[1; 2000]))
        .server_says_over(&[200, 300], smb2::write_response(1, 2000))
        .closes(400)
        .packets();
    // The capture recorded the end of the request too late: at 250 µs instead of 150.
    packets[4].time = smbscope_model::Timestamp(packets[4].time.0 + 100_000);
    packets.swap(4, 5);
    let analysis = analyze(&packets);
    let exchange = &analysis.exchanges[0];
    assert_eq!((times(exchange), exchange.outcome), ([100, 250, 200, 300], ExchangeOutcome::Complete));
    let kinds = [TimeKind::ResponseTime, TimeKind::ServiceTime, TimeKind::ServerTime, TimeKind::Srt];
    assert_eq!(kinds.map(|kind| duration_us(exchange, kind)), [Some(200), None, None, Some(50)]);
    assert_eq!(analysis.quality.early_responses, 1);
}

#[test]
fn locks_that_wait_are_waits_and_locks_that_fail_at_once_are_not() {
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, smb2::lock(1, 7, 10, 20, 0x02))
            .server_says(200, smb2::lock_response(1))
            .client_says(300, smb2::lock(2, 7, 10, 20, 0x12))
            .server_says(400, smb2::lock_response(2)),
    );
    let groups: Vec<CommandGroup> = analysis.exchanges.iter().map(|exchange| exchange.group).collect();
    assert_eq!(groups, [CommandGroup::Waiting, CommandGroup::Locking]);
    assert_eq!((analysis.exchanges[0].offset, analysis.exchanges[0].length), (Some(10), Some(20)));
}

#[test]
fn think_time_runs_while_nothing_is_outstanding() {
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, smb2::echo(1))
            .server_says(300, smb2::echo_response(1))
            .client_says(1000, smb2::echo(2))
            .client_says(1100, smb2::echo(3))
            .server_says(1200, smb2::echo_response(2))
            .server_says(1300, smb2::echo_response(3)),
    );
    let think: Vec<_> = analysis.exchanges.iter().map(|it| duration_us(it, TimeKind::ThinkTime)).collect();
    // The second request follows the first response by 700 µs; the third is sent while the second is outstanding.
    assert_eq!(think, [None, Some(700), None]);
    assert_eq!(analysis.connections[0].max_outstanding, 2);
}

#[test]
fn a_wait_by_design_does_not_stop_think_time() {
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, smb2::notify(1, 7))
            .client_says(200, smb2::echo(2))
            .server_says(300, smb2::echo_response(2))
            .client_says(1000, smb2::echo(3))
            .server_says(1100, smb2::echo_response(3))
            .closes(2000),
    );
    assert_eq!(analysis.outcomes(), ["CHANGE_NOTIFY unanswered", "ECHO complete", "ECHO complete"]);
    assert_eq!(duration_us(&analysis.exchanges[2], TimeKind::ThinkTime), Some(700));
}

#[test]
fn an_error_is_an_answer() {
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, smb2::create(1, "none.txt"))
            .server_says(200, smb2::error(Smb2Command::CREATE, 1, smb2::STATUS_NOT_FOUND)),
    );
    let exchange = analysis.only();
    assert_eq!((exchange.outcome, exchange.file_id), (ExchangeOutcome::Complete, None));
    assert!(exchange.status.is_some_and(ResponseStatus::is_error));
}

#[test]
fn a_retransmission_moves_no_timestamp_and_its_delay_is_told() {
    let conversation =
        Conversation::new().client_says(100, smb2::echo(1)).server_says(900, smb2::echo_response(1)).client_acks(1000);
    let mut packets = conversation.packets();
    // The request is retransmitted after 400 µs, with a new identification.
    let mut again = packets[3].clone();
    again.time.0 += 400_000;
    again.ip_id += 1;
    packets.insert(4, again);
    let analysis = analyze(&packets);
    let exchange = analysis.only();
    assert_eq!(times(exchange), [100, 100, 900, 900]);
    assert_eq!((exchange.retransmitted, duration_us(exchange, TimeKind::RetransmissionDelay)), (1, Some(400)));
}

#[test]
fn a_retransmission_after_the_end_is_still_told() {
    let mut packets =
        Conversation::new().client_says(100, smb2::echo(1)).server_says(300, smb2::echo_response(1)).packets();
    let mut again = packets[4].clone();
    again.time.0 += 200_000_000;
    again.ip_id += 1;
    packets.push(again);
    let analysis = analyze(&packets);
    assert_eq!(times(analysis.only()), [100, 100, 300, 300]);
    assert_eq!(duration_us(analysis.only(), TimeKind::RetransmissionDelay), Some(200_000));
}

#[test]
fn signed_messages_are_marked() {
    let analysis = analyze_told(
        &Conversation::new().client_says(100, smb2::echo(1).signed()).server_says(200, smb2::echo_response(1).signed()),
    );
    assert!(analysis.only().signed);
    assert_eq!(analysis.connections[0].signed_messages, 2);
}

#[test]
fn requests_of_one_segment_are_told_apart() {
    let together = [framed(smb2::echo(1)), framed(smb2::echo(2))].concat();
    let analysis = analyze_told(
        &Conversation::new()
            .client_sends(100, together)
            .server_says(200, smb2::echo_response(2))
            .server_says(300, smb2::echo_response(1)),
    );
    let ends: Vec<_> = analysis.exchanges.iter().map(|exchange| (exchange.message_id, times(exchange)[3])).collect();
    assert_eq!(ends, [(Some(1), 300), (Some(2), 200)]);
}

#[test]
fn negotiates_with_the_same_id_have_an_answer_each() {
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, smb1::negotiate(0, &["NT LM 0.12", "SMB 2.???"]))
            .server_says(200, smb2::negotiate_response(0, 0x02ff))
            .client_says(300, smb2::negotiate(0, &[0x0202, 0x0210]))
            .server_says(500, smb2::negotiate_response(0, 0x0210)),
    );
    let ends: Vec<_> = analysis.exchanges.iter().map(|exchange| (exchange.outcome, times(exchange))).collect();
    let expected =
        [(ExchangeOutcome::Complete, [100, 100, 200, 200]), (ExchangeOutcome::Complete, [300, 300, 500, 500])];
    assert_eq!(ends, expected);
}

#[test]
fn a_request_without_its_end_is_timed_and_counted() {
    let packets = Conversation::new()
        .client_says_over(&[100, 200, 300], smb2::write(1, 7, 0, &[0; 200]))
        .server_says(500, smb2::write_response(1, 200))
        .packets();
    // Packets 1 to 3 are the handshake, 4 to 6 the request.
    let analysis = analyze(&damage::without(&packets, &[5]));
    assert_eq!((times(analysis.only()), analysis.only().outcome), ([100, -1, 500, 500], ExchangeOutcome::Complete));
    assert_eq!(analysis.quality.request_end_missing, 1);
}
