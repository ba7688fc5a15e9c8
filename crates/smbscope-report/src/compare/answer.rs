//! Conclusions of a comparison: for each column but the baseline, change, cost, certainty and suggested commands.

use super::{
    ComparedCommand, Comparison, ComparisonCell, ComparisonColumn, Conclusion, FEW, NoteKind, Overview, Ratio,
    significance,
};
use crate::format::{at_least_1, clean, counted, rate as per_second, unbroken};
use crate::{Answer, Cause, Culprit};
use serde::Serialize;
use smbscope_diagnose::Confidence;
use smbscope_diagnose::next::{SuggestedCommand, file, quoted};
use smbscope_model::Nanos;
use smbscope_stats::replication::Scope;

/// Smallest ratio reported as a change: 5%.
const CHANGE: f64 = 1.05;
/// Smallest uncertain ratio that is not called "no difference".
const DOUBTFUL: f64 = 1.25;
/// Smallest ratio of a figure per file, megabyte or client that is reported.
const EFFORT: f64 = 1.5;
/// Changes of two figures that differ by less than this factor are alike.
const SIMILAR: f64 = 1.2;
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
    /// The headline says whether the column is slower or faster, and by how much: the largest change that is certain,
    /// of all groups together, else of one group, else a cause that only one side has. `causes` lists causes that the
    /// baseline lacks or has less of; if the column is slower, `culprit` is the first cause's. `evidence` names limits
    /// and capabilities that differ, causes that appeared or disappeared, and the commands that changed, largest total
    /// change first. `caveats` state the certainty.
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

impl Comparison {
    /// Replaces the answer: two captures of the same traffic show no change. `near` is the column nearer to the client.
    pub fn say_same_traffic(&mut self, near: usize) {
        let [base, other] = self.columns.as_slice() else { return };
        let (near, files) = (&self.columns[near].name, captured(base).zip(captured(other)));
        let points = |(base, other)| SuggestedCommand::new("points", format!("smbscope analyze {base} {other}"));
        let answer = Answer {
            culprit: Culprit::Nothing,
            headline: "These are captures of the same traffic at two points, not of two runs.".to_owned(),
            evidence: vec![format!(
                "{} is nearer to the client: commands take longer there by their way between the points.",
                clean(near)
            )],
            next: files.map(points).into_iter().collect(),
            ..Answer::default()
        };
        self.answers = vec![Compared { column: 1, answer }];
    }
}

fn answer(comparison: &Comparison, column: usize, base: &ComparisonColumn, other: &ComparisonColumn) -> Answer {
    let causes = risen(&base.answer, &other.answer);
    let is_slower = match certain_change(comparison, column) {
        Some(change) => change.is_slower(),
        None if certain_cause(&base.answer, &other.answer).is_some() => true,
        None => primary(comparison, column).is_some_and(|ratio| ratio.value > 1.0 && is_changed(&ratio)),
    };
    let culprit = match causes.first() {
        _ if !is_slower => Culprit::Nothing,
        Some(cause) => cause.culprit,
        None => Culprit::Capture,
    };
    let mut evidence: Vec<String> = other.negotiated.difference(&base.negotiated).into_iter().collect();
    evidence.extend(effort(&other.overview, &base.overview));
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
    // Saved reports are compared without their answers.
    let is_unknown = *from == Answer::default();
    let share = |cause: &Cause| cause.share.unwrap_or(0.0);
    let is_risen = |cause: &&Cause| {
        same(cause, from)
            .is_none_or(|before| share(cause) >= share(before) * RISEN && share(cause) - share(before) >= SHARE)
    };
    to.causes.iter().filter(|_| !is_unknown).filter(is_risen).collect()
}

fn same<'a>(cause: &Cause, answer: &'a Answer) -> Option<&'a Cause> {
    answer.causes.iter().find(|other| other.id == cause.id && other.culprit == cause.culprit)
}

