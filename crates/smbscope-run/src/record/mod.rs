//! Turns a capture into a workload: the clients' file commands as lines for the load engine, the files they need with
//! their sizes, and a list of the commands that can't be replayed.
//!
//! Each client becomes a user with its own threads ([`smbscope_diagnose::whatif::threads`]), which run at the same time
//! and wait for each other as the client's did. The commands of a thread are replayed in the order of their responses,
//! with its pauses. Reads of a file that were outstanding together are outstanding together again, and so are writes:
//! such a batch becomes one line. Start reading at [`WorkloadRecorder`].

mod commands;
mod lines;
#[cfg(test)]
mod tests;

use lines::RecordingBuilder;
use smbscope_analyze::pseudonym::PseudonymKey;
use smbscope_diagnose::whatif::ThreadPlace;
use smbscope_load::workload::{RecordedWorkload, Recording};
use smbscope_model::{CommandGroup, Exchange, ExchangeOutcome, FlowId, ResponseStatus, Subcommand};
use smbscope_wire::status::{DosError, NtStatus};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::net::IpAddr;
use std::sync::Arc;

/// Commands of a recording; more are refused. Larger captures need a filter.
pub const RECORDED_MAX: usize = 100_000;
/// Bytes of the paths in its opens; more are refused.
pub const RECORDED_NAMES_MAX: usize = 8 << 20;

#[derive(Debug, Default)]
pub struct WorkloadRecorder {
    taken: Vec<Exchange>,
    name_bytes: usize,
    incomplete: BTreeMap<ExchangeOutcome, u64>,
    is_full: bool,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum RecordingError {
    #[error(
        "more than {RECORDED_MAX} commands, or than {} MiB of names: choose some with --client or --filter",
        RECORDED_NAMES_MAX >> 20
    )]
    TooMany,
    #[error("no command in it can be replayed{}", .0.iter().map(|line| format!("; {line}")).collect::<String>())]
    Nothing(Vec<String>),
}

#[derive(Debug, Clone, Default)]
pub struct RecordingOptions {
    pub name: String,
    pub from: String,
    /// Key for pseudonyms. `None` keeps the real names.
    pub key: Option<PseudonymKey>,
}

impl WorkloadRecorder {
    /// Adds an exchange. It must have been analysed with [`smbscope_analyze::AnalyzerOptions::details`].
    pub fn take(&mut self, exchange: &Exchange) {
        if exchange.outcome != ExchangeOutcome::Complete {
            if !matches!(exchange.outcome, ExchangeOutcome::ServerInitiated | ExchangeOutcome::NoResponseByDesign) {
                *self.incomplete.entry(exchange.outcome).or_default() += 1;
            }
            return;
        }
        if self.is_full || exchange.request.first.is_none() || exchange.response.last.is_none() {
            return;
        }
        if exchange.details.as_ref().is_some_and(|details| details.created.is_some()) {
            self.name_bytes += exchange.path.as_ref().map_or(0, |path| path.len());
        }
        self.is_full = self.taken.len() >= RECORDED_MAX || self.name_bytes > RECORDED_NAMES_MAX;
        self.taken.push(exchange.clone());
    }

    pub fn finish(self, request: &RecordingOptions) -> Result<Recording, RecordingError> {
        let WorkloadRecorder { taken, incomplete, is_full, .. } = self;
        if is_full {
            return Err(RecordingError::TooMany);
        }
        let begin = taken.iter().filter(|taken| is_wanted(taken)).map(start).min().unwrap_or_default();
        let mut lines = RecordingBuilder::new(request.key.as_ref(), &taken);
        let clients = by_client(taken).into_iter().filter_map(|commands| lines.client(&commands, begin)).collect();
        let commands = lines.commands();
        let done = lines.finish();
        let incomplete =
            incomplete.into_iter().map(|(outcome, count)| format!("{count} × incomplete in the capture ({outcome})"));
        let not_replayed: Vec<String> = done.not_replayed.into_iter().chain(incomplete).collect();
        if commands == 0 {
            return Err(RecordingError::Nothing(not_replayed));
        }
        Ok(Recording {
            name: request.name.clone(),
            description: format!("{commands} commands recorded from {}", request.from),
            recorded: RecordedWorkload {
                commands,
                anonymized: request.key.is_some(),
                repeats: done.repeats,
                not_replayed,
                clients,
            },
        })
    }
}

/// Divides commands by the client's address, and by user where the capture tells, in the order of their first request.
fn by_client(taken: Vec<Exchange>) -> Vec<Vec<Exchange>> {
    // The commands that log a user on come before the user is known.
    let mut of_flow: HashMap<FlowId, Arc<str>> = HashMap::new();
    for exchange in &taken {
        if let Some(user) = &exchange.user {
            of_flow.entry(exchange.flow).or_insert_with(|| user.clone());
        }
    }
    let mut clients: BTreeMap<(IpAddr, Option<Arc<str>>), Vec<Exchange>> = BTreeMap::new();
    for exchange in taken {
        let user = exchange.user.as_ref().or_else(|| of_flow.get(&exchange.flow)).cloned();
        clients.entry((exchange.endpoints.client.ip(), user)).or_default().push(exchange);
    }
    let mut clients: Vec<Vec<Exchange>> = clients.into_values().collect();
    clients.sort_by_key(|commands| commands.iter().map(start).min());
    clients
}

