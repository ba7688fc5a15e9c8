//! Verdicts of a study's rows, and the answer to its question.

use super::{Results, StudyDocument, StudyRow, StudyVerdict};
use crate::bench::load_name;
use crate::format::{counted, ratio, thousands};
use crate::{Answer, Cause, Culprit};
use smbscope_diagnose::SuggestedCommand;
use smbscope_stats::Measure;
use smbscope_stats::replication::{BaselineRatio, DifferenceVerdict as Decision, REPETITIONS_MIN};

/// Variants named in the headline, largest difference first.
const CLAIMS: usize = 2;

/// Significance level, applied to adjusted p-values.
const CHANCE: f64 = 0.05;

impl StudyRow {
    /// Returns the verdict of the row. Needs the adjusted p-value.
    pub(super) fn judged(&self) -> Option<StudyVerdict> {
        let factor = self.factor.as_ref()?;
        Some(match factor.answer {
            Decision::Equal => StudyVerdict::Equal,
            _ if factor.interval.is_none() => StudyVerdict::TooFew,
            Decision::Higher | Decision::Lower if self.adjusted_p_value.is_some_and(|p| p <= CHANCE) => {
                self.direction(factor)
            }
            // Includes differences that are not significant after the adjustment for the number of rows.
            _ => StudyVerdict::Undecided,
        })
    }

    /// Formats the verdict: `slower`, `equal within 5%`, `undecided, 12 repetitions` …; empty for the baseline.
    pub(super) fn answer(&self) -> String {
        let (Some(verdict), Some(factor)) = (self.verdict, &self.factor) else { return String::new() };
        match (verdict, factor.answer) {
            (StudyVerdict::Undecided, Decision::Undecided { repetitions_needed: Some(needed) }) => {
                format!("{}, {} repetitions", verdict.words(), thousands(needed.into()))
            }
            _ => verdict.words().to_owned(),
        }
    }

    /// Returns the meaning of a ratio other than 1 for a user.
    fn direction(&self, factor: &BaselineRatio) -> StudyVerdict {
        let higher = factor.ratio.is_some_and(|ratio| ratio > 1.0);
        match self.measure.parse() {
            Ok(Measure::Errors | Measure::Overload | Measure::Count(_) | Measure::ErrorsOf(_) | Measure::Server(_))
                if higher =>
            {
                StudyVerdict::More
            }
            Ok(Measure::Errors | Measure::Overload | Measure::Count(_) | Measure::ErrorsOf(_) | Measure::Server(_)) => {
                StudyVerdict::Less
            }
            Ok(measure) if measure.more_is_better() == higher => StudyVerdict::Faster,
            _ => StudyVerdict::Slower,
        }
    }
}

impl StudyVerdict {
    fn words(self) -> &'static str {
        match self {
            StudyVerdict::Slower => "slower",
            StudyVerdict::Faster => "faster",
            StudyVerdict::More => "more",
            StudyVerdict::Less => "less",
            StudyVerdict::Equal => "equal within 5%",
            StudyVerdict::Undecided => "undecided",
            StudyVerdict::TooFew => "too few repetitions",
        }
    }
}

/// Returns the indices of the headline rows: the first measure with a ratio, at the highest load.
pub(super) fn in_headline(rows: &[StudyRow]) -> Vec<usize> {
    // A measure whose baseline is 0 has no ratio.
    let Some(first) = rows.iter().find(|row| row.factor.is_some()) else { return Vec::new() };
    let load = |row: &StudyRow| (row.users, row.rate.map_or(0, f64::to_bits));
    let of_measure = || rows.iter().enumerate().filter(|(_, row)| row.measure == first.measure && row.factor.is_some());
    let highest = of_measure().map(|(_, row)| load(row)).max();
    of_measure().filter(|(_, row)| Some(load(row)) == highest).map(|(at, _)| at).collect()
}

impl Results {
    /// Returns the answer to the study's question, from its rows and from the answers of its runs. `document` holds the
    /// rows.
    ///
    /// The culprit is the one named by most runs of the worst variant, `Nothing` if all variants are equal, and
    /// `Capture` if rows or runs are inconclusive.
    pub fn answer(&self, document: &StudyDocument) -> Answer {
        let mut rows: Vec<&StudyRow> =
            in_headline(&document.results).into_iter().map(|at| &document.results[at]).collect();
        rows.retain(|row| row.factor.is_some_and(|factor| factor.ratio.is_some()));
        rows.sort_by(|a, b| size(b).total_cmp(&size(a)));
        let claims: Vec<String> = rows.iter().filter_map(|row| claim(document, row)).collect();
        let worst = rows.iter().find_map(|row| Some((*row, worse_side(document, row)?)));
        let runs = worst.map_or(&[][..], |(row, variant)| self.answers_of(row, variant));
        let named = Culprit::ALL.into_iter().find(|culprit| most(runs, |answer| answer.culprit == *culprit));
        let needed = needed(&rows).filter(|needed| *needed > document.repetitions);
        let is_equal = !rows.is_empty() && rows.iter().all(|row| row.verdict == Some(StudyVerdict::Equal));
        let culprit = match worst {
            None if is_equal => Culprit::Nothing,
            _ => named.unwrap_or(Culprit::Capture),
        };
        let of_runs = worst.zip(named).and_then(|((_, variant), named)| {
            let example = runs.iter().find(|answer| answer.culprit == named)?;
            Some(format!("{}: {}", document.name_of(variant), example.headline))
        });
        Answer {
            culprit,
            headline: headline(&rows, &claims),
            evidence: claims.iter().skip(CLAIMS).map(|claim| format!("{claim}.")).chain(of_runs).collect(),
            causes: in_most(runs),
            caveats: document.warnings.iter().cloned().chain(undecided(document, &rows, needed)).collect(),
            next: needed.and_then(|needed| again(document, needed)).into_iter().collect(),
            ..Answer::default()
        }
    }
}

