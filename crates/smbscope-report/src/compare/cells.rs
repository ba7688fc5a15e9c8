//! Figures of a group or command in a column, and their ratios to the baseline.

use crate::format::ratio;
use crate::json::listings::SliceFigures;
use serde::Serialize;
use smbscope_model::Nanos;
use smbscope_stats::replication::{DifferenceVerdict, Scope};
use smbscope_stats::{CommandStatistics, DurationStatistics};
use std::fmt;

/// Figures of a group or command in a column.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparisonCell {
    /// Number of commands, timed or not.
    pub count: u64,
    /// Commands with a response time.
    pub timed: u64,
    /// Error responses.
    pub errors: u64,
    /// Response times.
    pub response_time: ResponseTime,
    /// Response times by decade: below 1 µs, 10 µs, … 100 s, and longer. All 0 if unknown.
    pub distribution: [u64; 10],
    /// Ratios to the baseline. Null in the baseline, and if the baseline has no cell.
    pub ratios: Option<Ratios>,
}

/// Response time statistics. `times` of smbscope.report/1 says which percentiles exist when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResponseTime {
    /// Arithmetic mean.
    pub mean: Option<Nanos>,
    /// Median.
    pub p50: Option<Nanos>,
    /// 95th percentile.
    pub p95: Option<Nanos>,
    /// 99th percentile.
    pub p99: Option<Nanos>,
    /// Largest value.
    pub max: Option<Nanos>,
    /// Total response time: mean times `timed`. Accurate to half a nanosecond per command, as the mean is rounded.
    pub sum: Option<Nanos>,
}

/// Ratios to the baseline, by figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ratios {
    /// Ratio of `count`.
    pub count: Option<Ratio>,
    /// Ratio of `mean`.
    pub mean: Option<Ratio>,
    /// Ratio of `p50`.
    pub p50: Option<Ratio>,
    /// Ratio of `p95`.
    pub p95: Option<Ratio>,
    /// Ratio of `p99`.
    pub p99: Option<Ratio>,
    /// Ratio of `max`.
    pub max: Option<Ratio>,
    /// Ratio of `sum`.
    pub sum: Option<Ratio>,
}

pub(super) const NO_RATIOS: Ratios =
    Ratios { count: None, mean: None, p50: None, p95: None, p99: None, max: None, sum: None };

/// A value divided by the baseline's. Null if a value is missing or the baseline's is 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ratio {
    /// The quotient; 2 is twice the baseline.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub value: f64,
    /// Confidence interval of the ratio. Null with fewer than five runs per column; for single runs, only the headline
    /// has one.
    pub interval: Option<ConfidenceInterval>,
    /// Certainty of the ratio. For single runs, only the headline has one.
    pub certainty: Option<Certainty>,
}

/// Certainty of a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Certainty {
    /// Conclusion from the interval.
    pub answer: Conclusion,
    /// Total runs per column that would probably decide an undecided ratio.
    pub repetitions_needed: Option<u32>,
    /// Smallest and largest ratio of three or four runs per column, which are too few for an interval.
    pub range: Option<(f64, f64)>,
    /// Smallest ratio above 1 that this data would have detected with a power of 80%.
    pub detectable: Option<f64>,
    /// Runs of the column with fewer runs, or pairs of adjacent runs.
    pub repetitions: u32,
    /// The conclusion holds for future runs, or for these runs only.
    pub scope: Scope,
    /// P-value: probability of a difference at least this large if the true ratio is 1.
    pub p_value: Option<f64>,
    /// The difference is significant after correction for multiple comparisons: Benjamini-Hochberg for the rows of a
    /// table, Holm for the headline.
    pub shown: bool,
}

/// Conclusion from an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// Higher than the baseline.
    Higher,
    /// Lower than the baseline.
    Lower,
    /// Equal within 5%.
    Equal,
    /// Not decided by the data.
    Undecided,
}

impl Conclusion {
    pub(super) fn from_answer(answer: DifferenceVerdict) -> (Conclusion, Option<u32>) {
        match answer {
            DifferenceVerdict::Higher => (Conclusion::Higher, None),
            DifferenceVerdict::Lower => (Conclusion::Lower, None),
            DifferenceVerdict::Equal => (Conclusion::Equal, None),
            DifferenceVerdict::Undecided { repetitions_needed } => (Conclusion::Undecided, repetitions_needed),
        }
    }
}

/// A confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfidenceInterval {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// Confidence level, such as 0.95.
    pub level: f64,
}

impl Ratio {
    /// Returns None if a value is missing or the base is 0.
    pub(super) fn new(value: Option<f64>, base: Option<f64>) -> Option<Ratio> {
        let (value, base) = (value?, base?);
        (value >= 0.0 && base > 0.0).then(|| Ratio { value: value / base, interval: None, certainty: None })
    }
}

/// Formats the quotient with about three digits.
impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&ratio(self.value))
    }
}

