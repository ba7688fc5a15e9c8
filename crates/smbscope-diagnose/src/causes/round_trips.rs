//! Time that goes into round trips, or that the client spends between them.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::classify::Fact;
use crate::facts::{DiagnosisFacts, Pair, percent};
use smbscope_model::Nanos;
use smbscope_model::prose::{counted, thousands, unbroken};
use smbscope_stats::TimePart;

pub(super) const DETECTORS: &[&Detector] =
    &[&RTT_BOUND, &SLOW_CLIENT_LINK, &SERIAL_CLIENT, &METADATA_HEAVY, &CLIENT_BOUND];

const RTT_BOUND: Detector = Detector {
    id: "rtt-bound",
    culprit: Culprit::Network,
    title: "Bound by round trips",
    condition: "Round trips of `trip` or longer took `share` of the waits.",
    advice: "Distance costs the time: use fewer and larger commands, several outstanding, caching (leases, BranchCache, a local copy), or a server nearer to the users.",
    source: "Swartz (1997): response time is what the network and the server make a client wait",
    thresholds: &[("share", "45%"), ("trip", "1ms")],
    covers: &["serial-client", "metadata-heavy"],
    detect: Detect::Pair(rtt_bound),
};

/// Round trip within a building.
const NEAR: Nanos = Nanos(200_000);

fn rtt_bound(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "rtt-bound";
    let network = Nanos((pair.part(TimePart::Network).0 - pair.once(pair.resend_delay()).0).max(0));
    let share = network.0 as f64 / pair.whole.waited.0.max(1) as f64;
    let trip = pair.round_trip()?;
    if share < pair.threshold(ID, "share") || trip < pair.time(ID, "trip") {
        return None;
    }
    let commands = pair.facts.count(Fact::Command) + pair.facts.count(Fact::Encrypted);
    let depth = pair.depth();
    let how =
        if depth <= 1.2 { ", one command after the other".to_owned() } else { format!(", {depth:.1} outstanding") };
    let what = format!(
        "{} waited for {} round trips of {} to {}{how}",
        pair.client,
        thousands(commands),
        unbroken(trip),
        pair.server_name(),
    );
    let lost = Nanos((network.0 as f64 * (1.0 - NEAR.0 as f64 / trip.0.max(1) as f64).max(0.0)) as i64);
    let transfers = pair.transfers().0;
    Some(
        Finding::new(Confidence::High, what)
            // Slow start adds round trips within transfers.
            .lost(LostTime::between(
                lost,
                Nanos(lost.0.saturating_add(transfers / 2)),
                Nanos(lost.0.saturating_add(transfers)),
            ))
            .first_of(pair.facts.counted(Fact::Command)),
    )
}

const SLOW_CLIENT_LINK: Detector = Detector {
    id: "slow-client-link",
    culprit: Culprit::Network,
    title: "One client's link is slower than the others'",
    condition: "With at least `peers` other clients on the same server, the client's round trip is `ratio` times their median and `excess` longer, and round trips took `share` of its waits.",
    advice: "Look at this client's path: Wi-Fi, VPN, a WAN link to a branch site, power saving of its network card. Server and other clients have no such delay.",
    source: "docs/causes.md: its round trip compared with the median of its peers",
    thresholds: &[("peers", "2"), ("ratio", "3"), ("excess", "10ms"), ("share", "25%")],
    covers: &["rtt-bound", "serial-client", "metadata-heavy", "small-file-copy"],
    detect: Detect::Peer(slow_client_link),
};

fn slow_client_link(facts: &DiagnosisFacts<'_>, pair: &Pair<'_>) -> Option<Finding> {
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
    let transfers = pair.transfers().0;
    Some(
        Finding::new(Confidence::High, what)
            .lost(LostTime::between(lost, lost, Nanos(lost.0.saturating_add(transfers))))
            .first_of(pair.facts.counted(Fact::Command)),
    )
}

const SERIAL_CLIENT: Detector = Detector {
    id: "serial-client",
    culprit: Culprit::Application,
    title: "One command after the other",
    condition: "At least `commands` commands with at most `outstanding` outstanding on average, and round trips of `trip` or longer took `share` of the active time.",
    advice: "With one command outstanding each costs a full round trip, and the server idles in between. Use tools that keep several outstanding (robocopy /MT, larger queue depth, read-ahead), or bring the client nearer to the server.",
    source: "Little's law; Azure Files performance guide: parallel requests",
    thresholds: &[("share", "50%"), ("commands", "100"), ("outstanding", "1.2"), ("trip", "1ms")],
    covers: &["metadata-heavy"],
    detect: Detect::Pair(serial_client),
};

