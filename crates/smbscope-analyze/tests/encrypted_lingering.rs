//! Encrypted requests that stay pending: their final response is not paired with a later request.

use crate::common::analyze;
use smbscope_model::ExchangeOutcome;
use smbscope_testkit::{Conversation, Packet, Side, damage, smb2};

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
