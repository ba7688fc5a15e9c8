//! Microsoft Network Monitor 1 and 2, and Message Analyzer's export of it.
//!
//! A header of 128 bytes is followed by frames, and by a table with their offsets. Frames usually follow each other, but
//! may have gaps between them, which only the table reveals: it is used where it can be reached, i.e. not in a pipe or a
//! compressed file. So is the table of processes. Up to version 2.2, times have no time zone and are taken as UTC.

use super::pcapng::{Interfaces, ProcessTable};
use super::{ByteOrder, MAX_CAPTURED_LENGTH, PacketRecord, ParseStep, SkipReason, absurd_length};

pub(super) const FILE_HEADER: usize = 128;
/// Frame offsets of a file; the rest is read as if frames followed each other.
const MAX_FRAME_OFFSETS: usize = 1 << 27;
const LITTLE: ByteOrder = ByteOrder::LITTLE;
const ETHERNET: u32 = 1;
/// Ticks of 100 ns from 1601 to 1970.
const FILETIME_EPOCH: i64 = 116_444_736_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NetMon {
    major: u8,
    minor: u8,
    network: u16,
    start_ns: i64,
    /// Offset in the file, and offset of the first table after the frames.
    position: u32,
    end: u32,
    /// Number of offsets of the table that were passed.
    passed: u32,
}

impl NetMon {
    pub(super) fn is_magic(bytes: &[u8]) -> bool {
        bytes.starts_with(b"GMBU") || bytes.starts_with(b"RTSS")
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<NetMon> {
        if bytes.len() < FILE_HEADER {
            return None;
        }
        let (minor, major) = (bytes[4], bytes[5]);
        // Frame table, comments, processes, networks. Before 2.2, only the first field is initialised.
        let tables: &[usize] = if (major, minor) >= (2, 2) { &[24, 40, 48, 56] } else { &[24] };
        let offsets = tables.iter().filter_map(|at| LITTLE.u32(bytes, *at)).filter(|at| *at as usize >= FILE_HEADER);
        Some(NetMon {
            major,
            minor,
            network: LITTLE.u16(bytes, 6)?,
            start_ns: system_time(bytes.get(8..24)?)?,
            position: FILE_HEADER as u32,
            end: offsets.min().unwrap_or(u32::MAX),
            passed: 0,
        })
    }

    pub(super) fn name(&self) -> &'static str {
        if self.major == 1 { "Network Monitor 1" } else { "Network Monitor 2" }
    }

    pub(super) fn resolution_ns(&self) -> u64 {
        match (self.major, self.minor) {
            (1, _) => 1_000_000,
            (_, 0..=2) => 1_000,
            _ => 100,
        }
    }

    /// Returns the offsets of all frames in ascending order, from the whole file.
    pub(super) fn frame_offsets(&self, file: &[u8]) -> Vec<u32> {
        let place = |at: usize| LITTLE.u32(file, at).map(|value| value as usize);
        let table = place(24).zip(place(28)).and_then(|(offset, length)| file.get(offset..offset.checked_add(length)?));
        let entries = table.unwrap_or_default().chunks_exact(4).take(MAX_FRAME_OFFSETS);
        let offsets = entries.filter_map(|entry| LITTLE.u32(entry, 0));
        let mut offsets: Vec<u32> = offsets.filter(|at| *at >= self.position && *at < self.end).collect();
        offsets.sort_unstable();
        offsets.dedup();
        offsets
    }

    /// Reads the processes from the whole file.
    pub(super) fn read_processes(&self, file: &[u8], processes: &mut ProcessTable) {
        let field = |at: usize| LITTLE.u32(file, at).unwrap_or(0);
        if (self.major, self.minor) < (2, 2) || field(48) as usize <= FILE_HEADER {
            return;
        }
        processes.read_netmon(file.get(field(48) as usize..).unwrap_or_default(), field(52));
    }

    pub(super) fn before(self, length: usize) -> NetMon {
        NetMon { position: self.position.saturating_sub(length as u32), ..self }
    }

