//! A directory into which another program writes captures, one after the other: a ring of smbscope, dumpcap or tcpdump.
//!
//! The files become one stream of whole records, so a file that ends in the middle of a record, because its writer was
//! killed, doesn't spoil the next ones. pcapng files follow each other as sections; of pcap files only the first
//! keeps its header.

use super::TAIL_INTERVAL;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::SystemTime;

const CHUNK: usize = 256 << 10;
/// Longer records are taken for damage.
const RECORD_MAX: usize = 64 << 20;
const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
const PCAP_HEADER: usize = 24;

pub(super) struct CaptureDirectory {
    folder: PathBuf,
    /// Files that were read to their end, with their length.
    done: BTreeMap<PathBuf, u64>,
    current: Option<CurrentFile>,
    /// Header of the first file if it is a pcap file.
    header: Option<[u8; PCAP_HEADER]>,
    is_pcapng: bool,
    /// Whole records that wait to be read, from `start`.
    records: Vec<u8>,
    start: usize,
}

struct CurrentFile {
    path: PathBuf,
    file: File,
    length: u64,
    /// Bytes of a record that is not complete yet.
    pending: Vec<u8>,
    is_big_endian: bool,
    is_header_read: bool,
    /// Reason why the rest of the file is skipped.
    damage: Option<&'static str>,
    /// The end was reached while there was a newer file.
    has_successor: bool,
}

impl CaptureDirectory {
    pub(super) fn new(folder: &Path) -> CaptureDirectory {
        CaptureDirectory {
            folder: folder.to_owned(),
            done: BTreeMap::new(),
            current: None,
            header: None,
            is_pcapng: false,
            records: Vec::new(),
            start: 0,
        }
    }

    /// Reads on until there is a whole record.
    fn fill(&mut self) -> io::Result<()> {
        (self.start, self.records) = (0, Vec::new());
        let mut chunk = vec![0; CHUNK];
        while self.records.is_empty() {
            let Some(current) = &mut self.current else {
                self.current = self.next_file()?;
                if self.current.is_none() {
                    thread::sleep(TAIL_INTERVAL);
                }
                continue;
            };
            let length = current.file.read(&mut chunk)?;
            if length > 0 {
                (current.length, current.has_successor) = (current.length + length as u64, false);
                current.pending.extend_from_slice(&chunk[..length]);
                self.take_records();
            } else if current.has_successor {
                self.leave_file();
            } else {
                // The last bytes may have been written after the end was seen, so it is read once more.
                let path = current.path.clone();
                let is_last = self.waiting_file(Some(&path))?.is_none();
                if let Some(current) = &mut self.current {
                    current.has_successor = !is_last;
                }
                if is_last {
                    thread::sleep(TAIL_INTERVAL);
                }
            }
        }
        Ok(())
    }

    /// Moves the complete records of the current file.
    fn take_records(&mut self) {
        let Some(current) = &mut self.current else { return };
        let mut taken = 0;
        while current.damage.is_none() {
            let rest = &current.pending[taken..];
            let length = if self.is_pcapng {
                block_length(rest, &mut current.is_big_endian)
            } else if !current.is_header_read {
                Ok((rest.len() >= PCAP_HEADER).then_some(PCAP_HEADER))
            } else {
                packet_length(rest, current.is_big_endian)
            };
            match length {
                Ok(Some(length)) if length <= rest.len() => {
                    let record = &rest[..length];
                    taken += length;
                    if self.is_pcapng || current.is_header_read {
                        self.records.extend_from_slice(record);
                        continue;
                    }
                    current.is_header_read = true;
                    let header: [u8; PCAP_HEADER] = record.try_into().expect("a header has this length");
                    match self.header {
                        None => self.records.extend(self.header.insert(header).iter()),
                        // Version, time zone and snap length may differ; format, byte order and link type may not.
                        Some(first) if first[..4] == header[..4] && first[20..] == header[20..] => {}
                        Some(_) => current.damage = Some("its link type or clock differs from the first file's"),
                    }
                }
                Ok(_) => break,
                Err(damage) => current.damage = Some(damage),
            }
        }
        match current.damage {
            Some(_) => current.pending.clear(),
            None => _ = current.pending.drain(..taken),
        }
    }

