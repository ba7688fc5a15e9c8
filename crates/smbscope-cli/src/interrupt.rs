//! Ctrl-C: the first one ends the work with what was measured so far, the second one ends the process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// What the handler sets: the flag of the work in progress.
static CURRENT: OnceLock<Mutex<Arc<AtomicBool>>> = OnceLock::new();

/// From now on, Ctrl-C sets this flag. The handler is installed once a process; where that fails (a test harness, an
/// embedding program has its own), Ctrl-C does what it did.
pub(crate) fn sets(flag: &Arc<AtomicBool>) {
    if let Some(current) = CURRENT.get() {
        *current.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(flag);
        return;
    }
    let current = CURRENT.get_or_init(|| Mutex::new(Arc::clone(flag)));
    let handler = || {
        if current.lock().unwrap_or_else(PoisonError::into_inner).swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    };
    let _has_own = ctrlc::set_handler(handler);
}

/// From now on, Ctrl-C does nothing to this process: another one on the same terminal decides what it means.
pub(crate) fn is_left_to_others() {
    let _has_own = ctrlc::set_handler(|| {});
}
