//! Connection summaries: negotiated offers, as far as they were captured and not beyond; credits, pending commands,
//! interfaces and windows.

use crate::common::{self, analyze, analyze_told};
use smbscope_model::{ConnectionSummary, Dialect, Nanos, Offers, SigningOffer};
use smbscope_testkit::conversation::together;
use smbscope_testkit::{Conversation, Side, damage, smb1, smb2};
use smbscope_wire::smb2::Smb2Command;

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

// Credits, pending commands, interfaces and windows. All numbers can be computed on paper.

/// Microseconds per millisecond.
const US: i64 = 1_000;

fn summary(conversation: &Conversation) -> ConnectionSummary {
    only(&analyze_told(conversation).connections).clone()
}

/// A connection whose server grants this many credits with its NEGOTIATE.
fn with_credits(credits: u16) -> Conversation {
    Conversation::new()
        .client_says(100, smb2::negotiate(0, &[0x0311]).credits(1, 31))
        .server_says(200, smb2::negotiate_response(0, 0x0311).credits(1, credits))
}

/// Four reads of 4 credits each: two at 10 ms, and each further one as soon as a response grants 4, at 20 and 30 ms.
fn reads(mut conversation: Conversation) -> Conversation {
    let (ask, answer) = (
        |id: u64| smb2::read(id, 7, id << 18, 1 << 18).credits(4, 4),
        |id: u64| smb2::read_response(id, &[0; 100]).credits(4, 4),
    );
    conversation = conversation.client_says(10 * US, ask(1)).client_says(10 * US + 10, ask(5));
    for (at, answered, asked) in [(20 * US, 1, 9), (30 * US, 5, 13)] {
        conversation = conversation.server_says(at, answer(answered)).client_says(at + 50, ask(asked));
    }
    conversation.server_says(40 * US, answer(9)).server_says(41 * US, answer(13))
}

#[test]
fn a_client_whose_credits_are_all_outstanding_waits_for_them() {
    // From 10.01 to 20 ms and from 20.05 to 30 ms.
    assert_eq!(summary(&reads(with_credits(8))).credit_wait, Nanos(19_940 * US));
    assert_eq!(summary(&reads(with_credits(64))).credit_wait, Nanos(0), "there are 56 credits left");
}

#[test]
fn credits_are_not_counted_where_a_grant_may_be_missing() {
    let mut begun = with_credits(8).client_says(300, smb2::echo(20)).server_says(400, smb2::echo_response(20));
    begun = reads(begun);
    assert!(summary(&begun).credit_wait > Nanos(0));
    let packets = begun.packets();
    let echo = packets.iter().position(|packet| packet.holds(Side::Server, begun.spans()[3].start));
    let lost = damage::without(&packets, &[echo.expect("it is there")]);
    assert_eq!(only(&common::analyze(&lost).connections).credit_wait, Nanos(0));
    // The beginning is missing.
    let cut = &packets[8..];
    assert_eq!(only(&common::analyze(cut).connections).credit_wait, Nanos(0));
}

#[test]
fn requests_put_off_are_counted_until_their_final_response() {
    let mut conversation = with_credits(64);
    for id in 1..=5u64 {
        conversation = conversation
            .client_says(id as i64 * US, smb2::notify(id, id))
            .server_says(id as i64 * US + 100, smb2::pending(Smb2Command::CHANGE_NOTIFY, id, 0x100 + id));
    }
    // Two end before the last one arrives, so four were pending after it and five before.
    conversation = conversation
        .server_says(6 * US, smb2::notify_response(1).asynchronous(0x101))
        .server_says(6 * US + 50, smb2::notify_response(2).asynchronous(0x102))
        .client_says(7 * US, smb2::notify(6, 6))
        .server_says(7 * US + 100, smb2::pending(Smb2Command::CHANGE_NOTIFY, 6, 0x106));
    assert_eq!(summary(&conversation).max_asynchronous, 5);
}

