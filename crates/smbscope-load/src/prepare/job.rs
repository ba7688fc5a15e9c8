//! Preparation and cleanup on any [`ShareAccess`]: inspects the directory, creates the missing files, removes our own.

use super::{
    CleanupResult, FileContent, MARKER_LARGEST, MARKER_NAME, MARKER_NEW_NAME, Marker, PrepareError, PrepareProgress,
    PrepareRequest, Prepared, ShareAccess, ShareConnector,
};
use crate::workload::{CreatedPaths, FileSet, FileSetOwner, own_directory, relative_path};
use smbscope_client::ListingEntry;
use smbscope_wire::status::NtStatus;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet, VecDeque};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

const REPARSE_POINT: u32 = 0x400;
/// Placeholder for an entry that keeps a directory from being empty but is in no listing, such as a dangling link.
const HIDDEN: &str = "(something that the server does not list)";

pub(super) async fn prepare<C: ShareConnector>(
    connector: &C,
    request: &PrepareRequest<'_>,
    progress: &mut dyn FnMut(PrepareProgress),
) -> Result<Prepared, PrepareError> {
    let (directory, files) = (check_directory(request.directory)?, request.files);
    let mut share = connect(connector).await?;
    let marker = claim(&mut share, &directory).await?;
    let mut done = Prepared::default();
    // Files of earlier workloads are still there unless they were removed.
    let mut made = request.made.clone();
    let kept = match marker {
        Some(marker) if marker.files == *files => {
            made = made.merged(&marker.made());
            marker.users
        }
        Some(marker) => {
            let before = marker.made();
            let removal =
                remove_inside(connector, &mut share, &directory, &before, request.sessions, &mut |_| {}).await?;
            done.removed = removal.removed;
            if removal.left.count > 0 {
                made = made.merged(&before);
            }
            0
        }
        None => 0,
    };
    if made.is_too_large() {
        return Err(PrepareError::Names);
    }
    // Until the end the marker says that no further user has all files, so an interrupted preparation is checked again.
    write_marker(&mut share, &directory, &Marker::new(request.workload, kept, files, &made)).await?;
    if files.files > 0 || files.own_directories {
        let state = PrepareState::new(request, progress);
        let more = state.work.borrow().len().min(request.sessions.max(1) as usize).saturating_sub(1);
        let shares = connect_more(connector, share, more).await?;
        share = join(shares.into_iter().map(|share| state.run(share, &directory, files)).collect()).await?;
        done = Prepared { removed: done.removed, ..state.done.get() };
    }
    let marker = Marker::new(request.workload, kept.max(request.users), files, &made);
    write_marker(&mut share, &directory, &marker).await?;
    share.disconnect().await;
    Ok(done)
}

pub(super) async fn clean<C: ShareConnector>(
    connector: &C,
    directory: &str,
    sessions: u32,
    progress: &mut dyn FnMut(PrepareProgress),
) -> Result<CleanupResult, PrepareError> {
    let directory = check_directory(directory)?;
    let mut share = connect(connector).await?;
    let listed = share.list(&directory).await.map_err(doing("list", &directory))?;
    let Some(entries) = listed else {
        share.disconnect().await;
        return Ok(CleanupResult::default());
    };
    let marker = read_marker(&mut share, &directory, &entries).await?;
    let mut cleaned = match &marker {
        Some(marker) => remove_inside(connector, &mut share, &directory, &marker.made(), sessions, progress).await?,
        // Either an earlier cleanup was interrupted just before its end, or nothing was ever created here.
        None if entries.is_empty() => CleanupResult::default(),
        None => return Err(PrepareError::NotOurs { directory, why: "has no marker" }),
    };
    if cleaned.left.count == 0 {
        remove_own_directory(&mut share, &directory, &entries, marker.as_ref(), &mut cleaned).await?;
    }
    share.disconnect().await;
    Ok(cleaned)
}

