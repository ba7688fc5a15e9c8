//! Each detector on exchanges that are worked out by hand: one scene in which it speaks, one in which it does not.

mod connections;

use super::*;
use crate::Confidence;
use smbscope_model::{
    CaptureId, Command, Dialect, Endpoints, Exchange, FlowId, Group, Half, Nanos, Outcome, PacketRef, Stamp, Status,
    Timestamp,
};
use smbscope_stats::Aggregator;
use smbscope_wire::smb1;
use smbscope_wire::smb2::Command as Smb2;
use smbscope_wire::status::NtStatus;

const MS: i64 = 1_000_000;

/// Clients at work, each with one connection; time is given in milliseconds.
#[derive(Default)]
struct Scene {
    exchanges: Vec<Exchange>,
    packets: u64,
    retransmitted: u64,
    /// What is known of each connection beside its exchanges.
    about: Option<fn(&mut Connection)>,
}

/// A command of a client.
struct Act<'a> {
    client: u8,
    at: i64,
    took: i64,
    command: Smb2,
    group: Group,
    path: &'a str,
}

impl Scene {
    fn add(&mut self, act: Act<'_>) -> &mut Exchange {
        let Act { client, at, took, command, group, path } = act;
        let endpoints =
            Endpoints { client: ([10, 0, 0, client], 50_000).into(), server: ([10, 0, 0, 200], 445).into() };
        self.packets += 2;
        let half = |ms: i64, number: u64| {
            let stamp = Stamp { time: Timestamp(ms * MS), packet: PacketRef::new(CaptureId(0), number) };
            Half { first: Some(stamp), last: Some(stamp), packets: 1, bytes: 200 }
        };
        self.exchanges.push(Exchange {
            request: half(at, self.packets - 1),
            response: half(at + took, self.packets),
            path: (!path.is_empty()).then(|| path.into()),
            share: Some("data".into()),
            status: Some(Status::Nt(NtStatus::SUCCESS)),
            dialect: Some(Dialect::Smb2(0x0311)),
            server_round_trip: Some(Nanos(0)),
            outcome: Outcome::Complete,
            ..Exchange::new(FlowId(u64::from(client)), endpoints, Command::Smb2(command), group)
        });
        let at = self.exchanges.len() - 1;
        &mut self.exchanges[at]
    }

    /// Opens a file, moves so many bytes, closes it: a command a millisecond; the time behind it.
    fn use_file(&mut self, client: u8, at: i64, path: &str, bytes: u64) -> i64 {
        let act = |at, command, group| Act { client, at, took: 1, command, group, path };
        self.add(act(at, Smb2::CREATE, Group::OpenClose));
        let mut now = at + 1;
        if bytes > 0 {
            let read = self.add(act(now, Smb2::READ, Group::Read));
            (read.offset, read.length, read.response.bytes) = (Some(0), Some(bytes), bytes + 84);
            now += 1;
        }
        self.add(act(now, Smb2::CLOSE, Group::OpenClose));
        now + 1
    }

    fn findings(&self) -> Vec<Finding> {
        let (mut aggregator, mut collector) = (Aggregator::new(), Collector::default());
        let mut connections: Vec<Connection> = Vec::new();
        for exchange in &self.exchanges {
            let start = exchange.start().expect("every command of a scene has packets");
            let end = exchange.response.last.map_or(start, |stamp| stamp.time);
            if !connections.iter().any(|known| known.flow == exchange.flow) {
                connections.push(Connection::new(exchange.flow, exchange.endpoints, start));
            }
            let known = connections.iter_mut().find(|known| known.flow == exchange.flow).expect("it was just put in");
            known.last = known.last.max(end);
            known.dialect = exchange.dialect;
            known.to_server.packets += 1;
            known.to_client.packets += 1;
            known.to_server.retransmitted = self.retransmitted;
            aggregator.follow(exchange, true);
            aggregator.record(exchange);
            collector.exchange(exchange);
        }
        if let Some(about) = self.about {
            connections.iter_mut().for_each(about);
        }
        for connection in &connections {
            aggregator.closed(connection);
            collector.closed(connection);
        }
        let (catalogue, aggregate) = (Catalogue::default(), aggregator.finish());
        findings(&collector, &Context { catalogue: &catalogue, aggregate: &aggregate, connections: &connections })
    }

    fn ids(&self) -> Vec<String> {
        self.findings().into_iter().map(|finding| finding.id).collect()
    }
}

/// 3,000 settings of an INI file: an open, a read of 4 KiB and a close of a millisecond each, and a millisecond of thought.
fn ini(scene: &mut Scene, client: u8) {
    let mut now = 0;
    for _ in 0..3_000 {
        now = scene.use_file(client, now, "app\\settings.ini", 4_096) + 1;
    }
}

