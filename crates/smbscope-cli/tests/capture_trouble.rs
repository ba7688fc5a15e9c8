//! Problems of captures: mirror ports, clock steps, reused ports, files that change while they are read, large
//! decompression windows. Each test modifies a bundled capture and compares with the report on the original.

use crate::common::{Said, analyze, command, contents, directory, said, write};
use serde_json::Value;
use smbscope_model::Timestamp;
use smbscope_testkit::damage::{self, Captured};
use smbscope_testkit::frame::{ACKNOWLEDGMENT, SEQUENCE};
use smbscope_testkit::{Frame, pcap};
use std::path::Path;

const SECOND: i64 = 1_000_000_000;
const CAPTURE: &str = "own/smbclient_SMB3_11.pcap.zst";

fn packets() -> Vec<Frame> {
    pcap::read(&contents(CAPTURE))
}

fn file(packets: &[Frame]) -> Vec<u8> {
    pcap::write(pcap::ETHERNET, packets)
}

fn later(packet: &Frame, by_ns: i64) -> Frame {
    packet.captured_at(Timestamp(packet.time.0 + by_ns))
}

fn report(directory: &Path, packets: &[Frame]) -> Value {
    write(directory, "capture.pcap", file(packets));
    let said = analyze(directory, &["capture.pcap", "--format", "json"]);
    serde_json::from_str(said.output()).expect("the report is JSON")
}

fn warnings(report: &Value) -> String {
    report["warnings"].to_string()
}

#[test]
fn a_mirror_port_that_sees_both_ways_changes_no_figure() {
    let directory = directory("mirrored");
    let plain = packets();
    let expected = report(&directory, &plain);
    let late = plain.iter().map(|packet| later(packet, 1_300_000));
    let mut mirrored: Vec<Frame> = plain.iter().cloned().chain(late).collect();
    mirrored.sort_by_key(|packet| packet.time);
    let mirrored = report(&directory, &mirrored);
    for part in ["commands", "groups", "files"] {
        assert_eq!(mirrored[part], expected[part], "{part}");
    }
    let [quality, expected] = [&mirrored["quality"], &expected["quality"]];
    assert_eq!(quality["retransmitted_segments"], expected["retransmitted_segments"]);
    let copies = quality["duplicate_packets"].as_u64().expect("a count");
    assert!(copies * 100 >= plain.len() as u64 * 99, "{copies} of {}", plain.len());
}

#[test]
fn a_clock_that_stepped_forward_is_said_with_the_packet_and_times_nothing() {
    let directory = directory("step-forward");
    let mut stepped = packets();
    // The step falls within a WRITE. Without the warning, its response time would be an hour.
    let middle = stepped.len() / 2;
    stepped[middle..].iter_mut().for_each(|packet| packet.time.0 += 3_600 * SECOND);
    let report = report(&directory, &stepped);
    let slowest = report["totals"]["headline"]["response_time"]["max"].as_i64().expect("a time");
    assert!(slowest < SECOND, "{slowest} ns");
    assert!((1..4).contains(&report["quality"]["clock_steps"].as_u64().expect("a count")));
    let said = warnings(&report);
    assert!(said.contains("the clock stepped forward by") && said.contains("at packet 21"), "{said}");
}

#[test]
fn a_clock_that_stepped_back_is_said_with_the_packet_and_loses_nothing() {
    let directory = directory("step-back");
    let plain = packets();
    let expected = report(&directory, &plain);
    let mut stepped = plain;
    let middle = stepped.len() / 2;
    stepped[middle..].iter_mut().for_each(|packet| packet.time.0 -= SECOND);
    let report = report(&directory, &stepped);
    assert_eq!(report["totals"]["commands"], expected["totals"]["commands"]);
    let quality = &report["quality"];
    assert_eq!((&quality["midstream_flows"], &quality["packets_reordered_by_time"]), (&0.into(), &0.into()));
    assert!((0..4).contains(&quality["clock_steps"].as_u64().expect("a count")));
    let said = warnings(&report);
    assert!(
        said.contains("the clock stepped back by") && said.contains(&format!("at packet {}", middle + 1)),
        "{said}"
    );
    let packed = zstd::encode_all(&file(&stepped)[..], 1).expect("writing to memory does not fail");
    write(&directory, "capture.zst", packed);
    let said = analyze(&directory, &["capture.zst", "--format", "json"]);
    let packed: Value = serde_json::from_str(said.output()).expect("the report is JSON");
    assert_eq!(packed["commands"], report["commands"]);
}

