//! Several clients that slow down together as the server has more to do.

use super::{Detect, Detector, Finding, Sufferers};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{DiagnosisFacts, Pair, server_name};
use smbscope_model::Nanos;
use smbscope_model::prose::unbroken;
use smbscope_stats::TimePart;
use std::collections::BTreeSet;
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
    detect: Detect::Server(detect),
};

fn detect(facts: &DiagnosisFacts<'_>, server: SocketAddr) -> Option<Finding> {
    // Response time against load is known of the capture as a whole.
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
    // Those for whom the server itself takes long.
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
