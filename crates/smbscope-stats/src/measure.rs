//! Names of measures in conditions, studies and comparisons: `p95(Read)`, `mean(total)`, `throughput`.

use crate::DurationStatistics;
use crate::filter::tokens::{Cursor, LocatedProblem, Token, TokenKind, tokens};
use crate::filter::{FilterError, Problem, did_you_mean};
use smbscope_model::{Nanos, named};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Measure {
    Time(TimeFigure, String),
    Count(String),
    ErrorsOf(String),
    Errors,
    /// Open-loop scenarios that began late, exceeded their time budget or never began, in percent of those due.
    Overload,
    Operations,
    Commands,
    Throughput,
    /// Mean duration of a pass of the workload, from its first command to its last.
    Elapsed,
    /// Part of `Elapsed` during which a command was outstanding.
    Waited,
    Server(ServerFigure),
}

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ServerFigure {
        /// CPU time, in percent of all CPUs.
        Cpu = "server_cpu",
        /// CPU time of a private server's Samba, in percent of one CPU.
        Samba = "samba_cpu",
        /// Busy time of the busiest disk, in percent.
        DiskBusy = "disk_busy",
        /// Disk transfers queued or in service.
        DiskQueue = "disk_queue",
        /// Transfers of all disks per second.
        DiskOperations = "iops",
    }
}

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum TimeFigure {
        Mean = "mean",
        Max = "max",
        P50 = "p50",
        P90 = "p90",
        P95 = "p95",
        P99 = "p99",
        P999 = "p999",
    }
}

const OTHERS: [(&str, Measure); 13] = [
    (ERRORS, Measure::Errors),
    ("overload", Measure::Overload),
    ("ops", Measure::Operations),
    ("operations", Measure::Operations),
    ("commands", Measure::Commands),
    ("throughput", Measure::Throughput),
    ("elapsed", Measure::Elapsed),
    ("waited", Measure::Waited),
    ("server_cpu", Measure::Server(ServerFigure::Cpu)),
    ("samba_cpu", Measure::Server(ServerFigure::Samba)),
    ("disk_busy", Measure::Server(ServerFigure::DiskBusy)),
    ("disk_queue", Measure::Server(ServerFigure::DiskQueue)),
    ("iops", Measure::Server(ServerFigure::DiskOperations)),
];

const COUNT: &str = "count";
/// With a name, error responses to its commands; alone, failed operations.
const ERRORS: &str = "errors";

const EXAMPLE: &str = "write measures such as p95(Read), mean(total), commands or throughput";

impl TimeFigure {
    /// Returns the statistic, or `None` if there are too few commands for it.
    pub fn value_in(self, figures: &DurationStatistics) -> Option<Nanos> {
        match self {
            TimeFigure::Mean => figures.mean,
            TimeFigure::Max => figures.max,
            TimeFigure::P50 => figures.p50,
            TimeFigure::P90 => figures.p90,
            TimeFigure::P95 => figures.p95,
            TimeFigure::P99 => figures.p99,
            TimeFigure::P999 => figures.p999,
        }
    }
}

impl Measure {
    /// Parses `p95(Read)` or, equivalently, `Read.p95`. Returns the measure with the byte range of the name. `known`
    /// lists the measures besides response times; with `count`, `count` and `errors` of a name are supported as well.
    pub fn take(
        text: &str,
        cursor: &mut Cursor<'_, '_>,
        known: &[&str],
        example: &'static str,
    ) -> Result<(Measure, Range<usize>), LocatedProblem> {
        let Some(Token { kind: TokenKind::Word(name), place }) = cursor.peek() else {
            let (problem, place) = cursor.expected("a figure");
            return Err((problem.hint(example), place));
        };
        cursor.skip();
        if let Some(figure) = NamedFigure::find(name, known)
            && (figure != NamedFigure::Errors || cursor.peek().is_some_and(|token| token.kind == TokenKind::Open))
        {
            let (of, place) = parse_operand(text, figure.name(), cursor, example)?;
            return Ok((figure.named(of), place));
        }
        if let Some((of, figure)) = name.rsplit_once('.').filter(|(of, _)| !of.is_empty()) {
            let place = place.start..place.start + of.len();
            if let Some(figure) = NamedFigure::find(figure, known) {
                return Ok((figure.named(of.to_owned()), place));
            }
            let names: Vec<&str> = NamedFigure::all(known).map(NamedFigure::name).collect();
            let problem = Problem::new(format!("`{figure}` is none of {}", names.join(", ")));
            return Err((
                problem.hint(example).maybe(did_you_mean(figure, names)),
                place.end + 1..place.end + 1 + figure.len(),
            ));
        }
        let other = OTHERS.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        if let Some((_, measure)) = other.filter(|(_, measure)| known.contains(&measure.name())) {
            return Ok((measure, place.clone()));
        }
        let all: Vec<&str> = TimeFigure::ALL.iter().map(|figure| figure.name()).chain(known.iter().copied()).collect();
        let problem = Problem::new(format!("`{name}` is none of {}", all.join(", ")));
        Err((problem.hint(example).maybe(did_you_mean(name, all)), place.clone()))
    }