    fn leave_file(&mut self) {
        let Some(current) = self.current.take() else { return };
        let cut = (!current.pending.is_empty()).then_some("it ends in the middle of a packet");
        if let Some(why) = current.damage.or(cut) {
            tracing::warn!("{}: skipped in part: {why}", current.path.display());
        }
        self.done.insert(current.path, current.length);
    }

    fn next_file(&mut self) -> io::Result<Option<CurrentFile>> {
        let Some((path, start)) = self.waiting_file(None)? else { return Ok(None) };
        let is_pcapng = start == SECTION_HEADER;
        if self.done.is_empty() {
            self.is_pcapng = is_pcapng;
        }
        if is_pcapng != self.is_pcapng {
            tracing::warn!("{}: skipped: the first file had another format", path.display());
            self.done.insert(path, 0);
            return Ok(None);
        }
        let Ok(file) = File::open(&path) else { return Ok(None) };
        Ok(Some(CurrentFile {
            path,
            file,
            length: 0,
            pending: Vec::new(),
            is_big_endian: start[0] == 0xa1,
            is_header_read: false,
            damage: None,
            has_successor: false,
        }))
    }

    /// Returns the file to be read next, and its first bytes: of those not read yet, the one written to least recently.
    /// A file that became shorter is a new one.
    fn waiting_file(&mut self, current: Option<&Path>) -> io::Result<Option<(PathBuf, [u8; 4])>> {
        let mut found: Option<(SystemTime, PathBuf, [u8; 4])> = None;
        let mut known = BTreeMap::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let path = entry.path();
            // A ring may have removed it. Links are not followed.
            let Some(metadata) = entry.metadata().ok().filter(fs::Metadata::is_file) else { continue };
            if let Some(length) = self.done.get(&path).filter(|length| **length <= metadata.len()) {
                known.insert(path, *length);
                continue;
            }
            let written = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let is_earlier = found.as_ref().is_none_or(|(other, name, _)| (written, &path) < (*other, name));
            if Some(path.as_path()) != current
                && is_earlier
                && let Some(start) = capture_start(&path)
            {
                found = Some((written, path, start));
            }
        }
        self.done = known;
        Ok(found.map(|(_, path, start)| (path, start)))
    }
}

impl Read for CaptureDirectory {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.start == self.records.len() {
            self.fill()?;
        }
        let length = buffer.len().min(self.records.len() - self.start);
        buffer[..length].copy_from_slice(&self.records[self.start..self.start + length]);
        self.start += length;
        Ok(length)
    }
}

/// Returns the first four bytes of a pcap or pcapng file.
fn capture_start(path: &Path) -> Option<[u8; 4]> {
    let mut start = [0; 4];
    File::open(path).ok()?.read_exact(&mut start).ok()?;
    let mut ordered = start;
    if ordered[0] != 0xa1 {
        ordered.reverse();
    }
    let is_pcap = matches!(ordered, [0xa1, 0xb2, 0xc3, 0xd4] | [0xa1, 0xb2, 0x3c, 0x4d]);
    (is_pcap || start == SECTION_HEADER).then_some(start)
}

fn number(bytes: &[u8], at: usize, is_big_endian: bool) -> Option<usize> {
    let bytes: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(if is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) } as usize)
}

/// Returns the length of a pcapng block, if its beginning is there. A section header sets the byte order.
fn block_length(bytes: &[u8], is_big_endian: &mut bool) -> Result<Option<usize>, &'static str> {
    if bytes.starts_with(&SECTION_HEADER) {
        let Some(order) = bytes.get(8..12) else { return Ok(None) };
        *is_big_endian = order == [0x1a, 0x2b, 0x3c, 0x4d];
    }
    match number(bytes, 4, *is_big_endian) {
        Some(length) if length < 12 || length % 4 > 0 || length > RECORD_MAX => Err("it is damaged"),
        length => Ok(length),
    }
}