/// Removes the directory and its marker. If the server refuses because of unlisted entries, the marker is written back
/// so that cleanup can be repeated.
async fn remove_own_directory<S: ShareAccess>(
    share: &mut S,
    directory: &str,
    entries: &[ListingEntry],
    marker: Option<&Marker>,
    cleaned: &mut CleanupResult,
) -> Result<(), PrepareError> {
    for entry in entries.iter().filter(|entry| Marker::is_name(&entry.name)) {
        let path = format!("{directory}\\{}", entry.name);
        share.remove_file(&path).await.map_err(doing("remove", &path))?;
        cleaned.removed += 1;
    }
    let is_gone = is_gone_once_removed(share, directory).await;
    if let (Err(_) | Ok(false), Some(marker)) = (&is_gone, marker) {
        write_marker(share, directory, marker).await?;
    }
    if is_gone? {
        cleaned.removed += 1;
    } else {
        cleaned.left.add(format!("{directory}\\{HIDDEN}"));
    }
    Ok(())
}

/// Removes a directory that looks empty. Returns false if it stays because of an entry that the server does not list.
async fn is_gone_once_removed<S: ShareAccess>(share: &mut S, path: &str) -> Result<bool, PrepareError> {
    let Err(error) = share.remove_directory(path).await else { return Ok(true) };
    match error.status() {
        Some(NtStatus::DIRECTORY_NOT_EMPTY) => Ok(false),
        // Samba with wide links reports this for a dangling link inside the directory, not for the directory itself.
        Some(NtStatus::OBJECT_NAME_NOT_FOUND | NtStatus::OBJECT_PATH_NOT_FOUND) => {
            Ok(share.list(path).await.map_err(doing("list", path))?.is_none())
        }
        _ => Err(doing("remove", path)(error)),
    }
}

/// Creates the directory or verifies that it is ours. Returns its marker, or `None` if the directory is new or empty.
async fn claim<S: ShareAccess>(share: &mut S, directory: &str) -> Result<Option<Marker>, PrepareError> {
    let Some(entries) = share.list(directory).await.map_err(doing("list", directory))? else {
        share.make_directory(directory).await.map_err(doing("make", directory))?;
        return Ok(None);
    };
    match read_marker(share, directory, &entries).await? {
        Some(marker) => Ok(Some(marker)),
        None if entries.is_empty() => Ok(None),
        None => Err(PrepareError::NotOurs { directory: directory.to_owned(), why: "is not empty and has no marker" }),
    }
}

async fn read_marker<S: ShareAccess>(
    share: &mut S,
    directory: &str,
    entries: &[ListingEntry],
) -> Result<Option<Marker>, PrepareError> {
    for name in [MARKER_NAME, MARKER_NEW_NAME] {
        let Some(entry) = entries.iter().find(|entry| entry.name.eq_ignore_ascii_case(name)) else { continue };
        let path = format!("{directory}\\{}", entry.name);
        if entry.attributes & REPARSE_POINT != 0 || entry.is_directory() || entry.size > u64::from(MARKER_LARGEST) {
            continue;
        }
        let text = share.read(&path, MARKER_LARGEST).await.map_err(doing("read", &path))?;
        if let Some(marker) = text.and_then(|text| Marker::parse(&text)) {
            return Ok(Some(marker));
        }
    }
    Ok(None)
}

/// Writes the marker under a temporary name, then replaces the old one, so that at least one of the two always exists.
async fn write_marker<S: ShareAccess>(share: &mut S, directory: &str, marker: &Marker) -> Result<(), PrepareError> {
    let (path, new) = (format!("{directory}\\{}", MARKER_NAME), format!("{directory}\\{}", MARKER_NEW_NAME));
    let text = marker.to_text();
    share.write(&new, FileContent::Bytes(text.as_bytes())).await.map_err(doing("write", &new))?;
    match share.remove_file(&path).await {
        Err(error) if !is_missing(&error) => return Err(doing("remove", &path)(error)),
        _ => {}
    }
    share.rename(&new, &path).await.map_err(doing("rename", &new))
}

