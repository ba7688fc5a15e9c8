//! Recognition of SMB flows, of client and server, and connection summaries.

use crate::common::{analyze, analyze_ports, analyze_told, times};
use smbscope_analyze::AnalyzerOptions;
use smbscope_analyze::pipeline::{CaptureFindings, Sharding, Threading, run};
use smbscope_capture::TcpFlags;
use smbscope_capture::reader::{CaptureInput, CaptureSet};
use smbscope_model::connection::ConnectionEnd;
use smbscope_model::{ConnectAttempt, ConnectAttempts, Exchange, Nanos, Timestamp};
use smbscope_testkit::conversation::together;
use smbscope_testkit::packet::EPOCH;
use smbscope_testkit::{Conversation, Packet, Side, pcap, smb2};
use std::io::Write;

fn echo_at(conversation: Conversation, at: i64, message_id: u64) -> Conversation {
    conversation.client_says(at, smb2::echo(message_id)).server_says(at + 100, smb2::echo_response(message_id))
}

#[test]
fn smb_is_recognised_on_any_port() {
    let analysis = analyze_told(&echo_at(Conversation::new().ports(50_000, 31_337), 100, 1));
    assert_eq!(analysis.outcomes(), ["ECHO complete"]);
    assert_eq!(analysis.connections[0].endpoints.server.port(), 31_337);
}

#[test]
fn the_side_that_asks_is_the_client_whatever_its_port() {
    // The "client" connects from port 445 to 50,000, as through a tunnel.
    let analysis = analyze_told(&echo_at(Conversation::new().ports(445, 50_000), 100, 1));
    assert_eq!(analysis.connections[0].endpoints.server.port(), 50_000);
}

#[test]
fn only_the_ports_asked_for_are_looked_at() {
    let flows = [Conversation::new(), Conversation::new().ports(50_001, 1445)];
    let packets = together(&flows.map(|flow| echo_at(flow, 100, 1)));
    assert_eq!(analyze(&packets).connections.len(), 2);
    let analysis = analyze_ports(&packets, &[1445]);
    assert_eq!(analysis.connections.len(), 1);
    assert_eq!(analysis.only().endpoints.server.port(), 1445);
}

#[test]
fn ports_that_are_used_again_make_two_connections() {
    // Both connections use message id 1; the response to the first was never sent.
    let first = Conversation::new().client_says(100, smb2::echo(1)).closes(200);
    let mut second = echo_at(Conversation::new().initial_sequences(77_000, 99_000), 100, 1).packets();
    second.iter_mut().for_each(|packet| packet.time.0 += 1_000_000);
    let packets = [first.packets(), second].concat();
    let analysis = analyze(&packets);
    assert_eq!(analysis.connections.len(), 2);
    assert_eq!(analysis.outcomes(), ["ECHO unanswered", "ECHO complete"]);
    assert_eq!(times(&analysis.exchanges[1]), [1100, 1100, 1200, 1200]);
}

#[test]
fn a_connection_knows_how_it_ended_and_what_it_carried() {
    let analysis = analyze_told(&echo_at(Conversation::new(), 100, 1).closes(300));
    let connection = &analysis.connections[0];
    assert_eq!((connection.end, connection.messages, connection.exchanges), (ConnectionEnd::Closed, 2, 1));
    // Handshake with 10 µs either way.
    let trips = [connection.server_round_trip, connection.client_round_trip].map(|trip| trip.map(|trip| trip.0));
    assert_eq!(trips, [Some(10_000), Some(10_000)]);
    // SYN, ACK, ECHO, FIN, ACK; SYN/ACK, ECHO, FIN. An ECHO has 4 + 64 + 4 bytes.
    assert_eq!((connection.to_server.packets, connection.to_client.packets), (5, 3));
    assert_eq!((connection.to_server.bytes, connection.to_server.message_packets), (72, 1));
}

#[test]
fn packets_that_continue_a_message_are_counted() {
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, smb2::read(1, 7, 0, 3000))
            .server_says(200, smb2::read_response(1, &[0; 3000])),
    );
    let counts = &analysis.connections[0].to_client;
    assert_eq!((counts.message_packets, counts.continuation_packets), (1, 2));
}

#[test]
fn a_signed_dialect_is_noted() {
    let analysis = analyze_told(
        &Conversation::new()
            .client_says(100, smb2::negotiate(0, &[0x0311]))
            .server_says(200, smb2::negotiate_response(0, 0x0311)),
    );
    let connection = &analysis.connections[0];
    assert_eq!(connection.dialect.map(|dialect| dialect.to_string()).as_deref(), Some("3.1.1"));
    assert!(!connection.signing_required, "SecurityMode 1 enables signing, 2 would require it");
}

// Connection attempts that never carried SMB.
//
// Expected values follow from the packets of each scenario.

const SYN: u8 = TcpFlags::SYN;
const SYN_ACK: u8 = TcpFlags::SYN | TcpFlags::ACK;
const RST: u8 = TcpFlags::RST | TcpFlags::ACK;

