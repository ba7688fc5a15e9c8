//! SMB_COM_ECHO (MS-CIFS 2.2.4.39).

use super::super::Command;
use super::{Malformed, Request, View, Writer};

/// Asks for one answer with the same data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo<'a> {
    /// What comes back.
    pub data: &'a [u8],
}

impl Request for Echo<'_> {
    const COMMAND: Command = Command::ECHO;

    fn body(&self, writer: &mut Writer<'_>) {
        writer.u16(1);
        writer.data();
        writer.bytes(self.data);
    }
}

/// What came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EchoResponse<'a> {
    /// Number of this answer, from 1.
    pub sequence_number: u16,
    /// The data of the request.
    pub data: &'a [u8],
}

impl EchoResponse<'_> {
    /// Checks it.
    pub fn parse(message: &[u8]) -> Result<EchoResponse<'_>, Malformed> {
        let view = View::parse(message, Command::ECHO)?;
        Ok(EchoResponse { sequence_number: view.u16(0)?, data: view.data })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{emitted, response};
    use super::*;

    #[test]
    fn one_answer_is_asked_for() {
        assert_eq!(emitted(&Echo { data: b"hi" }), [1, 1, 0, 2, 0, b'h', b'i']);
    }

    #[test]
    fn the_answer_is_numbered() {
        let bytes = response(Command::ECHO, &[1, 0], b"hi");
        assert_eq!(EchoResponse::parse(&bytes), Ok(EchoResponse { sequence_number: 1, data: b"hi" }));
    }
}
