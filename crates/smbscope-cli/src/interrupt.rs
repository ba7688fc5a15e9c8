//! Ctrl-C: the first one ends the work with what was measured so far, the second one ends the process.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// A flag that Ctrl-C sets. The handler is installed once a process; where that fails, Ctrl-C ends the process as
/// ever.
pub(crate) fn flag() -> Arc<AtomicBool> {
    let flag = INTERRUPTED.get_or_init(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let handler_flag = Arc::clone(&flag);
        let handler = move || {
            if handler_flag.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        };
        if ctrlc::set_handler(handler).is_err() {
            // Another handler is in place (a test harness, an embedding program): leave it to that one.
        }
        flag
    });
    Arc::clone(flag)
}
