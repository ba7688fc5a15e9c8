//! The engine on a real server: its counts must match the server's, and failures must be reported.

use crate::common::{self, options, samba, user_options};
use smbscope_client::{ClientSession, CreateDisposition, Credentials, Secret, SessionOptions, access, create_options};
use smbscope_lab::{LabServer, LabServerSettings};
use smbscope_load::engine::result::{LoadPointEnd, LoadPointResult, PacingResult};
use smbscope_load::engine::{
    self, Arrivals, ExchangeLog, Hooks, LiveFigures, LoadSchedule, OnFailure, RampPlan, StopFlag, Users,
};
use smbscope_load::prepare::{self, PrepareRequest};
use smbscope_load::workload::{Action, Expected, HandleSlot, Script, ScriptStep, UserSeat, Workload};
use smbscope_model::{CommandGroup, Exchange};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

const DIRECTORY: &str = prepare::DEFAULT_DIRECTORY;

fn plan(users: &str, seconds: u64) -> RampPlan {
    let users: Users = users.parse().unwrap();
    RampPlan {
        users,
        warmup: Duration::from_millis(300),
        duration: Duration::from_secs(seconds),
        ..RampPlan::default()
    }
}

fn prepare_files(workload: &Workload, options: &SessionOptions, users: u32) {
    let files = workload.file_set();
    let (made, within) = (workload.made(), Duration::from_secs(600));
    let request = PrepareRequest {
        directory: DIRECTORY,
        workload: workload.name(),
        files,
        made: &made,
        users,
        sessions: 2,
        within,
    };
    common::run(prepare::prepare(options, &request, &mut |_| {})).unwrap();
}

fn run(workload: &Workload, plan: &RampPlan, options: &SessionOptions, hooks: &mut dyn Hooks) -> Vec<LoadPointResult> {
    let of = plan.users.most();
    let scripts = |number| {
        let seat = UserSeat { number, of, seed: plan.seed, directory: DIRECTORY.to_owned() };
        Box::new(workload.script(&seat)) as Box<dyn Script>
    };
    engine::run(plan, options, &scripts, hooks, &LiveFigures::default(), &StopFlag::new()).unwrap()
}

fn no_operation_was_unexpected(run: &LoadPointResult) {
    for operation in &run.operations {
        assert!(operation.unexpected.is_empty(), "{}: {:?}", operation.name, operation.unexpected);
    }
    assert!(run.failures.is_empty(), "{:?}", run.failures);
}

/// Answered commands by name.
fn commands(run: &LoadPointResult, name: &str) -> u64 {
    run.counted.response_times(|(command, ..)| command.to_string() == name).count()
}

/// Calls a function with the server when the measured part begins.
struct Meanwhile<'a, F: FnMut(&LabServer)>(&'a LabServer, F);

impl<F: FnMut(&LabServer)> Hooks for Meanwhile<'_, F> {
    fn measuring_begins(&mut self) {
        (self.1)(self.0);
    }
}

