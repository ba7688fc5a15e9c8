//! How many users a server carries, or operations a second: the most with which a criterion is met. Where it says users,
//! it may be rates.
//!
//! The number of users grows twofold until the criterion is not met, then the knee is closed in on by halves. Chance must
//! not decide: where a load point does not meet the criterion it is tried again, and the answer too is tried once more;
//! where tries of the same load differ, most of three count. A search on another day may end at a neighbour all the same, so
//! the answer comes with its range: loads around it are tried until there is one below that met the criterion in all of
//! three tries, and one above that did in none.

use super::criterion::{Criterion, CriterionResult};
use super::load::Engine;
use super::result::{LoadPointEnd, LoadPointResult};
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

    /// How exact the answer is where it is about this.
    fn step(&self, load: u32) -> u32 {
        ((f64::from(load) * self.precision) as u32).max(1)
    }
}

/// The answer.
#[derive(Debug, Clone)]
pub struct CapacityResult {
    /// What had to be met.
    pub criterion: Criterion,
    /// The most users with which it was.
    pub users: Knee,
    /// Where a search on another day may end; absent where there is no knee.
    pub range: Option<KneeRange>,
    /// Every load point, in the order in which they were run.
    pub tried: Vec<LoadTrial>,
}

/// The loads around a knee between which the answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KneeRange {
    /// The most users near the knee with whom the criterion was met in all tries; absent where there are none.
    pub always: Option<u32>,
    /// The fewest users near the knee with whom it was met in none; absent where that is further off.
    pub never: Option<u32>,
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
pub struct LoadTrial {
    /// What came out.
    pub run: LoadPointResult,
    /// What the criterion says.
    pub verdict: CriterionResult,
}

/// Tries of one load that decide: the first two that agree.
const MAJORITY: u32 = 2;

/// Tries of one load that make it certain, where they all agree.
const SURE: u32 = 3;

/// Loads on each side of the knee that are tried for the range.
const RANGE_STEPS_MAX: u32 = 4;

/// Searches on an engine.
pub(crate) fn search(engine: &mut Engine<'_>, criterion: &Criterion, search: Search) -> CapacityResult {
    let mut trials = Trials { engine, criterion, tried: Vec::new(), votes: BTreeMap::new() };
    let users = match trials.knee(search) {
        Ok(knee) => knee,
        Err(SearchInterrupted) => Knee::Unfinished(trials.best()),
    };
    let range = match users {
        Knee::At(knee) => trials.range(knee, search).ok(),
        _ => None,
    };
    CapacityResult { criterion: criterion.clone(), users, range, tried: trials.tried }
}

/// The caller wants to end.
struct SearchInterrupted;

struct Trials<'e, 'a> {
    engine: &'e mut Engine<'a>,
    criterion: &'e Criterion,
    tried: Vec<LoadTrial>,
    /// Tries of each load that met the criterion, and that did not.
    votes: BTreeMap<u32, (u32, u32)>,
}

impl Trials<'_, '_> {
    fn knee(&mut self, search: Search) -> Result<Knee, SearchInterrupted> {
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
            let precision = search.step(low);
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

    /// What is certain around a knee.
    fn range(&mut self, knee: u32, search: Search) -> Result<KneeRange, SearchInterrupted> {
        let (step, most) = (search.step(knee), search.most.clamp(1, search.kind_max()));
        let mut range = KneeRange { always: None, never: None };
        for steps in 0..=RANGE_STEPS_MAX {
            let Some(below) = knee.checked_sub(steps * step).filter(|load| *load > 0) else { break };
            if self.always(below)? {
                range.always = Some(below);
                break;
            }
        }
        for steps in 1..=RANGE_STEPS_MAX {
            let Some(above) = knee.checked_add(steps * step).filter(|load| *load <= most) else { break };
            if self.never(above)? {
                range.never = Some(above);
                break;
            }
        }
        Ok(range)
    }

    /// Whether a load meets the criterion in all tries.
    fn always(&mut self, users: u32) -> Result<bool, SearchInterrupted> {
        loop {
            match self.votes.get(&users).copied().unwrap_or_default() {
                (_, 1..) => return Ok(false),
                (SURE.., _) => return Ok(true),
                _ => self.try_with(users)?,
            }
        }
    }

    /// Whether a load meets it in no try.
    fn never(&mut self, users: u32) -> Result<bool, SearchInterrupted> {
        loop {
            match self.votes.get(&users).copied().unwrap_or_default() {
                (1.., _) => return Ok(false),
                (_, SURE..) => return Ok(true),
                _ => self.try_with(users)?,
            }
        }
    }

    /// Whether a load meets the criterion: at once, or most of three times.
    fn carries(&mut self, users: u32) -> Result<bool, SearchInterrupted> {
        loop {
            match self.votes.get(&users) {
                Some((met, missed)) if *met >= MAJORITY || (*met > 0 && *missed == 0) => return Ok(true),
                Some((_, missed)) if *missed >= MAJORITY => return Ok(false),
                _ => self.try_with(users)?,
            }
        }
    }

    /// Whether a load that met the criterion does so again, or most of three times.
    fn is_sure_of(&mut self, users: u32) -> Result<bool, SearchInterrupted> {
        loop {
            match self.votes.get(&users) {
                Some((met, _)) if *met >= MAJORITY => return Ok(true),
                Some((_, missed)) if *missed >= MAJORITY => return Ok(false),
                _ => self.try_with(users)?,
            }
        }
    }

    fn try_with(&mut self, users: u32) -> Result<(), SearchInterrupted> {
        let run = self.engine.point(self.engine.load(users));
        let mut verdict = self.criterion.judge(&run);
        match &run.ended {
            LoadPointEnd::Done => {}
            LoadPointEnd::Interrupted => {
                verdict.met = false;
                self.tried.push(LoadTrial { run, verdict });
                return Err(SearchInterrupted);
            }
            LoadPointEnd::Stopped(why) | LoadPointEnd::Failed(why) => {
                verdict.met = false;
                verdict.found.push(why.clone());
            }
        }
        if run.hosts.iter().any(|host| host.lost.is_some()) {
            // Fewer users were there than this says: what is left of the hosts tries it again.
            verdict.met = false;
            verdict.found.push("a load host was lost, so this try does not count".to_owned());
            self.tried.push(LoadTrial { run, verdict });
            return if self.engine.is_without_hosts() { Err(SearchInterrupted) } else { Ok(()) };
        }
        let (met, missed) = self.votes.entry(users).or_default();
        *(if verdict.met { met } else { missed }) += 1;
        self.tried.push(LoadTrial { run, verdict });
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
