//! Other protocols on a TCP connection: those that a connection speaks instead of SMB, and requests to a proxy that
//! precede SMB. Recognised by the first bytes of each direction.

use crate::bounded::SmallestSums;
use smbscope_model::{ConnectionProxy, ForeignProtocol, ForeignTraffic, ProxyProtocol};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// Bytes of a message that are searched for a word.
const SEARCHED: usize = 512;

/// Protocols and ports of connections without SMB. Keeps the smallest: `connections` of others are not counted.
pub(crate) type ForeignTraffics = SmallestSums<{ ForeignTraffic::MAX_LISTED }, (ForeignProtocol, u16), (u64, u64)>;

/// Meaning of the first bytes of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstBytes {
    Protocol(ForeignProtocol),
    ProxyRequest(ProxyProtocol),
    ProxyAnswer(ProxyProtocol),
}

impl FirstBytes {
    /// Interprets the captured part of `length` bytes.
    pub(crate) fn parse(bytes: &[u8], length: u64) -> Option<FirstBytes> {
        proxy(bytes, length).or_else(|| foreign_protocol(bytes, length).map(FirstBytes::Protocol))
    }

    pub(crate) fn protocol(self) -> Option<ForeignProtocol> {
        match self {
            FirstBytes::Protocol(protocol) => Some(protocol),
            FirstBytes::ProxyRequest(ProxyProtocol::HttpConnect) => Some(ForeignProtocol::Http),
            FirstBytes::ProxyRequest(_) => Some(ForeignProtocol::Socks),
            FirstBytes::ProxyAnswer(_) => None,
        }
    }

    /// Returns the proxy protocol if the first bytes of client and server are a request and its answer.
    pub(crate) fn proxy(client: FirstBytes, server: FirstBytes) -> Option<ProxyProtocol> {
        match (client, server) {
            (FirstBytes::ProxyRequest(ProxyProtocol::HttpConnect), FirstBytes::Protocol(ForeignProtocol::Http)) => {
                Some(ProxyProtocol::HttpConnect)
            }
            (FirstBytes::ProxyRequest(asked), FirstBytes::ProxyAnswer(answered)) if asked == answered => Some(asked),
            _ => None,
        }
    }
}

/// Recognises HTTP CONNECT (RFC 9110 §9.3.6), SOCKS 4 and 5 (RFC 1928). The messages of SOCKS are short, and nothing
/// follows them until the other side has answered.
fn proxy(bytes: &[u8], length: u64) -> Option<FirstBytes> {
    const SOCKS4_GRANTED: u8 = 90;
    const SOCKS4_LENGTHS: std::ops::RangeInclusive<u64> = 9..=600;
    Some(match bytes {
        [b'C', b'O', b'N', b'N', b'E', b'C', b'T', b' ', ..] => FirstBytes::ProxyRequest(ProxyProtocol::HttpConnect),
        [4, 1, ..] if SOCKS4_LENGTHS.contains(&length) => FirstBytes::ProxyRequest(ProxyProtocol::Socks4),
        [5, methods @ 1..=16, ..] if length == 2 + u64::from(*methods) => {
            // With one method, it looks like a choice of method; only the client sends it first.
            FirstBytes::ProxyRequest(ProxyProtocol::Socks5)
        }
        [5, 0 | 2, ..] if length == 2 => FirstBytes::ProxyAnswer(ProxyProtocol::Socks5),
        [0, SOCKS4_GRANTED, ..] if length == 8 => FirstBytes::ProxyAnswer(ProxyProtocol::Socks4),
        _ => return None,
    })
}

/// Returns the target that a client names to a proxy in one of its messages.
pub(crate) fn target(protocol: ProxyProtocol, bytes: &[u8]) -> Option<Arc<str>> {
    let port_of = |bytes: &[u8]| bytes.first_chunk().map(|port| u16::from_be_bytes(*port));
    let named = |name: &[u8], port: u16| format!("{}:{port}", String::from_utf8_lossy(name));
    let text = match (protocol, bytes) {
        (ProxyProtocol::HttpConnect, [b'C', b'O', b'N', b'N', b'E', b'C', b'T', b' ', rest @ ..]) => {
            let end = rest.iter().take(ConnectionProxy::MAX_TARGET).position(|byte| byte.is_ascii_whitespace())?;
            String::from_utf8_lossy(&rest[..end]).into_owned()
        }
        (ProxyProtocol::Socks4, [4, 1, high, low, 0, 0, 0, 1..=255, rest @ ..]) => {
            // SOCKS 4a: a user, then the name of the host; both end with zero.
            let mut parts = rest.split(|byte| *byte == 0);
            let name = parts.nth(1).filter(|name| name.len() <= ConnectionProxy::MAX_TARGET)?;
            named(name, u16::from_be_bytes([*high, *low]))
        }
        (ProxyProtocol::Socks4, [4, 1, high, low, a, b, c, d, ..]) => {
            format!("{}:{}", Ipv4Addr::new(*a, *b, *c, *d), u16::from_be_bytes([*high, *low]))
        }
        (ProxyProtocol::Socks5, [5, 1, 0, 1, a, b, c, d, port @ ..]) => {
            format!("{}:{}", Ipv4Addr::new(*a, *b, *c, *d), port_of(port)?)
        }
        (ProxyProtocol::Socks5, [5, 1, 0, 3, length, rest @ ..]) => {
            let (name, port) = rest.split_at_checked(usize::from(*length))?;
            named(name, port_of(port)?)
        }
        (ProxyProtocol::Socks5, [5, 1, 0, 4, rest @ ..]) => {
            let (address, port) = rest.split_first_chunk::<16>()?;
            format!("[{}]:{}", Ipv6Addr::from(*address), port_of(port)?)
        }
        _ => return None,
    };
    Some(text.into())
}

