//! Turns causes into the answer: drops unnoticeable ones, merges overlapping ones, ranks the rest, writes the headline.

mod sides;

use self::sides::BetweenPoints;
use crate::answer::{Answer, Cause, Confidence, Culprit, LostTime};
use crate::causes::{self, DETECTORS, detector};
use crate::classify::Fact;
use crate::facts::{CollectedFacts, CommandClass, DiagnosisFacts, Pair, percent, server_name};
use crate::next::{SuggestedCommand, interval};
use crate::slow::Slow;
use crate::{Collector, DiagnosisContext};
use smbscope_model::prose::{capital, counted, prose_percent, span, thousands, unbroken};
use smbscope_model::{CommandGroup, Nanos};
use smbscope_stats::{DurationStatistics, TimePart};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Causes, and notes: the worst.
const LISTED_MAX: usize = 100;
/// A specific cause replaces a general one if it explains at least this fraction of its time.
const EXPLAINS: f64 = 0.5;
/// A client is named alone if it lost at least this fraction of the total, and twice as much as the next.
const STANDS_OUT: f64 = 0.4;
/// Percentage of untimed commands from which no overall answer is given.
const UNTIMED_MAX: f64 = 50.0;
/// Percentage of untimed commands from which a "nothing is slow" headline mentions them.
const NOT_TIMED_TOLD: f64 = 10.0;
const HEALTHY_SERVER: Nanos = Nanos(2_000_000);
const FEW: u64 = 20;

pub fn answer(collector: &Collector, context: &DiagnosisContext<'_>) -> Answer {
    let gathered = CollectedFacts::new(collector);
    let facts = DiagnosisFacts::new(&gathered, context);
    let (mut causes, notes) = told(&facts);
    let verdict = HeadlineVerdict::new(&facts, &causes);
    if verdict.culprit == Culprit::Capture && verdict.pair.is_none() {
        // A small timed fraction of the commands proves nothing about the rest.
        causes.clear();
    }
    let between_points = context.sides.map(|sides| BetweenPoints::new(sides, verdict.culprit)).unwrap_or_default();
    Answer {
        culprit: verdict.culprit,
        evidence: between_points.evidence.into_iter().chain(evidence(&facts, &verdict, &causes)).collect(),
        ruled_out: ruled_out(&facts, &verdict, &causes),
        caveats: caveats(&facts, &verdict, &causes).into_iter().chain(between_points.caveats).collect(),
        next: next(&facts, &verdict, &causes),
        headline: verdict.headline,
        states_first_cause: verdict.is_by_cause,
        causes,
        notes,
        slow: context.slow.to_string(),
    }
}

fn told(facts: &DiagnosisFacts<'_>) -> (Vec<Cause>, Vec<Cause>) {
    let mut found = causes::detect(facts);
    if let Some(least) = facts.least_time() {
        found.retain(|cause| cause.failed || cause.lost_ns.is_none_or(|lost| lost.best >= least));
    }
    let shared = shared(&found);
    let (noticed, others): (Vec<Cause>, Vec<Cause>) = found
        .into_iter()
        .partition(|cause| cause.failed || is_noticed(facts, cause) || is_shared(facts, &shared, cause));
    let mut causes = grouped(absorbed(noticed));
    rank(&mut causes);
    causes.truncate(LISTED_MAX);
    // A cause without a cost is listed as a note: it is about configuration, not about time.
    let mut notes = grouped(others.into_iter().filter(|cause| cause.lost_ns.is_none()).collect());
    notes.sort_by_key(|note| Reverse(note.confidence));
    notes.truncate(LISTED_MAX);
    (causes, notes)
}

/// Number of clients affected by the same kind of event on the same server, and their total lost time in ns.
type ServerEventImpact = BTreeMap<(String, Option<String>), (u64, i64)>;

fn shared(causes: &[Cause]) -> ServerEventImpact {
    let mut shared = ServerEventImpact::new();
    for cause in causes.iter().filter(|cause| cause.longest.is_some()) {
        let (clients, lost) = shared.entry((cause.id.clone(), cause.subject.server.clone())).or_default();
        *clients += 1;
        *lost = lost.saturating_add(cause.best().0);
    }
    shared
}

