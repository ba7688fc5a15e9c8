//! Client errors. A refusal of the server keeps its NTSTATUS; all others say what to do.

use super::Foreign;
use smbscope_model::Command;
use smbscope_wire::status::NtStatus;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server answered with an error status. The session stays usable.
    #[error("{command}: {status}")]
    Status { command: Command, status: NtStatus },

    /// The server refused the session: wrong password, no such share, unsupported dialect or protection.
    #[error("{what}: {status}; {hint}")]
    Refused { what: String, status: NtStatus, hint: &'static str },

    /// The server doesn't support exactly what was requested: the dialect, signing or encryption.
    #[error("{0}")]
    Unsupported(String),

    /// The connection could not be made, or broke.
    #[error("{what}: {error}")]
    Connection {
        what: &'static str,
        #[source]
        error: io::Error,
    },

    /// No answer within [`SessionOptions::timeout`](crate::SessionOptions::timeout).
    #[error("no answer to {command} after {}", in_words(*waited))]
    TimedOut { command: Command, waited: Duration },

    /// Every command was answered in time, but all of them together took too long.
    #[error("{what} took longer than {} in all: give it more time with --timeout", in_words(*limit))]
    TooLong {
        /// Noun phrase: `a listing`, `connecting` …
        what: &'static str,
        limit: Duration,
    },

    #[error("no connection to {address}: {error}; {}", advice(.error.kind()))]
    Unreachable {
        address: SocketAddr,
        #[source]
        error: io::Error,
    },

    #[error("cannot use the folder {}: {error}", .folder.display())]
    Folder {
        folder: PathBuf,
        #[source]
        error: io::Error,
    },

    #[error("protocol error of the server: {0}")]
    Protocol(String),

    /// The port is open, but the peer doesn't speak SMB.
    #[error("{0}")]
    Foreign(Foreign),

    #[error("the answer to {command} has a wrong {what}: its bytes were changed, or the keys differ")]
    Tampered {
        command: Command,
        /// `signature` or `authentication tag`.
        what: &'static str,
    },
}

fn advice(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::ConnectionRefused => "no server listens there: check host and port",
        io::ErrorKind::TimedOut => "no answer: check host, port and firewall, or give it more time with --timeout",
        _ => "check host, port and network",
    }
}

impl ClientError {
    pub(super) fn on_connection(what: &'static str, error: io::Error) -> ClientError {
        match (Foreign::from_error(&error), error.kind()) {
            (Some(foreign), _) => ClientError::Foreign(foreign),
            (None, io::ErrorKind::InvalidData) => ClientError::Protocol(error.to_string()),
            (None, _) => ClientError::Connection { what, error },
        }
    }

    pub fn status(&self) -> Option<NtStatus> {
        match self {
            ClientError::Status { status, .. } | ClientError::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Returns true if the session can't be used any more.
    pub fn is_fatal(&self) -> bool {
        !matches!(self, ClientError::Status { .. })
    }
}

/// Formats a time limit exactly: `250 ms`, `30 s`. Report figures are rounded, but an option must be repeated as given.
fn in_words(time: Duration) -> String {
    let exact = format!("{time:?}");
    let (number, unit) = exact.split_at(exact.find(char::is_alphabetic).unwrap_or(exact.len()));
    format!("{number} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_wire::smb2;

    #[test]
    fn a_time_limit_is_said_as_it_was_given() {
        let said =
            |waited| ClientError::TimedOut { command: Command::Smb2(smb2::Smb2Command::ECHO), waited }.to_string();
        assert_eq!(said(Duration::from_millis(250)), "no answer to ECHO after 250 ms");
        assert_eq!(said(Duration::from_millis(1_500)), "no answer to ECHO after 1.5 s");
        assert_eq!(said(Duration::from_secs(90)), "no answer to ECHO after 90 s");
    }
}
