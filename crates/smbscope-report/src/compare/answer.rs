//! Conclusions of a comparison: for each column but the baseline, change, cost, certainty and suggested commands.

use super::{ComparedCommand, Comparison, ComparisonCell, ComparisonColumn, Conclusion, FEW, NoteKind, Ratio};
use crate::format::{clean, counted, unbroken};
use crate::{Answer, Cause, Culprit};
use serde::Serialize;
use smbscope_diagnose::next::{SuggestedCommand, file, quoted};
use smbscope_model::Nanos;
use smbscope_stats::replication::Scope;

/// Smallest ratio reported as a change: 5%.
const CHANGE: f64 = 1.05;
const NAMED_MAX: usize = 3;
/// A cause counts as risen if its share of the active time grew by at least this factor and by at least `SHARE`.
const RISEN: f64 = 1.25;
const SHARE: f64 = 0.05;
/// Timed commands needed on both sides to report a change of a single command.
const TIMED_MIN: u64 = 10;

/// Comparison of a column with the baseline.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Compared {
    /// Index of the column.
    pub column: usize,
    /// The headline says whether the column is slower or faster, and by how much. `causes` lists causes that the
    /// baseline lacks or has less of; if the column is slower, `culprit` is the first cause's. `evidence` names causes
    /// that appeared or disappeared, then the commands that changed, largest total change first. `caveats` state the
    /// certainty.
    #[serde(flatten)]
    pub answer: Answer,
}

pub(super) fn answers(comparison: &Comparison) -> Vec<Compared> {
    let Some((base, others)) = comparison.columns.split_first() else { return Vec::new() };
    (1..)
        .zip(others)
        .map(|(column, other)| Compared { column, answer: answer(comparison, column, base, other) })
        .collect()
}

fn answer(comparison: &Comparison, column: usize, base: &ComparisonColumn, other: &ComparisonColumn) -> Answer {
    let causes = risen(&base.answer, &other.answer);
    let is_slower = primary(comparison, column).is_some_and(|ratio| ratio.value > 1.0 && is_changed(&ratio));
    let culprit = match causes.first() {
        _ if !is_slower => Culprit::Nothing,
        Some(cause) => cause.culprit,
        None => Culprit::Capture,
    };
    let mut evidence: Vec<String> = Vec::new();
    evidence.extend(causes.first().map(|cause| difference(cause, &base.answer, &base.name)));
    evidence
        .extend(risen(&other.answer, &base.answer).first().map(|cause| difference(cause, &other.answer, &other.name)));
    evidence.extend(sentences(comparison, column));
    Answer {
        culprit,
        headline: headline(comparison, column, &clean(&other.name), &clean(&base.name)),
        evidence,
        causes: causes.into_iter().cloned().collect(),
        caveats: vec![certainty(comparison, column)],
        next: steps(comparison, column),
        ..Answer::default()
    }
}

/// Returns the causes in `to` that `from` lacks, or that have a noticeably larger share of the time in `to`.
fn risen<'a>(from: &Answer, to: &'a Answer) -> Vec<&'a Cause> {
    let share = |cause: &Cause| cause.share.unwrap_or(0.0);
    let is_risen = |cause: &&Cause| {
        same(cause, from)
            .is_none_or(|before| share(cause) >= share(before) * RISEN && share(cause) - share(before) >= SHARE)
    };
    to.causes.iter().filter(is_risen).collect()
}

fn same<'a>(cause: &Cause, answer: &'a Answer) -> Option<&'a Cause> {
    answer.causes.iter().find(|other| other.id == cause.id && other.culprit == cause.culprit)
}

/// Formats `Not in before: Server: 10.0.0.9 took 57.3 ms to open a file for 10.0.0.7. …`
fn difference(cause: &Cause, other: &Answer, name: &str) -> String {
    let how = if same(cause, other).is_some() { "More than in" } else { "Not in" };
    format!("{how} {}: {}: {}", clean(name), cause.culprit.title(), clean(&cause.in_full()))
}

fn pair(cells: &[Option<ComparisonCell>], column: usize) -> Option<(&ComparisonCell, &ComparisonCell)> {
    let timed = |at: usize| cells.get(at)?.as_ref().filter(|cell| cell.timed > 0);
    Some((timed(0)?, timed(column)?))
}

