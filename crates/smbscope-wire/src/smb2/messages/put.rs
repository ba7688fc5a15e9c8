//! Little-endian fields appended to a buffer.

use crate::smb2::FileReference;

/// Fields in the order of the specification's tables.
pub(super) trait Put {
    fn put_u8(&mut self, value: u8);
    fn put_u16(&mut self, value: u16);
    fn put_u32(&mut self, value: u32);
    fn put_u64(&mut self, value: u64);
    fn put_zeros(&mut self, count: usize);
    fn put_file(&mut self, file: FileReference);
    /// UTF-16LE text without an end mark; how many bytes it became.
    fn put_utf16(&mut self, text: &str) -> usize;
    /// Zeros until a multiple of eight bytes from `start` on.
    fn pad_to_8(&mut self, start: usize);
    /// Writes over two bytes that are there.
    fn set_u16(&mut self, at: usize, value: usize);
    /// Writes over four bytes that are there.
    fn set_u32(&mut self, at: usize, value: usize);
}

impl Put for Vec<u8> {
    fn put_u8(&mut self, value: u8) {
        self.push(value);
    }

    fn put_u16(&mut self, value: u16) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_zeros(&mut self, count: usize) {
        self.resize(self.len() + count, 0);
    }

    fn put_file(&mut self, file: FileReference) {
        self.put_u64(file.persistent);
        self.put_u64(file.volatile);
    }

    fn put_utf16(&mut self, text: &str) -> usize {
        let start = self.len();
        self.reserve(2 * text.len());
        for unit in text.encode_utf16() {
            self.put_u16(unit);
        }
        self.len() - start
    }

    fn pad_to_8(&mut self, start: usize) {
        let length = self.len() - start;
        self.put_zeros(length.next_multiple_of(8) - length);
    }

    fn set_u16(&mut self, at: usize, value: usize) {
        // What does not fit is refused by the server, as it must be: nobody has a name of 64 KiB.
        let value = u16::try_from(value).unwrap_or(u16::MAX);
        self[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }

    fn set_u32(&mut self, at: usize, value: usize) {
        let value = u32::try_from(value).unwrap_or(u32::MAX);
        self[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
}
