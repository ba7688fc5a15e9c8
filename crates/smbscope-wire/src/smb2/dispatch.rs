//! Calls the functions of a command's messages.

use super::header::with_commands;
use super::messages::*;
use super::view::{HEAD, RESPONSE_HEAD};
use super::{Smb2Command, Smb2Header, Smb2Request, Smb2Response};
use crate::RequestDetail;
use crate::kept::RetainedRanges;

macro_rules! dispatch {
    ($($name:ident = $value:literal $(, $request:path $(, $response:path)?)?;)*) => {
        impl Smb2Request {
            pub fn parse(command: Smb2Command, message: &[u8]) -> Smb2Request {
                match command {
                    $($(Smb2Command::$name => <$request>::view(message),)?)*
                    _ => None,
                }
                .unwrap_or(Smb2Request::Other)
            }

            /// Returns the number of bytes that [`Smb2Request::parse`] needs. `prefix` holds at least the header; the
            /// result may grow with it.
            pub fn needed(command: Smb2Command, prefix: &[u8]) -> usize {
                match command {
                    $($(Smb2Command::$name => <$request>::needed(prefix),)?)*
                    _ => HEAD,
                }
            }
        }

        /// Parses a request from its header on. Returns `None` if the command has no parameters or they are truncated.
        pub fn detail(command: Smb2Command, message: &[u8]) -> Option<RequestDetail> {
            match command {
                $($(Smb2Command::$name => <$request>::detail(message),)?)*
                _ => None,
            }
        }

        /// Returns the number of bytes that [`detail`] needs. `prefix` holds at least the fixed fields.
        pub fn detail_needed(command: Smb2Command, prefix: &[u8]) -> usize {
            match command {
                $($(Smb2Command::$name => <$request>::detail_needed(prefix),)?)*
                _ => 0,
            }
        }

        fn retain_request(command: Smb2Command, message: &[u8], kept: &mut RetainedRanges) -> Option<()> {
            match command {
                $($(Smb2Command::$name => <$request>::retain(message, kept),)?)*
                _ => None,
            }
        }

        impl Smb2Response {
            pub fn parse(command: Smb2Command, message: &[u8]) -> Smb2Response {
                if is_error(command, message) {
                    return Smb2Response::Other;
                }
                match command {
                    $($($(Smb2Command::$name => <$response>::view(message),)?)?)*
                    _ => None,
                }
                .unwrap_or(Smb2Response::Other)
            }

            /// Like [`Smb2Request::needed`], for [`Smb2Response::parse`].
            pub fn needed(command: Smb2Command, prefix: &[u8]) -> usize {
                match command {
                    $($($(Smb2Command::$name => <$response>::needed(prefix),)?)?)*
                    _ => RESPONSE_HEAD,
                }
            }
        }

        fn retain_response(command: Smb2Command, message: &[u8], kept: &mut RetainedRanges) -> Option<()> {
            match command {
                $($($(Smb2Command::$name => <$response>::retain(message, kept),)?)?)*
                _ => None,
            }
        }
    };
}

with_commands!(dispatch);

/// Returns true for an error response, or a truncated one. SESSION_SETUP responses have the same StructureSize (2.2.2).
fn is_error(command: Smb2Command, message: &[u8]) -> bool {
    command != Smb2Command::SESSION_SETUP && error::Smb2ErrorResponse::is_error_response(message).unwrap_or(true)
}

