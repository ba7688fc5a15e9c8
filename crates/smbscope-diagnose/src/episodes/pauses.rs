//! Pauses of a client's connections, which determine the gap between its episodes.
//!
//! The number of episodes can fall as exchanges arrive: a long command joins separate ones. A gap derived from
//! episodes would thus depend on the order of exchanges. The number of pauses only grows, and it bounds the number of
//! episodes: each starts with a pause of one of its connections at least as long as the gap, and two episodes a gap
//! apart do not start in the same stretch of that length. So the shortest gap that leaves few enough pauses is the
//! same for every order and every distribution of connections over workers.

use serde::{Deserialize, Serialize};
use smbscope_model::{Nanos, Timestamp};
use std::collections::BTreeMap;

/// Longest pause that ends in each stretch, a stretch being as long as the gap. Pauses shorter than the gap are
/// omitted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Pauses(BTreeMap<i64, Nanos>);

impl Pauses {
    /// Adds a pause of a connection.
    pub(super) fn add(&mut self, end: Timestamp, pause: Nanos, gap: Nanos) {
        self.keep(end.0.div_euclid(gap.0), pause);
    }

    /// Returns the number of stretches in which a pause ends.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Merges pauses of other connections, recorded with the same gap or one doubled less often.
    pub(super) fn merge(&mut self, other: &Pauses, their_gap: Nanos, gap: Nanos) {
        let stretches = gap.0 / their_gap.0;
        for (stretch, pause) in other.0.iter().filter(|(_, pause)| **pause >= gap) {
            self.keep(stretch.div_euclid(stretches), *pause);
        }
    }

    /// Adapts to a doubled gap.
    pub(super) fn widen(&mut self, from: Nanos, gap: Nanos) {
        let all = std::mem::take(self);
        self.merge(&all, from, gap);
    }

    fn keep(&mut self, stretch: i64, pause: Nanos) {
        let longest = self.0.entry(stretch).or_insert(pause);
        *longest = pause.max(*longest);
    }
}
