//! Is anything slow, and whose is it? On connections built by hand.

mod common;

use common::{START, connection, exchange, report, smb2_command};
use smbscope_model::{Connection, Endpoints, Exchange, FlowId, Group, Nanos, Outcome, Quality, Timestamp};
use smbscope_report::{Report, Subject, Verdict, Who};
use smbscope_stats::Aggregator;

const MS: i64 = 1_000_000;

/// Reads of so many ms (a fifth of it the request, three the service, one the response), each so long after the one
/// before.
fn reads_of(length: i64, count: i64, pause: i64) -> Vec<Exchange> {
    let read = |n| exchange(smb2_command(8), Group::Read, START + n * (length + pause), length);
    with_round_trip((0..count).map(read).collect(), Some(0))
}

/// Reads of 30 ms, more than the threshold.
fn slow_reads(count: i64, pause_ms: i64) -> Vec<Exchange> {
    reads_of(30 * MS, count, pause_ms * MS)
}

fn with_round_trip(mut exchanges: Vec<Exchange>, round_trip: Option<i64>) -> Vec<Exchange> {
    exchanges.iter_mut().for_each(|exchange| exchange.server_round_trip = round_trip.map(Nanos));
    exchanges
}

/// A connection that lasts from the first packet of these exchanges to the last.
fn lasting(exchanges: &[Exchange], flow: u64) -> Connection {
    let mut connection = connection(1, None);
    let last = exchanges.iter().filter_map(|exchange| exchange.response.last.or(exchange.request.last)).map(|s| s.time);
    connection.flow = FlowId(flow);
    connection.last = last.max().unwrap_or(Timestamp(START));
    if let Some(exchange) = exchanges.first() {
        connection.endpoints = exchange.endpoints;
    }
    connection
}

fn report_on(exchanges: &[Exchange]) -> Report {
    report(exchanges, vec![lasting(exchanges, 1)], Quality::default())
}

/// The verdict on one connection.
fn verdict(exchanges: &[Exchange]) -> Verdict {
    report_on(exchanges).verdict()
}

/// Exchanges of a client with a server, by the last parts of their addresses.
fn between(client: u8, server: u8, mut exchanges: Vec<Exchange>) -> Vec<Exchange> {
    let endpoints = Endpoints {
        client: format!("192.168.1.{client}:10{server:03}").parse().expect("a socket address"),
        server: format!("192.168.1.{server}:445").parse().expect("a socket address"),
    };
    exchanges.iter_mut().for_each(|exchange| exchange.endpoints = endpoints);
    exchanges
}

/// A report on several connections.
fn together(connections: &[Vec<Exchange>]) -> Report {
    let all = connections.iter().zip(1..).map(|(exchanges, flow)| lasting(exchanges, flow)).collect();
    report(&connections.concat(), all, Quality::default())
}

fn said(verdict: &Verdict) -> String {
    [std::slice::from_ref(&verdict.headline), &verdict.sentences].concat().join("\n")
}

#[test]
fn fast_answers_accuse_nobody() {
    // 39 commands of 59 µs one after the other: 35.4 µs of each in the server, and nobody has to wait.
    let verdict = verdict(&reads_of(59_000, 39, 0));
    assert_eq!(verdict.who, Who::Nothing);
    assert_eq!(
        verdict.headline,
        "Nothing here is slow: median 59.0 µs, p95 59.0 µs; the longest command took 59.0 µs."
    );
    // Where the little waiting went is a detail.
    assert_eq!(verdict.sentences[0], "Active time 2.30 ms: server 60%, transfers 40%.");
    assert_eq!((verdict.subject.clone(), verdict.slow.len()), (None, 0));
    assert!(!said(&verdict).contains("-bound"), "{}", said(&verdict));
}

#[test]
fn a_95th_percentile_is_slow_above_the_threshold_of_its_group() {
    // The threshold of Read is 20 ms.
    assert_eq!(verdict(&reads_of(20 * MS, 20, 0)).who, Who::Nothing);
    let verdict = verdict(&reads_of(20 * MS + 5, 20, 0));
    assert_eq!(verdict.who, Who::Server);
    assert_eq!(verdict.sentences[0], "Slow: p95 of Read 20.0 ms, above 20.0 ms.");
}

#[test]
fn thresholds_can_be_changed() {
    let mut report = report_on(&reads_of(10 * MS, 20, 0));
    assert_eq!(report.verdict().who, Who::Nothing);
    report.slow = "read=5ms".parse().expect("a threshold");
    assert_eq!(report.verdict().who, Who::Server);
    assert!(report.verdict().thresholds.contains("read=5.00ms,"), "{}", report.verdict().thresholds);
}

#[test]
fn the_server_has_most_of_the_time_in_which_commands_are_outstanding() {
    // 18 of 30 ms, less a round trip of 0.
    let verdict = verdict(&slow_reads(20, 15));
    assert_eq!(verdict.who, Who::Server);
    assert_eq!(verdict.headline, "Server-bound: the server accounts for 60% of the total wait (600 ms).");
    // 19 pauses of 15 ms: 285 of 885 ms.
    let active = "Active time 885 ms: server 41%, client 32%, transfers 27%.";
    assert!(verdict.sentences.contains(&active.to_owned()), "{verdict:?}");
}

