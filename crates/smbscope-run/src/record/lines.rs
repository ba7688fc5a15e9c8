//! Converts commands into recording lines: the parts common to SMB1 and SMB2.

use super::{
    CommandBatch, InitialPathState, LinePlace, RecordedPaths, batches, end, is_pipe, is_wanted, nt, outstanding, start,
};
use smbscope_analyze::pseudonym::PseudonymKey;
use smbscope_client::FileRange;
use smbscope_diagnose::whatif;
use smbscope_load::workload::{RecordedClient, RecordedPool, check_line, ranges_text};
use smbscope_model::{Command, CommandGroup, Exchange, FileId, FlowId};
use smbscope_wire::RequestDetail;
use smbscope_wire::status::NtStatus;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;

/// Shortest recorded pause. A load generator takes about as long between two commands of its own.
const SHORTEST_PAUSE_NS: i64 = 100_000;
/// FILE_ATTRIBUTE_DIRECTORY (MS-FSCC 2.6).
const DIRECTORY: u32 = 0x10;
/// FILE_DIRECTORY_FILE, FILE_DELETE_ON_CLOSE and FILE_OPEN_BY_FILE_ID (MS-SMB2 2.2.13).
const DIRECTORY_FILE: u32 = 0x0000_0001;
const DELETE_ON_CLOSE: u32 = 0x0000_1000;
const OPEN_BY_FILE_ID: u32 = 0x0000_2000;
/// CreateAction (MS-SMB2 2.2.14).
const OPENED: u32 = 1;
const CREATED: u32 = 2;

/// Levels of a recorded path; deeper ones are not replayed. 255 one-letter directories exceed the 260 characters that
/// most clients and servers accept.
const RECORDED_LEVELS_MAX: usize = 255;

pub(super) struct RecordingBuilder<'k> {
    pub(super) key: Option<&'k PseudonymKey>,
    with_share: bool,
    commands: u64,
    /// Files, open handles and threads of the current client.
    pub(super) files: RecordedPaths,
    handles: HashMap<(FlowId, FileId), RecordedOpen>,
    next_handle: u32,
    threads: Vec<RecordedThread>,
    /// Tasks of pools, by pool and task.
    tasks: BTreeMap<(usize, usize), Vec<ThreadLine>>,
    /// Place of the commands that are being converted.
    current: LinePlace,
    /// True while nothing has been created, removed, renamed or extended, so the recording can run repeatedly.
    pub(super) repeats: bool,
    not_replayed: BTreeMap<String, u64>,
}

#[derive(Debug)]
enum ThreadLine {
    Step(String),
    /// Waits for this number of operations of a thread, by its index; `None` for all of them.
    Await {
        thread: usize,
        operations: Option<u64>,
    },
}

#[derive(Debug, Default)]
struct RecordedThread {
    lines: Vec<ThreadLine>,
    operations: u64,
    last_end: i64,
    pool: Option<usize>,
    /// Commands of other threads that the next line waits for, although a command that is not replayed did.
    after: Vec<usize>,
}

/// Formats lines, with these numbers of threads.
fn lines_text(lines: &[ThreadLine], numbers: &[u32]) -> String {
    let mut text = String::new();
    for line in lines {
        let _ = match line {
            ThreadLine::Step(line) => writeln!(text, "{line}"),
            ThreadLine::Await { thread, operations: Some(operations) } => {
                writeln!(text, "Await {} {operations} SUCCESS", numbers[*thread])
            }
            ThreadLine::Await { thread, operations: None } => writeln!(text, "Await {} end SUCCESS", numbers[*thread]),
        };
    }
    text
}

pub(super) struct RecordedOpen {
    pub(super) handle: u32,
    place: LinePlace,
    path: String,
    pub(super) size: u64,
}

pub(super) struct FinishedRecording {
    pub(super) repeats: bool,
    pub(super) not_replayed: Vec<String>,
}

pub(super) type Reason = String;

