use super::*;
use smbscope_load::engine;
use smbscope_load::engine::result::{ClientCpuUsage, IntervalResult, OperationResult};
use smbscope_model::{Command, Endpoints, Exchange, FlowId, ResponseStatus, Timestamp};
use smbscope_stats::Aggregator;
use smbscope_wire::smb2;
use smbscope_wire::status::NtStatus;
use std::time::Duration;

pub(crate) const READ: Command = Command::Smb2(smb2::Smb2Command::READ);

pub(crate) fn exchange(client: u16, command: Command, id: u64, start: i64, length: i64) -> Exchange {
    Exchange {
        flow: FlowId(client.into()),
        endpoints: Endpoints { client: ([127, 0, 0, 1], 40_000 + client).into(), server: ([127, 0, 0, 1], 445).into() },
        command,
        message_id: Some(id),
        status: Some(ResponseStatus::Nt(NtStatus::SUCCESS)),
        ..smbscope_testkit::exchange::read(start, length)
    }
}

fn summary(values: &[i64]) -> Summary {
    let mut summary = Summary::new(SummaryPrecision::ROW);
    values.iter().for_each(|value| summary.record(Nanos(*value)));
    summary
}

/// Two reads, a failed create, an attribute query and a directory listing, in ten seconds.
pub(crate) fn run(users: u32) -> LoadPointResult {
    let missing = NtStatus::OBJECT_NAME_NOT_FOUND;
    let started = Timestamp(871_291_800_000_000_000);
    let mut counted = Aggregator::new();
    let mut count = |code, group, length, status| {
        let exchange = exchange(1, Command::Smb2(code), 1, started.0, length);
        counted.record(&Exchange { group, status: Some(ResponseStatus::Nt(status)), ..exchange });
    };
    count(smb2::Smb2Command::READ, CommandGroup::Read, 100, NtStatus::SUCCESS);
    count(smb2::Smb2Command::READ, CommandGroup::Read, 300, NtStatus::SUCCESS);
    count(smb2::Smb2Command::CREATE, CommandGroup::OpenClose, 50, missing);
    count(smb2::Smb2Command::QUERY_INFO, CommandGroup::Attributes, 10, NtStatus::SUCCESS);
    count(smb2::Smb2Command::QUERY_DIRECTORY, CommandGroup::Directory, 30, NtStatus::SUCCESS);
    LoadPointResult {
        users,
        started,
        duration: Duration::from_secs(10),
        warmup: Duration::from_secs(2),
        counted,
        due: Some(summary(&[150, 900])),
        operations: vec![OperationResult {
            name: "Read it".into(),
            service: summary(&[150, 250]),
            response: Some(summary(&[150, 900])),
            unexpected: [(missing, 1)].into(),
        }],
        bytes_read: 8_192,
        bytes_written: 0,
        intervals: vec![IntervalResult {
            start: started,
            users,
            operations: 5,
            errors: 1,
            bytes_read: 8_192,
            bytes_written: 0,
            p50: Some(Nanos(50)),
            p95: None,
            max: Some(Nanos(300)),
        }],
        connects: summary(&[11_000_000]),
        connect_commands: BTreeMap::from([(Command::Smb2(smb2::Smb2Command::NEGOTIATE), 1)]),
        failures: BTreeMap::from([("connection refused".to_owned(), 2)]),
        unanswered: 1,
        stalls: Vec::new(),
        client_cpu: ClientCpuUsage {
            user: Duration::from_millis(400),
            system: Duration::from_millis(600),
            busy_poll: false,
            busiest: 0.25,
            limited: false,
            late_p99: Some(Nanos(90_000)),
            late_max: Some(Nanos(120_000)),
        },
        ended: LoadPointEnd::Stopped("enough".into()),
        pace: PacingResult::Open { rate: 0.5, not_begun: 3 },
        jobs: None,
        queue: None,
        hosts: Vec::new(),
        overload: None,
    }
}

