//! Time attribution compared with hand-computed values and with a second implementation.

use super::sweep::{HELD_MAX, Sweeper};
use super::*;
use proptest::prelude::*;
use smbscope_model::connection::ConnectionEnd;
use smbscope_model::{
    Command, CommandGroup, ConnectionSummary, Exchange, ExchangeOutcome, FlowId, PacketRef, Settled, Stamp, Standstill,
    Timestamp,
};
use smbscope_testkit::exchange::read;
use smbscope_wire::smb2;

const S: i64 = 1_000_000_000;

fn stamp(time: i64) -> Option<Stamp> {
    Some(Stamp { time: Timestamp(time), packet: PacketRef::default() })
}

fn command(start: i64, sent: i64, answered: i64, end: i64, round_trip: Option<i64>) -> Exchange {
    let mut exchange = read(start, 0);
    (exchange.request.first, exchange.request.last) = (stamp(start), stamp(sent));
    (exchange.response.first, exchange.response.last) = (stamp(answered), stamp(end));
    exchange.server_round_trip = round_trip.map(Nanos);
    exchange
}

fn lock(start: i64, end: i64) -> Exchange {
    Exchange {
        group: CommandGroup::Waiting,
        command: Command::Smb2(smb2::Smb2Command::LOCK),
        ..command(start, start, end, end, None)
    }
}

fn notify(start: i64, end: i64) -> Exchange {
    Exchange { command: Command::Smb2(smb2::Smb2Command::CHANGE_NOTIFY), ..lock(start, end) }
}

fn without_response(start: i64, outcome: ExchangeOutcome) -> Exchange {
    let mut exchange = command(start, start + 10, 0, 0, Some(4));
    (exchange.response.first, exchange.response.last, exchange.outcome) = (None, None, outcome);
    exchange
}

fn connection(first: i64, last: i64, client_round_trip: Option<i64>) -> ConnectionSummary {
    let exchange = read(0, 0);
    ConnectionSummary {
        last: Timestamp(last),
        end: ConnectionEnd::Closed,
        client_round_trip: client_round_trip.map(Nanos),
        ..ConnectionSummary::new(FlowId(0), exchange.endpoints, Timestamp(first))
    }
}

/// Attributes a whole connection at once, with nothing settled before its end.
fn split(connection: &ConnectionSummary, exchanges: &[Exchange]) -> TimeSplit {
    let mut sweeper = Sweeper::default();
    exchanges.iter().for_each(|exchange| sweeper.follow(exchange, true, &mut |_, _| {}));
    sweeper.finish(connection, &mut |_, _| {})
}

fn parts(split: &TimeSplit) -> Vec<(TimePart, i64)> {
    TimePart::ALL.into_iter().map(|part| (part, split.part(part).0)).filter(|(_, time)| *time != 0).collect()
}

#[test]
fn one_command_after_the_other_has_every_phase_to_itself() {
    // Two commands: 10 sent, 100 served including a round trip of 20, 30 received; 200 between them including a round
    // trip to the client of 15; 5 before and 7 after.
    let exchanges = [command(5, 15, 115, 145, Some(20)), command(345, 355, 455, 485, Some(20))];
    let split = split(&connection(0, 492, Some(15)), &exchanges);
    let expected = [
        (TimePart::Think, 185),
        (TimePart::RequestTransfer, 20),
        (TimePart::Network, 55),
        (TimePart::Server, 160),
        (TimePart::ResponseTransfer, 60),
        (TimePart::Idle, 12),
    ];
    assert_eq!(parts(&split), expected);
    assert_eq!((split.elapsed_ns.0, split.busy_ns.0, split.outstanding_ns.0), (492, 280, 280));
}

#[test]
fn what_overlaps_is_divided_equally() {
    // The first is served from 0 to 100, the second sent from 40 to 60 and served from 60 to 130, the third served
    // from 80 to 140. Each moment is divided among those that are outstanding:
    //   0 to 40 one: server 40; 40 to 60 two: server 10, request 10; 60 to 80 two: server 20;
    //   80 to 100 three: server 20; 100 to 130 two: server 30; 130 to 140 one: server 10.
    let exchanges =
        [command(0, 0, 100, 100, Some(0)), command(40, 60, 130, 130, Some(0)), command(80, 80, 140, 140, Some(0))];
    let split = split(&connection(0, 140, None), &exchanges);
    assert_eq!(parts(&split), [(TimePart::RequestTransfer, 10), (TimePart::Server, 130)]);
    assert_eq!((split.busy_ns.0, split.outstanding_ns.0), (140, 100 + 90 + 60));
    assert_eq!(split.concurrency(), Some(250.0 / 140.0));
}

