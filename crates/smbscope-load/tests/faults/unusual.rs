//! Faults within the protocol.
//!
//! Refusals are data: the status has its name, and the session continues. Commands on broken connections or without a
//! response count as unanswered. Late, interim, interrupted and fragmented responses are measured, and nothing fails.

use super::{DIALECTS, Step, TIMEOUT, assert_clear, is_smb1, life, open, options, run, server};
use smbscope_client::{ClientError, ClientSession, SessionOptions};
use smbscope_model::ExchangeOutcome;
use smbscope_testkit::server::Fault;
use smbscope_wire::smb2;
use smbscope_wire::status::NtStatus;
use std::time::{Duration, Instant};

const STORM: NtStatus = NtStatus::INSUFFICIENT_RESOURCES;

#[test]
fn a_refused_command_is_a_status_and_the_session_goes_on() {
    for dialect in DIALECTS {
        for step in Step::ALL.into_iter().filter(|step| !step.is_setup() && *step != Step::Disconnect) {
            let opens_before = u64::from(step == Step::Open);
            let server = server([Fault::Status(STORM).on(step.command(dialect)).after(opens_before).once()]);
            let (result, session) = run(async {
                let (result, mut session) = life(&options(&server, dialect), step).await;
                let again = open(session.as_mut().expect("connected")).await;
                assert!(again.is_ok(), "{dialect:?} {step:?}: {again:?}");
                (result, session)
            });
            let error = result.expect_err("it was refused");
            assert_eq!(error.status(), Some(STORM), "{dialect:?} {step:?}");
            assert!(!error.is_fatal());
            assert!(error.to_string().contains("STATUS_INSUFFICIENT_RESOURCES"), "{error}");
            let samples = session.expect("connected").samples().clone();
            let refused: Vec<_> = samples.iter().filter(|sample| sample.status == Some(STORM)).collect();
            assert_eq!(refused.len(), 1, "{dialect:?} {step:?}");
            assert_eq!((refused[0].command, refused[0].outcome), (step.command(dialect), ExchangeOutcome::Complete));
        }
    }
}

#[test]
fn a_storm_is_counted_command_by_command() {
    for dialect in DIALECTS {
        let read = Step::Read.command(dialect);
        let server = server([Fault::Status(STORM).on(read).share(0.25)]);
        run(async {
            let mut session = ClientSession::connect(&options(&server, dialect)).await.unwrap();
            let handle = open(&mut session).await.unwrap().handle;
            session.samples().clear();
            for _ in 0..100 {
                drop(session.read(handle, 0, 10).await.map(drop));
            }
            let refused = session.samples().iter().filter(|sample| sample.status == Some(STORM)).count();
            assert_eq!((session.samples().len(), refused), (100, 25), "{dialect:?}");
        });
    }
}

#[test]
fn a_refused_logon_or_share_says_what_to_do() {
    for dialect in DIALECTS {
        for (step, status) in [
            (Step::SessionSetup, NtStatus::LOGON_FAILURE),
            (Step::SessionSetup, NtStatus::ACCESS_DENIED),
            (Step::TreeConnect, NtStatus::BAD_NETWORK_NAME),
            (Step::TreeConnect, NtStatus::INSUFFICIENT_RESOURCES),
        ] {
            let server = server([Fault::Status(status).on(step.command(dialect))]);
            let error = run(ClientSession::connect(&options(&server, dialect))).expect_err("it was refused");
            assert_clear(&error);
            assert_eq!(error.status(), Some(status), "{dialect:?} {step:?}: {error}");
            assert!(matches!(error, ClientError::Refused { .. }), "{dialect:?} {step:?}: {error}");
        }
    }
}

