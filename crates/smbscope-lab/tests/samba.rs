//! Real servers, one per test. Skipped without Samba.

mod common;

use common::{As, any_lives, said, server, smbclient};
use smbscope_lab::{LabDialect, LabServerSettings, ServerSigningPolicy};
use smbscope_testkit::eventually;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

#[test]
fn a_server_leaves_no_process_and_no_folder() {
    let Some(server) = server(&LabServerSettings::default()) else { return };
    // Samba starts helpers for its named pipes, which leave the process group.
    let user = As::User(server.user(), server.password());
    let _listing = smbclient(&server, "IPC$", user, LabDialect::Smb311, "help");
    let (folder, pids) = (server.folder().to_owned(), server.pids());
    assert!(!pids.is_empty() && folder.join("smb.conf").exists());
    drop(server);
    assert!(!folder.exists());
    assert!(!any_lives(&pids), "{pids:?}");
}

#[test]
fn guests_and_users_see_the_same_files_in_every_dialect() {
    let Some(server) = server(&LabServerSettings { guests: true, ..LabServerSettings::default() }) else { return };
    for dialect in LabDialect::ALL {
        let name = format!("from-{dialect}");
        fs::write(server.folder().join("upload"), dialect.name()).expect("the server's folder can be written to");
        let put = format!("put {} {name}", server.folder().join("upload").display());
        let user = As::User(server.user(), server.password());
        let Some(output) = smbclient(&server, server.share(), user, dialect, &put) else { return };
        assert!(output.status.success(), "{dialect}: {}", said(&output));
        assert_eq!(fs::read_to_string(server.share_folder().join(&name)).expect("the file arrived"), dialect.name());

        let output = smbclient(&server, server.share(), As::Guest, dialect, &format!("ls {name}; rm {name}"));
        let output = output.expect("smbclient was there");
        assert!(output.status.success() && said(&output).contains(&name), "{dialect}: {}", said(&output));
        assert!(!server.share_folder().join(&name).exists(), "{dialect}: the guest could not remove the file");
    }
}

#[test]
fn a_wrong_password_is_refused() {
    let Some(server) = server(&LabServerSettings::default()) else { return };
    let wrong = As::User(server.user(), "wrong");
    let Some(output) = smbclient(&server, server.share(), wrong, LabDialect::Smb311, "ls") else { return };
    assert!(said(&output).contains("NT_STATUS_LOGON_FAILURE"), "{}", said(&output));
}

#[test]
fn dialects_outside_the_range_are_refused() {
    let settings = LabServerSettings {
        min_dialect: LabDialect::Smb210,
        max_dialect: LabDialect::Smb300,
        ..LabServerSettings::default()
    };
    let Some(server) = server(&settings) else { return };
    for (dialect, works) in [
        (LabDialect::Nt1, false),
        (LabDialect::Smb202, false),
        (LabDialect::Smb210, true),
        (LabDialect::Smb300, true),
        // A client's newest dialect is an offer: the server chooses 3.0.
        (LabDialect::Smb311, true),
    ] {
        let user = As::User(server.user(), server.password());
        let Some(output) = smbclient(&server, server.share(), user, dialect, "ls") else { return };
        assert_eq!(output.status.success(), works, "{dialect}: {}", said(&output));
    }
}

#[test]
fn settings_reach_samba() {
    let settings = LabServerSettings {
        signing: ServerSigningPolicy::Required,
        encrypt: true,
        read_only: true,
        users: 3,
        extra: vec!["[share] comment = of the test".to_owned()],
        ..LabServerSettings::default()
    };
    let Some(server) = server(&settings) else { return };
    assert_eq!(server.users().map(|(name, _)| name).collect::<Vec<_>>(), ["bench", "bench2", "bench3"]);
    for (user, password) in server.users() {
        let who = As::User(user, password);
        let Some(output) = smbclient(&server, server.share(), who, LabDialect::Smb311, "mkdir x") else { return };
        // The session works; only writing to the share fails.
        assert!(said(&output).contains("making remote directory"), "{user}: {}", said(&output));
        assert!(!server.share_folder().join("x").exists(), "{user}");
    }
    let user = As::User(server.user(), server.password());
    let output = smbclient(&server, server.share(), user, LabDialect::Smb210, "ls").expect("smbclient was there");
    assert!(said(&output).contains("NT_STATUS_ACCESS_DENIED"), "2.1 can't encrypt: {}", said(&output));
}