#[test]
fn round_trips_are_the_commands_that_do_not_overlap() {
    // In order of their ends: 0 to 10; a compound, both from 10 to 20; 12 to 30 overlaps it; 20 to 40; 35 to 50 overlaps
    // that; a wait from 50 to 90; no response at 60; 95 to 99.
    let exchanges = [
        command(0, 0, 10, 10, None),
        command(10, 10, 20, 20, None),
        command(10, 10, 20, 20, None),
        command(12, 12, 30, 30, None),
        command(20, 20, 40, 40, None),
        command(35, 35, 50, 50, None),
        lock(50, 90),
        without_response(60, ExchangeOutcome::NoResponseByDesign),
        command(95, 95, 99, 99, None),
    ];
    assert_eq!(split(&connection(0, 100, None), &exchanges).round_trips, 4);
    // Commands that a filter leaves out are not counted, and do not overlap.
    let mut sweeper = Sweeper::default();
    let chosen = [true, false, false, true, false, true, true, true, true];
    exchanges.iter().zip(chosen).for_each(|(exchange, chosen)| sweeper.follow(exchange, chosen, &mut |_, _| {}));
    assert_eq!(sweeper.finish(&connection(0, 100, None), &mut |_, _| {}).round_trips, 4);
}

#[test]
fn a_response_that_comes_in_takes_the_whole_moment() {
    // While the first response is incoming, from 10 to 90, the second can't arrive.
    let exchanges = [command(0, 0, 10, 90, Some(0)), command(0, 0, 95, 100, Some(0))];
    let split = split(&connection(0, 100, None), &exchanges);
    assert_eq!(parts(&split), [(TimePart::Server, 15), (TimePart::ResponseTransfer, 85)]);
}

#[test]
fn without_a_round_trip_server_and_network_are_not_told_apart() {
    let split = split(&connection(0, 100, None), &[command(0, 10, 90, 100, None)]);
    assert_eq!(
        parts(&split),
        [(TimePart::RequestTransfer, 10), (TimePart::ServerOrNetwork, 80), (TimePart::ResponseTransfer, 10)]
    );
}

#[test]
fn a_pause_is_thought_up_to_its_limit_and_idle_above() {
    let gap = |length: i64| {
        split(
            &connection(0, length + 20, None),
            &[command(0, 0, 10, 10, Some(0)), command(length + 10, length + 10, length + 20, length + 20, Some(0))],
        )
    };
    assert_eq!(parts(&gap(10 * S)), [(TimePart::Think, 10 * S), (TimePart::Server, 20)]);
    assert_eq!(parts(&gap(10 * S + 1)), [(TimePart::Server, 20), (TimePart::Idle, 10 * S + 1)]);
}

#[test]
fn a_blocking_lock_is_a_wait_and_a_subscription_lets_the_client_think() {
    let work =
        |pause: i64| [command(0, 0, 10, 10, Some(0)), command(pause + 10, pause + 10, pause + 20, pause + 20, Some(0))];
    let with = |pause: i64, wait: Exchange| {
        let [first, second] = work(pause);
        parts(&split(&connection(0, pause + 20, None), &[first, wait, second]))
    };
    // The lock waits from 5 to 60: alongside the command until 10, alone from then on.
    assert_eq!(with(100, lock(5, 60)), [(TimePart::Think, 50), (TimePart::Server, 20), (TimePart::Waiting, 50)]);
    assert_eq!(with(100, notify(5, 60)), [(TimePart::Think, 100), (TimePart::Server, 20)]);
    // Longer than THINK_MAX.
    assert_eq!(
        with(20 * S, notify(5, 60)),
        [(TimePart::Server, 20), (TimePart::Waiting, 50), (TimePart::Idle, 20 * S - 50)]
    );
}

#[test]
fn a_lost_segment_holds_up_all_that_is_outstanding() {
    let mut lost = command(0, 0, 100, 100, Some(0));
    (lost.resent, lost.retransmission_delay) = (Some(Timestamp(80)), Some(Nanos(80)));
    let split = split(&connection(0, 120, None), &[lost, command(60, 60, 120, 120, Some(0))]);
    assert_eq!(parts(&split), [(TimePart::Network, 80), (TimePart::Server, 40)]);
}

