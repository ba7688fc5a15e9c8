//! Columns with several runs: figures of a typical run, and ratios with a confidence interval.
//!
//! Every run is first compared as a column of its own. Then the columns are folded row by row: times and rates are
//! geometric means of the runs (`smbscope_stats::replication` says why), counts are arithmetic means.

use super::cells::{Certainty, ComparisonCell, Conclusion, ConfidenceInterval, Ratio, Ratios, ResponseTime};
use super::ramps::Single;
use super::ramps::range;
use super::{
    ComparedLoadPoint, Comparison, ComparisonColumn, ComparisonNote, Given, MetricCell, NoteKind, Overview,
    OverviewRatios,
};
use super::{PointCell, Ramps, RepetitionRange};
use smbscope_model::{Nanos, Timestamp};
use smbscope_stats::replication::{self, BaselineRatio, ReplicationSettings};
use std::ops::Range;

#[derive(Debug, Clone)]
pub(super) struct ColumnRuns {
    runs: Vec<Range<usize>>,
    started: Vec<Option<Timestamp>>,
}

impl ColumnRuns {
    pub(super) fn new(given: &[Given], singles: &[Single<'_>]) -> ColumnRuns {
        let mut end = 0;
        let runs = given.iter().map(|given| {
            let begin = end;
            end += given.runs.len();
            begin..end
        });
        ColumnRuns { runs: runs.collect(), started: singles.iter().map(Single::started).collect() }
    }

    fn are_repeated(&self) -> bool {
        self.runs.iter().any(|runs| runs.len() > 1)
    }

    pub(super) fn ratio(&self, column: usize, value: &dyn Fn(usize) -> Option<f64>) -> Option<Ratio> {
        let (base, other) = (self.runs.first()?, self.runs.get(column)?);
        let of = |runs: &[usize]| -> Vec<f64> { runs.iter().map(|run| value(*run).unwrap_or(f64::NAN)).collect() };
        let settings = ReplicationSettings::default();
        let figure = match self.blocks(base, other) {
            Some((bases, others)) => {
                let blocks: Vec<(f64, f64)> = of(&bases).into_iter().zip(of(&others)).collect();
                replication::paired(&blocks, &settings)
            }
            None => {
                let runs = |runs: &Range<usize>| of(&runs.clone().collect::<Vec<_>>());
                replication::unpaired(&runs(base), &runs(other), &settings)
            }
        };
        Ratio::of_figure(&figure)
    }

    /// Returns the runs of both columns in blocks, if the columns alternate: a block ends before the next starts.
    fn blocks(&self, base: &Range<usize>, other: &Range<usize>) -> Option<(Vec<usize>, Vec<usize>)> {
        if base.len() != other.len() || base.len() < 2 {
            return None;
        }
        let in_time = |runs: &Range<usize>| -> Option<Vec<(Timestamp, usize)>> {
            let mut runs: Vec<_> = runs.clone().map(|run| Some((self.started[run]?, run))).collect::<Option<_>>()?;
            runs.sort_unstable();
            Some(runs)
        };
        let (base, other) = (in_time(base)?, in_time(other)?);
        let alternate =
            (1..base.len()).all(|block| base[block - 1].0.max(other[block - 1].0) < base[block].0.min(other[block].0));
        let places = |runs: Vec<(Timestamp, usize)>| runs.into_iter().map(|(_, run)| run).collect();
        alternate.then(|| (places(base), places(other)))
    }

    fn cells(&self, cells: &[Option<ComparisonCell>]) -> Vec<Option<ComparisonCell>> {
        let timed = |run: usize| cells.get(run)?.as_ref().filter(|cell| cell.timed > 0);
        let folded = self.runs.iter().enumerate().map(|(column, runs)| {
            let cell = typical_cell(&cells[runs.clone()])?;
            let base =
                self.runs.first().filter(|base| column > 0 && cells[(*base).clone()].iter().any(Option::is_some));
            let time = |figure: fn(&ResponseTime) -> Option<Nanos>| {
                self.ratio(column, &|run| figure(&timed(run)?.response_time).map(|time| time.0 as f64))
            };
            let ratios = base.map(|_| Ratios {
                count: self.ratio(column, &|run| Some(cells.get(run)?.as_ref()?.count as f64)),
                mean: time(|times| times.mean),
                p50: time(|times| times.p50),
                p95: time(|times| times.p95),
                p99: time(|times| times.p99),
                max: time(|times| times.max),
                sum: time(|times| times.sum),
            });
            Some(ComparisonCell { ratios, ..cell })
        });
        folded.collect()
    }

    fn points(&self, points: &[Option<PointCell>]) -> Vec<Option<PointCell>> {
        let cells: Vec<Option<ComparisonCell>> =
            points.iter().map(|point| Some(point.as_ref()?.cell.clone())).collect();
        let commands = |run: usize| points.get(run)?.as_ref()?.per_second;
        let bytes = |run: usize| points.get(run)?.as_ref()?.bytes_per_second;
        let folded = self.cells(&cells).into_iter().enumerate().map(|(column, cell)| {
            let known = cell.as_ref().is_some_and(|cell| cell.ratios.is_some());
            let ratio = |value: &dyn Fn(usize) -> Option<f64>| known.then(|| self.ratio(column, value)).flatten();
            Some(PointCell {
                per_second: typical(self.runs[column].clone().filter_map(commands)),
                per_second_ratio: ratio(&commands),
                bytes_per_second: typical(self.runs[column].clone().filter_map(bytes)),
                bytes_per_second_ratio: ratio(&bytes),
                spread: spread(&points[self.runs[column].clone()]),
                cell: cell?,
            })
        });
        folded.collect()
    }

    fn metrics(&self, cells: &[Option<MetricCell>]) -> Vec<Option<MetricCell>> {
        let folded = self.runs.iter().map(|runs| {
            let known: Vec<&MetricCell> = cells[runs.clone()].iter().flatten().collect();
            let mean = |of: fn(&MetricCell) -> f64| known.iter().map(|cell| of(cell)).sum::<f64>() / known.len() as f64;
            let ends = |of: fn(&MetricCell) -> f64| range(known.iter().map(|cell| of(cell)), f64::total_cmp);
            (!known.is_empty()).then(|| MetricCell {
                mean: mean(|cell| cell.mean),
                max: mean(|cell| cell.max),
                mean_range: ends(|cell| cell.mean),
                max_range: ends(|cell| cell.max),
            })
        });
        folded.collect()
    }

    /// Returns the run of each column with the median of the mean response times, whose charts and lists are shown.
    fn typical_runs(&self, comparison: &Comparison) -> Vec<usize> {
        let mean = |run: &usize| comparison.headline.cells[*run].as_ref().and_then(|cell| cell.response_time.mean);
        let middle = |runs: &Range<usize>| {
            let mut runs: Vec<usize> = runs.clone().collect();
            runs.sort_by_key(mean);
            runs[(runs.len() - 1) / 2]
        };
        self.runs.iter().map(middle).collect()
    }

    pub(super) fn folded(&self, mut runs: Comparison) -> Comparison {
        if !self.are_repeated() {
            return runs;
        }
        let typical = self.typical_runs(&runs);
        runs.headline.cells = self.cells(&runs.headline.cells);
        for group in &mut runs.groups {
            group.cells = self.cells(&group.cells);
            group.cumulative = typical.iter().map(|run| std::mem::take(&mut group.cumulative[*run])).collect();
        }
        for command in &mut runs.commands {
            command.cells = self.cells(&command.cells);
            if let Some(members) = &mut command.members {
                *members = typical.iter().map(|run| std::mem::take(&mut members[*run])).collect();
            }
        }
        for slice in runs.slices.iter_mut().flat_map(|slices| &mut slices.entries) {
            slice.cells = self.cells(&slice.cells);
        }
        runs.ramps = runs.ramps.map(|ramps| self.ramps(ramps, &typical));
        runs.notes = self.notes(runs.notes);
        runs.columns = self.columns(runs.columns, &typical);
        runs
    }

    fn ramps(&self, ramps: Ramps, typical: &[usize]) -> Ramps {
        let points = ramps.points.into_iter().map(|mut point: ComparedLoadPoint| {
            point.total = self.points(&point.total);
            point.groups.iter_mut().for_each(|group| group.cells = self.points(&group.cells));
            point.server.iter_mut().for_each(|metric| metric.cells = self.metrics(&metric.cells));
            point
        });
        Ramps { columns: typical.iter().map(|run| ramps.columns[*run].clone()).collect(), points: points.collect() }
    }

    fn columns(&self, columns: Vec<ComparisonColumn>, typical: &[usize]) -> Vec<ComparisonColumn> {
        let overviews: Vec<&Overview> = columns.iter().map(|column| &column.overview).collect();
        let folded = typical.iter().zip(&self.runs).enumerate().map(|(at, (run, runs))| {
            let overview = |run: usize| overviews[run];
            let mean = |of: fn(&Overview) -> u64| mean(runs.clone().map(|run| of(overview(run))));
            let rate = |of: fn(&Overview) -> Option<f64>| typical_of(runs, &|run| of(overview(run)));
            let ratio = |of: fn(&Overview) -> Option<f64>| self.ratio(at, &|run| of(overview(run)));
            let elapsed = |run: usize| overview(run).elapsed_ns.map(|elapsed| elapsed.0 as f64);
            let ratios = (at > 0).then(|| OverviewRatios::new(ratio));
            ComparisonColumn {
                runs: u32::try_from(runs.len()).unwrap_or(u32::MAX),
                overview: Overview {
                    elapsed_ns: typical_of(runs, &elapsed).map(|nanos| Nanos(nanos.round() as i64)),
                    commands: mean(|overview| overview.commands),
                    timed: mean(|overview| overview.timed),
                    untimed: mean(|overview| overview.untimed),
                    errors: mean(|overview| overview.errors),
                    connections: mean(|overview| overview.connections),
                    bytes_read: mean(|overview| overview.bytes_read),
                    bytes_written: mean(|overview| overview.bytes_written),
                    bytes_per_second: rate(|overview| overview.bytes_per_second),
                    commands_per_second: rate(|overview| overview.commands_per_second),
                    job_elapsed_ns: rate(Overview::job_elapsed).map(|nanos| Nanos(nanos.round() as i64)),
                    commands_per_megabyte: rate(|overview| overview.commands_per_megabyte),
                    round_trips_per_file: rate(|overview| overview.round_trips_per_file),
                    connections_per_client: rate(|overview| overview.connections_per_client),
                    dialects: overview(*run).dialects.clone(),
                    ratios,
                },
                ..columns[*run].clone()
            }
        });
        folded.collect()
    }

    fn notes(&self, notes: Vec<ComparisonNote>) -> Vec<ComparisonNote> {
        let mut kept: Vec<ComparisonNote> = Vec::new();
        for note in notes {
            let Some(column) = self.runs.iter().position(|runs| runs.contains(&note.column)) else { continue };
            let same = |other: &ComparisonNote| {
                let again = other.text == note.text || note.kind != NoteKind::Warning;
                other.column == column && other.kind == note.kind && again
            };
            if !kept.iter().any(same) {
                kept.push(ComparisonNote { column, ..note });
            }
        }
        kept
    }
}

fn spread(points: &[Option<PointCell>]) -> Option<RepetitionRange> {
    let known: Vec<&PointCell> = points.iter().flatten().collect();
    let rates = |of: fn(&PointCell) -> Option<f64>| range(known.iter().filter_map(|point| of(point)), f64::total_cmp);
    let times = |of: fn(&ResponseTime) -> Option<Nanos>| {
        let timed = known.iter().filter(|point| point.cell.timed > 0);
        range(timed.filter_map(|point| of(&point.cell.response_time)), Nanos::cmp)
    };
    (known.len() > 1).then(|| RepetitionRange {
        per_second: rates(|point| point.per_second),
        bytes_per_second: rates(|point| point.bytes_per_second),
        mean: times(|times| times.mean),
        p50: times(|times| times.p50),
        p95: times(|times| times.p95),
    })
}

/// Returns the figures of a typical run. Runs without the row count as 0 in the means of counts.
fn typical_cell(cells: &[Option<ComparisonCell>]) -> Option<ComparisonCell> {
    let known: Vec<&ComparisonCell> = cells.iter().flatten().collect();
    let first = *known.first()?;
    if cells.len() == 1 {
        return Some(ComparisonCell { ratios: None, ..first.clone() });
    }
    let counts = |of: fn(&ComparisonCell) -> u64| mean(cells.iter().map(|cell| cell.as_ref().map_or(0, of)));
    let time = |of: fn(&ResponseTime) -> Option<Nanos>| {
        let times = known.iter().filter(|cell| cell.timed > 0).filter_map(|cell| of(&cell.response_time));
        typical(times.map(|time| time.0 as f64)).map(|time| Nanos(time.round() as i64))
    };
    let mut distribution = [0; 10];
    for (at, band) in distribution.iter_mut().enumerate() {
        *band = mean(cells.iter().map(|cell| cell.as_ref().map_or(0, |cell| cell.distribution[at])));
    }
    Some(ComparisonCell {
        count: counts(|cell| cell.count),
        timed: counts(|cell| cell.timed),
        errors: counts(|cell| cell.errors),
        response_time: ResponseTime {
            mean: time(|times| times.mean),
            p50: time(|times| times.p50),
            p95: time(|times| times.p95),
            p99: time(|times| times.p99),
            max: time(|times| times.max),
            sum: time(|times| times.sum),
        },
        distribution,
        ratios: None,
    })
}

/// Rounds up, so that a value that occurs in a single run does not become 0.
fn mean(counts: impl Iterator<Item = u64>) -> u64 {
    let (mut sum, mut number) = (0u64, 0u64);
    for count in counts {
        sum = sum.saturating_add(count);
        number += 1;
    }
    sum.div_ceil(number.max(1))
}

fn typical_of(runs: &Range<usize>, value: &dyn Fn(usize) -> Option<f64>) -> Option<f64> {
    typical(runs.clone().filter_map(value))
}

/// Returns the geometric mean, or the arithmetic mean if a value is 0: the geometric mean would be 0 too.
fn typical(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    match values.as_slice() {
        [] => None,
        [only] => Some(*only),
        many if many.iter().any(|value| *value <= 0.0) => Some(many.iter().sum::<f64>() / many.len() as f64),
        many => Some((many.iter().map(|value| value.ln()).sum::<f64>() / many.len() as f64).exp()),
    }
}

impl Ratio {
    /// Converts a ratio with its interval and certainty. None if it has no value.
    pub(super) fn of_figure(figure: &BaselineRatio) -> Option<Ratio> {
        let level = ReplicationSettings::default().confidence;
        let (answer, repetitions_needed) = Conclusion::from_answer(figure.answer);
        Some(Ratio {
            value: figure.ratio?,
            interval: figure.interval.map(|(low, high)| ConfidenceInterval { low, high, level }),
            certainty: Some(Certainty {
                answer,
                repetitions_needed,
                range: figure.range,
                detectable: figure.detectable,
                repetitions: figure.repetitions,
                scope: figure.scope,
                p_value: figure.p_value,
                shown: false,
            }),
        })
    }
}
