//! A client that works between its requests.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{Fact, Pair, percent};
use smbscope_model::Nanos;
use smbscope_stats::TimePart;

pub(super) const CLIENT_BOUND: Detector = Detector {
    id: "client-bound",
    culprit: Culprit::Client,
    title: "The client itself is slow",
    condition: "Pauses below 100 ms between a response and the next request took `time`, and `share` of the client's active time: a person needs longer. Not where several connections overlap, or where the client also pauses like a person.",
    advice: "Look at the client: processor, virus scanner, the application. A faster server or network changes little.",
    source: "docs/causes.md: pauses below 100 ms between a response and the next request, too short for a person",
    thresholds: &[("time", "5s"), ("share", "75%")],
    covers: &[],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "client-bound";
    // A pause as seen at the server holds a round trip, which the split takes off.
    let think = Nanos(pair.facts.quick_think).min(pair.part(TimePart::Think));
    let active = pair.whole.active;
    let several = pair.connections.len() > 1 && pair.whole.scale < 0.99;
    if think < pair.time(ID, "time")
        || (think.0 as f64) < active.0 as f64 * pair.threshold(ID, "share")
        || several
        || pair.facts.user_pauses * 20 > pair.facts.count(Fact::Command)
    {
        return None;
    }
    let what = format!(
        "{} worked between its requests for {} of its active time, in pauses that are too short for a person; server and \
         network had answered everything",
        pair.client,
        percent(think.0 as f64 / active.0.max(1) as f64)
    );
    Some(Finding::new(Confidence::Medium, what).lost(LostTime::between(Nanos(0), think, think)))
}