/// Returns true if the event hit several clients and cost this one at least half of [`Slow::wait`].
fn is_shared(facts: &DiagnosisFacts<'_>, shared: &ServerEventImpact, cause: &Cause) -> bool {
    let wait = facts.context.slow.wait.0;
    let key = (cause.id.clone(), cause.subject.server.clone());
    let all = shared.get(&key).filter(|_| cause.longest.is_some());
    all.is_some_and(|(clients, lost)| *clients > 1 && *lost >= wait) && cause.best().0 >= wait / 2
}

fn is_noticed(facts: &DiagnosisFacts<'_>, cause: &Cause) -> bool {
    let slow: &Slow = facts.context.slow;
    let lost = cause.best();
    if cause.longest.is_some_and(|longest| longest >= slow.wait && lost >= slow.wait) {
        return true;
    }
    let clients = cause.subject.clients.max(1) as i64;
    let enough = cause.share.is_none_or(|share| share * 100.0 >= f64::from(slow.share));
    if lost.0 / clients < slow.wait.0 || !enough {
        return false;
    }
    sufferer(facts, cause).is_none_or(|pair| is_noticed_by(slow, pair, lost))
}

fn sufferer<'f, 'a>(facts: &'f DiagnosisFacts<'a>, cause: &Cause) -> Option<&'f Pair<'a>> {
    facts.of_client(cause.subject.client.as_ref()?.parse().ok()?)
}

/// Returns true if a loss spread over a client's episodes is noticed in the worst one, or on average in each.
fn is_noticed_by(slow: &Slow, pair: &Pair<'_>, lost: Nanos) -> bool {
    let pace = &pair.whole.pace;
    let in_worst = lost.0 as f64 * pace.worst_share();
    in_worst >= slow.wait.0 as f64 || lost.0 / pace.episodes.max(1) as i64 >= slow.each.0
}

fn absorbed(mut causes: Vec<Cause>) -> Vec<Cause> {
    for detector in DETECTORS.iter() {
        let stronger: Vec<usize> = (0..causes.len()).filter(|at| causes[*at].id == detector.id).collect();
        let mut gone = Vec::new();
        for at in stronger {
            if gone.contains(&at) {
                continue;
            }
            for other in 0..causes.len() {
                let (one, two) = (&causes[at], &causes[other]);
                let covers = detector.covers.contains(&two.id.as_str()) && concerns(one, two);
                if covers && one.best().0 as f64 >= two.best().0 as f64 * EXPLAINS && !gone.contains(&other) {
                    let title = two.title.clone();
                    gone.push(other);
                    if !causes[at].also.contains(&title) {
                        causes[at].also.push(title);
                    }
                }
            }
        }
        gone.sort_unstable();
        gone.into_iter().rev().for_each(|at| drop(causes.remove(at)));
    }
    causes
}

/// Returns true if two causes concern the same client, or one of them several clients of the same server.
fn concerns(one: &Cause, other: &Cause) -> bool {
    let (one, other) = (&one.subject, &other.subject);
    let same_server = one.server.is_none() || other.server.is_none() || one.server == other.server;
    same_server && (one.clients > 1 || other.clients > 1 || one.client == other.client)
}

fn grouped(causes: Vec<Cause>) -> Vec<Cause> {
    let mut by_id: BTreeMap<(String, Option<String>), Vec<Cause>> = BTreeMap::new();
    for cause in causes {
        by_id.entry((cause.id.clone(), cause.subject.server.clone())).or_default().push(cause);
    }
    by_id.into_values().flat_map(group).collect()
}

