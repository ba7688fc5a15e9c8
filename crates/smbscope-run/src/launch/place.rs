//! Where a launched program finds its files: a folder of this machine, or one on a share that is mounted for it.

use super::mount::{Mount, Mounter};
use crate::BenchError;
use crate::files::new_private_directory;
use smbscope_client::SessionOptions;
use smbscope_lab::{Workplace, is_abandoned, own_name};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Empties the caches of the system of what they hold of files (Documentation/admin-guide/sysctl/vm.rst).
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// A folder for a program's files, removed with this value.
pub(super) struct ProgramFolder {
    /// The share, how to mount it, and where in it: with slashes.
    share: Option<(Mounter, SessionOptions, PathBuf)>,
    mount: Option<Mount>,
    /// The name of the folder, if it was made here and is removed with this value.
    made: Option<String>,
    folder: PathBuf,
    workplace: Arc<Workplace>,
    /// Content that could not be copied: links and what is no file.
    pub(super) left_out: u64,
}

impl ProgramFolder {
    /// A folder that is there already, and stays; one of its own below it takes the content, if there is any.
    pub(super) fn folder(
        folder: &Path,
        content: Option<&Path>,
        workplace: &Arc<Workplace>,
    ) -> Result<ProgramFolder, BenchError> {
        if !folder.is_dir() {
            return Err(BenchError::Unavailable(format!("{} is no folder", folder.display())));
        }
        // A path that is the same wherever the program works.
        let folder = folder.canonicalize().map_err(BenchError::file("look into", folder))?;
        let workplace = Arc::clone(workplace);
        let mut place = ProgramFolder { share: None, mount: None, made: None, folder, workplace, left_out: 0 };
        if let Some(content) = content {
            place.make_own()?;
            place.left_out = copied(content, &place.folder)?;
        }
        Ok(place)
    }

    /// A new folder among those for temporary files.
    pub(super) fn temporary(content: Option<&Path>, workplace: &Arc<Workplace>) -> Result<ProgramFolder, BenchError> {
        let folder = workplace.path().join("files");
        new_private_directory(&folder).map_err(BenchError::file("make", &folder))?;
        let left_out = content.map_or(Ok(0), |content| copied(content, &folder))?;
        // It goes with the workplace.
        let workplace = Arc::clone(workplace);
        Ok(ProgramFolder { share: None, mount: None, made: None, folder, workplace, left_out })
    }

    /// Goes on in a new folder below the present one, from which it removes those of launches that were killed.
    fn make_own(&mut self) -> Result<(), BenchError> {
        remove_abandoned(&self.folder);
        let name = own_name(PREFIX);
        let folder = self.folder.join(&name);
        new_private_directory(&folder).map_err(BenchError::file("make", &folder))?;
        (self.made, self.folder) = (Some(name), folder);
        Ok(())
    }

    /// A new folder in a directory of a share, which is mounted.
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

    /// Where the program finds its files.
    pub(super) fn path(&self) -> &Path {
        &self.folder
    }

    /// Has nothing that was read before at hand: what this machine keeps of files, a server on it included, and what the
    /// mounted share keeps.
    pub(super) fn cool(&mut self) -> Result<(), BenchError> {
        self.mount = None;
        rustix::fs::sync();
        drop_caches()?;
        self.mount_again()
    }

    /// Mounts the share anew, if there is one.
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
        // What is not mounted any more can't be removed.
        if self.made.is_some() && self.share.is_some() == self.mount.is_some() {
            let _ = fs::remove_dir_all(&self.folder);
            // The directory of a share that it was made in, where nothing else is in it.
            let _ = self.mount.is_some().then(|| self.folder.parent().map(fs::remove_dir));
        }
    }
}

/// How folders of launches begin.
const PREFIX: &str = "smbscope-launch-";

/// Removes folders that launches of this user made here and could not remove, because they were killed.
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

/// Whether caches can be emptied; otherwise why not.
pub(super) fn drop_caches() -> Result<(), BenchError> {
    fs::write(DROP_CACHES, "3").map_err(|error| {
        let text =
            format!("--cold empties the file caches of this machine, which only root may ({DROP_CACHES}: {error})");
        BenchError::Unavailable(text)
    })
}

/// Copies what is in a folder; tells how much was left out.
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
                // Without its mode, which not every mounted share takes.
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
        // What killed launches left: one of this user and machine, and one that somebody may still use.
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
