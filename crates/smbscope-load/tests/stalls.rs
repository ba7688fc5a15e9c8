//! A server that stalls for a second under an open loop: the users' wait counts from the intended starts, and the stall
//! is reported with its time and length.
//!
//! At 200 operations per second for 4 s, 800 are due, 200 of them during the stall. They wait from 1 s down to nothing,
//! and those after them until the server has caught up: 25% of all operations wait up to 1 s. So the 80th percentile is
//! above 100 ms and p95 (rank 760 of 800: the 160th shortest of these 200) about 0.8 s, while in the service time only
//! the few outstanding operations (one per user) show the stall.

use smbscope_client::SessionOptions;
use smbscope_lab::{LabServer, LabServerSettings};
use smbscope_load::engine::result::{LoadPointResult, PacingResult};
use smbscope_load::engine::{self, Arrivals, Criterion, Hooks, LiveFigures, LoadSchedule, RampPlan, StopFlag, Users};
use smbscope_load::workload::{Script as UserScript, UserSeat, Workload};
use smbscope_model::{Dialect, Nanos};
use smbscope_testkit::server::{Fault, Script, ScriptedServer};
use std::time::{Duration, Instant};

const DIALECTS: [Dialect; 2] = [Dialect::NtLm012, Dialect::Smb2(0x0311)];
const STALL: Duration = Duration::from_secs(1);

fn plan(schedule: LoadSchedule) -> RampPlan {
    RampPlan {
        users: Users::one(8),
        schedule,
        warmup: Duration::from_millis(500),
        duration: Duration::from_secs(4),
        ..RampPlan::default()
    }
}

fn open(rate: f64) -> LoadSchedule {
    LoadSchedule::Open { rate, per_user: false, arrivals: Arrivals::Constant }
}

fn run(plan: &RampPlan, options: &SessionOptions, hooks: &mut dyn Hooks) -> Vec<LoadPointResult> {
    let workload = Workload::builtin("echo").expect("it is built in");
    let scripts = |number| -> Box<dyn UserScript> {
        Box::new(workload.script(&UserSeat { number, of: 8, seed: 1, directory: "bench".to_owned() }))
    };
    engine::run(plan, options, &scripts, hooks, &LiveFigures::default(), &StopFlag::new()).expect("it runs")
}

/// Stops the scripted server for a second, a second after the measured part begins.
fn stalling(dialect: Dialect) -> (ScriptedServer, SessionOptions) {
    let server = ScriptedServer::start(Script::new()).expect("a free port");
    let options = SessionOptions { dialect, ..SessionOptions::new("localhost", server.address(), "share") };
    (server, options)
}

struct StallAtOne<'a>(&'a ScriptedServer);

impl Hooks for StallAtOne<'_> {
    fn measuring_begins(&mut self) {
        let rule = Fault::Stall(STALL).always().between(Duration::from_secs(1), Duration::from_secs(3)).once();
        self.0.add(rule);
    }
}

/// Asserts that the stall is reported with about the right time and length.
fn assert_named(run: &LoadPointResult, what: &str) {
    let [stall] = run.stalls[..] else { panic!("{what}: {:?}", run.stalls) };
    let after = stall.start.0 - run.started.0;
    assert!((500_000_000..2_500_000_000).contains(&after), "{what}: {after} ns after the start");
    assert!(stall.length >= STALL * 9 / 10 && stall.length < STALL * 3, "{what}: {:?}", stall.length);
}

#[test]
fn in_an_open_loop_a_stall_counts_from_when_operations_were_due() {
    for dialect in DIALECTS {
        let (server, options) = stalling(dialect);
        let runs = run(&plan(open(200.0)), &options, &mut StallAtOne(&server));
        let [point] = &runs[..] else { panic!("one load point") };
        assert_named(point, &dialect.to_string());
        let due = point.due.as_ref().expect("it is an open loop").figures();
        assert!((750..=800).contains(&due.count), "{} operations", due.count);
        assert!(due.p95 > Some(Nanos(400_000_000)), "{dialect}: {due:?}");
        let server = point.total().figures();
        assert!(server.p95 < Some(Nanos(100_000_000)), "{dialect}: {server:?}");
        // Criteria evaluate the total from the users' view.
        let criterion: Criterion = "p95(total) < 100ms".parse().expect("a criterion");
        assert!(!criterion.judge(point).met, "{:?}", criterion.judge(point));
    }
}

#[test]
fn in_a_closed_loop_a_stall_is_named_too() {
    for dialect in DIALECTS {
        let (server, options) = stalling(dialect);
        let closed = LoadSchedule::Closed { think: Duration::from_millis(5) };
        let runs = run(&plan(closed), &options, &mut StallAtOne(&server));
        assert_named(&runs[0], &dialect.to_string());
        assert!(runs[0].due.is_none());
    }
}

