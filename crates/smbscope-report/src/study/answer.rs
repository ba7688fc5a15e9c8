//! What the rows of a study say, in words.

use super::{Document, Row, Verdict};
use crate::bench::load_name;
use crate::format::{ratio, thousands};
use smbscope_stats::Measure;
use smbscope_stats::replication::{Answer, Figure};

/// Variants that the headline tells of, those that differ most first.
const CLAIMS: usize = 2;

/// Differences that chance alone makes more often than this are none.
const CHANCE: f64 = 0.05;

impl Row {
    /// Once its probability is adjusted.
    pub(super) fn judged(&self) -> Option<Verdict> {
        let factor = self.factor.as_ref()?;
        Some(match factor.answer {
            Answer::Equal => Verdict::Equal,
            _ if factor.interval.is_none() => Verdict::TooFew,
            Answer::Higher | Answer::Lower if self.adjusted_p_value.is_some_and(|p| p <= CHANCE) => {
                self.direction(factor)
            }
            // Also one of many rows that differ by chance.
            _ => Verdict::Undecided,
        })
    }

    /// `slower`, `equal within 5%`, `undecided, 12 repetitions` …; empty for the baseline.
    pub(super) fn answer(&self) -> String {
        let (Some(verdict), Some(factor)) = (self.verdict, &self.factor) else { return String::new() };
        match (verdict, factor.answer) {
            (Verdict::Undecided, Answer::Undecided { repetitions_needed: Some(needed) }) => {
                format!("{}, {} repetitions", verdict.words(), thousands(needed.into()))
            }
            _ => verdict.words().to_owned(),
        }
    }

    /// What a ratio other than 1 means for a user.
    fn direction(&self, factor: &Figure) -> Verdict {
        let higher = factor.ratio.is_some_and(|ratio| ratio > 1.0);
        match self.measure.parse() {
            Ok(Measure::Errors | Measure::Overload | Measure::Count(_) | Measure::ErrorsOf(_) | Measure::Server(_))
                if higher =>
            {
                Verdict::More
            }
            Ok(Measure::Errors | Measure::Overload | Measure::Count(_) | Measure::ErrorsOf(_) | Measure::Server(_)) => {
                Verdict::Less
            }
            Ok(measure) if measure.more_is_better() == higher => Verdict::Faster,
            _ => Verdict::Slower,
        }
    }
}

impl Verdict {
    fn words(self) -> &'static str {
        match self {
            Verdict::Slower => "slower",
            Verdict::Faster => "faster",
            Verdict::More => "more",
            Verdict::Less => "less",
            Verdict::Equal => "equal within 5%",
            Verdict::Undecided => "undecided",
            Verdict::TooFew => "too few repetitions",
        }
    }
}

/// The rows that the headline is about, by their places: the first measure that has one, at the highest load.
pub(super) fn in_headline(rows: &[Row]) -> Vec<usize> {
    // A measure that is nothing for the baseline has no factor.
    let Some(first) = rows.iter().find(|row| row.factor.is_some()) else { return Vec::new() };
    let load = |row: &Row| (row.users, row.rate.map_or(0, f64::to_bits));
    let of_measure = || rows.iter().enumerate().filter(|(_, row)| row.measure == first.measure && row.factor.is_some());
    let highest = of_measure().map(|(_, row)| load(row)).max();
    of_measure().filter(|(_, row)| Some(load(row)) == highest).map(|(at, _)| at).collect()
}

/// The answer of the study.
pub fn headline(document: &Document) -> String {
    let rows: Vec<&Row> = in_headline(&document.results).into_iter().map(|at| &document.results[at]).collect();
    let Some(first) = rows.first() else { return String::new() };
    let mut claims: Vec<(f64, String)> =
        rows.iter().filter_map(|row| Some((row.factor.as_ref()?.ratio?.ln().abs(), claim(document, row)?))).collect();
    claims.sort_by(|a, b| b.0.total_cmp(&a.0));
    let more = claims.len().saturating_sub(CLAIMS);
    let said: Vec<&str> = claims.iter().take(CLAIMS).map(|(_, claim)| claim.as_str()).collect();
    let more = if more > 0 { format!("; {more} more below") } else { String::new() };
    match said.as_slice() {
        [] => String::new(),
        said => format!("{}, {}: {}{more}.", first.measure, load_name(first.users, first.rate), said.join("; ")),
    }
}

/// What a row says.
fn claim(document: &Document, row: &Row) -> Option<String> {
    let factor = row.factor.as_ref()?;
    let (name, baseline) = (document.name_of(row.variant), document.name_of(document.baseline_of(row)));
    let times = ratio(factor.ratio?);
    Some(match (factor.answer, factor.interval, factor.detectable) {
        (Answer::Equal, ..) => format!("{name} is equal to {baseline} within 5%"),
        (Answer::Higher | Answer::Lower, Some((low, high)), _) if row.verdict != Some(Verdict::Undecided) => {
            let direction = row.direction(factor).words();
            format!("{name} is {direction} than {baseline}, {times} times ({} to {})", ratio(low), ratio(high))
        }
        (_, _, Some(least)) => format!(
            "no difference between {name} and {baseline} that this data can show (it would have shown {} times)",
            ratio(least)
        ),
        _ => format!("{name} {times} times {baseline} (too few repetitions for an interval)"),
    })
}