fn serial_client(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "serial-client";
    let commands = pair.facts.counted(Fact::Command);
    let network = pair.part(TimePart::Network);
    let share = network.0 as f64 / pair.whole.active.0.max(1) as f64;
    if (commands.count as f64) < pair.threshold(ID, "commands")
        || share < pair.threshold(ID, "share")
        || pair.depth() > pair.threshold(ID, "outstanding")
        || pair.round_trip().is_none_or(|trip| trip < pair.time(ID, "trip"))
    {
        return None;
    }
    let what = format!(
        "{} sent {} one after the other ({:.2} outstanding on average)",
        pair.client,
        counted(commands.count, "command", "commands"),
        pair.depth(),
    );
    Some(
        Finding::new(Confidence::Medium, what)
            .lost(LostTime::between(Nanos(network.0 / 2), network, network))
            .first_of(commands),
    )
}

const METADATA_HEAVY: Detector = Detector {
    id: "metadata-heavy",
    culprit: Culprit::Application,
    title: "Mostly commands without data",
    condition: "`share` of at least `commands` commands neither read nor wrote, over a round trip of `trip`.",
    advice: "Opens, queries and listings cost a round trip each and move nothing. See which files they are for (--by file), and whether leases on directories are on (SMB 3).",
    source: "Azure Files performance guide: metadata-heavy workloads",
    thresholds: &[("commands", "500"), ("share", "70%"), ("trip", "1ms")],
    covers: &[],
    detect: Detect::Pair(metadata_heavy),
};

fn metadata_heavy(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "metadata-heavy";
    let (metadata, all) = (pair.facts.counted(Fact::Metadata), pair.facts.counted(Fact::Command));
    let share = pair.facts.share(Fact::Metadata, Fact::Command);
    if (all.count as f64) < pair.threshold(ID, "commands")
        || share < pair.threshold(ID, "share")
        || pair.round_trip().is_none_or(|trip| trip < pair.time(ID, "trip"))
    {
        return None;
    }
    let what = format!(
        "{} sent {} of {} that neither read nor write data ({})",
        pair.client,
        thousands(metadata.count),
        counted(all.count, "command", "commands"),
        percent(share),
    );
    let network = pair.part(TimePart::Network);
    let lost = Nanos((network.0 as f64 * share) as i64);
    Some(Finding::new(Confidence::Medium, what).lost(LostTime::between(Nanos(0), lost, lost)).first_of(metadata))
}

const CLIENT_BOUND: Detector = Detector {
    id: "client-bound",
    culprit: Culprit::Client,
    title: "The client itself is slow",
    condition: "Pauses below 100 ms between a response and the next request took `time`, and `share` of the client's active time: a person needs longer. Not reported if several connections overlap, or if the client also pauses like a person.",
    advice: "Look at the client: processor, virus scanner, the application. A faster server or network changes little.",
    source: "docs/causes.md: pauses below 100 ms between a response and the next request, too short for a person",
    thresholds: &[("time", "5s"), ("share", "75%")],
    covers: &[],
    detect: Detect::Pair(client_bound),
};

fn client_bound(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "client-bound";
    // In a capture at the server, a pause includes a round trip, which the time split subtracts.
    let think = Nanos(pair.facts.quick_think).min(pair.part(TimePart::Think));
    let active = pair.whole.active;
    let several = pair.connections.len() > 1 && pair.whole.scale < 0.99;
    if think < pair.time(ID, "time")
        || (think.0 as f64) < active.0 as f64 * pair.threshold(ID, "share")
        || several
        || pair.facts.user_pauses * 20 > pair.facts.count(Fact::Command)
    {
        return None;
    }
    let what = format!(
        "{} worked between its requests for {} of its active time, in pauses that are too short for a person; server and \
         network had answered everything",
        pair.client,
        percent(think.0 as f64 / active.0.max(1) as f64)
    );
    Some(Finding::new(Confidence::Medium, what).lost(LostTime::between(Nanos(0), think, think)))
}
