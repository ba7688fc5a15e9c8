//! The pcap format (draft-ietf-opsawg-pcap): microseconds or nanoseconds, either byte order, and Kuznetzov's "modified"
//! variant, whose record headers are 24 bytes long.

use super::record::{ByteOrder, MAX_CAPTURED_LENGTH, Record, Step, absurd_length};

/// Length of the file header.
pub(super) const FILE_HEADER: usize = 24;

/// What the file header says, as far as records depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pcap {
    order: ByteOrder,
    /// Nanoseconds per unit of the record header's fraction field: 1 or 1,000.
    fraction_ns: u16,
    record_header: u8,
    /// Files before version 2.4 may hold the two lengths in the other order (libpcap, sf-pcap.c).
    lengths_may_be_swapped: bool,
    link_type: u16,
    snap_length: u32,
}

impl Pcap {
    /// Whether these are the first bytes of a pcap file.
    pub(super) fn is_magic(bytes: &[u8]) -> bool {
        Pcap::magic(bytes).is_some()
    }

    fn magic(bytes: &[u8]) -> Option<(ByteOrder, u16, u8)> {
        let variant = |order: ByteOrder| match order.u32(bytes, 0)? {
            0xa1b2_c3d4 => Some((order, 1_000, 16)),
            0xa1b2_3c4d => Some((order, 1, 16)),
            0xa1b2_cd34 => Some((order, 1_000, 24)),
            _ => None,
        };
        variant(ByteOrder::LITTLE).or_else(|| variant(ByteOrder::BIG))
    }

    /// Parses the file header.
    pub(super) fn parse(bytes: &[u8]) -> Option<Pcap> {
        let (order, fraction_ns, record_header) = Pcap::magic(bytes)?;
        let (major, minor) = (order.u16(bytes, 4)?, order.u16(bytes, 6)?);
        // The upper half of the field holds the FCS length; the link type is 16 bits wide.
        let link_type = (order.u32(bytes, 20)? & 0xffff) as u16;
        Some(Pcap {
            order,
            fraction_ns,
            record_header,
            lengths_may_be_swapped: major < 2 || (major == 2 && minor <= 3) || (major == 543 && minor == 0),
            link_type,
            snap_length: order.u32(bytes, 16)?,
        })
    }

    /// The name of the variant.
    pub(super) fn name(&self) -> &'static str {
        match (self.record_header, self.fraction_ns) {
            (16, 1) => "pcap (ns)",
            (16, _) => "pcap",
            _ => "modified pcap",
        }
    }

    /// Nanoseconds between two ticks of the timestamps.
    pub(super) fn resolution_ns(&self) -> u64 {
        u64::from(self.fraction_ns)
    }

    /// The link type of every packet.
    pub(super) fn link_type(&self) -> u32 {
        u32::from(self.link_type)
    }

    /// The snap length of the capture; 0 where the writer did not say.
    pub(super) fn snap_length(&self) -> u32 {
        self.snap_length
    }

    /// Length of the record, unchecked.
    #[inline]
    pub(super) fn record_length(&self, window: &[u8]) -> Option<usize> {
        Some(usize::from(self.record_header) + self.order.u32(window, 8)? as usize)
    }

    /// Looks at the record at the start of the window.
    #[inline]
    pub(super) fn step(&self, window: &[u8]) -> Step {
        let header = usize::from(self.record_header);
        let fields = (self.order.u32(window, 0), self.order.u32(window, 4));
        let lengths = (self.order.u32(window, 8), self.order.u32(window, 12));
        let ((Some(seconds), Some(fraction)), (Some(mut captured), Some(mut original))) = (fields, lengths) else {
            return Step::More(header);
        };
        if self.lengths_may_be_swapped && captured > original {
            (captured, original) = (original, captured);
        }
        if captured > MAX_CAPTURED_LENGTH {
            return absurd_length(captured);
        }
        let length = header + captured as usize;
        if window.len() < length {
            return Step::More(length);
        }
        let time = i64::from(seconds) * 1_000_000_000 + i64::from(fraction) * i64::from(self.fraction_ns);
        let record = Record {
            time,
            link_type: u32::from(self.link_type),
            wire_length: original.max(captured),
            data_start: header,
            data_length: captured as usize,
        };
        Step::Packet(record, length)
    }
}
