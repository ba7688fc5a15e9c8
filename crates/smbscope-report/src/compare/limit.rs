//! Limits for regressions in a pipeline: `p95(Read) > 1.10x`, and the result of a `--fail-if` condition of `analyze` or
//! `compare`: a line on standard error and a test in JUnit XML.
//!
//! A limit is a measure, `<` or `>`, and a multiple of the baseline. It is exceeded if the whole confidence interval of
//! the ratio is beyond it. Without an interval, only `strict` judges the ratio itself.

use super::ramps::{self, Single};
use super::repetitions::ColumnRuns;
use super::saved::ComparableReport;
use super::{ComparableDocument, Comparison, Given, Ratio, significance};
use crate::bench::BenchRun;
use crate::format::clean;
use smbscope_model::Nanos;
use smbscope_stats::filter::tokens::{Cursor, LocatedProblem, Token, TokenKind, tokens};
use smbscope_stats::filter::{FilterError, Problem};
use smbscope_stats::replication::Scope;
use smbscope_stats::{CommandStatistics, Measure};
use std::fmt;
use std::str::FromStr;

const EXAMPLE: &str = "write limits such as 'p95(Read) > 1.10x' or 'throughput < 0.9x'";
/// Measures without parentheses that have ratios. Errors have none, since the baseline often has 0.
const KNOWN: [&str; 4] = ["ops", "commands", "throughput", "elapsed"];

#[derive(Debug, Clone, PartialEq)]
pub struct RatioLimit {
    measure: Measure,
    /// True for `>`, false for `<`.
    above: bool,
    times: f64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoFigure(String);

impl fmt::Display for NoFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoFigure {}

impl FromStr for RatioLimit {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<RatioLimit, FilterError> {
        tokens(text).and_then(|tokens| limit(text, &tokens)).map_err(|(problem, place)| problem.at(text, place))
    }
}

fn limit(text: &str, tokens: &[Token<'_>]) -> Result<RatioLimit, LocatedProblem> {
    let with_example = |(problem, place): LocatedProblem| (problem.hint(EXAMPLE), place);
    let mut cursor = Cursor::new(text, tokens);
    let (measure, _) = Measure::take(text, &mut cursor, &KNOWN, EXAMPLE)?;
    let above = cursor.sign(">");
    if !above && !cursor.sign("<") {
        return Err(with_example(cursor.expected("`>` or `<`")));
    }
    let Some(Token { kind: TokenKind::Word(word), place }) = cursor.peek() else {
        return Err(with_example(cursor.expected("a multiple of the baseline")));
    };
    let number = word.strip_suffix(['x', 'X', '×']).and_then(|number| number.parse().ok());
    let Some(times) = number.filter(|times: &f64| times.is_finite() && *times > 0.0) else {
        let problem = Problem::new(format!("`{word}` is not a multiple of the baseline"));
        return Err(with_example((problem, place.clone())));
    };
    cursor.skip();
    match cursor.peek() {
        None => Ok(RatioLimit { measure, above, times }),
        Some(_) => Err(with_example(cursor.expected("the end"))),
    }
}

impl fmt::Display for RatioLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}x", self.measure, if self.above { '>' } else { '<' }, self.times)
    }
}

impl RatioLimit {
    fn is_beyond(&self, ratio: f64) -> bool {
        if self.above { ratio > self.times } else { ratio < self.times }
    }

