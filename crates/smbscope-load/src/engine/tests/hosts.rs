//! Load from several hosts, each on a thread of this process, with messages as bytes.

use super::mock::{Answer, MockServer, Reads, after_ms};
use super::*;
use crate::engine::hosts::run_team;
use crate::engine::load::with_hosts;
use crate::engine::result::HostResult;
use crate::workload::Workload;
use smbscope_client::SessionOptions;
use smbscope_stats::{Summary, SummaryPrecision};
use smbscope_wire::status::NtStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// A plan with two workers per host.
fn plan_of(users: &str, milliseconds: u64) -> RampPlan {
    RampPlan {
        users: users.parse().unwrap(),
        duration: Duration::from_millis(milliseconds),
        interval: Duration::from_millis(100),
        workers: NonZeroUsize::new(2),
        ..plan(1, 1)
    }
}

/// A host with the mock server. It is lost once `dies` returns true.
fn host(name: &str, server: &MockServer, dies: impl Fn() -> bool + Send + 'static) -> Host {
    let server = server.clone();
    let mut load = LoadHost::with(Box::new(move |assignment, _, inbox| {
        let seed = assignment.plan.seed;
        let scripts = |number| Box::new(Reads::new(seed, number)) as Box<dyn Script>;
        run_team(assignment, server.clone(), &scripts, inbox);
    }));
    let call =
        move |request: &[u8]| if dies() { Err("its process ended".to_owned()) } else { Ok(load.answer(request)) };
    Host::new(name.to_owned(), true, call)
}

fn fleet(hosts: Vec<Host>, on_lost: OnLostHost) -> Fleet {
    let workload = Workload::builtin("echo").unwrap().travelling().unwrap();
    Fleet { hosts, on_lost, work: LoadWork { workload, of: 16, directory: "bench".to_owned() } }
}

fn runs_on(plan: &RampPlan, fleet: Fleet) -> Vec<LoadPointResult> {
    let (live, stop) = (LiveFigures::default(), StopFlag::new());
    runs_until(plan, fleet, &live, &stop)
}

fn runs_until(plan: &RampPlan, fleet: Fleet, live: &LiveFigures, stop: &StopFlag) -> Vec<LoadPointResult> {
    let options = SessionOptions::new("server", "127.0.0.1:445".parse().unwrap(), "share");
    let surroundings = Surroundings { hooks: &mut (), live, stop };
    let scripts = |number| Box::new(Reads::new(1, number)) as Box<dyn Script>;
    with_hosts(plan, fleet, &options, &scripts, surroundings, |engine| ramp(plan, engine)).unwrap()
}

fn two(server: &MockServer) -> Vec<Host> {
    ["a", "b"].map(|name| host(name, server, || false)).into()
}

/// Commands, bytes read, sessions and response times of all hosts.
fn sum(hosts: &[HostResult]) -> (u64, u64, u64, Summary) {
    let mut times = Summary::new(SummaryPrecision::ROW);
    hosts.iter().for_each(|host| times.merge(&host.times));
    let add = |of: fn(&HostResult) -> u64| hosts.iter().map(of).sum::<u64>();
    (add(|host| host.commands), add(|host| host.bytes_read), add(|host| host.sessions.into()), times)
}

