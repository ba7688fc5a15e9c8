//! JSON documents of smbscope with their page and their tables, for Python: through Arrow's C interface, as data frames
//! and Python objects, and as HTML in notebooks. Text from captures is always escaped.

use crate::work::{ArgumentError, SmbscopeError, of_table, of_writing};
use arrow_array::cast::AsArray;
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{
    DurationNanosecondType, Float64Type, Int32Type, Int64Type, TimestampNanosecondType, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::{DataType, Schema};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PyString};
use serde_json::Value;
use smbscope_model::Nanos;
use smbscope_report::{arrow, clean, html};
use smbscope_run::files::write_file;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

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

    /// Returns the table as a pandas DataFrame, which needs pandas and pyarrow.
    fn to_pandas<'py>(this: &Bound<'py, PyTable>) -> PyResult<Bound<'py, PyAny>> {
        data_frame(this.as_any(), "to_pandas")
    }

    /// Returns the table as a Polars DataFrame, which needs Polars.
    fn to_polars<'py>(this: &Bound<'py, PyTable>) -> PyResult<Bound<'py, PyAny>> {
        data_frame(this.as_any(), "to_polars")
    }

    /// Returns the first rows as an HTML table, with times in readable units. `columns` selects and orders columns.
    // A literal, which `help` shows, instead of `ROWS`.
    #[pyo3(signature = (*, columns = None, rows = 20))]
    fn to_html(&self, columns: Option<Vec<String>>, rows: usize) -> PyResult<String> {
        match columns {
            Some(names) => Ok(html_table(&selected(&self.0, &names)?, rows, names.len())),
            None => Ok(html_table(&self.0, rows, COLUMNS)),
        }
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
        html_table(&self.0, ROWS, COLUMNS)
    }
}

/// Converts a table to a data frame with a function of `smbscope._frames`.
pub(crate) fn data_frame<'py>(table: &Bound<'py, PyAny>, function: &str) -> PyResult<Bound<'py, PyAny>> {
    table.py().import("smbscope._frames")?.call_method1(function, (table,))
}

/// Returns a table with only the columns of these names, in this order.
fn selected(batch: &RecordBatch, names: &[String]) -> PyResult<RecordBatch> {
    let schema = batch.schema();
    let index = |name: &String| {
        let known = || schema.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>().join(", ");
        schema.index_of(name).map_err(|_| ArgumentError::new_err(format!("no column {name:?}: there are {}", known())))
    };
    let indices = names.iter().map(index).collect::<PyResult<Vec<_>>>()?;
    batch.project(&indices).map_err(|error| SmbscopeError::new_err(error.to_string()))
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

/// Returns the rows of a table as dicts.
fn rows<'py>(py: Python<'py>, batch: &RecordBatch) -> PyResult<Bound<'py, PyList>> {
    let schema = batch.schema();
    let names: Vec<Bound<PyString>> = schema.fields().iter().map(|field| PyString::new(py, field.name())).collect();
    let list = PyList::empty(py);
    for row in 0..batch.num_rows() {
        let dict = PyDict::new(py);
        for (name, column) in names.iter().zip(batch.columns()) {
            dict.set_item(name, value(py, column, row)?)?;
        }
        list.append(dict)?;
    }
    Ok(list)
}

fn value<'py>(py: Python<'py>, array: &dyn Array, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if array.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).into_bound_py_any(py),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(row).into_bound_py_any(py),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).into_bound_py_any(py),
        DataType::Utf8 => array.as_string::<i32>().value(row).into_bound_py_any(py),
        DataType::Dictionary(..) => {
            let array = array.as_dictionary::<Int32Type>();
            let key = usize::try_from(array.keys().value(row)).unwrap_or_default();
            value(py, array.values(), key)
        }
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            let list = PyList::empty(py);
            (0..items.len()).try_for_each(|item| list.append(value(py, &items, item)?))?;
            Ok(list.into_any())
        }
        DataType::Struct(fields) => {
            let dict = PyDict::new(py);
            for (field, column) in fields.iter().zip(array.as_struct().columns()) {
                dict.set_item(field.name(), value(py, column, row)?)?;
            }
            Ok(dict.into_any())
        }
        _ => integer(array, row).into_bound_py_any(py),
    }
}

/// Returns an integer of a type that fits `i64`, or `None` for any other type.
fn integer(array: &dyn Array, row: usize) -> Option<i64> {
    Some(match array.data_type() {
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row),
        DataType::Duration(_) => array.as_primitive::<DurationNanosecondType>().value(row),
        DataType::Timestamp(..) => array.as_primitive::<TimestampNanosecondType>().value(row),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(row).into(),
        DataType::UInt16 => array.as_primitive::<UInt16Type>().value(row).into(),
        _ => return None,
    })
}

/// Formats a value briefly. Unknown values give an empty string.
fn cell_text(array: &dyn Array, row: usize) -> String {
    if array.is_null(row) {
        return String::new();
    }
    match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Float64 => format!("{:.3}", array.as_primitive::<Float64Type>().value(row)),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).to_string(),
        DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        DataType::Duration(_) => Nanos(array.as_primitive::<DurationNanosecondType>().value(row)).to_string(),
        DataType::Dictionary(..) => {
            let array = array.as_dictionary::<Int32Type>();
            cell_text(array.values(), usize::try_from(array.keys().value(row)).unwrap_or_default())
        }
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            (0..items.len()).map(|item| cell_text(&items, item)).collect::<Vec<_>>().join(", ")
        }
        DataType::Struct(_) => {
            let columns = array.as_struct().columns().iter().map(|column| cell_text(column, row));
            columns.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
        }
        _ => integer(array, row).map(|number| number.to_string()).unwrap_or_default(),
    }
}