    fn judged(&self, ratio: &Ratio, name: &str, base: &str, strict: bool) -> Judgement {
        let beyond = self.is_beyond(ratio.value);
        let nearest = ratio.interval.map(|interval| if self.above { interval.low } else { interval.high });
        let shown = nearest.is_some_and(|end| self.is_beyond(end));
        let judged = match (if strict { beyond } else { shown }, beyond) {
            (true, _) => Judged::Holds,
            (false, true) => Judged::Undecided,
            (false, false) => Judged::DoesNotHold,
        };
        let times = |value: f64| Ratio { value, ..*ratio }.to_string();
        let between = ratio.interval.map(|interval| format!("{} to {}", times(interval.low), times(interval.high)));
        let within = ratio.certainty.is_some_and(|certainty| certainty.scope == Scope::WithinRun);
        let how = match (between, judged) {
            (Some(between), _) if within => format!(" (95% interval {between}, within this run only)"),
            (Some(between), _) => format!(" (95% interval {between})"),
            (None, Judged::Holds) => " (no interval: --strict)".to_owned(),
            (None, _) => " (no interval: it needs 5 runs of each side)".to_owned(),
        };
        let found = format!("{name} is {} times {base}{how}", times(ratio.value));
        let text = match judged {
            Judged::Holds => format!("{self}: {found}"),
            Judged::Undecided => format!("{self} is not shown: {found}; {}", settles(ratio, within)),
            Judged::DoesNotHold => format!("{self} does not hold: {found}"),
        };
        Judgement { condition: self.to_string(), name: name.to_owned(), judged, text }
    }
}

/// Suggests how to decide a limit that is exceeded by the ratio but not by its whole interval.
fn settles(ratio: &Ratio, within: bool) -> String {
    let needed = ratio.certainty.and_then(|certainty| certainty.repetitions_needed).filter(|_| !within);
    let strict = "--strict judges the ratio alone";
    needed.map_or_else(|| strict.to_owned(), |runs| format!("about {runs} runs of each would settle 5%, and {strict}"))
}

/// Judges each limit for each column but the first. `comparison` must be the comparison of `given`: for single runs,
/// its within-run intervals are used.
pub fn judge(
    limits: &[RatioLimit],
    given: &[Given],
    comparison: &Comparison,
    strict: bool,
) -> Result<Vec<Judgement>, NoFigure> {
    let singles: Vec<Single<'_>> = given.iter().flat_map(Given::singles).collect();
    let sides = ColumnRuns::new(given, &singles);
    let runs = ramps::compared_runs(&singles);
    let names: Vec<String> = given.iter().map(|given| clean(&given.name)).collect();
    let mut judgements = Vec::new();
    for limit in limits {
        let value = |at: usize| match singles.get(at)?.content() {
            ComparableDocument::Ramp(_) => {
                runs.get(at).copied().flatten().and_then(|run: &BenchRun| run.value(&limit.measure))
            }
            ComparableDocument::Report(report) => report.value(&limit.measure),
        };
        for (column, name) in names.iter().enumerate().skip(1) {
            let ratio = sides.ratio(column, &value).ok_or_else(|| {
                let why = "not in both, 0 there, or supported by too few commands";
                NoFigure(format!("{} cannot be compared between {} and {name}: {why}", limit.measure, names[0]))
            })?;
            let ratio = match ratio.interval {
                Some(_) => ratio,
                None => significance::ratio(comparison, column, &limit.measure, &ratio).unwrap_or(ratio),
            };
            judgements.push(limit.judged(&ratio, name, &names[0], strict));
        }
    }
    Ok(judgements)
}

impl ComparableReport {
    pub(crate) fn value(&self, measure: &Measure) -> Option<f64> {
        match measure {
            Measure::Time(figure, of) => figure.value_in(&self.row(of)?.response_time).map(Nanos::as_secs_f64),
            Measure::Commands => self.overview.commands_per_second,
            Measure::Throughput => self.overview.bytes_per_second,
            Measure::Errors
            | Measure::ErrorsOf(_)
            | Measure::Count(_)
            | Measure::Overload
            | Measure::Operations
            | Measure::Elapsed
            | Measure::Waited
            | Measure::Server(_) => None,
        }
    }

