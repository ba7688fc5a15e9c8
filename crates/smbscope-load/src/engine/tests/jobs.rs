//! Jobs: complete passes of a script with an end.

use super::mock::{Answer, after_ms};
use super::*;
use crate::engine::jobs::JobSummary;
use smbscope_model::Nanos;

const MS: i64 = 1_000_000;

fn server() -> MockServer {
    MockServer::new(|_| after_ms(10))
}

fn jobs(run: &LoadPointResult) -> &JobSummary {
    run.jobs.as_ref().expect("the script has an end")
}

fn elapsed_ms(run: &LoadPointResult) -> Vec<u128> {
    jobs(run).list.iter().map(|job| job.elapsed.as_millis()).collect()
}

#[test]
fn a_job_lasts_from_its_first_request_to_its_last_response_and_think_time_is_no_waiting() {
    // Five operations of 10 ms with 90 ms between them: 410 ms, 50 of them waiting. The next job starts 90 ms later.
    let schedule = LoadSchedule::Closed { think: Duration::from_millis(90) };
    let limits = LoadPointLimits { passes: Some(3), ..LoadPointLimits::default() };
    let plan = RampPlan { schedule, limits, ..plan(2, 60) };
    let runs = runs(&plan, &server(), |number| Reads::new(1, number).in_passes_of(5));
    let jobs = jobs(&runs[0]);
    assert_eq!((elapsed_ms(&runs[0]), jobs.unfinished), (vec![410; 6], 0));
    let figures = jobs.elapsed.figures();
    assert_eq!((figures.count, figures.mean, figures.stddev), (6, Some(Nanos(410 * MS)), Some(Nanos(0))));
    assert_eq!((jobs.sum.waited.as_millis(), jobs.sum.elapsed.as_millis()), (6 * 50, 6 * 410));
    assert_eq!((jobs.sum.bytes_read, jobs.list[0].bytes_read), (6 * 5 * 4096, 5 * 4096));
    let mut sessions: Vec<u32> = jobs.list.iter().map(|job| job.session).collect();
    sessions.sort_unstable();
    assert_eq!(sessions, [0, 0, 0, 1, 1, 1]);
    // The load point ends with the last job.
    assert!(runs[0].duration < Duration::from_millis(1_600), "{:?}", runs[0].duration);
}

#[test]
fn every_load_point_measures_as_many_whole_passes_as_were_asked_for() {
    let limits = LoadPointLimits { passes: Some(2), ..LoadPointLimits::default() };
    let plan = RampPlan { users: "1,3".parse().unwrap(), limits, ..plan(1, 60) };
    let runs = runs(&plan, &server(), |number| Reads::new(1, number).in_passes_of(4));
    assert_eq!(elapsed_ms(&runs[0]), [40; 2]);
    assert_eq!(elapsed_ms(&runs[1]), [40; 6]);
    assert_eq!(runs.iter().map(|run| run.operations[0].service.count()).collect::<Vec<_>>(), [8, 24]);
}

#[test]
fn what_the_end_cuts_off_is_no_job_and_counts_in_no_later_load_point() {
    // Jobs of 300 ms for 1 s: three and a part. The second load point continues with the rest, which does not count.
    let plan = RampPlan { users: "1,1".parse().unwrap(), ..plan(1, 1) };
    let runs = runs(&plan, &server(), |number| Reads::new(1, number).in_passes_of(30));
    assert_eq!((elapsed_ms(&runs[0]), jobs(&runs[0]).unfinished), (vec![300; 3], 1));
    assert_eq!((elapsed_ms(&runs[1]), jobs(&runs[1]).unfinished), (vec![300; 2], 1));
}

#[test]
fn jobs_that_begin_in_the_warm_up_do_not_count() {
    // Jobs of 300 ms and a warm-up of 500 ms: the third is the first to start in the measured part.
    let limits = LoadPointLimits { passes: Some(2), ..LoadPointLimits::default() };
    let plan = RampPlan { warmup: Duration::from_millis(500), limits, ..plan(1, 60) };
    let runs = runs(&plan, &server(), |number| Reads::new(1, number).in_passes_of(30));
    assert_eq!((elapsed_ms(&runs[0]), jobs(&runs[0]).unfinished), (vec![300; 2], 0));
    assert_eq!(runs[0].operations[0].service.count(), 10 + 60);
}

#[test]
fn a_job_whose_session_breaks_is_unfinished_and_the_next_one_begins_anew() {
    // The 15th command breaks the first connection, in the second job.
    let server = MockServer::new(|asked| match (asked.connection, asked.command) {
        (0, Some(14)) => Answer::Break,
        _ => after_ms(10),
    });
    let limits = LoadPointLimits { passes: Some(2), ..LoadPointLimits::default() };
    let on_failure = OnFailure::Reconnect { delay: Duration::from_millis(100) };
    let plan = RampPlan { limits, on_failure, ..plan(1, 60) };
    let runs = runs(&plan, &server, |number| Reads::new(1, number).in_passes_of(10));
    assert_eq!((elapsed_ms(&runs[0]), jobs(&runs[0]).unfinished), (vec![100; 2], 1));
}

#[test]
fn a_script_without_an_end_has_no_jobs() {
    assert!(run_one(&plan(1, 1), &server()).jobs.is_none());
}
