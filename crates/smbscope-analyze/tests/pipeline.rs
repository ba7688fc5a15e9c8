//! The result does not depend on the division of work, and violated assumptions are detected.

use smbscope_analyze::AnalyzerOptions;
use smbscope_analyze::pipeline::{CaptureFindings, RerunReason, Sharding, Threading, run};
use smbscope_capture::reader::{CaptureInput, CaptureSet};
use smbscope_model::{Exchange, MemoryBudget};
use smbscope_testkit::conversation::together;
use smbscope_testkit::traffic::{Damage, Limit, Mix, Settings, generate};
use smbscope_testkit::{Conversation, pcap, smb2};
use std::io::Write;
use tempfile::NamedTempFile;

struct File(NamedTempFile);

impl File {
    fn of(bytes: &[u8]) -> File {
        let mut file = NamedTempFile::new().expect("a temporary file can be made");
        file.write_all(bytes).expect("and written");
        File(file)
    }

    /// All findings of an analysis, with exchanges in packet order.
    fn analyze(&self, way: Way) -> Result<(CaptureFindings, Vec<Exchange>), RerunReason> {
        let inputs = [CaptureInput::File(self.0.path().to_owned())];
        let set = if way.in_order { CaptureSet::open_in_order(&inputs) } else { CaptureSet::open(&inputs) };
        let mut sinks = vec![Vec::new(); way.workers.max(1)];
        let threading = if way.workers == 0 { Threading::Inline } else { Threading::Workers };
        let analysis = {
            let mut takers: Vec<_> =
                sinks.iter_mut().map(|sink| |exchange: &Exchange| sink.push(exchange.clone())).collect();
            run(&mut set.expect("a capture"), &way.options, way.sharding, threading, &mut takers, |_| {})?
        };
        let mut exchanges = sinks.concat();
        exchanges.sort_by_key(|exchange| {
            let Exchange { request, response, .. } = exchange;
            let first = request.first.or(response.first).map(|stamp| stamp.packet);
            (first, exchange.message_id, exchange.command.to_string())
        });
        Ok((analysis, exchanges))
    }
}

#[derive(Clone)]
struct Way {
    in_order: bool,
    sharding: Sharding,
    /// 0 runs everything on one thread.
    workers: usize,
    options: AnalyzerOptions,
}

fn way(in_order: bool, sharding: Sharding, workers: usize) -> Way {
    Way { in_order, sharding, workers, options: AnalyzerOptions::default() }
}

fn traffic(mix: Mix, flows: u32, damage: Damage) -> File {
    let mut bytes = Vec::new();
    let settings = Settings { damage, ..Settings::new(mix, flows, Limit::Packets(6_000)) };
    generate(&settings, &mut bytes).expect("a Vec takes everything");
    File::of(&bytes)
}

fn assert_same(one: &(CaptureFindings, Vec<Exchange>), other: &(CaptureFindings, Vec<Exchange>), how: &str) {
    assert_eq!(one.1.len(), other.1.len(), "{how}");
    for (one, other) in one.1.iter().zip(&other.1) {
        assert_eq!(format!("{one:?}"), format!("{other:?}"), "{how}");
    }
    assert_eq!(one.0.quality, other.0.quality, "{how}");
    assert_eq!(format!("{:?}", one.0.connections), format!("{:?}", other.0.connections), "{how}");
    assert_eq!((one.0.first, one.0.last), (other.0.first, other.0.last), "{how}");
}

#[test]
fn any_number_of_threads_and_any_sharding_find_the_same() {
    let damage = Damage { drop: 0.02, duplicate: 0.01, reorder: 0.01 };
    let mixes = [(Mix::Office, Damage::default()), (Mix::NetBench, damage), (Mix::Bulk, damage), (Mix::Site, damage)];
    for (mix, damage) in mixes {
        let file = traffic(mix, 40, damage);
        let whole = file.analyze(way(false, Sharding::None, 0)).expect("nothing is taken for granted");
        assert!(whole.1.len() > 20 && whole.0.connections.len() == 40);
        for sharding in [Sharding::None, Sharding::Hosts, Sharding::Connections] {
            for workers in [0, 1, 2, 5] {
                let how = format!("{mix:?} {sharding:?} {workers}");
                let found = file.analyze(way(true, sharding, workers)).expect("sessions keep to their connections");
                assert_same(&whole, &found, &how);
            }
        }
    }
}