/// Formats `after is slower than before: p95 4.06 times (503 µs → 2.04 ms; 3.80 to 4.33), median 1.43 times (…).`
fn headline(comparison: &Comparison, column: usize, name: &str, base: &str) -> String {
    let Some((old, new)) = pair(&comparison.headline.cells, column) else {
        return format!("{name} cannot be compared with {base}: one of them has no timed command.");
    };
    let ratios = new.ratios.unwrap_or(super::cells::NO_RATIOS);
    let (old, new) = (&old.response_time, &new.response_time);
    let figures = [
        ("p95", ratios.p95, old.p95, new.p95),
        ("median", ratios.p50, old.p50, new.p50),
        ("mean", ratios.mean, old.mean, new.mean),
    ];
    let known: Vec<_> = figures.into_iter().filter(|(_, ratio, ..)| ratio.is_some()).collect();
    let Some((_, Some(first), ..)) = known.first() else {
        return format!("{name} cannot be compared with {base}: a response time is 0.");
    };
    let shown = known
        .iter()
        .take(2)
        .filter_map(|(name, ratio, old, new)| Some(format!("{name} {}", change((*ratio)?, *old, *new))));
    let shown = shown.collect::<Vec<_>>().join(", ");
    format!("{}: {shown}{}.", claim(first, name, base), load(comparison, column))
}

/// Formats the start of the headline. It only claims `slower` or `faster` for significant differences.
fn claim(ratio: &Ratio, name: &str, base: &str) -> String {
    let direction = if ratio.value > 1.0 { "slower" } else { "faster" };
    let Some(certainty) = ratio.certainty else {
        return format!("{name} against {base}, one run each");
    };
    let within = certainty.scope == Scope::WithinRun;
    match certainty.answer {
        Conclusion::Equal if within => format!("{name} was as fast as {base} within 5% in these runs"),
        Conclusion::Equal => format!("{name} and {base} are equal within 5%"),
        Conclusion::Higher | Conclusion::Lower if certainty.shown && within => {
            format!("{name} was {direction} than {base} in these runs")
        }
        Conclusion::Higher | Conclusion::Lower if certainty.shown => format!("{name} is {direction} than {base}"),
        _ if ratio.interval.is_none() => {
            let runs = counted(certainty.repetitions.into(), "run", "runs");
            format!("{name} against {base}, {runs} each, too few for an interval")
        }
        _ if within => format!("No difference between {name} and {base} that these runs can show"),
        _ => format!("No difference between {name} and {base} that this data can show"),
    }
}

fn load(comparison: &Comparison, column: usize) -> String {
    let Some(ramps) = &comparison.ramps else { return String::new() };
    let users = ramps.columns.get(column).and_then(|ramp| Some(ramp.as_ref()?.users));
    let Some(users) = users else { return String::new() };
    let point = ramps.points.iter().find(|point| point.users == users);
    let ratio = point.and_then(|point| point.total.get(column)?.as_ref()?.per_second_ratio);
    let throughput = ratio.map_or_else(String::new, |ratio| {
        let between = between(&ratio);
        let between = between.strip_prefix("; ").map_or_else(String::new, |between| format!(" ({between})"));
        format!("{} of the throughput{between} ", times(ratio))
    });
    format!("; {throughput}at {}", unbroken(counted(users.into(), "user", "users")))
}

/// Returns true if the ratio is a change of at least 5%, and with several runs a significant one.
fn is_changed(ratio: &Ratio) -> bool {
    let enough = ratio.value >= CHANGE || ratio.value <= 1.0 / CHANGE;
    enough && ratio.certainty.is_none_or(|certainty| certainty.shown)
}

/// Formats `4.06 times (503 µs → 2.04 ms; 3.80 to 4.33)`. The interval is omitted if unknown.
fn change(ratio: Ratio, old: Option<Nanos>, new: Option<Nanos>) -> String {
    let [old, new] = [old, new].map(|time| time.map_or_else(|| "-".to_owned(), unbroken));
    format!("{} ({old} → {new}{})", times(ratio), between(&ratio))
}

