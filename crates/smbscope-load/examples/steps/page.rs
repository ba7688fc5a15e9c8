//! Generates the tables of steps and of their keys in docs/workloads.md.

use smbscope_load::workload::{STEPS, StepField, StepKind};
use smbscope_testkit::generated::replaced;

/// Returns the page with up-to-date tables.
pub(crate) fn updated(page: &str) -> String {
    let page = with_table(page, "steps", &steps());
    with_table(&page, "keys", &keys())
}

fn with_table(page: &str, name: &str, table: &str) -> String {
    let from = format!("\n[//]: # ({name}, written by make references)\n\n");
    replaced(page, &from, &format!("\n[//]: # (end of {name})\n"), table)
}

fn listed<'a>(names: impl IntoIterator<Item = &'a str>, quote: &str) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{quote}{name}{quote}`")).collect();
    names.join(", ")
}

fn steps() -> String {
    let row = |step: &StepKind| {
        let keys = listed(step.fields.iter().map(|field| field.key), "");
        format!("| `{}` | {keys} | {} |\n", step.name, step.about)
    };
    let rows: String = STEPS.iter().map(row).collect();
    format!("| `do` | keys | effect |\n|---|---|---|\n{rows}")
}

fn keys() -> String {
    let mut fields: Vec<&StepField> = Vec::new();
    for field in STEPS.iter().flat_map(|step| step.fields) {
        if !fields.contains(&field) {
            let behind = fields.iter().rposition(|other| other.key == field.key).map_or(fields.len(), |at| at + 1);
            fields.insert(behind, field);
        }
    }
    let rows: String = fields.iter().map(|field| row(field, &fields)).collect();
    format!("| key | values | default |\n|---|---|---|\n{rows}")
}

fn row(field: &StepField, fields: &[&StepField]) -> String {
    // A key that means different things names its steps.
    let of = match fields.iter().filter(|other| other.key == field.key).count() {
        1 => String::new(),
        _ => {
            let steps = STEPS.iter().filter(|step| step.fields.contains(field));
            format!(" of {}", listed(steps.map(|step| step.name), ""))
        }
    };
    let values = [listed(field.names.iter().copied(), "\""), field.about.to_owned()];
    let values: Vec<String> = values.into_iter().filter(|part| !part.is_empty()).collect();
    let default = match field.names {
        [first, ..] if field.default.is_empty() => format!("`\"{first}\"`"),
        _ => field.default.to_owned(),
    };
    format!("| `{}`{of} | {} | {default} |\n", field.key, values.join("; "))
}
