//! The answer of a study: its question answered by the headline measure, with intervals, and by the causes that most
//! runs of the worst variant name.

use super::results::{Results, Suspect, SuspectCounts, in_headline, load};
use super::text::value;
use super::{ServerRow, StudyDocument, StudyRow, StudyVerdict};
use crate::bench::load_name;
use crate::format::{at_least_1, counted, ratio, share, thousands, visible_percent};
use crate::{Answer, Cause, Culprit};
use smbscope_diagnose::SuggestedCommand;
use smbscope_stats::Measure;
use smbscope_stats::replication::{DifferenceVerdict as Decision, REPETITIONS_MIN};
use std::collections::BTreeMap;

/// Comparisons in the headline; the others follow as evidence.
const CLAIMS: usize = 2;
/// Further comparisons among the evidence; the table has all of them.
const FURTHER_CLAIMS: usize = 3;
/// Variants that are named one by one.
const VARIANTS_NAMED: usize = 4;

impl Results {
    /// Returns the study's answer from its rows in `document` and the answers of its runs. The culprit is the one named
    /// by most runs of the worst variant, `Nothing` if all are equal, and `Capture` if rows or runs are inconclusive.
    pub fn answer(&self, document: &StudyDocument) -> Answer {
        let mut highest: Vec<&StudyRow> =
            in_headline(&document.results).into_iter().map(|at| &document.results[at]).collect();
        highest.retain(|row| row.factor.is_some_and(|factor| factor.ratio.is_some()));
        let lower = decided_below(document, &highest);
        let undecided = if lower.is_empty() { Vec::new() } else { highest.clone() };
        let mut rows = if lower.is_empty() { highest } else { lower };
        rows.sort_by(|a, b| is_open(a).cmp(&is_open(b)).then(size(b).total_cmp(&size(a))));
        let claims: Vec<String> = rows.iter().filter_map(|row| claim(document, row)).collect();
        let worst = rows.iter().find_map(|row| Some((*row, worse_side(document, row)?)));
        let runs = worst.map_or(&[][..], |(row, variant)| self.answers_of(row, variant));
        let named = Culprit::ALL.into_iter().find(|culprit| most(runs, |answer| answer.culprit == *culprit));
        let is_equal = !rows.is_empty() && rows.iter().all(|row| row.verdict == Some(StudyVerdict::Equal));
        let culprit = match worst {
            None if is_equal => Culprit::Nothing,
            _ => named.unwrap_or(Culprit::Capture),
        };
        let of_runs = worst.zip(named).and_then(|((_, variant), named)| {
            let example = runs.iter().find(|answer| answer.culprit == named)?;
            Some(format!("{}: {}", document.name_of(variant), example.headline))
        });
        let (headline, evidence) = match self.capacity(document) {
            Some(capacity) => (capacity.headline, [capacity.resources, sentences(document, &rows)].concat()),
            None => {
                let further = claims.iter().skip(CLAIMS).take(FURTHER_CLAIMS).map(|claim| format!("{claim}."));
                let undecided = sentences(document, &undecided).into_iter().take(FURTHER_CLAIMS);
                (headline(&rows, &claims), undecided.chain(further).collect())
            }
        };
        let suspect = self.suspect_verdict(document);
        let ruled_out = suspect.iter().filter(|verdict| verdict.is_cleared).map(|verdict| verdict.text.clone());
        let suspected = suspect.iter().filter(|verdict| !verdict.is_cleared).map(|verdict| verdict.text.clone());
        let counts = suspect.iter().flat_map(|verdict| verdict.counts.clone());
        Answer {
            culprit,
            headline,
            evidence: suspected.chain(counts).chain(evidence).chain(of_runs).collect(),
            causes: in_most(runs),
            ruled_out: ruled_out.collect(),
            caveats: document.warnings.clone(),
            next: again(document, if undecided.is_empty() { &rows } else { &undecided }).into_iter().collect(),
            ..Answer::default()
        }
    }
}