pub(crate) fn document(users: &[u32]) -> bench::BenchDocument {
    let runs: Vec<bench::BenchRun> =
        users.iter().map(|users| load_point(&run(*users), LoadPointCapture::NotAsked)).collect();
    bench::BenchDocument {
        generator: bench::Generator::new("0.1.0"),
        title: None,
        answer: smbscope_report::Answer::default(),
        target: bench::TargetEntry {
            host: "127.0.0.1".into(),
            port: 445,
            share: "share".into(),
            directory: None,
            user: None,
            dialect: Some("3.1.1".into()),
            signing: "off".into(),
            signing_algorithm: None,
            encryption: "off".into(),
            cipher: None,
        },
        workload: bench::WorkloadEntry {
            name: "echo".into(),
            source: None,
            seed: Some(1),
            file_set: None,
            parameters: BTreeMap::new(),
            sha256: None,
            definition: None,
        },
        settings: bench::RampSettings {
            schedule: bench::LoopModel::Open { rate: 0.5, per_user: false, random: false },
            users: users.to_vec(),
            rates: Vec::new(),
            duration_ns: Nanos(10_000_000_000),
            warmup_ns: Nanos(2_000_000_000),
            threads: 1,
            sessions_per_user: 1,
            connections_per_session: 1,
            busy_poll: false,
            connects_per_second: None,
            max_errors_percent: None,
            passes: None,
            capture: false,
        },
        started_ns: Timestamp(871_291_800_000_000_000),
        environment: BTreeMap::new(),
        runs,
        capacity: None,
        overall_response_time_ns: None,
        warnings: Vec::new(),
        invocation: None,
        launch: None,
    }
    .completed()
}

#[test]
fn figures_are_those_of_the_run() {
    let found = load_point(&run(4), LoadPointCapture::NotAsked);
    assert_eq!((found.users, found.operations, found.operations_per_second), (4, 5, 0.5));
    assert_eq!(found.errors, BTreeMap::from([("STATUS_OBJECT_NAME_NOT_FOUND".to_owned(), 1)]));
    // The mean of 100, 300, 50, 10 and 30.
    assert_eq!(found.total.client.mean, Some(Nanos(98)));
    assert_eq!(found.total.wire, None);
    // Two operations in ten seconds.
    assert_eq!(found.pace, bench::ScheduleAdherence::Open { rate: 0.5, rate_kept: 0.2, not_begun: 3 });
    let cpu = found.client_cpu.unwrap();
    assert_eq!((cpu.percent, cpu.busiest_percent, cpu.per_operation_ns), (10.0, 25.0, Some(Nanos(200_000_000))));
    assert_eq!(cpu.late_p99_ns, Some(Nanos(90_000)));
    assert_eq!(found.ended, bench::BenchRunOutcome::Stopped { why: "enough".into() });
    assert_eq!(found.workload_operations[0].response_time.unwrap().max, Some(Nanos(900)));
    assert_eq!((found.unanswered, found.failures["connection refused"]), (1, 2));
}

#[test]
fn jobs_are_those_of_the_run_one_by_one_and_together() {
    let seconds = |seconds| Duration::from_secs(seconds);
    let job = |session, elapsed| FinishedJob {
        session,
        started: Timestamp(871_291_800_000_000_000),
        elapsed: seconds(elapsed),
        waited: seconds(1),
        files: 10,
        bytes_read: 1_000_000,
        bytes_written: 0,
    };
    let mut elapsed = Summary::new(SummaryPrecision::ROW);
    [2, 4].iter().for_each(|length| elapsed.record(Nanos::from(seconds(*length))));
    let sum = engine::JobTotals {
        elapsed: seconds(6),
        waited: seconds(2),
        files: 20,
        bytes_read: 2_000_000,
        bytes_written: 0,
    };
    let jobs = JobSummary { elapsed, sum, unfinished: 1, list: vec![job(0, 2), job(3, 4)] };
    let found = load_point(&LoadPointResult { jobs: Some(jobs), ..run(4) }, LoadPointCapture::NotAsked).jobs.unwrap();
    assert_eq!((found.elapsed.count, found.elapsed.mean, found.unfinished), (2, Some(Nanos(3_000_000_000)), 1));
    // 20 files and 2 MB in 6 s of jobs, of which 2 were waiting.
    assert_eq!((found.files_per_second(), found.waited_share()), (Some(20.0 / 6.0), Some(2.0 / 6.0)));
    assert_eq!(found.bytes_per_second(), Some(2_000_000.0 / 6.0));
    let list: Vec<_> = found.list.iter().map(|job| (job.session, job.elapsed_ns.0, job.waited_ns.unwrap().0)).collect();
    assert_eq!(list, [(1, 2_000_000_000, 1_000_000_000), (4, 4_000_000_000, 1_000_000_000)]);
}