/// Returns the ranges that [`Smb2Request`], [`Smb2Response`] and [`detail`] read.
pub fn kept(header: &Smb2Header, message: &[u8]) -> RetainedRanges {
    let mut kept = RetainedRanges::default();
    kept.field(0..Smb2Header::SIGNATURE.start);
    if !header.is_response() {
        let _ = retain_request(header.command, message, &mut kept);
    } else {
        // StructureSize, which identifies an error, and the fields next to it.
        kept.field(Smb2Header::LENGTH..RESPONSE_HEAD);
        if !is_error(header.command, message) {
            let _ = retain_response(header.command, message, &mut kept);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::super::header::tests::header;
    use super::super::{Created, FileReference, GrantedLease};
    use super::*;
    use crate::CapturedName;

    fn with_body(command: u16, flags: u32, at: usize, bytes: &[u8]) -> Vec<u8> {
        let mut message = header(command, flags);
        message.resize(at, 0);
        message.extend(bytes);
        message
    }

    #[test]
    fn create_request_names_its_file() {
        let mut message = with_body(5, 0, 108, &[120, 0, 6, 0]);
        message[67] = create::oplock::BATCH;
        message.resize(120, 0);
        let oplock_level = Some(create::oplock::BATCH);
        assert_eq!(Smb2Request::needed(Smb2Command::CREATE, &message), 126);
        message.extend(b"a\0\\\0b\0");
        assert_eq!(
            Smb2Request::parse(Smb2Command::CREATE, &message),
            Smb2Request::Create { name: "a\\b".into(), oplock_level }
        );
        let cut = |length: usize| Smb2Request::parse(Smb2Command::CREATE, &message[..length]);
        let named = |text: &str, missing| Smb2Request::Create {
            name: CapturedName { text: text.into(), missing },
            oplock_level,
        };
        assert_eq!([cut(124), cut(115)], [named("a\\", 2), named("", 11)]);
        assert_eq!(cut(111), Smb2Request::Other, "not even its place is known");
    }

    #[test]
    fn read_request_gives_file_offset_and_length() {
        let mut message = with_body(8, 0, 68, &4096u32.to_le_bytes());
        message.extend(0x1_0000_0000u64.to_le_bytes());
        message.extend(1u64.to_le_bytes());
        message.extend(2u64.to_le_bytes());
        let file = FileReference { persistent: 1, volatile: 2 };
        let expected = Smb2Request::ReadWrite { file, offset: 0x1_0000_0000, length: 4096 };
        assert_eq!(Smb2Request::parse(Smb2Command::READ, &message), expected);
    }

    #[test]
    fn rename_gives_the_new_name() {
        let mut message = with_body(0x11, 0, 66, &[1, 10, 24, 0, 0, 0, 96, 0]);
        message.resize(96 + 16, 0);
        message.extend([4, 0, 0, 0, b'x', 0, b'y', 0]);
        let Smb2Request::Info { new_name, .. } = Smb2Request::parse(Smb2Command::SET_INFO, &message) else { panic!() };
        assert_eq!(new_name, Some("xy".into()));
    }

    #[test]
    fn a_new_name_must_lie_within_the_buffer() {
        // As above, with the buffer 8 bytes further on, and then with a buffer of 4 bytes, too short for a name (found
        // by fuzzing).
        let mut message = with_body(0x11, 0, 66, &[1, 10, 24, 0, 0, 0, 104, 0]);
        message.resize(104 + 16, 0);
        message.extend([4, 0, 0, 0, b'x', 0, b'y', 0]);
        assert_eq!(Smb2Request::needed(Smb2Command::SET_INFO, &message), 104 + 24);
        let new_name = |message: &[u8]| match Smb2Request::parse(Smb2Command::SET_INFO, message) {
            Smb2Request::Info { new_name, .. } => new_name,
            _ => None,
        };
        assert_eq!(new_name(&message), Some("xy".into()));
        assert_eq!(new_name(&message[..message.len() - 2]), Some(CapturedName { text: "x".into(), missing: 2 }));
        message[68] = 4;
        assert_eq!(new_name(&message), None);
    }

    #[test]
    fn error_responses_have_no_file() {
        let message = with_body(5, 1, 64, &[9, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(Smb2Response::parse(Smb2Command::CREATE, &message), Smb2Response::Other);
    }

    /// A CREATE response that grants a lease of version 1 (2.2.14, 2.2.14.2.10).
    fn leased(state: u8) -> Vec<u8> {
        let mut message = with_body(5, 1, 64, &[89, 0, create::oplock::LEASE]);
        message.resize(64 + 24, 0);
        message.extend(0x01d9_0000_0000_0001u64.to_le_bytes());
        message.resize(64 + 48, 0);
        message.extend(1234u64.to_le_bytes());
        message.resize(64 + 64, 0);
        message.extend([7, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0]);
        // 56 bytes of contexts after the fields: Next, name at 16 with 4 bytes, data at 24 with 32.
        message.extend([152, 0, 0, 0, 56, 0, 0, 0]);
        message.extend([0, 0, 0, 0, 16, 0, 4, 0, 0, 0, 24, 0, 32, 0, 0, 0]);
        message.extend(b"RqLs\0\0\0\0");
        message.extend([0xab; 16]);
        message.extend([state, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        message
    }

    #[test]
    fn a_create_response_has_the_granted_caching() {
        let message = leased(7);
        assert_eq!(Smb2Response::needed(Smb2Command::CREATE, &message[..64]), 144);
        assert_eq!(Smb2Response::needed(Smb2Command::CREATE, &message[..152]), 152 + 56);
        let file = FileReference { persistent: 7, volatile: 8 };
        let (last_write, end_of_file) = (0x01d9_0000_0000_0001, 1234);
        let created = |lease| {
            let oplock_level = create::oplock::LEASE;
            let (create_action, file_attributes) = (0, 0);
            let created =
                Created { file, oplock_level, lease, create_action, file_attributes, last_write, end_of_file };
            Smb2Response::Create(created)
        };
        let lease = GrantedLease { key: [0xab; 16], state: 7 };
        assert_eq!(Smb2Response::parse(Smb2Command::CREATE, &message), created(Some(lease)));
        assert_eq!(Smb2Response::parse(Smb2Command::CREATE, &message[..200]), created(None), "the lease is cut off");
        assert_eq!(Smb2Response::parse(Smb2Command::CREATE, &message[..143]), Smb2Response::Other);
    }
}
