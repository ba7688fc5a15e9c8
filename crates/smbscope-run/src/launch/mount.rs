//! Mounts a share through FUSE for the launches, with a program that speaks SMB.

use crate::BenchError;
use crate::files::new_private_directory;
use crate::process::UNTIL_END_OF_INPUT;
use rustix::process::{Pid, Signal, kill_process_group};
use smbscope_client::{ClientSigningPolicy, Credentials, Encryption, SessionOptions};
use smbscope_lab::{Workplace, command_for};
use smbscope_model::Dialect;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

/// Path below its home directory where smbnetfs looks for user and password.
const SMBNETFS_CONF: &str = ".smb/smbnetfs.conf";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mounter {
    /// Uses Samba's client library: SMB1 to 3.1.1. Over SMB2, size queries fail on files opened only for writing.
    Smbnetfs,
    /// Has its own client for SMB 2.0.2 to 3.1.1, which buffers writes to a file until it is closed.
    Rclone,
}

impl Mounter {
    pub fn for_dialect(dialect: Dialect) -> Mounter {
        match dialect {
            Dialect::Smb2(_) => Mounter::Rclone,
            _ => Mounter::Smbnetfs,
        }
    }

    /// Name of the program and of its Debian package.
    pub fn name(self) -> &'static str {
        match self {
            Mounter::Smbnetfs => "smbnetfs",
            Mounter::Rclone => "rclone",
        }
    }
}

pub(super) struct Mount {
    child: Child,
    home: PathBuf,
    root: PathBuf,
}

impl Mount {
    pub(super) fn open(mounter: Mounter, options: &SessionOptions, workplace: &Workplace) -> Result<Mount, BenchError> {
        let home = workplace.path().join("mount");
        new_private_directory(&home).map_err(BenchError::file("make", &home))?;
        let point = home.join("share");
        new_private_directory(&point).map_err(BenchError::file("make", &point))?;
        let (mut command, root) = match mounter {
            Mounter::Smbnetfs => smbnetfs(&home, &point, options)?,
            Mounter::Rclone => rclone(&home, &point, options)?,
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

    fn wait_for(&mut self, name: &str, point: &Path) -> Result<(), BenchError> {
        let begun = Instant::now();
        let before = device(&self.home);
        loop {
            // An empty mount point can be listed too, so the device must have changed.
            if device(point) != before && fs::read_dir(&self.root).is_ok() {
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
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
                break;
            }
            sleep(Duration::from_millis(10));
        }
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
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
    match crate::process::on_path(name) {
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
fn rclone(home: &Path, point: &Path, options: &SessionOptions) -> Result<(Command, PathBuf), BenchError> {
    installed("rclone", "rclone")?;
    // rclone mounts through fusermount, even as root.
    installed("fusermount", "fuse3")?;
    let mut command = bound("rclone");
    command.args(["mount", &format!(":smb:{}", options.share)]).arg(point);
    command.args(["--vfs-cache-mode", "writes", "--vfs-write-back", "0s"]);
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
