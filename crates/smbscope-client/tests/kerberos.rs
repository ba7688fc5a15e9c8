//! Kerberos tickets of a private MIT KDC, used on a Samba server that has its service key in a keytab: each dialect,
//! with the protection its keys provide.
#![cfg(target_os = "linux")]

mod common;

use smbscope_client::{
    Cipher, ClientError, ClientSession, ClientSigningPolicy, Credentials, Encryption, SessionOptions,
};
use smbscope_lab::{LabServer, LabServerSettings};
use smbscope_model::Dialect;
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

const REALM: &str = "SMBSCOPE.TEST";
/// Name in the service's ticket. The address comes from the options.
const HOST: &str = "fileserver";
/// Variable that tells the inner run of the test where the realm's files are.
const INSIDE: &str = "SMBSCOPE_TEST_REALM";
const PROGRAMS: [&str; 4] = ["kdb5_util", "kadmin.local", "krb5kdc", "kinit"];

/// A private KDC. Dropping it ends the process.
struct Realm {
    kdc: Child,
    folder: TempDir,
}

impl Realm {
    /// Returns `None`, and reports the skipped test, if programs are missing.
    fn start() -> Option<Realm> {
        if let Err(error) = smbscope_lab::available() {
            smbscope_testkit::skip::missing(error);
            return None;
        }
        if let Some(missing) = PROGRAMS.iter().find(|program| find(program).is_none()) {
            smbscope_testkit::skip::missing(format_args!(
                "{missing} is not installed (Debian: krb5-kdc, krb5-admin-server, krb5-user)"
            ));
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().display();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let krb5 = format!(
            "[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n rdns = false\n\
             [realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{port}\n }}\n"
        );
        // Without a PAC, Samba outside a domain takes the user from the ticket's name.
        let kdc = format!(
            "[kdcdefaults]\n kdc_listen = 127.0.0.1:{port}\n kdc_tcp_listen = 127.0.0.1:{port}\n\
             [realms]\n {REALM} = {{\n  database_name = {place}/principal\n  key_stash_file = {place}/stash\n\
             \x20 disable_pac = true\n  supported_enctypes = aes256-cts-hmac-sha1-96:normal\n }}\n"
        );
        std::fs::write(folder.path().join("krb5.conf"), krb5).unwrap();
        std::fs::write(folder.path().join("kdc.conf"), kdc).unwrap();
        call(&mut program("kdb5_util", folder.path(), &["create", "-s", "-P", "master"]), "");
        admin(folder.path(), &format!("addprinc -randkey cifs/{HOST}"));
        admin(folder.path(), &format!("ktadd -k {place}/keytab cifs/{HOST}"));
        let kdc = program("krb5kdc", folder.path(), &["-n"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Some(Realm { kdc: kdc.unwrap(), folder })
    }
}

impl Drop for Realm {
    fn drop(&mut self) {
        let _ended = self.kdc.kill();
        let _status = self.kdc.wait();
    }
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    folders.map(|folder| folder.join(program)).find(|file| file.exists())
}

/// Returns a command that knows only this realm.
fn program(name: &str, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(find(name).unwrap());
    command.args(arguments);
    realm_only(&mut command, folder);
    command
}

fn realm_only(command: &mut Command, folder: &Path) {
    command.env("KRB5_CONFIG", folder.join("krb5.conf")).env("KRB5_KDC_PROFILE", folder.join("kdc.conf"));
    command.env("KRB5CCNAME", format!("FILE:{}", folder.join("tickets").display()));
}

fn admin(folder: &Path, query: &str) {
    call(&mut program("kadmin.local", folder, &["-q", query]), "");
}

fn call(command: &mut Command, input: &str) {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The system's Kerberos is configured through the environment of the process, so the test runs itself with one.
#[test]
fn tickets_open_sessions_whose_keys_sign_and_encrypt() {
    if let Some(folder) = std::env::var_os(INSIDE) {
        return inside(Path::new(&folder));
    }
    let Some(realm) = Realm::start() else { return };
    let mut inner = Command::new(std::env::current_exe().unwrap());
    inner.args(["--exact", "--nocapture", "tickets_open_sessions_whose_keys_sign_and_encrypt"]);
    realm_only(&mut inner, realm.folder.path());
    let status = inner.env(INSIDE, realm.folder.path()).status().unwrap();
    assert!(status.success(), "{status}");
}

fn inside(folder: &Path) {
    let extra = [
        format!("realm = {REALM}"),
        "kerberos method = dedicated keytab".to_owned(),
        format!("dedicated keytab file = FILE:{}", folder.join("keytab").display()),
    ];
    let server =
        LabServer::start(&LabServerSettings { extra: extra.to_vec(), ..LabServerSettings::default() }).unwrap();
    let options = |dialect| SessionOptions {
        dialect,
        credentials: Credentials::Kerberos,
        signing: ClientSigningPolicy::Required,
        ..SessionOptions::new(HOST, server.address(), server.share())
    };

    let without = common::run(ClientSession::connect(&options(Dialect::Smb2(0x0311)))).unwrap_err();
    assert!(matches!(&without, ClientError::Unsupported(reason) if reason.contains("kinit")), "{without}");

    let account = &server.record().users[0].account;
    admin(folder, &format!("addprinc -pw secret {account}"));
    call(&mut program("kinit", folder, &[account]), "secret\n");
    for dialect in [0x0202, 0x0210, 0x0300, 0x0302, 0x0311] {
        work(&options(Dialect::Smb2(dialect)));
    }
    work(&options(Dialect::NtLm012));
    // The session key has 32 bytes: 256-bit ciphers use all of it, the others its first half.
    for cipher in [Cipher::Aes128Gcm, Cipher::Aes256Ccm, Cipher::Aes256Gcm] {
        work(&SessionOptions { encryption: Encryption::Required(Some(cipher)), ..options(Dialect::Smb2(0x0311)) });
    }

    let other = SessionOptions { host: "other".to_owned(), ..options(Dialect::Smb2(0x0311)) };
    let error = common::run(ClientSession::connect(&other)).unwrap_err();
    assert!(
        matches!(&error, ClientError::Unsupported(reason) if reason.contains("no ticket for cifs/other")),
        "{error}"
    );
}

fn work(options: &SessionOptions) {
    let what = format!("{} {:?}", options.dialect, options.encryption);
    common::run(async {
        let mut session = ClientSession::connect(options).await?;
        assert!(!session.facts().guest, "{what}");
        let file = session.open(&common::create("a.txt")).await?;
        session.write(file.handle, 0, what.as_bytes()).await?;
        assert_eq!(session.read(file.handle, 0, 100).await?, what.as_bytes());
        session.close(file.handle).await?;
        session.disconnect().await
    })
    .unwrap_or_else(|error| panic!("{what}: {error}"));
}
