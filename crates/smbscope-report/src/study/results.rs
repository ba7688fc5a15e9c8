//! Results of a study: the values of its runs by measure, load and variant, and their verdicts.

use super::{ServerRow, StudyRow, StudyRun, StudyVerdict, UnfitPoint, UnfitReason, unfit_reasons};
use crate::Answer;
use crate::bench::{self, BenchRun, ServerSeries};
use crate::format::{counted, share, thousands};
use serde::{Deserialize, Serialize};
use smbscope_stats::replication::{
    self, BaselineRatio, DifferenceVerdict as Decision, ReplicationSettings, benjamini_hochberg, holm,
};
use smbscope_stats::{Measure, ServerFigure};
use std::collections::{BTreeMap, BTreeSet};

/// Users and the bits of the rate.
pub(super) type StudyLoadKey = (u32, Option<u64>);

/// A load of a variant in a repetition.
type LoadPointKey = (StudyLoadKey, usize, u32);

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
    /// Variant of each run, and its environment.
    environments: Vec<(usize, BTreeMap<String, String>)>,
    /// Description of each variant's server, if the user gave one.
    hardware: Vec<Option<String>>,
    server: BTreeMap<ServerMetricKey, ServerMetricValues>,
    answers: BTreeMap<(StudyLoadKey, usize), Vec<Answer>>,
    points: u64,
    points_of: BTreeMap<(StudyLoadKey, usize), u64>,
    unfit: BTreeMap<LoadPointKey, Vec<UnfitReason>>,
    pub(super) suspect: Option<Suspect>,
    /// By variant.
    pub(super) suspected: BTreeMap<usize, SuspectCounts>,
    weak: BTreeMap<(usize, usize), u64>,
}

/// Commands that a study suspects of being the cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suspect {
    /// Purpose of the commands: "Negotiation".
    pub name: String,
    /// Names, as in `count(NEGOTIATE)`.
    pub commands: Vec<String>,
}

/// Commands of a variant's runs: the suspected ones, in their order, and all.
#[derive(Debug, Clone, Default)]
pub(super) struct SuspectCounts {
    pub(super) suspected: Vec<u64>,
    pub(super) all: u64,
    pub(super) runs: u64,
}

impl SuspectCounts {
    pub(super) fn per_run(&self) -> u64 {
        self.all / self.runs.max(1)
    }
}

struct Weakness {
    is_so: fn(&BenchRun) -> bool,
    text: &'static str,
}

