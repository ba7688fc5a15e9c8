//! Conditions on one report, which make a pipeline fail: `answer.culprit == server`, `READ.p95 > 20ms`.
//!
//! | condition | meaning |
//! |---|---|
//! | `answer.culprit == server`, `!=` | the culprit |
//! | `answer.cause == slow-storage`, `!=` | any cause with this ID |
//! | `answer.lost > 2s` | longest lost time of any cause |
//! | `not_timed > 5%` | share of commands that could not be timed |
//! | `READ.p95 > 20ms`, `p95(READ) > 20ms` | response times of a command, a group or the total, see [`Measure`] |
//! | `READ.count > 1000`, `total.errors > 0` | commands and error responses |
//! | `commands < 100/s`, `throughput < 10MB/s` | rates |
//!
//! Names are looked up with exact case first, then ignoring case: `READ` is the command and `Read` the group.

use crate::compare::ComparableReport;
use crate::compare::{Judged, Judgement};
use crate::format::{clean, rate, thousands};
use crate::{Culprit, Report, names};
use smbscope_diagnose::Catalogue;
use smbscope_model::prose::NO_BREAK;
use smbscope_model::{Command, Nanos, units};
use smbscope_stats::filter::tokens::{Cursor, LocatedProblem, Token, TokenKind, tokens};
use smbscope_stats::filter::{FilterError, Problem, did_you_mean};
use smbscope_stats::{CommandStatistics, Measure};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

const EXAMPLE: &str = "write conditions such as 'answer.culprit == server' or 'READ.p95 > 20ms'";
/// Measures other than response times that a report supports.
const MEASURES: [&str; 4] = ["count", "errors", "commands", "throughput"];
const ANSWER: [&str; 3] = ["answer.culprit", "answer.cause", "answer.lost"];
const NOT_TIMED: &str = "not_timed";

#[derive(Debug, Clone, PartialEq)]
pub struct FailIf {
    text: String,
    check: Check,
}

#[derive(Debug, Clone, PartialEq)]
enum Check {
    Culprit { equal: bool, culprit: Culprit },
    Cause { equal: bool, id: String },
    Number { of: Number, above: bool, limit: f64 },
}

/// Left side of a comparison. Times are in nanoseconds, shares in percent, rates per second.
#[derive(Debug, Clone, PartialEq)]
enum Number {
    Lost,
    NotTimed,
    Measure(Measure),
}

impl FromStr for FailIf {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<FailIf, FilterError> {
        let check = tokens(text).and_then(|tokens| check(text, &mut Cursor::new(text, &tokens)));
        let check = check.map_err(|(problem, place)| problem.at(text, place))?;
        Ok(FailIf { text: text.trim().to_owned(), check })
    }
}

impl fmt::Display for FailIf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn check(text: &str, cursor: &mut Cursor<'_, '_>) -> Result<Check, LocatedProblem> {
    let check = match cursor.peek() {
        Some(Token { kind: TokenKind::Word(word), place }) if starts_with_answer(word) => {
            cursor.skip();
            answer(text, word, place, cursor)?
        }
        Some(Token { kind: TokenKind::Word(word), .. }) if word.eq_ignore_ascii_case(NOT_TIMED) => {
            cursor.skip();
            number(text, Number::NotTimed, cursor)?
        }
        _ => {
            let (measure, place) = Measure::take(text, cursor, &MEASURES, EXAMPLE)?;
            if let Measure::Time(_, of) | Measure::Count(of) | Measure::ErrorsOf(of) = &measure {
                refuse_unknown(of, place)?;
            }
            number(text, Number::Measure(measure), cursor)?
        }
    };
    match cursor.peek() {
        None => Ok(check),
        Some(_) => Err(with_example(cursor.expected("the end"))),
    }
}

fn starts_with_answer(word: &str) -> bool {
    word.split('.').next().is_some_and(|first| first.eq_ignore_ascii_case("answer"))
}

fn answer(text: &str, word: &str, place: &Range<usize>, cursor: &mut Cursor<'_, '_>) -> Result<Check, LocatedProblem> {
    let field = ANSWER.into_iter().find(|field| field.eq_ignore_ascii_case(word));
    match field {
        Some("answer.lost") => number(text, Number::Lost, cursor),
        Some("answer.culprit") => {
            let equal = equality(cursor)?;
            let (key, place) = operand("who has to act", cursor)?;
            let culprit = Culprit::ALL.into_iter().find(|culprit| culprit.key().eq_ignore_ascii_case(&key));
            let culprit = culprit.ok_or_else(|| {
                let keys = Culprit::ALL.map(Culprit::key);
                let problem = Problem::new(format!("`{key}` is none of {}", keys.join(", ")));
                (problem.maybe(did_you_mean(&key, keys)), place)
            })?;
            Ok(Check::Culprit { equal, culprit })
        }
        Some(_) => {
            let equal = equality(cursor)?;
            let (key, place) = operand("a cause", cursor)?;
            let catalogue = Catalogue::default();
            let mut ids = catalogue.entries().map(|(id, _)| id);
            let id = ids.find(|id| id.eq_ignore_ascii_case(&key)).map(str::to_owned).ok_or_else(|| {
                let problem = Problem::new(format!("`{key}` is not a cause")).hint("`smbscope help causes` lists all");
                (problem.maybe(did_you_mean(&key, catalogue.entries().map(|(id, _)| id))), place)
            })?;
            Ok(Check::Cause { equal, id })
        }
        None => {
            let problem = Problem::new(format!("`{word}` is none of {}", ANSWER.join(", "))).hint(EXAMPLE);
            Err((problem.maybe(did_you_mean(word, ANSWER)), place.clone()))
        }
    }
}

