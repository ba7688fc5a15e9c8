//! Counts by decades of seconds, as in the "response time distributions" of Swartz (1997), appendix A.

use serde::{Deserialize, Serialize};
use smbscope_model::Nanos;

/// Counts of durations by decade: below 1 µs, below 10 µs … below 100 s, and the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Distribution {
    counts: [u64; 10],
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decade {
    pub index: usize,
    /// Upper edge, exclusive. Absent for the last decade.
    pub below: Option<Nanos>,
    pub count: u64,
    pub percent: f64,
    pub cumulative_percent: f64,
}

impl Distribution {
    /// Upper edges of all decades but the last. A value on an edge belongs to the decade above it.
    pub const EDGES: [Nanos; 9] = [
        Nanos(1_000),
        Nanos(10_000),
        Nanos(100_000),
        Nanos(1_000_000),
        Nanos(10_000_000),
        Nanos(100_000_000),
        Nanos(1_000_000_000),
        Nanos(10_000_000_000),
        Nanos(100_000_000_000),
    ];

    /// Counts a value. Negative values belong to the first decade.
    pub fn record(&mut self, value: Nanos) {
        self.counts[Distribution::EDGES.partition_point(|edge| *edge <= value)] += 1;
    }

    pub fn merge(&mut self, other: &Distribution) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts) {
            *mine += theirs;
        }
    }

    pub fn counts(&self) -> [u64; 10] {
        self.counts
    }

    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the decades from the first to the last occupied one, including empty ones between them.
    pub fn decades(&self) -> Vec<Decade> {
        let total = self.total();
        let Some(first) = self.counts.iter().position(|count| *count > 0) else { return Vec::new() };
        let last = self.counts.iter().rposition(|count| *count > 0).unwrap_or(first);
        let mut seen = 0;
        (first..=last)
            .map(|index| {
                let count = self.counts[index];
                seen += count;
                Decade {
                    index,
                    below: Distribution::EDGES.get(index).copied(),
                    count,
                    percent: 100.0 * count as f64 / total as f64,
                    cumulative_percent: 100.0 * seen as f64 / total as f64,
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distribution(values: &[i64]) -> Distribution {
        let mut distribution = Distribution::default();
        values.iter().for_each(|value| distribution.record(Nanos(*value)));
        distribution
    }

    #[test]
    fn a_value_on_an_edge_belongs_to_the_decade_above() {
        // Exactly 0.001 s is not "<0.001"; one nanosecond less is.
        assert_eq!(distribution(&[1_000_000]).counts(), [0, 0, 0, 0, 1, 0, 0, 0, 0, 0]);
        assert_eq!(distribution(&[999_999]).counts(), [0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn every_edge_separates_its_two_decades() {
        for (index, edge) in Distribution::EDGES.into_iter().enumerate() {
            let counts = distribution(&[edge.0 - 1, edge.0]).counts();
            assert_eq!((counts[index], counts[index + 1]), (1, 1), "edge {edge}");
        }
    }

    #[test]
    fn the_ends_are_open() {
        assert_eq!(distribution(&[i64::MIN, 0, i64::MAX]).counts(), [2, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn percentages_are_those_of_the_paper() {
        // Appendix A, Check_Directory: 4 + 155 + 76 = 235: 1.7%, 66.0%, 32.3%; cumulative 1.7, 67.7, 100.0.
        let mut values = vec![500_000; 4];
        values.extend(vec![5_000_000; 155]);
        values.extend(vec![50_000_000; 76]);
        let shown: Vec<String> = distribution(&values)
            .decades()
            .iter()
            .map(|d| format!("{} {:.1} {:.1}", d.count, d.percent, d.cumulative_percent))
            .collect();
        assert_eq!(shown, ["4 1.7 1.7", "155 66.0 67.7", "76 32.3 100.0"]);
    }

    #[test]
    fn empty_decades_inside_are_listed_and_outside_are_not() {
        let decades = distribution(&[5_000, 5_000_000]).decades();
        assert_eq!(decades.iter().map(|d| (d.index, d.count)).collect::<Vec<_>>(), [(1, 1), (2, 0), (3, 0), (4, 1)]);
        assert!(distribution(&[]).decades().is_empty());
    }
}