/// Formats `Work: commands per MB 928 → 305; round trips per file 7.0 → 23.2.` Returns None if nothing differs much.
fn effort(overview: &Overview, base: &Overview) -> Option<String> {
    let is_large = |ratio: &Ratio| ratio.value >= EFFORT || ratio.value <= 1.0 / EFFORT;
    let figures = overview.per_unit().into_iter().zip(base.per_unit());
    let changed = figures.filter_map(|((label, new, ratio), (_, old, _))| {
        ratio.filter(|ratio| is_large(ratio) && is_changed(ratio))?;
        let (initial, rest) = label.split_at(1);
        Some(format!("{}{rest} {} → {}", initial.to_lowercase(), per_second(old?), per_second(new?)))
    });
    let changed: Vec<String> = changed.collect();
    (!changed.is_empty()).then(|| format!("Work: {}.", changed.join("; ")))
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

/// A figure of the column and of the baseline.
struct FigureChange<'a> {
    name: &'static str,
    /// Group that the figure covers. None for all groups.
    group: Option<&'a str>,
    ratio: Ratio,
    old: String,
    new: String,
    is_rate: bool,
}

impl FigureChange<'_> {
    /// Returns the factor of the change, at least 1, whichever way it went.
    fn size(&self) -> f64 {
        self.ratio.value.max(1.0 / self.ratio.value)
    }

    fn is_slower(&self) -> bool {
        (self.ratio.value > 1.0) != self.is_rate
    }

    fn is_certain(&self) -> bool {
        self.ratio.certainty.is_some_and(|certainty| certainty.shown)
    }

    /// Formats `p95 4.06 times slower (503 µs → 2.04 ms; 3.80 to 4.33)`. The interval is omitted if unknown.
    fn text(&self) -> String {
        let direction = match (self.ratio.value > 1.0, self.is_rate) {
            (true, false) => " slower",
            (false, false) => " faster",
            (true, true) => " higher",
            (false, true) => " lower",
        };
        let direction = if self.ratio.value == 1.0 { "" } else { direction };
        let (times, between) = (times(self.ratio), between(&self.ratio));
        format!("{} {times}{direction} ({} → {}{between})", self.name, self.old, self.new)
    }
}

fn time_changes<'a>(
    cells: &[Option<ComparisonCell>],
    column: usize,
    group: Option<&'a str>,
) -> Option<Vec<FigureChange<'a>>> {
    let (old, new) = pair(cells, column)?;
    let ratios = new.ratios.unwrap_or(super::cells::NO_RATIOS);
    let (old, new) = (&old.response_time, &new.response_time);
    let figures = [
        ("p95", ratios.p95, old.p95, new.p95),
        ("median", ratios.p50, old.p50, new.p50),
        ("mean", ratios.mean, old.mean, new.mean),
    ];
    let shown = |time: Option<Nanos>| time.map_or_else(|| "-".to_owned(), unbroken);
    let known = figures.into_iter().filter_map(|(name, ratio, old, new)| {
        let ratio = ratio.filter(|ratio| ratio.value > 0.0)?;
        Some(FigureChange { name, group, ratio, old: shown(old), new: shown(new), is_rate: false })
    });
    Some(known.collect())
}

/// Returns the throughput of ramps. A capture's rate says how much was asked for.
fn throughput_change(comparison: &Comparison, column: usize) -> Option<FigureChange<'_>> {
    comparison.ramps.as_ref()?.columns.get(column)?.as_ref()?;
    let (old, new) = (&comparison.columns.first()?.overview, &comparison.columns.get(column)?.overview);
    let ratio = new.ratios.as_ref()?.commands_per_second.filter(|ratio| ratio.value > 0.0)?;
    let shown =
        |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), |rate| unbroken(format!("{}/s", per_second(rate))));
    let (old, new) = (shown(old.commands_per_second), shown(new.commands_per_second));
    Some(FigureChange { name: "throughput", group: None, ratio, old, new, is_rate: true })
}

