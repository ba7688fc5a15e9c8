//! Predictions that can be verified by hand.

use super::*;
use smbscope_model::offers::{AES_CMAC, AES_GMAC, HMAC_SHA256};
use smbscope_model::{CommandGroup, FileId, ResponseStatus, Subcommand};
use smbscope_testkit::exchange::read;
use smbscope_wire::names::Trans2;
use smbscope_wire::smb1::Smb1Command;
use smbscope_wire::status::NtStatus;

const MS: i64 = 1_000_000;

/// Builds reads from pairs of start and duration in ms, with consecutive message ids.
fn episode(times: &[(i64, i64)]) -> Vec<Exchange> {
    let all = times
        .iter()
        .enumerate()
        .map(|(id, (start, took))| Exchange { message_id: Some(id as u64), ..read(start * MS, took * MS) });
    all.collect()
}

/// Returns present and predicted duration in µs, on one connection with this round trip in ms.
fn predicted(exchanges: &[Exchange], trip: i64, scenario: &str) -> (i64, i64) {
    micros(&of(exchanges, &[trip], scenario))
}

fn of(exchanges: &[Exchange], trips: &[i64], change: &str) -> Predictions {
    let path = |trip: &i64| Path { round_trip: Some(Nanos(trip * MS)), ..Path::default() };
    let paths: FlowPaths = (0..).map(FlowId).zip(trips.iter().map(path)).collect();
    of_paths(exchanges, &paths, change)
}

fn of_paths(exchanges: &[Exchange], paths: &FlowPaths, change: &str) -> Predictions {
    let found = predict(exchanges, paths, &[change.parse().expect("it is one")]).expect("the round trip is known");
    let PredictedDuration { low, best, high } = found.predictions[0].duration_ns;
    assert!(low <= best && best <= high, "{found:?}");
    found
}

/// Returns present and predicted duration in µs.
fn micros(found: &Predictions) -> (i64, i64) {
    (found.captured_ns.0 / 1_000, found.predictions[0].duration_ns.best.0 / 1_000)
}

#[test]
fn commands_one_after_the_other_each_wait_for_the_round_trip() {
    // Each command of 2 ms takes 9 ms more, plus 5%; 1 ms of think time stays.
    assert_eq!(predicted(&episode(&[(0, 2), (3, 2), (6, 2)]), 1, "rtt=10ms"), (8_000, 8_000 + 3 * 9_450));
    // The present round trip changes nothing.
    assert_eq!(predicted(&episode(&[(0, 2), (3, 2), (6, 2)]), 1, "rtt=1ms"), (8_000, 8_000));
}

#[test]
fn commands_outstanding_together_wait_for_one_round_trip() {
    // Four at once, of 2, 3, 4 and 5 ms: the longest takes 9.45 ms more.
    assert_eq!(predicted(&episode(&[(0, 2), (0, 3), (0, 4), (0, 5)]), 1, "rtt=10ms"), (5_000, 14_450));
}

#[test]
fn connections_work_beside_each_other() {
    // Each command takes 9.45 ms more, independently of the other connection.
    let mut exchanges = episode(&[(0, 2), (1, 2), (3, 2), (4, 2), (6, 2), (7, 2)]);
    for (n, exchange) in exchanges.iter_mut().enumerate() {
        exchange.flow = FlowId(n as u64 % 2);
    }
    assert_eq!(micros(&of(&exchanges, &[1, 1], "rtt=10ms")), (9_000, 9_000 + 3 * 9_450));
}

#[test]
fn pipelined_reads_stay_pipelined() {
    // Eight reads of 4 ms on one file, four at a time, each sent when one is answered. With 10 ms more, the second
    // four follow the first four: two round trips.
    let mut reads = episode(&[(0, 4), (0, 4), (0, 4), (0, 4), (4, 4), (4, 4), (4, 4), (4, 4)]);
    reads.iter_mut().for_each(|read| read.file_id = Some(FileId::Smb1(5)));
    assert_eq!(predicted(&reads, 1, "rtt=11ms"), (8_000, 8_000 + 2 * 10_500));
}

/// Returns a read of a file, whose response comes from `first` to `end`, in ms.
fn long_read(start: i64, first: i64, end: i64) -> Exchange {
    let mut read = read(start * MS, (end - start) * MS);
    read.file_id = Some(FileId::Smb1(5));
    read.response.first.as_mut().expect("it is answered").time = Timestamp(first * MS);
    read
}

