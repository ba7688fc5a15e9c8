//! Conversion of JSON values to Arrow arrays of a given type.

use super::shape::ENTRY;
use arrow_array::{
    ArrayRef, BooleanArray, DurationNanosecondArray, Float64Array, Int64Array, ListArray, StringArray, StructArray,
    TimestampNanosecondArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, FieldRef, Fields};
use serde_json::Value;
use std::sync::Arc;

pub(super) fn column(data_type: &DataType, values: &[Option<&Value>]) -> Result<ArrayRef, ArrowError> {
    let integers = || values.iter().map(|value| value.and_then(integer));
    Ok(match data_type {
        DataType::Int64 => Arc::new(integers().collect::<Int64Array>()),
        DataType::Duration(_) => Arc::new(integers().collect::<DurationNanosecondArray>()),
        DataType::Timestamp(_, zone) => {
            Arc::new(integers().collect::<TimestampNanosecondArray>().with_timezone_opt(zone.clone()))
        }
        DataType::Float64 => {
            Arc::new(values.iter().map(|value| value.and_then(Value::as_f64)).collect::<Float64Array>())
        }
        DataType::Boolean => {
            Arc::new(values.iter().map(|value| value.and_then(Value::as_bool)).collect::<BooleanArray>())
        }
        DataType::List(item) => list(item, values)?,
        DataType::Struct(fields) => structure(fields, values)?,
        _ => Arc::new(values.iter().map(|value| value.and_then(text)).collect::<StringArray>()),
    })
}

/// JSON counts may have 64 bits, but Arrow's integer only has 63: larger values saturate.
fn integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_u64().map(|_| i64::MAX))
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn list(item: &FieldRef, values: &[Option<&Value>]) -> Result<ArrayRef, ArrowError> {
    let lengths = values.iter().map(|value| match value {
        Some(Value::Array(items)) => items.len(),
        Some(Value::Object(entries)) => entries.len(),
        _ => 0,
    });
    let offsets = OffsetBuffer::from_lengths(lengths);
    let items = match item.data_type() {
        DataType::Struct(fields) if is_of_entries(fields) => entries(fields, values)?,
        of => {
            let lists = values.iter().filter_map(|value| value.and_then(Value::as_array));
            let items: Vec<Option<&Value>> =
                lists.flatten().map(|item| Some(item).filter(|item| !item.is_null())).collect();
            column(of, &items)?
        }
    };
    Ok(Arc::new(ListArray::try_new(Arc::clone(item), offsets, items, present(values))?))
}

fn is_of_entries(fields: &Fields) -> bool {
    fields.iter().map(|field| field.name().as_str()).eq(ENTRY)
}

/// Converts objects with arbitrary keys to lists of keys and values.
fn entries(fields: &Fields, values: &[Option<&Value>]) -> Result<ArrayRef, ArrowError> {
    let all = || values.iter().filter_map(|value| value.and_then(Value::as_object)).flatten();
    let keys: StringArray = all().map(|(key, _)| Some(key.as_str())).collect();
    let values: Vec<Option<&Value>> = all().map(|(_, value)| Some(value)).collect();
    let columns: Vec<ArrayRef> = vec![Arc::new(keys), column(fields[1].data_type(), &values)?];
    Ok(Arc::new(StructArray::try_new(fields.clone(), columns, None)?))
}

fn structure(fields: &Fields, values: &[Option<&Value>]) -> Result<ArrayRef, ArrowError> {
    let columns: Result<Vec<ArrayRef>, ArrowError> = fields
        .iter()
        .map(|field| {
            let below: Vec<Option<&Value>> = values
                .iter()
                .map(|value| value.and_then(|value| value.get(field.name())).filter(|value| !value.is_null()))
                .collect();
            column(field.data_type(), &below)
        })
        .collect();
    Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), columns?, present(values), values.len())?))
}

fn present(values: &[Option<&Value>]) -> Option<NullBuffer> {
    Some(values.iter().map(|value| value.is_some_and(|value| !value.is_null())).collect())
}
