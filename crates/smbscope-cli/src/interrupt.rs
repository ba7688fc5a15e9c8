//! Signals that end the work: the first one with what was measured so far, a further one the process.

use crate::bench;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// What the handler sets: the flag of the work in progress.
static CURRENT: OnceLock<Mutex<Arc<AtomicBool>>> = OnceLock::new();

/// Signals that come together are one wish: `timeout` sends its own to the process and to its group, a terminal that is
/// closed to both, too.
const TOGETHER: Duration = Duration::from_millis(500);

/// From now on, Ctrl-C sets this flag. The handler is installed once a process; where that fails, Ctrl-C does what it did.
pub(crate) fn sets(flag: &Arc<AtomicBool>) {
    set_by(&[SIGINT], flag);
}

/// From now on, Ctrl-C, SIGTERM and the end of the terminal set this flag; the latter not under `nohup`.
pub(crate) fn any_end_sets(flag: &Arc<AtomicBool>) {
    let ignored = fs::read_to_string("/proc/self/status").is_ok_and(|status| is_ignored(SIGHUP, &status));
    set_by(if ignored { &[SIGINT, SIGTERM] } else { &[SIGINT, SIGTERM, SIGHUP] }, flag);
}

/// From now on, Ctrl-C does nothing to this process: another one on the same terminal decides what it means.
pub(crate) fn is_left_to_others() {
    let _cannot_be_caught = signal_hook::flag::register(SIGINT, Arc::default());
}

/// Does what Ctrl-C does, where the terminal makes no signal of it.
pub(crate) fn as_by_ctrl_c() {
    let _not_delivered = signal_hook::low_level::raise(SIGINT);
}

fn set_by(wanted: &[i32], flag: &Arc<AtomicBool>) {
    if let Some(current) = CURRENT.get() {
        *current.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(flag);
        return;
    }
    let current = CURRENT.get_or_init(|| Mutex::new(Arc::clone(flag)));
    let Ok(mut signals) = Signals::new(wanted) else { return };
    let follow = move || {
        let mut first = None;
        for signal in signals.forever() {
            let was_set = current.lock().unwrap_or_else(PoisonError::into_inner).swap(true, Ordering::Relaxed);
            let since = first.get_or_insert_with(Instant::now).elapsed();
            if ends_the_process(signal, was_set, since) {
                bench::leave();
                std::process::exit(128 + signal);
            }
        }
    };
    let _cannot_be_followed = std::thread::Builder::new().name("signals".to_owned()).spawn(follow);
}

/// Whether a signal is the second wish to end. A terminal closes once, however many signals come of it.
fn ends_the_process(signal: i32, was_set: bool, since_the_first: Duration) -> bool {
    was_set && since_the_first >= TOGETHER && signal != SIGHUP
}

/// Whether a process ignores a signal, by its file `status` (proc(5)): a mask in which signal 1 is the lowest bit.
fn is_ignored(signal: i32, status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nohup_ignores_is_seen() {
        // As Linux shows a process under nohup, and one whose parent ignores SIGINT and SIGQUIT.
        assert!(is_ignored(SIGHUP, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000001\n"));
        let background = "SigIgn:\t0000000000000006\n";
        assert!(!is_ignored(SIGHUP, background) && is_ignored(SIGINT, background));
        assert!(!is_ignored(SIGHUP, ""));
    }

    #[test]
    fn only_a_second_wish_ends_the_process() {
        let later = TOGETHER * 2;
        assert!(!ends_the_process(SIGTERM, false, Duration::ZERO));
        assert!(!ends_the_process(SIGTERM, true, TOGETHER / 2));
        assert!(ends_the_process(SIGTERM, true, later) && ends_the_process(SIGINT, true, later));
        assert!(!ends_the_process(SIGHUP, true, later));
    }
}
