//! Names of the response time decades. They state both bounds, since "below 1 ms" would include all faster bands.

use smbscope_stats::Distribution;

/// Formats a band by its index: `100 µs – 1 ms`, `< 1 µs`, `≥ 100 s`.
pub(crate) fn name(index: usize) -> String {
    let edge = |index: usize| Distribution::EDGES.get(index).map(|edge| round(&edge.to_string()));
    match (index.checked_sub(1).and_then(edge), edge(index)) {
        (Some(from), Some(to)) => match (from.split_once(' '), to.split_once(' ')) {
            (Some((number, unit)), Some((_, same))) if unit == same => format!("{number} – {to}"),
            _ => format!("{from} – {to}"),
        },
        (None, Some(to)) => format!("< {to}"),
        (from, None) => format!("≥ {}", from.unwrap_or_default()),
    }
}

pub(crate) fn from(index: usize) -> String {
    let edge = index.checked_sub(1).and_then(|index| Distribution::EDGES.get(index));
    edge.map_or_else(|| "0".to_owned(), |edge| round(&edge.to_string()).replace(' ', ""))
}

pub(crate) fn to(index: usize) -> String {
    let edge = Distribution::EDGES.get(index);
    edge.map_or_else(|| "–∞".to_owned(), |edge| format!("–{}", round(&edge.to_string()).replace(' ', "")))
}

/// Shortens `1.00 ms` to `1 ms`.
fn round(time: &str) -> String {
    let (number, unit) = time.split_once(' ').unwrap_or((time, ""));
    let number = if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    format!("{number} {unit}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_are_named_by_both_edges() {
        let names: Vec<String> = (0..10).map(name).collect();
        let expected = [
            "< 1 µs",
            "1 – 10 µs",
            "10 – 100 µs",
            "100 µs – 1 ms",
            "1 – 10 ms",
            "10 – 100 ms",
            "100 ms – 1 s",
            "1 – 10 s",
            "10 – 100 s",
            "≥ 100 s",
        ];
        assert_eq!(names, expected);
        assert_eq!([from(3), to(3), from(0), to(9)], ["100µs", "–1ms", "0", "–∞"]);
    }
}
