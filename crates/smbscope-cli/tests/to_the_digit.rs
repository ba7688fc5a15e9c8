//! A hand-made capture whose times are chosen so that every figure in every output can be calculated on paper.
//!
//! Times are microseconds after 2023-11-14 22:13:20 UTC. Response time of each exchange:
//!
//! | connection | exchanges |
//! |---|---|
//! | SMB 3.1.1, 10.0.0.1:50000 → 10.0.0.2:445, from 0 | NEGOTIATE 400, SESSION_SETUP 600, TREE_CONNECT 250, CREATE 300, CREATE 500 (not found; its request sent again 100 later), 10 READ on both sides of each decade's edge, 100 WRITE of 100, 200 … 10,000, CLOSE 200, CHANGE_NOTIFY 2,500,000, ECHO without an answer |
//! | SMB1, 10.0.0.3:50001 → 10.0.0.2:445, from 6,000,000 | NEGOTIATE 1,000, WRITE_RAW 150 and its block 260 |
//! | another protocol, from 7,000,000 | three packets |
//!
//! The first exchange begins at 1,000, each further one 500 after the end of the previous one. A READ has one request
//! packet and three response packets 25 apart; a WRITE has two request packets 40 apart and one response packet.
//! According to the handshake, the round trip to the server is 10.

use crate::common::{analyze, directory, table, write};
use serde_json::{Value, json};
use smbscope_testkit::{Conversation, Packet, pcap, smb1, smb2};
use smbscope_wire::smb2::Smb2Command;
use std::path::PathBuf;

const READS: [i64; 10] = [99, 100, 999, 1_000, 9_999, 10_000, 99_999, 100_000, 999_999, 1_000_000];
const NOT_FOUND: u32 = 0xc000_0034;
/// Time zero in nanoseconds since 1970.
const ZERO: i64 = 1_700_000_000_000_000_000;

/// A conversation of consecutive exchanges.
struct Story {
    conversation: Conversation,
    at: i64,
    message_id: u64,
}

impl Story {
    /// Adds an exchange with packets at these times after its start. The next exchange starts 500 after the last
    /// packet.
    fn exchange(
        &mut self,
        request: impl Fn(u64) -> smb2::Message,
        request_at: &[i64],
        response: impl Fn(u64) -> smb2::Message,
        response_at: &[i64],
    ) {
        let from = |times: &[i64]| -> Vec<i64> { times.iter().map(|time| self.at + time).collect() };
        let (request_at, response_at) = (from(request_at), from(response_at));
        let conversation =
            std::mem::take(&mut self.conversation).client_says_over(&request_at, request(self.message_id));
        self.conversation = match response_at.as_slice() {
            [] => conversation,
            times => conversation.server_says_over(times, response(self.message_id)),
        };
        self.at = response_at.last().copied().unwrap_or(self.at) + 500;
        self.message_id += 1;
    }
}

