//! Traffic in tunnels, as mirror ports and virtual networks deliver it: the report is that of the plain capture.

mod common;

use common::{analyze, contents, directory, write};
use serde_json::Value;
use smbscope_testkit::encapsulation::Encapsulation;

/// One of SMB1 with several connections, one of SMB 3.1.1, one over IPv6.
const CAPTURES: [&str; 3] =
    ["own/smb1_mux.pcap.zst", "own/smbclient_SMB3_11.pcap.zst", "own/smbclient_SMB3_11_ipv6.pcap.zst"];

fn report(directory: &std::path::Path) -> Value {
    let said = analyze(directory, &["capture.pcap", "--format", "json"]);
    serde_json::from_str(said.output()).expect("the report is JSON")
}

/// Takes out what a tunnel has to change: sizes of packets, link types, and where fragments are counted.
fn without_sizes(mut report: Value) -> Value {
    report["captures"] = Value::Null;
    let quality = report["quality"].as_object_mut().expect("an object");
    for name in ["wire_bytes", "captured_bytes", "tunneled_packets"] {
        quality.remove(name);
    }
    report
}

#[test]
fn reports_of_wrapped_captures_equal_those_of_the_plain_ones() {
    let directory = directory("encapsulations");
    for capture in CAPTURES {
        let plain = contents(capture);
        write(&directory, "capture.pcap", &plain);
        let expected = report(&directory);
        let packets = expected["quality"]["packets"].as_u64().expect("a count");
        assert!(expected["totals"]["commands"].as_u64().expect("a count") > 50, "{capture}");
        let expected = without_sizes(expected);
        for encapsulation in Encapsulation::ALL {
            // Fragments change the numbers of packets: they have a test of their own.
            if encapsulation == Encapsulation::VxlanInFragments {
                continue;
            }
            write(&directory, "capture.pcap", encapsulation.wrap_file(&plain));
            let wrapped = report(&directory);
            let tunneled = wrapped["quality"]["tunneled_packets"].as_u64();
            let in_link_layer = [
                Encapsulation::Pseudowire,
                Encapsulation::PseudowireWithoutControlWord,
                Encapsulation::Backbone,
                Encapsulation::Authenticated,
            ];
            let expected_tunneled = if in_link_layer.contains(&encapsulation) { 0 } else { packets };
            assert_eq!(tunneled, Some(expected_tunneled), "{capture} in {encapsulation:?}");
            assert_eq!(without_sizes(wrapped), expected, "{capture} in {encapsulation:?}");
        }
    }
}

#[test]
fn commands_in_outer_fragments_are_timed_to_their_last_fragment() {
    let directory = directory("encapsulated-fragments");
    let plain = contents("own/smbclient_SMB3_11.pcap.zst");
    write(&directory, "capture.pcap", &plain);
    let expected = report(&directory);
    write(&directory, "capture.pcap", Encapsulation::VxlanInFragments.wrap_file(&plain));
    let wrapped = report(&directory);
    // All fragments of a packet have its time, so that all times stay as they are.
    for part in ["totals", "commands", "groups", "shares", "files", "clients", "servers"] {
        assert_eq!(wrapped[part], expected[part], "{part}");
    }
    let quality = &wrapped["quality"];
    assert!(quality["ip_datagrams_reassembled"].as_u64().expect("a count") > 100);
    assert_eq!((&quality["not_tcp"], &quality["ip_datagrams_incomplete"]), (&0.into(), &0.into()));
}

#[test]
fn traffic_in_a_tunnel_that_is_not_read_is_never_called_complete() {
    let directory = directory("unread-tunnel");
    let plain = contents("own/smbclient_SMB3_11.pcap.zst");
    // Most of the packets wrapped, to the port of WireGuard.
    let mut wrapped = Encapsulation::Vxlan.wrap_file(&plain);
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize;
    let (mut at, mut hidden) = (24, 0);
    let mut mixed = plain[..24].to_vec();
    let mut plain_at = 24;
    while at < wrapped.len() {
        let (length, plain_length) = (16 + word(&wrapped, at + 8), 16 + word(&plain, plain_at + 8));
        wrapped[at + 16 + 14 + 20 + 2..][..2].copy_from_slice(&51_820u16.to_be_bytes());
        // The first packets stay plain.
        if plain_at > 40_000 {
            mixed.extend(&wrapped[at..at + length]);
            hidden += 1;
        } else {
            mixed.extend(&plain[plain_at..plain_at + plain_length]);
        }
        (at, plain_at) = (at + length, plain_at + plain_length);
    }
    write(&directory, "capture.pcap", &mixed);
    let text = analyze(&directory, &["capture.pcap", "--width", "200"]).out;
    assert!(text.contains("packets were not read: UDP port 51820 (WireGuard, encrypted)"), "{text}");
    assert!(!text.contains("the capture is complete"), "{text}");
    let skipped = &report(&directory)["quality"]["skipped"][0];
    assert_eq!((&skipped["layer"], &skipped["packets"]), (&"UDP port".into(), &hidden.into()));
}
