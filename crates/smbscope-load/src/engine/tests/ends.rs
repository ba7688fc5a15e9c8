//! The beginning and end of load points.

use super::mock::{Answer, Asked, after_ms};
use super::*;
use crate::engine::exchanges::ExchangeLog;
use crate::workload::SessionsPerUser;
use smbscope_model::{CommandGroup, ExchangeOutcome};
use smbscope_wire::status::NtStatus;

/// Success after 10 ms, unless `other` returns another answer.
fn ten_ms_unless(other: impl Fn(Asked) -> Option<Answer> + Send + Sync + 'static) -> MockServer {
    MockServer::new(move |asked| other(asked).unwrap_or(after_ms(10)))
}

const RESET: &str = "reading the answer: connection reset";

#[test]
fn the_warmup_is_not_counted() {
    // Slow for the first 3 s, the warm-up.
    let server = MockServer::new(|asked| after_ms(if asked.at < Duration::from_millis(2_900) { 100 } else { 10 }));
    let plan = RampPlan { warmup: Duration::from_secs(3), ..plan(2, 2) };
    let run = run_one(&plan, &server);
    assert_eq!(run.total().figures().max, Some(smbscope_model::Nanos(10_000_000)));
    assert!((398..=400).contains(&run.total().count()), "{}", run.total().count());
    assert_eq!((run.warmup, run.duration), (Duration::from_secs(3), Duration::from_secs(2)));
}

#[test]
fn intervals_add_up_to_the_totals_and_know_their_users() {
    let server = ten_ms_unless(|asked| {
        (asked.at > Duration::from_millis(1_500) && asked.connection == 1).then_some(Answer::Break)
    });
    let run = run_one(&plan(3, 3), &server);
    assert_eq!(run.intervals.iter().map(|i| i.users).collect::<Vec<_>>(), [3, 2, 2]);
    assert_eq!(run.intervals.iter().map(|i| i.operations).sum::<u64>(), run.total().count());
    assert_eq!(run.intervals.iter().map(|i| i.bytes_read).sum::<u64>(), run.bytes_read);
    let starts: Vec<i64> = run.intervals.iter().map(|i| (i.start - run.started).0 / 1_000_000_000).collect();
    assert_eq!(starts, [0, 1, 2]);
}

#[test]
fn an_interrupted_run_keeps_its_results() {
    // Set the flag in the third second.
    let stop = StopFlag::new();
    let server = ten_ms_unless({
        let stop = stop.clone();
        move |asked| {
            if asked.at >= Duration::from_millis(2_500) {
                stop.stop();
                // The engine's thread, which uses the real clock, must check first.
                std::thread::sleep(Duration::from_millis(100));
            }
            None
        }
    });
    let plan = RampPlan { users: "2,4".parse().unwrap(), ..plan(2, 60) };
    let live = LiveFigures::default();
    let surroundings = Surroundings { hooks: &mut (), live: &live, stop: &stop };
    let scripts = |number| Box::new(Reads::new(1, number)) as Box<dyn Script>;
    let runs = with_engine(&plan, 4, simulated(&server, &scripts), surroundings, |engine| ramp(&plan, engine)).unwrap();
    assert_eq!((runs.len(), &runs[0].ended), (1, &LoadPointEnd::Interrupted));
    // 2 users, 100/s each, for 2.5 s.
    assert!((498..=504).contains(&runs[0].total().count()), "{}", runs[0].total().count());
    // Rates refer to the actual duration, not to the planned minute.
    assert!((2_490..=2_520).contains(&runs[0].duration.as_millis()), "{:?}", runs[0].duration);
    let said_goodbye = server.log().iter().filter(|(_, action)| action == "disconnect").count();
    assert_eq!(said_goodbye, 2);
}

#[test]
fn a_limit_of_operations_ends_the_load_point_and_the_ramp_goes_on() {
    let limits = LoadPointLimits { operations: Some(50), ..LoadPointLimits::default() };
    let plan = RampPlan { users: "1,4".parse().unwrap(), limits, ..plan(1, 60) };
    let runs = runs(&plan, &MockServer::new(|_| after_ms(10)), |number| Reads::new(1, number));
    let shown: Vec<_> = runs.iter().map(|run| (run.users, run.total().count(), run.ended.clone())).collect();
    assert_eq!(shown, [(1, 50, LoadPointEnd::Done), (4, 50, LoadPointEnd::Done)]);
    assert!(runs[0].duration < Duration::from_secs(1), "{:?}", runs[0].duration);
}

