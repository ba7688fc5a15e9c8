//! Encrypted frames are paired only while nothing else is outstanding.

use crate::common::{analyze, analyze_ports, analyze_told, times, us};
use smbscope_model::{Command, Exchange, ExchangeOutcome};
use smbscope_testkit::{Conversation, Packet, Side, damage, smb2};

const SESSION: u64 = 0x11;

#[test]
fn frames_one_after_the_other_are_pairs() {
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, smb2::encrypted(SESSION, 200))
            .server_says_over(&[300, 400], smb2::encrypted(SESSION, 500))
            .client_says(600, smb2::encrypted(SESSION, 210))
            .server_says(700, smb2::encrypted(SESSION, 300)),
    );
    let ends: Vec<_> = analysis.exchanges.iter().map(times).collect();
    assert_eq!(ends, [[100, 100, 300, 400], [600, 600, 700, 700]]);
    for exchange in &analysis.exchanges {
        assert_eq!((exchange.command, exchange.encrypted), (Command::EncryptedFrame, true));
        assert_eq!((exchange.status, exchange.message_id, exchange.session_id), (None, None, Some(SESSION)));
    }
    assert_eq!(analysis.quality.encrypted_frames, 4);
}

#[test]
fn the_port_that_is_asked_for_is_the_servers_where_only_encrypted_frames_were_captured() {
    // A server on a high port, as in a test setup; the capture begins after the login. If the lower port were assumed
    // to be the server's, client and server would be swapped.
    let packets = Conversation::midstream()
        .ports(43_202, 44_653)
        .client_says(100, smb2::encrypted(SESSION, 140))
        .server_says(300, smb2::encrypted(SESSION, 152))
        .client_says(400, smb2::encrypted(SESSION, 88))
        .server_says(500, smb2::encrypted(SESSION, 124))
        // The response to an open or a read can't answer an earlier close, so it is certain that nothing else is
        // outstanding.
        .client_says(600, smb2::encrypted(SESSION, 140))
        .server_says(700, smb2::encrypted(SESSION, 152))
        .client_says(800, smb2::encrypted(SESSION, 113))
        .server_says(900, smb2::encrypted(SESSION, 1000))
        .packets();
    let analysis = analyze_ports(&packets, &[44_653]);
    let complete: Vec<_> =
        analysis.exchanges.iter().filter(|exchange| exchange.outcome == ExchangeOutcome::Complete).map(times).collect();
    assert_eq!(complete.last(), Some(&[800, 800, 900, 900]));
    assert!(analysis.exchanges.iter().all(|exchange| exchange.endpoints.server.port() == 44_653));
}

#[test]
fn frames_under_way_together_are_not_paired() {
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, smb2::encrypted(SESSION, 200))
            .client_says(200, smb2::encrypted(SESSION, 200))
            .server_says(300, smb2::encrypted(SESSION, 500))
            .server_says(400, smb2::encrypted(SESSION, 500)),
    );
    assert!(analysis.exchanges.iter().any(|exchange| exchange.outcome == ExchangeOutcome::NotPairable));
    assert!(
        analysis.exchanges.iter().all(|exchange| exchange.outcome != ExchangeOutcome::Complete),
        "the second answer may be that of the first request: {:?}",
        analysis.outcomes()
    );
}

#[test]
fn an_answer_of_the_size_of_an_interim_response_is_final_only_when_the_client_goes_on() {
    // A plain message of 73 bytes is an error or STATUS_PENDING.
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, smb2::encrypted(SESSION, 200))
            .server_says(200, smb2::encrypted(SESSION, 73))
            .server_says(900, smb2::encrypted(SESSION, 300))
            .client_says(1000, smb2::encrypted(SESSION, 200))
            .server_says(1100, smb2::encrypted(SESSION, 73))
            .client_says(1200, smb2::encrypted(SESSION, 200))
            .server_says(1300, smb2::encrypted(SESSION, 300)),
    );
    let ends: Vec<_> = analysis.exchanges.iter().map(|exchange| (times(exchange), us(exchange.interim))).collect();
    let expected = [([100, 100, 900, 900], 200), ([1000, 1000, 1100, 1100], -1), ([1200, 1200, 1300, 1300], -1)];
    assert_eq!(ends, expected);
}

#[test]
fn a_pair_with_a_gap_between_is_no_pair() {
    // The first response and the second request are lost: the second response must not be paired with the first
    // request.
    let packets = Conversation::new()
        .client_says(100, smb2::encrypted(SESSION, 200))
        .server_says(200, smb2::encrypted(SESSION, 500))
        .client_says(300, smb2::encrypted(SESSION, 200))
        .server_says(400, smb2::encrypted(SESSION, 500))
        .client_acks(500)
        .packets();
    let analysis = analyze(&damage::without(&packets, &[4, 5]));
    assert!(
        analysis.exchanges.iter().all(|exchange| exchange.outcome != ExchangeOutcome::Complete),
        "{:?}",
        analysis.outcomes()
    );
}

