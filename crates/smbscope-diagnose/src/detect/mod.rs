//! The detectors, and what becomes of their findings.

mod connections;
mod credits;
mod files;
mod network;
mod offers;
mod refusals;
mod times;
mod transfers;

use crate::catalogue::Catalogue;
use crate::collector::{Collector, PathKey};
use crate::finding::Finding;
use crate::path::PathFacts;
use crate::subject::Subject;
use smbscope_model::prose::{counted, span, unbroken};
use smbscope_model::{Connection, Nanos};
use smbscope_stats::Aggregate;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;

/// Findings that are listed.
pub(crate) const FINDINGS_MAX: usize = 100;
/// What costs less than a person notices is no finding (Miller, "Response time in man-computer conversational
/// transactions", AFIPS 1968).
const NOTICED: Nanos = Nanos(100_000_000);
/// What costs more than this is one, whatever its share.
const CONSIDERABLE: Nanos = Nanos(60_000_000_000);
/// Below that it takes this share of the client's active time.
const SHARE_LEAST: f64 = 0.01;
/// A finding about a client as a whole is not told where others explain this share of its time.
const EXPLAINED: f64 = 0.8;

/// What detectors go by beside the exchanges.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// Thresholds and words.
    pub catalogue: &'a Catalogue,
    /// The statistics.
    pub aggregate: &'a Aggregate,
    /// The connections.
    pub connections: &'a [Connection],
}

/// Detectors of patterns in what a client does.
const DETECTORS: &[fn(&Subject<'_>) -> Option<Finding>] = &[
    connections::smb1_in_use,
    connections::encrypted,
    connections::negotiate_churn,
    connections::many_channels,
    credits::credit_starved,
    credits::async_limit,
    network::network_loss,
    network::window_limited,
    network::zero_window,
    offers::old_dialect,
    offers::multichannel_unused,
    connections::slow_logon,
    connections::dfs_referral,
    files::small_file_copy,
    files::missing_file_probes,
    files::mac_metadata,
    files::office_slow_open,
    refusals::break_storm,
    refusals::break_timeout,
    refusals::conflicts,
    refusals::refusals,
    refusals::notify_storm,
    times::serial_client,
    times::round_trip_bound,
    times::client_bound,
    times::metadata_heavy,
    times::timer_cluster,
    times::filter_delay,
    times::slow_storage,
    transfers::small_io,
    transfers::flush_heavy,
    transfers::large_mtu_off,
    transfers::fast_then_slow,
    transfers::signing_cost,
];

type PathDetector = fn(&Subject<'_>, &PathKey, &PathFacts) -> Option<Finding>;

/// Detectors of patterns in what a client does with a file or directory.
const PATH_DETECTORS: &[PathDetector] =
    &[files::ini_pattern, files::relisting, files::list_then_stat, files::small_list_buffer, files::huge_directory];

/// Everything that was found: what took the largest share of its client's active time first.
pub fn findings(collector: &Collector, context: &Context<'_>) -> Vec<Finding> {
    let (clients, paths) = collector.finish();
    let mut connections: HashMap<IpAddr, Vec<&Connection>> = HashMap::new();
    for connection in context.connections {
        connections.entry(connection.endpoints.client.ip()).or_default().push(connection);
    }
    let mut all = Vec::new();
    for (client, facts) in &clients {
        let connections = connections.remove(client).unwrap_or_default();
        // Paths come in the order of their clients.
        let from = paths.partition_point(|(key, _)| key.client < *client);
        let to = paths.partition_point(|(key, _)| key.client <= *client);
        all.extend(of_client(&Subject { context, client: *client, facts, connections }, &paths[from..to]));
    }
    all.extend(times::server_saturation(context));
    all.retain(matters);
    rank(&mut all);
    all.truncate(FINDINGS_MAX);
    all
}

/// Whether a finding costs enough to be told, or has no cost that a capture can tell.
fn matters(finding: &Finding) -> bool {
    let Some(lost) = finding.lost_ns else { return true };
    lost >= CONSIDERABLE || lost >= NOTICED && finding.share().is_none_or(|share| share >= SHARE_LEAST)
}

fn of_client(subject: &Subject<'_>, paths: &[(PathKey, PathFacts)]) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for detect in PATH_DETECTORS {
        found.extend(in_one(paths.iter().filter_map(|(key, facts)| detect(subject, key, facts)).collect()));
    }
    found.extend(DETECTORS.iter().filter_map(|detect| detect(subject)));
    let is_general = |finding: &Finding| subject.context.catalogue.entry(&finding.id).general;
    let explained: f64 = found.iter().filter(|one| !is_general(one)).filter_map(Finding::share).fold(0.0, f64::max);
    found.retain(|finding| !is_general(finding) || finding.share().is_none_or(|share| explained < share * EXPLAINED));
    found
}

/// The worst of several findings of a kind, which says how many others there are.
fn in_one(mut found: Vec<Finding>) -> Option<Finding> {
    rank(&mut found);
    let others = found.len().saturating_sub(1);
    let rest: i64 = found.iter().skip(1).filter_map(|finding| finding.lost_ns).map(|lost| lost.0).sum();
    let mut worst = found.into_iter().next()?;
    if others > 0 {
        let more = counted(others as u64, "other path", "other paths");
        let time = unbroken(span(Nanos(rest)));
        worst.sentence += &format!(" The same on {more}: {time}.");
        let lost = worst.lost_ns.map(|lost| Nanos(lost.0.saturating_add(rest)));
        worst.lost_ns = lost.map(|lost| if worst.active_ns.0 > 0 { lost.min(worst.active_ns) } else { lost });
    }
    Some(worst)
}

/// By the share of the active time, then by time; what has no time last.
fn rank(findings: &mut [Finding]) {
    findings.sort_by(|a, b| {
        let share = |finding: &Finding| finding.share().unwrap_or(-1.0);
        let client = |finding: &Finding| finding.whose.client.as_ref().and_then(|client| client.parse::<IpAddr>().ok());
        (share(b).total_cmp(&share(a)))
            .then_with(|| Reverse(a.lost_ns).cmp(&Reverse(b.lost_ns)))
            .then_with(|| b.confidence.cmp(&a.confidence))
            .then_with(|| a.id.cmp(&b.id))
            .then_with(|| client(a).cmp(&client(b)))
            .then_with(|| a.whose.path.cmp(&b.whose.path))
    });
}

#[cfg(test)]
mod tests;