#[test]
fn other_is_the_sum_of_its_parts_and_stands_before_them() {
    let found = load_point(&run(1), LoadPointCapture::NotAsked);
    let groups: Vec<(&str, Option<&str>, u64)> =
        found.groups.iter().map(|group| (group.group.as_str(), group.part_of.as_deref(), group.operations)).collect();
    let expected = [
        ("Open/Close", None, 1),
        ("Other", None, 2),
        ("Attributes", Some("Other"), 1),
        ("Directory", Some("Other"), 1),
        ("Read", None, 2),
    ];
    assert_eq!(groups, expected);
    assert_eq!(found.group("Other").unwrap().times.client.mean, Some(Nanos(20)));
}

#[test]
fn the_wire_stands_beside_the_client() {
    let run = run(1);
    let begin = run.started.0;
    let mut wire = Wire::new(&run, Some(&[exchange(1, READ, 7, begin, 300)]));
    wire.record(&exchange(1, READ, 7, begin + 20, 240));
    // A command that the client did not count is listed as well.
    let echo = Command::Smb2(smb2::Smb2Command::ECHO);
    wire.record(&Exchange { group: CommandGroup::Session, ..exchange(1, echo, 8, begin + 1_000_000_000, 40) });
    let facts = CaptureFacts { quality: "Fine.".into(), packets: 4, ..CaptureFacts::default() };
    let found = load_point(&run, LoadPointCapture::Made(&wire, facts));
    let read = found.commands.iter().find(|command| command.command == "READ").unwrap();
    assert_eq!(read.times.wire.unwrap().p50, Some(Nanos(240)));
    assert_eq!(read.times.difference.unwrap().p50, Some(Nanos(60)));
    let echo = found.commands.iter().find(|command| command.command == "ECHO").unwrap();
    assert_eq!((echo.count, echo.times.wire.unwrap().count), (0, 1));
    let Some(RunCapture::Made(made)) = &found.capture else { panic!("there is a capture") };
    assert_eq!((made.client_commands, made.wire_commands, made.matched), (5, 2, Some(1)));
}

#[test]
fn encrypted_frames_stand_for_the_commands_in_them() {
    let run = run(1);
    let mut wire = Wire::new(&run, None);
    let frame = exchange(1, Command::EncryptedFrame, 0, run.started.0, 700);
    wire.record(&Exchange { group: CommandGroup::Encrypted, message_id: None, ..frame });
    let found = load_point(&run, LoadPointCapture::Made(&wire, CaptureFacts::default()));
    assert_eq!(found.total.wire.unwrap().p50, Some(Nanos(700)));
}

#[test]
fn a_run_without_length_has_no_rates() {
    let found = load_point(
        &LoadPointResult { duration: Duration::ZERO, ..run(1) },
        LoadPointCapture::Skipped("not permitted".into()),
    );
    assert_eq!(found.operations_per_second, 0.0);
    assert_eq!(found.client_cpu.unwrap().percent, 0.0);
    assert_eq!(found.capture, Some(RunCapture::Skipped { why: "not permitted".into() }));
}
