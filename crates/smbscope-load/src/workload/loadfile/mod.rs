//! dbench loadfiles: one operation per line, in the format of dbench 2 to 4, smbtorture's `bench.nbench` and the Debian
//! package's `client.txt`.
//!
//! A parsed line takes 40 bytes, so the 458,344 lines of `client.txt` take 18 MB, shared by all users. A user only has
//! a position and its own paths. Lines are parsed in `parse` and performed by [`LoadfileScript`].

mod parse;
#[cfg(test)]
mod tests;

pub use parse::ranges_text;

use super::Location;
use super::action::{Action, Expected, HandleSlot, Script, ScriptStep};
use super::paths::{PathId, PathInterner, UserPaths};
use super::threads::{PassPosition, RecordedClient, SessionPlace, SessionsPerUser, ThreadProgress};
use super::{CreatedPaths, Own, UserSeat, WorkloadError};
use parse::Clients;
use smbscope_client::{ByteRangeLock, CreateDisposition, FileRange, FsctlProfile, Info, access, create_options};
use smbscope_model::Dialect;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Debug, Clone)]
pub(super) struct Loadfile {
    names: PathInterner,
    how: Vec<How>,
    patterns: Vec<Box<str>>,
    ranges: Vec<Box<[FileRange]>>,
    made: CreatedPaths,
    operations: Vec<String>,
    lines: Vec<LoadfileLine>,
    /// One thread, or the threads of a recording, by client.
    threads: Vec<LoadfileThread>,
    /// Tasks that threads share, by pool: the lines of each.
    pools: Vec<Vec<Range<usize>>>,
    /// Sessions of the recorded clients. Absent for other loadfiles.
    sessions: Option<SessionsPerUser>,
    /// Progress of the users' threads, by user. Shared by all scripts of the workload.
    progress: Arc<Mutex<BTreeMap<u32, ThreadProgress>>>,
    once: bool,
    skipped: u32,
}

/// Lines that one session performs.
#[derive(Debug, Clone, Default, PartialEq)]
struct LoadfileThread {
    lines: Range<usize>,
    /// End of the leading lines that create the files which the rest works with.
    set_up: usize,
    /// First line of every pass but the first.
    repeat: usize,
    /// Pool from which the thread takes tasks after its own lines.
    pool: Option<usize>,
}

/// A validated line: its handle is open, its path stays inside, its levels and status are known.
#[derive(Debug, Clone, Copy)]
struct LoadfileLine {
    op: Op,
    expected: Expected,
    /// Line number in the file; 0 for a line that the parser inserted.
    number: u32,
    operation: u8,
}

