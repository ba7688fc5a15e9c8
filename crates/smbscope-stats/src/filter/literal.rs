//! Parses and writes literals: numbers, durations, sizes, points in time, addresses and patterns.
//!
//! All ordered values are integers: nanoseconds, bytes, or the rank of a dialect.

use super::tokens::{Problem, is_bare};
use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use regex::{Regex, RegexBuilder};
use smbscope_model::units::{self, Unreadable};
use smbscope_model::{Dialect, Nanos};
use std::fmt::{self, Write as _};
use std::net::{IpAddr, SocketAddr};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScalarUnit {
    Count,
    Bytes,
    Duration,
    Time,
    Dialect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scalar {
    Plain(i128),
    /// Nanoseconds since the first packet of the captures.
    SinceStart(i64),
    /// Nanoseconds since midnight UTC of the day on which the captures begin.
    TimeOfDay(i64),
}

const DAY_NS: i128 = 86_400_000_000_000;

impl Scalar {
    pub(super) fn value(self, start: i64) -> i128 {
        let start = i128::from(start);
        match self {
            Scalar::Plain(value) => value,
            Scalar::SinceStart(nanos) => start + i128::from(nanos),
            Scalar::TimeOfDay(nanos) => start.div_euclid(DAY_NS) * DAY_NS + i128::from(nanos),
        }
    }

    pub(super) fn parse(unit: ScalarUnit, text: &str) -> Result<Scalar, Problem> {
        match unit {
            ScalarUnit::Count => number(text).map(|n| Scalar::Plain(n.into())),
            ScalarUnit::Bytes => size(text).map(Scalar::Plain),
            ScalarUnit::Duration => Ok(Scalar::Plain(units::duration(text)?.0.into())),
            ScalarUnit::Time => time(text),
            ScalarUnit::Dialect => dialect(text).map(|dialect| Scalar::Plain(rank(dialect))),
        }
    }

    pub(super) fn write(self, unit: ScalarUnit, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, unit) {
            (Scalar::Plain(value), ScalarUnit::Count) => write!(f, "{value}"),
            (Scalar::Plain(value), ScalarUnit::Bytes) => {
                f.write_str(&units::exact_size(value.clamp(0, u64::MAX.into()) as u64))
            }
            (Scalar::Plain(value), ScalarUnit::Duration) => f.write_str(&units::exact_duration(Nanos(value as i64))),
            (Scalar::SinceStart(value), _) => f.write_str(&units::exact_duration(Nanos(value))),
            (Scalar::Plain(value), ScalarUnit::Dialect) => {
                let known = Dialect::KNOWN.into_iter().find(|dialect| rank(*dialect) == value);
                let dialect = known.unwrap_or(Dialect::Smb2(value.clamp(0, u16::MAX.into()) as u16));
                write_text(&dialect.to_string(), f)
            }
            (Scalar::Plain(value), ScalarUnit::Time) => match jiff::Timestamp::from_nanosecond(value) {
                Ok(time) => write!(f, "{time}"),
                Err(_) => write!(f, "{value}"),
            },
            (Scalar::TimeOfDay(value), _) => {
                let time = Time::midnight().saturating_add(jiff::SignedDuration::from_nanos(value));
                write!(f, "{time}")
            }
        }
    }
}

pub(super) fn rank(dialect: Dialect) -> i128 {
    match dialect {
        Dialect::Core => 0,
        Dialect::CorePlus => 1,
        Dialect::Lanman1 => 2,
        Dialect::Lanman2 => 3,
        Dialect::Lanman21 => 4,
        Dialect::NtLm012 => 5,
        Dialect::OtherSmb1 => 6,
        Dialect::Local => 7,
        // SMB2 revisions start at 0x0202.
        Dialect::Smb2(revision) => revision.into(),
    }
}

fn dialect(text: &str) -> Result<Dialect, Problem> {
    let known = Dialect::KNOWN.into_iter().find(|dialect| dialect.to_string().eq_ignore_ascii_case(text));
    let by_code = || {
        let code = u16::from_str_radix(text.strip_prefix("0x")?, 16).ok()?;
        (code >= 0x0202).then_some(Dialect::Smb2(code))
    };
    known.or_else(by_code).ok_or_else(|| {
        let names = Dialect::KNOWN.map(|dialect| dialect.to_string());
        Problem::new(format!("expected a dialect: {}", names.join(", ")))
    })
}

fn number(text: &str) -> Result<u64, Problem> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    // Rust parses `+5`, but in a filter it is a typing error.
    parsed.ok().filter(|_| !text.contains('+')).ok_or_else(|| Problem::new("expected a number, such as 445 or 0x1bd"))
}

fn size(text: &str) -> Result<i128, Problem> {
    if text.starts_with("0x") {
        return number(text).map(i128::from);
    }
    Ok(units::size(text)?.into())
}

impl From<Unreadable> for Problem {
    fn from(error: Unreadable) -> Problem {
        Problem::new(error.expected).maybe(error.hint)
    }
}

