//! What connections are known for beside their exchanges: offers, interfaces, credits, pending commands and windows.

use super::*;
use smbscope_model::connection::ServerInterface;
use smbscope_model::offers::capabilities;
use smbscope_model::{Capabilities, ClientOffer, Offers, ServerOffer};
use std::sync::Arc;

/// 500 reads of 10 ms each, one after the other: 5 s of active time, and 25 MB of data.
fn five_seconds(about: fn(&mut Connection)) -> Scene {
    let mut scene = Scene { about: Some(about), ..Scene::default() };
    for n in 0..500 {
        let act = Act { client: 7, at: n * 10, took: 10, command: Smb2::READ, group: Group::Read, path: "big.iso" };
        let read = scene.add(act);
        (read.offset, read.length, read.response.bytes) = (Some(n as u64 * 50_000), Some(50_000), 50_084);
    }
    scene
}

/// The sentence of a finding, if there is one.
fn sentence(scene: &Scene, id: &str) -> Option<String> {
    let found = scene.findings().into_iter().find(|finding| finding.id == id);
    found.map(|finding| finding.sentence.replace('\u{a0}', " "))
}

fn offers(offered: &[Dialect], chosen: Dialect, capabilities: u32) -> Offers {
    let capabilities = Some(Capabilities(capabilities));
    Offers {
        client: Some(Arc::new(ClientOffer { dialects: offered.to_vec(), capabilities, ..ClientOffer::default() })),
        server: Some(Arc::new(ServerOffer { dialect: Some(chosen), capabilities, ..ServerOffer::default() })),
    }
}

#[test]
fn a_dialect_below_the_best_offer_is_the_servers_choice() {
    const OFFERED: [Dialect; 3] = [Dialect::Smb2(0x0202), Dialect::Smb2(0x0210), Dialect::Smb2(0x0311)];
    let old = five_seconds(|one| one.offers = offers(&OFFERED, Dialect::Smb2(0x0210), 0));
    let expected = "10.0.0.7 offered SMB 3.1.1, and 10.0.0.200 chose SMB 2.1 on 1 connection.";
    assert_eq!(sentence(&old, "old-dialect").as_deref(), Some(expected));
    // What the client did not offer, its server could not choose; a wildcard and unknown SMB1 dialects are no offer.
    for quiet in [
        five_seconds(|one| one.offers = offers(&OFFERED, Dialect::Smb2(0x0311), 0)),
        five_seconds(|one| one.offers = offers(&OFFERED[..2], Dialect::Smb2(0x0210), 0)),
        five_seconds(|one| {
            let offered = [Dialect::OtherSmb1, Dialect::NtLm012, Dialect::SMB2_WILDCARD];
            one.offers = offers(&offered, Dialect::NtLm012, 0);
        }),
        five_seconds(|one| one.offers.client = None),
    ] {
        assert_eq!(sentence(&quiet, "old-dialect"), None);
    }
}

/// The server told of this many interfaces of 10 Gbit/s.
fn interfaces(connection: &mut Connection, count: u8) {
    connection.offers = offers(&[Dialect::Smb2(0x0311)], Dialect::Smb2(0x0311), capabilities::MULTI_CHANNEL);
    let one =
        |at: u8| ServerInterface { index: u32::from(at), link_speed: 10_000_000_000, address: [10, 0, at, 200].into() };
    connection.server_interfaces = (0..count).map(one).collect();
}

#[test]
fn one_connection_to_a_server_of_two_interfaces_leaves_one_unused() {
    let unused = five_seconds(|one| interfaces(one, 2));
    let expected = "10.0.0.7 moved its data over one connection, although the server offered 2 interfaces: 10.0.0.200 with \
                    10 Gbit/s, 10.0.1.200 with 10 Gbit/s.";
    assert_eq!(sentence(&unused, "multichannel-unused").as_deref(), Some(expected));
    // One interface with two addresses; link-local and loopback addresses beside it; a side that has no multichannel.
    for quiet in [
        five_seconds(|one| interfaces(one, 1)),
        five_seconds(|one| {
            interfaces(one, 2);
            one.server_interfaces[1].index = 0;
        }),
        five_seconds(|one| {
            interfaces(one, 2);
            one.server_interfaces[1].address = [169, 254, 7, 7].into();
        }),
        five_seconds(|one| {
            interfaces(one, 2);
            one.offers = offers(&[Dialect::Smb2(0x0311)], Dialect::Smb2(0x0311), 0);
        }),
    ] {
        assert_eq!(sentence(&quiet, "multichannel-unused"), None);
    }
    // Another client address joins a session on the other interface: a second channel.
    let mut both = five_seconds(|one| match one.endpoints.client.ip() == IpAddr::from([10, 0, 0, 7]) {
        true => interfaces(one, 2),
        false => one.binds_session = true,
    });
    both.use_file(8, 1_000, "big.iso", 100);
    assert_eq!(sentence(&both, "multichannel-unused"), None);
}

