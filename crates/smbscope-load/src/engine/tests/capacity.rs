//! The capacity search.

use super::mock::{Answer, after_ms};
use super::*;
use smbscope_stats::Random;
use smbscope_wire::status::NtStatus;
use std::sync::{Arc, Mutex};

/// A server that handles one command at a time, each for the duration that `service` returns.
fn queue(mut service: impl FnMut() -> Duration + Send + 'static) -> MockServer {
    let state = Arc::new(Mutex::new((Duration::ZERO, move || service())));
    MockServer::new(move |asked| {
        let (free_at, service) = &mut *state.lock().unwrap();
        *free_at = (*free_at).max(asked.at) + service();
        Answer::At(*free_at, NtStatus::SUCCESS)
    })
}

fn thinking(seconds: u64, think_ms: u64) -> RampPlan {
    RampPlan {
        schedule: LoadSchedule::Closed { think: Duration::from_millis(think_ms) },
        warmup: Duration::from_secs(5),
        ..plan(1, seconds)
    }
}

fn find(plan: &RampPlan, criterion: &str, search: Search, server: &MockServer) -> CapacityResult {
    let criterion = criterion.parse().unwrap();
    with(
        plan,
        server,
        |number| Reads::new(1, number),
        &mut (),
        |engine| crate::engine::search_for_capacity(engine, &criterion, search),
    )
}

#[test]
fn the_knee_of_a_queue_is_where_arithmetic_puts_it() {
    // With 10 ms of service and 90 ms of think time the server is saturated from 10 users on, and each of N users waits
    // N · 10 ms − 90 ms: 40 ms for 13 users, 50 ms for 14.
    let server = queue(|| Duration::from_millis(10));
    let capacity =
        find(&thinking(20, 90), "mean(Read) < 45ms", Search { precision: 0.0, ..Search::default() }, &server);
    assert_eq!(capacity.users, Knee::At(13), "{:?}", points(&capacity));
    // Doubling, the failure twice, bisection with each failure twice, the answer twice; then it and its neighbour a
    // third time.
    let shown = points(&capacity);
    let expected = [1, 2, 4, 8, 16, 16, 12, 14, 14, 13, 13, 13, 14].to_vec();
    assert_eq!(shown.iter().map(|(users, _)| *users).collect::<Vec<_>>(), expected, "{shown:?}");
}

/// Ten searches on the same server, with load points so short that chance moves the knee: the ranges of any two must
/// overlap.
#[test]
fn searches_on_the_same_server_differ_and_their_ranges_overlap() {
    let found = (0..10).map(|seed| {
        let server = queue({
            let mut random = Random::of_stream(seed, 0);
            move || Duration::from_secs_f64(0.020 * random.exponential())
        });
        let capacity = find(&thinking(20, 400), "mean(total) < 120ms", Search::default(), &server);
        let Knee::At(knee) = capacity.users else { panic!("{:?}", capacity.users) };
        let range = capacity.range.expect("there is a knee");
        let (always, never) = (range.always.unwrap_or(0), range.never.unwrap_or(u32::MAX));
        assert!(always <= knee && knee < never, "{knee}, {range:?}");
        let of = |load: u32| points(&capacity).into_iter().filter(move |(users, _)| *users == load);
        assert!(always == 0 || of(always).count() == 3 && of(always).all(|(_, met)| met), "{:?}", points(&capacity));
        assert!(
            never == u32::MAX || of(never).count() == 3 && of(never).all(|(_, met)| !met),
            "{:?}",
            points(&capacity)
        );
        (knee, always, never)
    });
    let found: Vec<_> = found.collect();
    assert!(found.iter().any(|(knee, ..)| *knee != found[0].0), "chance decides nothing here: {found:?}");
    let apart = found.iter().flat_map(|one| found.iter().map(move |other| (one, other)));
    let apart: Vec<_> = apart.filter(|((_, _, never), (_, always, _))| never <= always).collect();
    assert!(apart.is_empty(), "{apart:?}");
}

/// Mean response time of N users with constant think time at a server with exponential service times, by exact mean
/// value analysis (Reiser and Lavenberg, Journal of the ACM 27(2), 1980).
fn mean_value(users: u32, service_ms: f64, think_ms: f64) -> f64 {
    let (mut queue, mut response) = (0.0, 0.0);
    for n in 1..=users {
        response = service_ms * (1.0 + queue);
        queue = f64::from(n) * response / (response + think_ms);
    }
    response
}