impl Ratios {
    fn new(cell: &ComparisonCell, base: &ComparisonCell) -> Ratios {
        let (mine, bases) = (&cell.response_time, &base.response_time);
        let times = |figure: fn(&ResponseTime) -> Option<Nanos>| {
            let value = |times| figure(times).map(|time| time.0 as f64);
            Ratio::new(value(mine), value(bases))
        };
        Ratios {
            count: Ratio::new(Some(cell.count as f64), Some(base.count as f64)),
            mean: times(|times| times.mean),
            p50: times(|times| times.p50),
            p95: times(|times| times.p95),
            p99: times(|times| times.p99),
            max: times(|times| times.max),
            sum: times(|times| times.sum),
        }
    }
}

impl ResponseTime {
    fn new(times: &DurationStatistics, sum: Option<Nanos>) -> ResponseTime {
        ResponseTime { mean: times.mean, p50: times.p50, p95: times.p95, p99: times.p99, max: times.max, sum }
    }
}

impl ComparisonCell {
    fn new(row: &CommandStatistics) -> ComparisonCell {
        let times = &row.response_time;
        let sum = |mean: Nanos| Nanos::saturating(i128::from(mean.0) * i128::from(row.timed)).0;
        ComparisonCell {
            count: row.count,
            timed: row.timed,
            errors: row.errors(),
            response_time: ResponseTime::new(times, times.mean.map(sum).map(Nanos)),
            distribution: row.distribution.counts(),
            ratios: None,
        }
    }

    pub(super) fn of_slice(slice: &SliceFigures) -> ComparisonCell {
        let sum = (slice.timed > 0).then_some(Nanos(slice.response_time_sum_ns));
        ComparisonCell {
            count: slice.count,
            timed: slice.timed,
            errors: slice.errors,
            response_time: ResponseTime::new(&slice.response_time, sum),
            distribution: [0; 10],
            ratios: None,
        }
    }
}

/// Returns a cell per column, the baseline first. Columns without the row have None.
pub(super) fn row_of<'a>(rows: impl Iterator<Item = Option<&'a CommandStatistics>>) -> Vec<Option<ComparisonCell>> {
    with_ratios(rows.map(|row| row.map(ComparisonCell::new)))
}

/// Adds the ratios to the baseline, the first cell, to all other cells.
pub(super) fn with_ratios(cells: impl Iterator<Item = Option<ComparisonCell>>) -> Vec<Option<ComparisonCell>> {
    let mut cells: Vec<Option<ComparisonCell>> = cells.collect();
    if let Some((Some(base), others)) = cells.split_first_mut() {
        others.iter_mut().flatten().for_each(|cell| cell.ratios = Some(Ratios::new(cell, base)));
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(timed: u64, mean: i64, p95: Option<i64>) -> CommandStatistics {
        let (mean, p50, p95, max) = (Some(Nanos(mean)), Some(Nanos(0)), p95.map(Nanos), Some(Nanos(9)));
        let response_time = DurationStatistics { count: timed, mean, p50, p95, max, ..DurationStatistics::default() };
        CommandStatistics { count: timed + 1, timed, response_time, ..CommandStatistics::default() }
    }

    #[test]
    fn multiples_have_three_digits() {
        let shown = [0.0, 0.001, 0.5, 1.0, 9.999, 25.04, 1_234.0, 1e9]
            .map(|value| Ratio { value, interval: None, certainty: None }.to_string());
        assert_eq!(shown, ["0.00", "<0.01", "0.50", "1.00", "10.0", "25.0", "1234", ">99999"]);
    }

    #[test]
    fn a_ratio_needs_both_values_and_a_base_above_zero() {
        assert_eq!(Ratio::new(Some(3.0), Some(2.0)).map(|ratio| ratio.value), Some(1.5));
        assert_eq!(Ratio::new(Some(0.0), Some(2.0)).map(|ratio| ratio.value), Some(0.0));
        assert_eq!(
            [Ratio::new(Some(3.0), None), Ratio::new(None, Some(2.0)), Ratio::new(Some(3.0), Some(0.0))],
            [None; 3]
        );
    }

    #[test]
    fn ratios_are_those_of_each_figure_to_the_base() {
        let (base, other) = (row(4, 1_000, Some(2_000)), row(9, 2_500, None));
        let cells = row_of([Some(&base), Some(&other), None].into_iter());
        let [Some(base), Some(other), None] = cells.as_slice() else { panic!("{cells:?}") };
        assert_eq!((base.response_time.sum, other.response_time.sum), (Some(Nanos(4_000)), Some(Nanos(22_500))));
        assert_eq!(base.ratios, None);
        let ratios = other.ratios.expect("the base has a cell");
        let value = |ratio: Option<Ratio>| ratio.map(|ratio| ratio.value);
        assert_eq!([value(ratios.count), value(ratios.mean), value(ratios.sum)], [Some(2.0), Some(2.5), Some(5.625)]);
        // Too few values for a 95th percentile; the base's median is 0; the maxima are equal.
        assert_eq!([value(ratios.p95), value(ratios.p50), value(ratios.max)], [None, None, Some(1.0)]);
    }

    #[test]
    fn what_the_base_does_not_have_has_no_ratio() {
        let other = row(4, 1_000, None);
        let cells = row_of([None, Some(&other)].into_iter());
        assert!(cells[0].is_none() && cells[1].as_ref().is_some_and(|cell| cell.ratios.is_none()));
    }
}
