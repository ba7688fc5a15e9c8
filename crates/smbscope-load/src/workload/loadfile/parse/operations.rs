//! The operations of a loadfile: their arguments, and the steps that they stand for.
//!
//! Information levels are SMB1's and map to information classes (MS-CIFS 2.2.2.3, MS-FSCC 2.4 and 2.5). A level
//! of 1000 or more is a pass-through class (MS-SMB 2.2.2.3.5). Ranges of queues are written as
//! `0+65536*16 4194304+512`: 16 contiguous ranges of 64 KiB and one of 512 bytes.

use super::{LoadfileHandle, LoadfileParser, OPERATIONS};
use crate::workload::WorkloadError;
use crate::workload::action::Expected;
use crate::workload::loadfile::{How, Op, OpenFor, PatternId};
use crate::workload::paths::Last;
use crate::workload::threads::PassPosition;
use smbscope_client::{FileRange, FsctlProfile, Info};
use smbscope_wire::names::{Fsctl, InfoLevel};
use smbscope_wire::status::NtStatus;
use std::fmt::Write;
use std::time::Duration;

impl LoadfileParser<'_> {
    pub(super) fn operation(
        &mut self,
        operation: usize,
        arguments: &[&str],
        expected: Expected,
    ) -> Result<(), WorkloadError> {
        match OPERATIONS[operation] {
            "NTCreateX" => self.create(operation, arguments, expected),
            "Create" => self.create_as(operation, arguments, expected),
            "Open" => self.open(operation, arguments, expected),
            "Close" => self.close(operation, arguments, expected),
            "ReadX" => self.read_with_result(operation, arguments, expected),
            "Read" => self.read(operation, arguments, expected),
            "WriteX" | "Write" => self.write(operation, arguments, expected),
            "ReadQueue" | "WriteQueue" => self.queue(operation, arguments, expected),
            "Flush" => self.on_handle(operation, arguments, expected, |slot| Op::Flush { slot }),
            "LockX" | "LockShared" | "UnlockX" => self.lock(operation, arguments, expected),
            "Control" => self.control(operation, arguments, expected),
            "QueryInfo" => self.query_info(operation, arguments, expected),
            "QUERY_FILE_INFORMATION" => self.query_file_level(operation, arguments, expected),
            "QueryDirectory" => self.query_directory(operation, arguments, expected),
            "SET_FILE_INFORMATION" => self.set_file_level(operation, arguments, expected),
            "SetEnd" => self.set_end(operation, arguments, expected),
            "SetDelete" => self.set_delete(operation, arguments, expected),
            "RenameOpen" => self.rename_open(operation, arguments, expected),
            "Mkdir" | "Rmdir" | "Deltree" => self.directory(operation, arguments, expected),
            name => {
                let op = self.op_without_handle(name, arguments)?;
                self.push(operation, op, expected);
                Ok(())
            }
        }
    }

    fn op_without_handle(&mut self, name: &str, arguments: &[&str]) -> Result<Op, WorkloadError> {
        Ok(match name {
            "QUERY_FS_INFORMATION" => {
                let level = self.short_at(name, arguments, 0, "level")?;
                let info = file_system_level(level).ok_or_else(|| self.unknown_level(level))?;
                Op::QueryFileSystem { info }
            }
            "QUERY_PATH_INFORMATION" => {
                let info = self.file_level_at(name, arguments)?;
                Op::QueryPath { path: self.path(name, arguments, 0, Last::Name)?, info }
            }
            "FIND_FIRST" => self.find_first(name, arguments)?,
            "Readdir" => self.read_directory(name, arguments)?,
            "Unlink" => Op::Unlink { path: self.path(name, arguments, 0, Last::Name)? },
            "Rename" => Op::Rename {
                from: self.path(name, arguments, 0, Last::Name)?,
                to: self.path(name, arguments, 1, Last::Name)?,
            },
            "Await" => self.wait_for(name, arguments)?,
            _ => Op::Sleep { time: Duration::from_micros(self.number_at(name, arguments, 0, "time in microseconds")?) },
        })
    }

    /// Parses `Await THREAD OPERATIONS STATUS`: waits until another thread of the client has performed this
    /// number of operations in this pass, or all of them with `end`. Threads count from 1.
    fn wait_for(&self, name: &str, arguments: &[&str]) -> Result<Op, WorkloadError> {
        let number = self.short_at(name, arguments, 0, "number of a thread")?;
        let operations = match arguments.get(1) {
            Some(&"end") => PassPosition::END,
            _ => self.short_at(name, arguments, 1, "number of operations")?,
        };
        match number.checked_sub(1).filter(|thread| *thread < self.threads) {
            Some(thread) => Ok(Op::Await { thread, operations }),
            None => Err(self.error(
                format!("{name} has the thread {number}, and there are {}", self.threads),
                "only threads of a recorded client await each other",
            )),
        }
    }

    fn find_first(&mut self, name: &str, arguments: &[&str]) -> Result<Op, WorkloadError> {
        let level = self.short_at(name, arguments, 1, "level")?;
        let most = self.short_at(name, arguments, 2, "largest number of entries")?;
        let info = find_level(level).ok_or_else(|| self.unknown_level(level))?;
        Ok(Op::List { pattern: self.path(name, arguments, 0, Last::Pattern)?, info, most })
    }

    fn read_directory(&mut self, name: &str, arguments: &[&str]) -> Result<Op, WorkloadError> {
        let directory = self.relative(name, arguments, 0, Last::Name)?;
        let pattern = if directory.is_empty() { "*".to_owned() } else { format!("{directory}\\*") };
        let pattern = self.names.intern(&pattern);
        Ok(Op::List { pattern, info: smbscope_client::Info::FILE_BOTH_DIRECTORY_INFORMATION, most: 0 })
    }

    fn directory(&mut self, operation: usize, arguments: &[&str], expected: Expected) -> Result<(), WorkloadError> {
        let name = OPERATIONS[operation];
        let path = self.relative(name, arguments, 0, Last::Name)?;
        if name != "Deltree" && arguments.first().is_some_and(|path| self.is_above_users(path)) {
            // The directory of all users already exists, and stays.
            return Ok(());
        }
        let path = self.names.intern(&path);
        let (op, expected) = match name {
            "Mkdir" => (Op::Mkdir { path }, expected),
            "Rmdir" => (Op::Rmdir { path }, expected),
            // dbench and smbtorture ignore the status: there may be nothing to remove.
            _ => (Op::Deltree { path }, Expected::Anything),
        };
        self.push(operation, op, expected);
        Ok(())
    }

    fn close(&mut self, operation: usize, arguments: &[&str], expected: Expected) -> Result<(), WorkloadError> {
        let key = self.key(operation, arguments)?;
        let Some(slot) = self.open.remove(&key) else { return self.skip() };
        self.free.push(slot);
        self.push(operation, Op::Close { slot }, expected);
        Ok(())
    }

    fn read(&mut self, operation: usize, arguments: &[&str], expected: Expected) -> Result<(), WorkloadError> {
        let (offset, length) = self.transfer_range(OPERATIONS[operation], arguments)?;
        self.on_handle(operation, arguments, expected, |slot| Op::Read { slot, offset, length })
    }

    /// Parses `ReadX HANDLE OFFSET LENGTH [LENGTH-OF-THE-ANSWER] STATUS`.
    fn read_with_result(
        &mut self,
        operation: usize,
        arguments: &[&str],
        expected: Expected,
    ) -> Result<(), WorkloadError> {
        let name = OPERATIONS[operation];
        let (offset, length) = self.transfer_range(name, arguments)?;
        let got = match arguments.len() > 3 {
            true => self.number_at(name, arguments, 3, "length that is answered")?,
            false => u64::from(length),
        };
        // Past the end of the file SMB1 returns success with no bytes; the client maps that to END_OF_FILE in
        // every dialect.
        let end = got == 0 && length > 0 && expected == Expected::Status(NtStatus::SUCCESS);
        let expected = if end { Expected::Status(NtStatus::END_OF_FILE) } else { expected };
        self.on_handle(operation, arguments, expected, |slot| Op::Read { slot, offset, length })
    }

    fn write(&mut self, operation: usize, arguments: &[&str], expected: Expected) -> Result<(), WorkloadError> {
        let name = OPERATIONS[operation];
        let (offset, length) = self.transfer_range(name, arguments)?;
        // A core write of zero bytes sets the end of the file (MS-CIFS 2.2.4.12).
        let cuts = name == "Write" && length == 0;
        self.on_handle(operation, arguments, expected, |slot| match cuts {
            true => Op::SetEnd { slot, size: offset },
            false => Op::Write { slot, offset, length },
        })
    }

    fn transfer_range(&self, name: &str, arguments: &[&str]) -> Result<(u64, u32), WorkloadError> {
        let offset = self.number_at(name, arguments, 1, "offset")?;
        Ok((offset, self.short_at(name, arguments, 2, "length")?))
    }

    fn lock(&mut self, operation: usize, arguments: &[&str], expected: Expected) -> Result<(), WorkloadError> {
        let name = OPERATIONS[operation];
        let offset = self.number_at(name, arguments, 1, "offset")?;
        let length = self.number_at(name, arguments, 2, "length")?;
        self.on_handle(operation, arguments, expected, |slot| match name {
            "UnlockX" => Op::Unlock { slot, offset, length },
            _ => Op::Lock { slot, offset, length, exclusive: name == "LockX" },
        })
    }

    fn control(&mut self, operation: usize, arguments: &[&str], expected: Expected) -> Result<(), WorkloadError> {
        let code = Fsctl(self.short_at(OPERATIONS[operation], arguments, 1, "control code")?);
        let control = FsctlProfile::by_code(code).filter(|control| control.of_file);
        let control = control.ok_or_else(|| self.unknown_control(code))?;
        self.on_handle(operation, arguments, expected, |slot| Op::Control { slot, control })
    }

    fn unknown_control(&self, code: Fsctl) -> WorkloadError {
        let known = FsctlProfile::ALL.iter().filter(|control| control.of_file);
        let known: Vec<String> = known.map(|known| format!("{:#x}", known.code.0)).collect();
        let hint = format!("write one of {}", known.join(", "));
        self.error(format!("the control code {:#x} can't be sent", code.0), hint)
    }

    fn query_info(&mut self, operation: usize, arguments: &[&str], expected: Expected) -> Result<(), WorkloadError> {
        let name = OPERATIONS[operation];
        let info_type = self.short_at(name, arguments, 1, "type of information")?;
        let class = self.short_at(name, arguments, 2, "class")?;
        let info = InfoLevel::from_wire(self.byte(info_type, "type of information")?, self.byte(class, "class")?);
        self.on_handle(operation, arguments, expected, |slot| Op::QueryFile { slot, info })
    }

    fn byte(&self, value: u32, what: &str) -> Result<u8, WorkloadError> {
        u8::try_from(value).map_err(|_| self.error(format!("there is no {what} {value}"), "write 0 to 255"))
    }

    fn query_file_level(
        &mut self,
        operation: usize,
        arguments: &[&str],
        expected: Expected,
    ) -> Result<(), WorkloadError> {
        let info = self.file_level_at(OPERATIONS[operation], arguments)?;
        self.on_handle(operation, arguments, expected, |slot| Op::QueryFile { slot, info })
    }

    fn file_level_at(&self, name: &str, arguments: &[&str]) -> Result<InfoLevel, WorkloadError> {
        let level = self.short_at(name, arguments, 1, "level")?;
        file_level(level).ok_or_else(|| self.unknown_level(level))
    }

    fn set_file_level(
        &mut self,
        operation: usize,
        arguments: &[&str],
        expected: Expected,
    ) -> Result<(), WorkloadError> {
        let level = self.short_at(OPERATIONS[operation], arguments, 1, "level")?;
        if !sets_basic(level) {
            let hint = "a loadfile has no values to set: only 1004 (FileBasicInformation) leaves all as it is";
            return Err(self.error(format!("SET_FILE_INFORMATION cannot set level {level}"), hint));
        }
        self.on_handle(operation, arguments, expected, |slot| Op::SetBasic { slot })
    }

    fn set_end(&mut self, operation: usize, arguments: &[&str], expected: Expected) -> Result<(), WorkloadError> {
        let size = self.number_at(OPERATIONS[operation], arguments, 1, "size")?;
        self.on_handle(operation, arguments, expected, |slot| Op::SetEnd { slot, size })
    }

    fn set_delete(&mut self, operation: usize, arguments: &[&str], expected: Expected) -> Result<(), WorkloadError> {
        let delete = self.number_at(OPERATIONS[operation], arguments, 1, "1 or 0")? != 0;
        self.on_handle(operation, arguments, expected, |slot| Op::SetDelete { slot, delete })
    }

    fn rename_open(&mut self, operation: usize, arguments: &[&str], expected: Expected) -> Result<(), WorkloadError> {
        let name = OPERATIONS[operation];
        let to = self.path(name, arguments, 1, Last::Name)?;
        let replace = self.number_at(name, arguments, 2, "1 or 0")? != 0;
        self.on_handle(operation, arguments, expected, |slot| Op::RenameOpen { slot, to, replace })
    }

    fn create(&mut self, operation: usize, arguments: &[&str], expected: Expected) -> Result<(), WorkloadError> {
        let name = OPERATIONS[operation];
        let options = self.short_at(name, arguments, 1, "create options")?;
        let disposition = self.short_at(name, arguments, 2, "create disposition")?;
        let disposition = u8::try_from(disposition).ok().filter(|value| *value <= 5).ok_or_else(|| {
            self.error(
                format!("there is no create disposition {disposition}"),
                "0 to 5 exist: FILE_SUPERSEDE to FILE_OVERWRITE_IF",
            )
        })?;
        let key = LoadfileHandle::Number(self.integer_at(name, arguments, 3, "handle")?);
        let path = self.path(name, arguments, 0, Last::Name)?;
        let slot = self.take_slot(key, expected);
        self.push(operation, Op::Create { path, options, disposition, slot }, expected);
        Ok(())
    }

    /// Parses `Create "\path" ACCESS SHARE DISPOSITION OPTIONS ATTRIBUTES HANDLE STATUS`.
    fn create_as(&mut self, operation: usize, arguments: &[&str], expected: Expected) -> Result<(), WorkloadError> {
        let name = OPERATIONS[operation];
        let number = |at: usize, what: &str| self.short_at(name, arguments, at, what);
        let disposition = number(3, "create disposition")?;
        let how = How {
            access: number(1, "desired access")?,
            share: number(2, "share access")?,
            disposition: u8::try_from(disposition)
                .ok()
                .filter(|value| *value <= 5)
                .ok_or_else(|| self.error(format!("there is no create disposition {disposition}"), "0 to 5 exist"))?,
            options: number(4, "create options")?,
            attributes: number(5, "attributes")?,
        };
        let key = LoadfileHandle::Number(self.integer_at(name, arguments, 6, "handle")?);
        let path = self.path(name, arguments, 0, Last::Name)?;
        let next = self.how.len() as u32;
        let id = *self.how_ids.entry(how).or_insert(next);
        if id == next {
            self.how.push(how);
        }
        let slot = self.take_slot(key, expected);
        self.push(operation, Op::CreateAs { path, how: id, slot }, expected);
        Ok(())
    }

    /// Parses `QueryDirectory HANDLE "pattern" CLASS FLAGS STATUS`.
    fn query_directory(
        &mut self,
        operation: usize,
        arguments: &[&str],
        expected: Expected,
    ) -> Result<(), WorkloadError> {
        let name = OPERATIONS[operation];
        let byte = |at: usize, what: &str| {
            let value = self.short_at(name, arguments, at, what)?;
            self.byte(value, what)
        };
        let (class, flags) = (byte(2, "class")?, byte(3, "flags")?);
        let Some(pattern) = arguments.get(1) else {
            return Err(self.error(format!("{name} has no pattern"), "write \"*\" for all"));
        };
        let next = PatternId(self.patterns.len() as u32);
        let id = *self.pattern_ids.entry((*pattern).into()).or_insert(next);
        if id == next {
            self.patterns.push((*pattern).into());
        }
        self.on_handle(operation, arguments, expected, |slot| Op::ListOpen { slot, pattern: id, class, flags })
    }

    /// Parses `ReadQueue HANDLE DEPTH "OFFSET+LENGTH …" STATUS`: ranges in order, with up to DEPTH commands
    /// outstanding. `*COUNT` after a range repeats it contiguously.
    fn queue(&mut self, operation: usize, arguments: &[&str], expected: Expected) -> Result<(), WorkloadError> {
        let name = OPERATIONS[operation];
        let depth = self.short_at(name, arguments, 1, "number of commands at once")?.max(1);
        let text = arguments.get(2).copied().unwrap_or_default();
        let hint = "write \"0+65536*16\": an offset, a length, how often";
        let ranges = parse_ranges(text, QUEUED_MAX - self.queued)
            .map_err(|part| self.error(format!("{name} has the ranges \"{part}\""), hint))?;
        if ranges.is_empty() {
            return Err(self.error(format!("{name} has no ranges"), hint));
        }
        self.queued += ranges.len();
        let id = self.ranges.len() as u32;
        self.ranges.push(ranges.into());
        let writes = name == "WriteQueue";
        self.on_handle(operation, arguments, expected, |slot| Op::Queue { slot, depth, ranges: id, writes })
    }

    /// Parses dbench 4's `OPEN "\path" FLAGS STATUS`. Flags: 1 read, 2 write, 4 both, 8 create, 0x10 exclusive, 0x20
    /// truncate, 0x40 append.
    fn open(&mut self, operation: usize, arguments: &[&str], expected: Expected) -> Result<(), WorkloadError> {
        let name = OPERATIONS[operation];
        let flags = self.short_at(name, arguments, 1, "flags")?;
        let access = match flags & 0x7 {
            0x1 => OpenFor::Reading,
            0x2 => OpenFor::Writing,
            _ => OpenFor::Both,
        };
        let disposition = match (flags & 0x8 != 0, flags & 0x10 != 0, flags & 0x20 != 0) {
            (true, true, _) => 2,
            (true, false, true) => 5,
            (true, false, false) => 3,
            (false, _, true) => 4,
            (false, _, false) => 1,
        };
        let key = self.key(operation, arguments)?;
        let path = self.path(name, arguments, 0, Last::Name)?;
        let slot = self.take_slot(key, expected);
        self.push(operation, Op::Open { path, access, disposition, slot }, expected);
        Ok(())
    }

    fn unknown_level(&self, level: u32) -> WorkloadError {
        let hint = "give a level of MS-CIFS 2.2.2.3, or 1000 and the number of a class of MS-FSCC 2.4";
        self.error(format!("there is no information level {level} (0x{level:x}) for this"), hint)
    }
}

