//! Closed loops.

use super::mock::{Answer, after_ms};
use super::*;
use smbscope_model::{CommandGroup, Nanos};
use smbscope_wire::status::NtStatus;

#[test]
fn a_user_without_think_time_does_one_operation_after_the_other() {
    // 10 ms each for 2 s: 200 per user.
    let run = run_one(&plan(3, 2), &MockServer::new(|_| after_ms(10)));
    assert_eq!((run.total().count(), run.operations[0].service.count()), (600, 600));
    let figures = run.group(CommandGroup::Read).figures();
    assert_eq!((figures.p50, figures.max), (Some(Nanos(10_000_000)), Some(Nanos(10_000_000))));
    assert_eq!((run.bytes_read, run.duration, run.ended), (600 * 4096, Duration::from_secs(2), LoadPointEnd::Done));
    assert_eq!((run.operations[0].response.is_none(), run.pace), (true, result::PacingResult::Closed));
}

#[test]
fn think_time_passes_between_operations() {
    // 10 ms + 90 ms: 10 per second and user. The first starts somewhere in the first think time.
    let plan = RampPlan { schedule: LoadSchedule::Closed { think: Duration::from_millis(90) }, ..plan(4, 10) };
    let count = run_one(&plan, &MockServer::new(|_| after_ms(10))).total().count();
    assert!((392..=400).contains(&count), "{count}");
}

#[test]
fn a_stall_shows_as_one_long_operation_of_each_user() {
    // No responses between 1 s and 3 s. The outstanding or next command is answered 10 ms after the stall.
    let stall = |asked: mock::Asked| match asked.at.as_millis() {
        1_000..3_000 => Answer::At(Duration::from_millis(3_010), NtStatus::SUCCESS),
        _ => after_ms(10),
    };
    let run = run_one(&plan(2, 5), &MockServer::new(stall));
    let figures = run.total().figures();
    assert!((600..=604).contains(&figures.count), "{}", figures.count);
    assert_eq!(figures.p99, Some(Nanos(10_000_000)));
    let max = figures.max.unwrap().0;
    assert!((2_000_000_000..=2_010_000_000).contains(&max), "{max}");
    let long = run.intervals.iter().filter(|interval| interval.operations < 10).count();
    assert_eq!(long, 2, "{:?}", run.intervals);
}
