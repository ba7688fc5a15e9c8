//! Recognition of SMB flows, of client and server, and connection summaries.

use crate::common::{analyze, analyze_ports, analyze_told, times};
use smbscope_model::connection::ConnectionEnd;
use smbscope_testkit::conversation::together;
use smbscope_testkit::{Conversation, smb2};

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
