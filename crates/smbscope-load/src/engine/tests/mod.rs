//! The engine on a mock server in simulated time. Expected values are computed by hand.

mod capacity;
mod ends;
mod hosts;
mod mock;

use super::hooks::Surroundings;
use super::load::{Engine, LocalUsers, with_engine};
use super::*;
use mock::{Answer, MockServer, Reads, after_ms};
use result::LoadPointResult;
use smbscope_model::{CommandGroup, Nanos};
use smbscope_wire::status::NtStatus;
use std::num::NonZeroUsize;
use std::time::Duration;

/// A short plan with one worker, so that there is one clock.
fn plan(users: u32, seconds: u64) -> RampPlan {
    RampPlan {
        users: Users::one(users),
        warmup: Duration::ZERO,
        duration: Duration::from_secs(seconds),
        workers: NonZeroUsize::new(1),
        // All connect at once.
        connects: Connects { rate: 1e9, at_once: 1_000 },
        ..RampPlan::default()
    }
}

fn runs(plan: &RampPlan, server: &MockServer, scripts: impl Fn(u32) -> Reads + Sync) -> Vec<LoadPointResult> {
    with(plan, server, scripts, &mut (), |engine| ramp(plan, engine))
}

fn with<R>(
    plan: &RampPlan,
    server: &MockServer,
    scripts: impl Fn(u32) -> Reads + Sync,
    hooks: &mut dyn Hooks,
    ramp: impl FnOnce(&mut Engine<'_>) -> R,
) -> R {
    let (live, stop) = (LiveFigures::default(), StopFlag::new());
    let surroundings = Surroundings { hooks, live: &live, stop: &stop };
    let scripts = |number| Box::new(scripts(number)) as Box<dyn Script>;
    with_engine(plan, plan.users.most(), simulated(server, &scripts), surroundings, ramp).unwrap()
}

fn simulated<'a>(server: &MockServer, scripts: Scripts<'a>) -> LocalUsers<'a, MockServer> {
    LocalUsers { connector: server.clone(), scripts, time: Time::Simulated }
}

fn run_one(plan: &RampPlan, server: &MockServer) -> LoadPointResult {
    let seed = plan.seed;
    let mut runs = runs(plan, server, |number| Reads::new(seed, number));
    assert_eq!(runs.len(), 1);
    runs.remove(0)
}

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

/// Two threads: the first asks twice, the second awaits that and 5 ms more.
const TWO_THREADS: &str = r#"
name = "two"
[recorded]
commands = 3
repeats = true
[[recorded.clients]]
files = ""
threads = [
  "QUERY_FS_INFORMATION 259 SUCCESS\nQUERY_FS_INFORMATION 259 SUCCESS\n",
  "Await 1 2 SUCCESS\nSleep 5000 SUCCESS\nQUERY_FS_INFORMATION 259 SUCCESS\n",
]
"#;

/// Two threads share four tasks of one command each.
const POOL: &str = r#"
name = "pool"
[recorded]
commands = 5
repeats = false
[[recorded.clients]]
files = ""
threads = ["QUERY_FS_INFORMATION 259 SUCCESS\n", ""]
[[recorded.clients.pools]]
threads = [1, 2]
tasks = [
  "QUERY_FS_INFORMATION 259 SUCCESS\n",
  "QUERY_FS_INFORMATION 259 SUCCESS\n",
  "QUERY_FS_INFORMATION 259 SUCCESS\n",
  "QUERY_FS_INFORMATION 259 SUCCESS\n",
]
"#;

/// Runs a recording of one client with two threads, on a server that takes 10 ms. Returns for each command whether it
/// is of the first thread, and when it was sent, in ms.
fn recorded_client(text: &str, passes: u32) -> Vec<(bool, i64)> {
    let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
    std::fs::write(file.path(), text).unwrap();
    let workload = crate::workload::Workload::load(file.path()).unwrap();
    let seat = |number| crate::workload::UserSeat { number, of: 2, seed: 1, directory: "bench".to_owned() };
    let asked = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let server = MockServer::new({
        let asked = asked.clone();
        move |command: mock::Asked| {
            asked.lock().unwrap().push((command.connection, command.at.as_millis() as i64));
            after_ms(10)
        }
    });
    let sessions = workload.recorded_sessions().unwrap().clone();
    assert_eq!(sessions.most(), 2);
    let limits = LoadPointLimits { passes: Some(passes), ..LoadPointLimits::default() };
    let plan = RampPlan { sessions, limits, ..plan(1, 10) };
    let (live, stop) = (LiveFigures::default(), StopFlag::new());
    let surroundings = Surroundings { hooks: &mut (), live: &live, stop: &stop };
    let scripts = |number| Box::new(workload.script(&seat(number))) as Box<dyn Script>;
    let sessions = plan.sessions.of_users(1);
    let runs =
        with_engine(&plan, sessions, simulated(&server, &scripts), surroundings, |engine| ramp(&plan, engine)).unwrap();
    assert_eq!((runs.len(), &runs[0].ended), (1, &LoadPointEnd::Done));
    let asked = asked.lock().unwrap().clone();
    // The first thread's first two commands remove and make the user's directory.
    let (first, begin) = (asked[0].0, asked[2].1);
    assert_eq!(runs[0].total().count(), asked.len() as u64 - 2);
    asked[2..].iter().map(|(connection, at)| (*connection == first, *at - begin)).collect()
}

#[test]
fn threads_of_a_recorded_client_await_each_other_and_the_end_of_a_pass() {
    // 0 and 10 ms; 5 ms after the 20th, until the 35th; and again.
    let expected = [(true, 0), (true, 10), (false, 25), (true, 35), (true, 45), (false, 60)];
    assert_eq!(recorded_client(TWO_THREADS, 2), expected);
}

#[test]
fn the_next_free_thread_takes_the_next_task_of_a_pool() {
    // The second thread is free at once and takes the first task; from 10 ms on, both take one each.
    let mut found = recorded_client(POOL, 1);
    found.sort_by_key(|(is_first, at)| (*at, !is_first));
    assert_eq!(found, [(true, 0), (false, 0), (true, 10), (false, 10), (true, 20)]);
}
