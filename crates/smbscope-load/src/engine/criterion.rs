//! Service-level criteria: `p95(Read) < 20ms and errors < 1%`.
//!
//! A criterion is a list of conditions joined by `and`:
//!
//! - `FIGURE(WHAT) < TIME`: FIGURE is `mean`, `max`, `p50`, `p90`, `p95`, `p99` or `p999` of the response time. WHAT is
//!   `total`, a group (`Read`, `Open/Close` …), an operation of the workload or a command (`QUERY_DIRECTORY`), looked
//!   up in this order. In an open loop, operations (and `total`, which then covers them) count from their intended
//!   start; groups and commands are always server response times. TIME is a number with `ns`, `us`, `ms` or `s`.
//! - `errors < 1%` or `errors < 10`: failed operations (unexpected status or broken session) as a share or a number.
//! - `overload < 1%`: share of due scenarios that started late, exceeded their budget or never started. Needs a
//!   workload with `[scenarios]` in an open loop.
//! - `ops > 500`: operations of the workload per second.
//! - `throughput > 100MB/s`: bytes read and written per second, in `B`, `KB`, `MB`, `GB`, `KiB`, `MiB` or `GiB`.

use super::result::LoadPointResult;
use super::schedule::OverloadTally;
use smbscope_model::{Command, CommandGroup, Nanos, units};
use smbscope_stats::filter::tokens::{Cursor, LocatedProblem, tokens};
use smbscope_stats::filter::{FilterError, Problem};
use smbscope_stats::{DurationStatistics, Measure, Summary, TimeFigure};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

#[derive(Debug, Clone, PartialEq)]
pub struct Criterion {
    text: String,
    conditions: Vec<CriterionTerm>,
}

#[derive(Debug, Clone, PartialEq)]
enum CriterionTerm {
    Time { figure: TimeFigure, of: String, place: Range<usize>, below: Nanos },
    ErrorShare { below: f64 },
    Errors { below: f64 },
    Overload { below: f64 },
    Operations { above: f64 },
    Throughput { above: f64 },
}

pub type CriterionError = FilterError;

const EXAMPLE: &str = "write conditions such as p95(Read) < 20ms and errors < 1%";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CriterionResult {
    pub met: bool,
    /// Each condition with the measured value: `p95(Read) < 20ms: 12.3 ms`.
    pub found: Vec<String>,
}

impl FromStr for Criterion {
    type Err = CriterionError;

    fn from_str(text: &str) -> Result<Criterion, CriterionError> {
        let conditions = conditions(text).map_err(|(problem, place)| problem.at(text, place))?;
        Ok(Criterion { text: text.to_owned(), conditions })
    }
}

fn conditions(text: &str) -> Result<Vec<CriterionTerm>, LocatedProblem> {
    let tokens = tokens(text)?;
    let mut cursor = Cursor::new(text, &tokens);
    let mut conditions = Vec::new();
    loop {
        conditions.push(condition(text, &mut cursor)?);
        if cursor.peek().is_none() {
            return Ok(conditions);
        }
        if !cursor.keyword("and") && !cursor.sign("&&") {
            return Err(with_example(cursor.expected("`and` or the end")));
        }
    }
}

fn with_example((problem, place): LocatedProblem) -> LocatedProblem {
    (problem.hint(EXAMPLE), place)
}

fn condition(text: &str, cursor: &mut Cursor<'_, '_>) -> Result<CriterionTerm, LocatedProblem> {
    let (measure, place) = Measure::take(text, cursor, &["errors", "overload", "ops", "throughput"], EXAMPLE)?;
    Ok(match measure {
        Measure::Time(figure, of) => {
            compared(cursor, "<")?;
            CriterionTerm::Time { figure, of, place, below: value(text, cursor, units::duration)? }
        }
        Measure::Errors => {
            compared(cursor, "<")?;
            value(text, cursor, |text| match text.ends_with('%') {
                true => units::percentage(text).map(|below| CriterionTerm::ErrorShare { below }).map_err(Problem::from),
                false => number(text).map(|below| CriterionTerm::Errors { below }),
            })?
        }
        Measure::Overload => {
            compared(cursor, "<")?;
            CriterionTerm::Overload { below: value(text, cursor, units::percentage)? }
        }
        Measure::Operations => {
            compared(cursor, ">")?;
            CriterionTerm::Operations { above: value(text, cursor, units::rate)? }
        }
        _ => {
            compared(cursor, ">")?;
            CriterionTerm::Throughput { above: value(text, cursor, units::byte_rate)? as f64 }
        }
    })
}

fn compared(cursor: &mut Cursor<'_, '_>, sign: &'static str) -> Result<(), LocatedProblem> {
    if cursor.sign(sign) { Ok(()) } else { Err(with_example(cursor.expected(&format!("`{sign}`")))) }
}

