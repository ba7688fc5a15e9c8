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
            _ => Op::Sleep { time: Duration::from_micros(self.number_at(name, arguments, 0, "time in microseconds")?) },
        })
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
