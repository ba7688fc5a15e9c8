use super::*;
use crate::engine::session::SessionIdentity;
use proptest::prelude::*;
use smbscope_model::{Command, CommandGroup, Dialect, Endpoints, FlowId, Nanos, TimeKind};
use smbscope_wire::smb2;

const SECOND: Duration = Duration::from_secs(1);

fn sample(from: Instant, took: Duration, command: smb2::Smb2Command, status: u32) -> Sample {
    Sample {
        command: Command::Smb2(command),
        subcommand: None,
        group: smbscope_model::groups::smb2(command, None, false),
        message_id: 1,
        session_id: 1,
        tree_id: 1,
        file_id: None,
        status: Some(NtStatus(status)),
        request_first: from,
        request_last: from,
        interim: None,
        response_first: from + took,
        response_last: from + took,
        request_bytes: 100,
        response_bytes: 100,
        offset: None,
        length: None,
        compounded: false,
        signed: false,
        encrypted: false,
        outcome: ExchangeOutcome::Complete,
    }
}

fn window(start: Instant, seconds: u32) -> MeasurementWindow {
    MeasurementWindow { start, end: start + SECOND * seconds, interval: SECOND }
}

fn recorder(start: Instant, seconds: u32) -> LoadPointRecorder {
    LoadPointRecorder::new(window(start, seconds), Clock::at(start), 2, true, None).sliced(&[Dimension::Command])
}

fn origin() -> CommandSource {
    let endpoints = Endpoints { client: "10.0.0.2:50000".parse().unwrap(), server: "10.0.0.1:445".parse().unwrap() };
    let dialect = Dialect::Smb2(0x0302);
    CommandSource::new(FlowId(7), SessionIdentity { endpoints, dialect, user: None, share: Some("data".into()) })
}

fn total(figures: &LoadPointFigures) -> Summary {
    figures.counted.response_times(|(_, _, group)| group.in_headline())
}

fn count(figures: &LoadPointFigures, of: CommandGroup) -> u64 {
    figures.counted.response_times(|(_, _, group)| *group == of).count()
}

/// Start in milliseconds from the beginning, duration in microseconds, kind, status.
type Event = (u64, u64, u8, u8);

fn feed(recorder: &mut LoadPointRecorder, begin: Instant, (at, took, kind, status): Event) {
    let from = begin + Duration::from_millis(at);
    let command = [smb2::Smb2Command::READ, smb2::Smb2Command::WRITE, smb2::Smb2Command::CREATE][usize::from(kind) % 3];
    let status = [0, 0, 0xc000_0034, 0x8000_0005][usize::from(status) % 4];
    let mut samples = vec![sample(from, Duration::from_micros(took), command, status)];
    let performed = Performed { status: NtStatus(status), bytes_read: took, bytes_written: at, ..Performed::DONE };
    let span = recorder.take(&mut samples, Some(&performed), &mut origin());
    let unexpected = (status != 0).then_some(NtStatus(status));
    let operation = usize::from(kind) % 2;
    recorder.completed(&Completed { operation, intended: from - Duration::from_millis(3), span, unexpected });
    if kind == 7 {
        recorder.connected(from, Duration::from_micros(took), &[Command::Smb2(command)]);
        recorder.failure(if status == 0 { "reset" } else { "refused" });
    }
}

fn figures(recorder: LoadPointRecorder) -> LoadPointFigures {
    recorder.finish(&["first".to_owned(), "second".to_owned()], SECOND * 3, &SessionsPerUser::same(1))
}

proptest! {
    #[test]
    fn recorders_of_any_partition_merge_to_the_recorder_of_all(
        events in prop::collection::vec((0u64..5_000, 1u64..3_000_000, 0u8..9, 0u8..4), 0..300),
        parts in 1usize..5,
    ) {
        let begin = Instant::now();
        let start = begin + SECOND;
        let mut whole = recorder(start, 3);
        let clock = whole.clock;
        let another = || LoadPointRecorder::new(window(start, 3), clock, 2, true, None).sliced(&[Dimension::Command]);
        let mut split: Vec<LoadPointRecorder> = (0..parts).map(|_| another()).collect();
        for (i, event) in events.into_iter().enumerate() {
            feed(&mut whole, begin, event);
            feed(&mut split[i % parts], begin, event);
        }
        let mut merged = another();
        split.into_iter().for_each(|part| merged.merge(part));
        let (whole, merged) = (figures(whole), figures(merged));
        prop_assert_eq!(whole.counted.finish(), merged.counted.finish());
        prop_assert_eq!(total(&whole), total(&merged));
        prop_assert_eq!(&whole.connects, &merged.connects);
        prop_assert_eq!(&whole.connect_commands, &merged.connect_commands);
        prop_assert_eq!(&whole.failures, &merged.failures);
        prop_assert_eq!(&whole.intervals, &merged.intervals);
        for (mine, theirs) in whole.operations.iter().zip(&merged.operations) {
            prop_assert_eq!(&mine.service, &theirs.service);
            prop_assert_eq!(&mine.response, &theirs.response);
            prop_assert_eq!(&mine.unexpected, &theirs.unexpected);
        }
        // Intervals add up to the totals: all groups here are headline groups.
        prop_assert_eq!(total(&whole).count(), whole.intervals.iter().map(|i| i.operations).sum::<u64>());
        prop_assert_eq!(whole.bytes_read, whole.intervals.iter().map(|i| i.bytes_read).sum::<u64>());
        prop_assert_eq!(whole.counted.finish().errors, whole.intervals.iter().map(|i| i.errors).sum::<u64>());
    }
}