fn equality(cursor: &mut Cursor<'_, '_>) -> Result<bool, LocatedProblem> {
    match (cursor.sign("=="), cursor.sign("!=")) {
        (true, _) => Ok(true),
        (_, true) => Ok(false),
        _ => Err(with_example(cursor.expected("`==` or `!=`"))),
    }
}

fn operand(what: &str, cursor: &mut Cursor<'_, '_>) -> Result<(String, Range<usize>), LocatedProblem> {
    let (key, place) = match cursor.peek() {
        Some(Token { kind: TokenKind::Word(word), place }) => ((*word).to_owned(), place.clone()),
        Some(Token { kind: TokenKind::Quoted(quoted), place }) => (quoted.to_string(), place.clone()),
        _ => return Err(with_example(cursor.expected(what))),
    };
    cursor.skip();
    Ok((key, place))
}

fn number(text: &str, of: Number, cursor: &mut Cursor<'_, '_>) -> Result<Check, LocatedProblem> {
    let above = cursor.sign(">");
    if !above && !cursor.sign("<") {
        return Err(with_example(cursor.expected("`>` or `<`")));
    }
    let Some((written, place)) = cursor.value(text) else { return Err(with_example(cursor.expected("a limit"))) };
    let limit = of.limit(written).map_err(|problem| (problem, place))?;
    Ok(Check::Number { of, above, limit })
}

fn with_example((problem, place): LocatedProblem) -> LocatedProblem {
    (problem.hint(EXAMPLE), place)
}

/// Returns the names of all possible rows: the total, groups, and commands with and without `SMB_COM_`.
fn known_names() -> impl Iterator<Item = String> {
    let groups = names::groups().map(|(name, ..)| name.to_owned());
    let commands = Command::known().flat_map(|command| [command.to_string(), names::command(command)]);
    std::iter::once(TOTAL.to_owned()).chain(groups).chain(commands)
}

const TOTAL: &str = "total";

fn refuse_unknown(name: &str, place: Range<usize>) -> Result<(), LocatedProblem> {
    // Commands without a name are written in hexadecimal.
    let is_code = name.strip_prefix("0x").is_some_and(|digits| u16::from_str_radix(digits, 16).is_ok());
    let known: Vec<String> = known_names().collect();
    if is_code || known.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        return Ok(());
    }
    let problem = Problem::new(format!("`{name}` is neither a command nor a group nor `{TOTAL}`"));
    Err((problem.maybe(did_you_mean(name, known.iter().map(String::as_str))), place))
}

impl FailIf {
    /// Returns true if the condition tests the answer, which a report without diagnosis does not have.
    pub fn needs_answer(&self) -> bool {
        match &self.check {
            Check::Culprit { .. } | Check::Cause { .. } => true,
            Check::Number { of, .. } => *of == Number::Lost,
        }
    }

    pub fn judge(&self, report: &Report) -> Judgement {
        let (judged, found) = match &self.check {
            Check::Culprit { equal, culprit } => {
                let found = report.explanation.answer.culprit;
                (holds((found == *culprit) == *equal), format!("the culprit is {}", found.key()))
            }
            Check::Cause { equal, id } => {
                let causes = &report.explanation.answer.causes;
                let cause = causes.iter().find(|cause| cause.id == *id);
                let found = match cause {
                    Some(cause) if cause.cost.is_empty() => cause.title.clone(),
                    Some(cause) => format!("{}: {}", cause.title, cause.cost.trim_end_matches('.')),
                    None if causes.is_empty() => "no cause was found".to_owned(),
                    None => {
                        let ids: Vec<&str> = causes.iter().map(|cause| cause.id.as_str()).collect();
                        format!("the causes are {}", ids.join(", "))
                    }
                };
                (holds(cause.is_some() == *equal), found)
            }
            Check::Number { of, above, limit } => match of.value(report) {
                Ok(value) => {
                    let holds = holds(if *above { value > *limit } else { value < *limit });
                    (holds, format!("{}, limit {}", of.shown(value), of.shown(*limit)))
                }
                Err(why) => (Judged::Undecided, format!("no such figure: {why}")),
            },
        };
        let condition = match judged {
            Judged::Holds | Judged::Undecided => self.text.clone(),
            Judged::DoesNotHold => format!("{} does not hold", self.text),
        };
        let text = format!("{condition}: {found}").replace(NO_BREAK, " ");
        Judgement { condition: self.text.clone(), name: name(report), judged, text }
    }
}