fn foreign_protocol(bytes: &[u8], length: u64) -> Option<ForeignProtocol> {
    Some(match bytes {
        [b'H', b'T', b'T', b'P', b'/', _, b'.', _, b' ', b'2', b'0', b'7', ..] => ForeignProtocol::WebDav,
        [b'H', b'T', b'T', b'P', b'/', ..] => ForeignProtocol::Http,
        [b'S', b'S', b'H', b'-', ..] => ForeignProtocol::Ssh,
        [0x15 | 0x16, 3, 0..=4, ..] => ForeignProtocol::Tls,
        [b'R', b'F', b'B', b' ', ..] => ForeignProtocol::Vnc,
        [b'2', b'2', b'0', b' ' | b'-', ..] => ForeignProtocol::FtpOrSmtp,
        [b'*', b' ', b'O', b'K', ..] => ForeignProtocol::Imap,
        _ => return http_request(bytes).or_else(|| storage(bytes, length)),
    })
}

fn http_request(bytes: &[u8]) -> Option<ForeignProtocol> {
    const METHODS: [&[u8]; 6] = [b"GET ", b"POST ", b"HEAD ", b"PUT ", b"DELETE ", b"OPTIONS "];
    const DISTRIBUTED_AUTHORING: [&[u8]; 7] =
        [b"PROPFIND ", b"PROPPATCH ", b"MKCOL ", b"LOCK ", b"UNLOCK ", b"COPY ", b"MOVE "];
    if DISTRIBUTED_AUTHORING.iter().any(|method| bytes.starts_with(method)) {
        return Some(ForeignProtocol::WebDav);
    }
    let is_request = METHODS.iter().any(|method| bytes.starts_with(method));
    is_request.then(|| if holds(bytes, b"WebDAV") { ForeignProtocol::WebDav } else { ForeignProtocol::Http })
}

/// Recognises protocols that serve files or blocks.
fn storage(bytes: &[u8], length: u64) -> Option<ForeignProtocol> {
    Some(match bytes {
        // A call of ONC RPC (RFC 5531): record mark, transaction, CALL, version 2, program.
        [0x80..=0xff, _, _, _, _, _, _, _, 0, 0, 0, 0, 0, 0, 0, 2, program @ ..] => match program.first_chunk() {
            Some([0, 1, 0x86, 0xa3]) => ForeignProtocol::Nfs,
            Some(_) => ForeignProtocol::OncRpc,
            None => return None,
        },
        // A login request of iSCSI (RFC 7143 §11.12), with the name of the initiator in the first one.
        [0x03 | 0x43, _, 0, 0, 0, ..] if holds(bytes, b"InitiatorName=") => ForeignProtocol::Iscsi,
        // A request or an answer of DSI, which carries AFP: flags, command, identifier, offset, length, reserved.
        [0 | 1, 1..=8, _, _, _, _, _, _, a, b, c, d, 0, 0, 0, 0, ..]
            if 16 + u64::from(u32::from_be_bytes([*a, *b, *c, *d])) == length =>
        {
            ForeignProtocol::Afp
        }
        // ICReq and ICResp of NVMe/TCP: type, flags, length of the header, offset of data, length, version.
        [0 | 1, 0, 128, 0, 128, 0, 0, 0, 0, 0, ..] => ForeignProtocol::NvmeTcp,
        // DCE/RPC 5.0: bind, or its answer, little-endian.
        [5, 0 | 1, 11 | 12, _, 0x10, 0, 0, 0, ..] => ForeignProtocol::DceRpc,
        _ if bytes.starts_with(b"MPA ID Re") => ForeignProtocol::Iwarp,
        _ => return None,
    })
}

