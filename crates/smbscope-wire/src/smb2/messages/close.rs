//! CLOSE (MS-SMB2 2.2.15, 2.2.16).

use super::Smb2RequestMessage;
use super::message::message;
use crate::smb2::FileReference;

/// SMB2_CLOSE_FLAG_POSTQUERY_ATTRIB: the response includes times and sizes.
pub const POSTQUERY_ATTRIB: u16 = 0x0001;

message! {
    request Request: CLOSE, 24 {
        flags: u16 = 2,
        file: FileReference = 8,
    }
}

impl Smb2RequestMessage for Request {}

message! {
    response Response: CLOSE, 60 {
        flags: u16 = 2,
        /// Creation, last access, last write and change, as FILETIME.
        times: [u64; 4] = 8,
        allocation_size: u64 = 40,
        end_of_file: u64 = 48,
        /// See MS-FSCC 2.6.
        file_attributes: u32 = 56,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::request;
    use super::*;

    #[test]
    fn the_open_follows_the_flags() {
        let message = request(&Request { flags: 0, file: FileReference { persistent: 1, volatile: 2 } });
        assert_eq!(message[64..], [24, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
    }
}