fn group(mut same: Vec<Cause>) -> Vec<Cause> {
    same.sort_by(|a, b| b.best().cmp(&a.best()).then_with(|| a.subject.client.cmp(&b.subject.client)));
    let total: i64 = same.iter().map(|cause| cause.best().0).fold(0, i64::saturating_add);
    let stands_out = match same.as_slice() {
        [] | [_] => true,
        [worst, next, ..] => {
            total > 0
                && worst.best().0 as f64 >= total as f64 * STANDS_OUT
                && worst.best().0 >= next.best().0.saturating_mul(2)
        }
    };
    if stands_out {
        return same;
    }
    let clients = same.iter().map(|cause| cause.subject.clients.max(1)).sum::<u64>();
    let sum = |time: fn(&Cause) -> Nanos| Nanos(same.iter().map(|cause| time(cause).0).fold(0, i64::saturating_add));
    let (active, waited) = (sum(|cause| cause.active_ns), sum(|cause| cause.waited));
    let lost = same.iter().filter_map(|cause| cause.lost_ns).fold(LostTime::default(), LostTime::plus);
    let net = common_network(&same);
    let mut all = same.swap_remove(0);
    let others = counted(clients - 1, "other client", "other clients");
    let of = net.map_or_else(String::new, |net| format!(" in {net}"));
    all.sentence += &format!(" The same happened to {others}{of}.");
    all.subject.clients = clients;
    (all.active_ns, all.waited) = (active, waited);
    all.lost_ns = all.lost_ns.map(|_| lost);
    vec![all.settle()]
}

/// Returns the smallest of /24, /16 and /8 that contains all clients. IPv4 only.
fn common_network(causes: &[Cause]) -> Option<String> {
    let addresses: Option<Vec<[u8; 4]>> = causes
        .iter()
        .map(|cause| match cause.subject.client.as_ref()?.parse().ok()? {
            IpAddr::V4(address) => Some(address.octets()),
            IpAddr::V6(_) => None,
        })
        .collect();
    let addresses = addresses?;
    let first = addresses.first()?;
    (1..=3).rev().find(|n| addresses.iter().all(|address| address[..*n] == first[..*n])).map(|n| {
        let mut octets = [0u8; 4];
        octets[..n].copy_from_slice(&first[..n]);
        let [a, b, c, d] = octets;
        format!("{a}.{b}.{c}.{d}/{}", n * 8)
    })
}

fn rank(causes: &mut [Cause]) {
    let order = |id: &str| DETECTORS.iter().position(|detector| detector.id == id);
    causes.sort_by(|a, b| {
        (b.share.unwrap_or(0.0).total_cmp(&a.share.unwrap_or(0.0)))
            .then_with(|| b.best().cmp(&a.best()))
            .then_with(|| order(&a.id).cmp(&order(&b.id)))
            .then_with(|| a.subject.client.cmp(&b.subject.client))
            .then_with(|| a.subject.path.cmp(&b.subject.path))
    });
}

struct HeadlineVerdict<'f, 'a> {
    culprit: Culprit,
    headline: String,
    pair: Option<&'f Pair<'a>>,
    is_by_cause: bool,
}

impl<'f, 'a> HeadlineVerdict<'f, 'a> {
    fn new(facts: &'f DiagnosisFacts<'a>, causes: &[Cause]) -> HeadlineVerdict<'f, 'a> {
        let first = causes.first();
        let is_event = first.is_some_and(|cause| cause.longest.is_some());
        if let Some(headline) = untellable(facts).filter(|_| !is_event) {
            return HeadlineVerdict { culprit: Culprit::Capture, headline, pair: None, is_by_cause: false };
        }
        let pair = first.and_then(|cause| sufferer(facts, cause));
        if let Some(cause) = first
            && (cause.best().0.saturating_mul(2) >= cause.waited.0 || pair.is_none() || cause.failed)
        {
            let headline = format!("{}: {}", cause.culprit.title(), cause.in_full());
            return HeadlineVerdict { culprit: cause.culprit, headline, pair, is_by_cause: true };
        }
        if let Some(pair) = pair.or_else(|| slowest(facts)) {
            return by_split(pair, first);
        }
        let nothing =
            || HeadlineVerdict { culprit: Culprit::Nothing, headline: nothing(facts), pair: None, is_by_cause: false };
        single_wait(facts).unwrap_or_else(nothing)
    }
}

fn untellable(facts: &DiagnosisFacts<'_>) -> Option<String> {
    let aggregate = facts.context.aggregate;
    let title = Culprit::Capture.title();
    let timed = aggregate.count.saturating_sub(aggregate.untimed);
    if facts.least_time() == Some(Nanos(i64::MAX)) {
        return Some(format!("{title}: the clock of the capture stood still, so no time is known."));
    }
    if aggregate.count == 0 {
        return (facts.context.filter.is_none()).then(|| format!("{title}: no SMB command could be read."));
    }
    let is_few = facts.context.not_timed.at_least >= UNTIMED_MAX || timed * 2 < aggregate.count;
    is_few.then(|| {
        let encrypted = facts.context.quality.encrypted_frames > 0;
        let what = if encrypted { "encrypted commands" } else { "commands" };
        format!(
            "{title}: {} of {} {what} could not be timed.",
            thousands(aggregate.count - timed),
            thousands(aggregate.count)
        )
    })
}

