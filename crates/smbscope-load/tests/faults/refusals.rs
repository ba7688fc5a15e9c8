//! Refusals by the server are data: the status has its name, and the session continues.

use crate::faults::support::{DIALECTS, Step, assert_clear, life, open, options, run, server};
use smbscope_client::{ClientError, ClientSession};
use smbscope_model::ExchangeOutcome;
use smbscope_testkit::server::Fault;
use smbscope_wire::status::NtStatus;

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
