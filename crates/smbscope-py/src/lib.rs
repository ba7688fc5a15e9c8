//! The native module of the Python package: conversions, errors and exports. The crates below do the work; users see it
//! through `python/smbscope`.
//!
//! Work runs on its own thread with the GIL released, while the calling thread checks for signals. Tables pass to
//! Python through Arrow's C interface without a copy.

mod analysis;
mod exchanges;
mod table;
mod work;

use pyo3::prelude::*;

/// The native module.
#[pymodule(gil_used = false)]
mod _smbscope {
    #[pymodule_export]
    use crate::analysis::{PyAnalysis, PyLoadHost, analyze, divide, follow, merge, plan, shared_sessions};
    #[pymodule_export]
    use crate::exchanges::{Batches, PyExchanges};
    #[pymodule_export]
    use crate::table::{PyDocument, PyTable};
    #[pymodule_export]
    use crate::work::{ArgumentError, CaptureError, LimitError, RunError, SmbscopeError};

    use super::*;
    use crate::analysis::host_source;
    use crate::work::broken;
    use std::ffi::OsString;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Runs the command line. `program` is the command that starts this program, followed by the arguments. `hosts`
    /// starts the load generators of a cluster, given its address and the number per host. Returns the exit status.
    #[pyfunction]
    #[pyo3(signature = (program, arguments, hosts = None))]
    fn main(
        py: Python<'_>,
        program: Vec<OsString>,
        arguments: Vec<OsString>,
        hosts: Option<Py<PyAny>>,
    ) -> PyResult<u8> {
        let run = AssertUnwindSafe(|| smbscope_cli::main(program, arguments, hosts.map(host_source)));
        py.detach(|| catch_unwind(run)).map_err(|panic| broken(&*panic))
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
