//! Owners and modes of files, and descriptors of this process.

use super::Readers;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;

const PRIVATE_FILE_MODE: u32 = 0o600;
const PRIVATE_DIRECTORY_MODE: u32 = 0o700;

/// Identity of a file under any name: device and inode. `None` for devices and pipes, which no output destroys.
pub(super) type Identity = (u64, u64);

fn identity(found: &Metadata) -> Option<Identity> {
    found.is_file().then(|| (found.dev(), found.ino()))
}

pub(super) fn identity_at(path: &Path) -> Option<Identity> {
    identity(&fs::metadata(path).ok()?)
}

pub(super) fn identity_of_stdin() -> Option<Identity> {
    identity_of(io::stdin())
}

pub(super) fn identity_of_stdout() -> Option<Identity> {
    identity_of(io::stdout())
}

fn identity_of(stream: impl AsFd) -> Option<Identity> {
    identity(&File::from(stream.as_fd().try_clone_to_owned().ok()?).metadata().ok()?)
}

pub(super) fn create_new(path: &Path, readers: Readers) -> io::Result<File> {
    let mode = if readers == Readers::Owner { PRIVATE_FILE_MODE } else { 0o666 };
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
}

/// Copies owner and mode from the replaced file, as overwriting would have kept them. A private file keeps its own
/// mode.
pub(super) fn take_after(new: &File, old: &File, readers: Readers) -> io::Result<()> {
    let (own, old) = (new.metadata()?, old.metadata()?);
    if (own.uid(), own.gid()) != (old.uid(), old.gid()) {
        // Only root can change the owner; others can still set one of their own groups.
        let _ = fchown(new, Some(old.uid()), Some(old.gid())).or_else(|_| fchown(new, None, Some(old.gid())));
    }
    match readers {
        Readers::Usual => new.set_permissions(Permissions::from_mode(old.mode() & 0o777)),
        Readers::Owner => Ok(()),
    }
}

/// Sets the mode to 0600. Ignored on file systems without modes.
pub(super) fn make_private(file: &File) -> io::Result<()> {
    match file.set_permissions(Permissions::from_mode(PRIVATE_FILE_MODE)) {
        Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported) => Ok(()),
        made => made,
    }
}

pub(super) fn new_private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(PRIVATE_DIRECTORY_MODE).create(path)
}

/// Returns false: devices are files here.
pub(super) fn names_device(_path: &Path) -> bool {
    false
}

/// Returns true if the path names a descriptor of a process. The target of such a link is only informative: opening it
/// is not the same as writing to the descriptor.
pub(super) fn is_descriptor(path: &Path) -> bool {
    let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
    parent.is_some_and(|parent| parent.starts_with("/proc") && parent.ends_with("fd"))
}

pub(super) fn descriptor(path: &Path) -> io::Result<File> {
    let found = fs::metadata(path)?;
    // A duplicated descriptor shares the file position with other writers.
    let is = |own: &File| own.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (found.dev(), found.ino()));
    let streams = [io::stdout().as_fd().try_clone_to_owned(), io::stderr().as_fd().try_clone_to_owned()];
    if let Some(own) = streams.into_iter().flatten().map(File::from).find(is) {
        return Ok(own);
    }
    let seekable = found.is_file() || found.file_type().is_block_device();
    OpenOptions::new().write(true).append(seekable).open(path)
}