fn is_missing(error: &smbscope_client::ClientError) -> bool {
    matches!(
        error.status(),
        Some(NtStatus::OBJECT_NAME_NOT_FOUND | NtStatus::OBJECT_PATH_NOT_FOUND | NtStatus::NO_SUCH_FILE)
    )
}

/// Work item of one session: a directory of a file set, or a user's own directory if the set does not create it.
#[derive(Clone, Copy)]
struct DirectoryTask {
    owner: FileSetOwner,
    /// Directory number within the set. `None` for a user's own directory.
    number: Option<u32>,
}

struct PrepareState<'p> {
    work: RefCell<VecDeque<DirectoryTask>>,
    done: Cell<Prepared>,
    progress: Cell<PrepareProgress>,
    report: RefCell<&'p mut dyn FnMut(PrepareProgress)>,
}

impl<'p> PrepareState<'p> {
    fn new(request: &PrepareRequest<'_>, report: &'p mut dyn FnMut(PrepareProgress)) -> PrepareState<'p> {
        let files = request.files;
        let mut work = VecDeque::new();
        let owners: Vec<FileSetOwner> = match files.shared {
            true => vec![FileSetOwner::All],
            false => (0..request.users).map(FileSetOwner::User).collect(),
        };
        if files.files > 0 {
            let units = owners.iter().flat_map(|owner| {
                (0..files.directories).map(|number| DirectoryTask { owner: *owner, number: Some(number) })
            });
            work.extend(units);
        }
        if files.own_directories && (files.shared || files.files == 0) {
            work.extend((0..request.users).map(|user| DirectoryTask { owner: FileSetOwner::User(user), number: None }));
        }
        let sets = owners.len() as u64;
        let progress = PrepareProgress {
            of_files: sets * u64::from(files.files),
            of_bytes: sets.saturating_mul(files.bytes()),
            ..PrepareProgress::default()
        };
        PrepareState {
            work: RefCell::new(work),
            done: Cell::default(),
            progress: Cell::new(progress),
            report: RefCell::new(report),
        }
    }

    async fn run<S: ShareAccess>(&self, mut share: S, directory: &str, files: &FileSet) -> Result<S, PrepareError> {
        loop {
            let unit = self.work.borrow_mut().pop_front();
            let Some(unit) = unit else { return Ok(share) };
            match unit.number {
                Some(number) => self.fill(&mut share, directory, files, unit.owner, number).await?,
                None => {
                    if let FileSetOwner::User(user) = unit.owner {
                        let own = own_directory(directory, user);
                        share.make_directory(&own).await.map_err(doing("make", &own))?;
                    }
                }
            }
        }
    }

    async fn fill<S: ShareAccess>(
        &self,
        share: &mut S,
        directory: &str,
        files: &FileSet,
        owner: FileSetOwner,
        number: u32,
    ) -> Result<(), PrepareError> {
        let mut root = String::new();
        files.root(&mut root, directory, owner);
        let mut path = format!("{root}\\");
        files.directory_name(&mut path, number);
        let sizes = match share.list(&path).await.map_err(doing("list", &path))? {
            Some(entries) => sizes_of(&path, entries)?,
            None => {
                if let FileSetOwner::User(user) = owner {
                    let own = own_directory(directory, user);
                    share.make_directory(&own).await.map_err(doing("make", &own))?;
                }
                share.make_directory(&root).await.map_err(doing("make", &root))?;
                let ends = path.match_indices('\\').map(|(at, _)| at).filter(|at| *at > root.len()).chain([path.len()]);
                for end in ends {
                    share.make_directory(&path[..end]).await.map_err(doing("make", &path))?;
                }
                HashMap::new()
            }
        };
        for file in (number..files.files).step_by(files.directories.max(1) as usize) {
            path.truncate(root.len() + 1);
            files.file_name(&mut path, file);
            let size = files.size(file);
            let name = path.rsplit('\\').next().unwrap_or(&path);
            let mut done = self.done.get();
            if sizes.get(name) == Some(&size) {
                done.found += 1;
            } else {
                let content = FileContent::Random(size, files.content(owner, file));
                share.write(&path, content).await.map_err(doing("write", &path))?;
                // Other sessions changed the counters during the write.
                done = self.done.get();
                done.made += 1;
                done.bytes_written += size;
            }
            self.done.set(done);
            let mut progress = self.progress.get();
            progress.files += 1;
            progress.bytes += size;
            self.progress.set(progress);
            (self.report.borrow_mut())(progress);
        }
        Ok(())
    }
}