fn packets() -> Vec<Packet> {
    let mut story = Story { conversation: Conversation::new(), at: 1_000, message_id: 0 };
    story.exchange(|id| smb2::negotiate(id, &[0x0311]), &[0], |id| smb2::negotiate_response(id, 0x0311), &[400]);
    story.exchange(|id| smb2::session_setup(id, "LAB", "ann"), &[0], |id| smb2::session_setup_response(id, 7), &[600]);
    story.exchange(
        |id| smb2::tree_connect(id, r"\\server\data").session(7),
        &[0],
        |id| smb2::tree_connect_response(id, 3).session(7),
        &[250],
    );
    let here = |message: smb2::Message| message.session(7).tree(3);
    story.exchange(|id| here(smb2::create(id, "a.txt")), &[0], |id| here(smb2::create_response(id, 9)), &[300]);
    let again = story.at;
    story.exchange(
        |id| here(smb2::create(id, "b.txt")),
        &[0],
        |id| here(smb2::error(Smb2Command::CREATE, id, NOT_FOUND)),
        &[500],
    );
    for time in READS {
        let response = |id| here(smb2::read_response(id, &[0; 3_000]));
        story.exchange(|id| here(smb2::read(id, 9, 0, 3_000)), &[0], response, &[time - 50, time - 25, time]);
    }
    for k in 1..=100 {
        let response = |id| here(smb2::write_response(id, 2_000));
        story.exchange(|id| here(smb2::write(id, 9, 0, &[0; 2_000])), &[0, 40], response, &[100 * k]);
    }
    story.exchange(|id| here(smb2::close(id, 9)), &[0], |id| here(smb2::close_response(id)), &[200]);
    let (at, id) = (story.at, story.message_id);
    let pending = smb2::pending(Smb2Command::CHANGE_NOTIFY, id, 77).session(7);
    story.conversation = story
        .conversation
        .client_says(at, here(smb2::notify(id, 9)))
        .server_says(at + 80, pending)
        .server_says(at + 2_500_000, smb2::notify_response(id).session(7).asynchronous(77));
    (story.at, story.message_id) = (at + 2_500_500, id + 1);
    story.exchange(|id| here(smb2::echo(id)), &[0], |_| unreachable!("no answer"), &[]);
    let mut packets = story.conversation.packets();

    // Retransmits the second CREATE's request 100 later.
    let time = |packet: &Packet| (packet.time.0 - ZERO) / 1_000;
    let first = packets.iter().position(|packet| time(packet) == again).expect("the request is there");
    let mut copy = packets[first].clone();
    copy.time.0 += 100_000;
    copy.ip_id = 30_000;
    packets.insert(first + 1, copy);

    let raw = Conversation::new()
        .between(([10, 0, 0, 3], 50_001), ([10, 0, 0, 2], 445))
        .initial_sequences(2_000, 700_000)
        .client_says(1_000, smb1::negotiate(0, &["NT LM 0.12"]))
        .server_says(2_000, smb1::negotiate_response(0, 0))
        .client_says(2_500, smb1::write_raw(1, 5, 0, 2_000, true))
        .server_says(2_650, smb1::go_ahead(1))
        .client_says_over(&[2_700, 2_760], vec![0; 2_000])
        .server_says(2_960, smb1::write_complete(1, 2_000))
        .client_acks(3_000);
    let other = Conversation::new().between(([10, 0, 0, 3], 50_002), ([10, 0, 0, 2], 80));
    for (conversation, shift) in [(raw, 6_000_000_000), (other, 7_000_000_000)] {
        packets.extend(conversation.packets().into_iter().map(|mut packet| {
            packet.time.0 += shift;
            packet
        }));
    }
    packets
}

/// Returns a directory that contains the capture as `hand.pcap`.
fn capture(test: &str) -> PathBuf {
    let directory = directory(test);
    write(&directory, "hand.pcap", pcap::micros(&packets()));
    directory
}

/// Returns the lines from the one that begins with `start` to the next empty one, with single spaces.
fn block(text: &str, start: &str) -> Vec<String> {
    let lines = text.lines().skip_while(|line| !line.starts_with(start)).take_while(|line| !line.is_empty());
    let lines: Vec<String> = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert!(!lines.is_empty(), "no {start:?} in\n{text}");
    lines
}