#[test]
fn an_ini_file_read_setting_by_setting_is_named_with_all_it_costs() {
    let mut scene = Scene::default();
    ini(&mut scene, 7);
    let findings = scene.findings();
    let first = &findings[0];
    // 3,000 × 3 ms of waiting; the last of 3,000 × 4 ms ends a millisecond earlier.
    assert_eq!(
        first.sentence.replace('\u{a0}', " "),
        "10.0.0.7 opened app\\settings.ini 3,000 times in 12.0 s, one at a time, 3 commands each, and read 12.3 MB of a \
         4.10 kB file: 9.00 s of its 12.0 s of active time (75%)."
    );
    assert_eq!(
        (first.id.as_str(), first.lost_ns, first.confidence),
        ("ini-pattern", Some(Nanos(9_000 * MS)), Confidence::High)
    );
    assert_eq!(first.evidence[0].packet, 1);
    assert_eq!(first.whose.path.as_deref(), Some("app\\settings.ini"));
    assert_eq!(first.ruled_out[0], "No NEGOTIATE among 3,000 opens: negotiation is not the cause.");
    // That it is serial and reads small blocks explains nothing more.
    assert!(
        !findings.iter().any(|finding| {
            // One file read 3,000 times is not 3,000 files.
            ["serial-client", "small-io", "small-file-copy"].contains(&finding.id.as_str())
        }),
        "{findings:?}"
    );
}

#[test]
fn one_suffering_client_comes_before_six_that_think() {
    let mut scene = Scene::default();
    ini(&mut scene, 7);
    for client in 10..16 {
        // A small read every two seconds.
        for n in 0..30 {
            scene.use_file(client, n * 2_000, "report.docx", 4_096);
        }
    }
    let findings = scene.findings();
    assert_eq!((findings[0].id.as_str(), findings[0].whose.client.as_deref()), ("ini-pattern", Some("10.0.0.7")));
}

#[test]
fn files_that_are_opened_once_are_no_pattern() {
    let mut scene = Scene::default();
    let mut now = 0;
    for n in 0..50 {
        now = scene.use_file(7, now, &format!("file{n}"), 1 << 20) + 20;
    }
    assert_eq!(scene.ids(), Vec::<String>::new());
}

#[test]
fn nineteen_opens_in_ten_seconds_are_too_few() {
    let mut scene = Scene::default();
    (0..19).for_each(|n| _ = scene.use_file(7, n * 500, "a.ini", 100));
    // A minute later it begins anew.
    (0..19).for_each(|n| _ = scene.use_file(7, 60_000 + n * 500, "a.ini", 100));
    assert!(!scene.ids().contains(&"ini-pattern".to_owned()));
}

#[test]
fn small_files_one_after_the_other_are_a_copy_of_small_files() {
    let mut scene = Scene::default();
    let mut now = 0;
    for n in 0..600 {
        now = scene.use_file(7, now, &format!("profile\\file{n}"), 8_000) + 1;
    }
    let findings = scene.findings();
    // 600 files of 3 ms.
    let copy = findings.iter().find(|finding| finding.id == "small-file-copy").expect("600 files in 2.4 s");
    assert_eq!(copy.lost_ns, Some(Nanos(1_800 * MS)));
    assert!(copy.sentence.contains("read or wrote 600 files of at most 64 KiB"), "{}", copy.sentence);
}

#[test]
fn missing_names_count_by_their_share_of_lookups() {
    let scene = |missing: i64| {
        let mut scene = Scene::default();
        for n in 0..100 {
            let path = format!("bin\\lib{n}.dll");
            let act =
                Act { client: 7, at: n * 20, took: 5, command: Smb2::CREATE, group: Group::OpenClose, path: &path };
            let open = scene.add(act);
            if n < missing {
                open.status = Some(Status::Nt(NtStatus::OBJECT_NAME_NOT_FOUND));
            }
        }
        scene
    };
    let findings = scene(40).findings();
    let probes = findings.iter().find(|finding| finding.id == "missing-file-probes").expect("40 of 100");
    assert!(probes.sentence.contains("40 of 100 lookups (40%), first for bin\\lib0.dll"), "{}", probes.sentence);
    assert!(!scene(29).ids().contains(&"missing-file-probes".to_owned()));
}

