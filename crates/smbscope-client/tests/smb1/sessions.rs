//! Connecting: transports, users, signing, refusals.

use crate::smb1::support::{commands, connect, file, guest, pattern, plain_samba, samba, status, user};
use smbscope_client::{
    ClientError, ClientSigningPolicy, Credentials, Encryption, Secret, SessionOptions, SigningAlgorithm, Transport,
    smb1,
};
use smbscope_lab::{LabDialect, LabServerSettings, ServerSigningPolicy as LabSigning};
use smbscope_model::{Command, ExchangeOutcome};
use smbscope_wire::smb1::Smb1Command;
use smbscope_wire::status::NtStatus;
use std::net::{Ipv6Addr, SocketAddr};

/// Writes a file, reads it back and disconnects.
async fn work(options: &SessionOptions) -> Result<Option<SigningAlgorithm>, ClientError> {
    let mut session = smb1::Smb1ClientSession::connect(options).await?;
    let opened = session.open(&file("work.dat")).await?;
    let data = pattern(100_000);
    session.write(opened.handle, 0, &data).await?;
    assert_eq!(session.read(opened.handle, 0, 100_000).await?, data);
    session.close(opened.handle).await?;
    session.remove_file("work.dat").await?;
    session.disconnect().await?;
    let signing = session.facts().signing;
    // The legs of the logon and the messages before them can't be signed yet.
    let signed = session.samples().iter().skip(3).map(|sample| sample.signed);
    assert!(signed.into_iter().all(|signed| signed == signing.is_some()));
    assert!(session.samples().iter().all(|sample| sample.outcome == ExchangeOutcome::Complete));
    Ok(signing)
}

#[tokio::test]
async fn signing_is_what_both_sides_want() {
    for server_signing in [LabSigning::Off, LabSigning::On, LabSigning::Required] {
        let Some(server) = samba(&LabServerSettings { signing: server_signing, ..LabServerSettings::default() }) else {
            return;
        };
        for signing in [ClientSigningPolicy::Off, ClientSigningPolicy::On, ClientSigningPolicy::Required] {
            let result = work(&SessionOptions { signing, ..user(&server) }).await;
            let md5 = Some(SigningAlgorithm::Md5);
            match (signing, server_signing) {
                (ClientSigningPolicy::Off, LabSigning::Required) | (ClientSigningPolicy::Required, LabSigning::Off) => {
                    assert!(
                        matches!(result, Err(ClientError::Unsupported(_))),
                        "{signing:?}, {server_signing:?}: {result:?}"
                    );
                }
                (ClientSigningPolicy::Required, _) | (ClientSigningPolicy::On, LabSigning::Required) => {
                    assert_eq!(result.unwrap(), md5, "{signing:?}, {server_signing:?}");
                }
                _ => assert_eq!(result.unwrap(), None, "{signing:?}, {server_signing:?}"),
            }
        }
    }
}

#[tokio::test]
async fn guests_and_nobody_work_without_signatures() {
    let Some(server) = plain_samba() else { return };
    for credentials in [Credentials::Guest, Credentials::Anonymous] {
        for signing in [ClientSigningPolicy::Off, ClientSigningPolicy::On] {
            let options = SessionOptions { credentials: credentials.clone(), signing, ..guest(&server) };
            assert_eq!(work(&options).await.unwrap(), None);
        }
        let options = SessionOptions { credentials, signing: ClientSigningPolicy::Required, ..guest(&server) };
        let error = work(&options).await.unwrap_err();
        assert!(matches!(error, ClientError::Unsupported(_)), "{error}");
    }
    assert!(connect(&guest(&server)).await.facts().guest);
    assert!(!connect(&user(&server)).await.facts().guest);
}

#[tokio::test]
async fn a_server_that_requires_signatures_has_no_place_for_guests() {
    let Some(server) = samba(&LabServerSettings { signing: LabSigning::Required, ..LabServerSettings::default() })
    else {
        return;
    };
    let error = work(&guest(&server)).await.unwrap_err();
    assert!(matches!(error, ClientError::Unsupported(_)), "{error}");
}

#[tokio::test]
async fn a_wrong_password_is_refused_with_a_hint() {
    let Some(server) = plain_samba() else { return };
    let credentials = Credentials::Ntlm {
        domain: String::new(),
        user: server.user().to_owned(),
        password: Secret::new("wrong".to_owned()),
    };
    let error = smb1::Smb1ClientSession::connect(&SessionOptions { credentials, ..user(&server) }).await.unwrap_err();
    assert_eq!(error.status(), Some(NtStatus::LOGON_FAILURE));
    assert!(
        error
            .to_string()
            .ends_with("STATUS_LOGON_FAILURE; the user name or the password is wrong, or guests are not allowed"),
        "{error}"
    );
}

