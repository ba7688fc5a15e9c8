//! NetBIOS session service (RFC 1002 4.3) and direct TCP (MS-SMB2 2.1) framing: a type byte and a length.
//!
//! Direct TCP has a zero byte and 24 bits of length; NetBIOS has a type, seven zero bits and 17 bits of length.
//! The two agree for a session message, so one reading serves both.

/// Length of the header that precedes every frame.
pub const HEADER_LENGTH: usize = 4;

/// What a frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameType {
    /// A session message: an SMB message, or raw data.
    Message,
    /// Session request, with called and calling name.
    SessionRequest,
    /// Positive session response.
    PositiveResponse,
    /// Negative session response.
    NegativeResponse,
    /// Retarget session response.
    RetargetResponse,
    /// Keep-alive.
    KeepAlive,
}

/// The header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// What follows.
    pub frame_type: FrameType,
    /// Bytes that follow.
    pub length: u32,
}

impl FrameHeader {
    /// Reads a header; `None` when the type does not exist or the length can't belong to it.
    pub fn parse(bytes: [u8; HEADER_LENGTH]) -> Option<FrameHeader> {
        let length = u32::from_be_bytes([0, bytes[1], bytes[2], bytes[3]]);
        let frame_type = match bytes[0] {
            0x00 => FrameType::Message,
            0x81 => FrameType::SessionRequest,
            0x82 => FrameType::PositiveResponse,
            0x83 => FrameType::NegativeResponse,
            0x84 => FrameType::RetargetResponse,
            0x85 => FrameType::KeepAlive,
            _ => return None,
        };
        let expected = match frame_type {
            FrameType::Message => true,
            // Two encoded names of 34 bytes, longer with a scope.
            FrameType::SessionRequest => (68..=512).contains(&length),
            FrameType::PositiveResponse | FrameType::KeepAlive => length == 0,
            FrameType::NegativeResponse => length == 1,
            FrameType::RetargetResponse => length == 6,
        };
        expected.then_some(FrameHeader { frame_type, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn direct_tcp_length_has_24_bits() {
        let header = FrameHeader::parse([0, 0x12, 0x34, 0x56]).unwrap();
        assert_eq!(header, FrameHeader { frame_type: FrameType::Message, length: 0x12_3456 });
    }

    #[test]
    fn netbios_length_extension_is_the_17th_bit() {
        // RFC 1002 4.3.1: bit 0 of the flags extends the length.
        assert_eq!(FrameHeader::parse([0, 1, 0, 4]).unwrap().length, 0x1_0004);
    }

    #[test]
    fn impossible_headers_are_refused() {
        assert_eq!(FrameHeader::parse([0x85, 0, 0, 1]), None);
        assert_eq!(FrameHeader::parse([0x47, 0x45, 0x54, 0x20]), None);
    }
}
