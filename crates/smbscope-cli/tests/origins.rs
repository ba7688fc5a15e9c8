//! Origin of packets: declared tunnels, headers named in the report, proxies, and processes.

use crate::common::{analyze, bundled, contents, directory, finish, table, write};
use serde_json::Value;
use smbscope_model::TunnelKind;
use smbscope_testkit::aggregate::file_in_aggregates;
use smbscope_testkit::encapsulation::Encapsulation;
use smbscope_testkit::tunnel::file_in_tunnel;
use smbscope_testkit::{Conversation, framed, pcap, smb2};
use std::path::Path;
use std::process::{Command, Stdio};

const PLAIN: &str = "own/smbclient_SMB3_11.pcap.zst";
const PLAIN_IPV6: &str = "own/smbclient_SMB3_11_ipv6.pcap.zst";
const WHOLE: usize = 1 << 20;

fn report(directory: &Path, arguments: &[&str]) -> Value {
    let said = analyze(directory, &[arguments, &["--format", "json"]].concat());
    serde_json::from_str(said.output()).expect("the report is JSON")
}

#[test]
fn every_kind_of_tunnel_is_read_on_a_declared_port() {
    let directory = directory("declared-tunnels");
    for kind in TunnelKind::ALL {
        // Teredo carries only IPv6.
        let plain = contents(if kind == TunnelKind::Teredo { PLAIN_IPV6 } else { PLAIN });
        write(&directory, "plain.pcap", &plain);
        let expected = report(&directory, &["plain.pcap"]);
        write(&directory, "capture.pcap", file_in_tunnel(kind, 7_777, &plain, WHOLE));
        let declared = format!("7777={kind}");
        let found = report(&directory, &["capture.pcap", "--tunnel-port", &declared]);
        for part in ["totals", "commands", "groups", "files", "clients", "servers"] {
            assert_eq!(found[part], expected[part], "{part} in {kind}");
        }
        let headers = &found["quality"]["encapsulations"][0]["headers"];
        let headers = headers.as_str().expect("a text");
        assert!(headers.starts_with(&format!("{} on UDP port 7777", kind.title())), "{kind}: {headers}");
        assert_eq!(found["connections"][0]["encapsulation"], headers);
    }
}

#[test]
fn a_slim_copy_of_a_declared_tunnel_gives_the_same_answer() {
    let directory = directory("declared-tunnel-slim");
    write(&directory, "capture.pcap", file_in_tunnel(TunnelKind::L2tp, 7_777, &contents(PLAIN), WHOLE));
    let expected = report(&directory, &["capture.pcap", "--tunnel-port", "7777=l2tp"]);
    let mut slim = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    slim.current_dir(&directory).stdin(Stdio::null());
    slim.args(["slim", "-q", "capture.pcap", "-o", "slim.pcapng", "--tunnel-port", "7777=l2tp"]);
    finish(slim).output();
    let found = report(&directory, &["slim.pcapng", "--tunnel-port", "7777=l2tp"]);
    assert_eq!(found["totals"], expected["totals"]);
    let size = |name: &str| std::fs::metadata(directory.join(name)).expect("the file is there").len();
    assert!(size("slim.pcapng") < size("capture.pcap") / 4);
}

#[test]
fn a_declaration_says_what_a_snap_length_hides_from_the_content() {
    let directory = directory("declared-tunnel-cut");
    // Ethernet, IPv4 and UDP take 42 bytes, VXLAN 8, the inner headers 66 or 78: up to the window of TCP.
    write(
        &directory,
        "capture.pcap",
        file_in_tunnel(TunnelKind::Vxlan, 7_777, &contents(PLAIN), 42 + 8 + 14 + 20 + 18),
    );
    // Reserved bytes that are not zero keep it from being recognised.
    let said = analyze(&directory, &["capture.pcap"]);
    assert!(said.error(1).contains("UDP port 7777"), "{}", said.err);
    let said = analyze(&directory, &["capture.pcap", "--tunnel-port", "7777=vxlan"]);
    assert!(said.error(1).contains("TCP packets"), "{}", said.err);
}

#[test]
fn a_declaration_that_makes_no_sense_is_refused() {
    let path = bundled(PLAIN);
    let path = path.to_str().expect("the path is UTF-8");
    for (wrong, expected) in [("7777", "expected PORT=KIND"), ("0=vxlan", "not a port"), ("1=vlan", "use vxlan, ")] {
        let said = analyze(&directory("declared-wrong"), &[path, "--tunnel-port", wrong]);
        assert_eq!(said.status, Some(2));
        assert!(said.err.contains(expected), "{}", said.err);
    }
}

