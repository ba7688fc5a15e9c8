//! What a server must achieve: `p95(Read) < 20ms and errors < 1%`.
//!
//! A criterion is one or several conditions joined by `and`:
//!
//! - `FIGURE(WHAT) < TIME`: `mean`, `max`, `p50`, `p90`, `p95`, `p99` or `p999` of the response time of a group (`Read`,
//!   `Open/Close` …), of a command (`QUERY_DIRECTORY`), of an operation of the workload, or of the `total`. A name is looked
//!   for in this order: total, groups, operations, commands. In an open loop the total, which is that of the operations
//!   then, and operations are measured from their intended start; groups and commands are times in the server. TIME is a number with `ns`, `us`, `ms` or `s`.
//! - `errors < 1%` or `errors < 10`: operations that failed, with another status than the expected one or because their
//!   session broke, as a share of all or as a number.
//! - `ops > 500`: operations of the workload a second.
//! - `throughput > 100MB/s`: bytes read and written a second, with `B`, `KB`, `MB`, `GB`, `KiB`, `MiB` or `GiB`.

use super::result::Run;
use smbscope_model::units;
use smbscope_model::{Command, Group, Nanos};
use smbscope_stats::{Figures, Limit, Summary};
use std::fmt;
use std::str::FromStr;

/// Conditions that must all hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Criterion {
    text: String,
    conditions: Vec<Condition>,
}

