//! The result does not depend on the division of work, and violated assumptions are detected.

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng};
use smbscope_analyze::pipeline::{
    CaptureFindings, HostPairFollower, RerunReason, Sharding, Threading, decode, part_of, run,
};
use smbscope_analyze::{AnalyzerOptions, Partial, coupled};
use smbscope_capture::decode::{Decoder, Origins};
use smbscope_capture::piece::{BlockWriter, PieceReader};
use smbscope_capture::reader::{CaptureInput, CaptureSet};
use smbscope_model::{ClockStep, Exchange, ExchangeOutcome, MemoryBudget};
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

// Pairs of hosts divided among parts that are followed separately: merged in any order, and after serialization, the
// result is the same as from a single analysis.

struct Captured {
    _file: NamedTempFile,
    inputs: [CaptureInput; 1],
}

fn captured(bytes: &[u8]) -> Captured {
    let mut file = NamedTempFile::new().expect("a temporary file can be made");
    file.write_all(bytes).expect("and written");
    let inputs = [CaptureInput::File(file.path().to_owned())];
    Captured { _file: file, inputs }
}

/// All findings, with exchanges in packet order.
fn told(partial: Partial, mut exchanges: Vec<Exchange>) -> String {
    exchanges.sort_by_key(|exchange| {
        let first = exchange.request.first.or(exchange.response.first).map(|stamp| stamp.packet);
        (first, exchange.flow, exchange.message_id, exchange.command.to_string())
    });
    format!("{:?}\n{exchanges:#?}", partial.finish())
}

impl Captured {
    fn open(&self) -> CaptureSet {
        CaptureSet::open(&self.inputs).expect("a capture")
    }

    fn whole(&self, sharding: Sharding) -> String {
        let mut exchanges = Vec::new();
        let mut sink = [|exchange: &Exchange| exchanges.push(exchange.clone())];
        let options = AnalyzerOptions::default();
        let found = run(&mut self.open(), &options, sharding, Threading::Inline, &mut sink, |_| {}).expect("a whole");
        exchanges.sort_by_key(|exchange| {
            let first = exchange.request.first.or(exchange.response.first).map(|stamp| stamp.packet);
            (first, exchange.flow, exchange.message_id, exchange.command.to_string())
        });
        format!("{found:?}\n{exchanges:#?}")
    }

    /// Divides the file into segments per part. Also returns the counters of decoding and the clock steps.
    fn divided(&self, parts: usize) -> (Vec<Vec<u8>>, Partial, Vec<ClockStep>) {
        let mut writers: Vec<_> = (0..parts).map(|_| BlockWriter::new(Vec::new())).collect();
        let mut pieces = vec![Vec::new(); parts];
        let mut set = self.open();
        let decoded = decode(&mut set, Decoder::default(), &mut |_| {}, &mut |_, _| {}, &mut |segment| {
            writers[part_of(segment, parts)].push(segment).expect("memory can be written");
        });
        for (piece, writer) in pieces.iter_mut().zip(writers) {
            *piece = writer.into_inner().expect("memory can be written");
        }
        let partial = decoded.expect("nothing is taken for granted");
        (pieces, partial, set.clock_steps())
    }
}

fn followed(
    pieces: &[&[u8]],
    sharding: Sharding,
    steps: &[ClockStep],
) -> Result<(Partial, Vec<Exchange>), RerunReason> {
    let mut exchanges = Vec::new();
    let mut sink = |exchange: &Exchange| exchanges.push(exchange.clone());
    let (options, origins) = (AnalyzerOptions::default(), Origins::default());
    let mut follower = HostPairFollower::new(&options, sharding, &mut sink, steps, &origins);
    let mut readers: Vec<_> = pieces.iter().map(|piece| PieceReader::new(*piece)).collect();
    loop {
        let stamps = readers.iter_mut().map(|reader| reader.next_stamp().expect("a whole piece"));
        let next = stamps.enumerate().filter_map(|(index, stamp)| Some((stamp?.packet, index))).min();
        let Some((_, index)) = next else { break };
        let segment = readers[index].next_segment().expect("a whole piece").expect("it has a time");
        follower.segment(&segment);
    }
    let partial = follower.finish()?;
    Ok((partial, exchanges))
}

