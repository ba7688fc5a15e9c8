//! Turns a capture into a workload: the clients' file commands as lines for the load engine, the files they need with
//! their sizes, and a list of the commands that can't be replayed.
//!
//! Each client becomes a user with its own threads ([`smbscope_diagnose::whatif::threads`]), which run at the same time
//! and wait for each other as the client's did. The commands of a thread are replayed in the order of their responses,
//! with its pauses. Reads of a file that were outstanding together are outstanding together again, and so are writes.
//! Start reading at [`WorkloadRecorder`].

mod batches;
mod commands;
mod lines;
#[cfg(test)]
mod tests;

use lines::RecordingBuilder;
use smbscope_analyze::pseudonym::PseudonymKey;
use smbscope_load::workload::{RecordedWorkload, Recording};
use smbscope_model::{Exchange, ExchangeOutcome, FlowId};
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
        let begin =
            taken.iter().filter(|taken| batches::is_wanted(taken)).map(batches::start).min().unwrap_or_default();
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
    clients.sort_by_key(|commands| commands.iter().map(batches::start).min());
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
