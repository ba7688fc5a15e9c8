//! Limits of the network: loss, windows, delayed acknowledgments, SMB2 credits, and lines filled by transfers.

use super::{Detect, Detector, Finding, Sufferers};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::classify::Fact;
use crate::facts::{DiagnosisFacts, Pair, Traffic, bit_rate, bytes, percent};
use smbscope_model::prose::{counted, span, thousands, unbroken};
use smbscope_model::{ConnectionSummary, DirectionCounts, Nanos, Timestamp};
use smbscope_stats::TimePart;
use std::collections::BTreeSet;

pub(super) const DETECTORS: &[&Detector] =
    &[&NETWORK_LOSS, &WINDOW_LIMITED, &ZERO_WINDOW, &TIMER_CLUSTER, &CREDIT_LIMITED, &BANDWIDTH_LIMITED, &QUEUEING];

const NETWORK_LOSS: Detector = Detector {
    id: "network-loss",
    culprit: Culprit::Network,
    title: "Packets lost on the network",
    condition: "`segments` segments, and more than `share` of all, were lost and sent again, whether the capture has both copies or only the second. Copies that D-SACK reports as needless do not count.",
    advice: "Look for errors and drops on switch ports, network cards and Wi-Fi, for a duplex mismatch, and for buffers that are too small where links of different speed meet. Each loss costs a command at least a round trip, often a time-out of 200 ms and more.",
    source: "RFC 6298 (time-outs of TCP); RFC 2883 (duplicates that were not necessary)",
    thresholds: &[("segments", "5"), ("share", "0.1%")],
    covers: &[
        "rtt-bound",
        "serial-client",
        "slow-storage",
        "filter-delay",
        "large-mtu-off",
        "small-file-copy",
        "metadata-heavy",
        "slow-client-link",
        "window-limited",
        "server-hang",
    ],
    detect: Detect::Pair(network_loss),
};

fn network_loss(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "network-loss";
    let (segments, lost) = pair.segments();
    let share = lost as f64 / segments.max(1) as f64;
    if (lost as f64) < pair.threshold(ID, "segments") || share <= pair.threshold(ID, "share") {
        return None;
    }
    let resent = pair.facts.counted(Fact::Resent);
    let delay = pair.once(pair.resend_delay());
    let held = pair.once(Nanos(resent.outstanding)).max(delay);
    // If losses limit throughput, they account for most of the transfer time, too.
    let transfers = pair.transfers();
    let slowed = if pair.is_loss_limited(pair.transfer_rate()) { Nanos(transfers.0 / 10 * 8) } else { Nanos(0) };
    let best = Nanos((delay.0 + held.0) / 2).max(slowed);
    let what = format!(
        "{} of {} segments between {} and {} were lost and sent again ({})",
        thousands(lost),
        thousands(segments),
        pair.client,
        pair.server_name(),
        percent(share),
    );
    Some(
        Finding::new(Confidence::High, what)
            .lost(LostTime::between(delay, best, held.max(transfers)))
            .first_of(resent)
            .filter(" && tcp.analysis.retransmission"),
    )
}

const WINDOW_LIMITED: Detector = Detector {
    id: "window-limited",
    culprit: Culprit::Network,
    title: "Receive window too small for the distance",
    condition: "Over round trips of `round_trip` or longer, the sender filled the receive window and waited for `share` of the active time.",
    advice: "Throughput of a connection is at most window / round trip. Let the receiver's window grow (Windows: netsh interface tcp set global autotuninglevel=normal; Linux: net.ipv4.tcp_rmem), remove fixed socket buffers (Samba: socket options SO_RCVBUF), and look for boxes on the way that strip the window scale option.",
    source: "RFC 7323 1.1; RFC 9293 3.8.6",
    thresholds: &[("round_trip", "10ms"), ("share", "20%")],
    covers: &["rtt-bound", "serial-client", "slow-client-link", "large-mtu-off"],
    detect: Detect::Pair(window_limited),
};

