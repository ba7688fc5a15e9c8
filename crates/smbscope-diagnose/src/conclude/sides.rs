//! Evidence from captures at several points: where the time passes, and where packets are lost.

use crate::Culprit;
use smbscope_model::prose::{counted, thousands, unbroken};
use smbscope_model::{CommandGroup, Nanos};
use smbscope_stats::DurationStatistics;
use smbscope_stats::sides::{GroupPath, PathSegment, SidesFigures};

/// Groups named in the evidence.
const GROUPS_NAMED: usize = 2;
/// Part of the waits from which a group is named.
const GROUP_SHARE: i128 = 10;
/// Transfers are named if they take at least one part in this many of the response time.
const TRANSFER_SHARE: i64 = 10;
/// Shortest mean wait in a queue that is named, and its smallest part of the round trip.
const QUEUE_LEAST: Nanos = Nanos(1_000_000);
const QUEUE_TRIPS: i64 = 5;
/// Percentage of commands seen at one point only from which the answer says so.
const UNPAIRED_PERCENT: u64 = 2;

/// Sentences on the way between the capture points.
#[derive(Default)]
pub(super) struct BetweenPoints {
    pub(super) evidence: Vec<String>,
    pub(super) caveats: Vec<String>,
}

impl BetweenPoints {
    /// `culprit` belongs to the whole answer.
    pub(super) fn new(sides: &SidesFigures, culprit: Culprit) -> BetweenPoints {
        let mut told = BetweenPoints::default();
        for segment in &sides.segments {
            let mut groups = times(segment).into_iter();
            told.evidence.extend(groups.next());
            told.evidence.extend(devices(segment));
            told.evidence.extend(losses(segment, culprit));
            told.evidence.extend(queues(segment));
            told.evidence.extend(groups);
            told.caveats.extend(clocks(segment));
            told.caveats.extend(unpaired(segment));
        }
        told
    }
}

/// Returns a point as a noun: `the server`, or the name that the user gave it.
fn noun(point: &str) -> String {
    if matches!(point, "client" | "server") { format!("the {point}") } else { point.to_owned() }
}

/// Says where the time of the groups passes: `Open/Close: 41.0 ms of 44.0 ms per command pass between client and server,
/// 3.00 ms in the server.`
fn times(segment: &PathSegment) -> Vec<String> {
    let waits = |group: &&GroupPath| group.group.in_headline() && group.group != CommandGroup::Waiting;
    let all: i128 = segment.groups.iter().filter(waits).map(|group| group.response_time.sum_ns).sum();
    let named = segment.groups.iter().filter(waits).filter(|group| group.response_time.sum_ns * GROUP_SHARE >= all);
    let sentence = |group: &GroupPath| {
        let mean = |figures: &DurationStatistics| figures.mean.unwrap_or_default();
        let [whole, path, beyond, transfer] =
            [&group.response_time, &group.path, &group.beyond, &group.transfer].map(mean);
        let place = if segment.to == "server" { "in the server".to_owned() } else { format!("beyond {}", segment.to) };
        let transfers = match transfer.0.saturating_mul(TRANSFER_SHARE) >= whole.0 {
            true => format!(", {} with the transfer of data", unbroken(transfer)),
            false => String::new(),
        };
        let count = counted(group.response_time.count, "command", "commands");
        format!(
            "{}: {} of {} per command pass between {} and {}, {} {place}{transfers} ({count}, seen at both).",
            group.group,
            unbroken(path),
            unbroken(whole),
            segment.from,
            segment.to,
            unbroken(beyond),
        )
    };
    named.take(GROUPS_NAMED).map(sentence).collect()
}

/// Names the directions with a queue.
fn queues(segment: &PathSegment) -> Option<String> {
    let PathSegment { from, to, round_trip_ns, .. } = segment;
    let waits = |towards: &str, figures: &DurationStatistics| {
        let mean = figures.mean.filter(|mean| *mean >= QUEUE_LEAST && mean.0 >= round_trip_ns.0 / QUEUE_TRIPS)?;
        let p95 = figures.p95.map_or_else(String::new, |p95| format!(" (p95 {})", unbroken(p95)));
        Some(format!("towards {} for {} on average{p95}", noun(towards), unbroken(mean)))
    };
    let directions = [waits(to, &segment.queued_to_server), waits(from, &segment.queued_to_client)];
    let directions: Vec<String> = directions.into_iter().flatten().collect();
    let place = if segment.terminated > 0 { "in a queue or in the device" } else { "in a queue" };
    (!directions.is_empty())
        .then(|| format!("Packets wait {place} between {from} and {to}: {}.", directions.join(", ")))
}