const NOT_COUNTED: u8 = u8::MAX;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Op {
    Create { path: PathId, options: u32, disposition: u8, slot: u32 },
    CreateAs { path: PathId, how: u32, slot: u32 },
    Open { path: PathId, access: OpenFor, disposition: u8, slot: u32 },
    Close { slot: u32 },
    Read { slot: u32, offset: u64, length: u32 },
    Write { slot: u32, offset: u64, length: u32 },
    SetEnd { slot: u32, size: u64 },
    Flush { slot: u32 },
    Queue { slot: u32, depth: u32, ranges: u32, writes: bool },
    Lock { slot: u32, offset: u64, length: u64, exclusive: bool },
    Unlock { slot: u32, offset: u64, length: u64 },
    Control { slot: u32, control: &'static FsctlProfile },
    QueryPath { path: PathId, info: Info },
    QueryFile { slot: u32, info: Info },
    QueryFileSystem { info: Info },
    SetBasic { slot: u32 },
    SetDelete { slot: u32, delete: bool },
    RenameOpen { slot: u32, to: PathId, replace: bool },
    ListOpen { slot: u32, pattern: PatternId, class: u8, flags: u8 },
    List { pattern: PathId, info: Info, most: u32 },
    Unlink { path: PathId },
    Rename { from: PathId, to: PathId },
    Mkdir { path: PathId },
    Rmdir { path: PathId },
    Deltree { path: PathId },
    Sleep { time: Duration },
    Await { thread: u32, operations: u32 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PatternId(u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct How {
    access: u32,
    share: u32,
    disposition: u8,
    options: u32,
    attributes: u32,
}

impl How {
    fn from_create(options: u32, disposition: u8) -> How {
        // As in smbtorture: files are opened with every access that a line with their handle may need.
        let access = match options & create_options::DIRECTORY != 0 {
            true => access::READ_DATA | access::READ_ATTRIBUTES,
            false => access::READ_DATA | access::WRITE_DATA | access::READ_ATTRIBUTES | access::WRITE_ATTRIBUTES,
        };
        How { access, share: SHARE_ALL, disposition, options, attributes: 0 }
    }

    fn from_open(access: OpenFor, disposition: u8) -> How {
        let access = match access {
            OpenFor::Reading => access::READ_DATA | access::READ_ATTRIBUTES,
            OpenFor::Writing => access::WRITE_DATA | access::WRITE_ATTRIBUTES | access::READ_ATTRIBUTES,
            OpenFor::Both => {
                access::READ_DATA | access::WRITE_DATA | access::READ_ATTRIBUTES | access::WRITE_ATTRIBUTES
            }
        };
        How { access, share: SHARE_ALL, disposition, options: create_options::NON_DIRECTORY, attributes: 0 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenFor {
    Reading,
    Writing,
    Both,
}

/// Returns an error with the reason if a recording cannot contain this line.
pub fn check_line(line: &str) -> Result<(), String> {
    parse::parse("", line, Clients::Names).map(drop).map_err(|error| match error {
        WorkloadError::Invalid { what, .. } => what,
        other => other.to_string(),
    })
}

impl Loadfile {
    pub(super) fn parse(name: &str, text: &str) -> Result<Loadfile, WorkloadError> {
        parse::parse(name, text, Clients::Users)?.not_empty(name)
    }

    /// Parses the lines of a recording, in which `\clients` has no special meaning.
    pub(super) fn parse_recorded(name: &str, clients: &[RecordedClient]) -> Result<Loadfile, WorkloadError> {
        parse::parse_recorded(name, clients)?.not_empty(name)
    }

    fn not_empty(self, name: &str) -> Result<Loadfile, WorkloadError> {
        if self.lines.iter().all(|line| line.number == 0) {
            let place = Location { file: name.to_owned(), line: None, column: None };
            return Err(WorkloadError::invalid(
                place,
                "the loadfile has no operation",
                "give a file with lines such as: Mkdir \"\\dir\" NT_STATUS_OK",
            ));
        }
        Ok(self)
    }

    /// Starts every pass but the first at this line of the file, for files whose end restores the state that this line
    /// expects.
    pub(super) fn repeat_from_line(mut self, number: u32) -> Loadfile {
        let first = self.lines.iter().position(|line| line.number >= number).unwrap_or(0);
        for thread in &mut self.threads {
            (thread.repeat, thread.set_up) = (first, first);
        }
        self
    }

    pub(super) fn sessions(&self) -> Option<&SessionsPerUser> {
        self.sessions.as_ref()
    }

    fn progress(&self, user: u32, threads: u32) -> ThreadProgress {
        let mut all = self.progress.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        all.entry(user).or_insert_with(|| ThreadProgress::new(threads as usize)).clone()
    }

    pub(super) fn once(self) -> Loadfile {
        Loadfile { once: true, ..self }
    }

    pub(super) fn thinking(&self, by: f64) -> Loadfile {
        let mut scaled = self.clone();
        for line in &mut scaled.lines {
            if let Op::Sleep { time } = &mut line.op {
                *time = Duration::try_from_secs_f64(time.as_secs_f64() * by).unwrap_or(Duration::MAX);
            }
        }
        scaled
    }

    /// Returns the first operation that the dialect can't perform, and the reason.
    pub(super) fn unsupported_in(&self, dialect: Dialect) -> Option<(String, &'static str)> {
        self.lines.iter().find_map(|line| match line.op {
            Op::ListOpen { .. } if !matches!(dialect, Dialect::Smb2(_)) => {
                Some(("QUERY_DIRECTORY".to_owned(), "only SMB2 and SMB 3 list by an open directory"))
            }
            Op::Control { control, .. } => control.unsupported_in(dialect).map(|why| (control.code.to_string(), why)),
            _ => None,
        })
    }

    pub(super) fn has_queues(&self) -> bool {
        !self.ranges.is_empty()
    }

    pub(super) fn operations(&self) -> &[String] {
        &self.operations
    }

    /// Number of lines that can never be performed because the file never opens their handle.
    pub(super) fn skipped(&self) -> u32 {
        self.skipped
    }

    pub(super) fn made(&self) -> &CreatedPaths {
        &self.made
    }

    pub(super) fn set_up_bytes(&self) -> u64 {
        let of_thread = |thread: &LoadfileThread| {
            let lengths = self.lines[thread.lines.start..thread.set_up].iter().map(|line| match line.op {
                Op::Write { length, .. } => u64::from(length),
                _ => 0,
            });
            lengths.sum::<u64>()
        };
        self.threads.iter().map(of_thread).sum()
    }

    pub(super) fn memory(&self) -> usize {
        self.lines.capacity() * size_of::<LoadfileLine>()
    }
}

/// FILE_SHARE_READ, FILE_SHARE_WRITE and FILE_SHARE_DELETE. A loadfile opens files twice without stating a share mode.
const SHARE_ALL: u32 = 0x7;

#[derive(Debug)]
pub(super) struct LoadfileScript {
    loadfile: Arc<Loadfile>,
    thread: LoadfileThread,
    paths: UserPaths,
    /// Lines left, of the thread's own or of a task.
    left: Range<usize>,
    passes: u32,
    /// Present if the user has several threads.
    others: Option<OtherThreads>,
}

/// A thread's link to the other threads of its user.
#[derive(Debug)]
struct OtherThreads {
    progress: ThreadProgress,
    own: u32,
    count: u32,
    performed: u32,
    /// True if the last step was an operation, which is complete when the next step is taken.
    performs: bool,
    /// Next thread to await at the start of a pass: a pass begins when all threads have ended the last one.
    gathers: u32,
}

impl OtherThreads {
    fn last_step_is_complete(&mut self, pass: u32) {
        if std::mem::take(&mut self.performs) {
            self.performed += 1;
            self.progress.reached(self.own, PassPosition { pass, operations: self.performed });
        }
    }

    fn pass_is_complete(&mut self, pass: u32) {
        self.progress.reached(self.own, PassPosition { pass, operations: PassPosition::END });
        (self.performed, self.gathers) = (0, 0);
    }

    /// Returns the next wait for another thread at the start of a pass.
    fn gather(&mut self, pass: u32) -> Option<Action<'static>> {
        let thread = (self.gathers..self.count).find(|thread| *thread != self.own);
        self.gathers = thread.map_or(u32::MAX, |thread| thread + 1);
        let position = PassPosition { pass: pass.checked_sub(1)?, operations: PassPosition::END };
        thread.map(|thread| Action::Await { thread, position })
    }
}

impl LoadfileScript {
    pub(super) fn new(loadfile: Arc<Loadfile>, seat: &UserSeat) -> LoadfileScript {
        let place = loadfile.sessions.as_ref().map(|sessions| sessions.place(seat.number));
        let number = place.map_or(seat.number, |place| place.user);
        let others = place.filter(|place| place.of > 1).map(|SessionPlace { user, own, of, .. }| {
            let progress = loadfile.progress(user, of);
            OtherThreads { progress, own, count: of, performed: 0, performs: false, gathers: of }
        });
        let paths = loadfile.names.resolve(&UserSeat { number, ..seat.clone() });
        let thread =
            loadfile.threads.get(place.map_or(0, |place| place.of_round as usize)).cloned().unwrap_or_default();
        let left = thread.lines.clone();
        LoadfileScript { loadfile, thread, paths, left, passes: 0, others }
    }

    /// Takes the next task of the thread's pool.
    fn take_task(&self) -> Option<Range<usize>> {
        let pool = self.thread.pool?;
        let tasks = &self.loadfile.pools[pool];
        let task = self.others.as_ref()?.progress.take_task(pool, self.passes, tasks.len())?;
        tasks.get(task).cloned()
    }

    fn end_pass(&mut self) {
        self.left = self.thread.repeat..self.thread.lines.end;
        if let Some(others) = &mut self.others {
            others.pass_is_complete(self.passes);
        }
        self.passes += 1;
    }
}

impl Script for LoadfileScript {
    fn operations(&self) -> &[String] {
        self.loadfile.operations()
    }

    fn next(&mut self) -> Option<ScriptStep<'_>> {
        if let Some(others) = &mut self.others {
            others.last_step_is_complete(self.passes);
        }
        if self.loadfile.once && self.passes > 0 {
            return None;
        }
        if let Some(others) = &mut self.others {
            if let Some(action) = others.gather(self.passes) {
                return Some(not_counted(action));
            }
            if self.left.is_empty() {
                match self.take_task() {
                    Some(task) => self.left = task,
                    None => {
                        self.end_pass();
                        return Some(not_counted(Action::Think(Duration::ZERO)));
                    }
                }
            }
        }
        let is_set_up = self.sets_up();
        let line = self.left.next().and_then(|at| self.loadfile.lines.get(at)).copied()?;
        let pass = self.passes;
        match &mut self.others {
            // The other threads hear of the end of a pass when its last operation is complete.
            Some(others) => others.performs = !is_set_up && line.operation != NOT_COUNTED,
            None if self.left.is_empty() => self.end_pass(),
            None => {}
        }
        let mut step = step(line, &self.paths, &self.loadfile);
        if let Action::Await { position, .. } = &mut step.action {
            position.pass = pass;
        }
        Some(step)
    }

    fn restart(&mut self) {
        self.left = self.thread.lines.clone();
        self.passes = 0;
        self.abandon();
    }

    fn abandon(&mut self) {
        if let Some(others) = &mut self.others {
            (others.performs, others.performed) = (false, 0);
            others.progress.gives_up(others.own);
        }
    }

    fn sets_up(&self) -> bool {
        self.passes == 0 && self.left.start < self.thread.set_up
    }

    fn passes(&self) -> Option<u32> {
        Some(self.passes)
    }

    fn progress(&self) -> Option<ThreadProgress> {
        self.others.as_ref().map(|others| others.progress.clone())
    }
}

fn not_counted(action: Action<'_>) -> ScriptStep<'_> {
    ScriptStep { action, operation: None, expected: Expected::Anything, completes: false, line: None }
}

fn step<'a>(line: LoadfileLine, paths: &'a UserPaths, loadfile: &'a Loadfile) -> ScriptStep<'a> {
    ScriptStep {
        action: action(line.op, paths, loadfile),
        operation: (line.operation != NOT_COUNTED).then_some(usize::from(line.operation)),
        expected: line.expected,
        completes: line.operation != NOT_COUNTED,
        line: (line.number != 0).then_some(line.number),
    }
}

fn action<'a>(op: Op, paths: &'a UserPaths, loadfile: &'a Loadfile) -> Action<'a> {
    match op {
        Op::CreateAs { path, how, slot } => open(loadfile.how[how as usize], paths.get(path), slot),
        Op::SetDelete { slot, delete } => Action::SetDelete(HandleSlot(slot), delete),
        Op::RenameOpen { slot, to, replace } => {
            Action::RenameOpen { slot: HandleSlot(slot), to: paths.get(to), replace }
        }
        Op::ListOpen { slot, pattern, class, flags } => {
            Action::ListOpen { slot: HandleSlot(slot), pattern: &loadfile.patterns[pattern.0 as usize], class, flags }
        }
        Op::Create { path, options, disposition, slot } => {
            open(How::from_create(options, disposition), paths.get(path), slot)
        }
        Op::Open { path, access, disposition, slot } => {
            open(How::from_open(access, disposition), paths.get(path), slot)
        }
        Op::Close { slot } => Action::Close(HandleSlot(slot)),
        Op::Read { slot, offset, length } => Action::Read { slot: HandleSlot(slot), offset, length },
        Op::Write { slot, offset, length } => Action::Write { slot: HandleSlot(slot), offset, length },
        Op::SetEnd { slot, size } => Action::SetEnd(HandleSlot(slot), size),
        Op::Flush { slot } => Action::Flush(HandleSlot(slot)),
        Op::Queue { slot, depth, ranges, writes } => {
            Action::Queue { slot: HandleSlot(slot), ranges: &loadfile.ranges[ranges as usize], depth, writes }
        }
        Op::Lock { slot, offset, length, exclusive } => {
            Action::Lock(HandleSlot(slot), ByteRangeLock { offset, length, exclusive, wait: false })
        }
        Op::Unlock { slot, offset, length } => Action::Unlock { slot: HandleSlot(slot), offset, length },
        Op::Control { slot, control } => Action::Control { control, slot: Some(HandleSlot(slot)) },
        Op::QueryPath { path, info } => Action::QueryPath(paths.get(path), info),
        Op::QueryFile { slot, info } => Action::QueryFile(HandleSlot(slot), info),
        Op::QueryFileSystem { info } => Action::QueryFileSystem(info),
        Op::SetBasic { slot } => Action::SetBasic(HandleSlot(slot)),
        Op::List { pattern, info, most } => Action::List { pattern: paths.get(pattern), info, most: most as usize },
        Op::Unlink { path } => Action::RemoveFile(paths.get(path)),
        Op::Rename { from, to } => Action::Rename { from: paths.get(from), to: paths.get(to) },
        Op::Mkdir { path } => Action::MakeDirectory(paths.get(path)),
        Op::Rmdir { path } => Action::RemoveDirectory(paths.get(path)),
        Op::Deltree { path } => {
            Action::RemoveTree(paths.get(path), Own { made: loadfile.made(), directory: paths.own() })
        }
        Op::Sleep { time } => Action::Think(time),
        Op::Await { thread, operations } => Action::Await { thread, position: PassPosition { pass: 0, operations } },
    }
}

fn open(how: How, path: &str, slot: u32) -> Action<'_> {
    let How { access, share, disposition, options, attributes } = how;
    let disposition = create_disposition(disposition);
    Action::Open { slot: HandleSlot(slot), path, access, share, disposition, options, attributes }
}

fn create_disposition(value: u8) -> CreateDisposition {
    match value {
        0 => CreateDisposition::Supersede,
        1 => CreateDisposition::Open,
        2 => CreateDisposition::Create,
        3 => CreateDisposition::OpenIf,
        4 => CreateDisposition::Overwrite,
        _ => CreateDisposition::OverwriteIf,
    }
}
