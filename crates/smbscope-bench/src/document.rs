//! A load point as the engine yields it → the document that is shown and kept.

use crate::wire::Wire;
use smbscope_load::engine::result::{self, Ended, Pace, Run};
use smbscope_model::{Group, Nanos};
use smbscope_report::bench::{self, Capture, Captured, Measured, OTHER};
use smbscope_stats::{Counted, Figures, Kind, Limit, Summary, is_apart};
use std::collections::BTreeMap;
use std::fmt::Display;

/// What became of the capture of a load point.
#[derive(Debug)]
pub(crate) enum Seen<'a> {
    /// None was asked for.
    NotAsked,
    /// There is none: why, as a part of a sentence.
    Skipped(String),
    /// What it shows, and what is known of it; the counts of commands are filled in here.
    Made(&'a Wire, CaptureFacts),
}

/// What is known of a capture beside its exchanges.
#[derive(Debug, Clone, Default)]
pub(crate) struct CaptureFacts {
    /// Where it was kept.
    pub(crate) file: Option<String>,
    /// How far it can be trusted, in one sentence.
    pub(crate) quality: String,
    /// Packets in it.
    pub(crate) packets: u64,
    /// Packets that the capturing program lost.
    pub(crate) dropped_packets: u64,
}

/// The load point, and what a capture shows of it.
pub(crate) fn of(run: &Run, seen: Seen<'_>) -> bench::Run {
    let wire = match &seen {
        Seen::Made(wire, _) => Some(*wire),
        _ => None,
    };
    let answered = run.answered();
    let seconds = run.duration.as_secs_f64();
    let mut errors: BTreeMap<String, u64> = BTreeMap::new();
    run.counted.kinds().for_each(|(_, counted)| add(&mut errors, counted.errors));
    bench::Run {
        users: run.users,
        started_ns: run.started,
        duration_ns: run.duration.into(),
        warmup_ns: run.warmup.into(),
        ended: ended(&run.ended),
        pace: pace(run),
        operations: answered,
        operations_per_second: if seconds > 0.0 { answered as f64 / seconds } else { 0.0 },
        bytes_read: run.bytes_read,
        bytes_written: run.bytes_written,
        errors,
        total: total(run, wire),
        due: run.due.as_ref().map(|due| due.figures()),
        stalls: run.stalls.iter().map(stall).collect(),
        groups: groups(run, wire),
        commands: commands(run, wire),
        workload_operations: run.operations.iter().map(operation).collect(),
        intervals: run.intervals.iter().map(interval).collect(),
        connects: run.connects.figures(),
        failures: run.failures.iter().filter(|(_, count)| **count > 0).map(|(why, n)| (why.clone(), *n)).collect(),
        unanswered: run.unanswered,
        client_cpu: Some(client_cpu(run, answered)),
        capture: capture(seen, answered),
        counted: Some(bench::Counted::of(&run.counted.finish())),
        // What follows from the rest.
        verdict: None,
    }
}

fn add(sums: &mut BTreeMap<String, u64>, counts: &BTreeMap<impl Display, u64>) {
    for (status, count) in counts.iter().filter(|(_, count)| **count > 0) {
        *sums.entry(status.to_string()).or_default() += count;
    }
}

fn by_name(counts: &BTreeMap<impl Display, u64>) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    add(&mut sums, counts);
    sums
}

fn ended(ended: &Ended) -> bench::Ended {
    match ended {
        Ended::Done => bench::Ended::Done,
        Ended::Interrupted => bench::Ended::Interrupted,
        Ended::Stopped(why) => bench::Ended::Stopped { why: why.clone() },
        Ended::Failed(why) => bench::Ended::Failed { why: why.clone() },
    }
}

fn pace(run: &Run) -> bench::Pace {
    match run.pace {
        Pace::Closed => bench::Pace::Closed,
        Pace::Open { rate, not_begun } => {
            let done: u64 = run.operations.iter().map(|operation| operation.service.count()).sum();
            let seconds = run.duration.as_secs_f64();
            let rate_kept = if seconds > 0.0 { done as f64 / seconds } else { 0.0 };
            bench::Pace::Open { rate, rate_kept, not_begun }
        }
    }
}

/// Summaries of the kinds that are chosen, merged; absent where there is no capture.
fn merged<'a>(summaries: Option<&'a BTreeMap<Kind, Summary>>, chooses: impl Fn(&Kind) -> bool) -> Option<Summary> {
    let chosen = summaries?.iter().filter(|(key, _)| chooses(key));
    Some(chosen.fold(Summary::new(Limit::ROW), |mut whole, (_, part): (&'a Kind, &'a Summary)| {
        whole.merge(part);
        whole
    }))
}

