//! This machine: its operating system, processors and memory, from `/proc` and `/etc/os-release`, its clock, and other
//! programs on it, such as shell commands of a variant.
//!
//! The needs of a study are checked before its first run: a missing program would otherwise show after minutes, or as
//! failed runs.

use serde::Deserialize;
use smbscope_lab::command_for;
use smbscope_model::{Nanos, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{fs, thread};

/// Returns the properties of this machine by name. Leaves out those that can't be read.
pub(crate) fn of_client() -> BTreeMap<String, String> {
    let read = |path: &str| fs::read_to_string(Path::new(path)).unwrap_or_default();
    let mut facts = facts(&read("/etc/os-release"), &read("/proc/cpuinfo"), &read("/proc/meminfo"));
    let kernel = read("/proc/sys/kernel/osrelease").trim().to_owned();
    facts.push(("kernel", Some(format!("Linux {kernel}")).filter(|_| !kernel.is_empty())));
    let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").trim().to_owned();
    facts.push(("governor", Some(governor).filter(|governor| !governor.is_empty())));
    facts.push(("cores", thread::available_parallelism().ok().map(|cores| cores.to_string())));
    facts.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?))).collect()
}

fn facts(release: &str, processors: &str, memory: &str) -> Vec<(&'static str, Option<String>)> {
    let value = |text: &str, key: &str, separator: char| {
        let found = text.lines().find_map(|line| {
            let (name, value) = line.split_once(separator)?;
            (name.trim() == key).then(|| value.trim().trim_matches('"').to_owned())
        });
        found.filter(|value| !value.is_empty())
    };
    let kibibytes = value(memory, "MemTotal", ':').and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    vec![
        ("system", value(release, "PRETTY_NAME", '=').or_else(|| Some(std::env::consts::OS.to_owned()))),
        ("processor", value(processors, "model name", ':')),
        ("memory", kibibytes.map(|kibibytes| format!("{:.1} GiB", kibibytes / f64::from(1 << 20)))),
    ]
}

pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(Nanos::from(since).0)
}

pub(crate) fn run_commands(when: &str, commands: &[String], environment: &[(&str, String)]) -> Result<(), String> {
    for command in commands {
        let mut shell = command_for(SHELL[0]);
        shell.args([SHELL[1], command]).envs(environment.iter().map(|(name, value)| (name, value)));
        let output = shell.stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("the command {when} the run cannot be run: {command}: {error}"))?;
        if !output.status.success() {
            let said = [&output.stderr, &output.stdout].map(|text| String::from_utf8_lossy(text).into_owned());
            let last = said.iter().flat_map(|text| text.lines().rev()).find(|line| !line.trim().is_empty());
            let said = last.map_or_else(String::new, |line| format!(": {}", line.trim()));
            return Err(format!("the command {when} the run failed ({}): {command}{said}", output.status));
        }
    }
    Ok(())
}

/// Shell script that runs a command until its standard input is closed. The input is a pipe whose other end only this
/// process holds, so the kernel closes it however this process ends. An orphaned capture would fill the disk.
pub(crate) const UNTIL_END_OF_INPUT: &str = r#"exec 3<&0
"$@" 3<&- </dev/null & program=$!
{ read -r _ <&3; kill -TERM "$program"; } 2>/dev/null & watch=$!
exec 3<&-
wait "$program"; status=$?
kill "$watch" 2>/dev/null
exit "$status""#;

/// Waits for the end of a program, at most this long. Returns `None` if it still runs, or can't be waited for.
pub(crate) fn ends_within(child: &mut Child, time: Duration) -> Option<ExitStatus> {
    let begun = Instant::now();
    loop {
        match child.try_wait() {
            Ok(None) if begun.elapsed() < time => thread::sleep(Duration::from_millis(5)),
            ended => return ended.ok().flatten(),
        }
    }
}

/// Finds a program on the path or in the sbin directories, which ordinary users don't have on their path.
pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder| folder.join(program)).find(|file| file.is_file())
}

