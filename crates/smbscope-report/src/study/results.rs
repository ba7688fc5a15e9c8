//! Results of a study: the values of its runs by measure, load and variant, their verdicts, and the study's answer.

use super::{ServerRow, StudyDocument, StudyRow, StudyVerdict};
use crate::bench::{self, BenchRun, ServerSeries, load_name};
use crate::format::{at_least_1, counted, ratio, thousands};
use crate::{Answer, Cause, Culprit};
use smbscope_diagnose::SuggestedCommand;
use smbscope_stats::replication::{
    self, BaselineRatio, DifferenceVerdict as Decision, REPETITIONS_MIN, ReplicationSettings, benjamini_hochberg, holm,
};
use smbscope_stats::{Measure, ServerFigure};
use std::collections::BTreeMap;

/// Users and the bits of the rate.
type StudyLoadKey = (u32, Option<u64>);

type VariantValues = BTreeMap<usize, BTreeMap<u32, f64>>;

#[derive(Debug, Clone)]
pub struct Results {
    measures: Vec<Measure>,
    repetitions: u32,
    seed: u64,
    baselines: Vec<usize>,
    /// The variants ran at different times, so repetitions with the same number are not paired.
    separate: bool,
    by_measure: Vec<BTreeMap<StudyLoadKey, VariantValues>>,
    environments: Vec<BTreeMap<String, String>>,
    server: BTreeMap<ServerMetricKey, ServerMetricValues>,
    answers: BTreeMap<(StudyLoadKey, usize), Vec<Answer>>,
    points: u64,
    weak: BTreeMap<(usize, usize), u64>,
}

struct Weakness {
    is_so: fn(&BenchRun) -> bool,
    text: &'static str,
}

const WEAKNESSES: [Weakness; 2] = [
    Weakness {
        is_so: |run| run.client_cpu.is_some_and(|cpu| cpu.limited),
        text: "the client was the limit: their figures say nothing about the server. Use a faster client, or fewer users.",
    },
    Weakness { is_so: |run| run.unexpected_count() > 0, text: "operations ended otherwise than the workload expects." },
];

const NAMED_MAX: usize = 4;

/// Metric, users, bits of the rate, and variant.
type ServerMetricKey = (String, u32, Option<u64>, usize);

#[derive(Debug, Clone, Default)]
struct ServerMetricValues {
    unit: String,
    values: BTreeMap<u32, (f64, f64)>,
}

impl Results {
    pub fn new(
        measures: &[Measure],
        repetitions: u32,
        seed: u64,
        baselines: impl IntoIterator<Item = usize>,
    ) -> Results {
        Results {
            measures: measures.to_vec(),
            repetitions,
            seed,
            baselines: baselines.into_iter().collect(),
            separate: false,
            by_measure: vec![BTreeMap::new(); measures.len()],
            environments: Vec::new(),
            server: BTreeMap::new(),
            answers: BTreeMap::new(),
            points: 0,
            weak: BTreeMap::new(),
        }
    }

    /// Marks the variants as run at different times: values of the same repetition are not compared in pairs.
    pub fn of_separate_runs(self) -> Results {
        Results { separate: true, ..self }
    }

    pub fn add(&mut self, variant: usize, repetition: u32, document: &bench::BenchDocument) {
        let by_rate = document.is_ramp_of_rates();
        for run in &document.runs {
            let load = (run.users, run.rate().filter(|_| by_rate).map(f64::to_bits));
            for (measure, loads) in self.measures.iter().zip(&mut self.by_measure) {
                if let Some(value) = run.value(measure).filter(|value| value.is_finite()) {
                    loads.entry(load).or_default().entry(variant).or_default().insert(repetition, value);
                }
            }
            self.answers.entry((load, variant)).or_default().extend(run.answer.clone());
            self.points += 1;
            for (at, _) in WEAKNESSES.iter().enumerate().filter(|(_, weakness)| (weakness.is_so)(run)) {
                *self.weak.entry((at, variant)).or_default() += 1;
            }
            for ServerSeries { metric, unit, mean, max, .. } in run.server.iter().flat_map(|server| &server.metrics) {
                let found = self.server.entry((metric.clone(), load.0, load.1, variant)).or_default();
                found.unit.clone_from(unit);
                found.values.insert(repetition, (*mean, *max));
            }
        }
        self.environments.push(document.environment.clone());
    }

