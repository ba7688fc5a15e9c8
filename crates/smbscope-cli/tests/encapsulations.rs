//! Encapsulated traffic from mirror ports and virtual networks: the report must equal that of the plain capture.

use crate::common::{analyze, contents, directory, write};
use serde_json::Value;
use smbscope_testkit::encapsulation::Encapsulation;
use smbscope_testkit::pcap;

/// One SMB1 capture with several connections, one SMB 3.1.1 capture, and one over IPv6.
const CAPTURES: [&str; 3] =
    ["own/smb1_mux.pcap.zst", "own/smbclient_SMB3_11.pcap.zst", "own/smbclient_SMB3_11_ipv6.pcap.zst"];

fn report(directory: &std::path::Path) -> Value {
    let said = analyze(directory, &["capture.pcap", "--format", "json"]);
    serde_json::from_str(said.output()).expect("the report is JSON")
}

/// Removes what depends on the encapsulation: its name, packet sizes, link types and fragment counts.
fn without_sizes(mut report: Value) -> Value {
    report["captures"] = Value::Null;
    let quality = report["quality"].as_object_mut().expect("an object");
    for name in ["wire_bytes", "captured_bytes", "tunneled_packets", "encapsulations"] {
        quality.remove(name);
    }
    let connections = report["connections"].as_array_mut().expect("a list");
    connections.iter_mut().for_each(|connection| connection["encapsulation"] = Value::Null);
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
            // Fragments change packet numbers; another test covers them.
            if encapsulation == Encapsulation::VxlanInFragments {
                continue;
            }
            write(&directory, "capture.pcap", encapsulation.wrap_file(&plain));
            let wrapped = report(&directory);
            let tunneled = wrapped["quality"]["tunneled_packets"].as_u64();
            let expected_tunneled = if encapsulation.is_tunnel() { packets } else { 0 };
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
    // All fragments of a packet have its timestamp, so all times are unchanged.
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
    // Wraps most packets in UDP datagrams to WireGuard's port.
    let mut mixed = pcap::read(&contents("own/smbclient_SMB3_11.pcap.zst"));
    // The first packets stay plain.
    let hidden = &mut mixed[200..];
    for (frame, number) in hidden.iter_mut().zip(1..) {
        frame.data = Encapsulation::Vxlan.wrap(&frame.data, number).concat();
        frame.data[14 + 20 + 2..][..2].copy_from_slice(&51_820u16.to_be_bytes());
        // Not a header of VXLAN, which would be recognised on any port.
        frame.data[14 + 20 + 8..][..8].fill(0x7e);
        frame.wire_length = frame.data.len();
    }
    let hidden = hidden.len();
    write(&directory, "capture.pcap", pcap::write(pcap::ETHERNET, &mixed));
    let text = analyze(&directory, &["capture.pcap", "--width", "200"]).out.replace('\n', " ");
    assert!(text.contains("packets were not read: UDP port 51820 (WireGuard, encrypted)"), "{text}");
    let skipped = &report(&directory)["quality"]["skipped"][0];
    assert_eq!((&skipped["layer"], &skipped["packets"]), (&"UDP port".into(), &hidden.into()));
}