/// Follows a whole file and asks for the progress after every few segments.
fn watched(file: &Captured, every: usize) -> (Partial, Vec<Exchange>, Vec<usize>) {
    let (mut segments, mut open) = (0, Vec::new());
    let mut partial = Partial::default();
    let mut exchanges = Vec::new();
    let mut sink = |exchange: &Exchange| exchanges.push(exchange.clone());
    let (pieces, decoded, steps) = file.divided(1);
    let mut follower =
        HostPairFollower::new(&AnalyzerOptions::default(), Sharding::None, &mut sink, &steps, &Origins::default());
    let mut reader = PieceReader::new(&pieces[0][..]);
    while let Some(segment) = reader.next_segment().expect("a whole piece") {
        follower.segment(&segment);
        segments += 1;
        if segments % every == 0 {
            let progress = follower.progress(&mut |_: &Exchange| {});
            partial.merge(progress.settled);
            open.push(progress.open.connections().len());
        }
    }
    partial.merge(follower.finish().expect("there is one shard"));
    partial.merge(decoded);
    (partial, exchanges, open)
}

#[test]
fn looking_at_the_progress_changes_nothing() {
    let damage = Damage { drop: 0.02, duplicate: 0.01, reorder: 0.01 };
    for (mix, damage) in [(Mix::Office, Damage::default()), (Mix::NetBench, damage), (Mix::Site, damage)] {
        let mut bytes = Vec::new();
        generate(&Settings { damage, ..Settings::new(mix, 40, Limit::Packets(6_000)) }, &mut bytes)
            .expect("a Vec takes everything");
        let file = captured(&bytes);
        for every in [1_000_000, 997, 50] {
            let (partial, exchanges, open) = watched(&file, every);
            assert_eq!(told(partial, exchanges), file.whole(Sharding::None), "looked at every {every} segments");
            assert!(every > 10_000 || open.iter().any(|open| *open > 1), "no connection was open: {open:?}");
        }
    }
}

/// The client asks at 10 ms and 20 ms, and the server answers the first request. Times in microseconds.
#[test]
fn progress_shows_open_connections_and_what_is_outstanding() {
    let conversation = Conversation::new()
        .client_says(10_000, smb2::create(1, "a.txt"))
        .server_says(12_000, smb2::create_response(1, 7))
        .client_says(20_000, smb2::read(2, 7, 0, 10))
        .server_says(90_000, smb2::read_response(2, &[0; 10]));
    let file = captured(&pcap::nanos(&together(&[conversation])));
    let (pieces, _, steps) = file.divided(1);
    let mut ended = Vec::new();
    let mut sink = |exchange: &Exchange| ended.push(exchange.clone());
    let mut follower =
        HostPairFollower::new(&AnalyzerOptions::default(), Sharding::None, &mut sink, &steps, &Origins::default());
    let mut reader = PieceReader::new(&pieces[0][..]);
    let mut outstanding = Vec::new();
    while let Some(segment) = reader.next_segment().expect("a whole piece") {
        follower.segment(&segment);
        let mut waiting = 0;
        let progress = follower.progress(&mut |exchange: &Exchange| {
            waiting += usize::from(exchange.outcome == ExchangeOutcome::Unanswered);
        });
        assert!(progress.settled.connections().is_empty(), "nothing has ended");
        if segment.payload_length > 0 {
            assert_eq!(progress.open.connections().len(), 1);
            outstanding.push(waiting);
        }
    }
    assert_eq!(outstanding, [1, 0, 1, 0]);
    follower.finish().expect("there is one shard");
    assert_eq!(ended.len(), 2);
}

/// Merges any two of the parts until one is left. Serializes each of them before.
fn merged(mut parts: Vec<(Partial, Vec<Exchange>)>, rng: &mut TestRng) -> (Partial, Vec<Exchange>) {
    while parts.len() > 1 {
        let theirs = parts.swap_remove(rng.random_range(0..parts.len()));
        let mine = rng.random_range(0..parts.len());
        let bytes = postcard::to_stdvec(&theirs).expect("it can be written");
        let theirs: (Partial, Vec<Exchange>) = postcard::from_bytes(&bytes).expect("it can be read");
        parts[mine].0.merge(theirs.0);
        parts[mine].1.extend(theirs.1);
    }
    parts.remove(0)
}

