//! The native module of the Python package: conversions, errors, exports. What it does is done by the crates below it; what
//! users see of it is `python/smbscope`.
//!
//! Work is done on a thread of its own, with Python's lock released; the calling thread looks for signals meanwhile. Tables
//! go to Python through Arrow's C interface, without a copy.

mod analysis;
mod cells;
mod document;
mod errors;
mod exchanges;
mod load;
mod page;
mod parts;
mod table;
mod work;

use pyo3::prelude::*;

/// The native module.
#[pymodule(gil_used = false)]
mod _smbscope {
    #[pymodule_export]
    use crate::analysis::{PyAnalysis, analyze};
    #[pymodule_export]
    use crate::document::PyDocument;
    #[pymodule_export]
    use crate::errors::{ArgumentError, CaptureError, LimitError, RunError, SmbscopeError};
    #[pymodule_export]
    use crate::exchanges::{Batches, PyExchanges};
    #[pymodule_export]
    use crate::load::PyLoadHost;
    #[pymodule_export]
    use crate::parts::{divide, follow, merge, plan, shared_sessions};
    #[pymodule_export]
    use crate::table::PyTable;

    use super::*;
    use crate::load;
    use crate::work::broken;
    use std::ffi::OsString;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Runs the command line: how this program is started, then the arguments. `hosts` starts load generators on a cluster,
    /// given its address and how many on each host. Returns the exit status.
    #[pyfunction]
    #[pyo3(signature = (program, arguments, hosts = None))]
    fn main(
        py: Python<'_>,
        program: Vec<OsString>,
        arguments: Vec<OsString>,
        hosts: Option<Py<PyAny>>,
    ) -> PyResult<u8> {
        let run = AssertUnwindSafe(|| smbscope_cli::main(program, arguments, hosts.map(load::source)));
        py.detach(|| catch_unwind(run)).map_err(|panic| broken(&*panic))
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
