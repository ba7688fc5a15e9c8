//! Opens, and the commands on an open file.

/// CREATE (MS-SMB2 2.2.13, 2.2.14).
pub mod create {
    use crate::RequestDetail;
    use crate::codec::{Buffer, WireText};
    use crate::kept::RetainedRanges;
    use crate::smb2::messages::create_context::{self, CreateContext, CreateContextList};
    use crate::smb2::view::{Created, GrantedLease, reach, text};
    use crate::smb2::{FileReference, Smb2Request, Smb2Response};
    use std::ops::Range;

    /// Values of RequestedOplockLevel and OplockLevel (SMB2_OPLOCK_LEVEL_*).
    pub mod oplock {
        pub const NONE: u8 = 0x00;
        pub const LEVEL_II: u8 = 0x01;
        pub const EXCLUSIVE: u8 = 0x08;
        pub const BATCH: u8 = 0x09;
        pub const LEASE: u8 = 0xff;
    }

    /// ImpersonationLevel that every client requests.
    pub const IMPERSONATION: u32 = 2;
    /// Value of CreateOptions: open only a directory.
    pub const DIRECTORY_FILE: u32 = 1;
    /// Offsets of LastWriteTime and EndOfFile in a response.
    const LAST_WRITE: Range<usize> = 88..96;
    const END_OF_FILE: usize = 112;

    message! {
        request Request<'a>: CREATE, 57 {
            oplock_level: u8 = 3,
            impersonation_level: u32 = 4,
            desired_access: u32 = 24,
            file_attributes: u32 = 28,
            share_access: u32 = 32,
            create_disposition: u32 = 36,
            create_options: u32 = 40,
        } with {
            /// Path relative to the share, with backslashes; empty for the root.
            name: WireText<'a> = [u16 @ 44, u16 @ 46],
            contexts: CreateContextList<'a> = [u32 @ 48, u32 @ 52, optional],
        }
        names Path in name
        impl {
            const PARSED: usize = Self::END;

            fn view(m: &[u8]) -> Option<Smb2Request> {
                Some(Smb2Request::Create { name: text(m, Self::name(m)?), oplock_level: Self::oplock_level(m) })
            }

