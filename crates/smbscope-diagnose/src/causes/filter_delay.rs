//! Opens that take much longer than everything else.

use super::{Detect, Detector, Finding};
use crate::answer::{Confidence, Culprit, LostTime};
use crate::facts::{CommandClass, Fact, Pair, ServerTimeHistogram};
use smbscope_model::Nanos;
use smbscope_model::prose::unbroken;
use smbscope_stats::TimePart;

pub(super) const FILTER_DELAY: Detector = Detector {
    id: "filter-delay",
    culprit: Culprit::Server,
    title: "Something inspects each file when it is opened",
    condition: "With at least `opens` opens, their median server time is `least` or longer, and `ratio` times the median of closes and queries. Or some opens are slow: their p95 is `p95` or longer and twice `ratio` times that of closes and queries, and they take more than half of the server's time. Reads and writes take less than half of the median.",
    advice: "A virus scanner, an archiving or encryption filter, or tiered storage on the server looks into each file as it is opened. Measure with the scanner's exclusion for this share (studies/antivirus.toml). An exclusion costs protection: scan in another place instead.",
    source: "Microsoft, \"Slow SMB file transfer speed\"; docs/studies.md: antivirus on the server",
    thresholds: &[("opens", "10"), ("ratio", "4"), ("least", "4ms"), ("p95", "20ms")],
    covers: &[
        "slow-storage",
        "rtt-bound",
        "serial-client",
        "metadata-heavy",
        "small-file-copy",
        "office-slow-open",
        "server-saturation",
        "slow-client-link",
        "missing-file-probes",
    ],
    detect: Detect::Pair(detect),
};

fn detect(pair: &Pair<'_>) -> Option<Finding> {
    const ID: &str = "filter-delay";
    let opens = pair.served(CommandClass::Open);
    let others = pair.facts.served_together(&[CommandClass::Close, CommandClass::Query]);
    if (opens.count as f64) < pair.threshold(ID, "opens") || others.count < 5 {
        return None;
    }
    let reads = pair.facts.served_together(&[CommandClass::Read, CommandClass::Write]);
    let (typical, usual) = (opens.median(), others.median());
    let ratio = typical.0 as f64 / usual.0.max(50_000) as f64;
    // Storage that is slow for reads and writes is slow for opens, too.
    let all_slow = reads.count >= 5 && reads.median().0 * 2 > typical.0;
    if all_slow {
        return None;
    }
    if typical < pair.time(ID, "least") || ratio < pair.threshold(ID, "ratio") {
        return some_slow(pair, opens, &others);
    }
    let what = format!(
        "{} took {} to open a file for {}, {ratio:.0}× as long as to close or query one ({})",
        pair.server_name(),
        unbroken(typical),
        pair.client,
        unbroken(usual),
    );
    // The share of opens that are slow, at what a slow one takes.
    let depth = pair.depth().max(1.0);
    let sum = |each: i64| pair.once(Nanos((each as f64 * opens.count as f64 / depth) as i64));
    let mean = sum((opens.mean() - usual).0);
    let trimmed = sum((typical - usual).0).min(mean.max(Nanos(1)));
    Some(
        Finding::new(Confidence::Medium, what)
            .lost(LostTime::between(trimmed, Nanos((trimmed.0 + mean.0) / 2), mean))
            .first_of(pair.facts.counted(Fact::Open))
            .filter(" && (smb2.cmd == 5 || smb.cmd == 0xa2)"),
    )
}

/// Opens of which some take very long, as where a scanner remembers the files that it has seen.
fn some_slow(pair: &Pair<'_>, opens: &ServerTimeHistogram, others: &ServerTimeHistogram) -> Option<Finding> {
    const ID: &str = "filter-delay";
    let (late, usual) = (opens.quantile(0.95), others.median());
    let excess = Nanos((opens.sum().0 - usual.0.saturating_mul(opens.count as i64)).max(0));
    let of_server = pair.split.part(TimePart::Server).0.max(1);
    if opens.count < 5 * pair.threshold(ID, "opens") as u64
        || late < pair.time(ID, "p95")
        || (late.0 as f64) < 2.0 * pair.threshold(ID, "ratio") * others.quantile(0.95).0 as f64
        // Not one of them alone, and more than half of what the server took in all.
        || opens.longest.saturating_mul(2) > excess.0
        || excess.0.saturating_mul(2) < of_server
    {
        return None;
    }
    let what = format!(
        "{} took {} or longer to open one file in 20 for {}; a typical open took {}, closing or querying one {}",
        pair.server_name(),
        unbroken(late),
        pair.client,
        unbroken(opens.median()),
        unbroken(usual),
    );
    let lost = pair.once(Nanos((excess.0 as f64 / pair.depth().max(1.0)) as i64));
    Some(
        Finding::new(Confidence::Low, what)
            .lost(LostTime::between(Nanos(lost.0 * 8 / 10), lost, lost))
            .first_of(pair.facts.counted(Fact::Open))
            .filter(" && (smb2.cmd == 5 || smb.cmd == 0xa2)"),
    )
}
