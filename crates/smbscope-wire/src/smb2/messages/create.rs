//! CREATE (MS-SMB2 2.2.13, 2.2.14).

use super::Smb2RequestMessage;
use super::create_context::CreateContextList;
use super::message::message;
use crate::codec::WireText;
use crate::smb2::FileReference;

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

message! {
    request Request<'a>: CREATE, 57 {
        oplock_level: u8 = 3,
        impersonation_level: u32 = 4,
        desired_access: u32 = 24,
        /// See MS-FSCC 2.6.
        file_attributes: u32 = 28,
        share_access: u32 = 32,
        create_disposition: u32 = 36,
        create_options: u32 = 40,
    } with {
        /// Path relative to the share, with backslashes; empty for the root.
        name: WireText<'a> = [u16 @ 44, u16 @ 46],
        contexts: CreateContextList<'a> = [u32 @ 48, u32 @ 52, optional],
    }
}

impl Smb2RequestMessage for Request<'_> {}

message! {
    response Response<'a>: CREATE, 89 {
        oplock_level: u8 = 2,
        /// 0 superseded, 1 opened, 2 created, 3 overwritten.
        create_action: u32 = 4,
        /// Creation, last access, last write and change, as FILETIME.
        times: [u64; 4] = 8,
        allocation_size: u64 = 40,
        end_of_file: u64 = 48,
        /// See MS-FSCC 2.6.
        file_attributes: u32 = 56,
        file: FileReference = 64,
    } with {
        /// Granted contexts.
        contexts: CreateContextList<'a> = [u32 @ 80, u32 @ 84, optional],
    }
}

#[cfg(test)]
mod tests {
    use super::super::create_context::{CreateContext, Lease};
    use super::super::tests::{request, response};
    use super::*;
    use crate::smb2::Smb2Command;

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
