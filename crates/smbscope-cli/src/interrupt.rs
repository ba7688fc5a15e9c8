//! Signal handling: the first signal ends the work in progress and keeps the results, another one ends the process.

use crate::system::{self, SIGHUP, SIGINT, SIGTERM};
use smbscope_run::files;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Exit status of a command that a signal ended early, after its results so far were written.
pub(crate) const STATUS: u8 = 128 + SIGINT as u8;

/// Flag of the work in progress, set by the handler. Without one, a signal ends the process.
static CURRENT: Mutex<Option<InterruptFlag>> = Mutex::new(None);

static BEFORE_THE_END: OnceLock<fn()> = OnceLock::new();

struct InterruptFlag {
    by: &'static [i32],
    flag: Arc<AtomicBool>,
}

/// Signals within this time count as one: `timeout` signals both the process and its group, and so does a closing
/// terminal.
const TOGETHER: Duration = Duration::from_millis(500);

/// The work ended early, and its results so far were written.
#[derive(Debug)]
pub struct InterruptedError(Option<String>);

impl InterruptedError {
    /// The user was already told.
    pub(crate) fn said() -> InterruptedError {
        InterruptedError(None)
    }

    /// The text has to be shown to the user.
    pub(crate) fn with(text: impl Into<String>) -> InterruptedError {
        InterruptedError(Some(text.into()))
    }

    pub fn status(&self) -> u8 {
        STATUS
    }

    /// Returns true if the user was not told yet.
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

/// Makes Ctrl-C set this flag. If the handler can't be installed, Ctrl-C keeps its effect.
pub(crate) fn sets(flag: &Arc<AtomicBool>) {
    set_by(&[SIGINT], flag);
}

/// Makes Ctrl-C, SIGTERM and a closing terminal set this flag; not the latter under `nohup`.
pub(crate) fn any_end_sets(flag: &Arc<AtomicBool>) {
    set_by(&[SIGINT, SIGTERM, SIGHUP], flag);
}

pub(crate) fn removes_unfinished_files() {
    install();
}

/// Calls this function before a signal ends the process. Only the first registration counts.
pub(crate) fn calls_before_the_end(last: fn()) {
    let _ = BEFORE_THE_END.set(last);
}

pub(crate) fn as_by_ctrl_c() {
    system::raise_ctrl_c();
}

fn set_by(by: &'static [i32], flag: &Arc<AtomicBool>) {
    *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = Some(InterruptFlag { by, flag: Arc::clone(flag) });
    install();
}

/// Installs the handler, once per process.
fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let mut first = None;
        system::follow(move |signal| obey(signal, &mut first));
    });
}

fn obey(signal: i32, first: &mut Option<Instant>) {
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

/// Returns true for a second, separate request to end. A closing terminal counts once, however many signals it
/// causes.
fn ends_the_process(signal: i32, was_set: bool, since_the_first: Duration) -> bool {
    was_set && since_the_first >= TOGETHER && signal != SIGHUP
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_second_wish_ends_the_process() {
        let later = TOGETHER * 2;
        assert!(!ends_the_process(SIGTERM, false, Duration::ZERO));
        assert!(!ends_the_process(SIGTERM, true, TOGETHER / 2));
        assert!(ends_the_process(SIGTERM, true, later) && ends_the_process(SIGINT, true, later));
        assert!(!ends_the_process(SIGHUP, true, later));
    }
}
