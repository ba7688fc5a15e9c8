//! Unusual but valid responses: late, interim, interrupted and fragmented. They are measured, and nothing fails.

use crate::faults::support::{DIALECTS, Step, TIMEOUT, is_smb1, open, options, run, server};
use smbscope_client::{ClientSession, SessionOptions};
use smbscope_model::ExchangeOutcome;
use smbscope_testkit::server::Fault;
use smbscope_wire::smb2;
use std::time::Duration;

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
