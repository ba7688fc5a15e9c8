//! A negotiation for every few opens.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{CommandClass, Fact, Pair};
use smbscope_model::Nanos;
use smbscope_model::prose::{counted, thousands};

pub(super) const NEGOTIATE_CHURN: Detector = Detector {
    id: "negotiate-churn",
    culprit: Culprit::Application,
    title: "Connections made again and again",
    condition: "At least `negotiations` NEGOTIATE requests, and more than `share` as many as opens, on connections that mostly follow one another.",
    advice: "Find out why the client connects anew: short time-outs on server or firewall, credentials that change, a mount for each access. Each connection costs TCP, NEGOTIATE, two SESSION_SETUP and TREE_CONNECT.",
    source: "MS-SMB2 3.2.4.2: connecting to a share; docs/studies.md",
    thresholds: &[("negotiations", "5"), ("share", "2%")],
    covers: &["rtt-bound", "serial-client", "metadata-heavy", "slow-logon", "slow-client-link", "many-channels"],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "negotiate-churn";
    let share = pair.facts.share(Fact::Negotiate, Fact::Open);
    let negotiations = pair.facts.counted(Fact::Negotiate);
    let is_churn =
        (negotiations.count as f64) >= pair.threshold(ID, "negotiations") && share > pair.threshold(ID, "share");
    // Connections that exist at the same time are channels or users, not repetitions.
    if !is_churn || at_once(pair) * 2 > pair.connections.len() {
        return None;
    }
    let setups = pair.facts.counted(Fact::SessionSetup);
    let connects = pair.served(CommandClass::TreeConnect);
    let trip = pair.round_trip().unwrap_or_default();
    let what = format!(
        "{} connected to {} again and again: {} NEGOTIATE, {} SESSION_SETUP and {} TREE_CONNECT for {}",
        pair.client,
        pair.server_name(),
        thousands(negotiations.count),
        thousands(setups.count),
        thousands(connects.count),
        counted(pair.facts.count(Fact::Open), "open", "opens"),
    );
    // The TCP handshake is a round trip, and so is each TREE_CONNECT.
    let trips = (negotiations.count + connects.count) as i64;
    let commands = negotiations.outstanding.saturating_add(setups.outstanding).saturating_add(connects.sum().0);
    let lost = Nanos(pair.once(Nanos(commands)).0.saturating_add(trips.saturating_mul(trip.0)));
    Some(
        Finding::new(Confidence::High, what)
            .lost(LostTime::between(pair.once(Nanos(commands)), lost, lost))
            .first_of(negotiations)
            .filter(" && (smb2.cmd == 0 || smb.cmd == 0x72)"),
    )
}

/// Most connections that existed at the same time.
fn at_once(pair: &Pair<'_>) -> usize {
    let mut events: Vec<(smbscope_model::Timestamp, i32)> = Vec::new();
    pair.connections.iter().for_each(|connection| events.extend([(connection.first, 1), (connection.last, -1)]));
    events.sort_unstable();
    let (mut open, mut most) = (0i32, 0);
    for (_, step) in events {
        open += step;
        most = most.max(open);
    }
    usize::try_from(most).unwrap_or(0)
}