#[test]
fn a_refused_member_of_a_compound_refuses_the_operation() {
    let server = server([Fault::Status(STORM).on(smbscope_wire::smb2::Smb2Command::READ).once()]);
    for dialect in &DIALECTS[1..] {
        let options = smbscope_client::SessionOptions { compound: true, ..options(&server, *dialect) };
        server.add(Fault::Status(STORM).on(smbscope_wire::smb2::Smb2Command::CREATE).once());
        run(async {
            let mut session = ClientSession::connect(&options).await.unwrap();
            let error = session.open_read_close("file.txt", 0, 10).await.unwrap_err();
            assert_eq!(error.status(), Some(STORM), "{error}");
            let mut results = Vec::new();
            for _ in 0..3 {
                results.push(session.open_read_close("file.txt", 0, 10).await.ok());
            }
            assert_eq!(results.last(), Some(&Some(10)), "{results:?}");
        });
    }
}

/// Asserts that the last sample of the session is an unanswered command of the step.
fn assert_unanswered(session: Option<ClientSession>, step: Step, dialect: smbscope_model::Dialect) {
    let mut session = session.expect("the session was made");
    let last = session.samples().last().copied().expect("the command was measured");
    assert_eq!(last.command, step.command(dialect), "{step:?}");
    assert_eq!((last.outcome, last.status), (ExchangeOutcome::Unanswered, None), "{step:?}");
    assert_eq!(last.response_time(), None);
}

#[test]
fn a_connection_that_ends_leaves_its_command_unanswered() {
    for dialect in DIALECTS {
        for fault in [Fault::Reset, Fault::Close] {
            for step in [Step::Open, Step::Read, Step::Write, Step::Query, Step::List, Step::Close, Step::Echo] {
                // For `Step::Open`, skip the open that `life` performs before every step.
                let opens_before = u64::from(step == Step::Open);
                let server = server([fault.on(step.command(dialect)).after(opens_before)]);
                let (result, session) = run(life(&options(&server, dialect), step));
                let error = result.expect_err("the connection ended");
                assert_clear(&error);
                assert!(matches!(error, ClientError::Connection { .. }), "{dialect:?} {fault:?} {step:?}: {error}");
                assert!(error.is_fatal());
                assert_unanswered(session, step, dialect);
            }
        }
    }
}

#[test]
fn a_connection_that_ends_while_it_is_made_is_an_error_that_says_so() {
    for dialect in DIALECTS {
        for fault in [Fault::Reset, Fault::Close] {
            for step in [Step::Negotiate, Step::SessionSetup, Step::TreeConnect] {
                let server = server([fault.on(step.command(dialect))]);
                let error = run(ClientSession::connect(&options(&server, dialect))).expect_err("the connection ended");
                assert_clear(&error);
                assert!(matches!(error, ClientError::Connection { .. }), "{dialect:?} {fault:?} {step:?}: {error}");
            }
        }
    }
}

#[test]
fn a_silent_server_is_given_up_after_the_timeout() {
    for dialect in DIALECTS {
        for step in [Step::Negotiate, Step::SessionSetup, Step::TreeConnect, Step::Read, Step::List, Step::Echo] {
            let server = server([Fault::Silent.on(step.command(dialect))]);
            let start = Instant::now();
            let (result, session) = run(life(&options(&server, dialect), step));
            let error = result.expect_err("there is no answer");
            assert_clear(&error);
            assert!(matches!(error, ClientError::TimedOut { .. }), "{dialect:?} {step:?}: {error}");
            assert!(start.elapsed() >= TIMEOUT && start.elapsed() < 8 * TIMEOUT, "{:?}", start.elapsed());
            if !step.is_setup() {
                assert_unanswered(session, step, dialect);
            }
        }
    }
}

#[test]
fn a_session_is_of_no_use_after_its_connection_ended() {
    for dialect in DIALECTS {
        let server = server([Fault::Close.on(Step::Echo.command(dialect))]);
        run(async {
            let mut session = ClientSession::connect(&options(&server, dialect)).await.unwrap();
            session.echo().await.unwrap_err();
            let error = open(&mut session).await.unwrap_err();
            assert!(error.is_fatal(), "{dialect:?}: {error}");
        });
    }
}

