//! Formatting of numbers, durations and names.

pub(crate) use smbscope_model::prose::{
    NO_BREAK, capital, from_to, is_invisible, prose_percent, share, shorten, thousands, time_of_day, unbroken,
};
pub use smbscope_model::prose::{clean, counted, span};
use smbscope_model::units;
use smbscope_model::{Nanos, Timestamp};
use smbscope_stats::DurationStatistics;

/// Formats a percentage with one decimal: `36.9`. Returns `0.0` if `whole` is 0.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    format!("{:.1}", share(part, whole))
}

/// Like [`percent`], but small shares above 0 are formatted as `<0.1`.
pub(crate) fn visible_percent(part: u64, whole: u64) -> String {
    if part > 0 && share(part, whole) < 0.05 { "<0.1".to_owned() } else { percent(part, whole) }
}

/// Formats a ratio with about three digits.
pub(crate) fn ratio(value: f64) -> String {
    match value {
        value if value > 0.0 && value < 0.005 => "<0.01".to_owned(),
        value if value < 9.995 => format!("{value:.2}"),
        value if value < 99.95 => format!("{value:.1}"),
        value if value < 99_999.5 => format!("{value:.0}"),
        _ => ">99999".to_owned(),
    }
}

pub fn or_dash(time: Option<Nanos>) -> String {
    time.map_or_else(|| "-".to_owned(), |time| time.to_string())
}

/// Formats seconds with a fixed number of decimals (at most 9), rounding halves away from zero.
pub(crate) fn seconds(time: Nanos, decimals: u32) -> String {
    let unit = 10u64.pow(9 - decimals);
    let rounded = (time.0.unsigned_abs() + unit / 2) / unit;
    let scale = 10u64.pow(decimals);
    let sign = if time.0 < 0 && rounded > 0 { "-" } else { "" };
    format!("{sign}{}.{:0width$}", rounded / scale, rounded % scale, width = decimals as usize)
}

/// Formats `hhh:mm:ss.fffff`, as in Swartz (1997).
pub(crate) fn clock(time: Nanos) -> String {
    let hundred_thousandths = (time.0.unsigned_abs() + 5_000) / 10_000;
    let (total, fraction) = (hundred_thousandths / 100_000, hundred_thousandths % 100_000);
    format!("{:03}:{:02}:{:02}.{fraction:05}", total / 3_600, total / 60 % 60, total % 60)
}

/// Formats the mean number of packets, as in Swartz (1997): `2` if it is exact, `2.0` if rounded.
pub(crate) fn average_packets(packets: u64, exchanges: u64) -> String {
    match exchanges {
        0 => String::new(),
        _ if packets.is_multiple_of(exchanges) => (packets / exchanges).to_string(),
        _ => format!("{:.1}", packets as f64 / exchanges as f64),
    }
}

