//! The pcapng format (draft-ietf-opsawg-pcapng): sections with their own byte order; interfaces with their own link
//! type, snap length and clock; and processes that a capture file names for its packets: comments of Windows traces,
//! blocks and options of macOS, the table of Network Monitor.
//!
//! A reader's state between blocks ([`PcapngSection`]) is a few words that refer to a table of interfaces kept once per
//! file ([`Interfaces`]), so that a merge can hold thousands of positions in one file.

use super::{ByteOrder, MAX_CAPTURED_LENGTH, PacketRecord, ParseStep, SkipReason};
use crate::segment::CapturedProcess;
use std::collections::HashMap;
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

/// Processes of a file; packets of others have none.
const MAX_PROCESSES: usize = 1 << 14;
/// Process blocks of a pcapng file, and entries of a table; later ones are ignored.
const MAX_DESCRIBED: usize = 1 << 16;
/// Bytes of a comment or a name; the rest is ignored.
const MAX_TEXT: usize = 512;
const OPTION_COMMENT: u16 = 1;
const OPTION_PROCESS_NAME: u16 = 2;
/// Numbers of process blocks: of the owner of the socket, and of the process on whose behalf it acts.
const OPTION_OWNER: u16 = 0x8001;
const OPTION_EFFECTIVE: u16 = 0x8003;

/// Processes of a file, numbered from 1.
#[derive(Debug, Clone, Default)]
pub(super) struct ProcessTable {
    list: Vec<CapturedProcess>,
    numbers: HashMap<CapturedProcess, u32>,
    /// Numbers of the processes described in blocks or in a table, in file order.
    described: Vec<u32>,
}

impl ProcessTable {
    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&CapturedProcess> {
        self.list.get((number as usize).checked_sub(1)?)
    }

    fn number(&mut self, process: CapturedProcess) -> u32 {
        if let Some(number) = self.numbers.get(&process) {
            return *number;
        }
        if self.list.len() >= MAX_PROCESSES {
            return 0;
        }
        let number = self.list.len() as u32 + 1;
        self.list.push(process.clone());
        self.numbers.insert(process, number);
        number
    }

    fn described(&self, index: u32) -> u32 {
        self.described.get(index as usize).copied().unwrap_or(0)
    }

    fn forget_described(&mut self) {
        self.described.clear();
    }

    /// Adds the process of a block of macOS: its id, then options. `index` is its place among all such blocks; it may
    /// have been read before.
    fn describe(&mut self, index: usize, order: ByteOrder, body: &[u8]) {
        if index < self.described.len() || index >= MAX_DESCRIBED {
            return;
        }
        let id = order.u32(body, 0).filter(|id| *id != u32::MAX);
        let options = body.get(4..).unwrap_or_default();
        let mut name = options_of(order, options).find(|(code, _)| *code == OPTION_PROCESS_NAME);
        let name = name.take().map_or_else(Box::default, |(_, name)| name_text(name));
        let number = self.number(CapturedProcess { id, name });
        self.described.resize(index, 0);
        self.described.push(number);
    }

    /// Returns the number of the process that the options of a packet name. `first` is the place of the section's first
    /// process block.
    fn of_options(&mut self, order: ByteOrder, options: &[u8], first: u32) -> u32 {
        let (mut owner, mut effective, mut commented) = (0, 0, None);
        for (code, value) in options_of(order, options) {
            let block = || order.u32(value, 0).and_then(|index| first.checked_add(index));
            match code {
                OPTION_OWNER => owner = block().map_or(0, |index| self.described(index)),
                OPTION_EFFECTIVE => effective = block().map_or(0, |index| self.described(index)),
                OPTION_COMMENT if commented.is_none() => commented = process_of_comment(value),
                _ => {}
            }
        }
        match (effective, owner, commented) {
            (0, 0, Some(process)) => self.number(process),
            (0, owner, _) => owner,
            (effective, ..) => effective,
        }
    }

