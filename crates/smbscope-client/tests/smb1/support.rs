//! A Samba server and sessions on it.

use smbscope_client::{
    ClientError, ClientSession, CreateDisposition, Credentials, OpenParameters, Secret, SessionOptions, smb1,
};
use smbscope_lab::{LabServer, LabServerSettings};
use smbscope_model::{Command, Dialect};
use smbscope_wire::smb1::Smb1Command;
use smbscope_wire::status::NtStatus;
use std::time::Duration;

/// A server that takes guests, too, or a line that says why the test is skipped.
pub(crate) fn samba(settings: &LabServerSettings) -> Option<LabServer> {
    if let Err(reason) = smbscope_lab::available() {
        smbscope_testkit::skip::missing(reason);
        return None;
    }
    Some(LabServer::start(&LabServerSettings { guests: true, ..settings.clone() }).expect("Samba is there and starts"))
}

/// A server as it comes.
pub(crate) fn plain_samba() -> Option<LabServer> {
    samba(&LabServerSettings::default())
}

/// NT LM 0.12 to its share as a guest.
pub(crate) fn guest(server: &LabServer) -> SessionOptions {
    let mut options = SessionOptions::new("127.0.0.1", server.address(), server.share());
    options.dialect = Dialect::NtLm012;
    options.timeout = Duration::from_secs(10);
    options
}

/// The same as its user.
pub(crate) fn user(server: &LabServer) -> SessionOptions {
    let password = Secret::new(server.password().to_owned());
    let credentials = Credentials::Ntlm { domain: String::new(), user: server.user().to_owned(), password };
    SessionOptions { credentials, ..guest(server) }
}

pub(crate) async fn connect(options: &SessionOptions) -> smb1::Smb1ClientSession {
    smb1::Smb1ClientSession::connect(options).await.expect("the server lets us in")
}

/// The same through the seam that workloads use.
pub(crate) async fn connect_any(options: &SessionOptions) -> ClientSession {
    ClientSession::connect(options).await.expect("the server lets us in")
}

/// A file to read, write and delete, made where it is not there.
pub(crate) fn file(path: &str) -> OpenParameters<'_> {
    OpenParameters {
        path,
        // FILE_GENERIC_READ, FILE_GENERIC_WRITE, DELETE.
        access: 0x0012_0089 | 0x0012_0116 | 0x0001_0000,
        share: 7,
        disposition: CreateDisposition::OpenIf,
        options: 0x40,
        attributes: 0x80,
    }
}

/// Bytes that are not the same anywhere near each other.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at ^ (at / 251)) as u8).collect()
}

/// What the server answered, `None` where it did what was asked for.
pub(crate) fn status<T>(result: Result<T, ClientError>) -> Option<NtStatus> {
    result.err().map(|error| error.status().unwrap_or_else(|| panic!("no status: {error}")))
}

/// The commands of the samples since these were last taken.
pub(crate) fn commands(session: &mut smb1::Smb1ClientSession) -> Vec<Smb1Command> {
    let command = |command| match command {
        Command::Smb1(command) => command,
        other => panic!("{other} in an SMB1 session"),
    };
    session.samples().drain(..).map(|sample| command(sample.command)).collect()
}
