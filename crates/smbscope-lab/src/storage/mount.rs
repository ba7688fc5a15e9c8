//! Mounting and unmounting of the slow disk.

use super::folder::Folder;
use super::queue::DiskQueue;
use super::serve::FuseFileSystem;
use super::{PATIENCE, SOCKET};
use crate::link::StopPipe;
use crate::{LabError, Storage, mounts, tools};
use fuser::{BackgroundSession, Config, MountOption, Session, SessionACL};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, PipeWriter, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

const DEVICE: &str = "/dev/fuse";

/// Threads that receive requests. They wait only for the underlying folder, never for the emulated disk.
const THREADS: usize = 4;

#[derive(Debug)]
pub(crate) struct SlowDisk {
    queue: Arc<DiskQueue>,
    at: PathBuf,
    session: Option<BackgroundSession>,
    /// The thread that returns statistics polls the other end of this pipe and ends when it closes.
    _running: PipeWriter,
}

impl SlowDisk {
    pub(crate) fn mount(storage: Storage, below: &Path, at: &Path, folder: &Path) -> Result<SlowDisk, LabError> {
        can_be_served()?;
        let failed = |error: io::Error| LabError::Unavailable(format!("slow storage can't be mounted: {error}"));
        open_many_files();
        let below = Folder::open(below).map_err(LabError::file("open", below))?;
        let queue = DiskQueue::start(storage).map_err(failed)?;
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("smbscope-lab".to_owned()), MountOption::DefaultPermissions];
        // Root serves the accounts of Samba's users; other users serve only themselves.
        let is_root = rustix::process::geteuid().is_root();
        config.acl = if is_root { SessionACL::All } else { SessionACL::Owner };
        config.n_threads = Some(THREADS);
        let session =
            Session::new(FuseFileSystem::new(below, Arc::clone(&queue)), at, &config).and_then(Session::spawn);
        let session = session.map_err(|error| {
            queue.close();
            failed(error)
        })?;
        let (stop, running) = io::pipe().map_err(failed)?;
        let disk = SlowDisk { queue, at: at.to_owned(), session: Some(session), _running: running };
        tell_figures(&disk.queue, &folder.join(SOCKET), StopPipe::new(stop)).map_err(failed)?;
        Ok(disk)
    }

    /// Completes all requests at once, because a process that waits for the disk can't be killed.
    pub(crate) fn release(&self) {
        self.queue.close();
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        self.release();
        // Detach lazily: the session's own unmount fails while a process uses the mount.
        if let Err(error) = mounts::unmount(&self.at) {
            tracing::warn!("lab: {error}");
        }
        drop(self.session.take());
    }
}

fn can_be_served() -> Result<(), LabError> {
    let is_root = rustix::process::geteuid().is_root();
    let why = match OpenOptions::new().read(true).write(true).open(DEVICE) {
        Ok(_) if is_root || helper().is_some() => return Ok(()),
        Ok(_) => {
            "fusermount3 is not installed: install it (Debian, Ubuntu: apt install fuse3), or run as root".to_owned()
        }
        Err(error) if error.kind() == ErrorKind::PermissionDenied && !is_root => {
            format!("this user may not open {DEVICE}: run as root")
        }
        Err(error) => format!(
            "{DEVICE} can't be opened ({error}): load the kernel's module (modprobe fuse); for a container, start it with --device {DEVICE} --cap-add SYS_ADMIN"
        ),
    };
    Err(LabError::Unavailable(format!("slow storage is a file system in user space (FUSE), and {why}")))
}

fn helper() -> Option<PathBuf> {
    tools::find("fusermount3").or_else(|| tools::find("fusermount"))
}

/// Raises the limit of open files, because each file known to the kernel is held open.
fn open_many_files() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn tell_figures(queue: &Arc<DiskQueue>, socket: &Path, stop: StopPipe) -> io::Result<()> {
    let listener = UnixListener::bind(socket)?;
    listener.set_nonblocking(true)?;
    let queue = Arc::clone(queue);
    let tell = move || {
        while stop.or_readable(&listener) {
            let Ok((mut asker, _)) = listener.accept() else { continue };
            let said = serde_json::to_vec(&queue.figures()).unwrap_or_default();
            let _ = asker.set_write_timeout(Some(PATIENCE)).and_then(|()| asker.write_all(&said));
        }
    };
    thread::Builder::new().name("lab-figures".to_owned()).spawn(tell).map(drop)
}
