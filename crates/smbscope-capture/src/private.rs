//! Files that only their owner can read: captures contain logins and content.

use std::fs::File;
use std::io;
use std::path::Path;

/// Creates or empties a file. Modes are ignored on file systems without them.
pub fn create_private(path: &Path) -> io::Result<File> {
    platform::open(path, File::options().create(true).truncate(true))
}

/// Creates a file. Fails with [`io::ErrorKind::AlreadyExists`] if there is a file or link of this name.
pub fn create_new_private(path: &Path) -> io::Result<File> {
    platform::open(path, File::options().create_new(true))
}

#[cfg(unix)]
mod platform {
    use std::fs::{File, OpenOptions, Permissions};
    use std::io;
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    use std::path::Path;

    const MODE: u32 = 0o600;

    pub(super) fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
        let file = options.write(true).mode(MODE).open(path)?;
        match file.set_permissions(Permissions::from_mode(MODE)) {
            Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported) => {}
            made => made?,
        }
        Ok(file)
    }
}

#[cfg(not(unix))]
mod platform {
    use std::fs::{File, OpenOptions};
    use std::io;
    use std::path::Path;

    pub(super) fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
        options.write(true).open(path)
    }
}
