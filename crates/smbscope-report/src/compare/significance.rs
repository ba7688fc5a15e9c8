//! Significance of differences: confidence intervals for the headline of single runs, and correction of all differences
//! for multiple comparisons.
//!
//! A capture can't be repeated, and single runs say nothing about future runs. The heat map of a run shows how response
//! times vary between its intervals; a confidence interval derived from that holds for these runs only.

use super::cells::{ComparisonCell, Conclusion, ConfidenceInterval, Ratio, Ratios};
use super::{ComparedGroup, Comparison, ComparisonColumn, OverviewRatios};
use smbscope_model::Nanos;
use smbscope_stats::replication::{Course, ReplicationSettings, benjamini_hochberg, block_length, holm, within_run};
use smbscope_stats::{HeatMap, Measure, TimeFigure};

/// Number of resamples. Each reads the run's whole heat map.
const RESAMPLES: u32 = 1_000;
type HistogramStatistic = fn(&Histogram) -> Option<f64>;

pub(super) fn headline(comparison: &mut Comparison) {
    let Some((base, others)) = comparison.columns.split_first() else { return };
    for (column, other) in (1..).zip(others) {
        let ratios = comparison.headline.cells.get_mut(column).and_then(Option::as_mut);
        let Some(ratios) = ratios.and_then(|cell| cell.ratios.as_mut()) else { continue };
        if let (Some(before), Some(after)) = (single(base), single(other)) {
            judge(ratios, &HeatMapSeries::from_map(before), &HeatMapSeries::from_map(after));
        }
    }
}

/// Returns the ratio with the interval found by [`headline`]. None if the headline lacks the measure or the run is too
/// short. None as well for an open loop, whose total differs from the headline, so that its ratio differs.
pub(super) fn ratio(comparison: &Comparison, column: usize, measure: &Measure, plain: &Ratio) -> Option<Ratio> {
    let Measure::Time(figure, of) = measure else { return None };
    let ratios = comparison.headline.cells.get(column)?.as_ref()?.ratios.as_ref()?;
    let found = match figure {
        _ if !of.eq_ignore_ascii_case("total") => None,
        TimeFigure::Mean => ratios.mean,
        TimeFigure::P50 => ratios.p50,
        TimeFigure::P95 => ratios.p95,
        _ => None,
    }?;
    let is_same = (found.value - plain.value).abs() <= 1e-6 * plain.value;
    (is_same && found.interval.is_some()).then_some(found)
}

fn single(column: &ComparisonColumn) -> Option<&HeatMap> {
    column.heatmap.as_ref().filter(|_| column.runs == 1)
}

fn judge(ratios: &mut Ratios, before: &HeatMapSeries<'_>, after: &HeatMapSeries<'_>) {
    let figures: [(&mut Option<Ratio>, HistogramStatistic); 3] = [
        (&mut ratios.mean, |times| times.mean()),
        (&mut ratios.p50, |times| times.quantile(0.5)),
        (&mut ratios.p95, |times| times.quantile(0.95)),
    ];
    for (ratio, figure) in figures {
        let Some(exact) = ratio.as_ref().map(|ratio| ratio.value).filter(|ratio| *ratio > 0.0) else { continue };
        let (base, rough) = (before.course(figure), after.course(figure));
        let Some((old, new)) = before.whole(&base).zip(after.whole(&rough)) else { continue };
        // A bucket is 10% wide, but the ratio itself is known exactly. Scale the interval to the exact ratio.
        let exact = |places: &[usize]| rough(places).map(|value| value * exact * old / new);
        let settings = ReplicationSettings { resamples: RESAMPLES, ..ReplicationSettings::default() };
        let (base, other) =
            (Course { series: &before.means, figure: &base }, Course { series: &after.means, figure: &exact });
        let found = within_run(&base, &other, &settings);
        if found.interval.is_some() {
            *ratio = Ratio::of_figure(&found);
        }
    }
}

/// Standard normal quantile for intervals of groups: two-sided level of 0.1%, a Bonferroni correction of 5% for the
/// medians and 95th percentiles of all groups.
const GROUP_QUANTILE: f64 = 3.29;
/// Smallest change of a group that a headline states.
const GROUP_CHANGE: f64 = 1.25;

