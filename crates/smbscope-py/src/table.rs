//! A table that other libraries read through Arrow's C interface.

use crate::cells::rows;
use crate::errors::SmbscopeError;
use crate::page;
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::Schema;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};

/// A table in memory. pyarrow, Polars, pandas and DuckDB import it without a copy through `__arrow_c_stream__`.
#[pyclass(name = "Table", frozen, module = "smbscope")]
pub(crate) struct PyTable(pub(crate) RecordBatch);

#[pymethods]
impl PyTable {
    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// Returns the rows as dicts. Times are integers in nanoseconds.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        rows(py, &self.0)
    }

    /// Exports the table as an Arrow stream with one batch.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let schema = self.0.schema();
        stream(py, RecordBatchIterator::new([Ok(self.0.clone())], schema))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema(py, &self.0.schema())
    }

    fn __repr__(&self) -> String {
        let (rows, columns) = (self.0.num_rows(), self.0.num_columns());
        format!("<smbscope.Table: {rows} rows, {columns} columns>")
    }

    /// Returns the first rows as HTML for a notebook.
    fn _repr_html_(&self) -> String {
        page::table(&self.0)
    }
}

/// Wraps batches in a capsule of Arrow's C stream interface.
pub(crate) fn stream<'py>(
    py: Python<'py>,
    batches: impl RecordBatchReader + Send + 'static,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
}

/// Wraps a schema in a capsule of Arrow's C data interface.
pub(crate) fn schema<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema).map_err(|error| SmbscopeError::new_err(error.to_string()))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}