/// Returns the decided rows of the highest load that has any. Empty if one of `highest`, the rows at the highest load of
/// all, is decided.
fn decided_below<'d>(document: &'d StudyDocument, highest: &[&StudyRow]) -> Vec<&'d StudyRow> {
    let Some(first) = highest.first().filter(|_| highest.iter().all(|row| is_open(row))) else { return Vec::new() };
    let decided = || document.results.iter().filter(|row| row.measure == first.measure && !is_open(row));
    let load = decided().map(load).max();
    decided().filter(|row| Some(self::load(row)) == load).collect()
}

fn is_open(row: &StudyRow) -> bool {
    matches!(row.verdict, None | Some(StudyVerdict::Undecided | StudyVerdict::TooFew))
}

fn size(row: &StudyRow) -> f64 {
    row.factor.and_then(|factor| factor.ratio).map_or(0.0, |ratio| ratio.ln().abs())
}

/// Returns the slower or costlier variant of a comparison. `None` without a significant difference.
fn worse_side(document: &StudyDocument, row: &StudyRow) -> Option<usize> {
    match row.verdict? {
        StudyVerdict::Slower | StudyVerdict::More => Some(row.variant),
        StudyVerdict::Faster | StudyVerdict::Less => Some(document.baseline_of(row)),
        StudyVerdict::Equal | StudyVerdict::Undecided | StudyVerdict::TooFew => None,
    }
}

fn most(answers: &[Answer], holds: impl Fn(&Answer) -> bool) -> bool {
    2 * answers.iter().filter(|answer| holds(answer)).count() > answers.len()
}

/// Returns the causes that more than half of the answers name, each as its first answer describes it.
fn in_most(answers: &[Answer]) -> Vec<Cause> {
    let mut found: Vec<&Cause> = Vec::new();
    for cause in answers.iter().flat_map(|answer| &answer.causes) {
        let has_it = |answer: &Answer| answer.causes.iter().any(|other| other.id == cause.id);
        if most(answers, has_it) && found.iter().all(|known| known.id != cause.id) {
            found.push(cause);
        }
    }
    found.into_iter().cloned().collect()
}

/// Formats `p95(Read), 16 users: A is slower than B, 2.10 times (1.98 to 2.24), 21 ms against 10 ms; 3 more below.`
fn headline(rows: &[&StudyRow], claims: &[String]) -> String {
    let Some(first) = rows.first() else { return String::new() };
    let more = claims.len().saturating_sub(CLAIMS);
    let said = &claims[..claims.len().min(CLAIMS)];
    let more = if more > 0 { format!("; {more} more below") } else { String::new() };
    format!("{}, {}: {}{more}.", first.measure, load_name(first.users, first.rate), said.join("; "))
}

fn sentences(document: &StudyDocument, rows: &[&StudyRow]) -> Vec<String> {
    let sentence = |row: &&StudyRow| {
        let claim = claim(document, row)?;
        Some(format!("{}, {}: {claim}.", row.measure, load_name(row.users, row.rate)))
    };
    rows.iter().filter_map(sentence).collect()
}

/// Returns the further repetitions that would probably decide an open row, from the variance of its repetitions.
fn further(row: &StudyRow) -> Option<u32> {
    let factor = row.factor.as_ref()?;
    let needed = match (row.verdict?, factor.answer) {
        (StudyVerdict::TooFew, _) => u32::try_from(REPETITIONS_MIN).ok(),
        (StudyVerdict::Undecided, Decision::Undecided { repetitions_needed }) => repetitions_needed,
        _ => None,
    };
    needed?.checked_sub(factor.repetitions).filter(|further| *further > 0)
}

/// Returns the command that makes the study with enough repetitions to decide every headline row.
fn again(document: &StudyDocument, rows: &[&StudyRow]) -> Option<SuggestedCommand> {
    let further = rows.iter().filter_map(|row| further(row)).max()?;
    let needed = document.repetitions.saturating_add(further);
    let directory = format!("{}-{needed}", document.name);
    let command = document.definition.command(needed, &directory);
    document.studies.is_empty().then(|| SuggestedCommand::new("decide", command))
}