/// Returns the length of a packet in a pcap file, with its header.
fn packet_length(bytes: &[u8], is_big_endian: bool) -> Result<Option<usize>, &'static str> {
    match number(bytes, 8, is_big_endian) {
        Some(length) if length > RECORD_MAX => Err("it is damaged"),
        length => Ok(length.map(|length| 16 + length)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A pcap file of packets, each a number.
    fn pcap(numbers: &[u32]) -> Vec<u8> {
        let mut file = Vec::new();
        for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
            file.extend(word.to_le_bytes());
        }
        file.extend(numbers.iter().flat_map(|number| packet(*number)));
        file
    }

    fn packet(number: u32) -> Vec<u8> {
        [number, 0, 4, 4, number].into_iter().flat_map(u32::to_le_bytes).collect()
    }

    fn read(directory: &mut CaptureDirectory, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        directory.read_exact(&mut bytes).expect("it waits for more");
        bytes
    }

    #[test]
    fn files_follow_each_other_and_a_file_cut_short_spoils_none() {
        let place = tempfile::tempdir().expect("a directory");
        let write = |name: &str, bytes: &[u8]| {
            fs::write(place.path().join(name), bytes).expect("written");
            // Modification times may be coarse.
            thread::sleep(std::time::Duration::from_millis(20));
        };
        write("b.pcap", &pcap(&[1, 2])[..24 + 20 + 7]);
        write("a.pcap", &pcap(&[3]));
        write("notes.txt", b"no capture");
        let mut directory = CaptureDirectory::new(place.path());
        let first = pcap(&[1, 3]);
        assert_eq!(read(&mut directory, first.len()), first);
        let mut growing = fs::OpenOptions::new().append(true).open(place.path().join("a.pcap")).expect("it is there");
        growing.write_all(&packet(4)).expect("written");
        assert_eq!(read(&mut directory, 20), packet(4));
        // tcpdump -W writes over its oldest file.
        write("b.pcap", &pcap(&[5]));
        assert_eq!(read(&mut directory, 20), packet(5));
        write("a.pcap", &pcap(&[6]));
        assert_eq!(read(&mut directory, 20), packet(6));
    }

    #[test]
    fn a_damaged_length_ends_its_file_only() {
        let place = tempfile::tempdir().expect("a directory");
        let mut damaged = pcap(&[1, 2, 3]);
        damaged[24 + 20 + 11] = 0xff;
        fs::write(place.path().join("1.pcap"), damaged).expect("written");
        thread::sleep(std::time::Duration::from_millis(20));
        fs::write(place.path().join("2.pcap"), pcap(&[4])).expect("written");
        let expected = pcap(&[1, 4]);
        assert_eq!(read(&mut CaptureDirectory::new(place.path()), expected.len()), expected);
    }

    #[test]
    fn lengths_of_blocks_are_in_the_order_of_their_section() {
        let header = |length: [u8; 4], order: [u8; 4]| [SECTION_HEADER, length, order].concat();
        let mut is_big = false;
        let big = header([0, 0, 0, 28], [0x1a, 0x2b, 0x3c, 0x4d]);
        assert_eq!(block_length(&big, &mut is_big), Ok(Some(28)));
        assert_eq!(block_length(&[0, 0, 0, 6, 0, 0, 0, 32], &mut is_big), Ok(Some(32)));
        assert!(block_length(&[0, 0, 0, 6, 0, 0, 0, 33], &mut is_big).is_err());
        let little = header([28, 0, 0, 0], [0x4d, 0x3c, 0x2b, 0x1a]);
        assert_eq!(block_length(&little, &mut is_big), Ok(Some(28)));
        assert_eq!(block_length(&little[..10], &mut is_big), Ok(None));
    }
}
