//! Causes that no available client can provoke. Each capture is built packet by packet and analysed by the whole
//! program.

use crate::causes::scene::{hits, report};
use crate::common::{directory, write};
use serde_json::Value;
use smbscope_testkit::conversation::together;
use smbscope_testkit::{Conversation, pcap, smb2};
use smbscope_wire::smb2::Smb2Command;
use smbscope_wire::smb2::messages::negotiate::capabilities::MULTI_CHANNEL;

/// Analyses one capture of these conversations.
fn analyzed(name: &str, conversations: &[Conversation]) -> Value {
    let folder = directory(&format!("causes-{name}"));
    write(&folder, "built.pcap", pcap::nanos(&together(conversations)));
    report(&folder.join("built.pcap"))
}

/// Asserts that only the positive capture has the finding, and that all commands of the negative one are timed.
fn holds(id: &str, positive: &[Conversation], negative: &[Conversation]) {
    let (found, healthy) = (analyzed(&format!("{id}-built"), positive), analyzed(&format!("{id}-healthy"), negative));
    println!("{id} | {} | {}", hits(&found).join(", "), hits(&healthy).join(", "));
    assert!(hits(&found).contains(&id), "{}", found["answer"]);
    assert!(!hits(&healthy).contains(&id), "{}", healthy["answer"]);
    assert_eq!(healthy["totals"]["untimed"], 0, "{}", healthy["quality"]);
}

/// Negotiates SMB 3.1.1 with multichannel on both sides from this client port.
fn begun(port: u16) -> Conversation {
    let (offer, choice) = smb2::negotiation(0, 0x0311, MULTI_CHANNEL);
    let begun = Conversation::new().ports(port, 445).segment_size(60_000).client_says(100, offer);
    begun.server_says(200, choice)
}

/// Subscribes to changes of this many directories. Each request is answered with STATUS_PENDING.
fn watched(directories: u64) -> Conversation {
    let mut told = begun(50_000);
    for id in 1..=directories {
        let at = 1_000 * id as i64;
        told = told.client_says(at, smb2::notify(id, id).credits(1, 2));
        told = told.server_says(at + 200, smb2::pending(Smb2Command::CHANGE_NOTIFY, id, id).credits(1, 2));
    }
    let mut at = 1_000 * directories as i64 + 5_000;
    for id in 1..=directories {
        told = told.server_says(at, smb2::notify_response(id).asynchronous(id).credits(1, 0));
        at += 150_000;
    }
    told
}

#[test]
fn async_limit() {
    holds("async-limit", &[watched(500)], &[watched(400)]);
}

/// The server reports two interfaces to the client, which then reads 12 MiB.
fn told_of_two() -> Conversation {
    let listed = [(2, 10_000_000_000, [10, 0, 0, 2]), (3, 10_000_000_000, [10, 0, 1, 2])];
    let mut told = begun(50_000)
        .client_says(300, smb2::query_interfaces(1))
        .server_says(400, smb2::interfaces_response(1, &listed));
    for id in 2..=13u64 {
        let at = 20_000 * id as i64;
        told = told.client_says(at, smb2::read(id, 7, id << 20, 1 << 20));
        told = told.server_says(at + 10_000, smb2::read_response(id, &vec![0; 1 << 20]));
    }
    told
}

#[test]
fn multichannel_unused() {
    // A second connection, to the other interface, joins the session.
    let channel = begun(50_001)
        .between(([10, 0, 0, 1], 50_001), ([10, 0, 1, 2], 445))
        .client_says(5_000, smb2::session_bind(1, "LAB", "ann", 0x11))
        .server_says(6_000, smb2::session_setup_response(1, 0x11))
        .client_says(200_000, smb2::echo(2))
        .server_says(200_100, smb2::echo_response(2));
    holds("multichannel-unused", &[told_of_two()], &[told_of_two(), channel]);
}

/// Opens another channel of the session from this client port.
fn channel(port: u16) -> Conversation {
    let at = 10 * i64::from(port - 50_000);
    begun(port)
        .client_says(1_000 + at, smb2::session_bind(1, "LAB", "ann", 0x11))
        .server_says(2_000 + at, smb2::session_setup_response(1, 0x11))
        .client_says(3_000 + at, smb2::echo(2))
        .server_says(3_100 + at, smb2::echo_response(2))
}

#[test]
fn many_channels() {
    let channels = |number: u16| -> Vec<Conversation> { (0..number).map(|n| channel(50_000 + n)).collect() };
    holds("many-channels", &channels(5), &channels(2));
}

/// Reads this file and 120 small ones in a folder, each with an open, a read and a close that take 5 ms.
fn folder_read(first: &str) -> Conversation {
    let mut told = begun(50_000);
    let (mut at, mut id) = (10_000, 1);
    for file in 0..=120u64 {
        let name = if file == 0 { first.to_owned() } else { format!("ann.V6\\AppData\\setting{file}.dat") };
        let data = vec![7; if file == 0 { 200_000 } else { 900 }];
        let steps = [
            (smb2::create(id, &name), smb2::create_response(id, file + 1)),
            (smb2::read(id + 1, file + 1, 0, data.len() as u32), smb2::read_response(id + 1, &data)),
            (smb2::close(id + 2, file + 1), smb2::close_response(id + 2)),
        ];
        for (request, response) in steps {
            told = told.client_says(at, request).server_says(at + 5_000, response);
            at += 5_100;
        }
        id += 3;
    }
    told
}

#[test]
fn roaming_profile() {
    let profile = folder_read(r"ann.V6\NTUSER.DAT");
    let answer = &analyzed("roaming-profile-first", std::slice::from_ref(&profile))["answer"];
    assert_eq!(answer["causes"][0]["id"], "roaming-profile", "{answer}");
    assert_eq!(answer["culprit"], "application", "{answer}");
    // The same work without the hive, and with the hive of another folder.
    holds("roaming-profile", &[profile], &[folder_read(r"ann.V6\archive.dat")]);
    let beside = analyzed("roaming-profile-beside", &[folder_read(r"bob.V6\NTUSER.DAT")]);
    assert!(!hits(&beside).contains(&"roaming-profile"), "{}", beside["answer"]);
}

/// Opens and closes files 40 times over, with a read or a write each time. A slow command takes 400 ms, others 0.5 ms.
/// `is_slow` gets the number of the command, and whether it is the read or write.
fn paused(is_slow: impl Fn(u64, bool) -> bool) -> Conversation {
    let (mut work, mut at) = (begun(50_000), 1_000);
    for round in 0..40 {
        for step in 0..7 {
            let id = 1 + round * 7 + step;
            let [asked, answered] = match step {
                5 if round % 3 == 0 => [smb2::read(id, 7, 0, 10), smb2::read_response(id, &[0; 10])],
                5 => [smb2::write(id, 7, 0, &[0; 10]), smb2::write_response(id, 10)],
                0 | 2 | 4 => [smb2::create(id, "a.txt"), smb2::create_response(id, 7)],
                _ => [smb2::close(id, 7), smb2::close_response(id)],
            };
            let time = if is_slow(id, step == 5) { 400_000 } else { 500 };
            work = work.client_says(at, asked).server_says(at + time, answered);
            at += time + 500;
        }
    }
    work
}

/// A server that stops whatever it is asked for, against one whose disk is slow.
#[test]
fn throttled() {
    holds("throttled", &[paused(|number, _| number % 9 == 0)], &[paused(|_, is_transfer| is_transfer)]);
}
