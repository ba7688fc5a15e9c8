//! Finds and removes mounts on a server's folders, and mounts small file systems that can fill up.
//!
//! Reads the kernel's list of mounts instead of the folders: a folder whose file system has died can't be inspected.

use crate::LabError;
use crate::command_for;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

const LIST: &str = "/proc/self/mountinfo";

const STACKED_MAX: usize = 16;

/// Unmounts lazily (`MNT_DETACH`): processes keep the mount until they close it. Ignores other folders.
pub fn unmount(folder: &Path) -> Result<(), LabError> {
    let failed = |error: io::Error| LabError::file("unmount", folder)(error);
    for _ in 0..STACKED_MAX {
        let Some(real) = real(folder).map_err(failed)? else { return Ok(()) };
        if !below(folder).map_err(failed)?.contains(&real) {
            return Ok(());
        }
        detach(&real).map_err(failed)?;
    }
    Err(failed(io::Error::other("another program keeps mounting something there")))
}

pub(crate) fn below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let Some(real) = real(folder)? else { return Ok(Vec::new()) };
    let list = match fs::read(LIST) {
        Ok(list) => list,
        // Without the list, nothing was mounted either.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    Ok(points(&list).filter(|point| point.starts_with(&real)).collect())
}

/// Returns the path without links, as the kernel lists it, or `None` if the parent does not exist.
fn real(folder: &Path) -> io::Result<Option<PathBuf>> {
    let (Some(above), Some(name)) = (folder.parent(), folder.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a server's folder"));
    };
    match above.canonicalize() {
        Ok(above) => Ok(Some(above.join(name))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn points(list: &[u8]) -> impl Iterator<Item = PathBuf> {
    let lines = list.split(|byte| *byte == b'\n');
    lines.filter_map(|line| line.split(|byte| *byte == b' ').nth(4)).map(unescaped)
}

fn unescaped(field: &[u8]) -> PathBuf {
    let mut path = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, behind)) = rest.split_first() {
        let escaped = behind.get(..3).filter(|_| *first == b'\\').and_then(|digits| {
            let text = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(text, 8).ok()
        });
        match escaped {
            Some(byte) => {
                path.push(byte);
                rest = &behind[3..];
            }
            None => {
                path.push(*first);
                rest = behind;
            }
        }
    }
    PathBuf::from(OsString::from_vec(path))
}

#[cfg(target_os = "linux")]
fn detach(folder: &Path) -> io::Result<()> {
    use rustix::io::Errno;
    use rustix::mount::UnmountFlags;
    match rustix::mount::unmount(folder, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
        Err(Errno::PERM) => detach_as_user(folder),
        done => Ok(done?),
    }
}

#[cfg(not(target_os = "linux"))]
fn detach(folder: &Path) -> io::Result<()> {
    detach_as_user(folder)
}

/// Unmounts with fusermount3(1), which also mounted it for an unprivileged user.
fn detach_as_user(folder: &Path) -> io::Result<()> {
    let helper = crate::tools::find("fusermount3").or_else(|| crate::tools::find("fusermount"));
    let helper = helper.ok_or_else(|| io::Error::new(io::ErrorKind::PermissionDenied, "only root may do that"))?;
    let mut command = command_for(helper);
    command.args(["-u", "-z", "--"]).arg(folder).stdin(Stdio::null()).stdout(Stdio::null());
    let output = command.stderr(Stdio::piped()).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(String::from_utf8_lossy(output.stderr.trim_ascii()).into_owned()))
}

#[cfg(target_os = "linux")]
pub(crate) use linux::mount_tmpfs;

#[cfg(not(target_os = "linux"))]
pub(crate) fn mount_tmpfs(_folder: &Path, _bytes: u64) -> Result<(), LabError> {
    Err(LabError::Unavailable("a disk of its own needs Linux".to_owned()))
}

#[cfg(target_os = "linux")]
mod linux {
    use super::{LabError, Path};
    use rustix::io::Errno;
    use rustix::mount::MountFlags;
    use smbscope_model::units;
    use std::ffi::CString;

    pub(crate) fn mount_tmpfs(folder: &Path, bytes: u64) -> Result<(), LabError> {
        let options = CString::new(format!("size={bytes},mode=0755")).expect("a number has no zero byte");
        let flags = MountFlags::NODEV | MountFlags::NOSUID;
        rustix::mount::mount("smbscope-lab", folder, "tmpfs", flags, &*options).map_err(|error| {
        let size = units::exact_size(bytes);
        let why = match error {
            Errno::PERM | Errno::ACCESS => "only root may mount one here".to_owned(),
            other => other.to_string(),
        };
        let text = format!("a disk of {size} is a file system in memory, and it can't be mounted: {why}; run it as root, or share a folder on a small disk of your own with --share-folder");
        LabError::Unavailable(text)
    })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Example of proc_pid_mountinfo(5), with a path that has to be escaped.
    #[test]
    fn mount_points_with_blanks_and_backslashes_are_read() {
        let list = b"36 35 98:0 /mnt1 /mnt\\0402\\134x rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n\
                     37 35 0:5 / /a\\b rw - tmpfs x rw\nshort line\n";
        let points: Vec<PathBuf> = points(list).collect();
        assert_eq!(points[..2], [PathBuf::from("/mnt 2\\x"), PathBuf::from("/a\\b")]);
    }

    #[test]
    fn a_folder_without_a_mount_needs_nothing_to_be_taken_away() {
        let folder = tempfile::tempdir().expect("a temporary directory can be made");
        assert_eq!(below(folder.path()).expect("there is a list of mounts"), Vec::<PathBuf>::new());
        unmount(folder.path()).expect("there is nothing to do");
    }
}
