//! A receive window that is too small for the round trip: the sender fills it and waits.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{Pair, bit_rate, bytes};
use smbscope_model::prose::unbroken;
use smbscope_model::{ConnectionSummary, DirectionCounts, Nanos};
use smbscope_stats::TimePart;

pub(super) const WINDOW_LIMITED: Detector = Detector {
    id: "window-limited",
    culprit: Culprit::Network,
    title: "Receive window too small for the distance",
    condition: "Over round trips of `round_trip` or longer, the sender filled the receive window and waited for `share` of the active time.",
    advice: "Throughput of a connection is at most window / round trip. Let the receiver's window grow (Windows: netsh interface tcp set global autotuninglevel=normal; Linux: net.ipv4.tcp_rmem), remove fixed socket buffers (Samba: socket options SO_RCVBUF), and look for boxes on the way that strip the window scale option.",
    source: "RFC 7323 1.1; RFC 9293 3.8.6",
    thresholds: &[("round_trip", "10ms"), ("share", "20%")],
    covers: &["rtt-bound", "serial-client", "slow-client-link", "large-mtu-off"],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
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
            // Only windows that were seen to fill are sampled; what moves data at this rate waits as long in the others.
            .lost(LostTime::between(pair.once(time), Nanos(moving.0 * 9 / 10), moving))
            .filter(" && tcp.analysis.window_full"),
    )
}

/// Counts of the direction whose receiver is the client, or the server.
pub(super) fn received_by(connection: &ConnectionSummary, is_client: bool) -> &DirectionCounts {
    if is_client { &connection.to_client } else { &connection.to_server }
}

/// A time of all connections in the direction in which it is longer; true if the client is its receiver.
pub(super) fn longer(connections: &[&ConnectionSummary], time: impl Fn(&DirectionCounts) -> i64) -> (Nanos, bool) {
    let sum = |is_client| {
        connections.iter().map(|connection| time(received_by(connection, is_client))).fold(0i64, i64::saturating_add)
    };
    let (clients, servers) = (sum(true), sum(false));
    (Nanos(clients.max(servers)), clients >= servers)
}