fn holds(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).take(SEARCHED).any(|part| part == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(bytes: &[u8]) -> Option<FirstBytes> {
        FirstBytes::parse(bytes, bytes.len() as u64)
    }

    #[test]
    fn a_request_to_a_proxy_names_its_target() {
        // RFC 9110 §9.3.6; OpenSSH's SOCKS 4 and 4a; RFC 1928 §4.
        let messages: [(ProxyProtocol, &[u8], &str); 6] = [
            (ProxyProtocol::HttpConnect, b"CONNECT files:445 HTTP/1.1\r\nHost: files\r\n\r\n", "files:445"),
            (ProxyProtocol::Socks4, &[4, 1, 1, 189, 10, 0, 0, 9, b'u', 0], "10.0.0.9:445"),
            (ProxyProtocol::Socks4, b"\x04\x01\x01\xbd\0\0\0\x01user\0files\0", "files:445"),
            (ProxyProtocol::Socks5, &[5, 1, 0, 1, 10, 0, 0, 9, 1, 189], "10.0.0.9:445"),
            (ProxyProtocol::Socks5, b"\x05\x01\x00\x03\x05files\x01\xbd", "files:445"),
            (
                ProxyProtocol::Socks5,
                &[5, 1, 0, 4, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 1, 189],
                "[fe80::9]:445",
            ),
        ];
        for (protocol, message, expected) in messages {
            assert_eq!(target(protocol, message).as_deref(), Some(expected));
            (0..message.len()).for_each(|length| _ = target(protocol, &message[..length]));
        }
    }

    #[test]
    fn request_and_answer_of_a_proxy_belong_together() {
        let http = parsed(b"CONNECT files:445 HTTP/1.1\r\n\r\n").zip(parsed(b"HTTP/1.1 200 OK\r\n\r\n"));
        let socks4 = parsed(&[4, 1, 1, 189, 10, 0, 0, 9, 0]).zip(parsed(&[0, 90, 0, 0, 0, 0, 0, 0]));
        let socks5 = parsed(&[5, 2, 0, 2]).zip(parsed(&[5, 0]));
        let found =
            [http, socks4, socks5].map(|pair| pair.and_then(|(asks, answers)| FirstBytes::proxy(asks, answers)));
        assert_eq!(found, ProxyProtocol::ALL.map(Some));
        let refused = parsed(&[4, 1, 1, 189, 10, 0, 0, 9, 0]).zip(parsed(&[0, 91, 0, 0, 0, 0, 0, 0]));
        assert_eq!(refused, None);
    }

    #[test]
    fn protocols_of_files_and_blocks_are_recognised_by_their_first_message() {
        let mut login = vec![0x43, 0x87, 0, 0, 0, 0, 0, 40];
        login.resize(48, 0);
        login.extend(b"InitiatorName=iqn.1993-08.org.debian\0AuthMethod=None\0");
        let mut session = vec![0, 4, 0, 1, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0];
        session.extend([1, 4, 0, 0, 4, 0]);
        let mut connect = vec![0, 0, 128, 0, 128, 0, 0, 0];
        connect.resize(128, 0);
        let messages: [(&[u8], ForeignProtocol); 8] = [
            (&[0x80, 0, 0, 40, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0x86, 0xa3, 0, 0, 0, 4], ForeignProtocol::Nfs),
            (&[0x80, 0, 0, 40, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0x86, 0xa5], ForeignProtocol::OncRpc),
            (&login, ForeignProtocol::Iscsi),
            (&session, ForeignProtocol::Afp),
            (&connect, ForeignProtocol::NvmeTcp),
            (b"MPA ID Req Frame\x40\x01\0\0", ForeignProtocol::Iwarp),
            (b"PROPFIND /share HTTP/1.1\r\n", ForeignProtocol::WebDav),
            (b"OPTIONS / HTTP/1.1\r\nUser-Agent: Microsoft-WebDAV-MiniRedir/10.0\r\n", ForeignProtocol::WebDav),
        ];
        for (message, expected) in messages {
            assert_eq!(parsed(message).and_then(FirstBytes::protocol), Some(expected));
            (0..message.len()).for_each(|length| _ = FirstBytes::parse(&message[..length], message.len() as u64));
        }
    }

    #[test]
    fn smb_is_no_other_protocol() {
        for start in
            [&b"\0\0\0\x54\xffSMBr"[..], b"\0\0\x01\0\xfeSMB@\0", b"\x81\0\0\x44 CKFDENECFDEFFCFGEFFCCACACACACACA\0"]
        {
            assert_eq!(FirstBytes::parse(start, 300), None);
        }
    }
}
