//! Formats of packet records, with one file header or none: pcap (draft-ietf-opsawg-pcap), Solaris snoop (RFC 1761) and
//! Endace ERF ("ERF Types Reference Guide").
//!
//! pcap has microseconds or nanoseconds, either byte order, and Kuznetzov's "modified" variant with 24-byte record
//! headers. Three systems wrote longer record headers under the same magic numbers: Nokia firewalls (20 bytes), Red Hat
//! 6.1 (24 bytes) and, under the modified variant's, SuSE 6.3 (28 bytes). The length can be inferred: with a wrong one,
//! the second record makes no sense. snoop is always big-endian with microseconds. ERF has no
//! file header, so that only the fields of its records reveal it.

use super::pcapng::Interfaces;
use super::{ByteOrder, MAX_CAPTURED_LENGTH, PacketRecord, ParseStep, SkipReason, absurd_length};
use crate::decode::ErfHeader;

pub(super) const FILE_HEADER: usize = 24;
/// Of files whose record headers have nanoseconds.
pub(crate) const NANOSECOND_MAGIC: u32 = 0xa1b2_3c4d;
const STANDARD: u8 = 16;
const NOKIA: u8 = 20;
const MODIFIED: u8 = 24;
const SUSE: u8 = 28;
/// Plausibility checks that settle the header length: records examined, longest packet, largest time distance.
const SETTLED_BY: usize = 4;
/// Bytes of a packet that is plausible for a pcap variant.
const MAX_SETTLED_LENGTH: u32 = 1 << 20;
const YEAR_SECONDS: u32 = 366 * 86_400;
/// Bytes after the file header that usually contain enough of them.
pub(super) const SETTLE_LENGTH: usize = 128 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pcap {
    order: ByteOrder,
    /// Nanoseconds per unit of the record header's fraction field: 1 or 1,000.
    fraction_ns: u16,
    record_header: u8,
    modified: bool,
    /// Files before version 2.4 may have the two lengths swapped (libpcap, sf-pcap.c).
    lengths_may_be_swapped: bool,
    link_type: u16,
    snap_length: u32,
}

impl Pcap {
    pub(super) fn is_magic(bytes: &[u8]) -> bool {
        Pcap::magic(bytes).is_some()
    }

    fn magic(bytes: &[u8]) -> Option<(ByteOrder, u16, u8)> {
        let variant = |order: ByteOrder| match order.u32(bytes, 0)? {
            0xa1b2_c3d4 => Some((order, 1_000, STANDARD)),
            NANOSECOND_MAGIC => Some((order, 1, STANDARD)),
            0xa1b2_cd34 => Some((order, 1_000, MODIFIED)),
            _ => None,
        };
        variant(ByteOrder::LITTLE).or_else(|| variant(ByteOrder::BIG))
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Pcap> {
        let (order, fraction_ns, record_header) = Pcap::magic(bytes)?;
        let (major, minor) = (order.u16(bytes, 4)?, order.u16(bytes, 6)?);
        // The upper half of the field holds the FCS length; the link type has 16 bits.
        let link_type = (order.u32(bytes, 20)? & 0xffff) as u16;
        Some(Pcap {
            order,
            fraction_ns,
            record_header,
            modified: record_header != STANDARD,
            lengths_may_be_swapped: major < 2 || (major == 2 && minor <= 3) || (major == 543 && minor == 0),
            link_type,
            snap_length: order.u32(bytes, 16)?,
        })
    }

    pub(super) fn name(&self) -> &'static str {
        match (self.record_header, self.modified, self.fraction_ns) {
            (STANDARD, _, 1) => "pcap (ns)",
            (STANDARD, ..) => "pcap",
            (NOKIA, ..) => "pcap (Nokia)",
            (MODIFIED, false, _) => "pcap (Red Hat 6.1)",
            (SUSE, ..) => "pcap (SuSE 6.3)",
            _ => "modified pcap",
        }
    }

    /// Determines the length of record headers from the records at the start of `bytes`, if there are enough.
    pub(super) fn settle(&mut self, bytes: &[u8]) {
        if self.fraction_ns == 1 {
            return;
        }
        let candidates = if self.modified { [MODIFIED, SUSE].as_slice() } else { &[STANDARD, NOKIA, MODIFIED] };
        if let Some(fits) = candidates.iter().find(|length| self.fits(**length, bytes)) {
            self.record_header = *fits;
        }
    }

    fn fits(&self, record_header: u8, bytes: &[u8]) -> bool {
        let mut position = 0;
        let mut first_second = None;
        for seen in 0..SETTLED_BY {
            let Some(header) = bytes.get(position..position + 16) else {
                // The end of the file right after a record is as good as another record.
                return seen > 1 || seen == 1 && position == bytes.len();
            };
            let field = |at: usize| self.order.u32(header, at).unwrap_or(u32::MAX);
            let (seconds, fraction, captured, original) = (field(0), field(4), field(8), field(12));
            let (captured, original) = match self.lengths_may_be_swapped && captured > original {
                true => (original, captured),
                false => (captured, original),
            };
            let near = first_second.get_or_insert(seconds).abs_diff(seconds) < YEAR_SECONDS;
            if !near || fraction >= 1_000_000 || captured > original || original > MAX_SETTLED_LENGTH {
                return false;
            }
            position += usize::from(record_header) + captured as usize;
        }
        true
    }

    pub(super) fn resolution_ns(&self) -> u64 {
        u64::from(self.fraction_ns)
    }

    pub(super) fn link_type(&self) -> u32 {
        u32::from(self.link_type)
    }

