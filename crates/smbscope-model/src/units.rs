//! Parser and printer for durations, sizes, rates and percentages, used by every option, file and criterion.
//!
//! A quantity is a decimal number and a unit, optionally separated by a blank: `5ms`, `1.5 GiB`. Times and sizes are
//! exact: a value that is not a whole number of nanoseconds or bytes is rejected.

use crate::Nanos;
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    pub expected: String,
    /// Likely intended value, or the list of units.
    pub hint: Option<String>,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.expected)?;
        self.hint.iter().try_for_each(|hint| write!(f, "; {hint}"))
    }
}

impl std::error::Error for Unreadable {}

impl From<Unreadable> for String {
    fn from(error: Unreadable) -> String {
        error.to_string()
    }
}

fn expected(what: &str) -> Unreadable {
    Unreadable { expected: format!("expected {what}"), hint: None }
}

const DURATIONS: [(&str, i128); 9] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Parses a duration, which may be negative: `50ms`, `1.5s`, `2min`.
pub fn duration(text: &str) -> Result<Nanos, Unreadable> {
    let expected = expected("a duration, such as 50ms, 1.5s, 200us or 2min");
    let (digits, unit) = parts(text);
    let Some((_, scale)) = DURATIONS.iter().find(|(name, _)| *name == unit) else {
        let hint = match unit {
            _ if digits.is_empty() => None,
            "" => Some(format!("a time needs its unit: did you mean {digits}ms?")),
            "m" => Some(format!("minutes are {digits}min, milliseconds {digits}ms")),
            _ => Some("the units are ns, us, ms, s, min, h and d".to_owned()),
        };
        return Err(Unreadable { hint, ..expected });
    };
    scaled(digits, *scale).and_then(|nanos| i64::try_from(nanos).ok()).map(Nanos).ok_or(expected)
}

/// Parses a duration that is not negative.
pub fn time(text: &str) -> Result<std::time::Duration, Unreadable> {
    let nanos = duration(text)?;
    let nanos = u64::try_from(nanos.0).map_err(|_| expected("a time that is not negative"))?;
    Ok(std::time::Duration::from_nanos(nanos))
}

/// Single letters are powers of 1024, as in disk tools.
const SIZES: [(&str, i128); 14] = [
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
    ("t", 1 << 40),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
];

/// Parses a number of bytes: `4096`, `64KiB`, `4k` (of 1024), `1MB` (of 1000).
pub fn size(text: &str) -> Result<u64, Unreadable> {
    let expected = || expected("a size, such as 4096, 64KiB, 4k (of 1024) or 1MB (of 1000)");
    let (digits, unit) = parts(text);
    let scale = SIZES.iter().find(|(name, _)| unit.eq_ignore_ascii_case(name)).map(|(_, scale)| *scale);
    scale.and_then(|scale| scaled(digits, scale)).and_then(|bytes| u64::try_from(bytes).ok()).ok_or_else(expected)
}

pub fn byte_rate(text: &str) -> Result<u64, Unreadable> {
    let amount = text.trim().strip_suffix("/s").ok_or_else(|| expected("bytes a second, such as 10MB/s"))?;
    size(amount).map_err(|_| expected("bytes a second, such as 10MB/s"))
}

/// Parses bits per second in the notation of tc(8): `100mbit`, `1gbit`, `512kbit`.
pub fn bit_rate(text: &str) -> Result<u64, Unreadable> {
    let (digits, unit) = parts(text);
    let scale = BIT_RATES.iter().find(|(_, name)| unit.eq_ignore_ascii_case(name)).map(|(scale, _)| i128::from(*scale));
    let bits = scale.and_then(|scale| scaled(digits, scale)).and_then(|bits| u64::try_from(bits).ok());
    bits.ok_or_else(|| expected("bits a second, such as 100mbit or 1gbit"))
}

const BIT_RATES: [(u64, &str); 4] = [(1_000_000_000, "gbit"), (1_000_000, "mbit"), (1_000, "kbit"), (1, "bit")];

/// Parses events per second: `500/s`, `500`, `30/min`.
pub fn rate(text: &str) -> Result<f64, Unreadable> {
    let (number, unit) = text.split_once('/').map_or((text, "s"), |(number, unit)| (number, unit.trim()));
    let scale = DURATIONS.iter().find(|(name, _)| *name == unit).map(|(_, nanos)| *nanos as f64 / 1e9);
    let number = decimal(number).filter(|number| *number >= 0.0);
    number.zip(scale).map(|(number, scale)| number / scale).ok_or_else(|| expected("a rate, such as 500/s or 30/min"))
}

/// Parses a percentage: `80%` is 0.8. May exceed 100% but not be negative.
pub fn percentage(text: &str) -> Result<f64, Unreadable> {
    let number = text.trim().strip_suffix('%').and_then(decimal).filter(|percent| *percent >= 0.0);
    number.map(|percent| percent / 100.0).ok_or_else(|| expected("a percentage, such as 80% or 0.5%"))
}

/// Parses a factor: `0.5x`. May not be negative.
pub fn factor(text: &str) -> Result<f64, Unreadable> {
    let number = text.trim().strip_suffix('x').and_then(decimal).filter(|factor| *factor >= 0.0);
    number.ok_or_else(|| expected("a factor, such as 0.5x or 3x"))
}