#[test]
fn every_cell_of_the_text_report() {
    let said = analyze(&capture("digit_text"), &["hand.pcap", "--full", "--width", "140"]);
    let text = said.output();
    // From 1,000 to 6,002,960: 6.00 s. The figures match "Total" below.
    let summary = "120 commands in 6.00 s. Median 4.75 ms, p95 10.0 ms; the slowest took 1.00 s (READ).";
    let quality = "All commands in the capture were timed, but 1 had no response when the capture ended.";
    let smb1 = text.lines().find(|line| line.starts_with("SMB1 in use: 10.0.0.")).unwrap_or_default();
    assert!(smb1.ends_with(" of 10.0.0.2:445, 1 of 2 connections"), "{smb1}");
    assert!(text.lines().any(|line| line == summary), "{text}");
    assert!(text.lines().any(|line| line == format!("- {quality}")), "{text}");
    let facts: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.trim_start().starts_with("Dialect"))
        .take_while(|line| !line.is_empty())
        .map(str::trim_start)
        .collect();
    assert_eq!(
        facts,
        [
            "Dialect    SMB1 (NT LM 0.12) in use on 1 of 2 connections",
            "SMB 3.1.1 on 1 of 2 connections",
            "Load       2 connections of 2 clients, 20 commands/s, 5.0 kB/s read, 34 kB/s written; 1.0 requests \
             outstanding on a busy connection on",
            "average, at most 1",
            "Servers    10.0.0.2:445",
            "Clients    10.0.0.1, 10.0.0.3",
            // 118 commands; NEGOTIATE has no session, and SESSION_SETUP no tree.
            r"Users      LAB\ann (117 commands)",
            "Shares     data (116 commands)",
            "Signing    not required by the server, no message signed",
            "Encryption none",
            "Capture    hand.pcap (pcap), 374 packets, from 2023-11-14 22:13:20 UTC",
        ]
    );
    // SMB2: handshake 3, NEGOTIATE, SESSION_SETUP and TREE_CONNECT 2 each, CREATE 2 + 3, READ 10 · 4, WRITE 100 · 3,
    // CLOSE 2, CHANGE_NOTIFY 3 (one interim), ECHO 1: 360. SMB1: handshake 3, NEGOTIATE 2, WRITE_RAW 2, block 2,
    // its answer 1, acknowledgement 1: 11. Others: 3. The last packet is the third of the other handshake, at 7,000,020.
    assert_eq!(
        block(text, "Packets"),
        [
            "Packets",
            "in the capture 374",
            "TCP packets of SMB connections 371 99.2%", // 371/374
            "acknowledgements only 3 0.8%",             // two handshakes and one more
            "unacknowledged segments 1 0.3%",           // ECHO
            "continuing a message 122 32.6%",           // WRITE 100, READ 20, the block 2
            "retransmitted 1 0.3%",
            "lost by the network 1 0.3%",
            "in vain, it was received 0 0.0%",
            "dropped by the capture 0",
        ]
    );
    // Client to server: SYN 1 + 1, acknowledgements 1 + 2, messages 118 + 2, continuing 100 + 2, retransmitted 1: 228.
    // Server to client: SYN 1 + 1, messages 118 (one interim) + 3, continuing 20: 143.
    assert_eq!(
        block(text, "                         commands"),
        [
            "commands replies",
            "packets 228 100.0% 143 100.0%",
            "SMB 120 52.6% 121 84.6%",
            "continue 102 44.7% 20 14.0%",
            "TCP ack 3 1.3% 0 0.0%",
            "TCP retry 1 0.4% 0 0.0%",
            "TCP open, close 2 0.9% 2 1.4%",
            "2 (2.0%) of the commands' continue are the async portion of Write_Raw",
        ]
    );
    assert!(text.contains("\n  Elapsed time 000:00:07.00002 (7.00002 seconds)\n"), "{text}");

    // Percentages refer to 120 commands: 118 of SMB2 (1 + 1 + 1 + 2 + 10 + 100 + 1 + 1 + 1) and 2 of SMB1.
    assert_eq!(
        block(text, "SMB1 commands"),
        [
            "SMB1 commands Count Share Errors Untimed Pkts Total wait Fastest Median Average p95 p99 Slowest StdDev Service",
            "NEGOTIATE 1 0.8% 2.0 1.00 ms 1.00 ms 1.00 ms 1.00 ms - - 1.00 ms - 1.00 ms",
            "WRITE_RAW 1 0.8% 2.0 150 µs 150 µs 150 µs 150 µs - - 150 µs - 150 µs",
            // 2,700 to 2,960; the server answers 200 after the second packet at 2,760.
            "async portion 1 3.0 260 µs 260 µs 260 µs 260 µs - - 260 µs - 200 µs",
        ]
    );
    assert_eq!(
        block(text, "SMB2/3 commands")[..10],
        [
            "SMB2/3 commands Count Share Errors Untimed Pkts Total wait Fastest Median Average p95 p99 Slowest StdDev Service",
            // The sum is 2,222,195. Median (9,999 + 10,000)/2; deviation √(Σx² − n·mean²)/9 with Σx² =
            // 2,020,199,797,805 and n·mean² = 493,815,061,802.5: 411,823. Service is 50 less than the response time.
            "READ 10 8.3% 4.0 2.22 s 99.0 µs 10.0 ms 222 ms - - 1.00 s 412 ms 9.95 ms",
            // 100·k: median and mean 100 · 50.5; p95 at rank 99 · 0.95 = 94.05: 9,505; p99 at 98.01: 9,901; deviation
            // 100 · √(100·101/12) = 2,901; service is 40 less.
            "WRITE 100 83.3% 3.0 505 ms 100 µs 5.05 ms 5.05 ms 9.51 ms 9.90 ms 10.0 ms 2.90 ms 5.01 ms",
            // √(100² + 100²) = 141. The retransmitted copy changes no time and does not count as a packet of the
            // command.
            "CREATE 2 1.7% 1 2.0 800 µs 300 µs 400 µs 400 µs - - 500 µs 141 µs 400 µs",
            "SESSION_SETUP 1 0.8% 2.0 600 µs 600 µs 600 µs 600 µs - - 600 µs - 600 µs",
            "NEGOTIATE 1 0.8% 2.0 400 µs 400 µs 400 µs 400 µs - - 400 µs - 400 µs",
            "TREE_CONNECT 1 0.8% 2.0 250 µs 250 µs 250 µs 250 µs - - 250 µs - 250 µs",
            "CLOSE 1 0.8% 2.0 200 µs 200 µs 200 µs 200 µs - - 200 µs - 200 µs",
            "ECHO 1 0.8% 1",
            "CHANGE_NOTIFY 1 0.8% 2.0 2.50 s 2.50 s 2.50 s 2.50 s - - 2.50 s - 2.50 s",
        ]
    );
    assert_eq!(
        block(text, "Groups")[..7],
        [
            "Groups Count Share Errors Untimed Pkts Total wait Fastest Median Average p95 p99 Slowest StdDev Service",
            // 300, 500, 200: mean 333.3, deviation √(46,666.7/2) = 152.8.
            "Open/Close 3 2.5% 1 2.0 1.00 ms 200 µs 300 µs 333 µs - - 500 µs 153 µs 300 µs",
            "Read 10 8.3% 4.0 2.22 s 99.0 µs 10.0 ms 222 ms - - 1.00 s 412 ms 9.95 ms",
            // WRITE and 150: packets 302/101; from 200 on, rank n holds 100·n: median 5,000, p95 9,500, p99 9,900;
            // mean 505,150/101 = 5,001; deviation √(857,022,277/100) = 2,927; median service 4,960.
            "Write 101 84.2% 3.0 505 ms 100 µs 5.00 ms 5.00 ms 9.50 ms 9.90 ms 10.0 ms 2.93 ms 4.96 ms",
            // 250, 400, 600, 1,000: median 500, mean 562.5, deviation √(316,875/3) = 325.
            "Session 5 4.2% 1 2.0 2.25 ms 250 µs 500 µs 562 µs - - 1.00 ms 325 µs 500 µs",
            // 118 values. 12 other values are below 4,700, so around it rank n has the value 100 · (n − 11): median
            // (4,700 + 4,800)/2. p95 at rank 111.15 between 9,999 and 10,000; p99 at 115.83 between 100,000 and
            // 999,999: 846,999. Packets (6 + 40 + 302 + 8)/118; mean 2,730,595/118 = 23,141; service at that median
            // (4,660 + 4,760)/2.
            "Total 119 99.2% 1 1 3.0 2.73 s 99.0 µs 4.75 ms 23.1 ms 10.0 ms 847 ms 1.00 s 129 ms 4.71 ms",
            "Waiting 1 0.8% 2.0 2.50 s 2.50 s 2.50 s 2.50 s - - 2.50 s - 2.50 s",
        ]
    );
    assert_eq!(block(text, "Errors")[1..], ["1 STATUS_OBJECT_NAME_NOT_FOUND (50.0% of CREATE)"]);
    assert_eq!(
        block(text, "Warnings")[1..],
        [
            "1 packet retransmitted by TCP (0.3% of SMB packets)",
            "1 command without an answer by the end of the capture (0.8% of commands)",
        ]
    );
}

