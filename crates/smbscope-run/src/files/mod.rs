//! Output files: written under a temporary name and renamed once complete, so an interruption leaves the previous file,
//! and never over an input of the same command ([`Sources`]).
//!
//! All output files of smbscope are written through this module. Private files and directories can only be read by
//! their owner: run results contain user and file names; captures contain logins and content.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

pub use smbscope_capture::private::create_private;
use smbscope_capture::reader::CaptureInput;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

const UNFINISHED: &str = ".partial";

/// Bytes of a file's name in its temporary name. File systems limit names to 255.
const NAME_MAX: usize = 200;

/// Symbolic links followed; more are refused, as in Linux.
const LINKS_MAX: usize = 40;

/// Unfinished files of this process, removed when a signal ends it.
static BEGUN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Readers {
    /// Everyone whom the umask, or the replaced file, admits.
    Usual,
    Owner,
}

pub enum Destination {
    /// A regular file, or a path that doesn't exist yet.
    File(Replacement),
    /// A terminal, pipe, device or descriptor of this process, written directly.
    Stream(File),
}

impl Destination {
    pub fn open(path: &Path) -> io::Result<Destination> {
        Destination::open_for(path, Readers::Usual)
    }

    fn open_for(path: &Path, readers: Readers) -> io::Result<Destination> {
        let path = match followed(path)? {
            Followed::Path(path) => path,
            Followed::Descriptor(path) => return system::descriptor(&path).map(Destination::Stream),
        };
        if names_device(&path) {
            return OpenOptions::new().write(true).open(&path).map(Destination::Stream);
        }
        match fs::metadata(&path) {
            Ok(found) if found.is_file() || found.is_dir() => {
                // Refuses a directory or a read-only file now rather than at the end.
                let old = OpenOptions::new().write(true).open(&path)?;
                Replacement::begin(path, Some(old), readers).map(Destination::File)
            }
            Ok(_) => OpenOptions::new().write(true).open(&path).map(Destination::Stream),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Replacement::begin(path, None, readers).map(Destination::File)
            }
            Err(error) => Err(error),
        }
    }
}

/// A file under construction. Dropping it removes the temporary file.
pub struct Replacement {
    new: File,
    /// Temporary path, gone after the rename.
    path: PathBuf,
    place: PathBuf,
    old: Option<File>,
    /// The directory accepts no new file: `finish` copies over the old one.
    over: bool,
    readers: Readers,
}

impl Replacement {
    fn begin(place: PathBuf, old: Option<File>, readers: Readers) -> io::Result<Replacement> {
        let directory = directory(&place);
        let name = place.file_name().filter(|name| name.len() <= NAME_MAX).unwrap_or(OsStr::new("smbscope"));
        let mut begun = begun();
        let (new, path, over) = match create(directory, name, readers) {
            Err(error) if old.is_some() && is_closed(&error) => {
                // The temporary directory is shared, so the file is private.
                let (new, path) = create(&std::env::temp_dir(), name, Readers::Owner)?;
                (new, path, true)
            }
            made => made.map(|(new, path)| (new, path, false))?,
        };
        begun.push(path.clone());
        drop(begun);
        let replacement = Replacement { new, path, place, old, over, readers };
        if let Some(old) = &replacement.old {
            system::take_after(&replacement.new, old, readers)?;
        }
        Ok(replacement)
    }

    pub fn new(path: &Path) -> io::Result<Replacement> {
        Replacement::within(path, Readers::Usual)
    }

    /// Starts a file that only its owner can read, even if the file it replaces is public.
    pub fn private(path: &Path) -> io::Result<Replacement> {
        Replacement::within(path, Readers::Owner)
    }

    fn within(path: &Path, readers: Readers) -> io::Result<Replacement> {
        match Destination::open_for(path, readers)? {
            Destination::File(replacement) => Ok(replacement),
            Destination::Stream(_) => Err(io::Error::other("not a regular file")),
        }
    }

    pub fn write(&mut self, write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>) -> io::Result<()> {
        let mut out = BufWriter::new(&self.new);
        write(&mut out)?;
        out.flush()
    }