/// Maps a QUERY_PATH_INFORMATION or QUERY_FILE_INFORMATION level (MS-CIFS 2.2.2.3.3).
fn file_level(level: u32) -> Option<Info> {
    Some(match level {
        // SMB_INFO_STANDARD has times, sizes and attributes, which later dialects combine in this class.
        0x0001 => Info::FILE_NETWORK_OPEN_INFORMATION,
        0x0002 | 0x0103 => Info::FILE_EA_INFORMATION,
        0x0101 => Info::FILE_BASIC_INFORMATION,
        0x0102 => Info::FILE_STANDARD_INFORMATION,
        // SMB_QUERY_FILE_NAME_INFO: in SMB2 the name is available only in FileAllInformation (MS-SMB2 3.3.5.20.1).
        0x0104 | 0x0107 => Info::FILE_ALL_INFORMATION,
        0x0108 => Info::FILE_ALTERNATE_NAME_INFORMATION,
        0x0109 => Info::FILE_STREAM_INFORMATION,
        0x010b => Info::FILE_COMPRESSION_INFORMATION,
        _ => Info::File(passed_through(level)?),
    })
}

/// Maps a QUERY_FS_INFORMATION level (MS-CIFS 2.2.2.3.2).
fn file_system_level(level: u32) -> Option<Info> {
    Some(match level {
        0x0001 | 0x0103 => Info::FILE_FS_SIZE_INFORMATION,
        0x0002 | 0x0102 => Info::FILE_FS_VOLUME_INFORMATION,
        0x0104 => Info::FILE_FS_DEVICE_INFORMATION,
        0x0105 => Info::FILE_FS_ATTRIBUTE_INFORMATION,
        _ => Info::FileSystem(passed_through(level)?),
    })
}