    fn name(&self) -> &'static str {
        OTHERS.iter().find(|(_, measure)| measure == self).map_or("", |(name, _)| name)
    }

    pub fn more_is_better(&self) -> bool {
        matches!(self, Measure::Operations | Measure::Commands | Measure::Throughput)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NamedFigure {
    Time(TimeFigure),
    Count,
    Errors,
}

impl NamedFigure {
    fn all(known: &[&str]) -> impl Iterator<Item = NamedFigure> {
        let counts = if known.contains(&COUNT) { &[NamedFigure::Count, NamedFigure::Errors][..] } else { &[] };
        TimeFigure::ALL.into_iter().map(NamedFigure::Time).chain(counts.iter().copied())
    }

    fn find(name: &str, known: &[&str]) -> Option<NamedFigure> {
        NamedFigure::all(known).find(|figure| figure.name().eq_ignore_ascii_case(name))
    }

    fn name(self) -> &'static str {
        match self {
            NamedFigure::Time(figure) => figure.name(),
            NamedFigure::Count => COUNT,
            NamedFigure::Errors => ERRORS,
        }
    }

    fn named(self, name: String) -> Measure {
        match self {
            NamedFigure::Time(figure) => Measure::Time(figure, name),
            NamedFigure::Count => Measure::Count(name),
            NamedFigure::Errors => Measure::ErrorsOf(name),
        }
    }
}

/// Parses the name in parentheses, which may contain blanks, balanced parentheses and, in quotes, any characters.
fn parse_operand(
    text: &str,
    figure: &str,
    cursor: &mut Cursor<'_, '_>,
    example: &'static str,
) -> Result<(String, Range<usize>), LocatedProblem> {
    let open = cursor.place();
    let opened = cursor.takes(&TokenKind::Open);
    let inside = cursor.rest();
    if !opened || inside.first().is_some_and(|token| token.kind == TokenKind::Close) {
        let problem = Problem::new(format!("`{figure}` needs a command or group"));
        return Err((problem.hint(format!("{figure}(total), {figure}(Read)")), open));
    }
    let mut depth = 1;
    let count = inside.iter().take_while(|token| {
        depth += i32::from(token.kind == TokenKind::Open) - i32::from(token.kind == TokenKind::Close);
        depth > 0
    });
    let count = count.count();
    if count == inside.len() {
        return Err((Problem::new("the parenthesis is not closed").hint(example), open.start..text.len()));
    }
    (0..=count).for_each(|_| cursor.skip());
    let place = inside[0].place.start..inside[count - 1].place.end;
    let of = match &inside[0].kind {
        TokenKind::Quoted(inner) if count == 1 => inner.to_string(),
        _ => text[place.clone()].to_owned(),
    };
    Ok((of, place))
}

impl FromStr for Measure {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Measure, FilterError> {
        let all = [COUNT, ERRORS, "overload", "ops", "commands", "throughput", "elapsed", "waited"];
        let all: Vec<&str> = all.into_iter().chain(ServerFigure::ALL.map(ServerFigure::name)).collect();
        let parsed = tokens(text).and_then(|tokens| {
            let mut cursor = Cursor::new(text, &tokens);
            let (measure, _) = Measure::take(text, &mut cursor, &all, EXAMPLE)?;
            match cursor.peek() {
                None => Ok(measure),
                Some(_) => Err(cursor.expected("the end")),
            }
        });
        parsed.map_err(|(problem, place)| problem.at(text, place))
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Measure::Time(figure, of) => write!(f, "{}({of})", figure.name()),
            Measure::Count(of) => write!(f, "{COUNT}({of})"),
            Measure::ErrorsOf(of) => write!(f, "{ERRORS}({of})"),
            other => f.write_str(other.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_read_as_they_are_written() {
        for text in [
            "p95(Read)",
            "mean(total)",
            "max(Copy (large))",
            "count(NEGOTIATE)",
            "ops",
            "commands",
            "throughput",
            "elapsed",
            "errors",
            "overload",
            "server_cpu",
            "disk_busy",
            "iops",
        ] {
            assert_eq!(text.parse::<Measure>().unwrap().to_string(), text);
        }
        assert_eq!("P50('a = b')".parse(), Ok(Measure::Time(TimeFigure::P50, "a = b".to_owned())));
        assert_eq!("Operations".parse(), Ok(Measure::Operations));
        assert_eq!("errors(READ)".parse(), Ok(Measure::ErrorsOf("READ".to_owned())));
    }

    #[test]
    fn a_name_with_a_figure_behind_a_point_is_the_same_measure() {
        for (text, same) in [
            ("Read.p95", "p95(Read)"),
            ("Open/Close.MAX", "max(Open/Close)"),
            ("budget.xlsx.p50", "p50(budget.xlsx)"),
            ("READ.count", "count(READ)"),
            ("READ.errors", "errors(READ)"),
        ] {
            assert_eq!(text.parse::<Measure>(), same.parse(), "{text}");
        }
    }

    #[test]
    fn what_is_no_measure_is_told_with_an_example() {
        let problem = |text: &str| text.parse::<Measure>().unwrap_err().to_string();
        for (text, expected) in [
            ("p95", "character 4: `p95` needs a command or group; p95(total), p95(Read)"),
            (
                "p42(Read)",
                "character 1: `p42` is none of mean, max, p50, p90, p95, p99, p999, count, errors, overload, ops, commands",
            ),
            ("p95(Read) < 1ms", "character 11: expected the end"),
            (
                "READ.p59",
                "character 6: `p59` is none of mean, max, p50, p90, p95, p99, p999, count, errors; did you mean p50?",
            ),
            (".p95", "character 1: `.p95` is none of"),
            ("p95(Read", "character 4: the parenthesis is not closed; write measures such as"),
            ("", "character 1: expected a figure"),
        ] {
            assert!(problem(text).starts_with(expected), "{}", problem(text));
        }
    }
}
