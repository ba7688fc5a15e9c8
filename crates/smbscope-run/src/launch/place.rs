//! The folder with a launched program's files: local, or on a share that a program mounts through FUSE for it.

use crate::BenchError;
use crate::environment::{UNTIL_END_OF_INPUT, ends_within};
use crate::files::new_private_directory;
use crate::options::Mounter;
use rustix::process::{Pid, Signal, kill_process_group};
use smbscope_client::{ClientSigningPolicy, Credentials, Encryption, SessionOptions};
use smbscope_lab::{Workplace, command_for, is_abandoned, own_name};
use smbscope_model::Dialect;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

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
        let is_copied = content.is_some() && mounter == Mounter::Rclone;
        let uploads = if is_copied { Uploads::AtClose } else { Uploads::Later };
        let mount = Mount::open(mounter, options, uploads, workplace)?;
        let within = PathBuf::from(directory.replace('\\', "/"));
        let above = mount.root().join(&within);
        mount.within(PATIENCE, || fs::create_dir_all(&above)).map_err(BenchError::file("make", &above))?;
        let mounted = mount.group();
        let share = Some((mounter, options.clone(), within));
        let workplace = Arc::clone(workplace);
        let mut place = ProgramFolder { share, mount: Some(mount), made: None, folder: above, workplace, left_out: 0 };
        ended_after(mounted, PATIENCE, || place.make_own())?;
        let copied = || content.map_or(Ok(0), |content| copied(content, &place.folder));
        place.left_out = ended_after(mounted, FILES_PATIENCE, copied)?;
        if uploads == Uploads::AtClose {
            place.mount_again()?;
        }
        Ok(place)
    }

    /// Returns false if the folder can't be listed. Aborts a mount that does not answer.
    pub(super) fn answers(&self) -> bool {
        let list = || fs::read_dir(&self.folder).is_ok();
        self.mount.as_ref().map_or_else(list, |mount| mount.within(PATIENCE, list))
    }

    /// Ends the program that mounts the share, so that a program that waits for it gets an error.
    pub(super) fn abort(&self) {
        self.mount.iter().for_each(|mount| kill(mount.group()));
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
            let mount = Mount::open(*mounter, options, Uploads::Later, &self.workplace)?;
            self.folder = mount.root().join(within).join(made);
            self.mount = Some(mount);
        }
        Ok(())
    }
}

impl Drop for ProgramFolder {
    fn drop(&mut self) {
        // A folder on a share that is no longer mounted can't be removed.
        if self.made.is_some() && self.share.is_some() == self.mount.is_some() && self.answers() {
            let remove = || {
                let _ = fs::remove_dir_all(&self.folder);
                // Also removes its directory on the share, if it is empty now.
                let _ = self.mount.is_some().then(|| self.folder.parent().map(fs::remove_dir));
            };
            match &self.mount {
                Some(mount) => mount.within(FILES_PATIENCE, remove),
                None => remove(),
            }
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

const PATIENCE: Duration = Duration::from_secs(20);
/// Time limit for copying or removing the program's files on a share.
const FILES_PATIENCE: Duration = Duration::from_secs(300);

/// Runs work that accesses a mount, and kills the group of the mount's program if it takes longer. The kernel then fails
/// all its requests. One that the program has read and never answers can't be interrupted otherwise, not even by
/// killing the waiting process (Documentation/filesystems/fuse.rst of Linux, "Aborting a filesystem connection").
fn ended_after<T>(group: Option<Pid>, time: Duration, work: impl FnOnce() -> T) -> T {
    let (done, is_done) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            if is_done.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
                kill(group);
            }
        });
        let result = work();
        drop(done);
        result
    })
}

fn kill(group: Option<Pid>) {
    let _ = group.map(|group| kill_process_group(group, Signal::KILL));
}

/// Path below its home directory where smbnetfs looks for user and password.
const SMBNETFS_CONF: &str = ".smb/smbnetfs.conf";

/// Time at which rclone sends a written file to the server. Programs can write anywhere in a file only if it is sent
/// later; unmounting the share loses files that are not sent yet. smbnetfs sends each write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Uploads {
    AtClose,
    Later,
}

pub(super) struct Mount {
    child: Child,
    home: PathBuf,
    root: PathBuf,
}

