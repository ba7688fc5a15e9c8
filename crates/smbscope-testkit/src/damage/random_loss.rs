//! Random damage to real captures: what the damage tool does. A seed decides all of it.

use super::{drop_among, drop_bursts, drop_some, duplicate, reorder, snap};
use crate::random::Random;
use crate::recording::{Kept, Recording};
use std::fmt;

/// The least and the greatest share of packets that a capture loses.
const SHARES: (f64, f64) = (0.005, 0.8);
/// The longest burst of losses in packets.
const LONGEST_BURST: f64 = 200.0;
/// The greatest share of packets that a capture holds twice, or that it moves.
const REPEATED: f64 = 0.3;
/// The places by which a packet is moved at most.
const PLACES: u64 = 5;
/// The least and the greatest snap length.
const SNAPS: (u64, u64) = (110, 256);

/// Which packets the capture loses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Loss {
    /// Each packet by itself.
    Independent,
    /// Several in a row.
    Bursts,
    /// Packets of one direction of the flows.
    OneDirection,
    /// Packets with payload; those that only acknowledge stay.
    DataSegments,
    /// A packet and the one behind it.
    Neighbours,
    /// The beginning, and a burst later on.
    LateStart,
}

/// What happens to the packets besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Combination {
    /// Nothing.
    Alone,
    /// Some packets are captured twice.
    Duplicates,
    /// Some packets are captured later than they were sent.
    Reordering,
    /// Packets are cut short.
    SnapLength,
}

impl Loss {
    /// Every kind, for tables.
    pub const ALL: [Loss; 6] =
        [Loss::Independent, Loss::Bursts, Loss::OneDirection, Loss::DataSegments, Loss::Neighbours, Loss::LateStart];

    /// The name in tables and arguments.
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
    /// Every kind, for tables.
    pub const ALL: [Combination; 4] =
        [Combination::Alone, Combination::Duplicates, Combination::Reordering, Combination::SnapLength];

    /// The name in tables and arguments.
    pub fn name(self) -> &'static str {
        match self {
            Combination::Alone => "",
            Combination::Duplicates => "duplicates",
            Combination::Reordering => "reordering",
            Combination::SnapLength => "snap length",
        }
    }
}

/// What is done to a capture, with its figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomDamage {
    /// Where every choice comes from.
    pub seed: u64,
    /// Which packets are lost.
    pub loss: Loss,
    /// About this share of those that may be lost; 0 loses nothing.
    pub share: f64,
    /// This many in a row.
    pub burst: usize,
    /// For [`Loss::OneDirection`]: the other one of the two.
    pub second_direction: bool,
    /// What else happens.
    pub combination: Combination,
    /// How much of that: a share of the packets, or a snap length.
    pub amount: f64,
}

impl RandomDamage {
    /// Every choice by a seed. The mode follows from the seed's remainder, so that consecutive seeds go through all.
    pub fn of_seed(seed: u64) -> RandomDamage {
        let losses = Loss::ALL.len() as u64;
        let loss = Loss::ALL[(seed % losses) as usize];
        let combination = Combination::ALL[(seed / losses % Combination::ALL.len() as u64) as usize];
        RandomDamage::of_mode(seed, loss, combination)
    }

    /// Figures by a seed for a given mode.
    pub fn of_mode(seed: u64, loss: Loss, combination: Combination) -> RandomDamage {
        let mut random = Random::new(seed);
        let mut fraction = || random.below(1 << 32) as f64 / (1u64 << 32) as f64;
        // Small shares are as likely as great ones.
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

    /// A copy of the capture with this damage. First the network reorders, then the capture repeats, loses and cuts.
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

/// With which probability a burst begins at a packet behind the last one, so that this share of packets is in bursts.
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
        // Between two bursts lie (1 - p) / p packets on the average.
        for (share, length) in [(0.005, 1), (0.3, 2), (0.8, 50)] {
            let p = burst_probability(share, length);
            let between = (1.0 - p) / p;
            let lost = length as f64 / (length as f64 + between);
            assert!((lost - share).abs() < 1e-9, "{lost} of {share} in bursts of {length}");
        }
    }
}