#[test]
fn what_begins_in_the_measured_part_counts_and_nothing_else() {
    let begin = Instant::now();
    let mut recorder = recorder(begin + SECOND, 2);
    let ms = Duration::from_millis;
    // Before the measured part, across its start, within it, across its end, and after it.
    for (at, took) in [(900, 50), (990, 20), (1_000, 10), (2_990, 500), (3_000, 10)] {
        recorder.take(&mut vec![sample(begin + ms(at), ms(took), smb2::Smb2Command::READ, 0)], None, &mut origin());
    }
    let figures = figures(recorder);
    assert_eq!((total(&figures).count(), total(&figures).figures().max), (2, Some(Nanos(500_000_000))));
    assert_eq!(figures.intervals.iter().map(|i| i.operations).collect::<Vec<_>>(), [1, 1, 0]);
}

#[test]
fn waits_by_design_have_no_part_in_the_total() {
    let begin = Instant::now();
    let mut recorder = recorder(begin, 2);
    let mut samples = vec![
        sample(begin, Duration::from_millis(1), smb2::Smb2Command::READ, 0),
        sample(begin, Duration::from_secs(60), smb2::Smb2Command::CHANGE_NOTIFY, 0),
    ];
    recorder.take(&mut samples, None, &mut origin());
    let figures = figures(recorder);
    assert_eq!((total(&figures).count(), count(&figures, CommandGroup::Waiting)), (1, 1));
    assert_eq!((figures.intervals[0].operations, figures.intervals[0].max), (2, Some(Nanos(1_000_000))));
}

#[test]
fn a_break_of_an_oplock_is_no_part_of_the_action_that_it_came_in() {
    let begin = Instant::now();
    let at = |ms| begin + Duration::from_millis(ms);
    let mut recorder = recorder(begin, 1);
    let read = sample(at(10), Duration::from_millis(4), smb2::Smb2Command::READ, 0);
    let wish = Sample {
        outcome: ExchangeOutcome::ServerInitiated,
        status: None,
        ..sample(at(2), Duration::ZERO, smb2::Smb2Command::OPLOCK_BREAK, 0)
    };
    let acknowledgement = sample(at(12), Duration::from_millis(50), smb2::Smb2Command::OPLOCK_BREAK, 0);
    let span = recorder.take(&mut vec![wish, read, acknowledgement], None, &mut origin());
    assert_eq!(span, Some((at(10), at(14))));
    assert_eq!(recorder.take(&mut vec![wish, acknowledgement], None, &mut origin()), None);
    let figures = figures(recorder);
    assert_eq!((figures.unanswered, count(&figures, CommandGroup::Waiting), total(&figures).count()), (0, 2, 1));
}

#[test]
fn reasons_of_failures_are_bounded() {
    let mut recorder = recorder(Instant::now(), 1);
    for i in 0..REASONS_MAX + 5 {
        recorder.failure(&format!("reason {i}"));
    }
    assert_eq!((recorder.counted.failures.len(), recorder.counted.failures[OTHER_REASONS]), (REASONS_MAX + 1, 5));
}

#[test]
fn exchanges_have_the_times_of_the_samples_and_are_bounded() {
    let begin = Instant::now();
    let clock = Clock::at(begin);
    let mut recorder = LoadPointRecorder::new(window(begin, 1), clock, 0, false, Some(ExchangeLog::new(2)));
    let mut origin = origin();
    origin.is_about(Some("a\\b".into()));
    for at in [20, 10, 30] {
        let from = begin + Duration::from_millis(at);
        let mut samples = vec![sample(from, Duration::from_millis(4), smb2::Smb2Command::READ, 0)];
        recorder.take(&mut samples, None, &mut origin);
    }
    recorder.count_waiting();
    let exchanges = recorder.take_exchanges().unwrap().finish();
    let times: Vec<_> = exchanges.list.iter().map(|e| (e.start().unwrap() - clock.timestamp(begin)).0).collect();
    assert_eq!((times, exchanges.left_out), (vec![10_000_000, 20_000_000], 1));
    let first = &exchanges.list[0];
    assert_eq!(first.time(TimeKind::ResponseTime), Some(Nanos(4_000_000)));
    assert_eq!((first.flow, first.path.as_deref(), first.share.as_deref()), (FlowId(7), Some("a\\b"), Some("data")));
}
