//! Signals that end the work: the first one with what was measured so far, a further one the process.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use smbscope_run::files;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Exit status of a command that a signal ended early, with what was measured until then written.
pub(crate) const STATUS: u8 = 128 + SIGINT as u8;

/// What the handler sets: the flag of the work in progress. Without one, a signal ends the process.
static CURRENT: Mutex<Option<InterruptFlag>> = Mutex::new(None);

/// What cannot wait when a signal ends the process at once.
static BEFORE_THE_END: OnceLock<fn()> = OnceLock::new();

struct InterruptFlag {
    /// The signals that set it.
    by: &'static [i32],
    flag: Arc<AtomicBool>,
}

/// Signals that come together are one wish: `timeout` sends its own to the process and to its group, a terminal that is
/// closed to both, too.
const TOGETHER: Duration = Duration::from_millis(500);

/// The work ended early, and what was measured until then is written.
#[derive(Debug)]
pub struct InterruptedError(Option<String>);

impl InterruptedError {
    /// It has been said already.
    pub(crate) fn said() -> InterruptedError {
        InterruptedError(None)
    }

    /// What is still to be said.
    pub(crate) fn with(text: impl Into<String>) -> InterruptedError {
        InterruptedError(Some(text.into()))
    }

    /// How the process ends.
    pub fn status(&self) -> u8 {
        STATUS
    }

    /// Whether nobody has said so yet.
    pub fn is_to_be_said(&self) -> bool {
        self.0.is_some()
    }
}

impl std::fmt::Display for InterruptedError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.as_deref().unwrap_or("interrupted"))
    }
}

impl std::error::Error for InterruptedError {}

/// From now on, Ctrl-C sets this flag. Where the handler cannot be installed, Ctrl-C does what it did.
pub(crate) fn sets(flag: &Arc<AtomicBool>) {
    set_by(&[SIGINT], flag);
}

/// From now on, Ctrl-C, SIGTERM and the end of the terminal set this flag; the latter not under `nohup`.
pub(crate) fn any_end_sets(flag: &Arc<AtomicBool>) {
    set_by(&[SIGINT, SIGTERM, SIGHUP], flag);
}

/// From now on, a signal that ends the process removes unfinished files first.
pub(crate) fn removes_unfinished_files() {
    install();
}

/// From now on, a signal that ends the process calls this first; of several, the first that was given.
pub(crate) fn calls_before_the_end(last: fn()) {
    let _ = BEFORE_THE_END.set(last);
}

/// From now on, Ctrl-C does nothing to this process: another one on the same terminal decides what it means.
pub(crate) fn is_left_to_others() {
    let _ = signal_hook::flag::register(SIGINT, Arc::default());
}

/// Does what Ctrl-C does, where the terminal makes no signal of it.
pub(crate) fn as_by_ctrl_c() {
    let _ = signal_hook::low_level::raise(SIGINT);
}

fn set_by(by: &'static [i32], flag: &Arc<AtomicBool>) {
    *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = Some(InterruptFlag { by, flag: Arc::clone(flag) });
    install();
}

/// Installs the handler, once a process.
fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let ignored = fs::read_to_string("/proc/self/status").is_ok_and(|status| is_ignored(SIGHUP, &status));
        let wanted: &[i32] = if ignored { &[SIGINT, SIGTERM] } else { &[SIGINT, SIGTERM, SIGHUP] };
        // A limit of file sizes (setrlimit(2)) is an error of writing then, as a full disk is.
        let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
        let Ok(signals) = Signals::new(wanted) else { return };
        let _ = std::thread::Builder::new().name("signals".to_owned()).spawn(move || follow(signals));
    });
}

fn follow(mut signals: Signals) {
    let mut first = None;
    for signal in signals.forever() {
        let current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
        let flag = current.as_ref().filter(|current| current.by.contains(&signal)).map(|current| &current.flag);
        let ends = match flag {
            Some(flag) => {
                let was_set = flag.swap(true, Ordering::Relaxed);
                ends_the_process(signal, was_set, first.get_or_insert_with(Instant::now).elapsed())
            }
            None => true,
        };
        if ends {
            if let Some(last) = BEFORE_THE_END.get() {
                last();
            }
            files::abandon_all();
            std::process::exit(128 + signal);
        }
    }
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
