//! The NetBIOS session service (RFC 1002 4.3): a session request with the called and the calling name before the first
//! message.

use super::ClientError;
use super::options::SessionOptions;
use super::transport::{FramedConnection, deadline, invalid};
use smbscope_wire::nbss::FrameType;
use std::io;
use std::net::IpAddr;

/// Name that every server accepts as its own (MS-SMB 2.1).
const ANY_SERVER: &str = "*SMBSERVER";
const CALLING: &str = "SMBSCOPE";
/// Suffix of a server's name.
const FILE_SERVER: u8 = 0x20;
const WORKSTATION: u8 = 0x00;
/// Type of a session request (RFC 1002 4.3.2).
const SESSION_REQUEST: u8 = 0x81;

/// Connects and requests a session, with the host's own name first and `*SMBSERVER` second.
pub(super) async fn connect(options: &SessionOptions) -> Result<FramedConnection, ClientError> {
    let mut refusal = String::new();
    let names = [netbios_name(&options.host), Some(ANY_SERVER.to_owned())];
    for called in names.into_iter().flatten() {
        // The server closes the connection after a refusal, so each attempt needs its own.
        let mut link = FramedConnection::tcp(options).await?;
        match request(&mut link, &called, options).await {
            Ok(None) => return Ok(link),
            Ok(Some(reason)) => refusal = format!("no NetBIOS session with {called} at {}: {reason}", options.address),
            Err(error) => return Err(ClientError::on_connection("asking for a NetBIOS session", error)),
        }
    }
    Err(ClientError::Unsupported(format!("{refusal}; try direct TCP, or the server's NetBIOS name as host")))
}

/// Sends one session request. Returns the reason if the server refuses.
async fn request(link: &mut FramedConnection, called: &str, options: &SessionOptions) -> io::Result<Option<String>> {
    let out = link.begin();
    put_name(called, FILE_SERVER, out);
    put_name(CALLING, WORKSTATION, out);
    let length = out.len() - FramedConnection::START;
    out[0] = SESSION_REQUEST;
    // Two names of 34 bytes.
    out[3] = u8::try_from(length).unwrap_or(u8::MAX);
    link.send_raw(options.timeout).await?;
    let deadline = deadline(options.timeout);
    let (header, _) = link.receive_any(deadline).await?;
    Ok(match header.frame_type {
        FrameType::PositiveResponse => None,
        FrameType::NegativeResponse => Some(refusal(link.frame().first().copied().unwrap_or(0x8f)).to_owned()),
        FrameType::RetargetResponse => Some("the server sends its clients to another address".to_owned()),
        other => return Err(invalid(format!("a NetBIOS frame of type {other:?} where a session response must be"))),
    })
}

/// Describes an error code (RFC 1002 4.3.4).
fn refusal(code: u8) -> &'static str {
    match code {
        0x80 => "nobody listens on the called name",
        0x81 => "it does not listen for our name",
        0x82 => "the called name is not present",
        0x83 => "the server is out of resources",
        _ => "the server does not say why",
    }
}

/// Returns the usual NetBIOS name of a host: the first label of its name. Returns `None` for an address.
fn netbios_name(host: &str) -> Option<String> {
    if host.parse::<IpAddr>().is_ok() {
        return None;
    }
    let label = host.split('.').next().unwrap_or_default();
    (label.is_ascii() && (1..=15).contains(&label.len())).then(|| label.to_ascii_uppercase())
}

/// Writes a name of 15 characters and a suffix in first-level encoding (RFC 1001 14.1), without a scope.
fn put_name(name: &str, suffix: u8, out: &mut Vec<u8>) {
    out.push(32);
    let padded = name.bytes().chain(std::iter::repeat(b' ')).take(15).chain([suffix]);
    for byte in padded {
        out.extend([b'A' + (byte >> 4), b'A' + (byte & 0x0f)]);
    }
    out.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded_as_the_specification_shows() {
        // RFC 1001 14.1: "FRED" padded with spaces. The last pair is the suffix 0x20, which looks like a space.
        let mut out = Vec::new();
        put_name("FRED", FILE_SERVER, &mut out);
        assert_eq!(&out[1..33], b"EGFCEFEECACACACACACACACACACACACA");
        assert_eq!((out[0], out[33], out.len()), (32, 0, 34));
    }

    #[test]
    fn an_address_has_no_netbios_name() {
        assert_eq!(netbios_name("filer.example.org"), Some("FILER".to_owned()));
        assert_eq!(netbios_name("10.0.0.1"), None);
        assert_eq!(netbios_name("fe80::1"), None);
        assert_eq!(netbios_name("a-name-of-sixteen"), None);
    }
}