#[derive(Debug, Clone, PartialEq)]
enum Condition {
    Time { figure: Figure, of: String, below: Nanos },
    ErrorShare { below: f64 },
    Errors { below: f64 },
    Operations { above: f64 },
    Throughput { above: f64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Figure {
    Mean,
    Max,
    P50,
    P90,
    P95,
    P99,
    P999,
}

const FIGURES: [(&str, Figure); 7] = [
    ("mean", Figure::Mean),
    ("max", Figure::Max),
    ("p50", Figure::P50),
    ("p90", Figure::P90),
    ("p95", Figure::P95),
    ("p99", Figure::P99),
    ("p999", Figure::P999),
];

/// What is wrong with a criterion.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}`: {problem}; write conditions such as p95(Read) < 20ms and errors < 1%")]
pub struct CriterionError {
    given: String,
    problem: String,
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CriterionResult {
    /// All conditions hold.
    pub met: bool,
    /// Each condition with what was found: `p95(Read) < 20ms: 12.3 ms`.
    pub found: Vec<String>,
}

impl FromStr for Criterion {
    type Err = CriterionError;

    fn from_str(text: &str) -> Result<Criterion, CriterionError> {
        let error = |problem: String| CriterionError { given: text.to_owned(), problem };
        let conditions = split_and(text).into_iter().map(condition).collect::<Result<Vec<_>, _>>().map_err(error)?;
        Ok(Criterion { text: text.trim().to_owned(), conditions })
    }
}

/// The parts between words `and`; names in parentheses may hold that word.
fn split_and(text: &str) -> Vec<&str> {
    let (mut parts, mut begin, mut depth) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ if depth == 0 && c.is_whitespace() => {
                let behind = at + c.len_utf8();
                let word = text[behind..].split(char::is_whitespace).next().unwrap_or_default();
                if word.eq_ignore_ascii_case("and") {
                    parts.push(&text[begin..at]);
                    begin = behind + word.len();
                }
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    parts
}

fn condition(text: &str) -> Result<Condition, String> {
    let text = text.trim();
    let at = text.find(['<', '>']).ok_or_else(|| format!("`{text}` has no `<` or `>`"))?;
    let (left, right) = (text[..at].trim(), text[at + 1..].trim());
    let less = text.as_bytes().get(at) == Some(&b'<');
    if right.starts_with('=') {
        return Err("there is no `<=` or `>=`".to_owned());
    }
    let must = |wanted: bool| {
        let sign = if less { '>' } else { '<' };
        if less == wanted { Ok(()) } else { Err(format!("`{left}` is compared by `{sign}`")) }
    };
    if let Some((name, of)) = left.split_once('(') {
        let of = of.strip_suffix(')').ok_or_else(|| format!("`{left}` has no `)`"))?.trim();
        let known = FIGURES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name.trim()));
        let figure = known.ok_or_else(|| format!("`{}` is none of {}", name.trim(), names(&FIGURES)))?.1;
        if of.is_empty() {
            return Err(format!("`{left}` does not say of what"));
        }
        must(true)?;
        let below = units::duration(right)?;
        return Ok(Condition::Time { figure, of: of.to_owned(), below });
    }
    match left.to_ascii_lowercase().as_str() {
        "errors" => {
            must(true)?;
            match right.ends_with('%') {
                true => Ok(Condition::ErrorShare { below: units::percentage(right)? }),
                false => Ok(Condition::Errors { below: number(right)? }),
            }
        }
        "ops" | "operations" => {
            must(false)?;
            Ok(Condition::Operations { above: units::rate(right)? })
        }
        "throughput" => {
            must(false)?;
            Ok(Condition::Throughput { above: units::byte_rate(right)? as f64 })
        }
        _ if FIGURES.iter().any(|(known, _)| known.eq_ignore_ascii_case(left)) => {
            Err(format!("`{left}` needs to say of what: {left}(total), {left}(Read)"))
        }
        _ => Err(format!("`{left}` is none of {}, errors, ops, throughput", names(&FIGURES))),
    }
}

fn names(figures: &[(&str, Figure)]) -> String {
    figures.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

fn number(text: &str) -> Result<f64, String> {
    let text = text.trim();
    text.parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0).ok_or_else(|| format!("`{text}` is no number"))
}

impl fmt::Display for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Criterion {
    /// Refuses names that neither a group, an operation of the workload nor a command has.
    pub fn check(&self, operations: &[String]) -> Result<(), CriterionError> {
        for condition in &self.conditions {
            let Condition::Time { of, .. } = condition else { continue };
            let known = is_total(of)
                || group(of).is_some()
                || operations.iter().any(|name| name.eq_ignore_ascii_case(of))
                || Command::known().any(|command| is_command(command, of));
            if !known {
                let groups = Group::ALL.iter().map(|group| group.name());
                let names: Vec<&str> = groups.chain(operations.iter().map(String::as_str)).collect();
                let problem = format!("`{of}` is neither total nor one of {}, nor a command", names.join(", "));
                return Err(CriterionError { given: self.text.clone(), problem });
            }
        }
        Ok(())
    }

    /// What a run came to. A figure that too few commands support is no proof, so its condition does not hold.
    pub fn judge(&self, run: &Run) -> CriterionResult {
        let judged: Vec<(bool, String)> = self.conditions.iter().map(|condition| condition.judge(run)).collect();
        let met = judged.iter().all(|(met, _)| *met);
        CriterionResult { met, found: judged.into_iter().map(|(_, found)| found).collect() }
    }
}

impl Condition {
    fn judge(&self, run: &Run) -> (bool, String) {
        let seconds = run.duration.as_secs_f64().max(f64::MIN_POSITIVE);
        let operations: u64 = run.operations.iter().map(|operation| operation.service.count()).sum();
        let failed: u64 = run.operations.iter().flat_map(|operation| operation.unexpected.values()).sum::<u64>()
            + run.failures.values().sum::<u64>();
        match self {
            Condition::Time { figure, of, below } => {
                let figures = figures_of(run, of);
                let value = figure.of(&figures);
                let found = match value {
                    Some(value) => value.to_string(),
                    None => format!("too few commands to tell ({})", figures.count),
                };
                let what = format!("{}({of}) < {below}: {found}", figure.name());
                (value.is_some_and(|value| value < *below), what)
            }
            Condition::ErrorShare { below } => {
                let all = operations + run.failures.values().sum::<u64>();
                let share = failed as f64 / all.max(1) as f64;
                (share < *below, format!("errors < {}%: {:.2}%", below * 100.0, share * 100.0))
            }
            Condition::Errors { below } => ((failed as f64) < *below, format!("errors < {below}: {failed}")),
            Condition::Operations { above } => {
                let rate = operations as f64 / seconds;
                (rate > *above, format!("ops > {above}: {rate:.1}"))
            }
            Condition::Throughput { above } => {
                let rate = (run.bytes_read + run.bytes_written) as f64 / seconds;
                let (unit, factor) = if *above >= 1e5 { ("MB", 1e6) } else { ("KB", 1e3) };
                let [asked, found] =
                    [*above, rate].map(|rate| format!("{} {unit}/s", (rate / factor * 100.0).round() / 100.0));
                (rate > *above, format!("throughput > {asked}: {found}"))
            }
        }
    }
}

impl Figure {
    fn name(self) -> &'static str {
        FIGURES.iter().find(|(_, figure)| *figure == self).map_or("", |(name, _)| name)
    }

    fn of(self, figures: &Figures) -> Option<Nanos> {
        match self {
            Figure::Mean => figures.mean,
            Figure::Max => figures.max,
            Figure::P50 => figures.p50,
            Figure::P90 => figures.p90,
            Figure::P95 => figures.p95,
            Figure::P99 => figures.p99,
            Figure::P999 => figures.p999,
        }
    }
}

fn is_total(of: &str) -> bool {
    of.eq_ignore_ascii_case("total")
}

fn group(of: &str) -> Option<Group> {
    Group::ALL.into_iter().find(|group| group.name().eq_ignore_ascii_case(of))
}

fn is_command(command: Command, of: &str) -> bool {
    command.to_string().eq_ignore_ascii_case(of)
}

/// Response times of what a name stands for.
fn figures_of(run: &Run, of: &str) -> Figures {
    if is_total(of) {
        // In an open loop what users wait begins when an operation is due.
        return run.due.as_ref().unwrap_or(&run.total).figures();
    }
    if let Some(group) = group(of) {
        return run.groups.get(&group).map(Summary::figures).unwrap_or_default();
    }
    if let Some(operation) = run.operations.iter().find(|operation| operation.name.eq_ignore_ascii_case(of)) {
        return operation.response.as_ref().unwrap_or(&operation.service).figures();
    }
    let mut all = Summary::new(Limit::ROW);
    let mine = run.commands.iter().filter(|((command, _, group), _)| group.in_headline() && is_command(*command, of));
    mine.for_each(|(_, counted)| all.merge(&counted.response_time));
    all.figures()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<Condition> {
        text.parse::<Criterion>().unwrap().conditions
    }

    fn problem(text: &str) -> String {
        text.parse::<Criterion>().unwrap_err().to_string()
    }

    #[test]
    fn conditions_are_joined_by_and() {
        let expected = [
            Condition::Time { figure: Figure::P95, of: "Read".to_owned(), below: Nanos(20_000_000) },
            Condition::ErrorShare { below: 0.01 },
            Condition::Operations { above: 500.0 },
            Condition::Throughput { above: 1.5e6 },
        ];
        assert_eq!(parsed("p95(Read) < 20ms and errors < 1% and ops > 500/s AND throughput > 1.5 MB/s"), expected);
        let time = |figure, of: &str, below| vec![Condition::Time { figure, of: of.to_owned(), below: Nanos(below) }];
        assert_eq!(parsed("mean(total)<250us"), time(Figure::Mean, "total", 250_000));
        assert_eq!(parsed("p999( Expand and copy ) < 1.5 s").len(), 1);
    }

    #[test]
    fn what_is_wrong_is_said_with_an_example() {
        assert_eq!(
            problem("p95(Read) < 20"),
            "`p95(Read) < 20`: expected a duration, such as 50ms, 1.5s, 200us or 2min; a time needs its unit: did you \
             mean 20ms?; write conditions such as p95(Read) < 20ms and errors < 1%"
        );
        assert!("p95(Read) < 1min".parse::<Criterion>().is_ok());
        assert!(problem("p95 < 20ms").contains("`p95` needs to say of what: p95(total), p95(Read)"));
        assert!(problem("p42(Read) < 20ms").contains("`p42` is none of mean, max, p50"));
        assert!(problem("p95(Read < 20ms").contains("`p95(Read` has no `)`"));
        assert!(problem("p95(Read) > 20ms").contains("`p95(Read)` is compared by `<`"));
        assert!(problem("ops < 5").contains("`ops` is compared by `>`"));
        assert!(problem("p95(Read) <= 20ms").contains("there is no `<=`"));
        assert!(problem("errors < few").contains("`few` is no number"));
        assert!(problem("p95(Read)").contains("has no `<`"));
        assert!(problem("latency < 3").contains("`latency` is none of"));
        assert!(problem("").contains("has no `<`"));
        assert!(problem("ops > 5 and").contains("`` has no `<`"));
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
