//! Transfers limited by the slowest link, and the clients that queue behind them.

use super::{Detect, Detector, Finding, Sufferers};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::classify::Fact;
use crate::facts::{DiagnosisFacts, Pair, Traffic, bit_rate, bytes, percent};
use smbscope_model::prose::unbroken;
use smbscope_model::{Nanos, Timestamp};
use std::collections::BTreeSet;

pub(super) const BANDWIDTH_LIMITED: Detector = Detector {
    id: "bandwidth-limited",
    culprit: Culprit::Network,
    title: "The link is full",
    condition: "At least `bytes` went in one direction, the part `flat` of them at about the same rate (±30%) of at most `rate`, and transfers took `transfer` of the waits. Not reported if the receive window or packet loss sets the rate.",
    advice: "The line carries no more. Move less over it (compression of SMB 3.1.1, caching, a local copy), at another time, or get a faster line. If it should be faster: look for a port at 100 Mbit/s, a shaper, or a WAN link that others fill.",
    source: "docs/causes.md: a flat rate with data always in flight",
    thresholds: &[("bytes", "1MB"), ("rate", "130Mbit"), ("flat", "60%"), ("transfer", "45%")],
    covers: &[
        "slow-storage",
        "rtt-bound",
        "serial-client",
        "network-loss",
        "small-file-copy",
        "fast-then-slow",
        "large-mtu-off",
        "small-io",
        "window-limited",
    ],
    detect: Detect::Pair(bandwidth_limited),
};

#[derive(Debug, Clone, Copy)]
pub(super) struct Plateau {
    pub(super) rate: f64,
    pub(super) flat: f64,
    pub(super) bytes: u64,
    pub(super) is_upload: bool,
}

impl Plateau {
    /// Returns `None` if transfers took too little of the waits, or if there is no steady rate.
    pub(super) fn new(pair: &Pair<'_>) -> Option<Plateau> {
        const ID: &str = "bandwidth-limited";
        let traffic = pair.traffic?;
        let width = traffic.0.width().0 as f64 / 1e9;
        let bins = traffic.0.finish();
        let sum = |up: bool| bins.iter().map(|(_, bin)| if up { bin.up } else { bin.down }).sum::<u64>();
        let (up, down) = (sum(true), sum(false));
        let is_upload = up > down;
        let bytes = up.max(down);
        if (bytes as f64) < pair.threshold(ID, "bytes") || pair.transfer_share() < pair.threshold(ID, "transfer") {
            return None;
        }
        let mut moved: Vec<u64> = bins.iter().map(|(_, bin)| if is_upload { bin.up } else { bin.down }).collect();
        moved.sort_unstable();
        let mut seen = 0;
        let median = moved.iter().copied().find(|bin| {
            seen += bin;
            seen * 2 >= bytes
        })?;
        let near = |bin: &u64| (*bin as f64) > median as f64 * 0.7 && (*bin as f64) < median as f64 * 1.3;
        let flat = moved.iter().filter(|bin| near(bin)).sum::<u64>() as f64 / bytes.max(1) as f64;
        Some(Plateau { rate: median as f64 / width, flat, bytes, is_upload })
            .filter(|plateau| plateau.flat >= pair.threshold(ID, "flat"))
    }
}

fn bandwidth_limited(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "bandwidth-limited";
    let plateau = Plateau::new(pair)?;
    let limited: i64 = pair
        .connections
        .iter()
        .map(|connection| connection.to_client.window_limited_ns.0.max(connection.to_server.window_limited_ns.0))
        .sum();
    let is_window = limited as f64 > 0.3 * pair.split.waited().0 as f64;
    // A faster link is not a bottleneck.
    if plateau.rate > pair.threshold(ID, "rate") || is_window || pair.is_loss_limited(plateau.rate) {
        return None;
    }
    let transfers = pair.transfers();
    let (verb, to) = if plateau.is_upload { ("sent", "to") } else { ("got", "from") };
    let what = format!(
        "{} {verb} {} {to} {} at a steady {}, with data on its way {} of the time that it waited",
        pair.client,
        bytes(plateau.bytes),
        pair.server_name(),
        bit_rate(plateau.rate),
        percent(pair.transfer_share()),
    );
    // Fraction of the time that would remain at 1 Gbit/s.
    let remains = (plateau.rate / 125e6).min(1.0);
    let lost = Nanos((transfers.0 as f64 * (1.0 - remains)) as i64);
    Some(Finding::new(Confidence::Medium, what).lost(LostTime::between(
        Nanos(lost.0 * 9 / 10),
        lost,
        pair.whole.waited,
    )))
}

pub(super) const QUEUEING: Detector = Detector {
    id: "queueing",
    culprit: Culprit::Network,
    title: "Another transfer fills the line's queue",
    condition: "While another client's transfer ran at the rate of the line, at least `commands` commands without data took `ratio` times as long as otherwise, and `wait` longer.",
    advice: "The queue of the slowest link holds more data than the link carries in a tenth of a second, and all packets wait in it (bufferbloat). Limit the large transfer, run it at another time, or have the router manage its queue (fq_codel, CAKE, or a traffic class for SMB).",
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
    detect: Detect::All(queueing),
};

struct Filler<'f, 'a> {
    pair: &'f Pair<'a>,
    rate: f64,
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

fn queueing(facts: &DiagnosisFacts<'_>) -> Vec<Finding> {
    let fillers: Vec<Filler<'_, '_>> = facts.pairs.iter().filter_map(Filler::new).collect();
    let sufferers = facts.pairs.iter().filter_map(|pair| {
        let mut others = fillers.iter().filter(|filler| is_beside(filler.pair, pair));
        others.find_map(|filler| queued_behind(pair, filler))
    });
    sufferers.collect()
}

fn is_beside(one: &Pair<'_>, other: &Pair<'_>) -> bool {
    one.client != other.client && one.server == other.server
}

fn queued_behind(pair: &Pair<'_>, filler: &Filler<'_, '_>) -> Option<Finding> {
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
        "{} filled the line ({}) and its queue: commands of {} without data took {} during that time, {} otherwise",
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
