//! Negotiation, sessions and tree connects, the messages without content, and the response to a request that failed.

/// NEGOTIATE (MS-SMB2 2.2.3, 2.2.4).
pub mod negotiate {
    use crate::codec::List;
    use crate::kept::RetainedRanges;
    use crate::smb2::messages::negotiate_context::{self, MAX_NEGOTIATE, NegotiateContextList};
    use crate::smb2::{Smb2AlgorithmIds, Smb2ClientOffer, Smb2Header, Smb2Request, Smb2Response, Smb2ServerOffer};
    use std::ops::Range;

    /// Bits of SecurityMode (SMB2_NEGOTIATE_*).
    pub mod security_mode {
        pub const SIGNING_ENABLED: u16 = 0x0001;
        pub const SIGNING_REQUIRED: u16 = 0x0002;
    }

    /// Bits of Capabilities (SMB2_GLOBAL_CAP_*).
    pub mod capabilities {
        pub const DFS: u32 = 0x0000_0001;
        pub const LEASING: u32 = 0x0000_0002;
        pub const LARGE_MTU: u32 = 0x0000_0004;
        pub const MULTI_CHANNEL: u32 = 0x0000_0008;
        pub const PERSISTENT_HANDLES: u32 = 0x0000_0010;
        pub const DIRECTORY_LEASING: u32 = 0x0000_0020;
        pub const ENCRYPTION: u32 = 0x0000_0040;
    }

    const CLIENT_GUID: Range<usize> = 76..92;
    const SERVER_GUID: Range<usize> = 72..88;
    /// SystemTime and ServerStartTime.
    const SERVER_TIMES: Range<usize> = 104..120;

    message! {
        request Request<'a>: NEGOTIATE, 36 {
            security_mode: u16 = 4,
            /// See [`capabilities`]. Zero unless the client speaks SMB 3.
            capabilities: u32 = 8,
            /// Zero unless the client speaks 2.1 or later.
            client_guid: [u8; 16] = 12,
        } with {
            dialects: List<'a, u16> = [u16 @ 2],
            contexts: NegotiateContextList<'a> = [u32 @ 28, u16 @ 32, optional],
        }
        impl {
            fn view(m: &[u8]) -> Option<Smb2Request> {
                let m = negotiate_context::parsed(m);
                let dialects = negotiate_context::dialects(m, Self::dialects(m)?)?;
                Some(Smb2Request::Negotiate(Box::new(Smb2ClientOffer {
                    security_mode: Self::security_mode(m)?,
                    capabilities: Self::capabilities(m)?,
                    algorithms: Smb2AlgorithmIds::offered(&dialects, m, Self::contexts(m)),
                    dialects,
                })))
            }

            fn needed(_prefix: &[u8]) -> usize {
                MAX_NEGOTIATE
            }

