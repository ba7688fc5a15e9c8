//! Folder for everything that a killed process would leave: temporary files, mounts and child processes. Opening a new
//! one removes those whose owner is gone.
//!
//! The owner holds a lock (flock(2)), which the kernel releases when it dies, in any namespace.

use crate::process::{self, LabProcessRole};
use crate::{LabError, mounts, trust};
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

const PREFIX: &str = "smbscope-work-";
const LOCK: &str = ".lock";
/// Attempts to create one: another process may remove a folder before it is locked.
const ATTEMPTS: u32 = 8;

#[derive(Debug)]
pub struct Workplace {
    folder: PathBuf,
    swept: usize,
    _lock: OwnedFd,
}

impl Workplace {
    /// Creates one in the temporary folder, after removing the folders of dead processes of this user.
    pub fn open() -> Result<Workplace, LabError> {
        Workplace::open_in(&std::env::temp_dir())
    }

    fn open_in(above: &Path) -> Result<Workplace, LabError> {
        let above = above.canonicalize().map_err(LabError::file("find", above))?;
        let swept = sweep(&above);
        for _ in 0..ATTEMPTS {
            let made = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&above);
            let folder = made.map_err(LabError::file("make a folder in", &above))?.keep();
            match lock(&folder, OFlags::CREATE) {
                Ok(Some(lock)) => return Ok(Workplace { folder, swept, _lock: lock }),
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    let _ = fs::remove_dir(&folder);
                    return Err(LabError::file("lock a file in", &folder)(error));
                }
            }
        }
        Err(LabError::file("make a folder in", &above)(io::Error::other("another process keeps removing it")))
    }

    pub fn path(&self) -> &Path {
        &self.folder
    }

    pub fn swept(&self) -> usize {
        self.swept
    }

    pub fn mark(&self, command: &mut Command) {
        process::mark(command, &self.folder, LabProcessRole::Work);
    }

    pub fn end_processes(&self) {
        let _ = process::end(&self.folder);
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        remove_or_tell(&self.folder);
    }
}

fn sweep(above: &Path) -> usize {
    let entries = fs::read_dir(above).into_iter().flatten().filter_map(Result::ok);
    let named = entries.filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX)));
    // In a shared temporary directory others can create folders and links at will.
    let own = named.map(|entry| entry.path()).filter(|folder| trust::is_own_folder(folder).unwrap_or(false));
    own.filter(|folder| match lock(folder, OFlags::empty()) {
        // The lock is held during removal, so that only one process removes the folder.
        Ok(Some(_lock)) => remove_or_tell(folder),
        Ok(None) => false,
        // The owner died, or has not locked it yet and will create another one.
        Err(_) => fs::remove_dir(folder).is_ok(),
    })
    .count()
}

/// Takes the lock of a folder. Returns `None` if its owner is alive.
fn lock(folder: &Path, create: OFlags) -> io::Result<Option<OwnedFd>> {
    let flags = create | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::open(folder.join(LOCK), flags, Mode::RUSR | Mode::WUSR)?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn remove_or_tell(folder: &Path) -> bool {
    remove(folder).inspect_err(|error| tracing::warn!("{error}")).is_ok()
}

fn remove(folder: &Path) -> Result<(), LabError> {
    if !process::end(folder) {
        let said = format!("some of the processes that it started can't be ended, and {} stays", folder.display());
        return Err(LabError::Program { program: "smbscope".to_owned(), said });
    }
    let mut mounted = mounts::below(folder).map_err(LabError::file("look at", folder))?;
    mounted.sort();
    mounted.iter().rev().try_for_each(|mount| mounts::unmount(mount))?;
    // Files on foreign mounts must not be removed.
    if let Some(mount) = mounts::below(folder).map_err(LabError::file("look at", folder))?.first() {
        return Err(LabError::file("remove", mount)(io::Error::other("something is still mounted on it")));
    }
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(LabError::file("remove", folder)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Process;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn folder(above: &Path, name: &str) -> PathBuf {
        let folder = above.join(format!("{PREFIX}{name}"));
        fs::create_dir(&folder).expect("it is new");
        fs::set_permissions(&folder, PermissionsExt::from_mode(0o700)).expect("it is ours");
        folder
    }

    fn abandoned(above: &Path, name: &str) -> PathBuf {
        let folder = folder(above, name);
        fs::write(folder.join(LOCK), "").expect("it can be written");
        fs::write(folder.join("secret"), "x").expect("it can be written");
        folder
    }

    #[test]
    fn what_a_killed_owner_left_is_removed_with_its_processes_and_nothing_else() {
        let above = tempfile::tempdir().expect("a temporary directory can be made");
        let live = Workplace::open_in(above.path()).expect("there is room");
        let dead = abandoned(above.path(), "dead");
        let mut child = Command::new("sleep");
        process::mark(child.arg("1000"), &dead.canonicalize().expect("it is there"), LabProcessRole::Work);
        let mut child = child.spawn().expect("there is a sleep(1)");
        let process = Process::find(child.id()).expect("it has just been started");
        let mut bystander = Command::new("sleep");
        live.mark(bystander.arg("1000"));
        let mut bystander = bystander.spawn().expect("there is a sleep(1)");
        // Not ours: content without a lock, another name, a link, and a folder writable by others.
        let unlocked = folder(above.path(), "unlocked");
        fs::write(unlocked.join("kept"), "").expect("it can be written");
        let foreign = above.path().join("smbscope-else");
        fs::create_dir(&foreign).expect("it is new");
        let elsewhere = tempfile::tempdir().expect("a temporary directory can be made");
        let target = abandoned(elsewhere.path(), "target");
        symlink(&target, above.path().join(format!("{PREFIX}link"))).expect("a link can be made");
        let open = abandoned(above.path(), "open");
        fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).expect("it is ours");

        let new = Workplace::open_in(above.path()).expect("there is room");
        assert_eq!(new.swept(), 1);
        assert!(!dead.exists() && !process.lives());
        for kept in [live.path(), new.path(), &unlocked, &foreign, &target.join("secret"), &open.join("secret")] {
            assert!(kept.exists(), "{}", kept.display());
        }
        child.wait().expect("it was ended");
        assert!(bystander.try_wait().expect("it can be asked").is_none());
        let path = live.path().to_owned();
        drop(live);
        assert!(!path.exists());
        bystander.wait().expect("it ended with its workplace");
    }

    #[test]
    fn a_folder_without_lock_and_content_is_removed() {
        let above = tempfile::tempdir().expect("a temporary directory can be made");
        let empty = folder(above.path(), "empty");
        drop(Workplace::open_in(above.path()).expect("there is room"));
        assert!(!empty.exists());
    }
}
