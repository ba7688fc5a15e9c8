//! What a client's time went into, as a whole.

use super::Context;
use crate::client::Count;
use crate::facts::Fact;
use crate::finding::{Confidence, Finding, Whose};
use crate::subject::{Subject, percent};
use smbscope_model::prose::{counted, thousands, unbroken};
use smbscope_model::{Group, Nanos};
use smbscope_stats::TimePart;

/// Commands one after the other, although nothing forbids several at once.
pub(super) fn serial_client(subject: &Subject<'_>) -> Option<Finding> {
    const ID: &str = "serial-client";
    let commands = subject.facts.of(Fact::Command);
    let split = subject.split();
    let waited = split.waited().0 as f64 / split.active().0.max(1) as f64;
    // A few that are slow are no pattern.
    if Nanos(commands.outstanding) < subject.time(ID, "time")
        || (commands.count as f64) < subject.threshold(ID, "commands")
        || waited < subject.threshold(ID, "share")
        || commands.depth() > subject.threshold(ID, "outstanding")
    {
        return None;
    }
    let what = format!(
        "sent {} one after the other ({:.2} outstanding on average)",
        counted(commands.count, "command", "commands"),
        commands.depth(),
    );
    let mut finding = subject.finding_on(ID, Confidence::Medium, &what, commands);
    finding.whose.path = None;
    Some(finding)
}

/// Round trips that take longer than the server.
pub(super) fn round_trip_bound(subject: &Subject<'_>) -> Option<Finding> {
    const ID: &str = "rtt-bound";
    let split = subject.split();
    let (network, active) = (split.part(TimePart::Network), split.active());
    let share = network.0 as f64 / active.0.max(1) as f64;
    if network < subject.time(ID, "time") || share < subject.threshold(ID, "share") {
        return None;
    }
    let trip = subject.connections.iter().filter_map(|connection| connection.round_trip()).max();
    let trip = trip.map_or_else(String::new, |trip| format!(" of up to {}", unbroken(trip)));
    let what = format!("waited for {} round trips{trip}", thousands(subject.facts.count(Fact::Command)),);
    Some(subject.finding(ID, Confidence::High, &what, Some(network)))
}

/// A client that has the time for itself.
pub(super) fn client_bound(subject: &Subject<'_>) -> Option<Finding> {
    const ID: &str = "client-bound";
    let (think, active) = (Nanos(subject.facts.quick_think), subject.split().active());
    if think < subject.time(ID, "time") || (think.0 as f64) < active.0 as f64 * subject.threshold(ID, "share") {
        return None;
    }
    let what = format!(
        "worked between its requests for {} of its active time, in pauses that are too short for a person",
        percent(think.0 as f64 / active.0.max(1) as f64)
    );
    let mut finding = subject.finding(ID, Confidence::High, &what, None);
    finding.ruled_out = vec!["Server and network had answered all requests in that time.".to_owned()];
    Some(finding)
}

/// Commands that carry no data.
pub(super) fn metadata_heavy(subject: &Subject<'_>) -> Option<Finding> {
    const ID: &str = "metadata-heavy";
    let (metadata, all) = (subject.facts.of(Fact::Metadata), subject.facts.of(Fact::Command));
    let share = subject.facts.share(Fact::Metadata, Fact::Command);
    if (all.count as f64) < subject.threshold(ID, "commands") || share < subject.threshold(ID, "share") {
        return None;
    }
    let what = format!(
        "sent {} of {} that neither read nor write data ({})",
        thousands(metadata.count),
        counted(all.count, "command", "commands"),
        percent(share),
    );
    let mut finding = subject.finding_on(ID, Confidence::Medium, &what, metadata);
    finding.whose.path = None;
    Some(finding)
}

/// Response times that no server has by itself: those of timers of TCP.
pub(super) fn timer_cluster(subject: &Subject<'_>) -> Option<Finding> {
    const ID: &str = "timer-cluster";
    let all = subject.facts.count(Fact::Command) as f64;
    let of = |fact| subject.facts.of(fact);
    let (name, count) = [("40 ms", of(Fact::Timer40)), ("200 ms", of(Fact::Timer200))]
        .into_iter()
        .max_by_key(|(_, count)| count.count)?;
    // Slow responses of all lengths have some in every band; a cluster stands out from their mean.
    let share = count.count as f64 / all.max(1.0);
    let mean = subject.facts.of(Fact::Command).mean();
    let stands_out = mean.0 < count.mean().0 / 2;
    if (count.count as f64) < subject.threshold(ID, "commands")
        || share <= subject.threshold(ID, "share")
        || !stands_out
    {
        return None;
    }
    let what = format!(
        "waited about {} for each of {} ({} of all), the length of a timer of TCP; the mean of all commands is {}",
        unbroken(name),
        counted(count.count, "command", "commands"),
        percent(share),
        unbroken(mean),
    );
    let mut finding = subject.finding_on(ID, Confidence::Medium, &what, count);
    finding.whose.path = None;
    Some(finding)
}