            fn retain(m: &[u8], kept: &mut RetainedRanges) -> Option<()> {
                kept.field(Smb2Header::LENGTH..CLIENT_GUID.start);
                kept.field(CLIENT_GUID.end..Self::END);
                let (start, count) = Self::dialects(m)?;
                kept.field(start..start.saturating_add(2 * count));
                negotiate_context::retain(Self::contexts(m)?, m, kept);
                Some(())
            }
        }
    }

    message! {
        response Response<'a>: NEGOTIATE, 65 {
            security_mode: u16 = 2,
            /// 0x02ff asks for another NEGOTIATE.
            dialect: u16 = 4,
            server_guid: [u8; 16] = 8,
            capabilities: u32 = 24,
            /// Maximum buffer of QUERY_INFO, QUERY_DIRECTORY, SET_INFO, CHANGE_NOTIFY and IOCTL.
            max_transact_size: u32 = 28,
            max_read_size: u32 = 32,
            max_write_size: u32 = 36,
            /// FILETIME.
            system_time: u64 = 40,
        } with {
            /// GSS token with the server's authentication mechanisms; may be empty.
            security_buffer: &'a [u8] = [u16 @ 56, u16 @ 58, optional],
            /// Contexts of dialect 3.1.1; undefined in other dialects.
            contexts: NegotiateContextList<'a> = [u32 @ 60, u16 @ 6, optional],
        }
        impl {
            fn view(m: &[u8]) -> Option<Smb2Response> {
                let m = negotiate_context::parsed(m);
                let dialect = Self::dialect(m)?;
                Some(Smb2Response::Negotiate(Box::new(Smb2ServerOffer {
                    security_mode: Self::security_mode(m)?,
                    dialect,
                    capabilities: Self::capabilities(m).unwrap_or_default(),
                    max_read_size: Self::max_read_size(m).unwrap_or_default(),
                    max_write_size: Self::max_write_size(m).unwrap_or_default(),
                    algorithms: Smb2AlgorithmIds::offered(&[dialect], m, Self::contexts(m)),
                })))
            }

            fn needed(_prefix: &[u8]) -> usize {
                MAX_NEGOTIATE
            }

            fn retain(m: &[u8], kept: &mut RetainedRanges) -> Option<()> {
                kept.field(SERVER_GUID.end..SERVER_TIMES.start);
                kept.field(SERVER_TIMES.end..Self::END);
                negotiate_context::retain(Self::contexts(m)?, m, kept);
                Some(())
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::smb2::Smb2Command;
        use crate::smb2::messages::negotiate_context::{NegotiateContext, Offer};
        use crate::smb2::messages::tests::{request, response};

        #[test]
        fn one_dialect_is_offered_without_contexts() {
            let offer = Request { security_mode: 1, dialects: List::Values(&[0x0202]), ..Request::default() };
            let mut expected = vec![36, 0, 1, 0, 1, 0];
            expected.extend([0; 2 + 4 + 16 + 8]);
            expected.extend([0x02, 0x02]);
            assert_eq!(request(&offer)[64..], expected);
        }

        #[test]
        fn contexts_of_3_1_1_begin_at_multiples_of_eight() {
            let contexts = Offer { salt: &[7; 32], ciphers: &[2, 1], signing_algorithms: &[1], net_name: Some("srv") };
            let offer = Request {
                security_mode: 1,
                capabilities: 0x7f,
                client_guid: [3; 16],
                dialects: List::Values(&[0x0311]),
                contexts: NegotiateContextList::Offer(contexts),
            };
            let message = request(&offer);
            // 64 header + 36 + 2, padded to 104. Offset and count replace ClientStartTime (2.2.3).
            assert_eq!(message[92..100], [104, 0, 0, 0, 4, 0, 0, 0]);
            assert_eq!(message[100..104], [0x11, 0x03, 0, 0]);
            let read: Vec<NegotiateContext> = Request::parse(&message).unwrap().contexts.iter().collect();
            // 2.2.3.1.1: one hash algorithm, a salt of 32 bytes, SHA-512, and the salt.
            let mut preauth = vec![1, 0, 32, 0, 1, 0];
            preauth.extend([7; 32]);
            assert_eq!(read[0], NegotiateContext { context_type: 1, data: &preauth });
            assert_eq!(read[1], NegotiateContext { context_type: 2, data: &[2, 0, 2, 0, 1, 0] });
            assert_eq!(read[2], NegotiateContext { context_type: 8, data: &[1, 0, 1, 0] });
            assert_eq!(read[3], NegotiateContext { context_type: 5, data: b"s\0r\0v\0" });
        }

        #[test]
        fn the_response_says_what_was_chosen() {
            let mut message = response(Smb2Command::NEGOTIATE);
            message.extend([65, 0, 3, 0, 0x11, 3, 1, 0]);
            message.extend([9; 16]);
            message.extend([0x2f, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0x20, 0, 0, 0, 0x40, 0]);
            message.extend([0; 16]);
            message.extend([128, 0, 2, 0, 136, 0, 0, 0]);
            message.extend(b"gs\0\0\0\0\0\0");
            message.extend([2, 0, 4, 0, 0, 0, 0, 0, 1, 0, 2, 0]);
            let read = Response::parse(&message).unwrap();
            assert_eq!((read.dialect, read.security_mode, read.capabilities), (0x0311, 3, 0x2f));
            assert_eq!(
                (read.max_transact_size, read.max_read_size, read.max_write_size),
                (0x10_0000, 0x20_0000, 0x40_0000)
            );
            assert_eq!(read.security_buffer, b"gs");
            assert_eq!(read.contexts.cipher(), Some(2));
            assert_eq!(Response::parse(&message[..127]), None);
        }
    }
}

