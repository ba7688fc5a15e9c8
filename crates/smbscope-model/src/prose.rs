//! Formatting for sentences: counts, percentages, time spans, and untrusted names made safe for a terminal.

use crate::{Nanos, Timestamp};

/// Formats a count with its noun: `1 file` or `1,204 files`.
pub fn counted(n: u64, one: &str, many: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{} {many}", thousands(n)) }
}

/// Formats `1234567` as `1,234,567`.
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut result = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            result.push(',');
        }
        result.push(digit);
    }
    result
}

/// Formats with about two digits: `71%`, `3.4%`. Only all is `100%`, and only none `0%`.
pub fn prose_percent(part: u64, whole: u64) -> String {
    let share = share(part, whole);
    let digits = |decimals: usize| format!("{share:.decimals$}");
    match share {
        _ if part > 0 && share < 0.05 => "<0.1%".to_owned(),
        _ if part < whole && share >= 99.95 => ">99.9%".to_owned(),
        _ if (9.95..95.0).contains(&share) => digits(0) + "%",
        _ => digits(1).trim_end_matches(".0").to_owned() + "%",
    }
}

/// Returns `part` in percent of `whole`, or 0 if `whole` is 0.
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

/// Formats a time span: `4.21 s`, `10 min 52 s`, `3 h 05 min`, `12 days 7 h`.
pub fn span(time: Nanos) -> String {
    let total = (time.0.unsigned_abs() + 500_000_000) / 1_000_000_000;
    match total {
        0..120 => time.to_string(),
        120..7_200 => format!("{} min {:02} s", total / 60, total % 60),
        7_200..172_800 => format!("{} h {:02} min", total / 3_600, total / 60 % 60),
        _ => format!("{} days {} h", total / 86_400, total / 3_600 % 24),
    }
}

/// Formats a range without repeating the unit: `2.12 to 2.73 s`.
pub fn from_to(low: &str, high: &str) -> String {
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => format!("{number} to {high}"),
        _ => format!("{low} to {high}"),
    }
}

pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + chars.as_str())
}

/// Formats the time of day in UTC with up to 9 decimals: `09:30:00.25`.
pub fn time_of_day(time: Timestamp, decimals: usize) -> String {
    const DAY_NS: i64 = 86_400_000_000_000;
    let nanos = time.0.rem_euclid(DAY_NS);
    let (total, fraction) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    let clock = format!("{:02}:{:02}:{:02}", total / 3_600, total / 60 % 60, total % 60);
    match decimals.min(9) {
        0 => clock,
        decimals => format!("{clock}.{:0decimals$}", fraction / 10i64.pow(9 - decimals as u32)),
    }
}

/// Replaces control and invisible characters of untrusted text by U+FFFD: they could steer a terminal or reverse text.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || is_invisible(c) { '\u{fffd}' } else { c }).collect()
}

/// Invisible: category Cf, `Default_Ignorable_Code_Point`, line and paragraph separators, as of Unicode 17.
#[inline]
pub fn is_invisible(c: char) -> bool {
    // Fast path: most text is below the first range.
    c >= INVISIBLE[0].0 && {
        let place = INVISIBLE.partition_point(|(_, last)| *last < c);
        INVISIBLE.get(place).is_some_and(|(first, _)| *first <= c)
    }
}

const INVISIBLE: [(char, char); 25] = [
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{600}', '\u{605}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{6dd}', '\u{6dd}'),
    ('\u{70f}', '\u{70f}'),
    ('\u{890}', '\u{891}'),
    ('\u{8e2}', '\u{8e2}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{110bd}', '\u{110bd}'),
    ('\u{110cd}', '\u{110cd}'),
    ('\u{13430}', '\u{1343f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
];

/// Truncates to `width` characters, ending in `…` if text was cut off.
pub fn shorten(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    kept + "…"
}

/// Protects a phrase from line wrapping, such as a number with its unit.
pub fn unbroken(text: impl ToString) -> String {
    text.to_string().replace(' ', NO_BREAK)
}

pub const NO_BREAK: &str = "\u{a0}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn names_cannot_steer_a_terminal() {
        assert_eq!(clean("a\u{1b}[31mb\nc\u{202e}d"), "a\u{fffd}[31mb\u{fffd}c\u{fffd}d");
    }

    #[test]
    fn invisible_characters_are_replaced() {
        // Soft hyphen, fillers, spaces, joiners, direction marks, separators, variation selectors, tags.
        let unseen = "\u{ad}\u{115f}\u{200b}\u{200d}\u{200e}\u{202e}\u{2028}\u{2029}\u{2060}\u{2062}\u{2066}\u{fe0f}\u{feff}\
                      \u{1bca0}\u{e0001}\u{e0041}\u{e01ef}";
        for c in unseen.chars() {
            assert_eq!(clean(&format!("a{c}b")), "a\u{fffd}b", "{:04x}", u32::from(c));
        }
        let seen = "Prüfung – 試験 «ñ» \u{a0}\u{2010}\u{2027}\u{202f}\u{2030}\u{1f600}\u{10ffff}";
        assert_eq!(clean(seen), seen);
        assert!(INVISIBLE.windows(2).all(|pair| pair[0].1 < pair[1].0));
    }

    #[test]
    fn spans_read_well() {
        // 1,062,000 s = 12 days and 25,200 s; 25,200 s = 7 h.
        let spans = [4_210_000_000, 651_795_400_000, 11_100_000_000_000, 1_062_000_000_000_000];
        let spans = spans.map(|n| span(Nanos(n)));
        assert_eq!(spans, ["4.21 s", "10 min 52 s", "3 h 05 min", "12 days 7 h"]);
    }

    #[test]
    fn shares_in_sentences_have_the_digits_that_matter() {
        let shares = [(0, 9), (1, 9_999), (31, 1_000), (714, 1_000), (989, 1_000), (9_999, 10_000), (7, 7)];
        let shown = shares.map(|(part, of)| prose_percent(part, of));
        assert_eq!(shown, ["0%", "<0.1%", "3.1%", "71%", "98.9%", ">99.9%", "100%"]);
    }
}