    /// Reads the table of Network Monitor: a version, then for each process its path in UTF-16, an icon, its id, ports,
    /// and addresses.
    pub(super) fn read_netmon(&mut self, table: &[u8], count: u32) {
        const BEHIND_ICON: usize = 4 + 8 + 4 + 32;
        let order = ByteOrder::LITTLE;
        let mut at = 2usize;
        for _ in 0..count.min(MAX_DESCRIBED as u32) {
            let Some(length) = order.u32(table, at).map(|length| length as usize) else { return };
            let Some(path) = at.checked_add(4).and_then(|at| table.get(at..at.checked_add(length)?)) else { return };
            at += 4 + length;
            let Some(icon) = order.u32(table, at) else { return };
            let Some(behind) = at.checked_add(4 + icon as usize) else { return };
            let Some(id) = order.u32(table, behind) else { return };
            at = behind + BEHIND_ICON;
            let units: Vec<u16> = path.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]])).collect();
            let path = String::from_utf16_lossy(&units);
            let name = path.trim_end_matches('\0').rsplit('\\').next().unwrap_or_default();
            let number = self.number(CapturedProcess { id: Some(id), name: name_text(name.as_bytes()) });
            self.described.push(number);
        }
    }

    /// Returns the number of the process at this place of the table.
    pub(super) fn of_netmon(&self, index: u32) -> u32 {
        self.described(index)
    }
}

/// Parses the comment that etl2pcapng writes for each packet of a Windows trace: `PID=4 TID=60 …`, perhaps with a name.
fn process_of_comment(comment: &[u8]) -> Option<CapturedProcess> {
    let comment = name_text(comment);
    let field = |key: &str| comment.split([' ', ',', ';']).find_map(|word| word.strip_prefix(key));
    let id = field("PID=")?.parse().ok()?;
    let name = field("ProcessName=").or_else(|| field("Process=")).unwrap_or_default();
    Some(CapturedProcess { id: Some(id), name: name.into() })
}

fn name_text(bytes: &[u8]) -> Box<str> {
    let bytes = &bytes[..bytes.len().min(MAX_TEXT)];
    let text = String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default());
    text.into()
}

/// Returns the options of a pcapng block up to the end marker or a damaged one.
fn options_of(order: ByteOrder, mut options: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (code, length) = (order.u16(options, 0)?, usize::from(order.u16(options, 2)?));
        let value = options.get(4..4 + length).filter(|_| code != 0)?;
        options = options.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
        Some((code, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_of_windows_traces_name_a_process() {
        let of = |comment: &str| {
            process_of_comment(comment.as_bytes()).map(|process| (process.id, process.name.to_string()))
        };
        // Written by etl2pcapng 1.11, EventCallback.
        assert_eq!(of("PID=4 TID=60"), Some((Some(4), String::new())));
        assert_eq!(of("PID=812 TID=60 VlanId=0 SrcPortId=2"), Some((Some(812), String::new())));
        assert_eq!(of("PID=812 ProcessName=explorer.exe TID=1"), Some((Some(812), "explorer.exe".to_owned())));
        assert_eq!((of("PID=-1 TID=0"), of("a comment"), of("")), (None, None, None));
    }

    #[test]
    fn a_damaged_table_of_network_monitor_ends_early() {
        let path: Vec<u8> = "C:\\a\\b.exe\0".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let mut table = vec![1, 0];
        for id in [7u32, 8] {
            table.extend((path.len() as u32).to_le_bytes());
            table.extend(&path);
            table.extend([3, 0, 0, 0, 9, 9, 9]);
            table.extend(id.to_le_bytes());
            table.extend([0; 44]);
        }
        let read = |bytes: &[u8]| {
            let mut processes = ProcessTable::default();
            processes.read_netmon(bytes, u32::MAX);
            processes
        };
        let whole = read(&table);
        let second = whole.get(whole.of_netmon(1)).expect("there are two");
        assert_eq!((second.id, &*second.name), (Some(8), "b.exe"));
        assert_eq!(whole.of_netmon(2), 0);
        (0..table.len()).for_each(|length| assert!(read(&table[..length]).list.len() <= 2));
        let mut hostile = table.clone();
        hostile[2..6].fill(0xff);
        assert!(read(&hostile).list.is_empty());
    }
}