fn window_limited(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "window-limited";
    let least = pair.time(ID, "round_trip");
    let far: Vec<&ConnectionSummary> =
        pair.connections.iter().copied().filter(|one| one.round_trip().is_some_and(|trip| trip >= least)).collect();
    let limited = |counts: &DirectionCounts| counts.window_limited_ns.0;
    let (time, is_clients) = longer(&far, limited);
    if (time.0 as f64) < pair.split.active().0 as f64 * pair.threshold(ID, "share") {
        return None;
    }
    let worst = far.iter().max_by_key(|connection| limited(received_by(connection, is_clients)))?;
    let (window, trip) = (received_by(worst, is_clients).filled_window?, worst.round_trip()?);
    let rate = f64::from(window) * 1e9 / trip.0.max(1) as f64;
    let (receiver, sender) = match is_clients {
        true => (pair.client.to_string(), pair.server_name()),
        false => (pair.server_name(), pair.client.to_string()),
    };
    let what = format!(
        "{receiver}'s receive window of {} allows no more than {} over a round trip of {}; {sender} filled it and waited",
        bytes(window.into()),
        bit_rate(rate),
        unbroken(trip),
    );
    let parts = [TimePart::RequestTransfer, TimePart::ResponseTransfer, TimePart::Network];
    let moving = Nanos(parts.into_iter().map(|part| pair.part(part).0).fold(0, i64::saturating_add));
    Some(
        Finding::new(Confidence::High, what)
            // Only windows seen to fill are sampled; other transfers at this rate wait as long.
            .lost(LostTime::between(pair.once(time), Nanos(moving.0 * 9 / 10), moving))
            .filter(" && tcp.analysis.window_full"),
    )
}

pub(super) fn received_by(connection: &ConnectionSummary, is_client: bool) -> &DirectionCounts {
    if is_client { &connection.to_client } else { &connection.to_server }
}

/// Sums a time over connections for each direction. Returns the larger sum, and true if the client is its receiver.
pub(super) fn longer(connections: &[&ConnectionSummary], time: impl Fn(&DirectionCounts) -> i64) -> (Nanos, bool) {
    let sum = |is_client| {
        connections.iter().map(|connection| time(received_by(connection, is_client))).fold(0i64, i64::saturating_add)
    };
    let (clients, servers) = (sum(true), sum(false));
    (Nanos(clients.max(servers)), clients >= servers)
}

const ZERO_WINDOW: Detector = Detector {
    id: "zero-window",
    culprit: Culprit::Client,
    title: "Receiver takes no more data",
    condition: "The receive window was closed for `share` of the active time while the sender had more data. If it was the server's window, the culprit is the server.",
    advice: "The program at the receiving side does not read from its socket fast enough: a slow disk below a copy, a busy or stopped process, too little memory. Look at that machine, not at the network.",
    source: "RFC 9293 3.8.6.1",
    thresholds: &[("share", "5%")],
    covers: &["rtt-bound", "serial-client", "bandwidth-limited", "slow-storage"],
    detect: Detect::Pair(zero_window),
};

fn zero_window(pair: &Pair<'_>) -> Option<Finding> {
    let (time, is_clients) = longer(&pair.connections, |counts| counts.window_closed_ns.0);
    if time.0 == 0 || (time.0 as f64) < pair.split.active().0 as f64 * pair.threshold("zero-window", "share") {
        return None;
    }
    let (receiver, culprit) = match is_clients {
        true => (pair.client.to_string(), Culprit::Client),
        false => (pair.server_name(), Culprit::Server),
    };
    let what = format!(
        "{receiver} closed its receive window for {} while the other side had data to send",
        unbroken(span(time))
    );
    Some(
        Finding::new(Confidence::High, what)
            .lost(LostTime::exactly(pair.once(time)))
            .culprit(culprit)
            .filter(" && tcp.analysis.zero_window"),
    )
}

