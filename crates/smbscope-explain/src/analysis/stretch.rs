//! `--from` and `--to`: a stretch of the captures, as a filter on the time of commands.

use super::{AnalysisError, AnalysisOptions, beside_given};
use crate::options::TimeBound;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use smbscope_capture::reader::{CaptureInput, CaptureSet};
use smbscope_model::CaptureInfo;
use std::collections::HashSet;
use std::time::Duration;

/// Captures that begin this long after the end of the stretch are not read. Until then, responses to its commands are
/// found: clients wait a minute for a response by default (SessTimeout), and longer for asynchronous ones.
const RESPONSES_UNTIL: Duration = Duration::from_secs(300);

/// Returns the captures to read and, in place of `--from` and `--to`, a filter. Without them, both are unchanged.
pub(super) fn narrowed(
    inputs: &[CaptureInput],
    options: &AnalysisOptions,
) -> Result<(Vec<CaptureInput>, AnalysisOptions), AnalysisError> {
    if options.from.is_none() && options.to.is_none() {
        return Ok((inputs.to_vec(), options.clone()));
    }
    if inputs.iter().any(|input| matches!(input, CaptureInput::File(path) if !path.exists())) {
        // Opening it fails with the reason.
        return Ok((inputs.to_vec(), options.clone()));
    }
    if !inputs.iter().all(CaptureInput::can_be_read_again) {
        let pipe =
            "--from and --to read the captures twice, which a pipe does not allow: give files, or filter by time";
        return Err(AnalysisError::Stretch(pipe.to_owned()));
    }
    let set = CaptureSet::open_with_memory(inputs, false, options.reading.memory.bytes())?;
    let mut options = options.clone();
    let (from, to) = (options.from.take(), options.to.take());
    let Some(covered) = CoveredTime::new(set.captures(), TimeZone::system()) else {
        return Ok((inputs.to_vec(), options));
    };
    let (from, to) = covered.stretch(from.as_ref(), to.as_ref()).map_err(AnalysisError::Stretch)?;
    let from_condition = from.map(|from| format!("time >= {from}"));
    let to_condition = to.map(|to| format!("time < {to}"));
    let condition = [from_condition, to_condition].into_iter().flatten().collect::<Vec<_>>().join(" and ");
    options.filter = Some(beside_given(&options, condition).map_err(AnalysisError::StretchFilter)?);
    let end = to.and_then(|to| to.checked_add(RESPONSES_UNTIL).ok());
    let is_later = |info: &&CaptureInfo| end.is_some_and(|end| first(info).is_some_and(|first| first > end));
    let later: HashSet<&str> = set.captures().iter().filter(is_later).map(|info| info.name.as_str()).collect();
    let read = inputs.iter().filter(|input| !later.contains(input.name().as_str()));
    Ok((read.cloned().collect(), options))
}

fn first(info: &CaptureInfo) -> Option<Timestamp> {
    Timestamp::from_nanosecond(info.first?.0.into()).ok()
}

fn last(info: &CaptureInfo) -> Option<Timestamp> {
    Timestamp::from_nanosecond(info.last?.0.into()).ok()
}

/// Time that the captures cover.
struct CoveredTime {
    first: Timestamp,
    last: Timestamp,
    zone: TimeZone,
}

impl CoveredTime {
    /// Returns `None` if there is no packet.
    fn new(captures: &[CaptureInfo], zone: TimeZone) -> Option<CoveredTime> {
        let first = captures.iter().filter_map(first).min()?;
        let last = captures.iter().filter_map(last).max()?;
        Some(CoveredTime { first, last, zone })
    }

