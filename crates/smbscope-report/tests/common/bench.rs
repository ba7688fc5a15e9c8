//! Test ramps: response times grow with the number of users, and every field of the document is set.

use super::START;
use smbscope_model::{Exchange, Nanos, Timestamp};
use smbscope_report::bench::*;
use smbscope_stats::{Aggregator, Dimension, DurationStatistics, SliceSortKey, Summary, SummaryPrecision};
use smbscope_testkit::exchange::read;
use std::collections::BTreeMap;

pub(crate) const SECOND: i64 = 1_000_000_000;

/// Returns statistics of `count` values around a typical one: 90% within a factor of two, one in 20 six times as long.
pub(crate) fn times(count: u64, typical: i64) -> DurationStatistics {
    let mut summary = Summary::new(SummaryPrecision::ROW);
    for at in 0..count as i64 {
        let spread = typical * (600 + at * 7_919 % 900) / 1_000;
        summary.record(Nanos(if at % 20 == 7 { spread * 6 } else { spread }));
    }
    summary.figures()
}

fn counts<const N: usize>(entries: [(&str, u64); N]) -> BTreeMap<String, u64> {
    entries.into_iter().filter(|(_, count)| *count > 0).map(|(name, count)| (name.to_owned(), count)).collect()
}

/// Overhead of the client's system in nanoseconds.
const ADDED: i64 = 38_000;

fn measured(count: u64, typical: i64, wire: bool) -> ClientWireTimes {
    let seen = |typical| wire.then(|| times(count, typical));
    ClientWireTimes { client: times(count, typical), wire: seen(typical - ADDED), difference: seen(ADDED) }
}

