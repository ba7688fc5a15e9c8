//! Shows tables and pages in notebooks. Text from captures is always escaped.

use crate::cells::text;
use arrow_array::RecordBatch;
use smbscope_report::clean;

/// Maximum number of rows shown.
const ROWS: usize = 20;
/// Maximum number of columns shown.
const COLUMNS: usize = 12;
/// Maximum number of characters per cell.
const CELL: usize = 60;

/// Formats the first rows of a table as HTML.
pub(crate) fn table(batch: &RecordBatch) -> String {
    let (rows, columns) = (batch.num_rows().min(ROWS), batch.num_columns().min(COLUMNS));
    let schema = batch.schema();
    let names: String = schema.fields()[..columns].iter().map(|field| cell("th", field.name())).collect();
    let mut html = format!("<table><thead><tr>{names}</tr></thead><tbody>");
    for row in 0..rows {
        let cells: String = batch.columns()[..columns].iter().map(|column| cell("td", &text(column, row))).collect();
        html += &format!("<tr>{cells}</tr>");
    }
    let (all, wide) = (batch.num_rows(), batch.num_columns());
    html + &format!("</tbody></table><p>{rows} of {all} rows, {columns} of {wide} columns</p>")
}

/// Embeds a page in a frame, which isolates its scripts and styles.
pub(crate) fn frame(page: &str) -> String {
    let page = escaped(page);
    format!(r#"<iframe sandbox="allow-scripts" style="width:100%;height:40em;border:0" srcdoc="{page}"></iframe>"#)
}

fn cell(tag: &str, value: &str) -> String {
    let value = clean(value);
    let mut short: String = value.chars().take(CELL).collect();
    if short.len() < value.len() {
        short.push('…');
    }
    format!("<{tag}>{}</{tag}>", escaped(&short))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