/// The client's times beside the wire's, of the kinds that are chosen.
fn measured(client: Figures, wire: Option<&Wire>, chooses: impl Fn(&Kind) -> bool) -> Measured {
    let times = |summaries| merged(summaries, &chooses).map(|summary| summary.figures());
    let wire_times = times(wire.map(|wire| &wire.commands));
    let difference = times(wire.and_then(|wire| wire.differences.as_ref()));
    Measured { client, wire: wire_times, difference }
}

fn total(run: &Run, wire: Option<&Wire>) -> Measured {
    let client = run.total().figures();
    let in_headline = measured(client, wire, |kind| !is_apart(kind) && kind.2.in_headline());
    match &in_headline.wire {
        // With encryption the wire shows frames only; each is a command, or a compound of them.
        Some(seen) if seen.count == 0 => measured(client, wire, |(_, _, group)| *group == Group::Encrypted),
        _ => in_headline,
    }
}

/// Groups that either side has, in the order of the report; *Other* before its parts.
fn groups(run: &Run, wire: Option<&Wire>) -> Vec<bench::Group> {
    let on_wire = |group: Group| wire.is_some_and(|wire| wire.commands.keys().any(|(_, _, of)| *of == group));
    let mut result = Vec::new();
    let mut add = |name: &str, part_of: Option<&str>, members: &[Group]| {
        let client = run.counted.response_times(|(_, _, group)| members.contains(group));
        let operations = client.count();
        if operations == 0 && !members.iter().any(|group| on_wire(*group)) {
            return;
        }
        result.push(bench::Group {
            group: name.to_owned(),
            part_of: part_of.map(str::to_owned),
            headline: members.iter().all(|group| group.in_headline()),
            operations,
            times: measured(client.figures(), wire, |kind| !is_apart(kind) && members.contains(&kind.2)),
        });
    };
    for group in Group::ALL {
        if group == Group::OTHER[0] {
            add(OTHER, None, &Group::OTHER);
        }
        add(group.name(), group.is_other().then_some(OTHER), &[group]);
    }
    result
}

/// Kinds of commands that either side has.
fn commands(run: &Run, wire: Option<&Wire>) -> Vec<bench::Command> {
    let own: BTreeMap<Kind, Counted<'_>> =
        run.counted.kinds().filter(|(_, counted)| counted.response_time.count() > 0).collect();
    let mut kinds: Vec<Kind> = own.keys().copied().collect();
    kinds.extend(wire.into_iter().flat_map(|wire| wire.commands.keys()));
    kinds.sort_unstable();
    kinds.dedup();
    let entry = |kind: Kind| {
        let counted = own.get(&kind);
        let client: Figures = counted.map_or_else(Figures::default, |counted| counted.response_time.figures());
        let (command, subcommand, group) = kind;
        bench::Command {
            protocol: command.protocol().to_string(),
            command: command.to_string(),
            subcommand: subcommand.map(|subcommand| subcommand.to_string()),
            group: group.name().to_owned(),
            count: client.count,
            errors: counted.map_or_else(BTreeMap::new, |counted| by_name(counted.errors)),
            times: measured(client, wire, |other| *other == kind),
        }
    };
    kinds.into_iter().map(entry).collect()
}

fn operation(operation: &result::Operation) -> bench::Operation {
    bench::Operation {
        operation: operation.name.clone(),
        service_time: operation.service.figures(),
        response_time: operation.response.as_ref().map(|response| response.figures()),
        unexpected: by_name(&operation.unexpected),
    }
}

/// A piece of a run.
pub(crate) fn interval(interval: &result::Interval) -> bench::Interval {
    let result::Interval { start, users, operations, errors, bytes_read, bytes_written, p50, p95, max } = *interval;
    bench::Interval { start_ns: start, users, operations, errors, bytes_read, bytes_written, p50, p95, max }
}

fn stall(stall: &result::Stall) -> bench::Stall {
    bench::Stall { start_ns: stall.start, duration_ns: stall.length.into() }
}

