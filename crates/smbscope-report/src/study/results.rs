//! Collects the values of a study's runs and compares the variants.

use super::answer::in_headline;
use super::{ServerRow, StudyRow};
use crate::Answer;
use crate::bench::{self, BenchRun, ServerSeries};
use crate::format::counted;
use smbscope_stats::replication::{self, BaselineRatio, ReplicationSettings, benjamini_hochberg, holm};
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
    /// Values in the order of `measures`.
    by_measure: Vec<BTreeMap<StudyLoadKey, VariantValues>>,
    environments: Vec<BTreeMap<String, String>>,
    server: BTreeMap<ServerMetricKey, ServerMetricValues>,
    answers: BTreeMap<(StudyLoadKey, usize), Vec<Answer>>,
    points: u64,
    /// Number of load points by weakness and variant.
    weak: BTreeMap<(usize, usize), u64>,
}

/// A condition under which figures of a load point say little about the server.
struct Weakness {
    is_so: fn(&BenchRun) -> bool,
    /// Consequence, as the end of a sentence.
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
    /// Mean and maximum by repetition.
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

    /// Returns the parts of the environment that are the same in all runs.
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

    /// Returns the limits of the results, one sentence each. `names` are the names of the variants.
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
/// Adjusts the p-values and sets the verdicts. Headline rows are adjusted among themselves, so that headline and table
/// agree.
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