fn value<T, P: Into<Problem>>(
    text: &str,
    cursor: &mut Cursor<'_, '_>,
    read: impl FnOnce(&str) -> Result<T, P>,
) -> Result<T, LocatedProblem> {
    let Some((written, place)) = cursor.value(text) else {
        return Err(with_example(cursor.expected("a value")));
    };
    read(written).map_err(|problem| (problem.into(), place))
}

fn number(text: &str) -> Result<f64, Problem> {
    let number = text.parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0);
    number.ok_or_else(|| Problem::new(format!("`{text}` is not a number")).hint("errors < 10, errors < 1%"))
}

impl fmt::Display for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text.trim())
    }
}

impl Criterion {
    /// Returns an error if a name is not a group, an operation of the workload or a command.
    pub fn check(&self, operations: &[String]) -> Result<(), CriterionError> {
        for condition in &self.conditions {
            let CriterionTerm::Time { of, place, .. } = condition else { continue };
            let known = is_total(of)
                || group(of).is_some()
                || operations.iter().any(|name| name.eq_ignore_ascii_case(of))
                || Command::known().any(|command| is_command(command, of));
            if !known {
                let groups = CommandGroup::ALL.iter().map(|group| group.name());
                let names: Vec<&str> = groups.chain(operations.iter().map(String::as_str)).collect();
                let problem = format!("`{of}` is neither total nor one of {}, nor a command", names.join(", "));
                return Err(Problem::new(problem).at(&self.text, place.clone()));
            }
        }
        Ok(())
    }

    pub fn needs_scenarios(&self) -> bool {
        self.conditions.iter().any(|condition| matches!(condition, CriterionTerm::Overload { .. }))
    }

    /// Evaluates a result. A figure from too few commands proves nothing, so its condition fails.
    pub fn judge(&self, run: &LoadPointResult) -> CriterionResult {
        let judged: Vec<(bool, String)> = self.conditions.iter().map(|condition| condition.judge(run)).collect();
        let met = judged.iter().all(|(met, _)| *met);
        CriterionResult { met, found: judged.into_iter().map(|(_, found)| found).collect() }
    }
}

impl CriterionTerm {
    fn judge(&self, run: &LoadPointResult) -> (bool, String) {
        let seconds = run.duration.as_secs_f64().max(f64::MIN_POSITIVE);
        let operations: u64 = run.operations.iter().map(|operation| operation.service.count()).sum();
        let failed: u64 = run.operations.iter().flat_map(|operation| operation.unexpected.values()).sum::<u64>()
            + run.failures.values().sum::<u64>();
        match self {
            CriterionTerm::Time { figure, of, below, .. } => {
                let figures = figures_of(run, of);
                let value = figure.value_in(&figures);
                let found = match value {
                    Some(value) => value.to_string(),
                    None => format!("too few commands to tell ({})", figures.count),
                };
                let what = format!("{}({of}) < {below}: {found}", figure.name());
                (value.is_some_and(|value| value < *below), what)
            }
            CriterionTerm::ErrorShare { below } => {
                let all = operations + run.failures.values().sum::<u64>();
                let share = failed as f64 / all.max(1) as f64;
                (share < *below, format!("errors < {}%: {:.2}%", below * 100.0, share * 100.0))
            }
            CriterionTerm::Errors { below } => ((failed as f64) < *below, format!("errors < {below}: {failed}")),
            CriterionTerm::Overload { below } => {
                let share = run.overload.as_ref().map(OverloadTally::share);
                let found = share.map_or_else(|| "no scenarios".to_owned(), |share| format!("{:.2}%", share * 100.0));
                (share.is_some_and(|share| share < *below), format!("overload < {}%: {found}", below * 100.0))
            }
            CriterionTerm::Operations { above } => {
                let rate = operations as f64 / seconds;
                (rate > *above, format!("ops > {above}: {rate:.1}"))
            }
            CriterionTerm::Throughput { above } => {
                let rate = (run.bytes_read + run.bytes_written) as f64 / seconds;
                let (unit, factor) = if *above >= 1e5 { ("MB", 1e6) } else { ("KB", 1e3) };
                let [asked, found] =
                    [*above, rate].map(|rate| format!("{} {unit}/s", (rate / factor * 100.0).round() / 100.0));
                (rate > *above, format!("throughput > {asked}: {found}"))
            }
        }
    }
}

fn is_total(of: &str) -> bool {
    of.eq_ignore_ascii_case("total")
}

fn group(of: &str) -> Option<CommandGroup> {
    CommandGroup::ALL.into_iter().find(|group| group.name().eq_ignore_ascii_case(of))
}

fn is_command(command: Command, of: &str) -> bool {
    command.to_string().eq_ignore_ascii_case(of)
}

