//! A file that is written beside its place and renamed when it is whole: whatever ends the work before leaves what was
//! there. Every file that smbscope writes for its user goes through here.

use super::private;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufWriter, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the name of a file ends with that is not whole yet.
const UNFINISHED: &str = ".partial";

/// Bytes of a file's name that its unfinished file has in its own: the longest name that file systems take is 255.
const NAME_MAX: usize = 200;

/// Symbolic links that are followed one after the other, as many as Linux does.
const LINKS_MAX: usize = 40;

/// Unfinished files of this process, to be removed when a signal ends it.
static BEGUN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Who may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Readers {
    /// Those that the umask allows, or those of the file that is replaced.
    Usual,
    /// Its owner alone.
    Owner,
}

/// What a path leads to.
pub enum Destination {
    /// A regular file, or none yet.
    File(Replacement),
    /// A terminal, a pipe, a device, a descriptor of this process: bytes go there as they come.
    Stream(File),
}

impl Destination {
    /// Finds out what the path leads to, and makes sure that it can be written.
    pub fn open(path: &Path) -> io::Result<Destination> {
        Destination::open_for(path, Readers::Usual)
    }

    fn open_for(path: &Path, readers: Readers) -> io::Result<Destination> {
        let path = match followed(path)? {
            Followed::Path(path) => path,
            Followed::Descriptor(path) => return descriptor(&path).map(Destination::Stream),
        };
        match fs::metadata(&path) {
            Ok(found) if found.is_file() || found.is_dir() => {
                // A directory, or a file that may not be written, is refused here and not at the end.
                let old = OpenOptions::new().write(true).open(&path)?;
                Replacement::begin(path, Some(old), readers).map(Destination::File)
            }
            // A socket cannot be opened, and says so.
            Ok(_) => OpenOptions::new().write(true).open(&path).map(Destination::Stream),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Replacement::begin(path, None, readers).map(Destination::File)
            }
            Err(error) => Err(error),
        }
    }
}

/// A file under construction. Dropping it removes what was written.
pub struct Replacement {
    new: File,
    /// Where it is until it is whole; removed already when it has been renamed.
    path: PathBuf,
    place: PathBuf,
    /// The file that is replaced.
    old: Option<File>,
    /// The directory takes no further file: at the end, the old one is written over.
    over: bool,
    readers: Readers,
}

impl Replacement {
    /// Begins a file that takes this place, which is no symbolic link.
    fn begin(place: PathBuf, old: Option<File>, readers: Readers) -> io::Result<Replacement> {
        let directory = directory(&place);
        let name = place.file_name().filter(|name| name.len() <= NAME_MAX).unwrap_or(OsStr::new("smbscope"));
        let mut begun = begun();
        let (new, path, over) = match create(directory, name, readers) {
            Err(error) if old.is_some() && is_closed(&error) => {
                // Everybody looks into that one.
                let (new, path) = create(&std::env::temp_dir(), name, Readers::Owner)?;
                (new, path, true)
            }
            made => made.map(|(new, path)| (new, path, false))?,
        };
        begun.push(path.clone());
        drop(begun);
        let replacement = Replacement { new, path, place, old, over, readers };
        if let Some(old) = &replacement.old {
            take_after(&replacement.new, &old.metadata()?, readers)?;
        }
        Ok(replacement)
    }

    /// Begins a file that takes the place of that name in a directory.
    pub fn new(path: &Path) -> io::Result<Replacement> {
        Replacement::within(path, Readers::Usual)
    }

    /// Begins one that only its owner reads, even where it replaces a file that others read.
    pub fn private(path: &Path) -> io::Result<Replacement> {
        Replacement::within(path, Readers::Owner)
    }

    fn within(path: &Path, readers: Readers) -> io::Result<Replacement> {
        match Destination::open_for(path, readers)? {
            Destination::File(replacement) => Ok(replacement),
            Destination::Stream(_) => Err(io::Error::other("not a regular file")),
        }
    }

    /// Writes it from its beginning.
    pub fn write(&mut self, write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>) -> io::Result<()> {
        let mut out = BufWriter::new(&self.new);
        write(&mut out)?;
        out.flush()
    }

    /// A handle of its own to write through.
    pub fn writer(&self) -> io::Result<File> {
        self.new.try_clone()
    }

