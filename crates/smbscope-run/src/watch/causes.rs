//! Actions of `watch` when a cause begins: it saves the packets and the answer of the minute, and runs a command.
//!
//! A separate thread does both, so that neither a slow disk nor a slow command delays the analysis.

use crate::BenchError;
use crate::environment::{SHELL, ends_within, groups};
use crate::options::WatchOptions;
use crate::ring::{self, RingLimits, RingProgress};
use smbscope_capture::private::create_private;
use smbscope_lab::command_for;
use smbscope_model::prose::clean;
use smbscope_model::{Nanos, Timestamp};
use smbscope_report::Answer;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A cause that was absent for this long begins again.
const ABSENT_LEAST: Nanos = Nanos(5 * 60 * 1_000_000_000);
/// Causes remembered. With more, all are forgotten.
const REMEMBERED_MAX: usize = 4096;
/// Events that wait for the thread. Further ones are skipped.
const WAITING_MAX: usize = 16;
/// Time before the minute that is saved as well: files may have been opened there.
const LEAD: Nanos = Nanos(60 * 1_000_000_000);
/// Time that the ring has to write the minute's packets.
const RING_PATIENCE: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Time after which a command is killed.
const COMMAND_TIME_MAX: Duration = Duration::from_secs(60);
/// Directories of saved minutes that are kept; together they also stay below the size of the ring.
const SAVED_MAX: usize = 100;
/// Name of the directory, within the ring's, that holds them.
const SAVED: &str = "saved";
const CAPTURE: &str = "capture.pcapng";
const MINUTE: &str = "minute.json";

/// Keeps track of causes, and acts when one begins.
pub struct CauseEvents {
    least: Nanos,
    /// Last time of each cause, by its identifier and server.
    seen: BTreeMap<(String, Option<String>), Timestamp>,
    has_ring: bool,
    is_marked: bool,
    waiting: SyncSender<CauseEvent>,
    thread: JoinHandle<()>,
}

struct CauseEvent {
    /// Identifiers of the causes that begin, or `mark`. Never empty.
    causes: Vec<String>,
    headline: String,
    from: Timestamp,
    to: Timestamp,
    minute: String,
}

/// A ring from which minutes are saved.
pub(super) struct SavedFrom {
    pub(super) limits: RingLimits,
    pub(super) progress: Arc<RingProgress>,
}

impl CauseEvents {
    /// Returns `None` if there is neither a command nor a ring. `tell` gets problems, and what the command prints.
    pub(super) fn begin(
        options: &WatchOptions,
        ring: Option<SavedFrom>,
        tell: impl Fn(&str) + Send + 'static,
    ) -> Result<Option<CauseEvents>, BenchError> {
        if options.on_cause.is_none() && ring.is_none() {
            return Ok(None);
        }
        let (waiting, events) = sync_channel(WAITING_MAX);
        let (least, has_ring) = (options.cause_cost, ring.is_some());
        let actions = CauseActions { command: options.on_cause.clone(), ring, tell: Box::new(tell) };
        let thread = thread::Builder::new().name("smbscope-causes".to_owned());
        let thread = thread.spawn(move || actions.follow(&events)).map_err(BenchError::system("thread for causes"))?;
        Ok(Some(CauseEvents { least, seen: BTreeMap::new(), has_ring, is_marked: false, waiting, thread }))
    }

    /// Saves the current minute when it ends, whatever its answer. Returns false if there is no ring.
    pub fn mark(&mut self) -> bool {
        self.is_marked = self.has_ring;
        self.has_ring
    }

    /// Acts if a cause begins in this minute. `json` is the minute as an object.
    pub fn minute(&mut self, from: Timestamp, to: Timestamp, answer: Option<&Answer>, json: impl FnOnce() -> String) {
        let mut causes: Vec<String> =
            std::mem::take(&mut self.is_marked).then(|| "mark".to_owned()).into_iter().collect();
        let found = answer.map_or(&[][..], |answer| &answer.causes);
        for cause in found.iter().filter(|cause| cause.best() >= self.least) {
            if self.seen.len() >= REMEMBERED_MAX {
                self.seen.clear();
            }
            let last = self.seen.insert((cause.id.clone(), cause.subject.server.clone()), to);
            if last.is_none_or(|last| from - last >= ABSENT_LEAST) && !causes.contains(&cause.id) {
                causes.push(cause.id.clone());
            }
        }
        if causes.is_empty() {
            return;
        }
        let headline = answer.map(|answer| answer.headline.clone()).unwrap_or_default();
        let event = CauseEvent { causes, headline, from, to, minute: json() };
        if self.waiting.try_send(event).is_err() {
            tracing::warn!("causes begin faster than they are saved and told; one was skipped");
        }
    }

