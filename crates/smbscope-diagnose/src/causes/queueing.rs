//! Response times of one client that rise while another one fills the line.

use super::bandwidth_limited::Plateau;
use super::{Detect, Detector, Finding, Sufferers};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{DiagnosisFacts, Fact, Pair, Traffic, bit_rate};
use smbscope_model::prose::unbroken;
use smbscope_model::{Nanos, Timestamp};
use std::collections::BTreeSet;

pub(super) const QUEUEING: Detector = Detector {
    id: "queueing",
    culprit: Culprit::Network,
    title: "Another transfer fills the line's queue",
    condition: "While another client's transfer ran at the rate of the line, at least `commands` commands without data took `ratio` times as long as otherwise, and `wait` longer.",
    advice: "The queue of the slowest link holds more data than the link carries in a tenth of a second, and everybody's packets wait in it (bufferbloat). Limit the large transfer, run it at another time, or have the router manage its queue (fq_codel, CAKE, or a traffic class for SMB).",
    source: "RFC 8290 (FQ-CoDel); Gettys and Nichols, Bufferbloat, ACM Queue 2011",
    thresholds: &[("commands", "5"), ("ratio", "4"), ("wait", "30ms")],
    covers: &[
        "rtt-bound",
        "serial-client",
        "slow-client-link",
        "filter-delay",
        "server-saturation",
        "bandwidth-limited",
        "metadata-heavy",
    ],
    detect: Detect::All(detect),
};

/// A client whose transfer fills the line.
struct Filler<'f, 'a> {
    pair: &'f Pair<'a>,
    /// Bytes a second.
    rate: f64,
    /// Starts of the bins in which it does.
    full: BTreeSet<i64>,
    width: Nanos,
}

impl<'f, 'a> Filler<'f, 'a> {
    fn new(pair: &'f Pair<'a>) -> Option<Filler<'f, 'a>> {
        let Plateau { rate, .. } = Plateau::new(pair)?;
        let traffic = &pair.traffic?.0;
        let width = traffic.width();
        let is_full = |bin: &Traffic| bin.down.max(bin.up) as f64 * 1e9 / width.0 as f64 >= rate / 2.0;
        let full = traffic.finish().into_iter().filter(|(_, bin)| is_full(bin)).map(|(start, _)| start.0).collect();
        Some(Filler { pair, rate, full, width })
    }

    fn fills_at(&self, start: Timestamp) -> bool {
        self.full.range(..=start.0).next_back().is_some_and(|known| start.0 - known < self.width.0)
    }
}

fn detect(facts: &DiagnosisFacts<'_>) -> Vec<Finding> {
    let fillers: Vec<Filler<'_, '_>> = facts.pairs.iter().filter_map(Filler::new).collect();
    let sufferers = facts.pairs.iter().filter_map(|pair| {
        let mut others = fillers.iter().filter(|filler| is_beside(filler.pair, pair));
        others.find_map(|filler| of_pair(pair, filler))
    });
    sufferers.collect()
}

fn is_beside(one: &Pair<'_>, other: &Pair<'_>) -> bool {
    one.client != other.client && one.server == other.server
}

/// What the commands without data of a client took while another client filled the line, and what they took otherwise.
fn of_pair(pair: &Pair<'_>, filler: &Filler<'_, '_>) -> Option<Finding> {
    const ID: &str = "queueing";
    let (mut loaded, mut idle) = ((0u64, 0i64), (0u64, 0i64));
    for (start, bin) in pair.traffic?.0.finish() {
        let sums = if filler.fills_at(start) { &mut loaded } else { &mut idle };
        sums.0 += u64::from(bin.light);
        sums.1 = sums.1.saturating_add(bin.light_service);
    }
    let mean = |(count, sum): (u64, i64)| if count > 0 { sum / count as i64 } else { 0 };
    let trip = pair.round_trip().unwrap_or_default();
    let base = if idle.0 >= 3 { mean(idle) } else { trip.0 }.max(1);
    let during = mean(loaded);
    let excess = during - base;
    if (loaded.0 as f64) < pair.threshold(ID, "commands")
        || (during as f64) < base as f64 * pair.threshold(ID, "ratio")
        || Nanos(excess) < pair.time(ID, "wait")
    {
        return None;
    }
    let what = format!(
        "{} filled the line ({}) and its queue: commands of {} without data took {} meanwhile, {} otherwise",
        filler.pair.client,
        bit_rate(filler.rate),
        pair.client,
        unbroken(Nanos(during)),
        unbroken(Nanos(base)),
    );
    let commands = pair.facts.counted(Fact::Command).count.max(loaded.0);
    let depth = pair.depth().max(1.0);
    let sum = |count: u64| Nanos((excess as f64 * count as f64 / depth) as i64);
    let share = loaded.0 as f64 / (loaded.0 + idle.0) as f64;
    let best = sum((commands as f64 * share) as u64);
    Some(
        Finding::new(Confidence::Medium, what)
            .lost(LostTime::between(sum(loaded.0), best, best))
            .first_of(pair.facts.counted(Fact::Command))
            .about(Sufferers::one(pair.client, pair.server)),
    )
}