#[test]
fn what_is_merged_is_the_sum_of_the_hosts() {
    let server = MockServer::new(|_| after_ms(5));
    let plan = RampPlan { exchanges: true, ..plan_of("6", 600) };
    let [run] = &runs_on(&plan, fleet(two(&server), OnLostHost::Continue))[..] else { panic!("one load point") };
    let (commands, bytes_read, sessions, times) = sum(&run.hosts);
    assert_eq!(run.ended, LoadPointEnd::Done);
    assert_eq!((commands, bytes_read, sessions), (run.answered(), run.bytes_read, 6));
    assert_eq!(times, run.total());
    assert_eq!(run.intervals.iter().map(|interval| interval.operations).sum::<u64>(), commands);
    assert_eq!(run.intervals.iter().map(|interval| interval.users).max(), Some(6));
    // An operation counts at its intended start, slightly before its command is sent.
    assert!(run.operations[0].service.count().abs_diff(commands) <= 6, "{:?}", run.operations[0].service.count());
    assert_eq!(run.connects.count(), 6);
    // 6 users, each with a response every 5 ms or slightly later, for 0.6 s.
    assert!((360..=732).contains(&commands), "{commands}");
    let names: Vec<_> = run.hosts.iter().map(|host| (host.name.as_str(), host.sessions)).collect();
    assert_eq!(names, [("a", 3), ("b", 3)]);
    // All hosts share the clock of this process, read at different moments.
    let clocks: Vec<_> = run.hosts.iter().map(|host| host.clock).collect();
    assert!(clocks.iter().all(|clock| clock.ahead.0.abs() <= clock.bound.0 + 1_000_000), "{clocks:?}");
    assert!(run.hosts.iter().all(|host| host.late_by.is_zero() && host.lost.is_none()));
}

#[test]
fn every_session_is_that_of_one_host_as_among_threads_of_one_process() {
    // Each session reads at offsets determined by its number.
    let places = |server: &MockServer| {
        let log = server.log();
        let first = |connection| log.iter().find(|(of, action)| *of == connection && action.contains("Read"));
        let mut all: Vec<_> = (0..5).filter_map(first).map(|(_, action)| action.clone()).collect();
        all.sort();
        all
    };
    let (one, several) = (MockServer::new(|_| after_ms(5)), MockServer::new(|_| after_ms(5)));
    runs(&plan(5, 1), &one, |number| Reads::new(1, number));
    runs_on(&plan_of("5", 200), fleet(two(&several), OnLostHost::Continue));
    assert_eq!(places(&one), places(&several));
    assert_eq!(places(&one).len(), 5);
}

#[test]
fn a_limit_of_operations_is_kept_exactly_and_the_ramp_goes_on() {
    let server = MockServer::new(|_| after_ms(2));
    let limits = LoadPointLimits { operations: Some(101), ..LoadPointLimits::default() };
    let plan = RampPlan { limits, ..plan_of("3,5", 20_000) };
    let runs = runs_on(&plan, fleet(two(&server), OnLostHost::Continue));
    let shown: Vec<_> = runs.iter().map(|run| (run.users, run.total().count(), run.ended.clone())).collect();
    assert_eq!(shown, [(3, 101, LoadPointEnd::Done), (5, 101, LoadPointEnd::Done)]);
    assert!(runs[0].duration < Duration::from_secs(2), "{:?}", runs[0].duration);
}

#[test]
fn errors_of_all_hosts_count_for_a_limit() {
    let server = MockServer::new(|_| Answer::After(Duration::from_millis(5), NtStatus::ACCESS_DENIED));
    let limits = LoadPointLimits { errors: Some(ErrorLimit::Count(40)), ..LoadPointLimits::default() };
    let runs = runs_on(&RampPlan { limits, ..plan_of("4,8", 20_000) }, fleet(two(&server), OnLostHost::Continue));
    assert_eq!(runs.len(), 1);
    let LoadPointEnd::Stopped(why) = &runs[0].ended else { panic!("{:?}", runs[0].ended) };
    assert!(why.contains("operations failed, the last one with STATUS_ACCESS_DENIED"), "{why}");
    assert!(runs[0].duration < Duration::from_secs(3), "{:?}", runs[0].duration);
}