/// Client with the longest wait among those whose server is generally slow or exceeds a limit of the user.
fn slowest<'f, 'a>(facts: &'f DiagnosisFacts<'a>) -> Option<&'f Pair<'a>> {
    let slow = facts.context.slow;
    let over = |pair: &&Pair<'_>| server_excess(slow, pair) || exceeds(slow, pair);
    facts.pairs.iter().filter(over).max_by_key(|pair| (pair.whole.waited, Reverse(pair.client)))
}

/// Server time exceeds a healthy server's noticeably. Includes an unknown round trip.
fn server_excess(slow: &Slow, pair: &Pair<'_>) -> bool {
    let commands = pair.facts.served_together(&CommandClass::ALL).count;
    let server = Nanos(pair.part(TimePart::Server).0.saturating_add(pair.part(TimePart::ServerOrNetwork).0));
    let expected =
        HEALTHY_SERVER.0.saturating_mul(commands as i64).saturating_add(pair.once(pair.held_up_by_handles()).0);
    let excess = Nanos(server.0.saturating_sub(expected));
    let share = excess.0 as f64 / pair.whole.active.0.max(1) as f64;
    let is_queued = pair.transfer_share() > 0.5;
    excess >= slow.wait && share * 100.0 >= f64::from(slow.share) && !is_queued && is_noticed_by(slow, pair, excess)
}

/// Finds the longest single command with a noticeable server time on an otherwise healthy server, excluding those
/// delayed by open handles or retransmissions.
fn single_wait<'f, 'a>(facts: &'f DiagnosisFacts<'a>) -> Option<HeadlineVerdict<'f, 'a>> {
    let waits = facts.pairs.iter().flat_map(|pair| pair.facts.waits.iter().map(move |wait| (pair, wait)));
    let served = waits.filter_map(|(pair, wait)| {
        let network = pair.round_trip().unwrap_or_default();
        let time = wait.answered? - wait.sent - network;
        let counts = wait.retransmitted == 0 && wait.group.in_headline() && !pair.is_held_up_by_handles(wait);
        (counts && time >= facts.context.slow.wait).then_some((time, pair, wait))
    });
    let (time, pair, wait) = served.max_by_key(|(time, pair, _)| (*time, Reverse(pair.client)))?;
    let headline = format!(
        "{}: {} took {} to answer {} of {}.",
        Culprit::Server.title(),
        server_name(pair.server),
        unbroken(span(time)),
        causes::request(wait),
        pair.client,
    );
    Some(HeadlineVerdict { culprit: Culprit::Server, headline, pair: Some(pair), is_by_cause: false })
}

fn exceeds(slow: &Slow, pair: &Pair<'_>) -> bool {
    let Some(times) = pair.times() else { return false };
    let by_group = times.groups.iter().any(|(group, figures)| over_limit(slow, *group, figures).is_some());
    by_group || slow.longest.zip(times.response_time.max).is_some_and(|(limit, longest)| longest > limit)
}

fn over_limit(slow: &Slow, group: CommandGroup, figures: &DurationStatistics) -> Option<(Nanos, Nanos)> {
    slow.p95(group).zip(figures.p95).filter(|(limit, p95)| p95 > limit)
}

