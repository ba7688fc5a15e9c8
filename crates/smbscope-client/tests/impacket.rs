//! The client against impacket's server, which shares no code with Samba, over SMB1 and SMB 2.0.2.

use smbscope_client::{
    ClientError, ClientSession, CreateDisposition, Credentials, Info, ListingEntry, OpenParameters, Secret,
    SessionOptions, access, create_options,
};
use smbscope_model::Dialect;
use smbscope_wire::status::NtStatus;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// An impacket server. Dropping it ends the process.
struct Server {
    child: Child,
    address: SocketAddr,
    folder: TempDir,
}

impl Server {
    /// Returns `None`, and reports the skipped test, if impacket is not installed.
    fn start() -> Option<Server> {
        let Some(python) = python_with_impacket() else {
            smbscope_testkit::skip::missing("no Python has impacket; scripts/setup.sh installs it into .venv");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(python)
            .arg(repository().join("scripts/impacket_server.py"))
            .arg(folder.path())
            .args(["bench", "--smb2"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.as_mut().unwrap().write_all(b"benchpw\n").unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().parse().expect("the server prints its port");
        Some(Server { child, address: (Ipv4Addr::LOCALHOST, port).into(), folder })
    }

    fn options(&self, dialect: Dialect, password: &str) -> SessionOptions {
        let credentials = Credentials::Ntlm {
            domain: String::new(),
            user: "bench".to_owned(),
            password: Secret::new(password.to_owned()),
        };
        SessionOptions { dialect, credentials, ..SessionOptions::new("127.0.0.1", self.address, "SHARE") }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn python_with_impacket() -> Option<PathBuf> {
    [repository().join(".venv/bin/python"), PathBuf::from("python3")].into_iter().find(|python| {
        let check = Command::new(python).args(["-c", "import impacket.smbserver"]).stderr(Stdio::null()).status();
        check.is_ok_and(|status| status.success())
    })
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn open(path: &str, disposition: CreateDisposition, options: u32) -> OpenParameters<'_> {
    let access = access::READ_DATA | access::WRITE_DATA | access::READ_ATTRIBUTES | access::DELETE;
    OpenParameters { path, access, share: 7, disposition, options, attributes: 0x80 }
}

/// Performs typical operations and checks them against the server's files.
async fn work(server: &Server, dialect: Dialect) -> Result<(), ClientError> {
    let mut session = ClientSession::connect(&server.options(dialect, "benchpw")).await?;
    assert_eq!(session.facts().dialect, dialect);
    assert!(!session.facts().guest);

    session.make_directory("dir").await?;
    let file = session.open(&open(r"dir\a.txt", CreateDisposition::Create, create_options::NON_DIRECTORY)).await?;
    let data: Vec<u8> = (0..40_000u32).map(|n| (n ^ (n >> 8)) as u8).collect();
    session.write(file.handle, 0, &data).await?;
    assert!(session.read(file.handle, 0, 40_000).await? == &data[..], "what was written is read");
    session.close(file.handle).await?;
    assert!(std::fs::read(server.folder.path().join("dir/a.txt")).unwrap() == data, "and is in the server's file");

    let mut entries: Vec<ListingEntry> = Vec::new();
    session.list(r"dir\*", Info::FILE_BOTH_DIRECTORY_INFORMATION, 0, Some(&mut entries)).await?;
    let listed = entries.iter().find(|entry| entry.name == "a.txt").expect("the file is listed");
    assert_eq!((listed.size, listed.is_directory()), (40_000, false));

    session.rename(r"dir\a.txt", r"dir\b.txt").await?;
    assert!(server.folder.path().join("dir/b.txt").exists());
    session.remove_file(r"dir\b.txt").await?;
    assert!(!server.folder.path().join("dir/b.txt").exists());
    session.remove_directory("dir").await?;
    assert!(!server.folder.path().join("dir").exists());
    session.echo().await?;
    session.disconnect().await
}

#[test]
fn impackets_server_does_our_work_over_smb2() {
    let Some(server) = Server::start() else { return };
    run(work(&server, Dialect::Smb2(0x0202))).unwrap();
}

#[test]
fn impackets_server_does_our_work_over_smb1() {
    let Some(server) = Server::start() else { return };
    run(work(&server, Dialect::NtLm012)).unwrap();
}

#[test]
fn impackets_server_refuses_a_wrong_password() {
    let Some(server) = Server::start() else { return };
    for dialect in [Dialect::Smb2(0x0202), Dialect::NtLm012] {
        let error = run(ClientSession::connect(&server.options(dialect, "wrong"))).unwrap_err();
        assert_eq!(error.status(), Some(NtStatus::LOGON_FAILURE), "{dialect}: {error}");
    }
}