#[test]
fn decades_and_bars_of_the_text_report() {
    let said = analyze(&capture("digit_bars"), &["hand.pcap", "--full", "--width", "100"]);
    let text = said.output();
    // A bar of 100% has 50 characters: 10% are 5, 89.1% are 44.55 (drawn as 44 and four eighths), 75% are 37 and a
    // half, 1% (0.99) is half a character. A value on the boundary belongs to the decade that begins there.
    assert_eq!(
        block(text, "Latency distribution by group"),
        [
            "Latency distribution by group",
            "Band Commands Share Cumulative",
            "Open/Close",
            &format!("100 µs – 1 ms 3 100.0% 100.0% {}", "█".repeat(50)),
            "Read",
            "10 – 100 µs 1 10.0% 10.0% █████",
            "100 µs – 1 ms 2 20.0% 30.0% ██████████",
            "1 – 10 ms 2 20.0% 50.0% ██████████",
            "10 – 100 ms 2 20.0% 70.0% ██████████",
            "100 ms – 1 s 2 20.0% 90.0% ██████████",
            "1 – 10 s 1 10.0% 100.0% █████",
            "Write",
            "100 µs – 1 ms 10 9.9% 9.9% █████",
            &format!("1 – 10 ms 90 89.1% 99.0% {}▌", "█".repeat(44)),
            "10 – 100 ms 1 1.0% 100.0% ▌",
            "Session",
            &format!("100 µs – 1 ms 3 75.0% 75.0% {}▌", "█".repeat(37)),
            &format!("1 – 10 ms 1 25.0% 100.0% {}▌", "█".repeat(12)),
            "Waiting",
            &format!("1 – 10 s 1 100.0% 100.0% {}", "█".repeat(50)),
        ]
    );
    let rows = block(text, "Share by band, %");
    assert_eq!(
        rows[..2],
        ["Share by band, % 0 100µs 1ms 10ms 100ms 1s", "(from, to) –100µs –1ms –10ms –100ms –1s –10s"]
    );
    // 100 WRITEs: 9 below 1 ms (100 … 900), 90 below 10 ms, one of exactly 10 ms.
    assert!(rows.contains(&"WRITE · 9.0 90.0 1.0 · · ▁█▁".to_owned()), "{rows:?}");
    assert!(rows.contains(&"READ 10.0 20.0 20.0 20.0 20.0 10.0 ▁▂▂▂▂▁".to_owned()), "{rows:?}");
}