impl<'k> RecordingBuilder<'k> {
    pub(super) fn new(key: Option<&'k PseudonymKey>, taken: &[Exchange]) -> RecordingBuilder<'k> {
        let shares: BTreeSet<&str> =
            taken.iter().filter_map(|taken| taken.share.as_deref()).filter(|s| !is_pipe(s)).collect();
        RecordingBuilder {
            key,
            with_share: shares.len() > 1,
            commands: 0,
            files: RecordedPaths::default(),
            handles: HashMap::new(),
            next_handle: 1,
            threads: Vec::new(),
            tasks: BTreeMap::new(),
            current: LinePlace::default(),
            repeats: true,
            not_replayed: BTreeMap::new(),
        }
    }

    pub(super) fn commands(&self) -> u64 {
        self.commands
    }

    pub(super) fn finish(self) -> FinishedRecording {
        FinishedRecording {
            repeats: self.repeats,
            not_replayed: self.not_replayed.into_iter().map(|(reason, count)| format!("{count} × {reason}")).collect(),
        }
    }

    /// Converts the commands of a client. Its threads begin as long after `begin` as in the capture. Returns `None` if
    /// nothing of it can be replayed.
    pub(super) fn client(&mut self, taken: &[Exchange], begin: i64) -> Option<RecordedClient> {
        self.files = RecordedPaths::with_bytes(self.files.bytes);
        self.handles.clear();
        let places = whatif::threads(taken);
        let count = places.iter().flatten().map(|place| place.thread + 1).max().unwrap_or(1);
        let thread = || RecordedThread { last_end: begin, ..RecordedThread::default() };
        self.threads = std::iter::repeat_with(thread).take(count).collect();
        self.tasks.clear();
        for place in places.iter().flatten() {
            self.threads[place.thread].pool = self.threads[place.thread].pool.or(place.pooled.map(|(pool, _)| pool));
        }
        // Number of the operation that replays a command, in its thread.
        let mut replayed_as: Vec<Option<u64>> = vec![None; taken.len()];
        let mut last_bound: Option<AwaitedCommand> = None;
        for CommandBatch { place, commands } in batches(taken, &places) {
            self.current = place;
            let batch: Vec<&Exchange> = commands.iter().map(|at| &taken[*at]).collect();
            let after = commands.iter().filter_map(|at| places[*at].as_ref()).flat_map(|place| &place.after);
            let mut after: Vec<usize> = after.copied().collect();
            let thread = &mut self.threads[place.thread];
            after.append(&mut thread.after);
            if let Some(first) = batch.first().filter(|first| !is_wanted(first)) {
                thread.after = if first.group == CommandGroup::Session { after } else { Vec::new() };
                self.leave_out_unwanted(first);
                continue;
            }
            let awaited = after.iter().filter_map(|at| places[*at].as_ref().map(|place| (place, *at)));
            let mut awaited: Vec<AwaitedCommand> = awaited
                .map(|(place, at)| AwaitedCommand {
                    thread: place.thread,
                    pool: place.pooled.map(|(pool, _)| pool),
                    end: end(&taken[at]),
                    operation: replayed_as[at],
                })
                .collect();
            let own_pool = self.threads[place.thread].pool;
            if own_pool.is_some() && awaited.iter().any(|awaited| awaited.pool == own_pool) {
                // It began while others were at work on the tasks that it shares with them.
                awaited.retain(|awaited| awaited.pool != own_pool);
                awaited.extend(last_bound.filter(|last| last.end <= start(batch[0])));
            }
            if self.add(&batch, &awaited) {
                let (thread, operation) = (place.thread, self.threads[place.thread].operations);
                commands.iter().for_each(|at| replayed_as[*at] = Some(operation));
                let end = commands.iter().map(|at| end(&taken[*at])).max().unwrap_or_default();
                let bound = AwaitedCommand { thread, pool: None, end, operation: Some(operation) };
                last_bound = Some(bound).filter(|_| place.pooled.is_none()).or(last_bound);
            }
        }
        self.finish_client()
    }

    fn finish_client(&mut self) -> Option<RecordedClient> {
        for (count, reason) in [
            (self.files.shortened(), "a file of more than 1 TiB, or 16 TiB of files: made shorter"),
            (self.files.left_out, "a file or directory that is not made: more than 32 MiB of paths"),
        ] {
            if count > 0 {
                self.leave_out(reason.to_owned(), count);
            }
        }
        let has_tasks = |pool: usize| self.tasks.keys().any(|(of, _)| *of == pool);
        let has_work = |thread: &RecordedThread| thread.operations > 0 || thread.pool.is_some_and(has_tasks);
        // Only threads with work are awaited, so the numbers of the others can be given away.
        let mut numbers = vec![0; self.threads.len()];
        let with_work = self.threads.iter().enumerate().filter(|(_, thread)| has_work(thread)).map(|(at, _)| at);
        let with_work: Vec<usize> = with_work.collect();
        (1..).zip(&with_work).for_each(|(number, at)| numbers[*at] = number);
        let mut pools: BTreeMap<usize, RecordedPool> = BTreeMap::new();
        for ((pool, _), lines) in &self.tasks {
            pools.entry(*pool).or_default().tasks.push(lines_text(lines, &numbers));
        }
        for at in &with_work {
            let pool = self.threads[*at].pool.and_then(|pool| pools.get_mut(&pool));
            pool.into_iter().for_each(|pool| pool.threads.push(numbers[*at]));
        }
        let mut threads: Vec<String> =
            with_work.iter().map(|at| lines_text(&self.threads[*at].lines, &numbers)).collect();
        if let [only] = &mut threads[..] {
            // No other thread takes its tasks.
            pools.into_values().flat_map(|pool| pool.tasks).for_each(|task| only.push_str(&task));
            pools = BTreeMap::new();
        }
        let pools = pools.into_values().collect();
        (!threads.is_empty()).then(|| RecordedClient { files: self.files.lines(), threads, pools })
    }

    /// Lines of the current place.
    fn lines(&mut self) -> &mut Vec<ThreadLine> {
        match self.current.pooled {
            Some(task) => self.tasks.entry(task).or_default(),
            None => &mut self.threads[self.current.thread].lines,
        }
    }

    /// Adds a line. Returns false if the commands can't be replayed.
    fn add(&mut self, taken: &[&Exchange], after: &[AwaitedCommand]) -> bool {
        let Some(first) = taken.iter().min_by_key(|taken| start(taken)) else { return false };
        let line = if taken.len() > 1 { self.queue(taken) } else { self.line(first) };
        let line = line.and_then(|line| match check_line(&line) {
            Ok(()) => Ok(line),
            Err(why) => Err(format!("{}: {why}", first.command)),
        });
        let is_replayed = match line {
            Ok(line) => {
                self.pause(first, after);
                self.commands += taken.len() as u64;
                self.threads[self.current.thread].operations += u64::from(self.current.pooled.is_none());
                self.lines().push(ThreadLine::Step(line));
                true
            }
            Err(reason) => {
                self.leave_out(reason, taken.len() as u64);
                false
            }
        };
        let thread = &mut self.threads[self.current.thread];
        thread.last_end = taken.iter().map(|taken| end(taken)).max().unwrap_or_default().max(thread.last_end);
        is_replayed
    }

    pub(super) fn leave_out(&mut self, reason: Reason, count: u64) {
        *self.not_replayed.entry(reason).or_default() += count;
    }

    fn leave_out_unwanted(&mut self, taken: &Exchange) {
        if taken.group == CommandGroup::Waiting {
            self.leave_out(format!("{}: it waits for another client", taken.command), 1);
        }
    }

    /// Waits for the other threads as the client did, then for the rest of the pause.
    fn pause(&mut self, taken: &Exchange, after: &[AwaitedCommand]) {
        let mut since = self.threads[self.current.thread].last_end;
        let mut lines = Vec::new();
        // Any thread may perform a task of a pool, at another time.
        let is_bound = self.current.pooled.is_none();
        for awaited in after.iter().filter(|awaited| is_bound && awaited.thread != self.current.thread) {
            // If the command itself is not replayed, those before it are.
            let operations = awaited.operation.unwrap_or(self.threads[awaited.thread].operations);
            let operations = awaited.pool.is_none().then_some(operations);
            if operations != Some(0) {
                lines.push(ThreadLine::Await { thread: awaited.thread, operations });
                since = since.max(awaited.end);
            }
        }
        let pause = start(taken) - since;
        if pause >= SHORTEST_PAUSE_NS {
            lines.push(ThreadLine::Step(format!("Sleep {} SUCCESS", pause / 1_000)));
        }
        let is_late = pause < 0 && !self.lines().is_empty();
        self.lines().append(&mut lines);
        match is_late {
            true if taken.compounded => {
                self.leave_out("was compounded with the one before: replayed on its own".to_owned(), 1);
            }
            true => {
                self.leave_out("began before the one before was answered: replayed one after the other".to_owned(), 1)
            }
            false => {}
        }
    }

    fn line(&mut self, taken: &Exchange) -> Result<String, Reason> {
        let name = taken.command;
        if taken.share.as_deref().is_some_and(is_pipe) {
            return Err(format!("{name} of a named pipe"));
        }
        let status = || taken.status.ok_or_else(|| format!("{name} without a status"));
        match name {
            Command::Smb1(command) => self.smb1(taken, command, status()?),
            Command::Smb2(command) => self.smb2(taken, command, nt(status()?)),
            Command::EncryptedFrame => Err("encrypted: what it asks for can't be seen".to_owned()),
        }
    }

    fn queue(&mut self, taken: &[&Exchange]) -> Result<String, Reason> {
        let writes = taken[0].group == CommandGroup::Write;
        let mut order = taken.to_vec();
        order.sort_by_key(|taken| start(taken));
        let mut ranges = Vec::new();
        for taken in order {
            let (offset, length) = range(taken)?;
            let length = u32::try_from(length).map_err(|_| format!("{} of 4 GiB and more", taken.command))?;
            ranges.push(FileRange { offset, length });
        }
        let end = ranges.iter().map(|range| range.offset.saturating_add(range.length.into())).max().unwrap_or(0);
        let open = self.open(taken[0])?;
        let (handle, longer) = (open.handle, end > open.size);
        if writes {
            open.size = open.size.max(end);
            self.repeats &= !longer;
        }
        let name = if writes { "WriteQueue" } else { "ReadQueue" };
        Ok(format!("{name} {handle} {} \"{}\" SUCCESS", outstanding(taken), ranges_text(&ranges)))
    }

    pub(super) fn open(&mut self, taken: &Exchange) -> Result<&mut RecordedOpen, Reason> {
        let (key, current) = (taken.file_id.map(|file| (taken.flow, file)), self.current);
        let open = key.and_then(|key| self.handles.get_mut(&key)).ok_or_else(|| no_open(taken.command))?;
        if open.place == current { Ok(open) } else { Err(of_other_thread(taken.command)) }
    }

    pub(super) fn close(&mut self, taken: &Exchange, said: &str) -> Result<String, Reason> {
        let handle = self.open(taken)?.handle;
        taken.file_id.map(|file| self.handles.remove(&(taken.flow, file)));
        Ok(format!("Close {handle} {said}"))
    }

    pub(super) fn write(&mut self, taken: &Exchange, status: NtStatus, said: &str) -> Result<String, Reason> {
        let (offset, length) = range(taken)?;
        let end = offset.saturating_add(length);
        let open = self.open(taken)?;
        let longer = end > open.size && !status.is_error();
        if longer {
            open.size = end;
        }
        let handle = open.handle;
        self.repeats &= !longer;
        Ok(format!("WriteX {handle} {offset} {length} {length} {said}"))
    }

    pub(super) fn set_end(&mut self, taken: &Exchange, size: u64, said: &str) -> Result<String, Reason> {
        let open = self.open(taken)?;
        let (handle, same) = (open.handle, size == open.size);
        open.size = size;
        self.repeats &= same;
        Ok(format!("SetEnd {handle} {size} {said}"))
    }

    pub(super) fn set_delete(&mut self, taken: &Exchange, delete: bool, said: &str) -> Result<String, Reason> {
        let handle = self.open(taken)?.handle;
        self.repeats &= !delete;
        Ok(format!("SetDelete {handle} {} {said}", u8::from(delete)))
    }

    pub(super) fn lock(
        &mut self,
        taken: &Exchange,
        detail: Option<&RequestDetail>,
        said: &str,
    ) -> Result<String, Reason> {
        let (offset, length) = range(taken)?;
        let handle = self.open(taken)?.handle;
        let name = match detail {
            Some(RequestDetail::Lock { count: 1, flags }) if flags & 4 != 0 => "UnlockX",
            Some(RequestDetail::Lock { count: 1, flags }) if flags & 2 != 0 => "LockX",
            Some(RequestDetail::Lock { count: 1, .. }) => "LockShared",
            _ => return Err(format!("{} of several ranges", taken.command)),
        };
        Ok(format!("{name} {handle} {offset} {length} {said}"))
    }

    pub(super) fn rename_open(&mut self, taken: &Exchange, to: &str) -> Result<(), Reason> {
        let from = std::mem::replace(&mut self.open(taken)?.path, to.to_owned());
        self.files.rename(&from, to);
        Ok(())
    }

    pub(super) fn create(&mut self, taken: &Exchange, status: NtStatus, said: &str) -> Result<String, Reason> {
        let name = taken.command;
        let cut_off = || format!("{name} that the capture cut off");
        let details = taken.details.as_ref().ok_or_else(cut_off)?;
        let RequestDetail::Create { desired_access, share_access, create_disposition, create_options, file_attributes } =
            details.request
        else {
            return Err(cut_off());
        };
        if create_options & OPEN_BY_FILE_ID != 0 {
            return Err(format!("{name} by file id"));
        }
        let path = self.path(taken)?;
        let is_directory = create_options & DIRECTORY_FILE != 0;
        match (status, details.created) {
            (NtStatus::OBJECT_NAME_NOT_FOUND | NtStatus::NO_SUCH_FILE, _) => {
                self.files.find(&path, InitialPathState::Nothing)
            }
            (NtStatus::OBJECT_PATH_NOT_FOUND, _) => self.files.misses(&path),
            (NtStatus::OBJECT_NAME_COLLISION, _) if is_directory => self.files.find(&path, InitialPathState::Directory),
            (NtStatus::OBJECT_NAME_COLLISION, _) => self.files.find(&path, InitialPathState::File { size: 0 }),
            (status, _) if status.is_error() => return Err(format!("{name} that failed with {status}")),
            (_, None) => return Err(format!("{name} whose answer the capture cut off")),
            (_, Some(created)) => {
                let found = match created.action {
                    CREATED => InitialPathState::Nothing,
                    _ if created.attributes & DIRECTORY != 0 => InitialPathState::Directory,
                    OPENED => InitialPathState::File { size: created.size },
                    // The file existed and was truncated.
                    _ => InitialPathState::File { size: 0 },
                };
                self.files.find(&path, found);
                self.repeats &= created.action == OPENED && create_options & DELETE_ON_CLOSE == 0;
            }
        }
        let handle = self.next_handle;
        self.next_handle += 1;
        if let (Some(created), Some(file)) = (details.created, taken.file_id) {
            let open = RecordedOpen { handle, place: self.current, path: path.clone(), size: created.size };
            self.handles.insert((taken.flow, file), open);
        }
        Ok(format!(
            "Create \"\\{path}\" {desired_access:#x} {share_access:#x} {create_disposition} {create_options:#x} \
             {file_attributes:#x} {handle} {said}"
        ))
    }

    pub(super) fn path(&self, taken: &Exchange) -> Result<String, Reason> {
        let path = taken.path.as_deref().ok_or_else(|| format!("{} that the capture cut off", taken.command))?;
        self.shown(taken, path)
    }

    pub(super) fn shown(&self, taken: &Exchange, path: &str) -> Result<String, Reason> {
        shown_path(self.with_share, self.key, taken.share.as_deref(), path)
    }
}

fn shown_path(with_share: bool, key: Option<&PseudonymKey>, share: Option<&str>, path: &str) -> Result<String, Reason> {
    let path = path.trim_matches('\\');
    if smbscope_model::CUT_NAME_MARK.eq(&path.chars().next_back().unwrap_or_default()) {
        return Err("commands on a path that the capture cut off".to_owned());
    }
    if path.contains(':') {
        return Err("commands on a named stream".to_owned());
    }
    if path.matches('\\').count() >= RECORDED_LEVELS_MAX {
        return Err(format!("commands on a path of more than {RECORDED_LEVELS_MAX} levels"));
    }
    let path = match (with_share, share) {
        (true, Some(share)) => format!("{share}\\{path}"),
        _ => path.to_owned(),
    };
    let path = path.trim_end_matches('\\');
    smbscope_load::workload::relative_path(path)
        .map_err(|_| "commands on a name that no workload may have".to_owned())?;
    Ok(key.map_or_else(|| path.to_owned(), |key| key.path(path)))
}

fn of_other_thread(command: Command) -> Reason {
    format!("{command} of a file that another thread of the client has open")
}

fn no_open(command: Command) -> Reason {
    format!("{command} of a file whose open is not replayed or not in the capture")
}

pub(super) fn range(taken: &Exchange) -> Result<(u64, u64), Reason> {
    taken.offset.zip(taken.length).ok_or_else(|| format!("{} that the capture cut off", taken.command))
}

/// A command of another thread that ended before a command could begin.
#[derive(Debug, Clone, Copy)]
struct AwaitedCommand {
    thread: usize,
    /// Pool of its task. Which thread performs the task is open.
    pool: Option<usize>,
    end: i64,
    /// Number of its operation in its thread. `None` if it is not replayed.
    operation: Option<u64>,
}

pub(super) fn said(status: NtStatus) -> String {
    if status.is_error() { format!("{:#010x}", status.0) } else { "SUCCESS".to_owned() }
}