    fn stretch(
        &self,
        from: Option<&TimeBound>,
        to: Option<&TimeBound>,
    ) -> Result<(Option<Timestamp>, Option<Timestamp>), String> {
        let outside = |option: &str, given: &TimeBound| {
            let local = |time: Timestamp| time.to_zoned(self.zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string();
            let (first, last) = (local(self.first), local(self.last));
            format!("{option} {given}: no packets there; the captures cover {first} to {last} local time")
        };
        let begin = from.map(|from| self.at(from, None)).transpose()?;
        let end = to.map(|to| self.at(to, begin)).transpose()?;
        if let (Some(begin), Some(end), Some(from), Some(to)) = (begin, end, from, to)
            && begin >= end
        {
            return Err(format!("--from {from} is not before --to {to}"));
        }
        match (begin, from, end, to) {
            (Some(begin), Some(from), ..) if begin > self.last => Err(outside("--from", from)),
            (.., Some(end), Some(to)) if end <= self.first => Err(outside("--to", to)),
            _ => Ok((begin, end)),
        }
    }

    /// Returns the point in time. A time of day is on the day of `from`, or the next day if the captures reach into it;
    /// without `from`, on the last day of the captures, or the day before if the captures had not reached it yet.
    fn at(&self, bound: &TimeBound, from: Option<Timestamp>) -> Result<Timestamp, String> {
        let instant = |local: jiff::civil::DateTime| {
            let time = local.to_zoned(self.zone.clone()).map_err(|error| format!("{local}: {error}"))?;
            Ok(time.timestamp())
        };
        let day = |time: Timestamp| time.to_zoned(self.zone.clone()).date();
        match bound {
            TimeBound::Instant(time) => Ok(*time),
            TimeBound::Local(local) => instant(*local),
            TimeBound::TimeOfDay(time) => {
                let last_day = day(self.last);
                let date = from.map_or(last_day, day);
                let found: Timestamp = instant(date.to_datetime(*time))?;
                let other_day = match from {
                    Some(from) if found <= from && last_day > date => date.tomorrow().ok(),
                    None if found > self.last && day(self.first) < date => date.yesterday().ok(),
                    _ => None,
                };
                other_day.map_or(Ok(found), |date| instant(date.to_datetime(*time)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Captures from 22:00 to 00:30 in a zone without daylight saving time.
    fn over_midnight() -> CoveredTime {
        let zone = TimeZone::fixed(jiff::tz::offset(1));
        let at = |text: &str| text.parse().expect("a time");
        CoveredTime { first: at("2026-11-26T22:00:00+01:00"), last: at("2026-11-27T00:30:00+01:00"), zone }
    }

    fn stretch(from: &str, to: &str) -> Result<[String; 2], String> {
        let given = |text: &str| (!text.is_empty()).then(|| text.parse::<TimeBound>().expect("a time"));
        let (from, to) = over_midnight().stretch(given(from).as_ref(), given(to).as_ref())?;
        let text = |time: Option<Timestamp>| time.map(|time| time.to_string()).unwrap_or_default();
        Ok([text(from), text(to)])
    }

    #[test]
    fn times_of_day_are_local_and_of_the_last_day_that_has_them() {
        let found = |from: &str, to: &str| Ok([from.to_owned(), to.to_owned()]);
        assert_eq!(stretch("00:10", ""), found("2026-11-26T23:10:00Z", ""));
        assert_eq!(stretch("23:00", ""), found("2026-11-26T22:00:00Z", ""));
        assert_eq!(stretch("", "23:00"), found("", "2026-11-26T22:00:00Z"));
        assert_eq!(stretch("23:00", "00:10:30"), found("2026-11-26T22:00:00Z", "2026-11-26T23:10:30Z"));
        assert_eq!(stretch("23:00", "23:30"), found("2026-11-26T22:00:00Z", "2026-11-26T22:30:00Z"));
        assert_eq!(stretch("2026-11-26T23:00", ""), found("2026-11-26T22:00:00Z", ""));
        assert_eq!(stretch("2026-11-26T22:05:00Z", "23:30"), found("2026-11-26T22:05:00Z", "2026-11-26T22:30:00Z"));
    }

    #[test]
    fn stretches_without_packets_are_refused() {
        let covered = "no packets there; the captures cover 2026-11-26 22:00:00 to 2026-11-27 00:30:00 local time";
        assert_eq!(stretch("2026-11-27T09:00", ""), Err(format!("--from 2026-11-27T09:00:00: {covered}")));
        assert_eq!(stretch("", "2026-11-26T21:00"), Err(format!("--to 2026-11-26T21:00:00: {covered}")));
        let reversed = "--from 00:10:00 is not before --to 00:05:00".to_owned();
        assert_eq!(stretch("00:10", "00:05"), Err(reversed));
        assert!("2pm".parse::<TimeBound>().is_err() && "14".parse::<TimeBound>().is_err());
    }
}
