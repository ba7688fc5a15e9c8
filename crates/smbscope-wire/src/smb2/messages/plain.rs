//! Messages without content: LOGOFF, TREE_DISCONNECT, ECHO and CANCEL (MS-SMB2 2.2.7, 2.2.11, 2.2.28, 2.2.30).
//! Responses have the same two fields.

use super::Smb2RequestMessage;
use super::message::message;

message! {
    request Logoff: LOGOFF, 4 {}
}

message! {
    request TreeDisconnect: TREE_DISCONNECT, 4 {}
}

message! {
    request Echo: ECHO, 4 {}
}

message! {
    /// Cancels the request with the same MessageId or AsyncId. Never answered itself.
    request Cancel: CANCEL, 4 {}
}

impl Smb2RequestMessage for Logoff {}
impl Smb2RequestMessage for TreeDisconnect {}
impl Smb2RequestMessage for Echo {}
impl Smb2RequestMessage for Cancel {}

#[cfg(test)]
mod tests {
    use super::super::Smb2Message;
    use super::*;

    #[test]
    fn a_plain_request_is_its_size_and_a_reserved_field() {
        let mut out = Vec::new();
        Echo {}.emit(&mut out);
        assert_eq!(out, [4, 0, 0, 0]);
        assert_eq!((Logoff::COMMAND.0, TreeDisconnect::COMMAND.0, Cancel::COMMAND.0), (2, 4, 12));
    }
}