    pub fn writer(&self) -> io::Result<File> {
        self.new.try_clone()
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn has_place_of(&self, other: &Replacement) -> bool {
        let place = |file: &Replacement| {
            Some((directory(&file.place).canonicalize().ok()?, file.place.file_name()?.to_owned()))
        };
        self.place == other.place || place(self).is_some_and(|own| Some(own) == place(other))
    }

    pub fn is_empty(&self) -> io::Result<bool> {
        Ok(self.new.metadata()?.len() == 0)
    }

    /// Syncs the file and moves it into place. Without the sync a power failure could lose the contents.
    pub fn finish(mut self) -> io::Result<()> {
        on_disk(&self.new)?;
        if !self.over {
            // Holding the lock, so that a signal finds the file either unfinished or in place.
            let mut begun = begun();
            match fs::rename(&self.path, &self.place) {
                Ok(()) => {
                    begun.retain(|path| *path != self.path);
                    return Ok(());
                }
                // The file is a mount point, or another user's in a sticky directory.
                Err(error) if self.old.is_some() && is_closed(&error) => {}
                Err(error) => return Err(error),
            }
        }
        let Some(old) = &mut self.old else { return Ok(()) };
        if self.readers == Readers::Owner {
            system::make_private(old)?;
        }
        let mut new = File::open(&self.path)?;
        old.rewind()?;
        let length = io::copy(&mut new, old)?;
        old.set_len(length)?;
        on_disk(old)
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        let mut begun = begun();
        let count = begun.len();
        begun.retain(|path| *path != self.path);
        if begun.len() < count {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn directory(place: &Path) -> &Path {
    place.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn create(directory: &Path, name: &OsStr, readers: Readers) -> io::Result<(File, PathBuf)> {
    loop {
        let mut unfinished = OsStr::new(".").to_owned();
        unfinished.push(name);
        unfinished.push(format!(".{:08x}{UNFINISHED}", RandomState::new().hash_one(std::process::id()) as u32));
        let path = directory.join(unfinished);
        match system::create_new(&path, readers) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|file| (file, path)),
        }
    }
}

pub fn write_file(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut file = Replacement::new(path)?;
    file.write(|out| out.write_all(contents))?;
    file.finish()
}

/// Returns true if `file` is the unfinished version of one of these names, left by an earlier process.
pub fn is_left_over(file: &str, names: impl Fn(&str) -> bool) -> bool {
    let name = file.strip_prefix('.').and_then(|name| name.strip_suffix(UNFINISHED));
    name.and_then(|name| name.rsplit_once('.')).is_some_and(|(name, _)| names(name))
}

/// Removes every unfinished file. Call it right before the process ends: it blocks all other replacements for good.
pub fn abandon_all() {
    let begun = begun();
    for path in begun.iter() {
        let _ = fs::remove_file(path);
    }
    std::mem::forget(begun);
}

fn begun() -> MutexGuard<'static, Vec<PathBuf>> {
    BEGUN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns true if creating a file failed because of this directory or mount, so that overwriting may still work.
fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{CrossesDevices, PermissionDenied, ReadOnlyFilesystem, ResourceBusy};
    matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem | ResourceBusy | CrossesDevices)
}

/// Syncs the file, and ignores file systems that don't support it.
fn on_disk(file: &File) -> io::Result<()> {
    match file.sync_all() {
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        result => result,
    }
}

enum Followed {
    Path(PathBuf),
    /// A descriptor of this process: `/dev/stdout`, `/dev/fd/3`, `/proc/self/fd/1`.
    Descriptor(PathBuf),
}

fn followed(path: &Path) -> io::Result<Followed> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        if system::is_descriptor(&path) {
            return Ok(Followed::Descriptor(path));
        }
        if !fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink()) {
            return Ok(Followed::Path(path));
        }
        let target = fs::read_link(&path)?;
        path = path.parent().map_or_else(|| target.clone(), |parent| parent.join(&target));
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Returns the directory of a file, with links followed, even if the file does not exist yet. `None` for a descriptor.
pub fn directory_behind(path: &Path) -> Option<PathBuf> {
    match followed(path) {
        Ok(Followed::Path(path)) => Some(directory(&path).to_owned()),
        Ok(Followed::Descriptor(_)) | Err(_) => None,
    }
}

/// Returns true if the name is a device's in every folder, as some are on Windows.
pub fn names_device(path: &Path) -> bool {
    system::names_device(path)
}

pub fn new_private_directory(path: &Path) -> io::Result<()> {
    system::new_private_directory(path)
}

/// Creates a private directory, with ordinary parents. An existing directory keeps its mode.
pub fn create_private_directory(path: &Path) -> io::Result<()> {
    if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
        fs::create_dir_all(above)?;
    }
    match new_private_directory(path) {
        Err(_) if path.is_dir() => Ok(()),
        made => made,
    }
}

#[derive(Debug, Default)]
pub struct Sources(Vec<SourceIdentity>);

#[derive(Debug)]
struct SourceIdentity {
    name: String,
    identity: system::Identity,
}