#[test]
fn users_who_have_done_all_end_the_load_point() {
    let runs = runs(&plan(3, 60), &MockServer::new(|_| after_ms(10)), |number| {
        Reads::new(1, number).only(20).with_commands(2)
    });
    assert_eq!((runs[0].total().count(), runs[0].operations[0].service.count()), (120, 60));
    // An operation is two commands.
    assert_eq!(runs[0].operations[0].service.figures().p50, Some(smbscope_model::Nanos(20_000_000)));
    assert_eq!(runs[0].ended, LoadPointEnd::Done);
    assert!((399..=402).contains(&runs[0].duration.as_millis()), "{:?}", runs[0].duration);
}

#[test]
fn too_many_errors_end_the_ramp() {
    let server = ten_ms_unless(|_| Some(Answer::After(Duration::from_millis(10), NtStatus::INSUFFICIENT_RESOURCES)));
    let limits = LoadPointLimits { errors: Some(ErrorLimit::Count(30)), ..LoadPointLimits::default() };
    let plan = RampPlan { users: "2,4".parse().unwrap(), limits, ..plan(2, 60) };
    let runs = runs(&plan, &server, |number| Reads::new(1, number));
    let why = "30 operations failed, the last one with STATUS_INSUFFICIENT_RESOURCES";
    assert_eq!((runs.len(), &runs[0].ended), (1, &LoadPointEnd::Stopped(why.to_owned())));
    let unexpected: Vec<_> = runs[0].operations[0].unexpected.clone().into_iter().collect();
    assert!(matches!(unexpected[..], [(NtStatus::INSUFFICIENT_RESOURCES, 30..=31)]), "{unexpected:?}");
    assert_eq!(runs[0].bytes_read, 0);
}

#[test]
fn errors_without_a_limit_are_counted_and_the_run_goes_on() {
    let server = ten_ms_unless(|asked| {
        let storm = (1_100..1_900).contains(&asked.at.as_millis());
        storm.then_some(Answer::After(Duration::from_millis(10), NtStatus::INSUFFICIENT_RESOURCES))
    });
    let run = run_one(&plan(1, 3), &server);
    assert_eq!(
        (run.ended, run.intervals.iter().map(|i| i.errors).collect::<Vec<_>>()),
        (LoadPointEnd::Done, vec![0, 80, 0])
    );
}

#[test]
fn a_user_whose_session_breaks_ends_and_the_others_go_on() {
    let server =
        ten_ms_unless(|asked| (asked.at >= Duration::from_secs(1) && asked.connection == 0).then_some(Answer::Break));
    let run = run_one(&plan(2, 2), &server);
    assert_eq!((&run.ended, run.unanswered), (&LoadPointEnd::Done, 1));
    assert_eq!(run.failures, [(RESET.to_owned(), 1)].into());
    assert!((298..=301).contains(&run.total().count()), "{}", run.total().count());
}

#[test]
fn a_server_that_dies_fails_the_run_and_nothing_measured_is_lost() {
    let server = ten_ms_unless(|asked| (asked.at >= Duration::from_secs(1)).then_some(Answer::Break));
    let plan = RampPlan { users: "2,4".parse().unwrap(), ..plan(2, 60) };
    let runs = runs(&plan, &server, |number| Reads::new(1, number));
    assert_eq!((runs.len(), &runs[0].ended), (1, &LoadPointEnd::Failed(RESET.to_owned())));
    assert!((198..=202).contains(&runs[0].total().count()) && runs[0].duration < Duration::from_millis(1_100));
}