/// SESSION_SETUP (MS-SMB2 2.2.5, 2.2.6).
pub mod session_setup {
    use crate::kept::RetainedRanges;
    use crate::security;
    use crate::smb2::Smb2Request;
    use crate::smb2::view::reach;

    message! {
        request Request<'a>: SESSION_SETUP, 25 {
            flags: u8 = 2,
            security_mode: u8 = 3,
            /// Only DFS is defined here.
            capabilities: u32 = 4,
            /// Session that this one replaces.
            previous_session_id: u64 = 16,
        } with {
            token: &'a [u8] = [u16 @ 12, u16 @ 14],
        }
        impl {
            const PARSED: usize = Self::END;

            fn view(m: &[u8]) -> Option<Smb2Request> {
                let (start, length) = Self::token(m)?;
                let token = &m[start.min(m.len())..(start + length).min(m.len())];
                let binding = Self::flags(m)? & Self::BINDING != 0;
                Some(Smb2Request::SessionSetup { binding, identity: security::identify(token) })
            }

            fn needed(prefix: &[u8]) -> usize {
                reach(Self::token(prefix), Self::END)
            }

            fn retain_buffers(m: &[u8], kept: &mut RetainedRanges) -> Option<()> {
                let (start, length) = Self::token(m)?;
                let token = m.get(start..start.saturating_add(length).min(m.len()))?;
                kept.absorb(security::kept(token), start);
                Some(())
            }
        }
    }

    impl Request<'_> {
        /// SMB2_SESSION_FLAG_BINDING: binds the connection to the session in the header.
        pub const BINDING: u8 = 0x01;
    }

    message! {
        response Response<'a>: SESSION_SETUP, 9 {
            session_flags: u16 = 2,
        } with {
            token: &'a [u8] = [u16 @ 4, u16 @ 6],
        }
        target SessionSetup(session_flags)
    }

    impl Response<'_> {
        pub const GUEST: u16 = 0x0001;
        pub const NULL: u16 = 0x0002;
        pub const ENCRYPT_DATA: u16 = 0x0004;
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::smb2::messages::tests::{request, response};
        use crate::smb2::{self, Smb2Command};

        #[test]
        fn the_token_stands_behind_the_fields() {
            let setup = Request {
                flags: Request::BINDING,
                security_mode: 1,
                capabilities: 1,
                previous_session_id: 5,
                token: &[0x60, 0x48],
            };
            let message = request(&setup);
            let fields = [25, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 88, 0, 2, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0x60, 0x48];
            assert_eq!(message[64..], fields);
            let read = smb2::Smb2Request::parse(Smb2Command::SESSION_SETUP, &message);
            assert_eq!(read, smb2::Smb2Request::SessionSetup { binding: true, identity: None });
        }

        #[test]
        fn the_response_has_flags_and_a_token() {
            let mut message = response(Smb2Command::SESSION_SETUP);
            message.extend([9, 0, 1, 0, 72, 0, 3, 0]);
            message.extend(b"tok");
            assert_eq!(Response::parse(&message), Some(Response { session_flags: Response::GUEST, token: b"tok" }));
            assert_eq!(Response::parse(&message[..74]), None, "the token is cut off");
        }
    }
}