/// Command, subcommand, group, commands per thousand, and typical time in percent of the load point's.
type Kind = (&'static str, Option<&'static str>, &'static str, u64, i64);

const KINDS: [Kind; 7] = [
    ("CREATE", None, "Open/Close", 220, 110),
    ("CLOSE", None, "Open/Close", 210, 50),
    ("QUERY_INFO", Some("FileStandardInformation"), "Attributes", 60, 40),
    ("QUERY_DIRECTORY", None, "Directory", 50, 150),
    ("READ", None, "Read", 300, 90),
    ("WRITE", None, "Write", 140, 180),
    ("FLUSH", None, "Write", 20, 400),
];

/// Name of a group, the group that includes it, and its members.
const GROUPS: [(&str, Option<&str>, &[&str]); 6] = [
    ("Open/Close", None, &["Open/Close"]),
    ("Other", None, &["Attributes", "Directory"]),
    ("Attributes", Some("Other"), &["Attributes"]),
    ("Directory", Some("Other"), &["Directory"]),
    ("Read", None, &["Read"]),
    ("Write", None, &["Write"]),
];

/// Returns a load point of ten seconds.
pub(crate) fn run(users: u32, per_second: u64, typical: i64, wire: bool) -> BenchRun {
    let operations = per_second * 10;
    let of = |kind: &Kind| operations * kind.3 / 1_000;
    let missing = operations / 400;
    let commands = KINDS.iter().map(|kind| MeasuredCommand {
        protocol: "SMB2".to_owned(),
        command: kind.0.to_owned(),
        subcommand: kind.1.map(str::to_owned),
        group: kind.2.to_owned(),
        count: of(kind),
        errors: if kind.0 == "CREATE" { counts([("STATUS_OBJECT_NAME_NOT_FOUND", missing)]) } else { counts([]) },
        times: measured(of(kind), typical * kind.4 / 100, wire),
    });
    let groups = GROUPS.map(|(group, part_of, members)| {
        let parts: Vec<&Kind> = KINDS.iter().filter(|kind| members.contains(&kind.2)).collect();
        let count: u64 = parts.iter().map(|kind| of(kind)).sum();
        let weight = parts.iter().map(|kind| kind.4 * kind.3 as i64).sum::<i64>()
            / parts.iter().map(|kind| kind.3 as i64).sum::<i64>();
        MeasuredGroup {
            group: group.to_owned(),
            part_of: part_of.map(str::to_owned),
            headline: true,
            operations: count,
            times: measured(count, typical * weight / 100, wire),
        }
    });
    let started = START + i64::from(users) * 20 * SECOND;
    let intervals = (0..10).map(|second| IntervalEntry {
        start_ns: Timestamp(started + second * SECOND),
        users,
        operations: per_second,
        errors: missing / 10,
        bytes_read: per_second * 9_000,
        bytes_written: per_second * 2_500,
        p50: Some(Nanos(typical)),
        p95: Some(Nanos(typical * 3)),
        max: Some(Nanos(typical * 9)),
    });
    BenchRun {
        users,
        started_ns: Timestamp(started),
        duration_ns: Nanos(10 * SECOND),
        warmup_ns: Nanos(2 * SECOND),
        ended: BenchRunOutcome::Done,
        pace: ScheduleAdherence::Closed,
        operations,
        operations_per_second: per_second as f64,
        bytes_read: operations * 9_000,
        bytes_written: operations * 2_500,
        errors: counts([("STATUS_OBJECT_NAME_NOT_FOUND", missing)]),
        total: measured(operations, typical, wire),
        due: None,
        stalls: Vec::new(),
        groups: groups.into(),
        commands: commands.collect(),
        workload_operations: vec![OperationEntry {
            operation: "NTCreateX".to_owned(),
            service_time: times(operations / 5, typical),
            response_time: None,
            unexpected: counts([]),
        }],
        intervals: intervals.collect(),
        connects: times(users.into(), 14_000_000),
        connect_commands: [("NEGOTIATE".to_owned(), users.into())].into(),
        failures: counts([]),
        unanswered: 0,
        client_cpu: Some(ClientCpuEntry {
            user_ns: Nanos(operations as i64 * 6_000),
            system_ns: Nanos(operations as i64 * 9_000),
            percent: per_second as f64 * 0.0015,
            per_operation_ns: Some(Nanos(15_000)),
            busiest_percent: per_second as f64 * 0.001,
            limited: false,
            late_p99_ns: Some(Nanos(84_000)),
            late_max_ns: Some(Nanos(310_000)),
        }),
        counted: Some(counted(started, typical, &[])),
        answer: None,
        jobs: None,
        server: None,
        queue: None,
        hosts: Vec::new(),
        overload: None,
        capture: wire.then(|| {
            RunCapture::Made(Captured {
                file: None,
                quality: "All commands in the capture were timed.".to_owned(),
                packets: operations * 2,
                dropped_packets: 0,
                client_commands: operations,
                wire_commands: operations,
                matched: Some(operations),
                server: None,
            })
        }),
    }
}

/// Returns the breakdown of reads of two files, some of them slow.
pub(crate) fn counted(started: i64, typical: i64, by: &[Dimension]) -> LoadPointBreakdown {
    let mut aggregator = Aggregator::new().sliced(by, SliceSortKey::ResponseTime);
    for n in 0..20 {
        let path = if n % 3 == 0 { "ini\\settings.ini" } else { "docs\\report.docx" };
        let exchange = read(started + n * SECOND / 4, typical * (1 + n % 7));
        aggregator.record(&Exchange { path: Some(path.into()), ..exchange });
    }
    LoadPointBreakdown::new(&aggregator.finish())
}

/// Returns a closed-loop ramp of four load points with a capture and no problems.
pub(crate) fn ramp() -> BenchDocument {
    let points = [(1, 1_200, 420_000), (4, 4_100, 510_000), (16, 7_800, 1_450_000), (32, 7_900, 3_600_000)];
    BenchDocument {
        generator: Generator::new("0.1.0"),
        title: None,
        answer: smbscope_report::Answer::default(),
        target: TargetEntry {
            host: "127.0.0.1".to_owned(),
            port: 14_450,
            share: "share".to_owned(),
            directory: None,
            user: Some("bench".to_owned()),
            dialect: Some("3.1.1".to_owned()),
            signing: "on".to_owned(),
            signing_algorithm: Some("AES-128-CMAC".to_owned()),
            encryption: "off".to_owned(),
            cipher: None,
        },
        workload: WorkloadEntry {
            name: "netbench-like".to_owned(),
            source: None,
            seed: Some(1),
            file_set: Some(FileSetTotals { files: 1_200, bytes: 24_600_000 }),
            parameters: std::collections::BTreeMap::new(),
            sha256: Some("0".repeat(64)),
            definition: None,
        },
        settings: RampSettings {
            schedule: LoopModel::Closed { think_ns: Nanos(0) },
            users: points.map(|(users, ..)| users).to_vec(),
            rates: Vec::new(),
            duration_ns: Nanos(10 * SECOND),
            warmup_ns: Nanos(2 * SECOND),
            threads: 2,
            sessions_per_user: 1,
            connections_per_session: 1,
            busy_poll: false,
            passes: None,
            connects_per_second: None,
            max_errors_percent: None,
            capture: true,
        },
        started_ns: Timestamp(START),
        environment: [("cores", "2"), ("server", "Samba 4.17.12"), ("system", "Debian GNU/Linux 12")]
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
            .into(),
        runs: points.map(|(users, per_second, typical)| run(users, per_second, typical, true)).into(),
        capacity: Some(CapacityEntry {
            criterion: "p95(Read) < 5ms".to_owned(),
            users: Some(16),
            rate: None,
            always: Some(15),
            never: Some(18),
            tried: points
                .map(|(users, _, typical)| CapacityTrialEntry {
                    users,
                    rate: None,
                    found: Some(Nanos(typical * 3).to_string()),
                    holds: users <= 16,
                })
                .into(),
        }),
        overall_response_time_ns: None,
        warnings: Vec::new(),
        invocation: Some(Invocation {
            command: "smbscope bench smb://bench@127.0.0.1:14450/share --duration 10s".to_owned(),
            directory: None,
        }),
        launch: None,
    }
    .completed()
}

/// Returns an open-loop ramp without a capture, with every possible problem.
pub(crate) fn trouble() -> BenchDocument {
    let mut document = ramp();
    document.title = Some("a tired filer".to_owned());
    document.settings.schedule = LoopModel::Open { rate: 1_500.0, per_user: false, random: true };
    document.target = TargetEntry { dialect: Some("NT LM 0.12".to_owned()), user: None, ..document.target };
    document.workload.source = Some("office.toml".to_owned());
    document.capacity = Some(CapacityEntry {
        criterion: "errors < 1%".to_owned(),
        users: None,
        rate: None,
        always: None,
        never: None,
        tried: Vec::new(),
    });
    document.warnings = Vec::new();
    let mut first = run(2, 1_500, 500_000, false);
    let mut second = run(8, 900, 9_000_000, false);
    for run in [&mut first, &mut second] {
        run.capture = Some(RunCapture::Skipped { why: "tcpdump is not installed".to_owned() });
        run.pace = ScheduleAdherence::Open { rate: 1_500.0, rate_kept: run.operations_per_second, not_begun: 0 };
    }
    second.pace = ScheduleAdherence::Open { rate: 1_500.0, rate_kept: 900.0, not_begun: 6_000 };
    second.ended = BenchRunOutcome::Stopped { why: "more than 10 % errors".to_owned() };
    second.errors = counts([("STATUS_DISK_FULL", 950), ("STATUS_OBJECT_NAME_NOT_FOUND", 22)]);
    let write = second.commands.iter_mut().find(|command| command.command == "WRITE").expect("there are writes");
    write.errors = counts([("STATUS_DISK_FULL", 950)]);
    // The server stalls for two seconds.
    for interval in &mut second.intervals[4..6] {
        *interval = IntervalEntry { operations: 0, errors: 0, p50: None, p95: None, max: None, ..*interval };
    }
    second.intervals[6].max = Some(Nanos(2_100_000_000));
    // The users' wait is a hundred times the server's response time.
    first.due = Some(times(3_000, 600_000));
    second.due = Some(times(1_800, 700_000_000));
    let start = second.started_ns.0 + 4 * SECOND;
    second.stalls = vec![StallEntry { start_ns: Timestamp(start), duration_ns: Nanos(2_100_000_000) }];
    second.workload_operations[0].response_time = Some(times(1_800, 700_000_000));
    second.workload_operations[0].unexpected = counts([("STATUS_DISK_FULL", 950)]);
    second.failures = counts([("cannot connect to 127.0.0.1:14450: connection refused", 3)]);
    second.unanswered = 7;
    second.client_cpu = second.client_cpu.map(|cpu| ClientCpuEntry { busiest_percent: 99.2, limited: true, ..cpu });
    document.runs = vec![first, second];
    document.completed()
}

/// Returns a run that failed before it measured anything.
pub(crate) fn nothing() -> BenchDocument {
    let mut document = ramp();
    document.target.dialect = None;
    document.runs.clear();
    document.capacity = None;
    document.warnings = Vec::new();
    document.completed()
}
