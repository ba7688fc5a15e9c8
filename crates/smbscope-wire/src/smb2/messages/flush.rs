//! FLUSH (MS-SMB2 2.2.17, 2.2.18).

use super::Smb2RequestMessage;
use super::message::message;
use crate::smb2::FileReference;

message! {
    request Request: FLUSH, 24 {
        file: FileReference = 8,
    }
}

impl Smb2RequestMessage for Request {}

message! {
    response Response: FLUSH, 4 {}
}

#[cfg(test)]
mod tests {
    use super::super::tests::request;
    use super::*;

    #[test]
    fn the_open_follows_the_reserved_fields() {
        let message = request(&Request { file: FileReference { persistent: 3, volatile: 4 } });
        assert_eq!(message[12..14], [7, 0]);
        assert_eq!(message[64..], [24, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0]);
    }
}
