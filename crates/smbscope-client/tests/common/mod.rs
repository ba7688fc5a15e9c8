//! Helpers shared by the tests against real servers. Each test file uses some of them.
#![allow(dead_code)]

use smbscope_client::{
    Cipher, ClientSession, ClientSigningPolicy, CreateDisposition, Credentials, Encryption, OpenParameters, Secret,
    SessionOptions, access, create_options, smb2,
};
use smbscope_lab::{LabServer, LabServerSettings};
use smbscope_model::Dialect;
use std::future::Future;

pub(crate) const DIALECTS: [u16; 5] = [0x0202, 0x0210, 0x0300, 0x0302, 0x0311];
pub(crate) const SIGNINGS: [ClientSigningPolicy; 3] =
    [ClientSigningPolicy::Off, ClientSigningPolicy::On, ClientSigningPolicy::Required];

/// Starts a private Samba server with guest access. Returns `None`, and reports the skipped test, if there can't be
/// one.
pub(crate) fn samba(settings: &LabServerSettings) -> Option<LabServer> {
    if let Err(error) = smbscope_lab::available() {
        smbscope_testkit::skip::missing(error);
        return None;
    }
    Some(
        LabServer::start(&LabServerSettings { guests: true, ..settings.clone() })
            .expect("Samba is installed, and starts"),
    )
}

/// Returns guest options for the server's share.
pub(crate) fn options(server: &LabServer, dialect: u16) -> SessionOptions {
    let mut options = SessionOptions::new("127.0.0.1", server.address(), server.share());
    options.dialect = Dialect::Smb2(dialect);
    options
}

/// Returns the server's first user.
pub(crate) fn user(server: &LabServer) -> Credentials {
    let password = Secret::new(server.password().to_owned());
    Credentials::Ntlm { domain: String::new(), user: server.user().to_owned(), password }
}

/// Returns [`options`] for the server's first user.
pub(crate) fn user_options(server: &LabServer, dialect: u16) -> SessionOptions {
    SessionOptions { credentials: user(server), ..options(server, dialect) }
}

/// Returns no encryption, and every cipher of a dialect.
pub(crate) fn encryptions(dialect: u16) -> Vec<Encryption> {
    let ciphers: &[Cipher] = match dialect {
        0x0311 => &[Cipher::Aes128Ccm, Cipher::Aes128Gcm, Cipher::Aes256Ccm, Cipher::Aes256Gcm],
        0x0300 | 0x0302 => &[Cipher::Aes128Ccm],
        _ => &[],
    };
    let required = ciphers.iter().map(|cipher| Encryption::Required(Some(*cipher)));
    [Encryption::Off].into_iter().chain(required).collect()
}

/// Creates or truncates a file, with full access.
pub(crate) fn create(path: &str) -> OpenParameters<'_> {
    OpenParameters {
        path,
        access: access::READ_DATA
            | access::WRITE_DATA
            | access::APPEND_DATA
            | access::READ_ATTRIBUTES
            | access::WRITE_ATTRIBUTES
            | access::DELETE,
        share: 7,
        disposition: CreateDisposition::OverwriteIf,
        options: create_options::NON_DIRECTORY,
        attributes: 0x80,
    }
}

/// Opens an existing file for reading.
pub(crate) fn reading(path: &str) -> OpenParameters<'_> {
    OpenParameters {
        access: access::READ_DATA | access::READ_ATTRIBUTES,
        disposition: CreateDisposition::Open,
        ..create(path)
    }
}

/// Returns the session with the operations that only SMB2 has.
pub(crate) fn smb2(session: &mut ClientSession) -> &mut smb2::Smb2ClientSession {
    match session {
        ClientSession::Smb2(session) => session,
        other => panic!("{other:?} in place of an SMB2 session"),
    }
}

/// Runs a future like a user's task.
pub(crate) fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}