    pub(super) fn answers_of(&self, row: &StudyRow, variant: usize) -> &[Answer] {
        self.answers.get(&((row.users, row.rate.map(f64::to_bits)), variant)).map_or(&[], Vec::as_slice)
    }

    pub fn environment(&self) -> BTreeMap<String, String> {
        let Some((first, others)) = self.environments.split_first() else { return BTreeMap::new() };
        let is_common =
            |(name, value): &(&String, &String)| others.iter().all(|other| other.get(*name) == Some(*value));
        first.iter().filter(is_common).map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// A repetition runs every variant once within a short time, so variants are compared within repetitions.
    fn factor(&self, baseline: &BTreeMap<u32, f64>, values: &BTreeMap<u32, f64>) -> BaselineRatio {
        let settings = ReplicationSettings { seed: self.seed, ..ReplicationSettings::default() };
        if self.separate {
            let [baseline, values] = [baseline, values].map(|side| side.values().copied().collect::<Vec<f64>>());
            return replication::unpaired(&baseline, &values, &settings);
        }
        let pairs = values.iter().filter_map(|(repetition, value)| Some((*baseline.get(repetition)?, *value)));
        replication::paired(&pairs.collect::<Vec<_>>(), &settings)
    }

    pub fn rows(&self) -> Vec<StudyRow> {
        let mut rows = Vec::new();
        for (measure, loads) in self.measures.iter().zip(&self.by_measure) {
            for ((users, rate), variants) in loads {
                for (variant, values) in variants {
                    let baseline = self.baselines.get(*variant).filter(|baseline| *baseline != variant);
                    let baseline = baseline.and_then(|baseline| variants.get(baseline));
                    // There is no ratio to 0.
                    let baseline = baseline.filter(|baseline| baseline.values().any(|value| *value > 0.0));
                    let (mean, stddev) = mean_and_deviation(values.values().copied());
                    rows.push(StudyRow {
                        measure: measure.to_string(),
                        unit: unit(measure).to_owned(),
                        users: *users,
                        rate: rate.map(f64::from_bits),
                        variant: *variant,
                        values: (1..=self.repetitions).map(|at| values.get(&at).copied()).collect(),
                        mean,
                        stddev,
                        factor: baseline.map(|baseline| self.factor(baseline, values)),
                        adjusted_p_value: None,
                        verdict: None,
                    });
                }
            }
        }
        adjust(&mut rows);
        rows
    }

    pub fn warnings(&self, names: &[&str]) -> Vec<String> {
        let warning = |(at, Weakness { text, .. }): (usize, &Weakness)| {
            let found: Vec<(usize, u64)> =
                self.weak.range((at, 0)..(at + 1, 0)).map(|((_, variant), count)| (*variant, *count)).collect();
            let count: u64 = found.iter().map(|(_, count)| count).sum();
            let named = found.iter().take(NAMED_MAX).filter_map(|(variant, _)| names.get(*variant).copied());
            let more = found.len().saturating_sub(NAMED_MAX);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let of = counted(self.points, "load point", "load points");
            let named = named.collect::<Vec<_>>().join("; ");
            (count > 0).then(|| format!("In {count} of {of} ({named}{more}), {text}"))
        };
        WEAKNESSES.iter().enumerate().filter_map(warning).collect()
    }

    pub fn server(&self) -> Vec<ServerRow> {
        let row = |((metric, users, rate, variant), found): (&ServerMetricKey, &ServerMetricValues)| {
            let each =
                |of: fn(&(f64, f64)) -> f64| (1..=self.repetitions).map(|at| found.values.get(&at).map(of)).collect();
            ServerRow {
                metric: metric.clone(),
                unit: found.unit.clone(),
                users: *users,
                rate: rate.map(f64::from_bits),
                variant: *variant,
                means: each(|(mean, _)| *mean),
                maxima: each(|(_, max)| *max),
            }
        };
        self.server.iter().map(row).collect()
    }
}

/// Returns the mean, and the sample standard deviation (divisor n − 1) of at least two values.
fn mean_and_deviation(values: impl Iterator<Item = f64> + Clone) -> (f64, Option<f64>) {
    let count = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / count.max(1.0);
    let squares: f64 = values.map(|value| (value - mean).powi(2)).sum();
    (mean, (count > 1.0).then(|| (squares / (count - 1.0)).sqrt()))
}

fn unit(measure: &Measure) -> &'static str {
    match measure {
        Measure::Time(..) | Measure::Elapsed | Measure::Waited => "s",
        Measure::Operations | Measure::Commands | Measure::Server(ServerFigure::DiskOperations) => "1/s",
        Measure::Throughput => "B/s",
        Measure::Server(ServerFigure::DiskQueue) => "",
        Measure::Overload | Measure::Server(_) => "percent",
        Measure::Errors | Measure::Count(_) | Measure::ErrorsOf(_) => "",
    }
}
/// Adjusts p-values, those in the headline among themselves, and sets the verdicts.
fn adjust(rows: &mut [StudyRow]) {
    let claims = in_headline(rows);
    for (is_claim, adjusted) in [(true, holm as fn(&[Option<f64>]) -> Vec<Option<f64>>), (false, benjamini_hochberg)] {
        let of_kind: Vec<usize> = (0..rows.len()).filter(|at| claims.contains(at) == is_claim).collect();
        let p_values: Vec<Option<f64>> =
            of_kind.iter().map(|at| rows[*at].factor.as_ref().and_then(|factor| factor.p_value)).collect();
        for (at, adjusted) in of_kind.into_iter().zip(adjusted(&p_values)) {
            rows[at].adjusted_p_value = adjusted;
            rows[at].verdict = rows[at].judged();
        }
    }
}

