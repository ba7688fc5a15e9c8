//! Runs work on its own thread, while the calling thread checks for signals; the exceptions of the package, and the
//! mapping of library errors to them.

use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::prelude::*;
use pyo3::{PyErr, create_exception};
use smbscope_report::arrow::TableError;
use smbscope_run::analysis;
use smbscope_run::analysis::AnalysisObserver;
use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{io, thread};

/// Interval between checks for signals. A result is returned without waiting for it.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// Stops an analysis from outside.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stopper(Arc<StopperState>);

#[derive(Debug, Default)]
struct StopperState {
    ended: AtomicBool,
    /// Stop flag of the current pass.
    flag: Mutex<Option<Arc<AtomicBool>>>,
}

impl Stopper {
    /// Stops the current pass and all later ones.
    pub(crate) fn stop(&self) {
        self.0.ended.store(true, Ordering::SeqCst);
        if let Some(flag) = &*self.0.flag.lock().unwrap_or_else(PoisonError::into_inner) {
            flag.store(true, Ordering::Relaxed);
        }
    }
}

impl AnalysisObserver for Stopper {
    fn begins(&mut self, stop: &Arc<AtomicBool>) {
        *self.0.flag.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(stop));
        if self.0.ended.load(Ordering::SeqCst) {
            stop.store(true, Ordering::Relaxed);
        }
    }
}

/// Runs `work` without the GIL. A signal for which Python raises an exception stops it, and the exception is raised.
pub(crate) fn interruptible<T: Send>(py: Python<'_>, work: impl FnOnce(Stopper) -> T + Send) -> PyResult<T> {
    let stopper = Stopper::default();
    let for_work = stopper.clone();
    let caller = thread::current();
    let ended = AtomicBool::new(false);
    let (result, raised) = thread::scope(|scope| {
        let work = || {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(for_work)));
            ended.store(true, Ordering::SeqCst);
            caller.unpark();
            result
        };
        let worker = thread::Builder::new().spawn_scoped(scope, work)?;
        let mut raised = Ok(());
        while !ended.load(Ordering::SeqCst) {
            py.detach(|| thread::park_timeout(LOOK));
            if raised.is_ok() {
                raised = py.check_signals().inspect_err(|_| stopper.stop());
            }
        }
        io::Result::Ok((worker.join().and_then(|result| result), raised))
    })?;
    raised?;
    result.map_err(|panic| broken(&*panic))
}

/// Converts a panic into an exception that asks for a report.
pub(crate) fn broken(panic: &(dyn Any + Send)) -> PyErr {
    let why = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    SmbscopeError::new_err(format!("smbscope broke down, please report this: {}", why.unwrap_or("no reason was given")))
}

create_exception!(smbscope, SmbscopeError, PyException, "Base class of all exceptions of this package.");
create_exception!(smbscope, ArgumentError, SmbscopeError, "The request is invalid or impossible.");
create_exception!(smbscope, CaptureError, SmbscopeError, "A capture is unusable or contains no SMB.");
create_exception!(smbscope, RunError, SmbscopeError, "The command failed.");
create_exception!(smbscope, LimitError, RunError, "A limit in fail_if was exceeded.");

/// Maps an analysis error.
pub(crate) fn of_analysis(error: &analysis::AnalysisError) -> PyErr {
    use analysis::AnalysisError;
    let text = smbscope_run::one_line(error);
    match error {
        AnalysisError::Capture(_) | AnalysisError::NoSmb(_) => CaptureError::new_err(text),
        AnalysisError::ThresholdsFile { .. }
        | AnalysisError::Thresholds { .. }
        | AnalysisError::Episode(_)
        | AnalysisError::Sides(_)
        | AnalysisError::Stretch(_)
        | AnalysisError::StretchFilter(_) => ArgumentError::new_err(text),
        AnalysisError::EpisodeFilter { .. } | AnalysisError::Keys(_) => ArgumentError::new_err(text),
        AnalysisError::Interrupted(_) => PyKeyboardInterrupt::new_err(text),
        AnalysisError::InParts(_) => ArgumentError::new_err(text),
        AnalysisError::Piece { .. }
        | AnalysisError::Received { .. }
        | AnalysisError::Table(_)
        | AnalysisError::Thread(_)
        | AnalysisError::Failed(_) => SmbscopeError::new_err(text),
    }
}

/// Maps a table error.
pub(crate) fn of_table(error: &TableError) -> PyErr {
    ArgumentError::new_err(smbscope_run::one_line(error))
}

/// Maps an error of writing a file.
pub(crate) fn of_writing(path: &std::path::Path, error: &io::Error) -> PyErr {
    SmbscopeError::new_err(format!("cannot write {}: {error}", path.display()))
}