/// Packets of a connection without data: time in milliseconds, sender and TCP flags of each.
fn told(client_port: u16, server_port: u16, told: &[(i64, Side, u8)]) -> Vec<Packet> {
    let conversation = Conversation::new().ports(client_port, server_port);
    let packets = conversation.initial_sequences(1_000 * u32::from(client_port), 5_000).packets();
    let like = |side: Side, flags: u8| {
        let first =
            packets.iter().find(|packet| packet.side == side && packet.flags.syn()).expect("a handshake").clone();
        let is_first = flags & SYN != 0;
        Packet {
            flags: TcpFlags(flags),
            sequence: first.sequence.wrapping_add(u32::from(!is_first)),
            acknowledgment: if flags & TcpFlags::ACK == 0 {
                0
            } else {
                packets[if side == Side::Client { 1 } else { 0 }].sequence.wrapping_add(1)
            },
            ..first
        }
    };
    let numbered = (1..).zip(told);
    let told = numbered.map(|(number, (ms, side, flags))| {
        let time = Timestamp(EPOCH.0 + ms * 1_000_000);
        Packet { time, ip_id: number, ..like(*side, *flags) }
    });
    told.collect()
}

fn attempts(packets: Vec<Packet>) -> ConnectAttempts {
    findings(packets).connect_attempts
}

fn findings(mut packets: Vec<Packet>) -> CaptureFindings {
    packets.sort_by_key(|packet| packet.time);
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    file.write_all(&pcap::nanos(&packets)).expect("and written");
    let mut set = CaptureSet::open(&[CaptureInput::File(file.path().to_owned())]).expect("a capture");
    let mut sinks = [|_: &Exchange| {}];
    let found =
        run(&mut set, &AnalyzerOptions::default(), Sharding::Connections, Threading::Inline, &mut sinks, |_| {});
    found.expect("in time order")
}

fn only(packets: Vec<Packet>) -> ConnectAttempt {
    let found = attempts(packets);
    assert_eq!((found.listed.len(), found.left_out), (1, 0), "{found:?}");
    found.listed[0].clone()
}

/// Attempts, SYNs, and outcomes: refused, unanswered, closed.
fn counts(attempt: &ConnectAttempt) -> [u64; 5] {
    let ConnectAttempt { attempts, syns, refused, unanswered, closed_without_data, .. } = *attempt;
    [attempts, syns, refused, unanswered, closed_without_data]
}

#[test]
fn syns_without_any_answer_are_unanswered() {
    let attempt =
        only(told(50_000, 445, &[(0, Side::Client, SYN), (1_000, Side::Client, SYN), (3_000, Side::Client, SYN)]));
    assert_eq!(counts(&attempt), [1, 3, 0, 1, 0]);
    assert_eq!(attempt.longest_wait, Nanos(3_000_000_000));
    assert_eq!((attempt.first.time, attempt.last), (EPOCH, Timestamp(EPOCH.0 + 3_000_000_000)));
}

#[test]
fn a_syn_that_is_answered_with_a_reset_is_refused_and_attempts_of_a_client_add_up() {
    // Two client ports; the second attempt takes 2 s.
    let mut packets = told(50_000, 445, &[(0, Side::Client, SYN), (1, Side::Server, RST)]);
    packets.extend(told(50_001, 445, &[(500, Side::Client, SYN), (2_500, Side::Server, RST)]));
    let attempt = only(packets);
    assert_eq!(counts(&attempt), [2, 2, 2, 0, 0]);
    assert_eq!(attempt.longest_wait, Nanos(2_000_000_000));
}

#[test]
fn a_connection_that_is_reset_before_any_message_is_closed_without_data() {
    let attempt = only(told(
        50_000,
        139,
        &[(0, Side::Client, SYN), (1, Side::Server, SYN_ACK), (2, Side::Client, TcpFlags::ACK), (3, Side::Client, RST)],
    ));
    assert_eq!(counts(&attempt), [1, 1, 0, 0, 1]);
}

#[test]
fn a_connection_that_is_still_open_or_carried_smb_is_no_failed_attempt() {
    let open =
        told(50_000, 445, &[(0, Side::Client, SYN), (1, Side::Server, SYN_ACK), (2, Side::Client, TcpFlags::ACK)]);
    assert!(attempts(open).is_empty());
    let smb = Conversation::new().client_says(100, smb2::echo(1)).server_says(200, smb2::echo_response(1)).closes(300);
    assert!(attempts(smb.packets()).is_empty());
}

/// SYN, SYN and ACK, ACK, and the four packets that close. The two in between, with all of the SMB, are not captured.
#[test]
fn a_connection_that_lost_its_messages_is_no_failed_attempt_but_hides_a_command() {
    let smb = Conversation::new().client_says(100, smb2::echo(1)).server_says(200, smb2::echo_response(1)).closes(300);
    let mut packets = smb.packets();
    packets.retain(|packet| packet.payload.is_empty());
    let found = findings(packets);
    assert!(found.connect_attempts.is_empty(), "{:?}", found.connect_attempts);
    assert_eq!(found.quality.commands_unseen, 1);
}

#[test]
fn other_ports_count_where_their_server_spoke_smb() {
    let refused = |port| told(50_000, port, &[(0, Side::Client, SYN), (1, Side::Server, RST)]);
    assert!(attempts(refused(4_450)).is_empty());
    let smb = Conversation::new()
        .ports(50_009, 4_450)
        .client_says(100, smb2::echo(1))
        .server_says(200, smb2::echo_response(1));
    let mut packets = together(&[smb]);
    packets.extend(refused(4_450));
    packets.extend(refused(80));
    assert_eq!(only(packets).server.port(), 4_450);
}