    /// Waits for the actions to end.
    pub fn finish(self) {
        drop(self.waiting);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
}

struct CauseActions {
    command: Option<String>,
    ring: Option<SavedFrom>,
    tell: Box<dyn Fn(&str) + Send>,
}

impl CauseActions {
    fn follow(&self, events: &Receiver<CauseEvent>) {
        for event in events {
            let saved = self.ring.as_ref().and_then(|ring| match save(ring, &event) {
                Ok(saved) => Some(saved),
                Err(error) => {
                    let folder = ring.limits.folder.join(SAVED);
                    (self.tell)(&format!("warning: {}: the minute was not saved: {error}", folder.display()));
                    None
                }
            });
            if let Some(command) = self.command.as_ref().filter(|_| event.causes != ["mark"])
                && let Err(error) = self.run(command, &event, saved.as_deref())
            {
                (self.tell)(&format!("warning: --on-cause {command}: {error}"));
            }
        }
    }

    /// Runs the command, and tells its output.
    fn run(&self, command: &str, event: &CauseEvent, saved: Option<&Path>) -> io::Result<()> {
        let (mut input, mut output) = (tempfile::tempfile()?, tempfile::tempfile()?);
        input.write_all(event.minute.as_bytes())?;
        input.rewind()?;
        let mut shell = command_for(SHELL[0]);
        shell.args([SHELL[1], command]);
        shell.env("SMBSCOPE_CAUSE", event.causes.join(" ")).env("SMBSCOPE_HEADLINE", clean(&event.headline));
        shell.env("SMBSCOPE_FROM", moment(event.from)).env("SMBSCOPE_TO", moment(event.to));
        shell.env("SMBSCOPE_SAVED", saved.unwrap_or(Path::new("")));
        shell.stdin(Stdio::from(input)).stdout(output.try_clone()?).stderr(output.try_clone()?);
        groups::begin(&mut shell);
        let mut child = shell.spawn()?;
        let Some(status) = ends_within(&mut child, COMMAND_TIME_MAX) else {
            groups::kill(&mut child);
            child.wait()?;
            return Err(io::Error::other(format!("killed after {} s", COMMAND_TIME_MAX.as_secs())));
        };
        output.rewind()?;
        let mut said = Vec::new();
        output.take(4096).read_to_end(&mut said)?;
        String::from_utf8_lossy(&said).lines().filter(|line| !line.is_empty()).for_each(|line| (self.tell)(line));
        if status.success() { Ok(()) } else { Err(io::Error::other(status.to_string())) }
    }
}

/// Formats a time as `analyze --from` takes it.
fn moment(time: Timestamp) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(time.0)).map(|time| time.to_string()).unwrap_or_default()
}

/// Saves the packets and the answer of a minute in a directory, which appears once it is complete.
fn save(ring: &SavedFrom, event: &CauseEvent) -> io::Result<PathBuf> {
    let begun = Instant::now();
    while !ring.progress.has_reached(event.to) && begun.elapsed() < RING_PATIENCE {
        thread::sleep(POLL_INTERVAL);
    }
    let above = ring.limits.folder.join(SAVED);
    crate::files::create_private_directory(&above)?;
    let stamp = ring::stamp(event.from.0.div_euclid(1_000_000_000))?;
    let name = format!("{stamp}-{}", event.causes[0]);
    let unfinished = above.join(format!(".{name}.partial"));
    remove_saved(&unfinished)?;
    crate::files::new_private_directory(&unfinished)?;
    let written = || {
        let capture = io::BufWriter::new(create_private(&unfinished.join(CAPTURE))?);
        ring::copy_part(&ring.limits.folder, Timestamp(event.from.0.saturating_sub(LEAD.0)), event.to, capture)?;
        create_private(&unfinished.join(MINUTE))?.write_all(event.minute.as_bytes())
    };
    if let Err(error) = written() {
        remove_saved(&unfinished)?;
        return Err(error);
    }
    let place = above.join(name);
    // Of an earlier run in the same minute.
    remove_saved(&place)?;
    fs::rename(&unfinished, &place)?;
    remove_oldest(&above, ring.limits.size)?;
    Ok(place)
}

/// Removes the oldest saved minutes beyond the limits.
fn remove_oldest(above: &Path, size: u64) -> io::Result<()> {
    let mut saved: Vec<(PathBuf, u64)> = Vec::new();
    for entry in fs::read_dir(above)? {
        let entry = entry?;
        // A name begins with the time: 20261127T140200Z.
        let is_saved = entry.file_name().to_str().is_some_and(|name| name.get(15..17) == Some("Z-"));
        if is_saved && entry.file_type()?.is_dir() {
            let length = |name| fs::metadata(entry.path().join(name)).map_or(0, |file| file.len());
            saved.push((entry.path(), length(CAPTURE) + length(MINUTE)));
        }
    }
    saved.sort();
    let mut total: u64 = saved.iter().map(|(_, length)| length).sum();
    let mut count = saved.len();
    for (path, length) in saved {
        // The newest one stays.
        if count <= 1 || count <= SAVED_MAX && total <= size {
            break;
        }
        remove_saved(&path)?;
        (count, total) = (count - 1, total - length);
    }
    Ok(())
}

/// Removes a saved minute. The directory stays if it has other files.
fn remove_saved(path: &Path) -> io::Result<()> {
    for name in [CAPTURE, MINUTE] {
        match fs::remove_file(path.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    match fs::remove_dir(path) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::DirectoryNotEmpty) => Ok(()),
        removed => removed,
    }
}