/// Formats a timestamp in UTC with seconds: `1997-08-11 09:30:00`.
pub(crate) fn date(time: Timestamp) -> Option<String> {
    let time = jiff::Timestamp::from_second(time.0.div_euclid(1_000_000_000)).ok()?;
    Some(time.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// Shortens to `width` characters by replacing the beginning with `…`, since the end of a path says more.
pub(crate) fn shorten_path(text: &str, width: usize) -> String {
    match text.chars().count().saturating_sub(width) {
        0 => text.to_owned(),
        too_many => text.chars().skip(too_many + 1).fold("…".to_owned(), |kept, c| kept + c.encode_utf8(&mut [0; 4])),
    }
}

pub fn rate(per_second: f64) -> String {
    if per_second < 99.95 { format!("{per_second:.1}") } else { thousands(per_second.round() as u64) }
}

/// Formats bytes with three digits: `842 B`, `1.43 kB`, `14.3 MB`.
pub(crate) fn bytes(n: u64) -> String {
    units::short_bytes(n as f64)
}

/// Formats `median 59 µs, p95 310 µs`. Omits p95 if there are too few values.
pub(crate) fn median_and_p95(times: &DurationStatistics) -> Option<String> {
    let named = [("median", times.p50), ("p95", times.p95)];
    let told = named.into_iter().filter_map(|(name, time)| Some(format!("{name} {}", unbroken(time?))));
    Some(told.collect::<Vec<_>>().join(", ")).filter(|text| !text.is_empty())
}

/// Wraps a text at blanks to lines of at most `width` characters.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut length = 0;
    for word in text.split(' ') {
        let word = shorten(word, width);
        let chars = word.chars().count();
        match lines.last_mut() {
            Some(line) if length + 1 + chars <= width => {
                line.push(' ');
                line.push_str(&word);
                length += 1 + chars;
            }
            _ => {
                lines.push(word);
                length = chars;
            }
        }
    }
    lines.iter().map(|line| line.replace(NO_BREAK, " ")).collect()
}

/// Returns a ratio and its bounds, inverted if the ratio is below 1: for texts that name the direction of a change.
pub(crate) fn at_least_1(ratio: f64, (low, high): (f64, f64)) -> (f64, (f64, f64)) {
    if ratio > 0.0 && ratio < 1.0 { (1.0 / ratio, (1.0 / high, 1.0 / low)) } else { (ratio, (low, high)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_round_half_away_from_zero() {
        // 0.000005 s is half a unit of the fifth decimal.
        assert_eq!(
            [0, 4_999, 5_000, 320_000, 1_645_180_000].map(|n| seconds(Nanos(n), 5)),
            ["0.00000", "0.00000", "0.00001", "0.00032", "1.64518"]
        );
        assert_eq!((seconds(Nanos(-5_000), 5), seconds(Nanos(-1), 5)), ("-0.00001".into(), "0.00000".into()));
        assert_eq!(seconds(Nanos(194_500_000), 4), "0.1945");
    }

    #[test]
    fn the_clock_is_that_of_the_paper() {
        // Appendix A: 651.79540 seconds are 10 min 51.7954 s.
        assert_eq!(clock(Nanos(651_795_400_000)), "000:10:51.79540");
        assert_eq!(clock(Nanos(59_999_999_999)), "000:01:00.00000");
    }

    #[test]
    fn whole_packet_counts_have_no_decimals() {
        // 4 packets in 2 exchanges are 2 each; 5 in 2 are 2.5; 401 in 200 round to 2.0.
        assert_eq!([(4, 2), (5, 2), (401, 200), (0, 0)].map(|(p, n)| average_packets(p, n)), ["2", "2.5", "2.0", ""]);
    }

    #[test]
    fn long_text_breaks_at_blanks() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("a toolongword", 6), ["a", "toolo…"]);
        assert_eq!(wrap(&format!("took {}.", unbroken("13.6 ms")), 10), ["took", "13.6 ms."]);
    }

    #[test]
    fn bytes_have_three_digits_and_a_unit() {
        let shown = [0, 999, 1_000, 1_434, 99_950, 999_499, 999_500, 14_300_000, u64::MAX].map(bytes);
        assert_eq!(shown, ["0 B", "999 B", "1.00 kB", "1.43 kB", "100 kB", "999 kB", "1.00 MB", "14.3 MB", "18.4 EB"]);
    }

    #[test]
    fn long_paths_keep_their_end() {
        assert_eq!(shorten_path(r"office\report.docx", 12), "…report.docx");
        assert_eq!(shorten_path("short", 5), "short");
    }

    #[test]
    fn times_of_day_have_the_decimals_asked_for() {
        // 1997-08-11 09:30:00 and a quarter of a second; a second before 1970.
        let at = Timestamp(871_291_800_250_000_000);
        assert_eq!((time_of_day(at, 0), time_of_day(at, 3)), ("09:30:00".into(), "09:30:00.250".into()));
        assert_eq!(time_of_day(Timestamp(-1_000_000_000), 0), "23:59:59");
    }

    #[test]
    fn a_share_that_exists_shows() {
        // 1 of 2,001 is 0.04998%, 1 of 2,000 is 0.05%.
        assert_eq!([(0, 9), (1, 2_001), (1, 2_000)].map(|(n, of)| visible_percent(n, of)), ["0.0", "<0.1", "0.1"]);
    }
}
