//! Framing of the NetBIOS session service (RFC 1002 4.3) and of direct TCP (MS-SMB2 2.1): a type byte and a length.
//!
//! Direct TCP has a zero byte and a 24-bit length; NetBIOS has a type, seven zero bits and a 17-bit length. The two
//! are identical for session messages, so one parser serves both.

pub const HEADER_LENGTH: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameType {
    Message,
    SessionRequest,
    PositiveResponse,
    NegativeResponse,
    RetargetResponse,
    KeepAlive,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    pub frame_type: FrameType,
    pub length: u32,
}

impl FrameHeader {
    /// Parses a header. Returns `None` for an unknown type or a length that the type does not allow.
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
            // Two encoded names of 34 bytes each, longer with a scope.
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
