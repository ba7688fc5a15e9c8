//! Negotiated offers of both sides, as far as they were captured and not beyond.

use crate::common::{analyze, analyze_told};
use smbscope_model::{ConnectionSummary, Dialect, Offers, SigningOffer};
use smbscope_testkit::conversation::together;
use smbscope_testkit::{Conversation, damage, smb1, smb2};

const SMB_2_0_2: Dialect = Dialect::Smb2(0x0202);
const SMB_2_1: Dialect = Dialect::Smb2(0x0210);
const SMB_3_0: Dialect = Dialect::Smb2(0x0300);

/// Dialects offered by the client, and the one chosen by the server.
fn dialects(offers: &Offers) -> (Option<Vec<Dialect>>, Option<Dialect>) {
    (offers.client.as_ref().map(|client| client.dialects.clone()), offers.chosen())
}

fn only(connections: &[ConnectionSummary]) -> &ConnectionSummary {
    let [connection] = connections else { panic!("one connection expected: {connections:#?}") };
    connection
}

#[test]
fn both_sides_are_told_apart() {
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, smb2::negotiate(0, &[0x0202, 0x0210, 0x0300]))
            .server_says(200, smb2::negotiate_response(0, 0x0210)),
    );
    let offers = &only(&analysis.connections).offers;
    assert_eq!(dialects(offers), (Some(vec![SMB_2_0_2, SMB_2_1, SMB_3_0]), Some(SMB_2_1)));
    // SecurityMode 1 on both sides: SMB2_NEGOTIATE_SIGNING_ENABLED.
    let signing = |offers: &Offers| {
        (offers.client.as_ref().map(|client| client.signing), offers.server.as_ref().map(|server| server.signing))
    };
    assert_eq!(signing(offers), (Some(SigningOffer::Enabled), Some(SigningOffer::Enabled)));
}

#[test]
fn a_negotiation_that_begins_with_smb1_goes_on_in_smb2() {
    // MS-SMB2 §3.3.5.3.2: the answer to "SMB 2.???" is 0x02ff, and the client negotiates again.
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, smb1::negotiate(1, &["NT LM 0.12", "SMB 2.002", "SMB 2.???"]))
            .server_says(200, smb2::negotiate_response(0, 0x02ff))
            .client_says(300, smb2::negotiate(1, &[0x0202, 0x0210, 0x0300]))
            .server_says(400, smb2::negotiate_response(1, 0x0300)),
    );
    let offers = &only(&analysis.connections).offers;
    let offered = vec![Dialect::NtLm012, SMB_2_0_2, SMB_2_1, SMB_3_0];
    assert_eq!(dialects(offers), (Some(offered), Some(SMB_3_0)));
    assert!(offers.client.as_ref().is_some_and(|client| client.began_with_smb1));
    assert_eq!(analysis.connections[0].dialect, Some(SMB_3_0));
}

#[test]
fn a_server_that_answers_smb1_in_smb2_has_the_last_word() {
    // MS-SMB2 §3.3.5.3.1: without a wildcard, the answer to "SMB 2.002" is 2.0.2.
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, smb1::negotiate(1, &["NT LM 0.12", "SMB 2.002"]))
            .server_says(200, smb2::negotiate_response(0, 0x0202)),
    );
    let offers = &only(&analysis.connections).offers;
    assert_eq!(dialects(offers), (Some(vec![Dialect::NtLm012, SMB_2_0_2]), Some(SMB_2_0_2)));
}

#[test]
fn what_was_not_captured_stays_unknown() {
    let told = Conversation::new()
        .client_says(100, smb2::negotiate(0, &[0x0202, 0x0210]))
        .server_says(200, smb2::negotiate_response(0, 0x0210))
        .client_says(300, smb2::read(5, 7, 0, 100))
        .server_says(400, smb2::read_response(5, &[1; 100]))
        .client_acks(500)
        .packets();
    // Packets 0 to 2 are the handshake.
    let without = |packets: &[usize]| dialects(&only(&analyze(&damage::without(&told, packets)).connections).offers);
    assert_eq!(without(&[4]), (Some(vec![SMB_2_0_2, SMB_2_1]), None), "the answer is missing");
    assert_eq!(without(&[3]), (None, Some(SMB_2_1)), "the request is missing");
    assert_eq!(without(&[0, 1, 2, 3, 4]), (None, None), "the capture began in the middle");
}

#[test]
fn connections_with_the_same_offer_share_it() {
    let conversation = |client: u16| {
        Conversation::new()
            .ports(client, 445)
            .client_says(100, smb2::negotiate(0, &[0x0202, 0x0210]))
            .server_says(200, smb2::negotiate_response(0, 0x0210))
    };
    let analysis = analyze(&together(&[conversation(50_001), conversation(50_002)]));
    let [one, other] = &analysis.connections[..] else { panic!("{:#?}", analysis.connections) };
    let client = |connection: &ConnectionSummary| connection.offers.client.clone().expect("it was captured");
    assert!(std::sync::Arc::ptr_eq(&client(one), &client(other)));
}