#[test]
fn a_setting_that_samba_does_not_know_is_an_error() {
    let settings = LabServerSettings { extra: vec!["strickt sync = yes".to_owned()], ..LabServerSettings::default() };
    if smbscope_lab::available().is_err() {
        return smbscope_testkit::skip::missing("no Samba");
    }
    let error = smbscope_lab::LabServer::start(&settings).expect_err("there is no such parameter");
    assert!(error.to_string().contains("strickt sync"), "{error}");
}

#[test]
fn passwords_are_in_files_for_the_owner_only() {
    let Some(server) = server(&LabServerSettings::default()) else { return };
    for name in ["password", "passwords"] {
        let file = server.folder().join(name);
        assert_eq!(fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);
        assert!(fs::read_to_string(&file).expect("it can be read").contains(server.password()));
    }
    let state = fs::read_to_string(server.folder().join("state.json")).expect("it can be read");
    assert!(!state.contains(server.password()) && !format!("{server:?}").contains(server.password()));
}

#[test]
fn two_servers_are_two_servers() {
    let (Some(first), Some(second)) = (server(&LabServerSettings::default()), server(&LabServerSettings::default()))
    else {
        return;
    };
    assert_ne!(first.port(), second.port());
    assert_ne!(first.folder(), second.folder());
    assert!(first.pids().iter().all(|pid| !second.pids().contains(pid)));
    let port = second.port();
    drop(first);
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
}

#[test]
fn a_stalled_server_answers_late() {
    let Some(server) = server(&LabServerSettings::default()) else { return };
    let user = As::User(server.user(), server.password());
    let started = Instant::now();
    let output = std::thread::scope(|scope| {
        server.pause();
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(700));
            server.resume();
        });
        smbclient(&server, server.share(), user, LabDialect::Smb311, "ls")
    });
    let Some(output) = output else { return };
    assert!(output.status.success(), "{}", said(&output));
    assert!(started.elapsed() >= Duration::from_millis(700), "{:?}", started.elapsed());
}

#[test]
fn a_killed_server_is_gone_and_its_folder_goes_with_the_value() {
    let Some(server) = server(&LabServerSettings::default()) else { return };
    let (folder, port) = (server.folder().to_owned(), server.port());
    server.kill();
    assert!(eventually(|| server.pids().is_empty()));
    // The system closes the socket a moment later, and another test's server may take the port for a while.
    assert!(eventually(|| std::net::TcpStream::connect(("127.0.0.1", port)).is_err()));
    assert!(folder.exists());
    server.stop().expect("nothing is in the way");
    assert!(!folder.exists());
}

#[test]
fn cpu_time_of_ended_connections_stays_counted() {
    let Some(server) = server(&LabServerSettings::default()) else { return };
    let before = server.cpu_time();
    for _ in 0..5 {
        let user = As::User(server.user(), server.password());
        let Some(_listing) = smbclient(&server, server.share(), user, LabDialect::Smb311, "ls") else { return };
    }
    assert!(server.cpu_time() > before, "{before:?}");
}

#[test]
fn the_same_port_is_open_for_both_versions_of_ip() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return smbscope_testkit::skip::unable("this machine has no IPv6");
    }
    for delay in [None, Some(Duration::from_millis(1))] {
        let Some(server) = server(&LabServerSettings { delay, ..LabServerSettings::default() }) else { return };
        // A private network has one address.
        if !server.address().ip().is_loopback() {
            continue;
        }
        for address in ["127.0.0.1", "::1"] {
            assert!(std::net::TcpStream::connect((address, server.port())).is_ok(), "{address} with {delay:?}");
        }
    }
}