/// Returns the largest certain change of the totals, or else of the group with the largest change of total time.
fn certain_change(comparison: &Comparison, column: usize) -> Option<FigureChange<'_>> {
    // The 95th percentile comes first, unless another figure changed more.
    let largest = |mut changes: Vec<FigureChange<'static>>| {
        changes.retain(FigureChange::is_certain);
        let most = changes.iter().map(FigureChange::size).fold(1.0, f64::max);
        changes.into_iter().find(|change| change.size() * SIMILAR >= most)
    };
    let times = time_changes(&comparison.headline.cells, column, None).and_then(largest);
    let totals = times.or_else(|| throughput_change(comparison, column).filter(FigureChange::is_certain));
    totals.or_else(|| {
        let mut found: Vec<(i128, FigureChange<'_>)> = significance::groups(comparison, column)
            .into_iter()
            .filter_map(|(group, name, ratio)| {
                let changes = time_changes(&group.cells, column, Some(&group.group))?;
                let change = changes.into_iter().find(|change| change.name == name)?;
                let (old, new) = pair(&group.cells, column)?;
                let mean = |cell: &ComparisonCell| i128::from(cell.response_time.mean.unwrap_or_default().0);
                Some(((mean(new) - mean(old)).abs() * i128::from(new.timed), FigureChange { ratio, ..change }))
            })
            .collect();
        found.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.size().total_cmp(&a.1.size())));
        found.into_iter().next().map(|(_, change)| change)
    })
}

/// Formats `after is slower than before: p95 4.06 times slower (503 µs → 2.04 ms; 3.80 to 4.33), median 1.43 …`. States
/// the largest change that is certain first.
fn headline(comparison: &Comparison, column: usize, name: &str, base: &str) -> String {
    let Some(mut shown) = time_changes(&comparison.headline.cells, column, None) else {
        return format!("{name} cannot be compared with {base}: one of them has no timed command.");
    };
    if shown.is_empty() {
        return format!("{name} cannot be compared with {base}: a response time is 0.");
    }
    let certain = certain_change(comparison, column);
    let claim = certain.as_ref().map_or_else(|| claim(&shown, name, base), |change| certain_claim(change, name, base));
    match &certain {
        Some(change) if change.group.is_some() => {
            let all = &shown[0];
            let doubt = if all.ratio.certainty.is_some_and(|found| found.answer == Conclusion::Equal) {
                ""
            } else {
                ", which is not certain"
            };
            return format!(
                "{claim}: {}. All groups together: {}{doubt}{}.",
                change.text(),
                all.text(),
                load(comparison, column, false)
            );
        }
        Some(change) if change.is_rate => {
            return format!("{claim}: {}; {}{}.", change.text(), shown[0].text(), load(comparison, column, false));
        }
        Some(change) => {
            shown.retain(FigureChange::is_certain);
            shown.sort_by_key(|figure| figure.name != change.name);
        }
        None => {
            let (base, other) = (&comparison.columns[0], &comparison.columns[column]);
            if let Some(cause) = cause_claim(base, other) {
                return format!("{cause} {claim}: {}{}.", shown[0].text(), load(comparison, column, false));
            }
        }
    }
    let texts: Vec<String> = shown.iter().take(2).map(FigureChange::text).collect();
    format!("{claim}: {}{}.", texts.join(", "), load(comparison, column, true))
}

/// Returns the first cause seen in the packets of `to` that `from` lacks or has less of.
fn certain_cause<'a>(from: &Answer, to: &'a Answer) -> Option<&'a Cause> {
    risen(from, to).into_iter().next().filter(|cause| cause.confidence == Confidence::High)
}

/// Formats `after lost time to a cause that before did not have. Server: …` if a cause is certain.
fn cause_claim(base: &ComparisonColumn, other: &ComparisonColumn) -> Option<String> {
    // Causes of one run say little about the others.
    if base.runs.max(other.runs) > 1 {
        return None;
    }
    let one = |from: &ComparisonColumn, to: &ComparisonColumn| {
        let cause = certain_cause(&from.answer, &to.answer)?;
        let (from_name, to_name) = (clean(&from.name), clean(&to.name));
        let what = format!("{}: {}", cause.culprit.title(), clean(&cause.in_full()));
        Some(match same(cause, &from.answer) {
            Some(_) => format!("{to_name} lost more time to one cause than {from_name}. {what}"),
            None => format!("{to_name} lost time to a cause that {from_name} did not have. {what}"),
        })
    };
    one(base, other).or_else(|| one(other, base))
}

