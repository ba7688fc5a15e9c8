//! Finds the processes of a server by a variable in their environment.
//!
//! Samba starts a process per connection, and helpers for named pipes that leave the process group and outlive their
//! parent. All of them inherit the environment. A variable with the server's folder therefore identifies every one, and
//! never an unrelated process with a recycled id.

use crate::process::{Process, Stat};
use rustix::process::{Pid, Signal, geteuid};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const MARK: &str = "SMBSCOPE_LAB_SERVER";
const KEEPER: &str = "SMBSCOPE_LAB_KEEPER";
const PART: &str = "SMBSCOPE_LAB_PART";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LabProcessRole {
    Samba,
    Antivirus,
    Network,
    /// Helper program of a [`Workplace`](crate::Workplace), with its children.
    Work,
}

impl LabProcessRole {
    fn name(self) -> &'static str {
        match self {
            LabProcessRole::Samba => "samba",
            LabProcessRole::Antivirus => "antivirus",
            LabProcessRole::Network => "network",
            LabProcessRole::Work => "work",
        }
    }
}

pub(crate) fn mark(command: &mut Command, folder: &Path, part: LabProcessRole) {
    command.env(MARK, folder).env(PART, part.name()).env_remove(KEEPER);
}

pub(crate) fn mark_keeper(command: &mut Command, folder: &Path) {
    command.env(KEEPER, folder);
}

/// Returns true if the process is alive, belongs to the caller, and keeps this folder's server.
pub(crate) fn keeps(process: Process, folder: &Path) -> bool {
    let path = format!("/proc/{}", process.pid);
    let is_ours = fs::metadata(&path).is_ok_and(|metadata| metadata.uid() == geteuid().as_raw());
    let marked = environment_has(&format!("{path}/environ"), &entry(KEEPER, folder.as_os_str().as_bytes()));
    // Checked last: the environment read before then belonged to this process and not to a successor.
    is_ours && marked && process.lives()
}

fn environment_has(file: &str, variable: &[u8]) -> bool {
    fs::read(file).is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|entry| entry == variable))
}

pub(crate) fn members(folder: &Path, part: Option<LabProcessRole>) -> Vec<Pid> {
    let mark = entry(MARK, folder.as_os_str().as_bytes());
    let part = part.map(|part| entry(PART, part.name().as_bytes()));
    let mut members: Vec<Pid> = processes()
        .filter(|pid| {
            let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { return false };
            let has = |entry: &Vec<u8>| environment.split(|byte| *byte == 0).any(|variable| variable == entry);
            has(&mark) && part.as_ref().is_none_or(has)
        })
        .filter_map(Pid::from_raw)
        .collect();
    members.sort_by_key(|pid| pid.as_raw_nonzero());
    members
}

fn entry(name: &str, value: &[u8]) -> Vec<u8> {
    [name.as_bytes(), b"=", value].concat()
}

fn processes() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

pub(crate) fn signal(folder: &Path, part: Option<LabProcessRole>, signal: Signal) {
    let mut reached: Vec<Pid> = Vec::new();
    loop {
        let new: Vec<Pid> = members(folder, part).into_iter().filter(|pid| !reached.contains(pid)).collect();
        if new.is_empty() {
            return;
        }
        for pid in new {
            let _ = rustix::process::kill_process(pid, signal);
            reached.push(pid);
        }
    }
}

/// Kills all members and waits until they are gone. Returns false if some remain after 5 s.
pub(crate) fn end(folder: &Path) -> bool {
    let patience = Instant::now() + Duration::from_secs(5);
    // An ending process loses its environment before its sockets, so members once found are tracked by id. During
    // execve a process briefly has no environment: only a second empty scan counts.
    let mut ending: Vec<Process> = Vec::new();
    let mut seen_none = false;
    loop {
        let left = members(folder, None);
        ending.extend(left.iter().filter_map(|pid| Process::find(pid.as_raw_nonzero().get().unsigned_abs())));
        ending.retain(Process::lives);
        ending.sort_unstable_by_key(|process| process.pid);
        ending.dedup();
        let none = left.is_empty() && ending.is_empty();
        if none && seen_none {
            return true;
        }
        seen_none = none;
        if Instant::now() > patience {
            return false;
        }
        for pid in left {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Includes reaped children, and unreaped ones of `first`, which have no environment any more.
pub(crate) fn cpu_time(members: &[Pid], first: Option<Process>) -> Duration {
    let children = first.map(|first| format!("/proc/{0}/task/{0}/children", first.pid));
    let children = children.and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
    let mut all: Vec<i32> = children.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect();
    all.extend(members.iter().map(|pid| pid.as_raw_nonzero().get()));
    all.sort_unstable();
    all.dedup();
    all.into_iter().filter_map(Stat::read).map(|stat| stat.cpu_time()).sum()
}

/// Samba starts one process per connection; helpers have other names (`smbd-notifyd`, `smbd-cleanupd`, `cleanupd`).
pub(crate) fn sessions(members: &[Pid], smbd: Process) -> usize {
    let stats = members.iter().filter_map(|pid| Stat::read(pid.as_raw_nonzero().get()));
    let serves = |stat: &Stat| stat.parent == u64::from(smbd.pid) && !stat.zombie && stat.serves_a_connection();
    stats.filter(serves).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_to_be_gone_is_gone() {
        let folder = tempfile::tempdir().expect("a temporary directory can be made");
        for _ in 0..20 {
            let mut command = Command::new("sleep");
            command.arg("1000");
            mark(&mut command, folder.path(), LabProcessRole::Samba);
            let mut child = command.spawn().expect("there is a sleep(1)");
            let process = Process::find(child.id()).expect("it has just been started");
            let gone = end(folder.path()) && !process.lives();
            child.kill().and_then(|()| child.wait()).expect("it has ended");
            assert!(gone);
        }
    }
}