#[test]
fn every_cell_of_the_classic_report() {
    let said = analyze(&capture("digit_classic"), &["hand.pcap", "--classic", "--title", "by hand"]);
    let text = said.output();
    assert!(text.starts_with("***********\n* by hand *\n***********\n"), "{text}");
    let counts = text.lines().skip(6).take_while(|line| !line.starts_with("Elapsed"));
    let counts: Vec<String> = counts
        .filter(|line| !line.is_empty())
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        counts,
        [
            "Packets: 374",
            "IP/TCP: 367 98.1%", // 371 less acknowledgements and unacknowledged segments
            "IP/TCP Ack: 3 0.8%",
            "IP/TCP UAk: 1 0.3%",
            "not SMB: 3 0.8%",
            "retrans: 1 0.3%",
            "dropped: 0 (or more)",
            "Continue: 122 32.6%",
            "Commands: 228 61.0%",
            "SMB: 120 52.6%",
            "continue: 102 44.7%",
            "sync: 100 98.0%",
            "async: 2 2.0%",
            "TCP ack: 3 1.3%",
            "TCP retry: 1 0.4%",
            "TCP control: 2 0.9%",
            "Replies: 143 38.2%",
            "SMB: 121 84.6%",
            "continue: 20 14.0%",
            "TCP ack: 0 0.0%",
            "TCP retry: 0 0.0%",
            "TCP control: 2 1.4%",
        ]
    );
    assert!(text.contains("\nElapsed time: 000:00:07.00002 (7.00002 seconds)\n"), "{text}");
    // As in the text report, in seconds. Counts exclude the ECHO, because not all of its packets are known.
    assert_eq!(
        block(text, "SMB Command"),
        [
            "SMB Command Count % Tot Pkts Fastest Slowest Median Average StdDev",
            "Negotiate 1 0.8% 2 0.00100 0.00100 0.00100 0.00100",
            "Write_Raw 1 0.8% 2 0.00015 0.00015 0.00015 0.00015",
            "async portion 3",
            "Change_Notify 1 0.8% 2 2.50000 2.50000 2.50000 2.50000",
            "Close 1 0.8% 2 0.00020 0.00020 0.00020 0.00020",
            "Create 2 1.7% 2 0.00030 0.00050 0.00040 0.00040 0.0001",
            "Echo 0 0.0%",
            "Negotiate 1 0.8% 2 0.00040 0.00040 0.00040 0.00040",
            "Read 10 8.3% 4 0.00010 1.00000 0.01000 0.22222 0.4118",
            "Session_Setup 1 0.8% 2 0.00060 0.00060 0.00060 0.00060",
            "Tree_Connect 1 0.8% 2 0.00025 0.00025 0.00025 0.00025",
            "Write 100 83.3% 3 0.00010 0.01000 0.00505 0.00505 0.0029",
        ]
    );
    assert_eq!(
        block(text, "Groups:"),
        [
            "Groups: Count % Tot Pkts Fastest Slowest Median Average StdDev",
            "Open/Close 3 2.5% 2 0.00020 0.00050 0.00030 0.00033 0.0002",
            "Read 10 8.3% 4 0.00010 1.00000 0.01000 0.22222 0.4118",
            "Write 101 84.2% 3.0 0.00010 0.01000 0.00500 0.00500 0.0029",
            "Session 4 3.3% 2 0.00025 0.00100 0.00050 0.00056 0.0003",
            "Waiting 1 0.8% 2 2.50000 2.50000 2.50000 2.50000",
        ]
    );
    // 40 stars are 100%.
    assert_eq!(
        block(text, "Write:"),
        [
            "Write:",
            "<0.001 9 9.0% 9.0% ****",
            "<0.01 90 90.0% 99.0% ************************************",
            "<0.1 1 1.0% 100.0%",
        ]
    );
    assert_eq!(block(text, "Write_Raw (synchronous portion only):").len(), 2);
}