#[test]
fn an_interrupted_run_keeps_what_all_hosts_have() {
    let server = MockServer::new(|_| after_ms(5));
    let (live, stop) = (LiveFigures::default(), StopFlag::new());
    let begun = Instant::now();
    let runs = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(1_200));
            let seen = live.look();
            assert!(seen.sessions == 4 && seen.commands > 0 && seen.phase == EnginePhase::Measuring, "{seen:?}");
            stop.stop();
        });
        runs_until(&plan_of("4,8", 60_000), fleet(two(&server), OnLostHost::Continue), &live, &stop)
    });
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert_eq!((runs.len(), &runs[0].ended), (1, &LoadPointEnd::Interrupted));
    assert!(runs[0].total().count() > 0 && runs[0].duration < Duration::from_secs(5), "{:?}", runs[0].duration);
    assert_eq!(sum(&runs[0].hosts).0, runs[0].answered());
}

/// Two hosts, the second of which is lost in the middle of the first load point.
fn with_a_loss(on_lost: OnLostHost) -> Vec<LoadPointResult> {
    let server = MockServer::new(|_| after_ms(5));
    let looks = Arc::new(AtomicU64::new(0));
    let dies = move || looks.fetch_add(1, Relaxed) >= 16;
    let hosts = vec![host("a", &server, || false), host("b", &server, dies)];
    runs_on(&plan_of("5,6", 1_500), fleet(hosts, on_lost))
}

#[test]
fn a_host_that_is_lost_is_told_and_nothing_else_is() {
    let runs = with_a_loss(OnLostHost::Continue);
    assert_eq!(runs.iter().map(|run| &run.ended).collect::<Vec<_>>(), [&LoadPointEnd::Done, &LoadPointEnd::Done]);
    let [a, b] = &runs[0].hosts[..] else { panic!("two hosts") };
    let lost = b.lost.as_ref().expect("b was lost");
    assert_eq!((b.sessions, b.commands, lost.why.as_str()), (2, 0, "its process ended"));
    assert!(lost.at > runs[0].started && lost.commands > 0, "{lost:?}");
    assert_eq!(runs[0].failures, [("the load host b was lost: its process ended".to_owned(), 2)].into());
    assert_eq!((a.sessions, a.commands), (3, runs[0].answered()));
    assert_eq!(a.times, runs[0].total());
    // In the next load point the other host has all users.
    let hosts: Vec<_> = runs[1].hosts.iter().map(|host| (host.name.as_str(), host.sessions, host.commands)).collect();
    assert_eq!(hosts, [("a", 6, runs[1].answered())]);
    assert_eq!(runs[1].intervals.iter().map(|interval| interval.users).max(), Some(6));
}

#[test]
fn a_host_that_is_lost_ends_the_run_where_that_is_asked_for() {
    let runs = with_a_loss(OnLostHost::Stop);
    let why = "the load host b was lost: its process ended".to_owned();
    assert_eq!(runs.iter().map(|run| run.ended.clone()).collect::<Vec<_>>(), [LoadPointEnd::Stopped(why)]);
    assert!(runs[0].hosts[0].commands > 0 && runs[0].duration < Duration::from_millis(1_500));
}

#[test]
fn without_any_host_the_run_has_failed() {
    let server = MockServer::new(|_| after_ms(5));
    let looks = Arc::new(AtomicU64::new(0));
    let dies = move || looks.fetch_add(1, Relaxed) >= 14;
    let runs = runs_on(&plan_of("2,4", 5_000), fleet(vec![host("a", &server, dies)], OnLostHost::Continue));
    let why = "the load host a was lost: its process ended; there is no other".to_owned();
    assert_eq!(runs.iter().map(|run| run.ended.clone()).collect::<Vec<_>>(), [LoadPointEnd::Failed(why)]);
}

#[test]
fn what_a_host_is_sent_shows_no_password() {
    use smbscope_client::{Credentials, Secret};
    let password = Secret::new("correct horse".to_owned());
    let credentials = Credentials::Ntlm { domain: String::new(), user: "ann".to_owned(), password };
    let options =
        SessionOptions { credentials, ..SessionOptions::new("server", "127.0.0.1:445".parse().unwrap(), "share") };
    assert!(!format!("{options:?}").contains("correct"));
    assert!(toml::to_string(&options).is_err_and(|error| error.to_string().contains("written to no text")));
}