pub(crate) const SHELL: [&str; 2] = if cfg!(windows) { ["cmd", "/C"] } else { ["/bin/sh", "-c"] };

/// Checks that packets can be captured while a load runs. The error is one line and says what to do.
pub(crate) fn captures() -> Result<(), String> {
    if cfg!(target_os = "linux") {
        return Ok(());
    }
    Err("packets are only captured on Linux; capture with Wireshark at the same time, and analyze that file".to_owned())
}

pub(crate) use mounted::storage;

#[cfg(target_os = "linux")]
mod mounted {
    use procfs::process::{MountInfo, Process};
    use std::collections::BTreeSet;
    use std::path::Path;

    /// Returns the file system of a folder with its mount options: `ext4 on /dev/sda1 (rw, relatime)`.
    pub(crate) fn storage(folder: &Path) -> Option<String> {
        let folder = folder.canonicalize().ok()?;
        let mounts = Process::myself().ok()?.mountinfo().ok()?;
        let deepest = |mount: &MountInfo| mount.mount_point.components().count();
        let mount = mounts.into_iter().filter(|mount| folder.starts_with(&mount.mount_point)).max_by_key(deepest)?;
        let options: BTreeSet<String> = mount.mount_options.into_iter().map(written).collect();
        let options: Vec<String> = options.into_iter().collect();
        let from = mount.mount_source.map_or_else(String::new, |source| format!(" on {source}"));
        Some(format!("{}{from} ({})", mount.fs_type, options.join(", ")))
    }

    fn written((name, value): (String, Option<String>)) -> String {
        value.map_or(name.clone(), |value| format!("{name}={value}"))
    }
}

#[cfg(not(target_os = "linux"))]
mod mounted {
    use std::path::Path;

    /// Returns nothing: mounts are read on Linux only.
    pub(crate) fn storage(_folder: &Path) -> Option<String> {
        None
    }
}

/// Programs with their children.
#[cfg(unix)]
pub(crate) mod groups {
    use rustix::process::{Pid, Signal, kill_process, kill_process_group};
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    pub(crate) fn begin(command: &mut Command) {
        command.process_group(0);
    }

    /// Asks a program to end.
    pub(crate) fn end(child: &mut Child) {
        signal(child.id(), Signal::TERM);
    }

    /// Asks tcpdump for its counts.
    pub(crate) fn ask_for_counts(process: u32) {
        signal(process, Signal::USR1);
    }

    fn signal(process: u32, signal: Signal) {
        if let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) {
            let _ = kill_process(process, signal);
        }
    }

    pub(crate) fn kill(child: &mut Child) {
        if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

#[cfg(windows)]
pub(crate) mod groups {
    use std::os::windows::process::CommandExt;
    use std::process::{Child, Command};

    const CREATE_NEW_PROCESS_GROUP: u32 = 0x200;

    pub(crate) fn begin(command: &mut Command) {
        command.creation_flags(CREATE_NEW_PROCESS_GROUP);
    }

    /// Ends a program.
    pub(crate) fn end(child: &mut Child) {
        let _ = child.kill();
    }

    /// Does nothing: there are no such signals.
    pub(crate) fn ask_for_counts(_process: u32) {}

    pub(crate) fn kill(child: &mut Child) {
        let _ = child.kill();
    }
}

/// A program, a file, an environment variable, or the rights of root.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Need {
    program: Option<String>,
    /// Debian package that contains the program.
    package: Option<String>,
    file: Option<PathBuf>,
    variable: Option<String>,
    #[serde(default)]
    root: bool,
    /// Message if it is missing. Programs need none.
    otherwise: Option<String>,
    /// Setting that needs it. `None` if all variants do.
    setting: Option<String>,
}