    /// Where it is while it is not whole.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if both are to take the same place: the later one would replace the other.
    pub fn has_place_of(&self, other: &Replacement) -> bool {
        let place = |file: &Replacement| {
            Some((directory(&file.place).canonicalize().ok()?, file.place.file_name()?.to_owned()))
        };
        self.place == other.place || place(self).is_some_and(|own| Some(own) == place(other))
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> io::Result<bool> {
        Ok(self.new.metadata()?.len() == 0)
    }

    /// Puts the file, which is whole, in its place. What the disk does not have yet would be lost with the power.
    pub fn finish(mut self) -> io::Result<()> {
        on_disk(&self.new)?;
        if !self.over {
            // A signal finds it unfinished, or in its place.
            let mut begun = begun();
            match fs::rename(&self.path, &self.place) {
                Ok(()) => {
                    begun.retain(|path| *path != self.path);
                    return Ok(());
                }
                // Mounted by itself, or another user's in a directory for everybody.
                Err(error) if self.old.is_some() && is_closed(&error) => {}
                Err(error) => return Err(error),
            }
        }
        let Some(old) = &mut self.old else { return Ok(()) };
        if self.readers == Readers::Owner {
            private::make_private(old)?;
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

/// The directory of a path, which may be a bare name.
fn directory(place: &Path) -> &Path {
    place.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes an unfinished file for a file of that name, under a name that nothing has.
fn create(directory: &Path, name: &OsStr, readers: Readers) -> io::Result<(File, PathBuf)> {
    let mode = if readers == Readers::Owner { private::FILE } else { 0o666 };
    loop {
        let mut unfinished = OsStr::new(".").to_owned();
        unfinished.push(name);
        unfinished.push(format!(".{:08x}{UNFINISHED}", RandomState::new().hash_one(std::process::id()) as u32));
        let path = directory.join(unfinished);
        match OpenOptions::new().write(true).create_new(true).mode(mode).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|file| (file, path)),
        }
    }
}

/// Writes a file whole or not at all.
pub fn write_file(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut file = Replacement::new(path)?;
    file.write(|out| out.write_all(contents))?;
    file.finish()
}

/// Whether the name is that of an unfinished file for one of these names, which an earlier process left.
pub fn is_left_over(file: &str, names: impl Fn(&str) -> bool) -> bool {
    let name = file.strip_prefix('.').and_then(|name| name.strip_suffix(UNFINISHED));
    name.and_then(|name| name.rsplit_once('.')).is_some_and(|(name, _)| names(name))
}

/// Removes every unfinished file. The process ends after it: no other file is begun or finished any more.
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

/// Whether the directory, and not the file system, is the reason.
fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{CrossesDevices, PermissionDenied, ReadOnlyFilesystem, ResourceBusy};
    matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem | ResourceBusy | CrossesDevices)
}

/// Gives it the owner of the file that is replaced, as writing over it would have left it, and the mode, unless it is private.
fn take_after(new: &File, old: &Metadata, readers: Readers) -> io::Result<()> {
    let own = new.metadata()?;
    if (own.uid(), own.gid()) != (old.uid(), old.gid()) {
        // Only root may give files away; a group of the user's own is left to everybody.
        let _ = fchown(new, Some(old.uid()), Some(old.gid())).or_else(|_| fchown(new, None, Some(old.gid())));
    }
    match readers {
        Readers::Usual => new.set_permissions(fs::Permissions::from_mode(old.mode() & 0o777)),
        Readers::Owner => Ok(()),
    }
}

/// Some file systems cannot be asked to.
fn on_disk(file: &File) -> io::Result<()> {
    match file.sync_all() {
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        result => result,
    }
}

/// Where symbolic links lead.
enum Followed {
    Path(PathBuf),
    /// A descriptor of this process: `/dev/stdout`, `/dev/fd/3`, `/proc/self/fd/1`.
    Descriptor(PathBuf),
}

fn followed(path: &Path) -> io::Result<Followed> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        if is_descriptor(&path) {
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

/// Whether the path names a descriptor of a process: such a link says where the descriptor leads, and opening what it
/// names is not the same as writing to it.
fn is_descriptor(path: &Path) -> bool {
    let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
    parent.is_some_and(|parent| parent.starts_with("/proc") && parent.ends_with("fd"))
}

fn descriptor(path: &Path) -> io::Result<File> {
    let found = fs::metadata(path)?;
    // A copy of the descriptor shares its place in the file with whoever writes to it besides.
    let is = |own: &File| own.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (found.dev(), found.ino()));
    let streams = [io::stdout().as_fd().try_clone_to_owned(), io::stderr().as_fd().try_clone_to_owned()];
    if let Some(own) = streams.into_iter().flatten().map(File::from).find(is) {
        return Ok(own);
    }
    let seekable = found.is_file() || found.file_type().is_block_device();
    OpenOptions::new().write(true).append(seekable).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

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
        // A link to what is not there yet makes it.
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
}