#[test]
fn waiting_for_credits_counts_from_a_share_of_the_active_time() {
    // 100 ms of 5 s are 2%.
    let starved = five_seconds(|one| (one.credit_wait, one.max_outstanding) = (Nanos(100 * MS), 8));
    let expected = "10.0.0.7 had no credits left for its next request, with at most 8 requests outstanding: 100 ms of its \
                    5.00 s of active time (2%).";
    assert_eq!(sentence(&starved, "credit-starved").as_deref(), Some(expected));
    for quiet in [five_seconds(|one| one.credit_wait = Nanos(40 * MS)), five_seconds(|_| {})] {
        assert_eq!(sentence(&quiet, "credit-starved"), None);
    }
}

#[test]
fn pending_commands_are_told_of_near_the_limit_only() {
    let near = five_seconds(|one| one.max_asynchronous = 460);
    let expected = "10.0.0.7 had 460 commands pending at once on a connection, of 512 that servers allow by default.";
    assert_eq!(sentence(&near, "async-limit").as_deref(), Some(expected));
    assert_eq!(sentence(&five_seconds(|one| one.max_asynchronous = 459), "async-limit"), None);
}

/// The client's window of 65,535 bytes kept the server waiting for so many milliseconds, with a round trip of so many.
fn small_window(connection: &mut Connection, limited: i64, trip: i64) {
    (connection.server_round_trip, connection.client_round_trip) = (Some(Nanos((trip - 1) * MS)), Some(Nanos(MS)));
    (connection.to_client.window_limited_ns, connection.to_client.filled_window) = (Nanos(limited * MS), Some(65_535));
}

#[test]
fn a_small_window_matters_over_a_distance_and_for_long() {
    // 65,535 bytes each 20 ms are 3.28 MB/s.
    let limited = five_seconds(|one| small_window(one, 3_000, 20));
    let expected = "10.0.0.7 could move no more than 3.28 MB/s: its own receive window of 65.5 kB allows that with a round \
                    trip of 20.0 ms, and the server waited for acknowledgments with the window full: 3.00 s of its 5.00 s of \
                    active time (60%).";
    assert_eq!(sentence(&limited, "window-limited").as_deref(), Some(expected));
    for quiet in [five_seconds(|one| small_window(one, 3_000, 9)), five_seconds(|one| small_window(one, 400, 20))] {
        assert_eq!(sentence(&quiet, "window-limited"), None, "9 ms of round trip; 8% of the time");
    }
}

#[test]
fn a_closed_window_says_whose_it_is() {
    let clients = five_seconds(|one| one.to_client.window_closed_ns = Nanos(1_000 * MS));
    let expected = "10.0.0.7 took no data for a while: its receive window was closed while the server had more to send: 1.00 s \
                    of its 5.00 s of active time (20%).";
    assert_eq!(sentence(&clients, "zero-window").as_deref(), Some(expected));
    let servers = five_seconds(|one| one.to_server.window_closed_ns = Nanos(1_000 * MS));
    let said = sentence(&servers, "zero-window").expect("20% of the time");
    assert!(said.contains("had to wait to send data: the server's receive window was closed"), "{said}");
    assert_eq!(sentence(&five_seconds(|one| one.to_client.window_closed_ns = Nanos(40 * MS)), "zero-window"), None);
}

/// Writes of 1 MiB: 24 of 10 ms, then 24 that take so much longer, in milliseconds.
fn writes(then: i64) -> Scene {
    let mut scene = Scene::default();
    let mut now = 0;
    for n in 0..48 {
        let took = if n < 24 { 10 } else { then };
        let act = Act { client: 7, at: now, took, command: Smb2::WRITE, group: Group::Write, path: "image.vhdx" };
        let write = scene.add(act);
        (write.offset, write.length) = (Some((n as u64) << 20), Some(1 << 20));
        now += took;
    }
    scene
}

#[test]
fn writes_that_become_slow_are_told_with_both_phases() {
    // 24 MiB in 0.24 s, then 24 MiB in 1.2 s, which at first would have taken 0.24 s.
    let expected = "10.0.0.7 wrote 25.2 MB at 105 MB/s and 10.0 ms for a write, then 25.2 MB at 21.0 MB/s and 50.0 ms for a \
                    write: 960 ms of its 1.44 s of active time (67%).";
    assert_eq!(sentence(&writes(50), "fast-then-slow").as_deref(), Some(expected));
    let findings = writes(50).findings();
    let found = findings.iter().find(|finding| finding.id == "fast-then-slow").expect("it was there");
    assert_eq!((found.whose.path.as_deref(), found.evidence[0].packet), (Some("image.vhdx"), 1));
    // 29 ms are less than three times as long as 10 ms; 10 ms stay.
    for then in [29, 10] {
        assert_eq!(sentence(&writes(then), "fast-then-slow"), None, "{then}");
    }
}
