//! Programs that a server needs, and Samba's own statistics: profile and clients, read with smbstatus(1).
//!
//! Times in smbd's profile are in microseconds.

use crate::command_for;
use crate::process::Stat;
use crate::{LabError, SambaClients, SambaCount, SambaOperation, SmbstatusReading};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

const FURTHER: [&str; 5] = ["/usr/sbin", "/usr/local/sbin", "/sbin", "/usr/local/samba/sbin", "/usr/local/samba/bin"];

/// Returns the version of the Samba used for private servers, e.g. `4.17.12-Debian`.
pub fn version() -> Option<String> {
    let said = run(command_for(Tools::find().ok()?.smbd).arg("--version"), "").ok()?;
    Some(said.trim().strip_prefix("Version ")?.to_owned())
}

#[derive(Debug)]
pub(crate) struct Tools {
    pub(crate) smbd: PathBuf,
    pub(crate) pdbedit: PathBuf,
    pub(crate) testparm: Option<PathBuf>,
}

impl Tools {
    pub(crate) fn find() -> Result<Tools, LabError> {
        if !Path::new("/proc/self/stat").exists() {
            let text = "a lab server needs Linux with /proc mounted: its processes are found there";
            return Err(LabError::Unavailable(text.to_owned()));
        }
        let needed = |name: &str| {
            find(name).ok_or_else(|| {
                let text = format!("Samba's {name} is not installed: install it (Debian, Ubuntu: apt install samba)");
                LabError::Unavailable(text)
            })
        };
        Ok(Tools { smbd: needed("smbd")?, pdbedit: needed("pdbedit")?, testparm: find("testparm") })
    }
}

impl Tools {
    /// Returns true if this version of Samba has the parameter. False without testparm(1).
    pub(crate) fn knows(&self, parameter: &str) -> bool {
        let Some(testparm) = &self.testparm else { return false };
        let name = format!("--parameter-name={parameter}");
        run(command_for(testparm).args(["--suppress-prompt", &name, "/dev/null"]), "").is_ok()
    }
}

pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(FURTHER.iter().map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

pub(crate) fn run(command: &mut Command, input: &str) -> Result<String, LabError> {
    use std::io::Write;
    let program = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let failed = |said: String| LabError::Program { program: program.clone(), said };
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends without reading explains itself on standard error.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() {
        return Ok(text);
    }
    let said = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
    Err(failed(said.map_or_else(|| output.status.to_string(), str::to_owned)))
}

/// Time limit for smbstatus, which blocks on the locks of a suspended server.
const PATIENCE: Duration = Duration::from_secs(2);
/// Maximum size of its output; an open file takes 1 KB.
const STATUS_BYTES_MAX: u64 = 64 << 20;

impl SambaOperation {
    fn counters(self) -> &'static [&'static str] {
        match self {
            SambaOperation::Create => {
                &["smb2_create", "SMBntcreateX", "SMBopenX", "SMBopen", "SMBcreate", "NT_transact_create"]
            }
            SambaOperation::Close => &["smb2_close", "SMBclose"],
            SambaOperation::Read => &["smb2_read", "SMBreadX", "SMBread", "SMBreadbraw"],
            SambaOperation::Write => &["smb2_write", "SMBwriteX", "SMBwrite", "SMBwritebraw"],
            SambaOperation::Flush => &["smb2_flush", "SMBflush"],
            SambaOperation::QueryInfo => &["smb2_getinfo", "Trans2_qpathinfo", "Trans2_qfileinfo", "Trans2_qfsinfo"],
            SambaOperation::SetInfo => {
                &["smb2_setinfo", "Trans2_setpathinfo", "Trans2_setfileinfo", "SMBmv", "SMBunlink"]
            }
            SambaOperation::QueryDirectory => &["smb2_find", "Trans2_findfirst", "Trans2_findnext"],
            SambaOperation::Lock => &["smb2_lock", "SMBlockingX"],
            SambaOperation::Ioctl => &["smb2_ioctl", "NT_transact_ioctl"],
        }
    }
}

impl<T> SmbstatusReading<T> {
    fn try_map<U>(self, change: impl FnOnce(T) -> Result<U, String>) -> Result<SmbstatusReading<U>, String> {
        Ok(SmbstatusReading { value: change(self.value)?, cpu: self.cpu })
    }
}

#[derive(Debug, Clone)]
pub struct SambaStatus {
    program: PathBuf,
    /// Configuration file. Absent for the machine's own Samba.
    conf: Option<PathBuf>,
}

impl SambaStatus {
    /// Finds the Samba with this configuration file, or the machine's own. Returns `None` without smbstatus(1).
    pub fn find(conf: Option<&Path>) -> Option<SambaStatus> {
        Some(SambaStatus { program: find("smbstatus")?, conf: conf.map(Path::to_owned) })
    }

    pub fn profile(&self) -> Result<SmbstatusReading<BTreeMap<SambaOperation, SambaCount>>, String> {
        let keep = |said: String| profile(&said).ok_or_else(|| "this Samba keeps no profile".to_owned());
        self.ask(&["--profile"])?.try_map(keep)
    }

    /// Counts the current clients. Fails with versions before 4.17, which have no JSON output.
    pub fn clients(&self) -> Result<SmbstatusReading<SambaClients>, String> {
        self.ask(&["--json", "--fast", "--byterange"])?.try_map(|said| clients(&said))
    }