#[test]
fn the_report_names_link_types_tags_and_tunnels_around_smb() {
    let directory = directory("named-encapsulations");
    let cases = [
        (Encapsulation::AnyPortVxlan, "VXLAN on UDP port 10800"),
        (Encapsulation::VxlanOfLinux, "VLAN (802.1Q), VXLAN on UDP port 8472"),
        (Encapsulation::Erspan2, "GRE, ERSPAN"),
        (Encapsulation::Nested, "VLAN (802.1Q), GRE, Ethernet in Ethernet, VXLAN on UDP port 4789"),
        (Encapsulation::VxlanInFragments, "VXLAN on UDP port 4789"),
        (Encapsulation::VxlanInCooked, "Linux cooked, VXLAN on UDP port 4789"),
        (Encapsulation::Link(258), "PKTAP"),
        (Encapsulation::Link(192), "PPI, 802.11"),
    ];
    for (encapsulation, expected) in cases {
        write(&directory, "capture.pcap", encapsulation.wrap_file(&contents(PLAIN)));
        let found = report(&directory, &["capture.pcap"]);
        let headers: Vec<&Value> = found["quality"]["encapsulations"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|traffic| &traffic["headers"])
            .collect();
        assert_eq!(headers, [expected], "{encapsulation:?}");
        for arguments in [&[][..], &["--full"], &["--format", "md"]] {
            let text = analyze(&directory, &[&["capture.pcap", "--width", "200"], arguments].concat()).out;
            assert!(text.contains("Inside") && text.contains(expected), "{text}");
        }
    }
    write(&directory, "plain.pcap", contents(PLAIN));
    assert_eq!(report(&directory, &["plain.pcap"])["quality"]["encapsulations"], Value::Array(Vec::new()));
    assert!(!analyze(&directory, &["plain.pcap", "--full"]).out.contains("  Inside"));
}

/// Returns a conversation through a proxy: the prologue, then SMB.
fn proxied(port: u16, prologue: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut conversation = Conversation::new().ports(50_000, port);
    let mut time = 100;
    for (asks, answers) in prologue {
        conversation = conversation.client_sends(time, *asks).server_sends(time + 50, *answers);
        time += 100;
    }
    let packets = conversation
        .client_says(time, smb2::negotiate(0, &[0x0311]))
        .server_says(time + 100, smb2::negotiate_response(0, 0x0311))
        .client_says(time + 200, smb2::create(1, "a.txt"))
        .server_says(time + 300, smb2::create_response(1, 7))
        .client_says(time + 400, smb2::close(2, 7))
        .server_says(time + 500, smb2::close_response(2))
        .packets();
    pcap::micros(&packets)
}

#[test]
fn smb_through_a_proxy_is_read_and_the_proxy_is_named() {
    let directory = directory("proxies");
    let http: &[(&[u8], &[u8])] =
        &[(b"CONNECT files:445 HTTP/1.1\r\nHost: files:445\r\n\r\n", b"HTTP/1.1 200 Connection established\r\n\r\n")];
    let socks4: &[(&[u8], &[u8])] = &[(&[4, 1, 1, 189, 10, 0, 0, 9, b'u', 0], &[0, 90, 0, 0, 0, 0, 0, 0])];
    let socks5: &[(&[u8], &[u8])] =
        &[(&[5, 1, 0], &[5, 0]), (b"\x05\x01\x00\x03\x05files\x01\xbd", &[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])];
    let cases =
        [(http, "HTTP CONNECT to files:445"), (socks4, "SOCKS 4 to 10.0.0.9:445"), (socks5, "SOCKS 5 to files:445")];
    for (prologue, expected) in cases {
        for port in [1080, 445] {
            write(&directory, "capture.pcap", proxied(port, prologue));
            let found = report(&directory, &["capture.pcap"]);
            assert_eq!(found["totals"]["outcomes"]["complete"], 3, "{expected} on port {port}");
            assert_eq!(found["connections"][0]["proxy"], expected);
            assert_eq!(
                (&found["quality"]["foreign_replies"], &found["warnings"]),
                (&0.into(), &Value::Array(Vec::new()))
            );
            assert_eq!(found["quality"]["bytes_skipped"], 0, "the prologue does not count as lost framing");
            let text = analyze(&directory, &["capture.pcap"]).out;
            assert!(text.contains(&format!("Proxy      {expected}\n")), "{text}");
        }
    }
    // Without the answer of a proxy, the first bytes are only foreign.
    write(&directory, "capture.pcap", proxied(445, &[(b"CONNECT files:445 HTTP/1.1\r\n\r\n", b"SSH-2.0-x\r\n")]));
    let found = report(&directory, &["capture.pcap"]);
    assert_eq!((&found["connections"][0]["proxy"], &found["quality"]["foreign_replies"]), (&Value::Null, &1.into()));
}

/// Builds a block of pcapng, padded to four bytes.
fn block(kind: u32, parts: &[&[u8]]) -> Vec<u8> {
    let mut body = parts.concat();
    body.resize(body.len().next_multiple_of(4), 0);
    let length = (12 + body.len() as u32).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, &body, &length].concat()
}

