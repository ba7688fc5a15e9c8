//! Responses that violate the protocol: a clear error, in time, and never a panic.

use crate::faults::support::{DIALECTS, Step, assert_clear, is_smb1, life, options, run, server};
use smbscope_client::ClientError;
use smbscope_model::Dialect;
use smbscope_testkit::server::{Fault, Malformed};
use std::sync::Mutex;
use std::thread;

/// Number of concurrent sessions.
const THREADS: usize = 8;

/// Runs a step on its own session for each case. Returns the outcomes.
pub(crate) fn outcomes(
    cases: &[(Dialect, Step, Malformed)],
) -> Vec<(Dialect, Step, Malformed, Result<(), ClientError>)> {
    let next = Mutex::new(cases.iter());
    let done = Mutex::new(Vec::new());
    let work = || {
        loop {
            let case = next.lock().expect("nobody panics with it").next();
            let Some((dialect, step, how)) = case.copied() else { return };
            let opens_before = u64::from(step == Step::Open);
            let server = server([Fault::Malformed(how).on(step.command(dialect)).after(opens_before)]);
            let (result, _) = run(life(&options(&server, dialect), step));
            assert_eq!(server.counters().faults.min(1), 1, "{dialect:?} {step:?}: the command was never sent");
            done.lock().expect("nobody panics with it").push((dialect, step, how, result));
        }
    };
    thread::scope(|scope| (0..THREADS).for_each(|_| drop(scope.spawn(work))));
    done.into_inner().expect("nobody panicked with it")
}

fn cases(kinds: &[Malformed]) -> Vec<(Dialect, Step, Malformed)> {
    let mut cases = Vec::new();
    for dialect in DIALECTS {
        for step in Step::ALL {
            cases.extend(kinds.iter().map(|how| (dialect, step, *how)));
        }
    }
    cases
}

/// Asserts that every case is a fatal error with a clear message.
fn assert_all_fail(cases: &[(Dialect, Step, Malformed)]) {
    let mut wrong = Vec::new();
    for (dialect, step, how, result) in outcomes(cases) {
        match result {
            Err(error) if error.is_fatal() => assert_clear(&error),
            other => wrong.push(format!("{dialect:?} {step:?} {how:?}: {other:?}")),
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn messages_that_are_none_are_errors() {
    assert_all_fail(&cases(&[
        Malformed::ProtocolId,
        Malformed::FrameType,
        Malformed::Command,
        Malformed::NotAResponse,
        Malformed::MessageId,
        Malformed::Encrypted,
    ]));
}

#[test]
fn messages_that_end_too_early_are_errors() {
    assert_all_fail(&cases(&[
        Malformed::Truncated(0),
        Malformed::Truncated(3),
        Malformed::Truncated(31),
        Malformed::CutOff(0),
        Malformed::CutOff(30),
        Malformed::FrameLength,
    ]));
}

#[test]
fn answers_without_their_body_are_errors() {
    let mut cases = cases(&[Malformed::StructureSize]);
    // A listing is long enough for 99 words, and the client reads nothing from the words themselves.
    cases.retain(|(dialect, step, _)| !(is_smb1(*dialect) && *step == Step::List));
    for dialect in DIALECTS.into_iter().filter(|dialect| !is_smb1(*dialect)) {
        for how in [Malformed::Truncated(63), Malformed::Truncated(64), Malformed::Truncated(65)] {
            cases.extend(Step::ALL.map(|step| (dialect, step, how)));
        }
    }
    assert_all_fail(&cases);
}

#[test]
fn offsets_and_lengths_behind_the_end_are_errors() {
    let mut cases = Vec::new();
    for how in [Malformed::OffsetBehindEnd, Malformed::LengthBehindEnd] {
        for dialect in DIALECTS {
            for step in [Step::Read, Step::Query, Step::QueryFileSystem, Step::List] {
                cases.push((dialect, step, how));
            }
            if !is_smb1(dialect) {
                cases.push((dialect, Step::SessionSetup, how));
                cases.push((dialect, Step::Negotiate, how));
            }
        }
    }
    assert_all_fail(&cases);
}

#[test]
fn what_a_client_may_ignore_hangs_it_no_more_than_it_breaks_it() {
    let kinds = [
        Malformed::WithoutRequest,
        Malformed::Twice,
        Malformed::NoCredits,
        Malformed::NextCommand,
        Malformed::WrongSignature,
    ];
    for (dialect, step, how, result) in outcomes(&cases(&kinds)) {
        if let Err(error) = result {
            assert_clear(&error);
            assert!(error.is_fatal(), "{dialect:?} {step:?} {how:?}: {error}");
            // A client that ignores it and waits for the right response would get that.
            assert!(!matches!(error, ClientError::TimedOut { .. }), "{dialect:?} {step:?} {how:?}: {error}");
        }
    }
}
