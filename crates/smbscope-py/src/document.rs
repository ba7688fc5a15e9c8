//! A JSON document of smbscope with its tables and its page.

use crate::table::PyTable;
use crate::work::{ArgumentError, of_table, of_writing};
use pyo3::prelude::*;
use serde_json::Value;
use smbscope_report::{arrow, html};
use smbscope_run::files::write_file;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

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
