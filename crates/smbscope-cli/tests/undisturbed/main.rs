//! Time measurements in a separate test program, run one at a time so that nothing disturbs them.

#[path = "../common/mod.rs"]
mod common;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../causes/scene.rs"]
mod scene;

/// Part of the tests' names, so that `make test` runs these tests separately, while nothing else runs.
#[path = "."]
mod undisturbed {
    mod bench_answers;
    mod server_side;
    mod sides;
    mod whatif;
}

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits for other measurements to finish. No other starts before the guard is dropped.
fn alone() -> MutexGuard<'static, ()> {
    static MEASURES: Mutex<()> = Mutex::new(());
    MEASURES.lock().unwrap_or_else(PoisonError::into_inner)
}