fn client_cpu(run: &Run, answered: u64) -> bench::ClientCpu {
    let cpu = &run.client_cpu;
    let whole = cpu.user + cpu.system;
    let seconds = run.duration.as_secs_f64();
    bench::ClientCpu {
        user_ns: cpu.user.into(),
        system_ns: cpu.system.into(),
        percent: if seconds > 0.0 { 100.0 * whole.as_secs_f64() / seconds } else { 0.0 },
        per_operation_ns: (answered > 0 && !cpu.busy_poll).then(|| Nanos(Nanos::from(whole).0 / answered as i64)),
        busiest_percent: 100.0 * cpu.busiest,
        limited: cpu.limited,
        late_p99_ns: cpu.late_p99,
    }
}

fn capture(seen: Seen<'_>, answered: u64) -> Option<Capture> {
    match seen {
        Seen::NotAsked => None,
        Seen::Skipped(why) => Some(Capture::Skipped { why }),
        Seen::Made(wire, facts) => Some(Capture::Made(Captured {
            file: facts.file,
            quality: facts.quality,
            packets: facts.packets,
            dropped_packets: facts.dropped_packets,
            client_commands: answered,
            wire_commands: wire.count(),
            matched: wire.matched(),
        })),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use smbscope_load::engine::result::{ClientCpu, Interval, Operation};
    use smbscope_model::{Command, Endpoints, Exchange, FlowId, Status, Timestamp};
    use smbscope_stats::Aggregator;
    use smbscope_wire::smb2;
    use smbscope_wire::status::NtStatus;
    use std::time::Duration;

    pub(crate) const READ: Command = Command::Smb2(smb2::Command::READ);

    /// A complete exchange of a client's connection: a port for each.
    pub(crate) fn exchange(client: u16, command: Command, id: u64, start: i64, length: i64) -> Exchange {
        Exchange {
            flow: FlowId(client.into()),
            endpoints: Endpoints {
                client: ([127, 0, 0, 1], 40_000 + client).into(),
                server: ([127, 0, 0, 1], 445).into(),
            },
            command,
            message_id: Some(id),
            status: Some(Status::Nt(NtStatus::SUCCESS)),
            ..smbscope_testkit::exchange::read(start, length)
        }
    }

    fn summary(values: &[i64]) -> Summary {
        let mut summary = Summary::new(Limit::ROW);
        values.iter().for_each(|value| summary.record(Nanos(*value)));
        summary
    }

    /// Two reads, a create that fails, a query of attributes and a listing, in ten seconds.
    pub(crate) fn run(users: u32) -> Run {
        let missing = NtStatus::OBJECT_NAME_NOT_FOUND;
        let started = Timestamp(871_291_800_000_000_000);
        let mut counted = Aggregator::new();
        let mut count = |code, group, length, status| {
            let exchange = exchange(1, Command::Smb2(code), 1, started.0, length);
            counted.record(&Exchange { group, status: Some(Status::Nt(status)), ..exchange });
        };
        count(smb2::Command::READ, Group::Read, 100, NtStatus::SUCCESS);
        count(smb2::Command::READ, Group::Read, 300, NtStatus::SUCCESS);
        count(smb2::Command::CREATE, Group::OpenClose, 50, missing);
        count(smb2::Command::QUERY_INFO, Group::Attributes, 10, NtStatus::SUCCESS);
        count(smb2::Command::QUERY_DIRECTORY, Group::Directory, 30, NtStatus::SUCCESS);
        Run {
            users,
            started,
            duration: Duration::from_secs(10),
            warmup: Duration::from_secs(2),
            counted,
            due: Some(summary(&[150, 900])),
            operations: vec![Operation {
                name: "Read it".into(),
                service: summary(&[150, 250]),
                response: Some(summary(&[150, 900])),
                unexpected: [(missing, 1)].into(),
            }],
            bytes_read: 8_192,
            bytes_written: 0,
            intervals: vec![Interval {
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
            failures: BTreeMap::from([("connection refused".to_owned(), 2)]),
            unanswered: 1,
            stalls: Vec::new(),
            client_cpu: ClientCpu {
                user: Duration::from_millis(400),
                system: Duration::from_millis(600),
                busy_poll: false,
                busiest: 0.25,
                limited: false,
                late_p99: Some(Nanos(90_000)),
            },
            ended: Ended::Stopped("enough".into()),
            pace: Pace::Open { rate: 0.5, not_begun: 3 },
        }
    }

    /// A ramp of such runs.
    pub(crate) fn document(users: &[u32]) -> bench::Document {
        let runs: Vec<bench::Run> = users.iter().map(|users| of(&run(*users), Seen::NotAsked)).collect();
        bench::Document {
            generator: bench::Generator::new("0.1.0"),
            title: None,
            headline: String::new(),
            target: bench::Target {
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
            workload: bench::Workload {
                name: "echo".into(),
                source: None,
                seed: Some(1),
                file_set: None,
                sha256: None,
                definition: None,
            },
            settings: bench::Settings {
                schedule: bench::Schedule::Open { rate: 0.5, per_user: false, random: false },
                users: users.to_vec(),
                rates: Vec::new(),
                duration_ns: Nanos(10_000_000_000),
                warmup_ns: Nanos(2_000_000_000),
                threads: 1,
                sessions_per_user: 1,
                connections_per_session: 1,
                busy_poll: false,
                connects_per_second: None,
                capture: false,
            },
            started_ns: Timestamp(871_291_800_000_000_000),
            environment: BTreeMap::new(),
            runs,
            capacity: None,
            overall_response_time_ns: None,
            warnings: Vec::new(),
            invocation: None,
            next: Vec::new(),
        }
        .completed()
    }

    #[test]
    fn figures_are_those_of_the_run() {
        let found = of(&run(4), Seen::NotAsked);
        assert_eq!((found.users, found.operations, found.operations_per_second), (4, 5, 0.5));
        assert_eq!(found.errors, BTreeMap::from([("STATUS_OBJECT_NAME_NOT_FOUND".to_owned(), 1)]));
        // The mean of 100, 300, 50, 10 and 30.
        assert_eq!(found.total.client.mean, Some(Nanos(98)));
        assert_eq!(found.total.wire, None);
        // Two operations in ten seconds.
        assert_eq!(found.pace, bench::Pace::Open { rate: 0.5, rate_kept: 0.2, not_begun: 3 });
        let cpu = found.client_cpu.unwrap();
        assert_eq!((cpu.percent, cpu.busiest_percent, cpu.per_operation_ns), (10.0, 25.0, Some(Nanos(200_000_000))));
        assert_eq!(cpu.late_p99_ns, Some(Nanos(90_000)));
        assert_eq!(found.ended, bench::Ended::Stopped { why: "enough".into() });
        assert_eq!(found.workload_operations[0].response_time.unwrap().max, Some(Nanos(900)));
        assert_eq!((found.unanswered, found.failures["connection refused"]), (1, 2));
    }

    #[test]
    fn other_is_the_sum_of_its_parts_and_stands_before_them() {
        let found = of(&run(1), Seen::NotAsked);
        let groups: Vec<(&str, Option<&str>, u64)> = found
            .groups
            .iter()
            .map(|group| (group.group.as_str(), group.part_of.as_deref(), group.operations))
            .collect();
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
        // What the client did not count stands there all the same.
        let echo = Command::Smb2(smb2::Command::ECHO);
        wire.record(&Exchange { group: Group::Session, ..exchange(1, echo, 8, begin + 1_000_000_000, 40) });
        let facts = CaptureFacts { quality: "Fine.".into(), packets: 4, ..CaptureFacts::default() };
        let found = of(&run, Seen::Made(&wire, facts));
        let read = found.commands.iter().find(|command| command.command == "READ").unwrap();
        assert_eq!(read.times.wire.unwrap().p50, Some(Nanos(240)));
        assert_eq!(read.times.difference.unwrap().p50, Some(Nanos(60)));
        let echo = found.commands.iter().find(|command| command.command == "ECHO").unwrap();
        assert_eq!((echo.count, echo.times.wire.unwrap().count), (0, 1));
        let Some(Capture::Made(made)) = &found.capture else { panic!("there is a capture") };
        assert_eq!((made.client_commands, made.wire_commands, made.matched), (5, 2, Some(1)));
    }

    #[test]
    fn encrypted_frames_stand_for_the_commands_in_them() {
        let run = run(1);
        let mut wire = Wire::new(&run, None);
        let frame = exchange(1, Command::EncryptedFrame, 0, run.started.0, 700);
        wire.record(&Exchange { group: Group::Encrypted, message_id: None, ..frame });
        let found = of(&run, Seen::Made(&wire, CaptureFacts::default()));
        assert_eq!(found.total.wire.unwrap().p50, Some(Nanos(700)));
    }

    #[test]
    fn a_run_without_length_has_no_rates() {
        let found = of(&Run { duration: Duration::ZERO, ..run(1) }, Seen::Skipped("not permitted".into()));
        assert_eq!(found.operations_per_second, 0.0);
        assert_eq!(found.client_cpu.unwrap().percent, 0.0);
        assert_eq!(found.capture, Some(Capture::Skipped { why: "not permitted".into() }));
    }
}
