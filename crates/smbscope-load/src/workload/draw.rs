//! The distributions that a workload can name.

use serde::{Deserialize, Serialize};
use smbscope_stats::Random;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SizeDistribution {
    Fixed(u64),
    /// Every size in the inclusive range, equally likely.
    Uniform(u64, u64),
    Weighted(Vec<(u64, u32)>),
    /// Lognormal, given by its median in thousandths of a byte: many small files and few large ones, as in users' file
    /// systems (Downey, "The structural cause of file size distributions", 2001).
    Lognormal(u64),
}

/// Standard deviation of the logarithm of a lognormal size.
const SIGMA: f64 = 2.0;

impl SizeDistribution {
    pub(crate) fn draw(&self, random: &mut Random) -> u64 {
        match self {
            SizeDistribution::Fixed(size) => *size,
            SizeDistribution::Uniform(least, most) => {
                least + random.below(most.saturating_sub(*least).saturating_add(1))
            }
            SizeDistribution::Weighted(list) => {
                let mut left = random.below(list.iter().map(|(_, weight)| u64::from(*weight)).sum());
                for (size, weight) in list {
                    match left.checked_sub(u64::from(*weight)) {
                        Some(rest) => left = rest,
                        None => return *size,
                    }
                }
                list.last().map_or(0, |(size, _)| *size)
            }
            SizeDistribution::Lognormal(median) => ((*median as f64 / 1e3 * lognormal(random)).round() as u64).max(1),
        }
    }

    /// Returns the lognormal distribution whose sizes for `files` files of this seed total `bytes`.
    pub(crate) fn adding_up_to(bytes: u64, files: u32, seed: u64) -> SizeDistribution {
        let sum: f64 = (0..files).map(|file| lognormal(&mut SizeDistribution::of_file(seed, file))).sum();
        SizeDistribution::Lognormal((bytes as f64 * 1e3 / sum).round() as u64)
    }

    pub(crate) fn of_file(seed: u64, file: u32) -> Random {
        Random::new(&[seed, u64::from(file)])
    }

    pub(crate) fn least(&self) -> u64 {
        match self {
            SizeDistribution::Fixed(size) => *size,
            SizeDistribution::Uniform(least, _) => *least,
            SizeDistribution::Weighted(list) => list.iter().map(|(size, _)| *size).min().unwrap_or(0),
            SizeDistribution::Lognormal(_) => 1,
        }
    }

    pub(crate) fn most(&self) -> u64 {
        match self {
            SizeDistribution::Fixed(size) => *size,
            SizeDistribution::Uniform(_, most) => *most,
            SizeDistribution::Weighted(list) => list.iter().map(|(size, _)| *size).max().unwrap_or(0),
            SizeDistribution::Lognormal(_) => u64::MAX,
        }
    }
}

/// Draws a lognormal value with median 1 (Box-Muller).
fn lognormal(random: &mut Random) -> f64 {
    let radius = (2.0 * random.exponential()).sqrt();
    (SIGMA * radius * (std::f64::consts::TAU * random.unit()).cos()).exp()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Times {
    Fixed(Duration),
    Uniform(Duration, Duration),
    Exponential(Duration),
}

impl Times {
    pub(crate) fn draw(self, random: &mut Random) -> Duration {
        match self {
            Times::Fixed(time) => time,
            Times::Uniform(least, most) => least + most.saturating_sub(least).mul_f64(random.unit()),
            // Inverse transform sampling. 1 - u is never 0.
            Times::Exponential(mean) => mean.mul_f64(random.exponential()),
        }
    }

    pub(crate) fn is_zero(self) -> bool {
        matches!(self, Times::Fixed(time) | Times::Uniform(_, time) | Times::Exponential(time) if time.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_have_their_means_and_bounds() {
        let mut random = Random::new(&[1, 2]);
        let sizes = SizeDistribution::Uniform(100, 200);
        let drawn: Vec<u64> = (0..10_000).map(|_| sizes.draw(&mut random)).collect();
        assert!(drawn.iter().all(|size| (100..=200).contains(size)));
        assert!(drawn.contains(&100) && drawn.contains(&200));
        // The mean is 150; the standard error of 10,000 draws is 0.3.
        assert!((drawn.iter().sum::<u64>() as f64 / 10_000.0 - 150.0).abs() < 1.5);

        let weighted = SizeDistribution::Weighted(vec![(1, 3), (4096, 1), (7, 0)]);
        let ones = (0..10_000).filter(|_| weighted.draw(&mut random) == 1).count();
        // 7,500 with a standard deviation of 43.
        assert!((7_300..7_700).contains(&ones), "{ones}");
        assert!((0..1000).all(|_| weighted.draw(&mut random) != 7));

        let mean = Duration::from_millis(10);
        let total: Duration = (0..10_000).map(|_| Times::Exponential(mean).draw(&mut random)).sum();
        // 10 ms with a standard error of 0.1 ms.
        assert!((total.as_secs_f64() / 10_000.0 - 0.010).abs() < 0.0005, "{total:?}");
    }

    #[test]
    fn lognormal_sizes_add_up_and_most_are_small() {
        let (bytes, files) = (151_000_000, 18_460);
        let sizes = SizeDistribution::adding_up_to(bytes, files, 1);
        let drawn: Vec<u64> = (0..files).map(|file| sizes.draw(&mut SizeDistribution::of_file(1, file))).collect();
        // Each size is rounded and at least 1.
        assert!(drawn.iter().sum::<u64>().abs_diff(bytes) < u64::from(files), "{}", drawn.iter().sum::<u64>());
        let median = {
            let mut sorted = drawn.clone();
            sorted.sort_unstable();
            sorted[sorted.len() / 2]
        };
        // The mean of a lognormal distribution is exp(2² / 2) = 7.4 times its median.
        let mean = bytes / u64::from(files);
        assert!((4..11).contains(&(mean / median)), "{mean} and {median}");
        assert!(drawn.iter().all(|size| *size >= 1));
    }

    #[test]
    fn generators_of_different_users_differ() {
        let first = |parts: &[u64]| Random::new(parts).bits();
        assert_ne!(first(&[1, 0]), first(&[1, 1]));
        assert_ne!(first(&[1, 2]), first(&[2, 1]));
        assert_eq!(first(&[1, 2]), first(&[1, 2]));
    }
}