fn option(code: u16, value: &[u8]) -> Vec<u8> {
    let mut option = [code.to_le_bytes(), (value.len() as u16).to_le_bytes()].concat();
    option.extend(value);
    option.resize(option.len().next_multiple_of(4), 0);
    option
}

/// Converts a pcap file to pcapng, with blocks before the packets and options for each packet, by its index.
fn with_options(plain: &[u8], blocks: &[u8], options: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
    let mut file = block(0x0a0d_0d0a, &[&[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0], &[0xff; 8]]);
    // Nanoseconds.
    file.extend(block(1, &[&[1, 0, 0, 0, 0, 0, 4, 0], &option(9, &[9]), &[0; 4]]));
    file.extend(blocks);
    for (index, frame) in pcap::read(plain).iter().enumerate() {
        let time = frame.time.0 as u64;
        let length = frame.data.len() as u32;
        let fields = [0, (time >> 32) as u32, time as u32, length, length].map(u32::to_le_bytes).concat();
        let mut data = frame.data.clone();
        data.resize(data.len().next_multiple_of(4), 0);
        file.extend(block(6, &[&fields, &data, &options(index), &[0; 4]]));
    }
    file
}

fn processes(directory: &Path, name: &str, arguments: &[&str]) -> Vec<String> {
    let said = analyze(directory, &[&[name, "--format", "csv"], arguments].concat());
    let (header, rows) = table(said.output());
    let place = header.iter().position(|column| column == "process").expect("the column is there");
    rows.into_iter().map(|row| row[place].clone()).collect()
}

#[test]
fn processes_of_windows_traces_are_a_field() {
    let directory = directory("processes-windows");
    let plain = contents(PLAIN);
    let comment = |index: usize| match index % 3 {
        0 => option(1, b"PID=812 TID=60"),
        _ => [option(2, &[1, 0, 0, 0]), option(1, b"PID=4 ProcessName=System TID=60 VlanId=0")].concat(),
    };
    write(&directory, "capture.pcapng", with_options(&plain, &[], comment));
    let all = processes(&directory, "capture.pcapng", &[]);
    let count = |name: &str| all.iter().filter(|process| *process == name).count();
    assert_eq!(count("PID 812") + count("System (4)"), all.len(), "every request has the process of its packet");
    assert!(count("PID 812") > 20 && count("System (4)") > 20);
    let filtered = processes(&directory, "capture.pcapng", &["--filter", "process == 'System (4)'"]);
    assert_eq!(filtered.len(), count("System (4)"));
    let found = report(&directory, &["capture.pcapng", "--by", "process"]);
    let keys: Vec<&Value> =
        found["slices"]["entries"].as_array().expect("a list").iter().map(|slice| &slice["key"]["process"]).collect();
    assert_eq!(keys.len(), 2, "{keys:?}");
    // The same packets without comments.
    write(&directory, "plain.pcap", &plain);
    assert!(processes(&directory, "plain.pcap", &[]).iter().all(String::is_empty));
    assert_eq!(report(&directory, &["capture.pcapng"])["totals"], report(&directory, &["plain.pcap"])["totals"]);
}

#[test]
fn processes_of_macos_come_from_blocks_and_from_pktap() {
    let directory = directory("processes-macos");
    let plain = contents(PLAIN);
    let process = |id: u32, name: &str| block(0x8000_0001, &[&id.to_le_bytes(), &option(2, name.as_bytes()), &[0; 4]]);
    let blocks = [process(612, "Finder"), process(0, "kernel_task")].concat();
    // The owner of the socket is the kernel; the second third acts for another process.
    let options = |index: usize| match index % 3 {
        0 => option(0x8001, &1u32.to_le_bytes()),
        1 => [option(0x8001, &1u32.to_le_bytes()), option(0x8003, &0u32.to_le_bytes())].concat(),
        _ => option(0x8001, &9u32.to_le_bytes()),
    };
    write(&directory, "capture.pcapng", with_options(&plain, &blocks, options));
    let mut found = processes(&directory, "capture.pcapng", &[]);
    found.sort_unstable();
    found.dedup();
    assert_eq!(found, ["", "Finder (612)", "kernel_task (0)"]);

    // XNU's pktap.h: pth_pid at 52, pth_comm at 56, pth_epid at 84, pth_ecomm at 88.
    let mut pktap = Encapsulation::Link(258).wrap_file(&plain);
    let mut packets = pcap::read(&pktap);
    for packet in &mut packets {
        packet.data[52..56].copy_from_slice(&0u32.to_le_bytes());
        packet.data[56..67].copy_from_slice(b"kernel_task");
        packet.data[84..88].copy_from_slice(&77u32.to_le_bytes());
        packet.data[88..93].copy_from_slice(b"mdsd\0");
    }
    pktap = pcap::write(258, &packets);
    write(&directory, "capture.pcap", pktap);
    let found = processes(&directory, "capture.pcap", &[]);
    assert!(found.len() > 200 && found.iter().all(|process| process == "mdsd (77)"), "{found:?}");
}