#[test]
fn a_server_that_stands_still_in_the_midst_of_a_transfer_has_the_moment_to_itself() {
    // The response arrives from 20 to 100, with nothing from 30 to 90. The second command is served throughout.
    let mut broken_off = command(0, 10, 20, 100, Some(0));
    broken_off.standstill = Some(Standstill { from: Timestamp(30), length: Nanos(60) });
    let alone = split(&connection(0, 100, None), std::slice::from_ref(&broken_off));
    assert_eq!(
        parts(&alone),
        [(TimePart::RequestTransfer, 10), (TimePart::Server, 70), (TimePart::ResponseTransfer, 20)]
    );
    // Half of the first 10 belongs to the request.
    let beside = [broken_off.clone(), command(0, 0, 100, 100, Some(0))];
    let together = split(&connection(0, 100, None), &beside);
    assert_eq!(
        parts(&together),
        [(TimePart::RequestTransfer, 5), (TimePart::Server, 75), (TimePart::ResponseTransfer, 20)]
    );
    // Until 50, retransmission of a lost segment delayed it, not the server.
    (broken_off.resent, broken_off.retransmission_delay) = (Some(Timestamp(50)), Some(Nanos(20)));
    let lost = split(&connection(0, 100, None), &[broken_off]);
    assert_eq!(
        parts(&lost),
        [
            (TimePart::RequestTransfer, 10),
            (TimePart::Network, 20),
            (TimePart::Server, 50),
            (TimePart::ResponseTransfer, 20)
        ]
    );
}

#[test]
fn around_a_command_without_its_other_half_time_is_unknown() {
    let split = |exchange: Exchange| {
        let exchanges = [command(0, 0, 10, 10, Some(0)), exchange, command(200, 200, 210, 210, Some(0))];
        parts(&split(&connection(0, 210, None), &exchanges))
    };
    let lost_response = split(without_response(50, ExchangeOutcome::ResponseNotCaptured));
    assert_eq!(
        lost_response,
        [(TimePart::Think, 40), (TimePart::RequestTransfer, 10), (TimePart::Server, 20), (TimePart::Unknown, 140)]
    );
    let mut lost_request = command(0, 0, 100, 120, Some(0));
    (lost_request.request.first, lost_request.request.last) = (None, None);
    lost_request.outcome = ExchangeOutcome::RequestNotCaptured;
    // From the last response to the first packet of the command whose request is missing: 10 to 100.
    assert_eq!(
        split(lost_request),
        [(TimePart::Think, 80), (TimePart::Server, 20), (TimePart::ResponseTransfer, 20), (TimePart::Unknown, 90)]
    );
}

#[test]
fn a_request_without_an_answer_keeps_its_client_waiting_to_the_end() {
    let exchanges = [without_response(0, ExchangeOutcome::Unanswered)];
    let split = split(&connection(0, 30 * S, None), &exchanges);
    assert_eq!(parts(&split), [(TimePart::RequestTransfer, 10), (TimePart::Server, 30 * S - 10)]);
}

#[test]
fn what_a_filter_leaves_out_is_nobodys_time() {
    // Served 0 to 100 (chosen) and 50 to 150 (not chosen); think time 150 to 200; 200 to 300 not chosen; think time 300
    // to 400; 400 to 500 chosen. The chosen commands have 0 to 100 and 400 to 500, and the think time before the last.
    let exchanges =
        [(0, 100), (50, 150), (200, 300), (400, 500)].map(|(from, to)| command(from, from, to, to, Some(0)));
    let mut sweeper = Sweeper::default();
    let mut busy = Vec::new();
    for (exchange, chosen) in exchanges.iter().zip([true, false, false, true]) {
        sweeper.follow(exchange, chosen, &mut |from, to| busy.push((from, to)));
    }
    let split = sweeper.finish(&connection(0, 500, None), &mut |from, to| busy.push((from, to)));
    assert_eq!(parts(&split), [(TimePart::Think, 100), (TimePart::Server, 200), (TimePart::FilteredOut, 200)]);
    assert_eq!((busy, split.busy_ns.0, split.outstanding_ns.0), (vec![(0, 100), (400, 500)], 200, 200));
}

