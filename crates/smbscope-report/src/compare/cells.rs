//! What a column says of a group or command, and how that relates to the base.

use crate::format::ratio;
use crate::json::entries::StatisticsEntry;
use crate::json::slices::SliceFigures;
use serde::Serialize;
use smbscope_model::Nanos;
use smbscope_stats::DurationStatistics;
use smbscope_stats::replication::{DifferenceVerdict, Scope};
use std::fmt;

/// What a column says of a group or command.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparisonCell {
    /// Commands, timed or not.
    pub count: u64,
    /// Commands that entered the times.
    pub timed: u64,
    /// Error responses.
    pub errors: u64,
    /// Response times.
    pub response_time: ResponseTime,
    /// Response times by decade: below 1 µs, 10 µs, … 100 s, and the rest; all 0 where it is not known.
    pub distribution: [u64; 10],
    /// To the base; null in the base itself, and where the base has no cell.
    pub ratios: Option<Ratios>,
}

/// Figures of response times; see `times` of smbscope.report/1 for which percentiles exist when.
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
    /// All of them together: what clients waited. Mean times number; as the mean is rounded, right to half a nanosecond
    /// a command.
    pub sum: Option<Nanos>,
}

/// Figures as multiples of the base's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ratios {
    /// Of `count`.
    pub count: Option<Ratio>,
    /// Of `mean`.
    pub mean: Option<Ratio>,
    /// Of `p50`.
    pub p50: Option<Ratio>,
    /// Of `p95`.
    pub p95: Option<Ratio>,
    /// Of `p99`.
    pub p99: Option<Ratio>,
    /// Of `max`.
    pub max: Option<Ratio>,
    /// Of `sum`.
    pub sum: Option<Ratio>,
}

/// Of a cell that is compared with nothing.
pub(super) const NO_RATIOS: Ratios =
    Ratios { count: None, mean: None, p50: None, p95: None, p99: None, max: None, sum: None };

/// A value divided by the base's. Null where a value is missing or the base's is 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ratio {
    /// 2 is twice as much as the base.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub value: f64,
    /// In which the ratio lies with a confidence of `level`; null with fewer than five runs of each column, and of single
    /// runs but for the headline.
    pub interval: Option<ConfidenceInterval>,
    /// What can be concluded; null where each column is a single run, but for the headline.
    pub certainty: Option<Certainty>,
}

/// What can be concluded from a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Certainty {
    /// What the interval says.
    pub answer: Conclusion,
    /// Of what is undecided: runs of each column, in all, that would probably decide it.
    pub repetitions_needed: Option<u32>,
    /// Of three or four runs of each column, which have no interval: the least and the greatest ratio.
    pub range: Option<(f64, f64)>,
    /// The smallest ratio above 1 that such data would have shown in four of five tries.
    pub detectable: Option<f64>,
    /// Runs of the column that has fewer, or pairs of runs next to each other.
    pub repetitions: u32,
    /// Whether this is about runs to come, or about these runs only.
    pub scope: Scope,
    /// Probability of at least this difference where there is none.
    pub p_value: Option<f64>,
    /// A difference that is left when all rows of the table are judged together (Benjamini and Hochberg), or all figures of
    /// the headline (Holm).
    pub shown: bool,
}

/// What an interval says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// More than the base's.
    Higher,
    /// Less than the base's.
    Lower,
    /// Equal within 5%.
    Equal,
    /// None of these is shown.
    Undecided,
}

impl Conclusion {
    /// And the repetitions that would decide it.
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
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// In how many of such intervals the truth lies, as 0.95.
    pub level: f64,
}

impl Ratio {
    /// Absent unless both values are known; nothing is a multiple of 0.
    pub(super) fn new(value: Option<f64>, base: Option<f64>) -> Option<Ratio> {
        let (value, base) = (value?, base?);
        (value >= 0.0 && base > 0.0).then(|| Ratio { value: value / base, interval: None, certainty: None })
    }
}

/// How often the base's value, in three digits or so.
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
    fn new(row: &StatisticsEntry) -> ComparisonCell {
        let times = &row.response_time;
        let sum = |mean: Nanos| Nanos::saturating(i128::from(mean.0) * i128::from(row.timed)).0;
        ComparisonCell {
            count: row.count,
            timed: row.timed,
            errors: row.errors(),
            response_time: ResponseTime::new(times, times.mean.map(sum).map(Nanos)),
            distribution: row.distribution,
            ratios: None,
        }
    }

    /// Slices have no distribution.
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

/// The cells of all columns, the base first; a column without a row has no cell.
pub(super) fn row_of<'a>(rows: impl Iterator<Item = Option<&'a StatisticsEntry>>) -> Vec<Option<ComparisonCell>> {
    with_ratios(rows.map(|row| row.map(ComparisonCell::new)))
}

/// The cells, those of other columns with their ratios to the base's.
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

    fn row(timed: u64, mean: i64, p95: Option<i64>) -> StatisticsEntry {
        let (mean, p50, p95, max) = (Some(Nanos(mean)), Some(Nanos(0)), p95.map(Nanos), Some(Nanos(9)));
        let response_time = DurationStatistics { count: timed, mean, p50, p95, max, ..DurationStatistics::default() };
        StatisticsEntry { count: timed + 1, timed, response_time, ..StatisticsEntry::default() }
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
        // 4 · 1,000 ns and 9 · 2,500 ns.
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