fn claim(document: &StudyDocument, row: &StudyRow) -> Option<String> {
    let factor = row.factor.as_ref()?;
    let (common, name, baseline) =
        told_apart(document.name_of(row.variant), document.name_of(document.baseline_of(row)));
    let times = ratio(factor.ratio?);
    let more = |further| counted(u64::from(further), "more repetition", "more repetitions");
    let values = means(document, row).map_or_else(String::new, |values| format!(", {values}"));
    let claim = match (row.verdict?, factor.interval, factor.detectable) {
        (StudyVerdict::Equal, ..) => format!("{name} is equal to {baseline} within 5%{values}"),
        (
            verdict @ (StudyVerdict::Slower | StudyVerdict::Faster | StudyVerdict::More | StudyVerdict::Less),
            Some((low, high)),
            _,
        ) => {
            let direction = verdict.words();
            // The word has the direction.
            let (times, (low, high)) = at_least_1(factor.ratio?, (low, high));
            let interval = format!("{} to {}", ratio(low), ratio(high));
            format!("{name} is {direction} than {baseline}, {} times ({interval}){values}", ratio(times))
        }
        (_, Some((low, high)), _) if let Some(further) = further(row) => {
            let interval = format!("{} to {}", ratio(low), ratio(high));
            let more = more(further);
            format!(
                "{name} against {baseline}, {times} times ({interval}){values}, is undecided: {more} would probably decide"
            )
        }
        (StudyVerdict::Undecided, Some((low, high)), _) if low > 1.0 || high < 1.0 => {
            let interval = format!("{} to {}", ratio(low), ratio(high));
            format!(
                "{name} against {baseline}, {times} times ({interval}), may be due to chance, as there are many comparisons"
            )
        }
        (_, _, Some(least)) => format!(
            "no difference between {name} and {baseline} that this data can show (a factor of {} or more would have shown)",
            ratio(least)
        ),
        _ => {
            let more = further(row).map_or_else(String::new, |further| format!(": {} would give one", more(further)));
            format!("{name} against {baseline}, {times} times, has too few repetitions for an interval{more}")
        }
    };
    Some(match common.is_empty() {
        true => claim,
        false => format!("{common}: {claim}"),
    })
}

/// Divides the names of two variants: the settings that they share, and the different ones of each.
fn told_apart(name: &str, baseline: &str) -> (String, String, String) {
    let [one, other] = [name, baseline].map(|name| name.split(", ").collect::<Vec<_>>());
    let most = one.len().min(other.len()) - 1;
    let before = one.iter().zip(&other).take_while(|(one, other)| one == other).count().min(most);
    let last = one.iter().rev().zip(other.iter().rev());
    let after = last.take_while(|(one, other)| one == other).count().min(most - before);
    let own = |settings: &[&str]| settings[before..settings.len() - after].join(", ");
    let common = [&one[..before], &one[one.len() - after..]].concat().join(", ");
    (common, own(&one), own(&other))
}

/// Formats `9.05 s against 41.3 ms`.
fn means(document: &StudyDocument, row: &StudyRow) -> Option<String> {
    let baseline = document.baseline_of(row);
    let is_beside = |other: &&StudyRow| {
        (&other.measure, other.users, other.rate, other.variant) == (&row.measure, row.users, row.rate, baseline)
    };
    let base = document.results.iter().find(is_beside)?;
    Some(format!("{} against {}", value(row.mean, &row.unit), value(base.mean, &base.unit)))
}

/// Percentage of overloaded scenarios from which a load point is overloaded, as in `--find-capacity "overload < 1%"`.
const OVERLOADED_PERCENT: f64 = 1.0;

/// Answer of a ramp whose first measure is `overload`: how many users each variant carries.
struct RampCapacity {
    headline: String,
    resources: Vec<String>,
}

/// Load, value of each repetition.
type OverloadCurve<'a> = Vec<(&'a StudyRow, &'a [Option<f64>])>;

