//! The requests without content: LOGOFF, TREE_DISCONNECT, ECHO and CANCEL (MS-SMB2 2.2.7, 2.2.11, 2.2.28, 2.2.30).

use super::Body;
use super::put::Put;
use crate::smb2::Command;

/// Gives a request of four bytes its type.
macro_rules! plain {
    ($(#[$doc:meta] $name:ident $command:ident;)*) => {
        $(
            #[$doc]
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub struct $name;

            impl Body for $name {
                const COMMAND: Command = Command::$command;

                fn emit(&self, out: &mut Vec<u8>) {
                    out.put_u16(4);
                    out.put_u16(0);
                }
            }
        )*
    };
}

plain! {
    /// 2.2.7: ends a session.
    Logoff LOGOFF;
    /// 2.2.11: leaves a share.
    TreeDisconnect TREE_DISCONNECT;
    /// 2.2.28: asks whether the server is there.
    Echo ECHO;
    /// 2.2.30: gives up a request, which its header names; never answered itself.
    Cancel CANCEL;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_request_is_its_size_and_a_reserved_field() {
        let mut out = Vec::new();
        Echo.emit(&mut out);
        assert_eq!(out, [4, 0, 0, 0]);
        assert_eq!((Logoff::COMMAND.0, TreeDisconnect::COMMAND.0, Cancel::COMMAND.0), (2, 4, 12));
    }
}
