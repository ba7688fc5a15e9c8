//! The operations of a loadfile: their arguments, and the steps that they stand for.

use super::{LoadfileHandle, LoadfileParser, OPERATIONS};
use crate::workload::WorkloadError;
use crate::workload::action::Expected;
use crate::workload::loadfile::values::{
    QUEUED_MAX, file_level, file_system_level, find_level, parse_ranges, sets_basic,
};
use crate::workload::loadfile::{How, Op, OpenFor, PatternId};
use crate::workload::paths::Last;
use smbscope_client::FsctlProfile;
use smbscope_wire::names::{Fsctl, InfoLevel};
use smbscope_wire::status::NtStatus;
use std::time::Duration;

impl LoadfileParser<'_> {
    pub(super) fn operation(
        &mut self,
        operation: usize,
        arguments: &[&str],
        expected: Expected,
    ) -> Result<(), WorkloadError> {
        let name = OPERATIONS[operation];
        let number = |at: usize, what: &str| self.number_at(name, arguments, at, what);
        let short = |at: usize, what: &str| self.short_at(name, arguments, at, what);
        let op = match name {
            "Create" => return self.create_as(operation, arguments, expected),
            "QueryInfo" => {
                let [info_type, class] = [short(1, "type of information")?, short(2, "class")?];
                let byte = |value: u32, what: &str| {
                    u8::try_from(value).map_err(|_| self.error(format!("there is no {what} {value}"), "write 0 to 255"))
                };
                let info = InfoLevel::from_wire(byte(info_type, "type of information")?, byte(class, "class")?);
                return self.on_handle(operation, arguments, expected, |slot| Op::QueryFile { slot, info });
            }
            "QueryDirectory" => return self.query_directory(operation, arguments, expected),
            "SetEnd" => {
                let size = number(1, "size")?;
                return self.on_handle(operation, arguments, expected, |slot| Op::SetEnd { slot, size });
            }
            "SetDelete" => {
                let delete = number(1, "1 or 0")? != 0;
                return self.on_handle(operation, arguments, expected, |slot| Op::SetDelete { slot, delete });
            }
            "RenameOpen" => {
                let (to, replace) =
                    (self.path(name, arguments, 1, Last::Name)?, self.number_at(name, arguments, 2, "1 or 0")? != 0);
                return self.on_handle(operation, arguments, expected, |slot| Op::RenameOpen { slot, to, replace });
            }
            "NTCreateX" => return self.create(operation, arguments, expected),
            "Open" => return self.open(operation, arguments, expected),
            "ReadX" => {
                let (offset, length) = (number(1, "offset")?, short(2, "length")?);
                let got = if arguments.len() > 3 { number(3, "length that is answered")? } else { u64::from(length) };
                // Past the end of the file SMB1 returns success with no bytes; the client maps that to END_OF_FILE in
                // every dialect.
                let end = got == 0 && length > 0 && expected == Expected::Status(NtStatus::SUCCESS);
                let expected = if end { Expected::Status(NtStatus::END_OF_FILE) } else { expected };
                return self.on_handle(operation, arguments, expected, |slot| Op::Read { slot, offset, length });
            }
            "WriteX" | "Write" => {
                let (offset, length) = (number(1, "offset")?, short(2, "length")?);
                // A core write of zero bytes sets the end of the file (MS-CIFS 2.2.4.12).
                let cuts = name == "Write" && length == 0;
                return self.on_handle(operation, arguments, expected, |slot| match cuts {
                    true => Op::SetEnd { slot, size: offset },
                    false => Op::Write { slot, offset, length },
                });
            }
            "Read" => {
                let (offset, length) = (number(1, "offset")?, short(2, "length")?);
                return self.on_handle(operation, arguments, expected, |slot| Op::Read { slot, offset, length });
            }
            "Close" => {
                let key = self.key(operation, arguments)?;
                let Some(slot) = self.open.remove(&key) else { return self.skip() };
                self.free.push(slot);
                Op::Close { slot }
            }
            "Flush" => return self.on_handle(operation, arguments, expected, |slot| Op::Flush { slot }),
            "LockX" | "LockShared" | "UnlockX" => {
                let (offset, length) = (number(1, "offset")?, number(2, "length")?);
                return self.on_handle(operation, arguments, expected, |slot| match name {
                    "UnlockX" => Op::Unlock { slot, offset, length },
                    _ => Op::Lock { slot, offset, length, exclusive: name == "LockX" },
                });
            }
            "ReadQueue" | "WriteQueue" => return self.queue(operation, arguments, expected),
            "Control" => {
                let code = Fsctl(short(1, "control code")?);
                let control = FsctlProfile::by_code(code).filter(|control| control.of_file).ok_or_else(|| {
                    let known = FsctlProfile::ALL.iter().filter(|control| control.of_file);
                    let known: Vec<String> = known.map(|known| format!("{:#x}", known.code.0)).collect();
                    self.error(
                        format!("the control code {:#x} can't be sent", code.0),
                        format!("write one of {}", known.join(", ")),
                    )
                })?;
                return self.on_handle(operation, arguments, expected, |slot| Op::Control { slot, control });
            }
            "QUERY_FILE_INFORMATION" => {
                let level = short(1, "level")?;
                let info = file_level(level).ok_or_else(|| self.unknown_level(level))?;
                return self.on_handle(operation, arguments, expected, |slot| Op::QueryFile { slot, info });
            }
            "SET_FILE_INFORMATION" => {
                let level = short(1, "level")?;
                if !sets_basic(level) {
                    let hint = "a loadfile has no values to set: only 1004 (FileBasicInformation) leaves all as it is";
                    return Err(self.error(format!("SET_FILE_INFORMATION cannot set level {level}"), hint));
                }
                return self.on_handle(operation, arguments, expected, |slot| Op::SetBasic { slot });
            }
            "QUERY_FS_INFORMATION" => {
                let level = short(0, "level")?;
                let info = file_system_level(level).ok_or_else(|| self.unknown_level(level))?;
                Op::QueryFileSystem { info }
            }
            "QUERY_PATH_INFORMATION" => {
                let level = short(1, "level")?;
                let info = file_level(level).ok_or_else(|| self.unknown_level(level))?;
                Op::QueryPath { path: self.path(name, arguments, 0, Last::Name)?, info }
            }
            "FIND_FIRST" => {
                let (level, most) = (short(1, "level")?, short(2, "largest number of entries")?);
                let info = find_level(level).ok_or_else(|| self.unknown_level(level))?;
                Op::List { pattern: self.path(name, arguments, 0, Last::Pattern)?, info, most }
            }
            "Readdir" => {
                let directory = self.relative(name, arguments, 0, Last::Name)?;
                let pattern = if directory.is_empty() { "*".to_owned() } else { format!("{directory}\\*") };
                let pattern = self.names.intern(&pattern);
                Op::List { pattern, info: smbscope_client::Info::FILE_BOTH_DIRECTORY_INFORMATION, most: 0 }
            }
            "Unlink" => Op::Unlink { path: self.path(name, arguments, 0, Last::Name)? },
            "Rename" => Op::Rename {
                from: self.path(name, arguments, 0, Last::Name)?,
                to: self.path(name, arguments, 1, Last::Name)?,
            },
            "Mkdir" | "Rmdir" | "Deltree" => {
                let path = self.relative(name, arguments, 0, Last::Name)?;
                let above = arguments.first().is_some_and(|path| self.is_above_users(path));
                if above && name != "Deltree" {
                    // The directory of all users already exists, and stays.
                    return Ok(());
                }
                let path = self.names.intern(&path);
                match name {
                    "Mkdir" => Op::Mkdir { path },
                    "Rmdir" => Op::Rmdir { path },
                    _ => {
                        // dbench and smbtorture ignore the status: there may be nothing to remove.
                        self.push(operation, Op::Deltree { path }, Expected::Anything);
                        return Ok(());
                    }
                }
            }
            _ => Op::Sleep { time: Duration::from_micros(number(0, "time in microseconds")?) },
        };
        self.push(operation, op, expected);
        Ok(())
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
            u8::try_from(value).map_err(|_| self.error(format!("there is no {what} {value}"), "write 0 to 255"))
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