#[test]
fn limits_are_met_at_the_same_place_by_any_number_of_threads() {
    let file = traffic(Mix::NetBench, 600, Damage::default());
    let tight = |workers| Way {
        options: AnalyzerOptions { limits: MemoryBudget::for_memory(2 << 20), ..AnalyzerOptions::default() },
        ..way(true, Sharding::Connections, workers)
    };
    let one = file.analyze(tight(0)).expect("in order");
    assert!(one.0.quality.evicted_flows > 100, "{} evicted", one.0.quality.evicted_flows);
    for workers in [1, 2, 3] {
        assert_same(&one, &file.analyze(tight(workers)).expect("in order"), &workers.to_string());
    }
}

#[test]
fn a_file_that_is_out_of_order_is_noticed_when_order_is_taken_for_granted() {
    let mut packets =
        Conversation::new().client_says(100, smb2::echo(1)).server_says(200, smb2::echo_response(1)).packets();
    packets.swap(3, 4);
    let file = File::of(&pcap::nanos(&packets));
    for workers in [0, 2] {
        let found = file.analyze(way(true, Sharding::Connections, workers));
        assert_eq!(found.err(), Some(RerunReason::OutOfOrder));
    }
    let (analysis, exchanges) = file.analyze(way(false, Sharding::Connections, 2)).expect("it is put in order");
    assert!(exchanges.len() == 1 && exchanges[0].is_complete() && analysis.quality.packets_reordered_by_time == 1);
}

/// A session with channels on two connections; the second one is from `client` to `server`.
fn channels(client: [u8; 4], server: [u8; 4], second: smb2::Message) -> File {
    let first = Conversation::new()
        .between(([10, 0, 0, 1], 50_000), ([10, 0, 0, 9], 445))
        .client_says(10, smb2::session_setup(1, "DOM", "ann").session(0x11))
        .server_says(20, smb2::session_setup_response(1, 0x11))
        .client_says(100, smb2::create(2, "a.txt").session(0x11).tree(5))
        .server_says(110, smb2::create_response(2, 7).session(0x11).tree(5))
        .closes(5000);
    let second = Conversation::new()
        .between((client, 50_001), (server, 445))
        .client_says(200, second.session(0x11))
        .server_says(210, smb2::session_setup_response(1, 0x11))
        .client_says(300, smb2::read(2, 7, 0, 10).session(0x11).tree(5))
        .server_says(310, smb2::read_response(2, &[0; 10]).session(0x11).tree(5))
        .closes(5000);
    File::of(&pcap::nanos(&together(&[first, second])))
}

/// Path of the read on the second channel.
fn path_of_read((_, exchanges): &(CaptureFindings, Vec<Exchange>)) -> Option<&str> {
    exchanges.iter().find(|exchange| exchange.command.to_string() == "READ")?.path.as_deref()
}

#[test]
fn a_session_with_two_channels_is_noticed_when_connections_are_sharded() {
    let setup = || smb2::session_setup(1, "DOM", "ann");
    let same_hosts = channels([10, 0, 0, 1], [10, 0, 0, 9], setup());
    let other_client = channels([10, 0, 0, 2], [10, 0, 0, 9], setup());
    for workers in [0, 3] {
        assert_eq!(same_hosts.analyze(way(true, Sharding::Connections, workers)).err(), Some(RerunReason::Coupled));
        let found = same_hosts.analyze(way(true, Sharding::Hosts, workers)).expect("both are in one shard");
        assert_eq!(path_of_read(&found), Some("a.txt"));
        assert_eq!(other_client.analyze(way(true, Sharding::Hosts, workers)).err(), Some(RerunReason::Coupled));
        let found = other_client.analyze(way(true, Sharding::None, workers)).expect("there is one shard");
        assert_eq!(path_of_read(&found), Some("a.txt"));
    }
}

#[test]
fn two_channels_are_noticed_in_one_shard_too() {
    // With 16 shards, some of 64 clients have their connection in the shard of the first one.
    for client in 1..=64 {
        let file = channels([10, 0, 0, client], [10, 0, 0, 9], smb2::session_setup(1, "DOM", "ann"));
        for workers in [0, 2] {
            let found = file.analyze(way(true, Sharding::Connections, workers)).err();
            assert_eq!(found, Some(RerunReason::Coupled), "{client}");
        }
    }
}

#[test]
fn a_connection_that_goes_on_after_it_was_evicted_is_no_second_channel() {
    let file = traffic(Mix::Office, 40, Damage::default());
    let mut tight = way(true, Sharding::Connections, 0);
    tight.options.limits.flows = 16 * 16_000;
    let (analysis, _) = file.analyze(tight).expect("each session is that of one connection");
    assert!(analysis.quality.evicted_flows > 40, "{}", analysis.quality.evicted_flows);
}
