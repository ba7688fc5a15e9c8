//! Turns the text of a loadfile into lines that are ready to perform.
//!
//! Lines mean the same as in smbtorture's `bench.nbench` and dbench. Fields are separated by blanks and may be quoted;
//! the last one is the expected status. A leading number is the time of the recording and is ignored: the load engine's
//! schedule decides when operations start. Operation names are case-insensitive. `\clients\client1` is the user's
//! directory.

mod operations;

pub use operations::ranges_text;

use super::{How, Loadfile, LoadfileLine, LoadfileThread, NOT_COUNTED, Op, PatternId};
use crate::workload::action::Expected;
use crate::workload::paths::{Last, NAMES_MAX, PathId, PathInterner, below};
use crate::workload::threads::{RecordedClient, SessionsPerUser};
use crate::workload::{Location, WorkloadError, suggest};
use smbscope_client::{FileRange, create_options};
use smbscope_wire::status::NtStatus;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

const OPERATIONS: [&str; 33] = [
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
    "Await",
];

/// Lines of a loadfile; more are refused. dbench's client.txt has 458,344. Each takes 40 bytes.
const LINES_MAX: u32 = 4_000_000;

/// More fields than any operation has.
const MOST_PARTS: usize = 9;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clients {
    /// The directories of all users and of one user, as in dbench's loadfiles.
    Users,
    /// Ordinary directories, as in recordings.
    Names,
}

pub(super) fn parse(name: &str, text: &str, clients: Clients) -> Result<Loadfile, WorkloadError> {
    let mut parser = LoadfileParser::new(name, clients);
    parser.lines(text)?;
    parser.finish().not_too_large(name)
}

/// Parses the threads of all clients of a recording. The first thread of a client creates its files.
pub(super) fn parse_recorded(name: &str, clients: &[RecordedClient]) -> Result<Loadfile, WorkloadError> {
    let mut parser = LoadfileParser::new(name, Clients::Names);
    let (mut threads, mut pools) = (Vec::new(), Vec::new());
    let root = parser.names.intern("");
    for client in clients {
        parser.threads = client.threads.len() as u32;
        for (number, steps) in client.threads.iter().enumerate() {
            let start = parser.lines.len();
            if number == 0 {
                parser.push_unasked(Op::Deltree { path: root });
                parser.push_unasked(Op::Mkdir { path: root });
                parser.lines(&client.files)?;
                parser.close_all();
            }
            let repeat = parser.lines.len();
            parser.lines(steps)?;
            parser.close_all();
            let lines = start..parser.lines.len();
            threads.push(LoadfileThread { lines, set_up: repeat, repeat, pool: None });
        }
        let first = threads.len() - client.threads.len();
        for pool in &client.pools {
            for thread in &pool.threads {
                let found = thread.checked_sub(1).and_then(|at| threads.get_mut(first + at as usize));
                let Some(free) = found.filter(|thread| thread.pool.is_none() && client.threads.len() > 1) else {
                    let what = format!("a pool has the thread {thread}, which is not there or in two pools");
                    return Err(parser.error(what, "threads count from 1; a client with pools has 2 or more"));
                };
                free.pool = Some(pools.len());
            }
            let mut tasks = Vec::new();
            for task in &pool.tasks {
                let start = parser.lines.len();
                parser.lines(task)?;
                parser.close_all();
                tasks.push(start..parser.lines.len());
            }
            tasks.retain(|task: &Range<usize>| !task.is_empty());
            pools.push(tasks);
        }
    }
    let sessions = Some(SessionsPerUser::of_clients(clients));
    Loadfile { threads, pools, sessions, ..parser.complete() }.not_too_large(name)
}

impl Loadfile {
    fn not_too_large(self, name: &str) -> Result<Loadfile, WorkloadError> {
        if self.made.is_too_large() {
            let place = Location { file: name.to_owned(), line: None, column: None };
            let what = format!("its paths and the directories above them have more than {} MiB", NAMES_MAX >> 20);
            return Err(WorkloadError::invalid(place, what, "replay fewer files, or give them shorter names"));
        }
        Ok(self)
    }
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
    /// Threads of the recorded client, which a line may await.
    threads: u32,
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
            threads: 0,
        }
    }

    fn lines(&mut self, text: &str) -> Result<(), WorkloadError> {
        for line in text.lines() {
            self.number += 1;
            if self.number > LINES_MAX {
                return Err(self.error(format!("there are more than {LINES_MAX} lines"), "replay a part of them"));
            }
            self.line(line)?;
        }
        Ok(())
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
            return Err(self.error("the line has only a time", "write the operation after the time"));
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
                "end the line with the expected status, such as NT_STATUS_OK",
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
                    .ok_or_else(|| self.error("a quotation mark is never closed", "close it after the path"))?,
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
        self.push_unasked(Op::Close { slot });
    }

    fn push_unasked(&mut self, op: Op) {
        self.lines.push(unasked(op));
    }

    /// Closes what a thread leaves open, because the next one has a session of its own.
    fn close_all(&mut self) {
        let mut left: Vec<u32> = self.open.drain().map(|(_, slot)| slot).collect();
        left.sort_unstable();
        self.free.extend(&left);
        left.into_iter().for_each(|slot| self.close_unasked(slot));
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
        let operation = if matches!(op, Op::Sleep { .. } | Op::Await { .. }) { NOT_COUNTED } else { operation as u8 };
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
            return value.map(NtStatus).map_err(|_| self.error(format!("\"{text}\" is not a status"), hint));
        }
        let name = upper.strip_prefix("NT_").unwrap_or(upper);
        let known = NtStatus::KNOWN.iter().find(|status| status.name() == Some(name));
        known.copied().ok_or_else(|| self.error(format!("\"{text}\" is not a status"), hint))
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

    fn error(&self, what: impl Into<String>, hint: impl Into<String>) -> WorkloadError {
        WorkloadError::invalid(Location::line(self.name, self.number), what, hint)
    }

    /// Makes the loadfile repeatable: a pass starts with an empty user directory and ends with all handles closed.
    fn finish(mut self) -> Loadfile {
        let ends_with_removal = matches!(self.lines.last(), Some(LoadfileLine { op: Op::Deltree { .. }, .. }));
        let removal = if ends_with_removal && !self.open.is_empty() { self.lines.pop() } else { None };
        self.close_all();
        self.lines.extend(removal);

        let root = self.names.intern("");
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
        let lines = 0..self.lines.len();
        let thread = LoadfileThread { lines, set_up: self.set_up, ..LoadfileThread::default() };
        Loadfile { threads: vec![thread], ..self.complete() }
    }

    /// Numbers the operations that occur. The threads are up to the caller.
    fn complete(mut self) -> Loadfile {
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
            threads: Vec::new(),
            pools: Vec::new(),
            sessions: None,
            progress: Arc::default(),
            once: false,
            skipped: self.skipped,
        }
    }
}

fn unasked(op: Op) -> LoadfileLine {
    LoadfileLine { op, expected: Expected::Anything, number: 0, operation: NOT_COUNTED }
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
