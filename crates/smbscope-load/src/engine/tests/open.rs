//! Open loops.

use super::mock::{Answer, after_ms};
use super::*;
use smbscope_wire::status::NtStatus;

fn open(plan: RampPlan, rate: f64, arrivals: Arrivals) -> RampPlan {
    RampPlan { schedule: LoadSchedule::Open { rate, per_user: false, arrivals }, ..plan }
}

#[test]
fn the_rate_is_kept_whatever_the_number_of_users() {
    for users in [1, 3, 10] {
        let plan = open(plan(users, 10), 50.0, Arrivals::Constant);
        let run = run_one(&plan, &MockServer::new(|_| after_ms(5)));
        assert_eq!((run.operations[0].service.count(), run.total().count()), (500, 500), "{users} users");
        assert_eq!(run.pace, result::PacingResult::Open { rate: 50.0, not_begun: 0 });
        assert!(run.intervals.iter().all(|interval| (49..=51).contains(&interval.operations)), "{:?}", run.intervals);
    }
}

#[test]
fn poisson_arrivals_keep_the_rate_within_chance() {
    // 2,000 expected, standard deviation √2,000 ≈ 45: five of them either way.
    let run = run_one(&open(plan(20, 20), 100.0, Arrivals::Poisson), &MockServer::new(|_| after_ms(5)));
    let count = run.operations[0].response.as_ref().unwrap().count();
    assert!((1_776..=2_224).contains(&count), "{count}");
}

#[test]
fn a_stall_shows_in_the_percentiles_as_arithmetic_says() {
    // 100/s by one user for 10 s, 1 ms each, and no responses from 4 s to 6 s. The 200 of 1,000 operations that are due
    // in the stall wait for its end, evenly from 2 s down to 0, plus 1 ms for each one before them: the k-th of them is
    // due at 4 s + 10 ms·k and ends at 6 s + 1 ms·(k + 1), so it takes 2,001 ms − 9 ms·k. After the stall the queue
    // shrinks by 9 ms every 10 ms, so 22 more operations wait, until 2,001 − 9·k is below 1 ms at k = 223.
    let stall = |asked: mock::Asked| match asked.at.as_millis() {
        4_000..6_000 => Answer::At(Duration::from_millis(6_001), NtStatus::SUCCESS),
        _ => after_ms(1),
    };
    let run = run_one(&open(plan(1, 10), 100.0, Arrivals::Constant), &MockServer::new(stall));
    let response = run.operations[0].response.as_ref().unwrap().figures();
    let service = run.operations[0].service.figures();
    assert_eq!((response.count, service.count), (1_000, 1_000));
    let milliseconds = |nanos: Option<smbscope_model::Nanos>| nanos.unwrap().0 as f64 / 1e6;
    let near = |found: f64, expected: f64| (found - expected).abs() < 12.0;
    // The 50 slowest of 1,000 have k below 50, the 100 slowest k below 100, the 10 slowest k below 10.
    let expected = [(response.p90, 2_001.0 - 900.0), (response.p95, 2_001.0 - 450.0), (response.p99, 2_001.0 - 90.0)];
    for (found, expected) in expected {
        assert!(near(milliseconds(found), expected), "{} ms instead of {expected} ms", milliseconds(found));
    }
    assert!(near(milliseconds(response.max), 2_001.0), "{response:?}");
    // The service time, from the actual start, hides all that: a single operation is long.
    assert!(milliseconds(service.p99) < 2.0 && milliseconds(service.max) > 1_980.0, "{service:?}");
}

#[test]
fn what_was_due_and_did_not_begin_is_counted() {
    // 10/s, 0.5 s each: in 10 s one user starts 20 of 100.
    let run = run_one(&open(plan(1, 10), 10.0, Arrivals::Constant), &MockServer::new(|_| after_ms(500)));
    let result::PacingResult::Open { not_begun, .. } = run.pace else { panic!("{:?}", run.pace) };
    let begun = run.operations[0].service.count();
    assert_eq!(begun + not_begun, 100);
    assert!((19..=21).contains(&begun), "{begun}");
}

#[test]
fn scenarios_that_begin_late_take_too_long_or_do_not_begin_are_overload() {
    let limits = |budget| Some(OverloadLimits { late: Duration::from_secs(1), budget });
    let overload = |rate, takes_ms, budget| {
        let plan = RampPlan { overload: limits(budget), ..open(plan(1, 10), rate, Arrivals::Constant) };
        run_one(&plan, &MockServer::new(move |_| after_ms(takes_ms))).overload.unwrap()
    };
    // 10/s, 0.5 s each: the k-th is due at 0.1·k and starts at 0.5·k, more than 1 s late from k = 3 on. In 10 s there
    // is time for 20.
    let found = overload(10.0, 500, Some(Duration::from_millis(400)));
    assert_eq!((found.scenarios, found.exceeded), (100, 3), "{found:?}");
    assert!((16..=18).contains(&found.late) && found.late + found.not_begun == 97, "{found:?}");
    assert_eq!(found.share(), 1.0);
    assert_eq!(overload(10.0, 500, None).exceeded, 0);
    // No overload with time to spare.
    let found = overload(2.0, 300, Some(Duration::from_millis(400)));
    assert_eq!((found.scenarios, found.share()), (20, 0.0), "{found:?}");
    // A scenario without a response never completes, and the others do not start.
    let plan = RampPlan { overload: limits(None), ..open(plan(1, 10), 1.0, Arrivals::Constant) };
    let found = run_one(&plan, &MockServer::new(|_| Answer::Never)).overload.unwrap();
    assert_eq!((found.scenarios, found.exceeded, found.not_begun), (10, 1, 9), "{found:?}");
    // Without limits there is no overload.
    assert_eq!(
        run_one(&open(self::plan(1, 1), 1.0, Arrivals::Constant), &MockServer::new(|_| after_ms(1))).overload,
        None
    );
}