/// TREE_CONNECT (MS-SMB2 2.2.9, 2.2.10).
pub mod tree_connect {
    use crate::codec::WireText;
    use crate::smb2::Smb2Request;
    use crate::smb2::view::text;

    message! {
        request Request<'a>: TREE_CONNECT, 9 {} with {
            /// `\\server\share`.
            path: WireText<'a> = [u16 @ 4, u16 @ 6],
        }
        names Unc in path
        impl {
            const PARSED: usize = Self::END;

            fn view(m: &[u8]) -> Option<Smb2Request> {
                Some(Smb2Request::TreeConnect(text(m, Self::path(m)?)))
            }
        }
    }

    message! {
        response Response: TREE_CONNECT, 16 {
            /// 1 disk, 2 pipe, 3 printer.
            share_type: u8 = 2,
            share_flags: u32 = 4,
            capabilities: u32 = 8,
            maximal_access: u32 = 12,
        }
        target TreeConnect(share_type)
    }

    impl Response {
        const ENCRYPT_DATA: u32 = 0x0000_8000;

        pub fn encrypts_data(&self) -> bool {
            self.share_flags & Response::ENCRYPT_DATA != 0
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::smb2::messages::tests::{request, response};
        use crate::smb2::{self, Smb2Command};

        #[test]
        fn the_path_is_a_unc_name() {
            let message = request(&Request { path: r"\\s\data".into() });
            assert_eq!(message[64..72], [9, 0, 0, 0, 72, 0, 16, 0]);
            let read = smb2::Smb2Request::parse(Smb2Command::TREE_CONNECT, &message);
            assert_eq!(read, smb2::Smb2Request::TreeConnect(r"\\s\data".into()));
        }

        #[test]
        fn a_share_can_ask_for_encryption() {
            let mut message = response(Smb2Command::TREE_CONNECT);
            message.extend([16, 0, 1, 0, 0, 0x80, 0, 0, 0x10, 0, 0, 0, 0xff, 1, 0x1f, 0]);
            let read = Response::parse(&message).unwrap();
            assert!(read.encrypts_data());
            assert_eq!((read.share_type, read.capabilities, read.maximal_access), (1, 0x10, 0x001f_01ff));
        }
    }
}

/// Messages without content: LOGOFF, TREE_DISCONNECT, ECHO and CANCEL (MS-SMB2 2.2.7, 2.2.11, 2.2.28, 2.2.30).
/// Responses have the same two fields.
pub mod plain {
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

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::smb2::messages::Smb2Message;

        #[test]
        fn a_plain_request_is_its_size_and_a_reserved_field() {
            let mut out = Vec::new();
            Echo {}.emit(&mut out);
            assert_eq!(out, [4, 0, 0, 0]);
            assert_eq!((Logoff::COMMAND.0, TreeDisconnect::COMMAND.0, Cancel::COMMAND.0), (2, 4, 12));
        }
    }
}

/// ERROR response (MS-SMB2 2.2.2) and its error data.
pub mod error {
    use crate::bytes::{u8_at, u16_at, u32_at, utf16_text};
    use crate::codec::{Put, buffer};
    use crate::smb2::Smb2Header;