#[test]
fn the_interfaces_of_a_server_and_a_bound_session_are_kept() {
    let listed = [(2, 10_000_000_000, [10, 0, 0, 2]), (3, 1_000_000_000, [10, 0, 1, 2])];
    let asked = with_credits(8)
        .client_says(300, smb2::query_interfaces(1))
        .server_says(400, smb2::interfaces_response(1, &listed));
    let summary = summary(&asked);
    let found: Vec<_> = summary.server_interfaces.iter().map(|one| (one.index, one.link_speed)).collect();
    assert_eq!(found, [(2, 10_000_000_000), (3, 1_000_000_000)]);
    assert_eq!(summary.server_interfaces[1].address, std::net::IpAddr::from([10, 0, 1, 2]));
    assert!(!summary.binds_session);
    let bound = with_credits(8)
        .client_says(300, smb2::session_bind(1, "LAB", "ann", 0x11))
        .server_says(400, smb2::session_setup_response(1, 0x11));
    assert!(only(&analyze_told(&bound).connections).binds_session);
}

/// smbtorture's multichannel tests query the interfaces of a real Samba, and then bind further connections to a
/// session.
#[test]
fn the_interfaces_of_a_real_server_are_read() {
    let connections = common::read_connections(&common::bundled("own/torture_smb2.multichannel.generic.pcap.zst"));
    let told: Vec<_> = connections.iter().flat_map(|connection| &connection.server_interfaces).collect();
    // The server has the addresses fd99::1 and 10.99.0.1, to which Samba assigns no index.
    let addresses: Vec<String> = told.iter().map(|one| one.address.to_string()).collect();
    assert_eq!(addresses, ["fd99::1", "10.99.0.1"]);
    assert!(told.iter().all(|one| (one.index, one.link_speed) == (u32::MAX, 1_000_000_000)));
    // smb2.multichannel.generic.num_channels opens 32 further connections; the server refuses the last.
    assert_eq!(connections.iter().filter(|one| one.binds_session).count(), 32);
}

#[test]
fn an_answer_without_interfaces_says_nothing_of_them() {
    for refused in [
        smb2::error(Smb2Command::IOCTL, 1, 0xc000_00bb).into(),
        smb2::interfaces_response(1, &[]).into(),
        // Truncated in the middle of the first interface.
        Vec::from(smb2::interfaces_response(1, &[(2, 1, [10, 0, 0, 2])]))[..140].to_vec(),
    ] {
        let refused: Vec<u8> = refused;
        let asked = with_credits(8).client_says(300, smb2::query_interfaces(1)).server_says(400, refused);
        assert!(summary(&asked).server_interfaces.is_empty());
    }
}

/// The client's window holds 8,000 bytes. Its server is 20 ms away and sends 48 segments of up to 1,000 bytes, 8 at a
/// time, each 8 as soon as the acknowledgment of the previous ones arrives: six round trips of 20.01 ms.
#[test]
fn a_response_that_comes_window_by_window_is_limited_by_the_client() {
    let conversation = |window: u16, late: i64| {
        let mut told = Conversation::far(20 * US).window_scales(0, 0).window(Side::Client, window);
        told = told
            .client_says(30 * US, smb2::negotiate(0, &[0x0311]))
            .server_says(50 * US, smb2::negotiate_response(0, 0x0311))
            .client_says(60 * US, smb2::read(1, 7, 0, 47_900));
        let round = 20 * US + 100 + late;
        let times: Vec<i64> = (0..48).map(|n| 80 * US + late + n / 8 * round + n % 8).collect();
        told = told.server_says_over(&times, smb2::read_response(1, &[0; 47_900]));
        for n in 0..6 {
            told = told.client_acks(80 * US + late + n * round + 100);
        }
        summary(&told).to_client
    };
    let limited = conversation(8_000, 0);
    assert_eq!((limited.window_limited_ns, limited.filled_window), (Nanos(6 * 20_010 * US), Some(8_000)));
    // A window twice as large is never filled; a server that takes 10 ms more for each 8 segments waits for something
    // else.
    for other in [conversation(16_000, 0), conversation(8_000, 10 * US)] {
        assert_eq!((other.window_limited_ns, other.filled_window), (Nanos(0), None));
    }
}
