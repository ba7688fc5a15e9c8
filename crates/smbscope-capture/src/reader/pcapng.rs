//! The pcapng format (draft-ietf-opsawg-pcapng): sections with their own byte order; interfaces with their own link
//! type, snap length and clock.
//!
//! A reader's state between blocks ([`PcapngSection`]) is a few words that refer to a table of interfaces kept once per
//! file ([`Interfaces`]), so that a merge can hold thousands of positions in one file.

use super::process::{ProcessTable, options_of};
use super::{ByteOrder, MAX_CAPTURED_LENGTH, PacketRecord, ParseStep, SkipReason};
use std::sync::Arc;

/// Block type of the section header: a palindrome, so it reads the same in either byte order.
pub(super) const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
pub(super) const FILE_HEADER: usize = 28;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const INTERFACE_DESCRIPTION: u32 = 1;
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const SYSTEMD_JOURNAL: u32 = 9;
const CUSTOM: u32 = 0x0000_0bad;
const CUSTOM_NOT_COPIED: u32 = 0x4000_0bad;
pub(super) const ETHERNET: u16 = 1;
pub(super) const RAW_IP: u16 = 101;
const DARWIN_PROCESS: u32 = 0x8000_0001;
const OPTION_IF_TSRESOL: u16 = 9;
const OPTION_IF_TSOFFSET: u16 = 14;
const BLOCK_OVERHEAD: usize = 12;
/// Bytes of the end marker.
const OPTIONS_WITHOUT_PROCESS: usize = 4;
/// Bytes of a block; more is damage. This is the longest packet with room for options.
const MAX_BLOCK_LENGTH: u32 = MAX_CAPTURED_LENGTH + (1 << 20);
/// pcapng interfaces; packets of others: `unreadable_records`. Per file, or per section for streams, which forget
/// earlier sections.
const MAX_INTERFACES: usize = 1 << 20;
/// Link types named.
const MAX_LINK_TYPES: usize = 64;

/// Timestamp unit of an interface (if_tsresol).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tick {
    Decimal(u8),
    Binary(u8),
}

impl Tick {
    fn parse(if_tsresol: u8) -> Tick {
        let exponent = if_tsresol & 0x7f;
        if if_tsresol & 0x80 == 0 { Tick::Decimal(exponent) } else { Tick::Binary(exponent) }
    }

    /// Converts to nanoseconds, rounded down and saturating.
    #[inline]
    fn to_ns(self, ticks: u64) -> i64 {
        let ns = match self {
            Tick::Decimal(n @ 0..=9) => u128::from(ticks) * 10u128.pow(9 - u32::from(n)),
            Tick::Decimal(n) => 10u128.checked_pow(u32::from(n) - 9).map_or(0, |d| u128::from(ticks) / d),
            Tick::Binary(n) => (u128::from(ticks) * 1_000_000_000) >> n,
        };
        i64::try_from(ns).unwrap_or(i64::MAX)
    }

