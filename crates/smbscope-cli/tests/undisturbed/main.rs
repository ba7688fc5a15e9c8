//! Tests that measure times: in a program of their own, one at a time, so that nothing disturbs them.

#[path = "../common/mod.rs"]
mod common;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../causes/scene.rs"]
mod scene;
mod server_side;
mod whatif;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits until no other test measures. None starts before the guard is dropped.
fn alone() -> MutexGuard<'static, ()> {
    static MEASURES: Mutex<()> = Mutex::new(());
    MEASURES.lock().unwrap_or_else(PoisonError::into_inner)
}