    /// Looks up a row by name, as `BenchRun::value` does: total, groups, commands.
    fn row(&self, of: &str) -> Option<&CommandStatistics> {
        let is = |name: &str| name.eq_ignore_ascii_case(of);
        if is("total") {
            return Some(&self.headline);
        }
        let name = crate::names::groups().map(|(name, ..)| name).find(|name| is(name));
        let group = name.and_then(|name| self.group(name)).map(|group| &group.row);
        let command = || self.commands.iter().find(|command| is(&command.command) && !command.is_waiting());
        group.or_else(|| Some(&command()?.row))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    pub condition: String,
    pub name: String,
    pub judged: Judged,
    /// Value found and its relation to the limit, on one line.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judged {
    /// The condition holds: exit status 3.
    Holds,
    /// The value is missing, or the data does not prove that the condition holds: a warning.
    Undecided,
    DoesNotHold,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::ConfidenceInterval;

    fn problem(text: &str) -> String {
        text.parse::<RatioLimit>().unwrap_err().to_string()
    }

    #[test]
    fn limits_are_read_as_they_are_written() {
        for text in ["p95(Read) > 1.1x", "throughput < 0.9x", "mean(Open/Close) > 2x", "elapsed > 1.25x"] {
            assert_eq!(text.parse::<RatioLimit>().unwrap().to_string(), text);
        }
        assert_eq!("p50(total)>1.10X".parse::<RatioLimit>().unwrap().times, 1.1);
        for (text, expected) in [
            ("p95(Read) > 20ms", "character 13: `20ms` is not a multiple of the baseline; write limits such as"),
            ("p95(Read) > 1.1", "character 13: `1.1` is not a multiple"),
            ("p95(Read) > -1x", "character 13: `-1x` is not a multiple"),
            ("p95(Read) >= 1.1x", "character 11: expected `>` or `<`, found `>=`"),
            ("p95(Read) >", "character 12: expected a multiple of the baseline, found the end"),
            ("p95(Read) > 1.1x and more", "character 18: expected the end"),
            ("latency > 2x", "character 1: `latency` is none of"),
            ("", "character 1: expected a figure"),
        ] {
            assert!(problem(text).starts_with(expected), "{}", problem(text));
        }
    }

    #[test]
    fn only_the_whole_interval_beyond_the_limit_exceeds_it() {
        let limit: RatioLimit = "p95(Read) > 1.1x".parse().unwrap();
        let ratio = |value: f64, interval: Option<(f64, f64)>| {
            let interval = interval.map(|(low, high)| ConfidenceInterval { low, high, level: 0.95 });
            Ratio { value, interval, certainty: None }
        };
        let exceeded = |ratio: &Ratio, strict| limit.judged(ratio, "b", "a", strict).judged == Judged::Holds;
        let (shown, doubtful) = (ratio(1.3, Some((1.2, 1.4))), ratio(1.3, Some((1.05, 1.6))));
        let (single, fine) = (ratio(1.3, None), ratio(1.05, Some((1.0, 1.09))));
        assert_eq!(
            [&shown, &doubtful, &single, &fine].map(|ratio| exceeded(ratio, false)),
            [true, false, false, false]
        );
        assert_eq!([&shown, &doubtful, &single, &fine].map(|ratio| exceeded(ratio, true)), [true, true, true, false]);
        let text = |ratio: &Ratio| limit.judged(ratio, "b", "a", false).text;
        assert_eq!(text(&shown), "p95(Read) > 1.1x: b is 1.30 times a (95% interval 1.20 to 1.40)");
        assert_eq!(
            text(&doubtful),
            "p95(Read) > 1.1x is not shown: b is 1.30 times a (95% interval 1.05 to 1.60); --strict judges the ratio alone"
        );
        assert_eq!(
            text(&single),
            "p95(Read) > 1.1x is not shown: b is 1.30 times a (no interval: it needs 5 runs of each side); \
             --strict judges the ratio alone"
        );
        let less: RatioLimit = "throughput < 0.9x".parse().unwrap();
        let judged = |high| less.judged(&ratio(0.8, Some((0.75, high))), "b", "a", false).judged;
        assert_eq!([judged(0.85), judged(0.95)], [Judged::Holds, Judged::Undecided]);
    }
}