fn json_report(test: &str) -> Value {
    let said = analyze(&capture(test), &["hand.pcap", "--format", "json"]);
    serde_json::from_str(said.output()).expect("the report is JSON")
}

fn entry<'a>(list: &'a Value, key: &str, name: &str) -> &'a Value {
    list.as_array().and_then(|list| list.iter().find(|entry| entry[key] == name)).expect("the entry is there")
}

#[test]
fn figures_of_the_json_report() {
    let report = json_report("digit_json");
    let none = json!({"count": 0, "min": null, "max": null, "mean": null, "stddev": null, "p50": null, "p90": null,
        "p95": null, "p99": null, "p999": null});
    let times = |count: u64, [min, max, mean, stddev, p50, p90]: [i64; 6]| {
        json!({"count": count, "min": min, "max": max, "mean": mean, "stddev": stddev, "p50": p50, "p90": p90,
            "p95": null, "p99": null, "p999": null})
    };
    // In nanoseconds; see the text report. p90 at rank 8.1 between 999,999 and 1,000,000 µs.
    let response = [99_000, 1_000_000_000, 222_219_500, 411_823_147, 9_999_500, 999_999_100];
    let less = |shift: i64| {
        let [min, max, mean, stddev, p50, p90] = response;
        [min - shift, max - shift, mean - shift, stddev, p50 - shift, p90 - shift]
    };
    let all = |value: i64| [value, value, value, 0, value, value];
    let expected = json!({
        "protocol": "SMB2", "command": "READ", "groups": ["Read"], "count": 10, "timed": 10, "errors": {},
        "outcomes": {"complete": 10}, "average_packets": 4.0,
        // Request: 64 bytes of header and 49 of body. Response: 64, 16 and the data.
        "request_bytes": 1_130, "response_bytes": 30_800,
        "distribution": [0, 0, 1, 2, 2, 2, 2, 1, 0, 0],
        "response_time": times(10, response),
        "service_time": times(10, less(50_000)),
        // The round trip to the server is 10 µs.
        "server_time": times(10, less(60_000)),
        "request_transfer": times(10, all(0)),
        "response_transfer": times(10, all(50_000)),
        "srt": times(10, response),
        "retransmission_delay": none,
        "think_time": times(10, all(500_000)),
        "subcommands": [], "apart": [],
    });
    assert_eq!(entry(&report["commands"], "command", "READ"), &expected);

    let create = entry(&report["commands"], "command", "CREATE");
    assert_eq!(create["errors"], json!({"STATUS_OBJECT_NAME_NOT_FOUND": 1}));
    assert_eq!(
        (&create["retransmission_delay"]["count"], &create["retransmission_delay"]["max"]),
        (&json!(1), &json!(100_000))
    );
    let write = &entry(&report["commands"], "command", "WRITE");
    // 40 µs between the two packets of each request. p90 at rank 89.1: 9,010 µs.
    assert_eq!(write["request_transfer"]["mean"], 40_000);
    let percentiles = ["p50", "p90", "p95", "p99", "stddev"].map(|name| write["response_time"][name].clone());
    assert_eq!(percentiles, [5_050_000, 9_010_000, 9_505_000, 9_901_000, 2_901_149].map(|n| json!(n)));
    assert_eq!(write["srt"]["p50"], 5_010_000);
    let raw = &entry(&report["commands"], "command", "SMB_COM_WRITE_RAW")["apart"][0];
    assert_eq!((&raw["subcommand"], &raw["response_time"]["max"]), (&json!("async portion"), &json!(260_000)));

    let counted: Vec<(String, u64)> = report["quality"]
        .as_object()
        .expect("quality is an object")
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), value.as_u64().filter(|value| *value > 0)?)))
        .filter(|(name, _)| !name.ends_with("_bytes"))
        .collect();
    let mut expected = [
        ("packets", 374),
        ("tcp_packets", 374),
        ("smb_flow_packets", 371),
        ("pure_acks", 3),
        ("unacknowledged_segments", 1),
        ("retransmitted_segments", 1),
        ("requests_unanswered", 1),
        ("interim_responses", 1),
    ]
    .map(|(name, value)| (name.to_owned(), value));
    expected.sort();
    let mut counted = counted;
    counted.sort();
    assert_eq!(counted, expected);

    let connection = &report["connections"][0];
    let named = |names: &[&str]| names.iter().map(|name| connection[*name].clone()).collect::<Vec<_>>();
    assert_eq!(
        named(&["client", "client_port", "server", "server_port", "protocol", "dialect", "end", "midstream"]),
        [
            json!("10.0.0.1"),
            json!(50_000),
            json!("10.0.0.2"),
            json!(445),
            json!("SMB2"),
            json!("3.1.1"),
            json!("open"),
            json!(false)
        ]
    );
    assert_eq!(
        named(&[
            "server_round_trip_ns",
            "client_round_trip_ns",
            "users",
            "shares",
            "signing_required",
            "first_ns",
            "last_ns"
        ]),
        [
            json!(10_000),
            json!(10_000),
            json!([r"LAB\ann"]),
            json!(["data"]),
            json!(false),
            json!(ZERO),
            json!(ZERO + 5_288_945_000)
        ]
    );
    // 118 requests, and 118 responses including one interim. All but the ECHO have ended.
    assert_eq!(named(&["messages", "exchanges", "max_outstanding"]), [json!(236), json!(117), json!(1)]);
    // 3,000 bytes read ten times, 2,000 bytes written a hundred times.
    let share = entry(&report["shares"], "share", "data");
    assert_eq!((&share["bytes_read"], &share["bytes_written"]), (&json!(30_000), &json!(200_000)));
    assert_eq!(report["totals"]["elapsed_ns"], 7_000_020_000i64);
}

