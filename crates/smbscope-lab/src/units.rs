//! Parsers and limits for lab options: `100mbit`, `5ms`, `64M`.

use smbscope_model::units;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Upper limit for packet loss: beyond it TCP makes no progress.
const LOSS_MAX: f64 = 0.5;
const DELAY_MAX: Duration = Duration::from_secs(60);
/// Bits per second.
const BANDWIDTHS: RangeInclusive<u64> = 8_000..=1_000_000_000_000;
/// Bytes.
const DISKS: RangeInclusive<u64> = 64 << 10..=1_000_000_000_000_000;

/// Upper limit for the added latency of one storage request, slower than a tape.
const STORAGE_LATENCY_MAX: Duration = Duration::from_secs(10);
/// Requests per second.
const STORAGE_IOPS: RangeInclusive<f64> = 1.0..=10_000_000.0;
/// Bytes per second.
const STORAGE_BANDWIDTHS: RangeInclusive<u64> = 1_000..=1_000_000_000_000;

/// Parses bits per second in the notation of tc(8): `100mbit`, `1gbit`, `512kbit`.
pub fn parse_bandwidth(text: &str) -> Result<u64, String> {
    let bits = units::bit_rate(text).ok().filter(|bits| BANDWIDTHS.contains(bits));
    bits.ok_or_else(|| "expected 8kbit to 1000gbit, such as 100mbit".to_owned())
}

/// Parses a time: `5ms`, `250us`, `1s`.
pub fn parse_delay(text: &str) -> Result<Duration, String> {
    let delay = units::time(text)?;
    if delay <= DELAY_MAX { Ok(delay) } else { Err("expected 0us to 60s, such as 5ms".to_owned()) }
}

/// Parses a percentage of packets as a fraction: `1%`, `0.5%`.
pub fn parse_loss(text: &str) -> Result<f64, String> {
    let share = units::percentage(text).ok().filter(|share| *share <= LOSS_MAX);
    share.ok_or_else(|| "expected 0% to 50%, such as 0.5%".to_owned())
}

/// Parses a size in bytes: `64M`, `2G`.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let bytes = units::size(text).ok().filter(|bytes| DISKS.contains(bytes));
    bytes.ok_or_else(|| "expected 64K or more, such as 64M or 2G".to_owned())
}

/// Parses a time: `8ms`, `100us`.
pub fn parse_storage_latency(text: &str) -> Result<Duration, String> {
    let latency = units::time(text)?;
    if latency <= STORAGE_LATENCY_MAX { Ok(latency) } else { Err("expected 0us to 10s, such as 8ms".to_owned()) }
}

/// Parses requests per second: `120`.
pub fn parse_iops(text: &str) -> Result<u32, String> {
    let iops = units::rate(text).ok().filter(|iops| iops.fract() == 0.0 && STORAGE_IOPS.contains(iops));
    iops.map(|iops| iops as u32).ok_or_else(|| "expected 1 to 10000000, such as 120".to_owned())
}

/// Parses bytes per second: `150MB/s`.
pub fn parse_storage_bandwidth(text: &str) -> Result<u64, String> {
    let bytes = units::byte_rate(text).ok().filter(|bytes| STORAGE_BANDWIDTHS.contains(bytes));
    bytes.ok_or_else(|| "expected 1kB/s to 1000GB/s, such as 150MB/s".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_lab_can_not_be_is_refused() {
        assert!(parse_bandwidth("7kbit").is_err() && parse_bandwidth("100").is_err());
        assert!(parse_delay("61s").is_err() && parse_delay("-5ms").is_err() && parse_delay("2min").is_err());
        assert!(parse_loss("51%").is_err() && parse_loss("1").is_err());
        assert!(parse_size("63K").is_err());
        assert!(parse_storage_latency("11s").is_err() && parse_storage_latency("8").is_err());
        assert!(["0", "1.5", "10000001", "-1", "many"].iter().all(|text| parse_iops(text).is_err()));
        assert!(parse_storage_bandwidth("150M").is_err() && parse_storage_bandwidth("1B/s").is_err());
        assert_eq!((parse_iops("120"), parse_storage_bandwidth("150MB/s")), (Ok(120), Ok(150_000_000)));
        assert_eq!(parse_delay("1min"), Ok(DELAY_MAX));
    }
}
