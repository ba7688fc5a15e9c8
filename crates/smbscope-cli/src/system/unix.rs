//! Signals and terminals of Unix.

pub(crate) use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use sd_notify::NotifyState;
use signal_hook::consts::SIGXFSZ;
use signal_hook::iterator::Signals;
use smbscope_run::watch::sandbox;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

/// Returns the exit code, or 128 plus the number of the signal, as shells do.
pub(crate) fn code(status: ExitStatus) -> Option<i32> {
    status.code().or(status.signal().map(|signal| 128 + signal))
}

/// Calls this function, in a thread of its own, for every signal that asks the process to end.
pub(crate) fn follow(mut handle: impl FnMut(i32) + Send + 'static) {
    let ignored = fs::read_to_string("/proc/self/status").is_ok_and(|status| is_ignored(SIGHUP, &status));
    let wanted: &[i32] = if ignored { &[SIGINT, SIGTERM] } else { &[SIGINT, SIGTERM, SIGHUP] };
    // Exceeding a file size limit (setrlimit(2)) is then a write error, like a full disk.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    let Ok(mut signals) = Signals::new(wanted) else { return };
    let follow = move || {
        sandbox::enter_thread();
        signals.forever().for_each(&mut handle);
    };
    let _ = std::thread::Builder::new().name("signals".to_owned()).spawn(follow);
}

/// Sends a line of sd_notify(3). Does nothing without a service manager.
pub(crate) fn tell_service_manager(state: &str) {
    if let Err(error) = sd_notify::notify(&[NotifyState::Custom(state)]) {
        tracing::info!(%error, "the service manager is not told");
    }
}

/// Returns the time after which the service manager ends a process that is silent.
pub(crate) fn watchdog_limit() -> Option<Duration> {
    sd_notify::watchdog_enabled()
}

/// Returns true if the journal reads standard error: the variable has its device and inode (systemd.exec(5)).
pub(crate) fn logs_to_journal() -> bool {
    let found = rustix::fs::fstat(io::stderr()).map(|found| format!("{}:{}", found.st_dev, found.st_ino));
    std::env::var("JOURNAL_STREAM").is_ok_and(|stream| Ok(stream) == found)
}

pub(crate) fn raise_ctrl_c() {
    let _ = signal_hook::low_level::raise(SIGINT);
}

/// Returns true if a process ignores a signal, according to its `status` file (proc(5)): signal 1 is the lowest bit
/// of the mask.
fn is_ignored(signal: i32, status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

/// Returns true: a terminal knows colours, unless the user says otherwise.
pub(crate) fn takes_styles() -> bool {
    true
}

/// Waits for input, up to this time. Fails if the terminal is gone, because crossterm would then read forever.
pub(crate) fn wait_for_input(longest: Duration) -> io::Result<()> {
    let stdin = io::stdin();
    let mut waited = [PollFd::new(&stdin, PollFlags::IN)];
    let longest = Timespec::try_from(longest).map_err(io::Error::other)?;
    match poll(&mut waited, Some(&longest)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    if waited[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        return Err(io::Error::other("the terminal is gone"));
    }
    Ok(())
}

/// Runs the program. No window is its own.
pub(crate) fn in_window(arguments: Vec<OsString>, run: impl FnOnce(Vec<OsString>) -> u8) -> u8 {
    run(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nohup_ignores_is_seen() {
        // Masks under nohup on Linux, and of a process whose parent ignores SIGINT and SIGQUIT.
        assert!(is_ignored(SIGHUP, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000001\n"));
        let background = "SigIgn:\t0000000000000006\n";
        assert!(!is_ignored(SIGHUP, background) && is_ignored(SIGINT, background));
        assert!(!is_ignored(SIGHUP, ""));
    }
}
