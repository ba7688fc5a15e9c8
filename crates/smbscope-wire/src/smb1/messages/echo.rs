//! SMB_COM_ECHO (MS-CIFS 2.2.4.39).

use super::message::message;

message! {
    Echo<'a>: ECHO, 1 {
        /// Number of requested responses.
        echo_count: u16 = 0,
    } with {
        data: bytes,
    }
}

message! {
    EchoResponse<'a>: ECHO, 1 {
        /// Number of this response, from 1.
        sequence_number: u16 = 0,
    } with {
        /// Data of the request.
        data: bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{emitted, response};
    use super::*;
    use crate::smb1::Smb1Command;

    #[test]
    fn one_answer_is_asked_for() {
        assert_eq!(emitted(&Echo { echo_count: 1, data: b"hi" }), [1, 1, 0, 2, 0, b'h', b'i']);
    }

    #[test]
    fn the_answer_is_numbered() {
        let bytes = response(Smb1Command::ECHO, &[1, 0], b"hi");
        assert_eq!(EchoResponse::parse(&bytes), Ok(EchoResponse { sequence_number: 1, data: b"hi" }));
    }
}
