//! The folder with a launched program's files: local, or on a share mounted for it.

use super::mount::{Mount, Mounter};
use crate::BenchError;
use crate::files::new_private_directory;
use smbscope_client::SessionOptions;
use smbscope_lab::{Workplace, is_abandoned, own_name};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Writing 3 here empties the system's file caches (Documentation/admin-guide/sysctl/vm.rst).
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// The program's folder. Dropping it removes the folder if it was created here.
pub(super) struct ProgramFolder {
    share: Option<(Mounter, SessionOptions, PathBuf)>,
    mount: Option<Mount>,
    made: Option<String>,
    folder: PathBuf,
    workplace: Arc<Workplace>,
    pub(super) left_out: u64,
}

impl ProgramFolder {
    /// Uses an existing folder, which is kept. The content, if any, goes to a new folder inside it.
    pub(super) fn folder(
        folder: &Path,
        content: Option<&Path>,
        workplace: &Arc<Workplace>,
    ) -> Result<ProgramFolder, BenchError> {
        if !folder.is_dir() {
            return Err(BenchError::Unavailable(format!("{} is not a folder", folder.display())));
        }
        // Absolute, because the program may change its working directory.
        let folder = folder.canonicalize().map_err(BenchError::file("look into", folder))?;
        let workplace = Arc::clone(workplace);
        let mut place = ProgramFolder { share: None, mount: None, made: None, folder, workplace, left_out: 0 };
        if let Some(content) = content {
            place.make_own()?;
            place.left_out = copied(content, &place.folder)?;
        }
        Ok(place)
    }

    pub(super) fn temporary(content: Option<&Path>, workplace: &Arc<Workplace>) -> Result<ProgramFolder, BenchError> {
        let folder = workplace.path().join("files");
        new_private_directory(&folder).map_err(BenchError::file("make", &folder))?;
        let left_out = content.map_or(Ok(0), |content| copied(content, &folder))?;
        // Not in `made`: it is removed with the workplace.
        let workplace = Arc::clone(workplace);
        Ok(ProgramFolder { share: None, mount: None, made: None, folder, workplace, left_out })
    }

    /// Creates a new folder below the current one and switches to it. Removes the folders of killed launches.
    fn make_own(&mut self) -> Result<(), BenchError> {
        remove_abandoned(&self.folder);
        let name = own_name(PREFIX);
        let folder = self.folder.join(&name);
        new_private_directory(&folder).map_err(BenchError::file("make", &folder))?;
        (self.made, self.folder) = (Some(name), folder);
        Ok(())
    }

    pub(super) fn share(
        mounter: Mounter,
        options: &SessionOptions,
        directory: &str,
        content: Option<&Path>,
        workplace: &Arc<Workplace>,
    ) -> Result<ProgramFolder, BenchError> {
        let mount = Mount::open(mounter, options, workplace)?;
        let within = PathBuf::from(directory.replace('\\', "/"));
        let above = mount.root().join(&within);
        fs::create_dir_all(&above).map_err(BenchError::file("make", &above))?;
        let share = Some((mounter, options.clone(), within));
        let workplace = Arc::clone(workplace);
        let mut place = ProgramFolder { share, mount: Some(mount), made: None, folder: above, workplace, left_out: 0 };
        place.make_own()?;
        place.left_out = content.map_or(Ok(0), |content| copied(content, &place.folder))?;
        Ok(place)
    }

    pub(super) fn path(&self) -> &Path {
        &self.folder
    }

    /// Empties this machine's caches (including a local server's) and the mount's.
    pub(super) fn cool(&mut self) -> Result<(), BenchError> {
        self.mount = None;
        rustix::fs::sync();
        drop_caches()?;
        self.mount_again()
    }

    pub(super) fn mount_again(&mut self) -> Result<(), BenchError> {
        if let (Some((mounter, options, within)), Some(made)) = (&self.share, &self.made) {
            self.mount = None;
            let mount = Mount::open(*mounter, options, &self.workplace)?;
            self.folder = mount.root().join(within).join(made);
            self.mount = Some(mount);
        }
        Ok(())
    }
}

