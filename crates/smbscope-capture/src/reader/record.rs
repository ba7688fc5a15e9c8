//! Result of a format parser for the bytes it is given: one packet, bytes to skip, or a request for more bytes.
//!
//! Parsers are pure functions over a window of bytes, so that the same parser serves memory maps and pipes.

/// Bytes of a packet; more is damage. No capture tool writes longer ones.
pub(super) const MAX_CAPTURED_LENGTH: u32 = 256 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PacketRecord {
    /// Nanoseconds since the Unix epoch.
    pub(super) time: i64,
    pub(super) link_type: u32,
    /// Length on the wire, at least `data_length`.
    pub(super) wire_length: u32,
    pub(super) data_start: usize,
    pub(super) data_length: usize,
    /// Number of its process in the table of the file; zero if unknown.
    pub(super) process: u32,
}

/// A parser changes its state only for `Packet` and `Skip`, so a window may be offered again with more data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ParseStep {
    /// A packet in a record of this length, entirely within the window.
    Packet(PacketRecord, usize),
    Skip {
        length: usize,
        what: SkipReason,
    },
    More(usize),
    Stop(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SkipReason {
    Description,
    /// Not a packet, but Wireshark shows and numbers it as one.
    Numbered,
    /// Should have been a packet or an interface description.
    Unreadable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ByteOrder {
    pub(super) big_endian: bool,
}

impl ByteOrder {
    pub(super) const BIG: ByteOrder = ByteOrder { big_endian: true };
    pub(super) const LITTLE: ByteOrder = ByteOrder { big_endian: false };

    #[inline]
    pub(super) fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let field: [u8; 2] = bytes.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(if self.big_endian { u16::from_be_bytes(field) } else { u16::from_le_bytes(field) })
    }

    #[inline]
    pub(super) fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let field: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if self.big_endian { u32::from_be_bytes(field) } else { u32::from_le_bytes(field) })
    }

    #[inline]
    pub(super) fn i64(self, bytes: &[u8], at: usize) -> Option<i64> {
        let field: [u8; 8] = bytes.get(at..at.checked_add(8)?)?.try_into().ok()?;
        Some(if self.big_endian { i64::from_be_bytes(field) } else { i64::from_le_bytes(field) })
    }
}

pub(super) fn absurd_length(length: u32) -> ParseStep {
    ParseStep::Stop(format!("captured length {length} is beyond {MAX_CAPTURED_LENGTH} bytes"))
}
