//! Corrects the differences in a table for multiple comparisons.

use super::cells::{ComparisonCell, Conclusion, Ratio, Ratios};
use super::{Comparison, OverviewRatios};
use smbscope_stats::replication::{benjamini_hochberg, holm};

/// Family-wise error rate (Holm) of the headline and false discovery rate (Benjamini-Hochberg) of the tables.
const LEVEL: f64 = 0.05;

impl Ratios {
    fn judged(&mut self) -> impl Iterator<Item = &mut Ratio> {
        [&mut self.mean, &mut self.p50, &mut self.p95, &mut self.p99, &mut self.sum].into_iter().flatten()
    }
}

/// Decides which differences of each column are shown as significant.
pub(super) fn rows(comparison: &mut Comparison) {
    for column in 1..comparison.columns.len() {
        let headline = ratios_of(comparison.headline.cells.get_mut(column));
        // The headline shows the mean only if it has neither a median nor a p95, but it counts as a comparison in any
        // case.
        let overview = comparison.columns[column].overview.ratios.as_mut().map(|ratios| {
            let OverviewRatios { bytes_per_second, commands_per_second, job_elapsed } = ratios;
            [bytes_per_second, commands_per_second, job_elapsed].into_iter().flatten()
        });
        let times = headline.into_iter().flat_map(|ratios| [&mut ratios.p50, &mut ratios.p95, &mut ratios.mean]);
        mark(times.flatten().chain(overview.into_iter().flatten()).collect(), holm);

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

fn mark(ratios: Vec<&mut Ratio>, adjust: fn(&[Option<f64>]) -> Vec<Option<f64>>) {
    let p_values: Vec<Option<f64>> =
        ratios.iter().map(|ratio| ratio.certainty.and_then(|certainty| certainty.p_value)).collect();
    for (ratio, p) in ratios.into_iter().zip(adjust(&p_values)) {
        let Some(certainty) = &mut ratio.certainty else { continue };
        certainty.shown =
            matches!(certainty.answer, Conclusion::Higher | Conclusion::Lower) && p.is_some_and(|p| p <= LEVEL);
    }
}
