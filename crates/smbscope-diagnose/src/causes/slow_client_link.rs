//! One client whose round trip is far above that of its peers.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{DiagnosisFacts, Fact, Pair};
use smbscope_model::Nanos;
use smbscope_model::prose::unbroken;
use smbscope_stats::TimePart;

pub(super) const SLOW_CLIENT_LINK: Detector = Detector {
    id: "slow-client-link",
    culprit: Culprit::Network,
    title: "One client's link is slower than the others'",
    condition: "With at least `peers` other clients on the same server, the client's round trip is `ratio` times their median and `excess` longer, and round trips took `share` of its waits.",
    advice: "Look at this client's path: Wi-Fi, VPN, a site behind a WAN, power saving of its network card. Server and other clients have no such delay.",
    source: "docs/causes.md: its round trip beside the median of its peers",
    thresholds: &[("peers", "2"), ("ratio", "3"), ("excess", "10ms"), ("share", "25%")],
    covers: &["rtt-bound", "serial-client", "metadata-heavy", "small-file-copy"],
    detect: Detect::Peer(detect),
};

fn detect(facts: &DiagnosisFacts<'_>, pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "slow-client-link";
    let own = pair.round_trip()?;
    let others = facts.of_server(pair.server).filter(|other| other.client != pair.client);
    let mut trips: Vec<Nanos> = others.filter_map(Pair::round_trip).collect();
    trips.sort_unstable();
    if (trips.len() as f64) < pair.threshold(ID, "peers") {
        return None;
    }
    let median = trips[trips.len() / 2];
    let excess = own - median;
    let network = pair.part(TimePart::Network);
    let share = network.0 as f64 / pair.whole.waited.0.max(1) as f64;
    if (own.0 as f64) < median.0 as f64 * pair.threshold(ID, "ratio")
        || excess < pair.time(ID, "excess")
        || share < pair.threshold(ID, "share")
    {
        return None;
    }
    let what = format!(
        "{} is {} away from {}, the other {} clients {}",
        pair.client,
        unbroken(own),
        pair.server_name(),
        trips.len(),
        unbroken(median),
    );
    let lost = Nanos((network.0 as f64 * excess.0 as f64 / own.0.max(1) as f64) as i64);
    // Slow start takes round trips within transfers.
    let transfers = pair.transfers().0;
    Some(
        Finding::new(Confidence::High, what)
            .lost(LostTime::between(lost, lost, Nanos(lost.0.saturating_add(transfers))))
            .first_of(pair.facts.counted(Fact::Command)),
    )
}
