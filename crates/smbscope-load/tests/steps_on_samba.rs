//! Steps that are not about file data, on a private Samba: control codes, reauthentication, another tree connect. Open
//! files stay open, and only expected refusals occur.

use crate::common::{DIALECTS, create, encryptions, options, run, samba, user_options};
use smbscope_client::{
    ClientSession, ClientSigningPolicy, Encryption, FsctlProfile, SessionOptions, TreeConnectTarget,
};
use smbscope_lab::LabServerSettings;
use smbscope_model::{Command, Dialect};
use smbscope_wire::smb1::Smb1Command;
use smbscope_wire::smb2::Smb2Command;

/// Returns the names of the commands since the last call.
fn commands(session: &mut ClientSession) -> Vec<String> {
    std::mem::take(session.samples()).iter().map(|sample| sample.command.to_string()).collect()
}

/// Returns the command names of these steps in a dialect.
fn names(dialect: Dialect) -> [String; 3] {
    let smb1 = [Smb1Command::SESSION_SETUP_ANDX, Smb1Command::TREE_CONNECT_ANDX, Smb1Command::TREE_DISCONNECT];
    let smb2 = [Smb2Command::SESSION_SETUP, Smb2Command::TREE_CONNECT, Smb2Command::TREE_DISCONNECT];
    match dialect {
        Dialect::Smb2(_) => smb2.map(|command| Command::Smb2(command).to_string()),
        _ => smb1.map(|command| Command::Smb1(command).to_string()),
    }
}

async fn steps(options: &SessionOptions) {
    let what = format!("{} {:?} {:?} {:?}", options.dialect, options.signing, options.encryption, options.credentials);
    let mut session = ClientSession::connect(options).await.unwrap_or_else(|error| panic!("{what}: {error}"));
    let file = session.open(&create("steps")).await.unwrap().handle;
    session.write(file, 0, b"before").await.unwrap();
    let [setup, connect, disconnect] = names(options.dialect);
    for _ in 0..3 {
        session.samples().clear();
        session.reauthenticate().await.unwrap_or_else(|error| panic!("{what}: {error}"));
        let sent = commands(&mut session);
        assert!(!sent.is_empty() && sent.iter().all(|command| *command == setup), "{what}: {sent:?}");
        for tree in [TreeConnectTarget::Own, TreeConnectTarget::Ipc] {
            session.connect_again(tree).await.unwrap_or_else(|error| panic!("{what}: {tree:?}: {error}"));
            assert_eq!(commands(&mut session), [connect.as_str(), disconnect.as_str()], "{what}");
        }
        assert_eq!(session.read(file, 0, 6).await.unwrap(), b"before", "{what}");
    }
    session.samples().clear();
    for control in FsctlProfile::ALL.iter().filter(|control| control.unsupported_in(options.dialect).is_none()) {
        if let Err(error) = session.control(control, Some(file).filter(|_| control.of_file)).await {
            let refused = error.status().is_some_and(|status| control.refusals.contains(&status));
            assert!(refused && !error.is_fatal(), "{what}: {}: {error}", control.code);
        }
        assert_eq!(commands(&mut session).len(), 1, "{what}: {}", control.code);
    }
    session.close(file).await.unwrap();
    session.disconnect().await.unwrap();
}

#[test]
fn open_files_outlive_every_step_in_every_protection() {
    let Some(server) = samba(&LabServerSettings::default()) else { return };
    for dialect in DIALECTS {
        for encryption in encryptions(dialect) {
            for signing in [ClientSigningPolicy::Off, ClientSigningPolicy::On, ClientSigningPolicy::Required] {
                run(steps(&SessionOptions { signing, encryption, ..user_options(&server, dialect) }));
            }
        }
    }
    for signing in [ClientSigningPolicy::Off, ClientSigningPolicy::Required] {
        run(steps(&SessionOptions { dialect: Dialect::NtLm012, signing, ..user_options(&server, 0x0311) }));
    }
}

#[test]
fn a_guest_does_the_same() {
    let Some(server) = samba(&LabServerSettings::default()) else { return };
    for dialect in [Dialect::NtLm012, Dialect::Smb2(0x0202), Dialect::Smb2(0x0210), Dialect::Smb2(0x0311)] {
        run(steps(&SessionOptions { dialect, encryption: Encryption::Off, ..options(&server, 0x0311) }));
    }
}