    pub(super) fn step(&mut self, interfaces: &mut Interfaces, window: &[u8]) -> ParseStep {
        let mut state = *self;
        let mut gap = 0;
        if !interfaces.frame_offsets.is_empty() {
            let left = interfaces.frame_offsets.get(state.passed as usize..).unwrap_or_default();
            let behind = left.partition_point(|offset| *offset < state.position);
            state.passed += behind as u32;
            gap = left.get(behind).map_or(u32::MAX, |next| next - state.position);
        }
        if state.position >= state.end || gap == u32::MAX {
            // Only tables follow.
            return match window.len() {
                0 => ParseStep::More(1),
                length => ParseStep::Skip { length, what: SkipReason::Description },
            };
        }
        if gap > 0 {
            state.position += gap;
            *self = state;
            return ParseStep::Skip { length: gap as usize, what: SkipReason::Description };
        }
        let (header, trailer) = state.lengths();
        let lengths = match state.major {
            1 => {
                LITTLE.u16(window, 4).zip(LITTLE.u16(window, 6)).map(|(wire, held)| (u32::from(wire), u32::from(held)))
            }
            _ => LITTLE.u32(window, 8).zip(LITTLE.u32(window, 12)),
        };
        let Some((wire_length, captured)) = lengths else { return ParseStep::More(header) };
        if captured > MAX_CAPTURED_LENGTH {
            return absurd_length(captured);
        }
        let length = header + captured as usize + trailer;
        let next = state.position.checked_add(length as u32).filter(|next| *next <= state.end);
        let Some(next) = next else { return ParseStep::Stop("a frame reaches into the tables after it".to_owned()) };
        if window.len() < length {
            return ParseStep::More(length);
        }
        state.position = next;
        let step = state.frame(interfaces, &window[..length], wire_length, captured as usize);
        *self = state;
        step
    }

    /// Returns the lengths of a frame's header and trailer.
    fn lengths(&self) -> (usize, usize) {
        match (self.major, self.minor) {
            (1, _) => (8, 0),
            (_, 0) => (16, 0),
            (_, 1) => (16, 2),
            (_, 2) => (16, 6),
            _ => (16, 15),
        }
    }

    fn frame(&self, interfaces: &mut Interfaces, frame: &[u8], wire_length: u32, captured: usize) -> ParseStep {
        let (header, trailer) = self.lengths();
        let tail = &frame[header + captured..];
        let network = if trailer > 0 { LITTLE.u16(tail, 0) } else { Some(self.network) };
        let skip = |what| ParseStep::Skip { length: frame.len(), what };
        let mut data_start = header;
        let link_type = match network.unwrap_or(u16::MAX) {
            0 | 1 => ETHERNET,
            2 => 6,
            3 => 10,
            5 => 138,
            6 => {
                // A radio header with its own length precedes the frame.
                data_start += usize::from(LITTLE.u16(frame, header + 1).unwrap_or(0));
                105
            }
            7..=9 => 101,
            0xe080 => 105,
            network @ 0xe000..=0xefff => u32::from(network & 0x0fff),
            // Events, lists of adapters, filters: Wireshark numbers them.
            0xffe0 | 0xfffb | 0xffff => return skip(SkipReason::Numbered),
            0xfffc..=0xfffe => return skip(SkipReason::Description),
            _ => return skip(SkipReason::Unreadable),
        };
        let inner = data_start - header;
        if inner > captured {
            return skip(SkipReason::Unreadable);
        }
        interfaces.note_link_type(link_type);
        let data_length = captured - inner;
        let wire_length = wire_length.saturating_sub(inner as u32).max(data_length as u32);
        let time = self.time(frame, tail);
        let process = self.process(interfaces, tail);
        ParseStep::Packet(PacketRecord { time, link_type, wire_length, data_start, data_length, process }, frame.len())
    }

    /// Returns the process of a frame, from its place in the table of the file.
    fn process(&self, interfaces: &Interfaces, tail: &[u8]) -> u32 {
        let index = LITTLE.u32(tail, 2).filter(|_| (self.major, self.minor) >= (2, 2));
        index.map_or(0, |index| interfaces.processes.of_netmon(index))
    }

    fn time(&self, frame: &[u8], tail: &[u8]) -> i64 {
        let from_start = match self.major {
            1 => i64::from(LITTLE.u32(frame, 0).unwrap_or(0)).saturating_mul(1_000_000),
            // Microseconds, which times ten are signed (documentation of Network Monitor 3).
            _ => LITTLE.i64(frame, 0).unwrap_or(0).wrapping_mul(10).saturating_mul(100),
        };
        let time = match LITTLE.i64(tail, 6) {
            Some(file_time) => file_time.saturating_sub(FILETIME_EPOCH).saturating_mul(100),
            None => self.start_ns.saturating_add(from_start),
        };
        time.max(0)
    }
}

/// Converts a SYSTEMTIME: year, month, day of the week, day, hour, minute, second and millisecond.
fn system_time(bytes: &[u8]) -> Option<i64> {
    let field = |index: usize| LITTLE.u16(bytes, 2 * index).map(i64::from);
    let (year, month, day) = (field(0)?, field(1)?, field(3)?);
    // Days since 1970 in the Gregorian calendar, counted in years that begin in March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let days = days + (153 * month + 2) / 5 + day - 1 - 719_468;
    let seconds = (days * 24 + field(4)?) * 3_600 + field(5)? * 60 + field(6)?;
    seconds.checked_mul(1_000_000_000)?.checked_add(field(7)? * 1_000_000)
}
