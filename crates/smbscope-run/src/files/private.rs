//! Files and directories that only their owner can read: run results contain user and file names; captures contain
//! logins and content.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

pub(super) const FILE: u32 = 0o600;
const DIRECTORY: u32 = 0o700;

pub fn create_private(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(FILE).open(path)?;
    make_private(&file)?;
    Ok(file)
}

/// Sets the mode to 0600. Ignored on file systems without modes.
pub(super) fn make_private(file: &File) -> io::Result<()> {
    match file.set_permissions(Permissions::from_mode(FILE)) {
        Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported) => Ok(()),
        made => made,
    }
}

/// Creates a private directory. Fails if the path exists.
pub fn new_private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(DIRECTORY).create(path)
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

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