    fn ask(&self, arguments: &[&str]) -> Result<SmbstatusReading<String>, String> {
        let failed = |error: io::Error| format!("smbstatus: {error}");
        let mut command = command_for(&self.program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        if let Some(conf) = &self.conf {
            command.arg("--configfile").arg(conf);
        }
        let mut child = command.spawn().map_err(failed)?;
        let stdout = child.stdout.take().expect("it was asked for");
        let (sender, said) = mpsc::channel();
        let listen = move || {
            let mut text = Vec::new();
            let read = stdout.take(STATUS_BYTES_MAX).read_to_end(&mut text).map(|_| text);
            // The receiver may have timed out.
            let _ = sender.send(read);
        };
        let listening = thread::Builder::new().name("smbstatus".to_owned()).spawn(listen);
        let text = listening.map_err(failed).and_then(|_| match said.recv_timeout(PATIENCE) {
            Ok(read) => read.map_err(failed),
            Err(_) => Err(format!("smbstatus did not answer for {} s", PATIENCE.as_secs())),
        });
        let _ = if text.is_err() { child.kill() } else { Ok(()) };
        let cpu = cpu_at_end(&child);
        let status = child.wait().map_err(failed)?;
        let text = String::from_utf8_lossy(&text?).into_owned();
        if status.success() {
            Ok(SmbstatusReading { value: text, cpu })
        } else {
            Err(format!("smbstatus {} failed ({status})", arguments.join(" ")))
        }
    }
}

/// Waits until the process has ended and returns its CPU time, which is lost once it is reaped.
fn cpu_at_end(child: &Child) -> Duration {
    let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return Duration::ZERO };
    // Without the CPU time, smbstatus is merely called more often than it should be.
    let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
    Stat::read(pid.as_raw_nonzero().get()).map_or(Duration::ZERO, |stat| stat.cpu_time())
}

fn profile(said: &str) -> Option<BTreeMap<SambaOperation, SambaCount>> {
    let counters: BTreeMap<&str, u64> = said
        .lines()
        .filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.trim(), value.trim().parse().ok()?))
        })
        .collect();
    let of = |operation: SambaOperation| {
        let sum = |what: &str| {
            let names = operation.counters().iter().map(|name| format!("{name}_{what}"));
            names.filter_map(|name| counters.get(name.as_str())).sum::<u64>()
        };
        SambaCount { count: sum("count"), time: Duration::from_micros(sum("time")) }
    };
    // A server that keeps a profile has counted at least this query.
    let keeps = counters.values().any(|value| *value > 0);
    keeps.then(|| SambaOperation::ALL.into_iter().map(|operation| (operation, of(operation))).collect())
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct SmbstatusOutput {
    sessions: BTreeMap<String, IgnoredAny>,
    open_files: BTreeMap<String, SmbstatusOpenFile>,
    byte_range_locks: BTreeMap<String, LockedFile>,
}

#[derive(Deserialize)]
struct SmbstatusOpenFile {
    #[serde(default)]
    opens: BTreeMap<String, IgnoredAny>,
}

#[derive(Deserialize)]
struct LockedFile {
    #[serde(default)]
    locks: Vec<IgnoredAny>,
}

fn clients(said: &str) -> Result<SambaClients, String> {
    let status: SmbstatusOutput = serde_json::from_str(said).map_err(|error| format!("smbstatus: {error}"))?;
    let sum = |counts: &mut dyn Iterator<Item = usize>| counts.sum::<usize>() as u64;
    Ok(SambaClients {
        sessions: status.sessions.len() as u64,
        open_files: sum(&mut status.open_files.values().map(|file| file.opens.len())),
        locks: sum(&mut status.byte_range_locks.values().map(|file| file.locks.len())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Layout of smbstatus 4.17: name, colon, blanks, number; other lines in between.
    #[test]
    fn operations_of_both_protocols_are_added_up() {
        let said = "Samba version 4.17.12\n**** SMBD loop ****\nrequest_count:          12\n\
                    SMBreadX_count:   2\nSMBreadX_time:   100\nsmb2_read_count:   3\nsmb2_read_time:   900\n\
                    smb2_read_idle:   800\nsmb2_close_count:   1\nsmb2_close_time:   7\n";
        let profile = profile(said).expect("something was counted");
        let count = |count, micros| SambaCount { count, time: Duration::from_micros(micros) };
        assert_eq!(profile[&SambaOperation::Read], count(5, 1_000));
        assert_eq!(profile[&SambaOperation::Close], count(1, 7));
        assert_eq!(profile[&SambaOperation::Write], count(0, 0));
        assert_eq!(super::profile("Profiling data unavailable\nsmb2_read_count:   0\n"), None);
    }

    #[test]
    fn sessions_opens_and_locks_are_counted() {
        let said = r#"{"version": "4.17.12", "tcons": {"7": {}}, "sessions": {"1": {"uid": 1}, "2": {}},
            "open_files": {"/s/a": {"opens": {"9/1": {}, "9/2": {"uid": 0}}}, "/s/b": {"opens": {"9/3": {}}}},
            "byte_range_locks": {"/s/a": {"locks": [{"start": 0}]}}}"#;
        assert_eq!(clients(said), Ok(SambaClients { sessions: 2, open_files: 3, locks: 1 }));
        assert_eq!(clients("{}"), Ok(SambaClients::default()));
        assert!(clients("Unknown option").is_err_and(|why| why.starts_with("smbstatus: ")));
    }
}
