//! Hostile servers: floods, endless responses, responses that are larger than requested, absurd sizes. Each case ends
//! with a single clear error line, within a time that the options limit and in little memory, over both SMB1 and SMB2.
//!
//! Expected times follow from the timeout by the factors in `docs/limits.md`; expected numbers of samples are the
//! limits on that page.

use super::{DIALECTS, Step, TIMEOUT, assert_clear, is_smb1, life, open, options, run};
use smbscope_client::{ClientSession, Info, SessionOptions};
use smbscope_load::prepare::{self, PrepareRequest};
use smbscope_load::workload::{CreatedPaths, FileSet, SizeDistribution};
use smbscope_model::{Command, Dialect};
use smbscope_testkit::server::{Fault, Flood, Malformed, Rule, Script, ScriptedServer};
use smbscope_wire::{smb1, smb2};
use std::time::{Duration, Instant};

/// `BREAKS_MAX` breaks, their acknowledgements, and the few other samples of the session.
const SAMPLES_MAX: usize = 2 * 4_096 + 100;
/// `CONNECT_TIMEOUTS`: limit for all commands of a connect together, as a factor of the timeout.
const CONNECT: u32 = 4;
/// `OPERATION_TIMEOUTS`: likewise for all commands of one operation.
const OPERATION: u32 = 10;
/// Allowance for a busy machine.
const SLACK: Duration = Duration::from_secs(3);

fn start(script: Script) -> ScriptedServer {
    ScriptedServer::start(Script { file_size: 4096, ..script }).expect("a free port")
}

fn with(rules: impl IntoIterator<Item = Rule>) -> ScriptedServer {
    start(rules.into_iter().fold(Script::new(), Script::rule))
}

fn timed<T>(client: impl Future<Output = T>) -> (T, Duration) {
    let begun = Instant::now();
    let result = run(client);
    (result, begun.elapsed())
}

fn assert_in_time(took: Duration, timeouts: u32, what: &str) {
    assert!(took < TIMEOUT * timeouts + SLACK, "{what}: {took:?}");
}

const FLOODS: [Flood; 5] = [Flood::OplockBreak, Flood::LeaseBreak, Flood::KeepAlive, Flood::Unfinished, Flood::Answers];

#[test]
fn a_flood_instead_of_an_answer_ends_the_session_in_time_and_with_few_samples() {
    for dialect in DIALECTS {
        for of in FLOODS {
            let step = if of == Flood::Unfinished { Step::List } else { Step::Read };
            let server = with([Fault::Flood { of, answered: false }.on(step.command(dialect))]);
            let options = SessionOptions { leases: true, ..options(&server, dialect) };
            let ((result, session), took) = timed(life(&options, step));
            let what = format!("{dialect:?} {of:?}");
            let error = result.expect_err(&what);
            assert_clear(&error);
            assert!(error.is_fatal(), "{what}: {error}");
            assert_in_time(took, 2, &what);
            let samples = session.expect("it was connected").samples().len();
            assert!(samples <= SAMPLES_MAX, "{what}: {samples} samples");
        }
    }
}

#[test]
fn a_flood_while_the_user_thinks_ends_the_session_or_the_rest_when_it_should() {
    for dialect in DIALECTS {
        for of in [Flood::OplockBreak, Flood::LeaseBreak, Flood::KeepAlive, Flood::Answers] {
            let server = with([Fault::Flood { of, answered: true }.on(Step::Echo.command(dialect))]);
            let what = format!("{dialect:?} {of:?}");
            let (samples, took) = timed(async {
                let mut session = ClientSession::connect(&options(&server, dialect)).await.expect("it connects");
                session.echo().await.expect("it was answered");
                if let Err(error) = session.rest(Instant::now() + TIMEOUT).await {
                    assert_clear(&error);
                }
                session.samples().len()
            });
            assert_in_time(took, 2, &what);
            assert!(samples <= SAMPLES_MAX, "{what}: {samples} samples");
        }
    }
}

#[test]
fn a_flood_while_connecting_ends_in_time() {
    for dialect in DIALECTS {
        // In SMB1, only transactions have non-final responses.
        for of in FLOODS.into_iter().filter(|of| !is_smb1(dialect) || *of != Flood::Unfinished) {
            for step in [Step::Negotiate, Step::SessionSetup, Step::TreeConnect] {
                let server = with([Fault::Flood { of, answered: false }.on(step.command(dialect))]);
                let (result, took) = timed(ClientSession::connect(&options(&server, dialect)));
                let what = format!("{dialect:?} {of:?} {step:?}");
                assert_clear(&result.expect_err(&what));
                assert_in_time(took, CONNECT, &what);
            }
        }
    }
}