impl Results {
    fn capacity(&self, document: &StudyDocument) -> Option<RampCapacity> {
        let is_overload = |row: &&StudyRow| matches!(row.measure.parse(), Ok(Measure::Overload));
        document.results.first().filter(is_overload)?;
        let mut curves: BTreeMap<usize, OverloadCurve<'_>> = BTreeMap::new();
        for row in document.results.iter().filter(is_overload) {
            curves.entry(row.variant).or_default().push((row, &row.values));
        }
        let carried = curves.iter().map(|(variant, curve)| (*variant, carried(curve)));
        let carried: Vec<(usize, Vec<Option<usize>>)> = carried.collect();
        let texts = carried.iter().map(|(variant, ends)| {
            let name = document.name_of(*variant);
            format!("{name} {}", capacity_text(&curves[variant], ends))
        });
        let texts: Vec<String> = texts.collect();
        let headline = format!("Users without overload (under 1% of scenarios): {}.", texts.join("; "));
        let resources = carried.iter().filter_map(|(variant, ends)| {
            let (row, _) = curves[variant][median(ends)?];
            resources(document, row, *variant)
        });
        Some(RampCapacity { headline, resources: resources.collect() })
    }
}

/// Returns for each repetition the index of the highest load that is not overloaded, below which none is either.
/// `None` if the lowest is overloaded. Leaves out repetitions that lack a load.
fn carried(curve: &OverloadCurve<'_>) -> Vec<Option<usize>> {
    let repetitions = curve.first().map_or(0, |(_, values)| values.len());
    let of_repetition = |at: usize| {
        let values: Option<Vec<f64>> = curve.iter().map(|(_, values)| values.get(at).copied().flatten()).collect();
        let overloaded = values?.iter().position(|percent| *percent >= OVERLOADED_PERCENT);
        Some(overloaded.unwrap_or(curve.len()).checked_sub(1))
    };
    let mut ends: Vec<Option<usize>> = (0..repetitions).filter_map(of_repetition).collect();
    ends.sort_unstable();
    ends
}

/// Returns the lower median of ascending ends.
fn median(ends: &[Option<usize>]) -> Option<usize> {
    *ends.get(ends.len().checked_sub(1)? / 2)?
}

/// Repetitions from which the lowest and the highest value hold the median with 95% confidence: 6, since both lie on
/// one side of it with a probability of 2 × 0.5⁶, 3.1%.
const MEDIAN_INTERVAL_FROM: usize = 6;

/// Formats `carries 150 users (100 to 150 users in 5 repetitions)`.
fn capacity_text(curve: &OverloadCurve<'_>, ends: &[Option<usize>]) -> String {
    let name = |at: usize| curve.get(at).map_or_else(String::new, |(row, _)| load_name(row.users, row.rate));
    let (Some(least), Some(greatest)) = (ends.first().copied(), ends.last().copied()) else {
        return "has no complete ramp".to_owned();
    };
    let or_less = |end: Option<usize>| end.map_or_else(|| format!("fewer than {}", name(0)), name);
    let repetitions = counted(ends.len() as u64, "repetition", "repetitions");
    let kind = if ends.len() >= MEDIAN_INTERVAL_FROM { "95% interval of" } else { "range of" };
    let spread = match least == greatest {
        true => format!("the same in {repetitions}"),
        false => format!("{} to {}, {kind} {repetitions}", or_less(least), or_less(greatest)),
    };
    match median(ends) {
        None => format!("carries {} ({spread})", or_less(None)),
        Some(at) if at + 1 == curve.len() => format!("carries {} or more, the highest load ({spread})", name(at)),
        Some(at) => format!("carries {} ({spread})", name(at)),
    }
}

/// Formats the server's resources at a load: average and highest CPU, IOPS and disk queue.
fn resources(document: &StudyDocument, at: &StudyRow, variant: usize) -> Option<String> {
    let of = |metric: &str| {
        let is_at = |row: &&ServerRow| {
            row.metric == metric && row.variant == variant && (row.users, row.rate) == (at.users, at.rate)
        };
        document.server.iter().find(is_at)?.mean_and_maximum()
    };
    let (average, highest) = of("cpu")?;
    let disk = of("disk_operations").zip(of("disk_queue")).map_or_else(String::new, |((iops, _), (queue, _))| {
        format!(", {} IOPS, disk queue {queue:.1}", value(iops, ""))
    });
    let (name, load) = (document.name_of(variant), load_name(at.users, at.rate));
    Some(format!("{name}, {load}: server CPU {average:.0}% on average, {highest:.0}% at most{disk}."))
}

