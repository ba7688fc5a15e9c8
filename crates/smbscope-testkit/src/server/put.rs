//! Little-endian fields at the end of a buffer, and over bytes that are there already.

/// What answers are written with.
pub(super) trait Put {
    fn put_u8(&mut self, value: u8);
    fn put_u16(&mut self, value: u16);
    fn put_u32(&mut self, value: u32);
    fn put_u64(&mut self, value: u64);
    fn put_bytes(&mut self, bytes: &[u8]);
    fn put_zeros(&mut self, count: usize);
    fn put_utf16(&mut self, text: &str);
    /// Zeros until the length, counted from `start`, divides by `unit`.
    fn pad(&mut self, start: usize, unit: usize);
    fn set_u16(&mut self, at: usize, value: u16);
    fn set_u32(&mut self, at: usize, value: u32);
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

    fn put_bytes(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn put_zeros(&mut self, count: usize) {
        self.resize(self.len() + count, 0);
    }

    fn put_utf16(&mut self, text: &str) {
        text.encode_utf16().for_each(|unit| self.put_u16(unit));
    }

    fn pad(&mut self, start: usize, unit: usize) {
        let length = (self.len() - start).next_multiple_of(unit);
        self.resize(start + length, 0);
    }

    fn set_u16(&mut self, at: usize, value: u16) {
        if let Some(field) = self.get_mut(at..at + 2) {
            field.copy_from_slice(&value.to_le_bytes());
        }
    }

    fn set_u32(&mut self, at: usize, value: u32) {
        if let Some(field) = self.get_mut(at..at + 4) {
            field.copy_from_slice(&value.to_le_bytes());
        }
    }
}