#[test]
fn a_command_that_is_outstanding_beside_very_many_counts_from_then_on_and_nothing_twice() {
    let last = 40 * HELD_MAX as i64;
    let mut exchanges: Vec<Exchange> =
        (0..2 * HELD_MAX as i64).map(|n| command(20 * n, 20 * n, 20 * n + 10, 20 * n + 10, Some(0))).collect();
    exchanges.push(command(0, 0, last, last, Some(0)));
    let split = split(&connection(0, last, None), &exchanges);
    assert_eq!(split.elapsed_ns.0, last);
}

/// Applies the same rules to each nanosecond separately.
fn by_every_nanosecond(
    connection: &ConnectionSummary,
    exchanges: &[Exchange],
    chosen: &[bool],
) -> [f64; TimePart::ALL.len()] {
    let commands: Vec<(&Exchange, bool)> = exchanges
        .iter()
        .zip(chosen.iter().copied())
        .filter(|(exchange, _)| exchange.group != CommandGroup::Waiting)
        .collect();
    let at = |stamp: Option<Stamp>| stamp.expect("all four are known").time.0;
    let mut sums = [0.0; TimePart::ALL.len()];
    for now in connection.first.0..connection.last.0 {
        let outstanding: Vec<&(&Exchange, bool)> = commands
            .iter()
            .filter(|(exchange, _)| (at(exchange.request.first)..at(exchange.response.last)).contains(&now))
            .collect();
        let wanted: Vec<&Exchange> =
            outstanding.iter().filter(|(_, chosen)| *chosen).map(|(exchange, _)| *exchange).collect();
        if wanted.is_empty() && !outstanding.is_empty() {
            sums[TimePart::FilteredOut as usize] += 1.0;
            continue;
        }
        let phase = |exchange: &Exchange| {
            let (sent, answered) = (at(exchange.request.last), at(exchange.response.first));
            let Some(round_trip) = exchange.server_round_trip else {
                return match now {
                    _ if now < sent => TimePart::RequestTransfer,
                    _ if now < answered => TimePart::ServerOrNetwork,
                    _ => TimePart::ResponseTransfer,
                };
            };
            let network = round_trip.0.min(answered - sent);
            match now {
                _ if now < sent => TimePart::RequestTransfer,
                _ if now < sent + network / 2 => TimePart::Network,
                _ if now < answered - (network - network / 2) => TimePart::Server,
                _ if now < answered => TimePart::Network,
                _ => TimePart::ResponseTransfer,
            }
        };
        if outstanding.iter().any(|(exchange, _)| phase(exchange) == TimePart::ResponseTransfer) {
            sums[TimePart::ResponseTransfer as usize] += 1.0;
            continue;
        }
        for exchange in &wanted {
            sums[phase(exchange) as usize] += 1.0 / wanted.len() as f64;
        }
        if outstanding.is_empty() {
            let before = commands.iter().any(|(exchange, _)| at(exchange.response.last) <= now);
            // The command that ends the pause; if several begin together, the first in the order of the sweep.
            let next = commands
                .iter()
                .filter(|(exchange, _)| at(exchange.request.first) > now)
                .min_by_key(|(exchange, _)| at(exchange.request.first));
            let after = next.is_some();
            let held = exchanges.iter().any(|exchange| {
                exchange.group == CommandGroup::Waiting
                    && !exchange.is_subscription()
                    && (at(exchange.request.first)..at(exchange.response.last)).contains(&now)
            });
            let subscribed = exchanges.iter().any(|exchange| {
                exchange.is_subscription() && (at(exchange.request.first)..at(exchange.response.last)).contains(&now)
            });
            let filtered_out = next.is_some_and(|(_, chosen)| !chosen);
            let part = match (before && after, held, subscribed) {
                (true, _, _) if filtered_out => TimePart::FilteredOut,
                (_, true, _) => TimePart::Waiting,
                (true, false, _) => TimePart::Think,
                (false, false, true) => TimePart::Waiting,
                (false, false, false) => TimePart::Idle,
            };
            sums[part as usize] += 1.0;
        }
    }
    sums
}

prop_compose! {
    fn any_exchange()(
        start in 0i64..300,
        phases in prop::array::uniform3(0i64..40),
        round_trip in prop::option::of(0i64..30),
        kind in 0..8,
    ) -> Exchange {
        let [sent, answered, end] = [start + phases[0], start + phases[0] + phases[1], start + phases.iter().sum::<i64>()];
        match kind {
            0 => lock(start, end),
            1 => notify(start, end),
            _ => command(start, sent, answered, end, round_trip),
        }
    }
}