fn size(row: &StudyRow) -> f64 {
    row.factor.and_then(|factor| factor.ratio).map_or(0.0, |ratio| ratio.ln().abs())
}

/// Returns the variant that is worse. None if there is no significant difference.
fn worse_side(document: &StudyDocument, row: &StudyRow) -> Option<usize> {
    match row.verdict? {
        StudyVerdict::Slower | StudyVerdict::More => Some(row.variant),
        StudyVerdict::Faster | StudyVerdict::Less => Some(document.baseline_of(row)),
        StudyVerdict::Equal | StudyVerdict::Undecided | StudyVerdict::TooFew => None,
    }
}

/// Returns true if `holds` is true for more than half of the answers.
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

/// Formats `p95(Read), 16 users: A is slower than B, 2.10 times (1.98 to 2.24); 3 more below.`
fn headline(rows: &[&StudyRow], claims: &[String]) -> String {
    let Some(first) = rows.first() else { return String::new() };
    let more = claims.len().saturating_sub(CLAIMS);
    let said = &claims[..claims.len().min(CLAIMS)];
    let more = if more > 0 { format!("; {more} more below") } else { String::new() };
    format!("{}, {}: {}{more}.", first.measure, load_name(first.users, first.rate), said.join("; "))
}

fn needed(rows: &[&StudyRow]) -> Option<u32> {
    let needed = |row: &&StudyRow| match (row.verdict?, row.factor.as_ref()?.answer) {
        (StudyVerdict::TooFew, _) => u32::try_from(REPETITIONS_MIN).ok(),
        (StudyVerdict::Undecided, Decision::Undecided { repetitions_needed }) => repetitions_needed,
        _ => None,
    };
    rows.iter().filter_map(needed).max()
}

/// Formats `Undecided: A against B; 9 more repetitions would probably decide.` `needed` is the total number of
/// repetitions, if known.
fn undecided(document: &StudyDocument, rows: &[&StudyRow], needed: Option<u32>) -> Option<String> {
    let is_open = |row: &&&StudyRow| matches!(row.verdict, Some(StudyVerdict::Undecided | StudyVerdict::TooFew));
    let open: Vec<String> = rows
        .iter()
        .filter(is_open)
        .map(|row| format!("{} against {}", document.name_of(row.variant), document.name_of(document.baseline_of(row))))
        .collect();
    let (first, others) = open.split_first()?;
    let others = match others.len() {
        0 => String::new(),
        others => format!(" and {}", counted(others as u64, "other", "others")),
    };
    let more = needed.map_or_else(String::new, |needed| {
        let more = counted((needed - document.repetitions).into(), "more repetition", "more repetitions");
        format!("; {more} would probably decide")
    });
    Some(format!("Undecided: {first}{others}{more}."))
}

fn again(document: &StudyDocument, needed: u32) -> Option<SuggestedCommand> {
    let directory = format!("{}-{needed}", document.name);
    let command = document.definition.command(needed, &directory);
    document.studies.is_empty().then(|| SuggestedCommand::new("decide", command))
}

fn claim(document: &StudyDocument, row: &StudyRow) -> Option<String> {
    let factor = row.factor.as_ref()?;
    let (name, baseline) = (document.name_of(row.variant), document.name_of(document.baseline_of(row)));
    let times = ratio(factor.ratio?);
    Some(match (row.verdict?, factor.interval, factor.detectable) {
        (StudyVerdict::Equal, ..) => format!("{name} is equal to {baseline} within 5%"),
        (
            verdict @ (StudyVerdict::Slower | StudyVerdict::Faster | StudyVerdict::More | StudyVerdict::Less),
            Some((low, high)),
            _,
        ) => {
            let direction = verdict.words();
            format!("{name} is {direction} than {baseline}, {times} times ({} to {})", ratio(low), ratio(high))
        }
        (_, _, Some(least)) => format!(
            "no difference between {name} and {baseline} that this data can show (it would have shown {} times)",
            ratio(least)
        ),
        _ => format!("{name} {times} times {baseline} (too few repetitions for an interval)"),
    })
}
