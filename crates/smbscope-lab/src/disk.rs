//! Small file system below the share, which can fill up.

use crate::LabError;
use std::path::Path;

#[cfg(target_os = "linux")]
pub(crate) use linux::mount;

#[cfg(not(target_os = "linux"))]
pub(crate) fn mount(_folder: &Path, _bytes: u64) -> Result<(), LabError> {
    Err(LabError::Unavailable("a disk of its own needs Linux".to_owned()))
}

#[cfg(target_os = "linux")]
mod linux {
    use super::{LabError, Path};
    use rustix::io::Errno;
    use rustix::mount::MountFlags;
    use smbscope_model::units;
    use std::ffi::CString;

    /// Mounts a tmpfs of this size on the folder.
    pub(crate) fn mount(folder: &Path, bytes: u64) -> Result<(), LabError> {
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
