//! The file system from its mount to its end.

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

/// Where the kernel hands out what it wants to know of a file system.
const DEVICE: &str = "/dev/fuse";

/// Threads that take requests from the kernel. None of them waits for the disk that is modelled, only for the folder below.
const THREADS: usize = 4;

/// A slow disk that is mounted; it is gone with the value.
#[derive(Debug)]
pub(crate) struct SlowDisk {
    queue: Arc<DiskQueue>,
    at: PathBuf,
    session: Option<BackgroundSession>,
    /// The thread that tells the figures waits for the other end of this pipe, and ends when it is gone.
    _running: PipeWriter,
}

impl SlowDisk {
    /// Mounts what is in the folder `below` on the empty folder `at`. `folder` is that of the server.
    pub(crate) fn mount(storage: Storage, below: &Path, at: &Path, folder: &Path) -> Result<SlowDisk, LabError> {
        can_be_served()?;
        let failed = |error: io::Error| LabError::Unavailable(format!("slow storage can't be mounted: {error}"));
        open_many_files();
        let below = Folder::open(below).map_err(LabError::file("open", below))?;
        let queue = DiskQueue::start(storage).map_err(failed)?;
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("smbscope-lab".to_owned()), MountOption::DefaultPermissions];
        // Root serves the accounts behind Samba's users; anybody else only himself.
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
        // From here on, dropping the value unmounts.
        let disk = SlowDisk { queue, at: at.to_owned(), session: Some(session), _running: running };
        tell_figures(&disk.queue, &folder.join(SOCKET), StopPipe::new(stop)).map_err(failed)?;
        Ok(disk)
    }

    /// Lets nobody wait for the disk any longer: a process that waits for it can't be ended.
    pub(crate) fn release(&self) {
        self.queue.close();
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        self.release();
        // Whoever still looks into it must not keep it in its place, as the session's own way of unmounting would let him.
        if let Err(error) = mounts::unmount(&self.at) {
            tracing::warn!("lab: {error}");
        }
        drop(self.session.take());
    }
}

/// Whether file systems can be served here: the reason if not, and what to do.
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

/// As many as this process may: each file that the kernel knows is held open.
fn open_many_files() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Tells whoever connects what the disk did so far.
fn tell_figures(queue: &Arc<DiskQueue>, socket: &Path, stop: StopPipe) -> io::Result<()> {
    let listener = UnixListener::bind(socket)?;
    listener.set_nonblocking(true)?;
    let queue = Arc::clone(queue);
    let tell = move || {
        while stop.or_readable(&listener) {
            let Ok((mut asker, _)) = listener.accept() else { continue };
            let said = serde_json::to_vec(&queue.figures()).unwrap_or_default();
            // Who has gone needs no answer.
            let _ = asker.set_write_timeout(Some(PATIENCE)).and_then(|()| asker.write_all(&said));
        }
    };
    thread::Builder::new().name("lab-figures".to_owned()).spawn(tell).map(drop)
}