#[test]
fn a_user_who_reconnects_goes_on_and_the_time_counts() {
    // The server is away from 1 s to 2.8 s. Reconnects are tried every 100 ms.
    let server = MockServer::with_connects(|asked| match asked.at.as_millis() {
        1_000..2_800 => Answer::Break,
        _ => after_ms(10),
    });
    let on_failure = OnFailure::Reconnect { delay: Duration::from_millis(100) };
    let plan = RampPlan { on_failure, ..plan(1, 5) };
    let run = run_one(&plan, &server);
    assert_eq!(run.ended, LoadPointEnd::Done);
    // About 1 s, then 1.8 s of nothing and up to 100 ms more, then the rest of 5 s.
    assert!((305..=322).contains(&run.total().count()), "{}", run.total().count());
    assert_eq!(run.intervals.iter().map(|i| i.users).collect::<Vec<_>>()[..3], [0, 0, 1]);
    // The broken session and about 17 attempts; the first connect and the last.
    let failures = run.failures[RESET];
    assert!((17..=19).contains(&failures), "{failures}");
    assert_eq!(run.connects.count(), 2);
}

#[test]
fn a_wrong_password_ends_the_ramp_after_one_try() {
    let server = MockServer::with_connects(|_| Answer::After(Duration::from_millis(10), NtStatus::LOGON_FAILURE));
    let on_failure = OnFailure::Reconnect { delay: Duration::from_millis(1) };
    let connects = Connects { rate: 50.0, at_once: 1 };
    let plan = RampPlan { on_failure, connects, ..plan(100, 60) };
    let runs = runs(&plan, &server, |number| Reads::new(1, number));
    let why = "the session: STATUS_LOGON_FAILURE; ask someone";
    assert_eq!((runs.len(), &runs[0].ended), (1, &LoadPointEnd::Failed(why.to_owned())));
    assert_eq!(runs[0].failures[why], 1);
}

#[test]
fn an_answer_that_never_comes_is_given_up_after_the_grace() {
    let server =
        ten_ms_unless(|asked| (asked.connection == 1 && asked.at > Duration::from_secs(1)).then_some(Answer::Never));
    let plan = RampPlan { users: "2,3".parse().unwrap(), grace: Duration::from_secs(3), ..plan(2, 2) };
    let runs = runs(&plan, &server, |number| Reads::new(1, number));
    assert_eq!((runs[0].unanswered, &runs[0].ended), (1, &LoadPointEnd::Done));
    assert_eq!(runs[0].failures.len(), 1);
    // The next load point has a new session for it, and one for the third user.
    assert_eq!((runs[1].connects.count(), runs[1].intervals[0].users), (2, 3));
}

#[test]
fn a_session_that_is_never_made_is_given_up_after_the_grace() {
    let stop = StopFlag::new();
    let server = MockServer::with_connects({
        let stop = stop.clone();
        move |asked| {
            if asked.connection == 0 {
                return after_ms(5);
            }
            stop.stop();
            Answer::Never
        }
    });
    let plan = RampPlan { grace: Duration::from_secs(3), ..plan(2, 60) };
    let live = LiveFigures::default();
    let surroundings = Surroundings { hooks: &mut (), live: &live, stop: &stop };
    let scripts = |number| Box::new(Reads::new(1, number)) as Box<dyn Script>;
    let runs = with_engine(&plan, 2, simulated(&server, &scripts), surroundings, |engine| ramp(&plan, engine)).unwrap();
    assert_eq!((&runs[0].ended, runs[0].total().count(), runs[0].failures.len()), (&LoadPointEnd::Interrupted, 0, 1));
    assert_eq!(server.log(), [(0, "disconnect".to_owned())]);
}

#[test]
fn an_answer_that_comes_after_the_end_counts() {
    // The last command before the end of the 2 s is answered a second later.
    let server = ten_ms_unless(|asked| (asked.at >= Duration::from_millis(1_990)).then_some(after_ms(1_000)));
    let run = run_one(&plan(1, 2), &server);
    assert_eq!(run.total().figures().max, Some(smbscope_model::Nanos(1_000_000_000)));
    assert_eq!(run.unanswered, 0);
}

#[test]
fn connects_are_paced_and_not_measured() {
    // 20 per second, 200 ms each: the 40th starts after 1.95 s.
    let log = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let server = MockServer::with_connects({
        let log = log.clone();
        move |asked| {
            if asked.command.is_none() {
                log.lock().unwrap().push(asked.at.as_millis());
                return after_ms(200);
            }
            after_ms(10)
        }
    });
    let plan = RampPlan { connects: Connects { rate: 20.0, at_once: 8 }, ..plan(40, 1) };
    let run = run_one(&plan, &server);
    let begun = log.lock().unwrap().clone();
    assert!(begun.iter().enumerate().all(|(i, at)| at.abs_diff(i as u128 * 50) <= 5), "{begun:?}");
    assert_eq!((run.connects.count(), run.total().count(), run.intervals.len()), (40, 4_000, 1));
}