#[test]
fn an_encrypted_answer_without_its_request_is_not_paired_with_the_next() {
    // Only the first request is lost: its response was sent before the server had the second one.
    let packets = Conversation::new()
        .client_says(30, smb2::echo(1))
        .server_says(40, smb2::echo_response(1))
        .client_says(100, smb2::encrypted(SESSION, 200))
        .client_says(110, smb2::encrypted(SESSION, 200))
        .server_says(200, smb2::encrypted(SESSION, 500))
        .server_says(300, smb2::encrypted(SESSION, 500))
        .client_acks(500)
        .packets();
    let analysis = analyze(&damage::without(&packets, &[5]));
    let pairs: Vec<_> =
        analysis.exchanges.iter().filter(|exchange| exchange.encrypted && exchange.is_complete()).collect();
    assert!(pairs.is_empty(), "{pairs:?}");
}

#[test]
fn a_response_that_no_request_explains_makes_errors_before_it_doubtful() {
    // The first request has an interim response and ends at 5,000; the second one ends at 1200, with an error of the
    // same size. It could as well be the other way round.
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, smb2::encrypted(SESSION, 328))
            .server_says(200, smb2::encrypted(SESSION, 73))
            .client_says(1000, smb2::encrypted(SESSION, 328))
            .server_says(1200, smb2::encrypted(SESSION, 73))
            .server_says(5000, smb2::encrypted(SESSION, 152))
            .client_says(5100, smb2::encrypted(SESSION, 88))
            .server_says(5200, smb2::encrypted(SESSION, 124)),
    );
    let outcomes: Vec<_> = analysis.exchanges.iter().map(|exchange| exchange.outcome).collect();
    assert_eq!(outcomes, [ExchangeOutcome::NotPairable, ExchangeOutcome::NotPairable, ExchangeOutcome::Complete]);
}

/// Packets of a connection between high ports without its SYN. The server has the higher port.
fn midstream_on_high_ports(sizes: &[[usize; 2]]) -> Vec<Packet> {
    let mut told = Conversation::midstream().ports(43_202, 44_653);
    for (at, [request, response]) in (0..).step_by(200).zip(sizes) {
        told = told.client_says(at, smb2::encrypted(SESSION, *request));
        told = told.server_says(at + 100, smb2::encrypted(SESSION, *response));
    }
    told.packets()
}

#[test]
fn sizes_tell_which_side_is_the_client() {
    // CREATE, READ and CLOSE: a READ request has 113 bytes, a CLOSE request 88 and its response 124 (MS-SMB2 §2.2).
    let sizes = [[140, 152], [113, 1000], [88, 124], [140, 152], [113, 1000], [88, 124]];
    let packets = midstream_on_high_ports(&sizes);
    let analysis = analyze(&packets);
    assert_eq!(analysis.quality.sides_guessed, 0);
    // Frames received before the client was known are not lost.
    let told = analyze_ports(&packets, &[44_653]);
    assert!(told.exchanges.iter().any(Exchange::is_complete));
    assert_eq!(format!("{:?}", analysis.exchanges), format!("{:?}", told.exchanges));
}

#[test]
fn a_side_that_only_ports_tell_is_a_guess() {
    let analysis = analyze(&midstream_on_high_ports(&[[300, 400]; 40]));
    assert_eq!(analysis.quality.sides_guessed, 1);
}

#[test]
fn nonces_that_jump_at_will_are_no_counter() {
    // The largest nonces follow gaps that may hide anything: nothing overflows, and the number of missing messages is
    // limited by the missing bytes.
    let mut told = Conversation::new();
    for (at, count) in (0..).step_by(200).zip([1, 2, 3, u64::MAX / 2 - 1, u64::MAX / 2, u64::MAX - 1, 7, 8]) {
        let numbered = |size| {
            let mut message = smb2::encrypted(SESSION, size);
            message[20..28].copy_from_slice(&u64::to_le_bytes(count));
            message
        };
        told = told.client_says(100 + at, numbered(140)).server_says(200 + at, numbered(152));
    }
    let packets = told.packets();
    let analysis = analyze(&damage::without(&packets, &[9, 10, 13, 14]));
    assert!(analysis.quality.commands_unseen <= 16, "{}", analysis.quality.commands_unseen);
}

// Encrypted requests that stay pending: their final response is not paired with a later request.

/// Sizes of messages (MS-SMB2 §2.2) as clients and servers send them.
const NOTIFY: usize = 96;
const INTERIM: usize = 73;
const CANCELLED: usize = 72;
const CREATE: [usize; 2] = [140, 152];
const CLOSE: [usize; 2] = [88, 124];
const READ: [usize; 2] = [113, 8272];
const BREAK: usize = 88;

/// A conversation with messages half a millisecond apart.
struct Talk {
    conversation: Conversation,
    at: i64,
}

impl Talk {
    fn new() -> Talk {
        Talk { conversation: Conversation::new(), at: 1000 }
    }

