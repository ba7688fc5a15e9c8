//! Predictions that can be worked out on paper.

use super::*;
use smbscope_testkit::exchange::read;

const MS: i64 = 1_000_000;

/// Reads that begin and take so many milliseconds, each with a message id.
fn episode(times: &[(i64, i64)]) -> Vec<Exchange> {
    let all = times
        .iter()
        .enumerate()
        .map(|(id, (start, took))| Exchange { message_id: Some(id as u64), ..read(start * MS, took * MS) });
    all.collect()
}

fn predicted(exchanges: &[Exchange], trip: i64, scenario: &str) -> (i64, i64) {
    let trips = RoundTrips::from([(FlowId(0), Nanos(trip * MS))]);
    let scenario: Scenario = scenario.parse().expect("it is one");
    let found = predict(exchanges, &trips, &scenario).expect("the round trip is known");
    (found.now.0 / MS, found.then.0 / MS)
}

#[test]
fn commands_one_after_the_other_each_wait_for_the_round_trip() {
    // Three commands of 2 ms with 1 ms of thought: 8 ms. With 10 ms instead of 1 ms each takes 9 ms more.
    assert_eq!(predicted(&episode(&[(0, 2), (3, 2), (6, 2)]), 1, "rtt=10ms"), (8, 35));
}

#[test]
fn commands_outstanding_together_wait_for_one_round_trip() {
    // Four at once, of 2, 3, 4 and 5 ms: the longest takes 9 ms more.
    assert_eq!(predicted(&episode(&[(0, 2), (0, 3), (0, 4), (0, 5)]), 1, "rtt=10ms"), (5, 14));
}

#[test]
fn a_server_twice_as_fast_halves_its_part_alone() {
    // 10 ms each, of which 2 are the round trip: 2 + 4 each, and 1 ms of thought.
    assert_eq!(predicted(&episode(&[(0, 10), (11, 10)]), 2, "server=0.5x"), (21, 13));
    assert_eq!(predicted(&episode(&[(0, 10), (11, 10)]), 2, "server=0.5x,rtt=0ms"), (21, 9));
}

#[test]
fn reading_ahead_hides_the_round_trips_of_a_sequence() {
    let mut reads = episode(&[(0, 10), (10, 10), (20, 10), (30, 10), (40, 10)]);
    for (n, read) in reads.iter_mut().enumerate() {
        (read.file_id, read.offset, read.length) = (Some(FileId::Smb1(5)), Some(n as u64 * 100), Some(100));
    }
    // Of 10 ms, 8 are the round trip: from the third read on, 2 are left.
    assert_eq!(predicted(&reads, 8, "read-ahead"), (50, 26));
    assert_eq!(predicted(&reads, 8, "read-ahead,rtt=0ms"), (50, 10));
    // Two that are outstanding together are ahead already; and elsewhere in the file, the sequence begins anew.
    reads[3].offset = Some(1_000);
    assert_eq!(predicted(&reads, 8, "read-ahead"), (50, 42));
}

#[test]
fn without_the_round_trip_there_is_no_prediction() {
    let scenario: Scenario = "rtt=10ms".parse().expect("it is one");
    assert_eq!(predict(&episode(&[(0, 2)]), &RoundTrips::new(), &scenario), None);
    assert_eq!(predict(&[], &RoundTrips::new(), &scenario), None);
}

#[test]
fn files_opened_again_cost_nothing_from_a_cache_until_they_are_written() {
    let mut exchanges = Vec::new();
    for n in 0..4u64 {
        for (at, command, group) in [
            (0, smbscope_wire::smb2::Command::CREATE, Group::OpenClose),
            (1, smbscope_wire::smb2::Command::READ, if n == 2 { Group::Write } else { Group::Read }),
            (2, smbscope_wire::smb2::Command::CLOSE, Group::OpenClose),
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
    let scenario: Scenario = "cache-opens".parse().expect("it is one");
    let found = predict(&exchanges, &RoundTrips::new(), &scenario).expect("no round trip is needed");
    // The second open with its read and close; the third is opened from the cache and then writes; what follows a write
    // is opened anew.
    assert_eq!((found.commands, found.saved), (12, 4));
    assert_eq!((found.now, found.then), (Nanos(12 * MS), Nanos(8 * MS)));
}

#[test]
fn a_scenario_is_read_as_it_is_written() {
    let text = "rtt=20ms,server=0.5x,cache-opens,read-ahead";
    assert_eq!(text.parse::<Scenario>().map(|scenario| scenario.to_string()), Ok(text.to_owned()));
    assert_eq!("readahead".parse::<Scenario>(), "read-ahead".parse());
    for wrong in ["", "rtt", "rtt=5", "server=2", "server=-1x", "rtt=-1ms", "speed=2x"] {
        assert!(wrong.parse::<Scenario>().is_err(), "{wrong}");
    }
}
