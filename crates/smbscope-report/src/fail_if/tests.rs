use super::*;
use crate::{Cause, Explanation};
use smbscope_diagnose::{Answer, Confidence, LostTime, Subject};
use smbscope_model::{CaptureInfo, CommandGroup, Exchange, ExchangeOutcome};
use smbscope_stats::Aggregator;
use smbscope_testkit::exchange::read;
use smbscope_wire::{smb1, smb2};

const MS: i64 = 1_000_000;

fn exchanges(command: Command, group: CommandGroup, times_ms: impl IntoIterator<Item = i64>) -> Vec<Exchange> {
    let exchange = |(second, time): (i64, i64)| Exchange { command, group, ..read(second * 1_000 * MS, time * MS) };
    (0..).zip(times_ms).map(exchange).collect()
}

/// Returns a report on 100 READs of 1 to 100 ms, 3 WRITEs, a FLUSH of 70 ms, which counts as Write, and a
/// CHANGE_NOTIFY.
fn report() -> Report {
    let smb2 = |code| Command::Smb2(smb2::Smb2Command(code));
    let parts = [
        exchanges(smb2(8), CommandGroup::Read, 1..=100),
        exchanges(smb2(9), CommandGroup::Write, [10, 20, 30]),
        exchanges(smb2(7), CommandGroup::Write, [70]),
        exchanges(smb2(15), CommandGroup::Waiting, [9_000]),
    ];
    report_on(&parts.concat())
}

fn report_on(exchanges: &[Exchange]) -> Report {
    let mut aggregator = Aggregator::new();
    exchanges.iter().for_each(|exchange| aggregator.record(exchange));
    let aggregate = aggregator.finish();
    let (first, last) = (aggregate.first, aggregate.last);
    let capture = CaptureInfo {
        name: "monday.pcap".into(),
        format: "pcap".into(),
        compression: None,
        packets: 2,
        bytes: 200,
        first,
        last,
        resolution_ns: 1_000,
        coarse_clock: None,
        clock_offset: None,
        snap_length: None,
        link_types: vec![1],
        truncated: None,
        warnings: Vec::new(),
    };
    Report { captures: vec![capture], aggregate, first, last, ..Report::default() }
}

fn with_causes(causes: &[(&str, Option<i64>)]) -> Report {
    let cause = |(id, lost): &(&str, Option<i64>)| {
        let text = format!(
            r#"{{"id": "{id}", "culprit": "server", "title": "Slow storage", "sentence": "", "cost": "10.0.0.7 lost 3.54 s.",
                "subject": {}, "lost_ns": {}, "active_ns": 0, "share": null, "confidence": "high", "evidence": [],
                "wireshark": "", "advice": "", "source": "", "also": []}}"#,
            serde_json::to_string(&Subject::default()).unwrap(),
            serde_json::to_string(&lost.map(|lost| LostTime::exactly(Nanos(lost * MS)))).unwrap(),
        );
        let cause: Cause = serde_json::from_str(&text).unwrap();
        assert_eq!(cause.confidence, Confidence::High);
        cause
    };
    let answer = Answer { culprit: Culprit::Server, causes: causes.iter().map(cause).collect(), ..Answer::default() };
    Report { explanation: Explanation { answer, ..Explanation::default() }, ..report() }
}

fn judged(report: &Report, condition: &str) -> (Judged, String) {
    let judgement = condition.parse::<FailIf>().unwrap_or_else(|error| panic!("{error}")).judge(report);
    assert_eq!((judgement.condition.as_str(), judgement.name.as_str()), (condition, "monday.pcap"));
    (judgement.judged, judgement.text)
}

#[track_caller]
fn assert_judged(report: &Report, condition: &str, expected: Judged, text: &str) {
    assert_eq!(judged(report, condition), (expected, text.to_owned()));
}

fn problem(text: &str) -> String {
    text.parse::<FailIf>().unwrap_err().to_string().lines().next().unwrap().to_owned()
}

