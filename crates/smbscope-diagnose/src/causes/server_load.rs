//! Servers that slow down under load or run in bursts.

use super::{Detect, Detector, Finding, Sufferers};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{CommandClass, DiagnosisFacts, Pair, ServerTimeHistogram, Wait, server_name};
use smbscope_model::prose::{counted, span, unbroken};
use smbscope_model::{Command, CommandGroup, Nanos};
use smbscope_stats::TimePart;
use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;

pub(super) const SERVER_SATURATION: Detector = Detector {
    id: "server-saturation",
    culprit: Culprit::Server,
    title: "Response times grow with load",
    condition: "On the only server of a capture, the median response time with many outstanding requests is `median` or longer and `ratio` times that with few, from `commands` commands each, and server time is most of the wait of `clients` clients.",
    advice: "The server is at its limit at these times. See what its processors, disks and network do then (bench --server-metrics), and who loads it (--by client).",
    source: "Swartz (1997), figures 2 and 3",
    thresholds: &[("commands", "200"), ("ratio", "3"), ("median", "5ms"), ("clients", "3")],
    covers: &["rtt-bound", "serial-client"],
    detect: Detect::Server(server_saturation),
};

fn server_saturation(facts: &DiagnosisFacts<'_>, server: SocketAddr) -> Option<Finding> {
    // Response time against load is known only for the capture as a whole.
    if facts.servers().len() > 1 {
        return None;
    }
    const ID: &str = "server-saturation";
    let threshold = |name: &str| facts.context.catalogue.threshold(ID, name);
    let loads = facts.context.aggregate.concurrency.iter();
    let loads: Vec<_> = loads.filter(|load| load.commands as f64 >= threshold("commands")).collect();
    let (low, high) = (loads.first()?, loads.last()?);
    let (few, many) = (low.response_time.p50?, high.response_time.p50?);
    let grown = many.0 as f64 / few.0.max(1) as f64;
    // Clients that wait mainly for the server itself.
    let slow = |pair: &&Pair<'_>| {
        let server = pair.part(TimePart::Server).0 as f64;
        server > 0.5 * pair.whole.waited.0 as f64 && pair.transfer_share() < 0.4
    };
    let clients: BTreeSet<_> = facts.of_server(server).filter(slow).map(|pair| pair.client).collect();
    if high.outstanding_from < low.outstanding_to.max(1.0) * 2.0
        || grown < threshold("ratio")
        || (many.0 as f64) < threshold("median")
        || (clients.len() as f64) < threshold("clients")
    {
        return None;
    }
    let few_outstanding =
        if low.outstanding_to < 1.5 { "one".to_owned() } else { format!("{:.0}", low.outstanding_to) };
    let what = format!(
        "{} slowed down under load: the median response time grew from {} to {} ({grown:.1}×) as requests outstanding grew \
         from fewer than {} to {:.0} and more",
        server_name(server),
        unbroken(few),
        unbroken(many),
        few_outstanding,
        high.outstanding_from,
    );
    let server_part: i64 = facts
        .of_server(server)
        .filter(|pair| clients.contains(&pair.client))
        .map(|pair| pair.part(TimePart::Server).0)
        .fold(0, i64::saturating_add);
    let lost = Nanos((server_part as f64 * (1.0 - 1.0 / grown)) as i64);
    Some(
        Finding::new(Confidence::Medium, what)
            .lost(LostTime::between(Nanos(lost.0 / 2), lost, Nanos(server_part)))
            .about(Sufferers { client: None, ..Sufferers::of_server(facts, server, &clients) }),
    )
}

pub(super) const THROTTLED: Detector = Detector {
    id: "throttled",
    culprit: Culprit::Server,
    title: "The server works in bursts",
    condition: "The server paused `pauses` times for `least` or longer, for about the same time each, whatever it was asked for. It answered fast in between, and hardly any segment was lost.",
    advice: "The server, or the virtual machine that it runs on, stops at regular intervals: a processor quota (cgroup, cloud burst credits), an I/O limit of the storage, snapshots, or a hypervisor without free processors. Look at its steal time and throttling counters.",
    source: "Linux cgroup v2 cpu.max (nr_throttled); Azure and AWS burst credits",
    thresholds: &[("pauses", "5"), ("least", "100ms")],
    covers: &["server-hang", "slow-storage", "filter-delay", "server-saturation", "flush-heavy"],
    detect: Detect::Server(throttled),
};

