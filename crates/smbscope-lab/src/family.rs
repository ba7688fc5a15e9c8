//! The processes of a server, found by a mark in their environment.
//!
//! Samba starts processes as it needs them: one for each connection, others for its named pipes that take themselves out
//! of the process group and outlive their parent. All of them inherit the environment, so that a variable which holds
//! the server's folder finds every one, and never a foreign process that has got a recycled id.

use crate::record::Process;
use rustix::process::{Pid, Signal, geteuid};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Holds the folder of the server that the process belongs to.
const MARK: &str = "SMBSCOPE_LAB_SERVER";
/// Holds the folder of the server that the process takes care of.
const KEEPER: &str = "SMBSCOPE_LAB_KEEPER";
/// Holds what part of it the process is.
const PART: &str = "SMBSCOPE_LAB_PART";

/// What a process of a server is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Samba itself.
    Samba,
    /// The virus scanner.
    Antivirus,
    /// What holds a network namespace.
    Network,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Part::Samba => "samba",
            Part::Antivirus => "antivirus",
            Part::Network => "network",
        }
    }
}

/// Marks a process before it is started.
pub(crate) fn mark(command: &mut Command, folder: &Path, part: Part) {
    command.env(MARK, folder).env(PART, part.name()).env_remove(KEEPER);
}

/// Marks the process that takes care of a server before it is started.
pub(crate) fn mark_keeper(command: &mut Command, folder: &Path) {
    command.env(KEEPER, folder);
}

/// Whether this process lives, is the caller's, and was started to take care of the server in this folder.
pub(crate) fn keeps(process: Process, folder: &Path) -> bool {
    let path = format!("/proc/{}", process.pid);
    let is_ours = fs::metadata(&path).is_ok_and(|metadata| metadata.uid() == geteuid().as_raw());
    let marked = environment_has(&format!("{path}/environ"), &entry(KEEPER, folder.as_os_str().as_bytes()));
    // Asked last: what was read before was this process's.
    is_ours && marked && process.lives()
}

fn environment_has(file: &str, variable: &[u8]) -> bool {
    fs::read(file).is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|entry| entry == variable))
}

/// Those that live, by process id.
pub(crate) fn members(folder: &Path, part: Option<Part>) -> Vec<Pid> {
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

/// A variable as it stands in an environment.
fn entry(name: &str, value: &[u8]) -> Vec<u8> {
    [name.as_bytes(), b"=", value].concat()
}

/// Every process id there is.
fn processes() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Sends a signal to all of them, those that appear meanwhile included.
pub(crate) fn signal(folder: &Path, part: Option<Part>, signal: Signal) {
    let mut reached: Vec<Pid> = Vec::new();
    loop {
        let new: Vec<Pid> = members(folder, part).into_iter().filter(|pid| !reached.contains(pid)).collect();
        if new.is_empty() {
            return;
        }
        for pid in new {
            // One that has just ended needs no signal.
            let _ended = rustix::process::kill_process(pid, signal);
            reached.push(pid);
        }
    }
}

/// Ends all of them, and returns when none is left; `false` if some can't be ended.
pub(crate) fn end(folder: &Path) -> bool {
    let patience = Instant::now() + Duration::from_secs(5);
    // A process that ends loses its environment first and its sockets later: those once found are asked for by id. One
    // that is starting another program has no environment for a moment: only the second look counts.
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
            let _ended = rustix::process::kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// User and system time of these processes, and of the children that they have waited for; of those, too, that have
/// ended and that the first process has not waited for yet, which have no environment any more.
pub(crate) fn cpu_time(members: &[Pid], first: Option<Process>) -> Duration {
    let children = first.map(|first| format!("/proc/{0}/task/{0}/children", first.pid));
    let children = children.and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
    let mut all: Vec<i32> = children.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect();
    all.extend(members.iter().map(|pid| pid.as_raw_nonzero().get()));
    all.sort_unstable();
    all.dedup();
    let ticks: u64 = all.into_iter().filter_map(Stat::read).map(|stat| stat.ticks).sum();
    Duration::from_nanos(ticks.saturating_mul(1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)))
}

/// How many of these processes serve a connection: Samba starts one for each, and names its helpers (`smbd-notifyd`,
/// `smbd-cleanupd`, `cleanupd`).
pub(crate) fn sessions(members: &[Pid], smbd: Process) -> usize {
    let stats = members.iter().filter_map(|pid| Stat::read(pid.as_raw_nonzero().get()));
    let serves = |stat: &Stat| stat.parent == u64::from(smbd.pid) && !stat.zombie && stat.serves_a_connection();
    stats.filter(serves).count()
}

/// What is needed of proc_pid_stat(5).
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    /// Of the program, cut off at 15 characters.
    name: String,
    /// The process that started it.
    parent: u64,
    /// utime, stime, cutime and cstime together.
    ticks: u64,
    /// Since boot.
    start: u64,
    /// Ended with all its threads, and not waited for yet.
    zombie: bool,
}

impl Stat {
    fn read(pid: i32) -> Option<Stat> {
        Stat::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name of the program, in parentheses, may hold anything.
    fn parse(text: &str) -> Option<Stat> {
        let (start, end) = (text.find('(')?, text.rfind(')')?);
        let name = text.get(start + 1..end)?.to_owned();
        let fields: Vec<&str> = text[end + 1..].split_ascii_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        let ticks = (14..=17).map(number).sum::<Option<u64>>()?;
        // The first thread may have ended before the others, which hold the sockets still.
        let zombie = *fields.first()? == "Z" && number(20)? <= 1;
        Some(Stat { name, parent: number(4)?, ticks, start: number(22)?, zombie })
    }

    /// Newer versions of Samba put the client's address behind the name.
    fn serves_a_connection(&self) -> bool {
        self.name.strip_prefix("smbd").is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', ':']))
    }
}

impl Process {
    /// The process of this id, if it lives: one that has ended and is still to be waited for does not.
    pub fn find(pid: u32) -> Option<Process> {
        let stat = Stat::read(i32::try_from(pid).ok()?).filter(|stat| !stat.zombie)?;
        Some(Process { pid, start: stat.start })
    }

    /// The calling process.
    pub(crate) fn own() -> Process {
        let pid = std::process::id();
        // A process that asks lives.
        Process::find(pid).unwrap_or(Process { pid, start: 0 })
    }

    /// Whether it lives, and is not another one that got its id.
    pub fn lives(&self) -> bool {
        Process::find(self.pid).is_some_and(|found| found == *self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Field numbers of proc_pid_stat(5).
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

    /// What is asked for by its environment alone is missed between the end of that and the end of its sockets.
    #[test]
    fn what_is_said_to_be_gone_is_gone() {
        let folder = tempfile::tempdir().expect("a temporary directory can be made");
        for _ in 0..20 {
            let mut command = Command::new("sleep");
            command.arg("1000");
            mark(&mut command, folder.path(), Part::Samba);
            let mut child = command.spawn().expect("there is a sleep(1)");
            let process = Process::find(child.id()).expect("it has just been started");
            let gone = end(folder.path()) && !process.lives();
            child.kill().and_then(|()| child.wait()).expect("it has ended");
            assert!(gone);
        }
    }

    #[test]
    fn a_process_with_another_start_time_is_another_process() {
        let own = Process::own();
        assert!(own.lives());
        assert!(!Process { start: own.start + 1, ..own }.lives());
    }
}
