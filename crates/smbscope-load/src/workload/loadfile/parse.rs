//! Turns the text of a loadfile into lines that are ready to perform.
//!
//! Lines mean the same as in smbtorture's `bench.nbench` and dbench. Fields are separated by blanks and may be quoted;
//! the last one is the expected status. A leading number is the time of the recording and is ignored: the load engine's
//! schedule decides when operations start. Operation names are case-insensitive. `\clients\client1` is the user's
//! directory.

use super::super::WorkloadError;
use super::super::action::Expected;
use super::super::error::{Location, suggest};
use super::super::made::NAMES_MAX;
use super::super::path::{Last, PathId, PathInterner, below};
use super::ranges::{self, QUEUED_MAX};
use super::{How, Loadfile, LoadfileLine, NOT_COUNTED, Op, OpenFor, PatternId, levels};
use smbscope_client::{FileRange, FsctlProfile, create_options};
use smbscope_wire::names::{Fsctl, InfoLevel};
use smbscope_wire::status::NtStatus;
use std::collections::HashMap;
use std::time::Duration;

/// Operations as a loadfile spells them, in the order of the results.
const OPERATIONS: [&str; 32] = [
    "NTCreateX",
    "Close",
    "ReadX",
    "WriteX",
    "Flush",
    "QUERY_PATH_INFORMATION",
    "QUERY_FILE_INFORMATION",
    "QUERY_FS_INFORMATION",
    "SET_FILE_INFORMATION",
    "FIND_FIRST",
    "Unlink",
    "Rename",
    "Mkdir",
    "Rmdir",
    "Deltree",
    "LockX",
    "UnlockX",
    "Sleep",
    // Spellings of dbench 4's SMB module and of smbtorture.
    "Write",
    "Open",
    "Read",
    "Readdir",
    // Raw SMB2 commands, which recordings use.
    "Create",
    "QueryInfo",
    "QueryDirectory",
    "SetEnd",
    "SetDelete",
    "RenameOpen",
    "LockShared",
    "Control",
    "ReadQueue",
    "WriteQueue",
];

/// Maximum number of lines in a loadfile. dbench's client.txt has 458,344. Each takes 40 bytes.
const LINES_MAX: u32 = 4_000_000;

/// More fields than any operation has.
const MOST_PARTS: usize = 9;

/// Meaning of `\clients` and `\clients\client1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clients {
    /// The directories of all users and of one user, as in dbench's loadfiles.
    Users,
    /// Ordinary directories, as in recordings.
    Names,
}

pub(super) fn parse(name: &str, text: &str, clients: Clients) -> Result<Loadfile, WorkloadError> {
    let mut parser = LoadfileParser::new(name, clients);
    for (number, line) in (1..).zip(text.lines()) {
        parser.number = number;
        if number > LINES_MAX {
            return Err(parser.error(format!("there are more than {LINES_MAX} lines"), "replay a part of them"));
        }
        parser.line(line)?;
    }
    let loadfile = parser.finish();
    if loadfile.made.is_too_large() {
        let place = Location { file: name.to_owned(), line: None, column: None };
        let what = format!("its paths and the directories above them have more than {} MiB", NAMES_MAX >> 20);
        return Err(WorkloadError::invalid(place, what, "replay fewer files, or give them shorter names"));
    }
    Ok(loadfile)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum LoadfileHandle {
    Number(i64),
    Path(u32),
}

struct LoadfileParser<'a> {
    name: &'a str,
    clients: Clients,
    number: u32,
    names: PathInterner,
    how: Vec<How>,
    how_ids: HashMap<How, u32>,
    patterns: Vec<Box<str>>,
    pattern_ids: HashMap<Box<str>, PatternId>,
    ranges: Vec<Box<[FileRange]>>,
    queued: usize,
    lines: Vec<LoadfileLine>,
    statuses: HashMap<String, Expected>,
    /// Slots of the handles that are open at this line.
    open: HashMap<LoadfileHandle, u32>,
    free: Vec<u32>,
    slots: u32,
    /// Number of lines up to the last point that still belonged to the set-up.
    set_up: usize,
    set_up_ended: bool,
    skipped: u32,
}

struct LoadfileFields<'t> {
    parts: [&'t str; MOST_PARTS],
    count: usize,
}

