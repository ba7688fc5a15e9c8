//! What can go wrong. The server's refusals are data and stay NTSTATUS; everything else says what to do.

use super::Foreign;
use smbscope_model::Command;
use smbscope_wire::status::NtStatus;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Why an operation, or the connection under it, failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server answered with an error status; the session goes on.
    #[error("{command}: {status}")]
    Status {
        /// The command that was refused.
        command: Command,
        /// The server's answer.
        status: NtStatus,
    },

    /// The server refused the session: wrong password, no such share, a dialect or protection that it does not do.
    #[error("{what}: {status}; {hint}")]
    Refused {
        /// What was asked for.
        what: String,
        /// The server's answer.
        status: NtStatus,
        /// What to do.
        hint: &'static str,
    },

    /// The server does not do what was asked for exactly: another dialect, no signing, no encryption.
    #[error("{0}")]
    Unsupported(String),

    /// The connection could not be made, or broke.
    #[error("{what}: {error}")]
    Connection {
        /// What was being done.
        what: &'static str,
        /// What the system says.
        #[source]
        error: io::Error,
    },

    /// No answer in the time that the options allow.
    #[error("no answer to {command} after {}", in_words(*waited))]
    TimedOut {
        /// The command without an answer.
        command: Command,
        /// How long it was waited for.
        waited: Duration,
    },

    /// Every command was answered in time, and all of them together took too long.
    #[error("{what} took longer than {} in all: give it more time with --timeout", in_words(*limit))]
    TooLong {
        /// `a listing`, `connecting` …
        what: &'static str,
        /// How long it may take.
        limit: Duration,
    },

    /// No connection to the server came about.
    #[error("no connection to {address}: {error}; {}", advice(.error.kind()))]
    Unreachable {
        /// Where to.
        address: SocketAddr,
        /// What the system says.
        #[source]
        error: io::Error,
    },

    /// There is no such folder, or this user may not work in it.
    #[error("cannot use the folder {}: {error}", .folder.display())]
    Folder {
        /// As it was given.
        folder: PathBuf,
        /// What the system says.
        #[source]
        error: io::Error,
    },

    /// The server sent what the specification does not allow.
    #[error("protocol error of the server: {0}")]
    Protocol(String),

    /// What listens there is no SMB server.
    #[error("{0}")]
    Foreign(Foreign),

    /// A signature or an authentication tag is wrong.
    #[error("the answer to {command} has a wrong {what}: its bytes were changed, or the keys differ")]
    Tampered {
        /// The command that was answered.
        command: Command,
        /// `signature` or `authentication tag`.
        what: &'static str,
    },
}

/// What to do where a server cannot be reached.
fn advice(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::ConnectionRefused => "no server listens there: check host and port",
        io::ErrorKind::TimedOut => "no answer: check host, port and firewall, or give it more time with --timeout",
        _ => "check host, port and network",
    }
}

impl ClientError {
    /// What went wrong on a connection while something was being done.
    pub(super) fn on_connection(what: &'static str, error: io::Error) -> ClientError {
        match (Foreign::from_error(&error), error.kind()) {
            (Some(foreign), _) => ClientError::Foreign(foreign),
            (None, io::ErrorKind::InvalidData) => ClientError::Protocol(error.to_string()),
            (None, _) => ClientError::Connection { what, error },
        }
    }

    /// The server's answer, where that is what failed.
    pub fn status(&self) -> Option<NtStatus> {
        match self {
            ClientError::Status { status, .. } | ClientError::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Whether the session can be used no longer.
    pub fn is_fatal(&self) -> bool {
        !matches!(self, ClientError::Status { .. })
    }
}

/// A time limit as it was given: `250 ms`, `30 s`. Figures of the report are rounded, what was asked for is not.
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