#[test]
fn an_anonymous_copy_names_no_process() {
    let directory = directory("processes-anonymous");
    let mut packets = pcap::read(&Encapsulation::Link(258).wrap_file(&contents(PLAIN)));
    packets.iter_mut().for_each(|packet| packet.data[88..94].copy_from_slice(b"secret"));
    write(&directory, "capture.pcap", pcap::write(258, &packets));
    assert_eq!(processes(&directory, "capture.pcap", &[])[0], "secret");
    let mut slim = Command::new(env!("CARGO_BIN_EXE_smbscope"));
    slim.current_dir(&directory).stdin(Stdio::null());
    slim.args(["slim", "-q", "--anonymize", "capture.pcap", "-o", "slim.pcapng"]);
    finish(slim).output();
    assert!(processes(&directory, "slim.pcapng", &[]).iter().all(String::is_empty));
    let copy = std::fs::read(directory.join("slim.pcapng")).expect("the copy is there");
    assert!(!copy.windows(6).any(|part| part == b"secret"));
}

#[test]
fn every_frame_of_an_aggregate_is_read() {
    let directory = directory("aggregates");
    let plain = contents(PLAIN);
    write(&directory, "plain.pcap", &plain);
    write(&directory, "capture.pcap", file_in_aggregates(&plain, 3));
    let (expected, found) = (report(&directory, &["plain.pcap"]), report(&directory, &["capture.pcap"]));
    let [plain, aggregated] = [&expected, &found].map(|report| &report["quality"]);
    let packets = |quality: &Value, name: &str| quality[name].as_u64().expect("a count");
    assert!(packets(aggregated, "aggregated_frames") > 1_000);
    assert_eq!(packets(aggregated, "packets") + packets(aggregated, "aggregated_frames"), packets(plain, "packets"));
    for name in ["tcp_packets", "dropped_packets", "retransmitted_segments", "malformed_packets"] {
        assert_eq!(aggregated[name], plain[name], "{name}");
    }
    assert_eq!(found["totals"]["outcomes"], expected["totals"]["outcomes"]);
}

#[test]
fn a_capture_of_something_else_says_what_it_is() {
    let directory = directory("something-else");
    let call = |program: [u8; 3]| {
        let mut call = vec![0x80, 0, 0, 40, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 2, 0];
        call.extend(program);
        call.resize(44, 0);
        call
    };
    let mut login = vec![0x43, 0x87, 0, 0, 0, 0, 0, 40];
    login.resize(48, 0);
    login.extend(b"InitiatorName=iqn.1993-08.org.debian\0\0\0\0");
    let mut connect = vec![0, 0, 128, 0, 128, 0, 0, 0];
    connect.resize(128, 0);
    let cases: [(u16, Vec<u8>, &str); 7] = [
        (
            2_049,
            call([1, 0x86, 0xa3]),
            "NFS on port 2049 (1 connection, 4 packets); smbscope reads only SMB; NFS: tshark ",
        ),
        (9_999, call([1, 0x86, 0xa3]), "NFS on port 9999 "),
        (3_260, login, "iSCSI on port 3260 "),
        (4_420, connect, "NVMe/TCP on port 4420 "),
        (
            5_445,
            b"MPA ID Req Frame\x40\x01\0\0".to_vec(),
            "iWARP on port 5445 (1 connection, 4 packets); SMB Direct (RDMA)",
        ),
        (445, vec![0x16, 3, 1, 2, 0, 1, 0], "TLS on port 445 (1 connection, 4 packets); if a proxy or VPN carries SMB"),
        (2_049, vec![7; 60], "port 2049, usually NFS (4 packets); smbscope reads only SMB"),
    ];
    for (port, first, expected) in cases {
        let packets = Conversation::new().ports(50_000, port).client_sends(100, first).packets();
        write(&directory, "capture.pcap", pcap::micros(&packets));
        let said = analyze(&directory, &["capture.pcap"]);
        let error = said.error(1);
        assert!(error.starts_with(&format!("capture.pcap: no SMB in 4 packets, but {expected}")), "{error}");
    }
    // A capture that also contains SMB is analysed.
    let smb = Conversation::new().client_sends(100, framed(smb2::echo(1))).packets();
    let nfs = Conversation::new().ports(50_001, 2_049).client_sends(100, call([1, 0x86, 0xa3])).packets();
    write(&directory, "both.pcap", pcap::micros(&[smb, nfs].concat()));
    assert_eq!(report(&directory, &["both.pcap"])["totals"]["commands"], 1);
}
