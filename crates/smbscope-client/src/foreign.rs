//! Identifies other protocols by the first bytes that a server sends.

use std::fmt;
use std::io;

const GREETING_MAX: usize = 60;
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

/// Identifies a protocol by a server's first bytes: RFC 9112 4, RFC 4253 4.2, RFC 8446 5.1 (handshake and alert), RFC
/// 1006 6 (RDP).
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

    #[test]
    fn what_answered_is_named_by_its_first_bytes() {
        for (bytes, expected) in [
            (&b"HTTP/1.1 400 Bad Request\r\n"[..], "HTTP"),
            (b"HTTP", "HTTP"),
            (b"SSH-2.0-OpenSSH_9.2\r\n", "SSH"),
            // A fatal alert, unexpected_message.
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
