//! Quantities as they are written on a command line: `100mbit`, `5ms`, `64M`.

use std::time::Duration;

/// The most loss that can be asked for, as a share: beyond it, TCP does not get anywhere.
const LOSS_MAX: f64 = 0.5;

/// Bits a second: `100mbit`, `1gbit`, `512kbit`, as tc(8) writes them.
pub fn parse_bandwidth(text: &str) -> Result<u64, String> {
    let units = [("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9)];
    let bits = quantity(text, &units).filter(|bits| (8e3..=1e12).contains(bits));
    bits.map(|bits| bits as u64).ok_or_else(|| "expected 8kbit to 1000gbit, such as 100mbit".to_owned())
}

/// A time: `5ms`, `250us`, `1s`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let seconds = quantity(text, &[("us", 1e-6), ("ms", 1e-3), ("s", 1.0)]).filter(|seconds| *seconds <= 60.0);
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "expected 0us to 60s, such as 5ms".to_owned())
}

/// A share of packets: `1%`, `0.5%`.
pub fn parse_loss(text: &str) -> Result<f64, String> {
    let share = quantity(text, &[("%", 0.01)]).filter(|share| *share <= LOSS_MAX);
    share.ok_or_else(|| "expected 0% to 50%, such as 0.5%".to_owned())
}

/// Bytes: `64M`, `2G`, with units of 1,024.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let units = [("K", 1024.0), ("M", 1024.0 * 1024.0), ("G", 1024.0 * 1024.0 * 1024.0)];
    let bytes = quantity(text, &units).filter(|bytes| (65536.0..=1e15).contains(bytes));
    bytes.map(|bytes| bytes as u64).ok_or_else(|| "expected 64K or more, such as 64M or 2G".to_owned())
}

/// A number with one of these units.
fn quantity(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.')?);
    let (_, factor) = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    let number: f64 = number.parse().ok()?;
    Some(number * factor)
}

/// Bits a second, in the largest unit that leaves a whole number.
pub(crate) fn bandwidth(bits: u64) -> String {
    whole(bits, &[(1_000_000_000, "gbit"), (1_000_000, "mbit"), (1_000, "kbit"), (1, "bit")])
}

/// Bytes, likewise.
pub(crate) fn size(bytes: u64) -> String {
    whole(bytes, &[(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K"), (1, " bytes")])
}

fn whole(value: u64, units: &[(u64, &str)]) -> String {
    let fits = units.iter().find(|(factor, _)| value.is_multiple_of(*factor));
    fits.map_or_else(|| value.to_string(), |(factor, unit)| format!("{}{unit}", value / factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_with_their_units() {
        assert_eq!(parse_bandwidth("100mbit"), Ok(100_000_000));
        assert_eq!(parse_bandwidth("2.5Gbit"), Ok(2_500_000_000));
        assert_eq!(parse_duration("5ms"), Ok(Duration::from_millis(5)));
        assert_eq!(parse_duration("0.25ms"), Ok(Duration::from_micros(250)));
        assert_eq!(parse_size("64M"), Ok(64 << 20));
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in ["", "5", "ms", "-5ms", "5 ms", "5min", "61s", "1.2.3s", "nanms"] {
            assert!(parse_duration(text).is_err(), "{text:?}");
        }
        assert!(parse_bandwidth("0mbit").is_err() && parse_bandwidth("100").is_err());
        assert!(parse_size("0M").is_err() && parse_size("64MB").is_err());
    }

    #[test]
    fn quantities_are_written_as_they_are_read() {
        assert_eq!(bandwidth(100_000_000), "100mbit");
        assert_eq!(bandwidth(1_500_000), "1500kbit");
        assert_eq!(size(64 << 20), "64M");
        assert_eq!(size(65_537), "65537 bytes");
    }
}
