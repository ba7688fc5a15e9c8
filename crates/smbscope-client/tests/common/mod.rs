//! What the tests against real servers share. Each test file uses a part of it.
#![allow(dead_code)]

use smbscope_client::{
    Cipher, ClientSigningPolicy, CreateDisposition, Credentials, Encryption, OpenParameters, Secret, SessionOptions,
    access, create_options,
};
use smbscope_lab::{LabServer, LabServerSettings};
use smbscope_model::Dialect;
use std::future::Future;

/// Every dialect of SMB2 and SMB3.
pub(crate) const DIALECTS: [u16; 5] = [0x0202, 0x0210, 0x0300, 0x0302, 0x0311];
/// Every signing.
pub(crate) const SIGNINGS: [ClientSigningPolicy; 3] =
    [ClientSigningPolicy::Off, ClientSigningPolicy::On, ClientSigningPolicy::Required];

/// A Samba of the test's own that takes guests, too, or a line that says why there is none.
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

/// Options for the share of a server, as a guest.
pub(crate) fn options(server: &LabServer, dialect: u16) -> SessionOptions {
    let mut options = SessionOptions::new("127.0.0.1", server.address(), server.share());
    options.dialect = Dialect::Smb2(dialect);
    options
}

/// The server's first user.
pub(crate) fn user(server: &LabServer) -> Credentials {
    let password = Secret::new(server.password().to_owned());
    Credentials::Ntlm { domain: String::new(), user: server.user().to_owned(), password }
}

/// The same as [`options`], as the server's first user.
pub(crate) fn user_options(server: &LabServer, dialect: u16) -> SessionOptions {
    SessionOptions { credentials: user(server), ..options(server, dialect) }
}

/// No encryption, and every cipher of a dialect.
pub(crate) fn encryptions(dialect: u16) -> Vec<Encryption> {
    let ciphers: &[Cipher] = match dialect {
        0x0311 => &[Cipher::Aes128Ccm, Cipher::Aes128Gcm, Cipher::Aes256Ccm, Cipher::Aes256Gcm],
        0x0300 | 0x0302 => &[Cipher::Aes128Ccm],
        _ => &[],
    };
    let required = ciphers.iter().map(|cipher| Encryption::Required(Some(*cipher)));
    [Encryption::Off].into_iter().chain(required).collect()
}

/// Makes a file, or empties it, for all that can be done with one.
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

/// Opens a file that is there, to be read.
pub(crate) fn reading(path: &str) -> OpenParameters<'_> {
    OpenParameters {
        access: access::READ_DATA | access::READ_ATTRIBUTES,
        disposition: CreateDisposition::Open,
        ..create(path)
    }
}

/// As a user's task is run.
pub(crate) fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}
