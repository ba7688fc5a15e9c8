//! Waits for other processes.

use std::time::{Duration, Instant};

/// Polls until the condition holds. Returns false after 30 s.
pub fn eventually(so: impl Fn() -> bool) -> bool {
    let patience = Instant::now() + Duration::from_secs(30);
    while !so() {
        if Instant::now() > patience {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}
