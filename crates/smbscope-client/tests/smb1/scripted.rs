//! Behaviour that Samba doesn't show on demand, from a scripted server.

use smbscope_client::{ClientError, SessionOptions, smb1};
use smbscope_model::{Dialect, ExchangeOutcome};
use smbscope_testkit::server::{Fault, Malformed, Script, ScriptedServer};
use smbscope_wire::smb1::Smb1Command;
use smbscope_wire::status::NtStatus;
use std::time::Duration;

async fn connect(server: &ScriptedServer) -> Result<smb1::Smb1ClientSession, ClientError> {
    let mut options = SessionOptions::new("127.0.0.1", server.address(), "share");
    options.dialect = Dialect::NtLm012;
    options.timeout = Duration::from_millis(500);
    smb1::Smb1ClientSession::connect(&options).await
}

#[tokio::test]
async fn a_refusal_leaves_the_session_usable() {
    let refused = Fault::Status(NtStatus::INSUFFICIENT_RESOURCES).on(Smb1Command::ECHO).once();
    let server = ScriptedServer::start(Script::new().rule(refused)).unwrap();
    let mut session = connect(&server).await.unwrap();
    let error = session.echo().await.unwrap_err();
    assert_eq!(error.status(), Some(NtStatus::INSUFFICIENT_RESOURCES));
    assert!(!error.is_fatal());
    session.echo().await.unwrap();
}

#[tokio::test]
async fn an_answer_that_comes_too_late_is_not_taken_for_another_one() {
    let late = Fault::Delay(Duration::from_millis(200)).on(Smb1Command::ECHO).once();
    let server = ScriptedServer::start(Script::new().rule(late)).unwrap();
    let mut session = connect(&server).await.unwrap();
    session.samples().clear();
    // The caller gives up before the timeout.
    assert!(tokio::time::timeout(Duration::from_millis(50), session.echo()).await.is_err());
    session.check_directory("d").await.unwrap();
    let outcomes: Vec<_> = session.samples().iter().map(|sample| sample.outcome).collect();
    assert_eq!(outcomes, [ExchangeOutcome::Unanswered, ExchangeOutcome::Complete]);
}

#[tokio::test]
async fn answers_that_break_the_protocol_end_the_session_with_words() {
    for damage in [
        Malformed::ProtocolId,
        Malformed::StructureSize,
        Malformed::FrameType,
        Malformed::Truncated(30),
        Malformed::CutOff(30),
        Malformed::MessageId,
        Malformed::WithoutRequest,
        Malformed::Command,
        Malformed::NotAResponse,
    ] {
        let broken = Fault::Malformed(damage).on(Smb1Command::ECHO).once();
        let server = ScriptedServer::start(Script::new().rule(broken)).unwrap();
        let mut session = connect(&server).await.unwrap();
        let error = session.echo().await.expect_err("such an answer is no echo");
        assert!(error.is_fatal(), "{damage:?}: {error}");
    }
}

#[tokio::test]
async fn a_server_without_smb1_is_named_as_such() {
    let server = ScriptedServer::start(Script { smb1: false, ..Script::new() }).unwrap();
    let error = connect(&server).await.unwrap_err();
    assert!(error.to_string().contains("NT LM 0.12"), "{error}");
}