fn by_split<'f, 'a>(pair: &'f Pair<'a>, first: Option<&Cause>) -> HeadlineVerdict<'f, 'a> {
    let server = pair.part(TimePart::Server);
    let transfers = pair.transfers();
    let network = Nanos(pair.part(TimePart::Network).0 + transfers.0);
    let unclear = pair.part(TimePart::ServerOrNetwork);
    let all = Nanos(server.0 + network.0 + unclear.0);
    let parts = [
        (Culprit::Server, "the server", server),
        (Culprit::Network, "the network", network),
        (Culprit::Capture, "server and network, which can't be separated because the round trip is unknown", unclear),
    ];
    let (largest, name, time) = parts.into_iter().max_by_key(|(.., time)| *time).unwrap_or(parts[0]);
    let is_most = time.0.saturating_mul(2) >= all.0;
    let culprit = if is_most { largest } else { first.map_or(largest, |cause| cause.culprit) };
    let share = prose_percent(time.0.unsigned_abs(), all.0.unsigned_abs());
    let of = format!("{} waited {} for {}", pair.client, unbroken(span(pair.whole.waited)), server_name(pair.server));
    let headline = match culprit == largest {
        true => format!(
            "{}: {name} took {} of the {} that {} waited for {}.",
            culprit.title(),
            unbroken(share),
            unbroken(span(pair.whole.waited)),
            pair.client,
            server_name(pair.server)
        ),
        false => format!("{}: {of}; {name} took {}.", culprit.title(), unbroken(share)),
    };
    HeadlineVerdict { culprit, headline, pair: Some(pair), is_by_cause: false }
}

fn nothing(facts: &DiagnosisFacts<'_>) -> String {
    let title = Culprit::Nothing.title();
    let aggregate = facts.context.aggregate;
    let encrypted = aggregate.groups.iter().find(|row| row.group == CommandGroup::Encrypted).map(|row| &row.row);
    let (total, one, many) = match encrypted.filter(|_| aggregate.total.timed == 0) {
        Some(row) => (row, "encrypted request", "encrypted requests"),
        None => (&aggregate.total, "command", "commands"),
    };
    let times = &total.response_time;
    let (Some(median), Some(longest)) = (times.p50, times.max) else {
        return match facts.context.filter {
            Some(_) if facts.context.aggregate.count == 0 => "No command matches the filter.".to_owned(),
            _ if facts.least_time().is_some() => {
                let slowest = times.max.map_or_else(String::new, |max| format!("; the slowest took {}", unbroken(max)));
                format!("{title}: {}{slowest}.", unbroken(counted(total.timed, one, many)))
            }
            _ => format!("{title}: no noticeable waits."),
        };
    };
    let p95 = times.p95.map_or_else(String::new, |p95| format!(", {}", unbroken(format!("p95 {p95}"))));
    let not_timed = facts.context.not_timed.percent;
    let title = match not_timed >= NOT_TIMED_TOLD {
        true => format!("{title} among the {:.0}% of the commands that could be timed", 100.0 - not_timed),
        false => title.to_owned(),
    };
    match total.timed {
        1 => format!("{title}: {} took {}.", unbroken(counted(1, one, many)), unbroken(longest)),
        n => format!(
            "{title}: {} took {} (median){p95}; the slowest took {}.",
            unbroken(counted(n, one, many)),
            unbroken(median),
            unbroken(longest),
        ),
    }
}

fn evidence(facts: &DiagnosisFacts<'_>, verdict: &HeadlineVerdict<'_, '_>, causes: &[Cause]) -> Vec<String> {
    let mut sentences = Vec::new();
    let first = causes.first().filter(|_| verdict.is_by_cause);
    if let Some(cause) = first {
        if !cause.also.is_empty() {
            let also: Vec<String> = cause.also.iter().take(3).map(|title| format!("“{title}”")).collect();
            sentences.push(format!("This explains {}, too.", also.join(", ")));
        }
    } else if let Some(pair) = verdict.pair {
        sentences.extend(limits_exceeded(facts.context.slow, pair));
        let longest = pair.facts.waits.iter().find(|wait| wait.to.is_some() && wait.group.in_headline());
        if let Some(wait) = longest.filter(|wait| !verdict.headline.contains(&causes::request(wait))) {
            let length = wait.to.map_or(Nanos(0), |to| to.time - wait.from.time);
            sentences.push(format!("The longest wait was {}: {}.", causes::request(wait), unbroken(span(length))));
        }
    }
    // An event explains the lost time by itself.
    let is_event = first.is_some_and(|cause| cause.longest.is_some());
    sentences.extend(verdict.pair.filter(|_| !is_event).and_then(split_sentence));
    sentences.extend(verdict.pair.and_then(|pair| others(facts, pair, causes)));
    sentences
}