#[test]
fn a_request_after_all_others_waits_for_all_of_them() {
    // Two reads are outstanding together, and the one sent first is answered last; the third follows 2 ms later. In
    // another order, it still follows both.
    let reads = [long_read(0, 62, 122), long_read(1, 2, 62), long_read(124, 126, 134)];
    assert_eq!(predicted(&reads, 1, "server=1x"), (134_000, 134_000));
}

#[test]
fn responses_of_one_packet_follow_each_other_as_they_did() {
    // Five reads are sent together, and a server with one thread answers every millisecond. The first response takes
    // two packets, the others one.
    let mut reads: Vec<Exchange> = (0..5).map(|number| long_read(0, 2 + number, 2 + number)).collect();
    reads[0].response.first.as_mut().expect("it is answered").time = Timestamp(MS);
    assert_eq!(predicted(&reads, 1, "server=1x"), (6_000, 6_000));
    // It answers every two milliseconds; the first response is twice as late, too.
    let (_, twice) = predicted(&reads, 1, "server=2x");
    assert!((10_000..=11_500).contains(&twice), "{twice}");
}

#[test]
fn a_slow_link_carries_one_message_after_the_other_and_processors_sleep() {
    // At 1 Mbit/s, request and response of 100 bytes take (100 + 66) × 8 µs each. The command of 0.5 ms, with a round
    // trip of 0.1 ms, found its processors awake; now they need 0.075 ms.
    let mut exchange = read(0, MS / 2);
    (exchange.request.bytes, exchange.response.bytes) = (100, 100);
    let path = Path { round_trip: Some(Nanos(MS / 10)), ..Path::default() };
    let found = of_paths(&[exchange], &FlowPaths::from([(FlowId(0), path)]), "bandwidth=1mbit");
    assert_eq!(micros(&found), (500, 500 + 2 * 166 * 8 + 75));
}

#[test]
fn a_large_response_needs_a_round_trip_for_each_doubling_of_the_window() {
    // The request takes 2 ms and a round trip: 12.5 ms with 5% for queues. Windows of 10, 20, 40 and 80 segments then
    // carry 150 of the 200, each acknowledged after 10.5 ms. The rest is paced within half of the fifth round trip.
    let mut large = episode(&[(0, 2)]);
    large[0].response.bytes = 200 * 1_448;
    let found = of(&large, &[0], "rtt=10ms");
    let (_, then) = micros(&found);
    assert!((12_500 + 4 * 10_500..12_500 + 5 * 10_500).contains(&then), "{then}");
    // At least 90% of the server's time and one round trip: the window may already be open.
    assert_eq!(found.predictions[0].duration_ns.low.0 / 1_000, 1_800 + 10_000);
    // On a connection captured from its beginning, it is not open: windows of 20, 40 and 80 segments at most.
    let path = Path { round_trip: Some(Nanos(0)), bytes: [Some(1_000), Some(210 * 1_448)], ..Path::default() };
    let found = of_paths(&large, &FlowPaths::from([(FlowId(0), path)]), "rtt=10ms");
    assert_eq!(found.predictions[0].duration_ns.low.0 / 1_000, 1_800 + 10_000 + 3 * 10_000);
}

fn file(flow: u64, start: i64, number: u64) -> Vec<Exchange> {
    let steps = [
        (smbscope_wire::smb2::Smb2Command::CREATE, CommandGroup::OpenClose),
        (smbscope_wire::smb2::Smb2Command::READ, CommandGroup::Read),
        (smbscope_wire::smb2::Smb2Command::CLOSE, CommandGroup::OpenClose),
    ];
    let exchange = |(at, (command, group))| Exchange {
        flow: FlowId(flow),
        command: smbscope_model::Command::Smb2(command),
        group,
        path: Some(format!("docs\\{number}").into()),
        file_id: Some(FileId::Smb2 { persistent: 0, volatile: number }),
        message_id: Some(number * 3 + at as u64),
        ..read((start + at) * MS, MS)
    };
    (0..).zip(steps).map(exchange).collect()
}