proptest! {
    #[test]
    fn the_sweep_agrees_with_every_nanosecond_whenever_something_is_settled(
        mut exchanges in prop::collection::vec(any_exchange(), 0..14),
        settle in prop::collection::vec(any::<bool>(), 14),
        chosen in prop_oneof![Just(vec![true; 14]), prop::collection::vec(any::<bool>(), 14)],
    ) {
        let whole = connection(-3, 430, None);
        let end = |exchange: &Exchange| exchange.response.last.map(|stamp| stamp.time);
        exchanges.sort_by_key(end);
        let mut sweeper = Sweeper::default();
        let mut busy = 0;
        for (n, exchange) in exchanges.iter().enumerate() {
            sweeper.follow(exchange, chosen[n], &mut |from, to| busy += to - from);
            if settle[n] {
                let rest = &exchanges[n + 1..];
                let since = |subscribed: bool| {
                    rest.iter()
                        .filter(|later| later.group == CommandGroup::Waiting && later.is_subscription() == subscribed)
                        .filter_map(|later| later.start())
                        .filter(|start| Some(*start) <= end(exchange))
                        .min()
                };
                let starts = rest.iter().filter(|later| later.group != CommandGroup::Waiting).filter_map(Exchange::start);
                sweeper.settled(
                    &Settled {
                        flow: FlowId(0),
                        first: whole.first,
                        until: starts.chain(end(exchange)).min().unwrap_or_default(),
                        held_since: since(false),
                        subscribed_since: since(true),
                        client_round_trip: None,
                    },
                    &mut |from, to| busy += to - from,
                );
            }
        }
        let split = sweeper.finish(&whole, &mut |from, to| busy += to - from);
        prop_assert_eq!(split.elapsed_ns, whole.last - whole.first);
        prop_assert_eq!(split.busy_ns.0, busy);
        for (part, expected) in TimePart::ALL.into_iter().zip(by_every_nanosecond(&whole, &exchanges, &chosen)) {
            // Rounding to whole nanoseconds changes a part by less than one.
            prop_assert!((split.part(part).0 as f64 - expected).abs() < 1.0, "{:?}: {} and {expected}", part, split.part(part).0);
        }
    }
}

#[test]
fn thousands_of_commands_at_one_moment_are_not_held() {
    // Single-packet requests without a response, and commands that take no time. A debug assertion in the sweeper
    // checks that no more than HELD_MAX commands are held.
    let moment = |time: i64, chosen: bool| (command(time, time, time, time, Some(0)), chosen);
    let unanswered = |time: i64| Exchange {
        outcome: ExchangeOutcome::Unanswered,
        response: Default::default(),
        ..command(time, time, time, time, Some(0))
    };
    let sweep = |copies: usize| {
        let mut sweeper = Sweeper::default();
        for _ in 0..copies {
            for (exchange, chosen) in [moment(10, true), moment(10, false), (unanswered(10), true), moment(20, true)] {
                sweeper.follow(&exchange, chosen, &mut |_, _| {});
            }
        }
        sweeper.finish(&connection(0, 100, None), &mut |_, _| {})
    };
    assert_eq!(parts(&sweep(10 * HELD_MAX)), parts(&sweep(1)));
}

#[test]
fn thirds_of_a_nanosecond_are_not_lost() {
    let mut shares = Shares::default();
    let mut counts = [0; PARTS];
    (counts[TimePart::Server as usize], counts[TimePart::Network as usize]) = (2, 1);
    (0..1_000).for_each(|_| shares.divide(&counts, 1));
    let mut split = TimeSplit::default();
    shares.finish(&mut split);
    // 1,000 ns in thirds: 666.67 and 333.33.
    assert_eq!((split.server_ns.0, split.network_ns.0, split.elapsed_ns.0), (667, 333, 1_000));
}

#[test]
fn years_do_not_overflow() {
    let mut shares = Shares::default();
    let mut counts = [0; PARTS];
    counts[TimePart::Server as usize] = u32::MAX;
    shares.divide(&counts, i64::MAX / 2);
    shares.add(TimePart::Idle, 5);
    let mut split = TimeSplit::default();
    shares.finish(&mut split);
    assert_eq!((split.server_ns.0, split.idle_ns.0), (i64::MAX / 2, 5));
}