/// Maximum number of rows shown, unless the caller asks for more.
const ROWS: usize = 20;
/// Maximum number of columns shown, unless the caller selects them.
const COLUMNS: usize = 12;
/// Maximum number of characters per cell.
const CELL: usize = 60;

/// Formats the first rows and columns of a table as HTML.
fn html_table(batch: &RecordBatch, rows: usize, columns: usize) -> String {
    let (rows, columns) = (batch.num_rows().min(rows), batch.num_columns().min(columns));
    let schema = batch.schema();
    let fields = &schema.fields()[..columns];
    let names: String = fields.iter().map(|field| cell("th", field.data_type(), field.name())).collect();
    let mut html = format!("<table><thead><tr>{names}</tr></thead><tbody>");
    for row in 0..rows {
        let cells: String = batch.columns()[..columns]
            .iter()
            .map(|column| cell("td", column.data_type(), &cell_text(column, row)))
            .collect();
        html += &format!("<tr>{cells}</tr>");
    }
    html += "</tbody></table>";
    let (all, wide) = (batch.num_rows(), batch.num_columns());
    if (rows, columns) != (all, wide) {
        html += &format!("<p>{rows} of {all} rows, {columns} of {wide} columns</p>");
    }
    html
}

fn cell(tag: &str, data_type: &DataType, value: &str) -> String {
    let value = clean(value);
    let mut short: String = value.chars().take(CELL).collect();
    if short.len() < value.len() {
        short.push('…');
    }
    let figure = data_type.is_numeric() || matches!(data_type, DataType::Duration(_));
    let align = if figure { "right" } else { "left" };
    format!(r#"<{tag} style="text-align:{align}">{}</{tag}>"#, escaped(&short))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A JSON document as written by the command line, with its tables.
#[pyclass(name = "Document", frozen, subclass, module = "smbscope")]
pub(crate) struct PyDocument {
    text: String,
    /// Parsed on first use, because it takes several times as much memory as the text.
    value: OnceLock<Value>,
}

impl PyDocument {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns a table. Releases the GIL, because it may be large.
    pub(crate) fn table_of(&self, py: Python<'_>, name: &str) -> PyResult<PyTable> {
        py.detach(|| arrow::table(self.value(), name)).map(PyTable).map_err(|error| of_table(&error))
    }

    /// Wraps a document created by the libraries.
    pub(crate) fn own(text: String) -> PyDocument {
        PyDocument { text, value: OnceLock::new() }
    }

    fn value(&self) -> &Value {
        self.value.get_or_init(|| serde_json::from_str(&self.text).expect("it was read, or made by the libraries"))
    }

    /// Returns the HTML page, with the document's title or name.
    fn page(&self) -> String {
        let title = self.value().get("title").or_else(|| self.value().get("name")).and_then(Value::as_str);
        let mut page = Vec::new();
        html::write(self.value(), title.unwrap_or("smbscope"), &mut page).expect("memory takes all");
        String::from_utf8(page).expect("a page is UTF-8")
    }
}

#[pymethods]
impl PyDocument {
    #[new]
    fn new(json: String) -> PyResult<PyDocument> {
        let value =
            serde_json::from_str(&json).map_err(|error| ArgumentError::new_err(format!("not JSON: {error}")))?;
        arrow::tables(&value).map_err(|error| of_table(&error))?;
        Ok(PyDocument { text: json, value: value.into() })
    }

    /// Returns the JSON text.
    fn to_json(&self) -> &str {
        &self.text
    }

    /// Returns the JSON document as a dict. Times are integers in nanoseconds.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (&self.text,))
    }

    /// Returns a self-contained HTML page with charts.
    fn to_html(&self, py: Python<'_>) -> String {
        py.detach(|| self.page())
    }

    /// Names of the tables.
    #[getter]
    fn tables(&self, py: Python<'_>) -> PyResult<Vec<&'static str>> {
        py.detach(|| arrow::tables(self.value())).map_err(|error| of_table(&error))
    }

    /// Returns a list of the document as a table, or an object as a table with one row. `a.b` is the list `b` within
    /// `a`.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<PyTable> {
        self.table_of(py, name)
    }

    /// Writes the document in the format of the file's extension: .json or .html. The file is written completely or not
    /// at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let text = match ending(&path) {
            "json" => self.text.clone(),
            "html" | "htm" => py.detach(|| self.page()),
            other => {
                return Err(ArgumentError::new_err(format!("{}: {other:?} is not .json or .html", path.display())));
            }
        };
        write(py, &path, &text)
    }

    /// Returns the answer and the most important tables as HTML for a notebook.
    fn _repr_html_<'py>(this: &Bound<'py, PyDocument>) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("smbscope._notebook")?.call_method1("summary", (this,))
    }

    fn __repr__(&self) -> String {
        let schema = self.value().get("schema").and_then(Value::as_str).unwrap_or_default();
        format!("<smbscope document: {schema}>")
    }
}

/// Returns the file extension.
pub(crate) fn ending(path: &Path) -> &str {
    path.extension().and_then(|ending| ending.to_str()).unwrap_or_default()
}

/// Writes a file completely or not at all.
pub(crate) fn write(py: Python<'_>, path: &Path, text: &str) -> PyResult<()> {
    py.detach(|| write_file(path, text.as_bytes())).map_err(|error| of_writing(path, &error))
}
