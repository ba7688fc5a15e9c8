//! A Samba server and sessions on it.

use smbscope_client::{
    ClientError, ClientSession, CreateDisposition, Credentials, OpenParameters, Secret, SessionOptions, smb1,
};
use smbscope_lab::{LabServer, LabServerSettings};
use smbscope_model::{Command, Dialect};
use smbscope_wire::smb1::Smb1Command;
use smbscope_wire::status::NtStatus;
use std::time::Duration;

/// Starts a server with guest access. Returns `None`, and reports the skipped test, if there can't be one.
pub(crate) fn samba(settings: &LabServerSettings) -> Option<LabServer> {
    if let Err(reason) = smbscope_lab::available() {
        smbscope_testkit::skip::missing(reason);
        return None;
    }
    Some(LabServer::start(&LabServerSettings { guests: true, ..settings.clone() }).expect("Samba is there and starts"))
}

/// Starts a server with default settings.
pub(crate) fn plain_samba() -> Option<LabServer> {
    samba(&LabServerSettings::default())
}

/// Returns guest options for the server's share in NT LM 0.12.
pub(crate) fn guest(server: &LabServer) -> SessionOptions {
    let mut options = SessionOptions::new("127.0.0.1", server.address(), server.share());
    options.dialect = Dialect::NtLm012;
    options.timeout = Duration::from_secs(10);
    options
}

/// Returns the same options for the server's user.
pub(crate) fn user(server: &LabServer) -> SessionOptions {
    let password = Secret::new(server.password().to_owned());
    let credentials = Credentials::Ntlm { domain: String::new(), user: server.user().to_owned(), password };
    SessionOptions { credentials, ..guest(server) }
}

pub(crate) async fn connect(options: &SessionOptions) -> smb1::Smb1ClientSession {
    smb1::Smb1ClientSession::connect(options).await.expect("the server lets us in")
}

/// Connects through the session type that workloads use.
pub(crate) async fn connect_any(options: &SessionOptions) -> ClientSession {
    ClientSession::connect(options).await.expect("the server lets us in")
}

/// Opens or creates a file to read, write and delete.
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

/// Returns bytes without a short period.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at ^ (at / 251)) as u8).collect()
}

/// Returns the server's status, or `None` after a success.
pub(crate) fn status<T>(result: Result<T, ClientError>) -> Option<NtStatus> {
    result.err().map(|error| error.status().unwrap_or_else(|| panic!("no status: {error}")))
}

/// Takes the samples and returns their commands.
pub(crate) fn commands(session: &mut smb1::Smb1ClientSession) -> Vec<Smb1Command> {
    let command = |command| match command {
        Command::Smb1(command) => command,
        other => panic!("{other} in an SMB1 session"),
    };
    session.samples().drain(..).map(|sample| command(sample.command)).collect()
}