const WEAKNESSES: [Weakness; 1] = [Weakness {
    is_so: |run| run.client_cpu.is_some_and(|cpu| cpu.limited),
    text: "the client was the limit: their figures say nothing about the server. Use a faster client, or fewer users.",
}];

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
            hardware: Vec::new(),
            server: BTreeMap::new(),
            answers: BTreeMap::new(),
            points: 0,
            points_of: BTreeMap::new(),
            unfit: BTreeMap::new(),
            suspect: None,
            suspected: BTreeMap::new(),
            weak: BTreeMap::new(),
        }
    }

    /// Marks the variants as run at different times: values of the same repetition are not compared in pairs.
    pub fn of_separate_runs(self) -> Results {
        Results { separate: true, ..self }
    }

    /// Counts commands that may be the cause.
    pub fn suspecting(self, suspect: Option<Suspect>) -> Results {
        Results { suspect, ..self }
    }

    /// Adds the user's descriptions of the variants' servers to their environments.
    pub fn describing(self, hardware: impl Iterator<Item = Option<String>>) -> Results {
        Results { hardware: hardware.collect(), ..self }
    }

    /// Adds the results of a run.
    pub fn add(&mut self, made: &StudyRun, document: &bench::BenchDocument) {
        let StudyRun { variant, repetition, other_load_percent, .. } = *made;
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
            *self.points_of.entry((load, variant)).or_default() += 1;
            let reasons = unfit_reasons(run, other_load_percent, &self.measures);
            if !reasons.is_empty() {
                self.unfit.insert((load, variant, repetition), reasons);
            }
            self.count_suspects(variant, run);
            for (at, _) in WEAKNESSES.iter().enumerate().filter(|(_, weakness)| (weakness.is_so)(run)) {
                *self.weak.entry((at, variant)).or_default() += 1;
            }
            for ServerSeries { metric, unit, mean, max, .. } in run.server.iter().flat_map(|server| &server.metrics) {
                let found = self.server.entry((metric.clone(), load.0, load.1, variant)).or_default();
                found.unit.clone_from(unit);
                found.values.insert(repetition, (*mean, *max));
            }
        }
        let mut environment = document.environment.clone();
        let target = &document.target;
        let facts = [
            ("dialect", target.dialect.clone()),
            ("signing", Some(target.signing_algorithm.clone().unwrap_or_else(|| "none".to_owned()))),
            ("encryption", Some(target.cipher.clone().unwrap_or_else(|| "none".to_owned()))),
            ("hardware", self.hardware.get(variant).cloned().flatten()),
        ];
        environment.extend(facts.into_iter().filter_map(|(name, fact)| Some((name.to_owned(), fact?))));
        self.environments.push((variant, environment));
    }

    fn count_suspects(&mut self, variant: usize, run: &BenchRun) {
        let Some(suspect) = &self.suspect else { return };
        let counts = self.suspected.entry(variant).or_default();
        counts.suspected.resize(suspect.commands.len(), 0);
        for (sum, command) in counts.suspected.iter_mut().zip(&suspect.commands) {
            *sum += run.count_of(command);
        }
        counts.all += run.operations + run.connect_commands.values().sum::<u64>();
        counts.runs += 1;
    }

    pub(super) fn answers_of(&self, row: &StudyRow, variant: usize) -> &[Answer] {
        self.answers.get(&((row.users, row.rate.map(f64::to_bits)), variant)).map_or(&[], Vec::as_slice)
    }

    pub fn environment(&self) -> BTreeMap<String, String> {
        common(self.environments.iter().map(|(_, environment)| environment))
    }

    /// Returns the properties that all runs of a variant share, and other variants do not.
    pub fn environment_of(&self, variant: usize) -> BTreeMap<String, String> {
        let of_variant = self.environments.iter().filter(|(of, _)| *of == variant).map(|(_, environment)| environment);
        let mut own = common(of_variant);
        let shared = self.environment();
        own.retain(|name, _| !shared.contains_key(name));
        own
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
        let left_out = self.left_out();
        for (measure, loads) in self.measures.iter().zip(&self.by_measure) {
            for (load @ (users, rate), variants) in loads {
                let variants =
                    fit_values(variants, |variant, repetition| !left_out.contains(&(*load, variant, repetition)));
                for (variant, values) in &variants {
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
        self.unfit_warnings(names).into_iter().chain(WEAKNESSES.iter().enumerate().filter_map(warning)).collect()
    }

    pub fn server(&self) -> Vec<ServerRow> {
        let left_out = self.left_out();
        let row = |((metric, users, rate, variant), found): (&ServerMetricKey, &ServerMetricValues)| {
            let each = |of: fn(&(f64, f64)) -> f64| {
                let is_fit = |at: &u32| !left_out.contains(&((*users, *rate), *variant, *at));
                (1..=self.repetitions).map(|at| found.values.get(&at).filter(|_| is_fit(&at)).map(of)).collect()
            };
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

impl Results {
    /// Returns the unfit load points ([`unfit_reasons`]). Each is left out, unless most are unfit for the same reason.
    pub fn unfit(&self) -> Vec<UnfitPoint> {
        let reasons = || self.unfit.iter().flat_map(|(key, reasons)| reasons.iter().map(move |reason| (*key, *reason)));
        let mut of_variant: BTreeMap<(StudyLoadKey, usize, UnfitReason), u64> = BTreeMap::new();
        let mut of_study: BTreeMap<UnfitReason, u64> = BTreeMap::new();
        for ((load, variant, _), reason) in reasons() {
            *of_variant.entry((load, variant, reason)).or_default() += 1;
            *of_study.entry(reason).or_default() += 1;
        }
        let is_usual = |(load, variant, _): LoadPointKey, reason: UnfitReason| match reason.is_of_machine() {
            true => 2 * of_study[&reason] > self.points,
            false => {
                let points = self.points_of.get(&(load, variant)).copied().unwrap_or(0);
                2 * of_variant[&(load, variant, reason)] > points
            }
        };
        let point = |(key, reason): (LoadPointKey, UnfitReason)| {
            let ((users, rate), variant, repetition) = key;
            let rate = rate.map(f64::from_bits);
            UnfitPoint { variant, repetition, users, rate, reason, left_out: !is_usual(key, reason) }
        };
        reasons().map(point).collect()
    }

    fn left_out(&self) -> BTreeSet<LoadPointKey> {
        let points = self.unfit().into_iter().filter(|point| point.left_out);
        points.map(|point| ((point.users, point.rate.map(f64::to_bits)), point.variant, point.repetition)).collect()
    }

    /// Says how many load points were left out, and how many unfit ones were kept, by reason.
    fn unfit_warnings(&self, names: &[&str]) -> Vec<String> {
        let mut counts: BTreeMap<(bool, UnfitReason), BTreeMap<usize, u64>> = BTreeMap::new();
        for UnfitPoint { variant, reason, left_out, .. } in self.unfit() {
            *counts.entry((left_out, reason)).or_default().entry(variant).or_default() += 1;
        }
        let of = counted(self.points, "load point", "load points");
        let sentence = |((left_out, reason), variants): ((bool, UnfitReason), BTreeMap<usize, u64>)| {
            let count: u64 = variants.values().sum();
            let percent = share(count, self.points);
            let words = reason.words();
            let named = variants.keys().filter_map(|variant| names.get(*variant).copied()).collect::<Vec<_>>();
            let named = match named.len() {
                1..=3 if named.len() < names.len() => format!(" ({})", named.join("; ")),
                _ => String::new(),
            };
            match (left_out, reason.is_of_machine()) {
                (true, _) => format!("Left out: {count} of {of}{named}, because {words}."),
                (false, true) => format!(
                    "In {count} of {of} ({percent:.0}%), {words}. That is too many to leave out: repeat the study on an idle machine."
                ),
                (false, false) => {
                    format!(
                        "In {count} of {of}{named}, {words}. They are kept: it happens in most runs of the variant."
                    )
                }
            }
        };
        counts.into_iter().map(sentence).collect()
    }
}

/// Returns the indices of the headline rows: the first measure with a ratio, at the highest load.
pub(super) fn in_headline(rows: &[StudyRow]) -> Vec<usize> {
    let Some(first) = rows.iter().find(|row| row.factor.is_some()) else { return Vec::new() };
    let of_measure = || rows.iter().enumerate().filter(|(_, row)| row.measure == first.measure && row.factor.is_some());
    let highest = of_measure().map(|(_, row)| load(row)).max();
    of_measure().filter(|(_, row)| Some(load(row)) == highest).map(|(at, _)| at).collect()
}

/// Returns the load of a row, as a key that grows with it.
pub(super) fn load(row: &StudyRow) -> (u32, u64) {
    (row.users, row.rate.map_or(0, f64::to_bits))
}

fn common<'a>(mut environments: impl Iterator<Item = &'a BTreeMap<String, String>>) -> BTreeMap<String, String> {
    let mut shared = environments.next().cloned().unwrap_or_default();
    for other in environments {
        shared.retain(|name, value| other.get(name) == Some(value));
    }
    shared
}

/// Returns the values of fit load points. Leaves out variants without one.
fn fit_values(variants: &VariantValues, is_fit: impl Fn(usize, u32) -> bool) -> VariantValues {
    let fit = |(variant, values): (&usize, &BTreeMap<u32, f64>)| {
        let fit = values.iter().filter(|(repetition, _)| is_fit(*variant, **repetition));
        let fit: BTreeMap<u32, f64> = fit.map(|(repetition, value)| (*repetition, *value)).collect();
        (!fit.is_empty()).then_some((*variant, fit))
    };
    variants.iter().filter_map(fit).collect()
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
    pub(super) fn words(self) -> &'static str {
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