impl Drop for ProgramFolder {
    fn drop(&mut self) {
        // A folder on a share that is no longer mounted can't be removed.
        if self.made.is_some() && self.share.is_some() == self.mount.is_some() {
            let _ = fs::remove_dir_all(&self.folder);
            // Also removes its directory on the share, if it is empty now.
            let _ = self.mount.is_some().then(|| self.folder.parent().map(fs::remove_dir));
        }
    }
}

const PREFIX: &str = "smbscope-launch-";

fn remove_abandoned(above: &Path) {
    let entries = fs::read_dir(above).into_iter().flatten().filter_map(Result::ok);
    let abandoned = entries.filter(|entry| entry.file_name().to_str().is_some_and(|name| is_abandoned(name, PREFIX)));
    for folder in abandoned.map(|entry| entry.path()) {
        let own_uid = rustix::process::geteuid().as_raw();
        if fs::symlink_metadata(&folder).is_ok_and(|found| found.is_dir() && found.uid() == own_uid) {
            let _ = fs::remove_dir_all(&folder);
        }
    }
}

/// Empties the system's file caches. Fails unless run as root.
pub(super) fn drop_caches() -> Result<(), BenchError> {
    fs::write(DROP_CACHES, "3").map_err(|error| {
        let text =
            format!("--cold empties the file caches of this machine, which only root may ({DROP_CACHES}: {error})");
        BenchError::Unavailable(text)
    })
}

fn copied(from: &Path, to: &Path) -> Result<u64, BenchError> {
    let mut left_out = 0;
    let mut folders = vec![(from.to_owned(), to.to_owned())];
    while let Some((from, to)) = folders.pop() {
        for entry in fs::read_dir(&from).map_err(BenchError::file("look into", &from))? {
            let entry = entry.map_err(BenchError::file("look into", &from))?;
            let kind = entry.file_type().map_err(BenchError::file("look at", &entry.path()))?;
            let target = to.join(entry.file_name());
            if kind.is_dir() {
                fs::create_dir(&target).map_err(BenchError::file("make", &target))?;
                folders.push((entry.path(), target));
            } else if kind.is_file() {
                // Without the mode, which some mounts don't support.
                let mut source = fs::File::open(entry.path()).map_err(BenchError::file("read", &entry.path()))?;
                let mut copy = fs::File::create_new(&target).map_err(BenchError::file("write", &target))?;
                std::io::copy(&mut source, &mut copy).map_err(BenchError::file("write", &target))?;
            } else {
                left_out += 1;
            }
        }
    }
    Ok(left_out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn content_is_copied_without_what_is_no_file_and_goes_with_the_place() {
        let content = tempfile::tempdir().unwrap();
        fs::create_dir(content.path().join("a")).unwrap();
        fs::write(content.path().join("a/b"), "text").unwrap();
        symlink("/etc", content.path().join("etc")).unwrap();
        let above = tempfile::tempdir().unwrap();
        let workplace = Arc::new(Workplace::open().unwrap());
        // Leftovers of killed launches: one of this user and machine, and another that may still be in use elsewhere.
        let own = own_name(PREFIX);
        let dead = above.path().join(format!("{own}1"));
        let elsewhere = above.path().join(own.replace(PREFIX, &format!("{PREFIX}f")));
        [&dead, &elsewhere].into_iter().for_each(|left| fs::create_dir_all(left.join("a")).unwrap());
        let place = ProgramFolder::folder(above.path(), Some(content.path()), &workplace).unwrap();
        assert_eq!((dead.exists(), elsewhere.exists()), (false, true));
        let folder = place.path().to_owned();
        assert_eq!(fs::read_to_string(folder.join("a/b")).unwrap(), "text");
        assert_eq!((place.left_out, folder.join("etc").exists()), (1, false));
        drop(place);
        assert!(!folder.exists() && above.path().exists() && content.path().join("a/b").exists());
    }

    #[test]
    fn a_folder_that_is_there_stays_with_all_that_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("kept"), "").unwrap();
        let workplace = Arc::new(Workplace::open().unwrap());
        drop(ProgramFolder::folder(folder.path(), None, &workplace).unwrap());
        assert!(folder.path().join("kept").exists());
        assert!(ProgramFolder::folder(&folder.path().join("kept"), None, &workplace).is_err());
    }
}