impl Mount {
    pub(super) fn open(
        mounter: Mounter,
        options: &SessionOptions,
        uploads: Uploads,
        workplace: &Workplace,
    ) -> Result<Mount, BenchError> {
        let home = workplace.path().join("mount");
        new_private_directory(&home).map_err(BenchError::file("make", &home))?;
        let point = home.join("share");
        new_private_directory(&point).map_err(BenchError::file("make", &point))?;
        let (mut command, root) = match mounter {
            Mounter::Smbnetfs => smbnetfs(&home, &point, options)?,
            Mounter::Rclone => rclone(&home, &point, options, uploads)?,
        };
        workplace.mark(&mut command);
        let log = home.join("log");
        let said = File::create(&log).map_err(BenchError::file("write", &log))?;
        let also = said.try_clone().map_err(BenchError::file("write", &log))?;
        command.stdin(Stdio::piped()).stdout(said).stderr(also).process_group(0);
        let name = mounter.name();
        let child =
            command.spawn().map_err(|error| BenchError::Unavailable(format!("cannot start {name}: {error}")))?;
        let mut mount = Mount { child, home, root };
        mount.wait_for(name, &point)?;
        // smbnetfs has read the file and keeps the password in memory.
        let _ = fs::remove_file(mount.home.join(SMBNETFS_CONF));
        Ok(mount)
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    fn group(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    fn within<T>(&self, time: Duration, work: impl FnOnce() -> T) -> T {
        ended_after(self.group(), time, work)
    }

    fn wait_for(&mut self, name: &str, point: &Path) -> Result<(), BenchError> {
        let begun = Instant::now();
        let before = device(&self.home);
        loop {
            // An empty mount point can be listed too, so the device must have changed.
            if device(point) != before && self.within(PATIENCE, || fs::read_dir(&self.root).is_ok()) {
                return Ok(());
            }
            let ended = matches!(self.child.try_wait(), Ok(Some(_)) | Err(_));
            if ended || begun.elapsed() > PATIENCE {
                let said = fs::read_to_string(self.home.join("log")).unwrap_or_default();
                let last = said.lines().rev().map(str::trim).find(|line| !line.is_empty());
                let why = match last {
                    Some(line) => smbscope_model::prose::clean(line),
                    None => "it said nothing; is FUSE allowed here (/dev/fuse)?".to_owned(),
                };
                return Err(BenchError::Unavailable(format!("{name} did not mount the share: {why}")));
            }
            sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Closing its input makes the script terminate the program, which unmounts.
        drop(self.child.stdin.take());
        let _ = ends_within(&mut self.child, PATIENCE);
        kill(self.group());
        let _ = self.child.wait();
        // Processes with open files keep the mount alive until they end.
        let unmounted = smbscope_lab::unmount(&self.home.join("share"));
        // While it is still mounted, this would delete the files on the share.
        let _ = unmounted.is_ok().then(|| fs::remove_dir_all(&self.home));
    }
}

fn device(folder: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    fs::symlink_metadata(folder).ok().map(|found| found.dev())
}

/// Option that the mounter can't honour, as an error text. A private server caps the dialect itself.
pub(super) fn beyond(mounter: Mounter, options: &SessionOptions, is_private: bool) -> Option<String> {
    if mounter == Mounter::Smbnetfs {
        return None;
    }
    let what = match options {
        SessionOptions { dialect, .. } if !matches!(dialect, Dialect::Smb2(_)) => "speak SMB1".to_owned(),
        SessionOptions { dialect, .. } if *dialect != Dialect::Smb2(0x0311) && !is_private => {
            format!("be told to speak {dialect}: it takes the highest dialect of the server")
        }
        SessionOptions { encryption: Encryption::Required(_), .. } => "be told to encrypt".to_owned(),
        SessionOptions { signing: ClientSigningPolicy::Off | ClientSigningPolicy::Required, .. } => {
            "be told whether to sign".to_owned()
        }
        _ => return None,
    };
    Some(format!("rclone cannot {what}: use --mount smbnetfs"))
}

pub(super) fn of_lab(dialect: Dialect) -> Option<smbscope_lab::LabDialect> {
    match dialect {
        Dialect::Smb2(_) => dialect.to_string().parse().ok(),
        _ => Some(smbscope_lab::LabDialect::Nt1),
    }
}

fn host(options: &SessionOptions) -> String {
    match options.address.port() {
        445 => options.address.ip().to_string(),
        port => format!("{}:{port}", options.address.ip()),
    }
}

fn bound(program: &str) -> Command {
    let mut command = command_for("sh");
    command.args(["-c", UNTIL_END_OF_INPUT, "sh", program]);
    command
}

fn installed(name: &str, package: &str) -> Result<(), BenchError> {
    match crate::environment::on_path(name) {
        Some(_) => Ok(()),
        None => Err(BenchError::Unavailable(format!("{name} is not installed (Debian: apt install {package})"))),
    }
}

/// Prepares smbnetfs. Its mount point contains servers, which contain shares.
fn smbnetfs(home: &Path, point: &Path, options: &SessionOptions) -> Result<(Command, PathBuf), BenchError> {
    installed("smbnetfs", "smbnetfs")?;
    let folder = home.join(".smb");
    new_private_directory(&folder).map_err(BenchError::file("make", &folder))?;
    let Some(dialect) = of_lab(options.dialect).map(smbscope_lab::LabDialect::samba_name) else {
        return Err(BenchError::Unavailable(format!("smbnetfs cannot speak {}", options.dialect)));
    };
    let mut settings = format!(
        "[global]\n client min protocol = {dialect}\n client max protocol = {dialect}\n disable netbios = yes\n \
         name resolve order = host\n"
    );
    settings += match options.signing {
        ClientSigningPolicy::Off => " client signing = disabled\n",
        ClientSigningPolicy::On => " client signing = desired\n",
        ClientSigningPolicy::Required => " client signing = required\n",
    };
    if matches!(options.encryption, Encryption::Required(_)) {
        settings += " client smb encrypt = required\n";
    }
    private_file(&folder.join("smb.conf"), &settings)?;
    let host = host(options);
    let own = match &options.credentials {
        Credentials::Ntlm { domain, user, password } => {
            let whole = if domain.is_empty() { user.clone() } else { format!("{domain}/{user}") };
            let words = [options.address.ip().to_string(), whole, password.reveal().to_owned()];
            if words.iter().any(|word| word.contains(['"', '\\', '\n', '\r'])) {
                let text = "smbnetfs takes no user and no password with a quote or backslash: use --mount rclone";
                return Err(BenchError::Unavailable(text.to_owned()));
            }
            // smbnetfs looks up the server as written in the path, with the port.
            let hosts = [words[0].clone(), host.clone()];
            hosts.map(|host| format!("auth \"{host}\" \"{}\" \"{}\"\n", words[1], words[2])).concat()
        }
        Credentials::Kerberos => "use_kerberos \"true\"\n".to_owned(),
        Credentials::Guest | Credentials::Anonymous => String::new(),
    };
    private_file(&home.join(SMBNETFS_CONF), &own)?;
    let mut command = bound("smbnetfs");
    command.env("HOME", home).arg(point).arg("-f");
    // smbnetfs rereads its settings every five minutes, and would forget the password without the file.
    command.args(["-o", "config_update_period=100000000"]);
    Ok((command, point.join(host).join(&options.share)))
}

/// Prepares rclone. Its mount point is the share.
fn rclone(
    home: &Path,
    point: &Path,
    options: &SessionOptions,
    uploads: Uploads,
) -> Result<(Command, PathBuf), BenchError> {
    installed("rclone", "rclone")?;
    // rclone mounts through fusermount, even as root.
    installed("fusermount", "fuse3")?;
    let mut command = bound("rclone");
    command.args(["mount", &format!(":smb:{}", options.share)]).arg(point);
    match uploads {
        Uploads::AtClose => command.args(["--vfs-cache-mode", "off"]),
        Uploads::Later => command.args(["--vfs-cache-mode", "writes", "--vfs-write-back", "0s"]),
    };
    command.arg("--cache-dir").arg(home.join("cache"));
    let mut set = |name: &str, value: &str| {
        command.env(format!("RCLONE_SMB_{name}"), value);
    };
    set("HOST", &options.address.ip().to_string());
    set("PORT", &options.address.port().to_string());
    match &options.credentials {
        Credentials::Ntlm { domain, user, password } => {
            set("USER", user);
            if !domain.is_empty() {
                set("DOMAIN", domain);
            }
            set("PASS", &obscured(password.reveal())?);
        }
        Credentials::Kerberos => {
            return Err(BenchError::Unavailable("rclone cannot log in with Kerberos: use --mount smbnetfs".to_owned()));
        }
        Credentials::Guest => set("USER", "guest"),
        Credentials::Anonymous => {}
    }
    command.env("RCLONE_CONFIG", "/dev/null");
    Ok((command, point.to_owned()))
}

/// Obscures a password for rclone. It is passed on standard input, because arguments are visible to other users.
fn obscured(password: &str) -> Result<String, BenchError> {
    let failed = |error: std::io::Error| BenchError::Unavailable(format!("rclone does not take the password: {error}"));
    let mut command = command_for("rclone");
    command.args(["obscure", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(failed)?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(password.as_bytes()).map_err(failed)?;
    }
    let output = child.wait_with_output().map_err(failed)?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn private_file(path: &Path, text: &str) -> Result<(), BenchError> {
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(BenchError::file("write", path))
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
