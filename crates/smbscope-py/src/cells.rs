//! Converts table values to Python objects and to text.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    DurationNanosecondType, Float64Type, Int32Type, Int64Type, TimestampNanosecondType, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use smbscope_model::Nanos;

/// Returns the rows of a table as dicts.
pub(crate) fn rows<'py>(py: Python<'py>, batch: &RecordBatch) -> PyResult<Bound<'py, PyList>> {
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
pub(crate) fn text(array: &dyn Array, row: usize) -> String {
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
            text(array.values(), usize::try_from(array.keys().value(row)).unwrap_or_default())
        }
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            (0..items.len()).map(|item| text(&items, item)).collect::<Vec<_>>().join(", ")
        }
        DataType::Struct(_) => {
            let columns = array.as_struct().columns().iter().map(|column| text(column, row));
            columns.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
        }
        _ => integer(array, row).map(|number| number.to_string()).unwrap_or_default(),
    }
}