/// Returns a connection with a round trip of 1 ms, opened at this time in ms.
fn opened(at: i64) -> Path {
    Path { round_trip: Some(Nanos(MS)), opened: Some(Timestamp(at * MS)), ..Path::default() }
}

#[test]
fn a_later_step_on_the_same_files_waits_for_the_step_before() {
    // Two threads read three files each in 9 ms. Then a third connection reads the same six.
    let mut exchanges: Vec<Exchange> = (0..3).flat_map(|number| file(0, number as i64 * 3, number)).collect();
    exchanges.extend((3..6).flat_map(|number| file(1, number as i64 * 3 - 9, number)));
    exchanges.extend((0..6).flat_map(|number| file(2, 11 + number as i64 * 3, number)));
    let paths = FlowPaths::from([(FlowId(0), opened(-5)), (FlowId(1), opened(-5)), (FlowId(2), opened(10))]);
    let found = of_paths(&exchanges, &paths, "rtt=31ms");
    // Each command takes 30 ms plus 5% longer. Three files take 3 × 97.5 ms, the handshake 1 ms later 32.5 ms, and
    // six files 6 × 97.5 ms.
    assert_eq!(micros(&found), (29_000, 3 * 97_500 + 1_000 + 32_500 + 6 * 97_500));
}

#[test]
fn workers_share_what_is_left_of_a_folder() {
    // One worker reads six files of 3 ms each. A second one connects at 12 ms and reads one file from 14 ms on.
    let mut exchanges: Vec<Exchange> = (0..6).flat_map(|number| file(0, number as i64 * 3, number)).collect();
    exchanges.extend(file(1, 14, 6));
    let paths = FlowPaths::from([(FlowId(0), opened(-5)), (FlowId(1), opened(12))]);
    let found = of_paths(&exchanges, &paths, "rtt=31ms");
    // Each command takes 32.5 ms and a file 97.5 ms. The second worker is connected at 45.5 ms and finishes its file
    // at 143 ms. Of the remaining five files, the first worker takes those at 97.5, 195 and 292.5 ms.
    assert_eq!(micros(&found), (18_000, 4 * 97_500));
}

#[test]
fn workers_connected_before_the_capture_wait_for_no_file_of_the_others() {
    // Two workers read four files of 3 ms each, from 0 and from 2 ms on.
    let mut exchanges: Vec<Exchange> = (0..4).flat_map(|number| file(0, number as i64 * 3, number)).collect();
    exchanges.extend((4..8).flat_map(|number| file(1, number as i64 * 3 - 10, number)));
    let path = Path { opened: None, ..opened(0) };
    let found = of_paths(&exchanges, &FlowPaths::from([(FlowId(0), path.clone()), (FlowId(1), path)]), "rtt=31ms");
    // Each file takes 97.5 ms. Both workers take four, and the second still begins at 2 ms, although two commands of
    // the first had ended by then.
    assert_eq!(micros(&found), (14_000, 2_000 + 4 * 97_500));
}

#[test]
fn workers_with_a_list_are_not_slower_than_they_were() {
    // One reads seven files of 3 ms each, the other two, and a third one 9 ms later, at 16 ms. With a list of the files,
    // the first would be free for that one at 12 ms, begin it 9 ms later, and end after 24 ms instead of 21 ms.
    let mut exchanges: Vec<Exchange> = (0..7).flat_map(|number| file(0, number as i64 * 3, number)).collect();
    exchanges.extend([1, 4, 16].into_iter().zip(7..).flat_map(|(start, number)| file(1, start, number)));
    let path = Path { opened: None, ..opened(0) };
    let found = of_paths(&exchanges, &FlowPaths::from([(FlowId(0), path.clone()), (FlowId(1), path)]), "rtt=31ms");
    // So each reads its own.
    assert_eq!(micros(&found), (21_000, 7 * 97_500));
}

