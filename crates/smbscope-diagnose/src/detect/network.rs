//! What the network and TCP do to connections: losses, and windows that keep the sender from sending.

use crate::facts::Fact;
use crate::finding::{Confidence, Finding, Whose};
use crate::subject::{Subject, percent};
use smbscope_model::prose::{thousands, unbroken};
use smbscope_model::units::short_bytes;
use smbscope_model::{Connection, DirectionCounts, Nanos};

/// Segments that were lost and sent again.
pub(super) fn network_loss(subject: &Subject<'_>) -> Option<Finding> {
    const ID: &str = "network-loss";
    let (segments, again) = subject.segments();
    let share = again as f64 / segments.max(1) as f64;
    if (again as f64) < subject.threshold(ID, "segments") || share <= subject.threshold(ID, "share") {
        return None;
    }
    let what = format!(
        "and its servers sent {} of {} segments again ({})",
        thousands(again),
        thousands(segments),
        percent(share),
    );
    let finding = subject.finding_on(ID, Confidence::High, &what, subject.facts.of(Fact::Resent));
    let whose = Whose { path: None, ..finding.whose.clone() };
    Some(Finding {
        wireshark: finding.wireshark.clone() + " && tcp.analysis.retransmission",
        whose,
        ruled_out: Vec::new(),
        ..finding
    })
}

/// A receive window that is too small for the round trip: the sender fills it and waits.
pub(super) fn window_limited(subject: &Subject<'_>) -> Option<Finding> {
    const ID: &str = "window-limited";
    let far =
        |connection: &&&Connection| round_trip(connection).is_some_and(|trip| trip >= subject.time(ID, "round_trip"));
    let far: Vec<&Connection> = subject.connections.iter().filter(far).copied().collect();
    let limited = |counts: &DirectionCounts| counts.window_limited_ns.0;
    let (time, is_clients) = longest(&far, limited);
    if (time.0 as f64) < subject.split().active().0 as f64 * subject.threshold(ID, "share") {
        return None;
    }
    let worst = far.iter().max_by_key(|connection| limited(of(connection, is_clients)))?;
    let (window, trip) = (of(worst, is_clients).filled_window?, round_trip(worst)?);
    let rate = f64::from(window) * 1e9 / trip.0.max(1) as f64;
    let (whose, sender) = if is_clients { ("its own", "the server") } else { ("the server's", "it") };
    let what = format!(
        "could move no more than {}/s: {whose} receive window of {} allows that with a round trip of {}, and {sender} \
         waited for acknowledgments with the window full",
        unbroken(short_bytes(rate)),
        unbroken(short_bytes(f64::from(window))),
        unbroken(trip),
    );
    let mut finding = subject.finding(ID, Confidence::High, &what, Some(time));
    finding.wireshark += " && tcp.analysis.window_full";
    Some(finding)
}

/// A receiver that takes no more data for a while.
pub(super) fn zero_window(subject: &Subject<'_>) -> Option<Finding> {
    const ID: &str = "zero-window";
    let (time, is_clients) = longest(&subject.connections, |counts| counts.window_closed_ns.0);
    let active = subject.split().active().0 as f64;
    if time.0 == 0 || (time.0 as f64) < active * subject.threshold(ID, "share") {
        return None;
    }
    let what = match is_clients {
        true => "took no data for a while: its receive window was closed while the server had more to send",
        false => "had to wait to send data: the server's receive window was closed",
    };
    let mut finding = subject.finding(ID, Confidence::High, what, Some(time));
    finding.wireshark += " && tcp.analysis.zero_window";
    Some(finding)
}

/// The round trip between client and server.
fn round_trip(connection: &Connection) -> Option<Nanos> {
    Some(Nanos(connection.server_round_trip?.0.saturating_add(connection.client_round_trip?.0)))
}

/// The counts of the direction whose receiver is the client, or the server.
fn of(connection: &Connection, is_clients: bool) -> &DirectionCounts {
    if is_clients { &connection.to_client } else { &connection.to_server }
}

/// A time of all connections in the direction in which it is longer, and whether the client is its receiver.
fn longest(connections: &[&Connection], time: impl Fn(&DirectionCounts) -> i64) -> (Nanos, bool) {
    let sum = |is_clients| {
        connections.iter().map(|connection| time(of(connection, is_clients))).fold(0i64, i64::saturating_add)
    };
    let (clients, servers) = (sum(true), sum(false));
    (Nanos(clients.max(servers)), clients >= servers)
}
