//! Decides if state on disk can be trusted.
//!
//! A record names processes to end, mounts to remove and folders to delete, and root may run the command. So only the
//! caller may be able to write the record, any folder above it, or a link on the way. In a shared temporary directory
//! others can create folders and links at will.

use crate::LabError;
use rustix::fs::{Mode, OFlags};
use rustix::process::{getegid, geteuid};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Maximum size of a record; one with 1,000 users takes 60 KB.
const MAX_RECORD_BYTES: u64 = 1 << 20;

/// Mode bits: write access for group and others, and the bit that prevents renaming other users' files.
const GROUP_WRITE: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// Checks that only the caller can change or replace the folder. Returns false if it does not exist.
pub(crate) fn is_own_folder(folder: &Path) -> Result<bool, LabError> {
    let metadata = match fs::symlink_metadata(folder) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(LabError::file("read", folder)(error)),
    };
    if metadata.is_symlink() {
        return refused(folder, "is a symbolic link");
    }
    if !metadata.is_dir() {
        return refused(folder, "is not a folder");
    }
    if metadata.uid() != geteuid().as_raw() {
        return refused(folder, &format!("belongs to another user (user id {})", metadata.uid()));
    }
    if metadata.mode() & (GROUP_WRITE | OTHERS_WRITE) != 0 {
        return refused(folder, &format!("can be written to by others (mode {:o})", metadata.mode() & 0o7777));
    }
    let real = folder.canonicalize().map_err(LabError::file("read", folder))?;
    for above in folder.ancestors().chain(real.ancestors()).filter(|path| !path.as_os_str().is_empty()) {
        let metadata = fs::symlink_metadata(above).map_err(LabError::file("read", above))?;
        if !is_trusted(&metadata) {
            let why = format!("can be replaced by others: {} is theirs or can be written to by them", above.display());
            return refused(folder, &why);
        }
    }
    Ok(true)
}

/// Returns true if only the caller and root can change the folder's entries, or the link's target.
fn is_trusted(metadata: &Metadata) -> bool {
    let owners = [geteuid().as_raw(), 0, root_owner()];
    if !owners.contains(&metadata.uid()) {
        return false;
    }
    let mode = metadata.mode();
    // Many systems give every user a private group.
    let group_writes = mode & GROUP_WRITE != 0 && metadata.gid() != getegid().as_raw() && metadata.gid() != 0;
    !metadata.is_dir() || mode & STICKY != 0 || (mode & OTHERS_WRITE == 0 && !group_writes)
}

/// Returns the owner of `/`. In a user namespace, root's files seem to belong to another user.
fn root_owner() -> u32 {
    fs::metadata("/").map_or(0, |metadata| metadata.uid())
}

fn refused<T>(folder: &Path, why: &str) -> Result<T, LabError> {
    let text = format!(
        "{} {why}, so its records of servers can't be trusted: choose another folder with --state",
        folder.display()
    );
    Err(LabError::Unavailable(text))
}

/// Reads a file that only the caller can have written. Returns `None` for any other file, or if it does not exist.
pub(crate) fn read_own(path: &Path) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let metadata = file.metadata().ok()?;
    let is_own = metadata.is_file()
        && metadata.uid() == geteuid().as_raw()
        && metadata.mode() & (GROUP_WRITE | OTHERS_WRITE) == 0
        && metadata.len() <= MAX_RECORD_BYTES;
    if !is_own {
        return None;
    }
    let mut content = Vec::new();
    file.take(MAX_RECORD_BYTES).read_to_end(&mut content).ok()?;
    Some(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a temporary directory can be made")
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
    }

    fn why(folder: &Path) -> String {
        is_own_folder(folder).expect_err("it is not to be trusted").to_string()
    }

    #[test]
    fn a_private_folder_in_a_shared_one_is_trusted() {
        let shared = folder();
        set_mode(shared.path(), 0o1777);
        let own = shared.path().join("own");
        assert!(!is_own_folder(&own).expect("nothing is there"));
        fs::create_dir(&own).expect("it can be made");
        set_mode(&own, 0o700);
        assert!(is_own_folder(&own).expect("it is ours"));
    }

    #[test]
    fn a_folder_that_others_can_write_to_or_replace_is_refused() {
        let shared = folder();
        let own = shared.path().join("own");
        fs::create_dir(&own).expect("it can be made");
        for mode in [0o777, 0o1777, 0o770] {
            set_mode(&own, mode);
            assert!(why(&own).contains("can be written to by others"), "{mode:o}");
        }
        set_mode(&own, 0o700);
        // Without a sticky bit, other users can rename our folder and create another.
        set_mode(shared.path(), 0o777);
        assert!(why(&own).contains("can be replaced by others"));
    }

    #[test]
    fn a_link_to_a_folder_of_ours_is_refused() {
        let shared = folder();
        let (own, link) = (shared.path().join("own"), shared.path().join("link"));
        fs::create_dir(&own).expect("it can be made");
        set_mode(&own, 0o700);
        symlink(&own, &link).expect("a link can be made");
        assert!(why(&link).contains("is a symbolic link"));
    }

    #[test]
    fn what_belongs_to_another_user_is_refused() {
        let shared = folder();
        let (theirs, file) = (shared.path().join("theirs"), shared.path().join("file"));
        fs::create_dir(&theirs).expect("it can be made");
        set_mode(&theirs, 0o700);
        fs::write(&file, "x").expect("it can be made");
        set_mode(&file, 0o600);
        assert_eq!(read_own(&file).as_deref(), Some(&b"x"[..]));
        if chown(&theirs, Some(1), None).and_then(|()| chown(&file, Some(1), None)).is_err() {
            return smbscope_testkit::skip::unable("only root can give folders away");
        }
        assert!(why(&theirs).contains("belongs to another user (user id 1)"));
        assert_eq!(read_own(&file), None);
        // Below another user's folder, even our own folder can be replaced.
        let below = theirs.join("below");
        fs::create_dir(&below).expect("root may");
        set_mode(&below, 0o700);
        assert!(why(&below).contains("can be replaced by others"));
    }

    #[test]
    fn a_record_that_others_can_change_or_that_is_a_link_is_not_read() {
        let own = folder();
        let (file, link) = (own.path().join("file"), own.path().join("link"));
        fs::write(&file, "x").expect("it can be made");
        symlink(&file, &link).expect("a link can be made");
        assert_eq!(read_own(&link), None);
        set_mode(&file, 0o666);
        assert_eq!(read_own(&file), None);
        set_mode(&file, 0o600);
        assert!(read_own(&file).is_some());
    }
}
