//! Files without owners and modes: what a folder's access list says holds for the files in it. A user's own folders
//! are private to that user.

use super::Readers;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;
use winapi_util::{AsHandleRef, HandleRef, file};

/// Identity of a file under any name: the volume's serial number and the file's index. `None` for devices and pipes,
/// which no output destroys.
pub(super) type Identity = (u64, u64);

pub(super) fn identity_at(path: &Path) -> Option<Identity> {
    identity_of(&File::open(path).ok()?)
}

pub(super) fn identity_of_stdin() -> Option<Identity> {
    identity_of(&HandleRef::stdin())
}

pub(super) fn identity_of_stdout() -> Option<Identity> {
    identity_of(&HandleRef::stdout())
}

fn identity_of(stream: &impl AsHandleRef) -> Option<Identity> {
    let found = file::information(stream.as_handle_ref()).ok()?;
    Some((found.volume_serial_number(), found.file_index()))
}

pub(super) fn create_new(path: &Path, _readers: Readers) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

pub(super) fn take_after(_new: &File, _old: &File, _readers: Readers) -> io::Result<()> {
    Ok(())
}

pub(super) fn make_private(_file: &File) -> io::Result<()> {
    Ok(())
}

pub(super) fn new_private_directory(path: &Path) -> io::Result<()> {
    fs::create_dir(path)
}

/// Returns true for a name that stands for a device in every folder, such as `NUL` and `con.txt`.
pub(super) fn names_device(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_uppercase()).unwrap_or_default();
    let stem = name.split(['.', ':']).next().unwrap_or_default().trim_end();
    let numbered = ["COM", "LPT"].iter().find_map(|port| stem.strip_prefix(port));
    ["CON", "CONIN$", "CONOUT$", "PRN", "AUX", "NUL"].contains(&stem)
        || numbered.is_some_and(|number| number.len() == 1 && number.as_bytes()[0].is_ascii_digit())
}

/// Returns false: no path stands for a descriptor.
pub(super) fn is_descriptor(_path: &Path) -> bool {
    false
}

pub(super) fn descriptor(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}
