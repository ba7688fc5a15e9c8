//! How many users a server carries, or operations a second: the most with which a criterion is met. Where it says users,
//! it may be rates.
//!
//! The number of users grows twofold until the criterion is not met, then the knee is closed in on by halves. Chance must
//! not decide: where a load point does not meet the criterion it is tried again, and the answer too is tried once more;
//! where tries of the same load differ, most of three count.

use super::criterion::{Criterion, CriterionResult};
use super::load::Engine;
use super::result::{Ended, Run};
use super::users::{RATE_MAX, USERS_MAX};
use std::collections::BTreeMap;

/// Where to look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Search {
    /// The first load point.
    pub first: u32,
    /// No load point has more users.
    pub most: u32,
    /// Loads are rates, operations a second, and not users.
    pub rates: bool,
    /// How exact: the knee is between the answer and this share above it, or one user.
    pub precision: f64,
}

impl Default for Search {
    /// From 1 to 10,000 users, to 5%.
    fn default() -> Search {
        Search { first: 1, most: 10_000, rates: false, precision: 0.05 }
    }
}

impl Search {
    fn kind_max(&self) -> u32 {
        if self.rates { RATE_MAX } else { USERS_MAX }
    }
}

/// The answer.
#[derive(Debug, Clone)]
pub struct Capacity {
    /// What had to be met.
    pub criterion: Criterion,
    /// The most users with which it was.
    pub users: Knee,
    /// Every load point, in the order in which they were run.
    pub tried: Vec<Tried>,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Knee {
    /// These users are carried, and a few more are not.
    At(u32),
    /// These users are carried, and more were not tried: the search allows no more.
    AtLeast(u32),
    /// Not even the fewest users that were tried are carried.
    Below(u32),
    /// The search was interrupted; these users are carried, as far as it came.
    Unfinished(Option<u32>),
}

/// A load point.
#[derive(Debug, Clone)]
pub struct Tried {
    /// What came out.
    pub run: Run,
    /// What the criterion says.
    pub verdict: CriterionResult,
}

/// Tries of one load that decide: the first two that agree.
const MAJORITY: u32 = 2;

/// Searches on an engine.
pub(crate) fn search(engine: &mut Engine<'_>, criterion: &Criterion, search: Search) -> Capacity {
    let mut trials = Trials { engine, criterion, tried: Vec::new(), votes: BTreeMap::new() };
    let users = match trials.knee(search) {
        Ok(knee) => knee,
        Err(Interrupted) => Knee::Unfinished(trials.best()),
    };
    Capacity { criterion: criterion.clone(), users, tried: trials.tried }
}

/// The caller wants to end.
struct Interrupted;

struct Trials<'e, 'a> {
    engine: &'e mut Engine<'a>,
    criterion: &'e Criterion,
    tried: Vec<Tried>,
    /// Tries of each load that met the criterion, and that did not.
    votes: BTreeMap<u32, (u32, u32)>,
}

impl Trials<'_, '_> {
    fn knee(&mut self, search: Search) -> Result<Knee, Interrupted> {
        let most = search.most.clamp(1, search.kind_max());
        let first = search.first.clamp(1, most);
        let mut low = 0;
        let mut high = first;
        while self.carries(high)? {
            low = high;
            if low == most {
                return Ok(Knee::AtLeast(most));
            }
            high = high.saturating_mul(2).min(most);
        }
        loop {
            let precision = ((f64::from(low) * search.precision) as u32).max(1);
            while high - low > precision {
                let middle = low + (high - low) / 2;
                if self.carries(middle)? {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            if low == 0 {
                return Ok(Knee::Below(high));
            }
            if self.is_sure_of(low)? {
                return Ok(Knee::At(low));
            }
            high = low;
            low = self.best_below(high).unwrap_or(0);
        }
    }

    /// Whether a load meets the criterion: at once, or most of three times.
    fn carries(&mut self, users: u32) -> Result<bool, Interrupted> {
        loop {
            match self.votes.get(&users) {
                Some((met, missed)) if *met >= MAJORITY || (*met > 0 && *missed == 0) => return Ok(true),
                Some((_, missed)) if *missed >= MAJORITY => return Ok(false),
                _ => self.try_with(users)?,
            }
        }
    }

    /// Whether a load that met the criterion does so again, or most of three times.
    fn is_sure_of(&mut self, users: u32) -> Result<bool, Interrupted> {
        loop {
            match self.votes.get(&users) {
                Some((met, _)) if *met >= MAJORITY => return Ok(true),
                Some((_, missed)) if *missed >= MAJORITY => return Ok(false),
                _ => self.try_with(users)?,
            }
        }
    }

    fn try_with(&mut self, users: u32) -> Result<(), Interrupted> {
        let run = self.engine.point(self.engine.load(users));
        let mut verdict = self.criterion.judge(&run);
        match &run.ended {
            Ended::Done => {}
            Ended::Interrupted => {
                verdict.met = false;
                self.tried.push(Tried { run, verdict });
                return Err(Interrupted);
            }
            Ended::Stopped(why) | Ended::Failed(why) => {
                verdict.met = false;
                verdict.found.push(why.clone());
            }
        }
        let (met, missed) = self.votes.entry(users).or_default();
        *(if verdict.met { met } else { missed }) += 1;
        self.tried.push(Tried { run, verdict });
        Ok(())
    }

    fn best(&self) -> Option<u32> {
        self.best_below(u32::MAX)
    }

    /// The most users below a number with whom the criterion was met, by more tries than not.
    fn best_below(&self, users: u32) -> Option<u32> {
        self.votes.range(..users).rev().find(|(_, (met, missed))| met > missed).map(|(users, _)| *users)
    }
}