#[test]
fn a_worker_that_comes_too_late_for_the_others_files_takes_some_of_them_over_a_longer_distance() {
    // Workers begin at 0, 5 and 13 ms, and a file takes 3 ms. The first reads four, the others one: at 12 ms, no more are
    // left.
    let mut exchanges: Vec<Exchange> = (0..4).flat_map(|number| file(0, number as i64 * 3, number)).collect();
    exchanges.extend(file(1, 5, 4));
    exchanges.extend(file(2, 13, 5));
    let path = Path { opened: None, ..opened(0) };
    let paths: FlowPaths = (0..3).map(|flow| (FlowId(flow), path.clone())).collect();
    // Each file takes 97.5 ms, and each worker reads two.
    assert_eq!(micros(&of_paths(&exchanges, &paths, "rtt=31ms")), (16_000, 13_000 + 2 * 97_500));
    // Nothing changes if the third worker later opens and closes a file without reading it. That begins 24 ms after
    // its last command, and takes two commands and 1 ms between them; the first worker, which is free at 195 ms, does it.
    let look = file(2, 40, 9).into_iter().filter(|exchange| exchange.group == CommandGroup::OpenClose);
    let with_look: Vec<Exchange> = exchanges.iter().cloned().chain(look).collect();
    let (_, then) = micros(&of_paths(&with_look, &paths, "rtt=31ms"));
    // With the captured round trip, the same ends at 36 ms instead of 43 ms, and this difference is added.
    let unchanged = of_paths(&with_look, &paths, "server=1x");
    assert_eq!(micros(&unchanged), (43_000, 43_000));
    assert_eq!(
        unchanged.predictions[0].assumptions.last().map(String::as_str),
        Some(
            "Without any change, the commands would take 36.0 ms like this; they took 43.0 ms. The difference is added."
        )
    );
    assert_eq!(then, 195_000 + 24_000 + 32_500 + 1_000 + 32_500 + 7_000);
    // A file that is read 84 ms after the third worker's is another step, and follows it.
    exchanges.extend(file(3, 100, 6));
    let paths: FlowPaths = (0..4).map(|flow| (FlowId(flow), path.clone())).collect();
    let (_, then) = micros(&of_paths(&exchanges, &paths, "rtt=31ms"));
    assert_eq!(then, 13_000 + 97_500 + 84_000 + 97_500);
}

#[test]
fn connections_that_take_turns_belong_to_one_thread_unless_each_is_known_to_have_its_own() {
    // Ten files of 3 ms each, one after the other, over two connections in turn.
    let exchanges: Vec<Exchange> = (0..10).flat_map(|number| file(number % 2, number as i64 * 3, number)).collect();
    let predicted = |threads| {
        let path = Path { opened: None, threads, ..opened(0) };
        micros(&of_paths(&exchanges, &FlowPaths::from([(FlowId(0), path.clone()), (FlowId(1), path)]), "rtt=31ms")).1
    };
    assert_eq!(predicted(ConnectionThreads::Unknown), 10 * 97_500);
    // The second thread begins after 3 ms. Each takes five files and spends 3 ms between two.
    assert_eq!(predicted(ConnectionThreads::OneOfPool), 3_000 + 5 * 97_500 + 4 * 3_000);
}

#[test]
fn a_server_twice_as_fast_halves_its_part_alone() {
    // 10 ms each, including a round trip of 2 ms with 0.075 ms of the hosts: 1.925 + 4.0375 ms each, and 1 ms of
    // think time.
    assert_eq!(predicted(&episode(&[(0, 10), (11, 10)]), 2, "server=0.5x"), (21_000, 12_925));
    // Up to 5% above the shortest round trip may be network time: 7.975 ms remain, halved to 3.9875 ms.
    assert_eq!(predicted(&episode(&[(0, 10), (11, 10)]), 2, "server=0.5x,rtt=0ms"), (21_000, 8_975));
}

#[test]
fn a_slower_storage_adds_its_time_to_each_read() {
    assert_eq!(predicted(&episode(&[(0, 10), (11, 10)]), 2, "read=+5ms"), (21_000, 31_000));
    assert_eq!(predicted(&episode(&[(0, 10), (11, 10)]), 2, "write=+5ms"), (21_000, 21_000));
}

fn smb1(subcommand: Trans2) -> Exchange {
    Exchange {
        dialect: Some(Dialect::NtLm012),
        command: smbscope_model::Command::Smb1(Smb1Command::TRANSACTION2),
        subcommand: Some(Subcommand::Trans2(subcommand)),
        path: Some("docs\\a".into()),
        status: Some(ResponseStatus::Nt(NtStatus::SUCCESS)),
        ..read(0, 2 * MS)
    }
}

