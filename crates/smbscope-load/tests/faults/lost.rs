//! Broken connections and missing responses: the command counts as unanswered.

use crate::faults::support::{DIALECTS, Step, TIMEOUT, assert_clear, life, open, options, run, server};
use smbscope_client::{ClientError, ClientSession};
use smbscope_model::ExchangeOutcome;
use smbscope_testkit::server::Fault;
use std::time::Instant;

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
                // Skip the open that precedes every other step.
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
