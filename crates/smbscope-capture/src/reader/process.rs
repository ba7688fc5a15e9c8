//! Processes that a capture file names for its packets: comments of Windows traces, blocks and options of macOS, the
//! table of Network Monitor.

use super::ByteOrder;
use crate::segment::CapturedProcess;
use std::collections::HashMap;

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

    pub(super) fn forget_described(&mut self) {
        self.described.clear();
    }

    /// Adds the process of a block of macOS: its id, then options. `index` is its place among all such blocks; it may
    /// have been read before.
    pub(super) fn describe(&mut self, index: usize, order: ByteOrder, body: &[u8]) {
        if index < self.described.len() || index >= MAX_DESCRIBED {
            return;
        }
        let id = order.u32(body, 0).filter(|id| *id != u32::MAX);
        let options = body.get(4..).unwrap_or_default();
        let mut name = options_of(order, options).find(|(code, _)| *code == OPTION_PROCESS_NAME);
        let name = name.take().map_or_else(Box::default, |(_, name)| text(name));
        let number = self.number(CapturedProcess { id, name });
        self.described.resize(index, 0);
        self.described.push(number);
    }

    /// Returns the number of the process that the options of a packet name. `first` is the place of the section's first
    /// process block.
    pub(super) fn of_options(&mut self, order: ByteOrder, options: &[u8], first: u32) -> u32 {
        let (mut owner, mut effective, mut commented) = (0, 0, None);
        for (code, value) in options_of(order, options) {
            let block = || order.u32(value, 0).and_then(|index| first.checked_add(index));
            match code {
                OPTION_OWNER => owner = block().map_or(0, |index| self.described(index)),
                OPTION_EFFECTIVE => effective = block().map_or(0, |index| self.described(index)),
                OPTION_COMMENT if commented.is_none() => commented = of_comment(value),
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
            let number = self.number(CapturedProcess { id: Some(id), name: text(name.as_bytes()) });
            self.described.push(number);
        }
    }

    /// Returns the number of the process at this place of the table.
    pub(super) fn of_netmon(&self, index: u32) -> u32 {
        self.described(index)
    }
}

/// Parses the comment that etl2pcapng writes for each packet of a Windows trace: `PID=4 TID=60 …`, perhaps with a name.
fn of_comment(comment: &[u8]) -> Option<CapturedProcess> {
    let comment = text(comment);
    let field = |key: &str| comment.split([' ', ',', ';']).find_map(|word| word.strip_prefix(key));
    let id = field("PID=")?.parse().ok()?;
    let name = field("ProcessName=").or_else(|| field("Process=")).unwrap_or_default();
    Some(CapturedProcess { id: Some(id), name: name.into() })
}

fn text(bytes: &[u8]) -> Box<str> {
    let bytes = &bytes[..bytes.len().min(MAX_TEXT)];
    let text = String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default());
    text.into()
}

/// Returns the options of a pcapng block up to the end marker or a damaged one.
pub(super) fn options_of(order: ByteOrder, mut options: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
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
        let of = |comment: &str| of_comment(comment.as_bytes()).map(|process| (process.id, process.name.to_string()));
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
