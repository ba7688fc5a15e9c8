//! Access control: attacks by another user of the machine, with Samba's own client. No user may gain rights through
//! the server that he lacks otherwise.

mod common;

use common::{As, said, server, smbclient};
use smbscope_lab::{LabDialect, LabServer, LabServerSettings};
use smbscope_testkit::skip;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

/// `nobody`: neither root nor an account of the server's users.
const OTHER: u32 = 65534;

/// Returns true as root, who can act as another user. Otherwise reports the test as skipped.
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip::unable("only root can act as another user");
    }
    is_root
}

/// Returns a command run by another user of the machine.
fn as_other(program: &str) -> Command {
    let mut command = Command::new(program);
    command.uid(OTHER).gid(OTHER).current_dir("/").env("HOME", "/");
    command
}

/// Runs smbclient commands as another user of the machine. `login` is the argument of `--user`.
fn attack(server: &LabServer, dialect: LabDialect, login: Option<&str>, commands: &str) -> Option<Output> {
    let mut client = as_other("smbclient");
    client.arg(format!("//127.0.0.1/{}", server.share())).args(["-p", &server.port().to_string(), "-c", commands]);
    client.args(["-s", "/dev/null", "--option=client min protocol=NT1", "-m", dialect.samba_name()]);
    match login {
        Some(login) => client.args(["--user", login]),
        None => client.arg("--no-pass"),
    };
    let output = client.output();
    output.inspect_err(|_| skip::missing("smbclient is not installed")).ok()
}

/// Creates a folder owned by root that every user can enter, with a secret in it.
fn folder_with_secret() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary directory can be made");
    let secret = folder.path().join("secret");
    fs::write(&secret, "the secret").expect("it can be made");
    set_mode(&secret, 0o600);
    set_mode(folder.path(), 0o755);
    folder
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
}

fn sharing(folder: &Path) -> LabServerSettings {
    LabServerSettings { share_folder: Some(folder.to_owned()), ..LabServerSettings::default() }
}

#[test]
fn without_the_password_nobody_gets_in() {
    if !is_root() {
        return;
    }
    let given = folder_with_secret();
    for settings in [LabServerSettings::default(), sharing(given.path())] {
        let Some(server) = server(&settings) else { return };
        for dialect in [LabDialect::Nt1, LabDialect::Smb311] {
            for login in [None, Some("Guest%"), Some("bench%"), Some("bench%bench"), Some("nobody%")] {
                let Some(output) = attack(&server, dialect, login, "get secret -; put /etc/hostname upload") else {
                    return;
                };
                let said = said(&output);
                assert!(!output.status.success() && !said.contains("the secret"), "{dialect}, {login:?}: {said}");
                assert!(!server.share_folder().join("upload").exists(), "{dialect}, {login:?}: {said}");
            }
        }
        for secret in ["password", "passwords", "private/passdb.tdb", "state.json", "share"] {
            let file = server.folder().join(secret);
            let found = as_other("ls").arg("-d").arg(&file).output().expect("there is an ls");
            assert!(!found.status.success(), "another user reaches {}", file.display());
        }
    }
}

/// The client has the password, and thus the rights of an unprivileged account, although root started the server. The
/// expected results are the kernel's rules for that account, not MS-SMB2's.
#[test]
fn a_folder_that_root_shares_is_not_accessed_as_root() {
    if !is_root() {
        return;
    }
    let given = folder_with_secret();
    let share = given.path();
    symlink("/etc", share.join("out")).expect("a link can be made");
    let Some(server) = server(&sharing(share)) else { return };
    let say = |dialect: LabDialect, commands: &str| {
        smbclient(&server, server.share(), As::User(server.user(), server.password()), dialect, commands)
            .map(|output| said(&output))
    };
    for dialect in [LabDialect::Nt1, LabDialect::Smb311] {
        set_mode(share, 0o755);
        let Some(refused) = say(dialect, "get secret -; put /bin/sh upload; get out/hostname -") else { return };
        let denied = refused.matches("NT_STATUS_ACCESS_DENIED").count();
        assert!(!refused.contains("the secret") && denied >= 2, "{dialect}: {refused}");
        // Nothing outside the share is accessible, not even world-readable files.
        let hostname = fs::read_to_string("/etc/hostname").unwrap_or_default();
        assert!(hostname.trim().is_empty() || !refused.contains(hostname.trim()), "{dialect}: {refused}");

        // The account may write to a world-writable folder, but no file becomes root's or runs as another user.
        set_mode(share, 0o1777);
        let commands = "put /bin/sh shell; posix; chmod 6755 shell; setmode shell +x; symlink /etc link; ls";
        let uploaded = say(dialect, commands).expect("smbclient was there");
        let metadata = fs::symlink_metadata(share.join("shell")).unwrap_or_else(|error| panic!("{error}: {uploaded}"));
        assert_eq!((metadata.uid() == 0, metadata.mode() & 0o6000), (false, 0), "{dialect}: {uploaded}");
        assert!(!share.join("link").exists(), "{dialect}: {uploaded}");
        fs::remove_file(share.join("shell")).expect("root may");
    }
}

#[test]
fn a_folder_of_an_ordinary_user_is_accessed_as_that_user() {
    if !is_root() {
        return;
    }
    let given = folder_with_secret();
    // `games`, an account of every Debian system, but not the first one, which the server's user has.
    let games = 5;
    chown(given.path(), Some(games), None).expect("root may");
    let Some(server) = server(&sharing(given.path())) else { return };
    let user = As::User(server.user(), server.password());
    let Some(output) =
        smbclient(&server, server.share(), user, LabDialect::Smb311, "put /etc/passwd mine; get secret -")
    else {
        return;
    };
    let said = said(&output);
    assert!(!said.contains("the secret"), "{said}");
    assert_eq!(fs::metadata(given.path().join("mine")).unwrap_or_else(|_| panic!("{said}")).uid(), games);
    assert_eq!(server.record().accessed_as.as_deref(), Some("games"));
}

#[test]
fn a_folder_that_the_account_cannot_enter_is_an_error() {
    if !is_root() {
        return;
    }
    let given = folder_with_secret();
    set_mode(given.path(), 0o700);
    if smbscope_lab::available().is_err() {
        return skip::missing("no Samba");
    }
    let error = LabServer::start(&sharing(given.path())).expect_err("only root can enter it");
    assert!(error.to_string().contains("root's rights are not given to its users"), "{error}");
}

#[test]
fn guests_and_a_given_folder_exclude_each_other() {
    let given = folder_with_secret();
    let error = LabServer::start(&LabServerSettings { guests: true, ..sharing(given.path()) })
        .expect_err("both were asked for");
    assert!(error.to_string().starts_with("guests and a shared folder exclude each other"), "{error}");
}