#[test]
fn sums_agree() {
    let report = json_report("digit_sums");
    let array = |value: &Value| value.as_array().expect("an array").clone();
    let decades = |row: &Value| -> Vec<u64> { array(&row["distribution"]).iter().filter_map(Value::as_u64).collect() };
    let sum = |rows: &[Value], of: &dyn Fn(&Value) -> u64| rows.iter().map(of).sum::<u64>();
    let count = |row: &Value| row["count"].as_u64().expect("a count");
    let (commands, groups) = (array(&report["commands"]), array(&report["groups"]));
    let whole = report["totals"]["commands"].as_u64().expect("a count");
    assert_eq!([sum(&commands, &count), sum(&groups, &count), whole], [120; 3]);
    for row in commands.iter().chain(&groups) {
        assert_eq!(decades(row).iter().sum::<u64>(), row["timed"].as_u64().expect("a count"), "{row}");
    }
    let headline: Vec<Value> = groups.iter().filter(|group| group["headline"] == true).cloned().collect();
    let total = &report["totals"]["headline"];
    assert_eq!([sum(&headline, &count), count(total)], [119; 2]);
    for decade in 0..10 {
        assert_eq!(sum(&headline, &|group| decades(group)[decade]), decades(total)[decade]);
    }
    // 99; 100 … 900, 100, 999, 150, 200, 300, 500, 250, 400, 600; 1,000 … 9,900, 1,000, 9,999, 1,000; three of 10 ms
    // to 100 ms (two READs, one WRITE); 100,000 and 999,999; 1 s.
    assert_eq!(decades(total), [0, 0, 1, 9 + 9, 90 + 3, 3, 2, 1, 0, 0]);
    let bins: u64 = array(&report["timeline"]["bins"]).iter().filter_map(|bin| bin["commands"].as_u64()).sum();
    assert_eq!(bins, 120);
}