#[test]
fn what_names_a_path_in_smb1_is_three_commands_later() {
    let bounds = |exchange: Exchange| {
        let PredictedDuration { low, best, high } = of(&[exchange], &[1], "dialect=3.1.1").predictions[0].duration_ns;
        [low, best, high].map(|time| time.0 / 1_000)
    };
    // 2 ms, with a round trip of 1 ms. As a compound, the server works for three commands: 1 + 3 × 1 ms, where these
    // vary by 22.4% in all; one after the other, each has its round trip.
    assert_eq!(bounds(smb1(Trans2::QUERY_PATH_INFORMATION)), [3_327, 4_000, 6_672]);
    // A listing is an open, two queries and a close, in two to four round trips.
    assert_eq!(bounds(smb1(Trans2::FIND_FIRST2)), [5_103, 7_000, 8_897]);
    // A path that does not exist ends with the open. What has an open file stays as it is.
    let missing = ResponseStatus::Nt(NtStatus::OBJECT_NAME_NOT_FOUND);
    assert_eq!(bounds(Exchange { status: Some(missing), ..smb1(Trans2::QUERY_PATH_INFORMATION) })[1], 2_000);
    assert_eq!(bounds(Exchange { file_id: Some(FileId::Smb1(5)), ..smb1(Trans2::SET_FILE_INFORMATION) })[1], 2_000);
}

#[test]
fn an_older_dialect_is_not_predicted() {
    let captured = Exchange { dialect: Some(Dialect::Smb2(0x0311)), ..read(0, 2 * MS) };
    let path = Path { round_trip: Some(Nanos(MS)), ..Path::default() };
    let found =
        predict(&[captured], &FlowPaths::from([(FlowId(0), path)]), &["dialect=2.1".parse().expect("it is one")]);
    let text = "dialect=2.1 is older than the captured 3.1.1, and only newer dialects can be predicted";
    assert_eq!(found.expect_err("it is older").to_string(), text);
}

#[test]
fn signatures_cost_time_for_each_byte_one_message_after_the_other() {
    // 1.4 ns for each of 1,000,000 bytes, half of it at each end: the second response waits for half of the first.
    let large = |start| Exchange { dialect: Some(Dialect::Smb2(0x0210)), ..read(start, 2 * MS) };
    let mut reads = [large(0), Exchange { message_id: Some(1), ..large(0) }];
    for read in &mut reads {
        (read.request.bytes, read.response.bytes) = (0, 1_000_000);
    }
    assert_eq!(predicted(&reads, 0, "signing=required"), (2_000, 2_000 + 700 + 1_400));
    reads[0].signed = true;
    assert_eq!(predicted(&reads, 0, "signing=required"), (2_000, 3_400));
    reads[1].encrypted = true;
    assert_eq!(predicted(&reads, 0, "signing=required"), (2_000, 2_000));
}

#[test]
fn signatures_cost_as_much_as_the_agreed_algorithm() {
    // Of 1,000,000 bytes, by ns per byte; half of it at each end, one after the other.
    let bounds = |dialect: Option<u16>, signing_algorithm: Option<u16>| {
        let path = Path { signing_algorithm, ..Path::default() };
        let mut read = Exchange { dialect: dialect.map(Dialect::Smb2), ..read(0, 20 * MS) };
        (read.request.bytes, read.response.bytes) = (0, 1_000_000);
        let paths = FlowPaths::from([(FlowId(0), path)]);
        let found = predict(&[read], &paths, &["signing=required".parse().unwrap()]).unwrap();
        let PredictedDuration { low, best, high } = found.predictions[0].duration_ns;
        [low - Nanos(18 * MS), best - Nanos(20 * MS), high - Nanos(22 * MS)].map(|Nanos(time)| time / 1_000)
    };
    let agreed = [HMAC_SHA256, AES_CMAC, AES_GMAC].map(|algorithm| bounds(Some(0x0311), Some(algorithm)));
    assert_eq!(agreed, [[700, 1_400, 8_000], [800, 2_600, 5_000], [100, 400, 800]]);
    assert_eq!(bounds(Some(0x0311), None), [100, 400, 2_600]);
    // Only 3.1.1 has a choice.
    assert_eq!(bounds(Some(0x0302), Some(AES_GMAC)), agreed[1]);
    assert_eq!(bounds(None, None), [100, 1_400, 8_000]);
}