/// Maximum coefficient of variation of regular pauses.
const REGULAR: f64 = 0.35;

fn throttled(facts: &DiagnosisFacts<'_>, server: SocketAddr) -> Option<Finding> {
    const ID: &str = "throttled";
    let pauses = server_pauses(long_waits(facts, server, facts.context.catalogue.time(ID, "least")));
    let is_rare = (pauses.len() as f64) < facts.context.catalogue.threshold(ID, "pauses");
    if is_rare || !are_of_several_kinds(&pauses) {
        return None;
    }
    let n = pauses.len() as f64;
    let mean = pauses.iter().map(|(_, length)| length.0 as f64).sum::<f64>() / n;
    let mut all = ServerTimeHistogram::default();
    facts.of_server(server).for_each(|pair| all.merge(&pair.facts.served_together(&CommandClass::ALL)));
    let is_fast_between = all.median().0 as f64 * 8.0 < mean && all.count as f64 > 3.0 * n;
    if !is_fast_between || !are_regular(&pauses, mean) || loses_segments(facts, server) {
        return None;
    }
    let clients: BTreeSet<_> = facts
        .of_server(server)
        .filter(|pair| pair.facts.waits.iter().next().is_some())
        .map(|pair| pair.client)
        .collect();
    let total = Nanos((mean * n) as i64);
    let what = format!(
        "{} stopped {} for about {} each, whatever it was asked for, and answered within {} in between",
        server_name(server),
        counted(pauses.len() as u64, "time", "times"),
        unbroken(span(Nanos(mean as i64))),
        unbroken(all.median()),
    );
    Some(
        Finding::new(Confidence::Medium, what)
            .lost(LostTime::between(Nanos(total.0 * 8 / 10), total, total))
            .from(pauses.first().map(|(wait, _)| wait.from))
            .about(Sufferers::of_server(facts, server, &clients)),
    )
}

fn long_waits<'a>(facts: &'a DiagnosisFacts<'_>, server: SocketAddr, least: Nanos) -> Vec<&'a Wait> {
    let mut waits: Vec<&Wait> = facts
        .of_server(server)
        .flat_map(|pair| pair.facts.waits.iter())
        .filter(|wait| wait.group != CommandGroup::Waiting)
        .filter(|wait| {
            wait.to.is_some_and(|to| to.time - wait.from.time >= least) && wait.retransmitted == 0 && !wait.failed()
        })
        .collect();
    waits.sort_by_key(|wait| (wait.to.map(|to| to.time), wait.from.time));
    waits
}

/// Returns the first wait and the length of each pause. Responses within 20 ms of each other ended the same pause.
fn server_pauses(waits: Vec<&Wait>) -> Vec<(&Wait, Nanos)> {
    let mut pauses: Vec<(&Wait, Nanos)> = Vec::new();
    for wait in waits {
        let Some(to) = wait.to else { continue };
        let length = to.time - wait.from.time;
        match pauses.last_mut() {
            Some((last, longest)) if last.to.is_some_and(|end| to.time - end.time < Nanos(20_000_000)) => {
                *longest = (*longest).max(length);
            }
            _ => pauses.push((wait, length)),
        }
    }
    pauses
}

fn are_of_several_kinds(pauses: &[(&Wait, Nanos)]) -> bool {
    let mut kinds: HashMap<Command, usize> = HashMap::new();
    pauses.iter().for_each(|(wait, _)| *kinds.entry(wait.command).or_default() += 1);
    let most = kinds.values().copied().max().unwrap_or(0);
    kinds.len() > 1 && most as f64 <= 0.9 * pauses.len() as f64
}

fn are_regular(pauses: &[(&Wait, Nanos)], mean: f64) -> bool {
    let squares = pauses.iter().map(|(_, length)| (length.0 as f64 - mean).powi(2)).sum::<f64>();
    (squares / pauses.len() as f64).sqrt() <= REGULAR * mean
}

/// Returns true if retransmission timeouts, which are regular, may explain the pauses.
fn loses_segments(facts: &DiagnosisFacts<'_>, server: SocketAddr) -> bool {
    let (segments, lost) =
        facts.of_server(server).map(|pair| pair.segments()).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    lost * 1_000 > segments
}
