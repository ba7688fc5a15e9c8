//! What a format parser says about the bytes in front of it: one record, something to pass over, or more bytes wanted.
//!
//! Parsers are pure functions over a window of bytes, so that one parser serves memory maps and pipes.

/// Records with more captured bytes than this are damage: no capture tool writes them.
pub(super) const MAX_CAPTURED_LENGTH: u32 = 256 << 20;

/// One packet, its bytes given as a range of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PacketRecord {
    /// Nanoseconds since the Unix epoch.
    pub(super) time: i64,
    /// LINKTYPE_* value.
    pub(super) link_type: u32,
    /// Length on the wire, never less than what was captured.
    pub(super) wire_length: u32,
    /// Where in the window the captured bytes start.
    pub(super) data_start: usize,
    /// How many were captured.
    pub(super) data_length: usize,
}

/// The outcome of looking at a window. A parser changes its state only with `Packet` and `Skip`, so a window that was
/// too small may be offered again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ParseStep {
    /// A packet in a record of this many bytes, all of them in the window.
    Packet(PacketRecord, usize),
    /// This many bytes hold no packet; they may reach beyond the window.
    Skip { length: usize, what: SkipReason },
    /// The window has to hold this many bytes.
    More(usize),
    /// The file cannot be read beyond this point.
    Stop(String),
}

/// Why bytes are skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SkipReason {
    /// They describe the capture.
    Description,
    /// No packet, but Wireshark shows it as one and counts it.
    Numbered,
    /// It should have been a packet or describe one.
    Unreadable,
}

/// Reads fixed-width fields in the byte order of the file. Every access is checked.
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

/// The step for a captured length that no tool writes.
pub(super) fn absurd_length(length: u32) -> ParseStep {
    ParseStep::Stop(format!("captured length {length} is beyond {MAX_CAPTURED_LENGTH} bytes"))
}