#[test]
fn a_server_that_does_not_stall_is_not_said_to() {
    for schedule in [open(200.0), LoadSchedule::Closed { think: Duration::from_millis(5) }] {
        let (_server, options) = stalling(Dialect::Smb2(0x0311));
        let begun = Instant::now();
        let runs = run(&plan(schedule), &options, &mut ());
        let late = runs[0].client_cpu.late_p99;
        // A stall of this machine itself shows in its wake-up delays.
        assert!(runs[0].stalls.is_empty() || late > Some(Nanos(50_000_000)), "{:?} {late:?}", runs[0].stalls);
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
}

#[test]
fn load_points_over_rates_have_the_same_users_and_their_own_rate() {
    let (_server, options) = stalling(Dialect::Smb2(0x0311));
    let plan = RampPlan { rates: vec![50, 200], duration: Duration::from_secs(1), ..plan(open(50.0)) };
    let runs = run(&plan, &options, &mut ());
    let rates: Vec<(u32, PacingResult)> = runs.iter().map(|run| (run.users, run.pace)).collect();
    let [(8, PacingResult::Open { rate: 50.0, .. }), (8, PacingResult::Open { rate: 200.0, .. })] = rates[..] else {
        panic!("{rates:?}");
    };
    let due: Vec<u64> = runs.iter().map(|run| run.due.as_ref().map_or(0, |due| due.count())).collect();
    assert!((45..=50).contains(&due[0]) && (180..=200).contains(&due[1]), "{due:?}");
}

#[test]
fn a_rate_of_each_user_grows_with_the_users() {
    let (_server, options) = stalling(Dialect::Smb2(0x0311));
    let schedule = LoadSchedule::Open { rate: 20.0, per_user: true, arrivals: Arrivals::Constant };
    let users = "2,8".parse().expect("users");
    let plan = RampPlan { users, duration: Duration::from_secs(1), ..plan(schedule) };
    let runs = run(&plan, &options, &mut ());
    let due: Vec<u64> = runs.iter().map(|run| run.due.as_ref().map_or(0, |due| due.count())).collect();
    assert!((35..=40).contains(&due[0]) && (140..=160).contains(&due[1]), "{due:?}");
}

#[test]
fn the_capacity_over_rates_is_a_rate() {
    // Every response takes 10 ms, and two users wait for theirs: at most 200 operations per second are possible.
    let script = Script::new().rule(Fault::Delay(Duration::from_millis(10)).on(smbscope_wire::smb2::Smb2Command::ECHO));
    let server = ScriptedServer::start(script).expect("a free port");
    let options = SessionOptions::new("localhost", server.address(), "share");
    let plan = RampPlan {
        users: Users::one(2),
        rates: vec![50, 1_000],
        warmup: Duration::from_millis(200),
        duration: Duration::from_secs(1),
        ..plan(open(50.0))
    };
    let criterion: Criterion = "p50(total) < 60ms".parse().expect("a criterion");
    let search = engine::Search { first: 50, most: 1_000, rates: true, precision: 0.3 };
    let workload = Workload::builtin("echo").expect("it is built in");
    let scripts = |number| -> Box<dyn UserScript> {
        Box::new(workload.script(&UserSeat { number, of: 2, seed: 1, directory: "bench".to_owned() }))
    };
    let run = engine::EngineRun {
        plan: &plan,
        fleet: None,
        options: &options,
        scripts: &scripts,
        hooks: &mut (),
        live: &LiveFigures::default(),
        stop: &StopFlag::new(),
    };
    let found = run.find_capacity(&criterion, search).expect("it runs");
    let engine::Knee::At(rate) = found.users else { panic!("{:?}", found.users) };
    // A busy machine may find less.
    assert!((50..=260).contains(&rate), "{rate}/s");
    assert!(found.tried.iter().all(|tried| tried.run.users == 2));
}

/// Stops and continues all processes of a private Samba.
struct Stopper<'a>(&'a LabServer, Option<std::thread::JoinHandle<()>>);

impl Hooks for Stopper<'_> {
    fn measuring_begins(&mut self) {
        let pids: Vec<String> = self.0.pids().iter().map(u32::to_string).collect();
        self.1 = Some(std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs(1));
            signal("-STOP", &pids);
            std::thread::sleep(STALL);
            signal("-CONT", &pids);
        }));
    }

    fn measuring_ends(&mut self) {
        if let Some(thread) = self.1.take() {
            thread.join().expect("it only sends signals");
        }
    }
}

fn signal(signal: &str, pids: &[String]) {
    let status = std::process::Command::new("kill").arg(signal).args(pids).status();
    assert!(status.is_ok(), "{status:?}");
}

#[test]
fn a_samba_that_is_stopped_for_a_second_is_named_and_counts_from_when_operations_were_due() {
    if let Err(reason) = smbscope_lab::available() {
        smbscope_testkit::skip::missing(reason);
        return;
    }
    let server =
        LabServer::start(&LabServerSettings { guests: true, ..LabServerSettings::default() }).expect("a lab server");
    for dialect in DIALECTS {
        let options = SessionOptions { dialect, ..SessionOptions::new("127.0.0.1", server.address(), server.share()) };
        for schedule in [open(200.0), LoadSchedule::Closed { think: Duration::from_millis(5) }] {
            let runs = run(&plan(schedule), &options, &mut Stopper(&server, None));
            let what = format!("{dialect} {schedule:?}");
            let longest = runs[0].stalls.iter().max_by_key(|stall| stall.length);
            let length = longest.unwrap_or_else(|| panic!("{what}: no stall")).length;
            assert!(length >= STALL * 9 / 10 && length < STALL * 3, "{what}: {length:?}");
            if let Some(due) = &runs[0].due {
                assert!(due.figures().p95 > Some(Nanos(400_000_000)), "{what}: {:?}", due.figures());
            }
        }
    }
}