#[test]
fn an_interim_response_again_and_again_does_not_make_a_wait_by_design_endless() {
    for dialect in DIALECTS.into_iter().filter(|dialect| !is_smb1(*dialect)) {
        let server = with([Fault::Flood { of: Flood::Unfinished, answered: false }.on(smb2::Smb2Command::LOCK)]);
        let (error, took) = timed(async {
            let mut session = ClientSession::connect(&options(&server, dialect)).await.expect("it connects");
            let handle = open(&mut session).await.expect("it opens").handle;
            let range = smbscope_client::ByteRangeLock { offset: 0, length: 1, exclusive: true, wait: true };
            session.lock(handle, range).await.expect_err("there is no answer")
        });
        assert_clear(&error);
        assert!(error.to_string().contains("STATUS_PENDING"), "{error}");
        assert_in_time(took, 2, "a lock");
    }
}

#[test]
fn an_endless_login_ends_after_as_many_steps_as_any_mechanism_has() {
    for dialect in DIALECTS {
        let server = start(Script { endless_login: true, ..Script::new() });
        let (result, took) = timed(ClientSession::connect(&options(&server, dialect)));
        assert_clear(&result.expect_err("it never ends"));
        assert_in_time(took, CONNECT, "login");
        assert!(server.counters().commands < 20, "{:?}", server.counters());
    }
}

#[test]
fn steps_of_a_connect_that_each_take_nearly_the_timeout_are_bounded_together() {
    let late = TIMEOUT * 9 / 10;
    for dialect in DIALECTS {
        let rule = Fault::Delay(late).always();
        let server = ScriptedServer::start(Script { endless_login: true, ..Script::new() }.rule(rule)).unwrap();
        let (result, took) = timed(ClientSession::connect(&options(&server, dialect)));
        assert_clear(&result.expect_err("it never ends"));
        // A negotiate and eight legs of 450 ms would be 4 s.
        assert!(took < TIMEOUT * CONNECT + Duration::from_millis(1_000), "{dialect:?}: {took:?}");
    }
}

#[test]
fn a_listing_without_end_or_in_a_circle_ends_with_a_clear_line() {
    let endless = || Script { entries: usize::MAX, ..Script::new() };
    let looping = || Script { entries: 1_000, looping: true, ..Script::new() };
    for dialect in DIALECTS {
        for (name, script) in [("endless", endless()), ("looping", looping())] {
            let server = start(script);
            let what = format!("{dialect:?} {name}");
            for keep in [false, true] {
                let (error, took) = timed(async {
                    let mut session = ClientSession::connect(&options(&server, dialect)).await.expect("it connects");
                    let mut entries = Vec::new();
                    let info = Info::FILE_BOTH_DIRECTORY_INFORMATION;
                    session.list("dir\\*", info, 0, keep.then_some(&mut entries)).await.expect_err(&what)
                });
                assert_clear(&error);
                assert!(error.to_string().contains("listing"), "{what}: {error}");
                assert_in_time(took, OPERATION, &what);
            }
        }
    }
}

#[test]
fn sizes_that_no_work_can_be_done_with_are_refused_at_once() {
    for dialect in DIALECTS.into_iter().filter(|dialect| !is_smb1(*dialect)) {
        for max_transfer in [0, 1, 100] {
            let server = start(Script { max_transfer, ..Script::new() });
            let (result, took) = timed(ClientSession::connect(&options(&server, dialect)));
            let error = result.expect_err("it is too small");
            assert_clear(&error);
            assert!(error.to_string().contains(&format!("{max_transfer} bytes")), "{error}");
            assert_in_time(took, 1, "negotiate");
        }
    }
    let server = start(Script { smb1_buffer: 1, ..Script::new() });
    let (result, took) = timed(ClientSession::connect(&options(&server, Dialect::NtLm012)));
    let error = result.expect_err("it is too small");
    assert_clear(&error);
    assert!(error.to_string().contains("1 byte"), "{error}");
    assert_in_time(took, 1, "negotiate");
}

#[test]
fn more_data_than_a_read_asked_for_is_an_error_and_no_throughput() {
    for dialect in DIALECTS {
        let server = with([Fault::Malformed(Malformed::Longer(50)).on(Step::Read.command(dialect))]);
        let error = run(async {
            let mut session = ClientSession::connect(&options(&server, dialect)).await.expect("it connects");
            session.open_read_close("dir\\file.txt", 0, 100).await.expect_err("it was too much")
        });
        assert_clear(&error);
        assert!(error.to_string().contains("150 bytes") || is_smb1(dialect), "{error}");
        assert!(error.is_fatal(), "{error}");
        let server = with([Fault::Malformed(Malformed::Longer(50)).on(Step::Read.command(dialect))]);
        let (result, _) = run(life(&options(&server, dialect), Step::Read));
        assert!(result.expect_err("it was too much").is_fatal());
    }
}

#[test]
fn a_part_of_a_large_read_that_brings_too_much_is_an_error() {
    for dialect in DIALECTS.into_iter().filter(|dialect| !is_smb1(*dialect)) {
        let rule = Fault::Malformed(Malformed::Longer(50)).on(smb2::Smb2Command::READ).after(1);
        let script = Script { file_size: 1 << 20, max_transfer: 65_536, ..Script::new() }.rule(rule);
        let server = ScriptedServer::start(script).unwrap();
        let error = run(async {
            let mut session = ClientSession::connect(&options(&server, dialect)).await.expect("it connects");
            let handle = open(&mut session).await.expect("it opens").handle;
            session.read(handle, 0, 200_000).await.map(<[u8]>::len).expect_err("it was too much")
        });
        assert!(error.is_fatal() && error.to_string().contains("READ"), "{error}");
    }
}