#[test]
fn the_knee_of_a_server_with_random_service_is_that_of_mean_value_analysis() {
    let server = queue({
        let mut random = Random::of_stream(3, 0);
        move || Duration::from_secs_f64(0.020 * random.exponential())
    });
    let capacity = find(&thinking(300, 400), "mean(total) < 120ms", Search { first: 4, ..Search::default() }, &server);
    let expected = (1..).find(|users| mean_value(*users, 20.0, 400.0) >= 120.0).unwrap() - 1;
    let Knee::At(users) = capacity.users else { panic!("{:?}", capacity.users) };
    assert!(users.abs_diff(expected) <= 1, "{users} instead of {expected}: {:?}", points(&capacity));
}

#[test]
fn a_single_bad_try_does_not_decide() {
    // Connection 4 is slow for the length of one load point: the first one with 8 users, after four others of 25 s.
    let slow = Arc::new(Mutex::new(0));
    let server = MockServer::new(move |asked| {
        let mut first_slow = slow.lock().unwrap();
        if asked.connection == 7 && *first_slow == 0 {
            *first_slow = asked.at.as_secs().max(1);
        }
        let within = *first_slow > 0 && asked.at.as_secs() < *first_slow + 20;
        after_ms(if within { 500 } else { 10 })
    });
    let search = Search { most: 16, ..Search::default() };
    let capacity = find(&thinking(10, 90), "p95(Read) < 100ms", search, &server);
    assert_eq!(capacity.users, Knee::AtLeast(16));
    let eights: Vec<bool> =
        points(&capacity).into_iter().filter(|(users, _)| *users == 8).map(|(_, met)| met).collect();
    assert_eq!(eights.iter().filter(|met| **met).count(), 2, "{eights:?}");
    assert!(!eights[0], "{eights:?}");
}

#[test]
fn overload_says_how_many_users_a_server_carries() {
    // With 10 ms of service and 2 scenarios per second and user, 50 users saturate the server without queueing; with
    // more, the queue grows and nothing completes within 50 ms.
    let server = queue(|| Duration::from_millis(10));
    let limits = OverloadLimits { late: Duration::from_secs(1), budget: Some(Duration::from_millis(50)) };
    let plan = RampPlan {
        schedule: LoadSchedule::Open { rate: 2.0, per_user: true, arrivals: Arrivals::Constant },
        overload: Some(limits),
        ..thinking(20, 0)
    };
    let capacity = find(&plan, "overload < 1%", Search { precision: 0.0, ..Search::default() }, &server);
    assert_eq!(capacity.users, Knee::At(50), "{:?}", points(&capacity));
    let met = capacity.tried.iter().rfind(|tried| tried.verdict.met).unwrap();
    assert_eq!((met.run.users, &met.verdict.found[0][..]), (50, "overload < 1%: 0.00%"));
}

#[test]
fn a_server_that_carries_nobody_is_below_the_first() {
    let server = MockServer::new(|_| after_ms(200));
    let capacity = find(&thinking(10, 90), "max(Read) < 100ms", Search { first: 4, ..Search::default() }, &server);
    assert_eq!(capacity.users, Knee::Below(1));
    assert_eq!(capacity.tried[0].verdict.found, ["max(Read) < 100 ms: 200 ms"]);
}

#[test]
fn every_kind_of_condition_is_judged_by_the_run() {
    let server = MockServer::new(|asked| match asked.command {
        Some(command) if command % 10 == 9 => Answer::After(Duration::from_millis(10), NtStatus::SHARING_VIOLATION),
        _ => after_ms(10),
    });
    // 100 operations per second, of which 10 fail; the other 90 read 4 KiB each: 368,640 bytes per second.
    let run = run_one(&plan(1, 10), &server);
    let judge = |text: &str| text.parse::<Criterion>().unwrap().judge(&run);
    assert_eq!(judge("errors < 11%").found, ["errors < 11%: 10.00%"]);
    let holds =
        ["errors < 11%", "errors < 101", "ops > 99", "throughput > 368 KB/s", "p99(read) < 11ms", "max(READ) < 11ms"];
    let fails =
        ["errors < 10%", "errors < 100", "ops > 101", "throughput > 369 KB/s", "p99(read) < 10ms", "p50(Write) < 1s"];
    for text in holds {
        assert!(judge(text).met, "{:?}", judge(text));
    }
    for text in fails {
        assert!(!judge(text).met, "{:?}", judge(text));
    }
    assert!(!judge("errors < 11% and ops > 101").met);
    assert_eq!(judge("overload < 1%").found, ["overload < 1%: no scenarios"]);
    assert!(!judge("overload < 1%").met);
    assert_eq!(judge("p50(Write) < 1s").found, ["p50(Write) < 1.00 s: too few commands to tell (0)"]);
}

fn points(capacity: &CapacityResult) -> Vec<(u32, bool)> {
    capacity.tried.iter().map(|tried| (tried.run.users, tried.verdict.met)).collect()
}