/// Formats the interval as `; 3.80 to 4.33`, or the range of three or four runs.
fn between(ratio: &Ratio) -> String {
    let shown = |low: f64, high: f64| {
        let [low, high] = [low, high].map(|value| Ratio { value, ..*ratio }.to_string());
        unbroken(format!("{low} to {high}"))
    };
    match (ratio.interval, ratio.certainty.and_then(|certainty| certainty.range)) {
        (Some(interval), _) => format!("; {}", shown(interval.low, interval.high)),
        (None, Some((low, high))) => format!("; range {}", shown(low, high)),
        (None, None) => String::new(),
    }
}

fn times(ratio: Ratio) -> String {
    unbroken(format!("{ratio} times"))
}

struct LatencyChange<'a> {
    command: &'a ComparedCommand,
    ratio: Ratio,
    old: Nanos,
    new: Nanos,
    count: u64,
    /// Change of the mean times the number of timed commands in the column.
    cost: i128,
}

fn changes(comparison: &Comparison, column: usize) -> Vec<LatencyChange<'_>> {
    let changed = comparison.commands.iter().filter(|command| !command.waiting).filter_map(|command| {
        let (old, new) = pair(&command.cells, column).filter(|(old, new)| old.timed.min(new.timed) >= TIMED_MIN)?;
        let ratio = new.ratios?.mean.filter(is_changed)?;
        let (old, mean) = (old.response_time.mean?, new.response_time.mean?);
        let cost = i128::from(mean.0 - old.0) * i128::from(new.timed);
        Some(LatencyChange { command, ratio, old, new: mean, count: new.timed, cost })
    });
    let mut changed: Vec<LatencyChange> = changed.collect();
    changed.sort_by_key(|change| std::cmp::Reverse(change.cost.abs()));
    changed
}

fn costliest(comparison: &Comparison, column: usize) -> Option<&ComparedCommand> {
    changes(comparison, column).into_iter().find(|change| change.cost > 0).map(|change| change.command)
}

fn sentences(comparison: &Comparison, column: usize) -> Vec<String> {
    let changed = changes(comparison, column);
    let repeated = is_repeated(comparison, column);
    let named = |slower: bool| {
        let of_kind = changed.iter().filter(|change| (change.cost > 0) == slower);
        let named: Vec<String> = of_kind.clone().take(NAMED_MAX).map(one).collect();
        let more = of_kind.count().saturating_sub(NAMED_MAX);
        let more = if more > 0 {
            format!("; and {}", counted(more as u64, "more command", "more commands"))
        } else {
            String::new()
        };
        let word = match (repeated, slower) {
            (true, true) => "Slower on average",
            (true, false) => "Faster on average",
            (false, true) => "Longer on average in these runs",
            (false, false) => "Shorter on average in these runs",
        };
        (!named.is_empty()).then(|| format!("{word}: {}{more}.", named.join("; ")))
    };
    let mut sentences: Vec<String> = [named(true), named(false)].into_iter().flatten().collect();
    if changed.is_empty() {
        let certainly = if repeated { ", shown by all runs together" } else { "" };
        sentences.push(format!(
            "No command with at least {TIMED_MIN} times on both sides changed by more than {:.0}% on average{certainly}.",
            (CHANGE - 1.0) * 100.0
        ));
    }
    sentences
}

/// Formats `WRITE 13.7 times (205 µs → 2.80 ms; 28 commands, 72.7 ms more)`.
fn one(change: &LatencyChange<'_>) -> String {
    let name = change.command.command.trim_start_matches("SMB_COM_");
    let cost = Nanos::saturating(change.cost.abs());
    let more = if change.cost > 0 { "more" } else { "less" };
    format!(
        "{name} {} ({} → {}; {}, {} {more})",
        times(change.ratio),
        unbroken(change.old),
        unbroken(change.new),
        counted(change.count, "command", "commands"),
        unbroken(cost),
    )
}

fn is_repeated(comparison: &Comparison, column: usize) -> bool {
    [0, column].into_iter().any(|at| comparison.columns.get(at).is_some_and(|column| column.runs > 1))
}