#[test]
fn a_write_that_wrote_more_than_there_was_is_an_error() {
    for dialect in DIALECTS {
        let server = with([Fault::Malformed(Malformed::Longer(50)).on(Step::Write.command(dialect))]);
        let (result, _) = run(life(&options(&server, dialect), Step::Write));
        let error = result.expect_err("it was too much");
        assert_clear(&error);
        assert!(error.is_fatal() && error.to_string().contains("150"), "{dialect:?}: {error}");
    }
}

#[test]
fn a_huge_frame_that_trickles_ends_with_the_timeout_and_takes_no_memory_for_what_has_not_come() {
    for dialect in DIALECTS {
        for step in [Step::Negotiate, Step::SessionSetup, Step::TreeConnect, Step::Read, Step::List, Step::Echo] {
            let server = with([Fault::Trickle(Duration::from_millis(5)).on(step.command(dialect))]);
            let ((result, _), took) = timed(life(&options(&server, dialect), step));
            let error = result.expect_err("it never ends");
            assert_clear(&error);
            assert_in_time(took, 2, &format!("{dialect:?} {step:?}"));
        }
    }
}

#[test]
fn a_server_that_never_grants_a_credit_is_an_error_and_no_wait() {
    for dialect in DIALECTS.into_iter().filter(|dialect| !is_smb1(*dialect)) {
        let server = with([Fault::Malformed(Malformed::NoCredits).always()]);
        let (result, took) = timed(ClientSession::connect(&options(&server, dialect)));
        let error = result.expect_err("there is nothing to pay with");
        assert_clear(&error);
        assert!(error.to_string().contains("credit"), "{error}");
        assert_in_time(took, 1, "credits");
    }
}

/// Runs a preparation for a workload, with or without files of its own.
fn prepared(
    options: &SessionOptions,
    files: u32,
    within: Duration,
) -> Result<prepare::Prepared, prepare::PrepareError> {
    let set = FileSet {
        own_directories: true,
        shared: false,
        directories: 1,
        nested: 0,
        files,
        sizes: SizeDistribution::Fixed(100),
        seed: 1,
    };
    let request = PrepareRequest {
        directory: "bench",
        workload: "w",
        files: &set,
        made: &CreatedPaths::default(),
        users: 2,
        sessions: 2,
        within,
    };
    run(prepare::prepare(options, &request, &mut |_| {}))
}

#[test]
fn preparing_and_cleaning_have_a_deadline_of_their_own() {
    for dialect in DIALECTS {
        let write = if is_smb1(dialect) {
            Command::Smb1(smb1::Smb1Command::WRITE_ANDX)
        } else {
            Command::Smb2(smb2::Smb2Command::WRITE)
        };
        // Every write is answered in time, but 1,000 files would take more than half a minute.
        let script = Script { entries: 0, ..Script::new() }.rule(Fault::Delay(Duration::from_millis(40)).on(write));
        let server = ScriptedServer::start(script).unwrap();
        let begun = Instant::now();
        let error = prepared(&options(&server, dialect), 1_000, Duration::from_secs(1)).expect_err("too slow");
        assert!(begun.elapsed() < Duration::from_secs(1) + SLACK, "{:?}", begun.elapsed());
        let text = error.to_string();
        assert!(text.contains("--prepare-timeout") && !text.contains('\n'), "{text}");
        let server = ScriptedServer::start(Script::new().rule(Fault::Delay(Duration::from_secs(9)).always())).unwrap();
        let options = SessionOptions { timeout: Duration::from_secs(60), ..options(&server, dialect) };
        let limit = Duration::from_millis(300);
        let text = run(prepare::clean(&options, "bench", 2, limit, &mut |_| {})).expect_err("too slow").to_string();
        assert!(text.contains("--prepare-timeout"), "{text}");
    }
}

#[test]
fn a_flood_while_preparing_ends_it_with_a_clear_line() {
    for dialect in DIALECTS {
        for of in [Flood::OplockBreak, Flood::LeaseBreak, Flood::KeepAlive] {
            for step in [Step::Open, Step::Write, Step::Close] {
                let rule = Fault::Flood { of, answered: false }.on(step.command(dialect));
                let server = ScriptedServer::start(Script { entries: 0, ..Script::new() }.rule(rule)).unwrap();
                let begun = Instant::now();
                let error = prepared(&options(&server, dialect), 3, Duration::from_secs(60));
                let text = error.expect_err("nothing was answered").to_string();
                assert!(!text.contains('\n') && text.len() < 300, "{text:?}");
                assert_in_time(begun.elapsed(), 3, &text);
            }
        }
    }
}