#[test]
fn response_times_are_judged_in_both_notations() {
    let report = report();
    // p95 by nearest rank of 1 to 100 ms.
    for condition in ["READ.p95 > 20ms", "p95(READ) > 20ms", "READ.p95>20 ms", "p95(Read) > 20ms"] {
        let expected = format!("{condition}: 95.0 ms, limit 20.0 ms");
        assert_judged(&report, condition, Judged::Holds, &expected);
    }
    assert_judged(
        &report,
        "READ.max > 100ms",
        Judged::DoesNotHold,
        "READ.max > 100ms does not hold: 100 ms, limit 100 ms",
    );
    assert_judged(&report, "READ.mean < 60ms", Judged::Holds, "READ.mean < 60ms: 50.5 ms, limit 60.0 ms");
}

#[test]
fn a_name_is_looked_for_as_it_is_written_first() {
    let report = report();
    let max = |name: &str| judged(&report, &format!("{name}.max > 1ms")).1;
    // The FLUSH of 70 ms is only in the group.
    assert!(max("WRITE").ends_with(": 30.0 ms, limit 1.00 ms"), "{}", max("WRITE"));
    for name in ["Write", "write"] {
        assert!(max(name).ends_with(": 70.0 ms, limit 1.00 ms"), "{}", max(name));
    }
    assert!(max("total").ends_with(": 100 ms, limit 1.00 ms"), "{}", max("total"));
    assert!(max("Waiting").ends_with(": 9.00 s, limit 1.00 ms"), "{}", max("Waiting"));
}

#[test]
fn smb1_commands_have_two_names() {
    let report = report_on(&exchanges(Command::Smb1(smb1::Smb1Command(0x2e)), CommandGroup::Read, [5, 7]));
    for name in ["READ_ANDX", "SMB_COM_READ_ANDX", "read_andx"] {
        let (judged, text) = judged(&report, &format!("{name}.max > 6ms"));
        assert_eq!(judged, Judged::Holds, "{text}");
    }
}

#[test]
fn counts_of_what_did_not_occur_are_zero() {
    let mut all = exchanges(Command::Smb2(smb2::Smb2Command::READ), CommandGroup::Read, [1, 2, 3]);
    all[0].status = Some(smbscope_model::ResponseStatus::Nt(smbscope_wire::status::NtStatus(0xc000_0022)));
    let report = report_on(&all);
    assert_judged(&report, "READ.count > 2", Judged::Holds, "READ.count > 2: 3, limit 2");
    assert_judged(&report, "READ.errors > 0", Judged::Holds, "READ.errors > 0: 1, limit 0");
    assert_judged(&report, "errors > 0", Judged::Holds, "errors > 0: 1, limit 0");
    assert_judged(&report, "count(WRITE) < 1", Judged::Holds, "count(WRITE) < 1: 0, limit 1");
    let rates = ["commands > 1000/s", "throughput > 1MB/s"].map(|condition| judged(&report, condition).0);
    assert_eq!(rates, [Judged::DoesNotHold; 2]);
}

#[test]
fn a_missing_figure_decides_nothing() {
    let mut all = exchanges(Command::Smb2(smb2::Smb2Command::READ), CommandGroup::Read, [1, 2, 3]);
    all.extend(exchanges(Command::Smb2(smb2::Smb2Command::CHANGE_NOTIFY), CommandGroup::Waiting, [9_000]));
    let mut lost = exchanges(Command::Smb2(smb2::Smb2Command::WRITE), CommandGroup::Write, [1]);
    lost[0].outcome = ExchangeOutcome::ResponseNotCaptured;
    all.extend(lost);
    let report = report_on(&all);
    for (condition, why) in [
        ("READ.p99 > 1ms", "3 timed READ are too few for p99"),
        ("p95(CREATE) < 1s", "the capture has no CREATE"),
        ("WRITE.max > 1ms", "no WRITE was timed"),
        ("CHANGE_NOTIFY.max > 1s", "every CHANGE_NOTIFY was an expected wait; the group Waiting holds those"),
    ] {
        assert_judged(&report, condition, Judged::Undecided, &format!("{condition}: no such figure: {why}"));
    }
}