fn holds(holds: bool) -> Judged {
    if holds { Judged::Holds } else { Judged::DoesNotHold }
}

fn name(report: &Report) -> String {
    let capture = || report.captures.first().map(|capture| capture.name.clone());
    clean(&report.title.clone().or_else(capture).unwrap_or_default())
}

impl Number {
    fn limit(&self, text: &str) -> Result<f64, Problem> {
        Ok(match self {
            Number::Lost | Number::Measure(Measure::Time(..)) => units::time(text)?.as_nanos() as f64,
            Number::NotTimed => units::percentage(text)? * 100.0,
            Number::Measure(Measure::Commands) => units::rate(text)?,
            Number::Measure(Measure::Throughput) => units::byte_rate(text)? as f64,
            Number::Measure(_) => text
                .parse::<u64>()
                .map_err(|_| Problem::new(format!("`{text}` is not a number")).hint("write counts such as 0 or 1000"))?
                as f64,
        })
    }

    fn shown(&self, value: f64) -> String {
        match self {
            Number::Lost | Number::Measure(Measure::Time(..)) => Nanos(value as i64).to_string(),
            Number::NotTimed => format!("{}%", (value * 100.0).round() / 100.0),
            Number::Measure(Measure::Commands) => format!("{}/s", rate(value)),
            Number::Measure(Measure::Throughput) => format!("{}/s", units::short_bytes(value)),
            Number::Measure(_) => thousands(value as u64),
        }
    }

    fn value(&self, report: &Report) -> Result<f64, String> {
        match self {
            Number::NotTimed => Ok(report.not_timed().percent),
            Number::Lost => {
                let causes = &report.explanation.answer.causes;
                let lost = causes.iter().filter_map(|cause| cause.lost_ns).map(|lost| lost.best.0).max();
                match lost {
                    None if !causes.is_empty() => Err("the capture does not show how long the causes took".to_owned()),
                    lost => Ok(lost.unwrap_or(0) as f64),
                }
            }
            Number::Measure(Measure::Time(figure, of)) => {
                let row = row(report, of).ok_or_else(|| absent(report, of))?;
                let times = &row.response_time;
                figure.value_in(times).map(|time| time.0 as f64).ok_or_else(|| match times.count {
                    0 => format!("no {of} was timed"),
                    few => format!("{} timed {of} are too few for {}", thousands(few), figure.name()),
                })
            }
            Number::Measure(Measure::Count(of)) => Ok(row(report, of).map_or(0, |row| row.count) as f64),
            Number::Measure(Measure::ErrorsOf(of)) => Ok(row(report, of).map_or(0, CommandStatistics::errors) as f64),
            Number::Measure(Measure::Errors) => Ok(report.aggregate.errors as f64),
            // `commands` and `throughput`, which comparisons compute.
            Number::Measure(measure) => ComparableReport::from_report(report)
                .value(measure)
                .ok_or_else(|| "the capture has no duration".to_owned()),
        }
    }
}

fn absent(report: &Report, of: &str) -> String {
    let waits = report.aggregate.commands.iter().any(|row| row.waiting && is_command(row.command, of));
    match waits {
        true => format!("every {of} was an expected wait; the group Waiting holds those"),
        false => format!("the capture has no {of}"),
    }
}

/// Finds the row of the total, of a group, or of a command without its expected waits. Tries the exact case first.
fn row<'a>(report: &'a Report, name: &str) -> Option<&'a CommandStatistics> {
    let aggregate = &report.aggregate;
    let find = |is: &dyn Fn(&str) -> bool| {
        let total = is(TOTAL).then_some(&aggregate.total);
        let group = || names::group_rows(aggregate).find(|(group, ..)| is(group)).map(|(.., row)| row);
        let mut commands = aggregate.commands.iter().filter(|row| !row.waiting);
        // Try the full name first: NEGOTIATE is a command of SMB2, and the short name of SMB_COM_NEGOTIATE.
        let full = commands.clone().find(|row| is(&row.command.to_string()));
        let command = || full.or_else(|| commands.find(|row| is(&names::command(row.command)))).map(|found| &found.row);
        total.or_else(group).or_else(command)
    };
    find(&|known| known == name).or_else(|| find(&|known| known.eq_ignore_ascii_case(name)))
}

fn is_command(command: Command, name: &str) -> bool {
    [command.to_string(), names::command(command)].iter().any(|known| known.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests;