fn certainty(comparison: &Comparison, column: usize) -> String {
    let about = |kinds: &[NoteKind]| {
        comparison.notes.iter().any(|note| (note.column == column || note.column == 0) && kinds.contains(&note.kind))
    };
    let few = pair(&comparison.headline.cells, column).is_some_and(|(old, new)| old.timed.min(new.timed) < FEW);
    let like = match () {
        () if about(&[NoteKind::Mix, NoteKind::Place, NoteKind::Filter]) => {
            "Not like for like (see Caveats): compare single commands rather than totals."
        }
        () if few => "Fewer than 100 commands on one side: differences may be noise.",
        () => "",
    };
    let runs = if is_repeated(comparison, column) {
        of_runs(comparison, column)
    } else {
        let intervals = primary(comparison, column).is_some_and(|ratio| ratio.interval.is_some());
        let within = if intervals { "Intervals (95%) are about these runs only. " } else { "" };
        format!("{within}One run each says nothing about the next: repeat both, at least 5 times.")
    };
    if like.is_empty() { runs } else { format!("{like} {runs}") }
}

/// Returns the ratio of the headline: p95, or the median or mean if p95 is unknown.
fn primary(comparison: &Comparison, column: usize) -> Option<Ratio> {
    let ratios = comparison.headline.cells.get(column)?.as_ref()?.ratios?;
    ratios.p95.or(ratios.p50).or(ratios.mean)
}

/// Formats `20 runs each, intervals of 95%. A difference of 1.12 times or more would probably have shown. …`
fn of_runs(comparison: &Comparison, column: usize) -> String {
    let Some((ratio, certainty)) = primary(comparison, column).and_then(|ratio| Some((ratio, ratio.certainty?))) else {
        return String::new();
    };
    let each = |number: u32| unbroken(format!("{} each", counted(number.into(), "run", "runs")));
    let mut text = match ratio.interval {
        Some(_) => format!("{}, intervals of 95%.", each(certainty.repetitions)),
        None => format!("{}: an interval needs 5.", each(certainty.repetitions)),
    };
    if certainty.answer != Conclusion::Undecided {
        return text;
    }
    if let Some(detectable) = certainty.detectable {
        let least = Ratio { value: detectable, ..ratio };
        text += &format!(" A difference of {} or more would probably have shown.", times(least));
    }
    match certainty.repetitions_needed {
        Some(needed) => text += &format!(" About {} would settle whether they differ by 5%.", each(needed)),
        None if ratio.interval.is_some() => text += " They vary too much for any number of runs to settle 5%.",
        None => {}
    }
    text
}

/// Returns at most two commands. Empty if no command got slower.
fn steps(comparison: &Comparison, column: usize) -> Vec<SuggestedCommand> {
    let Some(command) = costliest(comparison, column) else { return Vec::new() };
    let filter = condition(command).map_or_else(String::new, |filter| format!("--filter {} ", quoted(&filter)));
    let ramp = comparison.ramps.as_ref().and_then(|ramps| ramps.columns.get(column)?.as_ref());
    let (Some(base), Some(other)) = (comparison.columns.first(), comparison.columns.get(column)) else {
        return Vec::new();
    };
    let capture = captured(other).or_else(|| file(ramp?.capture.as_deref()?));
    let files =
        capture.map(|capture| SuggestedCommand::new("files", format!("smbscope analyze {filter}--by file {capture}")));
    let again = || Some(SuggestedCommand::new("again", format!("{} --full", ramp?.again.as_ref()?)));
    let both = captured(base).zip(captured(other)).filter(|_| comparison.slices.is_none());
    let both =
        both.map(|(base, other)| SuggestedCommand::new("both", format!("smbscope compare --by file {base} {other}")));
    files.or_else(again).into_iter().chain(both).collect()
}

/// Returns the column's capture if it was given as an argument. The captures of a saved report may have moved.
fn captured(column: &ComparisonColumn) -> Option<String> {
    match column.captures.as_slice() {
        [only] if only.name == column.source => file(&column.source),
        _ => None,
    }
}

/// Returns a filter for the command. None for combined commands, which no single name selects.
fn condition(command: &ComparedCommand) -> Option<String> {
    command.members.is_none().then(|| format!("command == {}", command.command))
}