fn assert_parts_are_the_whole(file: &Captured, parts: usize, rng: &mut TestRng) {
    let (pieces, decoded, steps) = file.divided(parts);
    let followed = pieces.iter().map(|piece| followed(&[piece], Sharding::Connections, &steps).expect("no channels"));
    let mut all: Vec<(Partial, Vec<Exchange>)> = followed.collect();
    let partials: Vec<&Partial> = all.iter().map(|(partial, _)| partial).collect();
    assert_eq!(coupled(&partials), (0..parts).map(|part| vec![part]).collect::<Vec<_>>());
    all.push((decoded, Vec::new()));
    let (partial, exchanges) = merged(all, rng);
    assert_eq!(told(partial, exchanges), file.whole(Sharding::Connections), "{parts} parts");
}

#[test]
fn parts_of_generated_traffic_merge_to_the_whole() {
    let mut rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let damage = Damage { drop: 0.02, duplicate: 0.01, reorder: 0.01 };
    for (mix, damage) in [(Mix::Office, Damage::default()), (Mix::NetBench, damage), (Mix::Site, damage)] {
        let mut bytes = Vec::new();
        let settings = Settings { damage, ..Settings::new(mix, 40, Limit::Packets(6_000)) };
        generate(&settings, &mut bytes).expect("a Vec takes everything");
        let file = captured(&bytes);
        for parts in [1, 3, 20] {
            assert_parts_are_the_whole(&file, parts, &mut rng);
        }
    }
}

#[test]
fn parts_that_share_a_session_are_followed_as_one() {
    let between = |client: u8, port| Conversation::new().between(([10, 0, 0, client], port), ([10, 0, 0, 9], 445));
    let first = between(1, 50_000)
        .client_says(10, smb2::session_setup(1, "DOM", "ann").session(0x11))
        .server_says(20, smb2::session_setup_response(1, 0x11))
        .client_says(100, smb2::create(2, "a.txt").session(0x11).tree(5))
        .server_says(110, smb2::create_response(2, 7).session(0x11).tree(5))
        .closes(5000);
    let second = between(2, 50_001)
        .client_says(200, smb2::session_setup(1, "DOM", "ann").session(0x11))
        .server_says(210, smb2::session_setup_response(1, 0x11))
        .client_says(300, smb2::read(2, 7, 0, 10).session(0x11).tree(5))
        .server_says(310, smb2::read_response(2, &[0; 10]).session(0x11).tree(5))
        .closes(5000);
    let file = captured(&pcap::nanos(&together(&[first, second])));
    let (pieces, decoded, steps) = file.divided(20);
    let parts =
        pieces.iter().map(|piece| followed(&[piece], Sharding::Hosts, &steps).expect("a pair of hosts a part").0);
    let parts: Vec<Partial> = parts.collect();
    let groups = coupled(&parts.iter().collect::<Vec<_>>());
    let shared: Vec<&Vec<usize>> = groups.iter().filter(|group| group.len() > 1).collect();
    let [shared] = shared[..] else { panic!("one pair of parts shares a session: {groups:?}") };
    let pieces: Vec<&[u8]> = shared.iter().map(|part| &pieces[*part][..]).collect();
    assert_eq!(followed(&pieces, Sharding::Hosts, &steps).err(), Some(RerunReason::Coupled));
    let (mut partial, exchanges) = followed(&pieces, Sharding::None, &steps).expect("there is one shard");
    partial.merge(decoded);
    assert_eq!(told(partial, exchanges), file.whole(Sharding::None));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn parts_of_random_traffic_merge_to_the_whole_in_any_order_and_grouping(
        seed in any::<u64>(), flows in 1u32..30, parts in 1usize..9, mut rng in any::<u64>().prop_perturb(|_, rng| rng)
    ) {
        let mut bytes = Vec::new();
        let damage = Damage { drop: 0.03, duplicate: 0.02, reorder: 0.02 };
        let settings = Settings { seed, damage, ..Settings::new(Mix::NetBench, flows, Limit::Packets(1_500)) };
        generate(&settings, &mut bytes).expect("a Vec takes everything");
        assert_parts_are_the_whole(&captured(&bytes), parts, &mut rng);
    }
}