/// Formats a duration exactly, so that [`duration`] returns the same value. The same holds for the following functions.
pub fn exact_duration(duration: Nanos) -> String {
    // The Greek letters are accepted as input only.
    let units = DURATIONS.iter().rev().filter(|(name, _)| name.is_ascii());
    let nanos = i128::from(duration.0);
    match units.into_iter().find(|(_, scale)| nanos % scale == 0) {
        Some((name, scale)) if nanos != 0 => format!("{}{name}", nanos / scale),
        _ => "0s".to_owned(),
    }
}

pub fn exact_size(bytes: u64) -> String {
    whole(bytes, &[(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "")])
}

pub fn exact_bit_rate(bits: u64) -> String {
    whole(bits, &BIT_RATES)
}

pub fn exact_byte_rate(bytes: u64) -> String {
    whole(bytes, &[(1_000_000_000, "GB/s"), (1_000_000, "MB/s"), (1_000, "kB/s"), (1, "B/s")])
}

fn whole(value: u64, units: &[(u64, &str)]) -> String {
    let fits = units.iter().find(|(scale, _)| value > 0 && value.is_multiple_of(*scale));
    fits.map_or_else(|| value.to_string(), |(scale, unit)| format!("{}{unit}", value / scale))
}

/// Formats bytes with three significant digits and a decimal unit: `842 B`, `1.43 kB`.
pub fn short_bytes(count: f64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    // A value that would round to 1000 gets the next unit: 1.00.
    let (mut value, mut unit) = (count, 0);
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1_000.0;
        unit += 1;
    }
    let digits = match value {
        _ if unit == 0 => 0,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {}", units[unit])
}

fn parts(text: &str) -> (&str, &str) {
    let text = text.trim();
    let digits = |c: char| c.is_ascii_digit() || c == '.' || c == '-';
    let (digits, unit) = text.split_at(text.find(|c| !digits(c)).unwrap_or(text.len()));
    (digits, unit.trim_start())
}

/// Multiplies a decimal number by a scale. Returns `None` unless the product is a whole number.
fn scaled(digits: &str, scale: i128) -> Option<i128> {
    let (sign, digits) = digits.strip_prefix('-').map_or((1, digits), |digits| (-1, digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    // No time or size has more digits; 10³⁸ fits an i128.
    if whole.is_empty() || whole.len() > 20 || fraction.len() > 18 || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let one = 10i128.pow(fraction.len() as u32);
    let parts = format!("{whole}{fraction}").parse::<i128>().ok()?.checked_mul(scale)?;
    (parts % one == 0).then_some(sign * parts / one)
}

/// Parses a plain decimal number, without `inf`, `1e3` and `+5`, which Rust accepts.
fn decimal(text: &str) -> Option<f64> {
    let text = text.trim();
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b'-');
    text.parse().ok().filter(|_| is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn quantities_are_read_with_their_units() {
        assert_eq!(duration("1.5ms"), Ok(Nanos(1_500_000)));
        assert_eq!(duration("5 min"), Ok(Nanos(300_000_000_000)));
        assert_eq!(duration("-2µs"), Ok(Nanos(-2_000)));
        assert_eq!(time("0.25ms"), Ok(Duration::from_micros(250)));
        assert_eq!(
            [size("4096"), size("64KiB"), size("64k"), size("1.5MB")].map(Result::unwrap),
            [4_096, 65_536, 65_536, 1_500_000]
        );
        assert_eq!(byte_rate("10 MB/s"), Ok(10_000_000));
        assert_eq!([bit_rate("100mbit"), bit_rate("2.5Gbit")].map(Result::unwrap), [100_000_000, 2_500_000_000]);
        assert_eq!([rate("500/s"), rate("500"), rate("30/min")].map(Result::unwrap), [500.0, 500.0, 0.5]);
        assert_eq!(percentage("0.5%"), Ok(0.005));
    }

    #[test]
    fn malformed_quantities_are_rejected() {
        for text in ["", "5", "ms", "1.2.3s", "nanms", "0.5ns", "1e3s", "+5ms", "99999999999d"] {
            assert!(duration(text).is_err(), "{text:?}");
        }
        assert!(time("-1s").is_err());
        for text in ["", "-1", "1.5", "4kk", "0.3B", "99999999999999999999"] {
            assert!(size(text).is_err(), "{text:?}");
        }
        assert!(bit_rate("100").is_err() && byte_rate("10MB").is_err());
        for text in ["", "inf", "-1/s", "5/x", "nan", "1e3"] {
            assert!(rate(text).is_err(), "{text:?}");
        }
        assert!(percentage("80").is_err() && percentage("-1%").is_err());
    }

    #[test]
    fn errors_suggest_what_was_meant() {
        let said = |text: &str| duration(text).unwrap_err().to_string();
        assert!(said("5").ends_with("; a time needs its unit: did you mean 5ms?"), "{}", said("5"));
        assert!(said("5m").ends_with("; minutes are 5min, milliseconds 5ms"), "{}", said("5m"));
    }

    #[test]
    fn quantities_are_written_as_they_are_read() {
        for nanos in [0, 1, 1_500, 90_000_000_000, -5_000_000, 86_400_000_000_000] {
            assert_eq!(duration(&exact_duration(Nanos(nanos))), Ok(Nanos(nanos)));
        }
        for bytes in [0, 1, 1_023, 65_537, 64 << 20, 3 << 40] {
            assert_eq!(size(&exact_size(bytes)), Ok(bytes));
        }
        assert_eq!([100_000_000, 1_500_000].map(exact_bit_rate), ["100mbit", "1500kbit"]);
        assert_eq!(
            [842.0, 1_430.0, 14_300_000.0, 999_600.0].map(short_bytes),
            ["842 B", "1.43 kB", "14.3 MB", "1.00 MB"]
        );
    }
}