#[test]
fn rows_of_the_exchange_table() {
    let said = analyze(&capture("digit_csv"), &["hand.pcap", "--format", "csv"]);
    let (header, rows) = table(said.output());
    // 120 commands, and the block of the WRITE_RAW.
    assert_eq!(rows.len(), 121);
    let cells = |row: usize, names: &str| -> Vec<&str> {
        let place = |name: &str| header.iter().position(|column| column == name).expect("the column is there");
        names.split_whitespace().map(|name| rows[row][place(name)].as_str()).collect()
    };
    let who = "client client_port server server_port protocol dialect user share capture";
    assert_eq!(
        cells(5, who),
        ["10.0.0.1", "50000", "10.0.0.2", "445", "SMB2", "3.1.1", r"LAB\ann", "data", "hand.pcap"]
    );
    let what = "command message_id session_id tree_id file_id path status offset length outcome group";
    assert_eq!(
        cells(5, what),
        [
            "READ",
            "5",
            "0x0000000000000007",
            "0x00000003",
            "0000000000000100:0000000000000009",
            "a.txt",
            "STATUS_SUCCESS",
            "0",
            "3000",
            "complete",
            "Read"
        ]
    );
    let packets = "request_first_packet request_last_packet response_first_packet response_last_packet request_packets \
                   response_packets retransmitted";
    let times = "request_first_ns request_last_ns interim_ns response_first_ns response_last_ns";
    let at = |us: i64| (ZERO + us * 1_000).to_string();
    // Before the first READ: handshake 3, six packets, two of the first CREATE, three of the second.
    assert_eq!(cells(5, packets), ["15", "15", "16", "18", "1", "3", "0"]);
    // 1,000 + 400 + 600 + 250 + 300 + 500 and five pauses of 500.
    assert_eq!(cells(5, times), [at(5_550), at(5_550), String::new(), at(5_599), at(5_649)]);
    let derived = "response_time_ns service_time_ns server_time_ns retransmission_delay_ns think_time_ns";
    assert_eq!(cells(5, derived), ["99000", "49000", "39000", "", "500000"]);
    // The CREATE whose request was retransmitted as packet 13.
    assert_eq!(cells(4, "command path status"), ["CREATE", "b.txt", "STATUS_OBJECT_NAME_NOT_FOUND"]);
    assert_eq!(cells(4, packets), ["12", "12", "14", "14", "1", "1", "1"]);
    assert_eq!(cells(4, derived), ["500000", "500000", "490000", "100000", "500000"]);
    // The first WRITE begins after the READs: 5,550 + 2,222,195 + 10 · 500.
    assert_eq!(cells(15, packets), ["55", "56", "57", "57", "2", "1", "0"]);
    assert_eq!(cells(15, times), [at(2_232_745), at(2_232_785), String::new(), at(2_232_845), at(2_232_845)]);
    // Request: 64 + 48 and the data. Response: 64 + 16.
    assert_eq!(cells(15, "request_bytes response_bytes"), ["2112", "80"]);
    // 2,232,745 + 505,000 + 100 · 500 + 700.
    assert_eq!(cells(116, "command group"), ["CHANGE_NOTIFY", "Waiting"]);
    assert_eq!(cells(116, times), [at(2_788_445), at(2_788_445), at(2_788_525), at(5_288_445), at(5_288_445)]);
    assert_eq!(
        cells(117, "command outcome status response_last_packet response_time_ns"),
        ["ECHO", "unanswered", "", "", ""]
    );
    assert_eq!(cells(120, "protocol command subcommand"), ["SMB1", "SMB_COM_WRITE_RAW", "async portion"]);
    assert_eq!(cells(120, packets), ["368", "369", "370", "370", "2", "1", "0"]);
    let block = [at(6_002_700), at(6_002_760), String::new(), at(6_002_960), at(6_002_960)];
    assert_eq!(cells(120, times), block);
}