fn sizes_of(directory: &str, entries: Vec<ListingEntry>) -> Result<HashMap<String, u64>, PrepareError> {
    let mut sizes = HashMap::with_capacity(entries.len());
    for entry in entries {
        if entry.attributes & REPARSE_POINT != 0 {
            return Err(PrepareError::ReparsePoint { path: format!("{directory}\\{}", entry.name) });
        }
        sizes.insert(entry.name, entry.size);
    }
    Ok(sizes)
}

/// Removes everything that smbscope created in the directory, except the marker, over several sessions.
async fn remove_inside<C: ShareConnector>(
    connector: &C,
    share: &mut C::Share,
    directory: &str,
    made: &CreatedPaths,
    sessions: u32,
    progress: &mut dyn FnMut(PrepareProgress),
) -> Result<CleanupResult, PrepareError> {
    let entries = share.list(directory).await.map_err(doing("list", directory))?.unwrap_or_default();
    let entries = entries.into_iter().filter(|entry| !Marker::is_name(&entry.name));
    let work: RefCell<VecDeque<ListingEntry>> = RefCell::new(entries.collect());
    let removal = Removal { directory, made, done: RefCell::default(), report: RefCell::new(progress) };
    let more = work.borrow().len().min(sessions.max(1) as usize).saturating_sub(1);
    let mut others = Vec::new();
    for _ in 0..more {
        others.push(connect(connector).await?);
    }
    let mut shares: Vec<&mut C::Share> = others.iter_mut().collect();
    shares.push(share);
    let remove = async |share: &mut C::Share| -> Result<(), PrepareError> {
        loop {
            let entry = work.borrow_mut().pop_front();
            let Some(entry) = entry else { return Ok(()) };
            removal.remove_tree(share, entry).await?;
        }
    };
    join(shares.into_iter().map(remove).collect()).await?;
    for mut share in others {
        share.disconnect().await;
    }
    Ok(removal.done.into_inner())
}

#[derive(Default)]
struct Todo {
    steps: VecDeque<RemovalStep>,
    /// Directories that hold an entry which stays.
    kept: HashSet<String>,
}

/// A directory is listed first and removed once its content is gone.
enum RemovalStep {
    Look(String),
    Remove(String),
}

impl Todo {
    fn keep(&mut self, path: &str) {
        self.kept.extend(path.rsplit_once('\\').map(|(parent, _)| parent.to_owned()));
    }
}

struct Removal<'a> {
    directory: &'a str,
    made: &'a CreatedPaths,
    done: RefCell<CleanupResult>,
    report: RefCell<&'a mut dyn FnMut(PrepareProgress)>,
}