/// Share of all commands below which the suspects are cleared, in percent.
const CLEARED_PERCENT: f64 = 1.0;
/// Share of all commands from which the suspects may be the cause, in percent. With a negotiation for each open, it is one
/// command in four (NEGOTIATE, CREATE, READ, CLOSE).
const SUSPICIOUS_PERCENT: f64 = 20.0;

struct SuspectVerdict {
    is_cleared: bool,
    text: String,
    counts: Vec<String>,
}

impl Results {
    /// Judges by the largest share of suspects in a variant, of those with at least half as many commands as the busiest.
    /// In a variant with a handful of commands, the connect is a large share that costs no time.
    fn suspect_verdict(&self, document: &StudyDocument) -> Option<SuspectVerdict> {
        let Suspect { name, commands } = self.suspect.as_ref()?;
        let share_of = |counts: &SuspectCounts| share(counts.suspected.iter().sum(), counts.all);
        let busiest = self.suspected.values().map(SuspectCounts::per_run).max()?;
        let busy = self.suspected.iter().filter(|(_, counts)| 2 * counts.per_run() >= busiest);
        let most = busy.max_by(|(_, a), (_, b)| share_of(a).total_cmp(&share_of(b)));
        let (variant, counts) = most.filter(|(_, counts)| counts.all > 0)?;
        let percent = share_of(counts);
        let verdict = match percent {
            ..CLEARED_PERCENT => "is not the cause",
            ..SUSPICIOUS_PERCENT => "is at most a small part of the cause",
            _ => "may be the cause",
        };
        let suspected = counts.suspected.iter().sum();
        let text = format!(
            "{name} {verdict}: {} of {} commands ({}%) were {} ({}).",
            thousands(suspected / counts.runs.max(1)),
            thousands(counts.per_run()),
            visible_percent(suspected, counts.all),
            commands.join(" or "),
            document.name_of(*variant)
        );
        let counts = commands.iter().enumerate().map(|(at, command)| self.counts_text(document, command, at));
        Some(SuspectVerdict { is_cleared: percent < CLEARED_PERCENT, text, counts: counts.collect() })
    }

    /// Formats `VALIDATE_NEGOTIATE_INFO per run: 1 (SMB 3.0; SMB 3.0.2), 0 (10 variants).`
    fn counts_text(&self, document: &StudyDocument, command: &str, at: usize) -> String {
        let mut by_count: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
        for (variant, counts) in &self.suspected {
            let count = counts.suspected.get(at).copied().unwrap_or(0) as f64 / counts.runs.max(1) as f64;
            by_count.entry(count.round() as u64).or_default().push(document.name_of(*variant));
        }
        let texts = by_count.into_iter().rev().map(|(count, names)| match names.len() {
            ..=VARIANTS_NAMED => format!("{} ({})", thousands(count), names.join("; ")),
            many => format!("{} ({many} variants)", thousands(count)),
        });
        format!("{command} per run: {}.", texts.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_two_variants_share_are_said_once() {
        let of = |name, baseline| told_apart(name, baseline);
        let owned = |texts: [&str; 3]| texts.map(str::to_owned).into();
        assert_eq!(of("Chromium, SMB 3.1.1", "Chromium, local disk"), owned(["Chromium", "SMB 3.1.1", "local disk"]));
        assert_eq!(
            of("2.1, 1,461 files, 19 MB", "2.0.2, 1,461 files, 19 MB"),
            owned(["1,461 files, 19 MB", "2.1", "2.0.2"])
        );
        assert_eq!(of("A, B, C", "A, D, C"), owned(["A, C", "B", "D"]));
        assert_eq!(of("SMB1, half busy", "SMB1"), owned(["", "SMB1, half busy", "SMB1"]));
        assert_eq!(of("A, A", "A, A, A"), owned(["A", "A", "A, A"]));
    }
}