/// Maps a FIND_FIRST level (MS-CIFS 2.2.2.3.1).
fn find_level(level: u32) -> Option<Info> {
    Some(match level {
        0x0001..=0x0003 | 0x0101 => Info::FILE_DIRECTORY_INFORMATION,
        0x0102 => Info::FILE_FULL_DIRECTORY_INFORMATION,
        0x0103 => Info::FILE_NAMES_INFORMATION,
        0x0104 => Info::FILE_BOTH_DIRECTORY_INFORMATION,
        0x0105 => Info::FILE_ID_FULL_DIRECTORY_INFORMATION,
        0x0106 => Info::FILE_ID_BOTH_DIRECTORY_INFORMATION,
        _ => return None,
    })
}

/// Returns true if a SET_FILE_INFORMATION level sets times and attributes. Only these work without a value, as a no-op
/// (MS-CIFS 2.2.2.3.4).
fn sets_basic(level: u32) -> bool {
    matches!(level, 0x0001 | 0x0101 | 1004)
}

fn passed_through(level: u32) -> Option<u8> {
    level.checked_sub(1000).and_then(|class| u8::try_from(class).ok()).filter(|class| *class != 0)
}

/// Queued ranges of a recording; more are refused.
const QUEUED_MAX: usize = 1_000_000;

