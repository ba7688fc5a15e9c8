//! The Solaris snoop format (RFC 1761): big-endian, microseconds.

use super::record::{ByteOrder, MAX_CAPTURED_LENGTH, PacketRecord, ParseStep, absurd_length};

pub(super) const FILE_HEADER: usize = 16;
const RECORD_HEADER: usize = 24;
/// Marks link types without a LINKTYPE_* value; the lower bits are snoop's own number.
const FOREIGN_LINK_TYPE: u32 = 0x8000_0000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Snoop {
    link_type: u32,
}

impl Snoop {
    pub(super) fn is_magic(bytes: &[u8]) -> bool {
        bytes.starts_with(b"snoop\0\0\0")
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Snoop> {
        if !Snoop::is_magic(bytes) {
            return None;
        }
        let link_type = match ByteOrder::BIG.u32(bytes, 12)? {
            0 | 4 => 1, // IEEE 802.3, Ethernet
            2 => 6,     // IEEE 802.5
            8 => 10,    // FDDI
            other => FOREIGN_LINK_TYPE | other,
        };
        Some(Snoop { link_type })
    }

    pub(super) fn link_type(&self) -> u32 {
        self.link_type
    }

    pub(super) fn step(&self, window: &[u8]) -> ParseStep {
        let field = |at| ByteOrder::BIG.u32(window, at);
        let (Some(original), Some(captured), Some(total)) = (field(0), field(4), field(8)) else {
            return ParseStep::More(RECORD_HEADER);
        };
        let (Some(seconds), Some(microseconds)) = (field(16), field(20)) else {
            return ParseStep::More(RECORD_HEADER);
        };
        if captured > MAX_CAPTURED_LENGTH {
            return absurd_length(captured);
        }
        let (total, data_length) = (total as usize, captured as usize);
        // The record length includes the header and padding, of which no writer adds more than a few bytes.
        if total < RECORD_HEADER + data_length || total > RECORD_HEADER + data_length + 4096 {
            return ParseStep::Stop(format!("record length {total} does not fit captured length {captured}"));
        }
        if window.len() < total {
            return ParseStep::More(total);
        }
        let time = i64::from(seconds) * 1_000_000_000 + i64::from(microseconds) * 1_000;
        let record = PacketRecord {
            time,
            link_type: self.link_type,
            wire_length: original.max(captured),
            data_start: RECORD_HEADER,
            data_length,
        };
        ParseStep::Packet(record, total)
    }
}