/// Returns group, figure and ratio of all certain changes of groups. Several runs must show the change after a Holm
/// correction for all groups. For single runs, the intervals hold for these runs only.
pub(super) fn groups(comparison: &Comparison, column: usize) -> Vec<(&ComparedGroup, &'static str, Ratio)> {
    let (Some(base), Some(other)) = (comparison.columns.first(), comparison.columns.get(column)) else {
        return Vec::new();
    };
    let leaves = || comparison.groups.iter().filter(|group| group.headline && group.group != crate::names::OTHER);
    if let (Some(before), Some(after)) = (single(base), single(other)) {
        let series = [before, after].map(HeatMapSeries::from_map);
        let figures = leaves().flat_map(|group| [(group, "p95", 0.95), (group, "median", 0.5)]);
        let found = figures.filter_map(|(group, name, share)| {
            let ratio = group_ratio(group, column, name, share, &series)?;
            Some((group, name, ratio))
        });
        return found.collect();
    }
    let ratios = leaves().flat_map(|group| {
        let ratios = group.cells.get(column).and_then(|cell| cell.as_ref()?.ratios);
        [("p95", ratios.and_then(|found| found.p95)), ("median", ratios.and_then(|found| found.p50))]
            .map(|(name, ratio)| (group, name, ratio))
    });
    let known: Vec<_> = ratios.filter_map(|(group, name, ratio)| Some((group, name, ratio?))).collect();
    let p_values: Vec<Option<f64>> = known.iter().map(|(.., ratio)| ratio.certainty?.p_value).collect();
    let corrected = known.into_iter().zip(holm(&p_values)).filter(|((.., ratio), p)| {
        let is_large = ratio.value >= GROUP_CHANGE || ratio.value <= 1.0 / GROUP_CHANGE;
        is_large && ratio.certainty.is_some_and(|found| found.shown) && p.is_some_and(|p| p <= LEVEL)
    });
    corrected.map(|(found, _)| found).collect()
}

/// Compares a quantile of a group in two single runs. The interval comes from order statistics (normal approximation
/// of the binomial distribution). Commands of one block of the run count as one: they share the state of the server.
fn group_ratio(
    group: &ComparedGroup,
    column: usize,
    name: &str,
    share: f64,
    series: &[HeatMapSeries<'_>; 2],
) -> Option<Ratio> {
    let cell = |at: usize| group.cells.get(at)?.as_ref().filter(|cell| cell.timed > 0);
    let ratios = cell(column)?.ratios?;
    let ratio = if name == "p95" { ratios.p95 } else { ratios.p50 }?;
    let interval = |at: usize, series: &HeatMapSeries<'_>| {
        let independent = series.blocks_of(cell(at)?.timed);
        let margin = GROUP_QUANTILE * (share * (1.0 - share) / independent).sqrt();
        let course = group.cumulative.get(at)?;
        (margin < share && margin < 1.0 - share).then_some(())?;
        quantile(course, share - margin, false).zip(quantile(course, share + margin, true))
    };
    let (old, new) = (interval(0, &series[0])?, interval(column, &series[1])?);
    (old.0 > 0.0).then_some(())?;
    let (low, high) = (new.0 / old.1, new.1 / old.0);
    let is_certain = low >= GROUP_CHANGE || high <= 1.0 / GROUP_CHANGE;
    is_certain.then_some(Ratio { interval: Some(ConfidenceInterval { low, high, level: 0.999 }), ..ratio })
}

/// Returns the point of a cumulative distribution before or after the one with this share.
fn quantile(course: &[(Nanos, f64)], share: f64, after: bool) -> Option<f64> {
    let at = course.partition_point(|(_, known)| *known < share);
    let at = if after { (at + 1).min(course.len().checked_sub(1)?) } else { at.saturating_sub(1) };
    course.get(at).map(|(time, _)| time.0 as f64)
}

struct HeatMapSeries<'a> {
    map: &'a HeatMap,
    histograms: Vec<&'a [(usize, u64)]>,
    means: Vec<f64>,
}

impl HeatMapSeries<'_> {
    fn from_map(map: &HeatMap) -> HeatMapSeries<'_> {
        let histograms: Vec<_> = map.bins.iter().map(|bin| &*bin.counts).filter(|counts| !counts.is_empty()).collect();
        let means = histograms.iter().map(|counts| {
            let mut histogram = Histogram::new(map);
            histogram.add(counts);
            histogram.mean().unwrap_or(f64::NAN)
        });
        HeatMapSeries { map, means: means.collect(), histograms }
    }

    /// Returns the smallest number of independent blocks in which this many commands can have begun. A group may be a
    /// burst, and the heat map does not tell groups apart.
    fn blocks_of(&self, commands: u64) -> f64 {
        let mut counts: Vec<u64> =
            self.histograms.iter().map(|bin| super::sum(bin.iter().map(|(_, count)| *count))).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let mut rest = commands;
        let full = counts.into_iter().take_while(|count| {
            let is_needed = rest > 0;
            rest = rest.saturating_sub(*count);
            is_needed
        });
        full.count() as f64 / block_length(&self.means)
    }

    fn whole(&self, course: &impl Fn(&[usize]) -> Option<f64>) -> Option<f64> {
        course(&(0..self.histograms.len()).collect::<Vec<_>>()).filter(|value| *value > 0.0)
    }

    fn course(&self, figure: HistogramStatistic) -> impl Fn(&[usize]) -> Option<f64> {
        move |places: &[usize]| {
            let mut histogram = Histogram::new(self.map);
            places.iter().for_each(|at| histogram.add(self.histograms[*at]));
            figure(&histogram)
        }
    }
}

struct Histogram<'a> {
    map: &'a HeatMap,
    counts: Vec<u64>,
}