#[test]
fn files_put_together_in_the_wrong_order_are_no_clock_step() {
    let directory = directory("wrong-order");
    let plain = packets();
    let expected = report(&directory, &plain);
    let (first, second) = plain.split_at(plain.len() / 2);
    let report = report(&directory, &[second, first].concat());
    assert_eq!(report["commands"], expected["commands"]);
    assert_eq!(warnings(&report), "[]");
}

#[test]
fn ports_used_again_without_a_syn_lose_no_packets() {
    let directory = directory("ports-again");
    // The capture contains neither a SYN nor the end of a connection.
    let middle: Vec<Frame> = packets().into_iter().filter(|packet| packet.flags() & 7 == 0).collect();
    let once = report(&directory, &middle)["totals"]["outcomes"]["complete"].as_u64().expect("a count");
    for (client, server) in
        [(120_000_000u32, 119_500_000u32), (1_500_000_000, 900_000_000), (100_000_000, 2_000_000_000)]
    {
        let again = middle.iter().cloned().map(|mut packet| {
            packet.time.0 += 20 * SECOND;
            let from_client = packet.ports().1 == 445;
            let (own, other) = if from_client { (client, server) } else { (server, client) };
            packet.shift(SEQUENCE, own);
            packet.shift(ACKNOWLEDGMENT, other);
            packet
        });
        let report = report(&directory, &middle.iter().cloned().chain(again).collect::<Vec<_>>());
        assert_eq!(report["quality"]["dropped_packets"], 0, "{client} {server}");
        assert_eq!(report["connections"].as_array().map(Vec::len), Some(2), "{client} {server}");
        assert_eq!(report["totals"]["outcomes"]["complete"], 2 * once, "{client} {server}");
    }
}

#[test]
#[cfg(unix)]
fn a_capture_cut_short_while_it_is_read_ends_in_one_line() {
    use std::io::Read;
    let directory = directory("cut-short");
    // Large enough that the table does not fit into the pipe buffer while nothing reads from it.
    write(&directory, "capture.pcap", contents("own/nbench32_NT1_8proc.pcap.zst").repeat(1));
    let mut child =
        command(&directory, &["capture.pcap", "--format", "csv", "--threads", "1"]).spawn().expect("it runs");
    let mut out = child.stdout.take().expect("a pipe");
    // The first bytes of the table appear while the capture is still being read.
    out.read_exact(&mut [0; 4096]).expect("the table begins");
    let capture = std::fs::File::options().write(true).open(directory.join("capture.pcap")).expect("the capture");
    capture.set_len(20_000).expect("it can be cut short");
    let mut rest = Vec::new();
    out.read_to_end(&mut rest).expect("the table ends");
    let Said { status, err, .. } = said(child.wait_with_output().expect("it ends"));
    assert_eq!((status, err.lines().count()), (Some(1), 1), "{err}");
    assert!(err.contains("capture.pcap: the file was truncated while it was being read"), "{err}");
}

/// Returns a zstd frame of raw blocks that requires a window of `2^window_log` bytes (RFC 8878 3.1.1).
fn zstd_frame(window_log: u8, bytes: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, (window_log - 10) << 3];
    let mut blocks = bytes.chunks(64 << 10).peekable();
    while let Some(block) = blocks.next() {
        let header = (block.len() as u32) << 3 | u32::from(blocks.peek().is_none());
        frame.extend(&header.to_le_bytes()[..3]);
        frame.extend(block);
    }
    frame
}

