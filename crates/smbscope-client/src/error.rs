//! Client errors. A refusal of the server keeps its NTSTATUS; all others say what to do.

use smbscope_model::Command;
use smbscope_wire::status::NtStatus;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use std::{fmt, io};

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server answered with an error status. The session stays usable.
    #[error("{command}: {status}")]
    Status { command: Command, status: NtStatus },

    /// The server refused the session: wrong password, no such share, unsupported dialect or protection.
    #[error("{what}: {status}; {hint}")]
    Refused { what: String, status: NtStatus, hint: &'static str },

    /// Dialect, signing or encryption.
    #[error("{0}")]
    Unsupported(String),

    #[error("{what}: {error}")]
    Connection {
        what: &'static str,
        #[source]
        error: io::Error,
    },

    #[error("no answer to {command} after {}", in_words(*waited))]
    TimedOut { command: Command, waited: Duration },

    /// Every command was answered in time, but all of them together took too long.
    #[error("{what} took longer than {} in all: give it more time with --timeout", in_words(*limit))]
    TooLong { what: &'static str, limit: Duration },

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

    #[error("{0}")]
    Foreign(Foreign),

    #[error("the answer to {command} has a wrong {what}: its bytes were changed, or the keys differ")]
    Tampered { command: Command, what: &'static str },
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

/// Characters shown of another protocol's greeting.
const GREETING_MAX: usize = 60;
/// Bytes shown of an unknown greeting.
const SHOWN_MAX: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    server: String,
    answered: String,
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not an SMB server: it answered {}", self.server, self.answered)
    }
}

impl std::error::Error for Foreign {}

impl Foreign {
    /// `bytes` are those received in place of a frame header.
    pub(super) fn new(server: &str, bytes: &[u8]) -> Foreign {
        Foreign { server: server.to_owned(), answered: answered(bytes) }
    }

    pub(super) fn into_io(self) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, self)
    }

    pub(super) fn from_error(error: &io::Error) -> Option<Foreign> {
        error.get_ref()?.downcast_ref().cloned()
    }
}

/// Identifies a protocol by a server's first bytes: RFC 9112 4, RFC 4253 4.2, RFC 8446 5.1, RFC 1006 6 (RDP).
fn answered(bytes: &[u8]) -> String {
    let known = match bytes {
        [b'H', b'T', b'T', b'P', ..] => Some("HTTP"),
        [b'R', b'T', b'S', b'P', ..] => Some("RTSP"),
        [b'S', b'S', b'H', b'-', ..] => Some("SSH"),
        [0x15 | 0x16, 0x03, 0x00..=0x04, ..] => Some("TLS"),
        [0x03, 0x00, ..] => Some("RDP"),
        _ => None,
    };
    if let Some(known) = known {
        return known.to_owned();
    }
    let line = bytes.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
    match str::from_utf8(line) {
        Ok(text) if !text.is_empty() && !text.contains(char::is_control) => {
            let greeting: String = text.chars().take(GREETING_MAX).collect();
            format!("\"{greeting}\"")
        }
        _ => format!("{:02x?}", &bytes[..bytes.len().min(SHOWN_MAX)]),
    }
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

    #[test]
    fn what_answered_is_named_by_its_first_bytes() {
        for (bytes, expected) in [
            (&b"HTTP/1.1 400 Bad Request\r\n"[..], "HTTP"),
            (b"HTTP", "HTTP"),
            (b"SSH-2.0-OpenSSH_9.2\r\n", "SSH"),
            (b"\x15\x03\x01\x00\x02\x02\x0a", "TLS"),
            (b"\x03\x00\x00\x0b\x06\xd0\x00\x00\x124\x00", "RDP"),
            (b"220 mail.example.com ESMTP\r\n", "\"220 mail.example.com ESMTP\""),
            (b"J\0\0\0\x0a8.0.36\0", "[4a, 00, 00, 00, 0a, 38, 2e, 30]"),
            (b"\x1b[2Jhello", "[1b, 5b, 32, 4a, 68, 65, 6c, 6c]"),
        ] {
            assert_eq!(answered(bytes), expected);
        }
        let said = Foreign::new("files:445", b"HTTP/1.0 200 OK").to_string();
        assert_eq!(said, "files:445 is not an SMB server: it answered HTTP");
        assert_eq!(answered(&[b'a'; 100]).len(), GREETING_MAX + 2);
    }
}