#[test]
fn an_operation_of_three_commands_is_counted_as_such_at_every_load() {
    let Some(server) = samba(&LabServerSettings::default()) else { return };
    let options = user_options(&server, 0x0311);
    let workload = Workload::builtin("open-read-close").unwrap();
    prepare_files(&workload, &options, 3);
    let runs = run(&workload, &plan("1,3", 2), &options, &mut ());
    assert_eq!(runs.iter().map(|run| run.users).collect::<Vec<_>>(), [1, 3]);
    for run in &runs {
        no_operation_was_unexpected(run);
        assert_eq!((&run.ended, run.pace, run.unanswered), (&LoadPointEnd::Done, PacingResult::Closed, 0));
        let operations = run.operations[0].service.count();
        assert!(operations > 50, "{operations}");
        // Operations across the edges of the measured part have some of their commands outside.
        for name in ["CREATE", "READ", "CLOSE"] {
            assert!(commands(run, name).abs_diff(operations) <= u64::from(run.users), "{name} of {operations}");
        }
        assert_eq!(run.intervals.iter().map(|interval| interval.operations).sum::<u64>(), run.total().count());
        assert!(run.intervals.iter().all(|interval| interval.users == run.users));
        // One byte each.
        assert!(run.bytes_read.abs_diff(operations) <= u64::from(run.users));
        assert!(run.client_cpu.user + run.client_cpu.system > Duration::ZERO && run.client_cpu.busiest > 0.0);
    }
    assert_eq!(runs.iter().map(|run| run.connects.count()).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn the_generated_mix_has_no_unexpected_status() {
    let Some(server) = samba(&LabServerSettings::default()) else { return };
    let options = user_options(&server, 0x0302);
    let workload = Workload::builtin("netbench-like").unwrap();
    prepare_files(&workload, &options, 2);
    let runs = run(&workload, &plan("1,2", 3), &options, &mut ());
    for run in &runs {
        no_operation_was_unexpected(run);
        assert!(run.total().count() > 100 && run.bytes_read > 0 && run.bytes_written > 0);
        assert_eq!(run.ended, LoadPointEnd::Done);
    }
}

#[test]
fn a_stall_of_the_server_shows_in_an_open_loop_and_hides_in_a_closed_one() {
    let Some(server) = samba(&LabServerSettings::default()) else { return };
    let options = user_options(&server, 0x0311);
    let workload = Workload::builtin("echo").unwrap();
    let stall = |server: &LabServer| {
        std::thread::sleep(Duration::from_millis(500));
        server.stall(Duration::from_secs(2));
    };
    let closed = run(&workload, &plan("2", 6), &options, &mut Meanwhile(&server, stall)).remove(0);
    let schedule = LoadSchedule::Open { rate: 100.0, per_user: false, arrivals: Arrivals::Constant };
    let open_plan = RampPlan { schedule, ..plan("2", 6) };
    let open = run(&workload, &open_plan, &options, &mut Meanwhile(&server, stall)).remove(0);
    let milliseconds = |time: Option<smbscope_model::Nanos>| time.unwrap().0 / 1_000_000;
    // Closed loop: each user has one long operation among many.
    let service = closed.operations[0].service.figures();
    assert!(milliseconds(service.max) >= 1_500 && milliseconds(service.p99) < 1_000, "{service:?}");
    // Open loop: 600 operations were due, a third of them in the stall, and those waited up to 2 s.
    let response = open.operations[0].response.as_ref().unwrap().figures();
    let PacingResult::Open { not_begun, .. } = open.pace else { panic!("{:?}", open.pace) };
    assert_eq!(response.count + not_begun, 600);
    assert!(milliseconds(response.p90) >= 900 && milliseconds(response.max) >= 1_500, "{response:?}");
    assert!(milliseconds(response.p50) < 500, "{response:?}");
}

/// Keeps the exchanges of the last load point.
#[derive(Default)]
struct Keep(Vec<Exchange>);

impl Hooks for Keep {
    fn point_ends(&mut self, _run: &LoadPointResult, exchanges: Option<ExchangeLog>) {
        self.0 = exchanges.unwrap().list;
    }
}

#[test]
fn connections_of_a_session_take_turns() {
    let Some(server) = samba(&LabServerSettings::default()) else { return };
    let workload = Workload::builtin("open-read-close").unwrap();
    for compound in [false, true] {
        let options = SessionOptions { compound, ..user_options(&server, 0x0311) };
        prepare_files(&workload, &options, 2);
        let plan = RampPlan { connections_per_session: 3, exchanges: true, ..plan("2", 1) };
        let mut keep = Keep::default();
        let run = run(&workload, &plan, &options, &mut keep).remove(0);
        no_operation_was_unexpected(&run);
        assert_eq!((&run.ended, run.connects.count()), (&LoadPointEnd::Done, 2));
        let exchanges = keep.0;
        let mut flows: BTreeMap<(u64, u16), usize> = BTreeMap::new();
        for exchange in &exchanges {
            let port = exchange.endpoints.client.port();
            *flows.entry((exchange.session_id.unwrap(), port)).or_default() += 1;
        }
        let sessions: BTreeSet<u64> = flows.keys().map(|(session, _)| *session).collect();
        assert_eq!((sessions.len(), flows.len()), (2, 6), "{flows:?}");
        let (least, most) = (flows.values().min().unwrap(), flows.values().max().unwrap());
        assert!(*least > 10 && most - least <= exchanges.len() / 4, "{flows:?}");
    }
    // Before SMB 3 a session has one connection.
    let plan = RampPlan { connections_per_session: 2, ..plan("1", 1) };
    let run = run(&workload, &plan, &user_options(&server, 0x0210), &mut ()).remove(0);
    let LoadPointEnd::Failed(reason) = &run.ended else { panic!("{:?}", run.ended) };
    assert!(reason.contains("SMB 3"), "{reason}");
}

/// Keeps a file open while it thinks.
struct Thinker {
    names: Vec<String>,
    step: usize,
}

impl Script for Thinker {
    fn operations(&self) -> &[String] {
        &self.names
    }

    fn next(&mut self) -> Option<ScriptStep<'_>> {
        self.step += 1;
        let (path, access, share) = ("held", access::READ_DATA | access::WRITE_DATA, 7);
        let disposition = CreateDisposition::OpenIf;
        let (options, attributes) = (create_options::NON_DIRECTORY, 0x80);
        let action = match self.step {
            1 => Action::Open { slot: HandleSlot(0), path, access, share, disposition, options, attributes },
            2 => Action::Think(Duration::from_secs(4)),
            3 => Action::Close(HandleSlot(0)),
            _ => return None,
        };
        let operation = (self.step != 2).then_some(0);
        Some(ScriptStep { action, operation, expected: Expected::Success, completes: self.step == 3, line: None })
    }

    fn restart(&mut self) {
        self.step = 0;
    }
}

#[test]
fn a_user_who_thinks_keeps_nobody_from_a_file() {
    let Some(server) = samba(&LabServerSettings::default()) else { return };
    for dialect in [0x0202, 0x0311] {
        let plan = RampPlan { warmup: Duration::ZERO, ..plan("1", 6) };
        let holder = SessionOptions { leases: true, ..user_options(&server, dialect) };
        let scripts = |_| Box::new(Thinker { names: vec!["hold".to_owned()], step: 0 }) as Box<dyn Script>;
        let mut waited = None;
        let hook = |server: &LabServer| {
            // By now the holder has the file open, and thinks.
            std::thread::sleep(Duration::from_millis(500));
            let other = user_options(server, dialect);
            let began = Instant::now();
            common::run(async {
                let mut other = ClientSession::connect(&other).await.unwrap();
                other.open(&common::create("held")).await.unwrap();
            });
            waited = Some(began.elapsed());
        };
        let mut hooks = Meanwhile(&server, hook);
        let run = engine::run(&plan, &holder, &scripts, &mut hooks, &LiveFigures::default(), &StopFlag::new())
            .unwrap()
            .remove(0);
        no_operation_was_unexpected(&run);
        // Samba waits up to 35 s for the holder's acknowledgement; with the holder's next command it would have come
        // after 3.5 s.
        assert!(waited.unwrap() < Duration::from_secs(2), "{dialect:04x}: {waited:?}");
        assert_eq!((run.unanswered, run.operations[0].service.count()), (0, 1));
        assert!(run.group(CommandGroup::Waiting).count() >= 1, "no break was acknowledged");
    }
}

#[test]
fn a_server_that_is_killed_fails_the_run_and_its_figures_stay() {
    let Some(server) = samba(&LabServerSettings::default()) else { return };
    let workload = Workload::builtin("echo").unwrap();
    let kill = |server: &LabServer| {
        std::thread::sleep(Duration::from_millis(700));
        server.kill();
    };
    let run = run(&workload, &plan("2,4", 20), &user_options(&server, 0x0311), &mut Meanwhile(&server, kill)).remove(0);
    assert!(matches!(&run.ended, LoadPointEnd::Failed(_)), "{:?}", run.ended);
    assert!(run.total().count() > 20 && run.duration < Duration::from_secs(10), "{:?}", run.duration);
    assert_eq!(run.failures.values().sum::<u64>(), 2, "{:?}", run.failures);
}

#[test]
fn a_wrong_password_is_tried_once_and_said() {
    let Some(server) = samba(&LabServerSettings::default()) else { return };
    let password = Secret::new("wrong".to_owned());
    let credentials = Credentials::Ntlm { domain: String::new(), user: server.user().to_owned(), password };
    let options = SessionOptions { credentials, ..options(&server, 0x0311) };
    let on_failure = OnFailure::Reconnect { delay: Duration::from_millis(10) };
    let plan = RampPlan { on_failure, ..plan("20", 10) };
    let runs = run(&Workload::builtin("echo").unwrap(), &plan, &options, &mut ());
    let LoadPointEnd::Failed(reason) = &runs[0].ended else { panic!("{:?}", runs[0].ended) };
    assert!(reason.contains("STATUS_LOGON_FAILURE"), "{reason}");
    assert!(runs[0].failures.values().sum::<u64>() <= plan.connects.at_once as u64, "{:?}", runs[0].failures);
}

#[test]
fn a_read_only_share_fails_the_run_where_files_are_made() {
    let Some(server) = samba(&LabServerSettings { read_only: true, ..LabServerSettings::default() }) else { return };
    std::fs::create_dir_all(server.share_folder().join(DIRECTORY)).unwrap();
    let workload = Workload::builtin("netbench-like").unwrap();
    let runs = run(&workload, &plan("2", 10), &user_options(&server, 0x0311), &mut ());
    let LoadPointEnd::Failed(reason) = &runs[0].ended else { panic!("{:?}", runs[0].ended) };
    let refused = ["STATUS_ACCESS_DENIED", "STATUS_MEDIA_WRITE_PROTECTED"];
    assert!(reason.starts_with("setting up") && refused.iter().any(|status| reason.contains(status)), "{reason}");
}
