//! Expected waits: locks, watches, oplock breaks.

use crate::smb1::support::{commands, connect, file, plain_samba, status, user};
use smbscope_client::{ByteRangeLock, ClientSigningPolicy, CreateDisposition, OpenParameters, SessionOptions};
use smbscope_model::{CommandGroup, ExchangeOutcome, Subcommand};
use smbscope_wire::smb1::Smb1Command;
use smbscope_wire::status::NtStatus;
use std::time::{Duration, Instant};

#[tokio::test]
async fn a_lock_that_waits_gets_the_range_when_it_is_free() {
    let Some(server) = plain_samba() else { return };
    // Expected waits have no timeout.
    let options = SessionOptions { timeout: Duration::from_millis(300), ..user(&server) };
    let (mut one, mut other) = (connect(&options).await, connect(&options).await);
    let here = one.open(&file("a.dat")).await.unwrap().handle;
    let there = other.open(&file("a.dat")).await.unwrap().handle;
    let range = ByteRangeLock { offset: 0, length: 10, exclusive: true, wait: true };
    one.lock(here, range).await.unwrap();
    let unlocking = async {
        tokio::time::sleep(Duration::from_millis(700)).await;
        one.unlock(here, 0, 10).await
    };
    let (locked, unlocked) = tokio::join!(other.lock(there, range), unlocking);
    locked.unwrap();
    unlocked.unwrap();
    let waited = other.samples().last().copied().unwrap();
    assert_eq!((waited.group, waited.outcome), (CommandGroup::Waiting, ExchangeOutcome::Complete));
    assert!(waited.response_time().unwrap() >= Duration::from_millis(500));
}

#[tokio::test]
async fn an_oplock_is_given_back_when_the_server_asks_for_it() {
    let Some(server) = plain_samba() else { return };
    for signing in [ClientSigningPolicy::Off, ClientSigningPolicy::Required] {
        let options = SessionOptions { leases: true, signing, ..user(&server) };
        let (mut owner, mut other) = (connect(&options).await, connect(&options).await);
        let name = format!("{signing:?}.dat");
        let held = owner.open(&file(&name)).await.unwrap().handle;
        owner.samples().clear();
        // The open waits for the owner's acknowledgement, which it sends while waiting for a response of its own.
        let open = file(&name);
        let opening = other.open(&open);
        let working = async {
            for _ in 0..10 {
                tokio::time::sleep(Duration::from_millis(20)).await;
                owner.echo().await.unwrap();
            }
        };
        let (opened, ()) = tokio::join!(opening, working);
        let opened = opened.unwrap().handle;
        let breaks: Vec<_> =
            owner.samples().iter().filter(|sample| sample.group == CommandGroup::Waiting).copied().collect();
        assert_eq!(breaks.len(), 2, "the break and its acknowledgement: {breaks:?}");
        assert_eq!(breaks[0].subcommand, Some(Subcommand::ServerInitiated));
        assert_eq!(breaks[0].outcome, ExchangeOutcome::ServerInitiated);
        assert_eq!(breaks[1].outcome, ExchangeOutcome::NoResponseByDesign);
        assert!(owner.samples().iter().all(|sample| sample.outcome != ExchangeOutcome::Unanswered));
        // The signing sequence is intact.
        owner.write(held, 0, b"mine").await.unwrap();
        assert_eq!(other.read(opened, 0, 4).await.unwrap(), b"mine");
        owner.close(held).await.unwrap();
    }
}

#[tokio::test]
async fn a_session_at_rest_gives_its_oplock_back_at_once() {
    let Some(server) = plain_samba() else { return };
    let options = SessionOptions { leases: true, ..user(&server) };
    let (mut owner, mut other) = (connect(&options).await, connect(&options).await);
    owner.open(&file("a.dat")).await.unwrap();
    owner.samples().clear();
    let open = file("a.dat");
    let until = Instant::now() + Duration::from_millis(1500);
    let (opened, rested) = tokio::join!(other.open(&open), owner.rest(until));
    opened.unwrap();
    rested.unwrap();
    assert!(Instant::now() >= until);
    let outcomes: Vec<_> = owner.samples().iter().map(|sample| sample.outcome).collect();
    assert_eq!(outcomes, [ExchangeOutcome::ServerInitiated, ExchangeOutcome::NoResponseByDesign]);
    owner.echo().await.unwrap();
}

/// FILE_NOTIFY_CHANGE_FILE_NAME and _DIR_NAME.
const NAMES: u32 = 3;

#[tokio::test]
async fn a_watch_waits_beside_other_commands() {
    let Some(server) = plain_samba() else { return };
    for signing in [ClientSigningPolicy::Off, ClientSigningPolicy::Required] {
        let mut session = connect(&SessionOptions { signing, ..user(&server) }).await;
        let root =
            OpenParameters { path: "", access: 0x81, options: 1, disposition: CreateDisposition::Open, ..file("") };
        let root = session.open(&root).await.unwrap();
        session.watch(root.handle, NAMES, false).await.unwrap();
        session.samples().clear();
        // Samba starts to watch some time after accepting the request. The response arrives during other waits.
        let mut made = 0;
        while made < 100 && !session.has_changes() {
            session.make_directory(&format!("{signing:?} {made}")).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
            session.echo().await.unwrap();
            made += 1;
        }
        let changes = session.changes().await.unwrap();
        assert_eq!(changes[0].action, 1);
        assert!(changes[0].name.starts_with(&format!("{signing:?}")), "{changes:?}");
        let mut samples = session.samples().iter().filter(|sample| sample.group == CommandGroup::Waiting);
        assert_eq!(samples.next().map(|sample| sample.outcome), Some(ExchangeOutcome::Complete));
        session.close(root.handle).await.unwrap();
    }
}

#[tokio::test]
async fn a_watch_is_taken_back_and_signatures_go_on() {
    let Some(server) = plain_samba() else { return };
    for signing in [ClientSigningPolicy::Off, ClientSigningPolicy::Required] {
        let mut session = connect(&SessionOptions { signing, ..user(&server) }).await;
        session.make_directory("quiet").await.unwrap();
        let quiet = OpenParameters { path: "quiet", access: 0x81, options: 1, ..file("") };
        let quiet = session.open(&quiet).await.unwrap();
        session.watch(quiet.handle, NAMES, true).await.unwrap();
        commands(&mut session);
        session.cancel_watch().await.unwrap();
        assert_eq!(status(session.changes().await), Some(NtStatus::CANCELLED));
        let samples: Vec<_> = session.samples().drain(..).collect();
        assert_eq!(samples[0].command, smbscope_model::Command::Smb1(Smb1Command::NT_CANCEL));
        assert_eq!(samples[0].outcome, ExchangeOutcome::NoResponseByDesign);
        // NT_CANCEL takes one sequence number, not two (MS-CIFS 3.1.4.1): the next responses still verify.
        session.echo().await.unwrap();
        session.close(quiet.handle).await.unwrap();
        session.remove_directory("quiet").await.unwrap();
    }
}