    pub(super) fn set_link_type(&mut self, link_type: u16) {
        self.link_type = link_type;
    }

    /// Returns the snap length; 0 if the writer did not state it.
    pub(super) fn snap_length(&self) -> u32 {
        self.snap_length
    }

    #[inline]
    pub(super) fn step(&self, window: &[u8]) -> ParseStep {
        let header = usize::from(self.record_header);
        let fields = (self.order.u32(window, 0), self.order.u32(window, 4));
        let lengths = (self.order.u32(window, 8), self.order.u32(window, 12));
        let ((Some(seconds), Some(fraction)), (Some(mut captured), Some(mut original))) = (fields, lengths) else {
            return ParseStep::More(header);
        };
        if self.lengths_may_be_swapped && captured > original {
            (captured, original) = (original, captured);
        }
        if captured > MAX_CAPTURED_LENGTH {
            return absurd_length(captured);
        }
        let length = header + captured as usize;
        if window.len() < length {
            return ParseStep::More(length);
        }
        let time = i64::from(seconds) * 1_000_000_000 + i64::from(fraction) * i64::from(self.fraction_ns);
        let record = PacketRecord {
            time,
            link_type: u32::from(self.link_type),
            wire_length: original.max(captured),
            data_start: header,
            data_length: captured as usize,
            process: 0,
        };
        ParseStep::Packet(record, length)
    }
}

pub(super) const SNOOP_FILE_HEADER: usize = 16;
const SNOOP_RECORD_HEADER: usize = 24;
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
            return ParseStep::More(SNOOP_RECORD_HEADER);
        };
        let (Some(seconds), Some(microseconds)) = (field(16), field(20)) else {
            return ParseStep::More(SNOOP_RECORD_HEADER);
        };
        if captured > MAX_CAPTURED_LENGTH {
            return absurd_length(captured);
        }
        let (total, data_length) = (total as usize, captured as usize);
        // The record length includes the header and padding; no writer adds more than a few bytes.
        if total < SNOOP_RECORD_HEADER + data_length || total > SNOOP_RECORD_HEADER + data_length + 4096 {
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
            data_start: SNOOP_RECORD_HEADER,
            data_length,
            process: 0,
        };
        ParseStep::Packet(record, total)
    }
}

/// Type of records without content.
const PADDING_RECORD: u8 = 48;
const METADATA_RECORD: u8 = 27;
/// Bytes of a packet that is plausible at the start of a file.
const MAX_PLAUSIBLE_LENGTH: u16 = 10_000;
/// Padding and checksums of a record besides the packet.
const MAX_EXCESS: usize = 64;
/// Seconds from 1970 to 1995, before which there were no such cards.
const EARLIEST: u32 = 788_918_400;
const LATEST: u32 = 0xf000_0000;

/// Returns true if the bytes look like records: all that are there, at least one.
pub(super) fn is_erf(bytes: &[u8]) -> bool {
    let mut position = 0;
    let mut first = None;
    while let Some(header) = bytes.get(position..).filter(|rest| rest.len() >= ErfHeader::LENGTH) {
        let seconds = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
        let near = first.get_or_insert(seconds).abs_diff(seconds) < YEAR_SECONDS;
        let Some(record) = ErfHeader::parse(header) else { break };
        let held = usize::from(record.record_length).checked_sub(record.length);
        let fits = held.is_some_and(|held| held <= usize::from(record.wire_length) + MAX_EXCESS);
        let is_packet = record.link_type.is_some() && (1..=MAX_PLAUSIBLE_LENGTH).contains(&record.wire_length);
        let is_other = position > 0 && matches!(header[8] & 0x7f, PADDING_RECORD | METADATA_RECORD);
        if !(near && fits && (is_packet || is_other) && (EARLIEST..LATEST).contains(&seconds)) {
            return false;
        }
        position += usize::from(record.record_length);
    }
    position > 0
}

pub(super) fn erf_step(interfaces: &mut Interfaces, window: &[u8]) -> ParseStep {
    let Some(header) = window.get(..ErfHeader::LENGTH) else { return ParseStep::More(ErfHeader::LENGTH) };
    let length = usize::from(u16::from_be_bytes([header[10], header[11]]));
    if length < ErfHeader::LENGTH {
        return ParseStep::Stop(format!("record length {length} is impossible"));
    }
    let Some(record) = window.get(..length) else { return ParseStep::More(length) };
    let Some(header) = ErfHeader::parse(record) else {
        return ParseStep::Skip { length, what: SkipReason::Unreadable };
    };
    let Some(link_type) = header.link_type.filter(|_| header.length <= length) else {
        let what = if record[8] & 0x7f == PADDING_RECORD { SkipReason::Description } else { SkipReason::Numbered };
        return ParseStep::Skip { length, what };
    };
    interfaces.note_link_type(link_type);
    let data_length = (length - header.length).min(header.wire_length.into());
    let packet = PacketRecord {
        time: erf_time(record),
        link_type,
        wire_length: header.wire_length.into(),
        data_start: header.length,
        data_length,
        process: 0,
    };
    ParseStep::Packet(packet, length)
}

/// Converts seconds since 1970 with 32 bits of fraction, rounded.
fn erf_time(record: &[u8]) -> i64 {
    let [fraction, seconds] =
        [0, 4].map(|at| u64::from(u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])));
    let nanoseconds = (fraction * 1_000_000_000 + (1 << 31)) >> 32;
    (seconds * 1_000_000_000 + nanoseconds) as i64
}
