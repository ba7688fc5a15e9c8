//! Every table is bounded, and evictions are counted.

use crate::common::{analyze, analyze_told};
use smbscope_model::ExchangeOutcome;
use smbscope_testkit::conversation::together;
use smbscope_testkit::{Conversation, framed, smb1, smb2};

/// Frames of many messages, as one range of the client's stream.
fn many(messages: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    messages.flat_map(framed).collect()
}

#[test]
fn outstanding_smb2_requests_are_bounded() {
    let requests = many((1..=8192 + 100).map(|id| smb2::echo(id).into()));
    let analysis = analyze_told(&Conversation::new().segment_size(60_000).client_sends(100, requests).closes(90_000));
    let evicted: Vec<_> = analysis.exchanges.iter().filter(|it| it.outcome == ExchangeOutcome::Evicted).collect();
    assert_eq!((evicted.len(), analysis.quality.evicted_requests), (100, 100));
    assert!(evicted.iter().all(|exchange| exchange.message_id <= Some(100)), "the oldest go first");
    assert_eq!(analysis.exchanges.len(), 8192 + 100, "each eviction is reported");
}

#[test]
fn outstanding_smb1_requests_are_bounded() {
    let requests = many((0..4096 + 100).map(|step: u16| smb1::close(step, step).into()));
    let analysis = analyze_told(&Conversation::new().segment_size(60_000).client_sends(100, requests).closes(90_000));
    assert_eq!((analysis.quality.evicted_requests, analysis.exchanges.len()), (100, 4096 + 100));
}

#[test]
fn outstanding_encrypted_frames_are_bounded() {
    let requests = many((0..512 + 100).map(|_| smb2::encrypted(1, 100)));
    let analysis = analyze_told(&Conversation::new().segment_size(60_000).client_sends(100, requests).closes(90_000));
    assert_eq!((analysis.quality.evicted_requests, analysis.exchanges.len()), (100, 512 + 100));
}

#[test]
fn remembered_paths_are_bounded() {
    let opens = 16_384 + 50;
    let requests = |from: u64| many((from..(from + 1000).min(opens)).map(|id| smb2::create(id, "a").into()));
    let responses = |from: u64| many((from..(from + 1000).min(opens)).map(|id| smb2::create_response(id, id).into()));
    let mut conversation = Conversation::new().segment_size(60_000);
    for step in 0..opens.div_ceil(1000) {
        let at = 1000 + 1000 * step as i64;
        conversation =
            conversation.client_sends(at, requests(1000 * step)).server_sends(at + 500, responses(1000 * step));
    }
    let analysis = analyze_told(&conversation);
    assert_eq!(analysis.exchanges.iter().filter(|exchange| exchange.is_complete()).count(), opens as usize);
    assert_eq!(analysis.quality.evicted_names, 50);
}

#[test]
fn names_in_the_summaries_of_connections_are_bounded() {
    // A share name of 2,000 bytes on each of 1,100 connections: 2 MiB hold 1,048 of them.
    let connection = |port: u16| {
        let share = format!(r"\\server\{port:02000}");
        Conversation::new()
            .ports(port, 445)
            .client_says(100, smb2::tree_connect(1, &share))
            .server_says(200, smb2::tree_connect_response(1, 7))
            .closes(300)
    };
    let conversations: Vec<Conversation> = (10_000..11_100).map(connection).collect();
    let analysis = analyze(&together(&conversations));
    let named = analysis.connections.iter().filter(|connection| !connection.shares.is_empty()).count();
    assert_eq!((analysis.connections.len(), named), (1_100, 1_048));
    assert_eq!(analysis.quality.evicted_names, 52);
}
