//! The time split: exact to the microsecond on hand-made captures, complete on all others, and with an answer that
//! names the cause of the delay.

use crate::common::{analyze, bundled, directory, write};
use serde_json::Value;
use smbscope_testkit::{Conversation, pcap, smb2};
use std::path::Path;

const PARTS: [&str; 10] = [
    "think_ns",
    "request_transfer_ns",
    "network_ns",
    "server_ns",
    "server_or_network_ns",
    "response_transfer_ns",
    "waiting_ns",
    "idle_ns",
    "unknown_ns",
    "filtered_out_ns",
];

fn report(directory: &Path, file: &str) -> Value {
    let said = analyze(directory, &[file, "--format", "json"]);
    assert_eq!(said.status, Some(0), "{file}: {}", said.err);
    serde_json::from_str(&said.out).expect("the report is JSON")
}

fn number(value: &Value, key: &str) -> i64 {
    value[key].as_i64().unwrap_or_else(|| panic!("no {key} in {value}"))
}

/// Returns the non-empty parts of a conversation's time split in microseconds.
fn parts_us(test: &str, conversation: &Conversation) -> Vec<(&'static str, i64)> {
    let directory = directory(test);
    write(&directory, "hand.pcap", pcap::nanos(&conversation.packets()));
    let report = report(&directory, "hand.pcap");
    let split = &report["connections"][0]["time_split"];
    assert_eq!(split, &report["time_split"], "there is one connection");
    let parts = PARTS.map(|part| (part, number(split, part)));
    assert!(parts.iter().all(|(_, time)| time % 1_000 == 0), "{split}");
    parts.into_iter().filter(|(_, time)| *time > 0).map(|(part, time)| (part, time / 1_000)).collect()
}

#[test]
fn one_command_after_the_other_to_the_microsecond() {
    // The handshake packets at 0, 10 and 20 µs give a round trip of 10 µs to either side.
    let conversation = Conversation::new()
        .client_says_over(&[100, 130], smb2::write(1, 7, 0, &[0; 200]))
        .server_says(430, smb2::write_response(1, 200))
        .client_says(1_430, smb2::read(2, 7, 0, 200))
        .server_says_over(&[1_630, 1_680], smb2::read_response(2, &[1; 200]));
    // 100 µs idle at first; request 30; service 300 and 200, each including 10 of network; 1,000 between the commands,
    // including the 10 of the round trip to the client; response 50.
    assert_eq!(
        parts_us("split_alone", &conversation),
        [
            ("think_ns", 990),
            ("request_transfer_ns", 30),
            ("network_ns", 30),
            ("server_ns", 480),
            ("response_transfer_ns", 50),
            ("idle_ns", 100),
        ]
    );
}

#[test]
fn overlapping_commands_to_the_microsecond() {
    let conversation = Conversation::new()
        .client_says(100, smb2::read(1, 7, 0, 200))
        .client_says(200, smb2::read(2, 7, 200, 200))
        .server_says_over(&[400, 480], smb2::read_response(1, &[1; 200]))
        .server_says(600, smb2::read_response(2, &[1; 200]));
    // The first command alone until 200: 5 network (half of its round trip) and 95 server. Both until 400: every moment
    // counts half for each command. Network takes 5 of these 200 µs (half of the second command's 5 on its way there
    // and of the first command's 5 on its way back), the server 195. The response arrives from 400 to 480: 80. Then the
    // second command alone until 600: 115 server, 5 network.
    assert_eq!(
        parts_us("split_together", &conversation),
        [("network_ns", 15), ("server_ns", 405), ("response_transfer_ns", 80), ("idle_ns", 100)]
    );
}

#[test]
fn the_parts_add_up_for_every_connection_of_every_capture() {
    let mut captures = Vec::new();
    for folder in ["", "own", "damaged"] {
        let entries = std::fs::read_dir(bundled(folder)).expect("there are bundled captures");
        let names = entries.map(|entry| entry.expect("an entry").path()).filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.contains(".pcap") && !name.contains(".tsv")
        });
        captures.extend(names);
    }
    captures.sort();
    assert!(captures.len() > 20, "{captures:?}");
    let directory = directory("split_adds_up");
    for capture in captures {
        let name = capture.to_str().expect("UTF-8");
        let report = report(&directory, name);
        let mut whole = 0;
        for connection in report["connections"].as_array().expect("an array") {
            let split = &connection["time_split"];
            let elapsed = number(connection, "last_ns") - number(connection, "first_ns");
            let sum: i64 = PARTS.iter().map(|part| number(split, part)).sum();
            assert_eq!([sum, number(split, "elapsed_ns")], [elapsed; 2], "{name}: {}", connection["flow_id"]);
            assert!(PARTS.iter().all(|part| number(split, part) >= 0), "{name}: {split}");
            whole += elapsed;
        }
        assert_eq!(number(&report["time_split"], "elapsed_ns"), whole, "{name}");
        let clients = report["clients"].as_array().expect("an array");
        let by_client: i64 = clients.iter().map(|client| number(&client["time_split"], "elapsed_ns")).sum();
        assert_eq!(by_client, whole, "{name}");
    }
}

/// tests/data/README.md describes how each capture was made slow.
#[test]
fn bundled_captures_with_trouble_name_it() {
    let directory = directory("split_trouble");
    let troubles = [("slow-server", "server", "server_ns"), ("lossy-network", "network", "network_ns")];
    for (name, who, part) in troubles {
        let file = bundled(&format!("demo-{name}.pcap.zst"));
        let report = report(&directory, file.to_str().expect("UTF-8"));
        assert_eq!(report["answer"]["culprit"], who, "{name}: {}", report["answer"]);
        // Users pause between files. Most of the remaining time must belong to the culprit.
        let split = &report["time_split"];
        let waited = number(split, "elapsed_ns") - number(split, "think_ns") - number(split, "idle_ns");
        assert!(number(split, part) > waited / 2, "{name}: {split}");
    }
}