#[test]
fn smb1_is_a_finding_from_the_first_command_and_its_negotiation_is_not() {
    let mut scene = Scene::default();
    let act = Act { client: 7, at: 0, took: 1, command: Smb2::READ, group: Group::Session, path: "" };
    scene.add(act).command = Command::Smb1(smb1::Command::NEGOTIATE);
    assert_eq!(scene.ids(), Vec::<String>::new());
    let act = Act { client: 7, at: 5, took: 1, command: Smb2::READ, group: Group::Read, path: "a" };
    scene.add(act).command = Command::Smb1(smb1::Command::READ_ANDX);
    let findings = scene.findings();
    assert_eq!((findings[0].id.as_str(), findings[0].lost_ns), ("smb1-in-use", None));
}

#[test]
fn a_listing_repeated_and_entries_looked_at_one_by_one_are_found() {
    let mut scene = Scene::default();
    let list = |scene: &mut Scene, at: i64| {
        let act = |at, command, group| Act { client: 7, at, took: 30, command, group, path: "music" };
        scene.add(act(at, Smb2::CREATE, Group::OpenClose));
        scene.add(act(at + 30, Smb2::QUERY_DIRECTORY, Group::Directory)).response.bytes = 9_000;
        scene.add(act(at + 60, Smb2::QUERY_DIRECTORY, Group::Directory)).status =
            Some(Status::Nt(NtStatus::NO_MORE_FILES));
        scene.add(act(at + 90, Smb2::CLOSE, Group::OpenClose));
    };
    list(&mut scene, 0);
    // 9,000 bytes hold no more than 75 entries.
    for n in 0..75 {
        scene.use_file(7, 200 + n * 3, &format!("music\\song{n}.mp3"), 0);
    }
    let findings = scene.findings();
    let stat = findings.iter().find(|finding| finding.id == "list-then-stat").expect("75 of 75 entries");
    assert_eq!(stat.lost_ns, Some(Nanos(150 * MS)));
    assert!(!scene.ids().contains(&"relisting".to_owned()));
    list(&mut scene, 1_000);
    list(&mut scene, 2_000);
    assert!(scene.ids().contains(&"relisting".to_owned()));
}

#[test]
fn what_is_no_reason_to_worry_says_nothing() {
    // A user who opens a document now and then, with a retransmission in thousands of segments.
    let mut scene = Scene { retransmitted: 1, ..Scene::default() };
    for n in 0..200 {
        scene.use_file(7, n * 9_000, &format!("doc{}.docx", n % 40), 100_000);
    }
    let quiet: Vec<String> = scene.ids().into_iter().filter(|id| id != "client-bound").collect();
    assert_eq!(quiet, Vec::<String>::new());
}

#[test]
fn a_refusal_is_told_of_however_fast_it_came() {
    let mut scene = Scene::default();
    (0..100).for_each(|n| _ = scene.use_file(7, n * 1_000, "a.dat", 4_096));
    assert!(!scene.ids().contains(&"refusals".to_owned()));
    let act = Act { client: 7, at: 100_000, took: 1, command: Smb2::CREATE, group: Group::OpenClose, path: "b.dat" };
    scene.add(act).status = Some(Status::Nt(NtStatus::INSUFFICIENT_RESOURCES));
    let findings = scene.findings();
    let refused = findings.iter().find(|finding| finding.id == "refusals").expect("one command was refused");
    assert_eq!((refused.lost_ns, refused.whose.path.as_deref()), (None, Some("b.dat")));
    assert!(refused.sentence.ends_with("was refused 1 time because the server has no resources left."));
}

/// So many subscriptions within a second, to each of which a change comes a second after the one before.
#[test]
fn notifications_count_when_they_come_and_not_when_they_are_asked_for() {
    let scene = |apart: i64| {
        let mut scene = Scene::default();
        for n in 0..30 {
            let took = 1_000 + n * apart;
            scene.add(Act { client: 7, at: n, took, command: Smb2::CHANGE_NOTIFY, group: Group::Waiting, path: "" });
        }
        scene.ids()
    };
    assert!(!scene(1_000).contains(&"notify-storm".to_owned()));
    assert!(scene(50).contains(&"notify-storm".to_owned()), "20 a second");
}

#[test]
fn the_number_of_workers_changes_nothing() {
    let mut scene = Scene::default();
    ini(&mut scene, 7);
    ini(&mut scene, 8);
    let mut whole = Collector::default();
    scene.exchanges.iter().for_each(|exchange| whole.exchange(exchange));
    let mut parts = [Collector::default(), Collector::default()];
    scene.exchanges.iter().for_each(|exchange| parts[exchange.flow.0 as usize % 2].exchange(exchange));
    let [mut merged, other] = parts;
    merged.merge(other);
    assert_eq!(merged.finish(), whole.finish());
}