impl Histogram<'_> {
    fn new(map: &HeatMap) -> Histogram<'_> {
        Histogram { map, counts: vec![0; map.edges_ns.len()] }
    }

    fn add(&mut self, counts: &[(usize, u64)]) {
        for (bucket, count) in counts {
            if let Some(sum) = self.counts.get_mut(*bucket) {
                *sum = sum.saturating_add(*count);
            }
        }
    }

    /// Returns the bounds of a bucket. The last one is open, and taken to be 10% wide.
    fn bucket(&self, bucket: usize) -> (f64, f64) {
        let edge = |at: usize| self.map.edges_ns.get(at).map(|edge| edge.0 as f64);
        let low = edge(bucket).unwrap_or(0.0);
        (low, edge(bucket + 1).unwrap_or(low * 1.1))
    }

    fn mean(&self) -> Option<f64> {
        let all: u64 = self.counts.iter().sum();
        let sum = self.counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(bucket, count)| {
            let (low, high) = self.bucket(bucket);
            (low + high) / 2.0 * *count as f64
        });
        (all > 0).then(|| sum.sum::<f64>() / all as f64)
    }

    fn quantile(&self, share: f64) -> Option<f64> {
        let all: u64 = self.counts.iter().sum();
        let wanted = share * all as f64;
        let mut below = 0.0;
        for (bucket, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let count = *count as f64;
            if below + count >= wanted {
                let (low, high) = self.bucket(bucket);
                return Some(low + (high - low) * (wanted - below) / count);
            }
            below += count;
        }
        None
    }
}

/// Family-wise error rate (Holm) of the headline and false discovery rate (Benjamini-Hochberg) of the tables.
const LEVEL: f64 = 0.05;

impl Ratios {
    fn judged(&mut self) -> impl Iterator<Item = &mut Ratio> {
        [&mut self.mean, &mut self.p50, &mut self.p95, &mut self.p99, &mut self.sum].into_iter().flatten()
    }
}

pub(super) fn adjust(comparison: &mut Comparison) {
    for column in 1..comparison.columns.len() {
        let headline = ratios_of(comparison.headline.cells.get_mut(column));
        // The headline shows the mean only if it has neither median nor p95, but it always counts as a comparison.
        let overview = comparison.columns[column].overview.ratios.as_mut().map(|ratios| {
            let OverviewRatios { bytes_per_second, commands_per_second, job_elapsed, .. } = ratios;
            [bytes_per_second, commands_per_second, job_elapsed].into_iter().flatten()
        });
        let times = headline.into_iter().flat_map(|ratios| [&mut ratios.p50, &mut ratios.p95, &mut ratios.mean]);
        mark(times.flatten().chain(overview.into_iter().flatten()).collect(), holm);

        let per_unit = comparison.columns[column].overview.ratios.as_mut().map(OverviewRatios::per_unit_mut);
        mark(per_unit.into_iter().flatten().flatten().collect(), benjamini_hochberg);
        let groups = comparison.groups.iter_mut().map(|group| &mut group.cells);
        mark_table(groups, column);
        mark_table(comparison.commands.iter_mut().map(|command| &mut command.cells), column);
        let slices = comparison.slices.iter_mut().flat_map(|slices| &mut slices.entries);
        mark_table(slices.map(|slice| &mut slice.cells), column);
        let points = comparison.ramps.iter_mut().flat_map(|ramps| &mut ramps.points);
        let points = points.flat_map(|point| {
            std::iter::once(&mut point.total).chain(point.groups.iter_mut().map(|group| &mut group.cells))
        });
        let ratios = points.filter_map(|cells| cells.get_mut(column)?.as_mut()).flat_map(|point| {
            let times = point.cell.ratios.as_mut().into_iter().flat_map(Ratios::judged);
            [&mut point.per_second_ratio, &mut point.bytes_per_second_ratio].into_iter().flatten().chain(times)
        });
        mark(ratios.collect(), benjamini_hochberg);
    }
}

fn ratios_of(cell: Option<&mut Option<ComparisonCell>>) -> Option<&mut Ratios> {
    cell?.as_mut()?.ratios.as_mut()
}

fn mark_table<'a>(rows: impl Iterator<Item = &'a mut Vec<Option<ComparisonCell>>>, column: usize) {
    let ratios = rows.filter_map(|cells| ratios_of(cells.get_mut(column))).flat_map(Ratios::judged);
    mark(ratios.collect(), benjamini_hochberg);
}

fn mark(ratios: Vec<&mut Ratio>, correct: fn(&[Option<f64>]) -> Vec<Option<f64>>) {
    let p_values: Vec<Option<f64>> =
        ratios.iter().map(|ratio| ratio.certainty.and_then(|certainty| certainty.p_value)).collect();
    for (ratio, p) in ratios.into_iter().zip(correct(&p_values)) {
        let Some(certainty) = &mut ratio.certainty else { continue };
        certainty.shown =
            matches!(certainty.answer, Conclusion::Higher | Conclusion::Lower) && p.is_some_and(|p| p <= LEVEL);
    }
}