    fn says(mut self, side: Side, plain: usize) -> Talk {
        let message = smb2::encrypted(0x1234, plain);
        self.at += 500;
        self.conversation = match side {
            Side::Client => self.conversation.client_says(self.at, message),
            Side::Server => self.conversation.server_says(self.at, message),
        };
        self
    }

    fn client(self, plain: usize) -> Talk {
        self.says(Side::Client, plain)
    }

    fn server(self, plain: usize) -> Talk {
        self.says(Side::Server, plain)
    }

    fn asks(self, [request, response]: [usize; 2]) -> Talk {
        self.client(request).server(response)
    }

    /// Opens and closes files one by one: the sizes prove that nothing else is outstanding.
    fn opens_and_closes(self) -> Talk {
        (0..4).fold(self, |talk, _| talk.asks(CREATE).asks(CLOSE))
    }

    fn packets(self) -> Vec<Packet> {
        self.conversation.client_acks(self.at + 500).packets()
    }
}

/// Returns the indices of the packets of the last message of this size.
fn last_of(packets: &[Packet], side: Side, plain: usize) -> Vec<usize> {
    let mut of_side = packets.iter().enumerate().rev().filter(|(_, packet)| packet.side == side);
    let framed =
        |packet: &Packet| packet.payload.len() >= 4 && packet.payload[1..4] == ((plain + 52) as u32).to_be_bytes()[1..];
    let (first, _) = of_side.by_ref().find(|(_, packet)| framed(packet)).expect("it is said");
    let segments = (plain + 56).div_ceil(1460);
    (first..packets.len()).filter(|place| packets[*place].side == side).take(segments).collect()
}

/// Returns the sizes of request and response of the complete pairs.
fn pairs(packets: &[Packet]) -> Vec<[usize; 2]> {
    let complete =
        analyze(packets).exchanges.into_iter().filter(|exchange| exchange.outcome == ExchangeOutcome::Complete);
    complete
        .map(|exchange| [exchange.request.bytes, exchange.response.bytes].map(|bytes| bytes as usize - 52))
        .collect()
}

#[test]
fn what_ends_a_notification_is_no_answer_to_a_read() {
    // READs two at a time; the CHANGE_NOTIFY ends with an error or a list of changes while one READ is outstanding, and
    // the client sends the next one.
    for end in [CANCELLED, 94, 124] {
        let talk = Talk::new().asks([NOTIFY, INTERIM]).opens_and_closes();
        let [request, response] = READ;
        let talk = talk.client(request).client(request).server(response).server(response);
        let talk = talk.client(request).server(end).client(request).server(response).server(response);
        let found = pairs(&talk.packets());
        assert!(found.contains(&CLOSE) && !found.iter().any(|[asked, _]| *asked == request), "{end}: {found:?}");
    }
}

#[test]
fn what_ends_a_notification_is_no_answer_to_an_open_where_the_answer_is_lost() {
    let talk = Talk::new().asks([NOTIFY, INTERIM]).opens_and_closes();
    let talk = talk.client(CREATE[0]).server(CANCELLED).server(CREATE[1]).asks([98, 1200]).opens_and_closes();
    let packets = talk.packets();
    let ended = last_of(&packets, Side::Server, CANCELLED)[0];
    let lost = [ended + 1, ended + 2];
    assert!(!pairs(&damage::without(&packets, &lost)).contains(&[CREATE[0], CANCELLED]));
}

#[test]
fn a_notification_whose_interim_response_is_followed_by_a_gap_is_still_outstanding() {
    let talk = Talk::new().opens_and_closes().asks([NOTIFY, INTERIM]).asks([98, 1200]).opens_and_closes();
    let packets = talk.client(CREATE[0]).server(INTERIM).server(CANCELLED).opens_and_closes().packets();
    let lost = last_of(&packets, Side::Client, 98);
    assert!(!pairs(&damage::without(&packets, &lost)).iter().any(|[_, answer]| *answer == CANCELLED));
}

#[test]
fn a_break_acknowledgment_has_an_answer_of_its_own() {
    // An oplock break, its acknowledgment, which is as long as a CLOSE, and the end of a CHANGE_NOTIFY before the
    // response to the acknowledgment, which is as long as a break.
    let talk = Talk::new().asks([NOTIFY, INTERIM]).asks(CREATE);
    let talk = talk.server(BREAK).client(BREAK).server(CLOSE[1]).server(BREAK).asks(CREATE);
    assert_eq!(pairs(&talk.packets()), [CREATE, CREATE]);
}

#[test]
fn a_break_behind_a_gap_leaves_open_which_request_is_outstanding() {
    // The response to a READ and the CLOSE after it are lost. A break follows, and the response to the CLOSE.
    let talk = Talk::new().asks(CREATE).asks(READ).client(CLOSE[0]).server(BREAK).server(CLOSE[1]).asks(CREATE);
    let packets = talk.packets();
    let lost = [last_of(&packets, Side::Server, READ[1]), last_of(&packets, Side::Client, CLOSE[0])].concat();
    assert_eq!(pairs(&damage::without(&packets, &lost)), [CREATE, CREATE]);
}
