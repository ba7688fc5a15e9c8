//! A minimal client that sends arbitrary messages and returns the responses.

use smbscope_testkit::server::ScriptedServer;
use smbscope_testkit::{framed, smb2};
use smbscope_wire::smb2::Smb2Header;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Times out after two seconds.
pub(crate) struct Client(TcpStream);

impl Client {
    pub(crate) fn new(server: &ScriptedServer) -> Client {
        let stream = TcpStream::connect(server.address()).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(2))).expect("a timeout above zero");
        stream.set_nodelay(true).expect("a TCP socket");
        Client(stream)
    }

    /// Connects and logs on with SMB 2.1.
    pub(crate) fn logged_on(server: &ScriptedServer) -> Client {
        let mut client = Client::new(server);
        client.ask(smb2::negotiate(0, &[0x0210]));
        client.ask(smb2::session_setup_begin(1));
        client.ask(smb2::session_setup(2, "", "somebody"));
        client.ask(smb2::tree_connect(3, r"\\server\share"));
        client
    }

    /// Sends framed messages in one write.
    pub(crate) fn say(&mut self, messages: impl IntoIterator<Item = impl Into<Vec<u8>>>) {
        let bytes: Vec<u8> = messages.into_iter().flat_map(framed).collect();
        self.0.write_all(&bytes).expect("the server reads");
    }

    /// Returns the next frame without its header.
    pub(crate) fn hear(&mut self) -> io::Result<Vec<u8>> {
        let mut header = [0; 4];
        self.0.read_exact(&mut header)?;
        let mut message = vec![0; u32::from_be_bytes(header) as usize];
        self.0.read_exact(&mut message)?;
        Ok(message)
    }

    /// Returns the next bytes, without framing.
    pub(crate) fn hear_bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.0.read_exact(&mut bytes).expect("so many bytes");
        bytes
    }

    /// Sends a request and returns the response.
    pub(crate) fn ask(&mut self, message: impl Into<Vec<u8>>) -> Vec<u8> {
        self.say([message.into()]);
        self.hear().expect("an answer")
    }
}

pub(crate) fn header(message: &[u8]) -> Smb2Header {
    Smb2Header::parse(message).expect("an SMB2 header")
}