impl Removal<'_> {
    fn count(&self) {
        let mut done = self.done.borrow_mut();
        done.removed += 1;
        (self.report.borrow_mut())(PrepareProgress { files: done.removed, ..PrepareProgress::default() });
    }

    fn leave(&self, path: String, todo: &mut Todo) {
        todo.keep(&path);
        self.done.borrow_mut().left.add(path);
    }

    async fn remove_tree<S: ShareAccess>(&self, share: &mut S, entry: ListingEntry) -> Result<(), PrepareError> {
        let mut todo = Todo::default();
        self.remove_or_look(share, self.directory, entry, &mut todo).await?;
        while let Some(next) = todo.steps.pop_front() {
            match next {
                RemovalStep::Look(path) => {
                    let entries = share.list(&path).await.map_err(doing("list", &path))?.unwrap_or_default();
                    todo.steps.push_front(RemovalStep::Remove(path.clone()));
                    for entry in entries {
                        self.remove_or_look(share, &path, entry, &mut todo).await?;
                    }
                }
                RemovalStep::Remove(path) if todo.kept.contains(&path) => todo.keep(&path),
                RemovalStep::Remove(path) => {
                    if is_gone_once_removed(share, &path).await? {
                        self.count();
                    } else {
                        self.leave(format!("{path}\\{HIDDEN}"), &mut todo);
                        todo.keep(&path);
                    }
                }
            }
        }
        Ok(())
    }

    async fn remove_or_look<S: ShareAccess>(
        &self,
        share: &mut S,
        directory: &str,
        entry: ListingEntry,
        todo: &mut Todo,
    ) -> Result<(), PrepareError> {
        if entry.name.is_empty() || entry.name == ".." || entry.name.contains(['\\', '/']) {
            let error = smbscope_client::ClientError::Protocol(format!(
                "the name \"{}\" in a listing",
                entry.name.escape_debug()
            ));
            return Err(doing("list", directory)(error));
        }
        let path = format!("{directory}\\{}", entry.name);
        let below = path.get(self.directory.len() + 1..).unwrap_or_default();
        if entry.attributes & REPARSE_POINT != 0 || !self.made.has(below) {
            self.leave(path, todo);
        } else if entry.is_directory() {
            todo.steps.push_front(RemovalStep::Look(path));
        } else {
            share.remove_file(&path).await.map_err(doing("remove", &path))?;
            self.count();
        }
        Ok(())
    }
}

async fn connect<C: ShareConnector>(connector: &C) -> Result<C::Share, PrepareError> {
    connector.connect().await.map_err(|error| PrepareError::Client { what: "connect to the share".to_owned(), error })
}

/// Opens the additional sessions one at a time: a server may accept few connections at once.
async fn connect_more<C: ShareConnector>(
    connector: &C,
    first: C::Share,
    more: usize,
) -> Result<Vec<C::Share>, PrepareError> {
    let mut shares = vec![first];
    for _ in 0..more {
        shares.push(connect(connector).await?);
    }
    Ok(shares)
}

fn check_directory(directory: &str) -> Result<String, PrepareError> {
    match relative_path(directory) {
        Ok(directory) if directory.is_empty() => {
            Err(PrepareError::Directory { what: "the root of the share is not smbscope's".to_owned() })
        }
        Ok(directory) => Ok(directory),
        Err(what) => Err(PrepareError::Directory { what }),
    }
}

fn doing(verb: &str, path: &str) -> impl FnOnce(smbscope_client::ClientError) -> PrepareError {
    let what = format!("{verb} {path}");
    move |error| PrepareError::Client { what, error }
}

/// Runs all futures concurrently in this task until the last one completes or the first one fails. Returns the first
/// result.
async fn join<T>(futures: Vec<impl Future<Output = Result<T, PrepareError>>>) -> Result<T, PrepareError> {
    let mut running: Vec<Pin<Box<_>>> = futures.into_iter().map(Box::pin).collect();
    let mut first = None;
    poll_fn(move |context| {
        let mut failed = None;
        running.retain_mut(|future| match future.as_mut().poll(context) {
            Poll::Pending => true,
            Poll::Ready(Ok(value)) => {
                first.get_or_insert(value);
                false
            }
            Poll::Ready(Err(error)) => {
                failed.get_or_insert(error);
                false
            }
        });
        match failed {
            Some(error) => Poll::Ready(Err(error)),
            None if running.is_empty() => Poll::Ready(Ok(first.take().expect("at least one future was given"))),
            None => Poll::Pending,
        }
    })
    .await
}
