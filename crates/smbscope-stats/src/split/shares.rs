//! Sums of divided time without rounding loss.

use super::{TimePart, TimeSplit};

const PARTS: usize = TimePart::ALL.len();

/// Time by part. Undivided time is in nanoseconds, shares of divided time are in units of 2⁻³² ns.
#[derive(Debug, Clone, Default)]
pub(super) struct Shares {
    whole: [i64; PARTS],
    shared: [u128; PARTS],
    /// Divided time in nanoseconds; equal to the sum of `shared` except for rounding.
    divided: i64,
}

impl Shares {
    pub(super) fn add(&mut self, part: TimePart, length: i64) {
        self.whole[part as usize] += length;
    }

    pub(super) fn divide(&mut self, counts: &[u32; PARTS], length: i64) {
        let total: u128 = counts.iter().map(|count| u128::from(*count)).sum();
        let Some(share) = ((length.unsigned_abs() as u128) << 32).checked_div(total) else { return };
        self.divided += length;
        for (sum, count) in self.shared.iter_mut().zip(counts) {
            *sum += share * u128::from(*count);
        }
    }

    /// Writes whole nanoseconds that add up to the recorded time. The remainder from rounding down goes to the parts
    /// with the largest fractions, one nanosecond each.
    pub(super) fn finish(&self, split: &mut TimeSplit) {
        let mut parts: [i64; PARTS] = std::array::from_fn(|part| (self.shared[part] >> 32) as i64);
        let mut by_rest: Vec<usize> = (0..PARTS).filter(|part| self.shared[*part] > 0).collect();
        by_rest.sort_by_key(|part| std::cmp::Reverse(self.shared[*part] as u32));
        let left = self.divided - parts.iter().sum::<i64>();
        for part in by_rest.into_iter().cycle().take(left.max(0) as usize) {
            parts[part] += 1;
        }
        for (sum, (shared, whole)) in split.parts.iter_mut().zip(parts.iter().zip(self.whole)) {
            *sum = shared + whole;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirds_of_a_nanosecond_are_not_lost() {
        let mut shares = Shares::default();
        let mut counts = [0; PARTS];
        (counts[TimePart::Server as usize], counts[TimePart::Network as usize]) = (2, 1);
        (0..1_000).for_each(|_| shares.divide(&counts, 1));
        let mut split = TimeSplit::default();
        shares.finish(&mut split);
        // 1,000 ns in thirds: 666.67 and 333.33.
        assert_eq!(
            (split.part(TimePart::Server).0, split.part(TimePart::Network).0, split.elapsed().0),
            (667, 333, 1_000)
        );
    }

    #[test]
    fn years_do_not_overflow() {
        let mut shares = Shares::default();
        let mut counts = [0; PARTS];
        counts[TimePart::Server as usize] = u32::MAX;
        shares.divide(&counts, i64::MAX / 2);
        shares.add(TimePart::Idle, 5);
        let mut split = TimeSplit::default();
        shares.finish(&mut split);
        assert_eq!((split.part(TimePart::Server).0, split.part(TimePart::Idle).0), (i64::MAX / 2, 5));
    }
}