#[test]
fn a_link_carries_one_response_after_the_other() {
    // Two at once, of 100 segments of 1,448 bytes and 66 bytes of headers: 121.12 ms each at 10 Mbit/s, and a request
    // of one segment at 1.21 ms.
    let mut reads = episode(&[(0, 2), (0, 2)]);
    for read in &mut reads {
        (read.request.bytes, read.response.bytes) = (1_448, 100 * 1_448);
    }
    let (_, then) = predicted(&reads, 0, "bandwidth=10mbit");
    assert_eq!(then / 1_000, 2 + 1 + 2 * 121);
    // A faster link than the captured one changes nothing.
    assert_eq!(predicted(&reads, 0, "bandwidth=100gbit"), (2_000, 2_024));
}

#[test]
fn reading_ahead_hides_the_round_trips_of_a_sequence() {
    let mut reads = episode(&[(0, 10), (10, 10), (20, 10), (30, 10), (40, 10)]);
    for (n, read) in reads.iter_mut().enumerate() {
        (read.file_id, read.offset, read.length) = (Some(FileId::Smb1(5)), Some(n as u64 * 100), Some(100));
    }
    // 8 of the 10 ms are the round trip: from the third read on, 2 ms remain.
    assert_eq!(predicted(&reads, 8, "read-ahead"), (50_000, 26_000));
    // A jump within the file restarts the sequence.
    reads[3].offset = Some(1_000);
    assert_eq!(predicted(&reads, 8, "read-ahead"), (50_000, 42_000));
}

#[test]
fn without_the_round_trip_there_is_no_prediction() {
    let changes: [Scenario; 1] = ["rtt=10ms".parse().expect("it is one")];
    let unknown = Err(PredictionError::NoRoundTrip(changes[0].clone()));
    assert_eq!(predict(&episode(&[(0, 2)]), &FlowPaths::new(), &changes), unknown);
    assert_eq!(predict(&[], &FlowPaths::new(), &changes), Err(PredictionError::NoCommands));
}

#[test]
fn files_opened_again_cost_nothing_from_a_cache_until_they_are_written() {
    let mut exchanges = Vec::new();
    for n in 0..4u64 {
        for (at, command, group) in [
            (0, smbscope_wire::smb2::Smb2Command::CREATE, CommandGroup::OpenClose),
            (1, smbscope_wire::smb2::Smb2Command::READ, if n == 2 { CommandGroup::Write } else { CommandGroup::Read }),
            (2, smbscope_wire::smb2::Smb2Command::CLOSE, CommandGroup::OpenClose),
        ] {
            exchanges.push(Exchange {
                command: smbscope_model::Command::Smb2(command),
                group,
                path: Some("a.ini".into()),
                file_id: Some(FileId::Smb2 { persistent: 0, volatile: n }),
                message_id: Some(n * 3 + at),
                ..read((n * 3 + at) as i64 * MS, MS)
            });
        }
    }
    let found = of_paths(&exchanges, &FlowPaths::new(), "cache=leases");
    // Saved: the second open with its read and close, and the third open, whose file is then written. The write
    // invalidates the cache for the fourth.
    assert_eq!((found.commands, found.predictions[0].saved_commands), (12, 4));
    assert_eq!(micros(&found), (12_000, 8_000));
}

#[test]
fn a_scenario_is_read_as_it_is_written() {
    let text =
        "rtt=20ms,bandwidth=100mbit,server=0.5x,read=+10ms,dialect=3.1.1,signing=required,cache=leases,read-ahead";
    assert_eq!(text.parse::<Scenario>().map(|scenario| scenario.to_string()), Ok(text.to_owned()));
    assert_eq!("cache-opens".parse::<Scenario>(), "cache=leases".parse());
    assert_eq!("readahead".parse::<Scenario>(), "read-ahead".parse());
    for wrong in [
        "",
        "rtt",
        "rtt=5",
        "server=2",
        "server=-1x",
        "rtt=-1ms",
        "speed=2x",
        "read=10ms",
        "bandwidth=0bit",
        "dialect=nt1",
        "dialect=4",
        "signing=on",
    ] {
        assert!(wrong.parse::<Scenario>().is_err(), "{wrong}");
    }
}
