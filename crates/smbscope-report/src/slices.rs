//! Names of slices for people and for programs.

use crate::format::clean;
use crate::json::slices::{SliceEntryKey, SliceEntryValue};
use smbscope_stats::{Field, SliceFieldValue};

const UNKNOWN: &str = "(unknown)";

/// Formats a slice's key as one name: `10.0.0.5 office\accounts\ledger.mdb`.
pub(crate) fn name(SliceEntryKey(parts): &SliceEntryKey) -> String {
    let mut name = String::new();
    let mut before = None;
    for (i, (field, value)) in parts.iter().enumerate() {
        // For an unknown file on an unknown share, one `(unknown)` is enough.
        let below = parts.get(i + 1).filter(|(below, _)| matches!(below, Field::File | Field::Directory));
        if let (Field::Share, SliceEntryValue::Unknown, Some((_, SliceEntryValue::Unknown))) = (field, value, below) {
            continue;
        }
        let separator = match (before, field) {
            (None, _) => "",
            // Share and path form one name.
            (Some(Field::Share), Field::File | Field::Directory) => "\\",
            (Some(Field::FlowId), Field::Connection) => " ",
            _ => "  ",
        };
        name += separator;
        name += &clean(&shown(*field, value));
        before = Some(*field);
    }
    name
}

pub(crate) fn heading(by: &[String]) -> String {
    format!("By {}", by.join(", "))
}

fn shown(field: Field, value: &SliceEntryValue) -> String {
    match (field, value) {
        (Field::Extension, SliceEntryValue::Text(text)) if text.is_empty() => "(none)".to_owned(),
        (Field::File, SliceEntryValue::Text(text)) if text.is_empty() => "(root)".to_owned(),
        (Field::Size, SliceEntryValue::Number(least)) => size(*least),
        (_, SliceEntryValue::Number(number)) => format!("#{number}"),
        (_, SliceEntryValue::Text(text)) => text.clone(),
        (_, SliceEntryValue::Unknown) => UNKNOWN.to_owned(),
    }
}

/// Formats a value for programs. Unknown is empty.
pub(crate) fn text(part: &SliceFieldValue) -> String {
    match part {
        SliceFieldValue::Address(address) => address.to_string(),
        SliceFieldValue::Socket(address) => address.to_string(),
        SliceFieldValue::Text(text) => text.to_string(),
        SliceFieldValue::Command(command) => command.to_string(),
        SliceFieldValue::Group(group) => group.to_string(),
        SliceFieldValue::Dialect(dialect) => dialect.to_string(),
        SliceFieldValue::Flow(flow) => flow.0.to_string(),
        SliceFieldValue::Ends(client, server) => format!("{client} > {server}"),
        SliceFieldValue::Status(status) => status.to_string(),
        SliceFieldValue::Size(least) => least.to_string(),
        SliceFieldValue::Unknown => String::new(),
    }
}

/// Formats a size class, from one power of two to the next: `4 KiB to 8 KiB`.
fn size(least: u64) -> String {
    let show = |bytes: u64| match bytes.checked_ilog2().map_or(0, |exponent| exponent / 10) {
        0 => format!("{bytes} B"),
        step => format!("{} {}iB", bytes >> (10 * step), ["", "K", "M", "G", "T", "P", "E"][step as usize]),
    };
    match least.checked_mul(2) {
        _ if least == 0 => show(0),
        Some(next) => format!("{} to {}", show(least), show(next)),
        None => format!("from {}", show(least)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_named_by_their_bounds() {
        let names = [0, 1, 512, 4_096, 1 << 20, 1 << 63].map(size);
        let expected = ["0 B", "1 B to 2 B", "512 B to 1 KiB", "4 KiB to 8 KiB", "1 MiB to 2 MiB", "from 8 EiB"];
        assert_eq!(names, expected);
    }
}
