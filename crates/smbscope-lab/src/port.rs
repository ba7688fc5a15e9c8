//! Free ports on the loopback interface, the same for IPv4 and IPv6, and a check that a server answers: a minimal SMB
//! negotiation (MS-SMB2 2.2.3, MS-CIFS 2.2.4.52).

use crate::LabError;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

pub(crate) fn loopbacks() -> Vec<std::net::IpAddr> {
    let mut addresses = vec![Ipv4Addr::LOCALHOST.into()];
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
        addresses.push(Ipv6Addr::LOCALHOST.into());
    }
    addresses
}

pub(crate) fn listen(port: Option<u16>) -> Result<Vec<TcpListener>, LabError> {
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    // A port that is free for IPv4 may be in use for IPv6.
    for _ in 0..if port.is_some() { 1 } else { 50 } {
        match try_listen(port.unwrap_or(0)) {
            Ok(listeners) => return Ok(listeners),
            Err(error) => last = error,
        }
    }
    Err(unusable(port, &last))
}

fn try_listen(port: u16) -> io::Result<Vec<TcpListener>> {
    let mut listeners: Vec<TcpListener> = Vec::new();
    for address in loopbacks() {
        let port = listeners.first().map_or(Ok(port), |first| first.local_addr().map(|address| address.port()))?;
        listeners.push(TcpListener::bind(SocketAddr::new(address, port))?);
    }
    Ok(listeners)
}

pub(crate) fn free(port: Option<u16>) -> Result<u16, LabError> {
    let listeners = listen(port)?;
    let address = listeners.first().map(TcpListener::local_addr);
    address
        .and_then(Result::ok)
        .map(|address| address.port())
        .ok_or_else(|| unusable(port, &io::ErrorKind::Other.into()))
}

pub(crate) fn bound(listeners: &[TcpListener]) -> Result<u16, LabError> {
    let address = listeners.first().map(TcpListener::local_addr).unwrap_or(Err(io::ErrorKind::NotFound.into()));
    address.map(|address| address.port()).map_err(|error| unusable(None, &error))
}

fn unusable(port: Option<u16>, error: &io::Error) -> LabError {
    let Some(port) = port else {
        return LabError::Unavailable(format!("no free port on the loopback interface: {error}"));
    };
    LabError::Unavailable(match error.kind() {
        io::ErrorKind::AddrInUse => format!("port {port} is taken: choose another one, or none for any free one"),
        io::ErrorKind::PermissionDenied => format!("port {port} needs root: choose one from 1024 up"),
        _ => format!("cannot listen on port {port}: {error}"),
    })
}

/// Succeeds if the response starts with an SMB header. Also offers SMB2 (MS-SMB2 3.3.5.3.1), for servers of any
/// dialect.
pub(crate) fn negotiate(address: SocketAddr, patience: Duration) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    stream.write_all(&request())?;
    let mut answer = [0; 8];
    stream.read_exact(&mut answer)?;
    match answer {
        [0, _, _, _, 0xff | 0xfe, b'S', b'M', b'B'] => Ok(()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the program that listens there does not speak SMB")),
    }
}

fn request() -> Vec<u8> {
    let mut message = vec![0xff, b'S', b'M', b'B', 0x72];
    message.extend([0; 4]); // Status
    message.push(0x18); // Flags: canonicalized paths, case insensitive
    message.extend(0xc853u16.to_le_bytes()); // Flags2: Unicode, NTSTATUS, extended security, long names
    message.extend([0; 12]); // PIDHigh, SecurityFeatures, Reserved
    message.extend([0, 0, 0xfe, 0xff, 0, 0, 0, 0]); // TID, PIDLow, UID, MID
    message.push(0); // WordCount
    let mut dialects = Vec::new();
    for dialect in ["NT LM 0.12", "SMB 2.002", "SMB 2.???"] {
        dialects.push(2); // BufferFormat: dialect
        dialects.extend(dialect.as_bytes());
        dialects.push(0);
    }
    message.extend((dialects.len() as u16).to_le_bytes()); // ByteCount
    message.extend(dialects);
    let mut frame = (message.len() as u32).to_be_bytes().to_vec();
    frame.extend(message);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn answering(answer: &'static [u8]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("the probe connects");
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).expect("the probe speaks first");
            stream.write_all(answer).expect("the probe listens");
        });
        address
    }

    #[test]
    fn only_an_smb_header_counts_as_an_answer() {
        let patience = Duration::from_secs(5);
        assert!(negotiate(answering(b"\0\0\0\x40\xfeSMB"), patience).is_ok());
        assert!(negotiate(answering(b"\0\0\0\x40\xffSMB"), patience).is_ok());
        assert!(negotiate(answering(b"HTTP/1.1 400"), patience).is_err());
        assert!(negotiate(answering(b""), patience).is_err());
    }

    /// MS-CIFS 2.2.3.1: the header has 32 bytes; 2.2.4.52.1: WordCount is 0 and ByteCount counts the remaining bytes.
    #[test]
    fn lengths_of_the_request_agree() {
        let frame = request();
        assert_eq!(u32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]]) as usize, frame.len() - 4);
        assert_eq!(frame[4 + 32], 0);
        assert_eq!(u16::from_le_bytes([frame[37], frame[38]]) as usize, frame.len() - 39);
    }
}