#[tokio::test]
async fn a_user_who_is_let_in_as_a_guest_can_see_it() {
    let Some(server) = plain_samba() else { return };
    let credentials =
        Credentials::Ntlm { domain: String::new(), user: "stranger".to_owned(), password: Secret::new("x".to_owned()) };
    assert!(connect(&SessionOptions { credentials, ..user(&server) }).await.facts().guest);
}

#[tokio::test]
async fn a_missing_share_is_refused_with_a_hint() {
    let Some(server) = plain_samba() else { return };
    let missing = smb1::Smb1ClientSession::connect(&SessionOptions { share: "nowhere".to_owned(), ..user(&server) })
        .await
        .unwrap_err();
    assert_eq!(missing.status(), Some(NtStatus::BAD_NETWORK_NAME));
    assert!(matches!(missing, ClientError::Refused { .. }), "{missing}");
}

#[tokio::test]
async fn a_share_that_requires_encryption_lets_nobody_do_anything() {
    let Some(server) = plain_samba() else { return };
    // Samba accepts the tree connect nevertheless.
    let options = SessionOptions { share: server.encrypted_share().to_owned(), ..user(&server) };
    let mut session = connect(&options).await;
    assert_eq!(status(session.open(&file("a.dat")).await), Some(NtStatus::ACCESS_DENIED));
}

#[tokio::test]
async fn encryption_is_not_to_be_had() {
    let Some(server) = plain_samba() else { return };
    let options = SessionOptions { encryption: Encryption::Required(None), ..user(&server) };
    let error = smb1::Smb1ClientSession::connect(&options).await.unwrap_err();
    assert!(matches!(error, ClientError::Unsupported(_)) && error.to_string().contains("no encryption"), "{error}");
}

#[tokio::test]
async fn a_server_without_smb1_is_named_as_such() {
    let Some(server) = samba(&LabServerSettings { min_dialect: LabDialect::Smb202, ..LabServerSettings::default() })
    else {
        return;
    };
    let error = smb1::Smb1ClientSession::connect(&guest(&server)).await.unwrap_err();
    assert!(matches!(error, ClientError::Unsupported(_)) && error.to_string().contains("NT LM 0.12"), "{error}");
}

#[tokio::test]
async fn a_netbios_session_carries_the_same() {
    let Some(server) = plain_samba() else { return };
    assert_eq!(work(&SessionOptions { transport: Transport::NetBios, ..user(&server) }).await.unwrap(), None);
}

#[tokio::test]
async fn so_does_ipv6() {
    let Some(server) = plain_samba() else { return };
    let address = SocketAddr::from((Ipv6Addr::LOCALHOST, server.port()));
    if std::net::TcpStream::connect(address).is_err() {
        smbscope_testkit::skip::unable(format_args!(
            "the server does not listen on {address}; this machine may have no IPv6"
        ));
        return;
    }
    assert_eq!(work(&SessionOptions { address, host: "::1".to_owned(), ..user(&server) }).await.unwrap(), None);
}

#[tokio::test]
async fn every_command_of_connecting_and_leaving_has_its_sample() {
    let Some(server) = plain_samba() else { return };
    let mut session = connect(&user(&server)).await;
    session.echo().await.unwrap();
    session.disconnect().await.unwrap();
    let first = session.samples()[0];
    assert_eq!(first.command, Command::Smb1(Smb1Command::NEGOTIATE));
    // A header, no words, 12 bytes of data and the two counts.
    assert_eq!(first.request_bytes, 32 + 1 + 2 + 12);
    assert!(first.request_first <= first.request_last && first.request_last <= first.response_first);
    let expected = [
        Smb1Command::NEGOTIATE,
        Smb1Command::SESSION_SETUP_ANDX,
        Smb1Command::SESSION_SETUP_ANDX,
        Smb1Command::TREE_CONNECT_ANDX,
        Smb1Command::ECHO,
        Smb1Command::TREE_DISCONNECT,
        Smb1Command::LOGOFF_ANDX,
    ];
    assert_eq!(commands(&mut session), expected);
}

#[tokio::test]
async fn a_server_that_dies_leaves_the_command_unanswered() {
    let Some(server) = plain_samba() else { return };
    let mut session = connect(&user(&server)).await;
    server.kill();
    let error = session.echo().await.unwrap_err();
    assert!(matches!(error, ClientError::Connection { .. }) && error.is_fatal(), "{error}");
    let last = session.samples().last().copied().unwrap();
    assert_eq!((last.outcome, last.status), (ExchangeOutcome::Unanswered, None));
}

#[tokio::test]
async fn a_server_that_stands_still_runs_into_the_time_limit() {
    let Some(server) = plain_samba() else { return };
    let options = SessionOptions { timeout: std::time::Duration::from_millis(500), ..user(&server) };
    let mut session = connect(&options).await;
    server.pause();
    let error = session.echo().await.unwrap_err();
    server.resume();
    assert!(matches!(error, ClientError::TimedOut { .. }), "{error}");
    assert_eq!(session.samples().last().map(|sample| sample.outcome), Some(ExchangeOutcome::Unanswered));
}