            fn detail(m: &[u8]) -> Option<RequestDetail> {
                Some(RequestDetail::Create {
                    desired_access: Self::desired_access(m)?,
                    share_access: Self::share_access(m)?,
                    create_disposition: Self::create_disposition(m)?,
                    create_options: Self::create_options(m)?,
                    file_attributes: Self::file_attributes(m)?,
                })
            }
        }
    }

    message! {
        response Response<'a>: CREATE, 89 {
            oplock_level: u8 = 2,
            /// 0 superseded, 1 opened, 2 created, 3 overwritten.
            create_action: u32 = 4,
            times: [u64; 4] = 8,
            allocation_size: u64 = 40,
            end_of_file: u64 = 48,
            file_attributes: u32 = 56,
            file: FileReference = 64,
        } with {
            contexts: CreateContextList<'a> = [u32 @ 80, u32 @ 84, optional],
        }
        impl {
            fn view(m: &[u8]) -> Option<Smb2Response> {
                let [_, _, last_write, _] = Self::times(m)?;
                let oplock_level = Self::oplock_level(m)?;
                Some(Smb2Response::Create(Created {
                    file: Self::file(m)?,
                    oplock_level,
                    lease: if oplock_level == oplock::LEASE { granted_lease(m) } else { None },
                    create_action: Self::create_action(m)?,
                    file_attributes: Self::file_attributes(m)?,
                    last_write,
                    end_of_file: Self::end_of_file(m)?,
                }))
            }

            fn needed(prefix: &[u8]) -> usize {
                match Self::oplock_level(prefix) {
                    Some(oplock::LEASE) => reach(granted_contexts(prefix), Self::END),
                    _ => Self::END - 8,
                }
            }

            fn retain(m: &[u8], kept: &mut RetainedRanges) -> Option<()> {
                kept.field(LAST_WRITE);
                kept.field(END_OF_FILE..Self::END);
                create_context::retain(granted_contexts(m)?, m, kept)
            }
        }
    }

    /// Limit for a parsed response. Its contexts directly follow the fields and have less than 100 bytes each.
    const MAX_CREATE_RESPONSE: usize = 4 * 1024;

    /// Returns offset and length of the contexts in a response.
    fn granted_contexts(m: &[u8]) -> Option<(usize, usize)> {
        Response::contexts(m).filter(|(start, length)| start.saturating_add(*length) <= MAX_CREATE_RESPONSE)
    }

    fn granted_lease(m: &[u8]) -> Option<GrantedLease> {
        let (start, length) = granted_contexts(m)?;
        match CreateContextList::parse(m, start, length)?.lease()? {
            CreateContext::LeaseV1(lease) | CreateContext::LeaseV2(lease) => {
                Some(GrantedLease { key: lease.key, state: lease.state })
            }
            _ => None,
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::smb2::Smb2Command;
        use crate::smb2::messages::create_context::{CreateContext, Lease};
        use crate::smb2::messages::tests::{request, response};

        const OPEN: Request<'static> = Request {
            name: WireText::Str("a"),
            oplock_level: oplock::BATCH,
            impersonation_level: IMPERSONATION,
            desired_access: 0x0012_0089,
            file_attributes: 0x80,
            share_access: 7,
            create_disposition: 1,
            create_options: 0x40,
            contexts: CreateContextList::List(&[]),
        };

        #[test]
        fn fields_are_where_the_specification_puts_them() {
            let message = request(&OPEN);
            let mut expected = vec![57, 0, 0, 9, 2, 0, 0, 0];
            expected.extend([0; 16]);
            expected.extend([0x89, 0, 0x12, 0, 0x80, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 0x40, 0, 0, 0]);
            expected.extend([120, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, b'a', 0]);
            assert_eq!(message[64..], expected);
            assert_eq!(
                request(&Request { name: "".into(), ..OPEN }).len(),
                64 + 57,
                "the buffer has at least a byte (2.2.13)"
            );
        }

        #[test]
        fn contexts_follow_the_name_at_a_multiple_of_eight() {
            let lease = CreateContext::LeaseV1(Lease { key: [1; 16], state: 7, ..Lease::default() });
            let message =
                request(&Request { contexts: CreateContextList::List(&[lease, CreateContext::DurableHandle]), ..OPEN });
            // The name ends at 122; the lease has 24 + 32 bytes, the durable handle 24 + 16.
            assert_eq!(message[112..120], [128, 0, 0, 0, 96, 0, 0, 0]);
            assert_eq!(message.len(), 128 + 96);
            assert_eq!(message[128..132], [56, 0, 0, 0]);
        }

        #[test]
        fn the_response_names_the_open() {
            let mut message = response(Smb2Command::CREATE);
            message.extend([89, 0, 9, 0, 2, 0, 0, 0]);
            message.resize(112, 0);
            message.extend([10, 0, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0, 0]);
            message.extend([1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
            message.extend([0; 8]);
            let read = Response::parse(&message).unwrap();
            assert_eq!(read.file, FileReference { persistent: 1, volatile: 2 });
            assert_eq!((read.create_action, read.end_of_file, read.file_attributes), (2, 10, 0x20));
            assert_eq!((read.oplock_level, read.contexts.lease()), (9, None));
            assert_eq!(Response::parse(&message[..150]), None);
        }
    }
}

/// CLOSE (MS-SMB2 2.2.15, 2.2.16).
pub mod close {
    use crate::smb2::FileReference;

    /// SMB2_CLOSE_FLAG_POSTQUERY_ATTRIB: the response includes times and sizes.
    pub const POSTQUERY_ATTRIB: u16 = 0x0001;

    message! {
        request Request: CLOSE, 24 {
            flags: u16 = 2,
            file: FileReference = 8,
        }
        target File(file)
    }

    message! {
        response Response: CLOSE, 60 {
            flags: u16 = 2,
            times: [u64; 4] = 8,
            allocation_size: u64 = 40,
            end_of_file: u64 = 48,
            file_attributes: u32 = 56,
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::smb2::messages::tests::request;

        #[test]
        fn the_open_follows_the_flags() {
            let message = request(&Request { flags: 0, file: FileReference { persistent: 1, volatile: 2 } });
            assert_eq!(message[64..], [24, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        }
    }
}

/// FLUSH (MS-SMB2 2.2.17, 2.2.18).
pub mod flush {
    use crate::smb2::FileReference;

    message! {
        request Request: FLUSH, 24 {
            file: FileReference = 8,
        }
        target File(file)
    }

    message! {
        response Response: FLUSH, 4 {}
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::smb2::messages::tests::request;

        #[test]
        fn the_open_follows_the_reserved_fields() {
            let message = request(&Request { file: FileReference { persistent: 3, volatile: 4 } });
            assert_eq!(message[12..14], [7, 0]);
            assert_eq!(message[64..], [24, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0]);
        }
    }
}

/// READ (MS-SMB2 2.2.19, 2.2.20).
pub mod read {
    use crate::smb2::FileReference;

    message! {
        request Request: READ, 49 {
            /// Requested offset of the data in the response, relative to the header.
            padding: u8 = 2,
            length: u32 = 4,
            offset: u64 = 8,
            file: FileReference = 16,
        }
        target ReadWrite { file, offset, length }
        expects length
    }

    impl Request {
        /// Creates a request that places the data of the response directly after its fields.
        pub fn new(file: FileReference, offset: u64, length: u32) -> Request {
            Request { padding: Response::END as u8, length, offset, file }
        }
    }

    message! {
        response Response<'a>: READ, 17 {} with {
            data: &'a [u8] = [u8 @ 2, u32 @ 4],
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::smb2::Smb2Command;
        use crate::smb2::messages::tests::{request, response};

        #[test]
        fn a_request_has_49_bytes() {
            let read = Request::new(FileReference { persistent: 1, volatile: 2 }, 0x0102, 0x0304);
            let message = request(&read);
            assert_eq!(message[64..80], [49, 0, 0x50, 0, 4, 3, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0]);
            assert_eq!(message.len(), 64 + 49);
        }

        #[test]
        fn data_is_where_the_offset_says() {
            let mut message = response(Smb2Command::READ);
            message.extend([17, 0, 82, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 9]);
            message.extend(b"abc");
            assert_eq!(Response::parse(&message), Some(Response { data: b"abc" }));
            assert_eq!(Response::parse(&message[..84]), None, "fewer bytes than promised");
        }
    }
}

/// WRITE (MS-SMB2 2.2.21, 2.2.22).
pub mod write {
    use crate::smb2::FileReference;

    message! {
        request Request<'a>: WRITE, 49 {
            offset: u64 = 8,
            file: FileReference = 16,
        } with {
            data: &'a [u8] = [u16 @ 2, u32 @ 4],
        }
        target ReadWrite { file, offset, length }
        sends data
    }

    impl Request<'_> {
        /// Returns the number of bytes to write, of a possibly truncated message.
        pub fn length(message: &[u8]) -> Option<u32> {
            Self::data(message).map(|(_, length)| length as u32)
        }
    }

    message! {
        response Response: WRITE, 17 {
            count: u32 = 4,
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::smb2::Smb2Command;
        use crate::smb2::messages::tests::{request, response};

        #[test]
        fn data_begins_behind_48_bytes_of_fields() {
            let write = Request { file: FileReference { persistent: 1, volatile: 2 }, offset: 7, data: b"xyz" };
            let message = request(&write);
            assert_eq!(message[64..80], [49, 0, 112, 0, 3, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
            assert_eq!(&message[112..], b"xyz");
            assert_eq!(request(&Request { data: b"", ..write }).len(), 113);
        }

        #[test]
        fn the_response_counts_bytes() {
            let mut message = response(Smb2Command::WRITE);
            message.extend([17, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            assert_eq!(Response::parse(&message), Some(Response { count: 3 }));
        }
    }
}

/// LOCK (MS-SMB2 2.2.26, 2.2.27).
pub mod lock {
    use crate::RequestDetail;
    use crate::codec::{FixedSizeField, List};
    use crate::smb2::{FileReference, LockElement, Smb2Request};

    /// Flags of a [`LockElement`] (SMB2_LOCKFLAG_*).
    pub mod flags {
        pub const SHARED: u32 = 0x01;
        pub const EXCLUSIVE: u32 = 0x02;
        pub const UNLOCK: u32 = 0x04;
        pub const FAIL_IMMEDIATELY: u32 = 0x10;
    }

    impl LockElement {
        /// Returns true if the server may delay the response until the range is free.
        pub fn waits(&self) -> bool {
            self.flags & (flags::UNLOCK | flags::FAIL_IMMEDIATELY) == 0
        }
    }

    message! {
        /// StructureSize includes the first element.
        request Request<'a>: LOCK, 48 in 24 {
            file: FileReference = 8,
        } with {
            locks: List<'a, LockElement> = [u16 @ 2],
        }
        impl {
            const PARSED: usize = Self::END + LockElement::LENGTH;

            fn view(m: &[u8]) -> Option<Smb2Request> {
                Some(Smb2Request::Lock { file: Self::file(m)?, element: LockElement::at(m, Self::END) })
            }

            fn detail(m: &[u8]) -> Option<RequestDetail> {
                let (_, count) = Self::locks(m)?;
                let flags = LockElement::at(m, Self::END)?.flags;
                Some(RequestDetail::Lock { count: u16::try_from(count).ok()?, flags })
            }
        }
    }

    message! {
        response Response: LOCK, 4 {}
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::smb2::messages::tests::request;

        #[test]
        fn a_lock_has_24_bytes() {
            let element = LockElement { offset: 1, length: 2, flags: flags::EXCLUSIVE | flags::FAIL_IMMEDIATELY };
            let message = request(&Request {
                file: FileReference { persistent: 8, volatile: 9 },
                locks: List::Values(&[element]),
            });
            assert_eq!(message[64..72], [48, 0, 1, 0, 0, 0, 0, 0]);
            assert_eq!(message[88..], [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0x12, 0, 0, 0, 0, 0, 0, 0]);
            assert!(!element.waits());
        }
    }
}

/// OPLOCK_BREAK (MS-SMB2 2.2.23 to 2.2.25): the server revokes an oplock or lease, and the client acknowledges.
pub mod oplock_break {
    use crate::kept::RetainedRanges;
    use crate::smb2::messages::{Smb2Message, Smb2RequestMessage, Smb2ResponseMessage};
    use crate::smb2::view::HEAD;
    use crate::smb2::{FileReference, Smb2Command, Smb2Header, Smb2Request, Smb2Response};

    message! {
        /// Oplock break, acknowledgment and response (2.2.23.1, 2.2.24.1, 2.2.25.1).
        response Oplock: OPLOCK_BREAK, 24 {
            oplock_level: u8 = 2,
            file: FileReference = 8,
        }
    }

    message! {
        /// Lease break notification (2.2.23.2).
        response LeaseBreak: OPLOCK_BREAK, 44 {
            /// NewEpoch, from SMB 3.0.
            epoch: u16 = 2,
            flags: u32 = 4,
            key: [u8; 16] = 8,
            current_state: u32 = 24,
            new_state: u32 = 28,
        }
    }

    impl LeaseBreak {
        /// SMB2_NOTIFY_BREAK_LEASE_FLAG_ACK_REQUIRED: the server waits for an acknowledgment.
        pub const ACK_REQUIRED: u32 = 0x01;

        pub fn waits(&self) -> bool {
            self.flags & LeaseBreak::ACK_REQUIRED != 0
        }
    }

    message! {
        /// Lease break acknowledgment and response (2.2.24.2, 2.2.25.2).
        response Lease: OPLOCK_BREAK, 36 {
            key: [u8; 16] = 8,
            state: u32 = 24,
        }
    }

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Notification {
        Oplock(Oplock),
        Lease(LeaseBreak),
    }

    impl Notification {
        pub fn parse(message: &[u8]) -> Option<Notification> {
            let oplock = Oplock::parse(message).map(Notification::Oplock);
            oplock.or_else(|| LeaseBreak::parse(message).map(Notification::Lease))
        }
    }

    impl Smb2ResponseMessage for Notification {
        fn view(m: &[u8]) -> Option<Smb2Response> {
            Some(match Notification::parse(m)? {
                Notification::Oplock(Oplock { oplock_level, file }) => Smb2Response::OplockBreak { file, oplock_level },
                Notification::Lease(_) => Smb2Response::LeaseBreak,
            })
        }

        fn needed(_prefix: &[u8]) -> usize {
            LeaseBreak::END
        }

        fn retain(_message: &[u8], kept: &mut RetainedRanges) -> Option<()> {
            kept.field(Smb2Header::LENGTH..LeaseBreak::END);
            Some(())
        }
    }

    /// Acknowledgment from the client. The server's response has the same form.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Acknowledgement {
        Oplock(Oplock),
        Lease(Lease),
    }

    impl Acknowledgement {
        pub fn parse(message: &[u8]) -> Option<Acknowledgement> {
            let oplock = Oplock::parse(message).map(Acknowledgement::Oplock);
            oplock.or_else(|| Lease::parse(message).map(Acknowledgement::Lease))
        }
    }

    impl Smb2Message for Acknowledgement {
        const COMMAND: Smb2Command = Smb2Command::OPLOCK_BREAK;

        fn emit(&self, out: &mut Vec<u8>) {
            match self {
                Acknowledgement::Oplock(oplock) => oplock.emit(out),
                Acknowledgement::Lease(lease) => lease.emit(out),
            }
        }
    }

    impl Smb2RequestMessage for Acknowledgement {
        const PARSED: usize = HEAD;

        fn view(m: &[u8]) -> Option<Smb2Request> {
            Oplock::file(m).map(Smb2Request::File)
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::smb2::messages::tests::{request, response};

        #[test]
        fn a_broken_oplock_names_the_open_and_what_is_left() {
            let file = FileReference { persistent: 5, volatile: 6 };
            let acknowledgement = request(&Acknowledgement::Oplock(Oplock { oplock_level: 1, file }));
            // 2.2.23.1 and 2.2.24.1 have the same fields.
            assert_eq!(
                Notification::parse(&acknowledgement),
                Some(Notification::Oplock(Oplock { oplock_level: 1, file }))
            );
            assert_eq!(acknowledgement.len(), 64 + 24);
            assert_eq!(Notification::parse(&acknowledgement[..87]), None);
        }

        #[test]
        fn a_broken_lease_says_whether_it_waits() {
            let mut message = response(Smb2Command::OPLOCK_BREAK);
            message.extend([44, 0, 2, 0, 1, 0, 0, 0]);
            message.extend([3; 16]);
            message.extend([7, 0, 0, 0, 3, 0, 0, 0]);
            message.extend([0; 12]);
            let lease = LeaseBreak { epoch: 2, flags: 1, key: [3; 16], current_state: 7, new_state: 3 };
            assert_eq!(Notification::parse(&message), Some(Notification::Lease(lease)));
            let acknowledgement = request(&Acknowledgement::Lease(Lease { key: [3; 16], state: 3 }));
            assert_eq!(acknowledgement[64..72], [36, 0, 0, 0, 0, 0, 0, 0]);
            assert_eq!(acknowledgement[88..], [3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        }
    }
}