impl Need {
    /// Returns the mistake in an entry that is not valid.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let named = [self.program.is_some(), self.file.is_some(), self.variable.is_some(), self.root];
        match named.iter().filter(|named| **named).count() {
            1 if self.program.is_some() == self.package.is_some()
                && self.program.is_some() != self.otherwise.is_some() =>
            {
                None
            }
            _ => Some(
                "a need is a program with its package, or one of file, variable and root with a text: otherwise = \"…\"",
            ),
        }
    }

    fn is_of(&self, settings: &BTreeSet<&str>) -> bool {
        self.setting.as_deref().is_none_or(|setting| settings.contains(setting))
    }

    /// Returns false if it is missing here.
    fn is_met(&self) -> bool {
        self.program.as_ref().is_none_or(|program| on_path(program).is_some())
            && self.file.as_ref().is_none_or(|file| file.exists())
            && self.variable.as_ref().is_none_or(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
            && (!self.root || is_root())
    }
}

#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}

/// Returns everything that is missing for runs with these settings, with the command that installs it, in one line.
pub(crate) fn missing_needs(needs: &[Need], settings: &BTreeSet<&str>, has_private_servers: bool) -> Option<String> {
    let missing: Vec<&Need> = needs.iter().filter(|need| need.is_of(settings) && !need.is_met()).collect();
    let programs: Vec<&str> = missing.iter().filter_map(|need| need.program.as_deref()).collect();
    let packages: BTreeSet<&str> = missing.iter().filter_map(|need| need.package.as_deref()).collect();
    let mut texts: Vec<String> = Vec::new();
    if has_private_servers {
        texts.extend(smbscope_lab::available().err());
    }
    if !programs.is_empty() {
        let packages = packages.into_iter().collect::<Vec<_>>().join(" ");
        texts.push(format!("{} not installed (Debian, Ubuntu: apt install {packages})", are(&programs)));
    }
    texts.extend(missing.iter().filter_map(|need| need.otherwise.clone()));
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// Formats `a is`, or `a, b and c are`.
fn are(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, [])) => format!("{last} is"),
        Some((last, others)) => format!("{} and {last} are", others.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_from_what_linux_says() {
        let release = "NAME=\"Debian GNU/Linux\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n";
        let processors = "processor\t: 0\nmodel name\t: Some CPU @ 2.10GHz\n\nprocessor\t: 1\n";
        let memory = "MemTotal:        4194304 kB\nMemFree: 1 kB\n";
        let expected = ["Debian GNU/Linux 12 (bookworm)", "Some CPU @ 2.10GHz", "4.0 GiB"].map(str::to_owned);
        let found: Vec<String> = facts(release, processors, memory).into_iter().filter_map(|(_, text)| text).collect();
        assert_eq!(found, expected);
    }

    /// /proc has the file system type proc (proc(5)), and nothing is mounted on its files.
    #[test]
    fn the_file_system_of_a_folder_is_named_with_its_options() {
        let storage = storage(Path::new("/proc/self/fdinfo")).expect("it is mounted");
        assert!(storage.starts_with("proc on ") && storage.contains("rw"), "{storage}");
        assert_eq!(super::storage(Path::new("/nowhere")), None);
    }

    #[test]
    fn what_is_not_said_is_left_out() {
        let found = facts("", "", "MemTotal: many kB");
        assert_eq!(found.iter().filter(|(_, text)| text.is_some()).count(), 1);
    }

    #[test]
    fn a_command_that_fails_is_told_with_its_last_words() {
        let environment = [("SMBSCOPE_VARIANT", "fast".to_owned())];
        let run = |commands: &[&str]| {
            let commands: Vec<String> = commands.iter().map(|text| (*text).to_owned()).collect();
            run_commands("before", &commands, &environment)
        };
        assert_eq!(run(&["true", "test $SMBSCOPE_VARIANT = fast"]), Ok(()));
        let error = run(&["echo first; echo no such disk >&2; exit 3", "false"]).unwrap_err();
        assert!(error.ends_with("exit 3: no such disk") && error.contains("(exit status: 3)"), "{error}");
    }
}