fn devices(segment: &PathSegment) -> Option<String> {
    let PathSegment { from, to, connections, rewritten, terminated, .. } = segment;
    let of = |count: u64| match (count, *connections) {
        (1, 1) => "the connection".to_owned(),
        (count, all) if count == all => format!("all {all} connections"),
        (count, all) => format!("{count} of {all} connections"),
    };
    match (*terminated, *rewritten) {
        (0, 0) => None,
        (0, rewritten) => {
            Some(format!("A device between {from} and {to} changes the addresses or ports of {}.", of(rewritten)))
        }
        (terminated, _) => Some(format!(
            "A device between {from} and {to} ends TCP on {}: it acknowledges for the other side, so that \
             acknowledgments do not show the way between {} and {}.",
            of(terminated),
            noun(from),
            noun(to),
        )),
    }
}

fn losses(segment: &PathSegment, culprit: Culprit) -> Option<String> {
    let PathSegment { from, to, packets_to_server, packets_to_client, .. } = segment;
    let (to_server, to_client) = (segment.lost_to_server?, segment.lost_to_client?);
    if packets_to_server + packets_to_client == 0 {
        return None;
    }
    let lost = |lost: u64, of: u64, sender: &str, receiver: &str| {
        let of = of.max(lost);
        let sent = match sender {
            "client" | "server" => format!("that the {sender} sent"),
            point => format!("that passed {point}"),
        };
        let share = 100.0 * lost as f64 / of as f64;
        let counts = format!("{} of {}", thousands(lost), thousands(of));
        format!("{share:.1}% of the data packets {sent} never reached {} ({counts})", noun(receiver))
    };
    let there = || lost(to_server, *packets_to_server, from, to);
    let back = || lost(to_client, *packets_to_client, to, from);
    Some(match (to_server, to_client) {
        (0, 0) if matches!(culprit, Culprit::Client) && from == "client" => {
            format!("Nothing was lost between {from} and {to}: the delay arises in the client itself.")
        }
        (0, 0) => format!("Nothing was lost between {from} and {to}."),
        (_, 0) => format!("{}. Towards {} nothing was lost.", there(), noun(from)),
        (0, _) => format!("{}. Towards {} nothing was lost.", back(), noun(to)),
        _ => format!("{}, and {}.", there(), back()),
    })
}

fn clocks(segment: &PathSegment) -> Option<String> {
    let PathSegment { from, to, clock, .. } = segment;
    (clock.steps > 0).then(|| {
        format!(
            "The clock of {from} or {to} stepped {} during the captures; times are corrected.",
            counted(clock.steps, "time", "times")
        )
    })
}

fn unpaired(segment: &PathSegment) -> Option<String> {
    let PathSegment { from, to, pairs, only_from, .. } = segment;
    (only_from * 100 > (pairs + only_from) * UNPAIRED_PERCENT).then(|| {
        format!(
            "{} on the same connections were seen at {from} but not at {to}: a device in between answered them, or \
             the capture at {to} lacks them.",
            counted(*only_from, "command", "commands")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_nothing_was_lost_a_slow_client_delays_by_itself() {
        let point = |name: &str| name.to_owned();
        let segment = PathSegment {
            from: point("client"),
            to: point("server"),
            packets_to_server: 10,
            packets_to_client: 10,
            lost_to_server: Some(0),
            lost_to_client: Some(0),
            ..PathSegment::default()
        };
        let said = |segment: &PathSegment, culprit| losses(segment, culprit).expect("packets were compared");
        let alone = "Nothing was lost between client and server: the delay arises in the client itself.";
        assert_eq!(said(&segment, Culprit::Client), alone);
        assert_eq!(said(&segment, Culprit::Server), "Nothing was lost between client and server.");
        // Another point than the client has a way in front of it.
        let behind = PathSegment { from: point("firewall"), ..segment.clone() };
        assert_eq!(said(&behind, Culprit::Client), "Nothing was lost between firewall and server.");
        let lossy = PathSegment { lost_to_client: Some(2), ..segment };
        assert!(
            said(&lossy, Culprit::Client).starts_with("20.0% of the data packets that the server sent never reached")
        );
    }
}