    const SIZE: u16 = 9;
    const SYMLINK_ERROR_TAG: u32 = 0x4c4d_5953;

    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Smb2ErrorResponse<'a> {
        /// ErrorData of the first context, or all of it before 3.1.1.
        pub data: &'a [u8],
    }

    /// Target of a STATUS_STOPPED_ON_SYMLINK error (2.2.2.2.1).
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Symlink {
        /// Length in bytes of the path after the link.
        pub unparsed_path_length: u16,
        pub substitute_name: String,
        /// True if the target is relative to the link's directory.
        pub relative: bool,
    }

    impl<'a> Smb2ErrorResponse<'a> {
        /// Returns true if a possibly truncated message is an error response.
        pub(in crate::smb2) fn is_error_response(message: &[u8]) -> Option<bool> {
            u16_at(message, Smb2Header::LENGTH).map(|size| size == SIZE)
        }

        pub fn parse(message: &'a [u8]) -> Option<Smb2ErrorResponse<'a>> {
            let at = Smb2Header::LENGTH;
            if !Smb2ErrorResponse::is_error_response(message)? {
                return None;
            }
            let contexts = u8_at(message, at + 2)?;
            let data = buffer(message, at + 8, u32_at(message, at + 4)? as usize)?;
            // 2.2.2.1: each context has length and id before its data.
            let data = match contexts {
                0 => data,
                _ => buffer(data, 8, u32_at(data, 0)? as usize)?,
            };
            Some(Smb2ErrorResponse { data })
        }

        /// Appends the body without contexts. ErrorData has at least one byte.
        pub fn emit(&self, out: &mut Vec<u8>) {
            out.put(SIZE);
            out.put(0u16);
            out.put(self.data.len() as u32);
            out.put_bytes(if self.data.is_empty() { &[0] } else { self.data });
        }

        /// Returns the required buffer size of STATUS_BUFFER_TOO_SMALL (2.2.2).
        pub fn needed(&self) -> Option<u32> {
            u32_at(self.data, 0).filter(|_| self.data.len() == 4)
        }

        pub fn symlink(&self) -> Option<Symlink> {
            if u32_at(self.data, 4)? != SYMLINK_ERROR_TAG {
                return None;
            }
            let names = self.data.get(28..)?;
            let start = usize::from(u16_at(self.data, 16)?);
            let end = start + usize::from(u16_at(self.data, 18)?);
            Some(Symlink {
                unparsed_path_length: u16_at(self.data, 14)?,
                substitute_name: utf16_text(names.get(start..end)?),
                relative: u32_at(self.data, 24)? & 1 != 0,
            })
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::smb2::Smb2Command;
        use crate::smb2::messages::tests::response;

        /// A relative link to `t` with 4 bytes of unparsed path (2.2.2.2.1).
        fn symlink() -> Vec<u8> {
            let mut data = vec![28, 0, 0, 0, b'S', b'Y', b'M', b'L', 0x0c, 0, 0, 0xa0, 16, 0, 4, 0];
            data.extend([0, 0, 2, 0, 2, 0, 2, 0, 1, 0, 0, 0, b't', 0, b'p', 0]);
            data
        }

        fn error(contexts: u8, data: &[u8]) -> Vec<u8> {
            let mut message = response(Smb2Command::CREATE);
            message.extend([9, 0, contexts, 0, data.len() as u8, 0, 0, 0]);
            message.extend(data);
            message
        }

        #[test]
        fn a_symlink_is_read_with_and_without_contexts() {
            let expected = Symlink { unparsed_path_length: 4, substitute_name: "t".to_owned(), relative: true };
            let plain = error(0, &symlink());
            assert_eq!(Smb2ErrorResponse::parse(&plain).unwrap().symlink(), Some(expected.clone()));
            let mut context = vec![32, 0, 0, 0, 0, 0, 0, 0];
            context.extend(symlink());
            let contexts = error(1, &context);
            assert_eq!(Smb2ErrorResponse::parse(&contexts).unwrap().symlink(), Some(expected));
            assert_eq!(Smb2ErrorResponse::parse(&contexts[..90]), None);
        }

        #[test]
        fn the_length_that_was_needed_is_read() {
            assert_eq!(Smb2ErrorResponse::parse(&error(0, &[0x90, 1, 0, 0])).unwrap().needed(), Some(0x190));
            assert_eq!(Smb2ErrorResponse::parse(&error(0, &[])).unwrap().needed(), None);
        }
    }
}
