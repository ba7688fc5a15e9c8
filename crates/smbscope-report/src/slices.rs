//! What a slice is called, for people: its key as one name.

use crate::format::clean;
use smbscope_stats::{Field, Part, Slice, Slices};

/// What the capture does not tell.
const UNKNOWN: &str = "(unknown)";

/// The name of a slice: `10.0.0.5  office\accounts\ledger.mdb`.
pub(crate) fn name(slices: &Slices, slice: &Slice) -> String {
    let mut name = String::new();
    let mut before = None;
    let parts: Vec<(&Field, &Part)> = slices.fields.iter().zip(&slice.key).collect();
    for (i, (field, part)) in parts.iter().enumerate() {
        // Of a file on an unknown share that is unknown too, one unknown says enough.
        let below = parts.get(i + 1).filter(|(below, _)| matches!(below, Field::File | Field::Directory));
        if let (Field::Share, Part::Unknown, Some((_, Part::Unknown))) = (field, part, below) {
            continue;
        }
        let separator = match (before, field) {
            (None, _) => "",
            // A share and what lies on it are one name.
            (Some(Field::Share), Field::File | Field::Directory) => "\\",
            (Some(Field::FlowId), Field::Connection) => " ",
            _ => "  ",
        };
        name += separator;
        name += &clean(&value(**field, part));
        before = Some(**field);
    }
    name
}

/// The heading of the names: `client, file`.
pub(crate) fn heading(slices: &Slices) -> String {
    let names: Vec<&str> = slices.by.iter().map(|dimension| dimension.name()).collect();
    format!("By {}", names.join(", "))
}

fn value(field: Field, part: &Part) -> String {
    match (field, part) {
        (Field::Extension, Part::Text(text)) if text.is_empty() => "(none)".to_owned(),
        (Field::File, Part::Text(text)) if text.is_empty() => "(root)".to_owned(),
        (Field::FlowId, Part::Flow(flow)) => format!("#{}", flow.0),
        (_, Part::Size(least)) => size(*least),
        (_, Part::Unknown) => UNKNOWN.to_owned(),
        (_, part) => text(part),
    }
}

/// A part as programs want it: addresses and names as they are; empty where it is unknown.
pub(crate) fn text(part: &Part) -> String {
    match part {
        Part::Address(address) => address.to_string(),
        Part::Socket(address) => address.to_string(),
        Part::Text(text) => text.to_string(),
        Part::Command(command) => command.to_string(),
        Part::Group(group) => group.to_string(),
        Part::Dialect(dialect) => dialect.to_string(),
        Part::Flow(flow) => flow.0.to_string(),
        Part::Ends(client, server) => format!("{client} > {server}"),
        Part::Status(status) => status.to_string(),
        Part::Size(least) => least.to_string(),
        Part::Unknown => String::new(),
    }
}

/// `4 KiB to 8 KiB`: from one power of two to the next.
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

/// What several slices did together; a percentile of them all does not follow from theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sum {
    pub(crate) slices: u64,
    pub(crate) count: u64,
    pub(crate) timed: u64,
    pub(crate) errors: u64,
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
    pub(crate) response_time_ns: i128,
    pub(crate) slowest: Option<smbscope_model::Nanos>,
}

impl Sum {
    pub(crate) fn of<'s>(slices: impl IntoIterator<Item = &'s Slice>) -> Sum {
        slices.into_iter().fold(Sum::default(), |sum, Slice { figures, .. }| Sum {
            slices: sum.slices + 1,
            count: sum.count + figures.count,
            timed: sum.timed + figures.timed,
            errors: sum.errors + figures.errors,
            bytes_read: sum.bytes_read + figures.bytes_read,
            bytes_written: sum.bytes_written + figures.bytes_written,
            response_time_ns: sum.response_time_ns + figures.response_time.sum_ns,
            slowest: sum.slowest.max(figures.response_time.max),
        })
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