#[test]
fn round_trips_and_transfers_are_the_networks() {
    // 12 ms of transfers and 6 ms of round trip.
    let verdict = verdict(&with_round_trip(slow_reads(20, 15), Some(6 * MS)));
    assert_eq!(verdict.who, Who::Network);
    assert_eq!(verdict.headline, "Network-bound: the network accounts for 60% of the total wait (600 ms).");
}

#[test]
fn a_client_that_thinks_for_three_fifths_of_the_time_is_busy_itself() {
    // 150 ms of 250: 210 · 150 of 210 · 150 + 211 · 100 is 59.9%; with 160 ms 61.5%.
    let share = |pause| verdict(&reads_of(10 * MS, 201, pause));
    assert_eq!(share(14 * MS).who, Who::Nothing);
    let verdict = share(16 * MS);
    assert_eq!(verdict.who, Who::Client);
    assert_eq!(
        verdict.headline,
        "Client-bound: the client was idle between requests 61% of the active time; server and network answered fast."
    );
    // 19 pauses of 16 ms are 0.3 s: too little to be noticed.
    assert_eq!(self::verdict(&reads_of(10 * MS, 20, 16 * MS)).who, Who::Nothing);
}

#[test]
fn without_a_round_trip_there_is_no_answer_where_it_could_turn_it() {
    let verdict = verdict(&with_round_trip(slow_reads(20, 5), None));
    assert_eq!(verdict.who, Who::Unknown);
    assert_eq!(
        verdict.headline,
        "Server- or network-bound: the round trip is unknown, so the total wait (600 ms) cannot be divided."
    );
}

#[test]
fn a_stall_is_named_though_the_client_thinks_for_longer() {
    let mut exchanges = reads_of(10 * MS, 21, 100 * MS);
    // A read of 1.5 s, 0.9 s of it in the server, behind 20 pauses of 100 ms.
    let mut stalled = exchange(smb2_command(8), Group::Read, START + 21 * 110 * MS, 1_500 * MS);
    stalled.server_round_trip = Some(Nanos(0));
    stalled.path = Some("big.bin".into());
    exchanges.push(stalled);
    let verdict = verdict(&exchanges);
    assert_eq!(verdict.who, Who::Server);
    assert_eq!(verdict.headline, "Server-bound: the server kept 1 command waiting for 900 ms.");
    assert_eq!(
        verdict.sentences[0],
        "It began at 1997-08-11 09:30:02 UTC with a READ of big.bin (request packet 1, response packet 4)."
    );
}

#[test]
fn a_stall_in_which_a_segment_was_retransmitted_is_the_networks() {
    let mut exchanges = reads_of(10 * MS, 21, 5 * MS);
    let mut lost = exchange(smb2_command(8), Group::Read, START + 21 * 15 * MS, 1_500 * MS);
    (lost.server_round_trip, lost.retransmission_delay) = (Some(Nanos(0)), Some(Nanos(800 * MS)));
    lost.resent = lost.response.first.map(|stamp| stamp.time);
    exchanges.push(lost);
    let verdict = verdict(&exchanges);
    assert_eq!(verdict.who, Who::Network);
    assert_eq!(verdict.headline, "Network-bound: 1 command waited 900 ms for lost packets to be retransmitted.");
}

#[test]
fn a_single_long_command_is_judged_by_its_own_phases() {
    // The client thinks for 100 s; one read takes 1.2 s, 0.72 s of it in the server: less than a tenth of the time.
    let mut exchanges = with_round_trip(reads_of(10 * MS, 101, 990 * MS), Some(9 * MS));
    let mut long = exchange(smb2_command(8), Group::Read, START + 101_000 * MS, 1_200 * MS);
    long.server_round_trip = Some(Nanos(9 * MS));
    exchanges.push(long);
    let verdict = verdict(&exchanges);
    assert_eq!(verdict.who, Who::Server);
    // 720 − 9 of 1,200 ms.
    assert_eq!(verdict.headline, "Server-bound: 1 command took 1.20 s; the server accounts for 59% of it.");
}

#[test]
fn one_slow_server_leads_though_twenty_users_of_a_fast_one_think() {
    // Each user reads 5 times in 1 ms and thinks for 1 s between; two of them wait 25 times for 40 ms of another server.
    let mut connections: Vec<Vec<Exchange>> =
        (1..=20).map(|client| between(client, 100, reads_of(MS, 5, 1_000 * MS))).collect();
    connections.extend((1..=2).map(|client| between(client, 200, reads_of(40 * MS, 25, 1_000 * MS))));
    let report = together(&connections);
    let verdict = report.verdict();
    assert_eq!(verdict.who, Who::Server);
    assert_eq!(verdict.subject, Some(Subject::Server("192.168.1.200:445".into())));
    assert_eq!(
        verdict.headline,
        "Server-bound: 192.168.1.200:445 accounts for 60% of the wait of its clients (2.00 s)."
    );
    let others = "1 other server: a total wait of 100 ms; it is not slow.";
    assert!(verdict.sentences.contains(&others.to_owned()), "{verdict:?}");
    let slow: Vec<&Subject> = verdict.slow.iter().map(|slow| &slow.subject).collect();
    let subjects = [
        Subject::Server("192.168.1.200:445".into()),
        Subject::Client("192.168.1.1".into()),
        Subject::Client("192.168.1.2".into()),
    ];
    assert_eq!(slow, subjects.iter().collect::<Vec<_>>());
}