fn certain_claim(change: &FigureChange<'_>, name: &str, base: &str) -> String {
    let direction = if change.is_slower() { "slower" } else { "faster" };
    let group = change.group.map_or_else(String::new, |group| format!(" in {group}"));
    let is_within = change.ratio.certainty.is_none_or(|certainty| certainty.scope == Scope::WithinRun);
    match is_within {
        true => format!("{name} was {direction} than {base}{group} in these runs"),
        false => format!("{name} is {direction} than {base}{group}"),
    }
}

/// Formats the start of the headline if no change is certain.
fn claim(changes: &[FigureChange<'_>], name: &str, base: &str) -> String {
    let first = &changes[0];
    let Some(certainty) = first.ratio.certainty else {
        return format!("{name} against {base}, one run each");
    };
    let is_within = certainty.scope == Scope::WithinRun;
    let largest = changes.iter().map(FigureChange::size).fold(1.0, f64::max);
    match certainty.answer {
        Conclusion::Equal if is_within => format!("{name} was as fast as {base} within 5% in these runs"),
        Conclusion::Equal => format!("{name} and {base} are equal within 5%"),
        _ if first.ratio.interval.is_none() => {
            let runs = counted(certainty.repetitions.into(), "run", "runs");
            format!("{name} against {base}, {runs} each, too few for an interval")
        }
        // A large ratio is not "no difference", whatever its interval.
        _ if largest >= DOUBTFUL => {
            let direction = if first.is_slower() { "slower" } else { "faster" };
            let (verb, data) = if is_within { ("was", "these runs vary") } else { ("is", "the runs vary") };
            format!("Not certain that {name} {verb} {direction} than {base}: {data} too much")
        }
        _ if is_within => format!("No difference between {name} and {base} that these runs can show"),
        _ => format!("No difference between {name} and {base} that this data can show"),
    }
}

fn load(comparison: &Comparison, column: usize, with_throughput: bool) -> String {
    let Some(ramps) = &comparison.ramps else { return String::new() };
    let users = ramps.columns.get(column).and_then(|ramp| Some(ramp.as_ref()?.users));
    let Some(users) = users else { return String::new() };
    let point = ramps.points.iter().find(|point| point.users == users).filter(|_| with_throughput);
    let ratio = point.and_then(|point| point.total.get(column)?.as_ref()?.per_second_ratio);
    let throughput = ratio.map_or_else(String::new, |ratio| {
        let between = between(&ratio);
        let between = between.strip_prefix("; ").map_or_else(String::new, |between| format!(" ({between})"));
        let change = match ratio.value {
            0.995..1.005 => "the same throughput".to_owned(),
            1.0.. => format!("{} the throughput", times(ratio)),
            _ => format!("{} less throughput", times(ratio)),
        };
        format!("; {change}{between}")
    });
    format!("{throughput}, at {}", unbroken(counted(users.into(), "user", "users")))
}

/// Returns true if the ratio is a change of at least 5%, and with several runs a significant one.
fn is_changed(ratio: &Ratio) -> bool {
    let enough = ratio.value >= CHANGE || ratio.value <= 1.0 / CHANGE;
    enough && ratio.certainty.is_none_or(|certainty| certainty.shown)
}

/// Formats the interval as `; 3.80 to 4.33`, or the range of three or four runs. Ratios below 1 are inverted.
fn between(ratio: &Ratio) -> String {
    let shown = |low: f64, high: f64| {
        let (_, (low, high)) = at_least_1(ratio.value, (low, high));
        let [low, high] = [low, high].map(|value| Ratio { value, ..*ratio }.to_string());
        unbroken(format!("{low} to {high}"))
    };
    match (ratio.interval, ratio.certainty.and_then(|certainty| certainty.range)) {
        (Some(interval), _) => format!("; {}", shown(interval.low, interval.high)),
        (None, Some((low, high))) => format!("; range {}", shown(low, high)),
        (None, None) => String::new(),
    }
}

/// Formats `4.06 times`. A ratio below 1 is inverted, so the text next to it must say in which direction it went.
fn times(ratio: Ratio) -> String {
    let (value, _) = at_least_1(ratio.value, (ratio.value, ratio.value));
    unbroken(format!("{} times", Ratio { value, ..ratio }))
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