/// Opens that take much longer than queries, as where something looks into every file.
pub(super) fn filter_delay(subject: &Subject<'_>) -> Option<Finding> {
    let count = subject.facts.of(Fact::Open);
    let (opens, queries) = (p95(subject, Group::OpenClose)?, p95(subject, Group::Attributes)?);
    much_slower(subject, "filter-delay", ("opens", count), ("open or close", opens), ("query", queries))
}

/// Reads and writes that take much longer than what comes from memory.
pub(super) fn slow_storage(subject: &Subject<'_>) -> Option<Finding> {
    let count = subject.facts.of(Fact::Transfer);
    let others = p95(subject, Group::Attributes).max(p95(subject, Group::OpenClose))?;
    let data = [("read", Group::Read), ("write or flush", Group::Write)];
    let (name, data) =
        data.into_iter().filter_map(|(name, group)| Some((name, p95(subject, group)?))).max_by_key(|(_, p95)| *p95)?;
    // Of several outstanding, each waits for the transfers of those before it.
    let data = Nanos((data.0 as f64 / count.depth().max(1.0)) as i64);
    much_slower(subject, "slow-storage", ("transfers", count), (name, data), ("command without data", others))
}

/// A kind of commands of which one in 20 takes much longer than of another kind.
fn much_slower(
    subject: &Subject<'_>,
    id: &str,
    (least, count): (&str, &Count),
    (slow_name, slow): (&str, Nanos),
    (fast_name, fast): (&str, Nanos),
) -> Option<Finding> {
    let ratio = slow.0 as f64 / fast.0.max(1) as f64;
    if (count.count as f64) < subject.threshold(id, least)
        || slow < subject.time(id, "p95")
        || ratio < subject.threshold(id, "ratio")
    {
        return None;
    }
    let what = format!(
        "waited {} or longer for one {slow_name} in 20 and {} for one {fast_name} in 20, {ratio:.0} times as long",
        unbroken(slow),
        unbroken(fast),
    );
    let mut finding = subject.finding_on(id, Confidence::Low, &what, count);
    finding.whose.path = None;
    Some(finding)
}

fn p95(subject: &Subject<'_>, group: Group) -> Option<Nanos> {
    let groups = &subject.times()?.groups;
    groups.iter().find(|(known, _)| *known == group).and_then(|(_, figures)| figures.p95)
}

/// Response times that grow with the number of commands outstanding, over all clients.
pub(super) fn server_saturation(context: &Context<'_>) -> Option<Finding> {
    const ID: &str = "server-saturation";
    let least = context.catalogue.threshold(ID, "commands");
    let loads: Vec<_> = context.aggregate.concurrency.iter().filter(|load| load.commands as f64 >= least).collect();
    let (low, high) = (loads.first()?, loads.last()?);
    let (few, many) = (low.response_time.p50?, high.response_time.p50?);
    let grown = many.0 as f64 / few.0.max(1) as f64;
    let slow = Nanos(context.catalogue.threshold(ID, "median") as i64);
    if high.outstanding_from < low.outstanding_to.max(1.0) * 2.0
        || grown < context.catalogue.threshold(ID, "ratio")
        || many < slow
    {
        return None;
    }
    let entry = context.catalogue.entry(ID);
    let sentence = format!(
        "The median response time grew from {} to {} ({grown:.1} times) as outstanding commands grew from fewer than {:.0} to {:.0} and more.",
        unbroken(few),
        unbroken(many),
        low.outstanding_to,
        high.outstanding_from,
    );
    Some(Finding {
        id: ID.to_owned(),
        title: entry.title.clone(),
        sentence,
        whose: Whose::default(),
        lost_ns: None,
        active_ns: context.aggregate.splits.whole.active(),
        confidence: Confidence::Medium,
        evidence: Vec::new(),
        wireshark: "smb2 || smb".to_owned(),
        advice: entry.advice.clone(),
        source: entry.source.clone(),
        ruled_out: Vec::new(),
    })
}
