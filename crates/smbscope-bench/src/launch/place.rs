//! Where a launched program finds its files: a folder of this machine, or one on a share that is mounted for it.

use super::mount::{Mount, Mounter};
use crate::Error;
use smbscope_load::client::Options;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Empties the caches of the system of what they hold of files (Documentation/admin-guide/sysctl/vm.rst).
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// A folder for a program's files, removed with this value.
pub(super) struct Place {
    /// The share, how to mount it, and where in it: with slashes.
    share: Option<(Mounter, Options, PathBuf)>,
    mount: Option<Mount>,
    /// The folder, where it was made here and is removed with this value.
    own: Option<TempDir>,
    /// The same on a share: its name below the share's directory.
    made: Option<String>,
    folder: PathBuf,
    /// Content that could not be copied: links and what is no file.
    pub(super) left_out: u64,
}

impl Place {
    /// A folder that is there already, and stays; one of its own below it takes the content, if there is any.
    pub(super) fn folder(folder: &Path, content: Option<&Path>) -> Result<Place, Error> {
        if !folder.is_dir() {
            return Err(Error::Unavailable(format!("{} is no folder", folder.display())));
        }
        // A path that is the same wherever the program works.
        let folder = folder.canonicalize().map_err(Error::file("look into", folder))?;
        let mut place = Place { share: None, mount: None, own: None, made: None, folder, left_out: 0 };
        if let Some(content) = content {
            let own = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&place.folder);
            let own = own.map_err(Error::file("make a folder in", &place.folder))?;
            place.folder = own.path().to_owned();
            place.own = Some(own);
            place.left_out = copied(content, &place.folder)?;
        }
        Ok(place)
    }

    /// A new folder among those for temporary files.
    pub(super) fn temporary(content: Option<&Path>) -> Result<Place, Error> {
        let own = tempfile::Builder::new().prefix(PREFIX).tempdir().map_err(Error::system("temporary directory"))?;
        let folder = own.path().to_owned();
        let left_out = content.map_or(Ok(0), |content| copied(content, &folder))?;
        Ok(Place { share: None, mount: None, own: Some(own), made: None, folder, left_out })
    }

    /// A new folder in a directory of a share, which is mounted.
    pub(super) fn share(
        mounter: Mounter,
        options: &Options,
        directory: &str,
        content: Option<&Path>,
    ) -> Result<Place, Error> {
        let mount = Mount::open(mounter, options)?;
        let within = PathBuf::from(directory.replace('\\', "/"));
        let above = mount.root().join(&within);
        fs::create_dir_all(&above).map_err(Error::file("make", &above))?;
        let made = format!("{PREFIX}{}", std::process::id());
        let folder = above.join(&made);
        fs::create_dir(&folder).map_err(Error::file("make", &folder))?;
        let share = Some((mounter, options.clone(), within));
        let mut place = Place { share, mount: Some(mount), own: None, made: Some(made), folder, left_out: 0 };
        place.left_out = content.map_or(Ok(0), |content| copied(content, &place.folder))?;
        Ok(place)
    }

    /// Where the program finds its files.
    pub(super) fn path(&self) -> &Path {
        &self.folder
    }

    /// Has nothing that was read before at hand: what this machine keeps of files, a server on it included, and what the
    /// mounted share keeps.
    pub(super) fn cool(&mut self) -> Result<(), Error> {
        self.mount = None;
        rustix::fs::sync();
        drop_caches()?;
        self.mount_again()
    }

    /// Mounts the share anew, if there is one.
    pub(super) fn mount_again(&mut self) -> Result<(), Error> {
        if let (Some((mounter, options, within)), Some(made)) = (&self.share, &self.made) {
            self.mount = None;
            let mount = Mount::open(*mounter, options)?;
            self.folder = mount.root().join(within).join(made);
            self.mount = Some(mount);
        }
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What is not mounted any more can't be removed.
        if self.made.is_some() && self.mount.is_some() {
            let _kept_where_it_cannot_be_removed = fs::remove_dir_all(&self.folder);
            // The directory that it was made in, where nothing else is in it.
            let _not_empty = self.folder.parent().map(fs::remove_dir);
        }
    }
}

/// How folders of launches begin.
const PREFIX: &str = "smbscope-launch-";

/// Whether caches can be emptied; otherwise why not.
pub(super) fn drop_caches() -> Result<(), Error> {
    fs::write(DROP_CACHES, "3").map_err(|error| {
        let text =
            format!("--cold empties the file caches of this machine, which only root may ({DROP_CACHES}: {error})");
        Error::Unavailable(text)
    })
}

/// Copies what is in a folder; tells how much was left out.
fn copied(from: &Path, to: &Path) -> Result<u64, Error> {
    let mut left_out = 0;
    let mut folders = vec![(from.to_owned(), to.to_owned())];
    while let Some((from, to)) = folders.pop() {
        for entry in fs::read_dir(&from).map_err(Error::file("look into", &from))? {
            let entry = entry.map_err(Error::file("look into", &from))?;
            let kind = entry.file_type().map_err(Error::file("look at", &entry.path()))?;
            let target = to.join(entry.file_name());
            if kind.is_dir() {
                fs::create_dir(&target).map_err(Error::file("make", &target))?;
                folders.push((entry.path(), target));
            } else if kind.is_file() {
                // Without its mode, which not every mounted share takes.
                let mut source = fs::File::open(entry.path()).map_err(Error::file("read", &entry.path()))?;
                let mut copy = fs::File::create_new(&target).map_err(Error::file("write", &target))?;
                std::io::copy(&mut source, &mut copy).map_err(Error::file("write", &target))?;
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
        let place = Place::folder(above.path(), Some(content.path())).unwrap();
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
        drop(Place::folder(folder.path(), None).unwrap());
        assert!(folder.path().join("kept").exists());
        assert!(Place::folder(&folder.path().join("kept"), None).is_err());
    }
}