impl<'a> LoadfileParser<'a> {
    fn new(name: &'a str, clients: Clients) -> LoadfileParser<'a> {
        LoadfileParser {
            name,
            clients,
            number: 0,
            names: PathInterner::default(),
            how: Vec::new(),
            how_ids: HashMap::new(),
            patterns: Vec::new(),
            pattern_ids: HashMap::new(),
            ranges: Vec::new(),
            queued: 0,
            lines: Vec::new(),
            statuses: HashMap::new(),
            open: HashMap::new(),
            free: Vec::new(),
            slots: 0,
            set_up: 0,
            set_up_ended: false,
            skipped: 0,
        }
    }

    fn line(&mut self, text: &str) -> Result<(), WorkloadError> {
        let Some(all) = self.split(text)? else { return Ok(()) };
        let mut parts = &all.parts[..all.count];
        if parts[0].starts_with(|c: char| c.is_ascii_digit()) {
            parts[0].parse::<f64>().map_err(|_| {
                self.error(format!("\"{}\" is neither an operation nor a time", parts[0]), "write the operation first")
            })?;
            parts = &parts[1..];
        }
        let Some((&word, rest)) = parts.split_first() else {
            return Err(self.error("there is a time and nothing else", "write the operation behind the time"));
        };
        let Some(operation) = OPERATIONS.iter().position(|name| name.eq_ignore_ascii_case(word)) else {
            let hint = if word.starts_with("SMB") {
                "this is a loadfile of dbench 1: give one of dbench 2 or later".to_owned()
            } else {
                suggest(word, &OPERATIONS)
            };
            return Err(self.error(format!("there is no operation \"{word}\""), hint));
        };
        let Some((&status, arguments)) = rest.split_last() else {
            return Err(self.error(
                format!("{word} has no status"),
                "end the line with what the server is to answer, such as NT_STATUS_OK",
            ));
        };
        let expected = self.expected(status)?;
        self.operation(operation, arguments, expected)
    }

    /// Splits a line at blanks. Returns `None` for blank lines and comments.
    fn split<'t>(&self, text: &'t str) -> Result<Option<LoadfileFields<'t>>, WorkloadError> {
        let mut split = LoadfileFields { parts: [""; MOST_PARTS], count: 0 };
        let mut rest = text.trim();
        if rest.starts_with('#') {
            return Ok(None);
        }
        while !rest.is_empty() {
            let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
            let (part, after) = match quote {
                Some(quote) => rest[1..]
                    .split_once(quote)
                    .ok_or_else(|| self.error("a quotation mark is never closed", "close it behind the path"))?,
                None => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
            };
            let place = split.parts.get_mut(split.count);
            *place.ok_or_else(|| {
                self.error("the line has too many parts", "put paths with blanks into quotation marks")
            })? = part;
            split.count += 1;
            rest = after.trim_start();
        }
        Ok((split.count > 0).then_some(split))
    }

    fn operation(&mut self, operation: usize, arguments: &[&str], expected: Expected) -> Result<(), WorkloadError> {
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
                let info = levels::query_file(level).ok_or_else(|| self.unknown_level(level))?;
                return self.on_handle(operation, arguments, expected, |slot| Op::QueryFile { slot, info });
            }
            "SET_FILE_INFORMATION" => {
                let level = short(1, "level")?;
                if !levels::sets_basic(level) {
                    let hint = "a loadfile has no values to set: only 1004 (FileBasicInformation) leaves all as it is";
                    return Err(self.error(format!("SET_FILE_INFORMATION cannot set level {level}"), hint));
                }
                return self.on_handle(operation, arguments, expected, |slot| Op::SetBasic { slot });
            }
            "QUERY_FS_INFORMATION" => {
                let level = short(0, "level")?;
                let info = levels::query_file_system(level).ok_or_else(|| self.unknown_level(level))?;
                Op::QueryFileSystem { info }
            }
            "QUERY_PATH_INFORMATION" => {
                let level = short(1, "level")?;
                let info = levels::query_file(level).ok_or_else(|| self.unknown_level(level))?;
                Op::QueryPath { path: self.path(name, arguments, 0, Last::Name)?, info }
            }
            "FIND_FIRST" => {
                let (level, most) = (short(1, "level")?, short(2, "largest number of entries")?);
                let info = levels::find(level).ok_or_else(|| self.unknown_level(level))?;
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
        let ranges = ranges::parse(text, QUEUED_MAX - self.queued)
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

    /// Allocates a slot for an open. An open that is expected to fail leaves the slot free. If the handle is already
    /// open, it is closed first; otherwise it would leak.
    fn take_slot(&mut self, key: LoadfileHandle, expected: Expected) -> u32 {
        let succeeds = match expected {
            Expected::Success | Expected::Anything => true,
            Expected::Status(status) => !status.is_error(),
            Expected::SuccessOrRefusalOf(_) => true,
            Expected::Failure => false,
        };
        if succeeds && let Some(slot) = self.open.remove(&key) {
            self.close_unasked(slot);
            self.free.push(slot);
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots += 1;
            self.slots - 1
        });
        if succeeds {
            self.open.insert(key, slot);
        } else {
            self.free.push(slot);
        }
        slot
    }

    fn close_unasked(&mut self, slot: u32) {
        let line =
            LoadfileLine { op: Op::Close { slot }, expected: Expected::Anything, number: 0, operation: NOT_COUNTED };
        self.lines.push(line);
    }

    fn on_handle(
        &mut self,
        operation: usize,
        arguments: &[&str],
        expected: Expected,
        op: impl FnOnce(u32) -> Op,
    ) -> Result<(), WorkloadError> {
        let key = self.key(operation, arguments)?;
        let Some(slot) = self.open.get(&key).copied() else { return self.skip() };
        self.push(operation, op(slot), expected);
        Ok(())
    }

    fn key(&mut self, operation: usize, arguments: &[&str]) -> Result<LoadfileHandle, WorkloadError> {
        let name = OPERATIONS[operation];
        match arguments.first() {
            Some(path) if path.starts_with(['\\', '/']) => {
                Ok(LoadfileHandle::Path(self.path(name, arguments, 0, Last::Name)?.number()))
            }
            _ => self.integer_at(name, arguments, 0, "handle").map(LoadfileHandle::Number),
        }
    }

    fn skip(&mut self) -> Result<(), WorkloadError> {
        self.skipped += 1;
        Ok(())
    }

    fn push(&mut self, operation: usize, op: Op, expected: Expected) {
        // The set-up ends at the first read, change, lock or removal. It is cut back to the last point where nothing
        // was open, so that no later line needs one of its handles.
        let makes = matches!(
            op,
            Op::Create { .. }
                | Op::CreateAs { .. }
                | Op::Open { .. }
                | Op::Close { .. }
                | Op::Write { .. }
                | Op::Mkdir { .. }
                | Op::Deltree { .. }
                | Op::QueryPath { .. }
                | Op::QueryFile { .. }
                | Op::QueryFileSystem { .. }
                | Op::List { .. }
        );
        self.set_up_ended |= !makes;
        let operation = if matches!(op, Op::Sleep { .. }) { NOT_COUNTED } else { operation as u8 };
        self.lines.push(LoadfileLine { op, expected, number: self.number, operation });
        if !self.set_up_ended && self.open.is_empty() {
            self.set_up = self.lines.len();
        }
    }

    fn expected(&mut self, text: &str) -> Result<Expected, WorkloadError> {
        if let Some(expected) = self.statuses.get(text) {
            return Ok(*expected);
        }
        let upper = text.to_ascii_uppercase();
        let expected = match upper.as_str() {
            "SUCCESS" => Expected::Success,
            "ERROR" => Expected::Failure,
            "*" => Expected::Anything,
            "NT_STATUS_OK" => Expected::Status(NtStatus::SUCCESS),
            _ => Expected::Status(self.status(text, &upper)?),
        };
        self.statuses.insert(text.to_owned(), expected);
        Ok(expected)
    }

    fn status(&self, text: &str, upper: &str) -> Result<NtStatus, WorkloadError> {
        let hint = "write it as NT_STATUS_OBJECT_NAME_NOT_FOUND, as 0xc0000034, or as SUCCESS, ERROR or *";
        if let Some(digits) = upper.strip_prefix("0X") {
            let value = u32::from_str_radix(digits, 16);
            return value.map(NtStatus).map_err(|_| self.error(format!("\"{text}\" is no status"), hint));
        }
        let name = upper.strip_prefix("NT_").unwrap_or(upper);
        let known = NtStatus::KNOWN.iter().find(|status| status.name() == Some(name));
        known.copied().ok_or_else(|| self.error(format!("\"{text}\" is no status"), hint))
    }

    fn path(&mut self, name: &str, arguments: &[&str], at: usize, last: Last) -> Result<PathId, WorkloadError> {
        let path = self.relative(name, arguments, at, last)?;
        Ok(self.names.intern(&path))
    }

    /// Makes a path relative to the user's own directory, `\clients\client1`.
    fn relative(&self, name: &str, arguments: &[&str], at: usize, last: Last) -> Result<String, WorkloadError> {
        let Some(path) = arguments.get(at) else {
            return Err(self.error(format!("{name} has too few paths"), "paths come first, in quotation marks"));
        };
        let hint = "use names that stay inside, without : * ? \" < > |";
        let path = below(path, last).map_err(|what| self.error(what, hint))?;
        if self.is_above_users(&path) {
            return Ok(String::new());
        }
        let (first, rest) = path.split_once('\\').unwrap_or((&path, ""));
        let (second, inside) = rest.split_once('\\').unwrap_or((rest, ""));
        let own = self.clients == Clients::Users
            && first.eq_ignore_ascii_case("clients")
            && second.eq_ignore_ascii_case("client1");
        Ok(if own { inside.to_owned() } else { path })
    }

    /// Returns true for `\clients`, the parent of all users' directories.
    fn is_above_users(&self, path: &str) -> bool {
        self.clients == Clients::Users && path.trim_matches(['\\', '/']).eq_ignore_ascii_case("clients")
    }

    fn number_at(&self, name: &str, arguments: &[&str], at: usize, what: &str) -> Result<u64, WorkloadError> {
        let number = self.integer_at(name, arguments, at, what)?;
        u64::try_from(number)
            .map_err(|_| self.error(format!("the {what} of {name} is negative"), "write a number from 0"))
    }

    fn short_at(&self, name: &str, arguments: &[&str], at: usize, what: &str) -> Result<u32, WorkloadError> {
        let number = self.number_at(name, arguments, at, what)?;
        u32::try_from(number)
            .map_err(|_| self.error(format!("the {what} of {name} is above 4294967295"), "write a smaller one"))
    }

    fn integer_at(&self, name: &str, arguments: &[&str], at: usize, what: &str) -> Result<i64, WorkloadError> {
        let Some(text) = arguments.get(at) else {
            return Err(self.error(format!("{name} has no {what}"), "see docs/workloads.md for the parts of each line"));
        };
        let number = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(digits) => i64::from_str_radix(digits, 16),
            None => text.parse(),
        };
        number.map_err(|_| self.error(format!("the {what} of {name} is \"{text}\""), "write a number: 4096 or 0x1000"))
    }

    fn unknown_level(&self, level: u32) -> WorkloadError {
        let hint = "give a level of MS-CIFS 2.2.2.3, or 1000 and the number of a class of MS-FSCC 2.4";
        self.error(format!("there is no information level {level} (0x{level:x}) for this"), hint)
    }

    fn error(&self, what: impl Into<String>, hint: impl Into<String>) -> WorkloadError {
        WorkloadError::invalid(Location::line(self.name, self.number), what, hint)
    }

    /// Makes the loadfile repeatable: a pass starts with an empty user directory and ends with all handles closed.
    fn finish(mut self) -> Loadfile {
        let mut left: Vec<u32> = self.open.values().copied().collect();
        left.sort_unstable();
        let ends_with_removal = matches!(self.lines.last(), Some(LoadfileLine { op: Op::Deltree { .. }, .. }));
        let removal = if ends_with_removal && !left.is_empty() { self.lines.pop() } else { None };
        left.into_iter().for_each(|slot| self.close_unasked(slot));
        self.lines.extend(removal);

        let root = self.names.intern("");
        let unasked = |op| LoadfileLine { op, expected: Expected::Anything, number: 0, operation: NOT_COUNTED };
        let mut begin = Vec::new();
        if !matches!(self.lines.first(), Some(LoadfileLine { op: Op::Deltree { path }, .. }) if *path == root) {
            begin.push(unasked(Op::Deltree { path: root }));
        }
        let is_made = self.lines.iter().any(|line| makes_directory(&line.op, root));
        if !is_made {
            begin.push(unasked(Op::Mkdir { path: root }));
        }
        // After the file's own removal of the directory, create it again.
        let after = usize::from(begin.len() == 1 && !is_made);
        self.set_up += begin.len();
        self.lines.splice(after..after, begin);

        let used: Vec<usize> = (0..OPERATIONS.len())
            .filter(|index| self.lines.iter().any(|line| usize::from(line.operation) == *index))
            .collect();
        for line in &mut self.lines {
            if let Some(index) = used.iter().position(|operation| *operation == usize::from(line.operation)) {
                line.operation = index as u8;
            }
        }
        self.lines.shrink_to_fit();
        Loadfile {
            made: self.names.made(),
            names: self.names,
            how: self.how,
            patterns: self.patterns,
            ranges: self.ranges,
            operations: used.into_iter().map(|index| OPERATIONS[index].to_owned()).collect(),
            lines: self.lines,
            set_up: self.set_up,
            repeat: 0,
            once: false,
            skipped: self.skipped,
        }
    }
}

fn makes_directory(op: &Op, directory: PathId) -> bool {
    match op {
        Op::Mkdir { path } => *path == directory,
        Op::Create { path, options, disposition, .. } => {
            *path == directory && options & create_options::DIRECTORY != 0 && !matches!(disposition, 1 | 4)
        }
        _ => false,
    }
}
