//! A receiver that takes no more data for a while.

use super::window_limited::longer;
use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::Pair;
use smbscope_model::prose::{span, unbroken};

pub(super) const ZERO_WINDOW: Detector = Detector {
    id: "zero-window",
    culprit: Culprit::Client,
    title: "Receiver takes no more data",
    condition: "The receive window was closed for `share` of the active time while the sender had more data. If it was the server's window, the culprit is the server.",
    advice: "The program at the receiving side does not read from its socket fast enough: a slow disk below a copy, a busy or stopped process, too little memory. Look at that machine, not at the network.",
    source: "RFC 9293 3.8.6.1",
    thresholds: &[("share", "5%")],
    covers: &["rtt-bound", "serial-client", "bandwidth-limited", "slow-storage"],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
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