#[test]
fn a_window_that_takes_more_than_the_memory_is_refused_with_the_option_that_raises_it() {
    let directory = directory("windows");
    let bytes = contents("own/smb1_raw.pcap.zst");
    write(&directory, "large.zst", zstd_frame(31, &bytes));
    let expected =
        "large.zst: zstd data that needs a window of more than the 512 MiB that --memory allows; raise --memory";
    assert_eq!(analyze(&directory, &["large.zst"]).error(1), expected);
    assert_eq!(analyze(&directory, &["large.zst", "--memory", "2048"]).status, Some(0));
    // The limit applies to the sum of all windows: one such file is allowed, four are not.
    write(&directory, "middle.zst", zstd_frame(28, &bytes));
    assert_eq!(analyze(&directory, &["middle.zst"]).status, Some(0));
    // A file may be named once only, so the others are copies.
    let copies = |of: &str, n: usize| -> Vec<String> {
        let name = |copy: usize| format!("{copy}-{of}");
        let names: Vec<String> = (0..n).map(name).collect();
        for name in &names {
            std::fs::copy(directory.join(of), directory.join(name)).expect("a copy");
        }
        names
    };
    let analyze_all = |names: &[String]| analyze(&directory, &names.iter().map(String::as_str).collect::<Vec<_>>());
    let four = analyze_all(&copies("middle.zst", 4));
    assert!(four.error(1).contains("the 128 MiB that --memory allows; raise --memory"));
    // Default zstd windows are accepted regardless of the memory limit.
    write(&directory, "plain.zst", zstd_frame(23, &bytes));
    assert_eq!(analyze_all(&copies("plain.zst", 20)).status, Some(0));
}

#[test]
fn a_capture_of_one_direction_is_called_that() {
    let directory = directory("one-way");
    for (from_client, which) in [(true, "from client to server"), (false, "from server to client")] {
        let one_way: Vec<Frame> =
            packets().into_iter().filter(|packet| (packet.ports().1 == 445) == from_client).collect();
        write(&directory, "capture.pcap", file(&one_way));
        let text = analyze(&directory, &["capture.pcap", "--full", "--width", "200"]).out;
        assert!(text.contains("only one direction of the traffic was captured"), "{text}");
        assert!(text.contains(&format!("only one direction of 1 connection was captured, {which}")), "{text}");
        assert!(!text.contains("the capture lost"), "{text}");
    }
}

