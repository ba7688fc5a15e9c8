//! Transfers that run at the rate of the slowest link.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{Pair, bit_rate, bytes, percent};
use smbscope_model::Nanos;

pub(super) const BANDWIDTH_LIMITED: Detector = Detector {
    id: "bandwidth-limited",
    culprit: Culprit::Network,
    title: "The link is full",
    condition: "At least `bytes` went in one direction, the part `flat` of them at about the same rate (±30%) of at most `rate`, and transfers took `transfer` of the waits. Not where the receive window or packet loss sets the rate.",
    advice: "The line carries no more. Move less over it (compression of SMB 3.1.1, caching, a local copy), at another time, or get a faster line. If it should be faster: look for a port at 100 Mbit/s, a shaper, or a WAN link that others fill.",
    source: "docs/causes.md: a flat rate with data always on its way",
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
    detect: Detect::Pair(detect),
};

/// A transfer that runs at a steady rate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plateau {
    /// Bytes a second.
    pub(super) rate: f64,
    /// Part of the bytes that were moved at about this rate.
    pub(super) flat: f64,
    pub(super) bytes: u64,
    pub(super) is_upload: bool,
}

impl Plateau {
    /// The plateau of a client on a server, if data was on its way for a good part of its waits.
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
        // The rate at which the median byte was moved.
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

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "bandwidth-limited";
    let plateau = Plateau::new(pair)?;
    let limited: i64 = pair
        .connections
        .iter()
        .map(|connection| connection.to_client.window_limited_ns.0.max(connection.to_server.window_limited_ns.0))
        .sum();
    let is_window = limited as f64 > 0.3 * pair.split.waited().0 as f64;
    // A faster link is nobody's problem.
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
    // At 1 Gbit/s it would take this part of the time.
    let remains = (plateau.rate / 125e6).min(1.0);
    let lost = Nanos((transfers.0 as f64 * (1.0 - remains)) as i64);
    Some(Finding::new(Confidence::Medium, what).lost(LostTime::between(
        Nanos(lost.0 * 9 / 10),
        lost,
        pair.whole.waited,
    )))
}