#[test]
fn the_answer_is_judged_by_culprit_cause_and_lost_time() {
    let slow = with_causes(&[("slow-storage", Some(3_540)), ("lock-wait", None)]);
    let fine = report();
    for (condition, slow_expected, fine_expected) in [
        ("answer.culprit == server", Judged::Holds, Judged::DoesNotHold),
        ("answer.culprit != nothing", Judged::Holds, Judged::DoesNotHold),
        ("answer.cause == 'lock-wait'", Judged::Holds, Judged::DoesNotHold),
        ("answer.cause != lock-wait", Judged::DoesNotHold, Judged::Holds),
        ("answer.lost > 2s", Judged::Holds, Judged::DoesNotHold),
        ("answer.lost > 4s", Judged::DoesNotHold, Judged::DoesNotHold),
        ("not_timed > 5%", Judged::DoesNotHold, Judged::DoesNotHold),
        ("not_timed < 5%", Judged::Holds, Judged::Holds),
    ] {
        assert_eq!(
            (judged(&slow, condition).0, judged(&fine, condition).0),
            (slow_expected, fine_expected),
            "{condition}"
        );
    }
    let text = |condition| judged(&slow, condition).1;
    assert_eq!(text("answer.culprit == server"), "answer.culprit == server: the culprit is server");
    let expected = "answer.cause == slow-storage: Slow storage: 10.0.0.7 lost 3.54 s";
    assert_eq!(text("answer.cause == slow-storage"), expected);
    let expected = "answer.cause == ini-pattern does not hold: the causes are slow-storage, lock-wait";
    assert_eq!(text("answer.cause == ini-pattern"), expected);
    assert_eq!(text("answer.lost > 2s"), "answer.lost > 2s: 3.54 s, limit 2.00 s");
    let unknown = with_causes(&[("lock-wait", None)]);
    assert_eq!(judged(&unknown, "answer.lost > 2s").0, Judged::Undecided);
}

#[test]
fn wrong_conditions_say_where_and_what_may_be_meant() {
    for (text, expected) in [
        (
            "REED.p95 > 20ms",
            "character 1: `REED` is neither a command nor a group nor `total`; did you mean READ or Read",
        ),
        (
            "p95(Raed) > 20ms",
            "character 5: `Raed` is neither a command nor a group nor `total`; did you mean READ or Read",
        ),
        (
            "READ.p59 > 20ms",
            "character 6: `p59` is none of mean, max, p50, p90, p95, p99, p999, count, errors; did you mean",
        ),
        (
            "READ.p95 > 20",
            "character 12: expected a duration, such as 50ms, 1.5s, 200us or 2min; a time needs its unit",
        ),
        ("READ.p95 > 1.1x", "character 12: expected a duration"),
        ("READ.p95 = 20ms", "character 10: `=` alone means nothing; did you mean ==?"),
        ("READ.p95 == 20ms", "character 10: expected `>` or `<`, found `==`"),
        ("READ.count > 1.5", "character 14: `1.5` is not a number; write counts such as 0 or 1000"),
        (
            "answer.culprit == sever",
            "character 19: `sever` is none of server, network, client, application, capture, nothing; did you mean server?",
        ),
        ("answer.culprit > server", "character 16: expected `==` or `!=`, found `>`; write conditions such as"),
        ("answer.cause == slow-storge", "character 17: `slow-storge` is not a cause; did you mean slow-storage?"),
        ("answer.cause ==", "character 16: expected a cause, found the end"),
        (
            "answer.culprits == server",
            "character 1: `answer.culprits` is none of answer.culprit, answer.cause, answer.lost; did you mean answer.culprit?",
        ),
        ("not_timed > 5", "character 13: expected a percentage, such as 80% or 0.5%"),
        ("answer.lost > 2s and more", "character 18: expected the end, found `and`"),
        ("latency > 2ms", "character 1: `latency` is none of mean, max"),
        ("", "character 1: expected a figure, found the end; write conditions such as"),
    ] {
        assert!(problem(text).starts_with(expected), "{text}: {}", problem(text));
    }
}

#[test]
fn every_name_of_a_report_can_be_judged() {
    for name in known_names() {
        assert!(format!("{name}.p95 > 1ms").parse::<FailIf>().is_ok(), "{name}");
    }
    assert!("0x0099.p95 > 1ms".parse::<FailIf>().is_ok());
}

#[test]
fn conditions_on_the_answer_need_one() {
    let needs = |text: &str| text.parse::<FailIf>().unwrap().needs_answer();
    assert_eq!(
        ["answer.culprit == server", "answer.lost > 1s", "not_timed > 1%", "READ.p95 > 1s"].map(needs),
        [true, true, false, false]
    );
}