#[test]
fn only_so_many_connects_go_on_at_the_same_time() {
    let log = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let server = MockServer::with_connects({
        let log = log.clone();
        move |asked| {
            if asked.command.is_none() {
                log.lock().unwrap().push(asked.at.as_millis());
            }
            after_ms(100)
        }
    });
    let plan = RampPlan { connects: Connects { rate: 1e6, at_once: 5 }, ..plan(15, 1) };
    run_one(&plan, &server);
    // Three rounds of five.
    let rounds: Vec<u128> = log.lock().unwrap().iter().map(|at| at / 100).collect();
    assert_eq!(rounds, [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2]);
}

#[test]
fn a_ramp_keeps_its_sessions_and_drops_those_it_has_too_many() {
    let plan = RampPlan { users: "1,3,2".parse().unwrap(), ..plan(1, 1) };
    let server = MockServer::new(|_| after_ms(10));
    let runs = runs(&plan, &server, |number| Reads::new(1, number));
    let shown: Vec<_> =
        runs.iter().map(|r| (r.users, r.connects.count(), r.intervals[0].users, r.total().count())).collect();
    assert_eq!(shown, [(1, 1, 1, 100), (3, 2, 3, 300), (2, 0, 2, 200)]);
    let order: Vec<usize> = server.log().iter().filter(|(_, a)| a == "disconnect").map(|(number, _)| *number).collect();
    assert_eq!(order, [2, 0, 1]);
}

#[test]
fn sessions_of_a_user_work_side_by_side() {
    let plan = RampPlan { sessions: SessionsPerUser::same(3), ..plan(2, 1) };
    let run = run_one(&plan, &MockServer::new(|_| after_ms(10)));
    assert_eq!((run.users, run.intervals[0].users, run.connects.count(), run.total().count()), (2, 2, 6, 600));
}

#[test]
fn a_session_without_or_with_too_many_connections_is_refused() {
    for connections_per_session in [0, 33] {
        let plan = RampPlan { connections_per_session, ..plan(1, 1) };
        let (live, stop) = (LiveFigures::default(), StopFlag::new());
        let surroundings = Surroundings { hooks: &mut (), live: &live, stop: &stop };
        let scripts = |number| Box::new(Reads::new(1, number)) as Box<dyn Script>;
        let server = MockServer::new(|_| after_ms(1));
        let refused = with_engine(&plan, 1, simulated(&server, &scripts), surroundings, |engine| ramp(&plan, engine));
        assert!(matches!(refused, Err(EngineError::Plan(_))), "{connections_per_session}");
    }
}

#[test]
fn the_server_is_attended_to_while_users_think_or_wait_for_others() {
    // Four reads, each followed by a second of think time: at 0 s, 1 s, 2 s and 3 s. A server request every 300 ms in
    // between.
    let plan = RampPlan { schedule: LoadSchedule::Closed { think: Duration::from_secs(1) }, ..plan(1, 4) };
    let server = MockServer::new(|_| after_ms(0)).wishing(Duration::from_millis(300));
    let run = run_one(&plan, &server);
    let attended = server.log().iter().filter(|(_, action)| action == "attended").count();
    assert!((3 * 3..=4 * 3 + 3).contains(&attended), "{attended}");
    assert!((3..=5).contains(&run.total().count()), "{}", run.total().count());

    // The second user needs two seconds to connect, while the first one is idle.
    let slow =
        |asked: Asked| if asked.command.is_none() && asked.connection == 1 { after_ms(2_000) } else { after_ms(10) };
    let server = MockServer::with_connects(slow).wishing(Duration::from_millis(500));
    let plan = RampPlan { users: "1,2".parse().unwrap(), ..self::plan(1, 1) };
    runs(&plan, &server, |number| Reads::new(1, number));
    let attended = server.log().iter().filter(|(number, action)| *number == 0 && action == "attended").count();
    assert!((3..=5).contains(&attended), "{attended}");
}

