//! Checks that a server answers, with a minimal SMB negotiation (MS-SMB2 2.2.3, MS-CIFS 2.2.4.52).

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Connects and negotiates. Succeeds if the response starts with an SMB header.
///
/// Sends an SMB1 negotiation that also offers SMB2 (`SMB 2.???`, MS-SMB2 3.3.5.3.1), so that servers of any dialect
/// understand it.
pub(crate) fn negotiate(address: SocketAddr, patience: Duration) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    stream.write_all(&request())?;
    let mut answer = [0; 8];
    stream.read_exact(&mut answer)?;
    match answer {
        [0, _, _, _, 0xff | 0xfe, b'S', b'M', b'B'] => Ok(()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "what listens there does not speak SMB")),
    }
}

/// Returns SMB_COM_NEGOTIATE in a direct TCP frame.
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

    /// Accepts one connection and answers with these bytes.
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