fn figures_of(run: &LoadPointResult, of: &str) -> DurationStatistics {
    if is_total(of) {
        // In an open loop, a user's wait starts when the operation is due.
        return run.due.as_ref().map_or_else(|| run.total().figures(), Summary::figures);
    }
    if let Some(group) = group(of) {
        return run.group(group).figures();
    }
    if let Some(operation) = run.operations.iter().find(|operation| operation.name.eq_ignore_ascii_case(of)) {
        return operation.response.as_ref().unwrap_or(&operation.service).figures();
    }
    run.counted.response_times(|(command, _, group)| group.in_headline() && is_command(*command, of)).figures()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<CriterionTerm> {
        text.parse::<Criterion>().unwrap().conditions
    }

    fn problem(text: &str) -> String {
        text.parse::<Criterion>().unwrap_err().to_string()
    }

    #[test]
    fn conditions_are_joined_by_and() {
        let expected = [
            CriterionTerm::Time {
                figure: TimeFigure::P95,
                of: "Read".to_owned(),
                place: 4..8,
                below: Nanos(20_000_000),
            },
            CriterionTerm::ErrorShare { below: 0.01 },
            CriterionTerm::Overload { below: 0.005 },
            CriterionTerm::Operations { above: 500.0 },
            CriterionTerm::Throughput { above: 1.5e6 },
        ];
        assert_eq!(
            parsed("p95(Read) < 20ms and errors < 1% and overload < 0.5% and ops > 500/s AND throughput > 1.5 MB/s"),
            expected
        );
        let of = |text: &str| match parsed(text).as_slice() {
            [CriterionTerm::Time { figure, of, below, .. }] => (*figure, of.clone(), below.0),
            other => panic!("{other:?}"),
        };
        assert_eq!(of("mean(total)<250us"), (TimeFigure::Mean, "total".to_owned(), 250_000));
        assert_eq!(
            of("p999( Expand and copy ) < 1.5 s"),
            (TimeFigure::P999, "Expand and copy".to_owned(), 1_500_000_000)
        );
        assert_eq!(of("p50('a = b') < 1s"), (TimeFigure::P50, "a = b".to_owned(), 1_000_000_000));
        assert_eq!(of("max(Copy (large)) < 2s"), (TimeFigure::Max, "Copy (large)".to_owned(), 2_000_000_000));
    }

    #[test]
    fn what_is_wrong_is_said_with_an_example() {
        assert_eq!(
            problem("p95(Read) < 20"),
            "character 13: expected a duration, such as 50ms, 1.5s, 200us or 2min; a time needs its unit: did you mean \
             20ms?\n  p95(Read) < 20\n              ^^"
        );
        assert!("p95(Read) < 1min".parse::<Criterion>().is_ok());
        for (text, expected) in [
            ("p95 < 20ms", "character 5: `p95` needs a command or group; p95(total), p95(Read)"),
            ("p95() < 20ms", "character 4: `p95` needs a command or group; p95(total), p95(Read)"),
            ("p42(Read) < 20ms", "character 1: `p42` is none of mean, max, p50, p90, p95, p99, p999, errors, overload"),
            ("p95(Read < 20ms", "character 4: the parenthesis is not closed; write conditions such as p95(Read)"),
            ("p95(Read) > 20ms", "character 11: expected `<`, found `>`; write conditions such as"),
            ("p95(Read) <= 20ms", "character 11: expected `<`, found `<=`"),
            ("ops < 5", "character 5: expected `>`, found `<`"),
            ("overload < 5", "character 12: expected a percentage, such as 80% or 0.5%"),
            ("errors < few", "character 10: `few` is not a number; errors < 10, errors < 1%"),
            ("errors <", "character 9: expected a value, found the end"),
            ("p95(Read)", "character 10: expected `<`, found the end"),
            ("latency < 3", "character 1: `latency` is none of"),
            ("", "character 1: expected a figure, found the end"),
            ("ops > 5 and", "character 12: expected a figure, found the end"),
            ("ops > 5, errors < 1", "character 8: expected `and` or the end, found `,`"),
        ] {
            assert!(problem(text).starts_with(expected), "{}", problem(text));
        }
    }

    #[test]
    fn names_must_be_known() {
        let names = ["Write a page".to_owned()];
        let check = |text: &str| text.parse::<Criterion>().unwrap().check(&names);
        for known in ["total", "read", "Open/Close", "QUERY_DIRECTORY", "SMB_COM_READ_ANDX", "write a page"] {
            assert_eq!(check(&format!("p50({known}) < 1ms")), Ok(()), "{known}");
        }
        let unknown = check("p50(Raed) < 1ms").unwrap_err().to_string();
        assert!(unknown.contains("`Raed` is neither total nor one of Open/Close, Attributes"), "{unknown}");
    }
}
