//! Processes: identity (proc_pid_stat(5)), children without the user's password, folder names that identify their
//! owner, and the processes of a server.
//!
//! Samba starts a process per connection, and helpers for named pipes that leave the process group and outlive their
//! parent. All of them inherit the environment. A variable with the server's folder therefore identifies every one, and
//! never an unrelated process with a recycled id.

use rustix::process::{Pid, Signal, geteuid};
use serde::{Deserialize, Serialize};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pub pid: u32,
    /// Start time in clock ticks since boot: ids are recycled.
    pub start: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    name: String,
    pub(crate) parent: u64,
    /// Sum of utime, stime, cutime and cstime.
    ticks: u64,
    start: u64,
    /// All threads have ended, but the process was not reaped.
    pub(crate) zombie: bool,
}

impl Stat {
    pub(crate) fn read(pid: i32) -> Option<Stat> {
        Stat::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Returns the CPU time of the process and its reaped children, in steps of a clock tick (10 ms).
    pub(crate) fn cpu_time(&self) -> Duration {
        let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
        Duration::from_nanos(self.ticks.saturating_mul(tick))
    }

    /// Parses a line. The program name, in parentheses, may contain any character.
    fn parse(text: &str) -> Option<Stat> {
        let (start, end) = (text.find('(')?, text.rfind(')')?);
        let name = text.get(start + 1..end)?.to_owned();
        let fields: Vec<&str> = text[end + 1..].split_ascii_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        let ticks = (14..=17).map(number).sum::<Option<u64>>()?;
        // The main thread may have ended before others, which still hold the sockets.
        let zombie = *fields.first()? == "Z" && number(20)? <= 1;
        Some(Stat { name, parent: number(4)?, ticks, start: number(22)?, zombie })
    }

    /// Samba started the process for a connection. Newer versions append the client's address to the name.
    pub(crate) fn serves_a_connection(&self) -> bool {
        self.name.strip_prefix("smbd").is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', ':']))
    }
}

impl Process {
    pub fn find(pid: u32) -> Option<Process> {
        let stat = Stat::read(i32::try_from(pid).ok()?).filter(|stat| !stat.zombie)?;
        Some(Process { pid, start: stat.start })
    }

    pub(crate) fn own() -> Process {
        let pid = std::process::id();
        Process::find(pid).unwrap_or(Process { pid, start: 0 })
    }

    /// Returns true if it is alive and its id was not recycled.
    pub fn lives(&self) -> bool {
        Process::find(self.pid).is_some_and(|found| found == *self)
    }
}

/// Characters of the boot id: enough to distinguish the machines that use one share.
const BOOT_CHARS: usize = 8;

/// Returns a name for a folder of this process: prefix, boot, PID namespace, process id and start time.
pub fn own_name(prefix: &str) -> String {
    let (boot, namespace) = here().unwrap_or_default();
    let Process { pid, start } = Process::own();
    format!("{prefix}{boot}-{namespace:x}-{pid}-{start}")
}

/// Returns true if [`own_name`] made the name in this boot and PID namespace and the process has ended.
pub fn is_abandoned(name: &str, prefix: &str) -> bool {
    let owner = || {
        let mut parts = name.strip_prefix(prefix)?.split('-');
        let boot = parts.next()?.to_owned();
        let namespace = u64::from_str_radix(parts.next()?, 16).ok()?;
        let process = Process { pid: parts.next()?.parse().ok()?, start: parts.next()?.parse().ok()? };
        parts.next().is_none().then_some(((boot, namespace), process))
    };
    owner().is_some_and(|(place, process)| here() == Some(place) && !process.lives())
}

fn here() -> Option<(String, u64)> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let boot: String = boot.chars().filter(char::is_ascii_hexdigit).take(BOOT_CHARS).collect();
    let namespace = fs::metadata("/proc/self/ns/pid").ok()?.ino();
    (boot.len() == BOOT_CHARS).then_some((boot, namespace))
}

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
    fn a_program_name_with_blanks_and_parentheses_shifts_no_field() {
        let text = "7 (a) b (c) S 1 7 7 0 -1 0 0 0 0 0 11 22 33 44 20 0 1 0 987 0 0";
        let name = "a) b (c".to_owned();
        assert_eq!(Stat::parse(text), Some(Stat { name, parent: 1, ticks: 110, start: 987, zombie: false }));
    }

    #[test]
    fn a_process_lives_until_its_last_thread_has_ended() {
        let zombie = |threads| {
            let text = format!("7 (smbd) Z 1 7 7 0 -1 0 0 0 0 0 11 22 33 44 20 0 {threads} 0 987 0 0");
            Stat::parse(&text).expect("it is a line of proc_pid_stat(5)").zombie
        };
        assert_eq!([0, 1, 2].map(zombie), [true, true, false]);
    }

    #[test]
    fn a_process_with_another_start_time_is_another_process() {
        let own = Process::own();
        assert!(own.lives());
        assert!(!Process { start: own.start + 1, ..own }.lives());
    }

    #[test]
    fn only_a_process_of_here_that_has_ended_abandons_its_folder() {
        let own = own_name("x-");
        assert!(!is_abandoned(&own, "x-"));
        let (boot, namespace) = here().expect("there is /proc");
        let Process { pid, start } = Process::own();
        let named = |boot: &str, namespace: u64, start: u64| format!("x-{boot}-{namespace:x}-{pid}-{start}");
        assert!(is_abandoned(&named(&boot, namespace, start + 1), "x-"));
        assert!(!is_abandoned(&named("00000000", namespace, start + 1), "x-"));
        assert!(!is_abandoned(&named(&boot, namespace + 1, start + 1), "x-"));
        for other in ["x-", "x-1234", "y-1", &format!("{}-1", named(&boot, namespace, start + 1))] {
            assert!(!is_abandoned(other, "x-"), "{other}");
        }
    }

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