fn limits_exceeded(slow: &Slow, pair: &Pair<'_>) -> Option<String> {
    let times = pair.times()?;
    let groups = times.groups.iter().filter_map(|(group, figures)| {
        let (limit, p95) = over_limit(slow, *group, figures)?;
        Some(format!("p95 of {group} {} is above {}", unbroken(p95), unbroken(limit)))
    });
    let longest = slow.longest.zip(times.response_time.max).filter(|(limit, longest)| longest > limit);
    let longest = longest
        .map(|(limit, longest)| format!("the slowest command took {}, above {}", unbroken(longest), unbroken(limit)));
    let all: Vec<String> = groups.chain(longest).collect();
    (!all.is_empty()).then(|| format!("{}: {}.", pair.client, all.join("; ")))
}

fn split_sentence(pair: &Pair<'_>) -> Option<String> {
    let active = pair.split.active();
    if active.0 <= 0 {
        return None;
    }
    let transfers = pair.split.transfers();
    let parts = [
        (pair.split.server_ns, "server"),
        (pair.split.server_or_network_ns, "server or network"),
        (transfers, "transfers"),
        (pair.split.network_ns, "round trips and retransmissions"),
        (pair.split.think_ns, "client"),
    ];
    let mut parts: Vec<(Nanos, &str)> = parts.into_iter().filter(|(time, _)| time.0 > active.0 / 100).collect();
    parts.sort_by_key(|(time, _)| Reverse(*time));
    let shares: Vec<String> = parts
        .into_iter()
        .map(|(time, name)| format!("{name} {}", prose_percent(time.0.unsigned_abs(), active.0.unsigned_abs())))
        .collect();
    Some(format!("Time of {} on {}: {}.", pair.client, server_name(pair.server), shares.join(", ")))
}

fn others(facts: &DiagnosisFacts<'_>, pair: &Pair<'_>, causes: &[Cause]) -> Option<String> {
    let mut clients: Vec<IpAddr> = facts.pairs.iter().map(|pair| pair.client).collect();
    clients.sort_unstable();
    clients.dedup();
    let others = clients.len().saturating_sub(1);
    let grouped = causes.iter().any(|cause| cause.subject.clients > 1);
    if others == 0 || grouped {
        return None;
    }
    let slow = |client: &&IpAddr| {
        let address = client.to_string();
        **client != pair.client && causes.iter().any(|cause| cause.subject.client.as_ref() == Some(&address))
    };
    let slow = clients.iter().filter(slow).count();
    let which = counted(others as u64, "other client", "other clients");
    Some(match slow {
        0 => format!("The {which} did not wait noticeably."),
        n => format!("Of the {which}, {n} waited noticeably, too."),
    })
}

fn ruled_out(facts: &DiagnosisFacts<'_>, verdict: &HeadlineVerdict<'_, '_>, causes: &[Cause]) -> Vec<String> {
    let mut sentences = Vec::new();
    let Some(pair) = verdict.pair else { return sentences };
    let has = |id: &str| causes.iter().any(|cause| cause.id == id);
    let accuses = |culprit: Culprit| causes.iter().any(|cause| cause.culprit == culprit);
    let quality = facts.context.quality;
    let is_whole = quality.dropped_packets + quality.capture_gaps + quality.missing_unacknowledged_bytes == 0;
    let (segments, lost) = pair.segments();
    if lost == 0 && is_whole && segments > 0 && !has("network-loss") && !has("network-outage") {
        sentences.push("Packet loss: no segment was retransmitted.".to_owned());
    }
    let waited = pair.split.waited().0.max(1) as f64;
    let server = pair.split.server_ns.0 as f64 / waited;
    let network = pair.split.network_ns.0 as f64 / waited;
    if verdict.culprit != Culprit::Server
        && !accuses(Culprit::Server)
        && server < 0.15
        && pair.split.server_or_network_ns.0 == 0
    {
        sentences.push(format!(
            "Server: it took {} of the waits, {} for a typical command.",
            percent(server),
            unbroken(pair.facts.served_together(&CommandClass::ALL).median()),
        ));
    }
    if verdict.culprit == Culprit::Server && !accuses(Culprit::Network) && network > 0.0 && network < 0.15 && lost == 0
    {
        let trip = pair.round_trip().map_or_else(String::new, |trip| format!(" of {} each", unbroken(trip)));
        sentences.push(format!("Network: round trips{trip} took {} of the waits.", percent(network)));
    }
    let (negotiations, opens) = (pair.facts.count(Fact::Negotiate), pair.facts.count(Fact::Open));
    if opens >= FEW && negotiations * 50 <= opens && !has("negotiate-churn") {
        let opens = counted(opens, "open", "opens");
        sentences.push(match negotiations {
            0 => format!("Negotiation: no NEGOTIATE among {opens}."),
            n => format!("Negotiation: {} NEGOTIATE for {opens}.", thousands(n)),
        });
    }
    sentences
}

