//! What got slower, by how much, and how sure that is: one answer for each column that is compared with the baseline.

use super::{Cell, Command, Comparison, FEW, NoteKind, Ratio, next};
use crate::format::{clean, counted, unbroken};
use crate::next::Next;
use serde::Serialize;
use smbscope_model::Nanos;

/// Changes of less than this are not called changes: a twentieth.
const CHANGE: f64 = 1.05;
/// Commands named on each side.
const NAMED_MAX: usize = 3;
/// Commands that a claim about one of them needs on both sides.
const TIMED_MIN: u64 = 10;

/// How a column compares with the baseline.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// Index of the column.
    pub column: usize,
    /// Whether it is slower or faster, and by how much.
    pub headline: String,
    /// Which commands are slower or faster, those that cost or save most time first; then how sure that is.
    pub sentences: Vec<String>,
    /// The commands that look closer at what got slower, at most two.
    pub next: Vec<Next>,
}

/// An answer for each column but the first.
pub(super) fn of(comparison: &Comparison) -> Vec<Answer> {
    let base = comparison.columns.first().map_or(String::new(), |column| clean(&column.name));
    let others = comparison.columns.iter().enumerate().skip(1);
    others
        .map(|(column, other)| Answer {
            column,
            headline: headline(comparison, column, &clean(&other.name), &base),
            sentences: sentences(comparison, column),
            next: next::steps(comparison, column),
        })
        .collect()
}

/// The cells of the baseline and of a column, where both have times.
fn pair(cells: &[Option<Cell>], column: usize) -> Option<(&Cell, &Cell)> {
    let timed = |at: usize| cells.get(at)?.as_ref().filter(|cell| cell.timed > 0);
    Some((timed(0)?, timed(column)?))
}

/// `after is slower than before: p95 4.06 times (503 µs → 2.04 ms), median 1.43 times (219 µs → 313 µs).`
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
    let how = match direction(first.value) {
        Some(direction) => format!("{direction} than"),
        None => "about as fast as".to_owned(),
    };
    let shown = known
        .iter()
        .take(2)
        .filter_map(|(name, ratio, old, new)| Some(format!("{name} {}", change((*ratio)?, *old, *new))));
    format!("{name} is {how} {base}: {}{}.", shown.collect::<Vec<_>>().join(", "), load(comparison, column))
}

/// The load point that a comparison of ramps is about, and the throughput there.
fn load(comparison: &Comparison, column: usize) -> String {
    let Some(ramps) = &comparison.ramps else { return String::new() };
    let users = ramps.columns.get(column).and_then(|ramp| Some(ramp.as_ref()?.users));
    let Some(users) = users else { return String::new() };
    let point = ramps.points.iter().find(|point| point.users == users);
    let ratio = point.and_then(|point| point.total.get(column)?.as_ref()?.per_second_ratio);
    let throughput = ratio.map_or_else(String::new, |ratio| format!("{} of the throughput ", times(ratio)));
    format!("; {throughput}at {}", unbroken(counted(users.into(), "user", "users")))
}

/// Slower or faster, if the change is worth a word.
fn direction(ratio: f64) -> Option<&'static str> {
    match ratio {
        ratio if ratio >= CHANGE => Some("slower"),
        ratio if ratio <= 1.0 / CHANGE => Some("faster"),
        _ => None,
    }
}

/// `4.06 times (503 µs → 2.04 ms)`.
fn change(ratio: Ratio, old: Option<Nanos>, new: Option<Nanos>) -> String {
    let [old, new] = [old, new].map(|time| time.map_or_else(|| "-".to_owned(), unbroken));
    format!("{} ({old} → {new})", times(ratio))
}

/// `4.06 times`.
fn times(ratio: Ratio) -> String {
    unbroken(format!("{ratio} times"))
}

/// A command whose mean changed, and what that costs in all.
struct Change<'a> {
    command: &'a Command,
    ratio: Ratio,
    old: Nanos,
    new: Nanos,
    count: u64,
    /// The change of the mean, as often as the column has the command.
    cost: i128,
}

/// Those that changed, by what that costs or saves.
fn changes(comparison: &Comparison, column: usize) -> Vec<Change<'_>> {
    let changed = comparison.commands.iter().filter(|command| !command.waiting).filter_map(|command| {
        let (old, new) = pair(&command.cells, column).filter(|(old, new)| old.timed.min(new.timed) >= TIMED_MIN)?;
        let ratio = new.ratios?.mean.filter(|ratio| direction(ratio.value).is_some())?;
        let (old, mean) = (old.response_time.mean?, new.response_time.mean?);
        let cost = i128::from(mean.0 - old.0) * i128::from(new.timed);
        Some(Change { command, ratio, old, new: mean, count: new.timed, cost })
    });
    let mut changed: Vec<Change> = changed.collect();
    changed.sort_by_key(|change| std::cmp::Reverse(change.cost.abs()));
    changed
}

/// The command that costs most time because it got slower.
pub(super) fn costliest(comparison: &Comparison, column: usize) -> Option<&Command> {
    changes(comparison, column).into_iter().find(|change| change.cost > 0).map(|change| change.command)
}

fn sentences(comparison: &Comparison, column: usize) -> Vec<String> {
    let changed = changes(comparison, column);
    let named = |slower: bool| {
        let of_kind = changed.iter().filter(|change| (change.cost > 0) == slower);
        let named: Vec<String> = of_kind.clone().take(NAMED_MAX).map(one).collect();
        let more = of_kind.count().saturating_sub(NAMED_MAX);
        let more = if more > 0 {
            format!("; and {}", counted(more as u64, "more command", "more commands"))
        } else {
            String::new()
        };
        let word = if slower { "Slower" } else { "Faster" };
        (!named.is_empty()).then(|| format!("{word} on average: {}{more}.", named.join("; ")))
    };
    let mut sentences: Vec<String> = [named(true), named(false)].into_iter().flatten().collect();
    if changed.is_empty() {
        sentences.push(format!(
            "No command with at least {TIMED_MIN} times on both sides changed by more than {:.0}% on average.",
            (CHANGE - 1.0) * 100.0
        ));
    }
    sentences.push(certainty(comparison, column));
    sentences
}

/// `WRITE 13.7 times (205 µs → 2.80 ms; 28 commands, 72.7 ms more)`.
fn one(change: &Change<'_>) -> String {
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

/// How far the answer can be believed.
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
    let runs = "One measurement each gives no confidence interval: repeat both before you act on small differences.";
    if like.is_empty() { runs.to_owned() } else { format!("{like} {runs}") }
}
