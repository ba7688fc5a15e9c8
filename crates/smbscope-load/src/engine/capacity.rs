//! Searches for the capacity of a server: the largest load, in users or in operations per second, that meets a
//! criterion.
//!
//! The load doubles until the criterion fails, then a bisection closes in on the knee. To rule out chance, a failed
//! load is tried again, and so is the answer; if tries of a load disagree, the majority of three decides. A search on
//! another day may still end at a neighbouring load, so the answer comes with a range: loads around it are tried until
//! one below passes all of three tries and one above fails all of them.

use super::criterion::{Criterion, CriterionResult};
use super::load::Engine;
use super::plan::{RATE_MAX, USERS_MAX};
use super::result::{LoadPointEnd, LoadPointResult};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Search {
    pub first: u32,
    pub most: u32,
    /// True if loads are operations per second instead of users.
    pub rates: bool,
    /// Relative precision: the knee lies between the answer and this share above it, or one more user.
    pub precision: f64,
}

impl Default for Search {
    fn default() -> Search {
        Search { first: 1, most: 10_000, rates: false, precision: 0.05 }
    }
}

impl Search {
    fn kind_max(&self) -> u32 {
        if self.rates { RATE_MAX } else { USERS_MAX }
    }

    fn step(&self, load: u32) -> u32 {
        ((f64::from(load) * self.precision) as u32).max(1)
    }
}

#[derive(Debug, Clone)]
pub struct CapacityResult {
    pub criterion: Criterion,
    pub users: Knee,
    /// Interval in which another search may end. `None` without a knee.
    pub range: Option<KneeRange>,
    pub tried: Vec<LoadTrial>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KneeRange {
    /// Largest load near the knee that met the criterion in all tries, if any.
    pub always: Option<u32>,
    /// Smallest load near the knee that failed in all tries. `None` if it is further away.
    pub never: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Knee {
    /// This load is sustained, and slightly more is not.
    At(u32),
    /// This load is sustained, and the search allows no more.
    AtLeast(u32),
    /// Even the smallest load tried is not sustained.
    Below(u32),
    /// Interrupted. This load is sustained, if any.
    Unfinished(Option<u32>),
}

#[derive(Debug, Clone)]
pub struct LoadTrial {
    pub run: LoadPointResult,
    pub verdict: CriterionResult,
}

const MAJORITY: u32 = 2;

/// Number of equal results, without a different one, that make it certain.
const SURE: u32 = 3;

/// Loads tried on each side of the capacity.
const RANGE_STEPS_MAX: u32 = 4;

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

struct SearchInterrupted;

struct Trials<'e, 'a> {
    engine: &'e mut Engine<'a>,
    criterion: &'e Criterion,
    tried: Vec<LoadTrial>,
    /// For each load, the number of tries that met the criterion and that missed it.
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

    fn always(&mut self, users: u32) -> Result<bool, SearchInterrupted> {
        loop {
            match self.votes.get(&users).copied().unwrap_or_default() {
                (_, 1..) => return Ok(false),
                (SURE.., _) => return Ok(true),
                _ => self.try_with(users)?,
            }
        }
    }

    fn never(&mut self, users: u32) -> Result<bool, SearchInterrupted> {
        loop {
            match self.votes.get(&users).copied().unwrap_or_default() {
                (1.., _) => return Ok(false),
                (_, SURE..) => return Ok(true),
                _ => self.try_with(users)?,
            }
        }
    }

    fn carries(&mut self, users: u32) -> Result<bool, SearchInterrupted> {
        loop {
            match self.votes.get(&users) {
                Some((met, missed)) if *met >= MAJORITY || (*met > 0 && *missed == 0) => return Ok(true),
                Some((_, missed)) if *missed >= MAJORITY => return Ok(false),
                _ => self.try_with(users)?,
            }
        }
    }

    /// Returns true if a load that met the criterion once does so again, or in two of three tries.
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
            // There were fewer users than planned. The remaining hosts repeat the try.
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

    fn best_below(&self, users: u32) -> Option<u32> {
        self.votes.range(..users).rev().find(|(_, (met, missed))| met > missed).map(|(users, _)| *users)
    }
}