#[test]
fn the_same_seed_makes_the_same_steps_and_another_one_others() {
    let actions = |seed: u64| {
        let server = MockServer::new(|asked| after_ms(5 + asked.connection as u64));
        let arrivals = LoadSchedule::Open { rate: 200.0, per_user: false, arrivals: Arrivals::Poisson };
        let plan = RampPlan { seed, schedule: arrivals, ..plan(3, 2) };
        run_one(&plan, &server);
        // Timers have a resolution of 1 ms, so the last steps may be beyond the end. 133 per user are expected.
        let mut log = server.log();
        log.sort_by_key(|(connection, _)| *connection);
        let of = |connection| log.iter().filter(move |(number, _)| *number == connection).take(90);
        (0..3).flat_map(of).cloned().collect::<Vec<_>>()
    };
    let first = actions(7);
    assert!(first == actions(7) && first.len() == 270);
    assert!(first != actions(8));
}

#[test]
fn workers_together_do_what_one_does_alone() {
    let server = || MockServer::new(|_| after_ms(10));
    let alone = run_one(&plan(6, 2), &server());
    let together = run_one(&RampPlan { workers: NonZeroUsize::new(3), ..plan(6, 2) }, &server());
    assert_eq!((alone.total().count(), alone.bytes_read), (together.total().count(), together.bytes_read));
    assert_eq!(alone.group(CommandGroup::Read), together.group(CommandGroup::Read));
}

#[test]
fn hooks_are_told_in_order_and_get_every_command_if_wanted() {
    #[derive(Default)]
    struct Told(Vec<String>, Vec<ExchangeLog>);
    impl Hooks for Told {
        fn point_begins(&mut self, users: u32) {
            self.0.push(format!("point of {users}"));
        }
        fn work_begins(&mut self, _: u32) {
            self.0.push("work".to_owned());
        }
        fn measuring_begins(&mut self) {
            self.0.push("measuring".to_owned());
        }
        fn measuring_ends(&mut self) {
            self.0.push("measured".to_owned());
        }
        fn point_ends(&mut self, run: &LoadPointResult, exchanges: Option<ExchangeLog>) {
            self.0.push(format!("{} commands", run.total().count()));
            self.1.extend(exchanges);
        }
    }
    let mut told = Told::default();
    let plan =
        RampPlan { users: "1,2".parse().unwrap(), exchanges: true, warmup: Duration::from_millis(50), ..plan(1, 1) };
    let server = MockServer::new(|_| after_ms(10));
    // The hooks use the real clock: the simulated load point ends before it begins for them.
    let runs = with(&plan, &server, |number| Reads::new(1, number), &mut told, |engine| ramp(&plan, engine));
    let expected = ["point of 1", "work", "100 commands", "point of 2", "work", "200 commands"];
    let without_measuring: Vec<&String> = told.0.iter().filter(|told| !told.starts_with("measur")).collect();
    assert_eq!(without_measuring, expected);
    let exchanges = &told.1[1];
    assert_eq!((exchanges.list.len(), exchanges.left_out), (200, 0));
    assert!(
        exchanges.list.iter().all(|e| e.outcome == ExchangeOutcome::Complete && e.share.as_deref() == Some("share"))
    );
    let flows: std::collections::BTreeSet<u64> = exchanges.list.iter().map(|e| e.flow.0).collect();
    assert_eq!(flows.into_iter().collect::<Vec<_>>(), [1, 2]);
    let window = runs[1].started.0..runs[1].started.0 + 1_000_000_000;
    assert!(exchanges.list.iter().all(|e| window.contains(&e.start().unwrap().0)));
}

#[test]
fn what_a_script_sets_up_is_done_once_a_session_and_not_counted() {
    // The session of the first user breaks in the first load point and is replaced, including its files.
    let server = MockServer::with_connects(|asked| match (asked.connection, asked.command) {
        (0, Some(20)) => Answer::Break,
        (_, Some(_)) => after_ms(10),
        (_, None) => after_ms(0),
    });
    let on_failure = OnFailure::Reconnect { delay: Duration::from_millis(20) };
    let plan = RampPlan { users: "1,2".parse().unwrap(), on_failure, ..plan(1, 1) };
    let runs = runs(&plan, &server, |number| Reads::new(1, number).after_writes(3));
    let written: Vec<usize> =
        server.log().iter().filter(|(_, action)| action.starts_with("Write")).map(|(number, _)| *number).collect();
    assert_eq!(written, [0, 0, 0, 1, 1, 1, 2, 2, 2]);
    assert!(runs.iter().all(|run| run.bytes_written == 0 && run.group(CommandGroup::Write).count() == 0));
    // 1 s minus 20 ms of delay, 30 ms of writing, and 10 ms for the command that broke.
    assert!((93..=96).contains(&runs[0].total().count()), "{}", runs[0].total().count());
}

