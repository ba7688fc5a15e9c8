//! Which pauses of its connections a client made, to choose how long one must be to divide its episodes.
//!
//! How many episodes a gap leaves can fall as more exchanges come: a long command joins what seemed to be apart. A gap that
//! followed the episodes would thus depend on the order of the exchanges. The number of pauses only grows with the
//! exchanges, and it bounds that of the episodes: each begins with a pause of one of its connections that is as long as the
//! gap, and two that are a gap apart do not begin in the same stretch of that length. So the shortest gap that leaves few
//! enough pauses is the same in whatever order, and in whatever parts, connections are taken.

use serde::{Deserialize, Serialize};
use smbscope_model::{Nanos, Timestamp};
use std::collections::BTreeMap;

/// The longest pause that ends in each stretch of time as long as the gap; shorter pauses than the gap are left out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Pauses(BTreeMap<i64, Nanos>);

impl Pauses {
    /// A pause of a connection that ends here.
    pub(super) fn add(&mut self, end: Timestamp, pause: Nanos, gap: Nanos) {
        self.keep(end.0.div_euclid(gap.0), pause);
    }

    /// Stretches in which one ends.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds those of other connections, whose gap is as long or was doubled less often.
    pub(super) fn merge(&mut self, other: &Pauses, their_gap: Nanos, gap: Nanos) {
        let stretches = gap.0 / their_gap.0;
        for (stretch, pause) in other.0.iter().filter(|(_, pause)| **pause >= gap) {
            self.keep(stretch.div_euclid(stretches), *pause);
        }
    }

    /// Goes on to a gap that was doubled.
    pub(super) fn widen(&mut self, from: Nanos, gap: Nanos) {
        let all = std::mem::take(self);
        self.merge(&all, from, gap);
    }

    fn keep(&mut self, stretch: i64, pause: Nanos) {
        let longest = self.0.entry(stretch).or_insert(pause);
        *longest = pause.max(*longest);
    }
}