/// Bytes of a recorded file; longer ones are shortened. Sizes in a capture may be anything.
const RECORDED_FILE_MAX: u64 = 1 << 40;
/// Bytes of all recorded files of a client.
const RECORDED_BYTES_MAX: u64 = 16 << 40;
/// Bytes of their paths; others are not created.
const RECORDED_PATHS_MAX: usize = 32 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InitialPathState {
    File {
        size: u64,
    },
    Directory,
    /// A file or directory, decided by later commands. An empty file if they don't tell.
    Something,
    Nothing,
}

/// Paths named by the recording. The first command that reveals a path's state decides.
#[derive(Debug, Default)]
struct RecordedPaths {
    found: BTreeMap<String, (String, InitialPathState)>,
    bytes: usize,
    left_out: u64,
    /// Latest rename by its new name in lower case: sequence number and old name in lower case.
    renamed: HashMap<String, (usize, String)>,
    renames: usize,
}

impl RecordedPaths {
    /// Starts with this number of bytes used by other clients.
    fn with_bytes(bytes: usize) -> RecordedPaths {
        RecordedPaths { bytes, ..RecordedPaths::default() }
    }

    fn find(&mut self, path: &str, found: InitialPathState) {
        let Some(path) = self.original(path) else { return };
        self.note(&path, found);
        let mut above = path.as_str();
        while let Some((parent, _)) = above.rsplit_once('\\') {
            if !self.note(parent, InitialPathState::Directory) {
                break;
            }
            above = parent;
        }
    }

    fn misses(&mut self, path: &str) {
        if let Some(path) = self.original(path) {
            self.note(&path, InitialPathState::Nothing);
        }
    }

    fn rename(&mut self, from: &str, to: &str) {
        self.find(to, InitialPathState::Nothing);
        self.renames += 1;
        self.renamed.insert(to.to_lowercase(), (self.renames, from.to_lowercase()));
    }

    /// Returns true if the parent directories may not be known yet.
    fn note(&mut self, path: &str, found: InitialPathState) -> bool {
        if path.is_empty() {
            return false;
        }
        let key = path.to_lowercase();
        if let Some((_, known)) = self.found.get_mut(&key) {
            let is_told = *known == InitialPathState::Something && found != InitialPathState::Nothing;
            if is_told {
                *known = found;
            }
            return is_told || *known == InitialPathState::Nothing;
        }
        if self.bytes + 2 * path.len() > RECORDED_PATHS_MAX {
            self.left_out += 1;
            return false;
        }
        self.bytes += 2 * path.len();
        self.found.insert(key, (path.to_owned(), found));
        true
    }

    /// Returns the path's name before any rename. Returns `None` for the target of a rename, which is known already.
    fn original(&self, path: &str) -> Option<String> {
        if self.renamed.is_empty() {
            return Some(path.to_owned());
        }
        let lower = path.to_lowercase();
        let ends = lower.match_indices('\\').map(|(end, _)| end).chain([lower.len()]);
        let renamed = ends.filter_map(|end| Some((end, self.renamed.get(&lower[..end])?)));
        match renamed.max_by_key(|(_, (number, _))| *number) {
            None => Some(path.to_owned()),
            Some((end, _)) if end == lower.len() => None,
            Some((end, (_, from))) => Some(format!("{from}{}", &lower[end..])),
        }
    }

    /// Returns the lines that create everything: directories, parents first, then files with their contents.
    fn lines(&self) -> String {
        /// Bytes per write, because lengths have 32 bits.
        const BLOCK: u64 = 1 << 30;
        let mut text = String::new();
        // Sorting puts a directory before its contents.
        for (path, found) in self.found.values() {
            if *found == InitialPathState::Directory {
                let _ = writeln!(text, "Mkdir \"\\{path}\" NT_STATUS_OK");
            }
        }
        for (handle, (path, _, size)) in self.sizes().enumerate() {
            let _ = writeln!(text, "NTCreateX \"\\{path}\" 0x40 0x2 {handle} NT_STATUS_OK");
            let mut offset = 0;
            while offset < size {
                let length = BLOCK.min(size - offset);
                let _ = writeln!(text, "WriteX {handle} {offset} {length} {length} NT_STATUS_OK");
                offset += length;
            }
            let _ = writeln!(text, "Close {handle} NT_STATUS_OK");
        }
        text
    }

    fn shortened(&self) -> u64 {
        self.sizes().filter(|(_, told, made)| made < told).count() as u64
    }

    fn sizes(&self) -> impl Iterator<Item = (&str, u64, u64)> {
        let mut left = RECORDED_BYTES_MAX;
        self.found.values().filter_map(move |(path, found)| {
            let told = match found {
                InitialPathState::File { size } => *size,
                InitialPathState::Something => 0,
                InitialPathState::Directory | InitialPathState::Nothing => return None,
            };
            let made = told.min(RECORDED_FILE_MAX).min(left);
            left -= made;
            Some((path.as_str(), told, made))
        })
    }
}