#[test]
fn a_server_that_is_gone_is_an_error_that_says_so() {
    for dialect in DIALECTS {
        let server = server([]);
        let options = options(&server, dialect);
        run(async {
            let mut session = ClientSession::connect(&options).await.unwrap();
            drop(server);
            let error = session.echo().await.unwrap_err();
            assert!(matches!(error, ClientError::Connection { .. }), "{dialect:?}: {error}");
            let error = ClientSession::connect(&options).await.unwrap_err();
            assert!(matches!(error, ClientError::Unreachable { .. }), "{dialect:?}: {error}");
            assert!(error.to_string().contains(&format!("{}", options.address)), "{error}");
            assert_clear(&error);
        });
    }
}

#[test]
fn a_stall_is_in_the_response_time() {
    let stall = Duration::from_millis(120);
    for dialect in DIALECTS {
        let server = server([Fault::Stall(stall).on(Step::Read.command(dialect)).after(1).once()]);
        run(async {
            let mut session = ClientSession::connect(&options(&server, dialect)).await.unwrap();
            let handle = open(&mut session).await.unwrap().handle;
            session.samples().clear();
            for _ in 0..3 {
                session.read(handle, 0, 10).await.unwrap();
            }
            let times: Vec<_> = session.samples().iter().filter_map(|sample| sample.response_time()).collect();
            assert_eq!(times.len(), 3);
            assert!(times[1] >= stall && times[0] < stall && times[2] < stall, "{dialect:?}: {times:?}");
        });
    }
}

#[test]
fn an_interim_response_does_not_end_the_wait() {
    // Longer than the timeout: a server that responds "pending" is working.
    let delay = TIMEOUT + Duration::from_millis(100);
    for dialect in DIALECTS.into_iter().filter(|dialect| !is_smb1(*dialect)) {
        let server = server([Fault::Pending(delay).on(smb2::Smb2Command::READ)]);
        run(async {
            let mut options = options(&server, dialect);
            options.timeout = 4 * TIMEOUT;
            let mut session = ClientSession::connect(&options).await.unwrap();
            let handle = open(&mut session).await.unwrap().handle;
            session.samples().clear();
            assert_eq!(session.read(handle, 0, 10).await.unwrap().len(), 10);
            let [sample] = session.samples()[..] else { panic!("one command") };
            assert!(sample.response_time().unwrap() >= delay);
            let interim = sample.interim.expect("it was noted");
            assert!(interim < sample.response_first && interim >= sample.request_last);
            session.echo().await.unwrap();
        });
    }
}

#[test]
fn a_break_in_the_midst_changes_nothing() {
    for dialect in DIALECTS {
        for fault in [Fault::OplockBreak, Fault::LeaseBreak] {
            let server = server([fault.on(Step::Read.command(dialect)).once()]);
            run(async {
                let options = SessionOptions { leases: true, ..options(&server, dialect) };
                let mut session = ClientSession::connect(&options).await.unwrap();
                let handle = open(&mut session).await.unwrap().handle;
                let read = session.read(handle, 0, 10).await.map(<[u8]>::len);
                assert_eq!(read.unwrap(), 10, "{dialect:?} {fault:?}");
                session.close(handle).await.unwrap();
            });
        }
    }
}

#[test]
fn keep_alives_are_passed_over() {
    for dialect in DIALECTS {
        let server = server([Fault::KeepAlive.always()]);
        run(async {
            let mut session = ClientSession::connect(&options(&server, dialect)).await.unwrap();
            session.echo().await.unwrap();
        });
    }
}

#[test]
fn an_answer_in_pieces_has_a_first_and_a_last_byte() {
    // Long enough to keep the pieces apart on a busy machine.
    let pause = Duration::from_millis(60);
    for dialect in DIALECTS {
        let server = server([Fault::Dribble { piece: 150, pause }.on(Step::Read.command(dialect))]);
        run(async {
            let mut session = ClientSession::connect(&options(&server, dialect)).await.unwrap();
            let handle = open(&mut session).await.unwrap().handle;
            session.samples().clear();
            assert_eq!(session.read(handle, 0, 200).await.unwrap().len(), 200);
            let [sample] = session.samples()[..] else { panic!("one command") };
            assert_eq!(sample.outcome, ExchangeOutcome::Complete);
            assert!(sample.response_last - sample.response_first >= pause / 2, "{dialect:?}");
        });
    }
}