#[test]
fn a_server_that_answers_in_another_protocol_is_named() {
    let directory = directory("http");
    let packets = packets();
    let is_data = |packet: &&Frame| packet.data.len() > 66 && packet.flags() & 2 == 0;
    let request = packets.iter().position(|packet| is_data(&packet)).expect("a request");
    let mut answered = packets[..=request].to_vec();
    let mut answer = packets[request + 1..].iter().find(is_data).expect("an answer").clone();
    answer.data.truncate(66);
    answer.data.extend(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
    let length = (answer.data.len() as u16 - 14).to_be_bytes();
    answer.data[16..18].copy_from_slice(&length);
    answered.push(answer);
    write(&directory, "capture.pcap", file(&answered));
    let text = analyze(&directory, &["capture.pcap", "--width", "200"]).out;
    assert!(text.contains("10.99.0.1:445 is not an SMB server: it answered HTTP"), "{text}");
    assert!(!text.contains("missing from the capture"), "{text}");
}

#[test]
fn quic_and_headers_that_are_cut_off_are_said_instead_of_no_smb_alone() {
    let directory = directory("no-tcp");
    // UDP from port 50,000 to 443 in IPv4.
    let mut quic = packets()[0].clone();
    quic.data[14 + 9] = 17;
    quic.data[34..38].copy_from_slice(&[0xc3, 0x50, 1, 187]);
    write(&directory, "quic.pcap", file(&[quic.clone(), quic]));
    let expected = "quic.pcap: no SMB: 2 packets, none of them TCP, but UDP port 443 (QUIC) (2 packets); SMB over \
                    QUIC is encrypted; connect with New-SmbMapping -TransportType TCP and capture port 445";
    assert_eq!(analyze(&directory, &["quic.pcap"]).error(1), expected);

    // The IPv6 header takes 40 bytes, which leaves 10 bytes of the TCP header.
    let whole = contents("own/smbclient_SMB3_11_ipv6.pcap.zst");
    let cut = damage::snap(&pcap::read(&whole), 64);
    write(&directory, "cut.pcap", file(&cut));
    let said = analyze(&directory, &["cut.pcap"]);
    let error = said.error(1);
    assert!(error.contains("the snap length cut") && error.contains("off inside IP or TCP headers"), "{error}");
}

/// Returns a packet as seen on the other side of a router: TTL reduced by one, other Ethernet addresses.
fn routed(packet: &Frame) -> Frame {
    let mut data = packet.data.clone();
    data[..12].copy_from_slice(&[2, 0, 0, 0, 7, 1, 2, 0, 0, 0, 7, 2]);
    data[14 + 8] -= 1;
    Frame { data, ..*packet }
}

/// Returns the capture as taken next to the client and as taken next to the server, 300 µs apart. `across` converts a
/// packet to the far side of the router.
fn two_places(across: impl Fn(&Frame) -> Frame) -> [Vec<Frame>; 2] {
    let from_client = |packet: &Frame| packet.ports().1 == 445;
    // Each response, and everything after it, is delayed by one round trip, so that no packet acknowledges data in
    // flight.
    let (mut shift, mut client_spoke) = (0, false);
    let plain: Vec<(Frame, i64)> = packets()
        .into_iter()
        .map(|packet| {
            let is_of_client = from_client(&packet);
            shift += if client_spoke && !is_of_client { 600_000 } else { 0 };
            client_spoke = is_of_client;
            (packet, shift)
        })
        .collect();
    let beside_client = plain.iter().map(|(packet, shift)| match from_client(packet) {
        true => later(packet, *shift),
        false => later(&across(packet), *shift),
    });
    let beside_server = plain.iter().map(|(packet, shift)| match from_client(packet) {
        true => later(&across(packet), shift + 300_000),
        false => later(packet, shift - 300_000),
    });
    let in_order = |mut packets: Vec<Frame>| {
        packets.sort_by_key(|packet| packet.time);
        packets
    };
    [in_order(beside_client.collect()), in_order(beside_server.collect())]
}

fn merged([one, other]: [Vec<Frame>; 2]) -> Vec<Frame> {
    let mut both = [one, other].concat();
    both.sort_by_key(|packet| packet.time);
    both
}

#[test]
fn both_sides_of_a_router_are_said_and_either_can_be_taken() {
    let directory = directory("router");
    let places = two_places(routed);
    let alone =
        places.clone().map(|packets| report(&directory, &packets)["totals"]["headline"]["response_time"].clone());
    let both = report(&directory, &merged(places));
    let said = warnings(&both);
    assert!(said.contains("10.99.0.1:445 was captured on both sides of a router"), "{said}");
    assert!(both["quality"]["copies_behind_router"].as_u64().expect("a count") > 4_000);
    for (side, alone) in ["client", "server"].into_iter().zip(alone) {
        let said = analyze(&directory, &["capture.pcap", "--format", "json", "--beside", side]);
        let taken: Value = serde_json::from_str(said.output()).expect("the report is JSON");
        let taken_time = &taken["totals"]["headline"]["response_time"];
        assert_eq!((&taken_time["count"], &taken_time["p50"]), (&alone["count"], &alone["p50"]), "{side}");
        assert_eq!(warnings(&taken), "[]");
    }
}

#[test]
fn both_sides_of_an_address_translation_are_said_with_the_filter_that_takes_one() {
    let directory = directory("translation");
    let translated = |packet: &Frame| {
        let mut packet = routed(packet);
        let at = if packet.ports().1 == 445 { 26 } else { 30 };
        packet.data[at..at + 4].copy_from_slice(&[203, 0, 113, 9]);
        packet
    };
    // Next to the server, the translated client address appears in both directions; next to the client, in neither.
    let [_, beside_server] = two_places(translated);
    let beside_server: Vec<Frame> = beside_server
        .into_iter()
        .map(|mut packet| {
            let at = if packet.ports().1 == 445 { 26 } else { 30 };
            packet.data[at..at + 4].copy_from_slice(&[203, 0, 113, 9]);
            packet
        })
        .collect();
    let [beside_client, _] = two_places(routed);
    let both = report(&directory, &merged([beside_client, beside_server]));
    let said = warnings(&both);
    assert!(said.contains("are the same connection, captured on both sides of an address translation"), "{said}");
    assert_eq!(both["totals"]["commands"], 508);
    let filter = "client != 203.0.113.9";
    assert!(said.contains(&format!("--filter '{filter}' takes one side")), "{said}");
    let said = analyze(&directory, &["capture.pcap", "--format", "json", "--filter", filter]);
    let one: Value = serde_json::from_str(said.output()).expect("the report is JSON");
    assert_eq!(one["totals"]["commands"], 254);
}