const TIMER_CLUSTER: Detector = Detector {
    id: "timer-cluster",
    culprit: Culprit::Client,
    title: "Small sends wait for delayed acknowledgments",
    condition: "`messages` messages whose second segment was held back until the receiver acknowledged the first, over a round trip of at most 30 ms. If the server held responses back, the culprit is the server.",
    advice: "Nagle's algorithm holds back a small segment until the one before is acknowledged, and the receiver delays that acknowledgment by 40 or 200 ms. Set TCP_NODELAY at the sender (Samba: socket options = TCP_NODELAY), or write header and message in one send.",
    source: "RFC 896; RFC 1122 4.2.3.2 and 4.2.3.4",
    thresholds: &[("messages", "10")],
    covers: &[
        "rtt-bound",
        "serial-client",
        "small-io",
        "window-limited",
        "bandwidth-limited",
        "small-file-copy",
        "metadata-heavy",
        "slow-storage",
    ],
    detect: Detect::Pair(timer_cluster),
};

fn timer_cluster(pair: &Pair<'_>) -> Option<Finding> {
    let (requests, responses) = (pair.facts.counted(Fact::HeldRequest), pair.facts.counted(Fact::HeldResponse));
    let is_client = requests.response_time >= responses.response_time;
    let held = if is_client { requests } else { responses };
    let trip = pair.round_trip().unwrap_or_default();
    // A round trip as long as the timer looks the same.
    if (held.count as f64) < pair.threshold("timer-cluster", "messages") || trip.0 > 30_000_000 {
        return None;
    }
    let (sender, messages, receiver) = match is_client {
        true => (pair.client.to_string(), "requests", pair.server_name()),
        false => (pair.server_name(), "responses", pair.client.to_string()),
    };
    let what = format!(
        "{sender} held back the second part of {} {messages} for {} each, until {receiver} acknowledged the first part \
         (Nagle and delayed acknowledgment)",
        thousands(held.count),
        unbroken(held.mean()),
    );
    let lost = pair.once(Nanos(held.response_time));
    Some(
        Finding::new(Confidence::High, what)
            .lost(LostTime::between(Nanos(lost.0 * 9 / 10), lost, lost))
            .first_of(held)
            .culprit(if is_client { Culprit::Client } else { Culprit::Server })
            .filter(" && tcp.len > 0 && tcp.len < 200"),
    )
}

const CREDIT_LIMITED: Detector = Detector {
    id: "credit-limited",
    culprit: Culprit::Server,
    title: "The server grants too few credits",
    condition: "The client waited for credits that it had asked for, for `share` of its active time: each next request followed at once the grant that it needed.",
    advice: "The client could send more, but the server's credits don't allow it. Raise the limit (Windows: Smb2CreditsMin and Smb2CreditsMax; Samba: smb2 max credits), and see whether the server is short of memory. Large reads and writes cost a credit for each 64 KiB.",
    source: "MS-SMB2 3.2.4.1.2, 3.3.1.2; Microsoft, \"Performance tuning for SMB file servers\": Smb2CreditsMin, Smb2CreditsMax",
    thresholds: &[("share", "10%")],
    covers: &["rtt-bound", "serial-client", "window-limited", "bandwidth-limited", "large-mtu-off", "slow-client-link"],
    detect: Detect::Pair(credit_limited),
};

fn credit_limited(pair: &Pair<'_>) -> Option<Finding> {
    let waits = pair.connections.iter().map(|connection| connection.credit_wait.0);
    let waited = pair.once(Nanos(waits.fold(0, i64::saturating_add)));
    if waited.0 == 0 || (waited.0 as f64) < pair.whole.active.0 as f64 * pair.threshold("credit-limited", "share") {
        return None;
    }
    let most = pair.connections.iter().max_by_key(|connection| connection.credit_wait)?.max_outstanding;
    let what = format!(
        "{} had no credits left for its next request; {} allowed it {} outstanding",
        pair.client,
        pair.server_name(),
        counted(u64::from(most), "request", "requests"),
    );
    Some(Finding::new(Confidence::High, what).lost(LostTime::exactly(waited)).filter(" && smb2.credits.granted"))
}

const BANDWIDTH_LIMITED: Detector = Detector {
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

const QUEUEING: Detector = Detector {
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