/// A thread, and its task if that is one of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct LinePlace {
    thread: usize,
    pooled: Option<(usize, usize)>,
}

/// Commands that become one line: a single one, or transfers that were outstanding together.
struct CommandBatch {
    place: LinePlace,
    commands: Vec<usize>,
}

fn outstanding(taken: &[&Exchange]) -> usize {
    let mut moments: Vec<(i64, bool)> =
        taken.iter().flat_map(|taken| [(start(taken), true), (end(taken), false)]).collect();
    // At equal times, ends sort before starts.
    moments.sort_unstable();
    let (mut now, mut most) = (0usize, 1);
    for (_, begins) in moments {
        now = if begins { now + 1 } else { now.saturating_sub(1) };
        most = most.max(now);
    }
    most
}

fn start(taken: &Exchange) -> i64 {
    taken.request.first.map_or(0, |stamp| stamp.time.0)
}

fn end(taken: &Exchange) -> i64 {
    taken.response.last.map_or_else(|| start(taken), |stamp| stamp.time.0)
}

/// Returns false for commands that a replay has no use for. The load generator sets up its own sessions, and the data of
/// a Write_Raw belongs to its request.
fn is_wanted(taken: &Exchange) -> bool {
    !matches!(taken.group, CommandGroup::Session | CommandGroup::Waiting)
        && taken.subcommand != Some(Subcommand::AsyncPortion)
}

/// Divides the commands of a client into those that become one line, in the order of their ends. Overlapping commands of
/// a thread are assumed to have been executed in the order of their responses.
fn batches(taken: &[Exchange], places: &[Option<ThreadPlace>]) -> Vec<CommandBatch> {
    let mut of_threads: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (at, place) in places.iter().enumerate() {
        of_threads.entry(place.as_ref().map_or(0, |place| place.thread)).or_default().push(at);
    }
    let mut batches = Vec::new();
    for (thread, mut commands) in of_threads {
        // The sort is stable: the members of a compound, answered together, keep their order.
        commands.sort_by_key(|at| (end(&taken[*at]), start(&taken[*at])));
        let mut rest = &commands[..];
        while let Some(first) = rest.first() {
            let (now, later) = rest.split_at(together(taken, rest));
            let pooled = places[*first].as_ref().and_then(|place| place.pooled);
            batches.push(CommandBatch { place: LinePlace { thread, pooled }, commands: now.to_vec() });
            rest = later;
        }
    }
    batches.sort_by_key(|batch| {
        let ends = batch.commands.iter().map(|at| (end(&taken[*at]), start(&taken[*at])));
        ends.max().unwrap_or_default()
    });
    batches
}

/// Returns the number of commands at the start of `order` that are overlapping, successful transfers of the same file,
/// and 1 if the first command isn't such a transfer. `order` is sorted by response time.
fn together(taken: &[Exchange], order: &[usize]) -> usize {
    let Some(first) = order.first().map(|at| &taken[*at]) else { return 0 };
    if !is_transfer(first) {
        return 1;
    }
    let mut until = end(first);
    let others = order[1..].iter().map(|at| &taken[*at]).take_while(|next| {
        let overlaps = start(next) < until;
        until = until.max(end(next));
        overlaps
            && is_transfer(next)
            && next.group == first.group
            && (next.flow, next.file_id) == (first.flow, first.file_id)
    });
    1 + others.count()
}

fn is_transfer(taken: &Exchange) -> bool {
    matches!(taken.group, CommandGroup::Read | CommandGroup::Write)
        && !taken.compounded
        && taken.file_id.is_some()
        && taken.offset.is_some()
        && taken.length.is_some_and(|length| length > 0)
        && taken.status.is_some_and(|status| !nt(status).is_error())
        && taken.subcommand.is_none()
        && !taken.share.as_deref().is_some_and(is_pipe)
}

fn is_pipe(share: &str) -> bool {
    share.eq_ignore_ascii_case("IPC$")
}

/// Maps a DOS error to the NT status, as far as recordings distinguish them (MS-CIFS 2.2.2.4).
fn nt(status: ResponseStatus) -> NtStatus {
    match status {
        ResponseStatus::Nt(status) => status,
        ResponseStatus::Dos(error) if !error.is_error() => NtStatus::SUCCESS,
        ResponseStatus::Dos(DosError { class: 1, code: 2 }) => NtStatus::OBJECT_NAME_NOT_FOUND,
        ResponseStatus::Dos(DosError { class: 1, code: 3 }) => NtStatus::OBJECT_PATH_NOT_FOUND,
        ResponseStatus::Dos(DosError { class: 1, code: 18 }) => NtStatus::NO_SUCH_FILE,
        ResponseStatus::Dos(DosError { class: 1, code: 80 | 183 }) => NtStatus::OBJECT_NAME_COLLISION,
        ResponseStatus::Dos(_) => NtStatus::UNSUCCESSFUL,
    }
}