#[test]
fn a_client_that_waits_nine_tenths_of_its_time_leads_though_twenty_others_are_idle() {
    let mut connections: Vec<Vec<Exchange>> =
        (1..=20).map(|client| between(client, 100, reads_of(MS, 5, 1_000 * MS))).collect();
    // 250 times 9 ms, with 1 ms between: 2,250 of 2,499 ms.
    connections.push(between(21, 100, reads_of(9 * MS, 250, MS)));
    let verdict = together(&connections).verdict();
    assert_eq!(verdict.subject, Some(Subject::Client("192.168.1.21".into())));
    assert_eq!(
        verdict.headline,
        "Server-bound: client 192.168.1.21 waited 90% of its active time (2.25 s); the server accounts for 60% of that."
    );
    // 20 · 5 ms of 20 · (5 + 4,000) ms.
    let others = "20 other clients waited 0.1% of the active time (100 ms); none of them is slow.";
    assert!(verdict.sentences.contains(&others.to_owned()), "{verdict:?}");
}

#[test]
fn what_holds_for_everybody_is_said_of_the_whole() {
    let connections: Vec<Vec<Exchange>> = (1..=20).map(|client| between(client, 100, slow_reads(20, 15))).collect();
    let verdict = together(&connections).verdict();
    // 20 clients · 20 · 30 ms.
    assert_eq!(verdict.headline, "Server-bound: the server accounts for 60% of the total wait (12.0 s).");
    assert_eq!((verdict.subject, verdict.slow.len()), (None, 1 + 10));
}

#[test]
fn the_verdict_does_not_depend_on_how_connections_are_divided_among_threads() {
    let mut connections: Vec<Vec<Exchange>> =
        (1..=20).map(|client| between(client, 100, reads_of(MS, 80, 1_000 * MS))).collect();
    connections.push(between(21, 100, reads_of(40 * MS, 250, MS)));
    connections.push(between(3, 200, reads_of(50 * MS, 70, MS)));
    let expected = together(&connections).verdict();
    for threads in [2, 3] {
        let mut parts: Vec<Aggregator> = (0..threads).map(|_| Aggregator::new()).collect();
        for (exchanges, flow) in connections.iter().zip(1u64..) {
            let part = &mut parts[flow as usize % threads];
            for exchange in exchanges {
                part.record(exchange);
                part.follow(&Exchange { flow: FlowId(flow), ..exchange.clone() }, true);
            }
            part.closed(&lasting(exchanges, flow));
        }
        let mut all = parts.pop().expect("there are some");
        parts.into_iter().for_each(|part| all.merge(part));
        let merged = Report { aggregate: all.finish(), ..together(&connections) };
        assert_eq!(merged.verdict(), expected);
    }
}

#[test]
fn the_verdict_is_about_what_a_filter_chose() {
    // Slow reads and fast writes by turns; the filter wants the writes.
    let mut exchanges = slow_reads(30, 10);
    let write = |n: i64| exchange(smb2_command(9), Group::Write, START + (n * 40 + 33) * MS, MS);
    exchanges.extend(with_round_trip((0..30).map(write).collect(), Some(0)));
    exchanges.sort_by_key(Exchange::start);
    assert_eq!(verdict(&exchanges).who, Who::Server);
    let mut aggregator = Aggregator::new();
    for exchange in &exchanges {
        let chosen = exchange.group == Group::Write;
        aggregator.follow(&Exchange { flow: FlowId(1), ..exchange.clone() }, chosen);
        if chosen {
            aggregator.record(exchange);
        }
    }
    aggregator.closed(&lasting(&exchanges, 1));
    let verdict = Report { aggregate: aggregator.finish(), ..report_on(&exchanges) }.verdict();
    assert_eq!(verdict.who, Who::Nothing);
    // 30 writes of 1 ms, and 3 ms of thought before each.
    assert_eq!(verdict.sentences[0], "Active time 120 ms: client 75%, server 15%, transfers 10%.");
}

#[test]
fn what_the_capture_does_not_show_is_no_answer() {
    let mut unseen = reads_of(10 * MS, 2, 8_000 * MS);
    unseen[0].response = Default::default();
    unseen[0].outcome = Outcome::ResponseNotCaptured;
    let verdict = verdict(&unseen);
    assert_eq!(verdict.who, Who::Unknown);
    assert!(verdict.headline.starts_with("The capture does not tell: too many commands"), "{}", verdict.headline);
}