impl Sources {
    pub fn of_inputs(inputs: &[CaptureInput]) -> Sources {
        let mut sources = Sources::default();
        for input in inputs {
            match input {
                CaptureInput::File(path) => sources.add(path),
                CaptureInput::Stdin => sources.add_stdin(),
                // Has no place in the file system.
                CaptureInput::Sliced(_) => {}
            }
        }
        sources
    }

    /// Adds a file, or a directory with the files in it. Ignores paths that can't be read; reading them later reports
    /// the error.
    pub fn add(&mut self, path: &Path) {
        if !path.is_dir() {
            return self.note(path.display().to_string(), system::identity_at(path));
        }
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            let file = entry.path();
            self.note(file.display().to_string(), system::identity_at(&file));
        }
    }

    fn add_stdin(&mut self) {
        self.note("standard input".to_owned(), system::identity_of_stdin());
    }

    fn note(&mut self, name: String, identity: Option<system::Identity>) {
        self.0.extend(identity.map(|identity| SourceIdentity { name, identity }));
    }

    /// Returns the input that this path leads to.
    pub fn name_at(&self, path: &Path) -> Option<&str> {
        self.name_of(system::identity_at(path))
    }

    /// Returns the input that standard output would overwrite.
    pub fn name_of_stdout(&self) -> Option<&str> {
        self.name_of(system::identity_of_stdout())
    }

    fn name_of(&self, found: Option<system::Identity>) -> Option<&str> {
        let found = found?;
        self.0.iter().find(|source| source.identity == found).map(|source| source.name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_was_there_stays_until_the_new_file_is_whole() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("report");
        fs::write(&path, "yesterday").unwrap();
        let mut dropped = Replacement::new(&path).unwrap();
        dropped.write(|out| out.write_all(b"half")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "yesterday");
        drop(dropped);
        assert_eq!(names(place.path()), ["report"]);
        write_file(&path, b"today").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names(place.path()).len()), ("today", 1));
    }

    #[test]
    fn mode_and_links_are_those_of_the_file_that_is_replaced() {
        let place = tempfile::tempdir().unwrap();
        let (path, link) = (place.path().join("report"), place.path().join("link"));
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("report", &link).unwrap();
        write_file(&link, b"today").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let found = fs::metadata(&path).unwrap();
        assert_eq!((found.mode() & 0o777, fs::read_to_string(&path).unwrap().as_str()), (0o640, "today"));
        // Writing through a dangling link creates its target.
        symlink("later", place.path().join("dangling")).unwrap();
        write_file(&place.path().join("dangling"), b"new").unwrap();
        assert_eq!(fs::read_to_string(place.path().join("later")).unwrap(), "new");
    }

    #[test]
    fn a_private_file_is_private_from_its_beginning_and_in_the_place_of_a_public_one() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("point.pcap");
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        for _ in 0..2 {
            let mut file = Replacement::private(&path).unwrap();
            assert_eq!(mode(file.path()), 0o600);
            file.write(|out| out.write_all(b"logins")).unwrap();
            file.finish().unwrap();
            assert_eq!(mode(&path), 0o600);
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn a_directory_and_a_loop_of_links_are_refused_at_once() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(Destination::open(place.path()).err().unwrap().kind(), io::ErrorKind::IsADirectory);
        symlink("loop", place.path().join("loop")).unwrap();
        assert!(Destination::open(&place.path().join("loop")).is_err());
    }

    #[test]
    fn left_over_files_are_known_by_their_names() {
        let place = tempfile::tempdir().unwrap();
        let unfinished = Replacement::new(&place.path().join("run.json")).unwrap();
        let name = unfinished.path().file_name().unwrap().to_str().unwrap().to_owned();
        assert!(is_left_over(&name, |name| name == "run.json"), "{name}");
        assert!(!is_left_over("run.json", |_| true) && !is_left_over(".hidden", |_| true));
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn only_the_owner_reads_them_whatever_was_there() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fs::write(&file, "for everybody").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        create_private(&file).unwrap();
        assert_eq!((mode(&file), fs::read(&file).unwrap().len()), (0o600, 0));
    }

    #[test]
    fn a_directory_that_was_there_keeps_its_mode() {
        let place = tempfile::tempdir().unwrap();
        let new = place.path().join("above/new");
        create_private_directory(&new).unwrap();
        assert_eq!(mode(&new), 0o700);
        fs::set_permissions(&new, Permissions::from_mode(0o750)).unwrap();
        create_private_directory(&new).unwrap();
        assert_eq!(mode(&new), 0o750);
        fs::write(place.path().join("file"), "").unwrap();
        assert!(create_private_directory(&place.path().join("file")).is_err());
    }
}
