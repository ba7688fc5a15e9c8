//! Generates the list of columns in docs/exchange-table.md from the columns of the exchange table.

use arrow_schema::DataType;
use smbscope_report::table::{COLUMNS, ExchangeBatches};
use smbscope_testkit::generated::replaced;
use std::fmt::Write;

/// Lines before and after the list. Markdown shows neither.
const FROM: &str = "\n[//]: # (columns, written by make references)\n\n";
const TO: &str = "\n[//]: # (end of columns)\n";

/// Returns the page with an up-to-date list.
pub(crate) fn updated(page: &str) -> String {
    replaced(page, FROM, TO, &list())
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