fn caveats(facts: &DiagnosisFacts<'_>, verdict: &HeadlineVerdict<'_, '_>, causes: &[Cause]) -> Vec<String> {
    let mut sentences = Vec::new();
    let context = facts.context;
    if let Some(cause) = causes.first().filter(|cause| verdict.is_by_cause && cause.confidence != Confidence::High) {
        sentences.push(format!("{}.", capital(cause.confidence.words())));
    }
    let encrypted = context.quality.encrypted_frames;
    if encrypted > 0 {
        sentences.push(format!(
            "{} encrypted: files and commands are hidden. With the keys of the session (--keys) or the user's password \
             (--password-file), smbscope decrypts them.",
            counted(encrypted, "frame is", "frames are"),
        ));
    }
    if let Some(step) = facts.least_time().filter(|step| step.0 < i64::MAX) {
        sentences.push(format!(
            "The clock of the capture moves in steps of {}: shorter times are not known.",
            unbroken(step)
        ));
    }
    for offset in context.captures.iter().filter_map(|capture| capture.clock_offset).take(1) {
        sentences.push(format!(
            "Two clocks stamped the capture: packets of {} were {} late, which was corrected.",
            offset.whose(),
            unbroken(offset.applied)
        ));
    }
    if context.not_timed.percent >= 5.0 && verdict.culprit != Culprit::Capture {
        sentences.push(format!("{:.0}% of the commands could not be timed.", context.not_timed.percent));
    }
    let timed = context.aggregate.total.timed;
    if timed > 0 && timed < FEW && encrypted == 0 && verdict.culprit != Culprit::Nothing {
        sentences.push(format!("This rests on {} only.", counted(timed, "command", "commands")));
    }
    sentences
}

fn next(facts: &DiagnosisFacts<'_>, verdict: &HeadlineVerdict<'_, '_>, causes: &[Cause]) -> Vec<SuggestedCommand> {
    let context = facts.context;
    if context.aggregate.count == 0 {
        return Vec::new();
    }
    let slow = (*context.slow != Slow::default()).then(|| context.slow.to_string());
    let step = |label: &str, filter: Option<&str>, options: &str| {
        SuggestedCommand::analyze(label, (context.filter, slow.as_deref()), filter, options, context.captures)
    };
    let has_files = !context.aggregate.files.entries.is_empty();
    let by_file = if has_files { ("files", "--by file") } else { ("commands", "--by command") };
    let cause = causes.first().filter(|_| verdict.is_by_cause);
    // A command without a response waits beyond the last one that has a time.
    let longest = cause.and_then(|cause| cause.longest).unwrap_or_default();
    let when = format!("--interval {}", interval(context.aggregate.elapsed().unwrap_or_default().max(longest)));
    let client = verdict.pair.map(|pair| format!("client == {}", pair.client));
    match (verdict.culprit, cause) {
        (Culprit::Capture, _) => Vec::new(),
        (Culprit::Nothing, _) => vec![step(by_file.0, None, by_file.1), step("baseline", None, "-o baseline.json")],
        (_, Some(cause)) if cause.subject.clients > 1 => {
            vec![step("clients", None, "--by client"), step("when", None, &when)]
        }
        (_, Some(cause)) if cause.longest.is_some() => {
            vec![step("when", client.as_deref(), &when), step("causes", None, "--full")]
        }
        _ => vec![step(by_file.0, client.as_deref(), by_file.1), step("when", client.as_deref(), &when)],
    }
}

pub fn describe(id: &str) -> Option<(&'static str, &'static str)> {
    detector(id).map(|detector| (detector.title, detector.advice))
}

#[cfg(test)]
mod tests;