fn time(text: &str) -> Result<Scalar, Problem> {
    if let Ok(duration) = units::duration(text) {
        return Ok(Scalar::SinceStart(duration.0));
    }
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        return Ok(Scalar::Plain(time.as_nanosecond()));
    }
    let has_date = text.get(4..5) == Some("-");
    if let (true, Ok(time)) = (has_date, text.parse::<DateTime>().and_then(|time| time.to_zoned(TimeZone::UTC))) {
        return Ok(Scalar::Plain(time.timestamp().as_nanosecond()));
    }
    if let (false, true, Ok(time)) = (has_date, text.contains(':'), text.parse::<Time>()) {
        let nanos = (time - Time::midnight()).total(jiff::Unit::Nanosecond);
        if let Ok(nanos) = nanos {
            return Ok(Scalar::TimeOfDay(nanos as i64));
        }
    }
    let is_number = text.parse::<f64>().is_ok();
    let hint = is_number.then(|| format!("a time needs its unit: did you mean {text}s?"));
    Err(Problem::new("expected a time: 30s after the start, 09:30, 2024-05-17 or 2024-05-17T09:30:00Z").maybe(hint))
}

/// A network prefix. A single address has the full length and may have a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Prefix {
    address: IpAddr,
    length: u8,
    port: Option<u16>,
}

impl Prefix {
    pub(super) fn parse(text: &str) -> Result<Prefix, Problem> {
        if let Ok(endpoint) = text.parse::<SocketAddr>() {
            let length = if endpoint.is_ipv4() { 32 } else { 128 };
            return Ok(Prefix { address: endpoint.ip(), length, port: Some(endpoint.port()) });
        }
        // IPv6 address in brackets, as reports print it before a port.
        let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
        let expected = || {
            let examples = "such as 10.0.0.5, 10.0.0.5:445, [fd00::5]:445, 10.0.0.0/8 or fd00::/8";
            Problem::new(format!("expected an address, one with a port, or a prefix, {examples}"))
        };
        let address: IpAddr = address.parse().map_err(|_| expected())?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let length = match length {
            None => bits,
            Some(length) => length.parse::<u8>().ok().filter(|length| *length <= bits).ok_or_else(expected)?,
        };
        Ok(Prefix { address: masked(address, length), length, port: None })
    }

    pub(super) fn is_single(&self) -> bool {
        self.length == if self.address.is_ipv4() { 32 } else { 128 }
    }

    pub(super) fn contains(&self, endpoint: SocketAddr) -> bool {
        endpoint.is_ipv4() == self.address.is_ipv4()
            && masked(endpoint.ip(), self.length) == self.address
            && self.port.is_none_or(|port| port == endpoint.port())
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(port) = self.port {
            return SocketAddr::new(self.address, port).fmt(f);
        }
        self.address.fmt(f)?;
        if self.is_single() { Ok(()) } else { write!(f, "/{}", self.length) }
    }
}

fn masked(address: IpAddr, length: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(length.min(32))).unwrap_or(0);
            IpAddr::V4((v4.to_bits() & mask).into())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(length.min(128))).unwrap_or(0);
            IpAddr::V6((v6.to_bits() & mask).into())
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    text: String,
    folded: String,
}

impl Word {
    pub(super) fn new(text: &str) -> Word {
        Word { text: text.to_owned(), folded: fold(text).collect() }
    }

    #[inline]
    pub(super) fn is(&self, text: &str) -> bool {
        fold(text).eq(self.folded.chars())
    }
}

impl Word {
    pub(super) fn has_wildcards(&self) -> bool {
        has_wildcards(&self.text)
    }
}

pub(super) fn has_wildcards(text: &str) -> bool {
    text.contains(['*', '?'])
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.has_wildcards() { write_quoted(&self.text, f) } else { write_text(&self.text, f) }
    }
}

fn fold(text: &str) -> impl Iterator<Item = char> {
    text.chars().flat_map(char::to_lowercase)
}

/// Windows wildcards: `*` matches any characters (including `\`), `?` matches one. Case-insensitive.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    text: String,
    regex: Regex,
}

impl Pattern {
    pub(super) fn new(text: &str) -> Result<Pattern, Problem> {
        let mut regex = String::from("^");
        for c in text.chars() {
            match c {
                '*' => regex.push_str(".*"),
                '?' => regex.push('.'),
                c => regex.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
            }
        }
        regex.push('$');
        let regex = RegexBuilder::new(&regex).case_insensitive(true).dot_matches_new_line(true).build();
        let regex = regex.map_err(|_| Problem::new("the pattern is too long"))?;
        Ok(Pattern { text: text.to_owned(), regex })
    }

    #[inline]
    pub(super) fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.text == other.text
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_text(&self.text, f)
    }
}

pub(super) fn write_text(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if !text.is_empty() && text.chars().all(is_bare) && !text.eq_ignore_ascii_case("null") {
        return f.write_str(text);
    }
    write_quoted(text, f)
}

fn write_quoted(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_char('"')?;
    f.write_str(&text.replace('"', "\"\""))?;
    f.write_char('"')
}