const CLAIMS: usize = 2;

/// Significance level, applied to adjusted p-values.
const CHANCE: f64 = 0.05;

impl StudyRow {
    fn judged(&self) -> Option<StudyVerdict> {
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
fn in_headline(rows: &[StudyRow]) -> Vec<usize> {
    let Some(first) = rows.iter().find(|row| row.factor.is_some()) else { return Vec::new() };
    let load = |row: &StudyRow| (row.users, row.rate.map_or(0, f64::to_bits));
    let of_measure = || rows.iter().enumerate().filter(|(_, row)| row.measure == first.measure && row.factor.is_some());
    let highest = of_measure().map(|(_, row)| load(row)).max();
    of_measure().filter(|(_, row)| Some(load(row)) == highest).map(|(at, _)| at).collect()
}

impl Results {
    /// Returns the study's answer from its rows in `document` and the answers of its runs. The culprit is the one named
    /// by most runs of the worst variant, `Nothing` if all are equal, and `Capture` if rows or runs are inconclusive.
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

/// Formats `Undecided: A against B; 9 more repetitions would probably decide.`, given the total number `needed`.
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
            // The word has the direction.
            let (times, (low, high)) = at_least_1(factor.ratio?, (low, high));
            format!("{name} is {direction} than {baseline}, {} times ({} to {})", ratio(times), ratio(low), ratio(high))
        }
        (_, _, Some(least)) => format!(
            "no difference between {name} and {baseline} that this data can show (a factor of {} or more would have shown)",
            ratio(least)
        ),
        _ => format!("{name} {times} times {baseline} (too few repetitions for an interval)"),
    })
}
