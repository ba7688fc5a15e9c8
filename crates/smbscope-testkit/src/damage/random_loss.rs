//! Random damage to real captures, fully determined by a seed. Used by the damage tool.

use super::{drop_among, drop_bursts, drop_some, duplicate, reorder, snap};
use crate::random::Random;
use crate::recording::{Kept, Recording};
use std::fmt;

/// Range of the share of lost packets.
const SHARES: (f64, f64) = (0.005, 0.8);
/// Longest burst of losses in packets.
const LONGEST_BURST: f64 = 200.0;
/// Maximum share of duplicated or reordered packets.
const REPEATED: f64 = 0.3;
/// Maximum number of places by which a packet is moved.
const PLACES: u64 = 5;
/// Range of snap lengths.
const SNAPS: (u64, u64) = (110, 256);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Loss {
    Independent,
    Bursts,
    OneDirection,
    /// Packets with payload, but not pure acknowledgments.
    DataSegments,
    /// Pairs of neighbouring packets.
    Neighbours,
    /// The start of the capture, and a burst later on.
    LateStart,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Combination {
    Alone,
    Duplicates,
    Reordering,
    SnapLength,
}

impl Loss {
    pub const ALL: [Loss; 6] =
        [Loss::Independent, Loss::Bursts, Loss::OneDirection, Loss::DataSegments, Loss::Neighbours, Loss::LateStart];

    pub fn name(self) -> &'static str {
        match self {
            Loss::Independent => "independent",
            Loss::Bursts => "bursts",
            Loss::OneDirection => "one direction",
            Loss::DataSegments => "data segments",
            Loss::Neighbours => "neighbours",
            Loss::LateStart => "late start",
        }
    }
}

impl Combination {
    pub const ALL: [Combination; 4] =
        [Combination::Alone, Combination::Duplicates, Combination::Reordering, Combination::SnapLength];

    pub fn name(self) -> &'static str {
        match self {
            Combination::Alone => "",
            Combination::Duplicates => "duplicates",
            Combination::Reordering => "reordering",
            Combination::SnapLength => "snap length",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomDamage {
    pub seed: u64,
    pub loss: Loss,
    /// Approximate share of lost packets among those eligible; 0 loses nothing.
    pub share: f64,
    /// Number of packets lost in a row.
    pub burst: usize,
    /// For [`Loss::OneDirection`]: selects the second direction instead of the first.
    pub second_direction: bool,
    pub combination: Combination,
    /// Extent of the additional damage: a share of the packets, or a snap length.
    pub amount: f64,
}

impl RandomDamage {
    /// Chooses mode and parameters from a seed. The mode is the seed modulo the number of modes, so consecutive seeds
    /// cover all.
    pub fn of_seed(seed: u64) -> RandomDamage {
        let losses = Loss::ALL.len() as u64;
        let loss = Loss::ALL[(seed % losses) as usize];
        let combination = Combination::ALL[(seed / losses % Combination::ALL.len() as u64) as usize];
        RandomDamage::of_mode(seed, loss, combination)
    }

    pub fn of_mode(seed: u64, loss: Loss, combination: Combination) -> RandomDamage {
        let mut random = Random::new(seed);
        let mut fraction = || random.below(1 << 32) as f64 / (1u64 << 32) as f64;
        // Logarithmic distribution: small shares are as likely as large ones.
        let share = SHARES.0 * (SHARES.1 / SHARES.0).powf(fraction());
        let burst = match loss {
            Loss::Bursts => LONGEST_BURST.powf(fraction()).round().max(2.0) as usize,
            Loss::Neighbours => 2,
            Loss::LateStart => 1 + (fraction() * 12.0) as usize,
            _ => 1,
        };
        let amount = match combination {
            Combination::Alone => 0.0,
            Combination::Duplicates | Combination::Reordering => REPEATED * fraction(),
            Combination::SnapLength => (SNAPS.0 + (fraction() * (SNAPS.1 - SNAPS.0 + 1) as f64) as u64) as f64,
        };
        RandomDamage { seed, loss, share, burst, second_direction: fraction() < 0.5, combination, amount }
    }

    /// Returns a damaged copy of the capture: the network reorders, then the capture duplicates, drops and truncates.
    pub fn apply(&self, recording: &Recording) -> Vec<Kept> {
        let mut copy = recording.undamaged();
        match self.combination {
            Combination::Reordering => copy = reorder(&copy, self.seed ^ 1, self.amount, PLACES),
            Combination::Duplicates => copy = duplicate(&copy, self.seed ^ 2, self.amount),
            Combination::Alone | Combination::SnapLength => {}
        }
        copy = self.lose(recording, copy);
        match self.combination {
            Combination::SnapLength => snap(&copy, self.amount as usize),
            _ => copy,
        }
    }

    fn lose(&self, recording: &Recording, copy: Vec<Kept>) -> Vec<Kept> {
        let begins = burst_probability(self.share, self.burst);
        let seed = self.seed ^ 3;
        match self.loss {
            Loss::Independent => drop_some(&copy, seed, self.share),
            Loss::Bursts | Loss::Neighbours => drop_bursts(&copy, seed, begins, self.burst),
            Loss::OneDirection => {
                let second = u32::from(self.second_direction);
                drop_among(&copy, seed, self.share, 1, |kept| {
                    recording.direction(kept.origin).is_some_and(|direction| direction % 2 == second)
                })
            }
            Loss::DataSegments => drop_among(&copy, seed, self.share, 1, |kept| recording.has_payload(kept.origin)),
            Loss::LateStart => {
                let mut random = Random::new(seed);
                let first = (copy.len() as f64 * self.share) as usize;
                let from = first + random.below((copy.len() - first) as u64) as usize;
                let lost = from..from + self.burst;
                let places = (first..copy.len()).filter(|place| !lost.contains(place));
                places.map(|place| copy[place]).collect()
            }
        }
    }
}

/// Returns the probability of another burst, per packet after the last one, at which this share of packets is lost.
fn burst_probability(share: f64, length: usize) -> f64 {
    share / (share + length as f64 * (1.0 - share))
}

impl fmt::Display for RandomDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:.1}%", self.loss.name(), 100.0 * self.share)?;
        match self.loss {
            Loss::Bursts | Loss::LateStart => write!(f, ", bursts of {}", self.burst)?,
            Loss::OneDirection => write!(f, ", {} direction", if self.second_direction { "second" } else { "first" })?,
            Loss::Independent | Loss::DataSegments | Loss::Neighbours => {}
        }
        match self.combination {
            Combination::Alone => Ok(()),
            Combination::SnapLength => write!(f, ", snap length {}", self.amount),
            Combination::Duplicates | Combination::Reordering => {
                write!(f, ", {} {:.1}%", self.combination.name(), 100.0 * self.amount)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_seeds_go_through_every_mode() {
        let modes = Loss::ALL.len() * Combination::ALL.len();
        let mut seen: Vec<(Loss, Combination)> =
            (0..modes as u64).map(RandomDamage::of_seed).map(|damage| (damage.loss, damage.combination)).collect();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), modes);
    }

    #[test]
    fn bursts_hold_the_share_asked_for() {
        // On average, (1 - p) / p packets lie between two bursts.
        for (share, length) in [(0.005, 1), (0.3, 2), (0.8, 50)] {
            let p = burst_probability(share, length);
            let between = (1.0 - p) / p;
            let lost = length as f64 / (length as f64 + between);
            assert!((lost - share).abs() < 1e-9, "{lost} of {share} in bursts of {length}");
        }
    }
}