#[test]
fn a_share_that_cannot_be_set_up_fails_the_run_with_the_reason() {
    let server = ten_ms_unless(|asked| {
        (asked.command == Some(1)).then_some(Answer::After(Duration::from_millis(1), NtStatus::ACCESS_DENIED))
    });
    for users in [1, 2] {
        let runs = runs(&plan(users, 60), &server, |number| Reads::new(1, number).after_writes(3));
        assert_eq!(runs[0].ended, LoadPointEnd::Failed("setting up, line 2: STATUS_ACCESS_DENIED".to_owned()));
        // The first refusal ends the run, regardless of the other users' progress.
        let failures: u64 = runs[0].failures.values().sum();
        assert_eq!((runs[0].total().count(), (1..=u64::from(users)).contains(&failures)), (0, true), "{failures}");
    }
}

/// Retrying would hit the same obstacle.
#[test]
fn what_another_workload_left_behind_ends_the_run_at_once() {
    let server = ten_ms_unless(|asked| {
        (asked.command == Some(1)).then_some(Answer::After(Duration::from_millis(1), NtStatus::OBJECT_NAME_COLLISION))
    });
    let on_failure = OnFailure::Reconnect { delay: Duration::from_millis(20) };
    let runs = runs(&RampPlan { on_failure, ..plan(2, 60) }, &server, |number| Reads::new(1, number).after_writes(3));
    let LoadPointEnd::Failed(why) = &runs[0].ended else { panic!("{:?}", runs[0].ended) };
    assert!(why.starts_with("setting up, line 2: STATUS_OBJECT_NAME_COLLISION: another workload"), "{why}");
    assert!(runs[0].failures.values().sum::<u64>() <= 2 && runs[0].total().count() == 0);
}

#[test]
fn a_script_without_work_fails_its_user_instead_of_keeping_the_worker_busy() {
    struct Idle([String; 1]);
    impl Script for Idle {
        fn operations(&self) -> &[String] {
            &self.0
        }
        fn next(&mut self) -> Option<crate::workload::ScriptStep<'_>> {
            let action = crate::workload::Action::Think(Duration::ZERO);
            let expected = crate::workload::Expected::Anything;
            Some(crate::workload::ScriptStep { action, operation: None, expected, completes: false, line: None })
        }
        fn restart(&mut self) {}
    }
    let (live, stop) = (LiveFigures::default(), StopFlag::new());
    let surroundings = Surroundings { hooks: &mut (), live: &live, stop: &stop };
    let scripts = |_| Box::new(Idle(["idle".to_owned()])) as Box<dyn Script>;
    let plan = plan(1, 60);
    let server = MockServer::new(|_| after_ms(10));
    let runs = with_engine(&plan, 1, simulated(&server, &scripts), surroundings, |engine| ramp(&plan, engine)).unwrap();
    assert_eq!(runs[0].ended, LoadPointEnd::Failed("1000 steps of the script sent no command".to_owned()));
}

#[test]
fn a_script_goes_on_where_the_load_point_before_ended() {
    let steps = |users: &str| {
        let server = MockServer::new(|_| after_ms(10));
        let plan = RampPlan { users: users.parse().unwrap(), ..plan(1, 1) };
        runs(&plan, &server, |number| Reads::new(1, number).with_commands(3));
        server
            .log()
            .iter()
            .map(|(_, action)| action.clone())
            .filter(|action| action != "disconnect")
            .collect::<Vec<_>>()
    };
    // One load point of 1 s has 100 reads, and ends with an operation of three.
    let (whole, parts) = (steps("1"), steps("1,1"));
    assert_eq!((whole.len(), parts.len()), (102, 204));
    assert_eq!(whole[..], parts[..102]);
    let unique: std::collections::BTreeSet<&String> = parts.iter().collect();
    assert!(unique.len() > 200, "{}", unique.len());
}