    fn resolution_ns(self) -> u64 {
        match self {
            Tick::Decimal(n @ 0..=8) => 10u64.pow(9 - u32::from(n)),
            Tick::Binary(n @ 0..=29) => 1_000_000_000u64.div_ceil(1 << n),
            _ => 1,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct InterfaceDescription {
    link_type: u16,
    snap_length: u32,
    tick: Tick,
    offset_ns: i64,
}

impl InterfaceDescription {
    fn parse(order: ByteOrder, body: &[u8]) -> Option<InterfaceDescription> {
        let link_type = order.u16(body, 0)?;
        let snap_length = order.u32(body, 4)?;
        let (mut tick, mut offset_ns) = (Tick::Decimal(6), 0);
        for option in options_of(order, body.get(8..)?) {
            match option {
                (OPTION_IF_TSRESOL, [resolution, ..]) => tick = Tick::parse(*resolution),
                (OPTION_IF_TSOFFSET, value) => {
                    offset_ns = order.i64(value, 0).unwrap_or(0).saturating_mul(1_000_000_000);
                }
                _ => {}
            }
        }
        Some(InterfaceDescription { link_type, snap_length, tick, offset_ns })
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Interfaces {
    list: Vec<InterfaceDescription>,
    /// A stream never returns to an earlier section, so it need not remember that section's interfaces.
    forget_past_sections: bool,
    pub(super) link_types: Vec<u32>,
    pub(super) snap_length: Option<u32>,
    pub(super) resolution_ns: u64,
    pub(super) simple_packets: bool,
    /// Ethernet interfaces deliver IP without an Ethernet header.
    pub(super) raw_ip_as_ethernet: bool,
    /// Offsets of the frames of a Network Monitor file, ascending. Empty if unknown.
    pub(super) frame_offsets: Arc<[u32]>,
    pub(super) processes: ProcessTable,
}

impl Interfaces {
    pub(super) fn for_stream(raw_ip_as_ethernet: bool) -> Interfaces {
        Interfaces { forget_past_sections: true, raw_ip_as_ethernet, ..Interfaces::default() }
    }

    /// Returns the number of interfaces; zero in formats that do not describe them.
    pub(super) fn count(&self) -> usize {
        self.list.len()
    }

    #[inline]
    pub(super) fn note_link_type(&mut self, link_type: u32) {
        if self.link_types.len() < MAX_LINK_TYPES && !self.link_types.contains(&link_type) {
            self.link_types.push(link_type);
        }
    }

    fn add(&mut self, mut interface: InterfaceDescription) {
        if self.raw_ip_as_ethernet && interface.link_type == ETHERNET {
            interface.link_type = RAW_IP;
        }
        self.list.push(interface);
        self.note_link_type(u32::from(interface.link_type));
        self.resolution_ns = self.resolution_ns.max(interface.tick.resolution_ns());
        if interface.snap_length != 0 {
            self.snap_length = self.snap_length.max(Some(interface.snap_length));
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PcapngSection {
    order: ByteOrder,
    /// Table index of the section's first interface, and number of the section's interfaces passed so far.
    first: u32,
    count: u32,
    /// Table index of the section's first process block, and number of blocks passed so far.
    first_process: u32,
    process_count: u32,
    last_time: i64,
}

impl PcapngSection {
    pub(super) fn is_magic(bytes: &[u8]) -> bool {
        bytes.starts_with(&SECTION_HEADER)
            && [ByteOrder::LITTLE, ByteOrder::BIG].iter().any(|o| o.u32(bytes, 8) == Some(BYTE_ORDER_MAGIC))
    }

    pub(super) fn start() -> PcapngSection {
        PcapngSection { order: ByteOrder::LITTLE, first: 0, count: 0, first_process: 0, process_count: 0, last_time: 0 }
    }

    #[inline]
    pub(super) fn step(&mut self, interfaces: &mut Interfaces, window: &[u8]) -> ParseStep {
        if window.starts_with(&SECTION_HEADER) {
            return self.section_header(interfaces, window);
        }
        let order = self.order;
        let (Some(kind), Some(total)) = (order.u32(window, 0), order.u32(window, 4)) else {
            return ParseStep::More(BLOCK_OVERHEAD);
        };
        if (total as usize) < BLOCK_OVERHEAD || total > MAX_BLOCK_LENGTH {
            return ParseStep::Stop(format!("block length {total} is impossible"));
        }
        // Some writers omit the padding from the length, but still align blocks.
        let length = (total as usize).next_multiple_of(4);
        if !matches!(kind, INTERFACE_DESCRIPTION | PACKET | SIMPLE_PACKET | ENHANCED_PACKET | DARWIN_PROCESS) {
            let numbered = matches!(kind, SYSTEMD_JOURNAL | CUSTOM | CUSTOM_NOT_COPIED);
            let what = if numbered { SkipReason::Numbered } else { SkipReason::Description };
            return ParseStep::Skip { length, what };
        }
        if window.len() < length {
            return ParseStep::More(length);
        }
        if ![length, total as usize].iter().any(|end| order.u32(window, end - 4) == Some(total)) {
            return ParseStep::Stop(format!("a block's two lengths disagree, the first is {total}"));
        }
        let body = &window[..length - 4];
        let record = match kind {
            INTERFACE_DESCRIPTION => {
                let known = self.interface_description(interfaces, body);
                let what = if known { SkipReason::Description } else { SkipReason::Unreadable };
                return ParseStep::Skip { length, what };
            }
            DARWIN_PROCESS => {
                let index = self.first_process as usize + self.process_count as usize;
                interfaces.processes.describe(index, order, body.get(8..).unwrap_or_default());
                self.process_count = self.process_count.saturating_add(1);
                return ParseStep::Skip { length, what: SkipReason::Description };
            }
            ENHANCED_PACKET => self.enhanced_packet(interfaces, body),
            SIMPLE_PACKET => self.simple_packet(interfaces, body),
            _ => self.obsolete_packet(interfaces, body),
        };
        match record {
            Some(record) => {
                self.last_time = record.time;
                ParseStep::Packet(record, length)
            }
            None => ParseStep::Skip { length, what: SkipReason::Unreadable },
        }
    }

    fn section_header(&mut self, interfaces: &mut Interfaces, window: &[u8]) -> ParseStep {
        let orders = [ByteOrder::LITTLE, ByteOrder::BIG];
        if window.len() < FILE_HEADER {
            return ParseStep::More(FILE_HEADER);
        }
        let Some(order) = orders.into_iter().find(|o| o.u32(window, 8) == Some(BYTE_ORDER_MAGIC)) else {
            return ParseStep::Stop("section header without byte-order magic".to_owned());
        };
        let (total, major) = (order.u32(window, 4).unwrap_or(0), order.u16(window, 12).unwrap_or(0));
        if (total as usize) < FILE_HEADER || total > MAX_BLOCK_LENGTH {
            return ParseStep::Stop(format!("section header length {total} is impossible"));
        }
        if major != 1 {
            return ParseStep::Stop(format!("pcapng version {major} is unknown"));
        }
        if interfaces.forget_past_sections {
            interfaces.list.clear();
            interfaces.processes.forget_described();
            (self.first, self.first_process) = (0, 0);
        } else {
            // The table lists the sections in file order, on the first pass and on later ones.
            self.first += self.count;
            self.first_process = self.first_process.saturating_add(self.process_count);
        }
        *self = PcapngSection { order, count: 0, process_count: 0, ..*self };
        ParseStep::Skip { length: (total as usize).next_multiple_of(4), what: SkipReason::Description }
    }

    fn interface_description(&mut self, interfaces: &mut Interfaces, body: &[u8]) -> bool {
        let index = self.first as usize + self.count as usize;
        if index >= interfaces.list.len() {
            let Some(interface) = body.get(8..).and_then(|body| InterfaceDescription::parse(self.order, body)) else {
                return false;
            };
            if index >= MAX_INTERFACES {
                return false;
            }
            interfaces.add(interface);
        }
        self.count += 1;
        true
    }

    fn interface<'t>(&self, interfaces: &'t Interfaces, id: u32) -> Option<&'t InterfaceDescription> {
        if id >= self.count {
            return None;
        }
        interfaces.list.get(self.first as usize + id as usize)
    }

    fn enhanced_packet(&self, interfaces: &mut Interfaces, block: &[u8]) -> Option<PacketRecord> {
        let interface = self.interface(interfaces, self.order.u32(block, 8)?)?;
        let record = self.timed_packet(interface, block)?;
        let options = block.get(28 + record.data_length.next_multiple_of(4)..).unwrap_or_default();
        // Most packets have no options, or only flags.
        if options.len() <= OPTIONS_WITHOUT_PROCESS {
            return Some(record);
        }
        let process = interfaces.processes.of_options(self.order, options, self.first_process);
        Some(PacketRecord { process, ..record })
    }

    fn obsolete_packet(&self, interfaces: &Interfaces, block: &[u8]) -> Option<PacketRecord> {
        let interface = self.interface(interfaces, u32::from(self.order.u16(block, 8)?))?;
        self.timed_packet(interface, block)
    }

    fn timed_packet(&self, interface: &InterfaceDescription, block: &[u8]) -> Option<PacketRecord> {
        let (high, low) = (self.order.u32(block, 12)?, self.order.u32(block, 16)?);
        let (captured, original) = (self.order.u32(block, 20)?, self.order.u32(block, 24)?);
        let data_length = captured as usize;
        block.get(28..28usize.checked_add(data_length)?)?;
        let ticks = u64::from(high) << 32 | u64::from(low);
        Some(PacketRecord {
            time: interface.tick.to_ns(ticks).saturating_add(interface.offset_ns),
            link_type: u32::from(interface.link_type),
            wire_length: original.max(captured),
            data_start: 28,
            data_length,
            process: 0,
        })
    }

    fn simple_packet(&self, interfaces: &mut Interfaces, block: &[u8]) -> Option<PacketRecord> {
        let interface = *self.interface(interfaces, 0)?;
        let original = self.order.u32(block, 8)?;
        let mut captured = original.min(u32::try_from(block.len().checked_sub(12)?).ok()?);
        if interface.snap_length != 0 {
            captured = captured.min(interface.snap_length);
        }
        interfaces.simple_packets = true;
        Some(PacketRecord {
            time: self.last_time,
            link_type: u32::from(interface.link_type),
            wire_length: original,
            data_start: 12,
            data_length: captured as usize,
            process: 0,
        })
    }
}
