//! Generates the lists in docs/exchange-table.md from the columns of the exchange table and of slices.

use arrow_schema::DataType;
use smbscope_report::csv::slice_columns;
use smbscope_report::table::{COLUMNS, ExchangeBatches};
use smbscope_testkit::generated::replaced;
use std::fmt::Write;

/// Lines before and after the list. Markdown shows neither.
const FROM: &str = "\n[//]: # (columns, written by make references)\n\n";
const TO: &str = "\n[//]: # (end of columns)\n";
const FROM_SLICES: &str = "\n[//]: # (columns of slices, written by make references)\n\n";
const TO_SLICES: &str = "\n[//]: # (end of columns of slices)\n";

/// Returns the page with up-to-date lists.
pub(crate) fn updated(page: &str) -> String {
    replaced(&replaced(page, FROM, TO, &list()), FROM_SLICES, TO_SLICES, &slices())
}

fn list() -> String {
    let schema = ExchangeBatches::default().schema();
    let mut rows: Vec<(Vec<&str>, &DataType, &str)> = Vec::new();
    for (index, column) in COLUMNS.iter().enumerate() {
        let data_type = schema.field(index).data_type();
        let shared = rows.iter_mut().rev().find(|(_, known, _)| column.about.is_empty() && *known == data_type);
        match shared {
            Some((names, ..)) => names.push(column.name),
            None => rows.push((vec![column.name], data_type, column.about)),
        }
    }
    let mut text = String::from("| columns | Parquet type | |\n|---|---|---|\n");
    for (names, data_type, about) in rows {
        let data_type = match data_type {
            DataType::Utf8 | DataType::Dictionary(..) => "string".to_owned(),
            other => other.to_string(),
        };
        let _ = writeln!(text, "| `{}` | {data_type} | {about} |", names.join("`, `"));
    }
    text
}

/// Lists the columns of slices. Statistics of both times share their descriptions.
fn slices() -> String {
    let mut rows: Vec<(Vec<String>, &str, &str)> = Vec::new();
    for (key, unit, about) in slice_columns() {
        match rows.iter_mut().find(|(_, known, description)| (*known, *description) == (unit, about)) {
            Some((keys, ..)) => keys.push(key),
            None => rows.push((vec![key], unit, about)),
        }
    }
    let mut text = String::from("| columns | unit | |\n|---|---|---|\n");
    for (keys, unit, about) in rows {
        let _ = writeln!(text, "| `{}` | {unit} | {about} |", keys.join("`, `"));
    }
    text
}