/// Parses up to `most` ranges. Returns the first malformed or excess part as the error.
fn parse_ranges(text: &str, most: usize) -> Result<Vec<FileRange>, &str> {
    let mut ranges = Vec::new();
    for part in text.split_whitespace() {
        let (offset, length, count) = run(part).ok_or(part)?;
        if count > most.saturating_sub(ranges.len()) as u64 {
            return Err(part);
        }
        ranges.extend((0..count).map(|n| FileRange { offset: offset + n * u64::from(length), length }));
    }
    Ok(ranges)
}

/// Parses offset, length and count. The end must fit a signed 64-bit file offset.
fn run(text: &str) -> Option<(u64, u32, u64)> {
    let (offset, rest) = text.split_once('+')?;
    let (length, count) = rest.split_once('*').unwrap_or((rest, "1"));
    let (offset, length, count): (u64, u32, u32) = (offset.parse().ok()?, length.parse().ok()?, count.parse().ok()?);
    let count = u64::from(count);
    let end = count.checked_mul(length.into())?.checked_add(offset)?;
    (i64::try_from(end).is_ok()).then_some((offset, length, count))
}

pub fn ranges_text(ranges: &[FileRange]) -> String {
    let mut text = String::new();
    let follows =
        |a: &FileRange, b: &FileRange| a.length == b.length && a.offset.checked_add(a.length.into()) == Some(b.offset);
    for run in ranges.chunk_by(follows) {
        let FileRange { offset, length } = run[0];
        let blank = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{blank}{offset}+{length}");
        if run.len() > 1 {
            let _ = write!(text, "*{}", run.len());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_become_classes_of_the_same_meaning() {
        // MS-CIFS 2.2.2.3 and MS-FSCC 2.4: the levels in the Debian package's client.txt.
        assert_eq!(file_level(258), Some(Info::FILE_STANDARD_INFORMATION));
        assert_eq!(file_level(0x107), Some(Info::FILE_ALL_INFORMATION));
        assert_eq!(file_level(1004), Some(Info::FILE_BASIC_INFORMATION));
        assert_eq!(file_level(1005), Some(Info::FILE_STANDARD_INFORMATION));
        assert_eq!(file_level(1035), Some(Info::FILE_ATTRIBUTE_TAG_INFORMATION));
        assert_eq!(file_system_level(259), Some(Info::FILE_FS_SIZE_INFORMATION));
        assert_eq!(find_level(260), Some(Info::FILE_BOTH_DIRECTORY_INFORMATION));
    }

    #[test]
    fn levels_that_mean_nothing_have_no_class() {
        assert_eq!(file_level(1000), None);
        assert_eq!(file_level(2000), None);
        assert_eq!(file_level(0x777), None);
        assert_eq!(find_level(1003), None);
        assert!(!sets_basic(1010));
    }

    #[test]
    fn text_and_ranges_are_the_same() {
        let text = "0+65536*16 4194304+512 0+1";
        let ranges = parse_ranges(text, 18).unwrap();
        assert_eq!((ranges.len(), ranges[15]), (18, FileRange { offset: 15 << 16, length: 1 << 16 }));
        assert_eq!(ranges_text(&ranges), text);
        assert_eq!(parse_ranges(text, 17).unwrap_err(), "0+1");
    }

    #[test]
    fn what_no_file_can_have_is_refused() {
        for text in ["", "5", "-1+5", "0+4294967296", "9223372036854775807+1", "0+4294967295*4294967295 x", "1+1*-1"] {
            let parsed = parse_ranges(text, 10);
            assert!(parsed.is_err() || text.is_empty(), "{text}");
        }
    }
}
