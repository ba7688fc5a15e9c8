//! SMB_COM_READ_RAW (MS-CIFS 2.2.4.22) with 10 words. The response is the bare data without a header, and empty on any
//! error.

use super::message::message;

message! {
    ReadRaw: READ_RAW, 10 {
        fid: u16 = 0,
        offset_low: u32 = 2,
        max_count: u16 = 6,
        offset_high: u32 = 16,
    }
}

impl ReadRaw {
    pub fn new(fid: u16, offset: u64, max_count: u16) -> ReadRaw {
        ReadRaw { fid, offset_low: offset as u32, max_count, offset_high: (offset >> 32) as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::emitted;
    use super::*;

    #[test]
    fn the_offset_is_split_into_halves() {
        let read = ReadRaw::new(0x1234, 0x2_0000_1000, 0xfe00);
        let mut expected = vec![10, 0x34, 0x12, 0, 0x10, 0, 0, 0, 0xfe, 0, 0, 0, 0, 0, 0, 0, 0];
        expected.extend([2, 0, 0, 0, 0, 0]);
        assert_eq!(emitted(&read), expected);
    }
}
